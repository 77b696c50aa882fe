"""Gradient descent on the inner weights of a drawn network, with trackers on schedules (LRG, section 3.4)."""

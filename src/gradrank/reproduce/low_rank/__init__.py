"""Low Rank Gradients and Where to Find Them (LRG): figures 1 to 8, and ours on the same subject."""

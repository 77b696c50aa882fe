"""What one gradient step buys: figures of the one-step theory, and of what it says about spiked data."""

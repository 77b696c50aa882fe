"""Stage 3: what gradient descent does to the network and to the structure of its gradient."""

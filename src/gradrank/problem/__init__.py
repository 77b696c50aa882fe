"""What is studied: inputs, targets, network, loss and regularisers, and `Problem`, which draws them together."""

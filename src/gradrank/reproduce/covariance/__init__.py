"""The random covariance of deep networks at initialisation: figures of the neural covariance SDE."""

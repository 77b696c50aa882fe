"""Matrix tools that know nothing of networks: operators, low-rank matrices, singular values with residuals."""

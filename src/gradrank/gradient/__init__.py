"""Stage 1: the exact gradient of the inner weights, its named parts, and what theory says of them."""

"""The papers' figures, one module each: its grid, its plot, and the claims that it checks."""

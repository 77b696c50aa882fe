"""Symmetric and low-dimensional dynamics of wide two-layer networks: figures."""

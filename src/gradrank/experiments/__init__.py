"""Experiments: a function over a grid of parameters and seeds, run by Dask, kept in one Zarr store."""

"""Dask: the two scans as graphs, merged in a fixed tree, and how they are run."""

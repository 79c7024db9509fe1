"""Dask: pilot, pass and further looks as graphs, merged in a fixed tree, and how they are run."""

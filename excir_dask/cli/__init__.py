"""The command line: a module per command."""

from excir_dask.cli.root import excir, main

__all__ = ["excir", "main"]

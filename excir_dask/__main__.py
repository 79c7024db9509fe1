"""python -m excir_dask is excir."""

from excir_dask.cli import main

if __name__ == "__main__":
    main()

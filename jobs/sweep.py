"""Submit a sweep: ``excir sweep`` as a script for schedulers, with the same options.

python jobs/sweep.py --config jobs/sweep.yaml --scheduler tcp://10.0.0.5:8786 --json
"""

import sys

from excir_dask.cli import main

if __name__ == "__main__":
    main(["sweep", *sys.argv[1:]])

"""Submit an explanation: ``excir explain`` as a script for schedulers, with the same options.

python jobs/explain.py --config jobs/explain.yaml --scheduler tcp://10.0.0.5:8786 --json
"""

import sys

from excir_dask.cli import main

if __name__ == "__main__":
    main(["explain", *sys.argv[1:]])

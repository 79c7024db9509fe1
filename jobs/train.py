"""Submit a training: ``excir train`` as a script for schedulers, with the same options.

python jobs/train.py --config jobs/train.yaml --scheduler tcp://10.0.0.5:8786 --json
"""

import sys

from excir_dask.cli import main

if __name__ == "__main__":
    main(["train", *sys.argv[1:]])

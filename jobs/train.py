"""Submit a training: the same options as ``excir train``, as a script that a scheduler can call.

python jobs/train.py --config jobs/train.yaml --scheduler tcp://10.0.0.5:8786 --json
"""

import sys

from excir_dask.cli import main

if __name__ == "__main__":
    main(["train", *sys.argv[1:]])

"""Submit an audit: ``excir audit`` as a script for schedulers, with the same options.

python jobs/audit.py jobs/audit.yaml --date 2026-09-01 --json
"""

import sys

from excir_dask.cli import main

if __name__ == "__main__":
    main(["audit", *sys.argv[1:]])

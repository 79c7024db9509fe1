"""Make the tables of docs/EVIDENCE.md again: all of them, or the sections that are named.

python jobs/reproduce.py                      # about five minutes; downloads five packages from PyPI the first time
python jobs/reproduce.py published diagnostics
python jobs/reproduce.py --check forms        # compares with the page, and changes nothing; exit code 1 if one drifts
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))

from evidence.run import main

if __name__ == "__main__":
    sys.exit(main())

"""Try damaged files and odd options for a while: ``python -m tests.faults.mutate --seconds 600``.

Mutants run in processes of their own, so that one that ends its process is counted and the next one follows. Every
finding has a number, by which ``python tests/faults/mutants.py KIND NUMBER NUMBER+1 FOLDER`` repeats it.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from mutants import EXPECTED, KINDS  # noqa: E402

BATCH = 500
"""mutants per process"""


def try_mutants(kind: str, first: int, last: int, folder: Path, seconds: float) -> tuple[Counter[str], list[str]]:
    """Outcomes of mutants until the time is over, and what should not have happened."""
    outcomes: Counter[str] = Counter()
    findings: list[str] = []
    stop, number = time.monotonic() + seconds, first
    while number < last and time.monotonic() < stop:
        command = [
            sys.executable,
            str(HERE / "mutants.py"),
            kind,
            str(number),
            str(min(number + BATCH, last)),
            str(folder),
        ]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stdout is not None
        begun = number
        for line in process.stdout:
            tried, _, outcome = line.strip().partition(" ")
            if not tried.isdigit():  # libraries print too
                continue
            number = int(tried)
            if outcome == "begins":
                begun = number
                if time.monotonic() > stop:
                    process.kill()
                    break
            else:
                outcomes[outcome if outcome in EXPECTED else "wrong"] += 1
                findings += [] if outcome in EXPECTED else [f"{kind} {number}: {outcome}"]
        stderr = process.communicate()[1]
        if process.returncode and time.monotonic() < stop:
            outcomes["ended the process"] += 1
            findings.append(f"{kind} {begun}: ended the process with {process.returncode}: {stderr[-300:]!r}")
        number += 1
    return outcomes, findings


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="for all kinds together")
    parser.add_argument("--first", type=int, default=0, help="number of the first mutant")
    parser.add_argument("--kind", choices=[*KINDS, "options"], action="append", help="repeat for several; default: all")
    given = parser.parse_args()
    kinds = given.kind or [*KINDS, "options"]
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        for kind in kinds:
            place, share = Path(folder, kind), given.seconds / len(kinds)
            if kind == "options":
                from odd_options import try_options

                outcomes, findings = try_options(place, share, given.first)
            else:
                outcomes, findings = try_mutants(kind, given.first, 10**9, place, share)
            print(f"{kind}: {sum(outcomes.values())} tried;", ", ".join(f"{n} {what}" for what, n in outcomes.items()))
            wrong += findings
    print("\n".join(wrong))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()

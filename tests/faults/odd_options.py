"""Odd options and files of options, as hypothesis draws them."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path

from commands import excir, write_lake
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from excir_dask.pipeline.options import OPTIONS

CODES = (0, 1, 2, 3, 75)
"""exit codes that a command may end with"""
SLOW = 2.0
"""seconds after which the tool calls a refusal slow"""

NUMBERS = ["0", "-1", "1", "2", "0.5", "nan", "inf", "-inf", "1e400", "-0.0", "1e-320", str(10**30), "9" * 5000, "0x10"]
TEXTS = [
    "",
    " ",
    "y",
    "a,b",
    "a,",
    "=",
    "a=",
    "=a",
    "a=b=c",
    "*",
    "!*",
    "[",
    "../..",
    "/",
    "~",
    "\udcff",
    "東京",
    "x" * 999,
]
LEFT_ALONE = ("scheduler", "cluster", "storage_options", "allow_pickle", "out", "checkpoint", "overwrite", "force")
"""options that reach other machines, run code, or name places to write to: a test writes into its own folder only"""

NAMES = [name for name, option in OPTIONS.items() if option.typed and name not in LEFT_ALONE]

values = st.one_of(
    st.sampled_from(NUMBERS + TEXTS),
    st.text(max_size=12),
    st.integers().map(str),
    st.floats().map(str),
)
plain = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), values)
nested = st.recursive(
    plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(values, inner, max_size=3), max_leaves=6
)


@st.composite
def typed(draw: st.DrawFn) -> list[str]:
    """Options of explain as they are typed."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True))
    return [f"--{name.replace('_', '-')}={draw(values)}" for name in names]


files = st.dictionaries(st.sampled_from([name.replace("_", "-") for name in NAMES]), nested, min_size=1, max_size=3)
"""what a file of options holds"""


def attempt(lake: Path, options: list[str]) -> tuple[str, str | None]:
    """How ``explain`` ended, and what is wrong with that."""
    began = time.monotonic()
    done = excir("explain", lake, *options)
    seconds = time.monotonic() - began
    if done.exit_code not in CODES or "Traceback" in done.stderr:
        return "wrong", f"{options} ended with {done.exit_code}: {done.stderr[-400:]!r}"
    if len(done.stderr) > 5000:
        return "wrong", f"{options}: {len(done.stderr)} characters of message"
    return ("slow" if done.exit_code == 2 and seconds > SLOW else f"exit code {done.exit_code}"), None


def try_options(folder: Path, seconds: float, first: int) -> tuple[Counter[str], list[str]]:
    """Outcomes of odd options until the time is over, and what should not have happened."""
    write_lake(folder / "lake", rows=20)
    outcomes: Counter[str] = Counter()
    findings: list[str] = []
    stop, batch = time.monotonic() + seconds, first
    config = folder / "job.json"

    def note(options: list[str]) -> None:
        if time.monotonic() > stop:
            return
        outcome, finding = attempt(folder / "lake", options)
        outcomes[outcome] += 1
        findings.extend([] if finding is None else [f"options (batch {batch}): {finding}"])

    while time.monotonic() < stop:
        quick = settings(max_examples=200, database=None, deadline=None, suppress_health_check=list(HealthCheck))

        @seed(batch)
        @quick
        @given(typed())
        def on_the_command_line(options: list[str]) -> None:
            note(["--output", "y", *options])

        @seed(batch)
        @quick
        @given(files)
        def in_a_file(content: dict[str, object]) -> None:
            config.write_text(json.dumps(content))
            note(["--config", str(config)])

        on_the_command_line()
        in_a_file()
        batch += 1
    return outcomes, findings

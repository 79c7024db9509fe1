"""Odd options end with one line and exit code 2."""

import pytest
from commands import excir, refused

pytestmark = pytest.mark.usefixtures("synchronous")

EXPLAIN = ("explain", "{lake}", "--output", "y")
TRAIN = ("train", "{lake}", "--label", "label", "--out", "{new}/m.ubj")
SWEEP = ("sweep", "{lake}", "--output", "y")
DIGITS = "9" * 5000

ODD = [
    *[(*command, f"--budget={size}") for command in (EXPLAIN, TRAIN) for size in ("1e400", "-1e400", "nan", DIGITS)],
    (*EXPLAIN, "--out", "/"), (*EXPLAIN, "--out", "/", "--overwrite"), (*SWEEP, "--out", "/", "--overwrite"),
    (*EXPLAIN, "--out", "a\0b"), (*EXPLAIN, "--out", "\udcff"), ("report", "{result}", "--out", "\udcff"),
    ("plan", "{lake}/\udcff"), ("explain", "{lake}", "--output", "\udcff"), ("audit", "\udcff.yaml"),
    ("report", "{result}", "--out", "s3://bucket/report.html"),
    *[(*SWEEP, f"--fractions={fractions}") for fractions in ("nan", "0.5,nan", "inf", "0.5,-inf", "1e400")],
    *[(*SWEEP, "--fractions=0.5", f"--seeds={seeds}") for seeds in (10**12, 10**30, DIGITS, -1)],
    *[("audit", "history", "{audits}", f"--last={last}") for last in (0, DIGITS)],
    *[(*TRAIN, "--params", f"{name}={value}") for name in ("eta", "gamma") for value in ("nan", "NaN", "inf", "1e400")],
    (*EXPLAIN, "--seed", DIGITS), (*EXPLAIN, "--sampling", "x" * 9000), ("x" * 9000,), (*EXPLAIN, "--" + "x" * 9000),
]  # fmt: skip

EMPTY = [
    ("explain", "", "--output", "y"), ("plan", ""), ("report", ""), ("compare", "{result}", ""), ("audit", ""),
    ("audit", "history", ""), ("audit", "baseline", "list", ""), ("demo", "--folder="),
    ("explain", "{lake}", "--output="),
    *[(*EXPLAIN, f"{option}=") for option in (
        "--weights", "--checkpoint", "--groups", "--group-prefix", "--features", "--scheduler", "--cluster", "--out",
        "--budget", "--config",
    )],
    *[(*TRAIN, f"{option}=") for option in ("--weights", "--features", "--budget", "--label", "--out")],
    *[("audit", "{config}", f"{option}=") for option in ("--date", "--scheduler", "--cluster")],
    *[("audit", "history", "{audits}", f"{option}=") for option in ("--feature", "--model", "--since")],
]  # fmt: skip


@pytest.fixture
def filled(workplace, tmp_path):
    """Fills in the places of a command."""
    places = {
        "lake": workplace / "lake", "result": workplace / "result", "audits": workplace / "audits",
        "config": workplace / "audit.yaml", "new": tmp_path,
    }  # fmt: skip
    return lambda command: [part.format(**places) for part in command]


def short(command: tuple[str, ...]) -> str:
    return " ".join(part[:20] for part in (command[0], *command[-2:])).encode("ascii", "backslashreplace").decode()


@pytest.mark.parametrize("command", ODD, ids=short)
def test_odd_options_are_refused_in_one_short_line(filled, command):
    refused(excir(*filled(command)), 2)


@pytest.mark.parametrize("command", EMPTY, ids=short)
def test_empty_texts_as_unset_variables_leave_them_are_refused(filled, command):
    assert "empty" in refused(excir(*filled(command)), 2) or command[-1] == "--config="


def test_a_history_of_more_runs_than_there_are_shows_all(workplace):
    done = excir("audit", "history", workplace / "audits", "--last", 10**30)
    assert done.exit_code == 0, done.stderr
    assert done.stdout.count("plant-") == 2

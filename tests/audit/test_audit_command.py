"""The command as a scheduler calls it: its last line, its exit codes, and the files that schedule it."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from days import frame, write_day
from matplotlib.axes import Axes

from excir_dask import explain
from excir_dask.audit import history
from excir_dask.audit import run as audits
from excir_dask.audit.lock import locked
from excir_dask.audit.store import open_store
from excir_dask.cli import excir
from excir_dask.errors import ExcirError, ModelError

JOBS = Path(__file__).parents[2] / "jobs"
pytestmark = pytest.mark.usefixtures("synchronous", "without_bokeh")


def run(*arguments: object) -> tuple[int, list[str]]:
    """Exit code and lines of standard output, as the program's main gives them."""
    done = CliRunner().invoke(excir, ["audit", *map(str, arguments)])
    code = done.exception.exit_code if isinstance(done.exception, ExcirError) else done.exit_code
    return code, done.stdout.splitlines()


def last(*arguments: object) -> tuple[int, dict]:
    code, lines = run(*arguments)
    return code, json.loads(lines[-1])


def test_exit_codes_follow_the_worst_severity_that_counts(audited, tmp_path):
    shutil.copytree(audited.folder, tmp_path, dirs_exist_ok=True)
    config = tmp_path / "audit.yaml"
    assert last(config, "--date", "2026-09-02")[0] == 0
    code, lines = run(config, "--date", "2026-09-09", "--json")
    ninth = json.loads(lines[-1])
    assert (code, ninth["exit_code"], ninth["status"], len(lines)) == (1, 1, "fail", 1)
    assert "speed" in {one["feature_name"] for one in ninth["runs"][0]["violations"]}
    assert last(config, "--date", "2026-09-09", "--fail-on", "never")[0] == 0
    code, missing = last(config, "--date", "2030-01-01")
    assert (code, missing["exit_code"], missing["status"]) == (75, 75, "error")
    assert "has no date=2030-01-01: the last one is date=2026-09-14" in missing["error"]
    with locked(open_store(tmp_path / "audits"), "plant"):
        assert last(config, "--date", "2026-09-02")[0] == 75
    write_day(tmp_path / "lake", 2, frame(5, rows=600))
    assert last(config, "--date", "2026-09-02", "--fail-on", "warn")[0] == 1


def test_a_baseline_is_set_before_it_is_used(plant):
    config = plant / "audit.yaml"
    config.write_text(config.read_text() + "baseline: production\n")
    code, found = last(config, "--date", "2026-09-01")
    assert (code, found["runs"]) == (2, [])
    assert "excir audit baseline set production" in found["error"]
    code, first = last(config, "--date", "2026-09-01", "--no-baseline")
    assert (code, first["exit_code"], first["status"]) == (0, 0, "ok")
    assert run("baseline", "set", "production", first["runs"][0]["folder"])[0] == 0
    assert json.loads(run("baseline", "list", config, "--json")[1][0])[0]["name"] == "production"


def test_a_backfill_continues_after_a_bad_day(plant):
    write_day(plant / "lake", 4, frame(4))
    code, lines = run(plant / "audit.yaml", "--backfill", "2026-09-01", "2026-09-04")
    found = json.loads(lines[-1])
    assert (code, lines[-2]) == (75, "4 windows: 3 ok, 1 error")
    assert [one["status"] for one in found["runs"]] == ["ok", "ok", "error", "ok"]


def test_the_exit_code_of_a_backfill_prefers_errors_that_a_retry_does_not_fix(plant, monkeypatch):
    def audited(config, day, *more, **options):
        if day.day == 2:
            raise ModelError("the model does not fit")
        return real(config, day, *more, **options)

    real = audits.audit
    monkeypatch.setattr(audits, "audit", audited)
    write_day(plant / "lake", 4, frame(4))
    code, lines = run(plant / "audit.yaml", "--backfill", "2026-09-01", "2026-09-04")
    assert (code, lines[-2]) == (3, "4 windows: 2 ok, 2 error")
    assert [one["status"] for one in json.loads(lines[-1])["runs"]] == ["ok", "error", "error", "ok"]


def test_an_internal_error_is_not_a_failed_check(plant, monkeypatch):
    received = plant / "received.json"
    config = plant / "audit.yaml"
    config.write_text(config.read_text() + f"hooks: {{command: [sh, -c, 'cat > {received}']}}\n")
    monkeypatch.setattr("excir_dask.audit.run.judge", lambda *_: {}["surprise"])
    done = CliRunner().invoke(excir, ["audit", str(config), "--date", "2026-09-01"])
    found = json.loads(done.stdout.splitlines()[-1])
    assert (done.exit_code, found["exit_code"], found["status"]) == (70, 70, "error")
    assert found["error"] == json.loads(received.read_text())["error"] == "KeyError: 'surprise'"
    assert "Traceback" in done.stderr


def test_a_damaged_baseline_is_named(plant):
    config = plant / "audit.yaml"
    config.write_text(config.read_text() + "baseline: production\n")
    (plant / "audits" / "baselines").mkdir(parents=True)
    for content in ("{", "[]", "{}"):
        (plant / "audits" / "baselines" / "production.json").write_text(content)
        code, found = last(config, "--date", "2026-09-01")
        assert (code, found["exit_code"]) == (3, 3)
        assert "production.json is not a baseline" in found["error"]


def test_history_prints_runs_and_trends_and_plots_them(audited, tmp_path):
    results = audited.folder / "audits"
    code, lines = run("history", results)
    assert (code, len(lines)) == (0, 15)
    trend = ["--group", "cooling", "--plot", tmp_path / "trend.png"]
    code, lines = run("history", audited.folder / "audit.yaml", *trend)
    assert lines[0] == "group cooling of pred"
    assert [line[:10] for line in lines[2:-1]] == [f"2026-09-{day:02d}" for day in range(1, 15)]
    assert lines[-1].startswith("steady: -0.0")
    assert run("history", results, "--feature", "speed")[1][-1] == "jumped: another score since 2026-09-09"
    assert (tmp_path / "trend.png").stat().st_size > 5000
    assert len(json.loads(run("history", results, "--feature", "rpm", "--json")[1][0])) == 14
    assert "± std error" in run("history", results, "--feature", "rpm")[1][1]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["--feature", "rmp"], "has no 'rmp' among its features; did you mean 'rpm'?"),
        (["--feature", "cooling"], "has no 'cooling' among its features: humidity, noise"),
        (["--feature", "rpm", "--audit", "other"], "has no 'other' among its audits: plant"),
        (["--audit", "plan"], "has no 'plan' among its audits: plant"),
        (["--model", "m"], "has no 'm' among its models: plant"),
        (["--feature", "rpm", "--output", "y"], "has no 'y' among its outputs: pred"),
        (
            ["--feature", "rpm", "--since", "2030-01-01"],
            "no such runs since 2030-01-01; the last one is from 2026-09-14",
        ),
        (["--since", "soon"], "'soon' is not a date"),
    ],
)
def test_history_says_which_part_of_a_query_matches_nothing(audited, asked, said):
    done = CliRunner().invoke(excir, ["audit", "history", str(audited.folder / "audits"), *asked])
    assert done.exit_code == 2
    assert said in done.stderr


def test_a_folder_without_runs_has_no_history(tmp_path):
    done = CliRunner().invoke(excir, ["audit", "history", str(tmp_path)])
    assert (done.exit_code, "has no runs" in done.stderr) == (2, True)


def test_history_of_the_last_runs_and_since_a_day(audited):
    results = audited.folder / "audits"
    assert [line[:10] for line in run("history", results, "--last", 2)[1][1:]] == ["2026-09-13", "2026-09-14"]
    found = json.loads(run("history", results, "--feature", "rpm", "--since", "2026-09-12", "--json")[1][0])
    assert [one["date"] for one in found] == ["2026-09-12", "2026-09-13", "2026-09-14"]
    assert len(json.loads(run("history", results, "--last", 3, "--since", "2026-09-13", "--json")[1][0])) == 2


@pytest.fixture
def regions(tmp_path) -> Path:
    """Results of one audit with two keys: a score stays at 0.9 in one region, and at 0.1 in the other."""
    store = open_store(tmp_path / "audits")
    explanations = {
        "eu": explain(frame(1), output="pred"),
        "us": explain(frame(1).eval("pred = -pred"), output="pred"),
    }
    for day in range(1, 8):
        for region, explanation in explanations.items():
            name = f"reg,region={region}"
            about = {
                "run": f"{name}-{day}", "audit": name, "model": "m", "window": f"{region}/{day}", "baseline": None,
                "date": f"2026-09-{day:02d}", "finished": f"2026-09-{day:02d}T0{len(region)}:00", "status": "ok",
                "rows": 1500,
            }  # fmt: skip
            history.append(store, about, explanation)
    return tmp_path


def test_a_trend_shows_one_series_of_runs(regions, monkeypatch):
    results = regions / "audits"
    lines = run("history", results, "--feature", "rpm")[1]
    heads = [place for place, line in enumerate(lines) if line.startswith("feature")]
    assert [lines[place] for place in heads] == [f"feature rpm of pred, audit reg,region={one}" for one in ("eu", "us")]
    for place in heads:
        rows = [line.split() for line in lines[place + 2 : place + 9]]
        assert [row[0] for row in rows] == [f"2026-09-{day:02d}" for day in range(1, 8)]
        assert len({row[1] for row in rows}) == 1
    assert not [line for line in lines if line.startswith(("steady", "jumped"))]
    assert len(run("history", results, "--audit", "reg")[1]) == 15
    one = json.loads(run("history", results, "--feature", "rpm", "--audit", "reg,region=us", "--json")[1][0])
    assert {row["audit"] for row in one} == {"reg,region=us"}
    drawn: list[tuple[str, list[float]]] = []
    errorbar = Axes.errorbar

    def noted(self, x, y, *given, label, **more):
        drawn.append((label, list(y)))
        return errorbar(self, x, y, *given, label=label, **more)

    monkeypatch.setattr(Axes, "errorbar", noted)
    assert run("history", results, "--feature", "rpm", "--plot", regions / "trend.png")[0] == 0
    assert [label for label, _ in drawn] == [f"pred (feature), audit reg,region={one}" for one in ("eu", "us")]
    assert [len(set(scores)) for _, scores in drawn] == [1, 1]


def test_any_two_runs_can_be_compared(audited):
    assert run("compare", audited.run_folder(3), audited.run_folder(12))[0] == 0
    names = [audited.runs[day].about["run"] for day in (12, 1)]
    code, lines = run("compare", *names, "--results", audited.folder / "audits", "--json")
    assert code == 0
    assert json.loads(lines[0])


def test_validate_says_what_is_wrong(plant):
    code, lines = run("validate", plant / "audit.yaml", "--date", "2026-09-01")
    assert (code, lines) == (0, [f"{plant / 'audit.yaml'} is fine"])
    code, found = last("validate", plant / "audit.yaml", "--date", "2030-01-01", "--json")
    assert (code, len(found["problems"])) == (75, 1)


def test_a_baseline_that_is_not_set_yet_is_a_warning(plant):
    config = plant / "audit.yaml"
    config.write_text(config.read_text() + "baseline: production\n")
    code, found = last("validate", config, "--date", "2026-09-01", "--json")
    assert (code, found["problems"], len(found["warnings"])) == (0, [], 1)
    done = CliRunner().invoke(excir, ["audit", "validate", str(config), "--date", "2026-09-01"])
    assert (done.exit_code, done.stdout) == (0, f"{config} is fine\n")
    assert done.stderr.startswith("warning: ")


def test_a_mistyped_command_is_named(plant):
    done = CliRunner().invoke(excir, ["audit", "validte", str(plant / "audit.yaml")])
    assert done.exit_code == 2
    assert "did you mean 'validate'" in done.stderr


def test_a_date_says_for_which_day_a_whole_lake_is_audited(plant):
    config = plant / "audit.yaml"
    config.write_text(config.read_text().replace("window: date={{ date }}\n", ""))
    code, found = last(config, "--date", "2026-09-05")
    assert (code, found["runs"][0]["date"], found["runs"][0]["window"]) == (0, "2026-09-05", None)
    assert last(config, "--backfill", "2026-09-01", "2026-09-02")[0] == 2


def test_the_job_ends_with_the_codes_of_the_command(plant):
    done = subprocess.run(
        [sys.executable, JOBS / "audit.py", plant / "audit.yaml", "--date", "2030-01-01", "--json"],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 75, done.stderr
    assert json.loads(done.stdout)["exit_code"] == 75
    assert done.stderr.startswith("excir: ")

"""Results survive kills and concurrent audits: files are whole, the history only grows, and runs are locked."""

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pyarrow.parquet as pq
import pytest
from days import FIRST, frame

from excir_dask import explain
from excir_dask.audit import history, lock
from excir_dask.audit.config import read_config
from excir_dask.audit.lock import LockedError, locked
from excir_dask.audit.run import audit
from excir_dask.audit.store import LEFTOVER_AGE, open_store, split_run
from excir_dask.errors import UsageError

pytestmark = pytest.mark.usefixtures("synchronous", "without_bokeh")
CODE = """
from excir_dask.cli import main
from excir_dask.render.html import page
page.available = lambda: False  # a report takes longer than the audit
main()
"""


def about(run: str, model: str = "m") -> dict:
    return {
        "run": run, "audit": "plant", "model": model, "window": None, "date": None,
        "finished": "2026-09-01T00:00:00+00:00", "status": "ok", "baseline": None, "rows": 1500,
    }  # fmt: skip


@pytest.fixture(scope="module")
def explanation():
    return explain(frame(1), output="pred", groups={"engine": ["rpm", "torque"]})


def test_two_audits_at_the_same_moment_both_land_in_the_history(plant):
    other = plant / "other.yaml"
    other.write_text((plant / "audit.yaml").read_text().replace("name: plant", "name: other"))
    started = [
        subprocess.Popen(
            [sys.executable, "-c", CODE, "audit", str(plant / name), "--date", str(FIRST), "--json"],
            stdout=subprocess.PIPE,
        )
        for name in ("audit.yaml", "other.yaml")
    ]
    for process in started:
        process.communicate(timeout=120)
    assert [process.returncode for process in started] == [0, 0]
    assert set(history.runs(open_store(plant / "audits"))["audit"]) == {"plant", "other"}


def test_concurrent_writers_of_the_history_lose_nothing(tmp_path, explanation):
    def append(number: int) -> None:
        history.append(open_store(tmp_path), about(f"run-{number}"), explanation)

    with ThreadPoolExecutor(8) as writers:
        list(writers.map(append, range(20)))
    assert history.runs(open_store(tmp_path))["run"].nunique() == 20


@pytest.mark.parametrize("at", ["folder", "history"])
def test_a_kill_in_the_middle_of_writing_leaves_the_history_readable_and_the_run_absent(plant, at):
    kept = audit(read_config(plant / "audit.yaml"), FIRST).about["run"]
    code = f"""
import os, shutil
from datetime import date
from excir_dask.audit import store
from excir_dask.audit.config import read_config
from excir_dask.audit.run import audit
from excir_dask.render.html import page
page.available = lambda: False  # a report takes longer than the audit
def killed(*given, **more):
    os.kill(os.getpid(), 9)
if {at!r} == "folder":
    shutil.copytree = lambda made, folder, **more: (shutil.copy(made / "explanation.json", folder), killed())
else:
    put = store.Store.put
    def half(self, data, *parts):
        if parts[0] == "history":
            with open(self.path(*parts[:-1], "." + parts[-1]), "wb") as file:
                file.write(data[: len(data) // 2])
            killed()
        put(self, data, *parts)
    store.Store.put = half
audit(read_config({str(plant / "audit.yaml")!r}), date(2026, 9, 2))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == -9, done.stderr
    store = open_store(plant / "audits")
    assert history.runs(store)["run"].tolist() == [kept]
    if at == "folder":
        assert store.runs() == [kept]
    killed = set(store.runs()) - {kept}
    # the claim of the dead process does not stop the next one, and what it finished is not lost
    last = audit(read_config(plant / "audit.yaml"), FIRST)
    assert last.status == "ok"
    assert len(killed) == (at == "history")
    assert set(history.runs(store)["run"]) == {kept, last.about["run"], *killed}


def test_old_leftovers_of_killed_runs_are_removed(plant):
    for name, age in (("old", 2 * LEFTOVER_AGE), ("young", 60)):
        folder = plant / "audits" / "runs" / f".excir-{name}-x1"
        folder.mkdir(parents=True)
        (folder / "explanation.json").write_text("{")
        os.utime(folder, (time.time() - age,) * 2)
    audit(read_config(plant / "audit.yaml"), FIRST)
    assert [path.name for path in (plant / "audits" / "runs").glob(".*")] == [".excir-young-x1"]


def test_hidden_folders_of_others_are_not_removed(plant):
    mine = plant / "audits" / "runs" / ".my-notebook"
    mine.mkdir(parents=True)
    os.utime(mine, (0, 0))
    audit(read_config(plant / "audit.yaml"), FIRST)
    assert mine.is_dir()


def test_the_folder_of_a_run_is_never_replaced(tmp_path):
    made, taken = tmp_path / "made", tmp_path / "runs" / "one"
    for folder in (made, taken):
        folder.mkdir(parents=True)
        (folder / "manifest.json").write_text(folder.name)
    with pytest.raises(OSError, match="not empty"):
        open_store(tmp_path).add_run(made, "one")
    assert (taken / "manifest.json").read_text() == "one"
    assert [path.name for path in taken.parent.iterdir()] == ["one"]


def test_an_explanation_does_not_overwrite_the_run_of_an_audit(plant, explanation):
    audit(read_config(plant / "audit.yaml"), FIRST)
    (folder,) = (plant / "audits" / "runs").iterdir()
    with pytest.raises(UsageError, match=r"holds 'changes.parquet', which is not part of the explanation"):
        explanation.save(folder, overwrite=True)


def test_a_damaged_file_is_left_out_of_the_history(tmp_path, explanation, caplog):
    store = open_store(tmp_path)
    history.append(store, about("one", "a model/2"), explanation)
    (tmp_path / "history" / "model=a%20model%2F2" / "two.parquet").write_bytes(b"PAR1")
    found = history.read(store)
    assert set(found["run"]) == {"one"}
    assert set(found["model"]) == {"a model/2"}
    assert "two.parquet cannot be read and is left out" in caplog.text


def without(path, column: str) -> None:
    """Write a file of the history again, as a version that did not know a column would have."""
    pq.write_table(pq.read_table(path, partitioning=None).drop_columns(column), path)


@pytest.mark.parametrize("column", ["missing", "baseline", "strength", "date"])
def test_a_column_that_a_file_of_the_history_lacks_is_null(tmp_path, explanation, caplog, column):
    store = open_store(tmp_path)
    history.append(store, about("plant-old"), explanation)
    without(next(tmp_path.rglob("*.parquet")), column)
    history.append(store, about("plant-new") | {"date": "2026-09-02", "baseline": "plant-old"}, explanation)
    found = history.read(store)
    assert found["run"].drop_duplicates().tolist() == ["plant-old", "plant-new"]
    assert found.groupby("run")[column].count().to_dict() == {"plant-old": 0, "plant-new": len(found) // 2}
    assert set(history.recent(store, "m", "plant", None, 9)["run"]) == {"plant-old", "plant-new"}
    assert not caplog.text


def test_a_file_that_does_not_say_its_run_is_left_out_of_the_history(tmp_path, explanation, caplog):
    store = open_store(tmp_path)
    history.append(store, about("plant-old"), explanation)
    without(next(tmp_path.rglob("*.parquet")), "run")
    assert len(history.read(store)) == 0
    assert "it has no column run" in caplog.text


def undated(plant):
    """The audit of one day's folder, whose runs are dated only if a day is given."""
    path = plant / "audit.yaml"
    path.write_text(path.read_text().replace("lake: lake\nwindow: date={{ date }}", f"lake: lake/date={FIRST}"))
    path.write_text(path.read_text() + "baseline: previous\n")
    return read_config(path)


def test_a_run_without_a_date_counts_for_the_day_it_ended(plant):
    config = undated(plant)
    today = datetime.now(UTC).date()
    early, late, tomorrow, after = (today + timedelta(days=number) for number in (-9, 9, 1, 2))
    without = audit(config).about["run"]
    assert audit(config, early).about["baseline"] is None
    assert audit(config, tomorrow).about["baseline"] == without
    assert audit(config, after).about["date"] == str(after)
    last = audit(config, late)
    assert history.runs(open_store(config.results))["date"].fillna("today").tolist() == [
        str(early), "today", str(tomorrow), str(after), str(late),
    ]  # fmt: skip
    # a run without a date is compared with the last one by day, whichever of the two kinds that is
    assert audit(config).about["baseline"] == last.about["run"]


def test_results_can_be_on_any_filesystem(plant):
    path = plant / "audit.yaml"
    path.write_text(path.read_text().replace("results: audits", f"results: memory://{plant.name}/audits"))
    config = read_config(path)
    run = audit(config, FIRST).about["run"]
    store = open_store(config.results)
    assert store.runs() == [run]
    assert store.load(run).top(1)["feature"].tolist() == ["rpm"]
    assert history.runs(store)["run"].tolist() == [run]
    assert history.previous(store, "plant", "plant", "2026-09-02") == run
    store.delete("runs", run, "manifest.json")
    assert store.runs() == []  # a run without its manifest was never finished


def test_two_runs_of_the_same_audit_are_kept_apart(tmp_path):
    store = open_store(tmp_path)
    with locked(store, "plant"), locked(store, "other"):
        with pytest.raises(LockedError, match="is already running") as caught, locked(store, "plant"):
            pass
        assert caught.value.exit_code == 75
    with locked(store, "plant"):
        pass


def test_a_claim_without_a_heartbeat_is_void(tmp_path):
    store = open_store(tmp_path)
    claim = {"host": "elsewhere", "pid": 1, "since": "2026-09-01"}
    store.put(json.dumps(claim).encode(), "locks", "plant", "old.json")
    with pytest.raises(LockedError, match="elsewhere"), locked(store, "plant"):
        pass
    past = time.time() - lock.STALE - 60
    os.utime(tmp_path / "locks" / "plant" / "old.json", (past, past))
    with locked(store, "plant"):
        assert not (tmp_path / "locks" / "plant" / "old.json").exists()


def test_a_long_run_sends_heartbeats(tmp_path, monkeypatch):
    monkeypatch.setattr(lock, "HEARTBEAT", 0.02)
    store = open_store(tmp_path)
    with locked(store, "plant"):
        (claim,) = (tmp_path / "locks" / "plant").glob("*.json")
        began = json.loads(claim.read_text())["since"]
        monkeypatch.setattr(time, "strftime", lambda *_: "later")
        os.utime(claim, (1, 1))
        deadline = time.monotonic() + 10
        while claim.stat().st_mtime < 1000 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert claim.stat().st_mtime > 1000
        assert json.loads(claim.read_text())["since"] == began


@pytest.mark.parametrize("content", [b"", b'{"host": "else', b"[]", b"{}", b"\xff\xfe"])
def test_a_claim_that_cannot_be_read_counts_by_its_age(tmp_path, content):
    store = open_store(tmp_path)
    store.put(content, "locks", "plant", "cut.json")
    with pytest.raises(LockedError, match="is already running; try again"), locked(store, "plant"):
        pass
    past = time.time() - lock.STALE - 1
    os.utime(tmp_path / "locks" / "plant" / "cut.json", (past, past))
    with locked(store, "plant"):
        pass
    assert store.entries("locks", "plant") == []


@pytest.mark.skipif(os.name != "posix", reason="there is no SIGTERM elsewhere")
def test_sigterm_releases_the_claim(plant):
    code = f"""
import time
from excir_dask.audit import run
from excir_dask.cli import main
def long(*given):
    print("running", flush=True)
    time.sleep(100)
run.check_window = long
main(["audit", {str(plant / "audit.yaml")!r}, "--date", "{FIRST}"])
"""
    arguments = [sys.executable, "-c", code]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "running\n"
        store = open_store(plant / "audits")
        assert len(store.entries("locks", "plant")) == 1
        process.terminate()
        assert process.wait(60) == 143, process.stderr.read()
    assert store.entries("locks", "plant") == []


def test_a_run_is_named_by_its_folder():
    assert split_run("s3://bucket/audits/runs/x/") == ("s3://bucket/audits", "x")
    with pytest.raises(UsageError, match="not the folder of a run"):
        split_run("x")

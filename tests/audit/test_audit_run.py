"""An audit from end to end: drift is found on its day, runs are saved whole, and no hook can lose them."""

import json
import shutil
import sys
from datetime import date
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from days import FIRST, frame, write_day

from excir_dask import Explanation
from excir_dask.audit import history
from excir_dask.audit.baseline import baselines, set_baseline
from excir_dask.audit.checks import CHECKS
from excir_dask.audit.config import read_config
from excir_dask.audit.run import audit
from excir_dask.audit.slopes import slopes
from excir_dask.audit.store import open_store
from excir_dask.cli import excir
from excir_dask.errors import LakeError, UsageError
from excir_dask.render.html import audit_page
from excir_dask.render.text.audit import summary
from excir_dask.results.audit import AuditResult

pytestmark = pytest.mark.usefixtures("synchronous")


def configured(plant, extra=""):
    path = plant / "audit.yaml"
    path.write_text(path.read_text() + extra)
    return read_config(path)


def test_planted_drift_is_found_on_its_day_and_the_trend_shows_the_rest(audited):
    first = audited.runs[1].about["run"]
    assert [day for day, run in audited.runs.items() if run.status == "fail"] == list(range(9, 15))
    ninth = audited.runs[9].violations
    assert {one["feature_name"] for one in ninth if one["severity"] == "fail"} == {"speed"}
    assert {one["baseline"] for one in ninth} == {first}
    (trend,) = [part for _, part in history.trend(open_store(audited.folder / "audits"), "cooling").groupby("kind")]
    assert len(trend) == 14
    assert list(trend["date"]) == sorted(trend["date"])
    (slope,) = slopes(trend, 0.001).to_dict("records")
    assert slope["steady"]
    assert slope["slope"] < -4 * slope["slope_error"]


def test_the_report_of_the_last_day_shows_the_group_that_fades(audited):
    trend = AuditResult.load(audited.run_folder(14)).trend.drop_duplicates(["kind", "name"]).set_index("name")
    assert trend["steady"]["cooling"]
    assert (trend["steady"]["speed"], trend["jumped"]["speed"]) == (False, audited.runs[9].about["run"])
    assert "fades steadily" in (audited.run_folder(14) / "report.html").read_text()


@pytest.mark.usefixtures("without_bokeh")
def test_a_baseline_stays_where_it_was_set(plant):
    config = configured(plant, "baseline: production\n")
    store = open_store(config.results)
    with pytest.raises(UsageError, match="--no-baseline"):
        audit(config, FIRST)
    runs = [audit(config, FIRST, baseline=False).about["run"] for _ in range(2)]
    set_baseline(store, "production", runs[0])
    for _ in range(2):
        assert audit(config, date(2026, 9, 2)).about["baseline"] == runs[0]
    set_baseline(store, "production", runs[1])
    (record,) = baselines(store)
    assert (record["run"], [one["run"] for one in record["past"]]) == (runs[1], [runs[0]])
    with pytest.raises(UsageError, match="no run 'nothing'"):
        set_baseline(store, "production", "nothing")
    with pytest.raises(UsageError, match="is not a valid baseline name"):
        set_baseline(store, "previous", runs[0])


@pytest.mark.usefixtures("without_bokeh")
def test_previous_is_the_run_of_the_date_before_whatever_ran_last(plant):
    write_day(plant / "lake", 3, frame(3))
    config = configured(plant, "baseline: previous\n")
    third = audit(config, date(2026, 9, 3))
    assert third.about["baseline"] is None
    first = audit(config, date(2026, 9, 1))
    assert first.about["baseline"] is None
    assert audit(config, date(2026, 9, 2)).about["baseline"] == first.about["run"]


def test_a_run_is_kept_whole_and_later_changes_are_noticed(plant):
    done = audit(configured(plant), FIRST)
    folder = plant / "audits" / "runs" / done.about["run"]
    names = {path.name for path in folder.iterdir()}
    assert {"explanation.json", "features.parquet", "groups.parquet", "violations.json", "junit.xml"} < names
    manifest = json.loads((folder / "manifest.json").read_text())
    assert set(manifest["files"]) == names - {"manifest.json", "report.html"}
    assert manifest["audit"]["run"] == done.about["run"]
    assert Explanation.load(folder).top(1)["feature"].tolist() == ["rpm"]
    (folder / "violations.json").write_text("{}")
    with pytest.raises(LakeError, match="was changed"):
        open_store(plant / "audits").load(done.about["run"])


def test_a_run_has_its_report_and_it_can_be_made_again(audited, tmp_path):
    folder = shutil.copytree(audited.run_folder(9), tmp_path / "run")
    text = (folder / "report.html").read_text()
    assert "✕ Failed." in text
    (folder / "report.html").unlink()
    assert CliRunner().invoke(excir, ["report", str(folder)]).exit_code == 0
    assert (folder / "report.html").read_text() == text


@pytest.mark.usefixtures("without_bokeh")
def test_a_run_lacks_its_report_where_bokeh_does_and_nothing_else(plant, audited):
    folder = plant / "audits" / "runs" / audit(configured(plant), FIRST).about["run"]
    names = {path.name for path in folder.iterdir()}
    assert names == {path.name for path in audited.run_folder(1).iterdir()} - {"report.html"}


def test_a_report_that_fails_does_not_lose_the_run(plant, monkeypatch):
    monkeypatch.setattr(audit_page, "page", lambda result: 1 / 0)
    with pytest.warns(UserWarning, match=r"report.html was not written \(ZeroDivisionError"):
        done = audit(configured(plant), FIRST)
    assert open_store(plant / "audits").runs() == [done.about["run"]]


def test_the_manifest_holds_the_limits_of_a_run(plant):
    config = configured(plant, "k: 3\nchecks: {score_shift: {fail: 0.3, features: {rpm: off}}, left_top: fail}\n")
    done = audit(config, FIRST)
    manifest = json.loads((plant / "audits" / "runs" / done.about["run"] / "manifest.json").read_text())
    judged = manifest["audit"]
    assert (judged["k"], judged["false_alarm"]) == (3, 0.001)
    assert set(judged["limits"]) == set(CHECKS)
    assert judged["limits"]["score_shift"] == {
        "warn": None, "fail": 0.3, "features": [{"name": "rpm", "warn": None, "fail": None}],
    }  # fmt: skip
    assert judged["limits"]["left_top"] == {"warn": None, "fail": 0.0}
    assert judged["limits"]["ndcg_min"] == {"warn": 0.9, "fail": 0.8}


def test_few_row_groups_are_noted(audited):
    (note,) = audited.runs[9].to_dict()["notes"]
    assert "errors assume independent rows: the window has only 1 row group and the baseline has only 1" in note
    assert f"note: {note}" in summary(audited.runs[9].about, audited.runs[9].violations)


def test_junit_has_a_case_per_check_and_a_failure_per_failed_check(audited):
    suite = ElementTree.parse(audited.run_folder(9) / "junit.xml").getroot()
    failed = [case.get("name") for case in suite if case.find("failure") is not None]
    assert int(suite.get("tests")) == len(suite) == audited.runs[9].about["checks"]
    assert int(suite.get("failures")) == len(failed)
    assert "sign_flip features of pred" in failed


def test_a_command_gets_the_json_of_a_failure(drifting):
    code = "import sys, pathlib; pathlib.Path('received.json').write_text(sys.stdin.read())"
    script = drifting / "tell.py"
    script.write_text(code.replace("'received.json'", repr(str(drifting / "received.json"))))
    config = configured(
        drifting, f"baseline: previous\nhooks: {{command: [{sys.executable}, {script}], timeout: 20}}\n"
    )
    assert audit(config, date(2026, 9, 8)).hooks == []
    done = audit(config, date(2026, 9, 9))
    received = json.loads((drifting / "received.json").read_text())
    assert received["run"] == done.about["run"]
    assert received["violations"] == done.violations
    assert [one["ok"] for one in done.hooks] == [True]
    with pytest.raises(LakeError):
        audit(config, date(2030, 1, 1))
    assert json.loads((drifting / "received.json").read_text())["status"] == "error"


def test_a_webhook_gets_the_json(plant, monkeypatch):
    received = []

    class Listener(BaseHTTPRequestHandler):
        def do_POST(self):
            received.append((self.headers["Content-Type"], self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Listener) as server:
        thread = Thread(target=server.handle_request)
        thread.start()
        monkeypatch.setenv("EXCIR_TOLD", f"http://127.0.0.1:{server.server_port}/secret-path")
        done = audit(configured(plant, "hooks: {webhook: $EXCIR_TOLD, when: [ok]}\n"), FIRST)
        thread.join()
    ((kind, body),) = received
    assert (kind, json.loads(body)["run"]) == ("application/json", done.about["run"])
    assert [one["ok"] for one in done.hooks] == [True]
    assert "secret-path" not in json.dumps(done.to_dict())


@pytest.mark.usefixtures("without_bokeh")
@pytest.mark.parametrize(
    ("hook", "detail"),
    [
        ("command: [no-such-program]", "no-such-program"),
        ("command: [sh, -c, 'echo broken >&2; exit 3']", "exited with 3: broken"),
        ("command: [sh, -c, 'sleep 60']", "timed out after"),
        ("webhook: 'http://127.0.0.1:9/'", "refused"),
        ("webhook: $EXCIR_NOT_SET", "not be set"),
    ],
)
def test_a_hook_that_fails_loses_nothing(plant, hook, detail):
    config = configured(plant, f"hooks: {{{hook}, timeout: 0.5, when: [ok]}}\n")
    done = audit(config, FIRST)
    (received,) = done.hooks
    assert not received["ok"]
    assert detail in received["detail"]
    store = open_store(config.results)
    assert store.runs() == [done.about["run"]]
    assert json.loads(store.get("hooks", f"{done.about['run']}.json")) == done.hooks


def test_nothing_is_lost_if_the_outcome_of_hooks_cannot_be_saved(plant, caplog):
    (plant / "audits").mkdir()
    (plant / "audits" / "hooks").write_text("a file where a folder should be")
    done = audit(configured(plant, "hooks: {command: ['true'], when: [ok]}\n"), FIRST)
    assert [one["ok"] for one in done.hooks] == [True]
    assert "could not be saved" in caplog.text
    assert open_store(plant / "audits").runs() == [done.about["run"]]


@pytest.mark.usefixtures("without_bokeh")
def test_each_key_has_its_own_series(plant):
    write_day(plant / "lake" / "region=eu", 1, frame(1))
    path = plant / "audit.yaml"
    path.write_text(path.read_text().replace("date={{", "region={{ region }}/date={{") + "baseline: previous\n")
    done = audit(read_config(path), FIRST, {"region": "eu"})
    assert done.about["audit"] == "plant,region=eu"
    assert done.about["window"] == "region=eu/date=2026-09-01"


@pytest.mark.usefixtures("without_bokeh")
def test_each_key_may_have_its_own_baseline_and_a_wrong_one_is_found(plant):
    path = plant / "audit.yaml"
    base = path.read_text().replace("date={{", "region={{ region }}/date={{")
    for region in ("eu", "us"):
        write_day(plant / "lake" / f"region={region}", 1, frame(1))
    path.write_text(base + "baseline: 'prod-{{ region }}'\n")
    config = read_config(path)
    runs = {region: audit(config, FIRST, {"region": region}, baseline=False).about["run"] for region in ("eu", "us")}
    for region, run in runs.items():
        set_baseline(open_store(config.results), f"prod-{region}", run)
    for region, run in runs.items():
        again = audit(config, FIRST, {"region": region})
        assert (again.about["baseline"], again.violations) == (run, [])
    path.write_text(base + "baseline: prod-eu\n")
    (finding,) = audit(read_config(path), FIRST, {"region": "us"}).violations
    assert (finding["constraint_check_type"], finding["feature_name"], finding["severity"]) == (
        "settings",
        "window",
        "warn",
    )
    assert "region=eu" in finding["description"]


@pytest.mark.usefixtures("without_bokeh")
def test_a_baseline_can_be_required(plant):
    config = configured(plant, "baseline: previous\nrequire_baseline: true\n")
    with pytest.raises(UsageError, match="require_baseline is true"):
        audit(config, FIRST)
    first = audit(config, FIRST, baseline=False)
    assert audit(config, date(2026, 9, 2)).about["baseline"] == first.about["run"]


@pytest.mark.usefixtures("without_bokeh")
def test_a_missing_member_of_a_group_is_a_finding(plant):
    write_day(plant / "lake", 2, frame(2).drop(columns=["oil", "rpm", "torque"]))
    config = configured(plant, "baseline: previous\n")
    audit(config, FIRST)
    second = audit(config, date(2026, 9, 2))
    gone = {one["feature_name"] for one in second.violations if one["constraint_check_type"] == "columns_gone"}
    assert gone == {"oil", "rpm", "torque", "engine"}
    assert "group 'cooling' is scored without missing members: oil" in second.about["notes"]


@pytest.mark.slow
@pytest.mark.cluster
def test_a_cluster_gives_the_same_bytes(plant):
    (plant / "here.yaml").write_text("kind: local\nworkers: 1\noptions: {threads_per_worker: 1}\n")
    runs = [audit(configured(plant), FIRST), audit(configured(plant, "cluster: here.yaml\n"), FIRST)]
    folders = [plant / "audits" / "runs" / run.about["run"] for run in runs]
    assert len({(folder / "explanation.json").read_bytes() for folder in folders}) == 1

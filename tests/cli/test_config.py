"""Options from a YAML file: the same as typed, checked as a whole, and less than what is typed."""

import json
from pathlib import Path

import numpy as np
import oracle
import pandas as pd
import pytest
from click.testing import CliRunner, Result

from excir_dask import Explanation, explain
from excir_dask.cli import excir

pytestmark = pytest.mark.usefixtures("without_bokeh")


@pytest.fixture(scope="module")
def lake(tmp_path_factory) -> Path:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((2000, 4)), columns=["rpm", "torque", "speed", "a,b"])
    frame = frame.assign(pred=2 * frame["rpm"] - frame["speed"], other=frame["torque"], label=frame["rpm"] > 0)
    return oracle.write_lake(tmp_path_factory.mktemp("config") / "lake", frame, 3)


@pytest.fixture
def run(lake, tmp_path):
    def run(text: str, *arguments: object, command: str = "explain") -> Result:
        file = tmp_path / "job.yaml"
        file.write_text(text.replace("LAKE", str(lake)), encoding="utf-8")
        return CliRunner().invoke(excir, [command, "--config", str(file), *map(str, arguments)])

    return run


def test_a_file_says_what_the_command_line_can_say(run, lake, tmp_path):
    text = """
        lake: LAKE
        output: [pred]
        features: [rpm, speed, 'a,b']
        group: {engine: [rpm, 'a,b']}
        group-rows: 100
        rank_by: cir
        fraction: 0.5
        json: true
        top: 2
    """
    done = run(text, "--out", tmp_path / "file")
    assert done.exit_code == 0, done.output
    assert len(json.loads(done.stdout)["top"]["pred"]) == 2
    saved = Explanation.load(tmp_path / "file")
    assert sorted(saved.features["feature"]) == ["a,b", "rpm", "speed"]
    assert saved.groups["members"].tolist() == [["rpm", "a,b"]]
    assert saved.facts.settings.rank_by == "cir"


def test_what_is_typed_and_what_is_written_are_the_same_run(run, lake, tmp_path):
    text = (
        "lake: LAKE\noutput: {'yes': pred, 7: other}\nfeatures: rpm,speed\ngroup: ['g=rpm,speed']\nfraction: auto\nk: 1"
    )
    assert run(text, "--out", tmp_path / "out").exit_code == 0
    typed = ["--output", "yes=pred", "--output", "7=other", "--features", "rpm,speed", "--group", "g=rpm,speed"]
    done = CliRunner().invoke(
        excir, ["explain", str(lake), *typed, "--fraction", "auto", "--k", "1", "--out", str(tmp_path / "out")]
    )
    assert done.exit_code == 0, done.output
    assert "already done" in done.stderr
    assert list(Explanation.load(tmp_path / "out").outputs["output"]) == ["yes", "7"]


def test_the_command_line_wins(run, lake):
    done = run("lake: /nowhere\noutput: pred\nseed: 3\njson: true\ngroup: {a: [rpm]}", lake, "--output", "other",
               "--group", "b=speed")  # fmt: skip
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert list(found["top"]) == ["other"]
    assert [group["group"] for group in found["groups"]] == ["b"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("otuput: pred", "'otuput' is not an option of 'excir explain'; did you mean 'output'"),
        ("xyzzy: 1", "--help"),
        ("config: other.yaml", "'config' is not an option"),
        ("seed: 1.5", "'seed' is 1.5; give a whole number"),
        ("seed: true", "'seed' is True"),
        ("confidence: much", "'confidence' is 'much'; give a number"),
        ("overwrite: 1", "'overwrite' is 1; give true or false"),
        ("weights: 5", "put it in quotes"),
        ("weights:", "'weights' has no value"),
        ("centering: middle", "'middle' is not one of"),
        ("top: 0", "'top' cannot be used"),
        ("fraction: some", "a number, or auto"),
        ("features: [1]", "a list of names"),
        ("features: []", "a list of names"),
        ("output: {a: 1}", "{class: column}"),
        ("output: {yes: a}", "YAML reads one as True: put it in quotes"),
        ("group: {engine: rpm}", "give a list of feature names"),
        ("group: [engine]", "NAME=a,b,c"),
        ("group: 7", "{engine: [rpm, torque]}"),
        ("seed: 1\nseed: 2", "'seed' is given twice, on lines 1 and 2"),
        ("rank-by: cir\nrank_by: cir", "once with - and once with _"),
        ("- output", "holds a list where options should be"),
        ("", "holds nothing"),
        ("output: [", "not YAML"),
    ],
)
def test_errors_name_file_and_key_before_anything_runs(run, text, message):
    done = run(text, "/nowhere", "--output", "pred", "--seed", "1", "--features", "x", "--group", "a=x")
    assert done.exit_code == 2, done.output
    assert "job.yaml" in done.stderr
    assert message in done.stderr
    assert done.stdout == ""


def test_a_file_that_is_not_there_is_named():
    done = CliRunner().invoke(excir, ["explain", "--config", "nowhere.yaml"])
    assert done.exit_code == 2
    assert "nowhere.yaml: there is no such file" in done.stderr


def test_a_lake_may_be_a_list_of_files(run, lake):
    files = sorted(map(str, lake.glob("*.parquet")))[:2]
    done = run(f"lake: {json.dumps(files)}\noutput: pred\njson: true")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["rows"]["lake"] < 2000


def test_plan_train_sweep_and_compare_take_a_file(run, tmp_path):
    done = run("lake: LAKE\noutput: pred\nbudget: 2MiB\njson: true", command="plan")
    assert json.loads(done.stdout)["rows"] == 2000
    model = tmp_path / "model.ubj"
    text = f"lake: LAKE\nlabel: label\nout: {model}\nparams: {{max_depth: 2, eval_metric: auc}}\nrounds: 3\njson: true"
    done = run(text, command="train")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["metric"] == "auc"
    assert json.loads((tmp_path / "model.training.json").read_text())["params"]["max_depth"] == 2
    text = "lake: LAKE\noutput: pred\nfractions: [0.5]\nseeds: [4, 7]\nk: 1\njson: true"
    done = run(text, command="sweep")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["settings"]["seeds"] == [4, 7]
    assert run("lake: LAKE\noutput: pred", "--out", tmp_path / "a").exit_code == 0
    done = run(f"a: {tmp_path / 'a'}\nb: {tmp_path / 'a'}\nk: 2\njson: true", command="compare")
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize("text", ["fractions: [a]", "seeds: some", "params: {a: 2020-01-01}", "retrain: 'yes'"])
def test_errors_of_a_sweep_are_named(run, text):
    done = run(text, "/nowhere", command="sweep")
    assert done.exit_code == 2
    assert "job.yaml: '" in done.stderr


def test_what_is_typed_replaces_what_excludes_it(lake, tmp_path):
    """An output for a model, and the other way round; quiet for verbose; flags can be switched off."""
    config = tmp_path / "job.yaml"
    config.write_text(
        f"lake: {lake}\nmodel: {tmp_path}/none.ubj\nverbose: true\njson: true\nscheduler: tcp://127.0.0.1:1\n"
    )
    local = tmp_path / "cluster.yaml"
    local.write_text("kind: nothing\n")
    done = CliRunner().invoke(excir, ["explain", "--config", str(config), "--output", "pred", "--cluster", str(local)])
    assert (done.exit_code, "cluster.yaml" in done.stderr) == (2, True)  # it is the cluster file that is looked at
    config.write_text(f"lake: {lake}\nmodel: {tmp_path}/none.ubj\nverbose: true\njson: true\n")
    done = CliRunner().invoke(excir, ["explain", "--config", str(config), "--output", "pred", "-q", "--no-json"])
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("ExCIR over")
    assert done.stderr == ""


def test_home_may_be_written_short_where_no_shell_sees_it(lake, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    config = tmp_path / "job.yaml"
    config.write_text(f"lake: {lake}\noutput: pred\nout: ~/from file\n")
    for more, name in (([], "from file"), (["--out=~/typed"], "typed")):
        done = CliRunner().invoke(excir, ["explain", "--config", str(config), *more])
        assert done.exit_code == 0, done.output
        assert (tmp_path / name / "explanation.json").exists()
    assert explain(lake, output="pred", out="~/called").provenance.run_id
    assert (tmp_path / "called" / "explanation.json").exists()
    assert CliRunner().invoke(excir, ["compare", "~/typed", "~/called"]).exit_code == 0

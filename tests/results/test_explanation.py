"""The result object: what it shows, and that saving is all or nothing."""

import json
from io import StringIO

import numpy as np
import pandas as pd
import pytest

from excir_dask import Explanation, compare, explain
from excir_dask.errors import LakeError, UsageError
from excir_dask.render.terminal import cells
from excir_dask.results.storage import digests
from excir_dask.results.tables import group_table

pytestmark = pytest.mark.usefixtures("without_bokeh")


@pytest.fixture
def explanation(synchronous):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((300, 20)), columns=[f"f{j:02d}" for j in range(20)])
    frame["f05"] = np.nan
    frame = frame.assign(city="x", y=frame["f03"] - frame["f04"], z=frame["f01"])
    return explain(frame, output=["y", "z"], groups={"pair": ["f03", "f04"], "<b>": ["f01"]})


def test_tables_have_the_documented_columns(explanation):
    assert explanation.features.columns.tolist() == [
        "output", "feature", "cir", "strength", "direction", "rank", "stderr",
        "null", "lift", "lift_stderr", "p_chance", "dependence", "dependence_stderr", "dependence_p", "bend",
        "stderr_rows", "stderr_by", "n", "missing", "n_eff",
        "center", "q25", "q75", "scale", "numerator", "denominator", "center_bound", "center_jump", "flag",
    ]  # fmt: skip
    assert explanation.groups.columns.tolist() == [
        "output", "group", "size", "cir", "cir_scaled", "strength", "strength_unsigned", "direction", "rank",
        "null", "lift", "lift_stderr", "p_chance", "numerator", "denominator", "flag", "members",
    ]  # fmt: skip


def test_lift_dependence_and_direction_of_the_top_fit_80_columns(explanation):
    with pd.option_context("display.width", 80):
        lines = str(explanation.top(3)).splitlines()
    assert len(lines) == 4
    assert {"feature", "cir", "lift", "direction", "stderr", "dependence", "rank"} < set(lines[0].split())


def test_a_result_of_an_earlier_version_loads_without_what_it_did_not_know(explanation, tmp_path):
    folder = explanation.save(tmp_path / "old", report=False)
    new = ["null", "lift", "lift_stderr", "p_chance"], ["dependence", "dependence_stderr", "dependence_p", "bend"]
    for name, columns in (("features", [*new[0], *new[1]]), ("groups", new[0])):
        table = pd.read_parquet(folder / f"{name}.parquet").drop(columns=columns)
        table.to_parquet(folder / f"{name}.parquet", index=False)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"] = {name: digest for name, digest in digests(folder).items() if name in manifest["files"]}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    old = Explanation.load(folder)
    assert old.features.columns.tolist() == explanation.features.columns.tolist()
    assert old.groups.columns.tolist() == explanation.groups.columns.tolist()
    assert old.features[[*new[0], *new[1]]].isna().all(axis=None)
    assert "f03" in str(old)
    group = old.regroup({"one": ["f03"]}).groups.iloc[0]
    assert group["strength"] == pytest.approx(abs(2 * group["cir"] - 1))
    assert compare(old, explanation).table["jaccard"].notna().all()


def test_csv_and_pandas_have_every_feature_of_every_output(explanation, tmp_path):
    read = pd.read_csv(StringIO(explanation.to_csv()), keep_default_na=False, na_values=["nan", ""])
    assert read[["output", "feature"]].equals(explanation.features[["output", "feature"]].astype(read["feature"].dtype))
    np.testing.assert_allclose(read["cir"], explanation.features["cir"], rtol=1e-15)
    assert explanation.to_csv(tmp_path / "features.csv") is None
    assert (tmp_path / "features.csv").read_text() == explanation.to_csv()
    changed = explanation.to_pandas()
    changed["cir"] = 0.0
    assert explanation.features["cir"].max() > 0


def test_top_is_the_best_of_one_output(explanation):
    assert set(explanation.top(2)["feature"]) == {"f03", "f04"}
    assert explanation.top(1, "z")["feature"].tolist() == ["f01"]
    assert explanation.top(3)["rank"].tolist() == [1, 2, 3]
    with pytest.raises(UsageError, match="no output 'q'"):
        explanation.top(3, "q")


def test_saving_and_loading_keeps_everything(explanation, tmp_path):
    folder = explanation.save(tmp_path / "out")
    again = Explanation.load(folder)
    pd.testing.assert_frame_equal(again.features, explanation.features)
    pd.testing.assert_frame_equal(again.groups, explanation.groups)
    assert again.to_json() == explanation.to_json()
    assert again.provenance == explanation.provenance
    assert str(again) == str(explanation)
    regrouped = again.regroup({"one": ["f01", "f02"]})
    pd.testing.assert_frame_equal(regrouped.groups, explanation.regroup({"one": ["f01", "f02"]}).groups)


def test_an_explanation_without_groups_is_saved_and_loaded(explanation, tmp_path):
    bare = explanation.regroup({})
    assert Explanation.load(bare.save(tmp_path / "out")).groups.empty


def test_a_folder_is_never_overwritten_by_mistake(explanation, tmp_path):
    explanation.save(tmp_path / "out")
    with pytest.raises(UsageError, match="exists already"):
        explanation.save(tmp_path / "out")
    explanation.save(tmp_path / "out", overwrite=True)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(UsageError, match="is not a saved explanation"):
        explanation.save(tmp_path / "mine", overwrite=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "out"]


@pytest.mark.parametrize("name", ["notes.txt", ".notes", "report.html", "plots/one.png"])
def test_a_file_that_is_no_part_of_the_explanation_is_never_deleted(explanation, tmp_path, name):
    folder = explanation.save(tmp_path / "out", report=False)
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text("mine")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with pytest.raises(UsageError, match=f"holds '{name.split('/')[0]}', .*; move .* elsewhere, or choose another"):
        explanation.save(folder, overwrite=True)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_file_that_appears_while_a_result_is_saved_is_not_lost(explanation, tmp_path, monkeypatch):
    folder = explanation.save(tmp_path / "out")
    write = Explanation.to_json

    def slowly(self):
        (folder / "notes.txt").write_text("mine")
        return write(self)

    monkeypatch.setattr(Explanation, "to_json", slowly)
    explanation.save(folder, overwrite=True)
    assert (folder / "notes.txt").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert Explanation.load(folder).to_json() == write(explanation)


def test_another_programs_explanation_is_not_overwritten(explanation, tmp_path):
    (tmp_path / "explanation.json").write_text("{}")
    (tmp_path / "manifest.json").write_text('{"files": ["thesis.tex"]}')
    with pytest.raises(UsageError, match="is not a saved explanation"):
        explanation.save(tmp_path, overwrite=True)
    assert (tmp_path / "explanation.json").read_text() == "{}"


@pytest.mark.parametrize("damaged", ["manifest.json", "explanation.json"])
def test_a_damaged_explanation_is_overwritten(explanation, tmp_path, damaged):
    folder = explanation.save(tmp_path / "out")
    (folder / damaged).write_text("{")
    explanation.save(folder, overwrite=True)
    assert Explanation.load(folder).to_json() == explanation.to_json()


def test_the_folder_behind_a_link_stays_as_it_is(explanation, tmp_path):
    folder = explanation.save(tmp_path / "real")
    (tmp_path / "link").symlink_to(folder)
    explanation.regroup({}).save(tmp_path / "link", overwrite=True)
    assert Explanation.load(folder).to_json() == explanation.to_json()
    assert Explanation.load(tmp_path / "link").groups.empty


def test_a_failed_save_leaves_nothing_and_loses_nothing(explanation, tmp_path, monkeypatch):
    explanation.save(tmp_path / "out")
    before = (tmp_path / "out" / "explanation.json").read_bytes()
    full = OSError("no space left on device")

    def fail(self):
        raise full

    monkeypatch.setattr(Explanation, "to_json", fail)
    for target in ("out", "new"):
        with pytest.raises(OSError, match="no space"):
            explanation.save(tmp_path / target, overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert (tmp_path / "out" / "explanation.json").read_bytes() == before


def test_a_changed_or_incomplete_folder_is_not_loaded(explanation, tmp_path):
    folder = explanation.save(tmp_path / "out")
    text = (folder / "explanation.json").read_text()
    (folder / "explanation.json").write_text(text.replace("0.", "1.", 1))
    with pytest.raises(LakeError, match="changed since"):
        Explanation.load(folder)
    (folder / "manifest.json").unlink()
    with pytest.raises(LakeError, match="not a saved explanation"):
        Explanation.load(folder)


def test_the_json_is_plain_json_without_times_or_paths(explanation):
    content = json.loads(explanation.to_json())
    assert content["format"] == "excir-explanation"
    assert set(content) == {"format", "version", "facts", "outputs", "features", "groups"}
    assert len(content["features"]) == 40
    assert content["features"][-1]["center"] is None or "NaN" not in explanation.to_json()
    assert "seconds" not in explanation.to_json()


def test_the_text_shows_ranking_groups_and_what_was_left_out(explanation):
    text = str(explanation)
    assert "300 rows, 20 features, 2 outputs" in text
    assert "... and 5 more" in text
    assert "pair" in text
    assert "█" in text
    assert "note: 1 non-numeric column left out: city" in text
    assert "all missing: f05" in text


def test_the_html_escapes_names(explanation):
    html = explanation._repr_html_()
    assert "&lt;b&gt;" in html
    assert "<b></td>" not in html
    assert html.count("<table>") == 4


@pytest.fixture
def machine(synchronous):
    """Sensors whose directions, scales and names are set: 12 in all, 2 of them constant."""
    rng = np.random.default_rng(0)
    y = rng.standard_normal(500)
    noise = 0.3 * rng.standard_normal((500, 8))
    frame = pd.DataFrame({f"with{j}": y + (j + 1) * noise[:, j] for j in range(8)})
    frame = frame.assign(**{"against": -y, "温度センサー": 50 * y, "idle": 1.0, "off": 2.0, "y": y})
    groups = {
        "alike": ["idle", "with1", "with0"],
        "cancel": ["against", "with0"],
        "scales": ["温度センサー", "with0"],
        "both": [
            "温度センサー",
            "against",
            "with0",
            "with1",
            "with2",
            "with3",
            "with4",
            "with5",
            "with6",
            "with7",
            "idle",
        ],
        "still": ["idle", "off"],
    }
    return explain(frame, output="y", groups=groups)


def test_groups_that_mislead_are_flagged(machine, tmp_path):
    flags = machine.groups.set_index("group")["flag"].to_dict()
    # the wide one outweighs all others in 'both', so that little cancels there
    assert flags == {
        "alike": "", "cancel": "members cancel", "scales": "scales differ", "both": "scales differ", "still": "",
    }  # fmt: skip
    assert [row["flag"] for row in json.loads(machine.to_json())["groups"]] == machine.groups["flag"].tolist()
    assert Explanation.load(machine.save(tmp_path / "out")).groups["flag"].tolist() == machine.groups["flag"].tolist()


def test_a_group_that_cancels_and_has_many_scales_has_both_flags(machine):
    assert machine.regroup({"g": ["温度センサー", "against", "with0"]}).groups["flag"].tolist() == ["scales differ"]
    features = machine.features.assign(
        scale=machine.features["scale"].where(machine.features["feature"] != "with0", 99)
    )
    flags = group_table(features, {"g": ["against", "with0", "idle"]})["flag"].tolist()
    assert flags == ["members cancel, scales differ"]


def test_the_text_shows_members_by_strength_with_their_directions(machine):
    text = str(machine)
    assert "        ▲ with0  ▲ with1  · idle\n" in text
    assert "        ▼ against  ▲ with0  [members cancel]\n" in text
    assert "        · idle  · off\n" in text
    assert "... and 3 more  [scales differ]" in text
    assert "note: [members cancel] members move against each other" in text
    assert "note: [scales differ] members' scales differ" in text
    assert "note: [" not in str(machine.regroup({"alike": ["with0", "with1"]}))


def test_lines_of_groups_keep_to_80_cells_whatever_the_names(machine):
    long = {"温度" * 30: ["温度センサー", "with0"], "x" * 100: list(machine.of()["feature"])}
    lines = str(machine.regroup(long)).split("y: groups\n")[1].split("\n\n")[0].splitlines()
    assert len(lines) > 4
    assert max(map(cells, lines)) <= 80
    columns = {cells(line[: line.index("0.")]) for line in lines[1:] if "0." in line}
    assert len(columns) == 1


def test_wide_names_do_not_shift_the_columns(machine):
    rows = [line for line in str(machine).split("y: groups")[0].splitlines() if "0." in line]
    assert len(rows) == 12
    assert len({cells(line[: max(line.find(arrow) for arrow in "▲▼·")]) for line in rows}) == 1


def test_the_html_shows_members_and_flags(machine):
    html = machine._repr_html_()
    assert "▼&nbsp;against ▲&nbsp;with0 <i>members cancel</i></td>" in html
    assert "... and 3 more <i>scales differ</i>" in html
    assert "<th style='text-align:left'>unsigned</th>" in html

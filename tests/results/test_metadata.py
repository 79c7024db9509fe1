"""Facts and provenance: typed records, and the plain dictionaries that files hold of them."""

import json
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from excir_dask import Explanation, explain
from excir_dask.errors import LakeError
from excir_dask.results.metadata import AutoSampling, AutoStep, Facts, LakeSource, RowCounts
from excir_dask.results.storage import digests


@pytest.fixture
def explanation(synchronous) -> Explanation:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((4000, 3)), columns=list("abc")).assign(city="x")
    return explain(frame, model=lambda rows: rows["a"] - rows["b"], model_columns=["a", "b"], fraction="auto", k=1)


def rewrite(folder: Path, name: str, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change a JSON file of a saved explanation, as if it had been written that way."""
    content = json.loads((folder / name).read_text())
    change(content)
    (folder / name).write_text(json.dumps(content))
    manifest = json.loads((folder / "manifest.json").read_text())
    found = digests(folder)
    manifest["files"] = {file: found[file] for file in manifest["files"]}
    (folder / "manifest.json").write_text(json.dumps(manifest))


def test_records_survive_the_way_through_json(explanation):
    assert explanation.facts.auto is not None
    for record in (explanation.facts, explanation.provenance):
        plain = json.loads(json.dumps(record.to_dict()))
        assert type(record).from_dict(plain, "here") == record


def test_a_loaded_explanation_has_the_same_records(explanation, tmp_path):
    again = Explanation.load(explanation.save(tmp_path / "out", report=False))
    assert again.facts == explanation.facts
    assert again.provenance == explanation.provenance
    assert again.to_json() == explanation.to_json()


def test_fields_of_older_files_are_read(explanation):
    content = explanation.facts.to_dict()
    older = {**content, "still": content.pop("constant"), "unlike": content.pop("out_of_range")}
    del older["constant"], older["out_of_range"]
    assert Facts.from_dict(older, "x.json", "facts") == explanation.facts


def test_files_keep_the_names_of_their_fields(explanation):
    content = explanation.facts.to_dict()
    assert set(content) == {"settings", "rows", "constant", "out_of_range", "left_out", "converted", "segments", "auto"}
    assert set(content["auto"]["steps"][0]) == {"fraction", "rows", "jaccard", "probability"}


def test_what_does_not_apply_is_absent_and_what_is_none_is_null(explanation, synchronous):
    frame = pd.DataFrame({"a": [1.0, 2, 3], "y": [1.0, 2, 4]})
    found = explain(frame, output="y")
    assert "auto" not in found.facts.to_dict()
    assert found.facts.to_dict()["settings"]["model"] is None
    assert found.provenance.to_dict()["lake"] == {"name": "pandas DataFrame", "remarks": []}


def test_what_a_kind_of_model_tells_is_beside_the_named_fields(explanation):
    model = explanation.provenance.model
    assert (model.kind, model.columns) == ("callable", ("a", "b"))
    assert explanation.provenance.to_dict()["model"]["function"] == model.extra["function"]


def test_records_cannot_be_changed(explanation):
    with pytest.raises(FrozenInstanceError):
        explanation.facts.rows.used = 1


def test_fields_of_a_newer_version_are_loaded_and_saved_again(explanation, tmp_path):
    folder = explanation.save(tmp_path / "out", report=False)
    rewrite(folder, "explanation.json", lambda content: content["facts"]["rows"].update(newer=7))
    rewrite(folder, "explanation.json", lambda content: content["facts"].update(state={"id": "x"}))
    rewrite(folder, "manifest.json", lambda content: content["lake"].update(region="eu"))
    loaded = Explanation.load(folder)
    assert loaded.facts.rows.used == explanation.facts.rows.used
    assert loaded.facts.rows.extra == {"newer": 7}
    saved = Explanation.load(loaded.save(tmp_path / "again", report=False))
    assert saved.facts.extra == {"state": {"id": "x"}}
    assert saved.provenance.lake.extra == {"region": "eu"}


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("explanation.json", "facts.rows.used"),
        ("explanation.json", "facts.constant"),
        ("explanation.json", "facts.settings.model.kind"),
        ("explanation.json", "facts.auto.steps[0].jaccard"),
        ("manifest.json", "lake.name"),
        ("manifest.json", "slices"),
    ],
)
def test_a_missing_field_is_named_with_its_file(explanation, tmp_path, name, path):
    folder = explanation.save(tmp_path / "out", report=False)

    def remove(content: Any) -> None:
        *above, last = path.replace("[0]", ".0").split(".")
        for key in above:
            content = content[int(key) if key == "0" else key]
        del content[last]

    rewrite(folder, name, remove)
    with pytest.raises(LakeError) as error:
        Explanation.load(folder)
    assert str(error.value) == (
        f"{folder / name} lacks the field '{path}'; load it with the version that wrote it, or compute it again"
    )


def test_something_else_in_the_place_of_a_record_is_named(explanation):
    content = explanation.facts.to_dict()
    for facts, said in (
        ({**content, "rows": [1, 2]}, "a list as 'facts.rows' where a mapping belongs"),
        ({**content, "rows": None}, "a NoneType as 'facts.rows' where a mapping belongs"),
        ({**content, "constant": "abc"}, "a str as 'facts.constant' where a list belongs"),
    ):
        with pytest.raises(LakeError, match=rf"^x\.json holds {said}; load it with"):
            Facts.from_dict(facts, "x.json", "facts")


def test_equal_records_are_equal():
    step = AutoStep(fraction=0.1, rows=3, jaccard=0.5, probability=0.2)
    auto = AutoSampling(target_jaccard=0.9, confidence=0.95, k=8, steps=(step,))
    assert AutoSampling.from_dict(auto.to_dict(), "here") == auto
    rows = RowCounts(lake=9, sampled=5, without_output=1, without_weight=0, used=4, row_groups=2)
    assert rows != RowCounts.from_dict({**rows.to_dict(), "used": 3}, "here")
    assert LakeSource(name="a") != LakeSource(name="a", version=3)

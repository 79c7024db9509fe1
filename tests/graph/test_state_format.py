"""States on disk: what comes back has the types and shapes it had, and nothing else comes back."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from oracle import write_lake

from excir_dask import explain
from excir_dask.errors import DataError, InternalError
from excir_dask.graph.pilot_scan import _check_summaries
from excir_dask.graph.state_format import KINDS, MAGIC, freeze, thaw
from excir_dask.kernels.rowsample import RowSample
from excir_dask.kernels.summaries import summarise

Json = Any


def opened(content: bytes) -> tuple[Json, bytes]:
    """The structure of a state, and its arrays."""
    start = len(MAGIC) + 8
    stop = start + int.from_bytes(content[len(MAGIC) : start], "little")
    return json.loads(content[start:stop]), content[stop:-32]


def sealed(structure: Json, arrays: bytes, magic: bytes = MAGIC) -> bytes:
    """A state with a digest that is right, whatever it holds."""
    text = json.dumps(structure).encode()
    body = magic + len(text).to_bytes(8, "little") + text + arrays
    return body + hashlib.sha256(body).digest()


def changed(node: Json, change: Callable[[dict[str, Json]], Json]) -> Json:
    """A structure in which every object goes through a function."""
    if isinstance(node, list):
        return [changed(item, change) for item in node]
    if not isinstance(node, dict):
        return node
    return change({key: changed(value, change) for key, value in node.items()})


def crafted(change: Callable[[dict[str, Json]], Json]) -> Callable[[bytes], bytes]:
    def damage(content: bytes) -> bytes:
        structure, arrays = opened(content)
        name, state = structure["items"]
        return sealed({"items": [name, changed(state, change)]}, arrays)

    return damage


def when(key: str, change: Callable[[dict[str, Json]], Json]) -> Callable[[bytes], bytes]:
    return crafted(lambda node: change(node) if key in node else node)


def last_array_shorter(node: dict[str, Json]) -> Json:
    arrays = [name for name, value in node["fields"].items() if isinstance(value, dict) and value.get("shape")]
    if not arrays:
        return node
    array = node["fields"][arrays[-1]]
    short = {**array, "shape": [max(array["shape"][0] - 1, 0), *array["shape"][1:]]}
    return {**node, "fields": {**node["fields"], arrays[-1]: short}}


def other_names(node: dict[str, Json]) -> Json:
    content = node["fields"]
    keys = [key for key in ("output_names", "names") if key in content]
    names = {key: {"items": [f"{name}?" for name in content[key]["items"]]} for key in keys}
    return {**node, "fields": {**content, **names}}


DAMAGES = {
    "cut off": lambda content: content[: len(content) // 2],
    "one bit flipped": lambda content: content[:-1] + bytes([content[-1] ^ 1]),
    "emptied": lambda content: b"",
    "an older format": lambda content: sealed(*opened(content), magic=b"excir state 2\n"),
    "a newer version of every type": when("kind", lambda node: {**node, "version": node["version"] + 1}),
    "no version": when("kind", lambda node: {"kind": node["kind"], "fields": node["fields"]}),
    "other fields": when("kind", lambda node: {**node, "fields": {f"{k}_": v for k, v in node["fields"].items()}}),
    "another kind": when("kind", lambda node: {**node, "kind": "RowCounts", "fields": {}}),
    "an unknown kind": when("kind", lambda node: {**node, "kind": "Popen"}),
    "nothing at all": when("kind", lambda node: None),
    "the state of another slice": lambda content: freeze(("pass-0-0-0-0", thaw(content)[1])),
    "an array that is too short": when("kind", last_array_shorter),
    "arrays with one more dimension": when("array", lambda node: {**node, "shape": [1, *node["shape"]]}),
    "whole numbers in place of floats": when(
        "array", lambda node: {**node, "array": node["array"].replace("f8", "i8")}
    ),
    "texts in place of arrays": when("array", lambda node: "array"),
    "arrays beyond the end": when("array", lambda node: {**node, "at": 2**40}),
    "tuples without their last item": when("items", lambda node: {"items": node["items"][:-1]}),
    "tuples with a text more": when("items", lambda node: {"items": [*node["items"], "more"]}),
    "texts in place of numbers": when("float", lambda node: "number"),
    "numbers in place of texts": when(
        "kind", lambda n: {**n, "fields": {k: 3 if isinstance(v, str) else v for k, v in n["fields"].items()}}
    ),
    "texts in place of counts": when(
        "kind", lambda n: {**n, "fields": {k: "3" if isinstance(v, int) else v for k, v in n["fields"].items()}}
    ),
    "other names of outputs": when("kind", other_names),
    "no facts of rows": when(
        "kind", lambda n: {**n, "fields": {**n["fields"], "span": None}} if n["kind"] == "SliceState" else n
    ),
}


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((6000, 3)), columns=["a", "b", "c"])
    frame["gap"] = np.where(np.arange(6000) % 4 == 0, 0.0, 100.0) + rng.random(6000)
    frame["city"] = rng.choice(["x", "y", "z"], 6000)
    frame["pred"] = frame["a"] - frame["b"] + rng.standard_normal(6000)
    frame["rare"] = np.where(rng.random(6000) < 0.9, np.nan, frame["pred"])
    return write_lake(tmp_path_factory.mktemp("states") / "lake", frame, 2)


def booster(frame: pd.DataFrame) -> xgb.Booster:
    return xgb.train({"nthread": 1}, xgb.DMatrix(frame[["a", "b", "c"]], frame["pred"]), 2)


RUNS: dict[str, dict[str, Any]] = {
    "categories pilot pass": {"output": "pred", "centering": "trimmed", "categoricals": "indicators"},
    "score pilot pass": {"model": "made of the lake", "features": ["a", "b"]},
    "pilot pass pick": {"output": "rare", "group_correlated": 0.9, "group_rows": 200},
}
"""kinds of states -> a run that leaves them"""


@pytest.fixture(scope="module", params=RUNS)
def finished(request, lake, tmp_path_factory) -> tuple[dict[str, Any], Path, str]:
    """A run whose states are all there: its options, its checkpoint, its result."""
    options = RUNS[request.param]
    if "model" in options:
        options = {**options, "model": booster(pd.read_parquet(lake))}
    folder = tmp_path_factory.mktemp("finished")
    with dask.config.set(scheduler="synchronous"):
        found = explain(lake, **options, checkpoint=folder)
    assert {path.name.split("-")[0] for path in folder.glob("*/*.state")} == set(request.param.split())
    return options, folder, found.to_json()


@pytest.mark.usefixtures("synchronous")
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_state_that_cannot_be_used_is_computed_again_with_a_note(finished, lake, tmp_path, damage, caplog):
    options, folder, reference = finished
    states = {path.name: path for path in shutil.copytree(folder, tmp_path / "states").glob("*/*.state")}
    contents = {name: path.read_bytes() for name, path in states.items()}
    damaged = {name: DAMAGES[damage](content) for name, content in contents.items()}
    damaged = {name: content for name, content in damaged.items() if content != contents[name]}
    assert damaged
    for name, content in damaged.items():
        states[name].write_bytes(content)
    again = explain(lake, **options, checkpoint=tmp_path / "states")
    assert again.to_json() == reference
    assert again.provenance.resumed_states == len(states) - len(damaged)
    notes = [record.getMessage() for record in caplog.records if "computed again" in record.getMessage()]
    assert sum(int(note.split()[0]) for note in notes) == len(damaged)
    assert all(any(f"{name}: " in note for name in damaged) for note in notes)
    assert {name: path.read_bytes() for name, path in states.items()} == contents, "good ones are in their place"


def test_the_client_says_what_workers_could_not_use(lake, tmp_path, two_workers, caplog):
    options = {"output": "pred", "checkpoint": tmp_path, "scheduler": two_workers}
    first = explain(lake, **options)
    states = sorted(tmp_path.glob("*/*.state"))
    for path in states[::2]:
        path.write_bytes(b"")
    caplog.clear()
    again = explain(lake, **options)
    assert again.to_json() == first.to_json()
    assert again.provenance.resumed_states == len(states[1::2])
    assert any("could not be used and were computed again" in record.getMessage() for record in caplog.records)


@given(
    hnp.arrays(st.sampled_from([np.float64, np.float32, np.int64, np.uint64, np.bool_]), hnp.array_shapes(min_dims=0))
)
def test_values_come_back_from_a_state_with_the_type_they_had(array):
    for value in (array, array.reshape(-1)[0], array.reshape(-1)[0].item(), array.reshape(-1)[0].reshape(())):
        found = thaw(freeze(value))
        assert type(found) is type(value)
        np.testing.assert_array_equal(found, value, strict=True)


def test_states_hold_nothing_that_runs_code():
    with pytest.raises(TypeError, match="not part of states"):
        freeze(os.system)
    with pytest.raises(TypeError, match="not part of states"):
        freeze(np.array([object()]))
    with pytest.raises(DataError):
        thaw(b"\x80\x04N.")


def test_a_state_with_fields_of_another_type_or_shape_is_never_written():
    summary = summarise(np.arange(3.0))
    with pytest.raises(InternalError, match="n of its ColumnSummary is of another type: float64"):
        freeze(replace(summary, n=np.float64(3)))
    with pytest.raises(InternalError, match=r"weights of its ColumnSummary has the shape \(2,\)"):
        freeze(replace(summary, weights=np.ones(2)))
    with pytest.raises(InternalError, match="values of its RowSample"):
        freeze(RowSample(np.zeros(3, dtype=np.uint64), np.zeros((2, 4))))


@pytest.mark.parametrize(
    "change",
    [
        {"points": np.array([1.0, 0.0, 2.0])},
        {"points": np.array([0.0, 1.0, np.nan])},
        {"weights": np.array([1.0, -1.0, 1.0])},
        {"n": 0},
        {"points": np.empty(0), "weights": np.empty(0)},
    ],
)
def test_a_summary_that_a_digest_would_choke_on_is_rejected(change):
    with pytest.raises(DataError, match="summary"):
        _check_summaries([replace(summarise(np.arange(3.0)), **change)])


def declared(kind: str) -> str:
    return hashlib.sha256(" ".join(f"{f.name}:{f.type}" for f in fields(KINDS[kind])).encode()).hexdigest()[:8]


VERSIONS = {
    "SliceState": (1, "b1f62ab6"),
    "PilotColumns": (3, "50cc0dde"),
    "PilotSpan": (1, "6d69bb82"),
    "Atoms": (1, "535a2e60"),
    "ColumnSummary": (1, "40612c4d"),
    "SpanCategories": (1, "be2b1a6c"),
    "CategoryCounts": (1, "23262433"),
    "Categories": (1, "09c40f78"),
    "References": (1, "0b65b90b"),
    "Reference": (1, "df5598c2"),
    "PassRequest": (2, "b436659a"),
    "PassColumns": (3, "16f17486"),
    "PassSpan": (3, "de5ebc35"),
    "State": (1, "1999826a"),
    "ColumnState": (3, "7820c9ad"),
    "PairState": (2, "53df72f6"),
    "RowSample": (1, "04674397"),
    "RowCounts": (2, "e2911a3e"),
    "ModelOutputs": (1, "cdc6403e"),
    "LakeState": (1, "760c9f2c"),
    "PilotRows": (2, "a1964890"),
    "SegmentNames": (1, "19ff58c7"),
    "SegmentReferences": (1, "dae932cc"),
    "SegmentColumns": (1, "2c1e2d22"),
    "SegmentSpans": (1, "22bf0caa"),
    "SegmentStates": (2, "82078369"),
}
"""kind -> version, digest of its fields and their types"""


@pytest.mark.parametrize("kind", KINDS)
def test_a_type_whose_fields_change_gets_a_new_version(kind):
    """Raise VERSION of the type, then write the new pair into VERSIONS: states of older versions are not misread."""
    assert (KINDS[kind].VERSION, declared(kind)) == VERSIONS[kind]

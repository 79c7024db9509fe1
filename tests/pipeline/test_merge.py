"""Explanations of different rows, seen from one reference, add up to that of all rows."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from oracle import write_lake

from excir_dask import Explanation, explain, merge
from excir_dask.errors import LakeError, UsageError
from excir_dask.graph import closer, state_format
from excir_dask.graph.lake_state import settle_state
from excir_dask.graph.packing import unpack
from excir_dask.kernels.centers import CENTERINGS
from excir_dask.kernels.reference import BUCKETS
from excir_dask.lake import pilot

pytestmark = pytest.mark.usefixtures("synchronous", "without_bokeh")

ROWS = 3000


def day(number: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng([seed, number])
    z = rng.standard_normal(ROWS) + 0.05 * np.sin(number)
    return pd.DataFrame(
        {
            "a": z + rng.standard_normal(ROWS),
            "zeros": np.where(rng.random(ROWS) < 0.6, 0.0, rng.exponential(size=ROWS) + z**2),
            "whole": rng.poisson(3.0, ROWS) + np.round(z),
            "missing": np.where(rng.random(ROWS) < 0.5, np.nan, z),
            "w": rng.exponential(size=ROWS),
            "kind": rng.choice(["car", "van", "bus"], ROWS, p=[0.6, 0.3, 0.1]),
            "y": 2 * z + rng.standard_normal(ROWS),
        }
    )


OPTIONS = {"output": "y", "features": ["a", "zeros", "whole", "missing"]}


def check_equal(found: Explanation, expected: Explanation) -> None:
    """The states are equal up to rounding; the run over all rows may have had a closer look at some columns."""
    one, two = (settle_state(e.state) for e in (found, expected))
    for name in ("numerator", "denominator", "squares", "abs_y"):
        a, b = getattr(one.sums, name), getattr(two.sums, name)
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12 * np.abs(b).max(), err_msg=name)
    for name in ("n", "missing", "low", "high", "q25", "q75", "center"):
        a, b = getattr(one.features, name), getattr(two.features, name)
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12, err_msg=name)
    one, two = (e.features.set_index(["output", "feature"]).sort_index() for e in (found, expected))
    assert ((one["cir"] - two["cir"]).abs() <= one["center_bound"] + two["center_bound"] + 1e-12).all()
    assert one["center_bound"].max() < 3e-3


@pytest.fixture(scope="module")
def lake(tmp_path_factory) -> Path:
    """A folder per day."""
    folder = tmp_path_factory.mktemp("month")
    for number in range(30):
        write_lake(folder / f"day={number:02}", day(number), 1, 1000)
    return folder


@pytest.fixture(scope="module")
def days(lake, tmp_path_factory) -> list[Path]:
    """Results of all days, seen from the first."""
    folder = tmp_path_factory.mktemp("results")
    saved = [folder / f"{number:02}" for number in range(30)]
    for number, out in enumerate(saved):
        reference = None if number == 0 else saved[0]
        found = explain(lake / f"day={number:02}", reference=reference, progress=False, **OPTIONS)
        found.save(out, report=False)
    return saved


def test_thirty_days_are_one_month_in_any_order(lake, days, tmp_path, monkeypatch):
    monkeypatch.setattr(closer, "FEW_VALUES", 0)  # a run may look again at what it can see; a merge sees no rows
    month = explain(str(lake / "*" / "*.parquet"), reference=days[0], **OPTIONS)
    found = merge(days, out=tmp_path / "month")
    check_equal(found, month)
    assert found.facts.rows == month.facts.rows
    pd.testing.assert_series_equal(found.features["stderr"], month.features["stderr"], rtol=1e-3)
    shuffled = [days[i] for i in np.random.default_rng(1).permutation(30)]
    assert merge(shuffled).to_json() == found.to_json()
    assert found.facts.rows.used == 30 * ROWS
    assert found.provenance.bytes_read == 0
    again = Explanation.load(tmp_path / "month")
    assert again.to_json() == found.to_json()
    later = explain(day(30), reference=again, **OPTIONS)
    check_equal(merge([tmp_path / "month", later]), merge([*days, later]))


@pytest.mark.parametrize("centering", CENTERINGS)
def test_every_centring_merges(centering):
    options = {**OPTIONS, "centering": centering}
    first = explain(day(0), **options)
    parts = [first, *(explain(day(n), reference=first, **options) for n in range(1, 4))]
    check_equal(merge(parts), explain(pd.concat([day(n) for n in range(4)]), reference=first, **options))


def test_weights_categories_and_several_outputs_merge():
    frames = [day(n).assign(z=lambda frame: frame["y"] ** 2) for n in range(3)]
    options = {"output": ["y", "z"], "weights": "w", "categoricals": "indicators", "groups": {"both": ["a", "whole"]}}
    first = explain(frames[0], **options)
    found = merge([first, *(explain(frame, reference=first, **options) for frame in frames[1:])])
    whole = explain(pd.concat(frames), reference=first, **options)
    check_equal(found, whole)
    assert found.groups["group"].tolist() == whole.groups["group"].tolist()
    np.testing.assert_allclose(found.groups["cir"], whole.groups["cir"], atol=1e-3)


def test_a_state_of_columns_that_were_read_again_gives_the_same_scores(tmp_path, monkeypatch):
    """Columns that the pilot misjudged are kept as they were seen at last."""
    monkeypatch.setattr(pilot, "SMALL", 1000)
    monkeypatch.setattr(pilot, "ROWS", 400)
    frame = pd.concat([day(n) for n in range(4)]).sort_values("a")
    found = explain(write_lake(tmp_path / "lake", frame, 4, 1000), **OPTIONS)
    later = explain(day(9), reference=found, **OPTIONS)
    check_equal(merge([found, later]), explain(pd.concat([frame, day(9)]), reference=found, **OPTIONS))


def test_a_reference_gives_the_scores_of_a_pilot(lake, days):
    for number in (3, 17):
        alone = explain(lake / f"day={number:02}", **OPTIONS).features.set_index("feature")
        seen = Explanation.load(days[number]).features.set_index("feature")
        bound = seen["center_bound"] + alone["center_bound"] + 1e-12
        assert ((seen["cir"] - alone["cir"]).abs() <= bound.reindex(seen.index)).all()


def test_a_reference_that_does_not_cover_a_day_still_gives_right_scores(days):
    shifted = day(5).assign(a=lambda frame: frame["a"] + 50.0, y=lambda frame: frame["y"] - 20.0)
    alone = explain(shifted, **OPTIONS).features.set_index("feature")["cir"]
    seen = explain(shifted, reference=days[0], **OPTIONS).features.set_index("feature")["cir"]
    np.testing.assert_allclose(seen.sort_index(), alone.sort_index(), atol=1e-4)


def test_what_a_merge_cannot_know_is_told(days, caplog):
    shifted = day(5).assign(a=lambda frame: frame["a"] + 50.0)
    found = merge([days[0], explain(shifted, reference=days[0], **OPTIONS)])
    assert any("outside what the reference covers" in record.getMessage() for record in caplog.records)
    assert found.features.set_index("feature").loc["a", "center_bound"] > 0.01


@pytest.mark.parametrize("given", [False, True])
def test_no_pilot_is_read_with_a_reference(lake, days, caplog, given):
    with caplog.at_level("DEBUG", "excir_dask"):
        explain(lake / "day=02", reference=days[0] if given else None, **OPTIONS)
    assert any(record.getMessage().startswith("pilot: ") for record in caplog.records) != given


def test_the_reference_counts_for_the_run(lake, days, tmp_path):
    ids = [
        explain(lake / "day=02", out=tmp_path / name, reference=given, **OPTIONS).provenance.run_id
        for name, given in (("none", None), ("one", days[0]), ("same", days[1]))
    ]
    assert ids[0] != ids[1] == ids[2]


def test_what_cannot_be_merged_is_named(days, tmp_path):
    stranger = explain(day(1), **OPTIONS)
    with pytest.raises(UsageError, match="use different references; compute result 2 again with --reference"):
        merge([days[0], stranger])
    with pytest.raises(UsageError, match="both hold the rows of run"):
        merge([days[0], days[1], days[0]])
    with pytest.raises(UsageError, match="result 1 and result 2 are of the same rows"):
        merge([stranger, stranger])
    both = merge(days[:2], out=tmp_path / "both")
    assert len(both.provenance.merged) == 2
    with pytest.raises(UsageError, match="both hold the rows of run"):
        merge([tmp_path / "both", days[2], days[1]])
    with pytest.raises(UsageError, match="differ in centering: midhinge and mean"):
        merge([days[0], explain(day(1), centering="mean", **OPTIONS)])
    with pytest.raises(UsageError, match="give two or more"):
        merge(days[:1])
    fewer = explain(day(1), output="y", features=["a"], reference=days[0])
    with pytest.raises(UsageError, match="different features: 'zeros' in the"):
        merge([days[0], fewer])


def test_a_reference_that_does_not_fit_is_named(days, tmp_path):
    with pytest.raises(UsageError, match="the reference has no column 'w', which this run has"):
        explain(day(1), output="y", features=["a", "w"], reference=days[0])
    with pytest.raises(UsageError, match="centred on the midhinge, and this run on the mean"):
        explain(day(1), reference=days[0], centering="mean", **OPTIONS)
    with pytest.raises(UsageError, match="the reference has the outputs y, and this run has a"):
        explain(day(1), output="a", features=["zeros"], reference=days[0])
    with pytest.raises(UsageError, match="which is not a folder"):
        explain(day(1), reference=tmp_path / "nowhere", **OPTIONS)
    with pytest.raises(UsageError, match="give the folder of a saved explanation"):
        explain(day(1), reference=7, **OPTIONS)


def test_a_damaged_state_is_named(tmp_path):
    first = explain(day(0), out=tmp_path / "first", **OPTIONS)
    explain(day(1), out=tmp_path / "run", reference=first, **OPTIONS)
    path = tmp_path / "run" / "state.bin"
    content = path.read_bytes()
    path.write_bytes(content[:-20])
    for results in ([tmp_path / "first", tmp_path / "run"], [tmp_path / "run", tmp_path / "first"]):
        with pytest.raises(LakeError, match=r"run/state\.bin was changed since .* restore it, or compute it again"):
            merge(results)
    manifest = tmp_path / "run" / "manifest.json"
    plain = json.loads(manifest.read_text())
    del plain["files"]["state.bin"]
    manifest.write_text(json.dumps(plain))
    with pytest.raises(LakeError, match=r"state\.bin is damaged or of another version"):
        merge([tmp_path / "first", tmp_path / "run"])
    with pytest.raises(LakeError, match=r"state\.bin is damaged or of another version"):
        explain(day(1), reference=tmp_path / "run", **OPTIONS)
    path.write_bytes(content)
    assert merge([tmp_path / "first", tmp_path / "run"]).facts.rows.used == 2 * ROWS
    path.unlink()
    with pytest.raises(UsageError, match="has no state"):
        explain(day(1), reference=tmp_path / "run", **OPTIONS)


def test_a_state_of_an_older_version_is_named(tmp_path):
    """They were one zstd stream."""
    explain(day(0), out=tmp_path / "run", **OPTIONS)
    old = pa.Codec("zstd").compress(b"excir state 4\n" + bytes(1000), asbytes=True)
    (tmp_path / "run" / "state.bin").write_bytes(old)
    manifest = tmp_path / "run" / "manifest.json"
    plain = json.loads(manifest.read_text())
    plain["files"]["state.bin"] = hashlib.sha256(old).hexdigest()
    manifest.write_text(json.dumps(plain))
    with pytest.raises(LakeError, match=r"of another version \(.*\); compute the result again"):
        merge([tmp_path / "run", explain(day(1), **OPTIONS)])


def test_a_state_that_changes_while_a_merge_runs_is_named(tmp_path):
    """Results are loaded first, and their states read one after the other."""
    first = explain(day(0), **OPTIONS)
    explain(day(1), out=tmp_path / "run", reference=first, **OPTIONS)
    loaded = Explanation.load(tmp_path / "run")
    explain(day(2), out=tmp_path / "run", overwrite=True, reference=first, **OPTIONS)
    with pytest.raises(LakeError, match=r"state\.bin was changed since"):
        merge([first, loaded])


def test_references_are_read_once(days, monkeypatch):
    shapes = []

    def counting(how: dict[str, Any], content: memoryview) -> np.ndarray:
        shapes.append(how["shape"])
        return unpack(how, content)

    monkeypatch.setattr(state_format, "unpack", counting)
    merge(days[:5])
    assert shapes.count([4, BUCKETS]) == 2, "slots and coarse cells of the buckets, of the first result alone"


def test_equal_runs_save_equal_states(tmp_path):
    for name in ("one", "two"):
        explain(day(0), out=tmp_path / name, **OPTIONS)
    assert (tmp_path / "one" / "state.bin").read_bytes() == (tmp_path / "two" / "state.bin").read_bytes()


def test_a_merge_has_chance_and_dependence_of_all_rows(monkeypatch):
    monkeypatch.setattr(closer, "FEW_VALUES", 0)
    monkeypatch.setattr(closer, "WIDE", 1.0)  # a run may look again at its rows; a merge has none
    days = [day(number) for number in range(3)]
    first = explain(days[0], **OPTIONS)
    merged = merge([first, *(explain(each, **OPTIONS, reference=first) for each in days[1:])])
    whole = explain(pd.concat(days), **OPTIONS, reference=first)
    columns = ["null", "lift", "lift_stderr", "p_chance", "dependence", "dependence_stderr", "dependence_p", "bend"]
    for name in columns:
        one, other = (each.features.set_index("feature")[name] for each in (merged, whole))
        pd.testing.assert_series_equal(one, other, rtol=1e-9, atol=1e-12)
    assert merged.features["flag"].tolist() == whole.features["flag"].tolist()
    assert merged.features["dependence"].max() > 0.1


def test_without_joint_counts_dependence_is_empty_and_merges_stay_apart():
    frame = day(0)
    plain = explain(frame, **OPTIONS, dependence=False)
    assert plain.features[["dependence", "dependence_p", "bend"]].isna().all(axis=None)
    counted = explain(frame, **OPTIONS)
    assert plain.features.set_index("feature")["cir"].equals(
        counted.features.set_index("feature")["cir"][plain.features["feature"]]
    )
    with pytest.raises(UsageError, match="differ in dependence: False and True"):
        merge([plain, explain(day(1), **OPTIONS, reference=plain)])

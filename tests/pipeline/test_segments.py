"""Segments: every one has the scores that a run on its rows alone has."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import dask
import numpy as np
import pandas as pd
import pytest
from oracle import cir, write_lake

from excir_dask import Explanation, explain, merge
from excir_dask.errors import DataError, SchemaError, UsageError
from excir_dask.kernels.array_records import arrays_of
from excir_dask.kernels.centers import CENTERINGS
from excir_dask.kernels.reference import THIN

FEATURES = ["plain", "skewed", "zeros", "rounded", "holes"]
EXACT = 1e-12
FILES = ("explanation.json", "segments.parquet", "segments.bin")


def frame(seed: int, rows: int = 4000) -> pd.DataFrame:
    """Awkward columns whose distribution differs between regions; one region is rare, and some rows have none."""
    rng = np.random.default_rng(seed)
    region = rng.choice(np.array(["EU", "US", "rare", None], dtype=object), rows, p=[0.6, 0.3, 0.01, 0.09])
    shift = np.array([{"EU": 0.0, "US": 5.0, "rare": -40.0, None: 1.0}[each] for each in region])
    table = pd.DataFrame({"plain": rng.normal(shift, 1.0), "skewed": rng.lognormal(shift / 9, 1.0)})
    table["zeros"] = np.where(rng.random(rows) < 0.7, 0.0, rng.normal(size=rows))
    table["rounded"] = np.round(rng.normal(shift, 2.0))
    table["holes"] = np.where(rng.random(rows) < 0.3, np.nan, rng.normal(shift, 1.0))
    sign = np.where(region == "EU", 1.0, -1.0)
    table["pred"] = sign * table["plain"] + 0.5 * table["skewed"] + table["zeros"] + rng.normal(size=rows)
    table["other"] = rng.normal(size=rows) ** 3 + 0.2 * table["rounded"]
    table["region"] = region
    table["code"] = rng.integers(0, 3, rows)
    table["flag"] = rng.random(rows) < 0.3
    table["weight"] = rng.integers(1, 4, rows) * 1.0
    return table


def saved(explanation: Explanation, folder: Path) -> list[bytes]:
    """What must not change by a byte."""
    where = explanation.save(folder, report=False)
    return [(where / file).read_bytes() for file in FILES]


def rows_of(table: pd.DataFrame, name: str, column: str = "region") -> pd.DataFrame:
    return table[table[column].isna() if name == "(missing)" else table[column].astype(str) == name]


def tables(explanation: Explanation) -> pd.DataFrame:
    return explanation.features.set_index(["output", "feature"]).sort_index()


def assert_same(one: Explanation, other: Explanation, columns: tuple[str, ...] = ("cir", "stderr_rows", "q25", "q75")):
    a, b = tables(one), tables(other)
    for column in (*columns, "n", "missing", "center", "numerator", "denominator"):
        scale = np.maximum(np.abs(b[column].to_numpy(dtype=float)), 1.0)
        difference = np.abs(a[column].to_numpy(dtype=float) - b[column].to_numpy(dtype=float)) / scale
        assert np.nanmax(difference, initial=0.0) <= EXACT, column
        assert (a[column].isna() == b[column].isna()).all(), column


def assert_close(one: np.ndarray, other: np.ndarray, field: str) -> None:
    """Fields of states are equal; where buckets begin is known to a few buckets, which loops may take as one."""
    room = THIN - 1 if field in ("coarse_first", "coarse_last") else 1e-8
    np.testing.assert_allclose(one, other, rtol=EXACT, atol=room, err_msg=field)


@pytest.mark.parametrize("seed", range(10))
def test_each_segment_has_the_exact_scores_of_its_rows(seed):
    table = frame(seed)
    found = explain(table, output="pred", features=FEATURES, by="region")
    assert found.by.names[:2] == ["EU", "US"]
    assert set(found.by.names) == {"EU", "US", "rare", "(missing)"}
    for name in found.by.names:
        mine, scores = rows_of(table, name), found.segment(name).features.set_index("feature")
        for feature in FEATURES:
            exact = cir(mine[feature].to_numpy(), mine["pred"].to_numpy())
            assert abs(scores.loc[feature, "cir"] - exact) <= EXACT, (name, feature)
        assert found.segment(name).facts.rows.used == len(mine)


@pytest.mark.parametrize("centering", CENTERINGS)
def test_segments_are_exact_whatever_they_are_centred_on(centering):
    table = frame(3)
    found = explain(table, output="pred", features=FEATURES, by="region", centering=centering)
    for name in found.by.names:
        mine, scores = rows_of(table, name), found.segment(name).features.set_index("feature")
        for feature in FEATURES:
            exact = cir(mine[feature].to_numpy(), mine["pred"].to_numpy(), centering)
            assert abs(scores.loc[feature, "cir"] - exact) <= max(EXACT, scores.loc[feature, "center_bound"])


@pytest.mark.parametrize("weights", [None, "weight"])
def test_a_run_on_the_rows_of_a_segment_from_its_reference_is_the_same(weights, tmp_path):
    table = frame(1)
    table.loc[::17, "pred"] = np.nan
    options = {"features": FEATURES, "output": ["pred", "other"], "groups": {"g": FEATURES[:3]}, "weights": weights}
    found = explain(write_lake(tmp_path / "all", table, files=3, row_group_size=500), by="region", **options)
    for name in found.by.names:
        segment = found.segment(name)
        alone = explain(rows_of(table, name), reference=segment, **options)
        assert_same(segment, alone)
        assert np.abs(segment.groups["cir"] - alone.groups["cir"]).max() <= EXACT
        assert segment.facts.rows.without_output == alone.facts.rows.without_output
        assert segment.facts.rows.lake == alone.facts.rows.lake


def test_a_segment_seen_by_a_small_pilot_is_within_its_bound(monkeypatch, tmp_path):
    monkeypatch.setattr("excir_dask.lake.pilot.SMALL", 1000)
    monkeypatch.setattr("excir_dask.lake.pilot.ROWS", 3000)
    table = frame(2, 40_000)
    found = explain(write_lake(tmp_path / "lake", table, files=8, row_group_size=2500), output="pred",
                    features=FEATURES, by="region")  # fmt: skip
    for name in found.by.names:
        mine, segment = rows_of(table, name), found.segment(name)
        for row in segment.features.itertuples():
            exact = cir(mine[row.feature].to_numpy(), mine["pred"].to_numpy())
            assert abs(row.cir - exact) <= row.center_bound + EXACT, (name, row.feature)
        if len(mine) > 5000:
            assert segment.features["center_bound"].max() < 0.05
        alone = explain(mine, output="pred", features=FEATURES, reference=segment)  # it looks closer, at the same state
        for part in ("columns", "pairs"):
            for field, array in arrays_of(getattr(alone.state.state, part)).items():
                if field == "units":  # a frame has no row groups
                    continue
                assert_close(getattr(getattr(segment.state.state, part), field), array, field)


def test_segments_that_no_pilot_saw_are_looked_at_again(monkeypatch, tmp_path):
    """Files in the order of their days: the pilot looks into few of them, and every day is another 40 away."""
    monkeypatch.setattr("excir_dask.lake.pilot.SMALL", 1000)
    monkeypatch.setattr("excir_dask.lake.pilot.ROWS", 1000)
    monkeypatch.setattr("excir_dask.lake.pilot.GROUPS", 3)
    rng = np.random.default_rng(5)
    day = np.repeat(np.arange(12), 3000)
    table = pd.DataFrame({"day": day, "drifts": rng.normal(40.0 * day, 1.0), "stays": rng.lognormal(size=day.size)})
    table["pred"] = table["drifts"] + 3 * table["stays"] + rng.normal(size=day.size)
    lake = write_lake(tmp_path / "lake", table, files=12)
    found = explain(lake, output="pred", features=["drifts", "stays"], by="day")
    for name in found.by.names:
        mine = table[table["day"] == int(name)]
        for row in found.segment(name).features.itertuples():
            exact = cir(mine[row.feature].to_numpy(), mine["pred"].to_numpy())
            assert abs(row.cir - exact) <= row.center_bound + EXACT
            assert row.center_bound < 0.03
    later = explain(lake, output="pred", features=["drifts", "stays"], by="day", reference=found)
    assert later.segment("3").state.reference == found.segment("3").state.reference


def test_scores_of_all_rows_do_not_depend_on_segments():
    table = frame(4)
    with_segments = explain(table, output="pred", features=FEATURES, by="region")
    pd.testing.assert_frame_equal(with_segments.features, explain(table, output="pred", features=FEATURES).features)


def test_segments_do_not_depend_on_threads_and_hardly_on_slices(tmp_path):
    lake = write_lake(tmp_path / "lake", frame(5, 20_000), files=4, row_group_size=1000)
    options = {"output": "pred", "features": FEATURES, "by": "region"}
    found = []
    for scheduler in ("synchronous", "threads"):
        with dask.config.set(scheduler=scheduler):
            found.append(saved(explain(lake, **options), tmp_path / scheduler))
    assert found[0] == found[1]
    assert_same(explain(lake, **options).segment("EU"), explain(lake, **options, budget=2**20).segment("EU"))


def test_an_in_process_cluster_does_not_change_a_byte_of_segments(tmp_path):
    from distributed import Client

    lake = write_lake(tmp_path / "lake", frame(23, 20_000), files=5, row_group_size=1000)
    options = {"output": ["pred", "other"], "features": FEATURES, "by": ["region", "flag"], "budget": 2**20,
               "weights": "weight", "groups": {"g": FEATURES[:3]}}  # fmt: skip
    with dask.config.set(scheduler="synchronous"):
        expected = saved(explain(lake, **options), tmp_path / "alone")
    with Client(processes=False, n_workers=2, threads_per_worker=2, dashboard_address=":0") as client:
        assert saved(explain(lake, scheduler=client, **options), tmp_path / "cluster") == expected


def test_a_run_with_segments_takes_up_the_states_that_it_finds(tmp_path):
    lake = write_lake(tmp_path / "lake", frame(24, 20_000), files=5, row_group_size=1000)
    options = {"output": "pred", "features": FEATURES, "by": "region", "budget": 2**20}
    expected = saved(explain(lake, **options), tmp_path / "alone")
    states, resumed = tmp_path / "states", {"checkpoint": tmp_path / "states", **options}
    first = explain(lake, **resumed)
    everything = sorted(states.glob("*/*.state"))
    for path in everything[::2]:
        path.unlink()
    again = explain(lake, **resumed)
    assert again.provenance.resumed_states == len(everything) // 2
    assert 0 < again.provenance.bytes_read < first.provenance.bytes_read
    third = explain(lake, **resumed)
    assert third.provenance.bytes_read == 0
    for name, found in {"first": first, "again": again, "third": third}.items():
        assert saved(found, tmp_path / name) == expected


@pytest.mark.parametrize("where", ["plain > 0.5 and code != 1", "day >= 7 and region != 'US'"])
@pytest.mark.parametrize("weights", [None, "weight"])
def test_segments_of_rows_that_match_are_those_of_a_lake_of_these_rows(where, weights, tmp_path):
    """Files are in the order of their days, so that footers rule row groups out."""
    table = frame(25).assign(day=np.arange(4000) // 400)
    table.loc[::13, "pred"] = np.nan
    mine = table.query(where.replace("region != 'US'", "region.notna() and region != 'US'"))
    lake = write_lake(tmp_path / "lake", table, files=2, row_group_size=200)
    options = {"output": "pred", "features": FEATURES, "by": "region", "weights": weights, "groups": {"g": FEATURES}}
    expected = explain(mine, **options)
    for source in (lake, table):
        found = explain(source, where=where, **options)
        assert found.by.names == expected.by.names
        for name in found.by.names:
            one, other = found.segment(name), expected.segment(name)
            assert_same(one, other, ("cir", "null", "lift", "dependence", "stderr_rows", "q25", "q75"))
            assert np.abs(one.groups["cir"] - other.groups["cir"]).max() <= EXACT
            assert replace(one.facts.rows, row_groups=0) == replace(other.facts.rows, row_groups=0)
    assert found.facts.rows.filtered_out == len(table) - len(mine)


def test_rows_of_a_segment_are_estimated_from_the_row_groups_that_were_drawn(tmp_path):
    table = frame(26, 20_000).assign(day=np.arange(20_000) // 2000)
    lake = write_lake(tmp_path / "lake", table, row_group_size=100)
    options = {"output": "pred", "features": ["plain"], "by": "region", "sampling": "row-groups", "fraction": 0.5}
    for where, mine in ((None, table), ("day >= 5", table[table["day"] >= 5])):
        found = explain(lake, where=where, **options)
        rows = found.segment("EU").facts.rows
        assert 0.4 < rows.sampled / rows.lake < 0.6
        assert abs(rows.lake - (mine["region"] == "EU").sum()) < 0.2 * rows.lake


@pytest.mark.parametrize("dependence", [True, False])
def test_a_segment_has_the_chance_and_dependence_of_its_rows(dependence):
    table = frame(27)
    table["bends"] = table["pred"] ** 2
    options = {"output": "pred", "features": [*FEATURES, "bends"], "dependence": dependence}
    found = explain(table, by="region", **options)
    columns = ["null", "lift", "lift_stderr", "p_chance", "strength", "stderr"]
    columns += ["dependence", "dependence_stderr", "dependence_p", "bend"] if dependence else []
    for name in found.by.names:
        segment = found.segment(name)
        one, other = tables(segment), tables(explain(rows_of(table, name), reference=segment, **options))
        for column in columns:
            np.testing.assert_allclose(one[column], other[column], rtol=1e-9, atol=1e-12, err_msg=column)
        assert (one["flag"] == other["flag"]).all()
        if name != "rare":  # its rows lie in one cell of all rows
            assert one["dependence"].notna().all() == dependence


@pytest.mark.parametrize(("by", "name"), [("code", "2"), ("flag", "True"), (["region", "flag"], "EU / False")])
def test_numbers_flags_and_pairs_of_columns_are_segments(by, name, tmp_path):
    table = frame(6)
    lake = write_lake(tmp_path / "lake", table, files=2)
    columns = [by] if isinstance(by, str) else by
    label = table[columns].astype(object).map(lambda v: "(missing)" if v is None or v != v else str(v))
    mine = table[label.agg(" / ".join, axis=1) == name]
    for source in (lake, table):
        found = explain(source, output="pred", features=["plain"], by=by)
        assert (
            abs(found.segment(name).features["cir"][0] - cir(mine["plain"].to_numpy(), mine["pred"].to_numpy()))
            <= EXACT
        )


def test_hive_keys_are_segments(tmp_path):
    table = frame(7)
    for year, part in table.groupby("code"):
        write_lake(tmp_path / "lake" / f"year={2020 + year}", part.drop(columns="code"))
    found = explain(tmp_path / "lake", output="pred", features=["plain", "holes"], by="year")
    assert set(found.by.names) == {"2020", "2021", "2022"}
    mine = table[table["code"] == 1]
    scores = found.segment("2021").features.set_index("feature")["cir"]
    assert abs(scores["holes"] - cir(mine["holes"].to_numpy(), mine["pred"].to_numpy())) <= EXACT


def test_categories_are_features_in_segments_too():
    table = frame(8)
    options = {"output": "pred", "features": ["plain", "region"], "categoricals": "indicators"}
    found = explain(table, by="flag", **options).segment("True")
    mine = table[table["flag"]]
    for category in ("EU", "US", "rare"):
        x = np.where(mine["region"].isna(), np.nan, (mine["region"] == category).astype(float))
        scores = found.features.set_index("feature")["cir"]
        assert abs(scores[f"region={category}"] - cir(x, mine["pred"].to_numpy())) <= EXACT


def test_a_model_and_a_sample_have_segments():
    table = frame(9)
    found = explain(table, model=lambda rows: rows["plain"] * 2, model_columns=["plain"], by="region", fraction=0.5)
    assert (found.segments["cir"] == 1.0).all()
    rows = found.segment("EU").facts.rows
    assert rows.lake == (table["region"] == "EU").sum()
    assert 0.4 < rows.sampled / rows.lake < 0.6


def test_smaller_segments_are_together(monkeypatch, caplog):
    monkeypatch.setattr("excir_dask.pipeline.segments.MOST", 2)
    table = frame(10)
    found = explain(table, output="pred", features=["plain"], by="region")
    assert found.by.names == ["EU", "(other)"]
    mine = table[table["region"] != "EU"]
    assert (
        abs(found.segment("(other)").features["cir"][0] - cir(mine["plain"].to_numpy(), mine["pred"].to_numpy()))
        <= EXACT
    )
    assert "3 smaller ones together are '(other)'" in caplog.text


def test_a_later_run_has_the_segments_of_its_reference():
    first, second = frame(11), frame(12)
    second.loc[:50, "region"] = "new"
    options = {"output": "pred", "features": FEATURES, "by": "region"}
    days = [explain(first, **options)]
    days.append(explain(second, reference=days[0], **options))
    assert "new" not in days[1].by.names
    assert days[1].segment("(other)").facts.rows.used == 51
    assert days[0].segment("EU").state.reference == days[1].segment("EU").state.reference


def test_segments_of_days_merge_to_those_of_all_days():
    parts = [frame(20), frame(21), frame(22)]
    parts[2] = parts[2][parts[2]["region"] != "rare"]
    options = {"output": "pred", "features": FEATURES, "by": "region", "groups": {"g": FEATURES[:2]}}
    days = [explain(parts[0], **options)]
    days += [explain(table, reference=days[0], **options) for table in parts[1:]]
    merged, whole = merge(days), explain(pd.concat(parts), reference=days[0], **options)
    assert merged.by.names == whole.by.names
    for name in merged.by.names:
        one, other = merged.segment(name), whole.segment(name)  # a run may look closer, from the same state
        for kind in ("columns", "pairs"):
            for field, array in arrays_of(getattr(other.state.state, kind)).items():
                mine = getattr(getattr(one.state.state, kind), field)
                if field != "units":  # a frame has no row groups
                    assert_close(mine, array, field)
        a, b = tables(one), tables(other)
        assert (np.abs(a["cir"] - b["cir"]) <= a["center_bound"] + b["center_bound"] + EXACT).all()
        assert one.facts.rows == other.facts.rows


def test_a_saved_explanation_has_its_segments(tmp_path):
    found = explain(frame(13), output="pred", features=FEATURES, by="region", groups={"g": FEATURES[:2]})
    loaded = Explanation.load(found.save(tmp_path / "saved", report=False))
    pd.testing.assert_frame_equal(loaded.segments, found.segments)
    assert_same(loaded.segment("US"), found.segment("US"))
    assert loaded.segment("US").state.reference == found.segment("US").state.reference
    again = loaded.regroup({"h": FEATURES[2:]})
    assert set(again.segment("EU").groups["group"]) == {"h"}


@pytest.mark.parametrize(
    ("by", "error", "words"),
    [
        ("regoin", SchemaError, "did you mean 'region'"),
        ("plain", SchemaError, "column 'plain' (by) is double; segments are values of text"),
        (["region", "code", "flag"], UsageError, "by names 3 columns"),
        (["region", "region"], UsageError, "twice"),
    ],
)
def test_columns_that_cannot_be_segments_are_refused(by, error, words):
    with pytest.raises(error, match=None) as caught:
        explain(frame(0, 50), output="pred", features=["skewed"], by=by)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_identifiers_and_names_of_our_own_are_refused():
    table = frame(0, 10_050)
    table["id"] = np.arange(len(table))
    with pytest.raises(DataError, match="more than 10,000 different values"):
        explain(table, output="pred", features=["plain"], by="id")
    table["region"] = "(other)"
    with pytest.raises(DataError, match=r"'region' \(by\) has the value '\(other\)'"):
        explain(table, output="pred", features=["plain"], by="region")


def test_the_dependence_of_rows_far_from_those_of_the_reference_is_unknown():
    rng = np.random.default_rng(3)
    x = rng.normal(size=4000)
    here = pd.DataFrame({"x": x, "pred": x + rng.normal(size=4000)})
    there = here + 1000.0
    scores = explain(there, output="pred", reference=explain(here, output="pred")).features
    assert scores["lift"][0] > 0.3
    assert scores[["dependence", "dependence_stderr", "dependence_p", "bend"]].isna().all(axis=None)
    mixed = pd.concat([here.assign(region="a")] * 20 + [there.assign(region="b")], ignore_index=True)
    by = explain(mixed, output="pred", features=["x"], by="region").segments.set_index("segment")
    assert by.loc["a", "dependence"] > 0.1
    assert np.isnan(by.loc["b", "dependence"])


def test_an_explanation_without_segments_says_so():
    with pytest.raises(UsageError, match="no segments"):
        explain(frame(0, 50), output="pred", features=["plain"]).segments  # noqa: B018
    with pytest.raises(UsageError, match="there is no segment 'UE'"):
        explain(frame(0, 500), output="pred", features=["plain"], by="region").segment("UE")

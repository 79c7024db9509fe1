"""A run with a row filter equals a run on the rows that match, however they are stored, drawn and read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import dask
import numpy as np
import oracle
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from excir_dask import Explanation, explain, merge
from excir_dask.errors import NoRowsError, SchemaError, UsageError
from excir_dask.lake.sample import Sample
from excir_dask.pipeline.options import ExplainOptions
from excir_dask.pipeline.preview import preview
from excir_dask.render.text.explanation import headline
from excir_dask.render.text.notes import notes
from excir_dask.render.text.preview import text

ROWS = 1200


def table(rows: int = ROWS, seed: int = 0) -> pd.DataFrame:
    """Sorted days, an unsorted region with gaps, a zero-inflated column, missing outputs and weights."""
    draw = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "a": draw.normal(size=rows),
            "b": np.where(draw.random(rows) < 0.6, 0.0, draw.exponential(size=rows).round(1)),
            "x": draw.normal(size=rows),
            "region": draw.choice(np.array(["EU", "US", "UK", None], dtype=object), rows),
            "kind": pd.Categorical(draw.choice(["small", "large"], rows)),
            "day": pd.Timestamp("2026-08-20") + pd.to_timedelta(np.arange(rows) * 24 // rows, unit="D"),
            "flag": draw.random(rows) < 0.3,
            "w": draw.integers(0, 4, rows).astype(float),
        }
    )
    frame.loc[draw.random(rows) < 0.2, "x"] = np.nan
    frame["pred"] = frame["a"] - frame["b"] + draw.normal(size=rows)
    frame.loc[draw.random(rows) < 0.05, "pred"] = np.nan
    return frame


FRAME = table()
WHERE = {
    "region == 'EU'": FRAME["region"] == "EU",
    "region not in ['EU', 'UK']": FRAME["region"] == "US",
    "region is None or x is None": FRAME["region"].isna() | FRAME["x"].isna(),
    "not (x > 0.2)": FRAME["x"] <= 0.2,
    "day >= '2026-09-01' and region != 'US'": (FRAME["day"] >= "2026-09-01") & FRAME["region"].isin(["EU", "UK"]),
    "'2026-08-25' <= day < '2026-09-03 12:00'": FRAME["day"].between("2026-08-25", "2026-09-03"),
    "kind == 'small' and flag": (FRAME["kind"] == "small") & FRAME["flag"],
    "not flag or b == 0": ~FRAME["flag"] | (FRAME["b"] == 0),
    "a < x": FRAME["a"] < FRAME["x"],
}
FEATURES = ["a", "b", "x"]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return oracle.write_lake(tmp_path_factory.mktemp("where") / "lake", FRAME, 3, 100)


def scores(explanation: Explanation) -> pd.DataFrame:
    columns = ["output", "feature", "cir", "strength", "n", "missing", "q25", "q75", "numerator", "denominator"]
    table = explanation.features[columns]
    return table.sort_values(["output", "feature"], ignore_index=True)


def check(found: Explanation, expected: Explanation) -> None:
    """Equal but for the order of sums."""
    pd.testing.assert_frame_equal(scores(found), scores(expected), rtol=1e-12, atol=1e-12)
    ours, theirs = found.facts.rows, expected.facts.rows
    assert ours.lake - ours.filtered_out == theirs.lake
    for count in ("sampled", "without_output", "without_weight", "used"):
        assert getattr(ours, count) == getattr(theirs, count)


@pytest.mark.parametrize("where", WHERE)
def test_scores_are_those_of_the_matching_rows(lake, where):
    rows = FRAME[WHERE[where]]
    assert 30 < len(rows) < ROWS
    found = explain(lake, output="pred", features=FEATURES, where=where)
    np.testing.assert_allclose(
        oracle.scores(found, FEATURES), [oracle.cir(rows[f].to_numpy(), rows["pred"].to_numpy()) for f in FEATURES],
        atol=1e-12,
    )  # fmt: skip
    check(found, explain(rows, output="pred", features=FEATURES))
    assert found.facts.rows.filtered_out == ROWS - len(rows)
    assert found.facts.settings.where == where


MODES: dict[str, dict[str, Any]] = {
    "weights": {"output": "pred", "weights": "w"},
    "indicators": {"output": "pred", "features": [*FEATURES, "region", "kind"], "categoricals": "indicators"},
    "several outputs": {"output": ["pred", "a"], "features": ["b", "x"]},
    "median": {"output": "pred", "centering": "median"},
    "callable": {"model": lambda frame: frame["a"] - frame["b"].clip(0, 2), "model_columns": ["a", "b"]},
    "groups": {"output": "pred", "groups": {"g": ["a", "b"]}},
}


@pytest.mark.parametrize("mode", MODES)
def test_every_kind_of_run_counts_the_matching_rows_alone(lake, mode):
    where = "day >= '2026-09-01' and region != 'US'"
    check(explain(lake, where=where, **MODES[mode]), explain(FRAME[WHERE[where]], **MODES[mode]))


def test_a_model_sees_the_matching_rows_alone(lake):
    seen = []

    def model(frame: pd.DataFrame) -> np.ndarray:
        seen.append(frame)
        return frame["a"].to_numpy() * 2

    found = explain(lake, model=model, model_columns=["a", "b"], where="kind == 'small' and flag")
    rows = FRAME[WHERE["kind == 'small' and flag"]]
    assert sum(map(len, seen)) == len(rows) == found.facts.rows.used
    assert sorted(pd.concat(seen)["a"]) == sorted(rows["a"])


def test_a_model_need_not_know_categories_of_other_rows(tmp_path):
    xgboost = pytest.importorskip("xgboost")
    rows = FRAME[FRAME["region"].isin(["EU", "US"])].reset_index(drop=True)
    X = pd.DataFrame({"a": rows["a"], "region": rows["region"].astype(str).astype("category")})
    data = xgboost.DMatrix(X, rows["a"], enable_categorical=True)
    model = xgboost.train({"tree_method": "hist"}, data, num_boost_round=3)
    lake = oracle.write_lake(tmp_path / "lake", FRAME[FRAME["region"].notna()], 2, 100)
    found = explain(lake, model=model, features=["a"], where="region in ['EU', 'US']")
    assert found.facts.rows.used == len(rows)


@pytest.mark.parametrize("where", ["region == 'EU'", "day >= '2026-09-01' and region != 'US'"])
@pytest.mark.parametrize("sampling", ["rows", "row-groups"])
def test_a_sample_is_the_matching_rows_of_the_sample_of_all(lake, where, sampling):
    numbered = FRAME.assign(matches=WHERE[where])
    drawn = []
    for i, path in enumerate(sorted(lake.iterdir())):
        part, count = numbered.iloc[400 * i : 400 * (i + 1)], 4
        for group in range(count):
            rows = part.iloc[100 * group : 100 * (group + 1)]
            drawn.append(rows[Sample(0.4, 3).mask(path.name, group, 100)])
    options = {"output": "pred", "features": FEATURES, "fraction": 0.4, "seed": 3, "sampling": sampling}
    found = explain(lake, where=where, **options)
    if sampling == "rows":
        rows = pd.concat(drawn)
        check_scores = explain(rows[rows["matches"]], output="pred", features=FEATURES)
        pd.testing.assert_frame_equal(scores(found), scores(check_scores), rtol=1e-12, atol=1e-12)
        assert found.facts.rows.sampled == int(rows["matches"].sum())
        assert found.facts.rows.filtered_out == int((~numbered["matches"]).sum())
    else:
        everything = explain(lake, **options).facts.rows
        assert found.facts.rows.sampled + found.facts.rows.filtered_out == everything.sampled
    smaller = explain(lake, where=where, **{**options, "fraction": 0.2}).facts.rows
    assert smaller.used < found.facts.rows.used < int(numbered["matches"].sum())


@pytest.mark.parametrize("where", list(WHERE)[:5])
def test_frames_of_every_library_are_filtered_alike(where):
    import dask.dataframe as dd

    polars = pytest.importorskip("polars")
    frames = [FRAME, dd.from_pandas(FRAME, npartitions=4), pa.Table.from_pandas(FRAME), polars.from_pandas(FRAME)]
    for frame in frames:
        options = {"output": "pred", "features": FEATURES}
        check(explain(frame, where=where, **options), explain(FRAME[WHERE[where]], **options))


def test_slicing_and_streaming_do_not_change_a_score(tmp_path):
    frame = table(60_000, 1)
    lake = oracle.write_lake(tmp_path / "lake", frame, 2, 30_000)
    options = {"output": "pred", "features": FEATURES, "where": "region == 'EU' and day >= '2026-08-30'"}
    wide, narrow = (explain(lake, budget=budget, **options) for budget in ("128MiB", "1MiB"))
    assert narrow.provenance.slices > wide.provenance.slices
    assert narrow.facts.rows == wide.facts.rows
    pd.testing.assert_frame_equal(scores(narrow), scores(wide), rtol=1e-6)
    rows = frame[(frame["region"] == "EU") & (frame["day"] >= "2026-08-30")]
    assert wide.facts.rows.filtered_out == len(frame) - len(rows)
    expected = [oracle.cir(rows[f].to_numpy(), rows["pred"].to_numpy()) for f in FEATURES]
    for found in (wide, narrow):
        bound = found.features.set_index("feature").loc[FEATURES, "center_bound"]
        assert (np.abs(oracle.scores(found, FEATURES) - expected) <= bound + 1e-12).all()


@pytest.mark.parametrize("model", [None, lambda frame: frame["a"]])
def test_a_streamed_row_group_counts_its_matching_rows(tmp_path, model):
    """Rows of one row group that does not fit into the budget, in batches."""
    frame = table(70_000, 2)
    lake = oracle.write_lake(tmp_path / "lake", frame, 1)
    options = {"output": "pred"} if model is None else {"model": model, "model_columns": ["a", "b"]}
    found = explain(lake, features=["a", "b"], where="region == 'US'", budget="1MiB", fraction=0.5, **options)
    wide = explain(lake, features=["a", "b"], where="region == 'US'", fraction=0.5, **options)
    assert found.facts.rows == wide.facts.rows
    assert found.facts.rows.filtered_out == int((frame["region"] != "US").sum())
    np.testing.assert_allclose(oracle.scores(found, ["a", "b"]), oracle.scores(wide, ["a", "b"]), atol=1e-5)


def test_threads_do_not_change_a_byte(lake):
    options = {"output": "pred", "weights": "w", "where": "day >= '2026-08-29' and not flag", "fraction": 0.8}
    with dask.config.set(scheduler="synchronous"):
        reference = explain(lake, **options).to_json()
    for threads in (1, 3):
        with dask.config.set(num_workers=threads):
            assert explain(lake, **options).to_json() == reference


def hive(folder: Path, frame: pd.DataFrame) -> Path:
    for region, rows in frame.groupby(frame["region"].fillna("__HIVE_DEFAULT_PARTITION__")):
        for month, part in rows.groupby(rows["day"].dt.month):
            path = folder / f"region={region}" / f"month={month}" / "part.parquet"
            path.parent.mkdir(parents=True)
            part.drop(columns="region").to_parquet(path, index=False)
    return folder


@pytest.mark.parametrize(
    ("where", "chosen", "files"),
    [
        ("region == 'EU' and month == 9", (FRAME["region"] == "EU") & (FRAME["day"].dt.month == 9), 1),
        ("region is None", FRAME["region"].isna(), 2),
        ("region != 'EU' and flag", FRAME["region"].isin(["UK", "US"]) & FRAME["flag"], 4),
        ("month < 9 or day < '2026-09-02'", FRAME["day"] < "2026-09-02", 8),
        ("region == 'EU' or x > 1", (FRAME["region"] == "EU") | (FRAME["x"] > 1), 8),
    ],
)
def test_keys_of_folders_leave_whole_files_out(tmp_path, where, chosen, files):
    folder = hive(tmp_path / "lake", FRAME)
    found = explain(folder, output="pred", features=FEATURES, where=where)
    check(found, explain(FRAME[chosen], output="pred", features=FEATURES))
    assert preview(str(folder), ExplainOptions(output="pred", where=where)).left["files"] == files


def chunk_bytes(lake: Path, columns: list[str], keep: Any) -> int:
    """Compressed bytes of some columns in the row groups of the days to keep."""
    total = 0
    for path in sorted(lake.iterdir()):
        file = pq.ParquetFile(path)
        for number in range(file.metadata.num_row_groups):
            if keep(file.read_row_group(number, ["day"]).column("day").to_pandas()).any():
                group = file.metadata.row_group(number)
                names = [group.column(i).path_in_schema for i in range(group.num_columns)]
                total += sum(group.column(names.index(name)).total_compressed_size for name in columns)
    return total


def test_row_groups_that_footers_rule_out_are_not_read(lake):
    """Small lakes are read twice: by the pilot, which is complete, and by the pass."""
    options = {"output": "pred", "features": FEATURES}
    found = explain(lake, where="day >= '2026-09-08'", **options)
    left = chunk_bytes(lake, ["day", "pred", *FEATURES], lambda days: days >= pd.Timestamp("2026-09-08"))
    assert 0 < left < 0.5 * chunk_bytes(lake, ["day", "pred", *FEATURES], lambda days: days == days)
    assert found.provenance.bytes_read == 2 * left
    assert found.facts.rows.row_groups == 3


def test_statistics_do_not_change_what_matches(tmp_path):
    found = []
    for statistics in (True, False):
        folder = tmp_path / f"{statistics}"
        folder.mkdir()
        pq.write_table(
            pa.Table.from_pandas(FRAME), folder / "x.parquet", row_group_size=100, write_statistics=statistics
        )
        found.append(explain(folder, output="pred", features=FEATURES, where="day >= '2026-09-08' or x > 2.5"))
        assert preview(str(folder), ExplainOptions(where="day >= '2026-09-12'")).left["row_groups"] == (
            1 if statistics else 12
        )
    pd.testing.assert_frame_equal(scores(found[0]), scores(found[1]), rtol=1e-12, atol=1e-12)
    assert found[0].facts.rows == found[1].facts.rows


def test_slices_without_a_match_are_read_no_further_than_the_filter(tmp_path):
    """Files without statistics: at most 64 of them are a slice, and the first slice alone has matches."""
    folder = oracle.write_lake(tmp_path / "lake", FRAME.assign(number=np.arange(ROWS)), 150)
    sizes = []
    for path in sorted(folder.iterdir()):
        pq.write_table(pq.read_table(path), path, write_statistics=False)
        group = pq.ParquetFile(path).metadata.row_group(0)
        sizes.append({group.column(i).path_in_schema: group.column(i).total_compressed_size for i in range(10)})
    found = explain(folder, output="pred", features=FEATURES, where="number < 100")
    assert found.provenance.slices == 3
    further = sum(size[name] for size in sizes[:64] for name in ["pred", *FEATURES])
    assert found.provenance.bytes_read == 2 * (sum(size["number"] for size in sizes) + further)
    check(found, explain(FRAME[:100], output="pred", features=FEATURES))


def test_row_group_samples_do_not_depend_on_statistics(tmp_path):
    options = {"output": "pred", "features": FEATURES, "sampling": "row-groups", "fraction": 0.5}
    found = []
    for statistics in (True, False):
        folder = tmp_path / f"{statistics}"
        folder.mkdir()
        pq.write_table(
            pa.Table.from_pandas(FRAME), folder / "x.parquet", row_group_size=60, write_statistics=statistics
        )
        found.append(explain(folder, where="day >= '2026-09-01'", **options))
    pd.testing.assert_frame_equal(scores(found[0]), scores(found[1]), rtol=1e-12, atol=1e-12)
    assert found[0].facts.rows == found[1].facts.rows
    assert found[0].provenance.bytes_read < found[1].provenance.bytes_read


@pytest.mark.parametrize("sampling", ["rows", "row-groups"])
def test_adaptive_samples_grow_until_rows_match(tmp_path, sampling):
    frame = table(12_000, 3)
    lake = oracle.write_lake(tmp_path / "lake", frame, 6, 100)
    where = "day >= '2026-09-10' and region == 'EU'"
    found = explain(lake, output="pred", features=FEATURES, where=where, fraction="auto", sampling=sampling, k=1)
    assert found.facts.auto.steps[-1].rows == found.facts.rows.used > 0
    matching = (frame["day"] >= "2026-09-10") & (frame["region"] == "EU")
    assert found.facts.rows.used <= int(matching.sum())
    if found.facts.settings.fraction == 1:
        check(found, explain(frame[matching], output="pred", features=FEATURES))


def test_a_checkpoint_resumes_to_the_same_bytes_and_another_filter_does_not_use_it(lake, tmp_path):
    options = {"output": "pred", "checkpoint": tmp_path / "states", "fraction": 0.9}
    first = explain(lake, where="region == 'EU'", **options)
    again = explain(lake, where="region == 'EU'", **options)
    other = explain(lake, where="region == 'US'", **options)
    assert again.to_json() == first.to_json()
    assert (again.provenance.resumed_states > 0, other.provenance.resumed_states) == (True, 0)
    assert other.facts.rows.used != first.facts.rows.used


def test_the_outputs_of_a_model_resume_with_a_filter(lake, tmp_path):
    xgboost = pytest.importorskip("xgboost")
    model = xgboost.train({}, xgboost.DMatrix(FRAME[["a", "b"]], FRAME["a"]), num_boost_round=2)
    options = {"model": model, "checkpoint": tmp_path / "states", "where": "region == 'EU'"}
    first, again = (explain(lake, **options) for _ in range(2))
    assert again.to_json() == first.to_json()
    assert again.provenance.resumed_states > 0
    check(first, explain(FRAME[FRAME["region"] == "EU"], model=model))


def test_parts_of_a_lake_that_filters_cut_merge_to_the_whole(lake):
    options = {"output": "pred", "features": FEATURES}
    parts = ["day < '2026-09-01'", "day >= '2026-09-01'"]
    first = explain(lake, where=parts[0], **options)
    second = explain(lake, where=parts[1], reference=first, **options)
    whole = explain(lake, reference=first, **options)
    both = merge([first, second])
    bound = both.features.set_index("feature").loc[FEATURES, "center_bound"]
    assert (np.abs(oracle.scores(both, FEATURES) - oracle.scores(whole, FEATURES)) <= bound + 1e-12).all()
    assert both.facts.rows.used == whole.facts.rows.used
    assert sorted(both.facts.settings.where[1:-1].split(") or (")) == sorted(parts)
    with pytest.raises(UsageError, match="differ in where: None and day"):
        merge([whole, second])


def test_a_filter_is_part_of_the_run_id_and_of_what_is_saved(lake, tmp_path):
    options = {"output": "pred", "features": FEATURES}
    assert oracle.run_id(lake, where="flag", **options) != oracle.run_id(lake, where="not flag", **options)
    found = explain(lake, where="region == 'EU'", fraction=0.5, out=tmp_path / "out", **options)
    saved = json.loads((tmp_path / "out" / "explanation.json").read_text())["facts"]
    assert saved["settings"]["where"] == "region == 'EU'"
    assert saved["rows"]["filtered_out"] == int((FRAME["region"] != "EU").sum())
    assert Explanation.load(tmp_path / "out").facts == found.facts
    assert "where region == 'EU', 50% sample" in headline(found)
    assert f"{saved['rows']['filtered_out']} rows left out: only rows with region == 'EU' count" in notes(found)
    assert "region == &#39;EU&#39;" in (tmp_path / "out" / "report.html").read_text()


def test_a_preview_tells_what_is_left_to_read(lake):
    found = preview(str(lake), ExplainOptions(output="pred", where="day >= '2026-09-08'"))
    assert found.left == {"files": 1, "row_groups": 3, "rows": 300}
    assert "where     1 of 3 files, 3 of 12 row groups, 300 of 1,200 rows left to read" in text(found)
    assert preview(str(lake), ExplainOptions(output="pred")).left is None
    nothing = preview(str(lake), ExplainOptions(output="pred", where="day > '2027-01-01'"))
    assert isinstance(nothing.problem, NoRowsError)
    assert isinstance(preview(str(lake), ExplainOptions(output="pred", where="dya > 1")).problem, SchemaError)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("day > '2027-01-01'", "keys and footers rule out that any of 1,200 rows matches where="),
        ("region == 'EUR' and region > 'EU'", "no row is left to explain: "),
        ("region == 'EU' and pred is None", "300 of those do not match|without a finite value in pred"),
    ],
)
def test_a_filter_that_leaves_no_row_says_so(lake, where, message):
    with pytest.raises(NoRowsError, match=message) as caught:
        explain(lake, output="pred", where=where)
    assert caught.value.exit_code == 3
    assert "\n" not in str(caught.value)


def test_columns_of_a_filter_count_in_the_budget(lake):
    from excir_dask.pipeline.inputs import resolve_inputs

    plain, filtered = (
        resolve_inputs(lake, ExplainOptions(output="pred", where=where)).plan
        for where in (None, "flag and region == 'EU'")
    )
    assert filtered.fixed_columns == plain.fixed_columns + 2
    assert filtered.slice_bytes > plain.slice_bytes

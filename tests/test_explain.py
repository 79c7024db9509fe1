"""explain() from end to end against Algorithm 1 in plain numpy."""

from itertools import product
from pathlib import Path

import dask
import numpy as np
import oracle
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn import datasets

from excir_dask import explain
from excir_dask.errors import DataError, SchemaError, UsageError
from excir_dask.kernels.centers import CENTERINGS

TABLES = {name: getattr(datasets, f"load_{name}") for name in ("iris", "diabetes", "wine", "digits", "breast_cancer")}


def table_of(name: str) -> tuple[pd.DataFrame, list[str]]:
    data = TABLES[name](as_frame=True)
    frame = data.data.astype(float)
    frame.columns = [str(column).replace(" ", "_") for column in frame.columns]
    features = list(frame.columns)
    return frame.assign(target=data.target.astype(float)), features


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize(("files", "row_group_size", "threads"), [(1, None, 1), (3, 20, 2), (7, 5, 4)])
def test_small_tables_are_exact_however_they_are_stored(name, files, row_group_size, threads, tmp_path):
    frame, features = table_of(name)
    lake = oracle.write_lake(tmp_path / "lake", frame, files, row_group_size)
    with dask.config.set(num_workers=threads):
        explanation = explain(lake, output="target", budget="1MiB")
    expected = [oracle.cir(frame[f].to_numpy(), frame["target"].to_numpy()) for f in features]
    np.testing.assert_allclose(oracle.scores(explanation, features), expected, rtol=0, atol=1e-12)


def test_the_published_reference_values_come_out():
    frame, features = table_of("iris")
    np.testing.assert_allclose(
        oracle.scores(explain(frame, output="target"), features), [0.986470, 0.166176, 1.0, 1.0], atol=5e-7
    )
    frame, features = table_of("diabetes")
    expected = [.639899, .523872, .882764, .792079, .665380, .634717, .212180, .825674, .882942, .769691]  # fmt: skip
    np.testing.assert_allclose(oracle.scores(explain(frame, output="target"), features), expected, atol=5e-7)


@st.composite
def tables(draw):
    rows, width = draw(st.integers(1, 80)), draw(st.integers(1, 5))
    kinds = {
        "real": st.floats(-1e3, 1e3).map(lambda v: round(v, 4)),
        "integer": st.integers(-3, 3).map(float),
        "gaps": st.one_of(st.floats(-10, 10).map(lambda v: round(v, 2)), st.just(float("nan"))),
        "constant": st.just(0.1),
    }
    columns = {
        f"x{j}": draw(st.lists(kinds[draw(st.sampled_from(list(kinds)))], min_size=rows, max_size=rows))
        for j in range(width)
    }
    columns["y"] = draw(st.lists(kinds["real"], min_size=rows, max_size=rows))
    return pd.DataFrame(columns, dtype=float)


@given(frame=tables(), files=st.integers(1, 4), row_group_size=st.integers(1, 30))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_random_tables_are_exact_however_they_are_stored(frame, files, row_group_size, tmp_path_factory):
    features = [name for name in frame if name != "y"]
    lake = oracle.write_lake(tmp_path_factory.mktemp("lake"), frame, files, row_group_size)
    with dask.config.set(scheduler="synchronous"):
        explanation = explain(lake, output="y", budget=2**20)
    expected = [oracle.cir(frame[f].to_numpy(), frame["y"].to_numpy()) for f in features]
    np.testing.assert_allclose(oracle.scores(explanation, features), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("centering", CENTERINGS)
def test_every_centring_is_exact_on_small_tables(centering, synchronous):
    frame, features = table_of("wine")
    explanation = explain(frame, output="target", centering=centering)
    expected = [oracle.cir(frame[f].to_numpy(), frame["target"].to_numpy(), centering) for f in features]
    np.testing.assert_allclose(oracle.scores(explanation, features), expected, atol=1e-12)


def large_table(rows: int, seed: int = 0) -> pd.DataFrame:
    """One column of each kind that is hard for a sketch, moved by a common signal."""
    rng = np.random.default_rng(seed)
    signal = rng.standard_normal(rows)
    mixed = 0.5 * signal + rng.standard_normal(rows)
    frame = pd.DataFrame(
        {
            "normal": mixed,
            "lognormal": np.exp(mixed),
            "bimodal": np.where(signal > 0, 4.0, -4.0) + rng.standard_normal(rows),
            "integer": np.round(3 * mixed),
            "many_integers": np.round(1e5 * mixed),
            "binary": (mixed > 0.67).astype(float),
            "constant": np.full(rows, 0.1),
            "half_missing": np.where(rng.random(rows) < 0.5, np.nan, mixed),
            "zero_inflated": np.where(rng.random(rows) < 0.3, 0.0, np.abs(mixed)),
            "offset": 1e9 + mixed,
            "sorted": np.sort(mixed),
            "gap_at_q25": np.where(np.arange(rows) % 4 == 0, 0.0, 100.0) + rng.standard_normal(rows),
            "gap_at_q75": np.where(signal > np.quantile(signal, 0.75), 100.0, 0.0) + rng.standard_normal(rows),
            "heavy": mixed * np.exp(rng.standard_normal(rows)),
        }
    )
    return frame.assign(y=signal + 0.1 * rng.standard_normal(rows))


@pytest.mark.parametrize("centering", CENTERINGS)
def test_large_columns_of_every_kind_are_within_their_certified_bound(centering, tmp_path):
    frame = large_table(200_000)
    lake = oracle.write_lake(tmp_path / "lake", frame, 4, 20_000)
    explanation = explain(lake, output="y", centering=centering, budget="4MiB")
    table = explanation.of().set_index("feature")
    for feature in table.index:
        exact = oracle.cir(frame[feature].to_numpy(), frame["y"].to_numpy(), centering)
        error = abs(table.loc[feature, "cir"] - exact)
        assert error <= table.loc[feature, "center_bound"] + 1e-12, feature
        assert error <= 1e-4, feature
    assert table.loc["constant", "cir"] == 0.5
    assert table.loc["constant", "flag"] == "constant"
    assert table.loc["half_missing", "missing"] == frame["half_missing"].isna().sum()


def largest_errors(rows: int, seeds: int, centering: str, folder: Path, skewed: bool = False) -> dict[str, float]:
    """Largest error of each kind of column over some seeds; none is above its certified bound."""
    found: dict[str, float] = {}
    for seed in range(seeds):
        frame = large_table(rows, seed)
        frame["y"] = np.exp(1.5 * frame["y"]) if skewed else frame["y"]
        lake = oracle.write_lake(folder / str(seed), frame, 4, rows // 10)
        table = explain(lake, output="y", centering=centering, budget="4MiB").of().set_index("feature")
        for feature in table.index:
            error = abs(
                table.loc[feature, "cir"] - oracle.cir(frame[feature].to_numpy(), frame["y"].to_numpy(), centering)
            )
            assert error <= table.loc[feature, "center_bound"] + 1e-12, feature
            found[feature] = max(found.get(feature, 0.0), error)
    return found


def test_medians_are_within_1e_4_whatever_the_seed(tmp_path):
    """Their outputs are exact: an error of the output's centre would be in the score of every feature."""
    assert max(largest_errors(40_000, 10, "median", tmp_path).values()) <= 1e-4


@pytest.mark.parametrize("centering", ["midhinge", "median", "trimmed"])
def test_very_skewed_outputs_are_within_5e_4(centering, tmp_path):
    assert max(largest_errors(40_000, 3, centering, tmp_path, skewed=True).values()) <= 5e-4


@pytest.mark.slow
@pytest.mark.parametrize(("centering", "most"), [("midhinge", 1e-4), ("median", 1e-4), ("trimmed", 2e-4)])
def test_ten_seeds_of_large_columns_are_as_near_as_promised(centering, most, tmp_path):
    assert max(largest_errors(200_000, 10, centering, tmp_path).values()) <= most


def test_an_output_with_a_gap_at_its_quartile_is_exact(tmp_path):
    rng = np.random.default_rng(1)
    y = np.where(np.arange(200_000) % 4 == 0, 0.0, 100.0) + rng.standard_normal(200_000)
    frame = pd.DataFrame({"x": y + 30 * rng.standard_normal(200_000), "w": rng.integers(0, 3, 200_000), "y": y})
    lake = oracle.write_lake(tmp_path / "lake", frame, 3, 30_000)
    row = explain(lake, output="y", features=["x"], budget="1MiB").of().iloc[0]
    assert row["cir"] == pytest.approx(oracle.cir(frame["x"].to_numpy(), y), abs=1e-4)
    assert row["center_bound"] < 0.01
    weighted = explain(lake, output="y", features=["x"], weights="w").of().iloc[0]
    repeated = frame.loc[np.repeat(frame.index, frame["w"])]
    assert weighted["cir"] == pytest.approx(oracle.cir(repeated["x"].to_numpy(), repeated["y"].to_numpy()), abs=1e-4)


@pytest.mark.slow
def test_millions_of_rows_are_within_1e_4_and_the_certified_bound(tmp_path):
    frame = large_table(3_000_000, seed=5)
    lake = oracle.write_lake(tmp_path / "lake", frame, 6, 250_000)
    table = explain(lake, output="y").of().set_index("feature")
    for feature in table.index:
        error = abs(table.loc[feature, "cir"] - oracle.cir(frame[feature].to_numpy(), frame["y"].to_numpy()))
        assert error <= min(1e-4, table.loc[feature, "center_bound"] + 1e-12), feature


def test_several_outputs_are_the_outputs_one_by_one(synchronous):
    frame, features = table_of("iris")
    frame["other"] = frame["sepal_width_(cm)"] * -2
    both = explain(frame, output={"species": "target", "width": "other"}, features=features)
    assert both.outputs["output"].tolist() == ["species", "width"]
    for name, column in {"species": "target", "width": "other"}.items():
        alone = explain(frame, output=column, features=features)
        np.testing.assert_array_equal(oracle.scores(both, features, name), oracle.scores(alone, features))


def test_rows_without_an_output_are_dropped_and_counted(synchronous):
    frame, features = table_of("iris")
    broken = frame.copy()
    broken.loc[::10, "target"] = np.nan
    broken.loc[5, "target"] = np.inf
    explanation = explain(broken, output="target")
    assert explanation.facts.rows.without_output == 16
    kept = frame[np.isfinite(broken["target"])]
    expected = [oracle.cir(kept[f].to_numpy(), kept["target"].to_numpy()) for f in features]
    np.testing.assert_allclose(oracle.scores(explanation, features), expected, atol=1e-12)
    assert "16 rows without an output dropped" in str(explanation)


def test_one_missing_value_does_not_poison_a_column(synchronous):
    frame, features = table_of("diabetes")
    frame.loc[3, features[0]] = np.nan
    explanation = explain(frame, output="target")
    expected = [oracle.cir(frame[f].to_numpy(), frame["target"].to_numpy()) for f in features]
    np.testing.assert_allclose(oracle.scores(explanation, features), expected, atol=1e-12)


def test_a_constant_output_gives_one_half_everywhere(synchronous):
    frame, _ = table_of("iris")
    explanation = explain(frame.assign(target=0.1), output="target")
    assert set(explanation.features["cir"]) == {0.5}
    assert set(explanation.features["flag"]) == {"output constant"}


@pytest.mark.parametrize("offset", [0.0, 0.1, 1e9, -3.3e-5])
@pytest.mark.parametrize("centering", CENTERINGS)
def test_a_constant_column_is_exactly_one_half(offset, centering, synchronous):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"c": np.full(5000, offset), "x": rng.standard_normal(5000)})
    table = explain(frame.assign(y=frame["x"]), output="y", centering=centering).of().set_index("feature")
    assert table.loc["c", "cir"] == 0.5
    assert table.loc["c", "flag"] == "constant"
    assert table.loc["c", "stderr"] == 0


def test_a_column_without_a_value_is_one_half_and_flagged(synchronous):
    frame = pd.DataFrame({"gone": [np.nan] * 4, "x": [1.0, 2, 3, 4], "y": [1.0, 2, 3, 4]})
    table = explain(frame, output="y").of().set_index("feature")
    assert table.loc["gone", ["cir", "flag"]].tolist() == [0.5, "all missing"]


def test_no_row_left_is_an_error_that_says_why(synchronous):
    with pytest.raises(DataError, match=r"no row is left.*4 of those without a finite value in y"):
        explain(pd.DataFrame({"x": [1.0] * 4, "y": [np.nan] * 4}), output="y")


def test_a_column_that_is_too_large_to_square_is_flagged_and_the_others_are_scored(synchronous, caplog):
    frame = pd.DataFrame({"x": [1e200, -1e200, 3e200, 0.0], "z": [1.0, 3, 2, 4], "y": [1.0, 2, 3, 4]})
    found = explain(frame, output="y").features.set_index("feature")
    assert "out of range" in found.loc["x", "flag"]
    assert found.loc["z", "cir"] == explain(frame[["z", "y"]], output="y").features["cir"][0]
    assert "column 'x' times output 'y' is too large or too small to square" in caplog.text


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({}, UsageError, "neither is given"),
        ({"output": []}, UsageError, "output is empty"),
        ({"output": "targte"}, SchemaError, "did you mean 'target'"),
        ({"output": ["target", "target"]}, UsageError, "twice"),
        ({"output": "target", "centering": "midmean"}, UsageError, "one of midhinge"),
        ({"output": "target", "rank_by": "cri"}, UsageError, "did you mean 'cir'"),
        ({"output": "target", "fraction": 0.0}, UsageError, "above 0"),
        ({"output": "target", "fraction": 1.5}, UsageError, "at most 1"),
        ({"output": "target", "budget": "lots"}, UsageError, "not a number of bytes"),
        ({"output": "target", "groups": {"g": ["petal"]}}, UsageError, "group 'g' names 'petal'"),
        ({"output": "target", "groups": {"g": []}}, UsageError, "no members"),
        ({"output": "target", "groups": {"g": "petal"}}, UsageError, "is a string"),
        ({"output": "target", "weights": "target"}, UsageError, "twice"),
        ({"output": "target", "features": ["target"]}, UsageError, "both a feature and an output"),
    ],
)
def test_wrong_arguments_are_named(arguments, error, message, synchronous):
    with pytest.raises(error, match=message):
        explain(table_of("iris")[0], **arguments)


def test_something_that_is_no_lake_is_an_error():
    with pytest.raises(UsageError, match="not int"):
        explain(3, output="y")


def test_groups_are_the_sums_of_their_members_and_regrouping_reads_nothing(tmp_path):
    frame, features = table_of("wine")
    lake = oracle.write_lake(tmp_path / "lake", frame, 2)
    groups = {"first": features[:3], "overlap": features[2:6]}
    explanation = explain(lake, output="target", groups=groups)
    for file in lake.iterdir():
        file.unlink()
    again = explain(frame, output="target").regroup(groups)
    by_row_groups = ["lift_stderr", "p_chance"]  # a frame has none
    pd.testing.assert_frame_equal(*(each.groups.drop(columns=by_row_groups) for each in (again, explanation)))
    pd.testing.assert_frame_equal(explanation.regroup(groups).groups, explanation.groups)
    moves = {f: frame[f] - oracle.midhinge(frame[f].to_numpy()) for f in features}
    y = frame["target"] - oracle.midhinge(frame["target"].to_numpy())
    for row in explanation.groups.to_dict("records"):
        p = np.stack([moves[f] * y for f in groups[row["group"]]])
        assert row["cir"] == pytest.approx((1 + p.sum() / np.abs(p).sum()) / 2, abs=1e-12)
        assert row["size"] == len(groups[row["group"]])
        iqr = np.array([np.subtract(*np.quantile(frame[f], [0.75, 0.25])) for f in groups[row["group"]]])[:, None]
        assert row["cir_scaled"] == pytest.approx((1 + (p / iqr).sum() / np.abs(p / iqr).sum()) / 2, abs=1e-12)
        unsigned = np.abs(p.sum(axis=1)).sum() / np.abs(p).sum()
        assert row["strength_unsigned"] == pytest.approx(unsigned, abs=1e-12)


def test_scores_do_not_depend_on_slicing(tmp_path):
    frame = large_table(30_000)
    lake = oracle.write_lake(tmp_path / "lake", frame, 3, 4000)
    reference = explain(lake, output="y").of().set_index("feature")["cir"]
    for budget in ("1MiB", "2MiB", "16MiB"):
        found = explain(lake, output="y", budget=budget).of().set_index("feature")["cir"]
        assert np.abs(found - reference).max() < 2e-4


def test_a_column_too_large_for_the_budget_is_streamed_to_the_same_score(tmp_path):
    frame = large_table(300_000)[["normal", "half_missing", "binary", "y"]]
    lake = oracle.write_lake(tmp_path / "lake", frame, 1, 300_000)
    streamed = explain(lake, output="y", budget="1MiB", fraction=0.5)
    whole = explain(lake, output="y", budget="64MiB", fraction=0.5)
    assert streamed.facts.rows == whole.facts.rows
    merged = streamed.features.merge(whole.features, on="feature")
    assert np.abs(merged["cir_x"] - merged["cir_y"]).max() < 1e-4
    assert merged["n_x"].tolist() == merged["n_y"].tolist()


@pytest.mark.parametrize(("files", "budget"), list(product([1, 5], ["1MiB", "64MiB"])))
def test_a_sample_is_the_same_rows_however_the_run_is_cut(files, budget, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": np.arange(50_000.0), "y": rng.standard_normal(50_000)})
    lake = oracle.write_lake(tmp_path / "lake", frame, files, 5000)
    reference = explain(lake, output="y", fraction=0.2, seed=3)
    again = explain(lake, output="y", fraction=0.2, seed=3, budget=budget)
    assert reference.facts.rows == again.facts.rows
    assert 9_000 < again.facts.rows.used < 11_000
    assert again.features["cir"][0] == pytest.approx(reference.features["cir"][0], abs=1e-4)
    other = explain(lake, output="y", fraction=0.2, seed=4)
    assert other.features["cir"][0] != reference.features["cir"][0]


def test_partition_keys_are_columns(tmp_path, synchronous):
    rng = np.random.default_rng(0)
    frames = []
    for year in (2023, 2024):
        part = pd.DataFrame({"x": rng.standard_normal(50), "y": rng.standard_normal(50) + year})
        (tmp_path / "lake" / f"year={year}").mkdir(parents=True)
        pq.write_table(pa.Table.from_pandas(part), tmp_path / "lake" / f"year={year}" / "a.parquet")
        frames.append(part.assign(year=float(year)))
    frame = pd.concat(frames)
    explanation = explain(tmp_path / "lake", output="y")
    expected = [oracle.cir(frame[f].to_numpy(), frame["y"].to_numpy()) for f in ("x", "year")]
    np.testing.assert_allclose(oracle.scores(explanation, ["x", "year"]), expected, atol=1e-12)


def test_ranking_by_cir_puts_what_moves_against_the_output_last(synchronous):
    rng = np.random.default_rng(0)
    y = rng.standard_normal(500)
    frame = pd.DataFrame({"noise": rng.standard_normal(500), "against": -y, "with": y, "y": y})
    assert explain(frame, output="y").top(3)["feature"].tolist()[2] == "noise"
    assert explain(frame, output="y", rank_by="cir").top(3)["feature"].tolist() == ["with", "noise", "against"]

"""Runs on samples of rows and of whole row groups, intervals, and samples that grow until they are large enough."""

import json

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from oracle import write_lake

from excir_dask import explain
from excir_dask.cli import excir
from excir_dask.errors import DataError, UsageError
from excir_dask.lake.locate import locate
from excir_dask.lake.sample import Sample
from excir_dask.lake.snapshot import take_snapshot
from excir_dask.render.text.explanation import with_intervals


def table(rows: int = 6000, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    matrix = rng.standard_normal((rows, 12))
    output = matrix @ np.linspace(0.0, 2.0, 12) + rng.standard_normal(rows)
    return pd.DataFrame(matrix, columns=[f"x{i}" for i in range(12)]).assign(pred=output)


def test_row_groups_outside_the_sample_are_not_read(tmp_path):
    lake = write_lake(tmp_path / "lake", table(), 6, 100)
    everything = explain(lake, output="pred")
    part = explain(lake, output="pred", fraction=0.2, sampling="row-groups")
    assert part.facts.rows.sampled == part.facts.rows.used == 1200
    assert part.facts.rows.lake == 6000
    assert part.facts.rows.row_groups == 12
    assert part.provenance.bytes_read < 0.22 * everything.provenance.bytes_read


def test_bytes_read_are_those_of_the_chunks_of_the_columns_in_both_scans(tmp_path):
    lake = write_lake(tmp_path / "lake", table(), 3, 500)
    sizes = 0
    for path in lake.iterdir():
        metadata = pq.read_metadata(path)
        sizes += sum(
            metadata.row_group(g).column(c).total_compressed_size
            for g in range(metadata.num_row_groups)
            for c in range(metadata.num_columns)
            if metadata.row_group(g).column(c).path_in_schema in ("x0", "x5", "pred")
        )
    assert explain(lake, output="pred", features=["x0", "x5"]).provenance.bytes_read == 2 * sizes


@pytest.mark.parametrize("sampling", ["rows", "row-groups"])
def test_a_sample_does_not_depend_on_slices_or_threads(tmp_path, sampling):
    import dask

    lake = write_lake(tmp_path / "lake", table(), 6, 100)
    texts = set()
    for threads, budget in ((1, "1MiB"), (3, "1MiB")):
        with dask.config.set(num_workers=threads):
            texts.add(explain(lake, output="pred", fraction=0.3, sampling=sampling, budget=budget).to_json())
    assert len(texts) == 1
    rows = [
        explain(lake, output="pred", fraction=0.3, sampling=sampling, budget=budget).of()["n"].tolist()
        for budget in ("1MiB", "128MiB")
    ]
    assert rows[0] == rows[1]


@pytest.mark.cluster
def test_a_sample_of_row_groups_and_auto_are_the_same_on_a_cluster(tmp_path, two_workers):
    lake = write_lake(tmp_path / "lake", table(), 6, 100)
    options = [{"fraction": 0.3, "sampling": "row-groups"}, {"fraction": "auto", "k": 3}]
    here = [explain(lake, output="pred", **each).to_json() for each in options]
    assert [explain(lake, output="pred", scheduler=two_workers, **each).to_json() for each in options] == here


def test_a_frame_has_no_row_groups():
    with pytest.raises(UsageError, match="has no row groups"):
        explain(table(), output="pred", fraction=0.5, sampling="row-groups")


def test_wrong_words_are_named():
    with pytest.raises(UsageError, match="did you mean 'row-groups'"):
        explain(table(), output="pred", sampling="rowgroups")
    with pytest.raises(UsageError, match="or 'auto'"):
        explain(table(), output="pred", fraction="automatic")
    with pytest.raises(UsageError, match="target_jaccard is 2"):
        explain(table(), output="pred", fraction="auto", target_jaccard=2)


def coverage(frames: list[pd.DataFrame], fraction: float, draws: int, folder, sampling: str = "rows", **lake) -> float:
    """Share of the intervals of samples that hold the scores of all rows."""
    hits = []
    for number, frame in enumerate(frames):
        path = write_lake(folder / str(number), frame, **lake)
        truth = explain(path, output="pred").of().set_index("feature")["cir"]
        for seed in range(draws):
            sample = explain(path, output="pred", fraction=fraction, seed=seed, sampling=sampling).intervals()
            limits = sample.set_index("feature")
            hits += ((limits["low"] <= truth[limits.index]) & (truth[limits.index] <= limits["high"])).tolist()
    return float(np.mean(hits))


def kinds(rows: int) -> list[pd.DataFrame]:
    rng = np.random.default_rng(7)
    z, other = rng.standard_normal(rows), rng.standard_normal(rows)
    made = {
        "normal": z,
        "strong": z + 0.3 * other,
        "lognormal": np.exp(0.7 * z),
        "skewed alone": rng.exponential(size=rows),
        "binary": (z + other > 0.5) * 1.0,
        "counts": rng.poisson(5 + 2 * (z > 0)) * 1.0,
        "square": z**2,
        "uniform": rng.random(rows) + z / 2,
    }
    return [pd.DataFrame({**made, "pred": z + 0.8 * rng.standard_normal(rows)})]


@pytest.mark.slow
def test_intervals_hold_the_score_of_all_rows_as_often_as_they_say(tmp_path):
    found = coverage(kinds(12_000), 0.25, 500, tmp_path, files=3, row_group_size=1000)
    print(f"\ncoverage of 95% intervals, independent rows: {found:.3f} of 4,000")
    assert 0.93 <= found <= 0.97


def whole_numbers(rows: int) -> pd.DataFrame:
    """Few values, with steps at the quartiles, beside an output with a long tail."""
    rng = np.random.default_rng(11)
    z = rng.standard_normal(rows)
    made = {
        "month": rng.integers(1, 13, rows),
        "minute": 5 * rng.integers(0, 12, rows),
        "rating": np.clip(np.round(3 + z), 1, 5),
        "flag": (z + rng.standard_normal(rows) > 0.5) * 1,
    }
    return pd.DataFrame({**made, "pred": np.exp(z + rng.standard_normal(rows))})


def test_the_centre_of_whole_numbers_may_jump_and_its_error_says_so(tmp_path):
    path = write_lake(tmp_path, whole_numbers(40_000), files=3)
    found = explain(path, output="pred", fraction=0.25).of().set_index("feature")["center_jump"]
    assert (found[["month", "minute"]] > 0.01).all()
    assert (found[["rating", "flag"]] == 0).all()


@pytest.mark.slow
def test_intervals_hold_for_whole_numbers_with_steps_at_the_quartiles(tmp_path):
    found = coverage([whole_numbers(40_000)], 0.25, 250, tmp_path, files=3)
    print(f"\ncoverage of 95% intervals, whole numbers: {found:.3f} of 1,000")
    assert 0.93 <= found <= 0.985


def correlated(rows: int, groups: int) -> pd.DataFrame:
    """Every row group has shifts of its own: its rows resemble each other."""
    rng = np.random.default_rng(8)
    number = np.arange(rows) * groups // rows
    shift = rng.standard_normal((groups, 5))[number]
    matrix = rng.standard_normal((rows, 4)) + shift[:, :4]
    return pd.DataFrame(matrix, columns=list("abcd")).assign(pred=matrix.sum(axis=1) + shift[:, 4])


@pytest.mark.slow
@pytest.mark.parametrize("sampling", ["rows", "row-groups"])
def test_intervals_hold_where_rows_of_a_file_resemble_each_other(tmp_path, sampling):
    found = coverage([correlated(12_000, 120)], 0.3, 150, tmp_path, sampling, files=120)
    print(f"\ncoverage of 95% intervals, correlated rows, sampling {sampling}: {found:.3f} of 600")
    assert found >= 0.90


def test_the_spread_between_row_groups_decides_where_their_rows_resemble_each_other(tmp_path):
    alike = explain(write_lake(tmp_path / "a", correlated(6000, 60), 60), output="pred").of()
    assert (alike["stderr_by"] == "row groups").all()
    assert (alike["stderr"] > 2 * alike["stderr_rows"]).all()
    unlike = explain(write_lake(tmp_path / "b", table(), 60), output="pred").of()
    assert (unlike["stderr_by"] == "rows").mean() > 0.8


def test_all_rows_leave_nothing_to_be_unsure_of(tmp_path):
    found = explain(table(), output="pred")
    limits = found.intervals()
    np.testing.assert_array_equal(limits["low"], limits["cir"])
    sure = found.stability(4)
    assert (sure.jaccard, sure.probability) == (1.0, 1.0)
    assert sure.inside.sum() == 4


def test_a_larger_sample_is_surer(tmp_path):
    found = [explain(table(), output="pred", fraction=f).stability(4) for f in (0.05, 0.3, 0.9)]
    assert found[0].jaccard < found[1].jaccard < found[2].jaccard
    for each in found:
        np.testing.assert_allclose(each.inside.sum(), 4)


def test_auto_is_the_explanation_at_the_fraction_it_needed(tmp_path):
    rng = np.random.default_rng(1)
    rows = 40_000
    matrix = rng.standard_normal((rows, 10))
    output = matrix @ np.array([3, 2.5, 2, 0, 0, 0, 0, 0, 0, 0.0]) + rng.standard_normal(rows)
    frame = pd.DataFrame(matrix, columns=[f"x{i}" for i in range(10)]).assign(pred=output)
    lake = write_lake(tmp_path / "lake", frame, 8, 500)
    found = explain(lake, output="pred", fraction="auto", k=3)
    settings, auto = found.facts.settings, found.facts.auto
    assert settings.fraction < 0.3
    assert settings.sampling == "row-groups"
    assert auto.steps[-1].probability >= 0.95
    again = explain(lake, output="pred", fraction=settings.fraction, sampling=settings.sampling)
    pd.testing.assert_frame_equal(found.features, again.features)
    assert set(found.top(3)["feature"]) == set(explain(lake, output="pred").top(3)["feature"])


def test_auto_takes_all_rows_when_nothing_less_will_do(tmp_path):
    frame = table().drop(columns="pred").assign(pred=np.random.default_rng(5).standard_normal(6000))
    found = explain(write_lake(tmp_path / "lake", frame, 4, 100), output="pred", fraction="auto", k=4)
    assert found.facts.settings.fraction == 1.0
    assert found.facts.rows.used == 6000


def test_auto_shows_no_row_twice_to_a_model(tmp_path):
    from counting import Counting

    rng = np.random.default_rng(2)
    rows = 60_000
    matrix = rng.standard_normal((rows, 6))
    frame = pd.DataFrame(matrix, columns=list("abcdef"))
    lake = write_lake(tmp_path / "lake", frame, 4, 5000)
    counting = Counting(tmp_path / "log")
    found = explain(lake, model=counting, fraction="auto", k=2, budget="1MiB", confidence=0.999)
    assert len(found.facts.auto.steps) > 1
    assert counting.rows == found.facts.rows.sampled
    again = explain(lake, model=counting, fraction=found.facts.settings.fraction, budget="1MiB")
    pd.testing.assert_frame_equal(found.features, again.features)


def test_a_lake_whose_row_groups_differ_says_so(tmp_path):
    lake = write_lake(tmp_path / "lake", correlated(6000, 60), 60)
    text = str(explain(lake, output="pred", fraction=0.3, sampling="row-groups"))
    assert "row groups differ" in text


def rare(rows: int = 20_000) -> pd.DataFrame:
    rng = np.random.default_rng(9)
    frame = pd.DataFrame(rng.standard_normal((rows, 10)), columns=[f"x{i}" for i in range(10)])
    return frame.assign(pred=np.where(np.arange(rows) % 5000 == 17, 1.0 + frame["x0"], 0.0))


def test_an_output_that_does_not_vary_in_the_sample_makes_nothing_sure():
    found = explain(rare(), output="pred", fraction="auto", k=3)
    assert found.facts.settings.fraction == 1.0
    part = explain(rare(), output="pred", fraction=0.01)
    assert part.stability(3).probability < 0.5
    assert (part.intervals()["high"] - part.intervals()["low"] > 0.9).all()


def test_a_column_that_is_missing_in_the_sample_makes_nothing_sure():
    frame = table()
    for i in range(8):
        frame[f"sparse{i}"] = np.where(np.arange(6000) % 1500 == 100 + i, frame["pred"], np.nan)
    assert explain(frame, output="pred", fraction="auto", k=4).facts.settings.fraction == 1.0


def test_features_no_more_than_k_are_not_sure_by_themselves():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.standard_normal((20_000, 8)), columns=list("abcdefgh"))
    noise = frame.assign(pred=rng.standard_normal(20_000))
    assert explain(noise, output="pred", fraction="auto").facts.settings.fraction == 1.0


def test_intervals_hold_where_a_quartile_lies_between_two_values(tmp_path):
    rng = np.random.default_rng(4)
    x = (rng.random(8000) < 0.2513) * 1.0
    frame = pd.DataFrame({"x": x, "pred": x + rng.standard_normal(8000)})
    truth = explain(frame, output="pred").of()["cir"].iloc[0]
    held = []
    for seed in range(60):
        low, high = explain(frame, output="pred", fraction=0.25, seed=seed).intervals()[["low", "high"]].iloc[0]
        held.append(low <= truth <= high)
    assert np.mean(held) >= 0.9


def test_intervals_of_unanimous_scores_follow_their_level():
    frame = pd.DataFrame({"x": np.arange(4000.0), "pred": np.arange(4000.0)})
    part = explain(frame, output="pred", fraction=0.2)
    lows = [part.intervals(level)["low"].iloc[0] for level in (0.5, 0.95, 0.999)]
    assert 1.0 > lows[0] > lows[1] > lows[2] > 0.9


def test_wrong_questions_about_stability_are_refused():
    part = explain(table(), output="pred", fraction=0.3)
    for wrong in ({"k": 0}, {"target": 0.0}, {"fraction": 0.1}, {"fraction": 2.0}):
        with pytest.raises(UsageError):
            part.stability(**wrong)
    assert explain(table(), output="pred").stability(4, fraction=1.0).probability == 1.0


@pytest.mark.parametrize("place", ["frame", "files"])
def test_columns_that_vary_nowhere_do_not_stop_auto_from_ending_early(tmp_path, place):
    rng = np.random.default_rng(1)
    matrix = rng.standard_normal((40_000, 10))
    frame = pd.DataFrame(matrix, columns=[f"x{i}" for i in range(10)])
    frame["pred"] = matrix @ np.array([3, 2.5, 2, 0, 0, 0, 0, 0, 0, 0.0]) + rng.standard_normal(40_000)
    frame = frame.assign(always=7.5, never=np.nan)
    lake = frame if place == "frame" else write_lake(tmp_path / "lake", frame, 8, 500)
    found = explain(lake, output="pred", fraction="auto", k=3)
    assert found.facts.constant == ("always", "never")
    assert found.facts.settings.fraction < 0.3


def test_a_sample_shows_its_intervals_and_how_sure_its_top_is(tmp_path):
    part = explain(table(), output="pred", fraction=0.3)
    text = str(part)
    first = part.intervals().merge(part.top(1), on="feature").iloc[0]
    assert "95% interval" in text
    assert f"{first['low']:.4f} - {first['high']:.4f}" in text
    sure = part.stability(8, 0.9)
    assert f"an expected Jaccard index of {sure.jaccard:.3f}" in text
    assert f"with probability {sure.probability:.2f}" in text
    assert "95% interval" not in str(explain(table(), output="pred"))
    lake = write_lake(tmp_path / "lake", table(), 2)
    done = CliRunner().invoke(excir, ["explain", str(lake), "--output", "pred", "--fraction", "0.3", "--json"])
    found = json.loads(done.stdout)
    assert found["fraction"] == 0.3
    assert all(row["low"] < row["cir"] < row["high"] for row in found["top"]["pred"])


@pytest.fixture(scope="module")
def far_apart(tmp_path_factory):
    """Row groups of which one, outside small samples, has outputs 400 times as large as those of the others."""
    frame, folder = table(20_000), tmp_path_factory.mktemp("far")
    plain = take_snapshot(locate(write_lake(folder / "plain", frame, 10, 200)))
    inside = Sample(0.3, 0, "row-groups").row_groups(plain.files)
    rare = next(10 * i + g for i, groups in enumerate(inside) for g in range(10) if g not in groups)
    large = np.arange(20_000) // 200 == rare
    return write_lake(folder / "lake", frame.assign(pred=np.where(large, 400.0 * frame["x0"], frame["pred"])), 10, 200)


def test_auto_takes_single_rows_where_a_row_group_is_unlike_the_others(far_apart):
    assert explain(far_apart, output="pred", fraction="auto", k=4).facts.settings.sampling == "rows"


def test_row_groups_unlike_the_sample_are_told(far_apart):
    part = explain(far_apart, output="pred", fraction=0.3, sampling="row-groups")
    assert part.facts.out_of_range == ("pred",)
    assert "values outside the sampled row groups reach far beyond those inside (pred)" in str(part)
    assert explain(far_apart, output="x1", fraction=0.3, sampling="row-groups").facts.out_of_range == ()


def test_auto_by_row_groups_goes_on_until_none_is_unlike_the_sample(far_apart):
    found = explain(far_apart, output="pred", fraction="auto", k=4, sampling="row-groups")
    assert found.facts.out_of_range == ()
    assert found.facts.auto.steps[0].probability == 0.0


def test_auto_goes_on_where_the_first_sample_has_no_output(tmp_path):
    frame = table(12_000)
    frame.loc[frame.index >= 200, "pred"] = np.nan
    lake = write_lake(tmp_path / "lake", frame, 6, 200)
    for seed in range(3):
        found = explain(lake, output="pred", fraction="auto", sampling="row-groups", seed=seed)
        assert found.facts.rows.used == 200
    frame["pred"] = np.nan
    with pytest.raises(DataError, match="no row is left"):
        explain(write_lake(tmp_path / "none", frame, 6, 200), output="pred", fraction="auto")


def test_auto_draws_from_a_dask_frame_too():
    import dask.dataframe as dd

    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.standard_normal((40_000, 6)), columns=list("abcdef"))
    frame["pred"] = 3 * frame["a"] - 2 * frame["b"] + rng.standard_normal(40_000)
    found = explain(dd.from_pandas(frame, npartitions=4), output="pred", fraction="auto", k=2)
    assert found.facts.settings.fraction == 0.05
    assert ", 1 step)" in str(found)


def test_auto_says_of_a_small_lake_that_it_is_one():
    assert "too few to draw a sample from" in str(explain(table(1500), output="pred", fraction="auto"))


def test_auto_by_row_groups_is_refused_for_a_frame():
    with pytest.raises(UsageError, match="has no row groups"):
        explain(table(), output="pred", fraction="auto", sampling="row-groups")


def test_a_target_without_auto_is_refused(tmp_path):
    lake = write_lake(tmp_path / "lake", table(), 2)
    command = ["explain", str(lake), "--output", "pred", "--fraction", "0.3", "--k", "3"]
    done = CliRunner().invoke(excir, command)
    assert (done.exit_code, "--k applies to --fraction auto" in done.stderr) == (2, True)


def test_the_chance_of_the_top_is_beside_each_feature(tmp_path):
    part = explain(table(), output="pred", fraction=0.1)
    shown = with_intervals(part, "pred")
    np.testing.assert_allclose(shown["p_top"].sum(), part.stability(8).k)
    assert shown["p_top"].iloc[0] > 0.99
    assert f"{shown['p_top'].iloc[6]:.0%}" in str(part)

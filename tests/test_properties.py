"""The paper's properties, through explain()."""

from dataclasses import replace

import numpy as np
import oracle
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from one_pass import refer, watch

from excir_dask import explain
from excir_dask.kernels.centers import CENTERINGS
from excir_dask.kernels.recenter import recentre
from excir_dask.kernels.scores import cir

pytestmark = pytest.mark.usefixtures("synchronous")
seeds = st.integers(0, 2**32 - 1)
relaxed = settings(max_examples=25)


def sample(seed: int, rows: int = 200) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rows, 3))
    y = x @ rng.standard_normal(3) + rng.standard_normal(rows)
    return pd.DataFrame({"a": x[:, 0], "b": np.exp(x[:, 1]), "c": np.round(2 * x[:, 2]), "y": y})


def scores(frame: pd.DataFrame, **options) -> np.ndarray:
    return oracle.scores(explain(frame, output="y", **options), ["a", "b", "c"])


@given(seed=seeds, shift=st.floats(-100, 100), scale=st.floats(0.01, 100))
@relaxed
def test_shift_and_positive_scale_change_nothing(seed, shift, scale):
    frame = sample(seed)
    moved = frame.assign(a=frame["a"] * scale + shift, b=frame["b"] + shift, y=frame["y"] * scale - shift)
    np.testing.assert_allclose(scores(moved), scores(frame), atol=1e-9)


@given(seed=seeds)
@relaxed
def test_turning_a_feature_or_the_output_round_mirrors_the_score(seed):
    frame = sample(seed)
    before = scores(frame)
    np.testing.assert_allclose(scores(frame.assign(y=-frame["y"])), 1 - before, atol=1e-12)
    np.testing.assert_allclose(scores(frame.assign(a=-frame["a"]))[0], 1 - before[0], atol=1e-12)


@given(seed=seeds, row=st.integers(0, 199), extra=st.floats(0, 50))
@relaxed
def test_more_aligned_movement_never_lowers_the_score_at_fixed_centres(seed, row, extra):
    frame = sample(seed)
    x, y = frame["a"].to_numpy().copy(), frame["y"].to_numpy()
    m_x, m_y = oracle.midhinge(x), oracle.midhinge(y)

    def at_fixed_centres(column: np.ndarray) -> float:
        references = replace(refer([x]), center=np.array([m_x])), replace(refer([y]), center=np.array([m_y]))
        sums = recentre(*watch([column], y[None], references), references, (np.array([m_x]), np.array([m_y])))
        return float(cir(sums.numerator, sums.denominator)[0, 0])

    before = at_fixed_centres(x)
    stronger = x.copy()
    stronger[row] += extra * np.sign((x[row] - m_x) or 1.0)
    after = at_fixed_centres(stronger)
    aligned = (stronger[row] - m_x) * (y[row] - m_y) >= 0
    assert after >= before - 1e-12 if aligned else after <= before + 1e-12


@given(seed=seeds)
@relaxed
def test_whole_weights_are_repeated_rows(seed):
    frame = sample(seed, 80)
    weights = np.random.default_rng(seed).integers(0, 4, len(frame))
    weights[0] = 2
    weighted = scores(frame.assign(w=weights), weights="w")
    repeated = scores(frame.loc[np.repeat(frame.index, weights)].reset_index(drop=True))
    np.testing.assert_allclose(weighted, repeated, atol=1e-12)


@pytest.mark.parametrize("centering", CENTERINGS)
def test_whole_weights_are_repeated_rows_in_large_columns_too(centering):
    frame = sample(7, 30_000)
    weights = np.random.default_rng(1).integers(0, 4, len(frame))
    repeated = frame.loc[np.repeat(frame.index, weights)].reset_index(drop=True)
    expected = [oracle.cir(repeated[f].to_numpy(), repeated["y"].to_numpy(), centering) for f in ("a", "b", "c")]
    explanation = explain(frame.assign(w=weights), output="y", weights="w", centering=centering)
    table = explanation.of().set_index("feature").loc[["a", "b", "c"]]
    error = np.abs(table["cir"] - expected)
    assert (error <= table["center_bound"] + 1e-12).all()
    assert error.max() < 2e-4
    assert explanation.facts.rows.without_weight == (weights == 0).sum()


def test_scaling_fractional_weights_changes_nothing():
    frame = sample(3, 5000)
    weights = np.random.default_rng(1).random(5000)
    one = scores(frame.assign(w=weights), weights="w")
    np.testing.assert_allclose(scores(frame.assign(w=weights / 1e4), weights="w"), one, atol=1e-6)


@pytest.mark.parametrize(("r", "expected"), [(0.3, 0.7254), (0.5, 0.8482), (0.8, 0.9683), (0.95, 0.9965)])
def test_normal_data_have_the_closed_form(r, expected):
    rng = np.random.default_rng(11)
    x, e = rng.standard_normal((2, 400_000))
    row = explain(pd.DataFrame({"x": x, "y": r * x + np.sqrt(1 - r * r) * e}), output="y").of().iloc[0]
    closed = (1 + r / ((2 / np.pi) * (np.sqrt(1 - r * r) + r * np.arcsin(r)))) / 2
    assert closed == pytest.approx(expected, abs=5e-5)
    assert row["cir"] == pytest.approx(closed, abs=5 * row["stderr"])


def test_the_standard_error_is_the_spread_over_samples():
    rng = np.random.default_rng(2)
    found, errors = [], []
    for _ in range(10):
        x, e = rng.standard_normal((2, 1500, 30))  # thirty samples side by side
        columns = {f"x{j}": x[:, j] for j in range(30)} | {f"y{j}": 0.4 * x[:, j] + e[:, j] for j in range(30)}
        run = explain(pd.DataFrame(columns), output=[f"y{j}" for j in range(30)], features="x*").features
        own = run[run["output"].str[1:] == run["feature"].str[1:]]
        found.extend(own["cir"])
        errors.extend(own["stderr"])
    assert len(found) == 300
    assert np.std(found) == pytest.approx(np.mean(errors), rel=0.12)


def test_independent_normals_spread_as_the_closed_form_says():
    rng = np.random.default_rng(5)
    n = 20_000
    frame = pd.DataFrame(rng.standard_normal((n, 60)), columns=[f"x{j}" for j in range(60)])
    table = explain(frame.assign(y=rng.standard_normal(n)), output="y").features
    assert table["cir"].std() == pytest.approx(np.pi / 4 / np.sqrt(n), rel=0.25)


def test_an_even_function_has_no_monotone_co_movement():
    x = np.linspace(-1, 1, 1001)
    assert explain(pd.DataFrame({"x": x, "y": x**2}), output="y").top(1)["cir"][0] == pytest.approx(0.5, abs=1e-12)


def test_a_score_carried_by_one_row_is_flagged_as_low_support():
    rng = np.random.default_rng(0)
    x = rng.standard_normal(1000)
    y = rng.standard_normal(1000)
    x[0] = y[0] = 1e6
    row = explain(pd.DataFrame({"x": x, "y": y}), output="y").of().iloc[0]
    assert row["cir"] > 0.999
    assert row["n_eff"] < 2
    assert "low support" in row["flag"]


@pytest.mark.parametrize("weight", [1e12, 1e15, 2.0**62])
def test_weights_of_any_size_that_are_all_equal_are_no_weights(weight):
    frame = sample(1, 1000)
    np.testing.assert_allclose(scores(frame.assign(w=weight), weights="w"), scores(frame), atol=1e-3)


@pytest.mark.parametrize("scale", [1e-70, 1e70])
def test_extreme_scales_change_neither_scores_nor_errors(scale):
    frame = sample(2, 1000)
    small = explain(frame, output="y").features
    large = explain(frame.assign(a=frame["a"] * scale), output="y").features
    np.testing.assert_allclose(large["cir"], small["cir"], atol=1e-12)
    np.testing.assert_allclose(large["stderr"], small["stderr"], rtol=1e-9)
    np.testing.assert_allclose(large["n_eff"], small["n_eff"], rtol=1e-9)

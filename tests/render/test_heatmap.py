"""Maps of features that form a grid: panels, one symmetric scale, every pixel in its place."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from excir_dask import Explanation, explain
from excir_dask.errors import UsageError

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

from excir_dask.render.plots.heatmap import natural  # noqa: E402

LABEL = "cir (0.5: no aligned co-movement)"


@pytest.fixture(scope="module")
def digits() -> Explanation:
    """Ten margins of a model of handwritten digits."""
    from sklearn.datasets import load_digits
    from xgboost import XGBClassifier

    X, label = load_digits(return_X_y=True)
    model = XGBClassifier(n_estimators=10, max_depth=3, n_jobs=1).fit(X, label)
    margins = model.predict(X, output_margin=True)
    frame = pd.DataFrame(X, columns=[f"pixel_{place}" for place in range(64)])
    frame = frame.join(pd.DataFrame(margins, columns=[f"margin_{digit}" for digit in range(10)]))
    return explain(frame, output={str(digit): f"margin_{digit}" for digit in range(10)})


@pytest.fixture(scope="module")
def grid() -> Explanation:
    """Six features of which each one's place is known by its score."""
    rng = np.random.default_rng(0)
    y = rng.standard_normal(400)
    noise = rng.standard_normal((400, 12))
    frame = pd.DataFrame({f"px[{j}]": (j - 5) * y + 3 * noise[:, j] for j in range(12)})
    return explain(frame.assign(**{"px[3]": 1.0, "px[4]": np.nan, "$y$": y, "still": 7.0}), output=["$y$", "still"])


def panels(figure: Figure) -> list[Axes]:
    return [ax for ax in figure.axes if ax.images and ax.get_visible()]


def shown(ax: Axes) -> np.ndarray:
    return np.ma.filled(ax.images[0].get_array(), np.nan)


def test_there_is_a_panel_for_each_digit_and_one_colour_bar(digits: Explanation) -> None:
    figure = digits.heatmap()
    assert [ax.get_title() for ax in panels(figure)] == [str(digit) for digit in range(10)]
    assert [ax.get_ylabel() for ax in figure.axes if ax.get_ylabel()] == [LABEL]
    flat = digits.heatmap((1, 64), outputs="0")
    assert [ax.get_xlabel() for ax in flat.axes if ax.get_xlabel()] == [LABEL]
    assert len(figure.axes) == 11


def test_one_scale_is_symmetric_about_one_half_and_reaches_the_largest_score(digits: Explanation) -> None:
    limits = {ax.images[0].get_clim() for ax in panels(digits.heatmap())}
    assert len(limits) == 1
    ((low, high),) = limits
    assert 0.5 - low == pytest.approx(high - 0.5)
    assert high - 0.5 == pytest.approx((digits.features["cir"] - 0.5).abs().max())


def test_every_pixel_is_at_its_position_on_every_panel(digits: Explanation) -> None:
    for output, ax in zip(digits.outputs["output"], panels(digits.heatmap()), strict=True):
        table = digits.of(output).set_index("feature")
        for row, column in np.ndindex(8, 8):
            score = table.loc[f"pixel_{8 * row + column}"]
            if score["flag"] == "constant":
                assert np.isnan(shown(ax)[row, column])
            else:
                assert shown(ax)[row, column] == score["cir"]


def test_the_middle_pixel_of_a_zero_moves_against_it(digits: Explanation) -> None:
    zero = shown(panels(digits.heatmap(outputs="0"))[0])
    assert zero[3:5, 3:5].max() < 0.4  # the hole
    assert zero[3:5, [2, 5]].max() > 0.6  # its rim


def test_constant_features_are_hatched(grid: Explanation) -> None:
    varies, still = panels(grid.heatmap((3, 4)))
    assert np.argwhere(np.isnan(shown(varies))).tolist() == [[0, 3], [1, 0]]
    assert [(patch.get_x(), patch.get_y(), patch.get_hatch()) for patch in varies.patches] == [
        (2.5, -0.5, "////"),
        (-0.5, 0.5, "////"),
    ]
    assert np.isnan(shown(still)).all()


def test_scores_with_low_support_have_a_dot(digits: Explanation, grid: Explanation) -> None:
    figure = digits.heatmap()
    table = digits.of("0")
    weak = {
        int(name.removeprefix("pixel_")) for name in table.loc[table["flag"].str.contains("low support"), "feature"]
    }
    dots = np.asarray(panels(figure)[0].collections[0].get_offsets())
    assert weak
    assert {int(8 * row + column) for column, row in dots} == weak
    assert "dot: low support" in figure.get_suptitle()
    assert "dot" not in grid.heatmap((3, 4)).get_suptitle()


def test_features_can_be_given_row_by_row(grid: Explanation) -> None:
    cir = grid.of("$y$").set_index("feature")["cir"]
    order = ["px[11]", "px[0]", "px[2]", "px[10]"]
    (ax,) = panels(grid.heatmap((2, 2), outputs=["$y$"], features=order))
    assert shown(ax).ravel().tolist() == cir[order].tolist()


def test_names_are_sorted_by_their_numbers(grid: Explanation) -> None:
    names = ["pixel_10", "pixel_2", "b", "a[3][10]", "a[3][9]", "a", "7", "x1y", "x01"]
    assert sorted(names, key=natural) == ["7", "a", "a[3][9]", "a[3][10]", "b", "pixel_2", "pixel_10", "x01", "x1y"]
    cir = grid.of("$y$").set_index("feature")["cir"]
    (ax,) = panels(grid.heatmap((12, 1), outputs="$y$"))
    assert shown(ax)[[1, 2, 10, 11], 0].tolist() == [cir[f"px[{j}]"] for j in (1, 2, 10, 11)]


@pytest.mark.parametrize("name", ["map.png", "map.svg", "map.PDF"])
def test_the_suffix_decides_the_format_of_a_picture(grid: Explanation, tmp_path: Path, name: str) -> None:
    grid.heatmap((3, 4), path=tmp_path / name)
    start = (tmp_path / name).read_bytes()[:200]
    assert {"png": b"PNG", "svg": b"svg", "pdf": b"PDF"}[name[-3:].lower()] in start


def test_no_figure_stays_open(grid: Explanation) -> None:
    before = plt.get_fignums()
    assert isinstance(grid.heatmap((3, 4)), Figure)
    assert plt.get_fignums() == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "a grid of 8 x 8 has 64 cells, but there are 12 features; give another shape"),
        ({"shape": (0, 3)}, "shape is (0, 3)"),
        ({"shape": (1, 2), "features": ["px[1]", "px[1]"]}, "2 features, 1 of them twice"),
        ({"shape": (1, 2), "features": ["px[1]", "px[12]"]}, "'px[12]' is not an explained feature; did you mean"),
        ({"shape": (3, 4), "outputs": "z"}, "there is no output 'z'"),
        ({"shape": (3, 4), "outputs": []}, "outputs is empty"),
        ({"shape": (3, 4), "path": "map.txt"}, "map.txt is not the name of a picture; end it in .png, .svg or .pdf"),
    ],
)
def test_wrong_arguments_are_named(grid: Explanation, arguments: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        grid.heatmap(**arguments)

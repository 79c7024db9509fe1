"""Plots of an explanation: bars, order, colours, limits, names."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
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
from matplotlib.colors import to_hex  # noqa: E402

from excir_dask.render.plots import ranking as plots  # noqa: E402
from excir_dask.render.plots import readme_picture  # noqa: E402


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def explanation() -> Explanation:
    random = np.random.default_rng(0)
    y = random.standard_normal(2000)
    frame = pd.DataFrame(
        {
            "with": y + 0.3 * random.standard_normal(2000),
            "against": -y + 0.6 * random.standard_normal(2000),
            "weak": 0.3 * y + random.standard_normal(2000),
            "$none$": random.standard_normal(2000),
            "constant": np.ones(2000),
            "y": y,
            "other": random.standard_normal(2000),
        }
    )
    groups = {"pair": ["with", "against"], "rest": ["weak", "$none$", "constant"]}
    return explain(frame, output=["y", "other"], groups=groups)


def names(ax: Axes) -> list[str]:
    """Names from top to bottom."""
    labels = sorted(zip(ax.get_yticks(), ax.get_yticklabels(), strict=True), key=lambda pair: pair[0])
    found = [label.get_text() for _, label in labels]
    return found if ax.yaxis_inverted() else found[::-1]


def bars(ax: Axes) -> list[matplotlib.patches.Rectangle]:
    return sorted(ax.patches, key=lambda bar: bar.get_y(), reverse=not ax.yaxis_inverted())


def test_bars_reach_from_one_half_to_the_score_best_on_top(explanation: Explanation) -> None:
    ax = explanation.plot()
    table = explanation.of("y")
    assert names(ax) == list(table["feature"])
    assert names(ax)[:3] == ["with", "against", "weak"]
    assert [bar.get_x() for bar in bars(ax)] == [0.5] * 5
    assert [bar.get_x() + bar.get_width() for bar in bars(ax)] == pytest.approx(list(table["cir"]))


def test_only_k_features_are_shown(explanation: Explanation) -> None:
    ax = plots.ranking(explanation, k=2)
    assert len(bars(ax)) == 2
    assert names(ax) == ["with", "against"]


def test_colour_shows_direction(explanation: Explanation) -> None:
    shown = dict(zip(explanation.of()["feature"], bars(explanation.plot()), strict=True))
    colours = {name: to_hex(bar.get_facecolor()) for name, bar in shown.items()}
    assert colours["with"] == colours["weak"] == plots.COLOURS[1]
    assert colours["against"] == plots.COLOURS[-1]
    assert colours["constant"] == plots.COLOURS[0]


def test_whiskers_are_95_percent_intervals(explanation: Explanation) -> None:
    ax = explanation.plot()
    table = explanation.of("y")
    (whiskers,) = ax.collections
    segments = np.array([[segment[0][0], segment[1][0]] for segment in whiskers.get_segments()])
    assert segments[:, 0] == pytest.approx((table["cir"] - 1.96 * table["stderr"]).to_numpy())
    assert segments[:, 1] == pytest.approx((table["cir"] + 1.96 * table["stderr"]).to_numpy())


def test_both_sides_have_one_scale_that_holds_every_bar(explanation: Explanation) -> None:
    strong, weak = explanation.plot(output="y"), explanation.plot(output="other")
    assert strong.get_xlim() == (0.0, 1.0)
    low, high = weak.get_xlim()
    assert 0.5 - low == pytest.approx(high - 0.5)
    assert high < 0.7
    table = explanation.of("other")
    assert ((table["cir"] - 0.5).abs() + 1.96 * table["stderr"]).max() <= high - 0.5


def test_one_half_is_labelled(explanation: Explanation) -> None:
    ax = explanation.plot()
    assert ax.get_xlabel() == "no co-movement either way"
    assert "0.5" in [label.get_text() for label in ax.get_xticklabels()]
    assert any(list(line.get_xdata()) == [0.5, 0.5] for line in ax.get_lines())


def test_scores_are_written_beside_the_bars(explanation: Explanation) -> None:
    words = [text.get_text() for text in explanation.plot().texts]
    assert all(f"{cir:.3f}" in words for cir in explanation.of()["cir"])


def test_dollar_signs_in_names_are_not_formulas(explanation: Explanation) -> None:
    ax = explanation.plot()
    ax.get_figure(root=True).canvas.draw()
    assert not any(label.get_parse_math() for label in ax.get_yticklabels())


def test_given_axes_are_used(explanation: Explanation) -> None:
    _, (left, right) = plt.subplots(1, 2)
    assert explanation.plot(ax=left) is left
    assert plots.groups(explanation, ax=right) is right
    assert len(plt.get_fignums()) == 1


def test_groups_have_a_bar_each_and_a_dot_per_member(explanation: Explanation) -> None:
    ax = plots.groups(explanation)
    table = explanation.groups.query("output == 'y'")
    assert names(ax) == list(table["group"])
    assert [bar.get_x() + bar.get_width() for bar in bars(ax)] == pytest.approx(list(table["cir"]))
    cir = explanation.of("y").set_index("feature")["cir"]
    dots = [np.asarray(row.get_offsets())[:, 0] for row in ax.collections]
    assert [list(row) for row in dots] == [pytest.approx(list(cir[members])) for members in table["members"]]
    words = [text.get_text() for text in ax.texts]
    assert {"with", "against"} <= set(words)


def test_group_limits_hold_every_member(explanation: Explanation) -> None:
    regrouped = explanation.regroup({"all": ["with", "against", "$none$"]})
    low, high = plots.groups(regrouped).get_xlim()
    assert low <= explanation.of()["cir"].min()
    assert high >= explanation.of()["cir"].max()


def test_plotting_groups_without_any_says_what_to_do(explanation: Explanation) -> None:
    with pytest.raises(UsageError, match="regroup"):
        plots.groups(explanation.regroup({}))


def test_wrong_arguments_are_named(explanation: Explanation) -> None:
    with pytest.raises(UsageError, match="k is 0"):
        explanation.plot(k=0)
    with pytest.raises(UsageError, match="no output 'z'"):
        plots.groups(explanation, output="z")


def test_missing_matplotlib_says_what_to_install(explanation: Explanation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(UsageError, match=r"pip install 'excir-dask\[plot\]'"):
        explanation.plot()


def test_matplotlib_is_imported_only_on_use() -> None:
    code = "import sys, excir_dask.render.plots.ranking; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2]).returncode == 0


def test_picture_is_the_same_byte_for_byte(explanation: Explanation, tmp_path: Path) -> None:
    saved = explanation.save(tmp_path / "explanation")
    readme_picture.main([str(saved), str(tmp_path / "one.svg")])
    readme_picture.draw(saved, tmp_path / "two.svg")
    content = (tmp_path / "one.svg").read_bytes()
    assert content == (tmp_path / "two.svg").read_bytes()
    assert b"<svg" in content
    assert b"dc:date" not in content
    assert len(content) < 100_000


def test_picture_needs_two_arguments() -> None:
    with pytest.raises(UsageError, match="usage:"):
        readme_picture.main([])


@pytest.mark.parametrize(("name", "output"), [("x", "y"), ("x", "two"), ("kind", "y"), ("same", "y"), ("none", "y")])
def test_a_profile_is_drawn_for_every_kind_of_column(name, output):
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    frame = pd.DataFrame({"x": x, "kind": rng.choice(["$a$", "b"], 300), "same": 1.0, "none": np.nan, "y": x**2})
    found = explain(frame.assign(two=x > 0), output=["y", "two"], categoricals="indicators")
    ax = found.plot_profile(name, output)
    ax.figure.canvas.draw()
    profile = found.profile(name, output)
    assert [label.get_text() for label in ax.get_xticklabels()] == profile.table["cell"].tolist()
    drawn = ax.lines[0].get_ydata()
    assert np.array_equal(drawn, profile.table["upper" if output == "two" else "q50"])

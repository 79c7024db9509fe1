"""Plots of a sweep."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from excir_dask import Sweep, sweep
from excir_dask.errors import UsageError
from excir_dask.sweep.summary import HIGH, LOW

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402

from excir_dask.render.plots import sweep as transfer  # noqa: E402


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def found() -> Sweep:
    X = np.random.default_rng(0).standard_normal((1500, 12))
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(12)]).assign(y=X @ np.linspace(1, 0, 12))
    made = sweep(frame, output="y", fractions=[0.1, 0.3, 0.6], seeds=3, k=4)
    times = {0.1: 1.0, 0.3: 2.0, 0.6: 8.0, 1.0: 10.0}
    means = {0.1: 0.5, 0.3: 0.9, 0.6: 0.8, 1.0: 1.0}
    fractions = made.summary["fraction"]
    summary = made.summary.assign(seconds=fractions.map(times), jaccard_mean=fractions.map(means))
    return Sweep(made.runs, summary, 0.3, (0.1, 0.3, 1.0), 0.3, made.settings)


def test_runtime_has_a_labelled_point_per_fraction_and_the_front(found: Sweep) -> None:
    ax = transfer.runtime(found)
    words = [text.get_text() for text in ax.texts]
    assert {"10%", "30%", "60%", "100%"} <= set(words)
    front = next(line for line in ax.lines if line.get_label() == "Pareto front")
    assert list(front.get_xdata()) == [1.0, 2.0, 10.0]
    ring = next(points for points in ax.collections if points.get_label() == "knee")
    assert ring.get_offsets().tolist() == [[2.0, 0.9]]


def test_the_front_follows_the_measure_asked_for(found: Sweep) -> None:
    ax = transfer.runtime(found, "score_shift")
    front = next(line for line in ax.lines if line.get_label() == "Pareto front")
    assert list(front.get_ydata()) == sorted(front.get_ydata(), reverse=True)
    assert front.get_ydata()[-1] == 0.0
    assert ax.get_ylabel() == "largest score shift"


def test_names_of_points_do_not_collide(found: Sweep) -> None:
    close = Sweep(found.runs, found.summary.assign(seconds=1.0, jaccard_mean=0.9), None, (0.1,), None, found.settings)
    ax = transfer.runtime(close)
    figure = ax.get_figure(root=True)
    figure.canvas.draw()
    boxes = [text.get_window_extent() for text in ax.texts if text.get_text().endswith("%")]
    assert len(boxes) == 4
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


def test_agreement_has_mean_band_target_and_chance(found: Sweep) -> None:
    ax = transfer.agreement(found)
    mean = next(line for line in ax.lines if line.get_label() == "mean")
    assert list(mean.get_xdata()) == [0.1, 0.3, 0.6, 1.0]
    words = " ".join(text.get_text() for text in ax.texts)
    assert "target 0.9" in words
    assert f"chance {found.summary['jaccard_chance'].iloc[0]:.3g}" in words
    (band,) = ax.collections
    heights = np.asarray(band.get_paths()[0].vertices)[:, 1]
    assert heights.min() == pytest.approx(found.runs["jaccard"].min())
    assert ax.get_legend() is not None
    assert "chosen: 30%" in [text.get_text() for text in ax.get_legend().get_texts()]


def test_metrics_has_a_cell_per_measure_and_fraction(found: Sweep) -> None:
    ax = transfer.metrics(found)
    (image,) = ax.images
    assert image.get_array().shape == (len(HIGH) + len(LOW), 4)
    assert np.asarray(image.get_array())[:, -1].tolist() == pytest.approx([1.0] * (len(HIGH) + len(LOW)))
    assert len([text for text in ax.texts if text.get_text()]) >= image.get_array().size


def test_the_picture_is_saved_and_closed_in_pyplot(found: Sweep, tmp_path: Path) -> None:
    figure = found.plot(tmp_path / "sweep.png")
    assert len(figure.axes) == 3
    assert (tmp_path / "sweep.png").stat().st_size > 10_000
    assert plt.get_fignums() == []
    assert "sweep.png" in {path.name for path in found.save(tmp_path / "out").iterdir()}


def test_wrong_arguments_are_named(found: Sweep) -> None:
    with pytest.raises(UsageError, match="did you mean 'kendall'"):
        transfer.runtime(found, "kendal")
    with pytest.raises(UsageError, match="not the name of a picture"):
        found.plot("sweep.txt")


def test_names_of_small_fractions_do_not_collide(found: Sweep) -> None:
    small = {0.1: 0.001, 0.3: 0.005, 0.6: 0.05, 1.0: 1.0}
    tables = [table.assign(fraction=table["fraction"].map(small)) for table in (found.runs, found.summary)]
    ax = transfer.agreement(Sweep(*tables, None, (1.0,), None, found.settings))
    ax.get_figure(root=True).canvas.draw()
    boxes = [label.get_window_extent() for label in ax.get_xticklabels()]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["0.1%", "0.5%", "5%", "100%"]
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])

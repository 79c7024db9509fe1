"""What an explanation and a plan say beside their numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from oracle import write_lake

from excir_dask import explain
from excir_dask.pipeline.options import ExplainOptions
from excir_dask.pipeline.preview import preview
from excir_dask.render.text.explanation import headline
from excir_dask.render.text.notes import notes
from excir_dask.render.text.preview import text
from excir_dask.results.metadata import AutoSampling, AutoStep


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    found = pd.DataFrame(rng.standard_normal((600, 3)), columns=["a", "b", "pred"])
    return found.assign(**{f"whole_{i}": rng.integers(0, 9, 600) for i in range(12)})


def test_headline_and_note_give_the_same_share_of_whole_row_groups(frame, tmp_path):
    lake = write_lake(tmp_path / "lake", frame, 6, 100)
    found = explain(lake, output="pred", fraction=0.2, sampling="row-groups")
    share = "16.67%"
    assert f"({share} sample of 600)" in headline(found)
    assert any(f"this is a sample of {share} of the rows" in note for note in notes(found))


def test_groups_that_were_looked_for_and_not_found_have_a_note(frame):
    assert any("no groups were found" in note for note in notes(explain(frame, output="pred", group_correlated=0.9)))
    assert not any("no groups" in note for note in notes(explain(frame, output="pred")))


def test_all_rows_are_explained_by_what_was_expected_of_smaller_samples(frame):
    found = explain(frame, output="pred")
    steps = tuple(AutoStep(fraction=f, rows=int(600 * f), jaccard=0.7, probability=0.2) for f in (0.05, 1.0))
    auto = AutoSampling(target_jaccard=0.9, confidence=0.9, k=8, steps=steps)
    (note,) = [each for each in notes(replace(found, facts=replace(found.facts, auto=auto))) if "all rows" in each]
    assert "no smaller sample was expected to meet the target; tried" in note
    assert note.endswith("5% (0.20)")


def test_a_plan_lists_converted_columns_by_type(frame, tmp_path):
    lake = write_lake(tmp_path / "lake", frame)
    lines = text(preview(str(lake), ExplainOptions(output="pred"))).splitlines()
    assert lines[lines.index("converted to float64:") + 1] == (
        "  int64: " + ", ".join(f"whole_{i}" for i in range(8)) + ", ... (12 in all)"
    )

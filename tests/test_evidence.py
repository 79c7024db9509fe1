"""The tables of docs/EVIDENCE.md are what jobs/reproduce.py makes of this version, and the claims of its text hold."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
pytest.importorskip("sklearn")
sys.path.append(str(ROOT / "benchmarks"))

from evidence import archives, comparison, diagnostics, forms, page, published  # noqa: E402
from evidence.run import SECTIONS, drifted  # noqa: E402

FAST = ("published", "diagnostics", "forms")
MODELS = ("ablations",)
DOWNLOADED = ("sets", "summary", "methods")


@pytest.mark.parametrize("name", FAST)
def test_a_table_of_the_page_is_what_this_version_gives(name):
    assert drifted(name) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_a_table_of_fitted_models_is_what_this_version_gives(name):
    assert drifted(name) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", DOWNLOADED)
def test_a_table_of_downloaded_sets_is_what_this_version_gives(name):
    try:
        assert drifted(name) == []
    except archives.UnreachableError as error:
        pytest.skip(str(error))


def test_every_section_is_on_the_page_and_checked():
    text = page.PAGE.read_text(encoding="utf-8")
    assert all(page.section(text, name) for name in SECTIONS)
    assert {*FAST, *MODELS, *DOWNLOADED} == {name for name in SECTIONS if SECTIONS[name].tolerance is not None}


@pytest.mark.parametrize("name", published.PUBLISHED)
def test_published_scores_are_reproduced_to_1e_6(name):
    scores, quality, _ = published.reproduce(name)
    np.testing.assert_allclose(scores, published.PUBLISHED[name], rtol=0, atol=1e-6)
    assert quality == pytest.approx(published.QUALITY[name], abs=1e-5)


def test_a_number_that_moves_beyond_the_tolerance_is_drift_and_so_is_another_word():
    old = "| a | 0.500 | 1,000 |\n| b | -0.2 |  |"
    assert page.drift(old, old.replace("0.500", "0.519"), 0.02) == []
    assert len(page.drift(old, old.replace("0.500", "0.521"), 0.02)) == 1
    assert len(page.drift(old, old.replace("-0.2", "0.2"), 0.02)) == 1
    assert len(page.drift(old, old.replace("| b", "| c"), 0.02)) == 1
    assert len(page.drift(old, old.splitlines()[0], 0.02)) == 1


def test_a_section_is_replaced_and_nothing_else():
    text = f"above\n{page.mark('a')}\nold\n{page.END}\nbetween\n{page.mark('b')}\nkept\n{page.END}\nbelow\n"
    made = page.with_section(text, "a", "new")
    assert made == text.replace("old", "new")
    with pytest.raises(ValueError, match="0 sections 'c'"):
        page.with_section(text, "c", "new")


def test_both_forms_of_a_group_are_equal_for_one_member_only():
    groups = forms.groups()
    assert forms.first_form(*groups["{x}"]) == pytest.approx(forms.second_form(*groups["{x}"]), abs=1e-6)
    assert forms.first_form(*groups["{x, -x}"]) == 1.0
    assert forms.second_form(*groups["{x, -x}"]) == pytest.approx(0.5, abs=1e-6)


def test_the_truth_of_friedmans_function_is_that_of_a_simulation():
    """Total Sobol index: half the mean squared change of the function when one column is drawn anew."""
    random = np.random.default_rng(3)
    X, other = random.random((2, 400_000, 5))

    def function(X):
        return 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]

    for j, share in enumerate(diagnostics.friedman_truth()[:5]):
        changed = X.copy()
        changed[:, j] = other[:, j]
        simulated = np.mean((function(X) - function(changed)) ** 2) / 2 / function(X).var()
        assert simulated == pytest.approx(share, abs=0.005)


@pytest.mark.slow
def test_the_order_by_dependence_agrees_with_shap_on_six_real_sets():
    try:
        found = comparison.all_sets()
    except archives.UnreachableError as error:
        pytest.skip(str(error))
    means = {name: np.mean(comparison.correlations(found, name), axis=0)[0] for name in comparison.OURS}
    assert means[comparison.DEPENDENCE] >= 0.6
    assert means[comparison.DEPENDENCE] > means[comparison.DEFAULT]
    assert comparison.near(found, comparison.DEPENDENCE, 8) >= 5


def test_the_job_names_its_sections_if_one_is_misspelt():
    command = [sys.executable, str(ROOT / "jobs" / "reproduce.py"), "methds"]
    found = subprocess.run(command, capture_output=True, text=True)
    assert found.returncode == 2
    assert "there is no section methds; the sections are published, diagnostics" in found.stderr

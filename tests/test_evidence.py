"""The tables of docs/EVIDENCE.md are what jobs/reproduce.py makes of this version, and the claims of its text hold."""

from __future__ import annotations

import io
import sys
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).parents[1]
pytest.importorskip("sklearn")
sys.path.append(str(ROOT / "benchmarks"))

from evidence import archives, comparison, diagnostics, fit, forms, methods, page, published, sets  # noqa: E402
from evidence.run import SECTIONS, drifted, main  # noqa: E402

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


def test_the_job_names_its_sections_if_one_is_misspelt(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["methds"])
    assert ended.value.code == 2
    assert "there is no section methds; the sections are published, diagnostics" in capsys.readouterr().err


def effects(seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Three columns with effects 3, 1 and 0."""
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(random.standard_normal((600, 3)), columns=["large", "small", "none"])
    return frame, (3 * frame["large"] + frame["small"] + 0.1 * random.standard_normal(600)).to_numpy()


@pytest.mark.parametrize("name", methods.METHODS)
def test_every_method_ranks_effects_by_their_size(name):
    for seed in range(3):
        frame, y = effects(seed)
        scores = methods.METHODS[name](fit.fit(frame, y), frame, y)
        assert list(np.argsort(-scores)) == [0, 1, 2], seed


def test_loss_of_classes_is_the_log_loss():
    frame, y = effects(0)
    classes = (y > 0).astype(np.int64)
    model = fit.fit(frame, classes)
    probability = model.predict_proba(frame)[np.arange(len(frame)), classes]
    assert methods._loss(model, frame, classes) == pytest.approx(-np.mean(np.log(probability)), rel=1e-5)


@pytest.mark.parametrize("name", [name for name, source in sets.SOURCES.items() if not source.real])
def test_a_set_that_is_made_is_the_same_every_time_and_has_no_gaps(name):
    (X, y), (again, _) = sets.SOURCES[name].make(), sets.SOURCES[name].make()
    assert np.array_equal(X, again)
    assert np.isfinite(X).all()
    assert len(X) == len(y)


def test_a_damaged_data_file_is_refused(tmp_path):
    stored = tmp_path / "packages" / f"{'0' * 16}-table.csv"
    stored.parent.mkdir()
    stored.write_text("a,b\n")
    with pytest.raises(ValueError, match="does not have the SHA-256 0000"):
        archives.data_file("package==1", "table.csv", sha256="0" * 64, folder=tmp_path)


def test_a_data_file_is_found_in_archives_inside_each_other():
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("folder/table.csv", "a,b\n")
    outer = io.BytesIO()
    with tarfile.open(fileobj=outer, mode="w:gz") as archive:
        entry = tarfile.TarInfo("inner.zip")
        entry.size = len(inner.getvalue())
        archive.addfile(entry, io.BytesIO(inner.getvalue()))
    content = archives._member(outer.getvalue(), "inner.zip")
    assert archives._member(content, "folder/table.csv") == b"a,b\n"

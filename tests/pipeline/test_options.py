"""One place lists the options of explain; everything else reads it."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields, replace

import numpy as np
import oracle
import pandas as pd
import pytest

from excir_dask import explain
from excir_dask.errors import UsageError
from excir_dask.pipeline.inputs import resolve_inputs
from excir_dask.pipeline.option_kinds import Choice
from excir_dask.pipeline.options import DEFAULTS, OPTIONS, Counts, ExplainOptions
from excir_dask.pipeline.run_id import RESOLVED, identity

KEYWORDS = [p for p in inspect.signature(explain).parameters.values() if p.kind is p.KEYWORD_ONLY]


def test_the_keywords_of_explain_are_the_fields_of_the_options_in_their_order():
    assert [(p.name, p.default) for p in KEYWORDS] == [(f.name, f.default) for f in fields(ExplainOptions)]


def test_the_keywords_of_explain_have_the_types_of_the_fields():
    assert {p.name: p.annotation for p in KEYWORDS} == {f.name: f.type for f in fields(ExplainOptions)}


def test_explain_documents_every_option():
    documented = re.findall(r"^    ([\w, ]+) :", explain.__doc__, re.MULTILINE)
    assert [name for line in documented for name in line.split(", ")] == ["lake", *OPTIONS]


@pytest.mark.parametrize("name", [name for name, option in OPTIONS.items() if isinstance(option.kind, Choice)])
def test_explain_documents_every_choice(name):
    (line,) = re.findall(rf"^    {name} : {{(.*?)}}", explain.__doc__, re.MULTILINE)
    assert line == ", ".join(f'"{choice}"' for choice in OPTIONS[name].kind.choices)


def test_every_default_is_a_value_that_its_option_takes():
    assert ExplainOptions() == ExplainOptions(**DEFAULTS)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"output": 5}, "output is 5; give a column, a list of columns"),
        ({"output": {"cat": 5}}, "give a column"),
        ({"features": ["a", 5]}, "features is ['a', 5]; give a name or a list of names"),
        ({"features": (name for name in "ab")}, "give a name or a list of names"),
        ({"weights": 5}, "weights is 5; give a text"),
        ({"groups": ["a"]}, "groups is ['a']; give a mapping of names to features, a file, or 'correlation'"),
        ({"group_correlated": 1.5}, "group_correlated is 1.5; give a number above 0 and at most 1"),
        ({"group_rows": 1}, "group_rows is 1; give a whole number of at least 2"),
        ({"max_categories": 2.5}, "max_categories is 2.5; give a whole number of at least 1"),
        ({"fraction": 0}, "fraction is 0; give a number above 0 and at most 1, or 'auto'"),
        ({"fraction": "all"}, "fraction is 'all'; give a number above 0 and at most 1, or 'auto'"),
        ({"fraction": True}, "fraction is True"),
        ({"fraction": float("nan")}, "fraction is nan"),
        ({"seed": "0"}, "seed is '0'; give a whole number"),
        ({"target_jaccard": 0.0}, "target_jaccard is 0.0"),
        ({"confidence": 2}, "confidence is 2"),
        ({"k": True}, "k is True"),
        ({"sampling": "row"}, "sampling is 'row'; did you mean 'rows'"),
        ({"centering": None}, "centering is None"),
        ({"rank_by": "dependence", "dependence": False}, "rank_by is 'dependence', and dependence is off"),
        ({"rank_by": "cri"}, "rank_by is 'cri'; did you mean 'cir'? (one of strength, dependence, cir)"),
        ({"budget": "much"}, "budget is 'much', which is not a number of bytes"),
        ({"where": 5}, "where is 5; give a condition as text"),
        ({"where": "a >"}, "where is 'a >', which is not a condition"),
        ({"budget": [1]}, "budget is [1]; give a number of bytes"),
        ({"table_version": "7"}, "table_version is '7'; give a whole number"),
        ({"allow_pickle": 1}, "allow_pickle is 1; say true or false"),
        ({"out": 5}, "out is 5; give a path"),
        ({"checkpoint": 5}, "checkpoint is 5; give a path or URL"),
        ({"storage_options": "hush"}, "storage_options is not a mapping"),
    ],
)
def test_a_value_that_an_option_does_not_take_is_named(given, message):
    with pytest.raises(UsageError) as caught:
        ExplainOptions(**given)
    assert message in str(caught.value)
    assert "hush" not in str(caught.value)


def test_numbers_of_numpy_and_names_of_pandas_are_taken():
    ExplainOptions(seed=np.int64(3), fraction=np.float32(0.5), k=np.int8(2), features=pd.Index(["a", "b"]))
    ExplainOptions(features=np.array(["a", "b"]), model_columns=("a", "b"), budget=np.int64(1), output=("y",))


def test_no_value_of_storage_options_is_shown():
    assert "hush" not in repr(ExplainOptions(storage_options={"key": "hush"}))


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.standard_normal((300, 3)), columns=["a", "b", "pred"])
    return oracle.write_lake(tmp_path_factory.mktemp("options") / "lake", rows, 2)


OTHERS = {
    "categoricals": "indicators", "max_categories": 7, "group_rows": 77, "seed": 7, "centering": "mean",
    "rank_by": "cir", "where": "a > 0", "dependence": False, "target_jaccard": 0.7, "confidence": 0.7, "k": 1,
}  # fmt: skip
"""another value of each option that counts as it is given"""


def test_every_option_that_counts_as_it_is_given_is_part_of_the_run_id(lake):
    assert set(OTHERS) == {name for name, o in OPTIONS.items() if o.counts in (Counts.AS_GIVEN, Counts.ADAPTIVE)}
    ids = [oracle.run_id(lake, output="pred", fraction="auto", **{name: value}) for name, value in OTHERS.items()]
    assert len({oracle.run_id(lake, output="pred", fraction="auto"), *ids}) == len(ids) + 1


def test_targets_of_an_adaptive_sample_count_only_there(lake):
    ids = {
        oracle.run_id(lake, output="pred", **{name: value})
        for name, value in OTHERS.items()
        if OPTIONS[name].counts is Counts.ADAPTIVE
    }
    assert ids == {oracle.run_id(lake, output="pred")}


def test_options_that_never_count_are_those_of_where_it_runs_and_goes(lake, tmp_path):
    others = {
        "allow_pickle": True, "scheduler": "tcp://h:1", "cluster": "c.yaml", "checkpoint": tmp_path, "progress": True,
        "storage_options": None, "verify_checksums": False, "out": tmp_path, "overwrite": True, "force": True,
    }  # fmt: skip
    assert set(others) == {name for name, option in OPTIONS.items() if option.counts is Counts.NEVER}
    assert oracle.run_id(lake, output="pred", **others) == oracle.run_id(lake, output="pred")


def test_options_are_replaced_by_the_same_checks():
    with pytest.raises(UsageError, match="k is 0"):
        replace(ExplainOptions(), k=0)


def test_a_target_folder_is_checked_once_before_the_work_and_once_when_the_result_is_saved(lake, tmp_path, monkeypatch):
    import excir_dask.pipeline.run_id as ids
    import excir_dask.results.explanation as results

    calls = []
    for module in (ids, results):
        check = module.check_target
        monkeypatch.setattr(module, "check_target", lambda *a, m=module, c=check: calls.append(m.__name__) or c(*a))
    explain(lake, output="pred", out=tmp_path / "out")
    explain(lake, output="pred", out=tmp_path / "out", force=True)
    assert calls == [ids.__name__, results.__name__] * 2
    assert explain(lake, output="pred", out=tmp_path / "out").facts.rows.used == 300
    assert len(calls) == 4


def test_what_an_option_stands_for_counts_for_the_run(tmp_path):
    """Else a run with another value of it would return a saved result."""
    resolved = {name for name, option in OPTIONS.items() if option.counts is Counts.RESOLVED}
    assert set(RESOLVED) == resolved
    pd.DataFrame({"a": [1.0, 2, 3], "y": [1.0, 3, 2]}).to_parquet(tmp_path / "lake.parquet")
    options = ExplainOptions(output="y")
    parts = {*identity(resolve_inputs(str(tmp_path / "lake.parquet"), options), options), "fraction", "sampling"}
    assert set(RESOLVED.values()) <= parts

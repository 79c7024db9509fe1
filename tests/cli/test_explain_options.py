"""Options of explain are options of commands and of files without another list of them."""

from __future__ import annotations

import sys
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from excir_dask.cli import excir
from excir_dask.cli.options import EXPLAIN
from excir_dask.cli.sweep import OWN
from excir_dask.errors import UsageError
from excir_dask.pipeline.options import DEFAULTS, OPTIONS, ExplainOptions

GIVEN: dict[str, tuple[str, Any, Any]] = {
    "output": ("cat=y", {"cat": "y"}, {"cat": "y"}),
    "predict_type": ("probability",) * 3,
    "model_columns": ("a,b", ["a", "b"], ["a", "b"]),
    "allow_pickle": ("", True, True),
    "features": ("a*,!ab", ["a*", "!ab"], ["a*", "!ab"]),
    "categoricals": ("indicators",) * 3,
    "max_categories": ("7", 7, 7),
    "group_prefix": ("_",) * 3,
    "group_correlated": ("0.8", 0.8, 0.8),
    "group_rows": ("77", 77, 77),
    "weights": ("w",) * 3,
    "where": ("a > 3 and b in ['x']",) * 3,
    "by": ("r,s", ["r", "s"], ["r", "s"]),
    "fraction": ("auto",) * 3,
    "sampling": ("row-groups",) * 3,
    "seed": ("-3", -3, -3),
    "target_jaccard": ("0.7", 0.7, 0.7),
    "confidence": ("0.6", 0.6, 0.6),
    "k": ("3", 3, 3),
    "centering": ("trimmed",) * 3,
    "rank_by": ("cir",) * 3,
    "dependence": ("no", False, False),
    "reference": ("yesterday",) * 3,
    "budget": ("64MiB",) * 3,
    "checkpoint": ("s3://b/states",) * 3,
    "table_version": ("4", 4, 4),
    "verify_checksums": ("no", False, False),
    "out": ("result",) * 3,
    "overwrite": ("", True, True),
    "force": ("", True, True),
}
"""option -> how it is typed, how a file has it, what explain gets; those not here have a test of their own"""

ELSEWHERE = {"model", "groups", "scheduler", "cluster", "storage_options"}
"""options that exclude others, or are typed in another way than the others"""


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[ExplainOptions]:
    found: list[ExplainOptions] = []

    def spy(lake: object, options: ExplainOptions) -> None:
        found.append(options)
        raise UsageError("seen")

    monkeypatch.setattr(sys.modules["excir_dask.explain"], "explain_with", spy)
    return found


def typed(name: str, value: str) -> list[str]:
    flag = "--" + name.replace("_", "-")
    return [flag] if value == "" else ["--no-" + flag[2:]] if value == "no" else [flag, value]


def test_every_option_of_explain_is_typed_but_progress():
    assert set(EXPLAIN) == set(OPTIONS) - {"progress"}
    assert set(EXPLAIN) == {*GIVEN, *ELSEWHERE}


def test_what_is_typed_is_what_explain_gets(seen):
    arguments = [word for name, (text, _, _) in GIVEN.items() for word in typed(name, text)]
    done = CliRunner().invoke(excir, ["explain", "lake", *arguments])
    assert done.exit_code == 2, done.output
    (options,) = seen
    assert {name: getattr(options, name) for name in GIVEN} == {name: value for name, (_, _, value) in GIVEN.items()}


def test_what_a_file_says_is_what_explain_gets(seen, tmp_path):
    content = {name: value for name, (_, value, _) in GIVEN.items()}
    (tmp_path / "job.yaml").write_text(yaml.safe_dump({"lake": "lake", **content}))
    done = CliRunner().invoke(excir, ["explain", "--config", str(tmp_path / "job.yaml")])
    assert done.exit_code == 2, done.output
    (options,) = seen
    assert {name: getattr(options, name) for name in GIVEN} == {name: value for name, (_, _, value) in GIVEN.items()}


def test_what_is_not_typed_is_the_default(seen):
    CliRunner().invoke(excir, ["explain", "lake", "--output", "y"])
    (options,) = seen
    others = {
        name: getattr(options, name) for name in OPTIONS if name not in ("output", "progress", "groups", "budget")
    }
    assert others == {name: DEFAULTS[name] for name in others}
    assert options.budget == "128MiB"
    assert not options.groups


@pytest.mark.parametrize("command", ["explain", "sweep"])
def test_options_of_commands_have_the_help_of_the_options(command):
    params = {param.name: param for param in excir.commands[command].params}
    for name in set(EXPLAIN) - {"output", "groups"} - (set(OWN) if command == "sweep" else set()):
        assert params[name].help == OPTIONS[name].help

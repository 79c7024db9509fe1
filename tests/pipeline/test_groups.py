"""Groups from files, from names and from clusters; wrong files are named with the entry that is wrong."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from excir_dask.errors import UsageError
from excir_dask.pipeline.groups import combine, name_by_strength, prefix_groups
from excir_dask.results.group_files import read_groups, write_groups

NAMES = [
    "1e5", "yes", "no", "null", "~", "12", "1.5", "a: b", "- x", "# y", " z ", "=", "<<", "température", "温度", "'",
    '"', "2024-01-01", "a\nb", "\x85", "\u2028", "{", "*a", "&a", "!t", "%", "@", "0x1f", "1_000", "x" * 300, "a #b",
    "a:",
]  # fmt: skip


def written(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("g.yaml", "engine: [rpm, torque]\ncabin:\n  - fan\n  - '1e5'\n"),
        ("g.yml", "\ufeff# found by hand\nengine:\n- rpm\n- torque\ncabin: [fan, 1e5]\n"),
        ("g.json", '{"engine": ["rpm", "torque"], "cabin": ["fan", "1e5"]}'),
        ("g.JSON", '\ufeff{"engine": ["rpm", "torque"],\n\t"cabin": ["fan", "1e5"]}'),
        ("groups", '{"engine": ["rpm", "torque"], "cabin": ["fan", "1e5"]}'),
    ],
)
def test_yaml_and_json_are_read(tmp_path, name, content):
    found = read_groups(written(tmp_path, name, content))
    assert found == {"engine": ["rpm", "torque"], "cabin": ["fan", "1e5"]}
    assert list(found) == ["engine", "cabin"]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("g.yaml", "", "holds nothing where groups should be"),
        ("g.yaml", "# nothing but this\n", "holds nothing where groups"),
        ("g.yaml", "- rpm\n- torque\n", "holds a list where groups"),
        ("g.yaml", "engine", "holds a str where groups"),
        ("g.yaml", "engine: rpm", "group 'engine' is a str; give a list"),
        ("g.yaml", "engine:", "group 'engine' is nothing; give a list"),
        ("g.yaml", "engine: []", "group 'engine' has no members"),
        ("g.yaml", "a: [x]\nengine: [rpm, yes]", "member 2 of group 'engine' is True, a bool; put names in quotes"),
        ("g.yaml", "engine: [rpm, 5]", "member 2 of group 'engine' is 5, a int"),
        ("g.yaml", "engine: [[rpm]]", r"member 1 of group 'engine' is \['rpm'\], a list"),
        ("g.yaml", "engine: &a [*a]", "line 1: .*a is inside the value it refers to"),
        ("g.yaml", "yes: [rpm]", "group name True is a bool; put it in quotes"),
        ("g.yaml", "a: [x]\nb: [x]\na: [y]", "'a' is given twice, on lines 1 and 3"),
        ("g.yaml", "a: [x\nb: [y]", "not YAML on line 2"),
        ("g.yaml", "a: !!python/object/apply:os.getcwd []", "line 1: could not determine a constructor"),
        ("g.yaml", "a: [x]\n---\nb: [x]", "line 2: but found another document"),
        ("g.yaml", "[a]: [x]", "line 1: found unhashable key"),
        ("g.yaml", "a: [\x07]", "not YAML"),
        ("g.yaml", "[" * 5000, "nested more than 64 levels"),
        ("g.json", "", "Expecting value"),
        ("g.json", '{"a": ["x"], "a": ["y"]}', "'a' is given twice"),
        ("g.json", '{"a": [1.5]}', "member 1 of group 'a' is 1.5, a float"),
        ("g.json", '{"a": {"b": "c"}}', "group 'a' is a dict"),
        ("g.json", "[" * 100_000, "nested more than 64 levels"),
        ("g.yaml", b"a: [\xff]", "is not UTF-8 at byte 4"),
    ],
)
def test_a_wrong_file_and_its_entry_are_named(tmp_path, name, content, said):
    path = written(tmp_path, name, content)
    with pytest.raises(UsageError, match=said) as caught:
        read_groups(path)
    assert str(path) in str(caught.value)


def test_a_file_that_is_none_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"nowhere.yaml: there is no such file"):
        read_groups(tmp_path / "nowhere.yaml")
    with pytest.raises(UsageError, match="cannot be read"):
        read_groups(tmp_path)


def test_odd_names_are_read_back(tmp_path):
    groups = {name: [name, *NAMES] for name in NAMES}
    path = write_groups(groups, tmp_path / "g.yaml", note="Found at 0.9.\n\nEdit: at will")
    assert read_groups(path) == groups
    assert list(read_groups(path)) == NAMES
    assert path.read_text(encoding="utf-8").startswith("# Found at 0.9.\n#\n# Edit: at will\n")
    assert "温度" in path.read_text(encoding="utf-8")


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
"""files that people write hold no NUL"""


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(
        texts,
        st.lists(texts, min_size=1, max_size=3),
        min_size=1,
        max_size=4,
    )
)
def test_whatever_is_written_is_read_back(tmp_path, groups):
    assert read_groups(write_groups(groups, tmp_path / "g.yaml")) == groups


def test_a_list_that_two_groups_share_is_written_twice(tmp_path):
    shared = ["x", "y"]
    path = write_groups({"a": shared, "b": tuple(shared)}, tmp_path / "g.yaml")
    assert path.read_text() == "a:\n- x\n- y\nb:\n- x\n- y\n"


def test_a_file_that_cannot_be_written_is_wrong_usage(tmp_path):
    path = write_groups({"a": ["x"]}, tmp_path / "g.yaml")
    with pytest.raises(UsageError, match="No such file or directory"):
        write_groups({"b": ["x"]}, tmp_path / "no" / "g.yaml")
    with pytest.raises(UsageError, match="Not a directory"):
        write_groups({"b": ["x"]}, path / "g.yaml")


def test_prefixes_end_at_the_last_separator():
    features = ["door_front_1", "door_front_2", "door_1", "_x", "_y", "seat_1", "plain", "door_2"]
    assert prefix_groups(features, "_") == {
        "door_front": ["door_front_1", "door_front_2"],
        "door": ["door_1", "door_2"],
    }
    assert prefix_groups(["a::1", "a::2", "b:1"], "::") == {"a": ["a::1", "a::2"]}


def test_prefixes_that_give_no_group_are_an_error():
    with pytest.raises(UsageError, match="separator of a group's name is empty"):
        prefix_groups(["a_1", "a_2"], "")
    with pytest.raises(UsageError, match=r"no two of 2 features share a prefix before their last '\.'"):
        prefix_groups(["a_1", "a_2"], ".")


def test_a_cluster_is_named_after_its_strongest_member():
    features = pd.DataFrame(
        {
            "output": ["y"] * 5 + ["z"] * 5,
            "feature": ["e", "d", "c", "b", "a"] * 2,
            "strength": [0.9, 0.4, 0.5, 0.1, 0.5 + 1e-15, 0.1, 0.2, 0.3, 0.8, 0.0],
        }
    )
    assert name_by_strength([["a", "c"], ["b", "d"]], features) == {"a+1": ["a", "c"], "b+1": ["b", "d"]}
    assert name_by_strength([["d", "e"]], features) == {"e+1": ["d", "e"]}
    assert name_by_strength([["c", "a"]], features.iloc[:5]) == {"c+1": ["c", "a"]}


def test_a_name_from_two_sources_is_an_error_that_names_both():
    with pytest.raises(UsageError, match=r"group 'a' comes from --group and from groups.yaml; rename"):
        combine(("--group", {"a": ["x"]}), ("--prefix", {"b": ["x"]}), ("groups.yaml", {"a": ["y"]}))
    assert combine() == {}

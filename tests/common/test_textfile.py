"""Files that people write: nothing in them is lost, and what is too much is refused with a line and a next step."""

import importlib.util
import os
from pathlib import Path

import pytest
import yaml

from excir_dask.common import textfile, yaml_loader
from excir_dask.common.textfile import MOST_BYTES, read_text_file
from excir_dask.common.yaml_loader import MOST_LEVELS, MOST_VALUES
from excir_dask.errors import UsageError


@pytest.fixture(params=["libyaml", "python"], autouse=True)
def loader(request, monkeypatch):
    """PyYAML with libyaml and without: both must refuse the same."""
    if request.param == "python":
        monkeypatch.setattr(yaml, "__with_libyaml__", False)
        spec = importlib.util.spec_from_file_location("plain_loader", yaml_loader.__file__)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        assert issubclass(module.Loader, yaml.SafeLoader)
        monkeypatch.setattr(textfile, "Loader", module.Loader)


def read(folder: Path, text: str | bytes, name: str = "x.yaml") -> object:
    file = folder / name
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_text_file(file, "options", "write one option per line")


def laughs(leaf: str, pattern: str, levels: int = 12) -> str:
    """A file of a few hundred bytes that stands for 10 ** levels values."""
    lines = [f"a0: &a0 {leaf}"]
    lines += [f"a{level}: &a{level} {pattern.format(', '.join([f'*a{level - 1}'] * 10))}" for level in range(1, levels)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seed: 1\nk: 2\nseed: 3", "'seed' is given twice, on lines 1 and 3; merge the two"),
        ("1: a\n'1': b", "'1' is given twice, on lines 1 and 2"),
        ("yes: a\ntrue: b", "'true' is given twice, on lines 1 and 2"),
        ("a: {b: 1, c: 2, b: 3}", "'b' is given twice, on lines 1 and 1"),
        ("x: {<<: {a: 1}, <<: {b: 1}}", "'<<' is given twice"),
        ("a:\n  - !!int ''", "line 2: '' is not a whole number"),
        ("a: 1\nb: !!bool foo", "line 2: 'foo' is not a truth value"),
        ("a: !!float ''", "line 1: '' is not a number"),
        ("a: 1\nday: 2026-13-45", "line 2: '2026-13-45' is not a date; put text in quotes"),
        ("day: !!timestamp soon", "line 1: 'soon' is not a date"),
        ("seed: " + "9" * 5000, "line 1: '999.*…' is not a whole number"),
        ("seed: 1" + ":00" * 300_000, "line 1: '1:00.*…' is not a whole number"),
        ("seed: 0x" + "f" * 900_000, "line 1: '0xfff.*…' is not a whole number"),
        ("a: &a [*a]", r"line 1: \*a is inside the value it refers to"),
        ("a: *b", "line 1: found undefined alias"),
        ("a: 1\n--- \nb: 2", "line 2: but found another document"),
        ("a: !!python/object/apply:os.getcwd []", "line 1: could not determine a constructor"),
        ("? [a]\n: 1", "line 1: found unhashable key"),
        ("a: 1\nb: [", "not YAML on line [23]: .*; write one option per line"),
        ("a: \0", "not YAML: .*x0000"),
        (b"a: \xff", "is not UTF-8 at byte 3"),
        ("[" * 900_000, f"line 1: nested more than {MOST_LEVELS} levels deep"),
        ("- " * 450_000, f"line 1: nested more than {MOST_LEVELS} levels deep"),
        ("{a: " * 200_000, f"line 1: nested more than {MOST_LEVELS} levels deep"),
        ("? " * 450_000, f"line 1: nested more than {MOST_LEVELS} levels deep"),
        (laughs("[x]", "[{}]"), f"line \\d: more than {MOST_VALUES:,} values, aliases written out"),
        (laughs("{x: 1}", "{{<<: [{}]}}"), f"line \\d: more than {MOST_VALUES:,} values, aliases written out"),
        (" " * (MOST_BYTES + 1), f"x.yaml has {MOST_BYTES + 1:,} bytes, and at most {MOST_BYTES:,} are read"),
    ],
)
def test_what_cannot_be_read_is_an_error_with_its_line(tmp_path, text, message):
    with pytest.raises(UsageError, match=message) as error:
        read(tmp_path, text)
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1, "b": {"c": 1, "c": 2}}', "'c' is given twice"),
        ('{"a": 1,\n}', "not JSON on line 2: .*; write one option per line"),
        ("[" * 65 + "]" * 65, f"nested more than {MOST_LEVELS} levels deep"),
        ("[" * 900_000, f"nested more than {MOST_LEVELS} levels deep"),
        ("9" * 5000, "x.json: Exceeds the limit"),
        (" " * (MOST_BYTES + 1), f"at most {MOST_BYTES:,} are read for options"),
    ],
)
def test_json_has_the_same_limits(tmp_path, text, message):
    with pytest.raises(UsageError, match=message):
        read(tmp_path, text, "x.json")


@pytest.mark.parametrize("text", ['{"a": "x\\u0000y"}', '{"x\\u0000y": 1}', '[["\\u0000"]]'])
@pytest.mark.parametrize("name", ["x.yaml", "x.json"])
def test_a_text_with_a_nul_is_refused(tmp_path, text, name):
    with pytest.raises(UsageError, match="NUL character"):
        read(tmp_path, text, name)


def test_anything_but_a_regular_file_is_refused_without_being_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe")  # opening it would wait for somebody who writes
    for name in (tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(UsageError, match="is a pipe or a device; save options in a file"):
            read_text_file(name, "options", "")
    with pytest.raises(UsageError, match="is a folder"):
        read_text_file(tmp_path, "options", "")
    with pytest.raises(UsageError, match="there is no such file to read options from"):
        read_text_file(tmp_path / "none.yaml", "options", "")
    with pytest.raises(UsageError, match="cannot be read"):
        read_text_file("a\0b", "options", "")


def test_what_is_within_the_limits_is_read(tmp_path):
    deep = "[" * MOST_LEVELS + "]" * MOST_LEVELS
    assert read(tmp_path, deep) == read(tmp_path, deep, "x.json")
    names = [f"feature_{number:06}" for number in range(60_000)]
    text = f"all: [{', '.join(names)}]"
    assert len(text) > 0.9 * MOST_BYTES
    assert read(tmp_path, text) == {"all": names}


def test_aliases_and_merge_keys_are_read_as_yaml_has_them(tmp_path):
    text = "a: &a {x: 1, y: [1]}\nb: {c: {d: &d {<<: *a, x: 2}}}\ne: {<<: *d, z: 3}\nf: [*a, *a]"
    one, two = {"x": 1, "y": [1]}, {"x": 2, "y": [1]}
    assert read(tmp_path, text) == {"a": one, "b": {"c": {"d": two}}, "e": {**two, "z": 3}, "f": [one, one]}

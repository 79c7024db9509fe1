"""Files that are not models are named with what they are, and damaged ones never crash the process."""

import subprocess
import sys

import pytest

from excir_dask.errors import ModelError
from excir_dask.models.load import load_model


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("m.ubj", b"", "'.*m.ubj' is empty; expected an XGBoost model"),
        ("m.ubj", b"\x89PNG\r\n\x1a\n....", "looks like a PNG image; expected an XGBoost model"),
        ("m.onnx", b"PAR1....PAR1", "looks like a Parquet file"),
        ("m.model", b"binf\x00\x00", "the old binary format; load it with the version that saved it"),
        ("m.bin", b"CBM1\x00", "a CatBoost model; save it with format='onnx'"),
        ("m.skops", b"PK\x03\x04", "a zip archive; load a skops file with skops.io.load"),
        ("m.txt", b"hello world", "text that starts with 'hello world'"),
        ("m.bin", bytes(range(200, 250)), "binary data that starts with c8 c9 ca"),
        ("m.onnx", bytes(range(200, 250)), "damaged, cut off or not an ONNX model"),
        ("m.json", b'{"a": 1, "b": 2}', "is JSON with the keys a, b, but not an XGBoost model"),
        ("m.json", b'{"learner": 3}', "is JSON with the keys learner, but not an XGBoost model"),
        ("m.json", b'{"a": 1', "damaged or cut off: its 7 bytes start as JSON"),
        ("m.json", b'{"a":' * 100_000, "damaged or cut off"),
        ("m.json", b'{"tree_info": [], "name": "tree"}', "a JSON dump of a LightGBM model, which cannot be loaded"),
        ("m.ubj", b"{L" + b"\xff" * 20, "damaged or cut off: its 22 bytes start as UBJSON"),
        ("m.ubj", b"{i\x01a[" + b"[" * 500, "nested more than 100 levels deep"),
        ("m.txt", b"tree\nversion=v4\n", "start as a LightGBM model, but it has no complete list of trees"),
    ],
)
def test_files_that_are_no_models(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ModelError, match=message) as raised:
        load_model(tmp_path / name)
    assert name in str(raised.value)
    assert raised.value.exit_code == 3


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(ModelError, match=r"the model file '.*nothing.ubj' does not exist; expected"):
        load_model(tmp_path / "nothing.ubj")
    with pytest.raises(ModelError, match="models are read from local files: download it first"):
        load_model("s3://bucket/model.ubj")
    (tmp_path / "inside.ubj").touch()
    with pytest.raises(ModelError, match=r"is a directory \(inside.ubj\); name the model file"):
        load_model(tmp_path)


CUT = """
import sys
from excir_dask.errors import ModelError
from excir_dask.models.load import load_model
path, copy, columns = sys.argv[1], sys.argv[2], sys.argv[3].split(",") if sys.argv[3] else None
content = open(path, "rb").read()
load_model(path, columns=columns)
for end in range(1, len(content) - 20, max(1, len(content) // 150)):
    open(copy, "wb").write(content[:end])
    try:
        load_model(copy, columns=columns)
        raise SystemExit(f"{end} bytes of {len(content)} were taken for a model")
    except ModelError as error:
        assert copy in str(error)
for place in range(0, len(content), max(1, len(content) // 60)):
    open(copy, "wb").write(content[:place] + bytes(8) + content[place + 8:])
    try:
        load_model(copy, columns=columns)
    except ModelError:
        pass
"""


@pytest.mark.parametrize("name", ["m.ubj", "m.json", "m.txt", "m.onnx"])
def test_a_file_that_was_cut_off_is_an_error_and_not_a_crash(files, name):
    columns = "a,b,c" if name == "m.onnx" else ""
    arguments = [sys.executable, "-c", CUT, str(files / name), str(files / f"cut-{name}"), columns]
    found = subprocess.run(arguments, capture_output=True, text=True, timeout=60)
    assert found.returncode == 0, found.stderr[-2000:]

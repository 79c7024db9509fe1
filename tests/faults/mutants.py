"""Damaged copies of Parquet files and models, made from a number, and what commands do with them.

``python tests/faults/mutants.py KIND FIRST LAST FOLDER`` tries the mutants of some numbers and prints a line for each:
one that ends the process is the last. ``mutate.py`` runs this for as long as it is told to.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from commands import excir

NAMES = ["a", "b", "c"]
BLOCKS = (b"\xff\xff\xff\xff", b"\0\0\0\0", b"\x7f\xff\xff\xff", b"9999", b"-999")
"""what takes the place of some bytes"""


def mutant(content: bytes, number: int, first: int = 0, last: int | None = None) -> bytes:
    """A copy with some of the bytes between two places changed, removed or replaced."""
    random, changed = Random(number), bytearray(content)
    stop = len(content) if last is None else last
    for _ in range(random.choice([1, 1, 2, 8])):
        place, kind = random.randrange(first, min(stop, len(changed))), random.random()
        if kind < 0.7 or last is not None:  # places stay what they are
            changed[place] ^= 1 << random.randrange(8)
        elif kind < 0.85:
            del changed[place : place + random.randrange(1, 5)]
        else:
            changed[place : place + 4] = random.choice(BLOCKS)
    return bytes(changed)


def frame(rows: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.standard_normal((rows, 3)), columns=NAMES)
    return table.assign(y=table["a"] - table["b"], city=rng.choice(["rome", "oslo", "lima"], rows))


def parquet_files(folder: Path) -> dict[str, Path]:
    """One file per way of writing, all with checksums, each in a folder of its own."""
    table = pa.Table.from_pandas(frame(), preserve_index=False)
    ways = {
        "plain": {"use_dictionary": False, "compression": "none"},
        "groups": {"row_group_size": 70, "compression": "zstd"},
        "pages": {"data_page_version": "2.0", "data_page_size": 500, "compression": "snappy"},
    }
    found = {}
    for name, way in ways.items():
        (folder / name).mkdir(exist_ok=True, parents=True)
        found[name] = folder / name / "x.parquet"
        pq.write_table(table, found[name], write_page_checksum=True, **way)
    return found


def try_parquet(numbers: range, folder: Path) -> Iterator[tuple[int, str]]:
    """Explain damaged files. Pages have checksums, footers and headers of pages have none."""
    originals = {name: (path, path.read_bytes()) for name, path in parquet_files(folder).items()}
    right = {name: _explained(path.parent) for name, (path, _) in originals.items()}
    for number in numbers:
        name = list(originals)[number % len(originals)]
        path, content = originals[name]
        footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
        in_pages = number % 2 == 0
        yield number, ""
        path.write_bytes(mutant(content, number, 4, footer) if in_pages else mutant(content, number, footer))
        found = _explained(path.parent)
        if found.startswith("{") and found != right[name]:
            found = "different" if in_pages else "other footer"
        elif found.startswith("{"):
            found = "same"
        yield number, found


def _explained(lake: Path) -> str:
    """The scores as JSON, or how the command ended."""
    done = excir("explain", lake, "--output", "y", "--categoricals", "indicators", "--json", "-q")
    if done.exit_code == 0:
        summary = json.loads(done.stdout)
        return json.dumps({name: summary[name] for name in ("rows", "top", "groups")})
    lines = [line for line in done.stderr.splitlines() if line.startswith("excir: ")]
    if done.exit_code == 3 and len(lines) == 1 and "Traceback" not in done.stderr:
        named = any(name in lines[0] for name in ("x.parquet", "column", str(lake)))
        return "refused" if named else f"no name: {lines[0]}"
    return f"exit code {done.exit_code}: {done.stderr[-300:]!r}"


def model_files(folder: Path) -> dict[str, Path]:
    """One file per kind of model."""
    import lightgbm
    import xgboost
    from skl2onnx import to_onnx
    from sklearn.linear_model import LinearRegression

    folder.mkdir(exist_ok=True, parents=True)
    X, y = frame()[NAMES], frame()["y"].to_numpy()
    classes = np.digitize(y, [-1, 1])
    several = {"multi_strategy": "multi_output_tree", "tree_method": "hist"}
    trained: dict[str, Callable[[], object]] = {
        "scalar.ubj": lambda: xgboost.train({"max_depth": 3}, xgboost.DMatrix(X, y), 4),
        "classes.ubj": lambda: xgboost.train(
            {"objective": "multi:softprob", "num_class": 3, "max_depth": 3}, xgboost.DMatrix(X, classes), 4
        ),
        "vectors.ubj": lambda: xgboost.train(
            {**several, "max_depth": 3}, xgboost.DMatrix(X, np.stack([y, -y, y * y], 1)), 4
        ),
        "vectors.json": lambda: xgboost.train(
            {**several, "max_depth": 3}, xgboost.DMatrix(X, np.stack([y, -y, y * y], 1)), 4
        ),
        "scalar.txt": lambda: lightgbm.train({"verbosity": -1, "num_leaves": 8}, lightgbm.Dataset(X, y), 4),
        "classes.txt": lambda: lightgbm.train(
            {"verbosity": -1, "num_leaves": 8, "objective": "multiclass", "num_class": 3},
            lightgbm.Dataset(X, classes),
            3,
        ),
    }
    for name, train in trained.items():
        train().save_model(str(folder / name))  # type: ignore[attr-defined]
    exported = to_onnx(LinearRegression().fit(X, y), X.to_numpy(np.float32)[:1])
    (folder / "linear.onnx").write_bytes(exported.SerializeToString())
    return {name: folder / name for name in (*trained, "linear.onnx")}


def try_models(numbers: range, folder: Path) -> Iterator[tuple[int, str]]:
    """Load damaged models, and score rows with those that load."""
    from excir_dask.errors import ModelError
    from excir_dask.models.load import load_model

    originals = {name: path.read_bytes() for name, path in model_files(folder).items()}
    rows = frame(50)
    for number in numbers:
        name = list(originals)[number % len(originals)]
        path = folder / f"mutant-{name}"
        yield number, ""
        path.write_bytes(mutant(originals[name], number))
        try:
            model = load_model(path, columns=NAMES if path.suffix == ".onnx" else None)
            model.score(rows.reindex(columns=list(model.columns), fill_value=0.0))
            found = "loads"
        except ModelError:
            found = "refused"
        except Exception as error:
            found = f"{type(error).__name__}: {str(error)[:300]!r}"
        yield number, found


KINDS = {"parquet": try_parquet, "models": try_models}
EXPECTED = ("same", "refused", "loads", "other footer")


if __name__ == "__main__":
    kind, start, end, place = sys.argv[1:]
    for tried, outcome in KINDS[kind](range(int(start), int(end)), Path(place)):
        print(tried, outcome or "begins", flush=True)

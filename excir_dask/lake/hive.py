"""Hive partition keys: columns whose values are in the names of folders, such as ``year=2024``."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from excir_dask.errors import LakeError
from excir_dask.lake.locate import Location
from excir_dask.lake.tables.table import Constant


def partition_keys(location: Location) -> tuple[dict[str, pa.DataType], list[tuple[Constant, ...]]]:
    """Types of the partition keys, and their values per file."""
    if not any("=" in part for info in location.files for part in location.relative(info.path).split("/")[:-1]):
        return {}, [()] * len(location.files)
    import pyarrow.dataset as ds  # imports pandas, which takes half of a cold start

    try:
        factory = ds.FileSystemDatasetFactory(
            location.filesystem,
            [info.path for info in location.files],
            ds.ParquetFileFormat(),
            ds.FileSystemFactoryOptions(
                partition_base_dir=location.root,
                partitioning=ds.HivePartitioning.discover(),
                exclude_invalid_files=False,
            ),
        )
        schema = _schema_of_keys(factory, location)
        dataset = factory.finish(schema)
        by_path = {
            fragment.path: ds.get_partition_keys(fragment.partition_expression) for fragment in dataset.get_fragments()
        }
    except pa.ArrowException as error:
        raise LakeError(f"the folders of {location.name} are not valid Hive partitions: {error}") from error
    types = {field.name: field.type for field in schema}
    for info in location.files:
        missing = set(types) - set(by_path[info.path])
        if missing:
            raise LakeError(
                f"{location.relative(info.path)} is in no folder '{min(missing)}=...', but other files of "
                f"{location.name} are; move it, or exclude it with a glob"
            )
    return types, [tuple(sorted(by_path[info.path].items())) for info in location.files]


def _schema_of_keys(factory: Any, location: Location) -> pa.Schema:
    try:
        return factory.inspect(fragments=0)  # opens no file, so it has the keys alone
    except TypeError:  # before pyarrow 22, which opens a file and adds its columns: infer the types by the same rule
        values: dict[str, list[str]] = {}
        for info in location.files:
            for part in location.relative(info.path).split("/")[:-1]:
                name, equals, value = part.partition("=")
                if equals:
                    values.setdefault(unquote(name), []).append(unquote(value))
        return pa.schema([(name, _key_type(name, texts)) for name, texts in values.items()])


def _key_type(name: str, texts: list[str]) -> pa.DataType:
    """Whole numbers of 32 bits, or text.

    >>> _key_type("month", ["01", "-2", "__HIVE_DEFAULT_PARTITION__"]), _key_type("month", ["1", "3000000000"])
    (DataType(int32), DataType(string))
    """
    given = [text for text in texts if text != "__HIVE_DEFAULT_PARTITION__"]
    if not given:
        raise pa.ArrowInvalid(f"no folder has a value of '{name}'")
    whole = all(re.fullmatch("-?[0-9]+", text) and -(2**31) <= int(text) < 2**31 for text in given)
    return pa.int32() if whole else pa.string()

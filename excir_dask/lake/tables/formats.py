"""The table formats. A new one is a module like :mod:`delta` or :mod:`iceberg` and an entry of ``FORMATS``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from pyarrow import fs

from excir_dask.lake.tables.delta import LOG_FOLDER, read_delta
from excir_dask.lake.tables.iceberg import METADATA_FOLDER, METADATA_SUFFIX, read_iceberg
from excir_dask.lake.tables.table import Table


class ReadTable(Protocol):
    """Reads the log of a table.

    Parameters
    ----------
    name : str
        Of the table, for messages.
    filesystem, root
        The table's folder.
    version : int, optional
        By default the current one.
    metadata : str, optional
        Path of a metadata file that the user named in place of the folder.
    """

    def __call__(
        self, name: str, filesystem: fs.FileSystem, root: str, *, version: int | None, metadata: str | None
    ) -> Table: ...


@dataclass(frozen=True)
class TableFormat:
    """How to recognise and read a table."""

    folder: str
    """folder inside the table's folder that holds its log"""
    read: ReadTable
    metadata_suffix: str | None = None
    """the log has files with this suffix, which also stand for the table; None if the folder alone proves it"""


FORMATS = {
    "Delta Lake": TableFormat(LOG_FOLDER, read_delta),
    "Iceberg": TableFormat(METADATA_FOLDER, read_iceberg, METADATA_SUFFIX),
}


def format_of_folder(filesystem: fs.FileSystem, path: str) -> str | None:
    """The format of the table in a folder; None if there is none."""
    logs = filesystem.get_file_info([f"{path}/{each.folder}" for each in FORMATS.values()])
    for (name, each), log in zip(FORMATS.items(), logs, strict=True):
        if log.type != fs.FileType.Directory:
            continue
        if each.metadata_suffix is None:
            return name
        if any(
            info.path.endswith(each.metadata_suffix) for info in filesystem.get_file_info(fs.FileSelector(log.path))
        ):
            return name
    return None


def format_of_file(path: str) -> str | None:
    """The format of the table whose metadata file this is; None for any other file."""
    for name, each in FORMATS.items():
        if each.metadata_suffix is not None and path.endswith(each.metadata_suffix):
            return name
    return None

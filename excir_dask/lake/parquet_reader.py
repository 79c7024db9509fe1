"""Open Parquet files on a worker: checked to be the planned ones, kept open while a scan goes over their columns."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyarrow import fs

from excir_dask.errors import LakeChangedError
from excir_dask.lake.arrays import Coded, as_codes, as_float64, as_matrix, without_decimals
from excir_dask.lake.plan import Fragment
from excir_dask.lake.read_errors import naming

Floats = NDArray[np.float64]

_BUFFER = 2**20
"""bytes read from a local file at once"""

_STREAM_BUFFER = 2**16
"""the same where many columns are read side by side"""

_SEARCH_ROWS = 2**16
"""rows decoded at a time where a damaged column is looked for"""

_IDLE_FILES = 16
"""files kept open for the next slice"""

_IDLE_CHUNKS = 50_000
"""column chunks that the footers of those files may describe in all: some tens of megabytes"""


@dataclass(frozen=True)
class OpenFile:
    """A Parquet file that is open, with what is worked out once for all its reads."""

    parquet: pq.ParquetFile

    @cached_property
    def leaves(self) -> dict[str, list[int]]:
        """Column -> indices of its leaves in the file's schema.

        Listing all paths takes as long as reading a small column, and a wide file is read a few columns at a time.
        """
        found: dict[str, list[int]] = {}
        for index, path in enumerate(self.parquet.reader.column_paths):
            found.setdefault(path[0], []).append(index)
        return found

    @property
    def chunks(self) -> int:
        return _chunks(self.parquet.metadata)

    def close(self) -> None:
        self.parquet.close(force=True)


class OpenFiles:
    """Files that one slice has read and the next may want.

    Opening a file of 10,000 columns takes 0.1 s, and a wide lake has many slices for each of its files. A file is lent
    to one thread at a time. The store goes where the layout goes and starts empty there: it lives as long as a scan.

    Parameters
    ----------
    vectors : mapping
        Features that are an element of a vector column -> that column, which element.
    categoricals : sequence of str
        Columns that are decoded to codes, without making a string of every value.
    """

    def __init__(self, vectors: Mapping[str, tuple[str, int]] | None = None, categoricals: Sequence[str] = ()) -> None:
        self._vectors = dict(vectors or {})
        self._categoricals = list(categoricals)
        self._lock = threading.Lock()
        self._meter = threading.local()
        self._idle: OrderedDict[int, tuple[str, OpenFile]] = OrderedDict()
        self._footers: OrderedDict[str, pq.FileMetaData] = OrderedDict()

    def __reduce__(self) -> tuple[type[OpenFiles], tuple[dict[str, tuple[str, int]], list[str]]]:
        return OpenFiles, (self._vectors, self._categoricals)

    @contextmanager
    def stream(self, fragment: Fragment, filesystem: fs.FileSystem) -> Iterator[FragmentReader]:
        """A reader of a fragment for batches of many columns: with small buffers, and not kept open."""
        with naming(fragment):
            file = _open(fragment, filesystem, self._categoricals, None, _STREAM_BUFFER)
        try:
            _check_row_groups(fragment, file.parquet.metadata)
            yield FragmentReader(fragment, file, self._vectors, self._count)
        finally:
            file.close()

    def vector_of(self, feature: str) -> str | None:
        """The vector column that a feature is an element of; None for a column of its own."""
        return self._vectors[feature][0] if feature in self._vectors else None

    @contextmanager
    def borrow(self, fragment: Fragment, filesystem: fs.FileSystem) -> Iterator[FragmentReader]:
        """A reader of a fragment. After an error its file is closed, not kept.

        Only local files are kept: one of an object store holds the chunks that it fetched last until it is closed,
        62 MB for 4 million rows of two columns. Of those the footer is kept, which is 64 kB or more to fetch.
        """
        with naming(fragment):
            footer = self._footers.get(fragment.path)
            file = self._take(fragment.path) or _open(fragment, filesystem, self._categoricals, footer)
        try:
            _check_row_groups(fragment, file.parquet.metadata)
            yield FragmentReader(fragment, file, self._vectors, self._count)
        except BaseException:
            file.close()
            raise
        if isinstance(filesystem, fs.LocalFileSystem):
            self._give_back(fragment.path, file)
        else:
            self._keep_footer(fragment.path, file.parquet.metadata)
            file.close()

    @property
    def bytes_read(self) -> int:
        """Compressed bytes of the column chunks that this thread has read."""
        return getattr(self._meter, "bytes", 0)

    def _count(self, size: int) -> None:
        self._meter.bytes = self.bytes_read + size

    def close(self) -> None:
        """Close what nobody has borrowed."""
        with self._lock:
            self._footers.clear()
            while self._idle:
                self._idle.popitem()[1][1].close()

    def _take(self, path: str) -> OpenFile | None:
        with self._lock:
            for number, (name, _) in self._idle.items():
                if name == path:
                    return self._idle.pop(number)[1]
        return None

    def _give_back(self, path: str, file: OpenFile) -> None:
        with self._lock:
            self._idle[id(file)] = (path, file)
            while len(self._idle) > _IDLE_FILES or sum(f.chunks for _, f in self._idle.values()) > _IDLE_CHUNKS:
                _, (_, oldest) = self._idle.popitem(last=False)
                oldest.close()

    def _keep_footer(self, path: str, footer: pq.FileMetaData) -> None:
        with self._lock:
            self._footers[path] = footer
            self._footers.move_to_end(path)
            while sum(map(_chunks, self._footers.values())) > _IDLE_CHUNKS:
                self._footers.popitem(last=False)


class FragmentReader:
    """Some row groups of an open file, as arrays."""

    def __init__(
        self,
        fragment: Fragment,
        file: OpenFile,
        vectors: Mapping[str, tuple[str, int]],
        count: Callable[[int], None],
    ):
        self.fragment = fragment
        self.file = file.parquet
        self.leaves = file.leaves
        self.vectors = vectors
        self.count = count
        self.keys = dict(fragment.keys)
        self.stored = dict(fragment.names)
        self.rows = sum(fragment.rows)

    def live_mask(self) -> NDArray[np.bool_] | None:
        """Which rows count: those that no table has deleted; None for all."""
        if not self.fragment.deleted:
            return None
        parts = zip(self.fragment.deleted, self.fragment.rows, strict=True)
        return ~np.concatenate([np.zeros(n, dtype=bool) if d is None else d.mask(0, n) for d, n in parts])

    def read(self, names: Sequence[str]) -> list[Floats]:
        """Columns, and elements of vectors, as float64 arrays."""
        return self._arrays(names, self._table(names), self.rows)

    def column(self, name: str) -> pa.ChunkedArray:
        """One column as it is stored, for what is not a number."""
        table = self._table([name])
        return pa.chunked_array([pa.repeat(self.keys[name], self.rows)]) if table is None else table.column(name)

    def batches(self, names: Sequence[str], rows: int) -> Iterator[tuple[int, list[Floats]]]:
        """The same for some rows at a time, after how many they are."""
        if not self._inside(names):  # folder names alone
            for start in range(0, self.rows, rows):
                count = min(rows, self.rows - start)
                yield count, self._arrays(names, None, count)
            return
        for table in self._tables(names, rows):
            yield table.num_rows, self._arrays(names, table, table.num_rows)

    def codes(self, name: str) -> Coded:
        """A column of categories."""
        table = self._table([name])
        if table is None:
            key = self.keys[name]
            if key is None or key != key:
                return Coded(np.full(self.rows, -1, dtype=np.int32), ())
            text = str(int(key)) if isinstance(key, float) and key.is_integer() else str(key)
            code, values = 0, (text,)
            return Coded(np.full(self.rows, code, dtype=np.int32), values)
        return as_codes(table.column(name))

    def code_batches(self, name: str, rows: int) -> Iterator[Coded]:
        """The same for some rows at a time."""
        if name in self.keys:
            whole = self.codes(name)
            for start in range(0, self.rows, rows):
                yield Coded(whole.codes[start : start + rows], whole.values)
        else:
            for table in self._tables([name], rows):
                yield as_codes(table.column(name))

    def frames(self, names: Sequence[str], rows: int) -> Iterator[Any]:
        """pandas DataFrames of some rows at a time, of the types that the files have."""
        import pandas as pd

        for table in self._tables(names, rows):
            plain = [name for name in names if name not in self.vectors and name not in self.keys]
            found = dict(without_decimals(table.select(plain)).to_pandas().items())
            elements = [name for name in names if name in self.vectors]
            found |= dict(zip(elements, self._arrays(elements, table, table.num_rows), strict=True))
            found |= {name: np.full(table.num_rows, self.keys[name]) for name in names if name in self.keys}
            yield pd.DataFrame({name: found[name] for name in names}, copy=False)

    def _inside(self, names: Sequence[str]) -> list[str]:
        """Columns of the file that hold the names asked for."""
        return list(dict.fromkeys(self.vectors[n][0] if n in self.vectors else n for n in names if n not in self.keys))

    def _meter(self, columns: Sequence[str]) -> None:
        """Count the chunks of some columns as read."""
        leaves = [index for column in columns for index in self.leaves.get(column, ())]
        groups = [self.file.metadata.row_group(number) for number in self.fragment.row_groups]
        self.count(sum(group.column(index).total_compressed_size for group in groups for index in leaves))

    def _table(self, names: Sequence[str]) -> pa.Table | None:
        inside = self._inside(names)
        if not inside:
            return None
        stored = [self.stored.get(name, name) for name in inside]
        self._meter(stored)
        with naming(self.fragment, lambda: self._damaged(stored)):
            table = self.file.read_row_groups(list(self.fragment.row_groups), columns=stored, use_threads=False)
        return self._renamed(table)

    def _tables(self, names: Sequence[str], rows: int) -> Iterator[pa.Table]:
        groups, inside = list(self.fragment.row_groups), [self.stored.get(name, name) for name in self._inside(names)]
        self._meter(inside)
        with naming(self.fragment, lambda: self._damaged(inside)):
            for batch in self.file.iter_batches(rows, row_groups=groups, columns=inside, use_threads=False):
                yield self._renamed(pa.Table.from_batches([batch]))

    def _damaged(self, columns: Sequence[str]) -> str:
        """Which of some columns has a page without its checksum: several are read at once, and pyarrow does not say."""
        names, groups = {stored: name for name, stored in self.stored.items()}, list(self.fragment.row_groups)
        for column in columns:
            try:
                for _ in self.file.iter_batches(_SEARCH_ROWS, row_groups=groups, columns=[column], use_threads=False):
                    pass
            except OSError:
                return f"column '{names.get(column, column)}'"
        return "columns " + ", ".join(names.get(column, column) for column in columns)

    def _renamed(self, table: pa.Table) -> pa.Table:
        """With the columns' names in the lake, where the file has others."""
        if not self.stored:
            return table
        names = {stored: name for name, stored in self.stored.items()}
        return table.rename_columns([names.get(name, name) for name in table.column_names])

    def _arrays(self, names: Sequence[str], table: pa.Table | None, rows: int) -> list[Floats]:
        found = []
        vectors: dict[str, Floats] = {}
        for name in names:
            if name in self.keys or table is None:
                found.append(np.full(rows, self.keys[name], dtype=np.float64))
            elif name in self.vectors:
                column, element = self.vectors[name]
                if column not in vectors:
                    vectors[column] = as_matrix(table.column(column))
                found.append(vectors[column][element])
            else:
                found.append(as_float64(table.column(name)))
        return found


def _open(
    fragment: Fragment,
    filesystem: fs.FileSystem,
    categoricals: Sequence[str],
    footer: pq.FileMetaData | None,
    buffer: int = _BUFFER,
) -> OpenFile:
    local = isinstance(filesystem, fs.LocalFileSystem)
    source = filesystem.open_input_file(fragment.path)
    try:
        size = source.size()
        if size != fragment.size:
            raise LakeChangedError(
                f"{fragment.relative} had {fragment.size} bytes when the run was planned and has {size} now; run again"
            )
        keys, stored = dict(fragment.keys), dict(fragment.names)
        inside = [stored.get(name, name) for name in categoricals if name not in keys]
        # a small read buffer holds one page of a column; object stores need whole chunks in few requests
        file = pq.ParquetFile(
            source,
            metadata=footer,
            pre_buffer=not local,
            buffer_size=buffer if local else 0,
            read_dictionary=inside,
            page_checksum_verification=fragment.verify,
        )
    except BaseException:
        source.close()
        raise
    return OpenFile(file)


def _check_row_groups(fragment: Fragment, metadata: pq.FileMetaData) -> None:
    for group, rows in zip(fragment.row_groups, fragment.rows, strict=True):
        if group >= metadata.num_row_groups or metadata.row_group(group).num_rows != rows:
            raise LakeChangedError(f"{fragment.relative} has other row groups than when the run was planned; run again")


def _chunks(metadata: pq.FileMetaData) -> int:
    return int(metadata.num_columns * metadata.num_row_groups)

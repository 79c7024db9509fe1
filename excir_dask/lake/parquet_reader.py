"""Read row groups of one open Parquet file as arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyarrow import fs

from excir_dask.errors import DataError, LakeChangedError
from excir_dask.lake.arrays import CategoryCodes, as_codes, as_float64, as_matrix, decimals_to_float64
from excir_dask.lake.filter import Mask, RowFilter
from excir_dask.lake.plan import Fragment
from excir_dask.lake.read_errors import read_errors

Floats = NDArray[np.float64]

BUFFER_BYTES = 2**20
"""read buffer of a local file, per column"""

STREAM_BUFFER_BYTES = 2**16
"""the same where many columns are decoded in parallel"""

_FILTER_ROWS = 2**17
"""rows of a filter's columns that are decoded at once"""

_SEARCH_ROWS = 2**16
"""rows per batch while searching for the column with a damaged page"""


@dataclass(frozen=True)
class OpenFile:
    """An open Parquet file and what its reads share."""

    parquet: pq.ParquetFile
    local: bool = False
    """it is on this machine"""

    @cached_property
    def leaves(self) -> dict[str, list[int]]:
        """Column -> indices of its leaves in the file's schema.

        Listing all paths takes as long as reading a small column, and a wide file is read a few columns at a time.
        """
        leaves: dict[str, list[int]] = {}
        for index, path in enumerate(self.parquet.reader.column_paths):
            leaves.setdefault(path[0], []).append(index)
        return leaves

    @property
    def chunks(self) -> int:
        """Column chunks in the footer."""
        return count_chunks(self.parquet.metadata)

    def close(self) -> None:
        self.parquet.close(force=True)


def open_file(
    fragment: Fragment,
    filesystem: fs.FileSystem,
    categoricals: Sequence[str] = (),
    footer: pq.FileMetaData | None = None,
    buffer: int = BUFFER_BYTES,
) -> OpenFile:
    """Open a fragment's file, after checking that it is the file that was planned.

    Parameters
    ----------
    fragment : Fragment
    filesystem : FileSystem
    categoricals : sequence of str
        Columns to decode as dictionaries.
    footer : FileMetaData, optional
        From an earlier read, so that it is not fetched again.
    buffer : int
        Bytes of the read buffer of a local file.
    """
    local = isinstance(filesystem, fs.LocalFileSystem)
    source = filesystem.open_input_file(fragment.path)
    try:
        size = source.size()
        if size != fragment.size:
            raise LakeChangedError(
                f"{fragment.relative} had {fragment.size} bytes when the run was planned and has {size} now; run again"
            )
        stored = dict(fragment.stored_names)
        constants = dict(fragment.constants)
        # a small buffer holds one page of a column; object stores need whole chunks in few requests
        file = pq.ParquetFile(
            source,
            metadata=footer,
            pre_buffer=not local,
            buffer_size=buffer if local else 0,
            read_dictionary=[stored.get(name, name) for name in categoricals if name not in constants],
            page_checksum_verification=fragment.verify,
        )
    except BaseException:
        source.close()
        raise
    return OpenFile(file, local)


def check_row_groups(fragment: Fragment, metadata: pq.FileMetaData) -> None:
    """Raise if the file's row groups are not the planned ones."""
    for group, rows in zip(fragment.row_groups, fragment.rows, strict=True):
        if group >= metadata.num_row_groups or metadata.row_group(group).num_rows != rows:
            raise LakeChangedError(f"the row groups of {fragment.relative} changed during the run; run again")


def count_chunks(metadata: pq.FileMetaData) -> int:
    return int(metadata.num_columns * metadata.num_row_groups)


class FragmentReader:
    """Reads the columns of a fragment from an open file.

    Parameters
    ----------
    fragment : Fragment
    file : OpenFile
    vectors : mapping
        Features that are an element of a vector column -> that column and the element's index.
    count_bytes : callable
        Called with the compressed bytes of each read.
    """

    def __init__(
        self,
        fragment: Fragment,
        file: OpenFile,
        vectors: Mapping[str, tuple[str, int]],
        count_bytes: Callable[[int], None],
    ):
        self.fragment = fragment
        self.file = file.parquet
        self._local = file.local
        self.rows = sum(fragment.rows)
        self._leaves = file.leaves
        self._vectors = vectors
        self._count_bytes = count_bytes
        self._constants = dict(fragment.constants)
        self._stored = dict(fragment.stored_names)
        self._names = {stored: name for name, stored in fragment.stored_names}

    def live_mask(self) -> NDArray[np.bool_] | None:
        """Rows that the table has not deleted; None if all are live."""
        if not self.fragment.deleted:
            return None
        parts = zip(self.fragment.deleted, self.fragment.rows, strict=True)
        return ~np.concatenate([np.zeros(n, dtype=bool) if d is None else d.mask(0, n) for d, n in parts])

    def read(self, names: Sequence[str]) -> list[Floats]:
        """Columns, and elements of vectors, as float64 arrays."""
        return self._arrays(names, self._table(names), self.rows)

    def column(self, name: str) -> pa.ChunkedArray:
        """One column in the type it is stored in."""
        table = self._table([name])
        return pa.chunked_array([pa.repeat(self._constants[name], self.rows)]) if table is None else table.column(name)

    def head(self, names: Sequence[str], rows: int) -> list[Floats]:
        """Like :meth:`read`, but only so many rows."""
        if not self._file_columns(names):
            return self._arrays(names, None, rows)
        return self._arrays(names, self._head(names, rows), rows)

    def _head(self, names: Sequence[str], rows: int) -> pa.Table:
        tables: list[pa.Table] = []
        for table in self._tables(names, rows, head=True):  # one, unless a batch ends early
            tables.append(table)
            if sum(each.num_rows for each in tables) >= rows:
                break
        return pa.concat_tables(tables).slice(0, rows)

    def matching(self, where: RowFilter, rows: int | None = None) -> Mask:
        """Which rows a filter keeps: of the first so many, or of all."""
        constants = dict(self.fragment.filter_constants)
        names = [name for name in where.columns if name not in constants]
        wanted = self.rows if rows is None else rows
        if not names:
            nothing = pa.table({"row": pa.nulls(wanted)})
            return where.mask(nothing, constants)
        parts: list[Mask] = []
        batch = min(_FILTER_ROWS, wanted) if rows is None else rows
        for table in self._tables(names, batch, head=rows is not None):
            parts.append(where.mask(table, constants, self.fragment.relative))
            if rows is not None and sum(part.size for part in parts) >= rows:
                break
        return np.concatenate(parts)[:wanted]

    def batches(self, names: Sequence[str], rows: int) -> Iterator[tuple[int, list[Floats]]]:
        """Like :meth:`read`, in batches of rows: their number and arrays."""
        if not self._file_columns(names):
            for start in range(0, self.rows, rows):
                count = min(rows, self.rows - start)
                yield count, self._arrays(names, None, count)
            return
        for table in self._tables(names, rows):
            yield table.num_rows, self._arrays(names, table, table.num_rows)

    def codes(self, name: str) -> CategoryCodes:
        """A categorical column."""
        table = self._table([name])
        return self._constant_codes(name) if table is None else as_codes(table.column(name))

    def head_codes(self, name: str, rows: int) -> CategoryCodes:
        """Like :meth:`codes`, but only so many rows."""
        if name in self._constants:
            whole = self._constant_codes(name)
            return CategoryCodes(whole.codes[:rows], whole.values)
        return as_codes(self._head([name], rows).column(name))

    def code_batches(self, name: str, rows: int) -> Iterator[CategoryCodes]:
        """Like :meth:`codes`, in batches of rows."""
        if name in self._constants:
            whole = self._constant_codes(name)
            for start in range(0, self.rows, rows):
                yield CategoryCodes(whole.codes[start : start + rows], whole.values)
        else:
            for table in self._tables([name], rows):
                yield as_codes(table.column(name))

    def frames(self, names: Sequence[str], rows: int) -> Iterator[Any]:
        """pandas DataFrames in batches of rows, with the types that the file has."""
        import pandas as pd

        plain = [name for name in names if name not in self._vectors and name not in self._constants]
        elements = [name for name in names if name in self._vectors]
        for table in self._tables(names, rows):
            columns = dict(decimals_to_float64(table.select(plain)).to_pandas().items())
            columns |= dict(zip(elements, self._arrays(elements, table, table.num_rows), strict=True))
            columns |= {
                name: np.full(table.num_rows, self._constants[name]) for name in names if name in self._constants
            }
            yield pd.DataFrame({name: columns[name] for name in names}, copy=False)

    def _file_columns(self, names: Sequence[str]) -> list[str]:
        """The columns of the file behind some names, as the file names them."""
        origins = (self._vectors[n][0] if n in self._vectors else n for n in names if n not in self._constants)
        return [self._stored.get(name, name) for name in dict.fromkeys(origins)]

    def _count(self, columns: Sequence[str], share: float = 1.0) -> None:
        """Count the chunks of some columns as read, or the dictionaries and a share of the rows.

        After the read: it rejects columns whose statistics contradict the schema, and the process would end here.
        """
        leaves = [index for column in columns for index in self._leaves.get(column, ())]
        self._count_bytes(sum(_chunk_bytes(group.column(index), share) for group in self._groups for index in leaves))

    @cached_property
    def _groups(self) -> list[pq.RowGroupMetaData]:
        metadata = self.file.metadata
        return [metadata.row_group(number) for number in self.fragment.row_groups]

    def _table(self, names: Sequence[str]) -> pa.Table | None:
        """The columns behind some names; None if they are all constants."""
        columns = self._file_columns(names)
        if not columns:
            return None
        with read_errors(self.fragment, lambda: self._damaged(columns), self._local):
            table = self.file.read_row_groups(list(self.fragment.row_groups), columns=columns, use_threads=False)
        self._check_rows(table.num_rows)
        self._count(columns)
        return self._renamed(table)

    def _tables(self, names: Sequence[str], rows: int, head: bool = False) -> Iterator[pa.Table]:
        groups, columns = list(self.fragment.row_groups), self._file_columns(names)
        with read_errors(self.fragment, lambda: self._damaged(columns), self._local):
            batches = self.file.iter_batches(rows, row_groups=groups, columns=columns, use_threads=False)
            found = 0
            for batch in batches:
                if not found:
                    self._count(columns, min(rows / max(self.rows, 1), 1.0) if head else 1.0)
                found += batch.num_rows
                yield self._renamed(pa.Table.from_batches([batch]))
        self._check_rows(found)

    def _check_rows(self, found: int) -> None:
        """Reject columns of another length than the footer says."""
        if found != (expected := sum(self.fragment.rows)):
            raise DataError(
                f"{self.fragment.relative} is damaged: its footer says {expected:,} rows and its columns hold "
                f"{found:,}; rewrite the file or exclude it"
            )

    def _damaged(self, columns: Sequence[str]) -> str:
        """The column with a checksum mismatch: pyarrow reads several at once and does not say which one it was."""
        groups = list(self.fragment.row_groups)
        for column in columns:
            try:
                for _ in self.file.iter_batches(_SEARCH_ROWS, row_groups=groups, columns=[column], use_threads=False):
                    pass
            except OSError:
                return f"column '{self._names.get(column, column)}'"
        return "columns " + ", ".join(self._names.get(column, column) for column in columns)

    def _renamed(self, table: pa.Table) -> pa.Table:
        """The table with the lake's names in place of the file's."""
        if not self._names:
            return table
        return table.rename_columns([self._names.get(name, name) for name in table.column_names])

    def _arrays(self, names: Sequence[str], table: pa.Table | None, rows: int) -> list[Floats]:
        arrays = []
        matrices: dict[str, Floats] = {}
        for name in names:
            if name in self._constants or table is None:
                arrays.append(np.full(rows, self._constants[name], dtype=np.float64))
            elif name in self._vectors:
                column, element = self._vectors[name]
                if column not in matrices:
                    matrices[column] = as_matrix(table.column(column))
                arrays.append(matrices[column][element])
            else:
                arrays.append(as_float64(table.column(name)))
        return arrays

    def _constant_codes(self, name: str) -> CategoryCodes:
        value = self._constants[name]
        if value is None or value != value:
            return CategoryCodes(np.full(self.rows, -1, dtype=np.int32), ())
        text = str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
        return CategoryCodes(np.zeros(self.rows, dtype=np.int32), (text,))


def _chunk_bytes(chunk: pq.ColumnChunkMetaData, share: float) -> int:
    """Compressed bytes of a column chunk, of which a share of the rows is read."""
    size = int(chunk.total_compressed_size)
    if share >= 1.0:
        return size
    dictionary = chunk.data_page_offset - chunk.dictionary_page_offset if chunk.has_dictionary_page else 0
    return int(dictionary + (size - dictionary) * share)

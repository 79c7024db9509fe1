"""Open Parquet files on a worker: checked to be the planned ones, kept open while a scan goes over their columns."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pt
from numpy.typing import NDArray
from pyarrow import fs

from excir_dask.errors import DataError, LakeChangedError, ReadError
from excir_dask.lake.plan import Piece

Floats = NDArray[np.float64]

_IDLE_FILES = 16
"""files kept open for the next slice"""

_IDLE_CHUNKS = 50_000
"""column chunks that the footers of those files may describe in all: some tens of megabytes"""


class OpenFiles:
    """Files that one slice has read and the next may want.

    Opening a file of 10,000 columns takes 0.1 s, and a wide lake has many slices for each of its files. A file is lent
    to one thread at a time. The store goes where the layout goes and starts empty there: it lives as long as a scan.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: OrderedDict[int, tuple[str, pq.ParquetFile]] = OrderedDict()

    def __reduce__(self) -> tuple[type[OpenFiles], tuple[()]]:
        return OpenFiles, ()

    @contextmanager
    def borrow(self, piece: Piece, filesystem: fs.FileSystem) -> Iterator[PieceReader]:
        """A reader of a piece. After an error its file is closed, not kept.

        Only local files are kept: one of an object store holds the chunks that it fetched last until it is closed,
        62 MB for 4 million rows of two columns.
        """
        with naming(piece):
            file = self._take(piece.path) or _open(piece, filesystem)
        try:
            _check_row_groups(piece, file.metadata)
            yield PieceReader(piece, file)
        except BaseException:
            file.close(force=True)
            raise
        if isinstance(filesystem, fs.LocalFileSystem):
            self._give_back(piece.path, file)
        else:
            file.close(force=True)

    def close(self) -> None:
        """Close what nobody has borrowed."""
        with self._lock:
            while self._idle:
                self._idle.popitem()[1][1].close(force=True)

    def _take(self, path: str) -> pq.ParquetFile | None:
        with self._lock:
            for number, (name, _) in self._idle.items():
                if name == path:
                    return self._idle.pop(number)[1]
        return None

    def _give_back(self, path: str, file: pq.ParquetFile) -> None:
        with self._lock:
            self._idle[id(file)] = (path, file)
            while len(self._idle) > _IDLE_FILES or sum(map(_chunks, self._idle.values())) > _IDLE_CHUNKS:
                _, (_, oldest) = self._idle.popitem(last=False)
                oldest.close(force=True)


class PieceReader:
    """Some row groups of an open file, as float64 arrays."""

    def __init__(self, piece: Piece, file: pq.ParquetFile):
        self.piece = piece
        self.file = file
        self.keys = dict(piece.keys)
        self.rows = sum(piece.rows)

    def read(self, names: Sequence[str]) -> list[Floats]:
        inside = [name for name in names if name not in self.keys]
        table = None
        if inside:
            with naming(self.piece):
                table = self.file.read_row_groups(list(self.piece.row_groups), columns=inside, use_threads=False)
        return self._arrays(names, table, self.rows)

    def column(self, name: str) -> pa.ChunkedArray:
        """One column as it is stored, for what is not a number."""
        with naming(self.piece):
            table = self.file.read_row_groups(list(self.piece.row_groups), columns=[name], use_threads=False)
        return table.column(name)

    def batches(self, names: Sequence[str], rows: int) -> Iterator[list[Floats]]:
        inside = [name for name in names if name not in self.keys]
        groups = list(self.piece.row_groups)
        with naming(self.piece):
            for batch in self.file.iter_batches(rows, row_groups=groups, columns=inside, use_threads=False):
                yield self._arrays(names, pa.Table.from_batches([batch]), batch.num_rows)

    def _arrays(self, names: Sequence[str], table: pa.Table | None, rows: int) -> list[Floats]:
        return [
            np.full(rows, self.keys[name]) if name in self.keys or table is None else _float64(table.column(name))
            for name in names
        ]


@contextmanager
def naming(piece: Piece) -> Iterator[None]:
    """Errors name the file and tell what may pass (the network) from what will not (a file that is gone)."""
    try:
        yield
    except FileNotFoundError as error:
        raise LakeChangedError(f"{piece.relative} was removed during the run; run again") from error
    except (PermissionError, pa.ArrowInvalid) as error:
        raise DataError(f"{piece.relative} cannot be read: {error}") from error
    except OSError as error:
        raise ReadError(f"{piece.relative} cannot be read: {error}") from error


def _open(piece: Piece, filesystem: fs.FileSystem) -> pq.ParquetFile:
    local = isinstance(filesystem, fs.LocalFileSystem)
    source = filesystem.open_input_file(piece.path)
    try:
        size = source.size()
        if size != piece.size:
            raise LakeChangedError(
                f"{piece.relative} had {piece.size} bytes when the run was planned and has {size} now; run again"
            )
        # a small read buffer holds one page of a column; object stores need whole chunks in few requests
        file = pq.ParquetFile(source, pre_buffer=not local, buffer_size=2**20 if local else 0)
    except BaseException:
        source.close()
        raise
    return file


def _check_row_groups(piece: Piece, metadata: pq.FileMetaData) -> None:
    for group, rows in zip(piece.row_groups, piece.rows, strict=True):
        if group >= metadata.num_row_groups or metadata.row_group(group).num_rows != rows:
            raise LakeChangedError(f"{piece.relative} has other row groups than when the run was planned; run again")


def _chunks(idle: tuple[str, pq.ParquetFile]) -> int:
    metadata = idle[1].metadata
    return int(metadata.num_columns * metadata.num_row_groups)


def _float64(column: pa.ChunkedArray) -> Floats:
    if pt.is_null(column.type):
        return np.full(len(column), np.nan)
    if not pt.is_float64(column.type):
        column = column.cast(pa.float64(), safe=False)
    if column.num_chunks == 1 and column.null_count == 0:
        return column.chunk(0).to_numpy()
    return column.to_numpy()

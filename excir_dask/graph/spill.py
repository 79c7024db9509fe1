"""Results that a local run retains between its scans: in memory up to a limit, then in files."""

from __future__ import annotations

import pickle
import shutil
import tempfile
import threading
from collections.abc import MutableMapping
from typing import Any

from excir_dask.graph.tree import Key


class SpillingStore:
    """Results of tasks; the least recently used go to a temporary folder (by zict).

    Parameters
    ----------
    limit : int
        Bytes that stay in memory.
    """

    def __init__(self, limit: int):
        self.limit = limit
        self._lock = threading.Lock()
        self._folder: str | None = None
        self._values: MutableMapping[str, Any] | None = None
        self._closed = False

    def task(self, key: Key, task: Any) -> Any:
        """A task that takes the value from here; or the task given, which then stores its result here."""
        name = repr(key)
        if self._values is not None and name in self._values:
            return (self._values.__getitem__, name)
        return (self._stored, name, task)

    def close(self) -> None:
        """Remove everything; results of tasks that still run are not stored."""
        with self._lock:
            self._closed = True
            self._values = None
            if self._folder is not None:
                shutil.rmtree(self._folder, ignore_errors=True)
                self._folder = None

    def _stored(self, name: str, value: Any) -> Any:
        values = self._opened()
        if values is not None:
            values[name] = value
        return value

    def _opened(self) -> MutableMapping[str, Any] | None:
        with self._lock:
            if self._values is None and not self._closed:
                import zict

                self._folder = tempfile.mkdtemp(prefix="excir-spill-")
                files = zict.Func(_dump, pickle.loads, zict.File(self._folder))
                self._values = zict.Buffer({}, files, self.limit, weight=lambda _, value: value.__sizeof__())
            return self._values


def _dump(value: Any) -> bytes:
    return pickle.dumps(value, protocol=5)

"""Starting the cluster that a cluster file describes, and ending it."""

from __future__ import annotations

import importlib
import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from excir_dask.clusters.config import check_names
from excir_dask.clusters.kind import ClusterFile, StartedKind
from excir_dask.clusters.registry import KINDS
from excir_dask.common.wording import one_line
from excir_dask.errors import ClusterError, UsageError, nearest

_NAMES_OF_USERS = ("environ", "pre-spawn-environ", "logging")
"""settings of dask below which any name is allowed"""


@contextmanager
def dask_settings(file: ClusterFile) -> Iterator[None]:
    """Dask's settings as the file has them, including its certificates.

    Certificates are settings, not arguments: so they reach the workers of every kind that passes its settings on.
    """
    import dask
    import distributed  # noqa: F401  (adds the settings that names are checked against)

    _require_package(file)
    for name in file.dask:
        _check_setting(file, name, dask.config.config)
    with dask.config.set({**file.dask, **_tls_settings(file.tls)}):
        yield


@contextmanager
def started(file: ClusterFile) -> Iterator[Any]:
    """The cluster of a file, with the workers it asks for on their way; it ends with the context."""
    kind = checked_kind(file)
    kind.check(file)
    with _failures(file):
        cluster = kind.start(file)
    with _closing(cluster, kind, file):
        with _failures(file):
            kind.scale(cluster, file)
        yield cluster


def checked_kind(file: ClusterFile) -> StartedKind:
    """The kind of a file, once all its options are known to exist."""
    kind = KINDS[file.kind]
    assert isinstance(kind, StartedKind), f"{file.kind} is not started"
    check_names(f"{file.path}: options of kind {file.kind}", file.options, _parameters(kind.takes_options()))
    return kind


@contextmanager
def _failures(file: ClusterFile) -> Iterator[None]:
    """Each kind fails in its own ways: a host refuses, a queue knows no such account, there is no operator."""
    try:
        yield
    except UsageError:
        raise
    except (TypeError, ValueError) as error:
        raise UsageError(f"{file.path}: {one_line(error)}; correct its options") from error
    except Exception as error:
        raise ClusterError(
            f"the cluster of {file.path} (kind {file.kind}) did not start: {one_line(error)}; "
            "check its options, or try again later"
        ) from error


@contextmanager
def _closing(cluster: Any, kind: StartedKind, file: ClusterFile) -> Iterator[None]:
    """Closes the cluster; a failure there never hides the result or the error of the run."""
    failed = True
    stack = ExitStack()
    stack.enter_context(cluster)
    try:
        yield
        failed = False
    finally:
        try:
            stack.close()
        except Exception as error:
            kind.abandon(cluster)
            if not failed:
                warnings.warn(
                    f"the cluster of {file.path} did not end cleanly ({one_line(error)}); "
                    "check whether it left something running",
                    stacklevel=2,
                )


def _require_package(file: ClusterFile) -> None:
    kind = KINDS[file.kind]
    try:
        importlib.import_module(kind.package)
    except ImportError as error:
        raise UsageError(
            f"{file.path}: kind {file.kind} needs a package that is not installed ({error}); "
            f"pip install 'excir-dask[{kind.extra}]'"
        ) from error


def _parameters(functions: list[Callable[..., Any]]) -> set[str]:
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {
        name
        for function in functions
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind in named
    }


def _tls_settings(tls: Mapping[str, str] | None) -> dict[str, Any]:
    if tls is None:
        return {}
    found: dict[str, Any] = {"distributed.comm.require-encryption": True, "distributed.comm.tls.ca-file": tls["ca"]}
    for role in ("client", "scheduler", "worker"):
        found[f"distributed.comm.tls.{role}.cert"] = tls["cert"]
        found[f"distributed.comm.tls.{role}.key"] = tls["key"]
    return found


def _check_setting(file: ClusterFile, name: str, known: Mapping[str, Any]) -> None:
    """Dask accepts any name silently, so a misspelt one would change nothing."""
    level: Any = known
    for part in name.split("."):
        if not isinstance(level, Mapping) or not level:  # what dask leaves empty is for users to fill
            return
        if part not in level and part.replace("_", "-") not in level:
            raise UsageError(f"{file.path}: dask has no setting '{name}'{nearest(part, map(str, level))}")
        if part in _NAMES_OF_USERS:
            return
        level = level.get(part, level.get(part.replace("_", "-")))

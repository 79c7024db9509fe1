"""Starting a cluster that a cluster file describes: the only place that knows how the kinds differ."""

from __future__ import annotations

import importlib
import inspect
import logging
import shutil
import signal
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

from excir_dask.clusters.config import ClusterFile, check_names
from excir_dask.common.textfile import read_text_file
from excir_dask.errors import ClusterError, UsageError, nearest

log = logging.getLogger(__name__)

MODULES: dict[str, tuple[str, str]] = {
    "local": ("distributed", ""),
    "ssh": ("asyncssh", "ssh"),
    "slurm": ("dask_jobqueue", "jobqueue"),
    "pbs": ("dask_jobqueue", "jobqueue"),
    "gateway": ("dask_gateway", "gateway"),
    "kubernetes": ("dask_kubernetes.operator", "kubernetes"),
}
"""what a kind imports, and the extra of this package that installs it"""


@contextmanager
def settings_of(file: ClusterFile) -> Iterator[None]:
    """dask's settings as the file has them, its certificates among them.

    Certificates are settings, not arguments: so they reach the workers of every kind that passes its settings on.
    """
    import dask
    import distributed  # noqa: F401  (brings the settings that names are checked against)

    if file.kind in MODULES:
        _module(file)
    for name in file.dask:
        _check_setting(file, name, dask.config.config)
    with dask.config.set({**file.dask, **_tls_settings(file.tls)}):
        yield


@contextmanager
def started(file: ClusterFile) -> Iterator[Any]:
    """The cluster that the file describes, with the workers it asks for on their way; it ends with the context."""
    start = starter_of(file)
    _check_queue(file)
    _check_kubernetes(file)
    with _failures_of(file):
        cluster = start()
    with _ended(cluster, file):
        with _failures_of(file):
            _ask_for_workers(cluster, file)
        yield cluster


def _check_queue(file: ClusterFile) -> None:
    command = {"slurm": "sbatch", "pbs": "qsub"}.get(file.kind)
    if command is not None and shutil.which(command) is None:
        raise UsageError(
            f"{file.path}: kind {file.kind} submits with '{command}', which this machine does not have; "
            "run where you submit jobs"
        )


def _check_kubernetes(file: ClusterFile) -> None:
    """Before a KubeCluster exists: one that never began would still be ended when Python ends, and fail loudly."""
    if file.kind != "kubernetes":
        return
    import kr8s  # what the operator's package speaks to Kubernetes with

    try:
        kr8s.api().version()
    except ValueError as error:
        raise UsageError(
            f"{file.path}: Kubernetes does not know who you are ({error}); log in so that 'kubectl get pods' works "
            "here, or run in a pod with a service account"
        ) from error
    except Exception as error:
        raise ClusterError(
            f"{file.path}: Kubernetes does not answer as it should ({_one_line(error)}); try 'kubectl version', "
            "look at the network, or try again later"
        ) from error


def _ask_for_workers(cluster: Any, file: ClusterFile) -> None:
    if file.workers is None:
        return
    low, high = (file.workers, None) if isinstance(file.workers, int) else file.workers
    cluster.scale(low)
    if file.kind in ("slurm", "pbs"):

        async def submitted() -> None:
            await cluster
            for job in list(cluster.workers.values()):
                await job  # raises what the queue said: nobody should wait for hours for a job that it refused

        cluster.sync(submitted)
    if high is not None:
        cluster.adapt(minimum=low, maximum=high)


@contextmanager
def _failures_of(file: ClusterFile) -> Iterator[None]:
    """Each kind fails in ways of its own: a host that refuses, a queue that knows no such account, no operator."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise UsageError(f"{file.path}: {error}; correct its options") from error
    except Exception as error:
        raise ClusterError(
            f"the cluster of {file.path} (kind {file.kind}) did not start: {_one_line(error)}; "
            "look at its options, or try again later"
        ) from error


@contextmanager
def _ended(cluster: Any, file: ClusterFile) -> Iterator[None]:
    """Ends the cluster; where that fails, the result of the run or its error comes through all the same."""
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
            if file.kind in ("slurm", "pbs"):
                cluster.shutdown_on_close = False  # or Python waits at its end, 10 s for an end that has failed
            if not failed:
                warnings.warn(
                    f"the cluster of {file.path} did not end well ({_one_line(error)}); "
                    "look whether it left something running",
                    stacklevel=2,
                )


def _one_line(error: Exception) -> str:
    """A queue's answer comes with its command and its streams, each on lines of its own."""
    return " ".join(str(error).split()) or type(error).__name__


def starter_of(file: ClusterFile) -> Callable[[], Any]:
    """A function that starts the cluster, once its options are known to exist."""
    start, named = _kind(file)
    check_names(f"{file.path}: options of kind {file.kind}", file.options, _parameters(*named))
    return start


def _kind(file: ClusterFile) -> tuple[Callable[[], Any], list[Callable[..., Any]]]:
    """What starts the cluster, and the functions whose parameters are its options."""
    options = dict(file.options)
    if file.kind == "local":
        from distributed import LocalCluster, Nanny, Worker

        if file.workers is not None:
            options["n_workers"] = file.workers if isinstance(file.workers, int) else 0
        # processes write of every task and connection that is taken from them; what matters comes back as an error
        options.setdefault("silence_logs", logging.WARNING if log.isEnabledFor(logging.DEBUG) else logging.CRITICAL)
        return lambda: _without_interrupts(lambda: LocalCluster(**options)), [LocalCluster, Nanny, Worker]
    if file.kind == "ssh":
        from distributed import SSHCluster

        if file.tls is not None:
            options["scheduler_options"] = {"protocol": "tls://", **(options.get("scheduler_options") or {})}
        return lambda: SSHCluster(**options), [SSHCluster]
    module = _module(file)
    if file.kind in ("slurm", "pbs"):
        from distributed import Security

        kind = module.SLURMCluster if file.kind == "slurm" else module.PBSCluster
        if file.tls is not None:  # the jobs get the files on their command lines
            options["security"] = Security(require_encryption=True)
        return lambda: kind(**options), [module.core.JobQueueCluster, kind.job_cls, module.core.Job]
    if file.kind == "gateway":
        return lambda: module.GatewayCluster(**options, **file.cluster_options), [module.Gateway]
    if isinstance(options.get("custom_cluster_spec"), str):
        options["custom_cluster_spec"] = own_spec(Path(file.path).parent / options["custom_cluster_spec"])
    options.setdefault("quiet", True)  # or it draws a box on standard output, where results go
    return lambda: module.KubeCluster(**options), [module.KubeCluster]


def _without_interrupts(start: Callable[[], Any]) -> Any:
    """Start a cluster whose processes Ctrl-C does not reach: it is for this process, which then ends them.

    Threads and processes inherit which signals are held back, those that a nanny starts later among them. In this
    thread Ctrl-C comes through as soon as the cluster has started.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        return start()
    resource_tracker.ensure_running()  # would be started with the first process, and let the signal through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def own_spec(path: Path) -> dict[str, Any]:
    """The DaskCluster in a file under a name of its own: two runs would share one, and the first to end would end it.

    KubeCluster's own spec is no way around it: it calls dask-scheduler, which dask no longer installs.
    """
    spec: Any = read_text_file(path, "a DaskCluster", "see cluster/kubernetes/daskcluster.yaml")
    try:
        name = f"{spec['metadata']['name']}-{uuid.uuid4().hex[:8]}"
        spec["metadata"]["name"] = name
        spec["spec"]["scheduler"]["service"]["selector"]["dask.org/cluster-name"] = name
    except (LookupError, TypeError) as error:
        raise UsageError(
            f"custom_cluster_spec is {path}, which is not a DaskCluster ({type(error).__name__}: {error}); "
            "see cluster/kubernetes/daskcluster.yaml"
        ) from error
    return dict(spec)


def _module(file: ClusterFile) -> Any:
    name, extra = MODULES[file.kind]
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UsageError(
            f"{file.path}: kind {file.kind} needs a package that is not installed ({error}); "
            f"pip install 'excir-dask[{extra}]'"
        ) from error


def _parameters(*functions: Callable[..., Any]) -> set[str]:
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
    """dask takes any name in silence, so that a misspelt one would change nothing."""
    level: Any = known
    for part in name.split("."):
        # names of variables, and trees that dask leaves empty, are the user's
        if not isinstance(level, Mapping) or not level:
            return
        if part not in level and part.replace("_", "-") not in level:
            raise UsageError(f"{file.path}: dask has no setting '{name}'{nearest(part, map(str, level))}")
        if part in ("environ", "pre-spawn-environ", "logging"):
            return
        level = level.get(part, level.get(part.replace("_", "-")))

"""The job queues SLURM and PBS: the scheduler runs in this process, each job is a worker."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any

from excir_dask.clusters.kind import ClusterFile, StartedKind, scale
from excir_dask.errors import UsageError


def _queue(name: str, cluster_class: str, submit: str) -> StartedKind:
    def start(file: ClusterFile) -> Any:
        import dask_jobqueue
        from distributed import Security

        options = dict(file.options)
        if file.tls is not None:  # jobs get the files on their command lines
            options["security"] = Security(require_encryption=True)
        return getattr(dask_jobqueue, cluster_class)(**options)

    def takes_options() -> list[Callable[..., Any]]:
        import dask_jobqueue
        from dask_jobqueue.core import Job, JobQueueCluster

        return [JobQueueCluster, getattr(dask_jobqueue, cluster_class).job_cls, Job]

    def check(file: ClusterFile) -> None:
        if shutil.which(submit) is None:
            raise UsageError(
                f"{file.path}: kind {name} submits jobs with '{submit}', which this machine does not have; "
                "run where you submit jobs"
            )

    return StartedKind(
        name,
        keys=frozenset({"options", "workers", "wait", "tls", "dask"}),
        required=("options", "workers"),
        package="dask_jobqueue",
        extra="jobqueue",
        start=start,
        takes_options=takes_options,
        check=check,
        scale=_submit,
        abandon=_abandon,
    )


def _submit(cluster: Any, file: ClusterFile) -> None:
    """Ask for workers and wait until the queue has taken the jobs: nobody should wait hours for a rejected job."""
    scale(cluster, file)

    async def submitted() -> None:
        await cluster
        for job in list(cluster.workers.values()):
            await job  # raises what the queue said

    cluster.sync(submitted)


def _abandon(cluster: Any) -> None:
    cluster.shutdown_on_close = False  # or Python tries again when it exits, for 10 s


SLURM = _queue("slurm", "SLURMCluster", "sbatch")
PBS = _queue("pbs", "PBSCluster", "qsub")

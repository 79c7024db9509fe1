"""Every kind of cluster by its name. A new kind is a module with its object, and a line here."""

from __future__ import annotations

from excir_dask.clusters.address import ADDRESS
from excir_dask.clusters.gateway import GATEWAY
from excir_dask.clusters.jobqueue import PBS, SLURM
from excir_dask.clusters.kind import Kind
from excir_dask.clusters.kubernetes import KUBERNETES
from excir_dask.clusters.local import LOCAL
from excir_dask.clusters.ssh import SSH

KINDS: dict[str, Kind] = {
    kind.name: kind for kind in (LOCAL, ADDRESS, SSH, SLURM, PBS, GATEWAY, KUBERNETES)
}  # fmt: skip

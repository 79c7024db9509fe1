"""A worker that serves many runs does not keep dask's metrics of each of them."""

from __future__ import annotations

from typing import Any

import pytest
from distributed import Client

from excir_dask import explain

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

RUNS = 30


def test_the_metrics_of_earlier_runs_are_forgotten(two_workers, workplace):
    def metrics(dask_worker: Any) -> list[int]:
        return [len(kept) for kept in (dask_worker.digests, dask_worker.digests_total, dask_worker.digests_max)]

    with Client(two_workers, set_as_default=False) as client:
        most = []
        for seed in range(RUNS):
            explain(workplace / "lake", output="y", fraction=0.5, seed=seed, scheduler=client)
            most.append(max(sum(kept) for kept in client.run(metrics).values()))
    assert most[-1] < 1.5 * most[1], most

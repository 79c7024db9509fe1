"""Explain a model over a Parquet lake of any size: ExCIR scores for features and groups, on threads or a Dask cluster.

>>> from excir_dask import explain
>>> explanation = explain("lake/", output="pred")  # doctest: +SKIP
"""

from excir_dask.agreement.compare import compare
from excir_dask.explain import explain
from excir_dask.models.per_process import PerProcess
from excir_dask.pipeline.drift import drift
from excir_dask.pipeline.merge import merge
from excir_dask.results.explanation import Explanation
from excir_dask.results.sweep import Sweep
from excir_dask.sweep.run import sweep
from excir_dask.training.result import Training
from excir_dask.training.train import train
from excir_dask.version import __version__

__all__ = [
    "Explanation",
    "PerProcess",
    "Sweep",
    "Training",
    "__version__",
    "compare",
    "drift",
    "explain",
    "merge",
    "sweep",
    "train",
]

"""How the runs of two explanations differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from excir_dask.results.explanation import Explanation
from excir_dask.results.metadata import ModelSource

_DIGITS = 12
"""digits of a fingerprint that are shown"""


def differences(a: Explanation, b: Explanation, outputs: Sequence[str]) -> dict[str, tuple[Any, Any]]:
    """Settings, rows, model and lake that differ: (value of a, value of b).

    Parameters
    ----------
    outputs : list of str
        Outputs that are compared; columns of other outputs do not count.
    """
    one, other = _described(a, outputs), _described(b, outputs)
    names = sorted({*one, *other})
    found = {name: (one.get(name), other.get(name)) for name in names if one.get(name) != other.get(name)}
    if "lake" in found:
        found["lake"] = (_lake(a), _lake(b))
    return found


def _described(explanation: Explanation, outputs: Sequence[str]) -> dict[str, Any]:
    settings = explanation.facts.settings.to_dict()
    lake, columns = explanation.provenance.lake, settings.pop("outputs")
    return {
        **settings,
        "columns": {output: columns.get(output) for output in outputs},
        "rows": explanation.facts.rows.used,
        "model": _model(explanation.provenance.model),
        # a lake that was moved has the same fingerprint, and is the same lake
        "lake": lake.fingerprint or lake.name,
    }


def _lake(explanation: Explanation) -> str:
    lake = explanation.provenance.lake
    return f"{lake.name} ({lake.fingerprint[:_DIGITS]})" if lake.fingerprint else lake.name


def _model(model: ModelSource | None) -> str | None:
    """A model as one string; None if the outputs are columns of the lake."""
    return None if model is None else f"{model.kind} {model.predict_type} {(model.sha256 or 'unknown')[:_DIGITS]}"

"""What differs between the runs behind two explanations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from excir_dask.results.explanation import Explanation

_DIGITS = 12
"""of a fingerprint that are shown"""


def differences(a: Explanation, b: Explanation, outputs: Sequence[str]) -> dict[str, tuple[Any, Any]]:
    """Settings, rows, model and lake, where they differ: (a's value, b's value).

    Parameters
    ----------
    outputs : list of str
        Those that are compared; the columns of others do not count as a difference.
    """
    one, other = _described(a, outputs), _described(b, outputs)
    names = sorted({*one, *other})
    found = {name: (one.get(name), other.get(name)) for name in names if one.get(name) != other.get(name)}
    if "lake" in found:
        found["lake"] = (_lake(a), _lake(b))
    return found


def _described(explanation: Explanation, outputs: Sequence[str]) -> dict[str, Any]:
    settings = dict(explanation.facts["settings"])
    columns = settings.pop("outputs", {})
    lake = explanation.provenance.get("lake") or {}
    model = explanation.provenance.get("model") or settings.get("model") or {}
    return {
        **settings,
        "columns": {output: columns.get(output) for output in outputs},
        "rows": explanation.facts["rows"]["used"],
        "model": _joined(model.get("kind"), model.get("predict_type"), model.get("sha256")),
        # a lake that was only moved has the same fingerprint and is the same lake
        "lake": lake.get("fingerprint") or lake.get("name"),
    }


def _lake(explanation: Explanation) -> str | None:
    lake = explanation.provenance.get("lake") or {}
    mark = lake.get("fingerprint")
    return f"{lake.get('name')} ({mark[:_DIGITS]})" if mark else lake.get("name")


def _joined(kind: str | None, predict_type: str | None, sha256: str | None) -> str | None:
    """A model in one text, None where the outputs were columns of the lake."""
    return None if kind is None else " ".join([kind, *filter(None, [predict_type, (sha256 or "")[:_DIGITS]])])

"""What the report of an explanation says: title, summary, rows, columns, quality, limits and provenance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from excir_dask.common.wording import count, percent, size
from excir_dask.render.html.blocks import Block, Paragraphs, Points, Strong
from excir_dask.render.text.notes import notes, unseen

if TYPE_CHECKING:
    import pandas as pd

    from excir_dask.results.explanation import Explanation

FAINT = 0.05
"""strength below which a feature is said to show almost no co-movement"""
SUMMED = 12
"""most outputs in the summary"""
COLUMNS = 40
"""most names of columns that were left out or converted"""
LIMITS = (
    (
        "CIR measures co-movement, not causes.",
        "A sensor that only follows the real driver scores as high as the driver.",
    ),
    (
        "A score of 0.5 does not mean “unimportant”.",
        "If an output rises on one side of the feature's centre and falls on the other, like a square, the two cancel.",
    ),
    (
        "Few rows can carry a score.",
        "Centres are robust, the ratio is not: one extreme value can dominate. “Effective rows” shows how many rows "
        "carry a score; low support is flagged.",
    ),
    (
        "Margins are better outputs than labels.",
        "The centre of an output of zeros and ones jumps with the share of ones. Shifting or scaling an output changes "
        "nothing; a sigmoid changes scores.",
    ),
    (
        "Standard errors assume independent rows, or independent row groups",
        "if the spread between row groups shows that rows of one are alike. Dependence between row groups, such as "
        "between days, goes unseen.",
    ),
    (
        "A group's score depends on its members' scales.",
        "“Scaled” weighs all members equally. Members that move against each other cancel; “unsigned” is the strength "
        "if they did not.",
    ),
)


def title(explanation: Explanation) -> str:
    """What is explained."""
    outputs = list(explanation.outputs["output"])
    return f"What moves with {outputs[0]}" if len(outputs) == 1 else f"What moves with {len(outputs)} outputs"


def summary(explanation: Explanation) -> list[Block]:
    """The answer: what CIR cannot see, then plain sentences for one output, a line per output for several."""
    first: list[Block] = [Paragraphs([f"{note[0].upper()}{note[1:]}."]) for note in unseen(explanation)]
    return [*_answer(explanation), *first]


def _answer(explanation: Explanation) -> list[Block]:
    outputs = list(explanation.outputs["output"])
    tables = [explanation.of(output) for output in outputs[:SUMMED]]
    if len(outputs) == 1:
        return [Paragraphs([_sentence(tables[0], outputs[0])])]
    points = []
    for output, table in zip(outputs, tables, strict=False):
        sides = ((1, "▲"), (-1, "▼"))
        parts = [f"{arrow} {', '.join(names[:3])}" for way, arrow in sides if (names := _strongest(table, way))]
        points.append((f"{output}:", "  ".join(parts) or "no feature moves with it"))
    found: list[Block] = [Paragraphs(["Features that move most with (▲) or against (▼) each output:"]), Points(points)]
    if len(outputs) > SUMMED:
        found.append(Paragraphs([f"The other {len(outputs) - SUMMED:,} outputs are below."]))
    return found


def _sentence(table: pd.DataFrame, output: str) -> list[str]:
    said: list[str] = []
    for way, word in ((1, "with"), (-1, "against")):
        names = _strongest(table, way)[:3]
        if names:
            said += ["; "] if said else []
            for place, name in enumerate(names):
                said += [" and " if place == len(names) - 1 else ", "] if place else []
                said.append(Strong(name))
            said.append(f" {'moves' if len(names) == 1 else 'move'} most {word} {output}")
    faint = int((table["strength"] < FAINT).sum())
    said = [*said, "."] if said else [f"No feature moves with {output}."]
    return [*said, f" {faint:,} of {count(len(table), 'feature')} show almost no co-movement."] if faint else said


def _strongest(table: pd.DataFrame, way: int) -> list[str]:
    return [str(name) for name in table.loc[(table["strength"] >= FAINT) & (table["direction"] == way), "feature"]]


def cards(explanation: Explanation) -> list[tuple[str, str, str]]:
    """Numbers at a glance."""
    rows, settings = explanation.facts.rows, explanation.facts.settings
    everything = "all rows of the lake" if settings.where is None else f"all rows where {settings.where}"
    sample = everything if settings.fraction == 1 else f"a {percent(settings.fraction)} sample"
    outputs, model = list(explanation.outputs["output"]), explanation.provenance.model
    source = "columns of the lake" if len(outputs) > 1 else "a column of the lake"
    groups = explanation.groups["group"].nunique()
    found = [
        (f"{rows.used:,}", "rows used", sample if settings.fraction == 1 else f"{sample} of {rows.lake:,}"),
        (f"{explanation.features['feature'].nunique():,}", "features", f"ranked by {settings.rank_by}"),
        (
            outputs[0] if len(outputs) == 1 else f"{len(outputs)}",
            "output" if len(outputs) == 1 else "outputs",
            source if model is None else f"{model.kind} model, {model.predict_type}",
        ),
    ]
    if groups:
        found.append((f"{groups:,}", "groups", "of features"))
    return found


def read(explanation: Explanation) -> list[tuple[str, str]]:
    """What was read, and which rows were used."""
    rows, settings, lake = (explanation.facts.rows, explanation.facts.settings, explanation.provenance.lake)
    found = [("Lake", lake.name)]
    if lake.files is not None:
        found.append(("Files", f"{lake.files:,}, {size(lake.bytes or 0)}"))
    found.append(("Rows of the lake", f"{rows.lake:,}"))
    if settings.where is not None:
        found.append(("Rows that count", settings.where))
        found.append(("Dropped: other rows", f"{rows.filtered_out:,}"))
    if settings.fraction < 1:
        by = "row by row" if settings.sampling == "rows" else "in whole row groups"
        found.append(("Sample", f"{rows.sampled:,} rows ({percent(settings.fraction)}), {by}, seed {settings.seed}"))
    found.append(("Dropped: no output", f"{rows.without_output:,}"))
    if settings.weights:
        found.append(("Weights", settings.weights))
        found.append(("Dropped: weight missing or zero", f"{rows.without_weight:,}"))
    found.append(("Rows used", f"{rows.used:,}"))
    missing = explanation.features.drop_duplicates("feature")
    missing = missing[missing["missing"] > 0].sort_values("missing", ascending=False)
    if len(missing):
        most = missing.iloc[0]
        found.append(
            ("Features with missing values", f"{len(missing):,}; most in {most['feature']}: {most['missing']:,} rows")
        )
    return found


def columns(explanation: Explanation) -> list[tuple[str, str, str]]:
    """Columns that were left out or converted, with the reason."""
    facts = explanation.facts
    return [
        *((name, "left out", reason) for name, reason in sorted(facts.left_out.items())),
        *((name, "converted", _converted(kinds)) for name, kinds in sorted(facts.converted.items())),
    ]


def _converted(kinds: str) -> str:
    """From which types, and in which unit if it is a time."""
    types, mark, unit = kinds.partition(", in ")
    return f"from {types} to double{mark}{unit}"


def quality(explanation: Explanation) -> list[tuple[str, str]]:
    """The notes of the text, as points."""
    found = [("", f"{note[0].upper()}{note[1:]}.") for note in notes(explanation)]
    return found or [("", "Nothing needs a remark.")]


def provenance(explanation: Explanation) -> list[tuple[str, str]]:
    """Where the result came from, and how to reproduce it."""
    made, settings = explanation.provenance, explanation.facts.settings
    model = made.model
    amount = f", {size(made.bytes_read)} read" if made.bytes_read else ""
    found = [("Finished", made.finished.replace("T", " ").replace("+00:00", " UTC"))]
    if made.lake.fingerprint is not None:
        found.append(("Fingerprint of the lake", made.lake.fingerprint))
    if model is not None:
        found.append(("Model", f"{model.kind}, {model.predict_type}"))
        found.append(("SHA-256 of the model", model.sha256 or "unknown"))
        found.append(("Columns of the model", f"{len(model.columns):,}"))
    found += [
        ("Duration", f"{made.seconds:,.3g} s, {count(made.slices, 'slice')}{amount}"),
        ("Centring", settings.centering),
        ("Ranked by", settings.rank_by),
        ("Outputs", _outputs({name: settings.outputs[name] for name in explanation.outputs["output"]})),
        ("Versions", ", ".join(f"{name} {number}" for name, number in sorted(made.versions.items()))),
    ]
    return found


def interval(explanation: Explanation) -> str:
    """What the whiskers of the ranking mean."""
    if explanation.facts.settings.fraction < 1:
        return "95% interval of the score of all rows of the lake"
    return "95% interval of the score of other rows like these"


def _outputs(columns: Mapping[str, str | None]) -> str:
    said = [name if column in (None, name) else f"{name} = {column}" for name, column in columns.items()]
    return "; ".join(said[:COLUMNS]) + (f"; and {len(said) - COLUMNS:,} more" if len(said) > COLUMNS else "")

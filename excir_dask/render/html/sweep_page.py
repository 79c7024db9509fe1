"""The report of a sweep: the choice first, then what it rests on."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from excir_dask.common.wording import percent
from excir_dask.render.html.blocks import Block, Facts, Grid, Legend, Paragraphs, Points, Report, Rows, Section, Verdict
from excir_dask.render.html.figures import DARK
from excir_dask.render.html.page import require, write
from excir_dask.render.html.table_data import Column, pack
from excir_dask.render.plots.sweep import NAMES
from excir_dask.render.text.sweep import headline, table_of, title, verdict
from excir_dask.sweep.summary import HIGH, LOW, of_kind

if TYPE_CHECKING:
    from excir_dask.results.sweep import Sweep

LIMITS = (
    (
        "A sweep holds for this lake and this model.",
        "Another lake needs another sweep; a share that is enough here may be too small there.",
    ),
    (
        "Few seeds can be lucky.",
        "The choice holds for every seed and output that was tried, not for others. More seeds make it more reliable.",
    ),
    (
        "Features with almost the same score trade places.",
        "The Jaccard index counts that as a difference, though no score changed much.",
    ),
    (
        "Times are those of this machine,",
        "measured once per run. A sample of rows reads all files, a sample of row groups does not.",
    ),
)


def save(sweep: Sweep, path: str | os.PathLike[str]) -> Path:
    """Write the report to a file."""
    require()
    return write(page(sweep), path)


def page(sweep: Sweep) -> Report:
    """The report as sections."""
    full = of_kind(sweep.summary).iloc[-1]
    cards = [
        ("none" if sweep.chosen is None else percent(sweep.chosen), "share of the rows chosen", _target(sweep)),
        (f"{sweep.settings['rows']:,}", "rows used", f"{full['seconds']:.3g} s to explain"),
        (
            f"{len(sweep.settings['seeds'])}",
            "seeds per fraction",
            "each by its worst output" if sweep.runs["output"].nunique() > 1 else "of one output",
        ),
    ]
    if sweep.chosen is not None:
        row = of_kind(sweep.summary).set_index("fraction").loc[sweep.chosen]
        cards.insert(1, (f"{row['speedup']:.1f}×", "as fast as all rows", f"{row['seconds']:.3g} s"))
    return Report(
        kicker="ExCIR sweep report",
        title="How few rows give the same ranking?",
        summary=[Verdict(verdict(sweep), "bad" if sweep.chosen is None else "good")],
        cards=cards,
        sections=[*_charts(sweep), *_tables(sweep), *_end(sweep)],
        footer="This page holds measures of agreement, and no rows of the lake. It needs no network and sends nothing.",
        dark=DARK,
    )


def _target(sweep: Sweep) -> str:
    residual = sweep.settings.get("target_residual")
    limit = "" if residual is None else f", residual at most {residual:g}"
    return f"target: Jaccard@{of_kind(sweep.summary)['k'].iloc[0]} of {sweep.settings['target_jaccard']:g}{limit}"


def _charts(sweep: Sweep) -> list[Section]:
    from excir_dask.render.html.sweep_charts import front, growth

    signs = [("with", "on the Pareto front"), ("hollow", "another fraction is faster and agrees better")]
    chosen = [("against", "chosen")] if sweep.chosen is not None else []
    knee = [("ring", "knee of the front")] if sweep.knee is not None else []
    seeds = len(sweep.settings["seeds"])
    worst = "; every seed counts by its worst output" if sweep.runs["output"].nunique() > 1 else ""
    return [
        Section(
            "front", "Agreement against runtime", [Legend([*signs, *chosen, *knee]), front(sweep)],
            "A point per fraction: mean over seeds; the bar reaches down to the worst seed.",
        ),
        Section(
            "growth", "Agreement against the share of rows",
            [Legend([("with", "mean, and band from the worst to the best seed"), *chosen]), growth(sweep)],
            f"{seeds} seeds per fraction{worst}.",
        ),
    ]  # fmt: skip


def _tables(sweep: Sweep) -> list[Section]:
    blocks: list[Block] = []
    for kind in sweep.summary["kind"].unique():
        head, *rows = table_of(sweep, kind)
        fractions = of_kind(sweep.summary, kind)["fraction"].tolist()
        strong = fractions.index(sweep.chosen) if sweep.chosen in fractions else None
        blocks += [Paragraphs([title(sweep, kind)]), Grid(head, rows, text_columns=1, strong=strong)]
    summary = of_kind(sweep.summary)
    rows = [
        [NAMES[name], *("–" if value != value else f"{value:.3f}" for value in summary[f"{name}_mean"])]
        for name in (*HIGH, *LOW)
    ]
    shares = [percent(fraction) for fraction in summary["fraction"]]
    lead = f"Means over seeds. Full agreement is 1 for the first {len(HIGH)}, and 0 for the others."
    return [
        Section("fractions", "All fractions", blocks),
        Section("figures", "All measures of agreement", [Grid(["measure", *shares], rows)], lead),
        Section("runs", "All runs", [Rows(_runs(sweep), "runs")], "Search, filter, or sort by any column."),
    ]


def _runs(sweep: Sweep) -> dict[str, object]:
    runs = sweep.runs
    return pack(
        [
            Column("share", "text", [percent(fraction) for fraction in runs["fraction"]], pick=True),
            Column("seed", "whole", runs["seed"]),
            Column("output", "text", runs["output"], pick=True),
            Column("of", "text", runs["kind"], pick=True),
            Column("rows", "whole", runs["rows"]),
            Column("seconds", "number", runs["seconds"]),
            *(Column(NAMES[name], "number", runs[name]) for name in (*HIGH, *LOW)),
        ]
    )


def _end(sweep: Sweep) -> list[Section]:
    settings = sweep.settings
    lake, asked = settings["lake"], settings["explain"]
    facts = [("Sweep", headline(sweep)), ("Lake", str(lake["name"]))]
    facts += [("Fingerprint of the lake", lake["fingerprint"])] if "fingerprint" in lake else []
    facts += [
        ("Seeds", ", ".join(map(str, settings["seeds"]))),
        ("Sampling", asked["sampling"]),
        ("Centring", asked["centering"]),
        ("Ranked by", asked["rank_by"]),
        ("Versions", ", ".join(f"{name} {number}" for name, number in sorted(settings["versions"].items()))),
    ]
    return [
        Section("limits", "What a sweep means, and what it does not", [Points(LIMITS)]),
        Section("provenance", "Provenance", [Facts(facts)]),
    ]

"""The result of a run: tables to read, regroup, save and load, without the lake or a cluster."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from excir_dask.common.atomic import new_folder
from excir_dask.common.wording import listed
from excir_dask.errors import UsageError, nearest
from excir_dask.graph.state_files import StateFile, write_state
from excir_dask.kernels.uncertainty import DRAWS
from excir_dask.lake.sample import SAMPLINGS
from excir_dask.results import views
from excir_dask.results.explanation_files import FORMAT, MAIN, VERSION, named_groups, read_files, write_manifest
from excir_dask.results.group_files import write_groups
from excir_dask.results.metadata import Facts, Provenance
from excir_dask.results.segments import Segments
from excir_dask.results.storage import FILES, REPORT, STATE, check_target, json_text
from excir_dask.results.tables import group_table, lake_errors, ranking_errors, records

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from excir_dask.graph.lake_state import LakeState
    from excir_dask.kernels.uncertainty import Stability
    from excir_dask.results.profile import Profile

SHORT = ("feature", "cir", "lift", "direction", "stderr", "dependence", "rank", "flag")
"""columns of the top"""
GROUPS_NOTE = "groups of this explanation; a later run reads them with --groups"


@dataclass(frozen=True, repr=False)
class Explanation(views.Displayed):
    """Scores of every feature and group against every output.

    Attributes
    ----------
    features : DataFrame
        A row per output and feature, best rank first. ``cir`` is the aligned share of co-movement (0.5: neither
        direction prevails), ``null`` what chance gives, ``lift`` how far ``cir`` goes from there to 1 (or -1: to 0),
        ``strength`` is ``abs(lift)``, ``direction`` 1 or -1, ``stderr`` the standard error of ``cir``, ``p_chance`` the
        test against chance, ``dependence`` the size of any relation, ``bend`` the share of it that is not one-way,
        ``center_bound`` the certified bound on the effect of approximate centres.
    groups : DataFrame
        A row per output and group. ``cir`` weights members by their scale, ``cir_scaled`` equally;
        ``strength_unsigned`` is the strength if all members moved the same way. ``flag`` warns where members cancel or
        their scales differ more than tenfold.
    outputs : DataFrame
        A row per output: centre, quartiles and number of rows.
    facts : Facts
        Settings, row counts (``facts.rows.used``), columns left out: everything that repeats with the run.
    provenance : Provenance
        Times, versions and fingerprints: what may differ between two runs with the same result.
    """

    features: pd.DataFrame
    groups: pd.DataFrame
    outputs: pd.DataFrame
    facts: Facts
    provenance: Provenance
    source: LakeState | StateFile | None = field(default=None, compare=False)
    """what :attr:`state` comes from: a state, or the file of one"""
    by: Segments | None = field(default=None, compare=False)
    """scores of segments; None where nobody asked"""

    @property
    def state(self) -> LakeState:
        """What the lake was reduced to: :func:`~excir_dask.merge` adds such states up without reading a row."""
        source = self.known_source
        return source.read() if isinstance(source, StateFile) else source

    @property
    def known_source(self) -> LakeState | StateFile:
        """What :attr:`state` comes from; an error where there is none."""
        if self.source is None:
            raise UsageError("this explanation has no state; compute it again with this version")
        return self.source

    @property
    def segments(self) -> pd.DataFrame:
        """A row per segment, output and feature: ``features`` of every segment, with a column ``segment``."""
        return self._by.features

    def segment(self, name: str) -> Explanation:
        """The explanation of one segment, as of a run on its rows alone."""
        by = self._by
        if name not in by.names:
            raise UsageError(f"there is no segment '{name}'{nearest(name, by.names)} (segments: {listed(by.names)})")
        (rows,) = [each for each in self.facts.segments if each.name == name]
        states = by.states
        settings = replace(self.facts.settings, by=())
        tables = by.of(name)
        return Explanation(
            features=tables["features"],
            groups=tables["groups"],
            outputs=tables["outputs"],
            facts=replace(self.facts, settings=settings, rows=rows.counts, segments=(), constant=(), auto=None),
            provenance=replace(self.provenance, run_id=None, merged=None, audit=None),
            source=None if states is None else states.lake(name),
        )

    @property
    def _by(self) -> Segments:
        if self.by is None:
            raise UsageError("this explanation has no segments; name the columns whose values they are (by, --by)")
        return self.by

    def top(self, k: int = 8, output: str | None = None) -> pd.DataFrame:
        """The ``k`` best ranked features of an output (the first one by default), with the columns that fit a terminal.

        :meth:`of` has all columns.
        """
        return self.of(output).head(k)[list(SHORT)].reset_index(drop=True)

    def of(self, output: str | None = None) -> pd.DataFrame:
        """The feature table of one output."""
        names = list(self.outputs["output"])
        if output is not None and output not in names:
            raise UsageError(f"there is no output '{output}'{nearest(output, names)} (outputs: {', '.join(names)})")
        return self.features[self.features["output"] == (names[0] if output is None else output)]

    def to_pandas(self) -> pd.DataFrame:
        """All features of all outputs: a copy of ``features`` that may be changed."""
        return self.features.copy()

    def to_csv(self, path: str | os.PathLike[str] | None = None) -> str | None:
        """Write all features of all outputs as CSV; without a path, return the text."""
        text: str | None = self.features.to_csv(path, index=False)
        return text

    def intervals(self, level: float = 0.95) -> pd.DataFrame:
        """Intervals that contain the scores of all rows of the lake with probability ``level``.

        A run over all rows has intervals of width 0. A row per output and feature, with ``low``, ``high`` and ``by``:
        whether single rows or the spread between row groups gave the error.
        """
        from excir_dask.kernels.uncertainty import intervals

        if not 0.0 < level < 1.0:
            raise UsageError(f"level is {level}; it must be between 0 and 1")
        table = self.features[["output", "feature", "cir"]].copy()
        errors, n_eff = lake_errors(self.features, self.facts)
        low, high = intervals(table["cir"].to_numpy(), errors, n_eff, level)
        by_groups = SAMPLINGS[self.facts.settings.sampling].whole_row_groups
        return table.assign(low=low, high=high, by=self.features["stderr_by"] if by_groups else "rows")

    def stability(
        self,
        k: int = 8,
        target: float = 0.9,
        output: str | None = None,
        fraction: float | None = None,
        draws: int = DRAWS,
    ) -> Stability:
        """How well the top ``k`` of this sample represents that of all rows, simulated from scores and errors.

        Parameters
        ----------
        k : int
        target : float
            Wanted Jaccard index with the top of all rows.
        output : str, optional
            The first one by default.
        fraction : float, optional
            Predict the answer of a larger sample with this share of the rows.
        draws : int
            Rankings to simulate.
        """
        from excir_dask.kernels.uncertainty import smaller_errors, stability

        table, rows, rank_by = self.of(output), self.facts.rows, self.facts.settings.rank_by
        if k < 1 or not 0.0 < target <= 1.0:
            raise UsageError(f"k is {k} and target is {target}; k must be at least 1, target above 0 and at most 1")
        scores, errors, n_eff, null, reach = ranking_errors(table, self.facts)
        share = rows.sampled / rows.lake
        if fraction is not None:
            if not share <= fraction <= 1.0:
                raise UsageError(f"fraction is {fraction}; it must be between the sample's share, {share:g}, and 1")
            errors = smaller_errors(errors, share, fraction) if share < 1.0 else errors
        ranks = table["rank"].to_numpy()
        return stability(
            scores, errors, n_eff, ranks, k, target, rank_by, null=null, reach=reach, draws=draws
        )  # fmt: skip

    def regroup(self, groups: Mapping[str, Sequence[str]]) -> Explanation:
        """The same explanation with other groups; the lake is not read again.

        Parameters
        ----------
        groups : mapping name -> feature names
            Groups may overlap.
        """
        rank_by = self.facts.settings.rank_by
        table = group_table(self.features, groups, rank_by)
        return replace(self, groups=table, by=None if self.by is None else self.by.regrouped(groups, rank_by))

    def profile(self, name: str, output: str | None = None) -> Profile:
        """The output's quartiles along the cells of a feature, with counts, missing share and scores.

        Parameters
        ----------
        name : str
            A feature, or a text column: then there is a cell per category.
        output : str, optional
            Default: the first one.

        Examples
        --------
        >>> import pandas as pd
        >>> from excir_dask import explain
        >>> frame = pd.DataFrame({"gear": [1.0, 1, 2, 2, 2, 3], "pred": [0.0, 2, 3, 3, 5, 9]})
        >>> explain(frame, output="pred").profile("gear").table[["cell", "rows", "q50"]]
          cell  rows  q50
        0    1   2.0  0.0
        1    2   3.0  3.0
        2    3   1.0  9.0
        """
        from excir_dask.results.profile import profile_of

        features, outputs = self.of(output), list(self.outputs["output"])
        found = str(features["output"].iloc[0])
        return profile_of(self.state, name, outputs.index(found), features, self.groups[self.groups["output"] == found])

    def plot_profile(self, name: str, output: str | None = None, ax: Axes | None = None) -> Axes:
        """The output's median and quartiles along a feature, and how the rows spread over it (needs matplotlib)."""
        return views.profile(self.profile(name, output), ax)

    def plot(self, k: int = 15, output: str | None = None, ax: Axes | None = None) -> Axes:
        """Bars of the ``k`` best ranked features with their errors (needs matplotlib)."""
        return views.ranking(self, k, output, ax)

    def heatmap(
        self,
        shape: tuple[int, int] = (8, 8),
        outputs: str | Sequence[str] | None = None,
        features: Sequence[str] | None = None,
        path: str | os.PathLike[str] | None = None,
    ) -> Figure:
        """Maps of features that form a grid (pixels, sensors), a panel per output (needs matplotlib).

        All panels share one scale, symmetric about 0.5; constant features are hatched.

        Parameters
        ----------
        shape : (int, int)
            Rows and columns of the grid.
        outputs : str or list of str, optional
            Default: all of them.
        features : list of str, optional
            Names row by row, from the upper left. Default: all features in natural order, ``pixel_2`` before
            ``pixel_10``.
        path : path, optional
            Where to save the picture: .png, .svg or .pdf.

        Returns
        -------
        Figure
            Notebooks show it. It is not registered with ``pyplot``.
        """
        return views.heatmap(self, shape, outputs, features, path)

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write a report: one HTML file that works offline (needs bokeh and jinja2).

        It holds scores and counts, never rows. An older report is replaced.

        Parameters
        ----------
        path : path
            A file, such as ``report.html``.
        """
        return views.report(self, path)

    def save(self, folder: str | os.PathLike[str], overwrite: bool = False, report: bool | None = None) -> Path:
        """Write the explanation to a folder, which appears whole or not at all.

        ``features.parquet`` and ``groups.parquet`` hold the tables, ``groups.yaml`` the groups for a later run,
        ``explanation.json`` everything that repeats with the run, byte for byte, ``state.bin`` what the lake was
        reduced to, ``manifest.json`` provenance and digests, and ``report.html`` the report: by default where bokeh is
        installed. With segments, ``segments.parquet``, ``segment_groups.parquet`` and ``segment_outputs.parquet`` hold
        their tables and ``segments.bin`` their states.
        """
        target = check_target(folder, overwrite, "explanation")
        with new_folder(target, FILES["explanation"]) as made:
            write_files(self, made)
            write_manifest(self.provenance, made)
            views.add_report(self, made / REPORT, report)
        return target

    @classmethod
    def load(cls, folder: str | os.PathLike[str], check_state: bool = True) -> Explanation:
        """Load a saved explanation; a file that changed since is an error.

        The state is read when it is used. ``check_state=False`` leaves its check until then: merges read it anyway.
        """
        return cls(**read_files(Path(folder), check_state))

    def to_json(self) -> str:
        """Everything that repeats with the run, as JSON that is then identical byte for byte."""
        content = {
            "format": FORMAT,
            "version": VERSION,
            "facts": self.facts.to_dict(),
            "outputs": records(self.outputs),
            "features": records(self.features),
            "groups": records(self.groups),
        }
        return json_text(content)


def write_files(explanation: Explanation, folder: Path) -> None:
    """Fill a folder with everything that :func:`write_manifest` then lists."""
    groups = explanation.groups
    explanation.features.to_parquet(folder / "features.parquet", index=False)
    groups.to_parquet(folder / "groups.parquet", index=False)
    (folder / MAIN).write_text(explanation.to_json(), encoding="utf-8")
    if len(groups) or explanation.facts.settings.group_correlated is not None:
        write_groups(named_groups(groups), folder / "groups.yaml", GROUPS_NOTE)
    if explanation.by is not None:
        explanation.by.write(folder)
    if isinstance(explanation.source, StateFile):
        shutil.copyfile(explanation.source.path, folder / STATE)
    elif explanation.source is not None:
        write_state(explanation.source, folder / STATE)

"""The command line: all commands in one group. Results go to standard output, everything else to standard error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import click

from excir_dask.cli.audit.group import audit
from excir_dask.cli.compare import compare
from excir_dask.cli.completion import completion
from excir_dask.cli.demo import demo
from excir_dask.cli.doctor import doctor
from excir_dask.cli.drift import drift
from excir_dask.cli.explain import explain
from excir_dask.cli.group import ExcirGroup
from excir_dask.cli.merge import merge
from excir_dask.cli.plan import plan
from excir_dask.cli.profile import profile
from excir_dask.cli.report import report
from excir_dask.cli.sweep import sweep
from excir_dask.cli.train import train
from excir_dask.version import __version__


@click.group(cls=ExcirGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="excir")
def excir() -> None:
    """Explain a model over a Parquet lake of any size.

    \b
    excir demo                                   see it work on a generated lake
    excir plan lake/                             what would be read, and schema conflicts
    excir train lake/ --label y --out model.ubj  train an XGBoost model on a lake
    excir explain lake/ --output pred            rank the features of a lake
    excir explain --config job.yaml              the same with options from a file
    excir sweep lake/ --output pred              how few rows give the same ranking
    excir compare full/ sample/                  how far two saved explanations agree
    excir profile result/ speed                  how the output moves along one feature
    excir merge day-01/ day-02/                  explanations of different rows as one
    excir drift day-01/ day-02/                  how far features and outputs have moved
    excir audit audit.yaml                       check a day of a lake against a baseline
    excir report result/                         a saved result as one page for a browser
    excir doctor                                 versions, extras and caches, for bug reports
    excir completion install                     complete commands and options in your shell

    \b
    Exit codes: 0 done; 1 a check of an audit failed; 2 wrong options;
    3 the lake or the model cannot be used as asked; 70 internal error; 75 try again later;
    130 stopped by Ctrl-C; 143 stopped by SIGTERM.
    """


for command in (explain, plan, train, sweep, compare, profile, merge, drift, audit, report, demo, doctor, completion):
    excir.add_command(command)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line, by default with the arguments of this process."""
    excir.main(args=None if arguments is None else list(arguments), prog_name="excir")

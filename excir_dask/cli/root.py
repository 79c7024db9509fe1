"""The edge: commands, messages and exit codes. Results go to standard output, everything else to standard error."""

from __future__ import annotations

import errno
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import click

from excir_dask.cli.audit import audit
from excir_dask.cli.config import CONFIG, Command
from excir_dask.cli.explain import explain, plan
from excir_dask.cli.options import options
from excir_dask.cli.report import report
from excir_dask.cli.sweep import compare, sweep
from excir_dask.cli.train import train
from excir_dask.cli.types import FilePath
from excir_dask.errors import WRONG_PLACES, ExcirError, exit_code_of
from excir_dask.graph.interrupts import ask_to_stop, forget_to_stop
from excir_dask.version import __version__

STOPPED = 130
"""exit code after Ctrl-C, as shells have it"""

TERMINATED = 143
"""exit code after SIGTERM, by which queues, Kubernetes and systemd end a job"""


class Terminated(KeyboardInterrupt):
    """SIGTERM has come: everything that ends cleanly after Ctrl-C does so after this."""


class Excir(click.Group):
    """Errors become one line and an exit code here, so that ``dask excir`` has them too."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with _stoppable():
                return super().invoke(ctx)
        except ExcirError as error:
            _end(ctx, f"excir: {error}", error.exit_code)
        except KeyboardInterrupt as stop:
            if threading.current_thread() is threading.main_thread():
                # slices that threads are at are finished before Python ends: a second Ctrl-C need not wait for them
                signal.signal(signal.SIGINT, signal.SIG_DFL)
            _end(ctx, "stopped", TERMINATED if isinstance(stop, Terminated) else STOPPED)
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise
            if error.errno in WRONG_PLACES:
                problem = str(error) if error.filename is None else f"{error.filename}: {error.strerror}"
                message = f"excir: {problem}; choose another place, or change what may be done there"
                _end(ctx, message, exit_code_of(error))
            _end(
                ctx, f"excir: {error}", exit_code_of(error)
            )  # a disk that is full while results are saved, for instance


@contextmanager
def _stoppable() -> Iterator[None]:
    """Ctrl-C and SIGTERM raise meanwhile, and are remembered; unless somebody else has an answer to them."""
    forget_to_stop()
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: object) -> NoReturn:
        kind = KeyboardInterrupt if number == signal.SIGINT else Terminated
        signal.signal(number, before[signal.Signals(number)])  # a second one need not wait
        ask_to_stop(kind)
        raise kind

    before: dict[signal.Signals, Any] = {}
    for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, signal.SIG_DFL)):
        if signal.getsignal(number) is usual:
            before[number] = usual
            signal.signal(number, stop)
    shown, sys.unraisablehook = sys.unraisablehook, _unless_stopped(sys.unraisablehook)
    try:
        yield
    finally:
        sys.unraisablehook = shown
        for number, usual in before.items():
            signal.signal(number, usual)


def _unless_stopped(show: Callable[[Any], object]) -> Callable[[Any], object]:
    """What Python says of exceptions that it cannot raise, without those of a request to stop, which is remembered."""
    return lambda lost: None if isinstance(lost.exc_value, KeyboardInterrupt) else show(lost)


def _end(ctx: click.Context, message: str, code: int) -> NoReturn:
    click.echo(message, err=True)
    ctx.exit(code)


@click.group(cls=Excir, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="excir")
def excir() -> None:
    """Explain a model over a Parquet lake of any size.

    \b
    excir demo                                   see it work on a generated lake
    excir plan lake/                             what would be read, and what is wrong with it
    excir train lake/ --label y --out model.ubj  train an XGBoost model on a lake
    excir explain lake/ --output pred            rank the features of a lake
    excir explain --config job.yaml              the same with options from a file
    excir sweep lake/ --output pred              how few rows give the same ranking
    excir compare full/ sample/                  how far two saved explanations agree
    excir audit audit.yaml                       check a day of a lake against a baseline
    excir report result/                         a saved result as one page for a browser

    \b
    Exit codes: 0 done; 1 a check of an audit failed, or a mistake of this program (in an audit that is 70);
    2 wrong options; 3 the lake or the model cannot be used as asked; 75 try again later;
    130 stopped by Ctrl-C; 143 stopped by SIGTERM.
    Completion of options in bash (zsh and fish alike): eval "$(_EXCIR_COMPLETE=bash_source excir)"
    """


@excir.command(cls=Command)
@options(CONFIG)
@click.option("--folder", default="excir-demo", show_default=True, type=FilePath(), help="Where the demo works.")
@click.option("--rows", default=300_000, show_default=True, type=click.IntRange(min=1000), help="Rows of the lake.")
def demo(folder: str, rows: int) -> None:
    """Make a lake, train a model on it, and explain it: the whole product in under a minute.

    The lake has blocks of correlated sensors. An XGBoost model is trained on it, its margin is written
    to the lake, and the margin is explained with the blocks as groups.
    """
    from excir_dask.demo import run

    run(folder, rows)


for command in (explain, plan, train, sweep, compare, audit, report):
    excir.add_command(command)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line, by default with the arguments of this process."""
    excir.main(args=None if arguments is None else list(arguments), prog_name="excir")

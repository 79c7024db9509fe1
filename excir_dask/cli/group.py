"""The group of all commands: errors become one line and an exit code."""

from __future__ import annotations

import errno
from typing import Any, NoReturn

import click

from excir_dask.cli.console import say, say_traceback
from excir_dask.cli.signals import exit_code_of_stop, stop_on_signals
from excir_dask.common.atomic import FULL
from excir_dask.common.wording import printable, shortened
from excir_dask.errors import WRONG_PLACES, ExcirError, exit_code_of, nearest


class ExcirGroup(click.Group):
    """Handles errors itself, not in ``main``, so that ``dask excir`` has the same exit codes."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            if type(error) is click.UsageError:  # before click 8.4, which names commands like it
                raise click.UsageError(error.message + nearest(args[0], self.commands), ctx) from None
            raise

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with stop_on_signals():
                return super().invoke(ctx)
        except click.UsageError as error:
            text = error.format_message()
            if (shown := printable(shortened(text))) == text:
                raise
            raise click.UsageError(shown, error.ctx) from None
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except ExcirError as error:
            _end(ctx, f"excir: {error}", error.exit_code)
        except KeyboardInterrupt as stop:
            _end(ctx, "stopped", exit_code_of_stop(stop))
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise
            _end(ctx, f"excir: {_of_system(error)}", exit_code_of(error))
        except Exception as error:
            say_traceback()
            _end(ctx, "excir: internal error; please report it with the lines above", exit_code_of(error))


def _of_system(error: OSError) -> str:
    problem = str(error) if error.filename is None else f"{error.filename}: {error.strerror}"
    if error.errno in FULL:
        return f"{problem}; free space there, or choose another place, and run again"
    if error.errno in WRONG_PLACES:
        return f"{problem}; choose another place, or change its permissions"
    return str(error)


def _end(ctx: click.Context, message: str, code: int) -> NoReturn:
    say(message)
    ctx.exit(code)

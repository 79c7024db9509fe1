"""The command ``excir completion``: shells complete commands and options."""

from __future__ import annotations

import os
from pathlib import Path

import click

from excir_dask.errors import UsageError

FILES = {"bash": "~/.bashrc", "zsh": "~/.zshrc", "fish": "~/.config/fish/completions/excir.fish"}
"""shell -> the file that it reads when it starts"""
LINES = {
    "bash": 'eval "$(_EXCIR_COMPLETE=bash_source excir)"',
    "zsh": 'eval "$(_EXCIR_COMPLETE=zsh_source excir)"',
    "fish": "_EXCIR_COMPLETE=fish_source excir | source",
}


@click.group()
def completion() -> None:
    """Complete commands and options in a shell.

    \b
    excir completion show bash          the line for ~/.bashrc
    excir completion install            add it to the file of your shell
    """


@completion.command()
@click.argument("shell", type=click.Choice(list(LINES)))
def show(shell: str) -> None:
    """Print the line that turns completion on in SHELL."""
    click.echo(LINES[shell])


@completion.command()
@click.argument("shell", type=click.Choice(list(LINES)), required=False)
def install(shell: str | None) -> None:
    """Add that line to the file that SHELL reads, once. Without SHELL, the one that $SHELL names."""
    name = shell or Path(os.environ.get("SHELL", "")).name
    if name not in LINES:
        raise UsageError(f"the shell is '{name}', and completion is known for {', '.join(LINES)}; name one of them")
    file = Path(FILES[name]).expanduser()
    before = file.read_text() if file.exists() else ""
    if LINES[name] in before:
        click.echo(f"{file} has it already")
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as source:
        source.write(("" if before.endswith("\n") or not before else "\n") + LINES[name] + "\n")
    click.echo(f"added to {file}; open a new shell")

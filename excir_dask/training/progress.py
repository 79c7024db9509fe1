"""Progress on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Advance = Callable[[int, str], None]


@contextmanager
def bar(progress: bool | None, length: int, label: str) -> Iterator[Advance | None]:
    """A function that moves a progress bar to a place and shows a text beside it; None where there is no bar."""
    if progress is False or (progress is None and not sys.stderr.isatty()):
        yield None
        return
    import click

    with click.progressbar(
        length=length, label=f"{label:<20}", file=sys.stderr, show_pos=False, item_show_func=lambda text: text
    ) as shown:
        yield lambda place, text: shown.update(place - shown.pos, text or None)

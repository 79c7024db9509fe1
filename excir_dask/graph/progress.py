"""Progress of a run: a bar on a terminal, otherwise a line now and then."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from excir_dask.common.wording import printable
from excir_dask.graph.tree import Key

Advance = Callable[[int, str], None]

LINE_SECONDS = 10.0
"""between two lines, at least"""

QUIET_SECONDS = 60.0
"""after this time a line appears even if less than LINE_SHARE was done"""

NARROW = 80
"""columns of a terminal of unknown width"""

BAR = 36
"""columns of a bar, at most"""

TEXT = 42
"""columns for rows, bytes and the bar's brackets: the bar shrinks before these are left out"""

LINE_SHARE = 0.1
"""of the work, between two lines"""


@dataclass(frozen=True)
class Work:
    """What a graph has to do."""

    tasks: Mapping[Key, int]
    """share of each task, in any unit proportional to the time it takes"""
    rows: int = 0
    """of the lake that the tasks read; 0 if unknown"""
    bytes: int = 0
    """decoded, of those rows"""

    def done(self, share: float) -> str:
        """Part of the work, in rows and bytes.

        >>> Work({}, 3_000_000, 2_400_000_000).done(0.4)
        '1.2M/3.0M rows, 0.96/2.40 GB'
        """
        if not self.rows:
            return ""
        unit, size = next((pair for pair in _BYTES if self.bytes >= pair[1]), _BYTES[-1])
        text = f"{short(share * self.rows)}/{short(self.rows)} rows"
        return f"{text}, {share * self.bytes / size:.2f}/{self.bytes / size:.2f} {unit}" if self.bytes else text


_BYTES = (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3))


@contextmanager
def counting(progress: bool | None, work: Work, label: str) -> Iterator[Callable[[Key], None]]:
    """A function to call with every finished task; tasks outside the work are ignored."""
    total = sum(work.tasks.values())
    done = 0
    with bar(progress, total, label) as advance:

        def finished(key: Key) -> None:
            nonlocal done
            done += work.tasks.get(key, 0)
            if advance is not None and key in work.tasks:
                advance(done, work.done(done / total))

        yield finished


@contextmanager
def bar(progress: bool | None, length: int, label: str) -> Iterator[Advance | None]:
    """A function that takes the work done so far and a text to show; None where no progress is wanted.

    Parameters
    ----------
    progress : bool, optional
        None shows a bar on a terminal only; True shows lines where standard error is not a terminal.
    length : int
        The whole work.
    label : str
    """
    label = printable(label)
    terminal = sys.stderr.isatty()
    if progress is False or (progress is None and not terminal):
        yield None
        return
    if not terminal:
        yield _Lines(length, label).advance
        return
    import click

    # a bar that is longer than the terminal is wide would start a new line each time
    cells = (os.get_terminal_size(sys.stderr.fileno()).columns or NARROW) - len(f"{label:<20}  100%  00:00:00  ") - 1
    width = max(min(BAR, cells - TEXT), 0)
    with click.progressbar(
        length=length, label=f"{label:<20}", file=sys.stderr, show_pos=False, item_show_func=lambda text: text,
        width=width or 1, bar_template="%(label)s  [%(bar)s]  %(info)s" if width else "%(label)s  %(info)s",
    ) as shown:  # fmt: skip
        room = cells - (width + len("[]  ") if width else 0)
        yield lambda place, text: shown.update(place - shown.pos, text if text and len(text) <= room else None)


class _Lines:
    """Lines for a log: few enough to read, often enough to show that the run is alive."""

    def __init__(self, length: int, label: str):
        self.length, self.label = length, label
        self.began = self.last = time.monotonic()
        self.share = 0.0
        self.lines = 0

    def advance(self, place: int, text: str) -> None:
        now, share = time.monotonic(), place / max(self.length, 1)
        waited, more = now - self.last, share - self.share
        last = place >= self.length and self.lines > 0
        if not last and (waited < LINE_SECONDS or (more < LINE_SHARE and waited < QUIET_SECONDS)):
            return
        self.last, self.share, self.lines = now, share, self.lines + 1
        elapsed = now - self.began
        left = f"{clock(elapsed * (1 - share) / share)} left" if 0 < share < 1 else f"in {clock(elapsed)}"
        print(f"{self.label} {share:.0%} {text + ' ' if text else ''}{left}", file=sys.stderr, flush=True)


def clock(seconds: float) -> str:
    """
    >>> clock(35), clock(3 * 3600 + 125)
    ('00:35', '3:02:05')
    """
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes:02}:{rest:02}"


def short(count: float) -> str:
    """
    >>> short(950), short(1_234_567)
    ('950', '1.2M')
    """
    for unit, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if count >= size:
            return f"{count / size:.1f}{unit}"
    return f"{count:.0f}"

"""Words that messages and results share: counts with their noun, sizes, shares, lists of names."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

LONGEST_WORD, LONGEST_MESSAGE = 400, 4000
"""characters of a word and of a message that are shown; a path has at most a few hundred"""
LONGEST_NAME = 32
"""characters of a name that a message shows"""
MOST_NAMES = 8
"""names of a list that a message shows"""

_CONTROL = ("Cc", "Cs", "Zl", "Zp")
"""Unicode categories of characters that end a line, steer a terminal, or cannot be encoded"""
_REORDERING = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
"""bidirectional classes of characters that reorder the text after them; Arabic and Hebrew need none of them"""


def count(number: int, noun: str) -> str:
    """A number with its noun, in the plural unless there is one.

    >>> count(1, "output"), count(1200, "row")
    ('1 output', '1,200 rows')
    """
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def size(bytes_: float) -> str:
    """A number of bytes as people write it.

    >>> size(3 * 2**20)
    '3.00 MiB'
    """
    from dask.utils import format_bytes

    return str(format_bytes(int(bytes_)))


def percent(share: float) -> str:
    """A share as people write it.

    >>> percent(0.2), percent(0.125), percent(0.0005)
    ('20%', '12.5%', '0.05%')
    """
    return f"{100 * share:.4g}%"


def listed(names: Sequence[object]) -> str:
    """Names with commas between them, the first few if there are many.

    >>> listed(["a", "b"]), listed([])
    ('a, b', 'none')
    """
    shown = ", ".join(_cut(printable(str(name))) for name in names[:MOST_NAMES])
    return shown + (f", ... ({len(names):,} in all)" if len(names) > MOST_NAMES else "") if names else "none"


def printable(text: str) -> str:
    """The text on one line, with a box for every character that would steer a terminal or reorder what follows.

    >>> printable("a\\nb"), printable("\\x1b[31mred"), printable("\\u202egnp.exe")
    ('a□b', '□[31mred', '□gnp.exe')
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join("□" if _steers(character) else character for character in text)


def printable_lines(lines: Iterable[str]) -> str:
    """A text of lines for a terminal, each as :func:`printable` gives it.

    >>> printable_lines(["column a\\nb", "column c"])
    'column a□b\\ncolumn c'
    """
    return "\n".join(map(printable, lines))


def shortened(message: str) -> str:
    """A message whose longest words have lost their middle: they repeat what somebody typed or stored.

    >>> shortened("'" + 500 * "9" + "' is not a number")[35:]
    "99999… (502 characters) …999999999999999999999999999999999999999' is not a number"
    """
    if len(message) <= LONGEST_WORD:
        return message
    words = (_without_middle(word, LONGEST_WORD, 40) for word in message.split(" "))
    return _without_middle(" ".join(words), LONGEST_MESSAGE, LONGEST_MESSAGE // 2 - 50)


def _without_middle(text: str, most: int, kept: int) -> str:
    return text if len(text) <= most else f"{text[:kept]}… ({len(text):,} characters) …{text[-kept:]}"


def one_line(error: BaseException) -> str:
    """What an error says, on one line; its type if it says nothing.

    >>> one_line(OSError("no\\n  such host")), one_line(KeyError())
    ('no such host', 'KeyError')
    """
    return " ".join(str(error).split()) or type(error).__name__


def _steers(character: str) -> bool:
    return unicodedata.category(character) in _CONTROL or unicodedata.bidirectional(character) in _REORDERING


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_NAME else text[: LONGEST_NAME - 1] + "…"

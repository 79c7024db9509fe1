"""The text of a row filter, such as ``date >= '2026-09-01' and region == 'EU'``, as conditions on columns.

The text is parsed as a Python expression, of which only comparisons and logic are allowed; nothing in it is ever run.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from excir_dask.common.textfile import brief
from excir_dask.errors import UsageError

MOST_CHARACTERS = 20_000
MOST_NESTING = 32
"""levels of brackets, and of conditions inside conditions"""

ADVICE = "write for instance \"date >= '2026-09-01' and region in ['EU', 'UK']\""

_TOKENS = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`[^`]*`|[()\[\]{}]|[\r\n]+""", re.DOTALL)
"""texts, names in backticks, brackets, ends of lines"""

_CHAIN = re.compile(rf"(?:(?:not\b|[-+~])\s*){{{MOST_NESTING},}}")

_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip

_MIRRORED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

_SPELLINGS = {"true": "True", "false": "False", "null": "None", "none": "None", "nan": "None"}
"""names that people write in place of Python's values"""

Value = bool | int | float | str


@dataclass(frozen=True)
class Column:
    """A column that a condition looks at."""

    name: str


@dataclass(frozen=True)
class Compare:
    """A column compared with a value or another column."""

    column: Column
    operator: str
    other: Value | Column


@dataclass(frozen=True)
class IsIn:
    """A column is one of some values."""

    column: Column
    values: tuple[Value, ...]


@dataclass(frozen=True)
class IsMissing:
    """A column is null or NaN."""

    column: Column


@dataclass(frozen=True)
class Not:
    part: Condition


@dataclass(frozen=True)
class All:
    parts: tuple[Condition, ...]


@dataclass(frozen=True)
class Any:
    parts: tuple[Condition, ...]


Condition = Compare | IsIn | IsMissing | Not | All | Any


def parse(text: str, label: str = "where") -> Condition:
    """The conditions that a text stands for; messages call the option ``label``.

    >>> parse("`oil temp` > 3")
    Compare(column=Column(name='oil temp'), operator='>', other=3)
    """
    if len(text) > MOST_CHARACTERS:
        raise UsageError(f"{label} has {len(text):,} characters; it may have {MOST_CHARACTERS:,}, so write it shorter")
    plain, names = _without_backticks(text, label)
    plain = plain.strip()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes in texts
            tree = ast.parse(plain, mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else str(error) or type(error).__name__
        raise UsageError(
            f"{label} is {brief(text)}, which is not a condition ({reason}); {ADVICE}, with names that have spaces in "
            "`backticks`"
        ) from None
    return _Reader(label, plain, names).condition(tree.body)


def columns_of(condition: Condition) -> Iterator[str]:
    """Names of the columns in a condition, with repetitions."""
    match condition:
        case Not(part):
            yield from columns_of(part)
        case All(parts) | Any(parts):
            for part in parts:
                yield from columns_of(part)
        case Compare(column, _, Column(other)):
            yield from (column.name, other)
        case Compare(column) | IsIn(column) | IsMissing(column):
            yield column.name


def _without_backticks(text: str, label: str) -> tuple[str, dict[str, str]]:
    """The text with an identifier for each name in backticks, and the names; refuses what is nested too deep."""
    prefix = "_column"
    while prefix in text:
        prefix += "_"
    names: dict[str, str] = {}
    depth = 0

    def plain(match: re.Match[str]) -> str:
        nonlocal depth
        token = match.group()
        depth += (token in "([{") - (token in ")]}")
        if depth > MOST_NESTING:
            raise UsageError(f"{label} is nested more than {MOST_NESTING} levels deep; write it flatter")
        if token[0] != "`":
            return " " if token.isspace() else token
        names[f"{prefix}{len(names)}"] = token[1:-1]
        return f" {prefix}{len(names) - 1} "

    found = _TOKENS.sub(plain, text)
    if _CHAIN.search(_TOKENS.sub(" 0 ", text)):
        raise UsageError(f"{label} is nested more than {MOST_NESTING} levels deep; write it flatter")
    return found, names


class _Reader:
    """Turns Python's syntax tree into conditions."""

    def __init__(self, label: str, text: str, names: dict[str, str]):
        self.label = label
        self.text = text
        self.names = names

    def condition(self, node: ast.expr, depth: int = 0) -> Condition:
        if depth > MOST_NESTING:
            raise UsageError(f"{self.label} is nested more than {MOST_NESTING} levels deep; write it flatter")
        match node:
            case ast.BoolOp(op, values):
                kind: Callable[[tuple[Condition, ...]], Condition] = All if isinstance(op, ast.And) else Any
                return kind(tuple(self.condition(value, depth + 1) for value in values))
            case ast.UnaryOp(ast.Not(), operand):
                return Not(self.condition(operand, depth + 1))
            case ast.Compare(left, operators, others):
                sides = [left, *others]
                pairs = zip(sides, operators, others, strict=False)
                parts = tuple(self._comparison(one, operator, other) for one, operator, other in pairs)
                return parts[0] if len(parts) == 1 else All(parts)
            case ast.Name():
                return Compare(self._column(node), "==", True)
            case ast.BinOp(op=ast.BitAnd() | ast.BitOr()) | ast.UnaryOp(op=ast.Invert()):
                raise self._error(node, "is written with & | ~; write and, or, not")
            case _:
                raise self._error(node, f"is no condition; {ADVICE}")

    def _comparison(self, left: ast.expr, operator: ast.cmpop, right: ast.expr) -> Condition:
        if isinstance(operator, ast.Is | ast.IsNot):
            if not _is_none(right):
                raise self._error(right, "cannot follow 'is'; write 'is None' or 'is not None', else ==")
            found: Condition = IsMissing(self._column(left))
            return Not(found) if isinstance(operator, ast.IsNot) else found
        if isinstance(operator, ast.In | ast.NotIn):
            found = self._is_in(left, right)
            return Not(found) if isinstance(operator, ast.NotIn) else found
        if _is_none(left) or _is_none(right):
            raise self._error(right, "cannot be compared; write 'is None' or 'is not None'")
        name = _COMPARISONS[type(operator)]
        if isinstance(left, ast.Name):
            return Compare(self._column(left), name, self._column(right) if isinstance(right, ast.Name) else
                           self._value(right))  # fmt: skip
        value = self._value(left)
        if not isinstance(right, ast.Name):
            raise self._error(right, "is compared with another value; one side must be a column")
        return Compare(self._column(right), _MIRRORED[name], value)

    def _is_in(self, left: ast.expr, right: ast.expr) -> Condition:
        if not isinstance(right, ast.List | ast.Tuple | ast.Set):
            raise self._error(right, "cannot follow 'in'; write a list, such as ['EU', 'UK']")
        column = self._column(left)
        found = IsIn(column, tuple(self._value(each) for each in right.elts if not _is_none(each)))
        return Any((found, IsMissing(column))) if any(map(_is_none, right.elts)) else found

    def _column(self, node: ast.expr) -> Column:
        if not isinstance(node, ast.Name):
            raise self._error(node, "is no column; write its name, in `backticks` where it is not a plain name")
        if node.id.lower() in _SPELLINGS:
            raise self._error(node, f"is no column; write {_SPELLINGS[node.id.lower()]}, or `{node.id}` for a column")
        return Column(self.names.get(node.id, node.id))

    def _value(self, node: ast.expr) -> Value:
        match node:
            case ast.Constant(value) if isinstance(value, bool | int | float | str):
                return value
            case ast.UnaryOp(ast.USub() | ast.UAdd() as sign, ast.Constant(int() | float() as value)) if not isinstance(
                value, bool
            ):
                return -value if isinstance(sign, ast.USub) else value
            case ast.BinOp():
                raise self._error(node, "is arithmetic, which is not supported; put names with - or + in `backticks`")
            case ast.Attribute() | ast.Subscript():
                raise self._error(node, "is not a plain name; put names with . or [] in `backticks`")
            case _:
                raise self._error(node, "is neither a column nor a number, a 'text', True or False")

    def _error(self, node: ast.expr, problem: str) -> UsageError:
        shown = " ".join((ast.get_source_segment(self.text, node) or "").split())
        for word, name in self.names.items():
            shown = shown.replace(word, f"`{name}`")
        return UsageError(f"{self.label}: {shown if len(shown) <= 60 else shown[:59] + '…'} {problem}")


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None

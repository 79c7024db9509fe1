"""The text of a row filter: what it means, and what is refused."""

from __future__ import annotations

import pytest

from excir_dask.errors import UsageError
from excir_dask.lake.where import MOST_CHARACTERS, All, Any, Column, Compare, IsIn, IsMissing, Not, columns_of, parse

A, B = Column("a"), Column("b")


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("a == 1", Compare(A, "==", 1)),
        ("1 < a", Compare(A, ">", 1)),
        ("-1.5 <= a < +3", All((Compare(A, ">=", -1.5), Compare(A, "<", 3)))),
        ("a < b", Compare(A, "<", B)),
        ("a", Compare(A, "==", True)),
        ("not a", Not(Compare(A, "==", True))),
        ("a is None", IsMissing(A)),
        ("a is not None", Not(IsMissing(A))),
        ("a in ['x', \"y\"]", IsIn(A, ("x", "y"))),
        ("a not in (1, 2)", Not(IsIn(A, (1, 2)))),
        ("a in [1, None]", Any((IsIn(A, (1,)), IsMissing(A)))),
        ("a != 'it\\'s `quoted` (here'", Compare(A, "!=", "it's `quoted` (here")),
        ("`oil temp` > 3", Compare(Column("oil temp"), ">", 3)),
        ("`a-b[0]` == 'x'", Compare(Column("a-b[0]"), "==", "x")),
        ("`null` == '--------------------------------------'", Compare(Column("null"), "==", "-" * 38)),
        ("_column0 > 1 and `x y` > 2", All((Compare(Column("_column0"), ">", 1), Compare(Column("x y"), ">", 2)))),
        ("\n a == 1 or\n (b == 2)", Any((Compare(A, "==", 1), Compare(B, "==", 2)))),
    ],
)  # fmt: skip
def test_a_text_means_what_python_and_pandas_mean_by_it(text, meaning):
    assert parse(text) == meaning


def test_columns_are_found_wherever_they_are():
    assert list(columns_of(parse("not (a > 1 or b < c) and d in [1] and `e f` is None"))) == ["a", "b", "c", "d", "e f"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a >", "where is 'a >', which is not a condition (invalid syntax); write for instance"),
        ("a = 1", "which is not a condition (invalid syntax"),
        ("a > 1 AND b < 2", "which is not a condition (invalid syntax"),
        ("date > 2026-09-01", "leading zeros"),
        ("date > 2026-10-11", "where: 2026-10-11 is arithmetic"),
        ("a\0 > 1", "which is not a condition"),
        ("5", "where: 5 is no condition"),
        ("1 < 2", "where: 2 is compared with another value; one side must be a column"),
        ("a + b > 3", "where: a + b is arithmetic, which is not supported; put names with - or + in `backticks`"),
        ("(a > 1) & (b > 2)", "is written with & | ~; write and, or, not"),
        ("~a", "is written with & | ~; write and, or, not"),
        ("a == None", "where: None cannot be compared; write 'is None' or 'is not None'"),
        ("a is 5", "where: 5 cannot follow 'is'"),
        ("a is null", "where: null cannot follow 'is'; write 'is None'"),
        ("a == true", "where: true is no column; write True, or `true` for a column"),
        ("'EU' in region", "where: region cannot follow 'in'; write a list"),
        ("a in 'EU'", "where: 'EU' cannot follow 'in'; write a list"),
        ("a in [b]", "where: b is neither a column nor a number"),
        ("a.b > 1", "where: a.b is not a plain name; put names with . or [] in `backticks`"),
        ("v[0] > 1", "where: v[0] is not a plain name"),
        ("f(a) > 1", "where: f(a) is neither a column nor a number"),
        ("a == b'x'", "is neither a column nor a number, a 'text', True or False"),
        ("a == 1j", "is neither"),
        ("a == f'{b}'", "is neither"),
        ("a == -True", "is neither"),
        ("(lambda: a)()", "is no condition"),
        ("__import__('os').system('x')", "is no condition"),
        ("[a > 1 for a in b]", "is no condition"),
        ("a if b else c", "is no condition"),
        ("(a := 5) > 3", "is neither"),
        ("`x y` + 1 > 2", "where: `x y` + 1 is arithmetic"),
        ("(" * 40 + "a" + ")" * 40, "where is nested more than 32 levels deep"),
        ("not " * 3000 + "a", "where is nested more than 32 levels deep"),
        ("a > " + "-" * 5000 + "1", "where is nested more than 32 levels deep"),
        ("a" + ".b" * 5000 + " > 1", "where"),
        ("a" + " if b else c" * 900, "where"),
        ("x" * (MOST_CHARACTERS + 1), "where has 20,001 characters; it may have 20,000"),
    ],
)  # fmt: skip
def test_whatever_is_no_comparison_is_refused_in_one_line(text, message):
    with pytest.raises(UsageError) as caught:
        parse(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400
    assert caught.value.exit_code == 2


def test_a_long_list_is_taken():
    assert len(parse(f"a in {list(range(3000))}").values) == 3000

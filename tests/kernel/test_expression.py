"""The language of formulas and conditions: right values, and nothing but arithmetic."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mccprobe.oracle.kernel.expression import Expression, ExpressionError

SHAPE = {"M": 256, "N": 144, "K": 2048}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.01*sqrt(K/512)", 0.02),
        ("M % 256 == 0 && N % 256 == 0", False),
        ("M % 256 == 0 || N % 256 == 0", True),
        ("M%16==0 and not N == 145", True),
        ("(M + N) // 100 * 2 - -1", 9),
        ("max(M, N) <= min(K, 4096)", True),
        ("M != N", True),
        ("1e-3", 1e-3),
        ("0 == 0", True),
        ("M > 0 || 1/0 > 0", True),  # as in C, the right side is not looked at
    ],
)
def test_values(text: str, value: float | bool) -> None:
    assert Expression(text).evaluate(SHAPE) == pytest.approx(value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "cannot be read"),
        ("M %", "cannot be read"),
        ("1if M else N", "cannot be read"),
        ("!M", "cannot be read"),
        ("X + 1", "X is not one of M, N, K"),
        ("sqrt", "sqrt is not one of"),
        ("M ** N", "only arithmetic"),
        ("M << 3", "only arithmetic"),
        ("0 < M < 9", "only arithmetic"),
        ("M.real", "only arithmetic"),
        ("[M]", "only arithmetic"),
        ("M if N else K", "only arithmetic"),
        ("(x := 1)", "only arithmetic"),
        ("lambda: 1", "only arithmetic"),
        ("open(M)", "only arithmetic"),
        ("sqrt(M, N)", "sqrt takes 1"),
        ("max(M)", "max takes 2"),
        ("max(M, key=N)", "only arithmetic"),
        ("max(*M)", "max takes 2"),
        ("'a'", "only numbers"),
        ("True", "only numbers"),
        ("1j", "only numbers"),
        ("1e999", "a number beyond"),
        ("9" * 50, "a number beyond"),
        ("1+" * 99 + "1", "more than"),
        ("1+" * 100 + "1", "longer than"),
    ],
)
def test_everything_else_is_refused(text: str, said: str) -> None:
    with pytest.raises(ExpressionError, match=said):
        Expression(text)


@pytest.mark.parametrize("text", ["M/0", "M % (N - N)", "sqrt(0 - K)", "M // 0.0"])
def test_no_value_is_told(text: str) -> None:
    with pytest.raises(ExpressionError, match="has no value"):
        Expression(text).evaluate(SHAPE)


PIECES = (
    *("M", "N", "K", "1", "0", "2.5", "1e15", "+", "-", "*", "/", "//", "%", "==", "<", ">=", "&&", "||"),
    *("not", "(", ")", ",", "sqrt(", "min(", "max(", " ", "**", "x", "'", "\0", "\n", "#", "[", "lambda", "="),
)


@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join) | st.text(max_size=250))
def test_any_text_has_a_value_or_is_refused(text: str) -> None:
    try:
        value = Expression(text).evaluate(SHAPE)
    except ExpressionError as error:
        assert str(error).isprintable() and len(str(error)) < 200
        return
    assert isinstance(value, (bool, int, float))


number = st.integers(1, 1 << 20)


@given(number, number, number, st.integers(1, 4096))
def test_the_two_formulas_of_the_article(m: int, n: int, k: int, tile: int) -> None:
    shape = {"M": m, "N": n, "K": k}
    assert Expression("0.01*sqrt(K/512)").evaluate(shape) == 0.01 * math.sqrt(k / 512)
    assert Expression(f"M % {tile} == 0 && N % {tile} == 0").evaluate(shape) == (m % tile == 0 and n % tile == 0)

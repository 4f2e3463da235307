"""Formulas and conditions of kernel.toml: a bounded arithmetic language over M, N and K.

`0.01*sqrt(K/512)`, `M % 256 == 0 && N % 256 == 0`. Numbers, + - * / // %, one comparison at a time,
`&&` `||` (or and, or), parentheses, sqrt, min, max. No other name, no attribute, no power: the
value of an expression of at most MAX_LENGTH characters stays small, and so does the work.
"""

from __future__ import annotations

import ast
import math
import operator
import warnings
from collections.abc import Callable, Mapping
from typing import Any

MAX_LENGTH = 200  # characters
MAX_NODES = 120
MAX_NUMBER = 1e15  # of a literal; with MAX_NODES products stay below what a float holds
NAMES = frozenset({"M", "N", "K"})

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_FUNCTIONS: dict[str, tuple[int, Callable[..., Any]]] = {
    "sqrt": (1, math.sqrt),
    "min": (2, min),
    "max": (2, max),
}


class ExpressionError(ValueError):
    """The text is not in the language, or has no value. Callers turn it into their own error."""


class Expression:
    """A parsed expression; `evaluate` gives its value for one shape."""

    def __init__(self, text: str) -> None:
        """Raises ExpressionError."""
        if len(text) > MAX_LENGTH:
            raise ExpressionError(f"longer than {MAX_LENGTH} characters")
        readable = text.strip().replace("&&", " and ").replace("||", " or ")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", SyntaxWarning)  # such as 1if: refused, not told on stderr
                tree = ast.parse(readable, mode="eval")
        except (SyntaxError, SyntaxWarning, ValueError, RecursionError, MemoryError) as error:
            raise ExpressionError("cannot be read as an expression") from error
        if sum(1 for _ in ast.walk(tree)) > MAX_NODES:
            raise ExpressionError(f"more than {MAX_NODES} parts")
        _check(tree.body)
        self.text = text
        self._body = tree.body

    def evaluate(self, shape: Mapping[str, int]) -> float | bool:
        """The value for M, N and K. Raises ExpressionError (division by zero, root of a negative number)."""
        try:
            value: float | bool = _value(self._body, shape)
        except (ArithmeticError, ValueError, TypeError) as error:
            raise ExpressionError(f"has no value: {error}") from error
        return value


def _check(node: ast.expr) -> None:
    match node:
        case ast.Constant(value=bool() | str() | bytes() | complex() | None):
            raise ExpressionError("only numbers may stand there")
        case ast.Constant(value=int() | float() as number):
            if not abs(number) <= MAX_NUMBER:
                raise ExpressionError(f"a number beyond {MAX_NUMBER:g}")
        case ast.Name(id=name):
            if name not in NAMES:
                raise ExpressionError(f"{name[:20]} is not one of M, N, K")
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            _check(left)
            _check(right)
        case ast.UnaryOp(op=ast.USub() | ast.Not(), operand=operand):
            _check(operand)
        case ast.BoolOp(values=values):
            for value in values:
                _check(value)
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARE:
            _check(left)
            _check(right)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS:
            if len(args) != _FUNCTIONS[name][0]:
                raise ExpressionError(f"{name} takes {_FUNCTIONS[name][0]} values")
            for argument in args:
                _check(argument)
        case _:
            raise ExpressionError("only arithmetic on M, N, K with sqrt, min, max and comparisons")


def _value(node: ast.expr, shape: Mapping[str, int]) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return shape[name]
        case ast.BinOp(left=left, op=op, right=right):
            return _BINARY[type(op)](_value(left, shape), _value(right, shape))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _value(operand, shape)
        case ast.UnaryOp(operand=operand):
            return -_value(operand, shape)
        case ast.BoolOp(op=ast.And(), values=values):
            return all(_value(value, shape) for value in values)
        case ast.BoolOp(values=values):
            return any(_value(value, shape) for value in values)
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return _COMPARE[type(op)](_value(left, shape), _value(right, shape))
        case ast.Call(func=ast.Name(id=name), args=args):
            return _FUNCTIONS[name][1](*(_value(argument, shape) for argument in args))
    raise AssertionError("checked before")

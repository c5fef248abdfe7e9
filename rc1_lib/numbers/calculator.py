"""The arithmetic of the `calc` tool: exact, small, and safe against hostile input.

An expression is parsed into Python's syntax tree, of which only a few kinds of nodes are accepted; nothing is executed
as code. Numbers are integers and fractions, so `0.1 + 0.2` is `0.3`.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

Number = int | Fraction

MAX_LENGTH = 200
MAX_MAGNITUDE = 10**18
DECIMALS = 6

_ALLOWED = re.compile(r"[0-9.+\-*/%()<>=! \t]+")
_LONE_EQUALS = re.compile(r"(?<![<>=!])=(?!=)")
_LEADING_ZEROS = re.compile(r"(?<![\d.])0+(?=\d)")
_BINARY: dict[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: lambda left, right: Fraction(left) / right,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Number, Number], bool]] = {
    ast.Lt: operator.lt,
    ast.Gt: operator.gt,
    ast.LtE: operator.le,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


@dataclass(frozen=True, slots=True)
class _Done:
    """An operation whose operands have been computed."""

    node: ast.UnaryOp | ast.BinOp


class CalculatorError(ValueError):
    """An expression that the calculator rejects; the message may be shown to the model."""


@lru_cache(maxsize=4096)
def calculate(expression: str) -> str:
    """Evaluate `expression` and return its value as text: `72`, `0.333333`, or `yes`/`no` for a comparison.

    Raises:
        CalculatorError: when the text is too long or not arithmetic, or its value is out of range.
    """
    value = evaluate(expression)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return format_number(value)


def evaluate(expression: str) -> Number | bool:
    """Return the exact value of `expression`, a bool for a comparison; raises like `calculate`."""
    tree = _read(expression)
    if not isinstance(tree, ast.Compare):
        return _number(tree)
    if len(tree.ops) != 1:
        raise CalculatorError("The calculator compares two values at a time.")
    return _COMPARE[type(tree.ops[0])](_number(tree.left), _number(tree.comparators[0]))


def format_number(value: Number) -> str:
    """Write `value` without an exponent: with up to six decimals, or up to six significant digits below 0.1."""
    if value.denominator == 1:
        return str(value.numerator)
    places = DECIMALS
    while abs(value) * 10 ** (places - DECIMALS + 1) < 1:
        places += 1
    scaled = round(value * 10**places)
    digits = str(abs(scaled)).zfill(places + 1)
    text = f"{digits[:-places]}.{digits[-places:]}".rstrip("0").rstrip(".")
    return f"-{text}" if scaled < 0 else text


def _read(expression: str) -> ast.expr:
    if len(expression) > MAX_LENGTH:
        raise CalculatorError(f"The expression has {len(expression)} characters; the calculator takes {MAX_LENGTH}.")
    if not expression.strip() or not _ALLOWED.fullmatch(expression):
        raise CalculatorError("The calculator takes only numbers, + - * / // %, brackets, and one of < > =.")
    text = _LEADING_ZEROS.sub("", _LONE_EQUALS.sub("==", expression.strip()))
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, MemoryError, RecursionError) as error:
        # The parser raises the last two for nesting that is too deep.
        raise CalculatorError("The expression is not complete arithmetic, such as (3 + 4) * 2.") from error


def _number(node: ast.expr) -> Number:
    """Evaluate a tree without comparisons, on an explicit stack, since Python's own may be nearly full."""
    waiting: list[ast.expr | _Done] = [node]
    values: list[Number] = []
    while waiting:
        match waiting.pop():
            case _Done(node=ast.UnaryOp(op=sign)):
                values.append(_checked(-values.pop() if isinstance(sign, ast.USub) else values.pop()))
            case _Done(node=ast.BinOp(op=op)):
                right, left = values.pop(), values.pop()
                try:
                    values.append(_checked(_BINARY[type(op)](left, right)))
                except ZeroDivisionError as error:
                    raise CalculatorError("The expression divides by zero.") from error
            case ast.Constant(value=int() as whole):
                values.append(_checked(whole))
            case ast.Constant(value=float() as value):
                # repr() is the shortest text of the float, so 0.1 becomes exactly one tenth.
                values.append(_checked(Fraction(repr(value))))
            case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand) as signed:
                waiting += (_Done(signed), operand)
            case ast.BinOp(left=left_side, op=kind, right=right_side) as pair if type(kind) in _BINARY:
                waiting += (_Done(pair), right_side, left_side)
            case _:
                raise CalculatorError(
                    "The calculator knows only + - * / // % and brackets; powers and calls are refused."
                )
    return values.pop()


def _checked(value: Number) -> Number:
    if not -MAX_MAGNITUDE <= value <= MAX_MAGNITUDE:
        raise CalculatorError("A value in the expression is too large for the calculator.")
    return value

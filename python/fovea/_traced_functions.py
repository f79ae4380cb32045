# SPDX-License-Identifier: Apache-2.0
"""Functions of symbols, by the names that torch and numpy have for them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ._operators import Symbol
from ._tracing import BOOL, FLOAT, INT, source_error


def where(condition: Symbol, a: Any, b: Any) -> Symbol:
    a, b = condition.lift(a), condition.lift(b)
    return to_bool(condition).op("select", max(a.kind, b.kind), a, b)


def _unary(name: str) -> Callable[[Symbol], Symbol]:
    return lambda x: x.op(name, FLOAT)


def _rounding(name: str) -> Callable[[Symbol], Symbol]:
    return lambda x: x if x.kind != FLOAT else x.op(name, FLOAT)


def to_int(x: Symbol) -> Symbol:
    """Towards 0."""
    if x.kind != FLOAT:
        return x if x.kind == INT else x.op("add", INT, 0)
    return where(x < 0, x.op("neg", FLOAT).op("floor", INT).op("neg", INT), x.op("floor", INT))


def to_float(x: Symbol) -> Symbol:
    return x if x.kind == FLOAT else x.op("add", FLOAT, 0.0)


def to_bool(x: Symbol) -> Symbol:
    return x if x.kind == BOOL else x != 0


def trunc(x: Symbol) -> Symbol:
    return x if x.kind != FLOAT else to_float(to_int(x))


def ceil(x: Symbol) -> Symbol:
    return x if x.kind != FLOAT else -(-x).op("floor", FLOAT)


def clamp(x: Symbol, min: Any = None, max: Any = None) -> Symbol:  # noqa: A002
    """The names are torch's."""
    x = x if min is None else maximum(x, min)
    return x if max is None else minimum(x, max)


def minimum(a: Symbol, b: Any) -> Symbol:
    return a.promoted("min", b, BOOL)


def maximum(a: Symbol, b: Any) -> Symbol:
    return a.promoted("max", b, BOOL)


def sigmoid(x: Symbol) -> Symbol:
    return ((x * 0.5).op("tanh", FLOAT) + 1) * 0.5


def softplus(x: Symbol, beta: float = 1, threshold: float = 20) -> Symbol:
    scaled = x * beta
    small = where(scaled > threshold, 0.0, scaled)
    return where(scaled > threshold, to_float(x), (1 + small.op("exp", FLOAT)).op("log", FLOAT) / beta)


def gelu(x: Symbol, approximate: str = "none") -> Symbol:
    if approximate not in ("none", "tanh"):
        raise source_error(f"gelu with approximate={approximate!r}", "write 'none' or 'tanh'")
    if approximate == "tanh":
        inner = (x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)
        return x * 0.5 * (inner.op("tanh", FLOAT) + 1)
    return x * 0.5 * ((x * math.sqrt(0.5)).op("erf", FLOAT) + 1)


def _logic(name: str) -> Callable[[Symbol, Any], Symbol]:
    return lambda a, b: to_bool(a).op(name, BOOL, to_bool(a.lift(b)))


def div(a: Symbol, other: Any, *, rounding_mode: str | None = None) -> Symbol:
    b = a.lift(other)
    if rounding_mode not in (None, "floor", "trunc"):
        raise source_error(f"div with rounding_mode={rounding_mode!r}", "write None, 'floor' or 'trunc'")
    if rounding_mode == "floor":
        return a // b
    if rounding_mode is None:
        return a / b
    return trunc(a / b) if FLOAT in (a.kind, b.kind) else to_int(a / b)


def sub(a: Symbol, b: Any, *, alpha: Any = 1) -> Symbol:
    return a - _times(a.lift(b), alpha)


def add(a: Symbol, b: Any, *, alpha: Any = 1) -> Symbol:
    return a + _times(a.lift(b), alpha)


def _times(x: Symbol, alpha: Any) -> Symbol:
    return x if isinstance(alpha, int) and alpha == 1 else x * x.lift(alpha)


def square(x: Symbol) -> Symbol:
    return x**2


def hypot(a: Symbol, b: Any) -> Symbol:
    return (a**2 + a.lift(b) ** 2).op("sqrt", FLOAT)


def sign(x: Symbol) -> Symbol:
    return where(x > 0, 1, where(x < 0, -1, 0)) if x.kind != FLOAT else where(x > 0, 1.0, where(x < 0, -1.0, 0.0))


def lerp(a: Symbol, b: Any, weight: Any) -> Symbol:
    return a + a.lift(weight) * (a.lift(b) - a)


def log_add_exp(a: Symbol, b: Any) -> Symbol:
    far: Symbol = abs(a - a.lift(b))
    return maximum(a, b) + (1 + (-far).op("exp", FLOAT)).op("log", FLOAT)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "where": where,
    "add": add,
    "sub": sub,
    "subtract": sub,
    "rsub": lambda a, b: a.lift(b) - a,
    "mul": lambda a, b: a * b,
    "multiply": lambda a, b: a * b,
    "div": div,
    "divide": div,
    "true_divide": div,
    "truediv": div,
    "floor_divide": lambda a, b: a // b,
    "floordiv": lambda a, b: a // b,
    "remainder": lambda a, b: a % b,
    "mod": lambda a, b: a % b,
    "pow": lambda a, b: a**b,
    "power": lambda a, b: a**b,
    "float_power": lambda a, b: to_float(a) ** b,
    "neg": lambda x: -x,
    "negative": lambda x: -x,
    "positive": lambda x: x,
    "abs": abs,
    "absolute": abs,
    "fabs": lambda x: abs(to_float(x)),
    "sign": sign,
    "square": square,
    "exp": _unary("exp"),
    "exp2": lambda x: (x * math.log(2)).op("exp", FLOAT),
    "expm1": lambda x: x.op("exp", FLOAT) - 1,
    "log": _unary("log"),
    "log2": lambda x: x.op("log", FLOAT) / math.log(2),
    "log10": lambda x: x.op("log", FLOAT) / math.log(10),
    "log1p": lambda x: (1 + x).op("log", FLOAT),
    "sqrt": _unary("sqrt"),
    "rsqrt": lambda x: 1 / x.op("sqrt", FLOAT),
    "reciprocal": lambda x: 1 / x,
    "sin": _unary("sin"),
    "cos": _unary("cos"),
    "tan": lambda x: x.op("sin", FLOAT) / x.op("cos", FLOAT),
    "tanh": _unary("tanh"),
    "erf": _unary("erf"),
    "sigmoid": sigmoid,
    "expit": sigmoid,  # of scipy
    "logaddexp": log_add_exp,
    "hypot": hypot,
    "softplus": softplus,
    "relu": lambda x: where(x > 0, x, 0 if x.kind != FLOAT else 0.0),
    "leaky_relu": lambda x, negative_slope=0.01: where(x > 0, to_float(x), x * negative_slope),
    "gelu": gelu,
    "silu": lambda x: x * sigmoid(x),
    "floor": _rounding("floor"),
    "ceil": ceil,
    "trunc": trunc,
    "fix": trunc,
    "round": _rounding("round"),
    "rint": _rounding("round"),
    "clamp": clamp,
    "clip": clamp,
    "clamp_min": lambda x, min: maximum(x, min),  # noqa: A006
    "clamp_max": lambda x, max: minimum(x, max),  # noqa: A006
    "minimum": minimum,
    "maximum": maximum,
    "min": lambda a, *b: minimum(a, *b) if b else a,
    "max": lambda a, *b: maximum(a, *b) if b else a,
    "lerp": lerp,
    "lt": lambda a, b: a < b,
    "less": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "less_equal": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "greater": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "greater_equal": lambda a, b: a >= b,
    "eq": lambda a, b: a == b,
    "equal": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "not_equal": lambda a, b: a != b,
    "and": lambda a, b: a & b,
    "bitwise_and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "bitwise_or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "bitwise_xor": lambda a, b: a ^ b,
    "invert": lambda x: ~x,
    "bitwise_not": lambda x: ~x,
    "bitwise_left_shift": lambda a, b: a << b,
    "lshift": lambda a, b: a << b,
    "left_shift": lambda a, b: a << b,
    "bitwise_right_shift": lambda a, b: a >> b,
    "rshift": lambda a, b: a >> b,
    "right_shift": lambda a, b: a >> b,
    "logical_and": _logic("min"),
    "logical_or": _logic("max"),
    "logical_xor": _logic("not_equal"),
    "logical_not": lambda x: ~to_bool(x),
    "isposinf": lambda x: x == math.inf,
    "isneginf": lambda x: x == -math.inf,
    "isinf": lambda x: abs(x) == math.inf,
}

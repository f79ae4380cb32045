# SPDX-License-Identifier: Apache-2.0
"""Functions of a score and its place as programs. A function is called once, with symbols: what it does with
them becomes a list of steps, which the engine runs over whole tiles, forward and backward.

`Symbol` has the operators of Python; what functions of a library do with symbols, a subclass says.
"""

from __future__ import annotations

import array
import linecache
import os
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from . import _fovea
from ._errors import UsageError, usage_error

# The leaves of ScoreStep (fovea/attention/lambda/score_program.h).
_OPERATION, _CONSTANT, _SCORE, _BATCH, _HEAD, _QUERY, _KEY, _READ = range(8)
MOST_AXES = 6
_NO_AXES = (0.0,) * MOST_AXES
_OPERATIONS = dict(_fovea.traced_operations())

# Kinds of numbers, in the order of promotion.
BOOL, INT, FLOAT = range(3)

_OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep
_OF_LIBRARIES = tuple(f"{os.sep}{name}-packages{os.sep}" for name in ("site", "dist"))


def place_in_source() -> str:
    """File, line and text of the user's code that is running: of the innermost frame that is not ours, nor
    of a library that called us for it."""
    frame = sys._getframe(1)
    while frame.f_back is not None and (
        frame.f_code.co_filename.startswith(_OURS) or any(one in frame.f_code.co_filename for one in _OF_LIBRARIES)
    ):
        frame = frame.f_back
    file, line = frame.f_code.co_filename, frame.f_lineno
    text = linecache.getline(file, line).strip()
    return f"{file}:{line}" + (f": {text}" if text else "")


def source_error(what: str, hint: str) -> UsageError:
    """The error for a function that cannot be traced, where it stands in its file."""
    return usage_error(f"{place_in_source()}\n{what}", hint)


class Graph:
    """The steps of one function, each once, and the tables that it reads."""

    def __init__(self, symbol: type[Symbol]) -> None:
        self.symbol = symbol
        self.rows: list[tuple[float, ...]] = []
        self.tables: list[Any] = []  # what was captured, once for each gradient
        self.learns: list[bool] = []
        self._steps: dict[tuple[float, ...], int] = {}
        self._numbers: dict[int, int] = {}  # of a table that does not learn, by identity

    def add(self, row: tuple[float, ...], kind: int) -> Symbol:
        step = self._steps.get(row)
        if step is None:
            step = self._steps[row] = len(self.rows)
            self.rows.append(row)
        return self.symbol(self, step, kind)

    def leaf(self, leaf: int, kind: int) -> Symbol:
        return self.add((leaf, 0, -1, -1, -1, 0, -1, *_NO_AXES), kind)

    def constant(self, value: float) -> Symbol:
        kind = BOOL if isinstance(value, bool) else INT if isinstance(value, int) else FLOAT
        return self.add((_CONSTANT, 0, -1, -1, -1, float(value), -1, *_NO_AXES), kind)

    def operation(self, name: str, kind: int, *operands: Symbol) -> Symbol:
        steps = [operand.step for operand in operands] + [-1, -1]
        return self.add((_OPERATION, _OPERATIONS[name], *steps[:3], 0, -1, *_NO_AXES), kind)

    def read(self, table: Any, at: Sequence[Symbol], kind: int, learns: bool) -> Symbol:
        """An entry of a table, which has as many axes as `at` indices. One that learns has a gradient for
        each place where it is read."""
        steps = tuple(float(index.step) for index in at) + _NO_AXES[len(at):]
        number = self._numbers.get(id(table))
        if learns:
            known = [n for n, one in enumerate(self.tables) if one is table]
            for n in known:
                row = (_READ, 0, -1, -1, -1, 0, n, *steps)
                if row in self._steps:
                    return self.add(row, kind)
            number = None
        if number is None:
            number = len(self.tables)
            self.tables.append(table)
            self.learns.append(learns)
            self._numbers[id(table)] = number
        return self.add((_READ, 0, -1, -1, -1, 0, number, *steps), kind)

    def packed(self, result: Symbol) -> bytes:
        """The steps up to the result, which is the last, without those that nobody reads."""
        wanted = [False] * (result.step + 1)
        wanted[result.step] = True
        for n in range(result.step, -1, -1):
            if wanted[n]:
                for read in self._reads(n):
                    wanted[read] = True
        new: dict[int, int] = {}
        numbers = array.array("d")
        for n, row in enumerate(self.rows[: result.step + 1]):
            if not wanted[n]:
                continue
            new[n] = len(new)
            a, b, c = (float(new[int(x)]) if x >= 0 else -1.0 for x in row[2:5])
            at = row[7:]
            if row[0] == _READ:
                axes = len(self.shape_of(int(row[6])))
                at = tuple(float(new[int(x)]) for x in at[:axes]) + _NO_AXES[axes:]
            numbers.extend((row[0], row[1], a, b, c, row[5], row[6], *at))
        return numbers.tobytes()

    def shape_of(self, table: int) -> tuple[int, ...]:
        return tuple(self.tables[table].shape)

    def _reads(self, n: int) -> list[int]:
        row = self.rows[n]
        reads = [int(x) for x in row[2:5] if x >= 0]
        if row[0] == _READ:
            reads += [int(x) for x in row[7:7 + len(self.shape_of(int(row[6])))]]
        return reads


def _whole(value: object) -> bool:
    return isinstance(value, int)


class Symbol:
    """A number of each score: `step` of the graph computes it."""

    __slots__ = ("graph", "step", "kind")
    library: ClassVar[str]  # as its users call it
    to_whole: ClassVar[str]  # how they convert x

    def __init__(self, graph: Graph, step: int, kind: int) -> None:
        self.graph = graph
        self.step = step
        self.kind = kind

    # What it is computed with.

    def lift(self, other: Any) -> Symbol:
        """A number, or what a library has for one, as a symbol."""
        if isinstance(other, Symbol):
            if other.graph is not self.graph:
                raise source_error("a symbol of another call", "keep no symbols beyond the call of the function")
            return other
        if isinstance(other, (bool, int, float)):
            return self.graph.constant(other)
        return self.lift_object(other)

    def lift_object(self, other: Any) -> Symbol:
        """For subclasses: an array of one number."""
        item = getattr(other, "item", None)
        if item is not None and getattr(other, "ndim", 1) == 0:
            return self.lift(item())
        raise source_error(f"a {type(other).__name__} beside a symbol",
                           "index what is captured until it is one number: table[q_idx, kv_idx]")

    def op(self, name: str, kind: int, *others: Any) -> Symbol:
        return self.graph.operation(name, kind, self, *(self.lift(other) for other in others))

    def promoted(self, name: str, other: Any, least: int = INT) -> Symbol:
        """An operation whose result has the larger kind of the two."""
        other = self.lift(other)
        return self.graph.operation(name, max(self.kind, other.kind, least), self, other)

    # Arithmetic.

    def __add__(self, other: Any) -> Symbol:
        return self.promoted("add", other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Symbol:
        return self.promoted("sub", other)

    def __rsub__(self, other: Any) -> Symbol:
        return self.lift(other).promoted("sub", self)

    def __mul__(self, other: Any) -> Symbol:
        return self.promoted("mul", other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Symbol:
        return self.promoted("div", other, FLOAT)

    def __rtruediv__(self, other: Any) -> Symbol:
        return self.lift(other).promoted("div", self, FLOAT)

    def __floordiv__(self, other: Any) -> Symbol:
        return self.promoted("floor_divide", other)

    def __rfloordiv__(self, other: Any) -> Symbol:
        return self.lift(other).promoted("floor_divide", self)

    def __mod__(self, other: Any) -> Symbol:
        return self.promoted("modulo", other)

    def __rmod__(self, other: Any) -> Symbol:
        return self.lift(other).promoted("modulo", self)

    def __pow__(self, other: Any) -> Symbol:
        if _whole(other) and 1 <= other <= 8:
            result = self
            for _ in range(other - 1):
                result = result * self
            return result if self.kind != BOOL else result.op("add", INT, 0)
        if isinstance(other, (int, float)):
            if other == 0.5:
                return self.op("sqrt", FLOAT)
            if other == -1:
                return 1 / self
        return self.promoted("power", other, FLOAT if not _whole(other) else INT)

    def __rpow__(self, other: Any) -> Symbol:
        if other == 2 and self.kind != FLOAT:
            return self.lift(1) << self
        return self.lift(other).promoted("power", self)

    def __neg__(self) -> Symbol:
        return self.op("neg", max(self.kind, INT))

    def __pos__(self) -> Symbol:
        return self

    def __abs__(self) -> Symbol:
        return self.op("abs", self.kind)

    # Comparisons.

    def __lt__(self, other: Any) -> Symbol:
        return self.op("less", BOOL, other)

    def __le__(self, other: Any) -> Symbol:
        return self.op("less_equal", BOOL, other)

    def __gt__(self, other: Any) -> Symbol:
        return self.lift(other).op("less", BOOL, self)

    def __ge__(self, other: Any) -> Symbol:
        return self.lift(other).op("less_equal", BOOL, self)

    def __eq__(self, other: Any) -> Symbol:  # type: ignore[override]
        return self.op("equal", BOOL, other)

    def __ne__(self, other: Any) -> Symbol:  # type: ignore[override]
        return self.op("not_equal", BOOL, other)

    __hash__ = None  # type: ignore[assignment]

    # Conditions, and bits of whole numbers.

    def _bits(self, name: str, other: Any, of_conditions: str) -> Symbol:
        other = self.lift(other)
        if self.kind == other.kind == BOOL:
            return self.op(of_conditions, BOOL, other)
        if FLOAT in (self.kind, other.kind):
            raise source_error(f"'{name}' of numbers that are not whole", f"compare them first, or convert: {self.to_whole}")
        return self.op(name, INT, other)

    def __and__(self, other: Any) -> Symbol:
        return self._bits("and", other, "min")

    __rand__ = __and__

    def __or__(self, other: Any) -> Symbol:
        return self._bits("or", other, "max")

    __ror__ = __or__

    def __xor__(self, other: Any) -> Symbol:
        return self._bits("xor", other, "not_equal")

    __rxor__ = __xor__

    def __invert__(self) -> Symbol:
        if self.kind == FLOAT:
            raise source_error("'~' of a number that is not whole", "compare it first")
        return self.lift(1).op("sub", BOOL, self) if self.kind == BOOL else -1 - self

    def _shift(self, name: str, other: Any) -> Symbol:
        other = self.lift(other)
        if FLOAT in (self.kind, other.kind):
            raise source_error("a shift of numbers that are not whole", f"convert them: {self.to_whole}")
        return self.op(name, INT, other)

    def __lshift__(self, other: Any) -> Symbol:
        return self._shift("shift_left", other)

    def __rlshift__(self, other: Any) -> Symbol:
        return self.lift(other)._shift("shift_left", self)

    def __rshift__(self, other: Any) -> Symbol:
        return self._shift("shift_right", other)

    def __rrshift__(self, other: Any) -> Symbol:
        return self.lift(other)._shift("shift_right", self)

    # What one answer for all scores would be needed for.

    def __bool__(self) -> bool:
        raise source_error("a branch on a symbol, which stands for every score",
                           f"write {self.library}.where(condition, a, b), and &, |, ~ for and, or, not")

    def _refuse(self, what: str) -> UsageError:
        return source_error(f"{what} of a symbol, which stands for every score",
                            f"compute with it as it is; {self.library}.where(condition, a, b) chooses")

    def __int__(self) -> int:
        raise self._refuse("int()")

    def __float__(self) -> float:
        raise self._refuse("float()")

    def __index__(self) -> int:
        raise source_error("a symbol as an index of what is no captured tensor",
                           "capture a tensor instead of a list (of numpy: fovea.captured(array))")

    def __iter__(self) -> Any:
        raise self._refuse("a loop over, or unpacking,")

    def __len__(self) -> int:
        raise self._refuse("len()")

    def __getitem__(self, key: Any) -> Symbol:
        raise self._refuse("an index")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise source_error(f".{name} of a symbol is not known", "docs/python.md lists what a traced function may use")


class _Running(threading.local):
    graph: Graph | None = None


_running = _Running()


def running_graph() -> Graph | None:
    """The steps of the function that this thread is calling with symbols."""
    return _running.graph


def traced(name: str, function: Callable[..., Any], symbol: type[Symbol]) -> tuple[Graph, Symbol]:
    """Calls a function, the argument "score_mod" or "mask_mod", with symbols; returns its steps, and the one
    of its result."""
    with_score = name == "score_mod"
    graph = Graph(symbol)
    places = [graph.leaf(leaf, INT) for leaf in (_BATCH, _HEAD, _QUERY, _KEY)]
    if with_score:
        places.insert(0, graph.leaf(_SCORE, FLOAT))
    if not callable(function):
        raise usage_error(f"{name}: expected a function; got {type(function).__name__}", _takes(with_score))
    outer, _running.graph = _running.graph, graph
    try:
        returned = function(*places)
        if returned is None:
            raise usage_error(f"{name}: the function returns nothing", "return the new score" if with_score else
                              "return whether the score is kept")
        result = places[0].lift(returned)
    except TypeError as error:
        if error.__traceback__ is not None and error.__traceback__.tb_next is not None:
            raise  # it was called, and raised the error itself
        raise usage_error(f"{name}: {error}", _takes(with_score)) from None
    finally:
        _running.graph = outer
    return graph, result if with_score or result.kind == BOOL else result != 0


def _takes(with_score: bool) -> str:
    return f"write a function of ({'score, ' if with_score else ''}b, h, q_idx, kv_idx)"

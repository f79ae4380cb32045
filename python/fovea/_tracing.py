# SPDX-License-Identifier: Apache-2.0
"""Functions of a score and its place as programs. A function is called once, with symbols: what it does with
them becomes a list of steps, which the engine runs over whole tiles, forward and backward.
"""

from __future__ import annotations

import array
import linecache
import math
import os
import re
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from . import _fovea
from ._errors import UsageError, usage_error

if TYPE_CHECKING:
    from ._operators import Symbol

# The leaves of ScoreStep (fovea/attention/lambda/program/score_program.h).
_OPERATION, _CONSTANT, _SCORE, _BATCH, _HEAD, _QUERY, _KEY, _READ = range(8)
MOST_AXES = 6
# A step: its leaf; then the operation, the value or the table; then the steps that are operands or indices.
Row = tuple[Any, ...]
_OPERATIONS = dict(_fovea.traced_operations())

# Kinds of numbers, in the order of promotion.
BOOL, INT, FLOAT = range(3)

_OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep
_OF_LIBRARIES = tuple(f"{os.sep}{name}-packages{os.sep}" for name in ("site", "dist"))


def _line_in_source() -> tuple[str, int]:
    """File and line of the user's code that is running: of the innermost frame that is not ours, nor of a library
    that called us for it."""
    frame = sys._getframe(1)
    while frame.f_back is not None and (
        frame.f_code.co_filename.startswith(_OURS) or any(one in frame.f_code.co_filename for one in _OF_LIBRARIES)
    ):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


def _with_text(file: str, line: int) -> str:
    text = linecache.getline(file, line).strip()
    return f"{file}:{line}" + (f": {text}" if text else "")


def source_error(what: str, hint: str) -> UsageError:
    """The error for a function that cannot be traced, where it stands in its file."""
    return usage_error(f"{_with_text(*_line_in_source())}\n{what}", hint)


class Graph:
    """The steps of one function, each once, and the tables that it reads."""

    def __init__(self, name: str, function: Callable[..., Any], symbol: type[Symbol]) -> None:
        self.name = name  # "score_mod" or "mask_mod"
        self.symbol = symbol
        self.is_differentiated = name == "score_mod"
        self._function = function
        self._lines: list[tuple[str, int]] = []  # where each table is read first
        self._records_now = symbol.records_gradients
        self.records = self._records_now()
        self.rows: list[Row] = []
        self.tables: list[Any] = []  # what was captured, once for each gradient
        self.learns: list[bool] = []
        self._steps: dict[Row, int] = {}
        self._numbers: dict[int, int] = {}  # of a table that does not learn, by identity

    def add(self, row: Row, kind: int) -> Symbol:
        step = self._steps.get(row)
        if step is None:
            step = self._steps[row] = len(self.rows)
            self.rows.append(row)
        return self.symbol(self, step, kind)

    def leaf(self, leaf: int, kind: int) -> Symbol:
        return self.add((leaf,), kind)

    def lift(self, value: Any) -> Symbol:
        """A symbol of this function, or a number, or what a library has for one, as a symbol."""
        return value if isinstance(value, self.symbol) and value.graph is self else self.constant(0).lift(value)

    def constant(self, value: float) -> Symbol:
        kind = BOOL if isinstance(value, bool) else INT if isinstance(value, int) else FLOAT
        try:
            number = float(value)
        except OverflowError:
            raise source_error("a whole number beyond the largest float64 beside a symbol",
                               "write math.inf, or a number below 1.8e308") from None
        if number == 0 and math.copysign(1, number) < 0:  # equal to 0.0, it would be the same step
            return -self.constant(0.0)
        return self.add((_CONSTANT, number), kind)

    def operation(self, name: str, kind: int, *operands: Symbol) -> Symbol:
        if self._records_now() != self.records:
            for operand in operands:
                self.check_recorded(operand)
        return self.add((_OPERATION, _OPERATIONS[name], *[operand.step for operand in operands]), kind)

    def check_recorded(self, used: Symbol) -> None:
        """Raises UsageError where the gradient of what is used is switched off, or on, inside of the function."""
        if self._records_now() != self.records and self.has_gradient(used):
            raise source_error("gradients are switched off, or on, inside of a traced function",
                               "capture a detached tensor: table.detach(); the gradient of a score cannot be stopped")

    def read(self, table: Any, at: Sequence[Symbol], kind: int, learns: bool) -> Symbol:
        """An entry of a table, which has as many axes as `at` indices. One that learns has a gradient for
        each place where it is read."""
        steps = [index.step for index in at]
        number = self._numbers.get(id(table))
        if learns:
            known = [n for n, one in enumerate(self.tables) if one is table and self.learns[n]]
            for n in known:
                if (_READ, n, *steps) in self._steps:
                    return self.add((_READ, n, *steps), kind)
            number = None
        if number is None:
            number = len(self.tables)
            self.tables.append(table)
            self._lines.append(_line_in_source())
            self.learns.append(learns)
            if not learns:
                self._numbers[id(table)] = number
        return self.add((_READ, number, *steps), kind)

    def table_and_line(self, number: int) -> tuple[str, str]:
        """A table by its name in the function, if it has one there, and the line that reads it first."""
        name = self._name_of(self.tables[number])
        said = f"captured {self.symbol.table_word} {number if name is None else name} of {self.name}"
        return said, _with_text(*self._lines[number])

    def _name_of(self, table: Any) -> str | None:
        """Of the variable of the function that holds it."""
        code = getattr(self._function, "__code__", None)
        if code is None:
            return None
        cells = dict(zip(code.co_freevars, self._function.__closure__ or ()))
        for name in (*code.co_freevars, *code.co_names):
            try:
                value = cells[name].cell_contents if name in cells else self._function.__globals__.get(name)
            except ValueError:  # a variable without a value
                continue
            if value is table:
                return str(name)
        return None

    def has_gradient(self, result: Symbol) -> bool:
        """Whether the score, or a table that learns, is read for it."""
        return self.is_differentiated and any(
            row[0] == _SCORE or (row[0] == _READ and self.learns[row[1]])
            for row, read in zip(self.rows, self._read_by(result)) if read)

    def _read_by(self, result: Symbol) -> list[bool]:
        """Of each step up to the result, whether it is read for it."""
        wanted = [False] * (result.step + 1)
        wanted[result.step] = True
        for n in range(result.step, -1, -1):
            if wanted[n]:
                for read in self.rows[n][2:]:
                    wanted[read] = True
        return wanted

    def packed(self, result: Symbol) -> bytes:
        """The steps up to the result, which is the last, without those that nobody reads. Each is the length of its
        row, and the row, in which steps are counted anew."""
        places: dict[int, int] = {}  # of a step, among those that are packed
        numbers: list[float] = []
        for n, (row, wanted) in enumerate(zip(self.rows, self._read_by(result))):
            if wanted:
                numbers += (len(row), *row[:2], *[places[step] for step in row[2:]])
                places[n] = len(places)
        return array.array("d", numbers).tobytes()


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
    graph = Graph(name, function, symbol)
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


_NUMBERED = r"captured (?:tensor|array) (\d+)(?: of (\w+))?(?=(?:, \[([\d, ]*)\])?)"


def name_tables(error: UsageError, functions: Iterable[Any]) -> None:
    """Where an error speaks of a captured tensor by its number, it gets its name, and the line that reads it. An
    error of the kernels does not say whose number it is: then the tensors of that size may be meant."""
    found = re.search(_NUMBERED, error.message)
    if found is None:
        return
    number, function, sizes = int(found[1]), found[2], found[3]
    graphs = [one.graph for one in functions if one is not None]
    meant = [graph.table_and_line(number) for graph in graphs
             if function in (graph.name, None) and number < len(graph.tables)
             and (sizes is None or sizes == ", ".join(map(str, graph.tables[number].shape)))]
    if meant:
        said, lines = (list(dict.fromkeys(texts)) for texts in zip(*meant))
        before, after = error.message[:found.start()], error.message[found.end():]
        error.message = "\n".join([f"{before}{' or '.join(said)}{after}", *lines])
        error.args = (error.message, error.code, error.hint)


class NamedTables:
    """Inside, errors about what traced functions have captured name it."""

    def __init__(self, *functions: Any) -> None:
        self._functions = functions

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if isinstance(error, UsageError):
            name_tables(error, self._functions)

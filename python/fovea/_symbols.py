# SPDX-License-Identifier: Apache-2.0
"""Symbols that numpy's functions and the indices of captured arrays accept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _fovea
from ._captured import Captured
from ._errors import UsageError
from ._operators import Symbol
from ._tables import ArraySymbol, PartOfTable, call_function, entry, indexed
from ._traced_functions import to_bool, to_float, to_int
from ._tracing import BOOL, FLOAT, INT, Graph, name_tables, running_graph, source_error, traced

_KINDS = {"b": BOOL, "i": INT, "u": INT, "f": FLOAT}
_CAPTURE = "write table = fovea.captured(array) before the call, and index that: table[q_idx, kv_idx]"
_NAMES = {"a_min": "min", "a_max": "max"}  # of numpy.clip


class NumpySymbol(ArraySymbol):
    """A number of each score, as far as numpy's functions use one."""

    __slots__ = ()
    library = "np"
    table_word = "array"
    table_text = "an array, captured"
    to_whole = "x.astype(int)"
    shape: tuple[int, ...] = ()
    ndim = 0

    @classmethod
    def kind_of(cls, table: Any) -> tuple[int, bool]:
        kind = _KINDS[table.dtype.kind]
        return kind, kind == FLOAT

    def argument(self, value: Any) -> Any:
        if value is None or isinstance(value, (Symbol, bool, int, float, str)):
            return value
        if isinstance(value, Captured) or getattr(value, "ndim", 1) != 0:
            return self.lift(value)
        return value.item()

    def lift_object(self, other: Any) -> Symbol:
        if isinstance(other, Captured):
            return entry(self.graph, other, ())
        if getattr(other, "ndim", 0) > 0:
            raise source_error(f"an array {list(other.shape)} beside a symbol", _CAPTURE)
        return super().lift_object(other)

    def __pow__(self, other: Any) -> Symbol:
        return super().__pow__(self.argument(other))

    def astype(self, dtype: Any, *_: Any, **__: Any) -> Symbol:
        import numpy

        wanted = numpy.dtype(dtype)
        if wanted.kind not in "bif" or (wanted.kind != "b" and wanted.itemsize not in (4, 8)):
            raise source_error(f"a symbol as {wanted}: what it rounds, or wraps, is not computed",
                               "convert it to bool, int or float, of 32 or 64 bits; x & 255 is x in 8 bits")
        return (to_bool, to_int, to_float)[_KINDS[wanted.kind]](self)

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise source_error("a symbol as an index of an array, or as a value in one", _CAPTURE)

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        return _ufunc(self.graph, ufunc, method, args, kwargs)

    def __array_function__(self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
        return call_function(self.graph, func.__name__, args, {_NAMES.get(key, key): value
                                                               for key, value in kwargs.items()})


class _Part(PartOfTable):
    """A captured array of which some axes are indexed."""

    def __array_ufunc__(self, ufunc: Any, *_: Any, **__: Any) -> Any:
        raise self.refusal(f"np.{ufunc.__name__}")

    def __array_function__(self, func: Callable[..., Any], *_: Any) -> Any:
        raise self.refusal(f"np.{func.__name__}")

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise self.refusal()


NumpySymbol.part = _Part


def _ufunc(graph: Graph, ufunc: Any, method: str, args: Any, kwargs: Any) -> Symbol:
    name = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
    return call_function(graph, name, args, kwargs)


def _running(array: Captured) -> Graph:
    """The steps of the function that reads the array. Raises UsageError outside of one."""
    graph = running_graph()
    if graph is None or not is_tracing():
        raise source_error(f"{array!r} is used outside of a score_mod or mask_mod of arrays",
                           "use its .array, and captured tensors themselves in functions for fovea.torch")
    return graph


def is_tracing() -> bool:
    graph = running_graph()
    return graph is not None and issubclass(graph.symbol, NumpySymbol)


def index(array: Captured, key: Any) -> Any:
    return indexed(_running(array), array, (None,) * array.ndim, key)


def number(array: Captured) -> Symbol:
    """The entry of an array without axes."""
    return entry(_running(array), array, ())


def ufunc_of(array: Captured, ufunc: Any, method: str, args: Any, kwargs: Any) -> Symbol:
    return _ufunc(_running(array), ufunc, method, args, kwargs)


def function_of(array: Captured, func: Callable[..., Any], args: Any, kwargs: Any) -> Symbol:
    return call_function(_running(array), func.__name__, args, kwargs)


class TracedFunction:
    """A function as the extension takes it, and the arrays that it captured."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.graph, result = traced(name, function, NumpySymbol)
        self._tables: list[Captured] = self.graph.tables
        self._learns = self.graph.learns
        try:
            self.native = _fovea.TracedArrays(self.graph.packed(result), [table.readable() for table in self._tables],
                                              self._learns)
        except UsageError as error:
            name_tables(error, [self])
            raise

    def store(self, gradients: dict[str, Any]) -> None:
        """Takes the gradients of captured arrays from those of a backward, and gives them to the arrays."""
        sums: dict[int, Any] = {}
        for n, table in enumerate(self._tables):
            if self._learns[n]:
                own = gradients.pop(f"captured{n}")
                sums[id(table)] = sums[id(table)] + own if id(table) in sums else own
        for table in self._tables:
            if id(table) in sums:
                table.grad = sums[id(table)].astype(table.dtype, copy=False)

# SPDX-License-Identifier: Apache-2.0
"""Symbols that PyTorch's functions and the indices of its tensors accept."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from .. import _fovea
from .._operators import Symbol
from .._tables import ArraySymbol, PartOfTable, call_function, entry, in_place, indexed, without_ellipsis
from .._traced_functions import to_bool, to_float, to_int
from .._tracing import BOOL, FLOAT, INT, Graph, running_graph, source_error, traced
from ._shapes import WIDE

# The types of tables that lanes read: of the call, or LaneTable::Type.
_TYPES = {torch.float32: 0, torch.float64: 1, torch.int32: 2, torch.int64: 3, torch.uint8: 4, torch.bool: 4}
_KEPT = (torch.bool, torch.int32, torch.int64, torch.float32, torch.float64)
_WIDER = {torch.int8: torch.int32, torch.int16: torch.int32}
_CAPTURED = {*WIDE, *_TYPES, *_WIDER}
_GETITEM = torch.Tensor.__getitem__


def _kind_of(dtype: torch.dtype) -> int:
    if dtype == torch.bool:
        return BOOL
    return FLOAT if dtype.is_floating_point else INT


def _converted(x: Symbol, dtype: torch.dtype) -> Symbol:
    if dtype not in _KEPT:
        raise source_error(f"a symbol as {dtype}: what it rounds, or wraps, is not computed",
                           "convert it to torch.bool, int32, int64, float32 or float64; x & 255 is x in 8 bits")
    x.graph.check_recorded(x)
    return (to_bool, to_int, to_float)[_kind_of(dtype)](x)


class TorchSymbol(ArraySymbol):
    """A 0-dimensional tensor of each score, as far as traced functions use one."""

    __slots__ = ()
    library = "torch"
    table_word = "tensor"
    table_text = "a tensor"
    to_whole = "x.int()"
    device = torch.device("cpu")
    shape = torch.Size(())
    ndim = 0
    requires_grad = False

    @property
    def dtype(self) -> torch.dtype:
        return (torch.bool, torch.int32, torch.float32)[self.kind]

    records_gradients = staticmethod(torch.is_grad_enabled)

    def dim(self) -> int:
        return 0

    def size(self) -> torch.Size:
        return self.shape

    @classmethod
    def kind_of(cls, table: torch.Tensor) -> tuple[builtins.int, builtins.bool]:
        if not table.is_cpu:
            raise source_error(f"a captured tensor is on {table.device}", "move it to the CPU first")
        if table.layout != torch.strided or table.dtype not in _CAPTURED:
            raise source_error(f"a captured tensor holds {table.dtype}, {table.layout}",
                               "capture a plain tensor: float32, float64, bfloat16, float16, int64, int32, uint8 or bool")
        return _kind_of(table.dtype), table.requires_grad and torch.is_grad_enabled()

    def argument(self, value: Any) -> Any:
        return self.lift(value) if isinstance(value, (torch.Tensor, PartOfTable)) else value

    def lift_object(self, other: Any) -> Symbol:
        if isinstance(other, torch.Tensor):
            return entry(self.graph, other, ())
        return super().lift_object(other)

    def to(self, *targets: Any, dtype: Any = None, **_: Any) -> Symbol:
        result: Symbol = self
        for target in (*targets, dtype):
            one = getattr(target, "dtype", target)
            result = _converted(result, one) if isinstance(one, torch.dtype) else result
        return result

    def type_as(self, other: Any) -> Symbol:
        return _converted(self, other.dtype)

    def type(self, dtype: Any = None, **_: Any) -> Symbol:
        if not isinstance(dtype, torch.dtype):
            raise source_error(f".type({dtype!r}) of a symbol", "write .to(torch.float32), or another type")
        return _converted(self, dtype)

    def float(self) -> Symbol:
        return _converted(self, torch.float32)

    double = float

    def half(self) -> Symbol:
        return _converted(self, torch.float16)

    def bfloat16(self) -> Symbol:
        return _converted(self, torch.bfloat16)

    def int(self) -> Symbol:
        return to_int(self)

    long = int

    def short(self) -> Symbol:
        return _converted(self, torch.int16)

    def char(self) -> Symbol:
        return _converted(self, torch.int8)

    def byte(self) -> Symbol:
        return _converted(self, torch.uint8)

    def bool(self) -> Symbol:
        return to_bool(self)

    def new_ones(self, size: Any = (), *, dtype: torch.dtype | None = None, **_: Any) -> Symbol:
        return _converted(self.graph.constant(1), dtype or self.dtype)

    def new_zeros(self, size: Any = (), *, dtype: torch.dtype | None = None, **_: Any) -> Symbol:
        return _converted(self.graph.constant(0), dtype or self.dtype)

    def new_full(self, size: Any, fill_value: Any, *, dtype: torch.dtype | None = None, **_: Any) -> Symbol:
        return _converted(self.graph.constant(fill_value), dtype or self.dtype)

    def _itself(self, *_: Any, **__: Any) -> Symbol:
        self.graph.check_recorded(self)
        return self

    def detach(self) -> Symbol:
        if self.graph.records and self.graph.has_gradient(self):
            raise source_error(".detach() of a symbol that has a gradient",
                               "capture a detached tensor: table.detach(); the gradient of a score cannot be stopped")
        return self

    clone = contiguous = cpu = squeeze = view = reshape = expand = _itself

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise source_error("a symbol as an index of an array, or as a value in one",
                           "capture a tensor: torch.from_numpy(array), and index that")

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        """Of a number of numpy beside a symbol, such as numpy.float64(2) * score."""
        name = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
        return call_function(self.graph, name, [self.lift(one) for one in args], kwargs)

    def item(self) -> Any:
        raise self._refuse("item()")

    tolist = item

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func is _GETITEM:
            return _index(*args)
        kwargs = dict(kwargs or {})
        if "input" in kwargs and not args:
            args = (kwargs.pop("input"),)
        name = func.__name__
        if name.endswith("_") and not name.startswith("_"):
            raise in_place(name, f"write x = torch.{name[:-1]}(x, ...)")
        name = name.strip("_")
        if name in ("take", "embedding") and len(args) >= 2:
            table, at = (args[1], args[0]) if name == "embedding" else args[:2]
            if isinstance(table, torch.Tensor) and isinstance(at, Symbol):
                return _index(table.reshape(-1) if name == "take" else table, at)
        if name in ("zeros_like", "ones_like", "full_like"):
            like = args[0]
            value = (*args[1:], kwargs.get("fill_value"))[0] if name == "full_like" else int(name == "ones_like")
            return like.new_full((), value, dtype=kwargs.get("dtype"))
        if name in ("result_type", "promote_types"):
            return max((a for a in args if isinstance(a, TorchSymbol)), key=lambda a: a.kind).dtype
        reverse = name in ("radd", "rmul", "rsub", "rdiv", "rtruediv", "rfloordiv", "rmod", "rpow", "rand", "ror",
                           "rxor", "rlshift", "rrshift")
        if reverse:
            name, args = name[1:], args[::-1]
        graph = _graph_of((*args, *kwargs.values()))
        return call_function(graph, name, args, kwargs)


class _Part(PartOfTable):
    """A captured tensor of which some axes are indexed."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        part = next(one for one in (*args, *(kwargs or {}).values()) if isinstance(one, PartOfTable))
        raise part.refusal(f"torch.{func.__name__.strip('_')}")


TorchSymbol.part = _Part


def _symbols_in(values: Iterable[Any]) -> Iterator[Symbol]:
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _symbols_in(value)
        elif isinstance(value, Symbol):
            yield value


def _graph_of(values: Iterable[Any]) -> Graph:
    """The steps of the function that calls with these values, of which one is, or holds, a symbol."""
    symbol = next(_symbols_in(values), None)
    graph = running_graph() if symbol is None else symbol.graph
    if graph is None:
        raise source_error("a symbol outside of the function that it was given to", "keep no symbols beyond the call")
    return graph


def _index(table: Any, key: Any) -> Any:
    keys = key if isinstance(key, tuple) else (key,)
    if isinstance(table, Symbol):
        raise table._refuse("an index")
    graph = _graph_of(keys)
    keys = without_ellipsis(keys, table.dim())
    if any(one is None or isinstance(one, slice) for one in keys):  # a view of the tensor, by its autograd
        table = table[tuple(one if one is None or isinstance(one, slice) else slice(None) for one in keys)]
        keys = tuple(slice(None) if one is None or isinstance(one, slice) else one for one in keys)
    return indexed(graph, table, (None,) * table.dim(), keys)


class TracedFunction:
    """A function as the extension takes it: its steps, and the tensors that it captured."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.graph, result = traced(name, function, TorchSymbol)
        self.steps = self.graph.packed(result)
        self.tables: list[torch.Tensor] = self.graph.tables
        self.learns = self.graph.learns

    def learned(self) -> list[torch.Tensor]:
        """The tensors that have a gradient, each once."""
        found: list[torch.Tensor] = []
        for table, learns in zip(self.tables, self.learns):
            if learns and not any(table is one for one in found):
                found.append(table)
        return found

    def summed(self, gradients: list[torch.Tensor | None]) -> list[torch.Tensor | None]:
        """The gradient of each learned tensor: the sum over the places where it was read, given those of
        `tables`."""
        sums: list[torch.Tensor | None] = []
        for one in self.learned():
            total: torch.Tensor | None = None
            for table, gradient in zip(self.tables, gradients):
                if table is one and gradient is not None:
                    total = gradient if total is None else total + gradient
            sums.append(None if total is None else total.to(one.dtype))
        return sums

    def arrays(self, replaced: dict[int, torch.Tensor]) -> Any:
        """For a call by arrays, which converts them. `replaced` as in bound()."""
        tables = [_readable(replaced.get(id(table), table).detach(), None) for table in self.tables]
        return _fovea.TracedArrays(self.steps, tables, self.learns)

    def bound(self, computed: torch.dtype, replaced: dict[int, torch.Tensor]) -> Bound:
        """For a call in a type. `replaced` has what stands for a learned tensor, by its id."""
        return Bound(self, [_readable(replaced.get(id(table), table).detach(), computed) for table in self.tables])


def _readable(table: torch.Tensor, computed: torch.dtype | None) -> torch.Tensor:
    """In a type that the engine knows; numbers in the one that is given, if one is."""
    if table.dtype.is_floating_point:
        return table.to(computed or WIDE[table.dtype])
    return table.to(_WIDER.get(table.dtype, table.dtype))


class Bound:
    """A traced function with the memory of its tables."""

    def __init__(self, function: TracedFunction, tables: list[torch.Tensor]) -> None:
        self.graph = function.graph
        self.learns = function.learns
        bounds = [_bounds(table) for table in tables]
        self.tables = [_narrowed(table, *ends) for table, ends in zip(tables, bounds)]  # which must live as long
        self.native = _fovea.Traced(function.steps, list(map(_table_row, self.tables, bounds, self.learns)))

    def room(self) -> list[torch.Tensor | None]:
        """For the gradients: of each table that learns."""
        return [torch.empty(table.shape, dtype=table.dtype) if learns else None
                for table, learns in zip(self.tables, self.learns)]


def _bounds(table: torch.Tensor) -> tuple[float, float]:
    """Of whole numbers and bools."""
    if table.dtype == torch.uint8:
        return 0.0, 255.0
    if table.dtype.is_floating_point or table.dtype == torch.bool or not table.numel():
        return 0.0, 1.0
    least, most = torch.aminmax(table)
    return float(least), float(most)


_LARGE = 1 << 18  # entries


def _narrowed(table: torch.Tensor, low: float, high: float) -> torch.Tensor:
    """Many whole numbers of 64 bits in fewer, if these hold them: each head reads them, in both directions, from
    memory."""
    if table.dtype != torch.int64 or table.numel() < _LARGE or not table.is_contiguous():
        return table
    narrow = next((one for one in (torch.uint8, torch.int32)
                   if torch.iinfo(one).min <= low and high <= torch.iinfo(one).max), torch.int64)
    return table.to(narrow)


def _table_row(table: torch.Tensor, bounds: tuple[float, float], learns: bool) -> tuple[Any, ...]:
    return (table.data_ptr(), _TYPES[table.dtype], list(table.shape), list(table.stride()), *bounds, learns)

# SPDX-License-Identifier: Apache-2.0
"""Symbols among arrays, and the captured tables that they index: what the front ends share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from ._operators import Symbol
from ._traced_functions import FUNCTIONS, where
from ._tracing import BOOL, INT, MOST_AXES, Graph, source_error

_ALL_AXES = "index all of its axes; vectors can be joined to query and key before the call"


class ArraySymbol(Symbol):
    """A symbol that reads captured tables by indices, and has functions as methods."""

    __slots__ = ()
    part: ClassVar[type[PartOfTable]]

    @classmethod
    def kind_of(cls, table: Any) -> tuple[int, bool]:
        """The kind of its numbers, and whether it learns. Raises UsageError for what cannot be read."""
        raise NotImplementedError

    def argument(self, value: Any) -> Any:
        """What a function gets for a value of the library: a symbol, or a plain number."""
        raise NotImplementedError

    def lift_object(self, other: Any) -> Symbol:
        if isinstance(other, PartOfTable):
            raise source_error(f"a part {list(other.shape)} of a captured {self.table_word} beside a symbol", _ALL_AXES)
        return super().lift_object(other)

    def where(self, condition: Any, other: Any) -> Symbol:
        """This number where the condition, a symbol, is true."""
        condition = self.lift(condition)
        if condition.kind != BOOL:
            raise source_error("x.where(...), whose first argument is no condition",
                               f"write x.where(condition, other), or {self.library}.where(condition, x, other)")
        return where(condition, self, other)

    def __getattr__(self, name: str) -> Any:
        if name.strip("_") in FUNCTIONS and not name.startswith("_"):
            if name.endswith("_"):
                raise in_place(name, f"write x = x.{name[:-1]}(...)")
            return lambda *args, **kwargs: call_function(self.graph, name, (self, *args), kwargs, "x")
        if name.endswith("_") and not name.startswith("_"):
            raise in_place(name, "help(fovea.captured) lists what makes new symbols")
        return super().__getattr__(name)


def in_place(name: str, hint: str) -> Exception:
    return source_error(f".{name} changes a number in place; a symbol cannot be changed", hint)


class PartOfTable:
    """A captured table of which some axes are open: their index is None."""

    def __init__(self, graph: Graph, table: Any, at: tuple[Any, ...]) -> None:
        self.graph = graph
        self.table = table
        self.at = at

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(size for size, index in zip(self.table.shape, self.at) if index is None)

    def __getitem__(self, key: Any) -> Any:
        return indexed(self.graph, self.table, self.at, key)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise self.refusal()

    def refusal(self, what: str = "") -> Exception:
        word = self.graph.symbol.table_word
        if what:
            return source_error(f"{what} of a part of a captured {word}", _ALL_AXES)
        return source_error(f"a part {list(self.shape)} of a captured {word} is used as a whole", _ALL_AXES)

    def _refuse(self, *_: Any) -> Any:
        raise self.refusal()

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __matmul__ = __rmatmul__ = __truediv__ = _refuse


def without_ellipsis(keys: tuple[Any, ...], axes: int) -> tuple[Any, ...]:
    """The indices of so many axes, where `...` stands for whole ones."""
    for n, one in enumerate(keys):
        if one is Ellipsis:
            used = sum(key is not None and key is not Ellipsis for key in keys)
            return (*keys[:n], *(slice(None),) * (axes - used), *keys[n + 1:])
    return keys


def indexed(graph: Graph, table: Any, at: Sequence[Any], key: Any) -> Any:
    """A table whose open axes are indexed further: a part of it, or its entry if none is left open."""
    keys = key if isinstance(key, tuple) else (key,)
    is_open = all(index is None for index in at)
    if is_open and len(keys) == len(at) and all(isinstance(one, Symbol) for one in keys):
        return entry(graph, table, keys)
    at = list(at)
    axes = [axis for axis, index in enumerate(at) if index is None]
    keys = without_ellipsis(keys, len(axes))
    word = graph.symbol.table_word
    if len(keys) > len(axes):
        raise source_error(f"{len(keys)} indices of a captured {word} {[table.shape[axis] for axis in axes]}",
                           f"give {len(axes)}, one for each axis")
    for axis, one in zip(axes, keys):
        if one is None or (isinstance(one, slice) and one != slice(None)):
            raise source_error(f"a slice, or a new axis, of a captured {word}", f"capture that part of the {word}")
        if isinstance(one, (list, tuple)):
            raise source_error(f"a {type(one).__name__} as an index of a captured {word}",
                               "give a symbol, or a whole number, for each axis: table[q_idx, kv_idx]")
        at[axis] = None if isinstance(one, slice) else one
    if any(index is None for index in at):
        return graph.symbol.part(graph, table, tuple(at))  # type: ignore[attr-defined]
    return entry(graph, table, at)


def entry(graph: Graph, table: Any, at: Sequence[Any]) -> Symbol:
    """The entry of a table at the indices of all its axes."""
    symbol: Any = graph.symbol
    word, axes = symbol.table_word, len(table.shape)
    if axes > len(at):
        raise source_error(f"a captured {word} {list(table.shape)} beside a symbol",
                           "index all of its axes: table[q_idx, kv_idx]")
    kind, learns = symbol.kind_of(table)
    if axes > MOST_AXES:
        raise source_error(f"a captured {word} has {axes} axes", f"at most {MOST_AXES} are allowed: flatten some")
    indices = [graph.lift(index) for index in at]
    for n, index in enumerate(indices):
        if index.kind != INT:
            raise source_error(f"index {n} of a captured {word} is not a whole number",
                               f"convert it: {symbol.to_whole}")
    return graph.read(table, indices, kind, learns)


def call_function(graph: Graph, name: str, args: Sequence[Any], kwargs: dict[str, Any], of: str = "") -> Symbol:
    """What a function of the library, by its name, makes of symbols. `of` is the symbol of a method."""
    function, symbol = FUNCTIONS.get(name), graph.constant(0)
    assert isinstance(symbol, ArraySymbol)
    called = f"{of or symbol.library}.{name}"
    if function is None:
        raise source_error(
            f"{called} is no function that a traced function may use",
            f"help(fovea.captured) lists them; what depends on q_idx or kv_idx alone can be computed before the call as "
            f"{symbol.table_text}, and indexed")
    values = [symbol.argument(value) for value in args]
    if values and isinstance(values[0], (bool, int, float)):
        values[0] = symbol.lift(values[0])
    if kwargs.get("out") is not None or kwargs.get("inplace"):
        raise source_error(f"{called} with out= or inplace=, which would change a symbol",
                           "leave it out, and use what the function returns")
    kwargs = {key: value if key == "dtype" else symbol.argument(value)
              for key, value in kwargs.items() if key not in ("out", "inplace")}
    try:
        result: Symbol = function(*values, **kwargs)
    except TypeError as error:
        if error.__traceback__ is not None and error.__traceback__.tb_next is not None:
            raise
        raise source_error(f"{called} with these arguments: {str(error).split('() ')[-1]}",
                           "help(fovea.captured) lists what a traced function may use") from None
    return result

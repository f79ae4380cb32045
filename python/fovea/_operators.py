# SPDX-License-Identifier: Apache-2.0
"""Symbols with the operators of Python. What functions of a library do with symbols, a subclass says."""

from __future__ import annotations

from typing import Any, ClassVar

from ._errors import UsageError
from ._tracing import BOOL, FLOAT, INT, Graph, source_error


# Operators such as += do without them, and make new symbols.
_IN_PLACE = [f"__i{name}__" for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor",
                                         "lshift", "rshift")]


class Symbol:
    """A number of each score: `step` of the graph computes it."""

    __slots__ = ("graph", "step", "kind")
    library: ClassVar[str]  # as its users call it
    to_whole: ClassVar[str]  # how they convert x
    table_word: ClassVar[str]  # what messages call a table

    def __init__(self, graph: Graph, step: int, kind: int) -> None:
        self.graph = graph
        self.step = step
        self.kind = kind

    @staticmethod
    def records_gradients() -> bool:
        """Whether the library records now what has a gradient."""
        return True

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

    def _of_numbers(self, name: str, other: Any, of_conditions: str) -> Symbol:
        """An operation; of two conditions, the other one."""
        other = self.lift(other)
        kind = max(self.kind, other.kind)
        return self.graph.operation(of_conditions if kind == BOOL else name, kind, self, other)

    def __add__(self, other: Any) -> Symbol:
        return self._of_numbers("add", other, "max")

    __radd__ = __add__

    def __sub__(self, other: Any) -> Symbol:
        return self.promoted("sub", other)

    def __rsub__(self, other: Any) -> Symbol:
        return self.lift(other).promoted("sub", self)

    def __mul__(self, other: Any) -> Symbol:
        return self._of_numbers("mul", other, "min")

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

    def __divmod__(self, other: Any) -> tuple[Symbol, Symbol]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Symbol, Symbol]:
        return divmod(self.lift(other), self)

    def __pow__(self, other: Any) -> Symbol:
        if isinstance(other, int) and 1 <= other <= 8:
            result = self
            for _ in range(other - 1):
                result = result * self
            return result if self.kind != BOOL else result.op("add", INT, 0)
        if isinstance(other, (int, float)):
            if other == 0.5:
                return self.op("sqrt", FLOAT)
            if self.kind != FLOAT and isinstance(other, int) and other < 0:
                raise source_error(f"a whole number to the power {other}", f"write a number: x ** {other}.0")
            if other == -1:
                return 1 / self
        exponent = self.lift(other)
        return self.promoted("power", exponent) if FLOAT in (self.kind, exponent.kind) else self._whole_power(exponent)

    def _whole_power(self, exponent: Symbol) -> Symbol:
        """Of whole numbers: to a negative power, towards 0."""
        size = self.promoted("power", abs(exponent)).op("round", INT)
        return ((exponent < 0) & (abs(size) != 1)).op("select", INT, 0, size)

    def __rpow__(self, other: Any) -> Symbol:
        if type(other) is int and other == 2 and self.kind != FLOAT:
            return self.lift(1) << self
        return self.lift(other) ** self

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

    def __hash__(self) -> int:
        raise source_error("a symbol as a key of a dict or a set, or as an argument that is cached",
                           "capture the values, and index them: table[q_idx, kv_idx]")

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

    def __complex__(self) -> complex:
        raise self._refuse("complex()")

    def __trunc__(self) -> int:
        raise self._refuse("math.trunc()")

    def __round__(self, digits: Any = None) -> Symbol:
        raise source_error("round() of a symbol", f"write {self.library}.round(x)")

    def __format__(self, spec: str) -> str:
        if spec:
            raise self._refuse(f"the format '{spec}'")
        return super().__format__(spec)

    def __matmul__(self, other: Any) -> Symbol:
        raise source_error("'@' of a symbol, which stands for one number", "write x * y")

    __rmatmul__ = __matmul__

    def __setitem__(self, key: Any, value: Any) -> None:
        raise self._refuse("an assignment to a part")

    def __iter__(self) -> Any:
        raise self._refuse("a loop over, or unpacking,")

    def __len__(self) -> int:
        raise self._refuse("len()")

    def __getitem__(self, key: Any) -> Symbol:
        raise self._refuse("an index")

    def __getattr__(self, name: str) -> Any:
        if name in _IN_PLACE:
            raise source_error(f"{name} changes a number in place; a symbol cannot be changed", "write x = x + y")
        if name.startswith("__"):
            raise AttributeError(name)
        raise source_error(f".{name} of a symbol is not known", "help(fovea.captured) lists what a traced function may use")

# SPDX-License-Identifier: Apache-2.0
"""The arrays that traced functions read."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ._errors import usage_error

if TYPE_CHECKING:
    import numpy.typing

# numpy, and the tracer, are imported where they are used, so that `import fovea` is quick.

# What the engine reads, by the kind and the size of what it does not.
_READABLE = {"i1": "i4", "i2": "i4", "u2": "i4", "u4": "i8", "f2": "f4"}


def _of_number(name: str) -> Callable[..., Any]:
    """The operator of an array without axes."""

    def operator(array: Captured, *other: Any) -> Any:
        from . import _symbols

        return getattr(_symbols.number(array), name)(*other)

    return operator


def _of_numbers(*names: str) -> Any:
    return map(_of_number, names)


class Captured:
    """An array that `score_mod` and `mask_mod` read at symbols: `table[h, q_idx - kv_idx]`. Make one with
    `captured`.

    `array` is the array itself. `grad` is its gradient of the last `Attended.backward` that it took part
    in, in its shape and type; None before, and for whole numbers and bools.
    """

    def __init__(self, x: Any) -> None:
        import numpy

        if isinstance(x, Captured):
            x = x.array
        self.array: numpy.typing.NDArray[Any] = (
            numpy.from_dlpack(x) if hasattr(x, "__dlpack__") and not isinstance(x, numpy.ndarray) else numpy.asarray(x))
        self.grad: numpy.typing.NDArray[Any] | None = None
        if self.dtype.kind not in "biuf" or self.dtype.itemsize > 8 or self.dtype.str[1:] == "u8":
            raise usage_error(f"captured: the array holds {self.dtype}",
                              "give numbers (float32, float64), whole numbers (int32, int64) or bools")

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def ndim(self) -> int:
        return self.array.ndim

    @property
    def dtype(self) -> numpy.dtype[Any]:
        return self.array.dtype

    def __repr__(self) -> str:
        return f"fovea.captured({self.dtype} {list(self.shape)})"

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, key: Any) -> Any:
        from . import _symbols

        return _symbols.index(self, key)

    def __iter__(self) -> Any:
        from ._tracing import source_error

        raise source_error(f"a loop over, or unpacking, {self!r}", "loop over its .array")

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        from . import _symbols

        return _symbols.ufunc_of(self, ufunc, method, args, kwargs)

    def __array_function__(self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
        from . import _symbols

        return _symbols.function_of(self, func, args, kwargs)

    __add__, __radd__, __sub__, __rsub__ = _of_numbers("__add__", "__radd__", "__sub__", "__rsub__")
    __mul__, __rmul__, __truediv__, __rtruediv__ = _of_numbers("__mul__", "__rmul__", "__truediv__", "__rtruediv__")
    __floordiv__, __rfloordiv__, __mod__, __rmod__ = _of_numbers("__floordiv__", "__rfloordiv__", "__mod__", "__rmod__")
    __pow__, __rpow__, __divmod__, __rdivmod__ = _of_numbers("__pow__", "__rpow__", "__divmod__", "__rdivmod__")
    __and__, __rand__, __or__, __ror__ = _of_numbers("__and__", "__rand__", "__or__", "__ror__")
    __xor__, __rxor__, __lshift__, __rlshift__ = _of_numbers("__xor__", "__rxor__", "__lshift__", "__rlshift__")
    __rshift__, __rrshift__, __matmul__, __rmatmul__ = _of_numbers(
        "__rshift__", "__rrshift__", "__matmul__", "__rmatmul__")
    __neg__, __pos__, __abs__, __invert__ = _of_numbers("__neg__", "__pos__", "__abs__", "__invert__")
    __lt__, __le__, __gt__, __ge__ = _of_numbers("__lt__", "__le__", "__gt__", "__ge__")
    __int__, __float__, __round__, __trunc__ = _of_numbers("__int__", "__float__", "__round__", "__trunc__")

    def __eq__(self, other: object) -> Any:
        from . import _symbols

        return _symbols.number(self) == other if _symbols.is_tracing() else self is other

    def __ne__(self, other: object) -> Any:
        from . import _symbols

        return _symbols.number(self) != other if _symbols.is_tracing() else self is not other

    def __hash__(self) -> int:
        return id(self)

    def __setitem__(self, key: Any, value: Any) -> None:
        from ._tracing import source_error

        raise source_error(f"an assignment to a part of {self!r}", "change its .array, outside of a function")

    def readable(self) -> Any:
        """The array as the engine reads it: itself, or a copy in a type that it knows."""
        dtype = self.dtype.newbyteorder("=")
        return self.array.astype(_READABLE.get(dtype.str[1:], dtype), copy=False)


def captured(x: Any) -> Captured:
    """An array for `score_mod` and `mask_mod` of `attend` and `attention` to read.

    x: an array, or what numpy.asarray takes, of up to 6 axes: numbers, which get a gradient, whole numbers
    or bools. It is not copied (but for float16 and small whole numbers, in each call). In a traced function,
    index all axes, until one number is left: by symbols, by whole numbers from -size to size - 1, one after
    the other if you like (`table[h][kv_idx]`). An array without axes is used as it is: `cap * score`.
    After `Attended.backward`, `grad` is the gradient that this backward gave it, the sum over all places
    where it was read; the next backward replaces it. Raises UsageError for other types.

    What a traced function may use, beside operators and conversions, as functions of numpy or torch or as methods:
    abs, absolute, add, and, bitwise_and, bitwise_left_shift, bitwise_not, bitwise_or, bitwise_right_shift,
    bitwise_xor, ceil, clamp, clamp_max, clamp_min, clip, cos, div, divide, eq, equal, erf, exp, exp2, expit,
    expm1, fabs, fix, float_power, floor, floor_divide, floordiv, ge, gelu, greater, greater_equal, gt, hypot,
    invert, isinf, isneginf, isposinf, le, leaky_relu, left_shift, lerp, less, less_equal, log, log10, log1p,
    log2, logaddexp, logical_and, logical_not, logical_or, logical_xor, lshift, lt, max, maximum, min,
    minimum, mod, mul, multiply, ne, neg, negative, not_equal, or, positive, pow, power, reciprocal, relu,
    remainder, right_shift, rint, round, rshift, rsqrt, rsub, sigmoid, sign, silu, sin, softplus, sqrt,
    square, sub, subtract, tan, tanh, true_divide, truediv, trunc, where, xor
    """
    return Captured(x)

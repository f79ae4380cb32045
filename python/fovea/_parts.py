# SPDX-License-Identifier: Apache-2.0
"""Keywords as the tensors and options of a call: both come from the table that the command reads."""

from __future__ import annotations

import functools
import numbers
import operator
import sys
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from . import _fovea
from ._errors import usage_error
from ._options import Row

# Options of the command that are methods here, or that the operands stand for.
_ELSEWHERE = {
    "backward": "attend(...).backward(do) computes the gradients",
    "do": "attend(...).backward(do) computes the gradients",
    "dlse": "attend(...).backward(do, dlse) computes the gradients",
}
# Keywords of PyTorch and FlashAttention, and what they are called here.
OF_OTHERS = {
    "is_causal": "write causal=True (the last query sees the last key), or causal='top-left', which is PyTorch's",
    "attn_mask": "write keep=mask for bools, of which True keeps, or bias=mask for numbers that are added",
    "key_padding_mask": "write keep=mask, whose True keeps, as [B, 1, 1, S], or key_lengths=",
    "dropout_p": "write dropout=",
    "enable_gqa": "leave it out: k and v may always have fewer heads",
    "need_weights": "write observe='weights': the result has them as an attribute",
    "softmax_scale": "write scale=",
    "window_size": "write window=(left, right)",
    "alibi_slopes": "write slopes=",
}


@functools.cache
def options() -> tuple[str, ...]:
    """The names of the options, with underscores."""
    return tuple(name for name, _, _ in _fovea.attention_options() if name not in _ELSEWHERE)


@functools.cache
def tensors() -> tuple[str, ...]:
    """The names of the tensors beside q, k, v and what only a backward reads."""
    operands = ("q", "k", "v", *_ELSEWHERE)
    return tuple(name for name, *_ in _fovea.attention_tensors() if name not in operands)


@functools.cache
def float_tensors() -> tuple[str, ...]:
    """The tensors of numbers, which have gradients: q, k, v, and those of parts."""
    return tuple(name for name, _, kind, _ in _fovea.attention_tensors() if kind == "float" and name not in _ELSEWHERE)


def keyword_rows() -> list[Row]:
    """(name, what it must be, what it does) of each keyword; where two have a name, of both."""
    rows = []
    for name, expected, does in _fovea.attention_options():
        if name in options():
            does = does.replace("no value: ", "True: ").replace("of OUT", "of the results")
            rows.append((name, expected, does + (": " + _fovea.observed_names() if name == "observe" else "")))
    return [*rows, *((name, f"{kind} {axes}", does) for name, axes, kind, does in _fovea.attention_tensors()
                     if name in tensors())]


def is_array(value: object) -> bool:
    """Whether it is an array, and no number or text that an option takes."""
    return (hasattr(value, "__dlpack__") or hasattr(value, "__array_interface__")) and getattr(value, "ndim", 1) > 0


def refuse_masked(name: str, value: object) -> None:
    """Refuses an array of numpy.ma: its memory has numbers where it has none, and a call reads the memory."""
    ma = sys.modules.get("numpy.ma")
    if ma is not None and isinstance(value, ma.MaskedArray):
        raise usage_error(f"{name}: a masked array, whose mask would not be read",
                          "give x.filled(0), and say which places count by keep=, key_lengths= or mask_mod=")


def refuse_memory(name: str, value: Any) -> None:
    """Refuses an array of numpy whose memory cannot be read as it lies, and says why."""
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(value, numpy.ndarray):
        return
    dtype = value.dtype
    if dtype.kind not in "biufc" or dtype.itemsize > (16 if dtype.kind == "c" else 8):
        raise usage_error(f"{name}: it holds {dtype}",
                          "numbers are float32 or float64: convert by x.astype(np.float64)")
    if not dtype.isnative:
        raise usage_error(f"{name}: it holds {dtype.str}, with the bytes of a number in the other order",
                          "convert it by x.astype(x.dtype.newbyteorder('='))")
    for axis, stride in enumerate(value.strides):
        if stride % dtype.itemsize:
            raise usage_error(f"{name}: axis {axis} has a stride of {stride} bytes, which is no multiple of the"
                              f" {dtype.itemsize} of a number", "copy it first, as numpy.ascontiguousarray does")


def option_text(name: str, value: object) -> str:
    """The value of an option as the command would be given it."""
    if isinstance(value, str):
        return value
    if name == "causal" and isinstance(value, bool):
        return "bottom-right" if value else "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, numbers.Integral):
        return str(int(value))
    if isinstance(value, numbers.Real) or getattr(value, "ndim", None) == 0:
        return repr(float(value))  # type: ignore[arg-type]
    if isinstance(value, Iterable):
        return ",".join(option_text(name, item) for item in value)
    raise usage_error(f"{name}: expected a number, a text or a tuple of them; got {type(value).__name__}",
                      "help() of the function lists what each keyword takes")


def _window_text(value: object) -> str:
    """The option `window`, which the command has as L,R."""
    try:
        left, right = (operator.index(side) for side in value)  # type: ignore[attr-defined]
        if min(left, right) >= -1:
            return f"{left},{right}"
    except (TypeError, ValueError):
        pass
    raise usage_error(f"window: expected (left, right), each a whole number, at least 0, or -1 (open); got {value!r}",
                      "window=(8, 0) sees 8 keys before the query and none behind it, window=(8, -1) all behind it; an"
                      " array [H, 2] has a window for each head", "E0203")


def text_of(name: str, text: object) -> str:
    """A text that has UTF-8."""
    if not isinstance(text, str):
        raise usage_error(f"{name}: expected a text; got {type(text).__name__}", "give a str")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise usage_error(f"{name}: character {error.start} is half of a surrogate pair, {text[error.start]!r}",
                          "such a text has no UTF-8: text.encode(errors='replace').decode()", "E0203") from None
    return text


def unknown_keyword(function: str, name: str, known: Iterable[str]) -> Exception:
    """The error for a keyword that a function does not have."""
    names = sorted(known)
    meant = _fovea.did_you_mean(name, names)
    return usage_error(f"{function}: unknown keyword '{name}'", meant or "it takes " + ", ".join(names))


class Asked(NamedTuple):
    """What a call was asked for beside q, k and v."""

    arrays: dict[str, Any]
    texts: dict[str, str]  # of options


def no_result(name: str, results: Iterable[str]) -> AttributeError:
    """The error for an attribute that the results of a call do not have."""
    meant = _fovea.did_you_mean(name, [*results, "plan", "backward"])
    return AttributeError(f"the results of this call are {', '.join(sorted(results))}; it has no {name}"
                          + (f": {meant}" if meant else ""))


def described(what: str, results: Mapping[str, Any], asked: Asked) -> str:
    """The results of a call, and how it was asked for."""
    names = sorted(results, key=lambda name: name not in ("o", "lse"))
    shown = [f"{name}: {results[name].dtype} {list(results[name].shape)}" for name in names]
    settings = [*(f"{name}={text!r}" for name, text in asked.texts.items()),
                *(f"{name}={list(array.shape)}" for name, array in asked.arrays.items())]
    return f"{what}({', '.join(shown)}{'; ' if settings else ''}{', '.join(settings)})"


def split(function: str, parts: Mapping[str, Any]) -> Asked:
    """The tensors and the options among keywords. None stands for a keyword that was not given."""
    arrays: dict[str, Any] = {}
    texts: dict[str, str] = {}
    for name, value in parts.items():
        if name in _ELSEWHERE:
            raise usage_error(f"{function}: unknown keyword '{name}'", _ELSEWHERE[name])
        if name in OF_OTHERS:
            raise usage_error(f"{function}: unknown keyword '{name}'", OF_OTHERS[name])
        if value is None and (name in tensors() or name in options()):
            continue
        if name in tensors() and (name not in options() or is_array(value)):
            arrays[name] = value
        elif name in options():
            of_pair = name == "window" and not isinstance(value, str)
            texts[name] = _window_text(value) if of_pair else option_text(name, value)
        else:
            raise unknown_keyword(function, name, {*tensors(), *options(), "score_mod", "mask_mod", "threads"})
    return Asked(arrays, texts)

# SPDX-License-Identifier: Apache-2.0
"""What torch.nn.functional.scaled_dot_product_attention computes."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from types import NoneType
from typing import Any

import torch

from .._errors import UsageError, usage_error
from . import _shapes
from ._op import MOST_PLANS, Operands, Plan, key_of, plan_of, run, sdpa
from ._shapes import readable

_torch_sdpa = torch.nn.functional.scaled_dot_product_attention


def _is_ours(*tensors: torch.Tensor | None) -> bool:
    """Whether all are plain tensors in this computer's memory, of a type that we compute."""
    return all(
        tensor is None
        or (tensor.device.type == "cpu" and tensor.layout == torch.strided and not tensor.is_nested)
        for tensor in tensors
    )


def autocast_type(dtype: torch.dtype) -> torch.dtype:
    """The type of the result: under autocast, that of autocast."""
    if torch.is_autocast_enabled("cpu") and dtype != torch.float64:
        return torch.get_autocast_dtype("cpu")
    return dtype


# Plans of calls whose tensors are used as they come, and whose result is returned as it is.
_ready: dict[Any, Plan] = {}
_NAMES = ("query", "key", "value", "attn_mask")
_PLAIN = (torch.Tensor, torch.nn.Parameter)
_SCALES = (NoneType, float)
# dropout_p, scale, is_causal, enable_gqa.
Given = tuple[float, float | None, bool, bool]


def _ready_key(tensors: tuple[torch.Tensor | None, ...], options: tuple[Any, ...]) -> Any:
    """What decides whether a call is ready, and its plan; None if it never is."""
    for tensor in tensors:
        if tensor is not None and (type(tensor) not in _PLAIN or not tensor.is_cpu):
            return None
    if type(options[0]) is not float or type(options[1]) not in _SCALES or torch.is_autocast_enabled("cpu"):
        return None
    try:
        return key_of(*tensors), options  # type: ignore[arg-type]
    except (AttributeError, RuntimeError, TypeError):
        return None  # sparse and nested tensors have no strides, and None is no tensor


def scaled_dot_product_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    """What torch.nn.functional.scaled_dot_product_attention computes, with gradients, without matrices T x S.

    query [..., H, T, E], key [..., H, S, E], value [..., H, S, Ev], whose leading axes broadcast; with
    enable_gqa, key and value may have fewer heads, of which H is a multiple. attn_mask broadcasts to
    [..., H, T, S]: bools, of which True keeps, or numbers, which are added and may learn. A query that keeps
    no key has the result 0. is_causal keeps j <= i. The result has the type of query: with bfloat16, sums and
    softmax are float32, and where the processor multiplies bfloat16 the weights are rounded to it for their
    product; float16 is computed in float32. Tensors of other devices go to torch's function. Source: Vaswani
    et al. 2017, eq. 1. Raises UsageError, a ValueError, that names the argument, the axis and both sizes.
    """
    operands = (query, key, value, attn_mask)
    given = (dropout_p, scale, is_causal, enable_gqa)
    if torch.compiler.is_compiling():
        return _planned(operands, given, None)
    _shapes.refuse_tracing("scaled_dot_product_attention")
    try:
        ready = _ready_key(operands, given)
        plan = _ready.get(ready)
        if plan is not None:
            return run(plan, *operands)
        return _planned(operands, given, ready)
    except (AttributeError, RuntimeError, TypeError) as error:
        _explain(error, operands, given)
        raise


def _planned(operands: Operands, given: Given, ready: Any) -> torch.Tensor:
    """The result of a call of which nothing is known yet."""
    query, key, _, attn_mask = operands
    dropout_p, scale, is_causal, enable_gqa = given
    _check_options(given)
    if not _is_ours(*operands) or dropout_p == 1:
        _check_devices(operands)
        return _torch_sdpa(*operands, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
    if is_causal and attn_mask is not None:
        raise usage_error("attn_mask and is_causal exclude each other", "put the causal mask into attn_mask")
    if not 0 <= dropout_p < 1:
        raise usage_error(f"dropout_p: {dropout_p} is not a probability", "give at least 0 and at most 1", "E0203")
    leading, computed = _computed(operands, enable_gqa)
    width = query.shape[-1]
    factor = (1 / math.sqrt(width) if width else 1.0) if scale is None else float(scale)
    options = (factor, bool(is_causal), float(dropout_p))
    o = sdpa(*computed, options)
    if ready is not None and all(a is b for a, b in zip(operands, computed)):
        if len(_ready) >= MOST_PLANS:
            _ready.clear()
        _ready[ready] = plan_of(computed, options)
    returned = autocast_type(query.dtype)
    if returned != o.dtype:
        o = o.to(returned)
    return o if o.shape[:-2] == leading else o.reshape(*leading, *o.shape[-2:])


def _check_options(given: Given) -> None:
    """Refuses texts, lists and the like, which Python would take for a truth or turn into a number."""
    dropout_p, scale, is_causal, enable_gqa = given
    if type(dropout_p) is not float:
        _shapes.check_number("dropout_p", dropout_p)
    if type(scale) not in _SCALES:
        _shapes.check_number("scale", scale)
    if type(is_causal) is not bool:
        _shapes.check_switch("is_causal", is_causal)
    if type(enable_gqa) is not bool:
        _shapes.check_switch("enable_gqa", enable_gqa)


def _check_devices(operands: Operands) -> None:
    """Of a mask on another device, torch's function reads nothing, and says nothing."""
    device = operands[0].device
    for name, tensor in zip(_NAMES, operands):
        if tensor is not None and tensor.device != device:
            raise usage_error(f"query is on {device} and {name} on {tensor.device}", "move all to one device")


def _explain(error: Exception, operands: Operands, given: Given) -> None:
    """Raises what says more than an error of PyTorch or Python, if there is something to say."""
    if isinstance(error, UsageError):
        return
    for name, tensor in zip(_NAMES, operands):
        if tensor is not None or name != "attn_mask":
            _shapes.check_tensor(name, tensor)
    _check_options(given)
    if any(tensor is not None and tensor.layout not in (torch.strided, torch.jagged) for tensor in operands):
        raise usage_error("scaled_dot_product_attention: a tensor is sparse", "give its to_dense()") from error
    transforms: Any = torch._C._functorch
    if _is_ours(*operands) and transforms.peek_interpreter_stack() is not None:
        raise usage_error("scaled_dot_product_attention: torch.func (vmap, grad, jvp, ...) cannot transform it",
                          "instead of vmap give one more leading axis; backward() has the gradients") from error


def _computed(operands: Operands, enable_gqa: bool) -> tuple[tuple[int, ...], Operands]:
    """The leading axes of the result, and the operands in the type and shapes that are computed."""
    query, key, value, mask = operands
    _shapes.check_types(query, key, value, mask)
    _shapes.check_widths(query, key, value)
    if enable_gqa:
        _shapes.check_groups(query, key, value)
    else:
        query, key, value = _shapes.one_number_of_heads(query, key, value)
    leading, *qkv = _shapes.heads_in_groups(query, key, value)
    dtype, wide = _shapes.COMPUTED[query.dtype], _shapes.WIDE[query.dtype]
    if mask is not None:
        mask = mask if mask.dtype in (torch.bool, wide) else mask.to(wide)
        mask = _shapes.four_axes_of_mask(mask, leading, query.shape[-2], key.shape[-2])
    q, k, v = (readable(x if x.dtype == dtype else x.to(dtype)) for x in qkv)
    return leading, (q, k, v, mask)


@contextlib.contextmanager
def replace_sdpa() -> Iterator[None]:
    """Inside, torch.nn.functional.scaled_dot_product_attention is ours, for all code of the process that
    looks it up when it calls it."""
    functional: Any = torch.nn.functional
    before = functional.scaled_dot_product_attention
    functional.scaled_dot_product_attention = scaled_dot_product_attention
    try:
        yield
    finally:
        functional.scaled_dot_product_attention = before

# SPDX-License-Identifier: Apache-2.0
"""The shapes that torch's function accepts, as [B, H, T, D]."""

from __future__ import annotations

import math
from types import NoneType
from typing import Any

import torch

from .._errors import usage_error

# The type in which q, k and v are given to the extension.
COMPUTED = {
    torch.float32: torch.float32,
    torch.float64: torch.float64,
    torch.bfloat16: torch.bfloat16,
    torch.float16: torch.float32,
}
# The type of everything else: masks of numbers, biases, lse.
WIDE = {**COMPUTED, torch.bfloat16: torch.float32}
# As the extension numbers them (row_type.h).
ROW_TYPES = {torch.float32: 0, torch.float64: 1, torch.bfloat16: 2}


def readable(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor with a contiguous last axis: itself, unless that axis lies otherwise."""
    return tensor if tensor.stride(-1) == 1 or tensor.shape[-1] <= 1 else tensor.contiguous()


def check_tensor(name: str, given: object) -> None:
    """Refuses what is no tensor, before anything asks it for its device."""
    if isinstance(given, torch.Tensor) or hasattr(type(given), "__torch_function__"):
        return
    raise usage_error(f"{name}: expected a tensor; got {type(given).__name__}",
                      "torch.from_numpy makes one of an array; fovea.attention takes arrays"
                      if hasattr(given, "__array_interface__") else "give a torch.Tensor")


def refuse_tracing(function: str) -> None:
    """Refuses torch.jit.trace, which would record addresses and sizes of one call."""
    if torch._C._is_tracing():
        raise usage_error(f"{function}: torch.jit.trace cannot record it",
                          "compile the model by torch.compile, or trace it with the attention of PyTorch")


def check_number(name: str, given: Any) -> None:
    """Refuses what is no single number: texts, None, lists."""
    try:
        if not isinstance(given, (str, bytes)):
            float(given)
            return
    except (OverflowError, RuntimeError, TypeError, ValueError):
        pass
    raise usage_error(f"{name}: expected a number; got {_said(given)}", "give a float", "E0203")


def check_switch(name: str, given: Any) -> None:
    """Refuses what is neither true nor false: texts, None, lists. Numbers are, as 0-dimensional tensors."""
    if isinstance(given, (int, torch.SymBool)) or (hasattr(given, "item") and getattr(given, "size", 1) != 0):
        return
    raise usage_error(f"{name}: expected a bool; got {_said(given)}", "give True or False", "E0203")


def asks_for_lse(return_aux: Any) -> bool:
    """Whether what was given as return_aux asks for the log-sum-exp."""
    if return_aux is None:
        return False
    if not hasattr(return_aux, "lse"):
        raise usage_error(f"return_aux: expected an AuxRequest; got {type(return_aux).__name__}",
                          "give AuxRequest(lse=True)")
    return bool(return_aux.lse)


def _said(given: object) -> str:
    return repr(given) if isinstance(given, (str, bytes, NoneType)) else type(given).__name__


def check_types(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor | None) -> None:
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        if tensor.dtype not in COMPUTED:
            raise usage_error(f"{name}: it holds {tensor.dtype}", "give float32, float64, bfloat16 or float16")
        if tensor.dtype != query.dtype and not torch.is_autocast_enabled("cpu"):
            raise usage_error(f"query holds {query.dtype} and {name} {tensor.dtype}", "give all in one type")
        if tensor.dim() < 2:
            raise usage_error(f"{name}: {tensor.dim()} axes; expected at least 2", "[..., length, width]", "E0202")
    if mask is not None and mask.dtype not in (torch.bool, torch.float32, query.dtype):
        raise usage_error(f"attn_mask holds {mask.dtype} and query {query.dtype}",
                          "give bools (True keeps), float32, or the type of query")


def check_widths(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> None:
    if query.shape[-1] != key.shape[-1]:
        raise usage_error(f"the last axis of query is {query.shape[-1]}, and {key.shape[-1]} in key",
                          "the width of queries is that of keys", "E0202")
    if key.shape[-2] != value.shape[-2]:
        raise usage_error(f"axis -2 of key is {key.shape[-2]}, and {value.shape[-2]} in value",
                          "each key has a value", "E0202")


def check_groups(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> None:
    heads = query.shape[-3] if query.dim() > 2 else 1
    for name, tensor in (("key", key), ("value", value)):
        groups = tensor.shape[-3] if tensor.dim() > 2 else 1
        if groups == 0 or heads % groups:
            raise usage_error(f"axis -3 of query is {heads}, and {groups} in {name}",
                              "the heads of query must be a multiple of those of key and value", "E0202")


def _broadcast(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    try:
        return tuple(torch.broadcast_shapes(*shapes))  # type: ignore[no-untyped-call]
    except RuntimeError:
        said = ", ".join(str(list(shape)) for shape in shapes)
        raise usage_error(f"the leading axes of query, key and value do not broadcast: {said}",
                          "make them equal, or 1 where they repeat; enable_gqa=True is for groups of heads",
                          "E0202") from None


def _four_axes(tensor: torch.Tensor, leading: tuple[int, ...]) -> torch.Tensor:
    """[B, H, T, D] of a tensor whose leading axes broadcast to these. No copy, unless three or more of them
    cannot be one."""
    if tensor.shape[:-2] != leading:
        tensor = tensor.expand(*leading, *tensor.shape[-2:])
    if tensor.dim() == 4:
        return tensor
    while tensor.dim() < 4:
        tensor = tensor.unsqueeze(0)
    return tensor.flatten(0, -4)


def heads_in_groups(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor
) -> tuple[tuple[int, ...], torch.Tensor, torch.Tensor, torch.Tensor]:
    """The leading axes of the result, and all as [B, H or G, T, D]. Keys of one head serve all without being
    repeated."""
    leads = [tuple(tensor.shape[:-3]) for tensor in (query, key, value)]
    heads = [tensor.shape[-3] if tensor.dim() > 2 else 1 for tensor in (query, key, value)]
    batch = leads[0] if leads[0] == leads[1] == leads[2] else _broadcast(*leads)
    H = heads[0]
    G = heads[1] if heads[1] == heads[2] else math.lcm(heads[1], heads[2])
    for n, (tensor, own) in enumerate(((key, heads[1]), (value, heads[2]))):
        if own != G:
            tensor = tensor if tensor.dim() > 2 else tensor.unsqueeze(0)
            repeated = tensor.repeat_interleave(G // own, dim=-3)
            key, value = (repeated, value) if n == 0 else (key, repeated)
    lead = batch if max(query.dim(), key.dim(), value.dim()) == 2 else (*batch, H)
    groups = lead if lead == () else (*batch, G)
    return lead, _four_axes(query, lead), _four_axes(key, groups), _four_axes(value, groups)


def four_axes_of_mask(mask: torch.Tensor, leading: tuple[int, ...], T: int, S: int) -> torch.Tensor:
    """[B or 1, H or 1, T or 1, S]; axes of 1 stay as they are, so that their gradient is summed by us."""
    full = (*leading, T, S)
    fits = mask.dim() <= len(full) and all(a in (1, b) for a, b in zip(reversed(mask.shape), reversed(full)))
    if not fits:
        raise usage_error(f"attn_mask is {list(mask.shape)}, which does not broadcast to {list(full)}",
                          "its axes are those of the scores [..., heads, T, S], or 1", "E0202")
    if mask.dim() < len(full):
        mask = mask.reshape((1,) * (len(full) - mask.dim()) + tuple(mask.shape))
    if mask.shape[-1] != S:
        mask = mask.expand(*mask.shape[:-1], S)
    while mask.dim() < 4:
        mask = mask.unsqueeze(0)
    batch = mask.shape[:-3]
    if mask.dim() > 4 and batch != leading[:-1] and any(size != 1 for size in batch):
        mask = mask.expand(*leading[:-1], *mask.shape[-3:])
    return readable(mask.flatten(0, -4) if mask.dim() > 4 else mask)


def one_number_of_heads(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Without groups, axis -3 broadcasts as any other: keys of one head serve all, which is a group."""
    H, G, Gv = (tensor.shape[-3] if tensor.dim() > 2 else 1 for tensor in (query, key, value))
    if H == G == Gv:
        return query, key, value
    (heads,) = _broadcast((H,), (G,), (Gv,))
    if H != heads:
        query = query if query.dim() > 2 else query.unsqueeze(0)
        query = query.expand(*query.shape[:-3], heads, *query.shape[-2:])
    return query, key, value

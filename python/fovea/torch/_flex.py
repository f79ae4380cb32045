# SPDX-License-Identifier: Apache-2.0
"""What torch.nn.attention.flex_attention computes, with gradients on a CPU."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch.nn.attention import flex_attention as theirs

from .. import _fovea
from .._errors import usage_error
from .._threads import threads_of
from .._tracing import NamedTables
from . import _shapes
from ._block_mask import MaskOfCall
from ._captures import Captures
from ._once import differentiable_once
from ._sdpa import autocast_type
from ._shapes import (
    COMPUTED,
    ROW_TYPES,
    WIDE,
    asks_for_lse,
    check_groups,
    check_tensor,
    check_types,
    check_widths,
    readable,
)
from ._symbols import Bound, TracedFunction

and_masks = theirs.and_masks
or_masks = theirs.or_masks
noop_mask = theirs.noop_mask


class _AuxRequest(NamedTuple):
    """Which results besides the output flex_attention returns."""

    lse: bool = False
    max_scores: bool = False


class _AuxOutput(NamedTuple):
    """The results that were asked for; None for the others."""

    lse: torch.Tensor | None = None
    max_scores: torch.Tensor | None = None


# PyTorch has them from 2.9 on.
AuxRequest: Any = getattr(theirs, "AuxRequest", _AuxRequest)
AuxOutput: Any = getattr(theirs, "AuxOutput", _AuxOutput)


def create_mask(
    mod_fn: Callable[..., Any], B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = "cpu"
) -> torch.Tensor:
    """The bools [B or 1, H or 1, Q_LEN, KV_LEN] of a mask_mod, or of what a score_mod does not set to
    -infinity: torch's function."""
    return theirs.create_mask(mod_fn, B, H, Q_LEN, KV_LEN, device)


_NOTHING = (0,) * 8


def _row(tensor: torch.Tensor | None) -> tuple[int, ...]:
    """A tensor [B, H, L, D] as the extension takes it: address, sizes, and strides of all axes but the last."""
    if tensor is None:
        return _NOTHING
    return (tensor.data_ptr(), *tensor.shape, *tensor.stride()[:3])


class _Call:
    """A call but for its tensors: what is not differentiated."""

    def __init__(self, scale: float, score: TracedFunction | None, mask: MaskOfCall) -> None:
        self.scale = scale
        self.score = score
        self.mask = mask
        self.threads = threads_of(None, torch.get_num_threads())
        of_score = [] if score is None else score.tables
        self.captures = Captures([*of_score, *([] if mask.bound is None else mask.bound.tables)])

    def options(self, query: torch.Tensor) -> tuple[int, float, int]:
        return (ROW_TYPES[query.dtype], self.scale, self.threads)

    def bound(self, query: torch.Tensor, learned: tuple[torch.Tensor, ...]) -> Bound | None:
        """The score function on the memory of the learned tensors, which are given in its order."""
        if self.score is None:
            return None
        own = self.score.learned()
        return self.score.bound(WIDE[query.dtype], {id(one): given for one, given in zip(own, learned)})


def _native(bound: Bound | None) -> Any:
    return None if bound is None else bound.native


class _Flex(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, call: _Call, query: Any, key: Any, value: Any, *learned: torch.Tensor) -> Any:
        B, H, T, _ = query.shape
        o = query.new_empty((B, T, H, value.shape[-1])).transpose(1, 2)
        lse = query.new_empty((2, B, H, T, 1), dtype=WIDE[query.dtype])
        bound = call.bound(query, learned)
        tensors = [_row(x) for x in (query, key, value, o, lse[0], lse[1])]
        with NamedTables(bound, call.mask.bound):
            _fovea.flex_forward(call.options(query), tensors, _native(bound), call.mask.native, call.mask.blocks)
        ctx.save_for_backward(query, key, value, o, lse, *learned)
        ctx.call = call
        ctx.set_materialize_grads(False)
        return o, lse[0, ..., 0].clone()

    @staticmethod
    @differentiable_once
    def backward(ctx: Any, do: torch.Tensor | None, dlse: torch.Tensor | None) -> Any:
        query, key, value, o, lse, *learned = ctx.saved_tensors
        call: _Call = ctx.call
        call.captures.check()
        if do is None:
            do = torch.zeros_like(o)
        bound = call.bound(query, tuple(learned))
        room = [] if bound is None else bound.room()
        do = readable(do)
        d = [x.new_empty((x.shape[0], x.shape[2], x.shape[1], x.shape[3])).transpose(1, 2)
             for x in (query, key, value)]
        dlse = None if dlse is None else dlse.unsqueeze(-1)
        tensors = [_row(x) for x in (query, key, value, o, lse[0], lse[1], do, dlse, *d)]
        addresses = [0 if x is None else x.data_ptr() for x in room]
        with NamedTables(bound, call.mask.bound):
            _fovea.flex_backward(call.options(query), tensors, _native(bound), call.mask.native, call.mask.blocks,
                                 addresses)
        return (None, *d, *([] if call.score is None else call.score.summed(room)))


def _check_tensors(*operands: object) -> None:
    for name, given in zip(("query", "key", "value"), operands):
        check_tensor(name, given)


def _is_ours(*tensors: torch.Tensor) -> bool:
    return all(x.device.type == "cpu" and x.layout == torch.strided and not x.is_nested for x in tensors)


def _check(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, enable_gqa: bool) -> None:
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        if tensor.dim() != 4:
            raise usage_error(f"{name}: {tensor.dim()} axes; expected 4", "[batch, heads, length, width]", "E0202")
    check_types(query, key, value, None)
    check_widths(query, key, value)
    if key.shape[1] != value.shape[1] or key.shape[0] != value.shape[0]:
        raise usage_error(f"key is {list(key.shape)} and value {list(value.shape)}",
                          "both have the same batches and heads", "E0202")
    if enable_gqa:
        check_groups(query, key, value)
    elif query.shape[1] != key.shape[1]:
        raise usage_error(f"axis 1 of query is {query.shape[1]}, and {key.shape[1]} in key",
                          "enable_gqa=True is for groups of heads", "E0202")
    if key.shape[0] not in (1, query.shape[0]):
        raise usage_error(f"axis 0 of query is {query.shape[0]}, and {key.shape[0]} in key",
                          "give keys for each batch, or one for all", "E0202")


def _prepared(
    tensors: tuple[torch.Tensor, torch.Tensor, torch.Tensor], score_mod: Any, block_mask: Any, scale: float | None,
    enable_gqa: bool,
) -> tuple[_Call, list[torch.Tensor]]:
    """The call, and its operands in the type that is computed."""
    query, key, value = tensors
    _shapes.refuse_tracing("flex_attention")
    _check(query, key, value, enable_gqa)
    if scale is not None:
        _shapes.check_number("scale", scale)
    computed = COMPUTED[query.dtype]
    B, H, T, width = query.shape
    score = None if score_mod is None else TracedFunction("score_mod", score_mod)
    mask = MaskOfCall(block_mask, WIDE[computed], (B, H, T, key.shape[-2]))
    factor = (1 / math.sqrt(width) if width else 1.0) if scale is None else float(scale)
    operands = [x if x.shape[0] == B else x.expand(B, *x.shape[1:]) for x in (query, key, value)]
    return _Call(factor, score, mask), [readable(x if x.dtype == computed else x.to(computed)) for x in operands]


def flex_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    score_mod: Callable[..., Any] | None = None,
    block_mask: theirs.BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: Any = None,
    *,
    return_aux: Any = None,
) -> Any:
    """What torch.nn.attention.flex_attention.flex_attention computes, fused, with gradients of query, key,
    value and of what `score_mod` captures.

    query [B, H, T, E], key [B, G, S, E], value [B, G, S, Ev]; with enable_gqa, H is a multiple of G.
    score_mod(score, b, h, q_idx, kv_idx) returns the new score; block_mask is made by create_block_mask, here
    or in PyTorch, whose lists of blocks are honoured. kernel_options are for GPUs, and mean nothing here.
    With bfloat16, scores and sums are float32, as in scaled_dot_product_attention; float16 is computed in
    float32. Returns o [B, H, T, Ev], with return_lse (o, lse [B, H, T]), with return_aux=AuxRequest(lse=True)
    (o, AuxOutput). A query that keeps no key has o = 0, lse = -infinity. Source: Dong et al. 2024. Raises
    UsageError, a ValueError: for what cannot be traced with its file and line.
    """
    _check_tensors(query, key, value)
    if not _is_ours(query, key, value):
        extra = {} if return_aux is None else {"return_aux": return_aux}
        return theirs.flex_attention(query, key, value, score_mod, block_mask, scale, enable_gqa, return_lse,
                                     kernel_options, **extra)
    if return_lse and return_aux is not None:
        raise usage_error("return_lse and return_aux exclude each other", "return_aux=AuxRequest(lse=True)")
    with_lse = asks_for_lse(return_aux)
    if return_aux is not None and getattr(return_aux, "max_scores", False):
        raise usage_error("return_aux: max_scores is not computed on a CPU", "ask for lse", "E0203")
    call, operands = _prepared((query, key, value), score_mod, block_mask, scale, enable_gqa)
    learned = [] if call.score is None else call.score.learned()
    o, lse = _Flex.apply(call, *operands, *learned)  # type: ignore[no-untyped-call]
    returned = autocast_type(query.dtype)
    o = o if o.dtype == returned else o.to(returned)
    if return_aux is not None:
        return o, AuxOutput(lse=lse if with_lse else None)
    return (o, lse) if return_lse else o


# A compiled function calls it as it is, between two graphs.
flex_attention._torchdynamo_disable = True  # type: ignore[attr-defined]


def flex_plan(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    score_mod: Callable[..., Any] | None = None,
    block_mask: theirs.BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: Any = None,
    *,
    return_aux: Any = None,
) -> dict[str, Any]:
    """What flex_attention would do with the same arguments, which computes nothing: `score_mod` and `mask` say
    whether they are fused, `tiles`, `tiles_kept` and `tiles_masked` how many of 64 queries by 128 keys there
    are, are computed, and are looked at score by score, and `picture` shows those of the first head: '.' is
    never computed, '#' whole, '/' in part. Raises what flex_attention raises."""
    _check_tensors(query, key, value)
    call, operands = _prepared((query, key, value), score_mod, block_mask, scale, enable_gqa)
    bound = call.bound(operands[0], () if call.score is None else tuple(call.score.learned()))
    tensors = [_row(x) for x in operands]
    with NamedTables(bound, call.mask.bound):
        plan: dict[str, Any] = _fovea.flex_plan(call.options(operands[0]), tensors, _native(bound), call.mask.native,
                                                call.mask.blocks)
    return plan

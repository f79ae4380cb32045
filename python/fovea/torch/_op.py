# SPDX-License-Identifier: Apache-2.0
"""Scaled dot-product attention on tensors [B, H, T, D] of one type, float32, float64 or bfloat16: the call of
the extension, and its gradient."""

from __future__ import annotations

from typing import Any

import torch

from .. import _fovea
from .._errors import usage_error
from .._threads import threads_of
from ._once import differentiable_once
from ._shapes import ROW_TYPES, WIDE, readable

# The scale, whether causal, and the probability of dropout.
Options = tuple[float, bool, float]
Layout = tuple[tuple[int, ...], tuple[int, ...]]
# q [B, H, T, D], k [B, G, S, D], v [B, G, S, Dv], and a mask [B or 1, H or 1, T or 1, S] or None.
Operands = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor | None]


def _rows(B: int, H: int, L: int, W: int) -> Layout:
    """The sizes and strides of [B, H, L, W] that lies as [B, L, H, W]."""
    return (B, H, L, W), (L * H * W, W, H * W, 1)


def _layout_of_o(query: torch.Tensor, value: torch.Tensor) -> Layout:
    B, H, T, _ = query.shape
    return _rows(B, H, T, value.shape[3])


def _layout_of_gradient(tensor: torch.Tensor) -> Layout:
    """That of the tensor, if heads lie one after another in it (what autograd would have to copy otherwise);
    else as [B, T, H, D]."""
    B, H, L, W = tensor.shape
    return ((B, H, L, W), (H * L * W, L * W, W, 1)) if tensor.is_contiguous() else _rows(B, H, L, W)


def _layout(tensor: torch.Tensor) -> Layout:
    return tuple(tensor.shape), tensor.stride()


def _saved_room(query: torch.Tensor) -> torch.Tensor:
    """For what a backward needs beside o: lse and its rounding error."""
    return query.new_empty((2, *query.shape[:3]), dtype=WIDE[query.dtype])


def _check_types(query: torch.Tensor, qkv: list[torch.Tensor], mask: torch.Tensor | None) -> None:
    """For whoever calls the operator of torch.library itself."""
    if query.dtype not in ROW_TYPES or any(x.dtype != query.dtype for x in qkv):
        raise usage_error(f"fovea::sdpa: query, key and value hold {', '.join(str(x.dtype) for x in qkv)}",
                          "give all in one type: float32, float64 or bfloat16")
    if mask is not None and mask.dtype not in (torch.bool, WIDE[query.dtype]):
        raise usage_error(f"fovea::sdpa: the mask holds {mask.dtype}", f"give bools or {WIDE[query.dtype]}")


class Plan:
    """What all calls with operands of some types, sizes and strides share."""

    __slots__ = ("backward", "dropout", "forward")

    def __init__(self, operands: Operands, options: Options) -> None:
        *qkv, mask = operands
        query, _, value = qkv
        _check_types(query, qkv, mask)
        self.dropout = options[2] > 0
        learned = mask is not None and mask.dtype != torch.bool
        saved = _saved_room(query)
        results = [_layout_of_o(query, value), _layout(saved), *map(_layout_of_gradient, qkv)]
        if mask is not None and learned:
            results.append(_layout(mask.new_empty(mask.shape)))
        type_of_saved = None if saved.dtype == query.dtype else saved.dtype
        call: Any = _fovea.SdpaPlan((ROW_TYPES[query.dtype], *options), mask is not None and not learned,
                                    tuple(map(_layout, qkv)), None if mask is None else _layout(mask),
                                    tuple(results), type_of_saved)
        self.forward: Any = call.forward
        self.backward: Any = call.backward


MOST_PLANS = 4096
_plans: dict[Any, Plan] = {}


def key_of(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor | None) -> Any:
    """What of the operands decides their plan."""
    of_mask = None if mask is None else (mask.dtype, mask.shape, mask.stride())
    return (query.dtype, key.dtype, value.dtype, query.shape, key.shape, value.shape, query.stride(), key.stride(),
            value.stride(), of_mask)


def plan_of(operands: Operands, options: Options) -> Plan:
    key = (key_of(*operands), options)
    plan = _plans.get(key)
    if plan is None:
        if len(_plans) >= MOST_PLANS:
            _plans.clear()
        plan = _plans[key] = Plan(operands, options)
    return plan


def _threads() -> int:
    return threads_of(None, torch.get_num_threads())


class _Sdpa(torch.autograd.Function):
    """The eager way, which costs less than an operator of torch.library."""

    @staticmethod
    def forward(ctx: Any, query: Any, key: Any, value: Any, mask: Any, call: tuple[Plan, int]) -> torch.Tensor:
        plan, seed = call
        o: torch.Tensor
        o, saved = plan.forward((query, key, value, mask), seed, _threads())
        ctx.save_for_backward(query, key, value, mask, o, saved)
        ctx.call = call
        return o

    @staticmethod
    def backward(ctx: Any, do: torch.Tensor) -> Any:
        if torch.is_grad_enabled():
            return _differentiated_once(ctx, do)
        plan, seed = ctx.call
        return *plan.backward(ctx.saved_tensors, do, ctx.needs_input_grad, seed, _threads()), None


@differentiable_once
def _differentiated_once(ctx: Any, do: torch.Tensor) -> Any:
    return _Sdpa.backward(ctx, do)


# What Function.apply calls when functorch transforms nothing. If it does, its tensors have no address, which is
# an error, too.
_apply_sdpa: Any = super(torch.autograd.Function, _Sdpa).apply


# What torch.compile puts into its graph.
@torch.library.custom_op("fovea::sdpa", mutates_args=())
def _sdpa_op(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    seed: torch.Tensor | None,
    numbers: list[float],
    causal: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    """o, and what is saved for the backward. `numbers` are the scale and the probability of dropout."""
    operands = (query, key, value, mask)
    plan = plan_of(operands, (numbers[0], causal, numbers[1]))
    o, saved = plan.forward(operands, _number(seed), _threads())
    return o, saved


@torch.library.custom_op("fovea::sdpa_backward", mutates_args=())
def _sdpa_backward_op(
    tensors: list[torch.Tensor],
    mask: torch.Tensor | None,
    seed: torch.Tensor | None,
    numbers: list[float],
    causal: bool,
    learned: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """`tensors` are q, k, v, o, what was saved, do. The last result is empty unless the mask is learned."""
    query, key, value, o, saved, do = tensors
    plan = plan_of((query, key, value, mask), (numbers[0], causal, numbers[1]))
    inputs = (query, key, value, mask, o, saved)
    dq, dk, dv, dmask = plan.backward(inputs, do, (True, True, True, learned), _number(seed), _threads())
    return dq, dk, dv, query.new_empty(0) if dmask is None else dmask


def _number(seed: torch.Tensor | None) -> int:
    return 0 if seed is None else int(seed.item())


@_sdpa_op.register_fake
def _(query: Any, key: Any, value: Any, *options: Any) -> tuple[torch.Tensor, ...]:
    return query.new_empty_strided(*_layout_of_o(query, value)), _saved_room(query)


@_sdpa_backward_op.register_fake
def _(tensors: Any, mask: Any, seed: Any, numbers: Any, causal: Any, learned: bool) -> tuple[torch.Tensor, ...]:
    dmask = mask.new_empty(mask.shape) if learned else tensors[0].new_empty(0)
    return *(x.new_empty_strided(*_layout_of_gradient(x)) for x in tensors[:3]), dmask


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
    query, key, value, mask, seed, ctx.numbers, ctx.causal = inputs
    ctx.save_for_backward(query, key, value, mask, seed, *output)
    ctx.learned = mask is not None and mask.dtype != torch.bool and ctx.needs_input_grad[3]


def _pull(ctx: Any, do: torch.Tensor, of_saved: Any) -> tuple[Any, ...]:
    query, key, value, mask, seed, *results = ctx.saved_tensors
    tensors = [query, key, value, *results, do]
    dq, dk, dv, dmask = _sdpa_backward_op(tensors, mask, seed, ctx.numbers, ctx.causal, ctx.learned)
    return dq, dk, dv, dmask if ctx.learned else None, None, None, None


_sdpa_op.register_autograd(_pull, setup_context=_save)


def _drawn() -> torch.Tensor:
    """The seed of dropout, from torch's generator, so that what repeats its state repeats our dropout."""
    return torch.randint(0, 2**63 - 1, ())


def _has_duals() -> bool:
    """Whether tensors may carry tangents: of these, autograd knows that we have none."""
    return getattr(torch.autograd.forward_ad, "_current_level", 0) >= 0


def run(plan: Plan, *operands: Any) -> torch.Tensor:
    """o [B, H, T, Dv] of operands that have this plan."""
    seed = _number(_drawn()) if plan.dropout else 0
    if not torch.is_grad_enabled() and not _has_duals():
        result: torch.Tensor = plan.forward(operands, seed, _threads())[0]
        return result
    o: torch.Tensor = _apply_sdpa(*operands, (plan, seed))
    return o


def sdpa(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None, options: Options
) -> torch.Tensor:
    """o [B, H, T, Dv] of operands as `plan_of` takes them."""
    if torch.compiler.is_compiling():
        scale, causal, dropout = options
        o: torch.Tensor = _sdpa_op(q, k, v, mask, _drawn() if dropout > 0 else None, [scale, dropout], causal)[0]
        return o
    return run(plan_of((q, k, v, mask), options), q, k, v, mask)

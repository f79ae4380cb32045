# SPDX-License-Identifier: Apache-2.0
"""Backwards whose gradients have no gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


class _Refusing(torch.autograd.Function):
    """The first `count` of the tensors; in the graph they depend on all of them."""

    @staticmethod
    def forward(ctx: Any, count: int, *tensors: torch.Tensor) -> Any:
        return tuple(x.view_as(x) for x in tensors[:count])

    @staticmethod
    def backward(ctx: Any, *_: Any) -> Any:
        raise RuntimeError("fovea: attention has no second derivatives here; where they are needed, write its "
                           "formula in torch")


def differentiable_once(backward: Callable[..., tuple[Any, ...]]) -> Callable[..., Any]:
    """The backward of a Function; to differentiate its results is an error. (torch's once_differentiable lets it
    pass in silence if the gradient of the output needs none, though the inputs do, or if inputs are named.)"""

    def once(ctx: Any, *given: Any) -> Any:
        with torch.no_grad():
            results = backward(ctx, *given)
        if not torch.is_grad_enabled():
            return results
        found = [x for x in results if x is not None]
        reasons = [x for x in (*ctx.saved_tensors, *given) if x is not None]
        marked = iter(_Refusing.apply(len(found), *found, *reasons))  # type: ignore[no-untyped-call]
        return tuple(None if x is None else next(marked) for x in results)

    return once

# SPDX-License-Identifier: Apache-2.0
"""The attention function that models of transformers call."""

from __future__ import annotations

from typing import Any

import torch
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from ..torch import attend, scaled_dot_product_attention
from ..torch._sdpa import autocast_type
from ..torch._shapes import COMPUTED, WIDE, readable
from ._mask import Mask

try:
    from transformers.utils.output_capturing import _active_collector
except ImportError:  # a release that passes the keyword on
    _active_collector = None


def attention_forward(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    is_causal: bool | None = None,
    softcap: float | None = None,
    s_aux: torch.Tensor | None = None,
    sliding_window: int | None = None,
    position_bias: torch.Tensor | None = None,
    **others: Any,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """The output [B, T, H, Dv] of query [B, H, T, D], key [B, G, S, D] and value [B, G, S, Dv], and the weights
    [B, H, T, S] if `output_attentions` asks for them."""
    if not query.is_cpu:
        return sdpa_attention_forward(module, query, key, value, attention_mask, dropout, scaling, is_causal,  # type: ignore[no-any-return]
                                      position_bias, softcap=softcap, s_aux=s_aux, **others)
    keys = key.shape[2]
    causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
    parts, seen = _mask_parts(attention_mask, query.shape[2], keys, bool(causal), sliding_window)
    if seen < keys:
        key, value = key[:, :, :seen], value[:, :, :seen]
    biases = [bias for bias in (parts.pop("bias", None), position_bias) if bias is not None]
    if biases:
        parts["bias"] = sum(bias[..., :seen] for bias in biases)
    with_weights = _wants_weights(others)
    if s_aux is None and not softcap and not with_weights and set(parts) <= {"causal", "keep", "bias"}:
        o = _plain(query, key, value, parts, dropout, scaling)
        if o is not None:
            return o, None
    parts.update(softcap=softcap, sink=s_aux, scale=scaling)
    if dropout:
        parts.update(dropout=dropout, seed=int(torch.randint(0, 2**63 - 1, ())))
    return _with_parts(query, key, value, parts, keys if with_weights else None)


def _wants_weights(options: dict[str, Any]) -> bool:
    """Whether `output_attentions` was given to the model. Some (GPT-2, OPT) do not pass it on: there, what
    transformers is about to collect says so."""
    if options.get("output_attentions"):
        return True
    collected = None if _active_collector is None else _active_collector.get()
    return any(name.endswith("attentions") for name in collected or ())


def _mask_parts(
    mask: torch.Tensor | None, queries: int, keys: int, causal: bool, sliding_window: int | None
) -> tuple[dict[str, Any], int]:
    """The mask as keywords of `attend`, and the number of keys that they are for."""
    if isinstance(mask, Mask):
        if tuple(mask.shape[2:]) == (queries, keys):
            return dict(mask.parts), mask.keys
        mask = mask.dense()
    if mask is not None:
        mask = mask[..., :keys]
        return ({"keep": mask} if mask.dtype == torch.bool else {"bias": mask}), keys
    if not causal or queries == 1:
        return {}, keys
    # As in the attention `sdpa`: of a cache that has room for more, only what is filled.
    parts: dict[str, Any] = {"causal": "top-left"}
    if sliding_window is not None:
        parts["window"] = (sliding_window - 1, 0)
    return parts, min(queries, keys)


def _plain(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, parts: dict[str, Any], dropout: float,
    scaling: float | None,
) -> torch.Tensor | None:
    """By the call that costs least, if it can say all of this."""
    causal, mask = "causal" in parts, parts.get("keep", parts.get("bias"))
    if len(parts) > 1 or (causal and parts["causal"] != "top-left"):
        return None
    if mask is not None and mask.dtype not in (torch.bool, torch.float32):
        mask = mask.to(query.dtype)
    o = scaled_dot_product_attention(query, key, value, mask, dropout, causal, scale=scaling, enable_gqa=True)
    return o.transpose(1, 2).contiguous()


def _with_parts(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, parts: dict[str, Any], keys_of_weights: int | None
) -> tuple[torch.Tensor, torch.Tensor | None]:
    dtype = COMPUTED[query.dtype]
    returned = autocast_type(query.dtype)
    for name in ("bias", "sink"):
        if parts.get(name) is not None:
            parts[name] = readable(parts[name].to(WIDE[dtype]))
    q, k, v = (readable(x.to(dtype).transpose(1, 2)) for x in (query, key, value))
    observe = None if keys_of_weights is None else "weights"
    attended = attend(q, k, v, observe=observe, **parts)
    weights = None
    if keys_of_weights is not None:
        weights = torch.nn.functional.pad(attended.weights, (0, keys_of_weights - k.shape[1])).to(returned)
    return attended.o.to(returned), weights

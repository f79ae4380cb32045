# SPDX-License-Identifier: Apache-2.0
"""What torch.nn.attention.varlen.varlen_attn computes, which torch has for no CPU."""

from __future__ import annotations

import operator
from typing import Any

import torch

from .._errors import usage_error
from . import _shapes
from ._attend import attend
from ._sdpa import autocast_type
from ._shapes import readable


def varlen_attn(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    cu_seq_q: torch.Tensor,
    cu_seq_k: torch.Tensor | None,
    max_q: int,
    max_k: int,
    *,
    return_aux: Any = None,
    scale: float | None = None,
    window_size: tuple[int, int] = (-1, -1),
    enable_gqa: bool = False,
    seqused_k: torch.Tensor | None = None,
    block_table: torch.Tensor | None = None,
    num_splits: int | None = None,
) -> Any:
    """What torch.nn.attention.varlen.varlen_attn computes, with gradients.

    Sequences lie one after another: query [T, H, D], key [S, G, D], value [S, G, Dv]; sequence n is the rows
    cu_seq_q[n] .. cu_seq_q[n+1], and of keys cu_seq_k[n] .. cu_seq_k[n+1]. The last query of a sequence is at
    its last key. window_size is how many keys before and behind it a query sees, -1 for all: (-1, 0) is
    causal. Of seqused_k [N], the first so many keys of each sequence are read. With block_table
    [N, pages of a sequence], key and value are pages [pages, page size, G, D], and seqused_k is needed. Both
    are for inference, as there. num_splits changes no bit here. Returns [T, H, Dv], and if return_aux.lse the
    log-sum-exp [H, T], which has a gradient, too. Tensors of other devices go to torch's function. Raises
    UsageError, a ValueError.
    """
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        _shapes.check_tensor(name, tensor)
    if scale is not None:
        _shapes.check_number("scale", scale)
    if not all(tensor.is_cpu for tensor in (query, key, value)):
        from torch.nn.attention.varlen import varlen_attn as theirs

        return theirs(query, key, value, cu_seq_q, cu_seq_k, max_q, max_k, return_aux=return_aux, scale=scale,
                      window_size=window_size, enable_gqa=enable_gqa, seqused_k=seqused_k, block_table=block_table,
                      num_splits=num_splits)
    with_lse = _shapes.asks_for_lse(return_aux)
    left, right = _window(window_size)
    _check_whole("cu_seq_q", cu_seq_q, 1)
    for name, given, axes in (("cu_seq_k", cu_seq_k, 1), ("seqused_k", seqused_k, 1), ("block_table", block_table, 2)):
        if given is not None:
            _check_whole(name, given, axes)
    if block_table is not None:
        key, value, cu_seq_k = _pages(key, value, seqused_k, block_table)
        seqused_k = None
    elif cu_seq_k is None:
        raise usage_error("varlen_attn: cu_seq_k is missing", "without it, give block_table and seqused_k")
    _check(query, key, value, enable_gqa)
    _check_longest("q", cu_seq_q, max_q)
    if block_table is None:
        _check_longest("k", cu_seq_k, max_k)
    _forbid_gradient("seqused_k", seqused_k, query, key, value)
    if seqused_k is not None:
        cu_seq_q, cu_seq_k = _used(cu_seq_q, cu_seq_k, seqused_k)
    computed = _shapes.COMPUTED[query.dtype]
    q, k, v = (readable(x.to(computed)).unsqueeze(0) for x in (query, key, value))
    attended = attend(q, k, v, query_offsets=cu_seq_q, key_offsets=cu_seq_k, scale=scale,
                      causal=(left, right) == (-1, 0), window=None if left < 0 and right <= 0 else (left, right))
    o = attended.o.squeeze(0).to(autocast_type(query.dtype))
    return (o, attended.lse.squeeze(0)) if with_lse else o


def _window(given: Any) -> tuple[int, int]:
    """How many keys before and behind a query it sees; -1 for all."""
    hint = "give (left, right), each at least 0, or -1 for all: (-1, 0) is causal"
    try:
        left, right = (operator.index(size) for size in given)
    except (TypeError, ValueError):
        raise usage_error(f"varlen_attn: window_size: expected two whole numbers; got {given!r}", hint,
                          "E0203") from None
    if left < -1 or right < -1:
        raise usage_error(f"varlen_attn: window_size: {(left, right)} has a number below -1", hint, "E0203")
    return left, right


def _check_whole(name: str, given: Any, axes: int) -> None:
    """Refuses all but tensors of int32 or int64 in this computer's memory, with so many axes."""
    name = f"varlen_attn: {name}"
    _shapes.check_tensor(name, given)
    if given.dtype not in (torch.int32, torch.int64) or not given.is_cpu:
        raise usage_error(f"{name} holds {given.dtype}, on {given.device}", "give int32 or int64, on the CPU")
    if given.dim() != axes:
        raise usage_error(f"{name} has {given.dim()} axes; expected {axes}",
                          "[sequences, pages of a sequence]" if axes == 2 else "a number for each sequence", "E0202")


def _check(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, enable_gqa: bool) -> None:
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        if tensor.dim() != 3:
            raise usage_error(f"varlen_attn: {name} has {tensor.dim()} axes; expected 3", "[length, heads, width]",
                              "E0202")
    _shapes.check_types(query, key, value, None)
    if not enable_gqa and query.shape[1] != key.shape[1]:
        raise usage_error(f"varlen_attn: axis 1 of query is {query.shape[1]}, and {key.shape[1]} in key",
                          "enable_gqa=True is for groups of heads", "E0202")


def _check_longest(letter: str, offsets: torch.Tensor, most: int) -> None:
    _shapes.check_number(f"varlen_attn: max_{letter}", most)
    longest = int(offsets.diff().max()) if len(offsets) > 1 else 0
    if longest > most:
        raise usage_error(f"varlen_attn: max_{letter} is {most}, and a sequence of cu_seq_{letter} has {longest} rows",
                          f"give the length of the longest sequence as max_{letter}", "E0202")


def _forbid_gradient(name: str, given: torch.Tensor | None, *tensors: torch.Tensor) -> None:
    if given is not None and torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        raise usage_error(f"varlen_attn: {name} is for inference alone", "call it in torch.no_grad()")


def _used(
    cu_seq_q: torch.Tensor, cu_seq_k: torch.Tensor, used: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Offsets in which the keys behind those used are sequences of their own, without queries."""
    lengths = cu_seq_k.diff()
    if used.shape != lengths.shape or bool((used < 0).any()) or bool((used > lengths).any()):
        raise usage_error(f"varlen_attn: seqused_k {list(used.shape)} must be from 0 to the lengths of cu_seq_k",
                          "give a number of keys for each sequence", "E0202")
    keys = torch.stack([cu_seq_k[:-1] + used, cu_seq_k[1:]], 1).flatten()
    queries = cu_seq_q[1:].repeat_interleave(2)
    return torch.cat([cu_seq_q[:1], queries]), torch.cat([cu_seq_k[:1], keys])


def _start_of(numbers: torch.Tensor) -> str:
    return f"{numbers[:8].tolist()}" + (" and more" if len(numbers) > 8 else "")


def _pages(
    key: torch.Tensor, value: torch.Tensor, used: torch.Tensor | None, table: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The keys and values that are used, one sequence after another, and their offsets."""
    if used is None:
        raise usage_error("varlen_attn: block_table without seqused_k", "say how many keys each sequence has")
    _forbid_gradient("block_table", table, key, value)
    for name, pages in (("key", key), ("value", value)):
        if pages.dim() != 4 or pages.shape[:2] != key.shape[:2]:
            raise usage_error(f"varlen_attn: {name} is {list(pages.shape)}; expected pages, as many in key and value",
                              "[pages, page size, heads, width]", "E0202")
    if len(used) != len(table) or bool((used < 0).any()):
        raise usage_error(f"varlen_attn: seqused_k must say for each of the {len(table)} sequences of block_table how"
                          f" many keys it has; it is {_start_of(used)}", "give numbers from 0 upwards", "E0202")
    size, capacity = key.shape[1], table.shape[1] * key.shape[1]
    if bool((used > capacity).any()):
        raise usage_error(f"varlen_attn: seqused_k goes up to {int(used.max())}, and block_table has room for"
                          f" {capacity}", "give each sequence enough pages", "E0202")
    places = table.to(torch.int64).unsqueeze(-1) * size + torch.arange(size)
    pages_used = table[torch.arange(table.shape[1]) * size < used.unsqueeze(-1)]
    wrong = pages_used[(pages_used < 0) | (pages_used >= len(key))]
    if len(wrong):
        raise usage_error(f"varlen_attn: block_table names page {int(wrong[0])}; key has pages 0 to {len(key) - 1}",
                          "pages that seqused_k leaves out may be any", "E0202")
    rows = places.flatten(1)[torch.arange(capacity) < used.unsqueeze(-1)]
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), used.to(torch.int64).cumsum(0)])
    return key.flatten(0, 1)[rows], value.flatten(0, 1)[rows], offsets

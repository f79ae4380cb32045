# SPDX-License-Identifier: Apache-2.0
"""Masks by a function, with what PyTorch's BlockMask says of their blocks."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch.nn.attention import flex_attention as theirs

from .. import _fovea
from .._errors import usage_error
from .._parts import unknown_keyword
from .._threads import threads_of
from .._tracing import NamedTables
from ._symbols import TracedFunction

_NONE, _SOME, _ALL = 0, 1, 2  # TileKind
_SLICED = getattr(theirs, "_sliced_mask_mod_error", None)
_LARGE = getattr(theirs, "_LARGE_SPARSE_BLOCK_SIZE", 1 << 30)
_LISTS = ("kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices", "q_num_blocks", "q_indices",
          "full_q_num_blocks", "full_q_indices")
# What newer versions of torch's create_block_mask take: these say how its lists are stored.
_OF_TORCH = ("separate_full_blocks", "compute_dq_write_order", "dq_kv_order")
_KEYWORDS = ("mask_mod", "B", "H", "Q_LEN", "KV_LEN", "device", "BLOCK_SIZE", "_compile", *_OF_TORCH)


class BlockMask(theirs.BlockMask):
    """A mask by its function alone, of which calls find the empty and the full tiles themselves. The lists
    of blocks that PyTorch's class stores are made when they are asked for."""

    _traced: tuple[int, int] | None = None  # B and H, of one that create_block_mask made

    @classmethod
    def _of(
        cls, mask_mod: Callable[..., Any], heads: tuple[int, int], lengths: tuple[int, int], block: tuple[int, int]
    ) -> BlockMask:
        mask = cls.__new__(cls)
        mask._traced = heads
        mask.seq_lengths = lengths
        mask.BLOCK_SIZE = block
        mask.mask_mod = mask_mod
        return mask

    @property
    def shape(self) -> tuple[int, ...]:
        return (*self._traced, *self.seq_lengths) if self._traced else tuple(super().shape)

    def __getattr__(self, name: str) -> Any:
        if name not in _LISTS or self._traced is None:
            if self._traced is not None and name.startswith("dq_"):  # what newer versions also store
                return None
            raise AttributeError(f"'BlockMask' object has no attribute '{name}'")
        kinds = self._kinds()
        made = theirs.BlockMask.from_kv_blocks(
            *_ordered(kinds == _SOME), *_ordered(kinds == _ALL), BLOCK_SIZE=self.BLOCK_SIZE, mask_mod=self.mask_mod)
        for one in _LISTS:
            self.__dict__[one] = getattr(made, one)
        return self.__dict__[name]

    def _kinds(self) -> torch.Tensor:
        """The kind of each block: [B, H, blocks of queries, blocks of keys]."""
        assert self._traced is not None
        (B, H), (T, S), (q, k) = self._traced, self.seq_lengths, self.BLOCK_SIZE
        kinds = torch.empty(B, H, -(-T // q), -(-S // k), dtype=torch.uint8)
        bound = TracedFunction("mask_mod", self.mask_mod).bound(torch.float64, {})
        with NamedTables(bound):
            _fovea.flex_blocks(bound.native, (B, H, T, S), (q, k), kinds.data_ptr(),
                               threads_of(None, torch.get_num_threads()))
        return kinds


def _ordered(blocks: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """How many blocks of each row there are, and which, first to last."""
    order = torch.argsort(blocks.to(torch.int8), dim=-1, descending=True, stable=True)
    return blocks.sum(-1, dtype=torch.int32), order.to(torch.int32)


def create_block_mask(
    mask_mod: Callable[..., Any],
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = "cpu",
    BLOCK_SIZE: int | tuple[int, int] = 128,
    _compile: bool = False,
    **options: Any,
) -> theirs.BlockMask:
    """The mask that `mask_mod(b, h, q_idx, kv_idx)` keeps, of heads [B or 1, H or 1], Q_LEN queries and KV_LEN
    keys. Nothing of that size is made: the function is traced, once here, so that an error shows, and once a
    call, so that what it captures is never stale. `options` are those of torch's that say how it stores its
    lists, and mean nothing here. Without a device (None) it is the CPU; for other devices it is torch's. Raises
    UsageError with the file and line of what cannot be traced."""
    device = "cpu" if device is None else device
    if torch.device(device).type != "cpu":
        return theirs.create_block_mask(mask_mod, B, H, Q_LEN, KV_LEN, device, BLOCK_SIZE, _compile, **options)
    for name in options:
        if name not in _OF_TORCH:
            raise unknown_keyword("create_block_mask", name, _KEYWORDS)
    heads = _whole("B", 1 if B is None else B), _whole("H", 1 if H is None else H)
    lengths = _whole("Q_LEN", Q_LEN), _whole("KV_LEN", KV_LEN)
    TracedFunction("mask_mod", mask_mod)
    return BlockMask._of(mask_mod, heads, lengths, _block_of(BLOCK_SIZE))


def _whole(name: str, given: Any) -> int:
    """A size, as a whole number."""
    hint = "give None for all of them, or how many there are" if name in "BH" else "give a length of at least 1"
    try:
        size = operator.index(given)
    except TypeError:
        raise usage_error(f"{name}: expected a whole number; got {given!r}", hint, "E0203") from None
    if size < 1:
        raise usage_error(f"{name}: {size} is not positive", hint, "E0203")
    return size


def _block_of(given: Any) -> tuple[int, int]:
    """Queries and keys of a block."""
    sizes = tuple(given) if isinstance(given, (tuple, list)) else (given, given)
    if len(sizes) != 2:
        raise usage_error(f"BLOCK_SIZE: expected one number or two; got {len(sizes)}",
                          "give (queries, keys) of a block", "E0203")
    return _whole("BLOCK_SIZE", sizes[0]), _whole("BLOCK_SIZE", sizes[1])


class MaskOfCall:
    """What a call needs of a mask: its function, and the kinds of its blocks if they are listed."""

    def __init__(self, mask: theirs.BlockMask | None, computed: torch.dtype, sizes: tuple[int, int, int, int]) -> None:
        self.bound = None
        self.kinds: torch.Tensor | None = None
        self._block = (1, 1)
        if mask is None:
            return
        if not isinstance(mask, theirs.BlockMask):
            raise usage_error(f"block_mask: expected a BlockMask; got {type(mask).__name__}",
                              "make one with create_block_mask")
        mod = mask.mask_mod
        if mod is _SLICED and _SLICED is not None:
            raise usage_error("block_mask: it is a slice of another, and has no mask_mod",
                              "set its mask_mod, shifted by what was cut off, or create one of these lengths")
        listed = not (isinstance(mask, BlockMask) and mask._traced)
        large = listed and min(mask.BLOCK_SIZE) >= _LARGE
        if not large:
            _check_sizes(mask, sizes)
        if mod is not None and mod is not theirs.noop_mask:
            self.bound = TracedFunction("mask_mod", mod).bound(computed, {})
        if listed and not large:
            self.kinds = _listed_kinds(mask)
            self._block = mask.BLOCK_SIZE

    @property
    def native(self) -> Any:
        return None if self.bound is None else self.bound.native

    @property
    def blocks(self) -> tuple[int, ...] | None:
        return None if self.kinds is None else (self.kinds.data_ptr(), *self.kinds.shape, *self._block)


def _check_sizes(mask: theirs.BlockMask, sizes: tuple[int, int, int, int]) -> None:
    B, H, T, S = sizes
    of_mask = tuple(mask.shape)
    heads = (1, 1, *of_mask)[-4:-2]
    for axis, own, asked, name in ((0, heads[0], B, "batches"), (1, heads[1], H, "heads")):
        if own not in (1, asked):
            raise usage_error(f"block_mask: axis {axis} has {own} {name}; query has {asked}",
                              f"create it for {asked} or 1", "E0202")
    for axis, own, asked, name in ((-2, of_mask[-2], T, "queries"), (-1, of_mask[-1], S, "keys")):
        if own != asked:
            raise usage_error(f"block_mask: axis {axis} has {own} {name}; the call has {asked}",
                              "create one of these lengths", "E0202")


def _listed_kinds(mask: theirs.BlockMask) -> torch.Tensor:
    """The kind of each block [B, H, blocks of queries, blocks of keys], as the lists say."""
    kinds = None
    for number, indices, kind in ((mask.kv_num_blocks, mask.kv_indices, _SOME),
                                  (mask.full_kv_num_blocks, mask.full_kv_indices, _ALL)):
        if number is None or indices is None:
            continue
        columns = -(-mask.seq_lengths[1] // mask.BLOCK_SIZE[1])
        if kinds is None:
            kinds = torch.zeros(*indices.shape[:-1], columns + 1, dtype=torch.uint8)
        listed = torch.arange(indices.shape[-1]) < number.unsqueeze(-1)
        kinds.scatter_(-1, torch.where(listed, indices, columns).long(), kind)
    assert kinds is not None
    kinds = kinds[..., :-1].contiguous()
    return kinds.reshape((1,) * (4 - kinds.dim()) + tuple(kinds.shape))

# SPDX-License-Identifier: Apache-2.0
"""The masks of transformers as parts of a call: transformers says by a function of positions what a query may
see; of those that it makes itself, the parts say the same without a matrix T x S."""

from __future__ import annotations

import dataclasses
import sys
import warnings
from collections.abc import Callable
from types import FrameType
from typing import Any

import torch
from torch.utils._pytree import tree_map_only
from transformers import masking_utils


MaskFunction = Callable[..., Any]


_ADDING = (torch.ops.aten.add.Tensor, torch.ops.aten.add_.Tensor)


def _dense(mask: Mask, added_to: torch.dtype | None) -> torch.Tensor:
    """The matrix of bools, or what is added to numbers of a type, as the attention "eager" has it. Says whose
    numbers these are: an attention that is not ours."""
    if added_to is None:
        return mask.dense()
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not isinstance(frame.f_locals.get("self"), torch.nn.Module):
        frame = frame.f_back
    name = "a model" if frame is None else type(frame.f_locals["self"]).__name__
    warnings.warn(f"{name} adds its mask to scores itself: this part of the model has an attention of its own, and"
                  " does not use that of fovea", stacklevel=2)
    return torch.zeros((), dtype=added_to).where(mask.dense(), torch.finfo(added_to).min)


class Mask(torch.Tensor):
    """What looks like the mask [B, 1, T, S] of bools, and holds the parts that say the same: keywords of
    fovea.torch.attend, for the first `keys` of S keys. The matrix is made only if somebody computes with it."""

    parts: dict[str, Any]
    keys: int
    dense: Callable[[], torch.Tensor]

    @staticmethod
    def of(shape: tuple[int, ...], parts: dict[str, Any], keys: int, dense: Callable[[], torch.Tensor]) -> Mask:
        mask: Mask = torch.Tensor._make_wrapper_subclass(Mask, shape, dtype=torch.bool)
        mask.parts, mask.keys, mask.dense = parts, keys, dense
        return mask

    @staticmethod
    def of_bools(bools: torch.Tensor) -> Mask:
        return Mask.of(tuple(bools.shape), {"keep": bools}, bools.shape[-1] if bools.dim() else 1, lambda: bools)

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if function in (torch.ops.aten.detach.default, torch.ops.aten.alias.default):
            own = args[0]
            return cls.of(tuple(own.shape), own.parts, own.keys, own.dense)
        numbers = [x.dtype for x in args if isinstance(x, torch.Tensor) and x.is_floating_point()]
        added_to = numbers[0] if numbers and function in _ADDING else None
        args, kwargs = tree_map_only(cls, lambda mask: _dense(mask, added_to), (args, kwargs or {}))
        result = function(*args, **kwargs)
        # What is made of a mask is one, too: also that may be added to scores.
        return cls.of_bools(result) if isinstance(result, torch.Tensor) and result.dtype == torch.bool else result

    def __repr__(self) -> str:  # type: ignore[override]
        return f"fovea.transformers mask {list(self.shape)} of {', '.join(self.parts) or 'all keys'}"


@dataclasses.dataclass
class _Pattern:
    """What a mask function keeps."""

    causal: bool = False
    left: int = -1
    right: int = -1
    sequences: torch.Tensor | None = None  # [B, T], of a packed batch
    by_position: bool = False  # in each sequence of a packed batch, from its own begin on


def _captured(function: MaskFunction) -> dict[str, Any]:
    cells = getattr(function, "__closure__", None) or ()
    return {name: cell.cell_contents for name, cell in zip(function.__code__.co_freevars, cells)}


def _read(function: MaskFunction, pattern: _Pattern) -> bool:
    """Adds what the function keeps; False if it is none that we know."""
    if getattr(function, "__module__", None) != masking_utils.__name__ or not hasattr(function, "__code__"):
        return False
    made_by, captured = function.__qualname__.split(".")[0], _captured(function)
    if made_by == "and_masks":
        return all(_read(part, pattern) for part in captured["mask_functions"])
    if made_by == "remap_positions_for_packed_sequence":
        pattern.by_position = True
        return _read(captured["mask_function"], pattern)
    if made_by == "causal_mask_function":
        pattern.causal = True
    elif made_by == "sliding_window_overlay":
        pattern.left = captured["sliding_window"] - 1
    elif made_by == "sliding_window_bidirectional_overlay":
        pattern.left = pattern.right = captured["sliding_window"]
    elif made_by == "packed_sequence_mask_function":
        pattern.sequences = captured["packed_sequence_mask"]
    else:
        return made_by == "bidirectional_mask_function"
    return True


def _padding_parts(padding: torch.Tensor, queries: int, top_left: bool) -> dict[str, Any]:
    """Parts that keep the keys of `padding` [B, S] that are True."""
    if bool(padding.all()):
        return {}
    lengths = padding.sum(1, dtype=torch.int32)
    to_the_right = bool((padding == (torch.arange(padding.shape[1]) < lengths[:, None])).all())
    if to_the_right and top_left:  # a length would move the last key, to which others are aligned
        return {"key_lengths": lengths}
    return {"query_segments": torch.ones((len(padding), queries), dtype=torch.int32),
            "key_segments": padding.to(torch.int32)}


def _parts(pattern: _Pattern, queries: int, keys: int, offset: int, padding: torch.Tensor | None) -> dict[str, Any]:
    """The parts for queries of which the first is at key `offset`, and for the keys that any of them may see."""
    aligned = offset == 0
    parts: dict[str, Any] = {}
    if pattern.causal and (queries > 1 or pattern.left >= 0):
        parts["causal"] = "top-left" if aligned else "bottom-right"
    if 0 <= pattern.left < keys - 1 or 0 <= pattern.right < keys - 1:
        parts["window"] = (pattern.left, pattern.right)
    if pattern.sequences is not None:
        sequences = pattern.sequences.to(torch.int32).contiguous()
        return {**parts, "query_segments": sequences, "key_segments": sequences}
    if padding is not None:
        parts.update(_padding_parts(padding, queries, not parts or parts.get("causal") == "top-left"))
    return parts


def make_mask(
    batch_size: int,
    q_length: int,
    kv_length: int,
    q_offset: Any = 0,
    kv_offset: Any = 0,
    mask_function: MaskFunction = masking_utils.causal_mask_function,
    attention_mask: torch.Tensor | None = None,
    device: torch.device | str = "cpu",
    **options: Any,
) -> Any:
    """The mask [B, 1, T, S], or None, as transformers asks for it: a Mask, of parts where we know the function, else
    of bools. Other devices, and torch.compile, get what `sdpa` gets."""
    given = {"batch_size": batch_size, "q_length": q_length, "kv_length": kv_length, "q_offset": q_offset,
             "kv_offset": kv_offset, "mask_function": mask_function, "attention_mask": attention_mask, "device": device}
    if torch.device(device).type != "cpu" or torch.compiler.is_compiling():
        return masking_utils.sdpa_mask(**given, **options)
    whole = {**options, "allow_is_causal_skip": False, "allow_is_bidirectional_skip": False}
    given.update(q_offset=int(q_offset), kv_offset=int(kv_offset))

    def dense() -> torch.Tensor:
        mask: torch.Tensor = masking_utils.sdpa_mask(**given, **whole)
        return mask

    pattern = _Pattern()
    known = _read(mask_function, pattern)
    offset = int(q_offset) - int(kv_offset)  # the key at which the first query is
    keys = offset + q_length if pattern.causal else kv_length
    windowed = pattern.left >= 0 or pattern.right >= 0
    if (not known or not 0 < keys <= kv_length or offset < 0 or pattern.by_position != (pattern.sequences is not None)
            or (windowed and offset != keys - q_length)):
        return Mask.of_bools(dense())
    padding = masking_utils.prepare_padding_mask(attention_mask, kv_length, int(kv_offset))
    if padding is not None:
        padding = padding[:, int(kv_offset):int(kv_offset) + keys]
    parts = _parts(pattern, q_length, keys, offset, padding)
    if not parts and keys == kv_length and options.get("allow_is_bidirectional_skip"):
        return None  # as from `sdpa`: some models add it to a bias
    return Mask.of((batch_size, 1, q_length, kv_length), parts, keys, dense)

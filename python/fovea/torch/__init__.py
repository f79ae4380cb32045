# SPDX-License-Identifier: Apache-2.0
"""Attention on tensors of PyTorch, with gradients.

`scaled_dot_product_attention` means what torch's means; `with replace_sdpa():` puts it under all code that
calls torch's. `attention` and `attend` are those of the package, with autograd for all that learns.
"""

try:
    import torch as _torch
except ImportError as error:
    raise ImportError("fovea.torch needs PyTorch 2.6 or later, which is not installed") from error

if tuple(int(part) for part in _torch.__version__.split(".")[:2]) < (2, 6):
    raise ImportError(f"fovea.torch needs PyTorch 2.6 or later; this is {_torch.__version__}")

from ._attend import Attended, attend, attention
from ._block_mask import BlockMask, create_block_mask
from ._flex import AuxOutput, AuxRequest, and_masks, create_mask, flex_attention, flex_plan, noop_mask, or_masks
from ._openmp import use_threads_of_torch as _use_threads_of_torch
from ._sdpa import replace_sdpa, scaled_dot_product_attention
from ._varlen import varlen_attn

__all__ = ["Attended", "AuxOutput", "AuxRequest", "BlockMask", "and_masks", "attend", "attention", "create_block_mask",
           "create_mask", "flex_attention", "flex_plan", "noop_mask", "or_masks", "replace_sdpa",
           "scaled_dot_product_attention", "varlen_attn"]

_use_threads_of_torch()

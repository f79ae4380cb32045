# SPDX-License-Identifier: Apache-2.0
"""Attention for the models of transformers.

Importing this registers it under the name "fovea": `AutoModel.from_pretrained(..., attn_implementation="fovea")`.
`accelerate(model)` switches a model that is loaded. Models that have an attention of their own (BLOOM, Falcon)
are an error. It takes what transformers gives its attention: groups,
caches, padding, packed sequences, sliding windows, soft caps, sinks, biases of positions, dropout. No matrix
T x S is made for causal, sliding, padded or packed batches.
"""

try:
    import transformers as _transformers
except ImportError as error:
    raise ImportError("fovea.transformers needs transformers 5 or later, which is not installed") from error

if int(_transformers.__version__.split(".")[0]) < 5:
    raise ImportError(f"fovea.transformers needs transformers 5 or later; this is {_transformers.__version__}")

from transformers import AttentionInterface as _AttentionInterface
from transformers import AttentionMaskInterface as _AttentionMaskInterface

from ._accelerate import NAME as _NAME
from ._accelerate import accelerate
from ._accelerate import refuse_deaf_models as _refuse_deaf_models
from ._attention import attention_forward as _attention_forward
from ._mask import make_mask as _make_mask

# Without a mask function of its own, transformers would give an attention no mask at all.
_AttentionInterface.register(_NAME, _attention_forward)
_AttentionMaskInterface.register(_NAME, _make_mask)
_refuse_deaf_models()

__all__ = ["accelerate"]

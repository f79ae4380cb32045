# SPDX-License-Identifier: Apache-2.0
"""Switching models that are loaded."""

from __future__ import annotations

from typing import TypeVar

import transformers

from .._errors import usage_error

Model = TypeVar("Model", bound=transformers.PreTrainedModel)


def accelerate(model: Model) -> Model:
    """The model itself, whose attention is ours from now on. Raises UsageError, a ValueError, that names the
    classes of models in it that never ask for an attention by name, and then changes nothing."""
    if not isinstance(model, transformers.PreTrainedModel):
        raise usage_error(f"accelerate: expected a model of transformers; got {type(model).__name__}",
                          "give a PreTrainedModel, such as AutoModel.from_pretrained returns")
    models = [part for part in model.modules() if isinstance(part, transformers.PreTrainedModel)]
    deaf = sorted({type(part).__name__ for part in models if not part._can_set_attn_implementation()})
    if deaf:
        raise usage_error(f"accelerate: {', '.join(deaf)} has an attention of its own and never asks for another",
                          "only models that use the AttentionInterface of transformers can be switched")
    model.set_attn_implementation("fovea")
    return model

# SPDX-License-Identifier: Apache-2.0
"""Switching models that are loaded."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any, TypeVar

import transformers

from .._errors import usage_error

NAME = "fovea"  # of our attention, among those of transformers
Model = TypeVar("Model", bound=transformers.PreTrainedModel)


def accelerate(model: Model) -> Model:
    """The model itself, whose attention is ours from now on. Raises UsageError, a ValueError, that names the
    classes of models in it that never ask for an attention by name, and then changes nothing."""
    if not isinstance(model, transformers.PreTrainedModel):
        raise usage_error(f"accelerate: expected a model of transformers; got {type(model).__name__}",
                          "give a PreTrainedModel, such as AutoModel.from_pretrained returns")
    _refuse_deaf("accelerate", (part for part in model.modules() if isinstance(part, transformers.PreTrainedModel)))
    model.set_attn_implementation(NAME)
    return model


def refuse_deaf_models() -> None:
    """From now on, `attn_implementation="fovea"` is an error for models that never ask for an attention by name.
    transformers accepts any name for them: they would compute with their own attention, and some with our
    masks, which they do not understand."""
    check = transformers.PreTrainedModel.get_correct_attn_implementation

    @functools.wraps(check)
    def checked(model: transformers.PreTrainedModel, requested_attention: str | None, *args: Any, **kwargs: Any) -> Any:
        if requested_attention == NAME:
            _refuse_deaf(f'attn_implementation="{NAME}"', [model])
        return check(model, requested_attention, *args, **kwargs)

    transformers.PreTrainedModel.get_correct_attn_implementation = checked


def _refuse_deaf(where: str, models: Iterable[transformers.PreTrainedModel]) -> None:
    deaf = sorted({type(one).__name__ for one in models if not one._can_set_attn_implementation()})
    if deaf:
        raise usage_error(f"{where}: {', '.join(deaf)} has an attention of its own and never asks for another",
                          "only models that use the AttentionInterface of transformers can be switched; use this one"
                          ' as it is, or with attn_implementation="eager"')

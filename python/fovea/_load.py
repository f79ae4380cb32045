# SPDX-License-Identifier: Apache-2.0
"""A model of whatever kind it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import _fovea
from ._encoder import Encoder
from ._language_model import LanguageModel
from ._paths import Path, path_of
from ._tagger import Tagger
from ._translator import Translator

if TYPE_CHECKING:
    from ._classifier import Classifier


def load(model: Path, *, precision: str = "float32") -> LanguageModel | Encoder | Classifier | Tagger | Translator:
    """The model of a folder of fovea, a folder of Hugging Face, or a GGUF file; what it is follows from its content.
    Type checkers know its methods if its class loads it: `fovea.LanguageModel.load(model)`. Raises ModelError."""
    kind = _fovea.kind_of_model(path_of("load", model))
    if kind == "Classifier":  # which needs numpy
        from ._classifier import Classifier

        return Classifier.load(model, precision=precision)
    if kind == "Encoder":
        return Encoder.load(model, precision=precision)
    if kind == "Tagger":
        return Tagger.load(model, precision=precision)
    if kind == "Translator":
        return Translator.load(model, precision=precision)
    return LanguageModel.load(model, precision=precision)

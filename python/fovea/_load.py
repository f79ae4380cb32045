# SPDX-License-Identifier: Apache-2.0
"""A model of whatever kind it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from . import _fovea
from ._encoder import Encoder
from ._errors import usage_error
from ._language_model import LanguageModel
from ._paths import Path, adapters_of, path_of
from ._tagger import Tagger
from ._translator import Translator

if TYPE_CHECKING:
    from ._classifier import Classifier


def load(
    model: Path, *, precision: str = "float32", adapters: Mapping[Path, float] = {}
) -> LanguageModel | Encoder | Classifier | Tagger | Translator:
    """The model of a folder of fovea, a folder of Hugging Face, or a GGUF file; what it is follows from its content.
    `adapters`: folders of adapters of a language model, or of PEFT, each with the factor by which it counts: 1 as it was
    trained. A head that one holds makes a classifier or a tagger of an encoder. Type checkers know the methods of a
    model if its class loads it: `fovea.LanguageModel.load(model)`. Raises ModelError."""
    kind = _fovea.kind_of_model(path_of("load", model), adapters_of(adapters))
    if kind == "Classifier":  # which needs numpy
        from ._classifier import Classifier

        return Classifier.load(model, precision=precision, adapters=adapters)
    if kind == "Encoder":
        return Encoder.load(model, precision=precision, adapters=adapters)
    if kind == "Tagger":
        return Tagger.load(model, precision=precision, adapters=adapters)
    if kind == "Translator":
        if adapters:
            raise usage_error("load: no adapters of translators are read", "leave adapters out")
        return Translator.load(model, precision=precision)
    return LanguageModel.load(model, precision=precision, adapters=adapters)

# SPDX-License-Identifier: Apache-2.0
"""Attention and Transformers on the CPU.

`attention` and `attend` are the operator on arrays of numpy, forward and backward; fovea.torch has it on
tensors of PyTorch. `LanguageModel` trains and uses language models, `Classifier` classifiers
of texts, `Tagger` taggers and segmenters, `Translator` translators; `Encoder` makes vectors of texts; `load` reads a
model of whatever kind it is. help() of a function lists its keywords:
help(fovea.attend), help(fovea.LanguageModel.train).
"""

from typing import TYPE_CHECKING, Any

from ._attention import Attended, attend, attention
from ._captured import Captured, captured
from ._encoder import Encoder
from ._errors import (
    DataError,
    Diverged,
    Error,
    InternalError,
    IoError,
    ModelError,
    OutOfMemory,
    UsageError,
)
from ._fovea import VERSION as __version__
from ._language_model import Chat, LanguageModel
from ._load import load
from ._tagger import Tagger
from ._threads import set_threads
from ._translator import Translator

if TYPE_CHECKING:
    from ._classifier import Classifier

__all__ = [
    "Attended",
    "Captured",
    "Chat",
    "Classifier",
    "DataError",
    "Diverged",
    "Encoder",
    "Error",
    "InternalError",
    "IoError",
    "LanguageModel",
    "ModelError",
    "OutOfMemory",
    "Tagger",
    "Translator",
    "UsageError",
    "__version__",
    "attend",
    "attention",
    "captured",
    "load",
    "set_threads",
]


def __getattr__(name: str) -> Any:
    if name == "Classifier":  # which needs numpy, whose import takes as long as all of this
        from ._classifier import Classifier

        return Classifier
    raise AttributeError(f"module 'fovea' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

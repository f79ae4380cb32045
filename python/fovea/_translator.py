# SPDX-License-Identifier: Apache-2.0
"""Translators."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from . import _fovea
from ._errors import usage_error
from ._options import documented, translator_rows
from ._parts import option_text, text_of, unknown_keyword
from ._paths import Path, path_of
from ._threads import threads_of

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from ._keywords import Translating, TranslatorTraining


class Translator:
    """A translator. `load` and `train` make one; all its results are those of the command,
    to the bit. Several threads may use it at once."""

    def __init__(self, model: _fovea.TranslatorModel) -> None:
        if not isinstance(model, _fovea.TranslatorModel):
            raise usage_error("Translator: make one by Translator.load(folder) or .train(...)",
                              "a model is read from a folder")
        self._model = model

    def __reduce__(self) -> Any:
        raise TypeError("a Translator cannot be pickled: pass the folder, and load it there")

    @classmethod
    def load(cls, folder: Path, *, precision: str = "float32") -> Self:
        """The model of a folder that a training wrote, of one of its checkpoints, or of a MarianMTModel or
        a T5ForConditionalGeneration of transformers. Raises ModelError."""
        return cls(_fovea.TranslatorModel(path_of("load", folder), option_text("precision", precision)))

    @classmethod
    @documented(translator_rows())
    def train(
        cls,
        train: Path | Iterable[Path] | None,
        output: Path,
        *,
        resume: bool | Path = False,
        on_update: Callable[[dict[str, Any]], object] | None = None,
        **options: Unpack[TranslatorTraining],
    ) -> Self:
        """Trains on files of a sentence, a tab and its translation a line (or, if `train` is None, on those of
        `source` and `target`), into the folder `output`, and loads what came of it: `fovea train translate`, whose
        options are the keywords. All else is as in LanguageModel.train."""
        from . import _training

        _training.train(_training.Task("translate", translator_rows()), train, output, resume, on_update, options)
        return cls.load(output)

    @documented(_fovea.translation_options())
    def translate(self, lines: Iterable[str], *, threads: int | None = None,
                  **options: Unpack[Translating]) -> list[str]:
        """The best translation of each line."""
        return [one["translation"] for one in self._translations("translate", lines, threads, options)]

    def translations(self, lines: Iterable[str], *, threads: int | None = None,
                     **options: Unpack[Translating]) -> list[dict[str, Any]]:
        """Of each line the object of `fovea translate --json`, with score, log probability and, where these are
        asked for, `nbest` and `alignment`. Keywords are those of `translate`."""
        return self._translations("translations", lines, threads, options)

    def _translations(self, function: str, lines: Iterable[str], threads: int | None,
                      options: Translating) -> list[dict[str, Any]]:
        if isinstance(lines, (str, bytes)) or not isinstance(lines, Iterable):
            raise usage_error(f"lines: expected a list of texts; got {type(lines).__name__}", "give a list of texts")
        known = [name for name, _, _ in _fovea.translation_options()]
        for name in options:
            if name not in known:
                raise unknown_keyword(function, name, {*known, "threads"})
        given = {name: option_text(name, value) for name, value in options.items() if value is not None}
        texts = [text_of(f"lines[{n}]", line) for n, line in enumerate(lines)]
        return [json.loads(one) for one in self._model.translate(texts, given, threads_of(threads))]

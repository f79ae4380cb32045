# SPDX-License-Identifier: Apache-2.0
"""Taggers of words, and segmenters, which find the words of a text."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from . import _fovea
from ._errors import usage_error
from ._options import documented, tagger_rows
from ._parts import option_text, text_of
from ._paths import Path, adapters_of, path_of
from ._threads import threads_of

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from ._keywords import TaggerTraining

_HINT = "give a list of texts, or of lists of words"


class Tagger:
    """A tagger or a segmenter that has been trained. `load` and `train` make one; all its results are those of
    the command, to the bit. Several threads may use it at once."""

    def __init__(self, model: _fovea.TaggerModel) -> None:
        if not isinstance(model, _fovea.TaggerModel):
            raise usage_error("Tagger: make one by Tagger.load(folder) or .train(...)", "a model is read from a folder")
        self._model = model

    def __reduce__(self) -> Any:
        raise TypeError("a Tagger cannot be pickled: pass the folder, and load it there")

    @classmethod
    def load(cls, folder: Path, *, precision: str = "float32", adapters: Mapping[Path, float] = {}) -> Self:
        """The model of a folder that a training wrote, of one of its checkpoints, or of a folder of Hugging Face.
        `adapters` are as in Classifier.load. Raises ModelError."""
        precision = option_text("precision", precision)
        return cls(_fovea.TaggerModel(path_of("load", folder), precision, adapters_of(adapters)))

    @classmethod
    @documented(tagger_rows())
    def train(
        cls,
        train: Path | Iterable[Path],
        output: Path,
        *,
        resume: bool | Path = False,
        on_update: Callable[[dict[str, Any]], object] | None = None,
        **options: Unpack[TaggerTraining],
    ) -> Self:
        """Trains on files of tagged sentences, into the folder `output`, and loads what came of it: `fovea train
        tag`, whose options are the keywords. All else is as in LanguageModel.train."""
        from . import _training

        _training.train(_training.Task("tag", tagger_rows()), train, output, resume, on_update, options)
        return cls.load(output)

    def tag(
        self,
        sentences: Iterable[str | Iterable[str]],
        *,
        words: str | None = None,
        probabilities: bool = False,
        threads: int | None = None,
    ) -> list[dict[str, Any]]:
        """Of each sentence, a text or a list of words, the object of `fovea tag --json`: its words and their tags,
        and where tags mark spans, these. `words` says what ends a word of a text ("punctuation", "spaces"). A
        segmenter takes texts alone, and says the words that it finds."""
        options = {"probabilities": option_text("probabilities", probabilities)}
        if words is not None:
            options["words"] = option_text("words", words)
        texts, split = self._sentences(sentences)
        count = threads_of(threads)
        if self._model.segments():
            objects = self._model.segment(texts, options, count)
        else:
            of_texts = iter(self._model.words_of(texts, options))
            objects = self._model.tag([next(of_texts) if own is None else own for own in split], options, count)
        return [json.loads(one) for one in objects]

    def _sentences(self, sentences: object) -> tuple[list[str], list[list[str] | None]]:
        """The texts among the sentences; and of each sentence its words, None of a text."""
        if isinstance(sentences, (str, bytes)) or not isinstance(sentences, Iterable):
            raise usage_error(f"sentences: expected a list; got {type(sentences).__name__}", _HINT)
        texts: list[str] = []
        split: list[list[str] | None] = []
        for n, sentence in enumerate(sentences):
            if isinstance(sentence, str):
                texts.append(text_of(f"sentences[{n}]", sentence))
                split.append(None)
            elif self._model.segments() or isinstance(sentence, bytes) or not isinstance(sentence, Iterable):
                raise usage_error(f"sentences[{n}]: expected a text; got {type(sentence).__name__}", _HINT)
            else:
                split.append([text_of(f"sentences[{n}][{k}]", word) for k, word in enumerate(sentence)])
        return texts, split

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes python/fovea/_keywords.py: what type checkers know of the keywords of attend, train, fit and generate and of the
results of attend. All of it comes from the tables of the package that is installed; a test compares the two.

  build/python/tested/bin/python tools/make_python_keywords.py
"""

import pathlib
import re
import sys

FILE = pathlib.Path(__file__).resolve().parents[1] / "python/fovea/_keywords.py"
HEAD = '''# SPDX-License-Identifier: Apache-2.0
# Made by tools/make_python_keywords.py: do not edit.
"""Keywords and results, for type checkers: nothing loads this file."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from typing import Any, Generic, Literal, SupportsFloat, SupportsIndex, TypedDict, TypeVar

Array = Any  # of numpy, or with DLPack or a buffer
Text = str | PathLike[str] | SupportsFloat | Iterable[str | PathLike[str] | SupportsFloat]
Kind = TypeVar("Kind")
'''
TYPES = {"a text": "Text", "a list of texts": "Text", "whole numbers with commas": "Text",
         "a whole number": "SupportsIndex",
         "a whole number, not negative and below 2^64": "SupportsIndex", "a finite number": "SupportsFloat",
         "true or false": "bool"}
# What Python takes beyond what the command does.
MORE = {"causal": "bool"}


def type_of(name, expected):
    """What a keyword may be, given what its row says of it."""
    if expected.startswith("one of: "):
        words = ", ".join(f'"{word}"' for word in expected.removeprefix("one of: ").split(", "))
        found = f"Literal[{words}]"
    elif expected.startswith("some of, with commas: "):
        found = "Text"
    elif re.match(r"(float|int|bool) \[", expected):
        found = "Array"
    else:
        found = TYPES[expected]
    return f"{found} | {MORE[name]}" if name in MORE else found


def keywords(name, what, rows):
    """A TypedDict. None stands for a keyword that is left out."""
    types = {}
    for keyword, expected, _ in rows:
        found = type_of(keyword, expected)
        types[keyword] = f"{types[keyword]} | {found}" if types.get(keyword, found) != found else found
    lines = [f"    {keyword}: {found} | None" for keyword, found in types.items()]
    return "\n".join(["", "", f"class {name}(TypedDict, total=False):", f'    """{what}"""', "", *lines, ""])


def results():
    """What `attend` returns, with everything observed."""
    import numpy as np

    import fovea
    from fovea import _fovea

    observed = _fovea.observed_names().replace("=K", "=1").replace("=A:B", "=0:1").replace(" ", "")
    x = np.zeros((1, 1, 1, 1))
    names = sorted(fovea.attend(x, x, x, observe=observed, dropout=0.5)._results)
    lines = [f"    {name}: Kind" for name in names]
    return "\n".join(["", "", "class Results(Generic[Kind]):", '    """Of attend; of what is observed, what was asked '
                      'for is there."""', "", *lines, ""])


def text():
    from fovea import _fovea, _options, _parts

    return (HEAD + keywords("Parts", "Of attention and attend.", _parts.keyword_rows())
            + keywords("Sampling", "Of generate and stream.", _fovea.sampling_options())
            + keywords("Embedding", "Of Encoder.embed and similar.", _fovea.embed_options())
            + keywords("Training", "Of LanguageModel.train.", _options.training_rows())
            + keywords("ClassifierTraining", "Of Classifier.train.", _options.classifier_rows())
            + keywords("TaggerTraining", "Of Tagger.train.", _options.tagger_rows())
            + keywords("TranslatorTraining", "Of Translator.train.", _options.translator_rows())
            + keywords("Translating", "Of Translator.translate.", _fovea.translation_options())
            + keywords("Fitting", "Of Classifier and its fit.", _options.fit_rows()) + results())


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
    sys.exit(0)

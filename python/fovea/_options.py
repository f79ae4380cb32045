# SPDX-License-Identifier: Apache-2.0
"""Tables of keywords, which the command reads as well, and the lines of help() that come from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from . import _fovea
from ._errors import with_keywords

Row = tuple[str, str, str]  # name, what it must be, what it does
Function = TypeVar("Function", bound=Callable[..., object])


_OWN = ("train",)  # which has an argument of its own


def training_rows() -> list[Row]:
    """(name, what it must be, what it does) of each keyword of training a language model but those of run()."""
    return [*(row for row in _fovea.training_options() if row[0] not in _OWN), *_fovea.run_options()]


def _without(rows: Iterable[Row], names: Iterable[str]) -> list[Row]:
    left_out = set(names)
    return [row for row in rows if row[0] not in left_out]


def classifier_rows() -> list[Row]:
    """The same of a classifier of texts: pairs of them, and numbers, have the command."""
    others = ("input", "second_column", "pair_encoder", *_OWN)
    return [*_without(_fovea.classifier_options(), others), *_without(_fovea.run_options(), ["preset"])]


def tagger_rows() -> list[Row]:
    """The same of a tagger or a segmenter."""
    return [*_without(_fovea.tagger_options(), _OWN), *_without(_fovea.run_options(), ["preset"])]


def translator_rows() -> list[Row]:
    """The same of a translator."""
    return [*_without(_fovea.translator_options(), _OWN), *_fovea.translator_run_options()]


def fit_rows() -> list[Row]:
    """Those that fit() has: texts come from memory, and the folder of the run is gone afterwards."""
    of_files = [name for name, _, _ in _fovea.table_options() if name != "bad_rows"]
    of_folders = ("final", "overwrite", "report", "lang", "keep")
    verbose = ("verbose", "true or false", "print what the training says to stderr")
    return [*_without(classifier_rows(), [*of_files, *of_folders]), verbose]


def documented(rows: Iterable[Row]) -> Callable[[Function], Function]:
    """Ends the docstring of a function with a line for each keyword."""
    lines = "".join(f"\n      {name}: {with_keywords(does)} ({expected})" for name, expected, does in rows)

    def with_lines(function: Function) -> Function:
        if function.__doc__ is not None:  # python -OO takes them away
            function.__doc__ = f"{function.__doc__.rstrip()}\n\n    Keywords:{lines}\n    "
        return function
    return with_lines

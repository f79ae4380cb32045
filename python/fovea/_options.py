# SPDX-License-Identifier: Apache-2.0
"""Tables of keywords, which the command reads as well, and the lines of help() that come from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from . import _fovea

Row = tuple[str, str, str]  # name, what it must be, what it does
Function = TypeVar("Function", bound=Callable[..., object])

_OPTIONS_OF_THE_COMMAND = (
    ("preset", "a text", "settings to start from instead of the defaults: tiny, small, gpt2 or source"),
    ("config", "a text", "a TOML file of settings"),
    ("threads", "a whole number", "threads to work on; 0: all cores"),
    ("overwrite", "true or false", "replace an earlier run in the folder"),
    ("report", "true or false", "keep a page of the run up to date: report.html in the folder"),
    ("lang", "one of: en, zh", "language of that page"),
)


def training_rows() -> list[Row]:
    """(name, what it must be, what it does) of each keyword of a training but those of run().

    The revision is no choice of a user's: it says what a folder meant when it was written."""
    rows = [row for row in _fovea.training_options() if row[0] not in ("train", "revision")]
    return [*rows, *_OPTIONS_OF_THE_COMMAND]


def documented(rows: Iterable[Row]) -> Callable[[Function], Function]:
    """Ends the docstring of a function with a line for each keyword."""
    lines = "".join(f"\n      {name}: {does} ({expected})" for name, expected, does in rows)

    def with_lines(function: Function) -> Function:
        if function.__doc__ is not None:  # python -OO takes them away
            function.__doc__ = f"{function.__doc__.rstrip()}\n\n    Keywords:{lines}\n    "
        return function
    return with_lines

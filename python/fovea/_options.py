# SPDX-License-Identifier: Apache-2.0
"""Tables of keywords, which the command reads as well, and the lines of help() that come from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from . import _fovea
from ._errors import with_keywords

Row = tuple[str, str, str]  # name, what it must be, what it does
Function = TypeVar("Function", bound=Callable[..., object])


def training_rows() -> list[Row]:
    """(name, what it must be, what it does) of each keyword of a training but those of run().

    The revision is no choice of a user's: it says what a folder meant when it was written."""
    rows = [row for row in _fovea.training_options() if row[0] not in ("train", "revision")]
    return [*rows, *_fovea.run_options()]


def documented(rows: Iterable[Row]) -> Callable[[Function], Function]:
    """Ends the docstring of a function with a line for each keyword."""
    lines = "".join(f"\n      {name}: {with_keywords(does)} ({expected})" for name, expected, does in rows)

    def with_lines(function: Function) -> Function:
        if function.__doc__ is not None:  # python -OO takes them away
            function.__doc__ = f"{function.__doc__.rstrip()}\n\n    Keywords:{lines}\n    "
        return function
    return with_lines

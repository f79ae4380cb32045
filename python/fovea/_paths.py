# SPDX-License-Identifier: Apache-2.0
"""Arguments that are paths."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from ._errors import usage_error

Path = str | os.PathLike[str]


def path_of(name: str, path: object, hint: str = "name a folder") -> str:
    """A path, as a text."""
    text = os.fspath(path) if isinstance(path, (str, os.PathLike)) else None
    if not isinstance(text, str):
        raise usage_error(f"{name}: expected a path; got {type(path if text is None else text).__name__}", hint)
    if "\0" in text:
        raise usage_error(f"{name}: {text!r} has a null character", "no name of a file or folder has one", "E0203")
    return text


def adapters_of(adapters: Mapping[Path, float]) -> list[str]:
    """Folders of adapters, each with its factor, as the command names them."""
    hint = 'as in adapters={"polite": 0.5}'
    if not isinstance(adapters, Mapping):
        raise usage_error(f"load: adapters: expected folders with their factors; got {type(adapters).__name__}", hint)
    choices = []
    for path, factor in adapters.items():
        name = path_of("load", path)
        try:
            choices.append(f"{name}={float(factor)!r}")
        except (TypeError, ValueError):
            raise usage_error(f"load: adapters: expected a number as a factor; got {factor!r}", hint) from None
    return choices


def paths_of(name: str, paths: Path | Iterable[Path]) -> list[str]:
    """One path or several, as texts."""
    several = paths if isinstance(paths, Iterable) and not isinstance(paths, (str, bytes, os.PathLike)) else [paths]
    return [path_of(name, path, "name one file, or a list of files") for path in several]

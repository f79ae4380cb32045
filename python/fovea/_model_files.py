# SPDX-License-Identifier: Apache-2.0
"""The files of a model in memory: what `save` and pickle write."""

from __future__ import annotations

import os
import pathlib
import threading
from collections.abc import Iterable, Iterator

from ._errors import usage_error

_LARGE = 1 << 20  # bytes, from which on a file stays on the disk
_PIECE = 1 << 20
LABELS = "python.json"  # what labels were in Python, if no texts
# What a folder has beside its model: what only the run or its resumption needs.
_OF_RUNS = ("optimizer.safetensors", "state.json", "starts.jsonl")


class ModelFiles:
    """The files of a folder, as they are now: they may be deleted or replaced there."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._files: dict[str, bytes | int] = {}
        for path in sorted(pathlib.Path(folder).iterdir()):
            if path.is_file() and not path.name.startswith(".") and path.name not in _OF_RUNS:
                self._files[path.name] = (path.read_bytes() if path.stat().st_size < _LARGE
                                          else os.open(path, os.O_RDONLY | os.O_CLOEXEC))

    def __del__(self) -> None:
        for file in getattr(self, "_files", {}).values():
            if isinstance(file, int):
                os.close(file)

    def write(self, folder: str | os.PathLike[str], more: dict[str, bytes], *, overwrite: bool = False) -> None:
        """Into a folder that is new or empty, unless a model there may be replaced. config.json comes last: a
        folder that has one is whole."""
        path = pathlib.Path(folder)
        if path.exists() and not path.is_dir():
            raise usage_error(f"save: {path} is not a folder", "choose another name", "E0205")
        if path.is_dir() and any(path.iterdir()):
            if not overwrite:
                raise usage_error(f"save: {path}: the folder is not empty", "choose another, or say overwrite=True",
                                  "E0205")
            if not (path / "config.json").exists():
                raise usage_error(f"save: {path}: there is no model to replace", "choose another folder", "E0205")
            for name in ("config.json", LABELS):
                (path / name).unlink(missing_ok=True)
        path.mkdir(parents=True, exist_ok=True)
        for name in sorted({**self._files, **more}, key=lambda name: name == "config.json"):
            _replace(path / name, [more[name]] if name in more else _pieces(self._files[name]))

    def read(self, name: str) -> bytes:
        return b"".join(_pieces(self._files[name]))

    def all(self) -> dict[str, bytes]:
        """Each by its name."""
        return {name: self.read(name) for name in self._files}


def _pieces(file: bytes | int) -> Iterator[bytes]:
    if isinstance(file, bytes):
        yield file
        return
    at = 0
    while piece := os.pread(file, _PIECE, at):
        yield piece
        at += len(piece)


def _replace(path: pathlib.Path, pieces: Iterable[bytes]) -> None:
    """Writes a file beside it first, so that it is whole or what it was."""
    made = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.tmp")
    try:
        with open(made, "xb") as file:
            for piece in pieces:
                file.write(piece)
        os.replace(made, path)
    except BaseException:
        made.unlink(missing_ok=True)
        raise

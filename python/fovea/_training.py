# SPDX-License-Identifier: Apache-2.0
"""Training as the command does it, in a process of its own: so its folder, its lock, its checkpoints and its
bits are the command's, and a training that fails takes nothing of this process with it."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import IO, Any

from ._errors import InternalError, error_of, usage_error
from ._options import training_rows
from ._parts import option_text, unknown_keyword
from ._paths import path_of, paths_of
from ._threads import threads_of

PROGRAM = pathlib.Path(__file__).with_name("bin") / "fovea"
# Beside the settings of the run; `train`, `output` and `resume` have arguments of their own.
_SWITCHES = ("overwrite", "report")  # which have no other way to say no
_SECONDS_BETWEEN_LOOKS = 0.02
# If this process is killed, the training is told to save and stop (prctl's PR_SET_PDEATHSIG is 1): a resumed
# one would find the folder in use.
_LAUNCHER = (
    "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, int(sys.argv[1]));"
    "os.getppid() == int(sys.argv[2]) or sys.exit(1); os.execv(sys.argv[3], sys.argv[3:])"
)


def _flags(options: dict[str, Any]) -> list[str]:
    known = {name for name, _, _ in training_rows()}
    words: list[str] = []
    for name, value in options.items():
        if name not in known:
            raise unknown_keyword("train", name, known)
        flag = "--" + name.replace("_", "-")
        if value is None or (value is False and name in _SWITCHES):
            continue
        if isinstance(value, bool):
            words.append(flag if value else "--no-" + flag[2:])
        elif name == "valid" and not isinstance(value, str):
            words += [flag, *paths_of(name, value)]
        else:
            words.append(f"{flag}={os.fspath(value) if isinstance(value, os.PathLike) else option_text(name, value)}")
    return words


def _words(files: list[str], output: str, resume: bool | str | os.PathLike[str], options: dict[str, Any]) -> list[str]:
    given = {**options, "threads": threads_of(options.get("threads"))}
    words = [os.fspath(PROGRAM), "train", "lm", *_flags(given), "--json", "--quiet", "--output", output]
    if resume is True:
        words.append("--resume")
    elif resume is not False:
        words.append("--resume=" + path_of("resume", resume, "give True, or a checkpoint"))
    for file in files:
        if file.startswith("-"):
            raise usage_error(f"train: {file} begins with a dash", "write it as ./" + file)
    for word in words:
        _check_word(word)
    return [*words, "--train", *files] if files else words


def _check_word(word: str) -> None:
    """Refuses what no process can be given."""
    name, _, value = word.removeprefix("--").partition("=")
    try:
        if b"\0" not in os.fsencode(word):
            return
    except UnicodeEncodeError:
        pass
    raise usage_error(f"{name}: {value!r} has a null character or half of a surrogate pair",
                      "give a text that a command can be given", "E0203")


class _Lines:
    """The lines that are added to a file."""

    def __init__(self, path: pathlib.Path) -> None:
        self._path = path
        self._file: IO[bytes] | None = None
        self._kept = b""
        self._before = path.stat().st_size if path.exists() else 0

    def new(self) -> Iterator[dict[str, Any]]:
        if self._file is None:
            if not self._path.exists():
                return
            self._file = self._path.open("rb")
            # A run that begins anew writes another file; one that goes on adds to this.
            size = os.fstat(self._file.fileno()).st_size
            self._file.seek(self._before if size >= self._before else 0)
        self._kept += self._file.read()
        *lines, self._kept = self._kept.split(b"\n")
        for line in lines:
            yield json.loads(line)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def _error_from(said: str, status: int) -> Exception:
    for line in reversed(said.splitlines()):
        try:
            told = json.loads(line)
            return error_of(told["error"], told["message"], told["hint"], training_rows())
        except (ValueError, KeyError, TypeError):
            continue
    return InternalError(f"train: the training ended with status {status}: {said.strip()}")


def _stop(process: subprocess.Popen[Any]) -> None:
    """Lets the training save and end."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        process.wait()


def run(
    files: list[str],
    output: str,
    resume: bool | str | os.PathLike[str],
    on_update: Callable[[dict[str, Any]], object] | None,
    options: dict[str, Any],
) -> None:
    """Trains, and returns when the model is written. What this thread is interrupted by stops the training,
    which saves first."""
    if on_update is not None and not callable(on_update):
        raise usage_error(f"on_update: expected a function; got {type(on_update).__name__}",
                          "write a function of one line of metrics.jsonl, a dict")
    words = _words(files, output, resume, options)
    lines = _Lines(pathlib.Path(output) / "metrics.jsonl")
    with tempfile.TemporaryFile("w+") as said:
        # A session of its own, so that Ctrl-C comes here alone.
        launcher = [sys.executable, "-I", "-S", "-c", _LAUNCHER, str(int(signal.SIGTERM)), str(os.getpid())]
        process = subprocess.Popen([*launcher, *words], stdin=subprocess.DEVNULL, stdout=said, stderr=said,
                                   start_new_session=True)
        try:
            while process.poll() is None:
                time.sleep(_SECONDS_BETWEEN_LOOKS)
                for line in lines.new() if on_update is not None else ():
                    on_update(line)  # type: ignore[misc]
            for line in lines.new() if on_update is not None and process.returncode == 0 else ():
                on_update(line)  # type: ignore[misc]
        finally:
            _stop(process)
            lines.close()
        if process.returncode:
            said.seek(0)
            raise _error_from(said.read(), process.returncode)

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
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import IO, Any, NamedTuple

from ._errors import InternalError, error_of, usage_error, with_keywords
from ._options import Row
from ._parts import option_text, unknown_keyword
from ._paths import path_of, paths_of
from ._threads import threads_of

PROGRAM = pathlib.Path(__file__).with_name("bin") / "fovea"
# Beside the settings of the run; `train`, `output` and `resume` have arguments of their own.
_WARNING = "warning: "
_SWITCHES = ("final", "overwrite", "report")  # which have no other way to say no
_SECONDS_BETWEEN_LOOKS = 0.02
STANDARD_INPUT = "-"  # as a file
# If this process is killed, the training is told to save and stop (prctl's PR_SET_PDEATHSIG is 1): a resumed
# one would find the folder in use.
_LAUNCHER = (
    "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, int(sys.argv[1]));"
    "os.getppid() == int(sys.argv[2]) or sys.exit(1); os.execv(sys.argv[3], sys.argv[3:])"
)


class Task(NamedTuple):
    """A command that trains, and how it is called."""

    command: str  # "lm"
    rows: list[Row]  # the keywords that stand for its options
    texts: IO[bytes] | None = None  # STANDARD_INPUT among the files
    speaks: bool = False


def _flags(rows: list[Row], options: dict[str, Any]) -> list[str]:
    known = {name for name, _, _ in rows}
    words: list[str] = []
    lists = {name for name, expected, _ in rows if expected == "a list of texts"}
    for name, value in options.items():
        if name not in known:
            raise unknown_keyword("train", name, known)
        flag = "--" + name.replace("_", "-")
        if value is None or (value is False and name in _SWITCHES):
            continue
        if isinstance(value, bool):
            words.append(flag if value else "--no-" + flag[2:])
        elif name in lists and not isinstance(value, str):
            words += [flag, *paths_of(name, value)]
        else:
            words.append(f"{flag}={os.fspath(value) if isinstance(value, os.PathLike) else option_text(name, value)}")
    return words


def _words(task: Task, files: list[str], output: str, resume: bool | str | os.PathLike[str],
           options: dict[str, Any]) -> list[str]:
    given = {**options, "threads": threads_of(options.get("threads"))}
    words = [os.fspath(PROGRAM), "train", task.command, *_flags(task.rows, given), "--json", "--output", output]
    if not task.speaks:
        words.append("--quiet")
    if resume is True:
        words.append("--resume")
    elif resume is not False:
        words.append("--resume=" + path_of("resume", resume, "give True, or a checkpoint"))
    for file in files:
        if file.startswith("-") and file != STANDARD_INPUT:
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


class _Said:
    """What the training says, for people and, if it fails, as an object."""

    def __init__(self, file: IO[str], task: Task) -> None:
        self._file, self._task = file, task
        self._read = 0
        self._kept = b""

    def pass_on(self) -> None:
        """Warnings become warnings of Python; the rest is printed if it is asked for."""
        while piece := os.pread(self._file.fileno(), 1 << 20, self._read):
            self._read += len(piece)
            self._kept += piece
        *lines, self._kept = self._kept.split(b"\n")
        for line in (one.decode(errors="replace") for one in lines):
            if line.startswith(_WARNING):
                warnings.warn(with_keywords(line.removeprefix(_WARNING), self._task.rows), stacklevel=5)
            elif self._task.speaks and not line.startswith("{"):
                print(line, file=sys.stderr, flush=True)

    def error(self, status: int) -> Exception:
        self._file.seek(0)
        said = self._file.read()
        for line in reversed(said.splitlines()):
            try:
                told = json.loads(line)
                return error_of(told["error"], told["message"], told["hint"], self._task.rows)
            except (ValueError, KeyError, TypeError):
                continue
        return InternalError(f"train: the training ended with status {status}: {said.strip()}")


def _stop(process: subprocess.Popen[Any]) -> None:
    """Lets the training save and end."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        process.wait()


def train(
    task: Task,
    files: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | None,
    output: str | os.PathLike[str],
    resume: bool | str | os.PathLike[str],
    on_update: Callable[[dict[str, Any]], object] | None,
    options: Mapping[str, Any],
) -> None:
    """Trains on files, into a folder."""
    run(task, paths_of("train", files) if files is not None else [], path_of("output", output), resume, on_update,
        dict(options))


def run(
    task: Task,
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
    words = _words(task, files, output, resume, options)
    lines = _Lines(pathlib.Path(output) / "metrics.jsonl")
    with tempfile.TemporaryFile("w+") as file:
        # A session of its own, so that Ctrl-C comes here alone.
        launcher = [sys.executable, "-I", "-S", "-c", _LAUNCHER, str(int(signal.SIGTERM)), str(os.getpid())]
        process = subprocess.Popen([*launcher, *words], stdin=task.texts or subprocess.DEVNULL, stdout=file, stderr=file,
                                   start_new_session=True)
        said = _Said(file, task)
        try:
            while process.poll() is None:
                time.sleep(_SECONDS_BETWEEN_LOOKS)
                said.pass_on()
                for line in lines.new() if on_update is not None else ():
                    on_update(line)  # type: ignore[misc]
            said.pass_on()
            for line in lines.new() if on_update is not None and process.returncode == 0 else ():
                on_update(line)  # type: ignore[misc]
        finally:
            _stop(process)
            lines.close()
        if process.returncode:
            raise said.error(process.returncode)

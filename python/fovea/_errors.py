# SPDX-License-Identifier: Apache-2.0
"""The errors of fovea. Their codes are those of the command: docs/errors.md lists them."""

from __future__ import annotations

import re


class Error(Exception):
    """What fovea could not do. `code` is its name, such as "E0202", `hint` what to do about it."""

    def __init__(self, message: str, code: str = "E0101", hint: str = "") -> None:
        super().__init__(message, code, hint)
        self.message = message
        self.code = code
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\nhint: {self.hint}" if self.hint else self.message


class InternalError(Error):
    """A defect of fovea itself."""


class UsageError(Error, ValueError):
    """An argument that cannot be: its name, its type, its size or its value."""


class DataError(Error):
    """An input file that is missing, empty or of another format."""


class ModelError(Error):
    """A model that is missing, damaged or of another kind."""


class IoError(Error):
    """A file or folder that cannot be read or written."""


class OutOfMemory(Error, MemoryError):
    """More memory needed than there is."""


class Diverged(Error):
    """A training whose loss or gradient is not finite."""


# By the first two digits of a code, which are the exit status of the command.
_CLASSES: dict[str, type[Error]] = {
    "01": InternalError,
    "02": UsageError,
    "03": DataError,
    "04": ModelError,
    "05": IoError,
    "06": OutOfMemory,
    "07": Diverged,
}


# What messages of the command say, and what a caller from Python can look at instead. The extension has taken
# the dashes off some of them. (Texts, since compiling them would slow the import.)
_COMMANDS_HELP = r"\bfovea ((?:[a-z-]+ )+)(?:--)?help\b"
_HELP = (
    (r"\bfovea (?:--)?help\b", "docs/python.md"),
    (r"(?:\bsee )?(?:--|\b)help (?:says|for) what (\S+) (is for|takes)",
     r"the page in docs/commands says what \1 \2"),
    (r"\bcommand's (?:--)?help\b", "command's page in docs/commands"),
)
# A command with a flag stays, as do flags inside a path or quotes; a flag may stand before what it takes.
_FLAG = r"\bfovea(?: [a-z-]+)+ --[a-z-]+|(?<![\w/.'\"-])--(no-)?([a-z][a-z0-9-]*)( [A-Z]{2,}\b)?"


def _keyword(flag: re.Match[str]) -> str:
    name = (flag[2] or "").replace("-", "_")
    if not name:
        return flag[0]
    if flag[1] or name in ("resume", "overwrite"):
        return f"{name}={not flag[1]}"
    return f"{name}={flag[3].strip()}" if flag[3] else name


def with_keywords(text: str) -> str:
    """What the command says, as a caller from Python knows it: "--batch-size" is batch_size."""
    if "--" not in text and "help" not in text:
        return text
    text = re.sub(_COMMANDS_HELP, lambda found: f"docs/commands/{found[1].strip().replace(' ', '-')}.md", text)
    for what, said in _HELP:
        text = re.sub(what, said, text)
    return re.sub(_FLAG, _keyword, text)


def error_of(code: str, message: str, hint: str) -> Error:
    """The error of a code, of the extension or of the command."""
    return _CLASSES.get(code[1:3], InternalError)(with_keywords(message), code, with_keywords(hint))


def usage_error(message: str, hint: str, code: str = "E0201") -> UsageError:
    return UsageError(message, code, hint)

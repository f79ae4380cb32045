# SPDX-License-Identifier: Apache-2.0
"""The errors of fovea. Their codes are those of the command: docs/errors.md lists them."""

from __future__ import annotations


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


def error_of(code: str, message: str, hint: str) -> Error:
    """The error of a code; the extension calls this."""
    return _CLASSES.get(code[1:3], InternalError)(message, code, hint)


def usage_error(message: str, hint: str, code: str = "E0201") -> UsageError:
    return UsageError(message, code, hint)

# SPDX-License-Identifier: Apache-2.0
"""The errors of fovea. Their codes are those of the command."""

from __future__ import annotations

import re
from collections.abc import Iterable


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


# What messages of the command name, and what a caller from Python has instead. The extension has taken the dashes
# off some of them. (Texts, since compiling them would slow the import.)
_COMMANDS_HELP = r"\bfovea ((?:[a-z-]+ )+)(?:--)?help\b"
_FUNCTIONS = {"attention": "attend", "train lm": "LanguageModel.train",
              "train classify": "Classifier.train", "train tag": "Tagger.train",
              "train translate": "Translator.train", "translate": "Translator.translate", "generate": "LanguageModel.generate",
              "eval": "LanguageModel.evaluate"}
_OPTIONS_HELP = r"(?:\bsee )?(?:--|\b)help (?:says|for) what (\S+) (?:is for|takes)(?:, and what it is if left out)?"
_HELP = (
    (r"\bfovea (?:--)?help\b", "help(fovea)"),
    (r"\bthe command's (?:--)?help\b", "help() of the function"),
)
# Of a flag that takes names with values.
_WISH = r"(?<!\S)(?:--)?(observe) (\w+=[\w:]+)"
# A command with a flag stays, as do flags inside a path or quotes; a flag may stand before what it takes.
_FLAG = r"\bfovea(?: [a-z-]+)+ --[a-z-]+|(?<![\w/.'\"-])--(no-)?([a-z][a-z0-9-]*)( [A-Z]{2,}\b)?"


def _keyword(flag: re.Match[str]) -> str:
    name = (flag[2] or "").replace("-", "_")
    if not name:
        return flag[0]
    if flag[1] or name in ("resume", "overwrite"):
        return f"{name}={not flag[1]}"
    return f"{name}={flag[3].strip()}" if flag[3] else name


def _help_of_command(found: re.Match[str]) -> str:
    command = found[1].strip()
    return f"help(fovea.{_FUNCTIONS[command]})" if command in _FUNCTIONS else f"fovea {command} --help"


def with_keywords(text: str, options: Iterable[tuple[str, str, str]] = ()) -> str:
    """What the command says, as a caller from Python knows it: "--batch-size" is batch_size. Where it refers to
    its help for an option, this says what `options` say of it."""
    text = re.sub(_WISH, r"\1='\2'", text)
    if "--" not in text and "help" not in text:
        return text

    def about(found: re.Match[str]) -> str:
        name = found[1].strip("-").replace("-", "_")
        said = next((f"{help_text} ({expected})" for one, expected, help_text in options if one == name),
                    "help(fovea) says where its options are listed")
        return f"{name}: {said}"
    text = re.sub(_OPTIONS_HELP, about, text)
    text = re.sub(_COMMANDS_HELP, _help_of_command, text)
    for what, said in _HELP:
        text = re.sub(what, said, text)
    return re.sub(_FLAG, _keyword, text)


def error_of(code: str, message: str, hint: str, options: Iterable[tuple[str, str, str]] | None = None) -> Error:
    """The error of a code, of the extension or of the command. `options` are those that it may be about; of the
    extension, by default, those of the operator and of generating."""
    if options is None:
        from . import _fovea  # which imports this module for its errors

        options = [*_fovea.attention_options(), *_fovea.sampling_options()]
    return _CLASSES.get(code[1:3], InternalError)(with_keywords(message), code, with_keywords(hint, options))


def usage_error(message: str, hint: str, code: str = "E0201") -> UsageError:
    return UsageError(message, code, hint)

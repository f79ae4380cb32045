# SPDX-License-Identifier: Apache-2.0
"""Texts and labels from Python as the command reads them, and labels back."""

from __future__ import annotations

import json
import math
import numbers
import os
import tempfile
from collections.abc import Iterable
from typing import IO, Any

import numpy

from ._errors import usage_error
from ._parts import text_of

_AT_ONCE = 1000
_LABELS = "give a list of labels: texts, whole numbers or bools; or, for several labels each, a list of lists"


def items_of(name: str, given: object, what: str) -> list[Any]:
    """The entries of a list, an array or a column of a table."""
    if isinstance(given, (str, bytes, dict)) or not isinstance(given, Iterable):
        raise usage_error(f"{name}: expected a list of {what}; got {type(given).__name__}",
                          f"give a list, an array or a column of {what}")
    if len(getattr(given, "shape", "n")) != 1:
        shape = getattr(given, "shape", "")
        raise usage_error(f"{name}: expected one column of {what}; got shape {shape}",
                          "choose a column, such as table['text']", "E0202")
    return list(given)


def texts_of(name: str, given: object) -> list[str]:
    """Texts that have UTF-8."""
    texts = items_of(name, given, "texts")
    for n, text in enumerate(texts):
        text_of(f"{name}[{n}]", text)
    return texts


def require(y: object) -> None:
    """In the words that scikit-learn looks for."""
    if y is None:
        raise usage_error("y: expected labels; fit requires y to be passed, but the target y is None", _LABELS)


class Labels:
    """How the labels of a model are called in Python: classes, sets of them, columns of an indicator, or numbers."""

    def __init__(self, kind: str, dtype: str = "str") -> None:
        self.kind = kind  # "classes", "sets", "columns", "numbers"
        self.dtype = dtype  # of classes

    @classmethod
    def of(cls, y: object, *, regression: object, multi_label: object) -> tuple[Labels, list[Any]]:
        """How labels are given, and what the command is given for each text."""
        if len(getattr(y, "shape", "n")) == 2:
            return cls._of_columns(numpy.asarray(y))
        given = items_of("y", y, "labels")
        if regression:
            return cls("numbers"), [_number_of(n, value) for n, value in enumerate(given)]
        several = [not isinstance(value, (str, bytes)) and isinstance(value, Iterable) for value in given]
        if multi_label or (given and several[0]):
            return cls("sets"), [_set_of(n, value) for n, value in enumerate(given)]
        return cls._of_classes(given)

    @classmethod
    def _of_columns(cls, y: numpy.ndarray[Any, Any]) -> tuple[Labels, list[Any]]:
        if y.dtype.kind not in "biuf" or not numpy.isin(y, (0, 1)).all():
            raise usage_error(f"y: expected 0 and 1 in an array [texts, labels]; got {y.dtype}",
                              "a row says which labels the text has; or give lists of labels", "E0203")
        return cls("columns", str(y.shape[1])), [[str(k) for k in numpy.flatnonzero(row)] for row in y]

    @classmethod
    def _of_classes(cls, given: list[Any]) -> tuple[Labels, list[Any]]:
        kinds: dict[str, int] = {}
        names = []
        for n, value in enumerate(given):
            kind, name = _class_of(n, value)
            kinds.setdefault(kind, n)
            names.append(name)
        if len(kinds) > 1:
            (_, first), (_, other) = sorted(kinds.items(), key=lambda item: item[1])[:2]
            raise usage_error(f"y: {given[first]!r} at y[{first}] and {given[other]!r} at y[{other}] are of different"
                              " types", "give labels of one type", "E0203")
        return cls("classes", next(iter(kinds), "str")), names

    def value_of(self, name: str) -> Any:
        """A label as it was given."""
        if self.kind == "columns" or self.dtype in ("int", "float"):
            return float(name) if self.dtype == "float" else int(name)
        return name == "True" if self.dtype == "bool" else name

    def text(self) -> bytes:
        """To be stored beside a model, if labels are no texts."""
        return json.dumps({"kind": self.kind, "dtype": self.dtype}).encode()

    @classmethod
    def of_text(cls, text: bytes) -> Labels:
        stored = json.loads(text)
        return cls(stored["kind"], stored["dtype"])


def _class_of(n: int, value: object) -> tuple[str, str]:
    """The type of a label, and its name."""
    if isinstance(value, str):
        return "str", text_of(f"y[{n}]", value)
    if isinstance(value, (bool, numpy.bool_)):
        return "bool", str(bool(value))
    if isinstance(value, numbers.Integral):
        return "int", str(int(value))
    if isinstance(value, numbers.Real):
        if math.isfinite(value) and float(value).is_integer():
            return "float", str(int(float(value)))
        raise usage_error(f"y[{n}]: {value!r} is no class: unknown label type, continuous",
                          "for numbers say regression=True", "E0203")
    raise usage_error(f"y[{n}]: expected a text, a whole number or a bool; got {type(value).__name__}", _LABELS)


def _set_of(n: int, value: object) -> list[str]:
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise usage_error(f"y[{n}]: expected a list of labels; got {type(value).__name__}", _LABELS)
    labels = list(value)
    for label in labels:
        text_of(f"y[{n}]", label)
    return sorted(set(labels))


def _number_of(n: int, value: object) -> float:
    if not isinstance(value, (numbers.Real, numpy.number)) or isinstance(value, bool) or not math.isfinite(value):
        raise usage_error(f"y[{n}]: expected a finite number; got {value!r}", "give a list of numbers", "E0203")
    return float(value)


def table_of(texts: list[str], labels: list[Any]) -> IO[bytes]:
    """Rows in JSON, in memory alone."""
    try:
        file: IO[bytes] = os.fdopen(os.memfd_create("fovea"), "w+b")
    except OSError:  # a kernel that has none: a file without a name
        file = tempfile.TemporaryFile()
    for begin in range(0, len(texts), _AT_ONCE):
        rows = zip(texts[begin:begin + _AT_ONCE], labels[begin:begin + _AT_ONCE], strict=True)
        file.write("".join(json.dumps({"text": text, "label": label}, ensure_ascii=False) + "\n"
                           for text, label in rows).encode())
    file.seek(0)
    return file

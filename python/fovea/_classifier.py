# SPDX-License-Identifier: Apache-2.0
"""Classifiers of texts, as an estimator of scikit-learn, which need not be there."""

from __future__ import annotations

import inspect
import json
import pathlib
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy

from . import _fovea, _labels, _training
from ._errors import Error, UsageError, usage_error
from ._model_files import LABELS, ModelFiles
from ._options import classifier_rows, documented, fit_rows
from ._parts import option_text, text_of, unknown_keyword
from ._paths import Path, adapters_of, path_of
from ._threads import threads_of

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Self, Unpack

    from ._keywords import ClassifierTraining, Fitting

_ROWS = fit_rows()
_NAMES = [name for name, _, _ in _ROWS]


class Classifier:
    """Says what class, labels or number a text has. `fit` learns it from texts in memory, `load` reads a model
    that the command or `save` wrote; all results are those of the command, to the bit. It is an estimator of
    scikit-learn: clone, Pipeline, cross_val_score and GridSearchCV take it."""

    # No attribute but parameters may be set by an estimator's constructor.
    __slots__ = ("__dict__", "__weakref__", "_adapters", "_files", "_labels", "_model", "_options", "_precision")

    def __init__(self, **options: Unpack[Fitting]) -> None:
        """Keywords are the options of `fovea train classify`, with underscores, which `fit` trains with."""
        self._options: dict[str, Any] = {}
        self._model: _fovea.ClassifierModel | None = None
        self._precision = "float32"
        self._adapters: list[str] = []
        self.set_params(**options)

    def __repr__(self) -> str:
        return f"Classifier({', '.join(f'{name}={value!r}' for name, value in self._options.items())})"

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """All options by name; None stands for the command's default."""
        return {name: self._options.get(name) for name in _NAMES}

    def set_params(self, **options: Any) -> Self:
        """Sets options of the next fit(). Raises UsageError for a name that there is not."""
        for name, value in options.items():
            if name not in _NAMES:
                raise unknown_keyword("Classifier", name, _NAMES)
            if value is None:
                self._options.pop(name, None)
            else:
                self._options[name] = value
        return self

    @documented(_ROWS)
    def fit(
        self,
        X: Iterable[str],
        y: Iterable[Any],
        *,
        on_update: Callable[[dict[str, Any]], object] | None = None,
        **options: Unpack[Fitting],
    ) -> Self:
        """Trains on texts X and what is true of each, y: a class (a text, a whole number or a bool), or several
        labels (a list of texts; or y is an array [texts, labels] of 0 and 1), or with `regression=True` a number.
        It is `fovea train classify` in a process of its own, which reads the texts from memory; options count for
        this call, before those of the constructor. Warnings of the command are warnings here. Ctrl-C ends it.
        Raises UsageError, DataError and the like, with the code of the command."""
        given = {**self._options, **{name: value for name, value in options.items() if value is not None}}
        for name in options:
            if name not in _NAMES:
                raise unknown_keyword("fit", name, _NAMES)
        _labels.require(y)
        texts = _labels.texts_of("X", X)
        labels, rows = _labels.Labels.of(y, regression=given.get("regression"), multi_label=given.get("multi_label"))
        if len(texts) != len(rows):
            raise usage_error(f"y: expected {len(texts)} labels, one for each text; got {len(rows)}",
                              "X and y have as many entries", "E0202")
        if labels.kind in ("sets", "columns"):
            given["multi_label"] = True
        speaks = bool(given.pop("verbose", False))
        with tempfile.TemporaryDirectory(prefix="fovea-") as folder, _labels.table_of(texts, rows) as table:
            try:
                task = _training.Task("classify", _ROWS, table, speaks)
                _training.run(task, [_training.STANDARD_INPUT], folder, False, on_update, given)
            except Error as error:
                raise _about_memory(error) from None
            self._adapters = []
            self._take(folder, labels)
        return self

    @classmethod
    @documented(classifier_rows())
    def train(
        cls,
        train: Path | Iterable[Path],
        output: Path,
        *,
        resume: bool | Path = False,
        on_update: Callable[[dict[str, Any]], object] | None = None,
        **options: Unpack[ClassifierTraining],
    ) -> Self:
        """Trains on files of labelled texts, into the folder `output`, and loads what came of it: `fovea train
        classify`, whose options are the keywords. All else is as in LanguageModel.train."""
        task = _training.Task("classify", classifier_rows())
        _training.train(task, train, output, resume, on_update, options)
        return cls.load(output)

    @classmethod
    def load(cls, folder: Path, *, precision: str = "float32", adapters: Mapping[Path, float] = {}) -> Self:
        """The model of a folder that a training or `save` wrote, of a checkpoint, or of a folder of Hugging Face.
        `adapters`: folders of PEFT, each with the factor by which it counts: 1 as it was trained. They are merged
        into the weights, and a head that one holds is that of the model. Raises ModelError."""
        loaded = cls()
        loaded._precision = option_text("precision", precision)
        loaded._adapters = adapters_of(adapters)
        loaded._take(path_of("load", folder))
        return loaded

    def save(self, folder: Path, *, overwrite: bool = False) -> None:
        """Writes the model into a folder that is new or empty, which `load` and the command read. Raises UsageError
        for one with `adapters`, whose folder is another's."""
        self._loaded()
        self._require_whole("save")
        labels = {} if self._labels.dtype == "str" else {LABELS: self._labels.text()}
        self._files.write(path_of("save", folder), labels, overwrite=overwrite)

    def _require_whole(self, function: str) -> None:
        if self._adapters:
            raise usage_error(f"{function}: the model was loaded with adapters, which are not in its folder",
                              "keep both folders, and load them again")

    def _take(self, folder: str, labels: _labels.Labels | None = None) -> None:
        model = _fovea.ClassifierModel(folder, self._precision, self._adapters)
        stored = pathlib.Path(folder) / LABELS
        kinds = {"multi-label": "sets", "regression": "numbers"}
        if labels is None and stored.exists():
            labels = _labels.Labels.of_text(stored.read_bytes())
        self._labels = labels or _labels.Labels(kinds.get(model.task(), "classes"))
        self._files = ModelFiles(folder)
        self._model = model

    def _loaded(self) -> _fovea.ClassifierModel:
        if self._model is None:
            raise _not_fitted()
        return self._model

    def __sklearn_is_fitted__(self) -> bool:
        return self._model is not None

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes or labels, sorted as numpy does: the order of the columns of predict_proba."""
        if self._model is None or self._labels.kind == "numbers":
            raise AttributeError("classes_: there are none before fit(), and none of numbers")
        if self._labels.kind == "columns":
            return numpy.arange(int(self._labels.dtype))
        return numpy.unique([self._labels.value_of(name) for name in self._model.labels()])

    def _columns(self) -> NDArray[Any]:
        """Of each label of the model, which column it has here."""
        values = [self._labels.value_of(name) for name in self._loaded().labels()]
        return numpy.searchsorted(self.classes_, values)

    def _values(self, X: Iterable[str], threads: int | None) -> Any:
        texts = _labels.texts_of("X", X)
        return self._loaded().predict(texts, self._threads(threads))

    def _threads(self, threads: int | None) -> int:
        return threads_of(self._options.get("threads") if threads is None else threads)

    def predict(self, X: Iterable[str], *, threshold: float | None = None, threads: int | None = None) -> Any:
        """What each text is, in the form of the labels that it was fitted with: an array of classes; lists of
        labels, the likeliest first (or an array of 0 and 1); an array of numbers. `threshold` is the command's: of
        several labels, the probability from which on a text has one."""
        model, values = self._loaded(), self._values(X, threads)
        if self._labels.kind == "numbers":
            return numpy.asarray(model.numbers(values))
        chosen = model.choose(values, {} if threshold is None else {"threshold": option_text("threshold", threshold)})
        if self._labels.kind == "sets":
            names = model.labels()
            return [[names[k] for k in of_text] for of_text in chosen]
        columns = self._columns()
        if self._labels.kind == "columns":
            found = numpy.zeros((len(chosen), len(self.classes_)), int)
            for n, of_text in enumerate(chosen):
                found[n, columns[of_text]] = 1
            return found
        return self.classes_[columns[[of_text[0] for of_text in chosen]]] if chosen else self.classes_[:0]

    def predict_proba(self, X: Iterable[str], *, threads: int | None = None) -> NDArray[numpy.float32]:
        """[texts, classes_] the probability of each class, or of each label. `predict` is not always the largest:
        where classes are uneven, a model has thresholds."""
        self._loaded()
        if self._labels.kind == "numbers":
            raise usage_error("predict_proba: the model says numbers, which have no probabilities", "use predict")
        values = self._values(X, threads)
        found = numpy.zeros((len(values), len(self.classes_)), numpy.float32)
        found[:, self._columns()] = values
        return found

    def score(self, X: Iterable[str], y: Iterable[Any], sample_weight: Any = None) -> float:
        """The share of the texts whose class, or all of whose labels, are right; of numbers R squared."""
        found = self.predict(X)
        labels = _labels.items_of("y", y, "labels") if self._labels.kind != "columns" else list(numpy.asarray(y))
        if len(labels) != len(found):
            raise usage_error(f"y: expected {len(found)} labels, one for each text; got {len(labels)}",
                              "X and y have as many entries", "E0202")
        weights = numpy.ones(len(labels)) if sample_weight is None else numpy.asarray(sample_weight, float)
        if self._labels.kind == "numbers":
            true = numpy.asarray(labels, float)
            around = true - numpy.average(true, weights=weights)
            return float(1 - (weights * (true - found) ** 2).sum() / (weights * around**2).sum())
        if self._labels.kind == "sets":
            right = [set(a) == set(b) for a, b in zip(found, labels, strict=True)]
        else:
            right = [bool(numpy.all(a == b)) for a, b in zip(found, labels, strict=True)]
        return float(numpy.average(right, weights=weights))

    def explain(
        self,
        text: str,
        *,
        target: Any = None,
        saliency: str | None = None,
        layer: int | None = None,
        head: int | None = None,
        threads: int | None = None,
    ) -> dict[str, Any]:
        """What the answer for a text comes from: the object of `fovea explain --json`."""
        wanted = {"target": target, "saliency": saliency, "layer": layer, "head": head}
        texts = {name: option_text(name, value) for name, value in wanted.items() if value is not None}
        return dict(json.loads(self._loaded().explain(text_of("text", text), texts, self._threads(threads))))

    @property
    def config(self) -> dict[str, Any]:
        """The object of config.json."""
        self._loaded()
        return dict(json.loads(self._files.read("config.json")))

    @property
    def _estimator_type(self) -> str:
        return "regressor" if self._options.get("regression") else "classifier"

    def __sklearn_tags__(self) -> Any:
        import importlib

        utils = importlib.import_module("sklearn.utils")
        numbers = self._estimator_type == "regressor"
        return utils.Tags(
            estimator_type=self._estimator_type,
            target_tags=utils.TargetTags(required=True),
            transformer_tags=None,
            classifier_tags=None if numbers else utils.ClassifierTags(multi_label=True),
            regressor_tags=utils.RegressorTags() if numbers else None,
            input_tags=utils.InputTags(one_d_array=True, two_d_array=False, string=True),
        )

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = {"options": self._options, "precision": self._precision}
        if self._model is not None:
            self._require_whole("pickle")
            state |= {"files": self._files.all(), "labels": self._labels.text()}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._options, self._precision, self._model = dict(state["options"]), state["precision"], None
        self._adapters = []
        if "files" in state:
            with tempfile.TemporaryDirectory(prefix="fovea-") as folder:
                for name, file in state["files"].items():
                    pathlib.Path(folder, name).write_bytes(file)
                self._take(folder, _labels.Labels.of_text(state["labels"]))


def _not_fitted() -> Exception:
    """Of scikit-learn's kind, too, where that is loaded."""
    import sys

    message, hint = "this Classifier has no model yet", "call fit(texts, labels), or Classifier.load(folder)"
    known = getattr(sys.modules.get("sklearn.exceptions"), "NotFittedError", AttributeError)
    kind = type("NotFittedError", (UsageError, known), {"__module__": "fovea"})
    return kind(message, "E0201", hint)  # type: ignore[no-any-return]


def _about_memory(error: Error) -> Error:
    """An error of the command about a row of what it was given."""
    message = re.sub(r"\bstandard input:(\d+)\b", lambda found: f"X[{int(found[1]) - 1}]", error.message)
    hint = error.hint.removesuffix(", or say where the labels are: label_column")
    return type(error)(message.replace("standard input", "X"), error.code, hint)


Classifier.__init__.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD),
     *(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in _NAMES)])

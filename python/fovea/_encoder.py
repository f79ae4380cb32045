# SPDX-License-Identifier: Apache-2.0
"""Encoders, which make vectors of texts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from . import _fovea
from ._errors import usage_error
from ._options import documented
from ._parts import option_text, text_of, unknown_keyword
from ._paths import Path, adapters_of, path_of
from ._threads import threads_of

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray
    from typing_extensions import Self, Unpack

    from ._keywords import Embedding


def _texts_of(name: str, given: object) -> list[str]:
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise usage_error(f"{name}: expected a list of texts; got {type(given).__name__}", "give a list of texts")
    return [text_of(f"{name}[{n}]", text) for n, text in enumerate(given)]


def _options(function: str, given: Embedding) -> dict[str, str]:
    known = [name for name, _, _ in _fovea.embed_options()]
    for name in given:
        if name not in known:
            raise unknown_keyword(function, name, {*known, "threads"})
    return {name: option_text(name, value) for name, value in given.items() if value is not None}


class Encoder:
    """A sentence encoder, as sentence-transformers or transformers has saved it. All its results are those of the
    command, to the bit. Several threads may use it at once."""

    def __init__(self, model: _fovea.EncoderModel) -> None:
        if not isinstance(model, _fovea.EncoderModel):
            raise usage_error("Encoder: make one by Encoder.load(folder)", "a model is read from a folder")
        self._model = model

    def __reduce__(self) -> Any:
        raise TypeError("an Encoder cannot be pickled: pass the folder, and load it there")

    @classmethod
    def load(cls, folder: Path, *, precision: str = "float32", adapters: Mapping[Path, float] = {}) -> Self:
        """The model of a folder. `adapters`: folders of PEFT, each with the factor by which it counts: 1 as it was
        trained. They are merged into the weights; a head that one holds is left out. Raises ModelError."""
        precision = option_text("precision", precision)
        return cls(_fovea.EncoderModel(path_of("load", folder), precision, adapters_of(adapters)))

    @property
    def width(self) -> int:
        """The columns of a vector."""
        return self._model.width()

    @documented(_fovea.embed_options())
    def embed(self, texts: Iterable[str], *, threads: int | None = None,
              **options: Unpack[Embedding]) -> NDArray[numpy.float32]:
        """[texts, width] float32: a vector of each text, as `fovea embed` makes it. Texts of any number may come at
        once: they are sorted by length, which changes no bit."""
        given = _options("embed", options)
        vectors: Any = self._model.embed(_texts_of("texts", texts), given, threads_of(threads))
        return vectors  # type: ignore[no-any-return]

    def similar(self, first: str | Iterable[str], second: Iterable[str], *, threads: int | None = None,
                **options: Unpack[Embedding]) -> NDArray[numpy.float64]:
        """[second] float64: the cosine of each text and the one beside it in `first`, as `fovea similar` says it; or,
        if `first` is one text, of each and that. Keywords are those of `embed`."""
        import numpy

        given, b = _options("similar", options), _texts_of("second", second)
        a = [text_of("first", first)] * len(b) if isinstance(first, str) else _texts_of("first", first)
        if len(a) != len(b):
            raise usage_error(f"second: expected {len(a)} texts, one for each of first; got {len(b)}",
                              "both have as many texts, or first is one text", "E0202")
        return numpy.array(self._model.similar(a, b, given, threads_of(threads)), numpy.float64)

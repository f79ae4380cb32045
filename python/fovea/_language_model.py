# SPDX-License-Identifier: Apache-2.0
"""Language models: training, generation, evaluation. What only some calls need is imported by them, so that
`import fovea` is quick."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _fovea
from ._errors import usage_error
from ._options import documented, training_rows
from ._parts import option_text, text_of, unknown_keyword
from ._paths import Path, adapters_of, path_of, paths_of
from ._threads import threads_of

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray
    from typing_extensions import Unpack

    from ._keywords import Sampling, Training


def _tokens_of(ids: object) -> list[int]:
    """Numbers of tokens, each in 32 bits; the model knows how many there are."""
    hint = "give a list of whole numbers, as encode(text) returns it"
    if not isinstance(ids, Iterable) or isinstance(ids, (str, bytes)):
        raise usage_error(f"ids: expected numbers of tokens; got {type(ids).__name__}", hint)
    tokens = []
    for n, given in enumerate(ids):
        try:
            tokens.append(operator.index(given))
        except TypeError:
            raise usage_error(f"ids[{n}]: expected a whole number; got {given!r}", hint, "E0203") from None
        if not -(1 << 31) <= tokens[-1] < 1 << 31:
            raise usage_error(f"ids[{n}] is {tokens[-1]}, which is no token", hint, "E0202")
    return tokens


def _sampling(function: str, options: Sampling) -> dict[str, str]:
    known = [name for name, _, _ in _fovea.sampling_options()]
    for name in options:
        if name not in known:
            raise unknown_keyword(function, name, {*known, "threads"})
    return {name: option_text(name, value) for name, value in options.items() if value is not None}


class LanguageModel:
    """A language model that has been trained. `load` and `train` make one; all its results are those of the
    command, to the bit. Several threads may use it at once."""

    def __init__(self, model: _fovea.Model, precision: str = "float32") -> None:
        if not isinstance(model, _fovea.Model):
            raise usage_error("LanguageModel: make one by LanguageModel.load(folder) or .train(...)",
                              "a model is read from a folder")
        self._model = model
        self._precision = precision

    def __repr__(self) -> str:
        model = self.config["model"]
        names = ("model", "encoder", "layers", "heads", "width", "block", "position", "vocabulary")
        settings = "".join(f"{name}={model[name]!r}, " for name in names if model[name] != "")
        parameters = sum(array.size for array in self.weights().values())
        return f"LanguageModel({settings}parameters={parameters}, precision={self._precision!r})"

    def __reduce__(self) -> Any:
        raise TypeError("a LanguageModel cannot be pickled: pass the folder, and load it there")

    @classmethod
    def load(
        cls, folder: Path, *, precision: str = "float32", max_context: int = 0, adapters: Mapping[Path, float] = {}
    ) -> LanguageModel:
        """The model of a folder that a training wrote, of one of its checkpoints, of a folder of Hugging Face, or of
        a GGUF file. `precision="bf16"`: its products round their operands to bfloat16, as with the command's option.
        `max_context`: most tokens that a model from elsewhere sees at once; 0: as many as it was trained with.
        `adapters`: folders of adapters, of `train lm --lora` or of PEFT, each with the factor by which it counts: 1 as
        it was trained. They are merged into the weights. Raises ModelError."""
        context = operator.index(max_context)
        precision = option_text("precision", precision)
        return cls(_fovea.Model(path_of("load", folder), precision, context, adapters_of(adapters)), precision)

    @classmethod
    @documented(training_rows())
    def train(
        cls,
        train: Path | Iterable[Path],
        output: Path,
        *,
        resume: bool | Path = False,
        on_update: Callable[[dict[str, Any]], object] | None = None,
        **options: Unpack[Training],
    ) -> LanguageModel:
        """Trains on text files, into the folder `output`, and loads what came of it: `fovea train lm`, whose
        options are the keywords, with underscores. `resume` goes on at the newest checkpoint, or at the one
        that it names. `on_update` is called in this thread with each line of metrics.jsonl (updates and
        evaluations) as it is written; what it raises saves and stops the training, and is raised here. So
        does Ctrl-C, with KeyboardInterrupt. Raises DataError, UsageError, Diverged and the like, with the
        code of the command."""
        from . import _training

        _training.train(_training.Task("lm", training_rows()), train, output, resume, on_update, options)
        return cls.load(output)

    @documented(_fovea.sampling_options())
    def generate(self, prompt: str = "", *, threads: int | None = None, **options: Unpack[Sampling]) -> str:
        """How the model goes on after `prompt`: the `text` of `fovea generate --json`."""
        return "".join(self._generate("generate", prompt, threads, options))

    def stream(self, prompt: str = "", *, threads: int | None = None, **options: Unpack[Sampling]) -> Iterator[str]:
        """What `generate` returns, piece by piece as it is made. Whoever stops reading stops it."""
        return self._generate("stream", prompt, threads, options)

    def chat(self, system: str = "", *, threads: int | None = None, **options: Unpack[Sampling]) -> Chat:
        """A conversation with a model that was trained on such: `fovea generate --chat`. `system` is what it is told
        first; "": its own. Keywords are those of `generate`. Raises ModelError if the model has no chat template that
        fovea knows."""
        given = _sampling("chat", options)
        return Chat(_fovea.Chat(self._model, text_of("system", system), given, threads_of(threads)))

    def _generate(self, function: str, prompt: str, threads: int | None, options: Sampling) -> Iterator[str]:
        texts, count = _sampling(function, options), threads_of(threads)
        text_of("prompt", prompt)
        return _pieces(lambda write: self._model.generate(prompt, texts, count, write))

    def evaluate(self, test: Path | Iterable[Path], *, stride: int = 0, threads: int | None = None) -> dict[str, Any]:
        """How well it predicts text files: the object of `fovea eval --json`. `stride` moves the window of the
        context by so many tokens and counts the last ones alone; 0: windows do not overlap."""
        import json

        options = {"stride": option_text("stride", stride)}
        return dict(json.loads(self._model.evaluate(paths_of("test", test), options, threads_of(threads))))

    def encode(self, text: str) -> list[int]:
        """The tokens of a text."""
        return list(self._model.encode(text_of("text", text)))

    def decode(self, ids: Sequence[int]) -> str:
        """The text of tokens; bytes that are no UTF-8 become U+FFFD."""
        return self._model.decode(_tokens_of(ids)).decode()

    def logits(self, ids: Sequence[int], *, threads: int | None = None) -> NDArray[numpy.float32]:
        """[N, V] float32: the logits of the token that follows each of N tokens, at most `block` many."""
        logits: Any = self._model.logits(_tokens_of(ids), threads_of(threads))
        return logits  # type: ignore[no-any-return]

    def weights(self) -> dict[str, NDArray[numpy.float32]]:
        """The parameters by name, as read-only arrays of the memory of the model."""
        arrays = dict(self._model.weights())
        for array in arrays.values():
            array.flags.writeable = False
        return arrays

    @property
    def config(self) -> dict[str, Any]:
        """The object of config.json."""
        import json

        return dict(json.loads(self._model.config()))


class Chat:
    """A conversation, which remembers its turns: `LanguageModel.chat` begins one. When they no longer fit into the
    context, the oldest question is forgotten with its answer."""

    def __init__(self, chat: _fovea.Chat) -> None:
        if not isinstance(chat, _fovea.Chat):
            raise usage_error("Chat: begin one by chat() of a LanguageModel", "a conversation needs a model")
        self._chat = chat

    def answer(self, message: str) -> str:
        """The answer to a message: the `text` of `fovea generate --chat --json`."""
        return "".join(self.stream(message))

    def stream(self, message: str) -> Iterator[str]:
        """What `answer` returns, piece by piece as it is made. Whoever stops reading stops it."""
        text_of("message", message)
        return _pieces(lambda write: self._chat.answer(message, write))


def _pieces(generate: Callable[[Callable[[bytes], bool]], int]) -> Iterator[str]:
    """What `generate` writes, made by a thread while the caller reads."""
    import queue
    import threading

    pieces: queue.Queue[str | BaseException | None] = queue.Queue(maxsize=16)
    stopped, main = threading.Event(), threading.main_thread()

    def put(piece: str | BaseException | None) -> bool:
        while not stopped.is_set() and main.is_alive():  # a process that ends waits for this thread
            try:
                pieces.put(piece, timeout=0.1)
                return True
            except queue.Full:
                pass
        return False

    def work() -> None:
        try:
            generate(lambda text: put(text.decode()))
            put(None)
        except BaseException as error:
            put(error)

    worker = threading.Thread(target=work)

    def read() -> Iterator[str]:
        worker.start()
        try:
            while (piece := pieces.get()) is not None:
                if isinstance(piece, BaseException):
                    raise piece
                yield piece
        finally:
            stopped.set()
            worker.join()

    return read()

# SPDX-License-Identifier: Apache-2.0
"""The operator on arrays of numpy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from . import _fovea, _parts
from ._errors import UsageError, usage_error
from ._options import documented
from ._threads import threads_of

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Unpack

    from ._keywords import Parts, Results
    from ._symbols import TracedFunction

    _Traced = tuple[TracedFunction | None, TracedFunction | None]  # score_mod and mask_mod
    _Results = Results[NDArray[Any]]
else:
    _Results = object  # `import fovea` is quick: what is for type checkers alone is not loaded


class Attended(_Results):
    """The results of `attend`: `o`, `lse`, and what was observed, as attributes."""

    def __init__(self, call: _fovea.Call, asked: _parts.Asked, traced: _Traced) -> None:
        self._call = call
        self._asked = asked
        self._traced = traced
        self._results: dict[str, NDArray[Any]] = dict(call.results())
        self._plan: dict[str, Any] | None = None

    if not TYPE_CHECKING:  # to which a result that is not there is an error
        def __getattr__(self, name: str) -> Any:
            results = self.__dict__.get("_results", {})
            if name in results:
                return results[name]
            raise _parts.no_result(name, results)

    def __repr__(self) -> str:
        return _parts.described("Attended", self._results, self._asked)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._results]

    def __reduce__(self) -> Any:
        raise TypeError("the results of attend cannot be pickled: pickle its arrays")

    @property
    def plan(self) -> dict[str, Any]:
        """The object of `fovea attention --plan --json`."""
        if self._plan is None:
            import json  # here, so that `import fovea` is quick

            self._plan = json.loads(self._call.plan())
        return self._plan

    def backward(self, do: Any, dlse: Any = None) -> dict[str, NDArray[Any]]:
        """The gradients, given that of o, [B, T, H, Dv], and of lse, [B, H, T] (None: 0): "dq", "dk", "dv",
        and "dX" for each part X of numbers ("dbias", "dslopes", ...), in the shapes of those. What `score_mod`
        captured gets its gradient as `grad`. The arrays of the forward must be unchanged. May be called several
        times: each gives the gradients of its own `do` alone."""
        if do is None:
            raise usage_error("backward: do: expected an array; got None", "give the gradient of o, [B, T, H, Dv]")
        given = {"do": do} if dlse is None else {"do": do, "dlse": dlse}
        learns = [name for name in ("q", "k", "v", *self._asked.arrays) if name in _parts.float_tensors()]
        with _Reading(given, self._traced):
            gradients: dict[str, NDArray[Any]] = dict(self._call.backward(do, dlse, learns))
        score_mod = self._traced[0]
        if score_mod is not None:
            score_mod.store(gradients)
        return gradients


@documented(_parts.keyword_rows())
def attend(
    q: Any, k: Any, v: Any, *, score_mod: Callable[..., Any] | None = None,
    mask_mod: Callable[..., Any] | None = None, threads: int | None = None, **parts: Unpack[Parts],
) -> Attended:
    """Computes attention, and keeps what a backward needs.

    q [B, T, H, D], k [B, S, G, D], v [B, S, G, Dv]: float32 or float64, numpy or DLPack, D and Dv
    contiguous, other strides free; nothing is copied. By DLPack they may be bfloat16, and parts float32: with
    precision="bf16" they are computed as they are, else converted. H is a multiple of G. `parts` are the keywords
    below: the tensors and options of the command `fovea attention`, with underscores.
    score_mod(score, b, h, q_idx, kv_idx) returns the new score, given that of the other parts;
    mask_mod(b, h, q_idx, kv_idx) whether it is kept, if the other masks keep it. Both are called once, with
    symbols, and run by vectors; the arrays that they read are `fovea.captured`. Sequences that are packed by
    query_offsets have neither.
    Sources: Vaswani et al. 2017, eq. 1; of traced functions Dong et al. 2024. Raises UsageError, which names
    the argument, the axis and both sizes, and for what cannot be traced file and line; OutOfMemory.
    """
    return _attend("attend", (q, k, v), (score_mod, mask_mod), threads, parts)


def attention(
    q: Any, k: Any, v: Any, *, score_mod: Callable[..., Any] | None = None,
    mask_mod: Callable[..., Any] | None = None, threads: int | None = None, **parts: Unpack[Parts],
) -> NDArray[Any]:
    """The output o [B, T, H, Dv] of `attend`, which says what it takes and raises."""
    if parts.get("observe"):
        raise usage_error("attention: observe: only o is returned", "call fovea.attend, whose result has all")
    return _attend("attention", (q, k, v), (score_mod, mask_mod), threads, parts).o


def _attend(
    function: str, operands: tuple[Any, Any, Any], mods: tuple[Callable[..., Any] | None, Callable[..., Any] | None],
    threads: int | None, parts: Mapping[str, Any],
) -> Attended:
    asked = _parts.split(function, parts)
    arrays = {**dict(zip("qkv", operands)), **asked.arrays}
    score, mask = (None if mod is None else _traced(name, mod) for name, mod in zip(("score_mod", "mask_mod"), mods))
    with _Reading(arrays, (score, mask)):
        native = (None if one is None else one.native for one in (score, mask))
        call = _fovea.Call(arrays, asked.texts, threads_of(threads), *native)
    return Attended(call, asked, (score, mask))


class _Reading:
    """Inside, the arrays are read. What the extension cannot read is named by what it is. (A class, since a
    generator would cost microseconds a call.)"""

    def __init__(self, arrays: dict[str, Any], traced: _Traced) -> None:
        self._arrays = arrays
        self._traced = traced
        for name, array in arrays.items():
            _parts.refuse_masked(name, array)

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if isinstance(error, UsageError):
            for name, array in self._arrays.items():
                _parts.refuse_memory(name, array)
            if any(function is not None for function in self._traced):
                from ._tracing import name_tables  # here, so that `import fovea` is quick

                name_tables(error, self._traced)


def _traced(name: str, function: Callable[..., Any]) -> TracedFunction:
    from ._symbols import TracedFunction  # here, so that `import fovea` is quick

    return TracedFunction(name, function)

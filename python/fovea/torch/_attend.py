# SPDX-License-Identifier: Apache-2.0
"""The operator with parts, on tensors."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from .. import _fovea, _parts
from .._options import documented
from .._threads import threads_of
from .._tracing import NamedTables
from ._captures import Captures
from ._once import differentiable_once
from ._sdpa import autocast_type
from ._shapes import readable, refuse_tracing
from ._symbols import TracedFunction

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .._keywords import Parts, Results

    _Results = Results[torch.Tensor]
else:
    _Results = object

_HALVES = (torch.bfloat16, torch.float16)


class Attended(_Results):
    """The results of `attend`: `o` and `lse`, which have gradients, and what was observed, which has none."""

    def __init__(self, call: _fovea.Call, results: dict[str, torch.Tensor], asked: _parts.Asked) -> None:
        self._call = call
        self._results = results
        self._asked = asked

    if not TYPE_CHECKING:  # to which a result that is not there is an error
        def __getattr__(self, name: str) -> torch.Tensor:
            results = self.__dict__.get("_results", {})
            if name in results:
                return results[name]
            raise _parts.no_result(name, results)

    def __repr__(self) -> str:
        return _parts.described("Attended", self._results, self._asked)

    @property
    def plan(self) -> dict[str, Any]:
        """The object of `fovea attention --plan --json`."""
        return dict(json.loads(self._call.plan()))


class _Asked:
    """A call but for its tensors: what is not differentiated."""

    def __init__(self, names: list[str], texts: dict[str, str], threads: int, mods: tuple[Any, Any]) -> None:
        self.names = names
        self.texts = texts
        self.threads = threads
        self.score, self.mask = (None if mod is None else TracedFunction(name, mod)
                                 for name, mod in zip(("score_mod", "mask_mod"), mods))
        self.learned = [] if self.score is None else self.score.learned()
        self.captures = Captures(x for mod in (self.score, self.mask) if mod is not None for x in mod.tables)
        self.results: dict[str, torch.Tensor] = {}
        self.call: _fovea.Call

    def run(self, tensors: tuple[torch.Tensor, ...]) -> dict[str, torch.Tensor]:
        """The results, given the tensors of `names`, and what score_mod has captured and learns."""
        parts = {n: t.detach() for n, t in zip(self.names, tensors)}
        replaced = {id(one): given for one, given in zip(self.learned, tensors[len(self.names):])}
        mods = [None if mod is None else mod.arrays(replaced) for mod in (self.score, self.mask)]
        with NamedTables(self.score, self.mask):
            self.call = _fovea.Call(parts, self.texts, self.threads, *mods)
        self.results = {name: torch.from_numpy(array) for name, array in self.call.results().items()}
        return self.results

    def gradients(self, do: torch.Tensor, dlse: torch.Tensor | None, learns: list[str]) -> list[torch.Tensor | None]:
        with NamedTables(self.score, self.mask):
            found = {n: torch.from_numpy(array) for n, array in self.call.backward(do, dlse, learns).items()}
        captured = [] if self.score is None else self.score.summed(
            [found.get(f"captured{n}") for n in range(len(self.score.tables))])
        return [found["d" + n] if n in learns else None for n in self.names] + captured


class _Attend(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, asked: _Asked, *tensors: Any) -> Any:
        results = asked.run(tensors)
        # Softmax alone has an lse.
        outputs = [results[name].detach() if name in results else None for name in ("o", "lse")]
        ctx.save_for_backward(*tensors, *outputs)  # so that autograd sees a change of one before the backward
        ctx.set_materialize_grads(False)
        ctx.asked = asked
        ctx.o = results["o"].shape, results["o"].dtype
        return tuple(outputs)

    @staticmethod
    @differentiable_once
    def backward(ctx: Any, do: torch.Tensor | None, dlse: torch.Tensor | None) -> Any:
        saved = ctx.saved_tensors  # raises for a tensor that was changed
        ctx.asked.captures.check()
        learns = [name for name, need in zip(ctx.asked.names, ctx.needs_input_grad[1:]) if need]
        shape, dtype = ctx.o
        do = torch.zeros(shape, dtype=dtype) if do is None else do
        dlse = None if dlse is None else dlse.detach().contiguous()
        return (None, *ctx.asked.gradients(readable(do.detach()), dlse, learns))


@documented(_parts.keyword_rows())
def attend(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, score_mod: Callable[..., Any] | None = None,
    mask_mod: Callable[..., Any] | None = None, threads: int | None = None, **parts: Unpack[Parts],
) -> Attended:
    """fovea.attend on tensors: q [B, T, H, D], k [B, S, G, D], v [B, S, G, Dv] of one type, and parts of which
    those of numbers learn, as does what score_mod captures: plain tensors, as in flex_attention. The gradient
    flows through `o` and `lse`. `o` has the type of q: with q, k and v of bfloat16 the precision is "bf16", in
    which scores, sums and parts are float32; float16 is computed in float32."""
    refuse_tracing("attend")
    given = _parts.split("attend", parts)
    arrays, texts = {"q": q, "k": k, "v": v, **given.arrays}, given.texts
    tensors = [x if isinstance(x, torch.Tensor) else torch.as_tensor(x) for x in arrays.values()]
    rounds = all(x.dtype == torch.bfloat16 for x in tensors[:3]) and texts.get("precision", "auto") in ("auto", "bf16")
    if rounds:
        texts["precision"] = "bf16"
    returned = autocast_type(tensors[0].dtype)
    tensors = [x.float() if x.dtype in _HALVES and not (rounds and n < 3) else x for n, x in enumerate(tensors)]
    asked = _Asked(list(arrays), texts, threads_of(threads, torch.get_num_threads()), (score_mod, mask_mod))
    o, lse = _Attend.apply(asked, *tensors, *asked.learned)  # type: ignore[no-untyped-call]
    results = {**asked.results, "o": o.to(returned)}
    if lse is not None:
        results["lse"] = lse
    return Attended(asked.call, results, given)


def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, score_mod: Callable[..., Any] | None = None,
    mask_mod: Callable[..., Any] | None = None, threads: int | None = None, **parts: Unpack[Parts],
) -> torch.Tensor:
    """The output o [B, T, H, Dv] of `attend`."""
    return attend(q, k, v, score_mod=score_mod, mask_mod=mask_mod, threads=threads, **parts).o

# SPDX-License-Identifier: Apache-2.0
"""PyTorch's side of crf.py: pytorch-crf, and ways to write the recursion by hand, also compiled. All take [T, B, K]."""
import os
import statistics
import time

import common

try:
    import torch
except ImportError as error:
    torch, ABSENT = None, str(error)
try:
    from torchcrf import CRF
except ImportError:
    CRF = None


class Chain(torch.nn.Module if torch else object):
    """A linear chain written by hand: x [T, B, K], tags and mask [T, B], lengths [B]."""

    def __init__(self, tags):
        super().__init__()
        self.transitions, self.start, self.end = (
            torch.nn.Parameter(torch.empty(shape).uniform_(-.1, .1)) for shape in ((tags, tags), (tags,), (tags,)))

    def gold(self, x, tags, mask, lengths):
        on = mask.to(x.dtype)
        score = (x.gather(2, tags[..., None])[..., 0] * on).sum()
        score = score + (self.transitions[tags[:-1], tags[1:]] * on[1:]).sum()
        last = tags.gather(0, (lengths - 1)[None])[0]
        return score + self.start[tags[0]].sum() + self.end[last].sum()

    def partition(self, x, mask, step):
        alpha = self.start + x[0]
        for t in range(1, len(x)):
            alpha = torch.where(mask[t][:, None], step(alpha) + x[t], alpha)
        return torch.logsumexp(alpha + self.end, 1).sum()

    def by_logsumexp(self):
        return lambda alpha: torch.logsumexp(alpha[:, :, None] + self.transitions, 1)

    def by_products(self):
        matrix = self.transitions.exp()

        def step(alpha):
            most = alpha.detach().amax(1, keepdim=True)
            return most + torch.log((alpha - most).exp() @ matrix)

        return step

    def loss(self, x, tags, mask, lengths, way="products"):
        step = self.by_products() if way == "products" else self.by_logsumexp()
        return self.partition(x, mask, step) - self.gold(x, tags, mask, lengths)

    def decode(self, x, mask):
        best, back = self.start + x[0], []
        for t in range(1, len(x)):
            score, before = (best[:, :, None] + self.transitions).max(1)
            best = torch.where(mask[t][:, None], score + x[t], best)
            back.append(before)
        tags = (best + self.end).argmax(1)
        path = [tags]
        for t in range(len(x) - 1, 0, -1):
            tags = torch.where(mask[t], back[t - 1].gather(1, tags[:, None])[:, 0], tags)
            path.append(tags)
        return torch.stack(path[::-1])


COMPILED = ", compiled"  # ends the name of a way


class Problem:
    def __init__(self, tags, batch, way):
        torch.manual_seed(1)
        self.lengths = torch.tensor([20 + 7 * s % 21 for s in range(batch)])
        steps = int(self.lengths.max())
        self.x = torch.randn(steps, batch, tags).requires_grad_()
        self.tags = torch.randint(tags, (steps, batch))
        self.mask = torch.arange(steps)[:, None] < self.lengths[None]
        self.chain = Chain(tags)
        self.layer = CRF(tags) if CRF else None
        self.way = way.removesuffix(COMPILED)
        self.of_loss, self.of_paths = self.chain.loss, self.chain.decode
        if way.endswith(COMPILED):  # as one graph, or an error: never in part eager
            torch.compiler.reset()
            self.of_loss, self.of_paths = (torch.compile(f, fullgraph=True, dynamic=False)
                                           for f in (self.of_loss, self.of_paths))

    def clear(self):
        own = self.layer.parameters() if self.layer else ()
        for leaf in (self.x, *self.chain.parameters(), *own):
            leaf.grad = None

    def loss(self):
        if self.way == "pytorch-crf":
            return -self.layer(self.x, self.tags, self.mask)
        return self.of_loss(self.x, self.tags, self.mask, self.lengths, self.way)

    def decode(self):
        if self.way == "pytorch-crf":
            return self.layer.decode(self.x, self.mask)
        return self.of_paths(self.x, self.mask)


def measure(what, way, tags, batch, calls):
    problem = Problem(tags, batch, way)
    if way == "pytorch-crf" and problem.layer is None:
        return {"left_out": "pytorch-crf is not installed"}

    def call():
        if what == "decode":
            with torch.no_grad():
                problem.decode()
        else:
            problem.clear()
            problem.loss().backward()

    seconds = []
    for _ in range(calls + 3):
        begin = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - begin)
    return {"seconds": statistics.median(seconds[3:]), "fastest": min(seconds[3:])}


def main():
    if torch is None:
        return common.serve({"absent": ABSENT}, None)
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    common.serve({"ready": torch.__version__}, measure)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""PyTorch's side of crf.py: pytorch-crf, and two ways to write the recursion by hand. All take [T, B, K]."""
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


class Problem:
    def __init__(self, tags, batch):
        torch.manual_seed(1)
        self.lengths = torch.tensor([20 + 7 * s % 21 for s in range(batch)])
        steps = int(self.lengths.max())
        self.x = torch.randn(steps, batch, tags).requires_grad_()
        self.tags = torch.randint(tags, (steps, batch))
        self.mask = torch.arange(steps)[:, None] < self.lengths[None]
        self.transitions, self.start, self.end = (
            torch.empty(shape).uniform_(-.1, .1).requires_grad_() for shape in ((tags, tags), (tags,), (tags,)))
        self.layer = CRF(tags) if CRF else None

    def clear(self):
        own = self.layer.parameters() if self.layer else ()
        for leaf in (self.x, self.transitions, self.start, self.end, *own):
            leaf.grad = None

    def gold(self):
        on = self.mask.to(self.x.dtype)
        score = (self.x.gather(2, self.tags[..., None])[..., 0] * on).sum()
        score = score + (self.transitions[self.tags[:-1], self.tags[1:]] * on[1:]).sum()
        last = self.tags.gather(0, (self.lengths - 1)[None])[0]
        return score + self.start[self.tags[0]].sum() + self.end[last].sum()

    def partition(self, step):
        alpha = self.start + self.x[0]
        for t in range(1, len(self.x)):
            alpha = torch.where(self.mask[t][:, None], step(alpha) + self.x[t], alpha)
        return torch.logsumexp(alpha + self.end, 1).sum()

    def loss(self, way):
        if way == "pytorch-crf":
            return -self.layer(self.x, self.tags, self.mask)
        if way == "logsumexp":
            return self.partition(lambda alpha: torch.logsumexp(alpha[:, :, None] + self.transitions, 1)) - self.gold()
        matrix = self.transitions.exp()

        def step(alpha):
            most = alpha.detach().amax(1, keepdim=True)
            return most + torch.log((alpha - most).exp() @ matrix)

        return self.partition(step) - self.gold()

    def decode(self, way):
        if way == "pytorch-crf":
            return self.layer.decode(self.x, self.mask)
        best, back = self.start + self.x[0], []
        for t in range(1, len(self.x)):
            score, before = (best[:, :, None] + self.transitions).max(1)
            best = torch.where(self.mask[t][:, None], score + self.x[t], best)
            back.append(before)
        tags = (best + self.end).argmax(1)
        path = [tags]
        for t in range(len(self.x) - 1, 0, -1):
            tags = torch.where(self.mask[t], back[t - 1].gather(1, tags[:, None])[:, 0], tags)
            path.append(tags)
        return torch.stack(path[::-1])


def measure(what, way, tags, batch, calls):
    problem = Problem(tags, batch)
    if way == "pytorch-crf" and problem.layer is None:
        return {"absent": "pytorch-crf is not installed"}

    def call():
        if what == "decode":
            with torch.no_grad():
                problem.decode(way)
        else:
            problem.clear()
            problem.loss(way).backward()

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

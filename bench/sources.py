#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The language models of chapter 6 of Hands-on NLP in PyTorch, computed as the chapter computes them:
one step of an RNN at a time, the history stacked (and, with several heads, projected) again at each step,
one sentence at a time for the Transformer. `fovea reproduce prince --pytorch` times an epoch with it.

    python3 bench/sources.py --data DIR --only E4 --epochs 3

DIR/little_prince/ids40.txt holds the sentences: 40 ids a line, 0 is padding. The defects of the chapter's
code are on, unless --fixed is given.
"""
import argparse
import math
import os
import pathlib
import statistics
import sys
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import torch  # noqa: E402
from torch import nn  # noqa: E402

WIDTH, HEADS, HIDDEN, LENGTH = 128, 4, 512, 40


def start_small(linear):
    """As the weights of the RNN start: all matrices of the chapter's recurrent models, the output's too."""
    nn.init.normal_(linear.weight, std=0.01)
    nn.init.zeros_(linear.bias)


class AttentionRnn(nn.Module):
    """A tanh RNN; each output is attention over the states before it, with the defects of the book's code or not."""

    def __init__(self, heads, fixed):
        super().__init__()
        self.heads, self.fixed = heads, fixed
        self.W_xh = nn.Parameter(torch.randn(WIDTH, WIDTH) * 0.01)
        self.W_hh = nn.Parameter(torch.randn(WIDTH, WIDTH) * 0.01)
        self.b_h = nn.Parameter(torch.zeros(WIDTH))
        if heads > 1:
            self.q, self.k, self.v, self.c = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
            for projection in (self.q, self.k, self.v, self.c):
                start_small(projection)

    def attend(self, state, history):
        keys = torch.stack(history, dim=1)
        query = state.unsqueeze(1)
        if self.heads == 1:
            return self.weigh(query, keys, keys).squeeze(1)
        query, keys, values = self.q(query), self.k(keys), self.v(keys)
        size = WIDTH // self.heads
        parts = [self.weigh(query[..., n:n + size], keys[..., n:n + size], values[..., n:n + size])
                 for n in range(0, WIDTH, size)]
        return self.c(torch.cat(parts, dim=-1)).squeeze(1)

    def weigh(self, query, keys, values):
        scores = query @ keys.transpose(1, 2) / math.sqrt(query.shape[-1])
        return torch.softmax(scores, dim=-1 if self.fixed else 1) @ values

    def forward(self, x):
        state = x.new_zeros(x.shape[0], WIDTH)
        history, outputs = [], []
        for t in range(x.shape[1]):
            state = torch.tanh(x[:, t] @ self.W_xh + state @ self.W_hh + self.b_h)
            if self.fixed:
                history.append(state)
                outputs.append(self.attend(state, history))
            else:
                outputs.append(self.attend(state, history) if history else state)
                history.append(state)
        return torch.stack(outputs, dim=1)


class UnbiasedNorm(nn.Module):
    """Layer norm by the unbiased deviation, plus eps outside of the root, as the book's code has it."""

    def __init__(self):
        super().__init__()
        self.gain, self.bias = nn.Parameter(torch.ones(WIDTH)), nn.Parameter(torch.zeros(WIDTH))

    def forward(self, x):
        return self.gain * (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-6) + self.bias


class Transformer(nn.Module):
    """One post-norm layer with learned positions: the book's language model."""

    def __init__(self, fixed):
        super().__init__()
        self.positions = nn.Embedding(LENGTH, WIDTH)
        self.q, self.k, self.v, self.c = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.up, self.down = nn.Linear(WIDTH, HIDDEN), nn.Linear(HIDDEN, WIDTH)
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) if fixed else UnbiasedNorm() for _ in range(2))

    def forward(self, x):
        B, T, C = x.shape
        x = x + self.positions(torch.arange(T))
        q, k, v = (f(x).view(B, T, HEADS, C // HEADS).transpose(1, 2) for f in (self.q, self.k, self.v))
        scores = q @ k.transpose(2, 3) / math.sqrt(C // HEADS)
        later = torch.ones(T, T).tril().expand(B, HEADS, T, T) == 0
        weights = torch.softmax(scores.masked_fill(later, -1e6), dim=-1)
        y = self.c((weights @ v).transpose(1, 2).reshape(B, T, C))
        x = self.norms[0](x + y)
        return self.norms[1](x + self.down(torch.relu(self.up(x))))


class LanguageModel(nn.Module):
    def __init__(self, body, vocabulary):
        super().__init__()
        self.tokens, self.body = nn.Embedding(vocabulary, WIDTH), body
        self.output = nn.Linear(WIDTH, vocabulary)
        if isinstance(body, AttentionRnn):
            start_small(self.output)

    def forward(self, ids):
        return self.output(self.body(self.tokens(ids)))


CASES = {  # batch of sentences; the body of the model
    "E4": (16, lambda fixed: AttentionRnn(1, fixed)),
    "E5": (16, lambda fixed: AttentionRnn(HEADS, fixed)),
    "E9": (1, Transformer),
}


def epoch(model, optimizer, ids, batch):
    """The losses of the steps."""
    losses = []
    for rows in torch.randperm(len(ids)).split(batch):
        chosen = ids[rows]
        logits = model(chosen)[:, :-1]
        loss = nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), chosen[:, 1:].reshape(-1),
                                           ignore_index=0)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1)
        optimizer.step()
        losses.append(loss.item())
    return losses


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--only", choices=CASES, required=True)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fixed", action="store_true", help="without the defects")
    parser.add_argument("--seconds", action="store_true", help="print the median seconds of an epoch alone")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    lines = (options.data / "little_prince/ids40.txt").read_text(encoding="ascii").splitlines()
    ids = torch.tensor([[int(word) for word in line.split()] for line in lines])
    batch, body = CASES[options.only]
    model = LanguageModel(body(options.fixed), int(ids.max()) + 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    seconds = []
    for number in range(1, options.epochs + 1):
        began = time.perf_counter()
        losses = epoch(model, optimizer, ids, batch)
        seconds.append(time.perf_counter() - began)
        if not options.seconds:
            parameters = sum(p.numel() for p in model.parameters())
            print(f"{options.only} epoch {number}: mean {statistics.mean(losses):.4f}, last 16 "
                  f"{statistics.mean(losses[-16:]):.4f}, last {losses[-1]:.4f}, {seconds[-1]:.2f} s, "
                  f"{parameters} parameters", flush=True)
    if options.seconds:
        print(statistics.median(seconds))


if __name__ == "__main__":
    sys.exit(main())

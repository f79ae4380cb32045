#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The text classifiers of `fovea reproduce imdb` in PyTorch: E1 (no positions), E2 (sinusoidal), P9 (learned),
E3 (an LSTM), on windows of 80 tokens, padding included, batches of 32. `fovea reproduce imdb --pytorch` times an
epoch with it; the time does not depend on which tokens there are, so it makes its own.

    python3 bench/imdb.py --only E1 --seconds
    python3 bench/imdb.py --only E1 E2 --steps 300 --against build/release/cli/fovea --data DIR

--against measures in turns with fovea: both in processes of their own, a round each after the other. --unlocked
gives PyTorch's library MKL its fastest kernels on AMD.
"""
import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import torch  # noqa: E402
from torch import nn  # noqa: E402

import common  # noqa: E402

WORDS, LENGTH, WIDTH, HEADS, BATCH, REVIEWS = 20000, 80, 128, 8, 32, 25000


class Attention(nn.Module):
    """Heads side by side, no projection after them, no bias (Su 2018, kexue.fm/4765)."""

    def __init__(self, scale):
        super().__init__()
        self.scale = scale
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (y.view(B, T, HEADS, C // HEADS).transpose(1, 2) for y in self.qkv(x).chunk(3, dim=-1))
        y = nn.functional.scaled_dot_product_attention(q, k, v, scale=self.scale)
        return y.transpose(1, 2).reshape(B, T, C)


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(WIDTH, WIDTH, batch_first=True)

    def forward(self, x):
        return self.lstm(x)[0]


def sinusoids():
    angles = torch.arange(LENGTH)[:, None] / 10000 ** (torch.arange(0, WIDTH, 2) / WIDTH)
    return torch.cat([angles.sin(), angles.cos()], dim=1)


class Classifier(nn.Module):
    def __init__(self, only, scale):
        super().__init__()
        self.tokens = nn.Embedding(WORDS, WIDTH)
        nn.init.uniform_(self.tokens.weight, -0.05, 0.05)
        self.positions = {"E2": sinusoids(), "P9": nn.Parameter(torch.rand(LENGTH, WIDTH) * 0.1 - 0.05)}.get(only)
        self.body = Lstm() if only == "E3" else Attention(scale)
        self.output = nn.Linear(WIDTH, 1)

    def forward(self, ids):
        x = self.tokens(ids)
        if self.positions is not None:
            x = x + self.positions
        pooled = nn.functional.dropout(self.body(x).mean(1), 0.5, self.training)
        return self.output(pooled).squeeze(1)


class Training:
    def __init__(self, only, options):
        torch.manual_seed(options.seed)
        self.model = Classifier(only, None if options.scaled else 1.0)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3, eps=1e-7, fused=True)
        self.forward = torch.compile(self.model) if options.compile else self.model
        # Frequent words are frequent, as in texts: rank r occurs about 1 / r as often as rank 1.
        weights = 1 / torch.arange(1, WORDS + 1)
        self.ids = torch.multinomial(weights, REVIEWS * LENGTH, replacement=True).view(REVIEWS, LENGTH)
        self.labels = torch.randint(0, 2, (REVIEWS,)).float()

    def steps(self, count):
        """The seconds that `count` updates took."""
        began = time.perf_counter()
        done = 0
        while done < count:
            for rows in torch.randperm(REVIEWS).split(BATCH)[:count - done]:
                logits = self.forward(self.ids[rows])
                loss = nn.functional.binary_cross_entropy_with_logits(logits, self.labels[rows])
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                loss.item()
                done += 1
        return time.perf_counter() - began


def milliseconds_of_fovea(options):
    """Of an update of each experiment, from a trial with `steps` updates an epoch: the median of five epochs."""
    with tempfile.TemporaryDirectory() as folder:
        command = [options.against, "reproduce", "imdb", "--data", str(options.data), "--compat", "--seeds", "1",
                   "--share", str(options.steps * BATCH / REVIEWS), "--threads", str(options.threads), "--json",
                   "-q", "-o", folder]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    found = {}
    for row in map(json.loads, done.stdout.splitlines()):
        scaled, name = row["variant"] == "compat-scaled", row["experiment"]
        if row["seconds_per_epoch"] and (scaled == options.scaled or name in ("E3", "P9")):
            found[name] = 1000 * row["seconds_per_epoch"] / options.steps
    if not found.keys() >= set(options.only):
        raise SystemExit(f"fovea printed no time: {done.stdout}")
    return found


def measure_in_turns(options, trainings):
    ratios = {name: [] for name in trainings}
    for number in range(1, options.rounds + 1):
        ours = milliseconds_of_fovea(options)
        for name, training in trainings.items():
            theirs = 1000 * training.steps(options.steps) / options.steps
            ratios[name].append(theirs / ours[name])
            print(f"round {number}: {name}: fovea {ours[name]:.2f} ms, PyTorch {theirs:.2f} ms an update, "
                  f"{ratios[name][-1]:.2f} times", flush=True)
    for name, all_rounds in ratios.items():
        print(f"{name}, median: {statistics.median(all_rounds):.2f} times as fast as PyTorch")


def run_again_unlocked():
    """MKL asks as soon as it is loaded, so a new process is needed."""
    arguments = [argument for argument in sys.argv if argument != "--unlocked"]
    environment = {**os.environ, **common.unlocked_mkl()}
    sys.exit(subprocess.run([sys.executable, *arguments], env=environment, check=False).returncode)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, help="folder of the data, for --against")
    parser.add_argument("--only", nargs="+", choices=["E1", "E2", "E3", "P9"], required=True)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--steps", type=int, default=200, help="updates of a round of --against")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--scaled", action="store_true", help="scores divided by the root of the width of a head")
    parser.add_argument("--compile", action="store_true", help="by torch.compile")
    parser.add_argument("--seconds", action="store_true", help="print the median seconds of an epoch alone")
    parser.add_argument("--against", help="the command fovea: measure in turns with it")
    parser.add_argument("--unlocked", action="store_true", help="PyTorch with MKL's fastest kernels")
    options = parser.parse_args()
    if options.unlocked:
        return run_again_unlocked()
    torch.set_num_threads(options.threads)
    trainings = {name: Training(name, options) for name in options.only}
    for training in trainings.values():
        training.steps(20)  # warm up, and compile
    if options.against:
        return measure_in_turns(options, trainings)
    updates = math.ceil(REVIEWS / BATCH)
    for name, training in trainings.items():
        seconds = [training.steps(updates) for _ in range(options.epochs)]
        print(statistics.median(seconds) if options.seconds else
              f"{name}: {statistics.median(seconds):.2f} s an epoch, "
              f"{sum(p.numel() for p in training.model.parameters())} parameters")


if __name__ == "__main__":
    sys.exit(main())

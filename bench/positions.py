#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every `--position` of train lm beside `learned`: validation loss and speed, in turns.

  bench/positions.py PATH/input.txt [--rounds 3] [--updates 2000] [--also="--qk-norm" ...]

The recipe of bench/shakespeare.py; each round is a seed. Speed is tokens/s over those of `learned`
in the same round, the median of the rounds. Exits 1 if a position is below .85.
"""
import argparse
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

import common
from shakespeare import RECIPE

LEAST = 0.85


def positions(options):
    said = subprocess.run([options.fovea, "train", "lm", "--help"], capture_output=True, encoding="utf-8", check=True)
    return re.search(r"--position ([\w|-]+)", said.stdout)[1].split("|")


def train(options, arguments, seed):
    with tempfile.TemporaryDirectory() as folder:
        return common.fovea(options, "train", "lm", "--train", options.text, "-o", pathlib.Path(folder) / "model",
                            *RECIPE, "--lr", options.lr, "--stop-after", f"{options.updates}u",
                            "--eval-every", f"{options.updates}u", "--save-every", f"{options.updates}u",
                            "--seed", seed, "--threads", options.threads, *arguments)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=pathlib.Path, help="tinyshakespeare's input.txt")
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--updates", type=int, default=2000)
    parser.add_argument("--also", action="append", default=[], help="other options, beside the positions")
    common.add_common_options(parser, rounds=3)
    options = parser.parse_args()
    common.need_binary(options)
    print(common.machine(options))
    rows = {f"--position {p}": ["--position", p] for p in positions(options)}
    rows.update({also: also.split() for also in options.also})
    losses, ratios = {name: [] for name in rows}, {name: [] for name in rows}
    for seed in range(1, options.rounds + 1):
        learned = None
        for name, arguments in rows.items():
            found = train(options, arguments, seed)
            learned = learned or found["tokens_per_second"]
            losses[name].append(found["valid_loss"])
            ratios[name].append(found["tokens_per_second"] / learned)
            print(f"seed {seed}, {name}: {found['valid_loss']:.4f}, {found['tokens_per_second']:,.0f} tokens/s",
                  flush=True)
    print(f"\n| Options | Validation loss, mean of {options.rounds} | Speed |\n|---|---|---|")
    for name in rows:
        loss = statistics.mean(losses[name])
        print(f"| `{name}` | {loss:.4f} ({min(losses[name]):.4f} to {max(losses[name]):.4f})"
              f" | {statistics.median(ratios[name]):.2f} |")
    slow = [name for name in rows if name not in options.also and statistics.median(ratios[name]) < LEAST]
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())

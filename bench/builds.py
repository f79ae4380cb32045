#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two builds of fovea in turns: attention and training steps, the time of one over that of the other.

  bench/builds.py --before PATH/old/fovea [--fovea PATH/new/fovea] [--text PATH/input.txt] [--rounds 9]
                  [--only 'T128|batch 1$']

A ratio above 1 means that the new build takes longer. It is the median of the rounds; the fastest
runs of both sides are compared as well. Exits 1 if a median is above 1.02.
"""
import argparse
import copy
import pathlib
import re
import statistics
import sys
import tempfile

import common

MOST = 1.02
# B, H, T, D
SHAPES = [(4, 12, 1024, 64), (8, 8, 128, 64), (1, 8, 4096, 64), (1, 8, 4096, 128), (2, 8, 1024, 32)]
STEPS = {
    "step, batch 12": "--batch-size 12 --stop-after 150u",
    "step, batch 1": "--batch-size 1 --stop-after 1200u",
}


def attention_times(options, shape, mask):
    B, H, T, D = shape
    found = common.fovea(options, "bench", "attention", "--batch", B, "--heads", H, "--length", T, "--head-dim", D,
                         "--mask", mask, "--threads", options.threads)
    return {"forward": found["forward_seconds"], "backward": found["backward_seconds"]}


def step_time(options, arguments):
    with tempfile.TemporaryDirectory() as folder:
        found = common.fovea(options, "train", "lm", "--train", options.text, "-o", pathlib.Path(folder) / "model",
                             "--valid-fraction", "0", "--warmup", "10", "--threads", options.threads,
                             *arguments.split())
    return {"step": 1 / found["tokens_per_second"]}


def calls(options):
    for shape in SHAPES:
        for mask in ("all", "causal"):
            name = "B{} H{} T{} D{} {}".format(*shape, mask)
            yield name, lambda side, shape=shape, mask=mask: attention_times(side, shape, mask)
    if options.text:
        for name, arguments in STEPS.items():
            yield name, lambda side, arguments=arguments: step_time(side, arguments)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", required=True, help="the binary of the other build")
    parser.add_argument("--text", type=pathlib.Path, help="a text, for the training steps")
    parser.add_argument("--only", default="", help="calls whose name matches this expression")
    common.add_common_options(parser, rounds=9)
    options = parser.parse_args()
    common.need_binary(options)
    print(common.machine(options))
    before = copy.copy(options)
    before.fovea = options.before
    worst = 0
    for name, call in ((name, call) for name, call in calls(options) if re.search(options.only, name)):
        times = {"before": [], "now": []}
        for turn in range(options.rounds):
            sides = [("before", before), ("now", options)]
            for side, of in sides if turn % 2 == 0 else reversed(sides):
                times[side].append(call(of))
        for what in times["now"][0]:
            now, then = ([run[what] for run in times[side]] for side in ("now", "before"))
            ratio = statistics.median(a / b for a, b in zip(now, then))
            worst = max(worst, ratio)
            print(f"{name}, {what}: {ratio:.3f} (fastest {min(now) / min(then):.3f})", flush=True)
    print(f"largest median: {worst:.3f} (at most {MOST})")
    return 0 if worst <= MOST else 1


if __name__ == "__main__":
    sys.exit(main())

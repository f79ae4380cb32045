#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Convolution over time, float32, forward and backward with all gradients, against PyTorch's, in turns.

PyTorch is measured in each of its ways: Conv1d with oneDNN and without, Conv2d with channels last, a
product with the unfolded windows, and a product for each tap; as installed and with MKL's fastest kernels
("unlocked"). The fastest of all counts.
"""
import argparse
import pathlib
import statistics
import subprocess
import sys

import common
from common import start_torch

HERE = pathlib.Path(__file__).resolve().parent

# in, out, width, batch, length
SHAPES = [(128, 128, 3, 32, 80), (512, 512, 3, 32, 80), (128, 256, 3, 32, 80), (256, 256, 5, 32, 80),
          (300, 100, 4, 50, 30)]
NAMES = ("inputs", "outputs", "width", "batch", "length")
TARGET = 1.5
SECONDS = 0.3  # of one measurement, about


class Fovea:
    """fovea_bench_convolution, which answers a line with a line."""

    def __init__(self, options):
        binary = pathlib.Path(options.fovea).resolve().parents[1] / "bench" / "fovea_bench_convolution"
        if not binary.exists():
            sys.exit(f"{binary} is not there: make bench")
        self.process = subprocess.Popen([binary, str(options.threads)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, encoding="utf-8",
                                        preexec_fn=common.pin(options.threads))

    def ask(self, shape, repeats):
        self.process.stdin.write(" ".join(map(str, (*shape, repeats))) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"fovea_bench_convolution ended with {self.process.wait()}")
        return common.last_object(line)


def measure(options, shape):
    """(seconds of fovea, its share of the peak, {PyTorch and way: seconds}), each of every round."""
    ours, peers = Fovea(options), start_torch(options, HERE / "peer_convolution.py")
    repeats = max(5, round(SECONDS / ours.ask(shape, 3)["seconds"]))
    answers, theirs = [], {}
    for _ in range(options.rounds):
        answers.append(ours.ask(shape, repeats))
        for name, peer in peers.items():
            for way in peer.hello["ways"]:
                asked = peer.ask(way=way, repeats=repeats, **dict(zip(NAMES, shape)))
                theirs.setdefault(f"{way}, {name}", []).append(asked["seconds"])
    ours.process.stdin.close()
    ours.process.wait()
    for peer in peers.values():
        peer.close()
    return answers, theirs


def report(shape, answers, theirs):
    seconds = [answer["seconds"] for answer in answers]
    mine = statistics.median(seconds)
    share = statistics.median(answer["gflops"] / answer["fma_gflops"] for answer in answers)
    inputs, outputs, width, batch, length = shape
    print(f"{inputs} -> {outputs}, width {width}, B{batch} T{length}: {mine * 1e3:.3f} ms"
          f" ({min(seconds) * 1e3:.3f} .. {max(seconds) * 1e3:.3f}), {share:.2f} of the FMA peak")
    for way, times in sorted(theirs.items(), key=lambda item: statistics.median(item[1])):
        print(f"  {way:36} {statistics.median(times) * 1e3:8.3f} ms  {statistics.median(times) / mine:.2f}x")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    common.add_common_options(parser)
    parser.add_argument("--shapes", type=int, default=len(SHAPES), help="only the first of the shapes")
    options = parser.parse_args()
    print(common.machine(options))
    print(f"{options.rounds} rounds; the target is {TARGET}x the fastest of PyTorch's ways")
    for shape in SHAPES[:options.shapes]:
        report(shape, *measure(options, shape))


if __name__ == "__main__":
    main()

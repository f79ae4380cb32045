#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fused attention, float32, forward and backward, against PyTorch's, in turns.

Some of PyTorch's shapes have a fast and a slow mode, chosen anew by each process. So every round
starts a process of its own, and two ratios are told: that of the medians over the rounds, and that
of the fastest rounds, which compares with PyTorch's fast mode. The share is that of the processor's
FMA peak, measured around each run; causal attention counts only the pairs that it keeps.
"""
import argparse
import pathlib
import statistics

import common
from common import Worker, fovea

HERE = pathlib.Path(__file__).resolve().parent

# batch, heads, length, mask: forward and backward targets
SHAPES = {
    (4, 12, 1024, "all"): (1.15, 1.3),
    (4, 12, 1024, "causal"): (1.5, 1.7),
    (8, 8, 128, "all"): (1.7, 1.7),
    (8, 8, 128, "causal"): (1.7, 1.7),
    (1, 1, 1024, "all"): (1.15, 1.3),
    (1, 1, 1024, "causal"): (1.5, 1.7),
}
HEAD_DIM = 64
DIRECTIONS = "forward", "backward"


def measure(options):
    """shape -> (fovea's answers, PyTorch's), one of each for every round."""
    found = {shape: ([], []) for shape in SHAPES}
    for _ in range(options.rounds):
        peer = Worker(options, HERE / "peer_attention.py")
        if "absent" in peer.hello:
            print(f"PyTorch: not measured: {peer.hello['absent']}")
        for (batch, heads, length, mask), (ours, theirs) in found.items():
            ours.append(fovea(options, "bench", "attention", "--batch", batch, "--heads", heads,
                              "--length", length, "--head-dim", HEAD_DIM, "--mask", mask,
                              "--threads", options.threads))
            if "ready" in peer.hello:
                theirs.append(peer.ask(batch=batch, heads=heads, length=length, head_dim=HEAD_DIM,
                                       causal=mask == "causal"))
        peer.close()
    return found


def range_ms(seconds):
    middle = statistics.median(seconds)
    return f"{middle * 1e3:8.3f} ({min(seconds) * 1e3:.3f} .. {max(seconds) * 1e3:.3f}) ms"


def report(shape, ours, theirs):
    batch, heads, length, mask = shape
    for direction, target in zip(DIRECTIONS, SHAPES[shape]):
        key = f"{direction}_seconds"
        mine = [answer[key] for answer in ours]
        share = statistics.median(answer[f"{direction}_share"] for answer in ours)
        line = f"B{batch} H{heads} N{length} {mask:6} {direction:8} {range_ms(mine)} {share:5.2f}"
        if theirs:
            peers = [answer[key] for answer in theirs]
            medians = statistics.median(peers) / statistics.median(mine)
            line += f"  {range_ms(peers)}  ratio {medians:.2f}, fastest {min(peers) / min(mine):.2f}"
        print(f"{line}  target {target}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    common.add_common_options(parser)
    options = parser.parse_args()
    common.need_binary(options)
    print(common.machine(options))
    found = measure(options)
    print(f"D{HEAD_DIM}, {options.rounds} rounds, median (fastest .. slowest): fovea, its share of the"
          " FMA peak, PyTorch; ratio of the medians, and of the fastest")
    for shape, (ours, theirs) in found.items():
        report(shape, ours, theirs)


if __name__ == "__main__":
    main()

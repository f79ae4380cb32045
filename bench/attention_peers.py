#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fused attention, forward and backward, in float32 or bfloat16, against PyTorch's, in turns.

Some of PyTorch's shapes have a fast and a slow mode, chosen anew by each process. So every round
starts processes of its own, of PyTorch as installed and with MKL's fastest kernels ("unlocked"), and
two ratios to each are told: that of the medians over the rounds, and that of the fastest rounds, which
compares with PyTorch's fast mode. The targets count against the stronger of the two. The share is that
of the processor's peak, measured around each run; causal attention counts only the pairs that it
keeps.
"""
import argparse
import os
import pathlib
import statistics

import common
from attention_table import dot_targets
from common import fovea, start_torch

HERE = pathlib.Path(__file__).resolve().parent

# batch, heads, length, mask
SHAPES = [(*sizes, mask) for sizes in [(4, 12, 1024), (8, 8, 128), (1, 1, 1024)] for mask in ("all", "causal")]
HEAD_DIM = 64
# Length, whether causal -> the targets of bfloat16, forward and backward.
BFLOAT16_TARGETS = {(1024, False): (1.6, 1.9), (1024, True): (2.1, 3), (128, False): (3.3, 10)}


def measure(options):
    """shape -> {name: answers}, one of fovea and of each PyTorch for every round."""
    found = {shape: {} for shape in SHAPES}
    for _ in range(options.rounds):
        peers = start_torch(options, HERE / "peer_attention.py")
        for (batch, heads, length, mask), answers in found.items():
            answers.setdefault("fovea", []).append(
                fovea(options, "bench", "attention", "--batch", batch, "--heads", heads, "--length", length,
                      "--head-dim", HEAD_DIM, "--mask", mask, "--precision", options.precision,
                      "--threads", options.threads))
            for name, peer in peers.items():
                answers.setdefault(name, []).append(peer.ask(batch=batch, heads=heads, length=length,
                                                             head_dim=HEAD_DIM, causal=mask == "causal",
                                                             precision=options.precision))
        for peer in peers.values():
            peer.close()
    return found


def range_ms(seconds):
    middle = statistics.median(seconds)
    return f"{middle * 1e3:8.3f} ({min(seconds) * 1e3:.3f} .. {max(seconds) * 1e3:.3f}) ms"


def targets(precision, length, causal):
    """direction -> how many times as fast."""
    if precision == "float32":
        of_dots = dot_targets(length, causal, bool(os.environ.get("FOVEA_ISA")))
        return {direction: target for direction, (target, _) in of_dots.items()}
    return dict(zip(("forward", "backward"), BFLOAT16_TARGETS.get((length, causal), ("none", "none"))))


def name_of(shape):
    batch, heads, length, mask = shape
    return f"B{batch} H{heads} N{length} D{HEAD_DIM} {mask}"


def to_keep(options, answers):
    """Of a shape, what --output writes: medians, for each direction."""
    kept = {"rounds": options.rounds}
    for direction in ("forward", "backward"):
        key = f"{direction}_seconds"
        seconds = {name: statistics.median(answer[key] for answer in found) for name, found in answers.items()}
        ratios = {name: theirs / seconds["fovea"] for name, theirs in seconds.items() if name != "fovea"}
        share = statistics.median(answer[f"{direction}_share"] for answer in answers["fovea"])
        kept[direction] = {"seconds": seconds, "ratio": ratios, "share": share}
    return kept


def report(shape, answers, kept, precision):
    _, _, length, mask = shape
    for direction, target in targets(precision, length, mask == "causal").items():
        key = f"{direction}_seconds"
        mine = [answer[key] for answer in answers["fovea"]]
        print(f"{name_of(shape)} {direction:8} {range_ms(mine)} {kept[direction]['share']:5.2f}  target {target}")
        for name, theirs in answers.items():
            if name == "fovea":
                continue
            peers = [answer[key] for answer in theirs]
            ratio = kept[direction]["ratio"][name]
            print(f"  PyTorch {name:9} {range_ms(peers)}  ratio {ratio:.2f}, fastest {min(peers) / min(mine):.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    common.add_common_options(parser)
    parser.add_argument("--precision", choices=["float32", "bf16"], default="float32")
    parser.add_argument("--output", type=pathlib.Path, help="JSON; what is there is kept")
    options = parser.parse_args()
    common.need_binary(options)
    machine = common.machine(options)
    print(machine)
    found = measure(options)
    print(f"D{HEAD_DIM}, {options.rounds} rounds, median (fastest .. slowest): fovea, its share of the"
          f" peak in {options.precision}; PyTorch, ratio of the medians, and of the fastest")
    kept = {shape: to_keep(options, answers) for shape, answers in found.items()}
    for shape, answers in found.items():
        report(shape, answers, kept[shape], options.precision)
    if options.output:
        common.keep(options.output, machine, options.precision, {name_of(shape): one for shape, one in kept.items()})


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Peak memory of attention, forward and backward, over the length: it must grow linearly.

Fits bytes = a + b T by least squares and exits 1 if a measurement lies further from the line than a
twentieth of the largest. A T x S matrix of float32 would be 4 T^2 bytes: 16 GiB at 64k.
"""
import argparse
import math
import statistics
import sys

import common

LENGTHS = [1024 << i for i in range(7)]
MOST_RESIDUAL = 0.05


def peak_bytes(options, length):
    """What a process of its own says of its peak."""
    answer = common.fovea(options, "bench", "attention", "--batch", 1, "--heads", 1, "--head-dim", 64,
                          "--length", length, "--mask", options.mask, "--threads", options.threads)
    return answer["peak_memory_bytes"]


def fit(lengths, peaks):
    """a, b and the largest residual of bytes = a + b T."""
    mean_length, mean_peak = statistics.fmean(lengths), statistics.fmean(peaks)
    b = (math.fsum((t - mean_length) * (y - mean_peak) for t, y in zip(lengths, peaks))
         / math.fsum((t - mean_length) ** 2 for t in lengths))
    a = mean_peak - b * mean_length
    return a, b, max(abs(y - a - b * t) for t, y in zip(lengths, peaks))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    common.add_common_options(parser)
    parser.add_argument("--mask", choices=["all", "causal"], default="causal")
    parser.add_argument("--longest", type=int, default=LENGTHS[-1])
    options = parser.parse_args()
    common.need_binary(options)
    print(common.machine(options))
    lengths = [length for length in LENGTHS if length <= options.longest]
    peaks = []
    for length in lengths:
        peaks.append(peak_bytes(options, length))
        print(f"T = {length:6}: {peaks[-1] / 2**20:9.2f} MiB", flush=True)
    a, b, residual = fit(lengths, peaks)
    share = residual / max(peaks)
    print(f"{a / 2**20:.1f} MiB + {b:.0f} bytes a position (its eight rows of q, k, v, out and their"
          f" gradients: 2048); largest residual {residual / 2**20:.1f} MiB, {share:.1%} of the"
          f" largest peak")
    return 0 if share <= MOST_RESIDUAL else 1


if __name__ == "__main__":
    sys.exit(main())

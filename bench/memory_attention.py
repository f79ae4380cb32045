#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Peak memory of attention, forward and backward, over the length: it must grow linearly.

Fits bytes = a + b T + c T^2 by least squares and exits 1 if the quadratic part at the longest T is
more than a twentieth of the whole. A T x S matrix of float32 would be 4 T^2 bytes: 16 GiB at 64k.
"""
import argparse
import math
import os
import subprocess
import sys

import common

LENGTHS = [1024 << i for i in range(7)]
MOST_QUADRATIC = 0.05


def peak_bytes(options, length):
    """What the command says of its own peak; otherwise what the kernel says of the process."""
    command = [options.fovea, "bench", "attention", "--batch", "1", "--heads", "1", "--head-dim", "64",
               "--length", str(length), "--mask", options.mask, "--threads", str(options.threads),
               "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8")
    answer = common.last_object(process.stdout.read())
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {process.returncode}")
    return answer.get("peak_memory_bytes", usage.ru_maxrss * 1024)


def solve(rows, right):
    """Gauss-Jordan with pivoting, for the three normal equations."""
    n = len(right)
    table = [[*row, value] for row, value in zip(rows, right)]
    for i in range(n):
        pivot = max(range(i, n), key=lambda r: abs(table[r][i]))
        table[i], table[pivot] = table[pivot], table[i]
        table[i] = [value / table[i][i] for value in table[i]]
        for r in range(n):
            if r != i:
                table[r] = [a - table[r][i] * b for a, b in zip(table[r], table[i])]
    return [row[n] for row in table]


def fit(lengths, peaks):
    """a, b, c of bytes = a + b T + c T^2."""
    longest = max(lengths)
    powers = [[1.0, t / longest, (t / longest) ** 2] for t in lengths]
    rows = [[math.fsum(p[i] * p[j] for p in powers) for j in range(3)] for i in range(3)]
    right = [math.fsum(p[i] * y for p, y in zip(powers, peaks)) for i in range(3)]
    a, b, c = solve(rows, right)
    return a, b / longest, c / longest ** 2


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
    a, b, c = fit(lengths, peaks)
    share = abs(c) * lengths[-1] ** 2 / peaks[-1]
    print(f"{a / 2**20:.1f} MiB + {b:.0f} bytes a position (its eight rows of q, k, v, out and their"
          f" gradients: 2048) + {c:.2g} T^2; quadratic part at the end {share:.1%}")
    return 0 if share <= MOST_QUADRATIC else 1


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the sources claim of attention's cost, measured with fovea_bench_attention.

  bench/claims.py                 all three
  bench/claims.py --only heads    spec A13: one call for all heads, beside a loop over heads
  bench/claims.py --only length   spec A19: time over the length, all keys (claim: n^2)
  bench/claims.py --only window   spec A20: time over the length, a window of 64 keys on each side (claim: n)

A slope is that of log(seconds) over log(length), fitted; forward and backward together.
"""
import argparse
import math
import subprocess
import sys

import common

LENGTHS = {"length": (2048, 4096, 8192, 16384), "window": (1024, 4096, 16384, 65536)}


def seconds(options, *calls):
    """(forward, backward) of each call, timed in turns in one process."""
    words = [word for call in calls for word in ("--", *call)][1:]
    done = subprocess.run([options.program, str(options.threads), *words], capture_output=True, encoding="utf-8",
                          env=common.environment(options.threads), preexec_fn=common.pin(options.threads))
    if done.returncode != 0:
        sys.exit(f"{options.program}: {done.stderr}")
    return [(call["forward_seconds"], call["backward_seconds"]) for call in common.last_object(done.stdout)["calls"]]


def heads(options):
    """The IMDB model of the sources: 8 heads of 16, 80 tokens. A loop makes as many calls as there are heads."""
    for batch in (1, 32):
        together, one = seconds(options, [f"{batch},80,80,8,8,16,16"], [f"{batch},80,80,1,1,16,16"])
        forward, both = 8 * one[0] / together[0], 8 * sum(one) / sum(together)
        print(f"heads   batch {batch:2}: a loop over 8 heads takes {forward:.2f}x the time, with backward {both:.2f}x")


def slope(options, name, *more):
    lengths = LENGTHS[name]
    times = seconds(options, *([f"1,{n},{n},1,1,64,64", *more] for n in lengths))
    points = [(math.log(n), math.log(sum(t))) for n, t in zip(lengths, times)]
    x, y = (sum(values) / len(points) for values in zip(*points))
    fitted = sum((a - x) * (b - y) for a, b in points) / sum((a - x) ** 2 for a, _ in points)
    told = ", ".join(f"{n}: {1e3 * sum(t):.2f} ms" for n, t in zip(lengths, times))
    print(f"{name:7} slope {fitted:.2f} ({told})")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(common.ROOT / "build" / "release" / "bench" / "fovea_bench_attention"))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", choices=("heads", *LENGTHS))
    options = parser.parse_args()
    if options.only in (None, "heads"):
        heads(options)
    if options.only in (None, "length"):
        slope(options, "length")
    if options.only in (None, "window"):
        slope(options, "window", "--window=64,64")


if __name__ == "__main__":
    main()

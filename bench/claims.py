#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the articles claim of attention's cost, measured with fovea_bench_attention and fovea_bench_heads.

  bench/claims.py                 all three
  bench/claims.py --only heads    all heads together, beside a loop over heads: the operator, and a layer (Su 2018,
                                  kexue.fm/4765: the loop is "very slow")
  bench/claims.py --only length   time over the length, all keys (Vaswani et al. 2017, table 1: n^2)
  bench/claims.py --only window   time over the length, a window of 64 keys on each side (the same table: n)

A slope is that of log(seconds) over log(length), fitted; forward and backward together.
"""
import argparse
import math
import pathlib
import subprocess
import sys

import common

LENGTHS = {"length": (2048, 4096, 8192, 16384), "window": (1024, 4096, 16384, 65536)}


def run(options, program, *words):
    """The object that a program of bench prints."""
    done = subprocess.run([options.programs / program, str(options.threads), *words], capture_output=True,
                          encoding="utf-8", env=common.environment(options.threads),
                          preexec_fn=common.pin(options.threads))
    if done.returncode != 0:
        sys.exit(f"{program}: {done.stderr}")
    return common.last_object(done.stdout)


def seconds(options, *calls):
    """(forward, backward) of each call, timed in turns in one process."""
    words = [word for call in calls for word in ("--", *call)][1:]
    answer = run(options, "fovea_bench_attention", *words)
    return [(call["forward_seconds"], call["backward_seconds"]) for call in answer["calls"]]


def heads(options):
    """The IMDB model of the sources: 8 heads of 16, 80 tokens. A loop makes as many calls as there are heads,
    each with tensors of its own."""
    for batch in (1, 32):
        together, loop = seconds(options, [f"{batch},80,80,8,8,16,16"], [f"{batch},80,80,1,1,16,16", "--calls=8"])
        forward, both = loop[0] / together[0], sum(loop) / sum(together)
        layer = run(options, "fovea_bench_heads", str(batch), "80", "128", "8", "16")
        print(f"heads   batch {batch:2}: a loop over 8 heads takes {forward:.2f}x the time, with backward {both:.2f}x; "
              f"with its projections, both ways, {layer['loop'] / layer['together']:.2f}x")


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
    parser.add_argument("--programs", type=pathlib.Path, default=common.ROOT / "build" / "release" / "bench",
                        help="the folder of the programs of bench")
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

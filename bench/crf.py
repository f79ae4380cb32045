#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A linear-chain CRF, forward and backward, and its best paths, against PyTorch's.

  bench/crf.py --python venv/bin/python [--only EXPRESSION]

32 sentences of 20 to 40 rows. PyTorch has no CRF: the peers are pytorch-crf from PyPI (if it is installed), the same
recursion written by hand with one logsumexp over [B, K, K] for a step, and as products with exp(transitions); by hand
both eager and by torch.compile, which unrolls the rows and takes minutes the first time (later processes find the code
on the disk); each as installed and with MKL's kernels for AVX-512. The fastest of these counts. Rounds alternate, each
in new processes; `make bench` builds the program.
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys

import common

BATCH = 32
CASES = [(what, tags) for what in ("loss", "decode") for tags in (3, 9, 17, 50)]
CALLS = {"loss": 40, "decode": 40}
WAYS = {"loss": ("pytorch-crf", "logsumexp", "products", "logsumexp, compiled", "products, compiled"),
        "decode": ("pytorch-crf", "by hand", "by hand, compiled")}


def ours(options, what, tags):
    command = [options.program, what, tags, BATCH, options.threads, CALLS[what]]
    done = subprocess.run([str(c) for c in command], capture_output=True, encoding="utf-8", check=True,
                          env=common.environment(options.threads), preexec_fn=common.pin(options.threads))
    return json.loads(done.stdout)


def measure(options, cases):
    """What every round found, by case and who was measured."""
    found = {case: {} for case in cases}
    for number in range(options.rounds):
        workers = common.start_torch(options, pathlib.Path(__file__).with_name("peer_crf.py"))
        for (what, tags), of_case in found.items():
            of_case.setdefault("fovea", []).append(ours(options, what, tags))
            for name, worker in workers.items():
                for way in WAYS[what]:
                    answer = worker.ask(what=what, way=way, tags=tags, batch=BATCH, calls=CALLS[what])
                    if "seconds" in answer:
                        of_case.setdefault(f"{way}, {name}", []).append(answer)
            print(f"round {number + 1}: {what} {tags}: " + ", ".join(
                f"{who} {1e3 * rounds[-1]['seconds']:.3f} ms" for who, rounds in of_case.items()), flush=True)
        for worker in workers.values():
            worker.close()
    return found


def tell(name, found):
    """The ratio of the medians to the strongest peer, and of the fastest calls."""
    medians = {who: statistics.median(f["seconds"] for f in rounds) for who, rounds in found.items()}
    fastest = {who: min(f["fastest"] for f in rounds) for who, rounds in found.items()}
    peers = [who for who in found if who != "fovea"]
    line = f"{name:12} {1e3 * medians['fovea']:8.3f} ms"
    if peers:
        best, quickest = min(peers, key=medians.get), min(peers, key=fastest.get)
        line += f"   {medians[best] / medians['fovea']:.1f}x PyTorch ({best}); of the fastest calls"
        line += f" {fastest[quickest] / fastest['fovea']:.1f}x ({quickest}); target 5x"
    print(line, flush=True)
    for who in peers:
        print(f"    {who:30} {1e3 * medians[who]:8.3f} ms, fastest {1e3 * fastest[who]:8.3f} ms")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="the rows whose name this expression finds: 'loss 9'")
    parser.add_argument("--program", type=pathlib.Path,
                        default=common.ROOT / "build" / "release" / "bench" / "fovea_bench_crf")
    common.add_common_options(parser, rounds=3)
    options = parser.parse_args()
    if not os.access(options.program, os.X_OK):
        sys.exit(f"{options.program} is not there: make bench builds it")
    print(common.machine(options))
    cases = [(what, tags) for what, tags in CASES if re.search(options.only, f"{what} {tags}")]
    for (what, tags), found in measure(options, cases).items():
        tell(f"{what} {tags}", found)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers, forward and backward with the gradient of x, against torch.nn's; SRU against our LSTM.

  bench/recurrent.py --python venv/bin/python [--only EXPRESSION]

Sequences of one length, as PyTorch's fastest way takes them: [T, B, width], with oneDNN and without, as installed and
with MKL's kernels for AVX-512. The fastest of these counts. Rounds alternate; `make bench` builds the program.
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

BATCH, STEPS = 32, 80
CASES = [(kind, width, directions) for width in (128, 512) for kind in ("lstm", "gru", "rnn", "sru")
         for directions in (1, 2)]
TARGETS = {"lstm": 1.5, "gru": 1.5, "sru": 3}
CALLS = {128: 40, 512: 5}


def ours(options, kind, width, directions):
    command = [options.program, kind, width, directions, BATCH, STEPS, options.threads, CALLS[width]]
    done = subprocess.run([str(c) for c in command], capture_output=True, encoding="utf-8", check=True,
                          env=common.environment(options.threads), preexec_fn=common.pin(options.threads))
    return json.loads(done.stdout)


def measure(options, workers, kind, width, directions):
    """What every round found, by who was measured."""
    found = {}
    for _ in range(options.rounds):
        found.setdefault("fovea", []).append(ours(options, kind, width, directions))
        if kind == "sru":
            found.setdefault("fovea lstm", []).append(ours(options, "lstm", width, directions))
        for name, worker in workers.items():
            for onednn in (True, False):
                # PyTorch trains no GRU and no RNN with oneDNN: there the switch changes products alone.
                answer = worker.ask(kind="lstm" if kind == "sru" else kind, onednn=onednn,
                                    shape=[width, directions, BATCH, STEPS], calls=CALLS[width])
                found.setdefault(f"{name}, {'oneDNN' if onednn else 'native'}", []).append(answer)
    return found


def tell(name, kind, found):
    """The ratio of the medians to the strongest peer, and of the fastest calls."""
    medians = {who: statistics.median(f["seconds"] for f in rounds) for who, rounds in found.items()}
    fastest = {who: min(f["fastest"] for f in rounds) for who, rounds in found.items()}
    peers = [who for who in found if not who.startswith("fovea")]
    line = f"{name:12} {1e3 * medians['fovea']:8.3f} ms"
    if peers:
        best, quickest = min(peers, key=medians.get), min(peers, key=fastest.get)
        line += f"   {medians[best] / medians['fovea']:.2f}x PyTorch's {'LSTM' if kind == 'sru' else kind.upper()}"
        line += f" ({best}); of the fastest calls {fastest[quickest] / fastest['fovea']:.2f}x ({quickest})"
        line += f"; target {TARGETS[kind]}x" if kind in TARGETS else ""
    if kind == "sru":
        line += f"; {medians['fovea lstm'] / medians['fovea']:.2f}x our LSTM"
        line += f" ({fastest['fovea lstm'] / fastest['fovea']:.2f}x)"
    print(line, flush=True)
    for who in peers:
        print(f"    {who:20} {1e3 * medians[who]:8.3f} ms, fastest {1e3 * fastest[who]:8.3f} ms")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="the rows whose name this expression finds: 'lstm 128 x1'")
    parser.add_argument("--parts", action="store_true", help="where fovea's time goes instead, without peers")
    parser.add_argument("--program", type=pathlib.Path,
                        default=common.ROOT / "build" / "release" / "bench" / "fovea_bench_recurrent")
    common.add_common_options(parser)
    options = parser.parse_args()
    if not os.access(options.program, os.X_OK):
        sys.exit(f"{options.program} is not there: make bench builds it")
    print(common.machine(options))
    peer = pathlib.Path(__file__).with_name("peer_recurrent.py")
    workers = {} if options.parts else common.start_torch(options, peer)
    for kind, width, directions in CASES:
        name = f"{kind} {width} x{directions}"
        if not re.search(options.only, name):
            continue
        if options.parts:
            found = ours(options, kind, width, directions)
            print(f"{name}: {1e3 * found['seconds']:.3f} ms")
            for part in found["parts"]:
                print(f"    {part['what']:26} {str(part['shape']):20} {1e3 * part['seconds']:8.3f} ms"
                      f" {part['gflops']:8.1f} GFLOP/s")
            continue
        tell(name, kind, measure(options, workers, kind, width, directions))


if __name__ == "__main__":
    main()

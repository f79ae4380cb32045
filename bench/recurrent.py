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
TARGETS = {"lstm": 1.5, "gru": 1.5}
CALLS = {128: 40, 512: 5}


def ours(options, kind, width, directions):
    command = [options.program, kind, width, directions, BATCH, STEPS, options.threads, CALLS[width]]
    done = subprocess.run([str(c) for c in command], capture_output=True, encoding="utf-8", check=True,
                          env=common.environment(options.threads), preexec_fn=common.pin(options.threads))
    return json.loads(done.stdout)


def measure(options, workers, kind, width, directions):
    """The seconds of every round, by who took them."""
    times = {}
    for _ in range(options.rounds):
        times.setdefault("fovea", []).append(ours(options, kind, width, directions)["seconds"])
        if kind == "sru":
            times.setdefault("fovea lstm", []).append(ours(options, "lstm", width, directions)["seconds"])
        peers = [(name, w, onednn) for name, w in workers.items() for onednn in (True, False)]
        for name, worker, onednn in peers:
            # oneDNN has no training of GRU and RNN in PyTorch: there the switch changes products alone.
            peer = f"{name}, {'oneDNN' if onednn else 'native'}"
            answer = worker.ask(kind="lstm" if kind == "sru" else kind, onednn=onednn,
                                shape=[width, directions, BATCH, STEPS], calls=CALLS[width])
            times.setdefault(peer, []).append(answer["seconds"])
    return times


def tell(name, kind, times):
    medians = {who: statistics.median(t) for who, t in times.items()}
    peers = {who: m for who, m in medians.items() if not who.startswith("fovea")}
    line = f"{name:16} {1e3 * medians['fovea']:8.3f} ms"
    if peers:
        best = min(peers, key=peers.get)
        fastest = min(min(times[who]) for who in peers) / min(times["fovea"])
        line += f"   {peers[best] / medians['fovea']:.2f}x PyTorch's {'LSTM' if kind == 'sru' else kind.upper()}"
        line += f" ({best}: {1e3 * peers[best]:.3f} ms); of the fastest rounds {fastest:.2f}x"
        line += f"; target {TARGETS[kind]}x" if kind in TARGETS else ""
    if kind == "sru":
        line += f"; {medians['fovea lstm'] / medians['fovea']:.2f}x our LSTM"
    print(line, flush=True)
    for who, m in sorted(peers.items()):
        print(f"    {who:20} {1e3 * m:8.3f} ms")


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

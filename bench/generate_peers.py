#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tokens a second of `fovea generate` beside llama.cpp (the package xllamacpp), in turns, with the same GGUF file.

  bench/generate_peers.py MODEL.gguf [--tokens 100] [--rounds 5] --python PYTHON_WITH_XLLAMACPP

llama.cpp's figure has its prompt of a few tokens in it; both have one request at a time. Both read weights as they lie
in the file; types that fovea does not multiply so (docs/models.md) it has widened to float32.
"""
import argparse
import re
import statistics
import subprocess
import sys

import common

PROMPT = "Once upon a time"
PEER = """
import json, sys, time, xllamacpp
model, threads, tokens = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
params = xllamacpp.CommonParams()
params.model.path, params.n_ctx, params.n_parallel = model, 1024, 1
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
server = xllamacpp.Server(params)
for _ in sys.stdin:
    began = time.perf_counter()
    answer = server.handle_completions({"prompt": %r, "max_tokens": tokens, "temperature": 0, "top_k": 1,
                                        "cache_prompt": False})
    answer = json.loads(answer) if isinstance(answer, (bytes, str)) else answer
    print("RATE", answer["usage"]["completion_tokens"] / (time.perf_counter() - began), flush=True)
""" % PROMPT


def rate_of_fovea(options):
    done = subprocess.run([options.fovea, "generate", options.model, PROMPT, "--greedy", "-v", "--max-tokens",
                           str(options.tokens), "-t", str(options.threads)], capture_output=True, encoding="utf-8")
    found = re.search(r"\((\d+) tokens/s\)", done.stderr)
    if done.returncode != 0 or not found:
        sys.exit(done.stderr)
    return float(found[1])


def rate_of_peer(peer):
    peer.stdin.write("\n")
    peer.stdin.flush()
    for line in peer.stdout:
        if line.startswith("RATE "):
            return float(line.split()[1])
    sys.exit("the peer has ended: is xllamacpp installed in the interpreter of --python?")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    common.add_common_options(parser, rounds=5)
    parser.add_argument("model")
    parser.add_argument("--tokens", type=int, default=100)
    options = parser.parse_args()
    peers, ours = [], []
    with subprocess.Popen([options.python, "-c", PEER, options.model, str(options.threads), str(options.tokens)],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          encoding="utf-8", env=common.environment(options.threads)) as peer:
        rate_of_peer(peer)  # the first reads the file
        for _ in range(options.rounds):
            peers.append(rate_of_peer(peer))
            ours.append(rate_of_fovea(options))
        peer.stdin.close()
    theirs, rate = statistics.median(peers), statistics.median(ours)
    print(f"llama.cpp {theirs:7.1f} tokens/s")
    print(f"fovea     {rate:7.1f} tokens/s, {rate / theirs:.2f}x")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sentences a second of `fovea embed` beside sentence-transformers (PyTorch), in turns, with the same model.

  bench/embed_peers.py MODEL [--sentences 5000] [--rounds 3] --python PYTHON_WITH_SENTENCE_TRANSFORMERS

The sentences are pieces of docs/*.md of 3 to 100 words. The peer has the fastest of its batch sizes, 8 to 128, and
loads its model before; fovea's figure has the loading of the model in it.
"""
import argparse
import json
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

import common

PEER = """
import json, sys, time, torch
from sentence_transformers import SentenceTransformer
torch.set_num_threads(int(sys.argv[2]))
model = SentenceTransformer(sys.argv[1], device="cpu")
sentences = open(sys.argv[3], encoding="utf-8").read().splitlines()
def seconds(batch):
    began = time.perf_counter()
    vectors = model.encode(sentences, batch_size=batch, normalize_embeddings=True, show_progress_bar=False)
    return time.perf_counter() - began, vectors
best = min((8, 16, 32, 64, 128), key=lambda batch: seconds(batch)[0])
for _ in sys.stdin:
    took, vectors = seconds(best)
    print("PEER", json.dumps({"seconds": took, "batch": best, "first": vectors[0].tolist()}), flush=True)
"""


def sentences(count):
    words = " ".join(path.read_text(encoding="utf-8") for path in sorted((common.ROOT / "docs").glob("*.md"))).split()
    chance = random.Random(1)
    starts = ((chance.randrange(len(words)), min(3 + int(chance.expovariate(1 / 20)), 100)) for _ in range(count))
    return [" ".join(words[at:at + length]) or "empty" for at, length in starts]


def ours(options, text, folder):
    out = pathlib.Path(folder) / "v.jsonl"
    began = time.perf_counter()
    done = subprocess.run([options.fovea, "embed", options.model, text, "-o", out, "-t", str(options.threads)],
                          capture_output=True, encoding="utf-8")
    took = time.perf_counter() - began
    if done.returncode != 0:
        sys.exit(done.stderr)
    with out.open(encoding="utf-8") as lines:
        first = json.loads(next(lines))
    out.unlink()
    return took, first


def theirs(peer):
    peer.stdin.write("\n")
    peer.stdin.flush()
    for line in peer.stdout:
        if line.startswith("PEER "):
            return json.loads(line[5:])
    sys.exit("the peer has ended: is sentence-transformers installed in the interpreter of --python?")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    common.add_common_options(parser, rounds=3)
    parser.add_argument("model")
    parser.add_argument("--sentences", type=int, default=5000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        text = pathlib.Path(folder) / "sentences.txt"
        text.write_text("\n".join(sentences(options.sentences)) + "\n", encoding="utf-8")
        with subprocess.Popen([options.python, "-c", PEER, options.model, str(options.threads), text],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              encoding="utf-8", env=common.environment(options.threads)) as peer:
            pairs = []
            for _ in range(options.rounds):
                answer = theirs(peer)
                took, first = ours(options, text, folder)
                pairs.append((answer["seconds"], took))
            peer.stdin.close()
    difference = max(abs(a - b) for a, b in zip(first["vector"], answer["first"]))
    peer_seconds, seconds = (statistics.median(column) for column in zip(*pairs))
    print(f"sentence-transformers {options.sentences / peer_seconds:7.0f} sentences/s (batches of {answer['batch']})")
    print(f"fovea                 {options.sentences / seconds:7.0f} sentences/s, {peer_seconds / seconds:.2f}x; "
          f"the vectors differ by at most {difference:.1e}")


if __name__ == "__main__":
    main()

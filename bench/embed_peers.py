#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sentences a second of `fovea embed` beside sentence-transformers (PyTorch) and onnxruntime, in turns, with the same model.

  bench/embed_peers.py MODEL [--sentences 5000] [--rounds 3] [--cpu --threads 1]
                       --python PYTHON_WITH_SENTENCE_TRANSFORMERS_ONNXRUNTIME_ONNXSCRIPT

The sentences are pieces of docs/*.md of 3 to 100 words. Each peer has the fastest of its batch sizes, 8 to 128, and loads its
model before; fovea's figure has the loading of the model in it. onnxruntime runs the float32 model that torch.onnx has exported
with axes of any length, on batches of sorted sentences, which `tokenizers` cuts and pads; mean and norm are numpy's. Where one is
not installed, it is left out. --cpu: seconds of the processor instead, for a busy machine.
"""
import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

import common

PEER = """
import json, sys, time
folder, threads, text, cpu = sys.argv[1:5]
threads = int(threads)
clock = time.process_time if cpu == "cpu" else time.perf_counter
sentences = open(text, encoding="utf-8").read().splitlines()
%s
def seconds(batch):
    began = clock()
    vectors = encode(batch)
    return clock() - began, vectors
sample, all_sentences = sentences[:1000], sentences
sentences = sample
best = min((8, 16, 32, 64, 128), key=lambda batch: seconds(batch)[0])
sentences = all_sentences
for _ in sys.stdin:
    took, vectors = seconds(best)
    print("PEER", json.dumps({"seconds": took, "batch": best, "first": vectors[0].tolist()}), flush=True)
"""
SENTENCE_TRANSFORMERS = """
import torch
from sentence_transformers import SentenceTransformer
torch.set_num_threads(threads)
model = SentenceTransformer(folder, device="cpu")
def encode(batch):
    return model.encode(sentences, batch_size=batch, normalize_embeddings=True, show_progress_bar=False)
"""
ONNXRUNTIME = """
import io, numpy, onnxruntime, tempfile, tokenizers, torch, transformers
class Rows(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.model = transformers.AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    def forward(self, ids, mask):
        return self.model(input_ids=ids, attention_mask=mask, token_type_ids=torch.zeros_like(ids)).last_hidden_state
torch.set_num_threads(1)
example = (torch.randint(5, 100, (3, 7)), torch.ones(3, 7, dtype=torch.int64))
temporary = tempfile.TemporaryDirectory()
file = temporary.name + "/model.onnx"
any_length = {0: torch.export.Dim("batch", min=1, max=4096), 1: torch.export.Dim("length", min=2, max=512)}
torch.onnx.export(Rows().eval(), example, file, input_names=["ids", "mask"], output_names=["rows"], dynamo=True,
                  dynamic_shapes=(any_length, any_length), verbose=False)
settings = onnxruntime.SessionOptions()
settings.intra_op_num_threads, settings.inter_op_num_threads = threads, 1
settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
session = onnxruntime.InferenceSession(file, settings, providers=["CPUExecutionProvider"])
tokenizer = tokenizers.Tokenizer.from_file(folder + "/tokenizer.json")
tokenizer.enable_truncation(json.load(open(folder + "/sentence_bert_config.json"))["max_seq_length"])
tokenizer.enable_padding()
def encode(batch):
    order = sorted(range(len(sentences)), key=lambda n: len(sentences[n]))
    vectors = [None] * len(sentences)
    for begin in range(0, len(order), batch):
        places = order[begin:begin + batch]
        read = tokenizer.encode_batch([sentences[n] for n in places])
        ids, mask = (numpy.array([getattr(one, name) for one in read]) for name in ("ids", "attention_mask"))
        rows, = session.run(["rows"], {"ids": ids, "mask": mask})
        mean = (rows * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
        mean /= numpy.linalg.norm(mean, axis=1, keepdims=True)
        for n, vector in zip(places, mean):
            vectors[n] = vector
    return vectors
"""
PEERS = {"sentence-transformers": SENTENCE_TRANSFORMERS, "onnxruntime": ONNXRUNTIME}


def sentences(count):
    words = " ".join(path.read_text(encoding="utf-8") for path in sorted((common.ROOT / "docs").glob("*.md"))).split()
    chance = random.Random(1)
    starts = ((chance.randrange(len(words)), min(3 + int(chance.expovariate(1 / 20)), 100)) for _ in range(count))
    return [" ".join(words[at:at + length]) or "empty" for at, length in starts]


def ours(options, text, folder):
    out = pathlib.Path(folder) / "v.jsonl"
    began = time.perf_counter()
    process = subprocess.Popen([options.fovea, "embed", options.model, text, "-o", out, "-t", str(options.threads), "--quiet"])
    _, status, usage = os.wait4(process.pid, 0)
    took = usage.ru_utime + usage.ru_stime if options.cpu else time.perf_counter() - began
    if status != 0:
        sys.exit("fovea embed has failed")
    with out.open(encoding="utf-8") as lines:
        first = json.loads(next(lines))["vector"]
    out.unlink()
    return took, first


class Peer:
    def __init__(self, options, name, text):
        self.name, self.taken = name, []
        environment = {**common.environment(options.threads), **common.unlocked_mkl(), "TOKENIZERS_PARALLELISM": "false"}
        arguments = [options.model, options.threads, text, "cpu" if options.cpu else "wall"]
        self.process = subprocess.Popen([options.python, "-c", PEER % PEERS[name], *map(str, arguments)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8", env=environment)

    def turn(self):
        """False: the peer is not there."""
        try:
            self.process.stdin.write("\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return False
        for line in self.process.stdout:
            if line.startswith("PEER "):
                answer = json.loads(line[5:])
                self.taken.append(answer["seconds"])
                self.batch, self.first = answer["batch"], answer["first"]
                return True
        return False

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    common.add_common_options(parser, rounds=3)
    parser.add_argument("model")
    parser.add_argument("--sentences", type=int, default=5000)
    parser.add_argument("--only", nargs="+", choices=PEERS, default=list(PEERS))
    parser.add_argument("--cpu", action="store_true", help="seconds of the processor")
    options = parser.parse_args()
    print(common.machine(options))
    with tempfile.TemporaryDirectory() as folder:
        text = pathlib.Path(folder) / "sentences.txt"
        text.write_text("\n".join(sentences(options.sentences)) + "\n", encoding="utf-8")
        peers, taken = [Peer(options, name, text) for name in options.only], []
        for _ in range(options.rounds):
            for peer in list(peers):
                if not peer.turn():
                    print(f"{peer.name}: not measured: it is not installed in the interpreter of --python")
                    peers.remove(peer)
            took, first = ours(options, text, folder)
            taken.append(took)
        for peer in peers:
            peer.close()
    seconds = statistics.median(taken)
    print(f"fovea                 {options.sentences / seconds:7.0f} sentences/s")
    for peer in peers:
        theirs = statistics.median(peer.taken)
        difference = max(abs(a - b) for a, b in zip(first, peer.first))
        print(f"{peer.name:21} {options.sentences / theirs:7.0f} sentences/s (batches of {peer.batch}); fovea is {theirs / seconds:.2f}x; "
              f"the vectors differ by at most {difference:.1e}")


if __name__ == "__main__":
    main()

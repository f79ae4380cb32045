#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Texts that are classified in a second, by `fovea classify` and by PyTorch, in turns.

  bench/classify.py TRAIN TEST [--rounds 5] [--output FILE]

TRAIN and TEST are labelled texts (TSV, label first, without a header; TEST packed by zstd), such as those of
IMDB. The model is the published one of Su 2018: width 128, 8 heads of 16, the first 80 tokens of a text; its
weights are those after one update, for time does not depend on them. fovea is the whole command: it reads,
unpacks, cuts into words, computes and prints. PyTorch gets ids that lie in memory, in batches of texts of
about the same length, and the size of batch that is fastest for it; only the model is timed.
"""
import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

import common

HERE = pathlib.Path(__file__).resolve().parent
LONGEST, WIDTH, HEADS = 80, 128, 8
SIZES = 32, 128, 512
TARGET = 3.0


def trained(options, folder):
    model = folder / "model"
    command = [options.fovea, "train", "classify", "--train", options.train, "--header", "no",
               "--label-column", "1", "--text-column", "2", "--max-length", LONGEST, "--width", WIDTH, "--heads", HEADS,
               "--encoder", "attention:plain:no-output", "--tokenizer", "word", "--min-count", 10, "--stop-after", "1u",
               "--warmup", 0, "--threads", options.threads, "--quiet", "-o", model]
    done = subprocess.run(list(map(str, command)), capture_output=True, encoding="utf-8")
    if done.returncode != 0:
        sys.exit(done.stderr)
    said = subprocess.run([options.fovea, "inspect", model, "--json"], capture_output=True, check=True)
    return model, json.loads(said.stdout)["settings"]["model"]["vocabulary"]


def seconds_of_fovea(options, model):
    command = [options.fovea, "classify", model, options.test, "--header", "no", "--text-column", "2", "--verbose",
               "--threads", options.threads]
    done = subprocess.run(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, encoding="utf-8",
                          env=common.environment(options.threads), preexec_fn=common.pin(options.threads))
    found = re.search(r"(\d+) texts, (\d+) tokens in ([\d.]+) s", done.stderr)
    if done.returncode != 0 or not found:
        sys.exit(done.stderr)
    return float(found[3]), int(found[1]), int(found[2])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train")
    parser.add_argument("test")
    parser.add_argument("--output", help="write all numbers to this file as JSON")
    common.add_common_options(parser, rounds=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model, vocabulary = trained(options, pathlib.Path(folder))
        workers = common.start_torch(options, HERE / "peer_classify.py")
        for worker in workers.values():
            print("PyTorch:", worker.ask(what="prepare", model=str(model), test=options.test, longest=LONGEST,
                                         vocabulary=vocabulary, width=WIDTH, heads=HEADS))
        ours, theirs = [], {(name, size): [] for name in workers for size in SIZES}
        for _ in range(options.rounds):
            seconds, texts, tokens = seconds_of_fovea(options, model)
            ours.append(seconds)
            for name, size in theirs:
                theirs[name, size].append(workers[name].ask(what="measure", size=size)["seconds"])
        for worker in workers.values():
            worker.close()
    median = statistics.median(ours)
    result = {"machine": common.machine(options), "build": common.build(), "texts": texts, "tokens": tokens,
              "fovea": ours, "PyTorch": {f"{name} {size}": s for (name, size), s in theirs.items()}}
    print(f"fovea     {median:8.3f} s  {texts / median:10.0f} texts/s  {tokens / median:12.0f} tokens/s")
    for (name, size), seconds in theirs.items():
        peer = statistics.median(seconds)
        print(f"PyTorch {name}, batches of {size}: {peer:8.3f} s  {texts / peer:10.0f} texts/s  {peer / median:.2f}")
    if theirs:
        result["ratio"] = min(map(statistics.median, theirs.values())) / median
        print(f"ratio {result['ratio']:.2f}, target {TARGET}")
    if options.output:
        pathlib.Path(options.output).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

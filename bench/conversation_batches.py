#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What packing several conversations into one row would save: the time of `train lm --data chat` for a token of conversations of very different
lengths, beside conversations that all have the same length, and beside the same conversations one at a time (--batch-size 1 --accumulate N). Time is
that of the processor, in which other programs do not count, less that of a run of two updates.

  bench/conversation_batches.py [--rounds 3] [--updates 10] [--batch 16]

A batch is its conversations one behind another, without padding: it is packed already. A batch that is padded to its longest conversation computes
about twice as many tokens. Longer conversations have more attention, so a mixture takes somewhat longer than the mean. The model is a Llama of random
weights (GGUF, width 256, 6 layers), made here.
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

import common

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "cli"))
import gguf_support

FEW = 2  # updates
SHORTEST, LONGEST = 8, 392  # bytes of an answer; a byte is a token


def write_model(path):
    gguf_support.WIDTH, gguf_support.FF, gguf_support.LAYERS, gguf_support.HEADS, gguf_support.KV_HEADS = 256, 768, 6, 8, 4
    path.write_bytes(gguf_support.gguf(llama_context_length=(gguf_support.U32, 1024)))


def conversations(lengths, path):
    path.write_text("".join(json.dumps({"prompt": "?", "completion": "x" * length}) + "\n" for length in lengths), encoding="utf-8")


def seconds_of(options, model, data, updates, alone):
    """Of the processor, and the tokens that were learned."""
    with tempfile.TemporaryDirectory() as folder:
        run = pathlib.Path(folder) / "run"
        batch = ("--batch-size", 1, "--accumulate", options.batch) if alone else ("--batch-size", options.batch)
        command = [options.fovea, "train", "lm", "--base", model, "--train", data, "--data", "chat", "--loss-on", "all", "-o", run, "--quiet",
                   *batch, "--sequence-length", 1024, "--valid-fraction", 0, "--stop-after", f"{updates}u", "--log-every", 1, "--warmup", 1,
                   "-t", options.threads]
        process = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        if status != 0:
            sys.exit("fovea train lm has failed")
        with open(run / "metrics.jsonl", encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
    return usage.ru_utime + usage.ru_stime, [line for line in lines if "loss" in line][-1]["tokens"]


def time_of_a_token(options, model, data, alone):
    few, whole = (seconds_of(options, model, data, updates, alone) for updates in (FEW, options.updates))
    return (whole[0] - few[0]) / (whole[1] - few[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    common.add_common_options(parser, rounds=3)
    parser.add_argument("--updates", type=int, default=10)
    parser.add_argument("--batch", type=int, default=16)
    options = parser.parse_args()
    rng = random.Random(1)
    count = options.updates * options.batch
    mixed = [rng.randint(SHORTEST, LONGEST) for _ in range(count)]
    with tempfile.TemporaryDirectory() as folder:
        model, files = pathlib.Path(folder) / "m.gguf", {"mixed": mixed, "equal": [round(statistics.mean(mixed))] * count}
        write_model(model)
        for name, lengths in files.items():
            conversations(lengths, pathlib.Path(folder) / name)
        sides = {"mixed": ("mixed", False), "equal": ("equal", False), "mixed, one at a time": ("mixed", True)}
        found = {name: [] for name in sides}
        for _ in range(options.rounds):
            for name, (data, alone) in sides.items():
                found[name].append(time_of_a_token(options, model, pathlib.Path(folder) / data, alone))
    times = {name: statistics.median(values) for name, values in found.items()}
    for name, value in times.items():
        print(f"{name}: {1e6 * value:.0f} us of the processor for a token")
    print(f"mixed beside equal: {times['mixed'] / times['equal']:.2f}, one at a time: {times['mixed, one at a time'] / times['mixed']:.2f}; "
          f"answers as long as the longest would be {LONGEST / statistics.mean(mixed):.2f} times as many tokens")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Texts that are classified in a second, by `fovea classify` and by PyTorch, in turns.

  bench/classify.py TRAIN TEST [--rounds 5] [--output FILE]

TRAIN and TEST are labelled texts (TSV, label first, without a header; TEST packed by zstd), such as those of
IMDB. The model is the published one of Su 2018: width 128, 8 heads of 16, the first 80 tokens of a text; its
weights are those after one update, for time does not depend on them. fovea is the whole command, from the
loaded model on: it reads, unpacks, cuts into words, computes and prints. PyTorch takes batches of texts of about
the same length, in the size that is fastest for it; it is timed twice: the model alone, with ids that lie in
memory, and the whole, as a script of Python that reads the file and finds the ids in a dict. Three ratios:

  command / model   the whole of fovea against the model alone of PyTorch: fovea does more (the target)
  command / script  the same work on both sides
  model / model     without reading and words on both sides (fovea's reading of the next texts goes on beside)
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
    found = re.search(r"(\d+) texts, (\d+) tokens in ([\d.]+) s .*; the model: ([\d.]+) s", done.stderr)
    if done.returncode != 0 or not found:
        sys.exit(done.stderr)
    return float(found[3]), float(found[4]), int(found[1]), int(found[2])


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
        found = rounds(options, model, workers)
        for worker in workers.values():
            worker.close()
    result = {"machine": common.machine(options), "build": common.build(), **found, "ratios": ratios(found)}
    tell(result)
    if options.output:
        pathlib.Path(options.output).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def rounds(options, model, workers):
    """The seconds of all, in turns."""
    found = {"command": [], "model": [], "PyTorch model": {}, "PyTorch script": {}}
    for _ in range(options.rounds):
        command, alone, found["texts"], found["tokens"] = seconds_of_fovea(options, model)
        found["command"].append(command)
        found["model"].append(alone)
        for name, worker in workers.items():
            measure_torch(name, worker, found)
        print("round:", {key: value if isinstance(value, int) else last(value) for key, value in found.items()},
              flush=True)
    return found


def measure_torch(name, worker, found):
    """The model in every size; the script in the size in which the model was fastest in the first round."""
    model, script = found["PyTorch model"], found["PyTorch script"]
    for size in SIZES:
        model.setdefault(f"{name}, batches of {size}", []).append(worker.ask(what="measure", size=size)["seconds"])
    best = min(SIZES, key=lambda size: model[f"{name}, batches of {size}"][0])
    seconds = worker.ask(what="measure all", size=best)["seconds"]
    script.setdefault(f"{name}, batches of {best}", []).append(seconds)


def last(found):
    """Of a list of rounds, or of a dict of such lists."""
    if isinstance(found, dict):
        return {name: last(rounds) for name, rounds in found.items()}
    return round(found[-1], 3)


def fastest(variants):
    return min(map(statistics.median, variants.values()))


def ratios(found):
    if not found["PyTorch model"]:
        return {}
    command, model = statistics.median(found["command"]), statistics.median(found["model"])
    return {"command / model": fastest(found["PyTorch model"]) / command,
            "command / script": fastest(found["PyTorch script"]) / command,
            "model / model": fastest(found["PyTorch model"]) / model}


def tell(result):
    print(result["machine"])
    for name in ("command", "model"):
        seconds = statistics.median(result[name])
        print(f"fovea {name}: {seconds:.3f} s  {result['texts'] / seconds:.0f} texts/s")
    for section in ("PyTorch model", "PyTorch script"):
        for name, seconds in result[section].items():
            peer = statistics.median(seconds)
            print(f"{section}, {name}: {peer:.3f} s  {result['texts'] / peer:.0f} texts/s")
    for name, ratio in result["ratios"].items():
        print(f"{name}: {ratio:.2f}" + f" (target {TARGET})" * (name == "command / model"))


if __name__ == "__main__":
    main()

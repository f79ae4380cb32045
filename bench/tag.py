#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A BiLSTM-CRF tagger against the same model in PyTorch: an update of its training, and the job of tagging a file.

  bench/tag.py TRAIN TEST --python venv/bin/python

TRAIN and TEST are files of a word and its tag a line. The model has words of 100 numbers, characters by a convolution,
an LSTM of 200 in each direction, and batches of 32 sentences of about the same length. PyTorch does it in several ways:
the LSTM on padded or on packed sentences; words padded with characters, or (flat) side by side, by a product of gathered
windows; AdamW of the whole table of words or (sparse) SparseAdam of the rows of the batch; its CRF as products with
exp(transitions), by hand, or pytorch-crf; each as installed and with MKL's kernels for AVX-512. The fastest counts.
Rounds alternate, each in new processes. An update is the median over windows of ten updates; the batches of PyTorch are
ready in memory. Tagging is from the file to the tagged lines; of fovea it is the whole command.

--cpu measures the time of the processor, for a busy machine; it makes sense with --threads 1. An update of fovea is then
the difference of two runs.
"""
import argparse
import json
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import common

HERE = pathlib.Path(__file__).parent
SIZES = {"words": 100, "characters": 30, "features": 50, "width": 128, "hidden": 200, "batch": 32}
WAYS = ("padded", "padded, flat", "padded, flat, sparse", "packed, flat, sparse", "padded, pytorch-crf")
TAGGED = [(way, size) for way in ("padded", "padded, flat", "packed, flat", "padded, pytorch-crf") for size in (32, 128)]
TARGETS = {"training": 2, "tagging": 5}
FIRST, WINDOW = 10, 10  # updates: before the first window, and of one; fovea writes a record after each window


def run_fovea(options, *arguments, **more):
    done = subprocess.run([options.fovea, *map(str, arguments)], env=common.environment(options.threads),
                          preexec_fn=common.pin(options.threads), check=False, stderr=subprocess.PIPE, **more)
    if done.returncode != 0:
        sys.exit(done.stderr.decode())


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def train(options, folder, updates):
    run_fovea(options, "train", "tag", "--train", options.train, "--valid-fraction", "0", "-o", folder, "--shape-width",
              0, "--encoder", f"bilstm:{SIZES['hidden']}", "--word-width", SIZES["words"], "--character-width",
              SIZES["characters"], "--character-features", SIZES["features"], "--width", SIZES["width"], "--batch-size",
              SIZES["batch"], "--bias", "--lr", "1e-3", "--stop-after", f"{updates}u", "--eval-every", f"{updates}u",
              "--save-every", f"{updates}u", "--log-every", WINDOW, "--threads", options.threads, "-q", stdout=subprocess.DEVNULL)


def our_training(options, folder):
    """Of an update, by the clock of the run itself."""
    if options.cpu:
        begin = processor_seconds()
        train(options, folder.with_suffix(".short"), FIRST)
        middle = processor_seconds()
        train(options, folder, FIRST + options.updates)
        seconds = (processor_seconds() - middle - (middle - begin)) / options.updates
        return {"seconds": seconds, "fastest": seconds}
    train(options, folder, FIRST + options.updates)
    records = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    at = [record["seconds"] for record in records if record["kind"] == "update" and record["step"] >= FIRST]
    windows = [(b - a) / WINDOW for a, b in zip(at, at[1:])]
    return {"seconds": statistics.median(windows), "fastest": min(windows)}


def our_tagging(options, model, test):
    now = processor_seconds if options.cpu else time.perf_counter
    begin = now()
    run_fovea(options, "tag", model, test, "--threads", options.threads, "-q", stdout=subprocess.DEVNULL)
    return {"seconds": now() - begin}


def measure(options, folder, test):
    """What every round found, by what was measured and who was."""
    found = {"training": {}, "tagging": {}}

    def add(what, who, answer):
        if "seconds" in answer:
            found[what].setdefault(who, []).append(answer)

    asked = {"sizes": SIZES, "clock": "cpu" if options.cpu else "wall"}
    for number in range(options.rounds):
        model = folder / f"model{number}"
        workers = common.start_torch(options, HERE / "peer_tag.py")
        add("training", "fovea", our_training(options, model))
        for name, worker in workers.items():
            for way in WAYS:
                add("training", f"{way}, {name}", worker.ask(what="training", path=str(options.train), way=way,
                                                             updates=options.updates, **asked))
        add("tagging", "fovea", our_tagging(options, model, test))
        for name, worker in workers.items():
            for way, size in TAGGED:
                add("tagging", f"{way}, batches of {size}, {name}", worker.ask(
                    what="tagging", train=str(options.train), path=str(test), way=way, size=size, **asked))
            worker.close()
        print(f"round {number + 1}: " + ", ".join(f"{what} {1e3 * all_of['fovea'][-1]['seconds']:.1f} ms"
                                                  for what, all_of in found.items()), flush=True)
    return found


def ratios(found):
    """By what was measured: PyTorch's fastest way, and how many times as long its median takes."""
    result = {}
    for what, rounds in found.items():
        medians = {who: statistics.median(r["seconds"] for r in all_of) for who, all_of in rounds.items()}
        peers = [who for who in medians if who != "fovea"]
        if peers:
            best = min(peers, key=medians.get)
            result[what] = {"peer": best, "ratio": medians[best] / medians["fovea"], "target": TARGETS[what]}
    return result


def tell(result):
    print(result["machine"])
    for what, rounds in result["found"].items():
        for who, all_of in rounds.items():
            print(f"{what}: {who:44} {common.spread([1e3 * r['seconds'] for r in all_of])} ms")
    for what, one in result["ratios"].items():
        print(f"{what}: {one['ratio']:.2f}x PyTorch's fastest ({one['peer']}); target {one['target']}x")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train", type=pathlib.Path)
    parser.add_argument("test", type=pathlib.Path)
    parser.add_argument("--updates", type=int, default=100, help="of a round")
    parser.add_argument("--copies", type=int, default=8, help="of the test sentences, to tag in one file")
    parser.add_argument("--cpu", action="store_true", help="measure the time of the processor")
    parser.add_argument("--output", type=pathlib.Path, help="write all numbers to this file as JSON")
    common.add_common_options(parser, rounds=3)
    options = parser.parse_args()
    common.need_binary(options)
    with tempfile.TemporaryDirectory() as folder:
        test = pathlib.Path(folder) / "test.conll"
        test.write_text(options.test.read_text(encoding="utf-8") * options.copies, encoding="utf-8")
        found = measure(options, pathlib.Path(folder), test)
    result = {"machine": common.machine(options), "build": common.build(), "sizes": SIZES, "found": found,
              "ratios": ratios(found)}
    tell(result)
    if options.output:
        options.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

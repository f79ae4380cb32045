#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How good a classifier `fovea train classify` and fastText make of the same texts.

  bench/fasttext.py TRAIN TEST [--flags "..."] [--quick] [--output FILE]

TRAIN and TEST are labelled texts (TSV, label first, without a header; may be packed by zstd), such as those of
IMDB. fovea runs twice: with its defaults, and with --flags. fastText (package fasttext of Debian, or
--fasttext) gets the texts in lower case with spaces around punctuation, the words that fovea cuts them into.
Its settings are chosen on a tenth of TRAIN that is held out, one after another: lr and epochs, length of
n-grams, dimension, fewest occurrences of a word; --quick leaves them at the first guess (bigrams, lr 0.5, 10
epochs, dimension 100). Then it is trained on all of TRAIN. TEST is read once by each, at the end. Seconds are
those of training, on --threads threads. fastText's result with more threads than one is another each time.
"""
import argparse
import json
import pathlib
import random
import re
import shlex
import subprocess
import sys
import tempfile
import time

import common

FLAGS = ("--ngrams 3 --buckets 2000000 --ngram-width 32 --width 128 --min-count 1 --dropout 0.9 --lr 0.002 "
         "--stop-after 10e --patience 0")
WORD = re.compile(r"\w+(?:'\w+)*|[^\w\s]")
FIRST = {"lr": 0.5, "epoch": 10, "wordNgrams": 2, "dim": 100, "minCount": 1}
# Each is tried with the best of those before.
TRIES = ([{"lr": lr, "epoch": epoch} for lr in (0.1, 0.25, 0.5, 1.0) for epoch in (5, 10, 25)],
         [{"wordNgrams": n} for n in (1, 3)], [{"dim": dim} for dim in (10, 50)], [{"minCount": n} for n in (2, 5)])


def rows_of(path):
    data = pathlib.Path(path).read_bytes()
    if data[:4] == b"\x28\xb5\x2f\xfd":
        data = subprocess.run(["zstd", "-dc", path], check=True, capture_output=True).stdout
    return [line.split("\t", 1) for line in data.decode().split("\n") if line]


def write_fasttext(path, rows):
    lines = (f"__label__{label} {' '.join(WORD.findall(text.lower()))}\n" for label, text in rows)
    path.write_text("".join(lines), encoding="utf-8")


def split(rows):
    """A tenth of the texts to validate on, and the others."""
    rows = list(rows)
    random.Random(1).shuffle(rows)
    tenth = len(rows) // 10
    return rows[:tenth], rows[tenth:]


def run_fasttext(options, settings, train, test):
    """The accuracy on `test` of a model of `train`, and the seconds that it was trained."""
    model = train.with_suffix(".model")
    command = [options.fasttext, "supervised", "-input", train, "-output", model, "-bucket", 2000000,
               "-thread", options.threads, "-verbose", 0]
    for name, value in settings.items():
        command += [f"-{name}", value]
    began = time.monotonic()
    subprocess.run(list(map(str, command)), check=True, capture_output=True)
    seconds = time.monotonic() - began
    said = subprocess.run([options.fasttext, "test", f"{model}.bin", str(test)], check=True, capture_output=True,
                          encoding="utf-8").stdout
    return float(re.search(r"P@1\s+([\d.]+)", said)[1]), seconds


def tuned(options, folder, rows):
    held, rest = split(rows)
    write_fasttext(folder / "rest", rest)
    write_fasttext(folder / "held", held)
    settings, tried = dict(FIRST), []

    def measure(more):
        found = {**settings, **more}
        accuracy, seconds = run_fasttext(options, found, folder / "rest", folder / "held")
        tried.append({**found, "held_out": accuracy, "seconds": seconds})
        print(f"fastText {found}: held out {accuracy:.4f}, {seconds:.0f} s", flush=True)
        return accuracy

    best = measure({})
    for group in () if options.quick else TRIES:
        chosen = {}
        for more in group:
            if {**settings, **more} == settings:
                continue
            accuracy = measure(more)
            if accuracy > best:
                best, chosen = accuracy, more
        settings.update(chosen)
    return settings, tried


def run_fovea(options, flags, folder):
    columns = ["--header", "no", "--label-column", "1", "--text-column", "2"]
    began = time.monotonic()
    command = [options.fovea, "train", "classify", "--train", options.train, "-o", str(folder), "--quiet",
               "--threads", str(options.threads), *columns, *flags]
    done = subprocess.run(command, capture_output=True, encoding="utf-8")
    seconds = time.monotonic() - began
    if done.returncode != 0:
        sys.exit(done.stderr)
    said = subprocess.run([options.fovea, "eval", str(folder), "--test", options.test, "--quiet", "--json", *columns],
                          capture_output=True, encoding="utf-8")
    if said.returncode != 0:
        sys.exit(said.stderr)
    return json.loads(said.stdout)["accuracy"]["value"], seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train")
    parser.add_argument("test")
    parser.add_argument("--flags", default=FLAGS, help="of fovea, beside its defaults (default: %(default)s)")
    parser.add_argument("--fasttext", default="fasttext", help="the binary")
    parser.add_argument("--quick", action="store_true", help="do not tune fastText")
    parser.add_argument("--output", help="write all numbers to this file as JSON")
    common.add_common_options(parser, rounds=1)
    options = parser.parse_args()
    common.need_binary(options)
    result = {"machine": common.machine(options), "build": common.build(), "flags": options.flags}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        rows = rows_of(options.train)
        settings, result["tried"] = tuned(options, folder, rows)
        random.Random(1).shuffle(rows)  # fastText reads them in their order, and those of IMDB are sorted by label
        write_fasttext(folder / "train", rows)
        write_fasttext(folder / "test", rows_of(options.test))
        found = {f"fastText {settings}": run_fasttext(options, settings, folder / "train", folder / "test")}
        for title, flags in ("fovea, default", ""), (f"fovea {options.flags}", options.flags):
            found[title] = run_fovea(options, shlex.split(flags), folder / f"model{len(found)}")
    for title, (accuracy, seconds) in found.items():
        print(f"{accuracy:.4f}  {seconds:6.0f} s  {title}")
    result["found"] = [{"who": t, "accuracy": a, "seconds": s} for t, (a, s) in found.items()]
    if options.output:
        pathlib.Path(options.output).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

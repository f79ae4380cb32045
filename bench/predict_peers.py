#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A million lines that are classified by `fovea classify` and by fastText's `predict-prob`, in turns.

  bench/predict_peers.py IMDB [--lines 1000000] [--rounds 3] [--output FILE]

IMDB is the folder with train.tsv.zst and test.tsv.zst. The lines are the sentences of the test reviews, from the
first again where there are too few. Both models are trained on 20,000 sentences of the training reviews, each with
the label of its review: fovea with its defaults (n-grams of 1 and 2 words and of 2 to 5 characters), and with
n-grams of words alone; fastText (package fasttext of Debian, or --fasttext) with the settings of its example of
classification (bigrams of words, dimension 10), and with n-grams of 2 to 5 characters as well (-minn 2 -maxn 5).
fastText gets words in lower case with spaces around punctuation, which fovea makes itself. Each command runs on one
thread, from the file to a file; what counts are its CPU seconds, since other programs may share the machine. fastText
is timed on an empty file, too: the time to load its model is told apart.
"""
import argparse
import json
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile

import common
from fasttext import WORD, rows_of

SETTINGS = {"words": (["--word-ngrams", "1-2", "--char-ngrams", "0"], []),
            "words and characters": ([], ["-minn", 2, "-maxn", 5])}
EXAMPLE = ["-dim", 10, "-lr", 0.1, "-wordNgrams", 2, "-minCount", 1, "-bucket", 2000000, "-epoch", 5, "-thread", 1,
           "-verbose", 0]


def sentences_of(path):
    """(label, sentence) of all reviews, shuffled."""
    found = [(label, part) for label, text in rows_of(path)
             for part in re.split(r"(?<=[.!?])\s+|<br />", text) if part.strip()]
    random.Random(1).shuffle(found)
    return found


def run(command, into=None):
    """CPU seconds of a command, whose output goes into a file."""
    before = os.times()
    with open(into or os.devnull, "wb") as out:
        done = subprocess.run(list(map(str, command)), stdout=out, stderr=subprocess.PIPE)
    if done.returncode != 0:
        sys.exit(f"{command}\n{done.stderr.decode()}")
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def prepare(options, folder):
    """Writes the files and trains the models."""
    train = sentences_of(pathlib.Path(options.imdb) / "train.tsv.zst")[:20000]
    test = [part for _, part in sentences_of(pathlib.Path(options.imdb) / "test.tsv.zst")]
    lines = [test[n % len(test)] for n in range(options.lines)]
    cut = [" ".join(WORD.findall(line.lower())) for line in lines]
    (folder / "lines.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "cut.txt").write_text("\n".join(cut) + "\n", encoding="utf-8")
    (folder / "empty.txt").write_text("")
    (folder / "train.tsv").write_text("".join(f"{label}\t{part}\n" for label, part in train), encoding="utf-8")
    (folder / "train.txt").write_text("".join(
        f"__label__{label} {' '.join(WORD.findall(part.lower()))}\n" for label, part in train), encoding="utf-8")
    for name, (ours, theirs) in SETTINGS.items():
        run([options.fovea, "train", "classify", "--train", folder / "train.tsv", "--header", "no", "--label-column", 1,
             "--text-column", 2, "--quiet", "-t", options.threads, "-o", folder / f"fovea {name}", *ours])
        run([options.fasttext, "supervised", "-input", folder / "train.txt", "-output", folder / f"fastText {name}",
             *EXAMPLE, *theirs])


def measure(options, folder):
    """name -> CPU seconds, in turns."""
    found = {}
    for _ in range(options.rounds):
        for name in SETTINGS:
            model = folder / f"fastText {name}.bin"
            once = {
                f"fovea, {name}": run([options.fovea, "classify", folder / f"fovea {name}", folder / "lines.txt",
                                       "--format", "lines", "-t", 1, "-q"], folder / "ours"),
                f"fastText, {name}": run([options.fasttext, "predict-prob", model, folder / "cut.txt"],
                                         folder / "theirs"),
                f"fastText, {name}, no line": run([options.fasttext, "predict-prob", model, folder / "empty.txt"])}
            for what, seconds in once.items():
                found.setdefault(what, []).append(seconds)
                print(f"  {what}: {seconds:.2f} s", flush=True)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("imdb")
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--fasttext", default="fasttext", help="the binary")
    parser.add_argument("--output", help="write all numbers to this file as JSON")
    common.add_common_options(parser, rounds=3)
    options = parser.parse_args()
    common.need_binary(options)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        prepare(options, folder)
        found = measure(options, folder)
    medians = {name: statistics.median(seconds) for name, seconds in found.items()}
    result = {"machine": common.machine(options), "build": common.build(), "lines": options.lines, "cpu_seconds": found}
    for name in SETTINGS:
        ours, theirs = medians[f"fovea, {name}"], medians[f"fastText, {name}"]
        loading = medians[f"fastText, {name}, no line"]
        print(f"{name}: fovea {ours:.1f} s, fastText {theirs:.1f} s ({loading:.1f} s of it to load): "
              f"{theirs / ours:.2f}x, without loading {(theirs - loading) / ours:.2f}x")
    if options.output:
        pathlib.Path(options.output).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

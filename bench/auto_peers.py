#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`fovea train classify --auto` beside fastText's autotune, with the same time, in turns.

  bench/auto_peers.py DATA                          all sets, ten minutes each
  bench/auto_peers.py DATA --only zh --time 120     one of them, two minutes

DATA and the sets are those of linear_peers.py with classes. fastText (package fasttext of Debian, or --fasttext) gets
words in lower case with spaces around them, of Chinese characters, and tunes itself on a tenth of the texts that is
held out (-autotune-duration); fovea gets the texts and `--auto`. Both are told the same seconds by the clock and run on
--threads threads, with other programs beside them where the machine is shared: so CPU seconds are told, too. The test
texts are read once by each, at the end; what counts is accuracy, or macro F1 where classes are uneven.
"""
import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

import common
from fasttext import WORD
from linear_peers import Data, sets_of, write

SETS = "imdb-500", "imdb-2000", "imdb-10000", "uneven", "zh", "languages"


def scores(truth, predicted):
    """Accuracy and macro F1."""
    f1 = []
    for label in sorted(set(truth)):
        both = sum(t == p == label for t, p in zip(truth, predicted))
        f1.append(2 * both / (truth.count(label) + predicted.count(label)))
    return {"accuracy": sum(t == p for t, p in zip(truth, predicted)) / len(truth), "macro_f1": sum(f1) / len(f1)}


def cpu_seconds():
    times = os.times()
    return times.children_user + times.children_system


def run_fovea(options, found, folder):
    write(folder / "train.jsonl", found.train)
    write(folder / "test.jsonl", found.test)
    common.fovea(options, "train", "classify", "--train", folder / "train.jsonl", "--auto", f"{options.time}s", "-t",
                 options.threads, "-o", folder / "model")
    told = common.fovea(options, "eval", folder / "model", "--test", folder / "test.jsonl", "-t", options.threads)
    return {name: told[name]["value"] for name in ("accuracy", "macro_f1")}


def run_fasttext(options, found, folder):
    def cut(text):
        words = [w if w.isascii() else " ".join(w) for w in WORD.findall(text.lower())] if options.name == "zh" \
            else WORD.findall(text.lower())
        return " ".join(words)

    def lines(rows):
        return "".join(f"__label__{label} {cut(text)}\n" for label, text in rows)

    rows = list(found.train)
    random.Random(1).shuffle(rows)
    tenth = len(rows) // 10
    for name, part in (("held", rows[:tenth]), ("rest", rows[tenth:]), ("test", found.test)):
        (folder / name).write_text(lines(part), encoding="utf-8")
    command = [options.fasttext, "supervised", "-input", folder / "rest", "-output", folder / "tuned",
               "-autotune-validation", folder / "held", "-autotune-duration", options.time, "-thread", options.threads,
               "-verbose", 0]
    subprocess.run(list(map(str, command)), check=True, capture_output=True)
    said = subprocess.run([options.fasttext, "predict", str(folder / "tuned.bin"), str(folder / "test")], check=True,
                          capture_output=True, encoding="utf-8").stdout
    # An empty line has no answer.
    answers = [line.removeprefix("__label__") for line in said.split("\n")[:len(found.test)]]
    return scores([str(label) for label, _ in found.test], answers)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--only", nargs="+", metavar="SET", choices=SETS, default=SETS, help="the sets to run")
    parser.add_argument("--time", type=int, default=600, metavar="SECONDS", help="for each search")
    parser.add_argument("--fasttext", default="fasttext", help="the binary")
    parser.add_argument("--output", help="a file to which a line of JSON is added for each result")
    common.add_common_options(parser, rounds=None)
    options = parser.parse_args()
    common.need_binary(options)
    sets = sets_of(Data(options.data))
    for options.name in options.only:
        try:
            found = sets[options.name]()
        except (FileNotFoundError, subprocess.CalledProcessError) as error:
            print(f"{options.name}: left out ({error})")
            continue
        print(f"{options.name}: {len(found.train)} texts, {len(found.test)} to test; {found.score}", flush=True)
        for who, run in ("fovea", run_fovea), ("fastText", run_fasttext):
            before = cpu_seconds()
            with tempfile.TemporaryDirectory() as folder:
                told = run(options, found, pathlib.Path(folder))
            seconds = cpu_seconds() - before
            print(f"  {told[found.score]:.4f}  {who} (accuracy {told['accuracy']:.4f}, macro F1 {told['macro_f1']:.4f}; "
                  f"{seconds:.0f} s of CPU)", flush=True)
            if options.output:
                with open(options.output, "a", encoding="utf-8") as out:
                    out.write(json.dumps({"set": options.name, "who": who, "time": options.time, **told,
                                          "cpu_seconds": seconds, "machine": common.machine(options)}) + "\n")


if __name__ == "__main__":
    sys.exit(main())

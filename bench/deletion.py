#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether the words that `fovea explain` names decide: deleting them changes the answer more than deleting others.

  bench/deletion.py DATA                      all sets
  bench/deletion.py DATA --only imdb-500 zh   some of them

DATA is that of bench/linear_peers.py, and so are the sets. A model is trained with its defaults; of --texts test texts
the --words tokens that count most for the answer are deleted (of a text of fewer than twice as many tokens half of
them), and as many others at random, the mean of --draws draws. What changes is the log-odds of the answer's label, or
the number. Counted is in how many texts the named ones change it more; p is that of the sign test, one-sided: half of
them would be chance. Ends with 1 if a p is above --level.
"""
import argparse
import json
import math
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

import common
import linear_peers

SETS = ["imdb-500", "uneven", "labels", "numbers", "zh", "languages"]


def is_word(token):
    return any(c.isalnum() for c in token)


def joined(tokens, blank):
    return blank.join(tokens)


def answers(options, model, texts, kind):
    """label -> probability of each text; of numbers {"": number}."""
    every = [] if kind == "numbers" else ["--top", "1000"]
    done = subprocess.run([options.fovea, "classify", model, "--json", *every, "-t", str(options.threads)],
                          input="".join(text + "\n" for text in texts), capture_output=True, encoding="utf-8")
    if done.returncode != 0:
        sys.exit(done.stderr)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return [line.get("probabilities") or {"": line["value"]} for line in lines]


def measure_of(answer, label):
    if label == "":
        return answer[""]
    p = min(max(answer.get(label, 0), 1e-7), 1 - 1e-7)
    return math.log(p / (1 - p))


def label_of(explained):
    """The label whose logit is explained: 'the logit of "good"'."""
    of = explained["saliency"]["of"]
    return json.loads(of[of.index('"'):]) if '"' in of else ""


def sign_test(wins, count):
    """The probability of so many wins or more by chance."""
    return sum(math.comb(count, k) for k in range(wins, count + 1)) / 2 ** count


class Case:
    """A text, without the named tokens, and without others at random."""

    def __init__(self, options, model, text, blank, rng):
        explained = common.fovea(options, "explain", model, text)
        tokens, values = explained["tokens"], explained["saliency"]["values"]
        self.label = label_of(explained)
        words = [i for i, token in enumerate(tokens) if is_word(token)]
        count = min(options.words, len(words) // 2)
        # Of a number there is no label for which to count: what moves it most, either way.
        strength = abs if self.label == "" else float
        named = sorted(words, key=lambda i: -strength(values[i]))[:count]
        others = [i for i in words if i not in named]
        deleted = [[], named] + [rng.sample(others, min(count, len(others))) for _ in range(options.draws)]
        self.texts = [joined([token for i, token in enumerate(tokens) if i not in gone], blank) for gone in deleted]

    def changes(self, found):
        """(by the named tokens, by others)"""
        whole, named, *others = (measure_of(answer, self.label) for answer in found)
        return abs(whole - named), statistics.mean(abs(whole - other) for other in others)


def run_set(options, name, found):
    more = {"classes": [], "labels": ["--multi-label"], "numbers": ["--regression"]}[found.kind]
    blank, rng = "" if name == "zh" else " ", random.Random(5)
    with tempfile.TemporaryDirectory() as folder:
        train, model = pathlib.Path(folder) / "train.jsonl", pathlib.Path(folder) / "model"
        linear_peers.write(train, found.train)
        common.fovea(options, "train", "classify", "--train", train, "-t", options.threads, "-o", model, *more)
        texts = [" ".join(text.split()) for _, text in found.test]
        texts = rng.sample([text for text in texts if text and not text.startswith("-")], options.texts)
        cases = [Case(options, model, text, blank, rng) for text in texts]
        found_answers = answers(options, model, [text for case in cases for text in case.texts], found.kind)
    each = options.draws + 2
    changes = [case.changes(found_answers[n * each:(n + 1) * each]) for n, case in enumerate(cases)]
    wins, count = sum(named > other for named, other in changes), sum(named != other for named, other in changes)
    return statistics.mean(named for named, _ in changes), statistics.mean(other for _, other in changes), wins, count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--only", nargs="+", metavar="SET", default=SETS, help="the sets to run")
    parser.add_argument("--texts", type=int, default=100, help="of each set")
    parser.add_argument("--words", type=int, default=5, help="that are deleted")
    parser.add_argument("--draws", type=int, default=5, help="of others")
    parser.add_argument("--level", type=float, default=0.001)
    common.add_common_options(parser, rounds=None)
    options = parser.parse_args()
    sets, holds = linear_peers.sets_of(linear_peers.Data(options.data)), True
    for name in options.only:
        named, other, wins, count = run_set(options, name, sets[name]())
        p = sign_test(wins, count)
        holds = holds and p <= options.level
        print(f"{name}: the named words change the answer by {named:.3f}, others by {other:.3f}; more in {wins} of "
              f"{count} texts, p = {p:.1e}", flush=True)
    sys.exit(0 if holds else 1)


if __name__ == "__main__":
    main()

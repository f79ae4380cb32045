#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sentence encoders that are trained further (train embed): small random models of BERT."""

import json
import math
import random
import shutil
import signal
import time
import unittest

from bert_support import unit, vector, weights, write_model
from support import CommandTest
from test_base import tensors_of

KINDS = {"king": "moon", "dog": "cat", "old": "cafe", "un": "able"}
FILLER = ["the", "sees", "run", "!", ",", "."]
FEW = ("--batch-size", 8, "--lr", "1e-2", "--stop-after", "60u", "--eval-every", "30u", "--save-every", "20u", "--threads", 2,
       "--progress", "none")


def text(word, rng, most=5):
    words = rng.choices(FILLER, k=rng.randint(1, most))
    words[rng.randrange(len(words))] = word
    return " ".join(words)


def pairs(count=80, seed=1):
    """Texts of one telling word; what belongs to one has another word, always the same."""
    rng = random.Random(seed)
    return [(text(word, rng), text(KINDS[word], rng)) for n in range(count) for word in [list(KINDS)[n % 4]]]


def triplets(count=80, seed=2):
    rng = random.Random(seed)
    words = list(KINDS)
    return [(text(words[n % 4], rng), text(KINDS[words[n % 4]], rng), text(KINDS[words[(n + 1) % 4]], rng)) for n in range(count)]


def scored(count=80, seed=3):
    rng = random.Random(seed)
    rows = []
    for n in range(count):
        word, other = list(KINDS)[n % 4], rng.choice(list(KINDS))
        rows.append((text(word, rng), text(KINDS[other], rng), 5 if word == other else 1))
    return rows


def table(rows, header=None):
    return "".join("\t".join(map(str, row)) + "\n" for row in ([header] if header else []) + list(rows))


class EmbedTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.base = write_model(self.folder / "base")
        self.data = self.write("pairs.tsv", table(pairs()))

    def write(self, name, content):
        path = self.folder / name
        path.write_text(content, encoding="utf-8")
        return path

    def begin(self, output, *more, data=None, **options):
        return self.succeed("train", "embed", "--base", self.base, "--train", data or self.data, "-o", self.folder / output, *FEW,
                            *more, **options)

    def fails(self, status, needle, *more, data=None, base=None):
        done = self.run_fovea("train", "embed", *(["--base", base or self.base] if base != "" else []), "--train", data or self.data,
                              "-o", self.folder / "failed", *more)
        self.assert_error(done, status, *([needle] if isinstance(needle, str) else needle))
        self.assertFalse((self.folder / "failed").exists())

    def bits(self, output):
        return tensors_of(self.folder / output / "model.safetensors")

    def config(self, output):
        return json.loads((self.folder / output / "config.json").read_text(encoding="utf-8"))

    def score(self, model, data):
        return json.loads(self.succeed("eval", model, "--test", data, "--json").stdout)

    def losses(self, output):
        lines = [json.loads(line) for line in (self.folder / output / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
        return [line["loss"] for line in lines if "loss" in line]


class TrainsEmbed(EmbedTest):
    def test_learns_pairs_and_needs_the_base_no_longer(self):
        test = self.write("test.tsv", table(pairs(24, seed=9)))
        before = self.score(self.base, test)
        self.begin("run", "--encoder-dropout", 0)
        shutil.rmtree(self.base)
        after = self.score(self.folder / "run", test)
        self.assertEqual((after["task"], after["pairs"]), ("retrieval", 24))
        self.assertGreater(after["mrr"]["value"], before["mrr"]["value"] + 0.1)
        self.assertLessEqual(after["mrr"]["low"], after["mrr"]["value"])
        self.assertEqual(self.config("run")["text"]["objective"], "infonce")
        self.assertEqual((self.config("run")["model"]["pooling"], self.config("run")["model"]["normalizes"]), ("mean", True))
        vectors = self.succeed("embed", self.folder / "run", stdin=b"the king\nsees").stdout.decode().splitlines()
        self.assertAlmostEqual(sum(x * x for x in json.loads(vectors[0])["vector"]), 1, places=5)
        like = self.succeed("similar", self.folder / "run", stdin=b"the king\tsees moon\nthe king\tsees cat\n").stdout.split()
        self.assertGreater(float(like[0]), float(like[1]))
        self.assertIn("vectors of 8 numbers, pooling mean", self.succeed("inspect", self.folder / "run").stdout.decode())
        self.succeed("inspect", self.folder / "run", "--verify")
        self.assert_error(self.run_fovea("explain", self.folder / "run", "the king"), 4, "no answers to explain")
        (self.folder / "eval.json").write_text(json.dumps(after), encoding="utf-8")
        self.succeed("report", self.folder / "run", "-o", self.folder / "page.html")
        self.assertIn("recall at 5", self.succeed("eval", self.folder / "run", "--test", test).stdout.decode())

    def test_learns_triplets_and_scores(self):
        hard = self.write("triplets.tsv", table(triplets(), ("anchor", "positive", "negative")))
        said = self.begin("hard", data=hard).stderr.decode()
        self.assertIn("with 72 further texts", said)
        likeness = self.write("scored.tsv", table(scored(), ("sentence1", "sentence2", "score")))
        self.begin("scored", "--encoder-dropout", 0, "--lr", "2e-2", data=likeness)
        self.assertEqual(self.config("scored")["text"]["objective"], "cosent")
        score = self.score(self.folder / "scored", likeness)
        self.assertEqual(score["task"], "similarity")
        self.assertGreater(score["spearman"]["value"], 0.5)

    def test_reads_csv_and_lists_of_json(self):
        rows = triplets()
        lines = self.write("t.jsonl", "".join(json.dumps({"anchor": a, "positive": b, "negatives": [c, "the cat"]}) + "\n"
                                              for a, b, c in rows))
        self.assertIn("with 144 further texts", self.begin("json", data=lines).stderr.decode())
        plain = self.write("t.csv", "".join(f'"{a}","{b}","{c}"\n' for a, b, c in rows))
        self.begin("csv", data=plain)
        named = self.write("u.tsv", table([(c, b, a) for a, b, c in rows], ("x", "y", "z")))
        self.begin("named", "--text-column", "z", "--second-column", "y", "--negative-columns", "x", data=named)
        self.assertEqual(self.bits("csv"), self.bits("named"))

    def test_the_first_loss_is_that_of_plain_loops(self):
        rows = pairs(8)
        few = self.write("few.tsv", table(rows))
        self.begin("run", "--encoder-dropout", 0, "--valid-fraction", 0, "--stop-after", "1u", data=few)
        tensors = weights()
        anchors = [vector(a, tensors) for a, _ in rows]
        others = [vector(b, tensors) for _, b in rows]
        loss = 0
        for i, (a, b) in enumerate(rows):
            belongs = {other for anchor, other in rows if anchor == a} | {a}
            logits = [sum(x * y for x, y in zip(anchors[i], others[j])) / 0.05 for j, (_, other) in enumerate(rows)
                      if j == i or other not in belongs]
            own = sum(x * y for x, y in zip(anchors[i], others[i])) / 0.05
            loss += math.log(sum(map(math.exp, logits))) - own
        self.assertAlmostEqual(self.losses("run")[0], loss / len(rows), places=4)

    def test_threads_and_resuming_change_no_bit(self):
        self.begin("whole")
        self.begin("three", "--threads", 3)
        self.assertEqual(self.bits("whole"), self.bits("three"))
        process = self.start("train", "embed", "--base", self.base, "--train", self.data, "-o", self.folder / "cut", *FEW)
        until = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < until and not list((self.folder / "cut").glob("checkpoint*")):
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        process.communicate()
        shutil.move(self.base, self.folder / "moved")
        self.succeed("train", "embed", "--resume", "-o", self.folder / "cut", "--progress", "none")
        self.assertEqual(self.bits("whole"), self.bits("cut"))

    def test_a_batch_in_parts_is_the_whole_batch(self):
        common = ("--stop-after", "3u", "--valid-fraction", 0)
        self.begin("whole", *common)
        self.begin("once", "--micro-batch", 16, *common)
        self.begin("parts", "--micro-batch", 3, *common)
        self.assertEqual(self.bits("whole"), self.bits("once"))
        for name, more in (("first", ()), ("first-parts", ("--micro-batch", 3))):
            self.begin(name, *common, "--stop-after", "1u", *more)
        self.assertEqual(self.losses("first"), self.losses("first-parts"))
        for a, b in zip(self.losses("whole"), self.losses("parts")):
            self.assertAlmostEqual(a, b, places=4)

    def test_matryoshka_trains_the_first_columns(self):
        test = self.write("test.tsv", table(pairs(24, seed=9)))

        def mrr(output):
            lines = [json.loads(line)["vector"] for line in self.succeed(
                "embed", self.folder / output, "--truncate-dim", 2, stdin="".join(f"{a}\n{b}\n" for a, b in pairs(24, seed=9)).encode()
            ).stdout.decode().splitlines()]
            units = [unit(x) for x in lines]
            ranks = 0
            for i in range(0, len(units), 2):
                own = sum(x * y for x, y in zip(units[i], units[i + 1]))
                ranks += 1 / (1 + sum(sum(x * y for x, y in zip(units[i], units[j])) > own for j in range(1, len(units), 2)))
            return ranks / 24

        self.begin("whole", "--encoder-dropout", 0)
        self.begin("short", "--encoder-dropout", 0, "--matryoshka", "8,2")
        self.assertEqual(self.config("short")["text"]["matryoshka"], "8,2")
        self.assertGreater(mrr("short"), mrr("whole"))
        self.score(self.folder / "short", test)

    def test_begins_from_a_run_and_freezes(self):
        self.begin("first", "--stop-after", "2u")
        self.succeed("train", "embed", "--base", self.folder / "first", "--train", self.data, "-o", self.folder / "second", *FEW,
                     "--freeze", "embeddings,0", "--stop-after", "2u")
        labelled = self.write("labelled.tsv", "".join(f"{n % 2}\t{a}\n" for n, (a, _) in enumerate(pairs())))
        self.succeed("train", "classify", "--base", self.folder / "second", "--train", labelled, "-o", self.folder / "third",
                     "--stop-after", "2u", "--progress", "none")

    def test_defaults(self):
        shown = self.succeed("train", "embed", "--base", self.base, "--train", self.data, "--dump-config").stdout.decode()
        for line in ("lr = 2e-05", "batch_size = 32", "temperature = 0.05", "max_length = 12", "schedule = 'linear'"):
            self.assertIn(line, shown)

    def test_a_warm_up_that_is_said_is_kept(self):
        self.begin("usual", "--stop-after", "20u")
        self.assertEqual(self.config("usual")["recipe"]["warmup"], 2)
        self.begin("said", "--stop-after", "20u", "--warmup", 50)
        self.assertEqual(self.config("said")["recipe"]["warmup"], 50)

    def test_a_head_of_the_base_is_left_out(self):
        labelled = self.write("labelled.tsv", "".join(f"{'bad' if n % 2 else 'good'}\t{a}\n" for n, (a, _) in enumerate(pairs())))
        self.succeed("train", "classify", "--base", self.base, "--train", labelled, "-o", self.folder / "first",
                     "--stop-after", "2u", "--progress", "none")
        said = self.begin("second", "--base", self.folder / "first", "--stop-after", "2u").stderr.decode()
        self.assertIn("has a head (bad, good): it is left out", said)

    def test_bad_input(self):
        self.fails(2, "no model to begin from", base="")
        self.fails(2, ("--max-length 99", "at most 16"), "--max-length", 99)
        self.fails(2, "--matryoshka", "--matryoshka", "9,4")
        self.fails(2, "has no scores", "--objective", "cosent")
        likeness = self.write("scored.tsv", table(scored(), ("sentence1", "sentence2", "score")))
        self.fails(2, "has scores", "--objective", "infonce", data=likeness)
        self.fails(3, ("scored.tsv:3", "expected a number"),
                   data=self.write("scored.tsv", table([("a", "b", 1), ("c", "d", "x")], ("sentence1", "sentence2", "score"))))
        self.fails(3, "expected two texts", data=self.write("one.tsv", "a\nb\n"))
        self.fails(3, ("gaps.tsv:2", "a further text"), data=self.write("gaps.tsv", "a\tb\tc\nd\te\t \n"))
        self.fails(3, "every score", "--valid-fraction", 0, data=self.write("flat.tsv", "a\tb\t1\nc\td\t1\n"))
        self.fails(3, ("both.jsonl:1", "got both"), data=self.write(
            "both.jsonl", json.dumps({"anchor": "a", "positive": "b", "score": 1, "negative": "c"}) + "\n"))
        self.fails(4, "no such folder", base=self.folder / "nowhere")


if __name__ == "__main__":
    unittest.main()

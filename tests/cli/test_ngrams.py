#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fovea train classify --ngrams: what order alone tells, the same bits, other tasks and encoders, memory."""

import json
import random
import re
import unittest

from support import CommandTest

SMALL = ("--width", "16", "--stop-after", "300u", "--eval-every", "50u", "--save-every", "50u", "--progress", "none",
         "--lr", "1e-2", "--patience", "0")


class NgramTest(CommandTest):
    def texts(self, name="order.tsv", labels=("no", "yes"), count=300):
        """Every text has the same words; only their order says which label it has."""
        rng = random.Random(1)
        rows = ""
        for i in range(count):
            words = ["good film", "bad actors"] if i % 2 else ["bad film", "good actors"]
            rng.shuffle(words)
            rows += f"{labels[i % 2]}\t{words[0]} and {words[1]}\n"
        path = self.folder / name
        path.write_text(rows, encoding="utf-8")
        return path

    def fit(self, file, *args, output="model"):
        return self.succeed("train", "classify", "--train", file, "-o", self.folder / output, *SMALL, *args)

    def model(self, output="model"):
        return json.loads((self.folder / output / "config.json").read_text())["model"]

    def best(self, name, output="model"):
        records = map(json.loads, (self.folder / output / "metrics.jsonl").read_text().splitlines())
        return max(record["values"][name] for record in records if record["kind"] == "metrics")

    def weights(self, output):
        return (self.folder / output / "model.safetensors").read_bytes()


class Learns(NgramTest):
    def test_what_order_alone_tells(self):
        file = self.texts()
        self.fit(file)
        self.assertEqual(self.model()["ngrams"], 2)
        self.assertEqual(self.best("accuracy"), 1)
        score = json.loads(self.succeed("eval", self.folder / "model", "--test", file, "--json").stdout)
        self.assertEqual(score["accuracy"]["value"], 1)
        done = self.succeed("classify", self.folder / "model", stdin=b"good film and bad actors\nbad film and good actors")
        self.assertEqual([line.split("\t")[0] for line in done.stdout.decode().splitlines()], ["yes", "no"])
        self.fit(file, "--ngrams", "1", output="bag")
        self.assertLess(self.best("accuracy", "bag"), 0.8)

    def test_every_task_and_an_encoder(self):
        tags = self.folder / "tags.jsonl"
        tags.write_text("".join(json.dumps({"text": f"{a} {b} end", "labels": [a] if a < b else [a, b]}) + "\n"
                                for a in "abcd" for b in "abcd") * 6)
        self.fit(tags, "--multi-label", "--ngrams", "3", "--ngram-width", "5", "--buckets", "77", output="tags")
        self.assertEqual((self.model("tags")["ngrams"], self.model("tags")["ngram_width"], self.model("tags")["buckets"]),
                         (3, 5, 77))
        self.fit(self.texts("n.tsv", labels=("-5", "12.5")), "--regression", output="numbers")
        self.assertGreater(self.best("pearson", "numbers"), 0.9)
        self.fit(self.texts(), "--encoder", "conv3", output="plain")
        self.assertEqual(self.model("plain")["ngrams"], 1)
        self.fit(self.texts(), "--encoder", "attention", "--ngrams", "2", "--tokenizer", "char", output="both")
        self.assertEqual(self.model("both")["ngrams"], 2)


class Runs(NgramTest):
    def test_threads_and_resuming_give_the_same_bits(self):
        file = self.texts()
        options = ("--ngrams", "3", "--buckets", "50000", "--keep", "10")  # all settings are in the manifest
        self.fit(file, *options, "--threads", "1", output="one")
        self.fit(file, *options, "--threads", "2", output="two")
        self.assertEqual(self.weights("one"), self.weights("two"))
        self.fit(file, *options, output="again")
        self.succeed("train", "classify", "--resume=" + str(self.folder / "again/checkpoints/step-000100"), "-o",
                     self.folder / "again", "--overwrite", "--progress", "none")
        self.assertEqual(self.weights("again"), self.weights("one"))

    def test_resuming_with_other_ngrams_is_refused(self):
        self.fit(self.texts())
        for args in (("--ngrams", "3"), ("--buckets", "99"), ("--ngrams", "1")):
            done = self.run_fovea("train", "classify", "--resume", "-o", self.folder / "model", *args)
            self.assertNotEqual(done.returncode, 0, args)

    def test_memory_of_two_million_rows_is_foreseen(self):
        done = self.succeed("train", "classify", "--train", self.texts(), "-o", self.folder / "model", "--buckets",
                            "2000000", "--stop-after", "4u", "--eval-every", "2u", "--save-every", "2u", "--warmup", "1",
                            "--verbose", "--json")
        number, unit = re.search(r"about ([\d.]+) ([MG])iB of", done.stderr.decode()).groups()
        foreseen = float(number) * {"M": 1 << 20, "G": 1 << 30}[unit]
        used = self.last_object(done)["peak_memory_bytes"]
        self.assertGreaterEqual(1.005 * foreseen, used)
        self.assertLessEqual(foreseen, max(1.1 * used, used + 40e6))

    def test_bad_options(self):
        for args in (("--ngrams", "-1"), ("--ngrams", "17"), ("--buckets", "-1"), ("--ngrams", "1", "--buckets", "9"),
                     ("--ngram-width", "-2")):
            done = self.run_fovea("train", "classify", "--train", self.texts(), "-o", self.folder / "none", *args)
            self.assert_error(done, 2, args[-2])


if __name__ == "__main__":
    unittest.main()

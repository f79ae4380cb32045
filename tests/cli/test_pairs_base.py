#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pairs of texts read by pretrained encoders: train pairs --base, and heads of other programs (pairs, eval --as-pairs). What
transformers says of pairs is compared in tests/python/test_encoders.py."""

import json
import random
import shutil
import unittest

from bert_support import tokenizer_json, write_head, write_json, write_mpnet
from forged import forge_json
from test_encoder_base import FILLER, BaseTest


def pairs(count=120, seed=1):
    """Two texts, one with a king and one with a dog, and where the king is."""
    rng = random.Random(seed)
    for n in range(count):
        words = [rng.choices(FILLER, k=rng.randint(1, 3)) for _ in range(2)]
        first = n % 2 == 0
        for text, word in zip(words, ("king", "dog") if first else ("dog", "king")):
            text.insert(rng.randint(0, len(text)), word)
        yield (*(" ".join(text) for text in words), "first" if first else "second")


class PairsOfABase(BaseTest):
    task = "pairs"

    def setUp(self):
        super().setUp()
        self.write(self.data, pairs())

    def write(self, path, rows):
        path.write_text("sentence1\tsentence2\tlabel\n" + "".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
        return path

    def answers(self, model, rows, *options):
        lines = "".join(f"{a}\t{b}\n" for a, b, *_ in rows).encode()
        said = self.succeed("pairs", model, "--header", "no", "--json", *options, stdin=lines).stdout
        return [json.loads(line) for line in said.splitlines()]

    def test_learns_what_only_both_texts_tell(self):
        self.begin("run")
        model = self.config("run")["model"]
        self.assertEqual((model["model"], model["pair_encoder"], model["base"]["separator"]), ("pretrained", "cross", 3))
        test = self.write(self.folder / "test.tsv", pairs(seed=2))
        self.assertGreater(self.score("run", test)["accuracy"]["value"], 0.9)
        said = self.answers(self.folder / "run", [("the old king", "a dog"), ("dog", "sees the king")])
        self.assertEqual([answer["label"] for answer in said], ["first", "second"])
        self.succeed("inspect", self.folder / "run", "--verify")
        shown = json.loads(self.succeed("explain", self.folder / "run", "the king", "a dog", "--json").stdout)
        self.assertEqual(shown["tokens"], ["[CLS]", "the", "king", "[SEP]", "[UNK]", "dog", "[SEP]"])
        self.assertEqual(shown["prediction"][0]["label"], "first")
        self.assert_error(self.run_fovea("classify", self.folder / "run", stdin=b"a\n"), 4, "pairs of texts")

    def test_mpnet_whose_tokens_have_no_types(self):
        base = write_mpnet(self.folder / "mpnet")
        self.begin("run", "--stop-after", "1000u", base=base)
        self.assertEqual(self.config("run")["model"]["base"]["separator"], -1)
        self.assertGreater(self.score("run")["accuracy"]["value"], 0.9)

    def test_any_number_of_threads_and_a_resumed_run_give_the_same_bits(self):
        self.begin("two", "--dropout", 0.1, "--encoder-dropout", 0.1)
        self.begin("three", "--threads", 3, "--dropout", 0.1, "--encoder-dropout", 0.1)
        self.assertEqual(self.bits("three"), self.bits("two"))
        self.succeed("train", "pairs", f"--resume={self.folder}/three/checkpoints/step-000300", "--overwrite", "--threads", 1)
        self.assertEqual(self.bits("three"), self.bits("two"))

    def test_a_number(self):
        self.write(self.data, [(a, b, "4.5" if label == "first" else "-1") for a, b, label in pairs()])
        self.begin("run", "--regression")
        said = self.answers(self.folder / "run", [("king", "dog"), ("dog", "king")])
        self.assertAlmostEqual(said[0]["value"], 4.5, delta=1)
        self.assertAlmostEqual(said[1]["value"], -1, delta=1)

    def test_long_pairs_are_cut_and_batches_change_nothing(self):
        self.begin("run", "--stop-after", "20u", "--max-length", 9)
        rows = [("king " * n, "the dog " * (9 - n)) for n in range(1, 9)]
        together = self.answers(self.folder / "run", rows)
        self.assertEqual(together, [self.answers(self.folder / "run", [row])[0] for row in rows])
        # Nine tokens, three of them marks: the longer text is cut, and of equal ones the second has the odd one.
        self.assertEqual(self.answers(self.folder / "run", [("king " * 8, "the dog ! , old"), ("king", "the dog ! , old old")]),
                         self.answers(self.folder / "run", [("king " * 3, "the dog !"), ("king", "the dog ! , old")]))

    def test_what_is_exported_is_read_as_it_was(self):
        self.begin("run", "--stop-after", "50u")
        self.succeed("export", self.folder / "run", "-o", self.folder / "out")
        rows = list(pairs(9, seed=3))
        ours = self.answers(self.folder / "run", rows, "--top", 2)
        for got, expected in zip(self.answers(self.folder / "out", rows, "--top", 2), ours, strict=True):
            for label, probability in expected["probabilities"].items():
                self.assertAlmostEqual(got["probabilities"][label], probability, places=5)
        test = self.write(self.folder / "test.tsv", pairs(seed=2))
        foreign = json.loads(self.succeed("eval", self.folder / "out", "--as-pairs", "--test", test, "--json").stdout)
        self.assertAlmostEqual(foreign["log_loss"]["value"], self.score("run", test)["log_loss"]["value"], places=4)
        self.assert_error(self.run_fovea("eval", self.folder / "run", "--as-pairs", "--test", test), 2, "--as-pairs has no effect")

    @staticmethod
    def template(texts, second=1, between=("[SEP]",)):
        def mark(name, kind=0):
            return {"SpecialToken": {"id": name, "type_id": kind}}

        first, last = ({"Sequence": {"id": text, "type_id": kind}} for text, kind in zip(texts, (0, second)))
        return [mark("[CLS]"), first, *map(mark, between), last, mark("[SEP]", second)]

    def test_a_separator_that_is_not_that_of_the_tokenizer(self):
        self.begin("run", "--stop-after", "2u")
        for separator in (2, 5, -1, 99):
            with self.subTest(separator):
                forged = self.folder / "forged"
                shutil.rmtree(forged, ignore_errors=True)
                shutil.copytree(self.folder / "run", forged)
                forge_json(forged, "config.json", lambda config: config["model"]["base"].update(separator=separator))
                for command in (("pairs", forged), ("eval", forged, "--test", self.data)):
                    self.assert_error(self.run_fovea(*command, stdin=b"a\tb\n"), 4, "separator")

    def test_bad_input(self):
        self.fails(2, ("--pair-encoder: ", "has cross"), "--pair-encoder", "bi")
        self.fails(2, ("--max-length 4", "3 marks in each pair"), "--max-length", 4)
        self.fails(2, "reads at most 16 tokens", "--max-length", 17)
        self.fails(2, "--encoder: has no effect with --base", "--encoder", "conv3")
        for pair in ([1, 2], [None], [{}], [{"SpecialToken": 3}], "x", [{"Sequence": {"id": "A"}}], self.template("BA"),
                     self.template("AB", second=7), self.template("AB", between=["[SEP]", "[SEP]"]),
                     self.template("AB", between=["[NONE]"])):
            with self.subTest(pair=pair):
                odd = tokenizer_json()
                odd["post_processor"]["pair"] = pair
                write_json(self.base / "tokenizer.json", odd)
                self.fails(4, "does not say how two texts are read as one")
                self.succeed("embed", self.base, stdin=b"the king\n")  # needs no pairs
        silent = tokenizer_json()
        silent["post_processor"]["pair"] = []
        write_json(self.base / "tokenizer.json", silent)
        self.fails(4, "does not say how two texts are read as one")
        head = self.folder / "head"
        write_head(head, "Sequence", ["a", "b"])
        write_json(head / "tokenizer.json", silent)
        self.assert_error(self.run_fovea("pairs", head, stdin=b"a\tb\n"), 4, "does not say how two texts are read as one")


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Taggers of several tag columns at once: what they learn, write, score and refuse."""

import json
import signal
import time
import unittest

from tag_support import SMALL, TagTest, columns, conll, conllu, part_of_speech, segmented, tagged

TWO = ("--tag-column", "2,3")


class ColumnsTest(TagTest):
    def fit_two(self, *args, output="model", seed=1):
        return self.fit(self.write("a.conll", columns(tagged(seed))), *TWO, *args, output=output)

    def config(self, output="model"):
        return json.loads((self.folder / output / "config.json").read_text())

    def weights(self, output):
        return (self.folder / output / "model.safetensors").read_bytes()


class Learns(ColumnsTest):
    def test_two_columns_from_training_to_score(self):
        said = self.fit_two("--head", "softmax,crf", "--report").stderr.decode()
        self.assertIn("tags in column 2: 4, each for a word alone; ADV, PROPN, PUNCT, VERB", said)
        self.assertIn("tags in column 3: 5, scheme bio; B-person", said)
        config = self.config()
        self.assertEqual((config["text"]["tag_column"], config["text"]["scheme"]), ([2, 3], ["none", "bio"]))
        self.assertEqual((config["model"]["tags"], config["model"]["head"]), ([4, 5], ["softmax", "crf"]))
        model = self.folder / "model"
        records = list(map(json.loads, (model / "metrics.jsonl").read_text().splitlines()))
        for values in (record["values"] for record in records if record["kind"] == "metrics"):
            self.assertEqual(list(values), ["accuracy_2", "accuracy_3", "span_f1_3", "mean"])
            self.assertAlmostEqual(values["mean"], (values["accuracy_2"] + values["span_f1_3"]) / 2, delta=1e-12)
        self.assertEqual(values["mean"], 1)
        for words in ("accuracy_2", "span_f1_3", "</html>"):
            self.assertIn(words, (model / "report.html").read_text())

        sentences = tagged(7, 30)
        given = conll([[(w, "x") for w, _ in s] for s in sentences], " ")
        said = self.succeed("tag", model, self.write("b.txt", given), "--format", "conll").stdout.decode()
        found = [line.split(" ")[2:] for line in said.splitlines() if line]
        self.assertEqual(found, [[part_of_speech(w), t] for s in sentences for w, t in s])
        for line in self.succeed("tag", model, "--text", "--probabilities", stdin=b"Ada saw").stdout.decode().split("\n")[:2]:
            self.assertRegex(line, r"\A\w+\t[A-Z]+\t[01]\.\d{4}\t[\w-]+\t[01]\.\d{4}\Z")
        answer = json.loads(self.succeed("tag", model, "--text", "--json", "--probabilities", stdin=b"Ada saw Rome\n").stdout)
        self.assertEqual([column["column"] for column in answer["columns"]], ["2", "3"])
        self.assertEqual(answer["columns"][0]["tags"], ["PROPN", "VERB", "PROPN"])
        self.assertEqual(answer["columns"][1]["spans"][0]["text"], "Ada")
        self.assertEqual([len(column["probabilities"]) for column in answer["columns"]], [3, 3])

        test = self.write("t.conll", columns(tagged(11, 20)) + "Ada\tVERB\tO\nsaw\tVERB\tO\n")
        score = self.last_object(self.succeed("eval", model, "--test", test, "--json"))
        first, second = score["columns"]
        self.assertEqual((first["column"], second["column"]), ("2", "3"))
        self.assertNotIn("micro_f1", first)
        self.assertAlmostEqual(score["mean"], (first["accuracy"]["value"] + second["micro_f1"]["value"]) / 2, delta=1e-12)
        self.assertLess(score["mean"], 1)
        written, page = self.write("eval.json", json.dumps(score)), self.folder / "tested.html"
        self.succeed("report", model, "--eval", written, "-o", page)
        for words in ("accuracy_2", "micro_f1_3"):
            self.assertIn(words, page.read_text())
        said = self.succeed("eval", model, "--test", test, "--errors", 2).stdout.decode()
        for words in ("column 2: 21 sentences", "column 3: 21 sentences", "Ada [VERB, not PROPN] saw",
                      f"mean of the columns (micro F1 of spans, or accuracy): {score['mean']:.4f}"):
            self.assertIn(words, said)

        said = self.succeed("inspect", model).stdout.decode()
        for words in ("task: tag, 2 tag columns", "column 2: 4 tags, scheme none, head softmax", "  tag PROPN",
                      "column 3: 5 tags, scheme bio, head crf", "columns.1.crf.transitions"):
            self.assertIn(words, said)
        found = self.last_object(self.succeed("inspect", model, "--json"))
        self.assertNotIn("tags", found)
        self.assertEqual([(c["column"], c["scheme"], c["head"]) for c in found["columns"]],
                         [("2", "none", "softmax"), ("3", "bio", "crf")])
        self.succeed("inspect", model, "--verify")

    def test_columns_of_conllu(self):
        self.fit(self.write("a.conllu", conllu(tagged())), "--column", "upos,xpos", "--scheme", "none",
                 "--stop-after", "120u")
        self.assertEqual(self.config()["text"]["column"], ["upos", "xpos"])
        given = conllu(tagged(7, 3))
        lines = self.succeed("tag", self.folder / "model", self.write("b.conllu", given)).stdout.decode().splitlines()
        for line, before in zip(lines, given.splitlines()):
            self.assertTrue(line.startswith(before))
            added = line[len(before):].split("\t")[1:]
            self.assertEqual(len(added), 2 if before and not before.startswith("#") else 0)
            if added and added[0] != "_":
                self.assertEqual(added[1], "X" + added[0])
        found = self.last_object(self.succeed("inspect", self.folder / "model", "--json"))
        self.assertEqual([c["column"] for c in found["columns"]], ["upos", "xpos"])

    def test_one_column_is_as_it_was(self):
        self.fit(self.write("a.conll", columns(tagged())), "--tag-column", "3", "--stop-after", "20u", output="one")
        config = self.config("one")
        self.assertEqual((config["text"]["tag_column"], config["text"]["column"], config["text"]["scheme"],
                          config["model"]["head"], config["model"]["tags"]), (3, "upos", "bio", "crf", 5))
        found = self.last_object(self.succeed("inspect", self.folder / "one", "--json"))
        self.assertEqual((len(found["tags"]), "columns" in found), (5, False))
        self.assertIn("crf.transitions", [tensor["name"] for tensor in found["tensors"]])


class Runs(ColumnsTest):
    def test_threads_give_the_same_bits(self):
        for threads in (1, 2, 3, 8):
            self.fit_two("--threads", threads, "--stop-after", "30u", output=f"m{threads}")
            self.assertEqual(self.weights("m1"), self.weights(f"m{threads}"))
            for name in ("config.json", "tokenizer.txt", "vocab.txt"):
                self.assertEqual((self.folder / f"m{threads}" / name).read_bytes(),
                                 (self.folder / "m1" / name).read_bytes())

    def test_a_run_that_was_killed_ends_with_the_same_bits(self):
        file = self.write("a.conll", columns(tagged()))
        long = (*SMALL, *TWO, "--stop-after", "300u", "--eval-every", "50u", "--save-every", "50u", "--patience", "0")
        self.succeed("train", "tag", "--train", file, "-o", self.folder / "whole", *long)
        killed = self.folder / "killed"
        process = self.start("train", "tag", "--train", file, "-o", killed, *long)
        deadline = time.monotonic() + 60
        while not list((killed / "checkpoints").glob("step-*")) and time.monotonic() < deadline:
            time.sleep(.01)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        self.succeed("train", "tag", "--resume", "-o", killed, "--progress", "none")
        self.assertEqual(self.weights(killed), self.weights("whole"))
        for args in (("--tag-column", "3,2"), ("--tag-column", "2"), ("--head", "softmax"), ("--scheme", "none")):
            with self.subTest(args):
                self.fails(2, args[0], "train", "tag", "--resume", "-o", killed, *args)
        self.succeed("train", "tag", "--resume", "-o", killed, "--scheme", "auto", "--progress", "none")

    def test_settings_go_to_a_file_and_back(self):
        file = self.write("a.conll", columns(tagged()))
        dumped = self.succeed("train", "tag", "--train", file, "--dump-config", *TWO, "--head", "crf,softmax").stdout
        self.assertIn(b"tag_column = '2,3'", dumped)
        recipe = self.write("recipe.toml", dumped)
        self.assertEqual(dumped, self.succeed("train", "tag", "-c", recipe, "--dump-config").stdout)
        self.assertGreater(self.last_object(self.succeed("train", "tag", "-c", recipe, "--dry-run", "--json"))["updates"], 0)


class Refuses(ColumnsTest):
    def refuses(self, status, needle, text, *args, name="bad.conll"):
        with self.subTest(needle):
            output = self.folder / "never"
            self.fails(status, needle, "train", "tag", "--train", self.write(name, text), "-o", output, *SMALL, *args)
            self.assertFalse(output.exists())

    def test_columns(self):
        good = columns(tagged(1, 20))
        self.refuses(2, "--tag-column: 2 is named twice", good, "--tag-column", "2,2")
        self.refuses(2, "--tag-column: 1 is the column of the word", good, "--tag-column", "1,2")
        self.refuses(2, "--tag-column: expected whole numbers with commas; got", good, "--tag-column", "2,x")
        self.refuses(2, "--tag-column: expected whole numbers with commas; got", good, "--tag-column", "2,")
        self.refuses(2, "--tag-column", good, "--tag-column", "2,10001")
        self.refuses(3, "bad.conll:1: expected the tag in column 4, got 3 columns", good, "--tag-column", "2,4")
        self.refuses(3, "but 3 is the last one, too", good, "--tag-column", "0,3")
        self.refuses(3, "bad.conll:2: expected a tag without blanks in column 3, got none", "a\tX\tO\nb\tY\t\n", *TWO)
        self.refuses(3, "every tag to train on in column 2 is X", "a X O\nb X B-y\n" * 3, *TWO)
        self.refuses(3, "bad.conll:1: expected a tag of the scheme bio in column 2, got", good, *TWO, "--scheme", "bio")
        self.refuses(2, "--head: expected one for all tag columns, or one for each of the 2, got 3", good, *TWO,
                     "--head", "crf,crf,softmax")
        self.refuses(2, "--scheme: expected one for all tag columns, or one for each of the 2, got 3", good, *TWO,
                     "--scheme", "auto,auto,none")
        self.refuses(2, "a segmenter learns one column at most", segmented(), "--task", "segment", "--tag-column", "2,3",
                     name="a.seg")
        self.refuses(2, "--column: upos is named twice", conllu(tagged(1, 5)), "--column", "upos,upos", name="a.conllu")
        self.refuses(2, "--column: expected some of, with commas", conllu(tagged(1, 5)), "--column", "upos,form",
                     name="a.conllu")

    def test_files_that_do_not_fit_each_other(self):
        one, other = self.write("a.conll", columns(tagged(1, 20))), self.write("b.conllu", conllu(tagged(1, 20)))
        self.fails(2, "b.conllu: expected 2 tag columns, as in", "train", "tag", "--train", one, other, *TWO, *SMALL, "-o",
                   self.folder / "never")
        self.fit_two("--stop-after", "10u")
        model = self.folder / "model"
        self.fails(2, "expected 2 tag columns (2, 3), as the model has, got 1", "eval", model, "--test", one, "--tag-column",
                   "3")
        self.fails(3, "expected the tag in column 3, got 2 columns", "eval", model, "--test",
                   self.write("c.conll", conll(tagged(1, 2))))
        # Columns are called as the file has them.
        self.fails(3, "a.conll:1: expected a tag of the scheme bio in column 2, got PROPN", "eval", model, "--test", one,
                   "--tag-column", "3,2")
        text = (model / "config.json").read_text()
        (model / "config.json").write_text(text.replace('"crf"', '"crf", "crf", "crf"'))
        self.fails(4, "config.json", "tag", model, stdin=b"a\n")


if __name__ == "__main__":
    unittest.main()

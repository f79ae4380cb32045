# SPDX-License-Identifier: Apache-2.0
"""Classifiers and taggers of transformers: small random models of BERT with heads, whose answers are those of the definition
in plain Python, in every form that answers of our own models have."""

import csv
import json
import unittest

from support import CommandTest
from bert_support import sigmoid, softmax, text_logits, word_logits, write_head, write_json

TEXTS = ["the cat sees the moon .", "", "running kings", "unable zebra", "moon " * 40]
LABELS = ["bad", "good", "a \u4e2d"]
TAGS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
SENTENCE = ["the", "running", "cat", "sees", "unable", "moon"]


class HeadTest(CommandTest):
    def lines(self, command, *args, texts=TEXTS):
        done = self.succeed(command, self.model, *args, stdin="".join(text + "\n" for text in texts).encode())
        return done.stdout.decode().splitlines()

    def assert_close(self, got, expected, most=2e-5):
        self.assertEqual(len(got), len(expected))
        self.assertLess(max(abs(a - b) for a, b in zip(got, expected)), most)


class Classifier(HeadTest):
    def setUp(self):
        super().setUp()
        self.model, self.tensors = write_head(self.folder / "model", "Sequence", LABELS)

    def expected(self, text, of=softmax):
        return of(text_logits(text, self.tensors))

    def best(self, text):
        return max(range(len(LABELS)), key=self.expected(text).__getitem__)

    def test_one_label(self):
        for text, line in zip(TEXTS, self.lines("classify", "--json", "--top", 3), strict=True):
            said = json.loads(line)
            self.assert_close([said["probabilities"][label] for label in LABELS], self.expected(text))
            self.assertEqual(said["label"], LABELS[self.best(text)])
        for text, line in zip(TEXTS, self.lines("classify"), strict=True):
            label, probability = line.split("\t")
            self.assertEqual(label, LABELS[self.best(text)])
            self.assertAlmostEqual(float(probability), max(self.expected(text)), places=5)

    def test_any_labels(self):
        self.model, self.tensors = write_head(self.folder / "other", "Sequence", LABELS, "multi_label_classification")
        for text, line in zip(TEXTS, self.lines("classify", "--json", "--threshold", 0.3), strict=True):
            expected = dict(zip(LABELS, self.expected(text, sigmoid)))
            self.assertEqual(set(json.loads(line)["labels"]), {label for label, p in expected.items() if p >= 0.3})
            for label, p in json.loads(line)["probabilities"].items():
                self.assertAlmostEqual(p, expected[label], places=5)

    def test_a_number(self):
        self.model, self.tensors = write_head(self.folder / "other", "Sequence", ["score"])
        found = [float(line) for line in self.lines("classify")]
        self.assert_close(found, [text_logits(text, self.tensors)[0] for text in TEXTS], 1e-4)
        self.assert_error(self.run_fovea("classify", self.model, "--top", 2), 2, "the model tells a number")

    def test_tables_and_their_columns(self):
        table = self.folder / "pool.csv"
        with table.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([["id", "text"], *([n, text] for n, text in enumerate(TEXTS[:4], 1))])
        self.succeed("classify", self.model, table, "-o", self.folder / "out.csv", "--min-probability", 0.4, "--text-column", "text")
        with (self.folder / "out.csv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        for row, text in zip(rows, TEXTS[:4], strict=True):
            expected = self.expected(text)
            self.assertEqual(row["label"], LABELS[self.best(text)] if max(expected) >= 0.4 else "")
            self.assertAlmostEqual(float(row["probability"]), max(expected), places=5)
        order = [json.loads(line)["text"] for line in self.lines("classify", "--sort", "uncertain", "--json")]
        self.assertEqual(order, sorted(TEXTS, key=lambda text: max(self.expected(text))))

    def test_bits_depend_on_no_thread_and_no_other_text(self):
        texts = [" ".join(SENTENCE[: n % 7]) for n in range(300)]
        one = self.lines("classify", "--threads", 1, texts=texts)
        self.assertEqual(self.lines("classify", "--threads", 3, texts=texts), one)
        self.assertEqual(self.lines("classify", texts=texts[5:6]), one[5:6])

    def test_long_texts_are_truncated(self):
        done = self.succeed("classify", self.model, stdin=("moon " * 10 + "\n" + "moon " * 11 + "\n" + "moon " * 90_000 + "\n").encode())
        self.assertIn("texts longer than the model's 12 tokens: 2 of 3; they are truncated\n", done.stderr.decode())
        self.assertEqual(len(set(done.stdout.decode().splitlines())), 1)

    def test_eval(self):
        test = self.folder / "test.tsv"
        truth = [LABELS[(self.best(text) + (n == 1)) % 3] for n, text in enumerate(TEXTS[:4])]
        rows = [f"{label}\t{text or 'the'}" for label, text in zip(truth, TEXTS[:4])]
        test.write_text("\n".join(rows) + "\n", encoding="utf-8")
        said = json.loads(self.succeed("eval", self.model, "--test", test, "--json").stdout)
        right = [label == LABELS[self.best(text or "the")] for label, text in zip(truth, TEXTS[:4])]
        self.assertAlmostEqual(said["accuracy"]["value"], sum(right) / len(right))
        self.assertIn("worst mistakes", self.succeed("eval", self.model, "--test", test, "--errors", 1).stdout.decode())

    def test_inspect_and_what_is_not_there(self):
        self.assertIn("a model of Hugging Face, model_type bert", self.succeed("inspect", self.model).stdout.decode())
        shown = json.loads(self.succeed("explain", self.model, "the cat", "--json").stdout)
        self.assertEqual(shown["tokens"], ["[CLS]", "the", "cat", "[SEP]"])
        self.succeed("explain", self.model, "the cat", "the dog", "--page", self.folder / "pair.html")
        self.assert_error(self.run_fovea("tag", self.model, stdin=b"the\n"), 4, "...ForTokenClassification here")
        self.assert_error(self.run_fovea("generate", self.model, "the"), 4)
        self.assert_error(self.run_fovea("classify", self.model, stdin=b"the\n\xff\n"), 3, "standard input:2:1")
        write_json(self.model / "config.json", {"model_type": "bert", "architectures": ["BertModel"]})
        self.assert_error(self.run_fovea("classify", self.model, stdin=b"the\n"), 4, "...ForSequenceClassification here")


class Tagger(HeadTest):
    def setUp(self):
        super().setUp()
        self.model, self.tensors = write_head(self.folder / "model", "Token", TAGS)

    def expected(self, words):
        return [softmax(row) for row in word_logits(words, self.tensors)]

    def tags(self, words):
        return [TAGS[max(range(len(TAGS)), key=row.__getitem__)] for row in self.expected(words)]

    def test_a_word_has_the_tag_of_its_first_subword(self):
        conll = "".join(word + "\n" for word in SENTENCE) + "\nmoon\n"
        done = self.succeed("tag", self.model, "--probabilities", stdin=conll.encode()).stdout.decode()
        rows = [line.split() for line in done.splitlines() if line]
        self.assertEqual([row[0] for row in rows], [*SENTENCE, "moon"])
        self.assertEqual([row[1] for row in rows], self.tags(SENTENCE) + self.tags(["moon"]))
        self.assert_close([float(row[2]) for row in rows], [max(row) for row in self.expected(SENTENCE) + self.expected(["moon"])],
                          6e-5)  # of four digits

    def test_text_and_json(self):
        said = json.loads(self.lines("tag", "--text", "--json", "--probabilities", texts=[" ".join(SENTENCE)])[0])
        self.assertEqual(said["words"], SENTENCE)
        self.assertEqual(said["tags"], self.tags(SENTENCE))
        self.assert_close(said["probabilities"], [max(row) for row in self.expected(SENTENCE)])
        self.assertIn("spans", said)  # the labels mark spans
        self.model, self.tensors = write_head(self.folder / "other", "Token", ["x", "y"])
        self.assertNotIn("spans", json.loads(self.lines("tag", "--text", "--json", texts=["the cat"])[0]))

    def test_long_sentences_are_read_in_pieces(self):
        words = ["running"] * 4 + ["moon"] * 9  # 8 and 9 subwords, of which 10 fit
        done = self.succeed("tag", self.model, "--text", "--json", stdin=(" ".join(words) + "\n").encode())
        self.assertIn("sentences longer than the model's 12 tokens: 1 of 1; they are read in pieces", done.stderr.decode())
        self.assertEqual(json.loads(done.stdout)["tags"], self.tags(words[:6]) + self.tags(words[6:]))

    def test_a_word_without_subwords_has_no_tag(self):
        done = self.succeed("tag", self.model, "--json", "--probabilities", stdin="the\n\u200b\u200b\nmoon\n\n\u200b\u200b\n".encode())
        first, second = map(json.loads, done.stdout.decode().splitlines())
        tags = self.tags(["the", "moon"])
        self.assertEqual(first["tags"], [tags[0], "O", tags[1]])
        self.assertEqual((second["tags"], second["probabilities"]), (["O"], [1]))
        tokenizer = json.loads((self.model / "tokenizer.json").read_text())
        del tokenizer["post_processor"]  # no marks: nothing at all is read
        write_json(self.model / "tokenizer.json", tokenizer)
        self.assertEqual(self.succeed("tag", self.model, stdin="\u200b\u200b\n".encode()).stdout.decode().split()[1:], ["O"])

    def test_bits_depend_on_no_thread_and_no_other_sentence(self):
        texts = [" ".join(SENTENCE[: n % 6 + 1]) for n in range(300)]
        one = self.lines("tag", "--text", "--probabilities", "--threads", 1, texts=texts)
        self.assertEqual(self.lines("tag", "--text", "--probabilities", "--threads", 3, texts=texts), one)

    def test_eval(self):
        test = self.folder / "test.conll"
        test.write_text("".join(f"{word} {tag}\n" for word, tag in zip(SENTENCE, self.tags(SENTENCE))))
        said = json.loads(self.succeed("eval", self.model, "--test", test, "--json").stdout)
        self.assertEqual(said["accuracy"]["value"], 1)
        shown = json.loads(self.succeed("explain", self.model, " ".join(SENTENCE), "--json").stdout)
        self.assertEqual([tag for tag in shown["tags"] if tag], self.tags(SENTENCE))
        self.assert_error(self.run_fovea("classify", self.model, stdin=b"the\n"), 4, "...ForSequenceClassification here")


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""Classifiers, taggers and sentence encoders that begin from a small random encoder of each architecture, as transformers writes it: what export
writes of them, transformers opens, and its answers are those of the run."""

import random
import unittest

from test_encoders import MODELS, SENTENCES, TEXTS, FolderTest, transformers

import support
import torch

LABELS = ["bad", "good", "so, so"]
WORDS = "The weights of attention sum to one and don't say why it is unattainable".split()
RECIPE = ("--stop-after", "12u", "--batch-size", 8, "--lr", "1e-3", "--threads", 2, "--progress", "none")


class ExportTest(FolderTest):
    def setUp(self):
        super().setUp()
        self.trained, self.exported = self.folder / "run", self.folder / "exported"
        rng = random.Random(1)
        self.texts = [" ".join(rng.choices(WORDS, k=rng.randint(1, 60))) for _ in range(60)]

    def export(self, task, name, data, *options):
        """Trains from an encoder of this architecture, and exports what it has become."""
        self.save(name, transformers.AutoModel)
        for args in (("train", task, "--base", self.folder, "--train", data, "-o", self.trained, *RECIPE, *options, "--overwrite"),
                     ("export", self.trained, "-o", self.exported, "--overwrite")):
            done = support.fovea(*args)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(self.exported)
        kind = transformers.AutoModelForSequenceClassification if task == "classify" else transformers.AutoModelForTokenClassification
        model, info = kind.from_pretrained(self.exported, output_loading_info=True)
        self.assertFalse(info["missing_keys"] or info["unexpected_keys"] or info["mismatched_keys"], info)
        return model.eval()

    def labelled(self):
        file = self.folder / "texts.tsv"
        file.write_text("".join(f"{LABELS[n % 3]}\t{text}\n" for n, text in enumerate(self.texts)), encoding="utf-8")
        return file

    def answers(self, command, lines, *options):
        return self.answers_of(self.trained, command, lines, *options)

    def answers_of(self, model, command, lines, *options):
        folder, self.folder = self.folder, model
        try:
            return self.said(command, lines, *options)
        finally:
            self.folder = folder


class Texts(ExportTest):
    def test_labels(self):
        for name in MODELS:
            with self.subTest(name):
                model = self.export("classify", name, self.labelled())
                self.assertEqual([model.config.id2label[n] for n in range(3)], LABELS)
                expected = self.rows(model, TEXTS)[1].logits.softmax(-1)
                found = self.answers("classify", TEXTS, "--json", "--top", "3")
                self.assert_near([[line["probabilities"][label] for label in LABELS] for line in found], expected, 1e-4)

    def test_several_labels(self):
        file = self.folder / "several.txt"
        file.write_text("".join(f"__label__{'ab'[n % 2]}{' __label__c' * (n % 3 == 0)} {text}\n" for n, text in enumerate(self.texts)),
                        encoding="utf-8")
        model = self.export("classify", "bert", file, "--multi-label")
        self.assertEqual(model.config.problem_type, "multi_label_classification")
        expected = self.rows(model, TEXTS)[1].logits.sigmoid()
        found = self.answers("classify", TEXTS, "--json", "--top", "3")
        self.assert_near([[line["probabilities"][label] for label in "abc"] for line in found], expected, 1e-4)

    def test_numbers(self):
        file = self.folder / "numbers.tsv"
        file.write_text("".join(f"{1000 + 10 * len(text)}\t{text}\n" for text in self.texts), encoding="utf-8")
        model = self.export("classify", "distilbert", file, "--regression")
        self.assertEqual((model.config.problem_type, model.config.num_labels), ("regression", 1))
        expected = self.rows(model, TEXTS)[1].logits[:, 0]
        self.assert_near([line["value"] for line in self.answers("classify", TEXTS, "--json")], expected, 1e-4)

    def test_the_front_is_dropped_there_too(self):
        model = self.export("classify", "bert", self.labelled(), "--truncate", "front", "--max-length", 12)
        self.assertEqual((self.tokenizer.model_max_length, self.tokenizer.truncation_side), (12, "left"))
        expected = self.rows(model, self.texts)[1].logits.softmax(-1)
        found = self.answers("classify", self.texts, "--json", "--top", "3")
        self.assert_near([[line["probabilities"][label] for label in LABELS] for line in found], expected, 1e-4)


class Words(ExportTest):
    def test_tags(self):
        file = self.folder / "words.conll"
        file.write_text("".join("".join(f"{word}\t{'B-x' if word[0] in 'wau' else 'O'}\n" for word in text.split()) + "\n"
                                for text in self.texts), encoding="utf-8")
        for name, (_, _, kind) in MODELS.items():
            if kind == "bytes":  # transformers reads words with a tokenizer that puts blanks before them
                continue
            with self.subTest(name):
                model = self.export("tag", name, file)
                batch, found = self.rows(model, SENTENCES, is_split_into_words=True)
                lines = self.answers("tag", ["\n".join(words) + "\n" for words in SENTENCES], "--json", "--probabilities")
                for n, (line, words) in enumerate(zip(lines, SENTENCES, strict=True)):
                    places = [batch.word_ids(n).index(word) for word in range(len(words))]
                    expected = found.logits[n][places].softmax(-1)
                    self.assertEqual([model.config.id2label[int(tag)] for tag in expected.argmax(-1)], line["tags"])
                    self.assert_near(line["probabilities"], expected.max(-1).values, 1e-4)


class Vectors(ExportTest):
    def test_sentence_transformers_makes_the_same_vectors(self):
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError:
            self.skipTest("sentence_transformers is not installed")
        file = self.folder / "pairs.tsv"
        file.write_text("".join(f"{text}\t{text[::-1]}\n" for text in self.texts), encoding="utf-8")
        self.save("bert", transformers.AutoModel)
        for args in (("train", "embed", "--base", self.folder, "--train", file, "-o", self.trained, *RECIPE),
                     ("export", self.trained, "-o", self.exported),
                     ("export", self.trained, "-o", self.exported, "--overwrite")):
            done = support.fovea(*args)
            self.assertEqual(done.returncode, 0, done.stderr)
        expected = torch.tensor(SentenceTransformer(str(self.exported), device="cpu").encode(TEXTS))
        for folder in (self.trained, self.exported):
            found = [line["vector"] for line in self.answers_of(folder, "embed", TEXTS)]
            self.assert_near(found, expected, 1e-4)


class Precision(ExportTest):
    def test_bfloat16(self):
        self.export("classify", "bert", self.labelled())
        done = support.fovea("export", self.trained, "-o", self.folder / "half", "--dtype", "bf16")
        self.assertEqual(done.returncode, 0, done.stderr)
        model = transformers.AutoModelForSequenceClassification.from_pretrained(self.folder / "half")
        self.assertEqual(model.dtype, torch.bfloat16)


if __name__ == "__main__":
    unittest.main()

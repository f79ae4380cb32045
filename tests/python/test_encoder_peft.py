# SPDX-License-Identifier: Apache-2.0
"""Adapters that fovea trains of small random encoders of each architecture, opened by PEFT: its answers are those of the run."""

import unittest

try:
    import peft
except ImportError as error:
    raise unittest.SkipTest(f"{error.name} is not installed: adapters are not opened by PEFT") from error

from test_encoder_export import RECIPE, ExportTest
from test_encoders import MODELS, SENTENCES, TEXTS, transformers

import support
import torch

LABELS = ["bad", "good", "so, so"]


class PeftTest(ExportTest):
    def adapted(self, task, name, data, kind, *options, labels=3):
        """The model of PEFT of what was trained on an encoder of this architecture."""
        base = self.folder
        self.save(name, transformers.AutoModel)
        for args in (("train", task, "--base", base, "--train", data, "-o", self.trained, *RECIPE, "--lr", "1e-2", "--lora", 3,
                      *options, "--overwrite"), ("export", self.trained, "--to", "peft", "-o", self.exported, "--overwrite")):
            done = support.fovea(*args)
            self.assertEqual(done.returncode, 0, done.stderr)
        more = {} if kind is transformers.AutoModel else {"num_labels": labels}
        torch.manual_seed(7)  # of the head, which the adapters replace
        model = kind.from_pretrained(base, dtype=torch.float32, **more)
        return peft.PeftModel.from_pretrained(model, self.exported).eval()

    def test_labels(self):
        for name in MODELS:
            for options in ((), ("--lora-targets", "q,o,down", "--lora-alpha", 9, "--lora-rs"), ("--dora", "--lora-dropout", 0.1)):
                with self.subTest(name, options=options):
                    model = self.adapted("classify", name, self.labelled(), transformers.AutoModelForSequenceClassification, *options)
                    expected = self.rows(model, TEXTS)[1].logits.softmax(-1)
                    found = self.answers("classify", TEXTS, "--json", "--top", "3")
                    self.assert_near([[line["probabilities"][label] for label in LABELS] for line in found], expected, 1e-5)

    def test_numbers(self):
        file = self.folder / "numbers.tsv"
        file.write_text("".join(f"{1000 + 10 * len(text)}\t{text}\n" for text in self.texts), encoding="utf-8")
        model = self.adapted("classify", "distilbert", file, transformers.AutoModelForSequenceClassification, "--regression", labels=1)
        expected = self.rows(model, TEXTS)[1].logits[:, 0]
        self.assert_near([line["value"] for line in self.answers("classify", TEXTS, "--json")], expected, 1e-5)

    def test_tags(self):
        file = self.folder / "words.conll"
        file.write_text("".join("".join(f"{word}\t{'B-x' if word[0] in 'wau' else 'O'}\n" for word in text.split()) + "\n"
                                for text in self.texts), encoding="utf-8")
        for name in ("bert", "mpnet", "xlm-roberta"):
            with self.subTest(name):
                model = self.adapted("tag", name, file, transformers.AutoModelForTokenClassification)
                batch, found = self.rows(model, SENTENCES, is_split_into_words=True)
                lines = self.answers("tag", ["\n".join(words) + "\n" for words in SENTENCES], "--json", "--probabilities")
                for n, (line, words) in enumerate(zip(lines, SENTENCES, strict=True)):
                    places = [batch.word_ids(n).index(word) for word in range(len(words))]
                    self.assert_near(line["probabilities"], found.logits[n][places].softmax(-1).max(-1).values, 1e-5)

    def test_vectors(self):
        file = self.folder / "pairs.tsv"
        file.write_text("".join(f"{text}\t{text[::-1]}\n" for text in self.texts), encoding="utf-8")
        for name in ("bert", "roberta"):
            with self.subTest(name):
                model = self.adapted("embed", name, file, transformers.AutoModel)
                batch, found = self.rows(model, TEXTS)
                mask = batch["attention_mask"][..., None]
                expected = (found.last_hidden_state * mask).sum(1) / mask.sum(1)
                self.assert_near([line["vector"] for line in self.answers("embed", TEXTS)], expected, 1e-5)


if __name__ == "__main__":
    unittest.main()

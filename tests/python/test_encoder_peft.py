# SPDX-License-Identifier: Apache-2.0
"""Adapters of small random encoders of each architecture: those that fovea trains are opened by PEFT, and those of PEFT by fovea. Both programs give
the same answers."""

import unittest

try:
    import peft
except ImportError as error:
    raise unittest.SkipTest(f"{error.name} is not installed: adapters are not opened by PEFT") from error

from test_encoder_export import RECIPE, ExportTest
from test_encoders import MODELS, SENTENCES, TEXTS, FolderTest, transformers

import fovea
import numpy as np
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


# The products of the layers, whatever the architecture calls them.
PRODUCTS = r".*layer\.\d+\..*\.(query|key|value|dense|[qkvo]|[qkv]_lin|out_lin|lin[12])"
KINDS = {"LoRA": {}, "rsLoRA": {"use_rslora": True, "lora_alpha": 7}, "DoRA": {"use_dora": True}}


class AdaptersOfPeft(FolderTest):
    """Made by PEFT: `--adapter` and `adapters` give the base of Hugging Face what PEFT makes of it."""

    def adapt(self, name, model, task, seed=3, **options):
        """A model with random adapters and a random head, which are saved in the folder of this name."""
        torch.manual_seed(seed)
        config = peft.LoraConfig(task_type=task, **{"r": 3, "lora_alpha": 5, "target_modules": PRODUCTS, **options})
        adapted = peft.get_peft_model(model, config).eval()
        for name_of, parameter in adapted.named_parameters():
            if parameter.requires_grad and "magnitude" in name_of:
                parameter.data *= 1 + 0.2 * torch.rand_like(parameter)
            elif parameter.requires_grad:
                parameter.data += 0.2 * torch.randn_like(parameter)
        adapted.save_pretrained(self.folder / name)
        return adapted

    def base(self, name):
        """A folder of an encoder without a head."""
        self.save(name, transformers.AutoModel)

    def classifier(self, labels=3):
        return transformers.AutoModelForSequenceClassification.from_pretrained(self.folder, num_labels=labels)

    def saved(self, name):
        """What a model of this architecture has to save that its bare encoder does not have."""
        return {"modules_to_save": ["pre_classifier", "classifier"]} if name == "distilbert" else {}

    def probabilities(self, lines, labels=3):
        return [[line["probabilities"][f"LABEL_{n}"] for n in range(labels)] for line in lines]

    def test_a_classifier_on_a_bare_base(self):
        for name in MODELS:
            for kind, options in KINDS.items():
                with self.subTest(name, kind=kind):
                    self.base(name)
                    model = self.adapt("adapter", self.classifier(), "SEQ_CLS", **options, **self.saved(name))
                    expected = self.rows(model, TEXTS)[1].logits.softmax(-1)
                    found = self.said("classify", TEXTS, "--json", "--top", "3", "--adapter", self.folder / "adapter")
                    self.assert_near(self.probabilities(found), expected, 1e-5)

    def test_every_product_of_bert(self):
        """The layer over the first row among them."""
        self.base("bert")
        model = self.adapt("adapter", self.classifier(), "SEQ_CLS", target_modules="all-linear")
        self.assertIn("base_model.model.bert.pooler.dense.lora_A.weight", support.read_safetensors(self.folder / "adapter/adapter_model.safetensors"))
        expected = self.rows(model, TEXTS)[1].logits.softmax(-1)
        found = self.said("classify", TEXTS, "--json", "--top", "3", "--adapter", self.folder / "adapter")
        self.assert_near(self.probabilities(found), expected, 1e-5)

    def test_numbers_and_several_labels(self):
        self.base("roberta")
        model = self.adapt("one", self.classifier(1), "SEQ_CLS")
        expected = self.rows(model, TEXTS)[1].logits[:, 0]
        found = self.said("classify", TEXTS, "--json", "--adapter", self.folder / "one")
        self.assert_near([line["value"] for line in found], expected, 1e-5)
        labels = {0: "a", 1: "b", 2: "c"}
        self.save("bert", transformers.AutoModelForSequenceClassification, id2label=labels, problem_type="multi_label_classification")
        model = self.adapt("any", transformers.AutoModelForSequenceClassification.from_pretrained(self.folder), "SEQ_CLS")
        expected = self.rows(model, TEXTS)[1].logits.sigmoid()
        found = self.said("classify", TEXTS, "--json", "--top", "3", "--adapter", self.folder / "any")
        self.assert_near([[line["probabilities"][label] for label in "abc"] for line in found], expected, 1e-5)

    def test_tags(self):
        for name in ("bert", "distilbert", "mpnet", "xlm-roberta"):
            with self.subTest(name):
                self.base(name)
                model = transformers.AutoModelForTokenClassification.from_pretrained(self.folder, num_labels=4)
                model = self.adapt("adapter", model, "TOKEN_CLS", use_dora=name == "bert")
                batch, found = self.rows(model, SENTENCES, is_split_into_words=True)
                lines = self.said("tag", ["\n".join(words) + "\n" for words in SENTENCES], "--json", "--probabilities", "--adapter",
                                  self.folder / "adapter")
                tagger = fovea.load(self.folder, adapters={self.folder / "adapter": 1})
                self.assertEqual([line["tags"] for line in tagger.tag(SENTENCES)], [line["tags"] for line in lines])
                for n, (line, words) in enumerate(zip(lines, SENTENCES, strict=True)):
                    places = [batch.word_ids(n).index(word) for word in range(len(words))]
                    expected = found.logits[n][places].softmax(-1)
                    self.assertEqual([f"LABEL_{int(tag)}" for tag in expected.argmax(-1)], line["tags"])
                    self.assert_near(line["probabilities"], expected.max(-1).values, 1e-5)

    def mean_rows(self, model):
        batch, found = self.rows(model, TEXTS)
        mask = batch["attention_mask"][..., None]
        return (found.last_hidden_state * mask).sum(1) / mask.sum(1)

    def test_vectors(self):
        for name in MODELS:
            for kind, options in KINDS.items():
                with self.subTest(name, kind=kind):
                    self.base(name)
                    model = self.adapt("adapter", transformers.AutoModel.from_pretrained(self.folder), "FEATURE_EXTRACTION", **options)
                    found = [line["vector"] for line in self.said("embed", TEXTS, "--adapter", self.folder / "adapter")]
                    self.assert_near(found, self.mean_rows(model), 1e-5)
                    encoder = fovea.load(self.folder, adapters={self.folder / "adapter": 1})
                    self.assertTrue((encoder.embed(TEXTS) == np.array(found, np.float32)).all())

    def test_the_vectors_of_a_classifier_leave_its_head_out(self):
        self.base("mpnet")
        model = self.adapt("adapter", self.classifier(), "SEQ_CLS")
        found = [line["vector"] for line in self.said("embed", TEXTS, "--adapter", self.folder / "adapter")]
        self.assert_near(found, self.mean_rows(model.base_model.model.mpnet), 1e-5)

    def test_several_with_weights(self):
        """As PEFT's add_weighted_adapter adds them, which multiplies A and B."""
        self.base("bert")
        bare = transformers.AutoModel.from_pretrained(self.folder)
        self.adapt("one", bare, "FEATURE_EXTRACTION", r=2)
        self.adapt("two", transformers.AutoModel.from_pretrained(self.folder), "FEATURE_EXTRACTION", seed=4, use_rslora=True)
        model = peft.PeftModel.from_pretrained(transformers.AutoModel.from_pretrained(self.folder), self.folder / "one", adapter_name="one")
        model.load_adapter(self.folder / "two", adapter_name="two")
        model.add_weighted_adapter(["one", "two"], [0.5, -2.0], "both", combination_type="cat")
        model.set_adapter("both")
        found = self.said("embed", TEXTS, "--adapter", f"{self.folder}/one=0.5", f"{self.folder}/two=-2")
        self.assert_near([line["vector"] for line in found], self.mean_rows(model.eval()), 1e-5)
        encoder = fovea.load(self.folder, adapters={self.folder / "one": 0.5, self.folder / "two": -2})
        self.assertTrue((encoder.embed(TEXTS) == np.array([line["vector"] for line in found], np.float32)).all())

    def test_python(self):
        self.base("roberta")
        self.assertIsInstance(fovea.load(self.folder), fovea.Encoder)
        model = self.adapt("adapter", self.classifier(), "SEQ_CLS", use_dora=True)
        expected = self.rows(model, TEXTS)[1].logits.softmax(-1)
        for loaded in (fovea.load(self.folder, adapters={self.folder / "adapter": 1}),
                       fovea.Classifier.load(self.folder, adapters={self.folder / "adapter": 1})):
            self.assert_near(loaded.predict_proba(TEXTS), expected, 1e-5)
            for lose in (lambda loaded=loaded: loaded.save(self.folder / "copy"), loaded.__getstate__):
                with self.assertRaisesRegex(fovea.UsageError, "loaded with adapters"):
                    lose()
        self.assertFalse((self.folder / "copy").exists())
        with self.assertRaisesRegex(fovea.ModelError, "no such folder"):
            fovea.load(self.folder, adapters={self.folder / "nowhere": 1})

    def test_a_run_and_adapters_upon_it(self):
        """A run of `train classify --lora`, with adapters of PEFT beside its own: each counts once."""
        base, run, merged = self.folder, self.folder / "run", self.folder / "merged"
        self.base("bert")
        file = base / "texts.tsv"
        file.write_text("".join(f"{'ab'[n % 2]}\tweights of {'attention' if n % 2 else 'words'} {n}\n" for n in range(40)), encoding="utf-8")
        for words in (("train", "classify", "--base", base, "--train", file, "-o", run, *RECIPE, "--lora", 2, "--lr", "1e-2"),
                      ("export", run, "-o", merged)):
            done = support.fovea(*words)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(merged)  # which cuts texts where the run does
        model = self.adapt("adapter", transformers.AutoModelForSequenceClassification.from_pretrained(merged), None)
        expected = self.rows(model, TEXTS)[1].logits.softmax(-1)
        for folder in (run, merged):
            self.folder = folder
            found = self.said("classify", TEXTS, "--json", "--top", "2", "--adapter", base / "adapter")
            self.assert_near([[line["probabilities"][label] for label in "ab"] for line in found], expected, 1e-5)


if __name__ == "__main__":
    unittest.main()

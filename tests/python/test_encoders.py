# SPDX-License-Identifier: Apache-2.0
"""Encoders that transformers has written, read by the command: vectors, labels and tags of small random models of each
architecture are those of transformers, which reads the texts in padded batches."""

import json
import pathlib
import tempfile
import unittest

try:
    import tokenizers
    import torch
    import transformers
except ImportError as error:
    raise unittest.SkipTest(f"{error.name} is not installed: folders of transformers are not read") from error

import numpy as np
import support

SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48,
         "max_position_embeddings": 40}
DISTIL = {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48, "max_position_embeddings": 40}
MODELS = {
    "bert": (transformers.BertConfig, SIZES, "wordpiece"),
    "bert with one type, ReLU": (transformers.BertConfig, {
        **SIZES, "type_vocab_size": 1, "hidden_act": "relu", "layer_norm_eps": 1e-3}, "wordpiece"),
    "distilbert": (transformers.DistilBertConfig, DISTIL, "wordpiece"),
    "mpnet": (transformers.MPNetConfig, SIZES, "wordpiece of mpnet"),
    "roberta": (transformers.RobertaConfig, {**SIZES, "type_vocab_size": 1, "layer_norm_eps": 1e-5}, "bytes"),
    "roberta with blanks before words": (transformers.RobertaConfig, SIZES, "bytes behind blanks"),
    "xlm-roberta": (transformers.XLMRobertaConfig, {**SIZES, "type_vocab_size": 1}, "unigram"),
}
TEXTS = ["The weights of attention, don't they?", "  two  blanks \t", "Ünï 中文 e\u0301 😀 12345", "", "[MASK] it <mask> is </s>",
         "words " * 60, "a"]
SENTENCES = [["The", "weights", "don't", "sum", ",", "中文", "unattainable"], ["a"], ["Precomputation"] * 2]
LABELS = {0: "bad", 1: "good", 2: "so, so"}


def wordpiece(marks, first, last, processor):
    """WordPiece of this repository's words. `first` and `last` are the marks around a text."""
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    trainer = tokenizers.trainers.WordPieceTrainer(vocab_size=400, special_tokens=marks, show_progress=False)
    tokenizer.train_from_iterator(corpus(), trainer)
    tokenizer.post_processor = processor(*((name, tokenizer.token_to_id(name)) for name in (last, first)))
    return tokenizer


def corpus():
    return [(support.ROOT / "docs/DESIGN.md").read_text(encoding="utf-8")]


def masked(tokenizer):
    """With the mark of RoBERTa that takes the blank before it."""
    tokenizer.add_special_tokens([tokenizers.AddedToken("<mask>", lstrip=True)])
    return tokenizer


def byte_bpe(prefix):
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=400, special_tokens=["<s>", "<pad>", "</s>", "<unk>"], show_progress=False,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(corpus(), trainer)
    tokenizer.post_processor = tokenizers.processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=prefix)
    return masked(tokenizer)


def unigram():
    tokenizer = tokenizers.Tokenizer(tokenizers.models.Unigram())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(
        [tokenizers.pre_tokenizers.WhitespaceSplit(), tokenizers.pre_tokenizers.Metaspace()])
    tokenizer.decoder = tokenizers.decoders.Metaspace()
    trainer = tokenizers.trainers.UnigramTrainer(
        vocab_size=400, special_tokens=["<s>", "<pad>", "</s>", "<unk>"], unk_token="<unk>", show_progress=False)
    tokenizer.train_from_iterator(corpus(), trainer)
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    return masked(tokenizer)


def tokenizer_of(kind):
    """A tokenizer, and the name of its padding."""
    if kind.startswith("bytes"):
        return byte_bpe(kind == "bytes behind blanks"), "<pad>"
    if kind == "unigram":
        return unigram(), "<pad>"
    if kind == "wordpiece":
        marks = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        return wordpiece(marks, "[CLS]", "[SEP]", tokenizers.processors.BertProcessing), "[PAD]"
    marks = ["<s>", "<pad>", "</s>", "[UNK]", "<mask>"]
    return wordpiece(marks, "<s>", "</s>", tokenizers.processors.RobertaProcessing), "<pad>"


class FolderTest(unittest.TestCase):
    """A folder with a model of transformers, and what both programs say of it."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        torch.manual_seed(1)

    def save(self, name, of, **more):
        config, options, kind = MODELS[name]
        tokenizer, padding = tokenizer_of(kind)
        self.tokenizer = transformers.PreTrainedTokenizerFast(
            tokenizer_object=tokenizer, model_max_length=36, pad_token=padding)
        self.tokenizer.save_pretrained(self.folder)
        config = config(vocab_size=tokenizer.get_vocab_size(), pad_token_id=self.tokenizer.pad_token_id, **options, **more)
        model = of.from_config(config).eval()
        for parameter in model.parameters():
            parameter.data += 0.2 * torch.randn_like(parameter)
        model.save_pretrained(self.folder)
        return model

    def rows(self, model, texts, **how):
        batch = self.tokenizer(texts, padding=True, truncation=True, return_tensors="pt", return_token_type_ids=False, **how)
        with torch.no_grad():
            return batch, model(**batch)

    def said(self, command, lines, *options):
        done = support.fovea(command, self.folder, *options, input="".join(line + "\n" for line in lines))
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def assert_near(self, got, expected, limit=2e-5):
        self.assertLess(support.relative_error(np.array(got), np.array(expected)), limit)


class EncoderTest(FolderTest):
    def test_vectors(self):
        for name in MODELS:
            with self.subTest(name):
                batch, found = self.rows(self.save(name, transformers.AutoModel), TEXTS)
                weight = batch["attention_mask"].unsqueeze(-1)
                mean = (found.last_hidden_state * weight).sum(1) / weight.sum(1)
                self.assert_near([line["vector"] for line in self.said("embed", TEXTS)], mean.numpy())

    def test_labels(self):
        for name in MODELS:
            for problem, activation in ((None, "softmax"), ("multi_label_classification", "sigmoid")):
                with self.subTest(name, problem=problem):
                    model = self.save(name, transformers.AutoModelForSequenceClassification, id2label=LABELS, problem_type=problem)
                    logits = self.rows(model, TEXTS)[1].logits
                    expected = logits.softmax(-1) if activation == "softmax" else logits.sigmoid()
                    lines = self.said("classify", TEXTS, "--json", "--top", "3")
                    self.assert_near([[line["probabilities"][label] for label in LABELS.values()] for line in lines], expected)

    def test_pairs(self):
        """Both texts as one, cut where transformers cuts them; the second one has types of its own where the tokenizer says so."""
        texts = [text.replace("\t", " ") for text in TEXTS]  # a tab stands between the texts of a pair
        pairs = [*zip(texts, reversed(texts), strict=True), ("words " * 9, "words " * 40), ("so " * 30, "it " * 31)]
        for name in MODELS:
            with self.subTest(name):
                model = self.save(name, transformers.AutoModelForSequenceClassification, id2label=LABELS)
                batch = self.tokenizer([a for a, _ in pairs], [b for _, b in pairs], padding=True, truncation=True,
                                       return_tensors="pt", return_token_type_ids=True)
                if name in ("distilbert", "mpnet") or model.config.type_vocab_size == 1:
                    del batch["token_type_ids"]
                with torch.no_grad():
                    expected = model(**batch).logits.softmax(-1)
                said = self.said("pairs", ["\t".join(pair) for pair in pairs], "--json", "--top", "3", "--header", "no", "--format", "tsv")
                self.assert_near([[line["probabilities"][label] for label in LABELS.values()] for line in said], expected)

    def test_what_a_model_looked_at(self):
        """Weights of each head, and gradient x input of the likeliest label."""
        text = "The weights of attention, don't they sum?"
        for name in MODELS:
            with self.subTest(name):
                model = self.save(name, transformers.AutoModelForSequenceClassification, id2label=LABELS)
                model.set_attn_implementation("eager")
                ids = self.tokenizer(text, return_tensors="pt")["input_ids"]
                rows = model.get_input_embeddings()(ids).detach().requires_grad_()
                found = model(inputs_embeds=rows, output_attentions=True)
                found.logits[0].max().backward()
                done = support.fovea("explain", self.folder, text, "--json")
                self.assertEqual(done.returncode, 0, done.stderr)
                said = json.loads(done.stdout)
                self.assertEqual(len(said["tokens"]), ids.shape[1])
                self.assert_near([[head["weights"] for head in layer["heads"]] for layer in said["layers"]],
                                 torch.cat(found.attentions).detach().numpy())
                self.assert_near(said["saliency"]["values"], (rows.grad * rows).sum(-1)[0].detach().numpy(), 2e-4)

    def test_what_a_tagger_looked_at(self):
        model = self.save("roberta with blanks before words", transformers.AutoModelForTokenClassification, id2label={0: "O", 1: "B-x"})
        model.set_attn_implementation("eager")
        words = SENTENCES[0]
        batch = self.tokenizer(words, is_split_into_words=True, return_tensors="pt", return_token_type_ids=False)
        with torch.no_grad():
            found = model(**batch, output_attentions=True)
        done = support.fovea("explain", self.folder, "\n".join(words), "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        said = json.loads(done.stdout)
        self.assert_near([[head["weights"] for head in layer["heads"]] for layer in said["layers"]],
                         torch.cat(found.attentions).numpy())
        places = [n for n, word in enumerate(batch.word_ids(0)) if word is not None and word != batch.word_ids(0)[n - 1]]
        self.assertEqual([n for n, tag in enumerate(said["tags"]) if tag], places)

    def test_numbers(self):
        for name in MODELS:
            with self.subTest(name):
                model = self.save(name, transformers.AutoModelForSequenceClassification, num_labels=1)
                expected = self.rows(model, TEXTS)[1].logits[:, 0]
                self.assert_near([line["value"] for line in self.said("classify", TEXTS, "--json")], expected)

    def test_tags(self):
        for name, (_, _, kind) in MODELS.items():
            if kind == "bytes":  # transformers reads words with a tokenizer that puts blanks before them
                continue
            with self.subTest(name):
                model = self.save(name, transformers.AutoModelForTokenClassification, id2label={0: "O", 1: "B-x", 2: "I-x"})
                batch, found = self.rows(model, SENTENCES, is_split_into_words=True)
                lines = self.said("tag", ["\n".join(words) + "\n" for words in SENTENCES], "--json", "--probabilities")
                for n, (line, words) in enumerate(zip(lines, SENTENCES, strict=True)):
                    places = [batch.word_ids(n).index(word) for word in range(len(words))]
                    expected = found.logits[n][places].softmax(-1)
                    self.assertEqual([model.config.id2label[int(tag)] for tag in expected.argmax(-1)], line["tags"])
                    self.assert_near(line["probabilities"], expected.max(-1).values)

    def test_halves_and_files_in_parts(self):
        model = self.save("bert", transformers.AutoModelForSequenceClassification, id2label=LABELS)
        for file in self.folder.glob("model*"):
            file.unlink()
        model.to(torch.bfloat16).save_pretrained(self.folder, max_shard_size="20KB")
        self.assertGreater(len(list(self.folder.glob("model-*.safetensors"))), 1)
        model = transformers.AutoModelForSequenceClassification.from_pretrained(self.folder, dtype=torch.float32).eval()
        expected = self.rows(model, TEXTS)[1].logits.softmax(-1)
        lines = self.said("classify", TEXTS, "--json", "--top", "3")
        self.assert_near([[line["probabilities"][label] for label in LABELS.values()] for line in lines], expected)


if __name__ == "__main__":
    unittest.main()

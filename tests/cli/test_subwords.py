#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models of subwords: every training that takes a .model file, what its folder does then, and what is refused."""

import base64
import json
import unittest

import forged
import tag_support
from support import SMALL, CommandTest, words
from translate_support import SMALL as TRANSLATE
from translate_support import sentences

CLASSIFY = ("--width", "16", "--stop-after", "60u", "--eval-every", "20u", "--save-every", "20u", "--progress", "none",
            "--schedule", "constant")
TRANSLATE = [*TRANSLATE, "--stop-after", "120u"]
TRANSLATE[TRANSLATE.index("--min-count"):TRANSLATE.index("--min-count") + 2] = []


class SubwordTest(CommandTest):
    def learn(self, *args, text=None, name="m.model", size=40):
        path = self.folder / name
        self.succeed("tokenizer", "train", "--train", text or self.text, "-o", path, "--vocab-size", size, *args)
        return path

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def lm(self, output, model, *args, stop="40u"):
        return self.succeed("train", "lm", "--train", self.text, "-o", self.folder / output, *SMALL, "--tokenizer",
                            "sentencepiece", "--tokenizer-model", model, "--stop-after", stop, "--eval-every", "20u",
                            "--save-every", "20u", "--schedule", "constant", *args)

    def weights(self, output):
        """Without the header, which names the settings."""
        weights = (self.folder / output / "model.safetensors").read_bytes()
        return weights[8 + int.from_bytes(weights[:8], "little"):]

    def fails(self, status, needle, *args):
        self.assert_error(self.run_fovea(*args), status, needle)


class LanguageModel(SubwordTest):
    def test_blocks_and_lines(self):
        for kind, data in (("unigram", "blocks"), ("bpe", "lines")):
            with self.subTest(data):
                model = self.learn("--kind", kind, name=f"{kind}.model")
                self.lm(data, model, "--data", data, stop="300u")
                model.unlink()  # the folder has all of it
                text = self.succeed("generate", self.folder / data, "the cat", "--max-tokens", 60,
                                    "--temperature", "0.5").stdout.decode()
                self.assertIn("the cat ", text)
                self.assertNotIn("⁇", text)
                self.assertNotIn("  ", text)
                if data == "blocks":
                    self.assertNotIn("\n ", text)
                    self.assertGreater(text.count("\n"), 1)
                self.succeed("inspect", self.folder / data)
                said = self.last_object(self.succeed("explain", self.folder / data, "the cat sees", "--json"))
                self.assertEqual("".join(said["tokens"]).replace("<s>", "").strip(), "the cat sees")

    def test_bits_per_byte_are_those_of_the_text(self):
        self.lm("model", self.learn(), "--data", "blocks")
        text = "the cat sees the moon.\n\na dog likes no one.\n"
        score = self.last_object(self.succeed("eval", self.folder / "model", "--test", self.write("t.txt", text), "--json"))
        pieces = self.succeed("tokenizer", "encode", self.folder / "m.model", self.folder / "t.txt").stdout.decode().split("\n")
        first = pieces[0].split()[0].lstrip("▁")  # is no target
        bits = score["loss"] * score["tokens"] / 0.6931471805599453
        self.assertAlmostEqual(bits / score["bits_per_byte"], len(text) - len(first), delta=1e-3)

    def test_resumed_and_with_any_threads_it_gives_the_same_bits(self):
        model = self.learn()
        for data in ("blocks", "lines"):
            with self.subTest(data):
                args = ("--data", data, "--subword-sampling", "0.3", "--dropout", "0.1")
                self.lm(f"{data}-whole", model, *args)
                self.lm(f"{data}-three", model, *args, "--threads", "3")
                self.lm(f"{data}-plain", model, "--data", data, "--dropout", "0.1")
                self.lm(f"{data}-part", model, *args, stop="20u")
                self.succeed("train", "lm", f"--resume={self.folder}/{data}-part", "--stop-after", "40u")
                self.assertEqual(self.weights(f"{data}-whole"), self.weights(f"{data}-three"))
                self.assertEqual(self.weights(f"{data}-whole"), self.weights(f"{data}-part"))
                self.assertNotEqual(self.weights(f"{data}-whole"), self.weights(f"{data}-plain"))

    def test_a_damaged_model_in_the_folder(self):
        self.lm("model", self.learn(), stop="20u")
        file = self.folder / "model/tokenizer.txt"
        whole = file.read_text()
        at = whole.index("model ") + 20
        file.write_text(whole[:at] + ("B" if whole[at] == "A" else "A") + whole[at + 1:])
        self.fails(4, "tokenizer.txt", "generate", self.folder / "model")
        file.unlink()
        self.fails(4, "tokenizer.txt", "generate", self.folder / "model")

    def test_another_model_does_not_fit_the_weights(self):
        self.lm("model", self.learn(), "--data", "lines", stop="20u")
        self.lm("other", self.learn(name="other.model", size=42), "--data", "lines", stop="20u")
        other = (self.folder / "other/tokenizer.txt").read_bytes()
        (self.folder / "model/tokenizer.txt").write_bytes(other)
        self.fails(4, "tokenizer.txt", "generate", self.folder / "model")
        forged.forge(self.folder / "model", "tokenizer.txt", other)
        self.fails(4, "the tokenizer has 42 tokens, the model 40", "generate", self.folder / "model")
        damaged = bytearray((self.folder / "m.model").read_bytes())
        damaged[300] ^= 255
        data = b"fovea-tokenizer 1\nkind sentencepiece\nmodel %d\n" % len(damaged)
        data += b"".join(base64.b64encode(damaged[at:at + 72]) + b"\n" for at in range(0, len(damaged), 72))
        forged.forge(self.folder / "model", "tokenizer.txt", forged.with_checksum(data))
        self.fails(4, "model", "generate", self.folder / "model")

    def test_what_is_refused(self):
        model = self.learn()
        train = ("train", "lm", "--train", self.text, "-o", self.folder / "no", *SMALL)
        subwords = (*train, "--tokenizer", "sentencepiece", "--tokenizer-model")
        self.fails(2, "needs --tokenizer-model FILE.model", *train, "--tokenizer", "sentencepiece")
        self.fails(2, f"--tokenizer-model {model}: has no effect without", *train, "--tokenizer-model", model)
        self.fails(2, "--subword-sampling 0.1: has no effect without", *train, "--subword-sampling", "0.1")
        self.fails(2, "--subword-sampling", *subwords, model, "--subword-sampling", "2")
        self.fails(2, "--lower", *subwords, model, "--lower")
        self.fails(3, "none.model", *subwords, self.folder / "none.model")
        self.fails(4, "text.txt", *subwords, self.text)
        damaged = self.folder / "damaged.model"
        damaged.write_bytes(model.read_bytes()[:200])
        self.fails(4, "damaged.model", *subwords, damaged)
        damaged.write_bytes(b"")
        self.fails(4, "damaged.model", *subwords, damaged)
        self.assertFalse((self.folder / "no").exists())


class Translator(SubwordTest):
    def setUp(self):
        super().setUp()
        pairs = sentences()
        self.source, self.target = (self.write(f"text.{side}", "".join(pair[n] + "\n" for pair in pairs))
                                    for n, side in enumerate(("en", "de")))

    def fit(self, output, *args):
        self.succeed("train", "translate", "--source", self.source, "--target", self.target, "-o", self.folder / output,
                     *TRANSLATE, "--tokenizer", "sentencepiece", *args)

    def test_two_models_or_one(self):
        english = self.learn(text=self.source, name="en.model", size=20)
        german = self.learn(text=self.target, name="de.model", size=22)
        self.write("both.txt", self.source.read_text() + self.target.read_text())
        both = self.learn(text=self.folder / "both.txt", name="both.model", size=26)
        for output, args in (("two", ("--tokenizer-model", english, "--target-tokenizer-model", german, "--stop-after",
                                      "300u")),
                             ("one", ("--tokenizer-model", both, "--shared-vocabulary", "--share-embeddings")),
                             ("apart", ("--tokenizer-model", both)),
                             ("mixed", ("--tokenizer-model", english, "--target-tokenizer", "char", "--block", "64"))):
            with self.subTest(output):
                self.fit(output, *args)
        self.assertTrue((self.folder / "two/target-tokenizer.txt").exists())
        self.assertFalse((self.folder / "one/target-tokenizer.txt").exists())
        sizes = json.loads((self.folder / "two/config.json").read_text())["model"]
        self.assertEqual([sizes["vocabulary"], sizes["target_vocabulary"]], [20, 22])
        pairs = [*sentences()[:40], ("", "")]
        given = "".join(source + "\n" for source, _ in pairs).encode()
        said = self.succeed("translate", self.folder / "two", stdin=given).stdout.decode().splitlines()
        self.assertEqual((len(said), said[-1]), (len(pairs), ""))
        wanted = [(word, line.split()) for line, (_, target) in zip(said, pairs) for word in target.split()]
        self.assertGreater(sum(word in line for word, line in wanted), .8 * len(wanted))
        self.succeed("eval", self.folder / "two", "--source", self.source, "--reference", self.target)
        self.fails(2, "one vocabulary has one model", "train", "translate", "--source", self.source, "--target",
                   self.target, "-o", self.folder / "no", "--tokenizer", "sentencepiece", "--tokenizer-model", both,
                   "--target-tokenizer-model", both, "--shared-vocabulary")

    def test_sampling_gives_the_same_bits_again(self):
        model = self.learn("--kind", "bpe", text=self.source, name="en.model", size=26)
        german = self.learn(text=self.target, name="de.model", size=22)
        args = ("--tokenizer-model", model, "--target-tokenizer-model", german, "--subword-sampling", "0.2")
        self.fit("whole", *args, "--stop-after", "100u")
        self.fit("three", *args, "--stop-after", "100u", "--threads", "3")
        self.fit("part", *args, "--stop-after", "50u")
        self.fit("plain", *args[:4], "--stop-after", "100u")
        self.succeed("train", "translate", f"--resume={self.folder}/part", "--stop-after", "100u")
        self.assertEqual(self.weights("whole"), self.weights("three"))
        self.assertEqual(self.weights("whole"), self.weights("part"))
        self.assertNotEqual(self.weights("whole"), self.weights("plain"))


class Classifier(SubwordTest):
    def setUp(self):
        super().setUp()
        lines = words().splitlines()
        self.rows = self.write("rows.tsv", "".join(f"{'moon' if 'moon' in line else 'other'}\t{line}\n" for line in lines))

    def fit(self, output, *args):
        self.succeed("train", "classify", "--train", self.rows, "-o", self.folder / output, *CLASSIFY, "--tokenizer",
                     "sentencepiece", "--tokenizer-model", self.folder / "m.model", *args)

    def test_texts_are_pieces(self):
        self.learn("--byte-fallback", size=298)
        self.fit("model", "--max-length", "12", "--encoder", "conv3,attention")
        said = self.succeed("classify", self.folder / "model", stdin="the cat sees the moon.\n👩\n\n".encode())
        self.assertEqual(len(said.stdout.decode().splitlines()), 3)
        config = json.loads((self.folder / "model/config.json").read_text())
        self.assertEqual([config["model"]["vocabulary"], config["text"]["max_length"]], [298, 12])
        self.succeed("eval", self.folder / "model", "--test", self.rows)
        self.succeed("explain", self.folder / "model", "the cat sees the moon.")
        self.fails(2, "pieces have no vectors", "train", "classify", "--train", self.rows, "-o", self.folder / "no",
                   "--tokenizer", "sentencepiece", "--tokenizer-model", self.folder / "m.model", "--embeddings", self.text)
        self.fails(2, "needs --tokenizer-model", "train", "classify", "--train", self.rows, "-o", self.folder / "no",
                   "--tokenizer", "sentencepiece")

    def test_sampling_gives_the_same_bits_again(self):
        self.learn()
        args = ("--subword-sampling", "0.2", "--encoder", "conv3")
        self.fit("whole", *args)
        self.fit("three", *args, "--threads", "3")
        self.fit("part", *args, "--stop-after", "20u")
        self.fit("plain", *args[2:])
        self.succeed("train", "classify", f"--resume={self.folder}/part", "--stop-after", "60u")
        self.assertEqual(self.weights("whole"), self.weights("three"))
        self.assertEqual(self.weights("whole"), self.weights("part"))
        self.assertNotEqual(self.weights("whole"), self.weights("plain"))


class Tagger(SubwordTest):
    def setUp(self):
        super().setUp()
        sentences = tag_support.tagged()
        self.names = self.write("names.conll", tag_support.conll(sentences))
        self.words = self.write("words.txt", "".join(" ".join(w for w, _ in s) + "\n" for s in sentences))

    def tag_args(self, output, *args):
        return ("train", "tag", "--train", self.names, "-o", self.folder / output, *tag_support.SMALL, "--tokenizer",
                "sentencepiece", "--tokenizer-model", self.folder / "m.model", *args)

    def test_words_are_read_as_subwords(self):
        model = self.learn("--byte-fallback", text=self.words, size=288)
        for reader in ("conv", "bilstm"):
            with self.subTest(reader):
                said = self.succeed(*self.tag_args(reader, "--word-width", "0", "--character-reader", reader,
                                                   "--encoder", "bilstm:8,attention")).stderr.decode()
                self.assertIn("subwords a word, in training", said)
                config = json.loads((self.folder / reader / "config.json").read_text())
                self.assertEqual([config["model"]["characters"], config["text"]["tokenizer"]], [288, "sentencepiece"])
        model.unlink()  # the folder has all of it
        tagged = self.succeed("tag", self.folder / "conv", stdin="Ada\nsaw\nNew\nYork\n.\n\n".encode()).stdout.decode()
        self.assertEqual([line.split("\t")[-1] for line in tagged.splitlines()[:5]],
                         ["B-person", "O", "B-place", "I-place", "O"])
        score = self.last_object(self.succeed("eval", self.folder / "conv", "--test", self.names, "--json"))
        self.assertGreater(score["micro_f1"]["value"], .95)
        said = self.last_object(self.succeed("explain", self.folder / "conv", "Ada saw New York .", "--json"))
        self.assertEqual(said["tokens"], ["Ada", "saw", "New", "York", "."])
        self.succeed("inspect", self.folder / "conv")

    def test_sampling_gives_the_same_bits_again(self):
        for kind, args in (("unigram", ()), ("bpe", ("--character-reader", "none", "--linear", "--linear-buckets", "500"))):
            with self.subTest(kind):
                self.learn("--kind", kind, text=self.words, size=32)
                args = (*args, "--dropout", "0.1")
                sampling = ("--subword-sampling", "0.3")
                self.succeed(*self.tag_args(f"{kind}-whole", *args, *sampling))
                self.succeed(*self.tag_args(f"{kind}-three", *args, *sampling, "--threads", "3"))
                self.succeed(*self.tag_args(f"{kind}-part", *args, *sampling, "--stop-after", "40u", "--schedule", "constant"))
                self.succeed(*self.tag_args(f"{kind}-long", *args, *sampling, "--schedule", "constant"))
                self.succeed(*self.tag_args(f"{kind}-plain", *args))
                self.succeed("train", "tag", f"--resume={self.folder}/{kind}-part", "--stop-after", "120u")
                self.assertEqual(self.weights(f"{kind}-whole"), self.weights(f"{kind}-three"))
                self.assertEqual(self.weights(f"{kind}-long"), self.weights(f"{kind}-part"))
                self.assertNotEqual(self.weights(f"{kind}-whole"), self.weights(f"{kind}-plain"))
                (self.folder / "m.model").unlink()

    def test_what_is_refused(self):
        self.learn(text=self.words, size=32)
        self.fails(2, "a segmenter reads characters", *self.tag_args("no", "--task", "segment"))
        self.fails(2, "has no effect with --character-reader none", *self.tag_args("no", "--character-reader", "none"))
        self.fails(2, "needs --tokenizer-model", *self.tag_args("no", "--tokenizer-model", ""))
        self.fails(2, "--tokenizer", *self.tag_args("no", "--tokenizer", "word"))
        self.assertFalse((self.folder / "no").exists())


if __name__ == "__main__":
    unittest.main()

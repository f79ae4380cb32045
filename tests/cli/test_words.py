# SPDX-License-Identifier: Apache-2.0
"""Models of words, and of lines of limited length: training, evaluation, generation, resuming."""

import json
import math
import shutil
import unittest
from pathlib import Path

import forged
from support import SMALL, CommandTest, words

WORDS = ["--tokenizer", "word", "--data", "lines"]
QUICK = ["--stop-after", "60u", "--eval-every", "20u", "--save-every", "20u", "--lr", "1e-2"]


def vocabulary_of(text, min_count=2, marks=True):
    """The words of a vocabulary, computed in Python: by frequency, ties as they came."""
    counts = {}
    for word in text.split():
        counts[word] = counts.get(word, 0) + 1
    kept = sorted((w for w in counts if counts[w] >= min_count), key=lambda w: -counts[w])
    return ["<pad>", "<unk>", *(["<s>", "</s>"] if marks else []), *kept]


class Words(CommandTest):
    @classmethod
    def setUpClass(cls):
        cls.keep = CommandTest()
        cls.keep.setUp()
        cls.keep.text.write_text(words() + "".join(f"the cat sees rare{i} things.\n" for i in range(20)))
        cls.model = cls.keep.folder / "model"
        cls.said = cls.keep.train(cls.model, *WORDS, *QUICK, "--valid-fraction", "0.2").stderr.decode()

    @classmethod
    def tearDownClass(cls):
        cls.keep.doCleanups()

    def training_text(self):
        """The first four fifths of the characters, to the end of the line."""
        text = self.keep.text.read_text()
        return text[:text.index("\n", math.floor(len(text) * 0.8) - 1) + 1]

    def test_vocabulary_is_a_readable_file(self):
        expected = vocabulary_of(self.training_text())
        self.assertEqual((self.model / "vocab.txt").read_text(), "".join(w + "\n" for w in expected))
        lines = (self.model / "tokenizer.txt").read_text().splitlines()
        self.assertEqual(lines[:2], ["fovea-tokenizer 1", "kind word"])
        self.assertEqual([l.split()[0] for l in lines[4:-1]], expected[4:])
        self.assertIn(f"the {self.training_text().split().count('the')}", lines)
        checkpoint = next((self.model / "checkpoints").iterdir())
        self.assertEqual((checkpoint / "vocab.txt").read_bytes(), (self.model / "vocab.txt").read_bytes())

    def test_training_says_how_much_is_unknown(self):
        self.assertRegex(self.said, r"unknown words: 0\.0 % of the training text, \d+\.\d % of the validation text")

    def test_eval_counts_unknown_words(self):
        text = self.folder / "test.txt"
        text.write_text("the cat sees the moon.\nthe dragon sees 狐狸\n\n  \n")
        result = self.last_object(self.succeed("eval", self.model, "--test", text, "--json"))
        self.assertEqual((result["tokens"], result["unknown"], result["bits_per_byte"]), (11, 2, None))
        self.assertAlmostEqual(result["perplexity"], math.exp(result["loss"]), places=6)
        said = self.succeed("eval", self.model, "--test", text).stdout.decode()
        self.assertRegex(said, r"^loss .* nats a token, perplexity [\d.]+, 11 tokens, 18\.2 % of them unknown words\n$")
        text.write_text("the cat sees the moon.\n")
        result = self.last_object(self.succeed("eval", self.model, "--test", text, "--json"))
        self.assertAlmostEqual(result["bits_per_byte"], result["loss"] * 6 / math.log(2) / 23, places=9)

    def test_generate_writes_lines_that_end(self):
        known = set((self.model / "vocab.txt").read_text().split())
        for seed in range(1, 6):
            done = self.succeed("generate", self.model, "the cat", "--seed", seed, "--json")
            text = self.last_object(done)["text"]
            self.assertLessEqual(set(text.split()), known)
            self.assertTrue(text.startswith(" "), text)
            self.assertNotIn("  ", text)
            self.assertLess(len(text.split()), 100)
        self.assertRegex(self.succeed("generate", self.model).stdout.decode(), r"^\w.*\n$")

    def test_generate_warns_of_unknown_words(self):
        done = self.succeed("generate", self.model, "the dragon sees 狐狸", "--max-tokens", "3")
        self.assertTrue(done.stdout.decode().startswith("the dragon sees 狐狸"))
        self.assertIn("words of the prompt that the model does not know: 2", done.stderr.decode())
        self.assertEqual(self.succeed("generate", self.model, "the cat", "--max-tokens", "3").stderr, b"")

    def test_inspect_shows_the_settings_and_checks_the_list(self):
        said = self.succeed("inspect", self.model).stdout.decode()
        self.assertRegex(said, r"text\.tokenizer +word\n")
        self.assertRegex(said, r"text\.min_count +2\n")
        text = self.last_object(self.succeed("inspect", self.model, "--json"))["settings"]["text"]
        self.assertEqual((text["tokenizer"], text["marks"], text["max_length"], text["truncate"]), ("word", True, 0, "end"))
        copy = self.folder / "copy"
        shutil.copytree(self.model, copy)
        self.succeed("inspect", copy, "--verify")
        (copy / "vocab.txt").write_text("<pad>\n<unk>\n")
        self.assert_error(self.run_fovea("inspect", copy, "--verify"), 4, "damaged files: 1")

    def test_resume_gives_the_same_bits(self):
        whole, parts = self.folder / "whole", self.folder / "parts"
        args = [*WORDS, "--lower", "--no-marks", "--max-length", "5", "--truncate", "front", *QUICK]
        self.train(whole, *args)
        self.train(parts, *args, "--stop-after", "20u", "--schedule", "constant")
        self.train(whole, *args, "--schedule", "constant", "--overwrite")
        self.succeed("train", "lm", "--resume", "-o", parts, "--stop-after", "60u")
        self.assertEqual((whole / "model.safetensors").read_bytes()[-9999:], (parts / "model.safetensors").read_bytes()[-9999:])
        again = ["train", "lm", "--resume", "-o", parts, "--stop-after", "80u"]
        for option, began, given in [("--max-length", "5", "4"), ("--truncate", "front", "end"),
                                     ("--min-count", "2", "1"), ("--tokenizer", "word", "char")]:
            self.assert_error(self.run_fovea(*again, option, given), 2, f"{option}: the run began with {began}, given is {given}")
        self.assert_error(self.run_fovea(*again, "--no-lower"), 2, "--lower: the run began with true, given is false")
        self.assert_error(self.run_fovea(*again, "--marks"), 2, "--marks: the run began with false, given is true")

    def test_eval_says_what_it_leaves_out(self):
        model, text = self.folder / "model", self.folder / "test.txt"
        self.train(model, *WORDS, "--no-marks", "--max-length", "3", "--stop-after", "5u")
        text.write_text("the\nthe cat\nthe cat sees the moon.\n\na dog likes no one.\n")
        done = self.succeed("eval", model, "--test", text, "--json")
        result = self.last_object(done)
        self.assertEqual((result["tokens"], result["single_lines"], result["truncated_lines"]), (1 + 2 + 2, 1, 2))
        said = done.stderr.decode()
        self.assertIn("lines of a single token, which predict nothing: 1", said)
        self.assertIn("longer than the model's --max-length: 2", said)
        text.write_text("the\n")
        self.assert_error(self.run_fovea("eval", model, "--test", text), 3, "test.txt is too small", "2 tokens")

    def test_a_vocabulary_can_be_given(self):
        listed = self.folder / "v.txt"
        listed.write_text("<pad>\n<unk>\n<s>\n</s>\nmoon.\nthe\nowl\n")
        model = self.folder / "model"
        self.train(model, *WORDS, "--vocabulary", listed, "--stop-after", "20u")
        self.assertEqual((model / "vocab.txt").read_text(), listed.read_text())
        listed.unlink()  # the model has its own
        self.succeed("train", "lm", "--resume", "-o", model, "--stop-after", "30u")
        self.succeed("generate", model, "the", "--max-tokens", "3")

    def test_blocks_of_words(self):
        model = self.folder / "model"
        self.train(model, "--tokenizer", "word", "--stop-after", "20u")
        text = self.last_object(self.succeed("generate", model, "the", "--max-tokens", "20", "--json"))["text"]
        self.assertEqual(len(text.split()), 20)
        self.assert_error(self.run_fovea("generate", model), 3, "the prompt holds no token")
        self.assertEqual(self.last_object(self.succeed("eval", model, "--test", self.text, "--json"))["tokens"],
                         len(self.text.read_text().split()) - 1)


class BadWords(CommandTest):
    def refuse(self, text, status, *needles, args=()):
        self.text.write_bytes(text)
        done = self.run_fovea("train", "lm", "--train", self.text, "-o", self.folder / "m", *SMALL, *WORDS,
                              "--valid-fraction", "0", *args)
        self.assert_error(done, status, *needles)
        self.assertFalse((self.folder / "m").exists())

    def test_texts(self):
        self.refuse(b"a b c\n", 3, "none of its 3 words occurs 2 times")
        self.refuse(b"\n \n", 3, "text has no words")
        self.refuse(b"a a\n\xff\n", 3, "text.txt:2:1: invalid UTF-8")
        self.refuse(b"a\na\na\n", 3, "0 lines of at least 2 tokens", "3 of a single token", args=["--no-marks"])

    def test_lines_longer_than_the_model(self):
        self.text.write_text("a b " * 50 + "\n")
        args = ["train", "lm", "--train", self.text, "-o", self.folder / "m", *SMALL, *WORDS, "--valid-fraction", "0",
                "--stop-after", "2u"]
        self.succeed(*args, "--overwrite")  # in pieces
        done = self.succeed(*args, "--overwrite", "--max-length", "17")
        self.assertIn("lines of more than 17 tokens: 1 of 1; their end is dropped", done.stderr.decode())
        self.assert_error(self.run_fovea(*args, "--overwrite", "--max-length", "18"), 2, "--max-length: 18")

    def test_options_without_effect(self):
        for args, needle in [(["--data", "blocks", "--max-length", "5"], "--max-length 5: has no effect"),
                             (["--truncate", "front"], "--truncate front: has no effect"),
                             (["--tokenizer", "char", "--min-count", "3"], "--min-count 3: has no effect"),
                             (["--tokenizer", "char", "--vocabulary", "v"], "has no effect"),
                             (["--tokenizer", "word", "--vocabulary", "v", "--min-count", "3"],
                              "--vocabulary, --min-count"),
                             (["--tokenizer", "byte", "--lower"], "--lower"), (["--min-count", "0"], "--min-count: 0")]:
            with self.subTest(args=args):
                self.refuse(b"a a b b\n", 2, needle, args=args)

    def test_vocabularies(self):
        listed = self.folder / "v.txt"
        head = b"<pad>\n<unk>\n<s>\n</s>\n"
        for data, needle in [(b"", "v.txt: the file is empty"), (b"a\n", "v.txt:1: expected <pad>"),
                             (head, "v.txt:5: expected a word"), (b"<pad>\n<unk>\na\n", "v.txt:3: expected <s>"),
                             (head + b"a\na\n", "v.txt:6: expected a word that is not listed yet"),
                             (head + b"a b\n", "v.txt:5: expected one word"), (head + b"a\xff\n", "v.txt:5:2: invalid UTF-8"),
                             (head + b"zzz\n", "none of the words of the vocabulary"),
                             (head + b"\x00" * 20 + b"\n", "v.txt: expected text")]:
            with self.subTest(data=data):
                listed.write_bytes(data)
                self.refuse(b"a a b b\n", 3, needle, args=["--vocabulary", listed])

    def test_damaged_tokenizers(self):
        model = self.folder / "model"
        self.train(model, *WORDS, "--stop-after", "2u")
        good = (model / "tokenizer.txt").read_text().rsplit("checksum", 1)[0]
        first = good.splitlines()[4]
        for bad in [good.replace(first, first + "x", 1), good.replace(first, first.split()[0], 1),
                    good.replace(first, good.splitlines()[5], 1), good.replace(first, "<unk> 3", 1),
                    good.replace(first, "\x85 3", 1), good.replace(f"{first}\n", "", 1),
                    good.replace("kind word", "kind word\nmarks false"), good.replace("kind word", "kind char"),
                    good.replace("words ", "words 9"), good + "more 1\n"]:
            with self.subTest(bad=bad[:60]):
                copy = self.folder / "copy"
                shutil.rmtree(copy, ignore_errors=True)
                shutil.copytree(model, copy)
                forged.forge(copy, "tokenizer.txt", forged.with_checksum(bad.encode()))
                self.assert_error(self.run_fovea("generate", copy, "the"), 4, "tokenizer")
                self.assert_error(self.run_fovea("eval", copy, "--test", self.text), 4, "tokenizer")
        copy = self.folder / "larger"
        shutil.copytree(model, copy)
        count = int(good.splitlines()[3].split()[1])
        larger = good.replace(f"words {count}", f"words {count + 1}") + "owl 1\n"
        forged.forge(copy, "tokenizer.txt", forged.with_checksum(larger.encode()))
        self.assert_error(self.run_fovea("generate", copy, "the"), 4, f"the tokenizer has {count + 5} tokens, the model {count + 4}")

    def test_a_list_of_somebody_else_stays(self):
        model = self.folder / "model"
        self.train(model, "--stop-after", "2u")
        (model / "vocab.txt").write_text("my words\n")
        args = ["train", "lm", "--train", self.text, "-o", model, *SMALL, *WORDS, "--stop-after", "2u", "--overwrite"]
        self.assert_error(self.run_fovea(*args), 2, "vocab.txt is there, and not from a run of fovea")
        self.assertEqual((model / "vocab.txt").read_text(), "my words\n")
        (model / "vocab.txt").unlink()
        self.succeed(*args)
        self.succeed(*args, "--tokenizer", "char")
        self.assertFalse((model / "vocab.txt").exists())


class Book(CommandTest):
    """Spec T7 on the text of its source, which lies beside the repository or nowhere."""

    def test_preset_source_has_the_vocabulary_of_the_book(self):
        data = Path(__file__).resolve().parents[3] / "shared" / "data" / "little_prince"
        if not data.exists():
            self.skipTest("no texts of the sources beside the repository")
        model = self.folder / "model"
        self.succeed("train", "lm", "--train", data / "sentences.tok.txt", "--preset", "source", "--valid-fraction", "0",
                     "--stop-after", "2u", "-o", model)
        self.assertEqual((model / "vocab.txt").read_bytes(), (data / "vocab.txt").read_bytes())
        self.assertEqual(json.loads(self.succeed("inspect", model, "--json").stdout)["parameters"], 480438)


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
import contextlib
import io
import pathlib
import random
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import ngram  # noqa: E402


def noise(length, letters="abcd", seed=7):
    return "".join(random.Random(seed).choices(letters, k=length))


def run(*arguments):
    """(exit code, stdout) of the command."""
    out = io.StringIO()
    with mock.patch.object(sys, "argv", ["ngram.py", *map(str, arguments)]):
        with contextlib.redirect_stdout(out):
            return ngram.main(), out.getvalue()


class Split(unittest.TestCase):
    def test_the_last_characters_validate(self):
        self.assertEqual(ngram.split("0123456789", 0.2), ("01234567", "89"))
        # 1 - 0.9 is a little less than 0.1 in doubles.
        self.assertEqual(len(ngram.split("x" * 40, 0.9)[0]), 4)
        self.assertEqual(len(ngram.split("x" * 1115394, 0.1)[0]), 1003854)

    def test_counts_characters_not_bytes(self):
        self.assertEqual(ngram.split("春眠不觉晓，处处闻啼", 0.1)[1], "啼")

    def test_by_lines_the_cut_is_at_the_next_start_of_one(self):
        self.assertEqual(ngram.split("ab\ncd\nef\n", 0.5, "line"), ("ab\ncd\n", "ef\n"))
        self.assertEqual(ngram.split("abc\ndef\n", 0.5, "line"), ("abc\n", "def\n"))
        self.assertEqual(ngram.split("abcdef", 0.5, "line"), ("abcdef", ""))


class Spell(unittest.TestCase):
    def test_known_characters_stay(self):
        self.assertEqual(ngram.spell("cab", set("abc")), "cab")

    def test_an_unseen_character_becomes_its_bytes(self):
        tokens = ngram.spell("a中", {"a"})
        self.assertEqual([ord(t) - ngram.BYTE for t in tokens[1:]], list("中".encode()))


class KneserNey(unittest.TestCase):
    def test_equals_a_bigram_worked_by_hand(self):
        # "abab": bigrams ab 2, ba 1; continuation counts a 1, b 1; V = 4. Too few for discounts to
        # be estimated, so .5, 1, 1.5: P(b) = (1 - .5)/2 + (.5 + .5)/2 * 1/4 = 3/8, and
        # P(b | a) = (2 - 1)/2 + 1/2 * P(b) = 11/16.
        model = ngram.KneserNey("abab", order=2, vocabulary_size=4)
        self.assertAlmostEqual(model.probability("b"), 3 / 8)
        self.assertAlmostEqual(model.probability("ab"), 11 / 16)

    def test_discounts_are_those_of_chen_and_goodman(self):
        # n1..n4 = 8, 4, 2, 1: Y = 1/2; D1 = 1 - 2Y n2/n1, D2 = 2 - 3Y n3/n2, D3 = 3 - 4Y n4/n3.
        found = ngram.discounts([1] * 8 + [2] * 4 + [3] * 2 + [4])
        for got, expected in zip(found, (0, 0.5, 1.25, 2.0)):
            self.assertAlmostEqual(got, expected)

    def test_every_distribution_sums_to_one(self):
        letters = "abcdef"
        model = ngram.KneserNey(noise(2000, letters), order=4, vocabulary_size=len(letters) + 3)
        for context in "", "a", "bc", "dea", "zab", "zzz":
            total = sum(model.probability(context + c) for c in letters + "xyz")
            self.assertAlmostEqual(total, 1.0, msg=context)

    def test_nats_sum_over_every_token_once(self):
        model = ngram.KneserNey(noise(500), order=3, vocabulary_size=6)
        tokens = "abcab"
        steps = [model.probability(tokens[max(0, i - 2):i + 1]) for i in range(len(tokens))]
        product = 1.0
        for p in steps:
            product *= p
        self.assertAlmostEqual(2.718281828459045 ** -model.nats(tokens), product)

    def test_learns_what_repeats(self):
        found = ngram.score("in the beginning " * 200)
        self.assertLess(found["nats_per_character"], 0.1)

    def test_noise_costs_its_entropy(self):
        found = ngram.score(noise(40000), order=3)
        self.assertAlmostEqual(found["nats_per_character"], 1.386, delta=0.02)

    def test_unseen_characters_are_counted_and_paid_for(self):
        found = ngram.score("ab" * 90 + "ab" * 9 + "中b")
        self.assertEqual(found["unseen_characters"], 1)
        self.assertEqual(found["valid_tokens"], 22)
        self.assertEqual(found["vocabulary"], ngram.SPECIALS + 256 + 2)


class LongestCopy(unittest.TestCase):
    def test_equals_trying_every_run(self):
        for seed in range(20):
            source, written = noise(60, "abc", seed), noise(40, "abc", seed + 100)
            runs = [written[i:j] for i in range(40) for j in range(i, 41)]
            expected = max(len(r) for r in runs if r in source)
            self.assertEqual(len(ngram.longest_copy(source, written)), expected)

    def test_of_nothing_is_nothing(self):
        self.assertEqual(ngram.longest_copy("abc", ""), "")
        self.assertEqual(ngram.longest_copy("abc", "xyz"), "")


class VerseShape(unittest.TestCase):
    def test_counts_lines_of_five_and_seven(self):
        verse = "春眠不觉晓，\n处处闻啼鸟。\n\n秦时明月汉时关，万里长征\n"
        self.assertEqual(ngram.verse_shape(verse), (3, 4))

    def test_empty_text_has_no_lines(self):
        self.assertEqual(ngram.verse_shape("\n\n"), (0, 0))


class Command(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.train = pathlib.Path(folder.name) / "train.txt"
        self.written = pathlib.Path(folder.name) / "written.txt"
        self.train.write_text("秦时明月汉时关，\n" * 20, encoding="utf-8")

    def test_a_copy_that_is_too_long_fails(self):
        self.written.write_text("秦时明月汉时春", encoding="utf-8")
        self.assertEqual(run("check", self.train, self.written, "--max-run", 5)[0], 1)
        self.assertEqual(run("check", self.train, self.written, "--max-run", 6)[0], 0)

    def test_too_few_verse_lines_fail(self):
        self.written.write_text("春眠不觉晓，\n春眠。\n", encoding="utf-8")
        verse = "check", self.train, self.written, "--verse", "--min-share"
        self.assertEqual(run(*verse, 0.9)[0], 1)
        self.assertEqual(run(*verse, 0.5)[0], 0)

    def test_a_model_is_compared_by_character(self):
        code, out = run("score", self.train, "--model-loss", "0.5")
        self.assertEqual(code, 0)
        self.assertIn("the model: 0.5000 nats per character", out)


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""fovea eval of files of translations; and compared with sacreBLEU where it is installed."""

import random
import unittest

from support import CommandTest

try:
    import sacrebleu
    from sacrebleu.metrics import BLEU, CHRF, TER
except ImportError:
    sacrebleu = None

REFERENCE = "The cat sat on the mat.\nA dog is here, too.\n\nYes, it is!\n"
SYSTEM = "The cat sat on a mat.\nHere is a dog, too.\n\nYes it is!\n"


class TranslationScores(CommandTest):
    def files(self, **texts):
        for name, text in texts.items():
            (self.folder / name).write_text(text, encoding="utf-8")
        return [self.folder / name for name in texts]

    def scores(self, *args):
        return self.last_object(self.succeed("eval", *args, "--json"))

    def test_scores_and_signatures(self):
        system, reference = self.files(system=SYSTEM, reference=REFERENCE)
        found = self.scores("--hypothesis", system, "--reference", reference)
        self.assertEqual([metric["name"] for metric in found["metrics"]], ["BLEU", "chrF2", "TER"])
        self.assertEqual(found["sentences"], 4)
        # sacreBLEU 2.6.0
        for metric, score in zip(found["metrics"], (33.88332006703256, 51.64021966069857, 35.714285714285715)):
            self.assertAlmostEqual(metric["score"], score, 9)
        said = self.succeed("eval", "--hypothesis", system, "--reference", reference, "--sentence-scores").stdout.decode()
        self.assertIn("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0", said)
        self.assertEqual(len(said.split("4 sentences")[0].strip().splitlines()), 5)

    def test_case(self):
        system, reference = self.files(system=SYSTEM.lower(), reference=REFERENCE)
        pair = "--hypothesis", system, "--reference", reference
        self.assertIn(b"to compare lower case, say --lowercase", self.succeed("eval", *pair).stderr)
        done = self.succeed("eval", *pair, "--lowercase", "--json")
        self.assertNotIn(b"warning", done.stderr)
        found = self.last_object(done)
        self.assertEqual([m["signature"].split("|")[1] for m in found["metrics"]], ["case:lc"] * 3)
        lower, = self.files(lower=REFERENCE.lower())
        alike = self.scores("--hypothesis", system, "--reference", lower)
        self.assertEqual([m["score"] for m in found["metrics"]], [m["score"] for m in alike["metrics"]])

    def test_comparison(self):
        system, reference = self.files(system=SYSTEM * 20, reference=REFERENCE * 20)
        found = self.scores("--hypothesis", reference, "--reference", reference, "--against", system, "--resamples", "100")
        for metric in found["metrics"]:
            self.assertLess(metric["p_value"], .05)
            self.assertEqual(metric["difference"]["value"] > 0, metric["name"] != "TER")
        said = self.succeed("eval", "--hypothesis", system, "--reference", reference, "--against", system).stdout.decode()
        self.assertIn("+0.00 to +0.00", said)

    def test_packed_files_and_carriage_returns(self):
        system, reference, windows = self.files(system=SYSTEM, reference=REFERENCE, windows="")
        windows.write_bytes(b"\xef\xbb\xbf" + REFERENCE.replace("\n", "\r\n").encode())
        found = self.scores("--hypothesis", windows, "--reference", reference, "--metric", "chrf++")
        self.assertAlmostEqual(found["metrics"][0]["score"], 100)

    def test_bad_input(self):
        system, short, empty = self.files(system=SYSTEM, short="a\n", empty="")
        pair = ["eval", "--hypothesis", system, "--reference"]
        self.assert_error(self.run_fovea(*pair, short), 3, "has 1 lines, but", "has 4")
        self.assert_error(self.run_fovea(*pair, empty), 3, "empty")
        self.assert_error(self.run_fovea(*pair, system, "--metric", "meteor"), 2, "--metric")
        self.assert_error(self.run_fovea(*pair, system, "--against", short), 3, "has 1 lines")
        self.assert_error(self.run_fovea(*pair, system, "--test", system), 2, "--test has no effect")
        self.assert_error(self.run_fovea(*pair, system, "--errors", "3"), 2, "--errors has no effect")
        self.assert_error(self.run_fovea("eval", self.folder, *pair[1:], system), 2, "--hypothesis scores files")
        self.assert_error(self.run_fovea("eval", "--hypothesis", system), 2, "--reference is missing")
        self.assert_error(self.run_fovea(*pair, system, "--source", system), 2, "--source has no effect")
        self.assert_error(self.run_fovea("eval"), 2, "neither a model nor translations")
        system.write_bytes(b"a\n\xff\nb\nc\n")
        self.assert_error(self.run_fovea(*pair, short), 3, "system:2")


@unittest.skipUnless(sacrebleu, "there is no sacrebleu: pip install sacrebleu")
class SameAsSacreBleu(CommandTest):
    """Random lines, changed at random: words of several scripts, punctuation, numbers, blanks of all kinds."""

    ALPHABET = "abcXYZ019.,-!?/&'\"()[]<>@#%éßΣςÄЖ月我们。，“”…\u3000\u00a0\u0301🙂ｆカ한"

    def corpus(self, rng, lines):
        word = lambda: "".join(rng.choice(self.ALPHABET) for _ in range(rng.randint(1, 5)))
        vocabulary = [word() for _ in range(60)]
        reference = [[rng.choice(vocabulary) for _ in range(rng.randint(0, 30))] for _ in range(lines)]
        systems = []
        for share in (.1, .3):
            changed = [[rng.choice(vocabulary) if rng.random() < share else w for w in line if rng.random() > share / 3]
                       for line in reference]
            for line in changed:
                if len(line) > 4 and rng.random() < .5:
                    at = rng.randrange(len(line) - 2)
                    run = line[at:at + 2]
                    del line[at:at + 2]
                    line[rng.randint(0, len(line)):0] = run
            systems.append(changed)
        return [[" ".join(line) for line in text] for text in (reference, *systems)]

    def test_lower_case(self):
        texts = self.corpus(random.Random(5), 60)
        paths = [self.folder / name for name in ("reference", "other", "system")]
        for path, text in zip(paths, texts):
            path.write_text("".join(line + "\n" for line in text), encoding="utf-8")
        found = self.last_object(self.succeed("eval", "--hypothesis", paths[2], "--reference", paths[0], "--metric",
                                              "bleu,chrf", "--lowercase", "--json"))
        for ours, theirs in zip(found["metrics"], (BLEU(lowercase=True, force=True), CHRF(lowercase=True))):
            self.assertAlmostEqual(ours["score"], theirs.corpus_score(texts[2], texts[:1]).score, 6)
            self.assertEqual(ours["signature"].rsplit("|", 1)[0], str(theirs.get_signature()).rsplit("|", 1)[0])

    def test_many_corpora(self):
        rng = random.Random(4)
        for round_ in range(6):
            texts = self.corpus(rng, rng.choice([1, 5, 60]))
            paths = [self.folder / name for name in ("reference", "other", "system")]
            for path, text in zip(paths, texts):
                path.write_text("".join(line + "\n" for line in text), encoding="utf-8")
            for references in (1, 2):
                lists = texts[:references]
                for tokenize in ("13a", "zh", "char", "none"):
                    found = self.last_object(self.succeed(
                        "eval", "--hypothesis", paths[2], "--reference", *paths[:references], "--metric",
                        "bleu,chrf,chrf++,ter", "--tokenize", tokenize, "--sentence-scores", "--json"))
                    wanted = BLEU(tokenize=tokenize, force=True), CHRF(), CHRF(word_order=2), TER()
                    for ours, theirs in zip(found["metrics"], wanted):
                        with self.subTest(round=round_, metric=ours["name"], tokenize=tokenize, references=references):
                            self.assertAlmostEqual(ours["score"], theirs.corpus_score(texts[2], lists).score, 6)
                            self.assertEqual(ours["signature"].rsplit("|", 1)[0],
                                             str(theirs.get_signature()).rsplit("|", 1)[0])
                            if ours["name"] == "BLEU":
                                theirs = BLEU(tokenize=tokenize, force=True, effective_order=True)
                            for n, score in enumerate(ours["sentences"][:20]):
                                each = theirs.sentence_score(texts[2][n], [text[n] for text in lists])
                                self.assertAlmostEqual(score, each.score, 6)


if __name__ == "__main__":
    unittest.main()

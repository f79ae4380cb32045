# SPDX-License-Identifier: Apache-2.0
"""What training and eval of classifiers notice: each is said in a line, with what to do, and nothing of healthy data."""

import random
import unittest

from support import CommandTest

WORDS = "film plot actor scene story music night road house friend water light summer train letter garden".split()


class NoticesTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.rng = random.Random(1)

    def sentence(self, *more, count=9):
        return " ".join([*self.rng.choices(WORDS, k=count), *more])

    def table(self, rows, name="train.tsv"):
        path = self.folder / name
        path.write_text("".join(f"{label}\t{text}\n" for label, text in rows), encoding="utf-8")
        return path

    def said(self, file, *args):
        done = self.succeed("train", "classify", "--train", file, "-o", self.folder / "model", "--overwrite", *args)
        return done.stderr.decode()

    def score(self, file):
        return self.succeed("eval", self.folder / "model", "--test", file).stderr.decode()

    def warnings(self, said):
        return [line for line in said.splitlines() if line.startswith("warning")]

    def uneven(self, count=300):
        return [("rare" if i % 20 == 0 else "most", self.sentence()) for i in range(count)]


class Predictions(NoticesTest):
    FEW = ("--model", "bag", "--width", "4", "--stop-after", "60u", "--lr", "0.003", "--quiet")

    def test_one_class_alone(self):
        file = self.table(self.uneven())
        said = self.said(file, *self.FEW, "--valid-fraction", "0.5")
        self.assertRegex(said, r"warning: validation: most alone is predicted, and never rare \(\d texts\); add texts of them")
        self.assertIn("warning: test: most alone is predicted, and never rare (15 texts);", self.score(file))

    def test_a_label_that_is_never_predicted(self):
        rows = [("good", self.sentence("wonderful")) if i % 2 else ("bad", self.sentence("dreadful")) for i in range(60)]
        self.said(self.table(rows + [("odd", self.sentence()) for _ in range(3)]))
        test = self.table(rows + [("odd", self.sentence("wonderful", "wonderful")) for _ in range(6)], "test.tsv")
        self.assertIn("warning: test: never predicted: odd (6 texts);", self.score(test))

    def test_no_label_at_all(self):
        rows = [f'{{"text": "{self.sentence()}", "label": ["{self.rng.choice("abcdefgh")}"]}}\n' for _ in range(200)]
        file = self.folder / "train.jsonl"
        file.write_text("".join(rows))
        self.assertIn("warning: validation: no text is given a label, so every F1 is 0;",
                      self.said(file, *self.FEW, "--multi-label"))

    def test_nothing_is_right(self):
        rows = [("good", self.sentence("wonderful")) if i % 2 else ("bad", self.sentence("dreadful")) for i in range(60)]
        self.said(self.table(rows))
        test = self.table([({"good": "bad", "bad": "good"}[label], text) for label, text in rows], "test.tsv")
        self.assertIn("warning: test: no prediction is right", self.score(test))


class Texts(NoticesTest):
    def test_texts_that_are_in_both_files(self):
        rows = [(str(i % 2), self.sentence(("good", "bad")[i % 2])) for i in range(60)]
        train = self.table(rows)
        valid = self.table([(label, text.upper() + "!") for label, text in rows[:7]] +
                           [(str(i % 2), self.sentence("new")) for i in range(13)], "valid.tsv")
        said = self.said(train, "--valid", valid)
        self.assertIn("warning: texts to validate on that are among those to train on: 7 of 20; remove them", said)
        self.assertNotIn("repeat another one", said)

    def test_texts_that_are_there_twice(self):
        rows = [(str(i % 2), self.sentence(("good", "bad")[i % 2])) for i in range(60)]
        said = self.said(self.table(rows + [(label, f"  {text.title()} ...") for label, text in rows[:9]]))
        self.assertIn("texts to train on that repeat another one, but for case and punctuation: 9 of 69\n", said)
        self.assertEqual(self.warnings(said), [])
        # Case and punctuation of any script; an emoji is no punctuation.
        wide = [(str(i % 2), f"{self.sentence()} приём {i} ÉTÉ 好") for i in range(20)]
        again = [(label, text.replace("приём", "ПРИЁМ").replace("ÉTÉ", "«été»,") + "。") for label, text in wide[:6]]
        faces = [("0", "so 😀 it goes"), ("1", "so 😡 it goes")]
        said = self.said(self.table(rows + wide + again + faces))
        self.assertIn("texts to train on that repeat another one, but for case and punctuation: 6 of 88\n", said)
        said = self.said(self.table(rows + [(str(1 - int(label)), text) for label, text in rows[:4]]))
        self.assertIn("4 of 64; 4 of them with another label; keep one of each, with the right label",
                      self.warnings(said)[0])

    def test_a_header_in_another_script(self):
        rows = [(label, self.sentence(label)) for label in ("yes", "no") * 15] + [("once", self.sentence())]
        for text, label in ("समीक्षा पाठ", "भावना"), ("текст отзыва", "оценка"), ("written words", "judgement"):
            said = self.said(self.table([(label, text), *rows]))
            self.assertIn(f"train.tsv:1: the label {label} is that of this row alone; if the row names the columns, say so: "
                          f"--label-column {label}", said)

    def test_healthy_data_are_silent(self):
        rows = [(f"topic{i % 5}", self.sentence(f"word{i % 5}")) for i in range(200)] + [("once", "It was no more than that. So be it, then.")]
        # Labels by chance would not be healthy: one of them alone is predicted.
        short = [("xyz"[i % 3], self.sentence(f"word{i % 3}", count=2)) for i in range(60)]
        for table in (rows, rows[::-1], short):
            self.assertEqual(self.warnings(self.said(self.table(table))), [], table[0])
        self.said(self.table(rows))
        self.assertEqual(self.warnings(self.score(self.table(rows[:50], "test.tsv"))), [])


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fovea attention --page: what the browser shows is what --observe weights writes."""

import json
import math
import pathlib
import random
import subprocess
import sys
import unittest

import support

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))

from tensor_files import Tensor, read, write  # noqa: E402

B, T, S, H, D = 2, 9, 11, 3, 4
SHOWN = """(() => ({top: shown.top / unit, values: Array.from(shown.values, value => value / unit),
  masked: Array.from(shown.kinds, kind => kind === MASKED)}))()"""


def problem():
    rng = random.Random(5)

    def normal(*shape):
        return Tensor("F32", shape, [rng.gauss(0, 1) for _ in range(math.prod(shape))])

    return {"q": normal(B, T, H, D), "k": normal(B, S, H, D), "v": normal(B, S, H, D),
            "key_lengths": Tensor("I32", (B,), [11, 7])}


class AttentionCommand(support.PageTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.source = cls.folder / "in.npz"
        write(cls.source, problem())

    def run_fovea(self, *words):
        return subprocess.run([support.FOVEA, "attention", self.source, *map(str, words)], capture_output=True,
                              timeout=120, text=True)

    def make(self, name, *words):
        """Writes OUT and a page; returns the weights and the page's path."""
        out, page = self.folder / f"{name}.npz", self.folder / f"{name}.html"
        done = self.run_fovea("-o", out, "--observe", "weights", "--page", page, "--json", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["page"], str(page))
        self.assert_sound(page)
        return read(out)["weights"].values

    def assert_shows(self, weights):
        for sequence in range(B):
            self.page.choose("layer", str(sequence))
            for head in range(H):
                self.page.choose("head", str(head))
                shown = self.page.run(SHOWN)
                begin = (sequence * H + head) * T * S
                expected = weights[begin:begin + T * S]
                for value, weight in zip(shown["values"], expected, strict=True):
                    self.assertAlmostEqual(value, weight, delta=1.2e-6 * max(1, shown["top"]))
                self.assertEqual(shown["masked"], [weight == 0 for weight in expected])

    def test_the_page_shows_the_weights(self):
        weights = self.make("causal", "--causal")
        self.assert_shows(weights)
        said = self.page.run("document.body.innerText")
        for words in ("Attention of in.npz", "key_lengths & causal", "B 2, T 9, S 11, H 3, D 4", "sequence 2",
                      "Entropy, in nats", "Tiles of the plan"):
            self.assertIn(words, said)
        self.assert_accessible(least=8)

    def test_other_norms_and_chinese(self):
        self.assert_shows(self.make("sigmoid", "--norm", "sigmoid", "--lang", "zh"))
        said = self.page.run("document.body.innerText")
        self.assertIn("in.npz 的注意力", said)
        self.assertNotIn("熵", said)

    def test_a_page_alone_and_the_same_bytes(self):
        pages = [self.folder / f"alone-{threads}.html" for threads in (1, 3)]
        for threads, page in zip((1, 3), pages):
            done = self.run_fovea("--page", page, "--threads", threads)
            self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        self.assertEqual(*[page.read_bytes() for page in pages])

    def test_what_cannot_be_written(self):
        there = self.folder / "there.html"
        self.assertEqual(self.run_fovea("--page", there).returncode, 0)
        before = there.read_bytes()
        mine = self.folder / "mine.html"
        mine.write_text("mine")
        nan = problem()
        nan["q"].values[0] = math.nan
        write(self.folder / "nan.npz", nan)
        for status, words, needle in (
                (2, ("--page", there), "exists already"),
                (2, ("--page", self.source, "--overwrite"), "is IN"),
                (2, ("--page", mine, "--overwrite"), "is no page that fovea has written"),
                (2, ("--page", self.folder / "x.npz", "-o", self.folder / "x.npz"), "is OUT"),
                (2, ("--page", self.folder / "x.html", "--log-file", self.folder / "x.html"), "is the page"),
                (2, ("--page", self.folder / "x.html", "--lang", "fr"), "--lang: expected one of: en, zh; got 'fr'"),
                (5, ("--page", self.folder / "none" / "x.html"), "no such folder"),
                (5, ("--page", self.folder, "--overwrite"), str(self.folder))):
            done = self.run_fovea(*words)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn(needle, done.stderr)
            self.assertIn("hint: ", done.stderr)
        done = subprocess.run([support.FOVEA, "attention", self.folder / "nan.npz", "--page", there, "--overwrite"],
                              capture_output=True, timeout=60, text=True)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("a weight is not finite", done.stderr)
        self.assertEqual(there.read_bytes(), before)
        self.assertEqual(mine.read_text(), "mine")
        self.assertEqual([p.name for p in self.folder.iterdir() if p.name.startswith("x.")], [])


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fovea explain --page of a translator: maps whose rows are other tokens than their columns."""

import json
import random
import subprocess
import unittest

import support

WORDS = {"one": "eins", "two": "zwei", "three": "drei", "four": "vier"}
SHOWN = """(() => ({values: Array.from(shown.values, value => value / unit), queries: shown.queries, keys: shown.keys,
  masked: Array.from(shown.kinds, kind => kind === MASKED)}))()"""
READING = "document.getElementById('reading').textContent"


class TranslatorPage(support.PageTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        rng = random.Random(1)
        pairs = [[rng.choice(list(WORDS)) for _ in range(n % 4 + 1)] for n in range(40)]
        (cls.folder / "pairs.tsv").write_text("".join(
            f"{' '.join(words)}\t{' '.join(WORDS[word] for word in words)}\n" for words in pairs))
        cls.fovea("train", "translate", "--train", cls.folder / "pairs.tsv", "-o", cls.folder / "model", "--encoder-layers",
                  1, "--decoder-layers", 2, "--width", 16, "--heads", 2, "--min-count", 1, "--stop-after", "5u",
                  "--progress", "none", "-q")

    @staticmethod
    def fovea(*words):
        done = subprocess.run([support.FOVEA, *map(str, words)], capture_output=True, timeout=120)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout

    def explain(self, *words):
        """Opens the page; returns what --json says."""
        page = self.folder / "page.html"
        said = self.fovea("explain", self.folder / "model", "one two three four", "--target", "eins zwei", "--json",
                          "--page", page, "--overwrite", *words)
        self.assert_sound(page)
        return json.loads(said)

    def test_each_map_has_its_tokens_and_weights(self):
        found = self.explain()
        sides = {"source": found["tokens"], "translation": found["target_tokens"],
                 "translation so far": ["<s>", *found["target_tokens"][:-1]]}
        self.assertEqual(self.page.run("document.getElementById('layer').value"), "2")  # aligns both texts
        for n in (2, 0, 1, 3, 4):
            layer = found["layers"][n]
            self.page.choose("layer", str(n))
            for head in range(2):
                self.page.choose("head", str(head))
                shown = self.page.run(SHOWN)
                self.assertEqual((shown["queries"], shown["keys"]), (sides[layer["queries"]], sides[layer["keys"]]))
                weights = [weight for row in layer["heads"][head]["weights"] for weight in row]
                for value, weight in zip(shown["values"], weights, strict=True):
                    self.assertAlmostEqual(value, weight, delta=1.2e-6)
                self.assertEqual(shown["masked"], [weight == 0 for weight in weights])
        self.assertEqual(self.page.problems(), [])

    def test_the_mouse_the_keyboard_and_lines(self):
        weights = self.explain()["layers"][2]["heads"][0]["weights"]
        x, y = self.page.run("""(() => {
          const stack = document.querySelector('.stack');
          stack.scrollIntoView({block: 'center'});
          const box = stack.getBoundingClientRect();
          return [box.left + 4.5 * state.cell, box.top + 1.5 * state.cell]; })()""")
        self.page.point(x, y)
        self.assertEqual(self.page.run(READING), f"{weights[1][4]:.6f}translation zwei 2 \u2192 source </s> 5")
        self.page.run("document.getElementById('map').focus()")
        self.page.press("ArrowDown")
        self.page.press("ArrowDown")  # there is no fourth row
        self.page.press("ArrowLeft")
        said = self.page.run("document.getElementById('live').textContent")
        self.assertEqual(said, f"translation \u201c</s>\u201d (3), source \u201cfour\u201d (4): weight {weights[2][3]:.6f}.")
        corner = self.page.run("document.querySelector('.corner').textContent")
        self.assertEqual(corner, "source \u2192translation \u2193")
        lines = self.page.run("document.getElementById('lines').textContent")
        for token in ("one", "four", "eins", "zwei", "</s>"):
            self.assertIn(token, lines)

    def test_probabilities_chinese_and_access(self):
        found = self.explain("--lang", "zh")
        said = self.page.run("document.body.innerText")
        for words in ("给定的译文", "eins zwei", "对数概率", "解码器 1 (交叉注意力)", "译文的对数概率", "翻译器"):
            self.assertIn(words, said)
        for p in found["probabilities"]:
            self.assertIn(f"{p:.4f}", said)
        self.assert_accessible(least=8)


if __name__ == "__main__":
    unittest.main()

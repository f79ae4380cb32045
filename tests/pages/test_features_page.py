#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fovea explain --top-features --page: tables of n-grams that can be read and reached."""

import json
import random
import subprocess
import unittest

import support

CELLS = """[...document.querySelectorAll('table')].map(table => [...table.querySelectorAll('tbody tr')].map(
  row => [...row.children].map(cell => cell.textContent)))"""
TABLES = """[...document.querySelectorAll('section.panel')].map(panel => [panel.querySelector('h2').textContent,
  panel.querySelector('[role=region]').getAttribute('aria-label')])"""
HOSTILE = "<img src=x onerror=alert(1)>"
ARABIC = "\u0631\u0627\u0626\u0639"


class FeaturesPage(support.PageTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        rng = random.Random(1)
        rows = []
        for n in range(60):
            label, word = [("dull", "tedious"), (HOSTILE, ARABIC)][n % 2]
            rows.append({"label": label, "text": " ".join(rng.sample(["film", "plot", "scene", "cast"], 3) + [word])})
        (cls.folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        cls.fovea("train", "classify", "--train", cls.folder / "rows.jsonl", "-o", cls.folder / "model", "-q")

    @staticmethod
    def fovea(*words):
        done = subprocess.run([support.FOVEA, *map(str, words)], capture_output=True, timeout=120)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout

    def explain(self, *words):
        """Opens the page; returns the labels that --json says."""
        page = self.folder / "page.html"
        said = self.fovea("explain", self.folder / "model", "--top-features", 7, "--json", "--page", page, "--overwrite",
                          *words)
        self.assert_sound(page)
        return json.loads(said)["labels"]

    def test_the_tables_say_what_the_command_says(self):
        labels = self.explain()
        self.assertEqual({one["label"] for one in labels}, {"dull", HOSTILE})
        self.assertEqual(self.page.run(TABLES), [[one["label"]] * 2 for one in labels])
        self.assertEqual(self.page.run(CELLS), [
            [[feature["ngram"], f"{feature['weight']:.4f}"] for feature in one["features"]] for one in labels])
        strongest = {one["label"]: [feature["ngram"] for feature in one["features"]] for one in labels}
        self.assertIn("tedious", strongest["dull"])
        self.assertIn(ARABIC, strongest[HOSTILE])
        self.assertEqual(self.page.run("document.querySelectorAll('img').length"), 0)

    def test_it_can_be_reached_and_read(self):
        for language, title in ("en", "Strongest n-grams"), ("zh", "\u6700\u5f3a\u7684 n-gram"):
            self.explain("--lang", language)
            self.assertEqual(self.page.run("document.title"), title)
            self.assertEqual(self.page.run("document.documentElement.lang.slice(0, 2)"), language)
            self.assert_accessible(2)

    def test_a_narrow_window_does_not_scroll_sideways(self):
        self.page.size(360, 800)
        self.explain()
        self.assertLessEqual(self.page.run("document.documentElement.scrollWidth"), 360)


if __name__ == "__main__":
    unittest.main()

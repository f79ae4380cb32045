#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fovea report in a real browser: nothing is asked for, everything can be reached and read."""

import subprocess
import unittest

import support

# Of the texts of pictures, whose colour is their fill: the lowest contrast to the panel behind them.
PICTURES = """(() => {
  const channels = text => text.match(/[\\d.]+/g).slice(0, 3).map(Number);
  const luminance = text => {
    const [r, g, b] = channels(text).map(v => v / 255).map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b;
  };
  let lowest = 99, count = 0;
  for (const text of document.querySelectorAll('.plot svg text')) {
    const ground = luminance(getComputedStyle(text.closest('.panel')).backgroundColor);
    const own = luminance(getComputedStyle(text).fill);
    lowest = Math.min(lowest, (Math.max(ground, own) + .05) / (Math.min(ground, own) + .05));
    ++count;
  }
  return {lowest, count};
})()"""


class Report(support.PageTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        reviews = cls.folder / "reviews.tsv"
        reviews.write_text("".join(f"good\ta fine film, number {i % 7}\nbad\ta dull film, number {i % 5}\n"
                                   for i in range(30)), encoding="utf-8")
        for name, lr in (("one", "0.01"), ("two", "0.03")):
            cls.fovea("train", "classify", "--train", reviews, "-o", cls.folder / name, "--width", "8", "--batch-size",
                      "8", "--stop-after", "40u", "--eval-every", "10u", "--log-every", "2", "--evaluate-training",
                      "--lr", lr)
        cls.test = cls.folder / "test.json"
        cls.test.write_bytes(cls.fovea("eval", cls.folder / "one", "--test", reviews, "--json"))

    @classmethod
    def fovea(cls, *words):
        return subprocess.run([support.FOVEA, *map(str, words)], capture_output=True, check=True, timeout=120).stdout

    def open(self, name, *words):
        path = self.folder / f"{name}.html"
        self.fovea("report", *words, "-o", path)
        self.assert_sound(path)

    def test_one_run_is_sound_and_accessible(self):
        self.open("one-run", self.folder / "one", "--eval", self.test)
        self.assert_accessible(8)
        for scheme in ("light", "dark"):
            self.page.media(scheme)
            texts = self.page.run(PICTURES)
            self.assertGreater(texts["count"], 20)
            self.assertGreaterEqual(texts["lowest"], 4.5, scheme)

    def test_runs_side_by_side_in_chinese(self):
        self.open("both", self.folder / "one", self.folder / "two", "--lang", "zh")
        self.assert_accessible(8)
        self.assertEqual(self.page.run("document.documentElement.lang"), "zh-CN")
        self.assertIn("训练报告", self.page.run("document.title"))
        colours = "[...document.querySelectorAll('figure.wide .curve.solid')].map(c => getComputedStyle(c).stroke)"
        self.assertEqual(len(set(self.page.run(f"[...new Set({colours})]"))), 2)

    def test_the_switch_turns_the_pictures(self):
        self.open("switched", self.folder / "one")
        colour = "getComputedStyle(document.querySelector('.plot .curve.orange')).stroke"
        light = self.page.run(colour)
        self.page.run("document.getElementById('scheme').click()")
        self.assertNotEqual(self.page.run(colour), light)
        self.page.media("dark", "print")  # printed pages are light
        self.assertEqual(self.page.run(colour), light)
        self.page.media()

    def test_tables_open_by_keyboard(self):
        self.open("keys", self.folder / "one")
        self.page.run("document.querySelector('figure summary').focus()")
        self.page.press("Enter")
        self.assertTrue(self.page.run("document.querySelector('figure details').open"))

    def test_nothing_is_wider_than_a_phone(self):
        self.open("phone", self.folder / "one", self.folder / "two")
        self.page.size(390, 800)
        self.assertLessEqual(self.page.run("document.documentElement.scrollWidth"), 390)


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fovea report in a real browser: nothing is asked for, everything can be reached and read."""

import json
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

# Labels of a plot through which one of its curves runs: points on each curve, a pixel apart, in the plot's units.
CROSSED = """(() => {
  const crossed = [];
  for (const svg of document.querySelectorAll('.picture.plot svg')) {
    for (const label of svg.querySelectorAll('text.halo')) {
      const box = label.getBBox();
      for (const path of svg.querySelectorAll('path.curve')) {
        const long = path.getTotalLength();
        for (let at = 0; at <= long; ++at) {
          const p = path.getPointAtLength(at);
          if (p.x < box.x || p.x > box.x + box.width || p.y < box.y || p.y > box.y + box.height) continue;
          crossed.push(`${label.textContent}: ${path.textContent}`);
          break;
        }
      }
    }
  }
  return crossed;
})()"""
SCROLLED = """[...document.querySelectorAll('.scroll')].filter(box => box.checkVisibility()
  && box.scrollWidth > box.clientWidth).map(box => box.getAttribute('aria-label') + ' ' + box.scrollWidth)"""


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
        cls.test, cls.test_of_two = cls.folder / "test.json", cls.folder / "two.json"
        wrong = cls.folder / "wrong.tsv"
        wrong.write_text(reviews.read_text() + "good\ta dull film\n")
        cls.test.write_bytes(cls.fovea("eval", cls.folder / "one", "--test", wrong, "--errors", "3", "--json"))
        cls.test_of_two.write_bytes(cls.fovea("eval", cls.folder / "two", "--test", wrong, "--json"))

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

    def test_an_evaluation_shows_its_classes_and_mistakes(self):
        self.open("tested", self.folder / "one", "--eval", self.test)
        said = json.loads(self.test.read_text())
        rows = self.page.run("[...document.querySelectorAll('table tr')].map(row => [...row.cells].map(c => c.innerText))")
        for label in said["labels"]:
            row = next(row for row in rows if row[0] == label["label"] and len(row) == 7)
            numbers = [label[name]["value"] for name in ("precision", "recall", "f1")]
            self.assertEqual(row[1:6], [str(label["support"]), str(label["predicted"]), *(f"{n:.6g}" for n in numbers)])
        self.assertGreater(len(said["mistakes"]), 0)
        for mistake in said["mistakes"]:
            row = next(row for row in rows if row[0] == f"{mistake['file']}:{mistake['line']}")
            self.assertEqual(row[1], f"{mistake['label']} ({mistake['label_probability']:.4f})")
            self.assertEqual(row[2], f"{mistake['predicted']} ({mistake['probability']:.4f})")
            self.assertEqual(row[4], mistake["text"])

    def test_metrics_have_their_chinese_names(self):
        self.open("chinese", self.folder / "one", "--eval", self.test, "--lang", "zh")
        said = self.page.run("document.body.innerText")
        for words in ("准确率", "宏平均 F1", "对数损失", "期望校准误差（ECE）", "各类别", "最严重的错误"):
            self.assertIn(words, said)
        for words in ("accuracy", "macro_f1", "log_loss"):
            self.assertNotIn(words, said)

    def test_no_label_lies_on_a_curve(self):
        for words in (("one",), ("two",), ("one", "--lang", "zh")):
            self.open("-".join(words), self.folder / words[0], *words[1:])
            self.assertEqual(self.page.run(CROSSED), [])

    def test_tables_fit_into_a_small_window(self):
        for lang in ("en", "zh"):
            self.open(f"small-{lang}", self.folder / "one", self.folder / "two", "--eval", self.test, self.test_of_two,
                      "--lang", lang)
            for width in (1100, 1600):
                self.page.size(width, 900)
                self.assertEqual(self.page.run(SCROLLED), [], (lang, width))

    def test_nothing_is_wider_than_a_phone(self):
        self.open("phone", self.folder / "one", self.folder / "two")
        self.page.size(390, 800)
        self.assertLessEqual(self.page.run("document.documentElement.scrollWidth"), 390)


if __name__ == "__main__":
    unittest.main()

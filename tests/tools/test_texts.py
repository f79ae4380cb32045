# SPDX-License-Identifier: Apache-2.0
"""The Chinese texts of the command: none is missing or left over, and each says what the English one says."""

import shutil
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import make_texts  # noqa: E402
from make_texts import Entry  # noqa: E402

SOURCE = '''// SPDX-License-Identifier: Apache-2.0
[[noreturn]] void bad(int n);
void f(int n) {
  check(n > 0, "f: n must be positive; "
        "it is {}", n);
  if (n > 9) bad("too many of them");
  print("a result that stays in English");
}
'''


class Catalogue(unittest.TestCase):
    def test_nothing_is_missing_left_over_or_changed(self):
        self.assertEqual(make_texts.check(ROOT), [])

    def test_it_has_all_kinds_of_texts(self):
        texts = {entry.english for entry in make_texts.read_po((ROOT / make_texts.PO).read_text(encoding="utf-8"))}
        for text in ("what a token is", "see: fovea {} --help", "{}: unknown option '{}'", "saved {}", "warning",
                     "{}: train loss {}, {} {}s/s, {} elapsed, {} left, ends {}", "attention: {} was not given"):
            self.assertIn(text, texts)

    def test_every_hint_and_meaning_of_a_code_is_required(self):
        required = make_texts.required(ROOT)
        for text in ("restore the model from a copy, or train it again; fovea inspect --verify names what is damaged",
                     "the disk is full", "choose another folder"):
            self.assertIn(text, required)


class Checks(unittest.TestCase):
    def setUp(self):
        self.root = Path(tempfile.mkdtemp(prefix="fovea-texts-"))
        self.addCleanup(shutil.rmtree, self.root, ignore_errors=True)
        for folder in ("cli", "fovea/catalogue"):
            (self.root / folder).mkdir(parents=True)
        (self.root / "cli/f.cc").write_text(SOURCE, encoding="utf-8")
        self.write()

    def write(self, *entries):
        texts = [Entry("f: n must be positive; it is {}", "f：n 应为正数；现为 {}"), Entry("too many of them", "太多了")]
        self.clear()
        text = make_texts.write_po(list(entries) or texts, self.root)
        (self.root / make_texts.PO).write_text(text, encoding="utf-8")

    def clear(self):
        for function in (make_texts.literals, make_texts.message_calls, make_texts.all_texts):
            function.cache_clear()

    def tearDown(self):
        self.clear()

    def problems(self, *entries):
        self.write(*entries)
        return " ".join(make_texts.check(self.root))

    def test_texts_of_calls_that_tell_are_required_and_results_are_not(self):
        self.assertEqual(set(make_texts.required(self.root)), {"f: n must be positive; it is {}", "too many of them"})
        self.assertEqual(make_texts.check(self.root), [])

    def test_a_missing_text_is_found(self):
        self.assertIn("'too many of them' is not in", self.problems(Entry("f: n must be positive; it is {}", "{}")))

    def test_a_text_that_no_source_says_is_found(self):
        self.assertIn("no source says this", self.problems(Entry("gone", "没有了")))

    def test_an_empty_translation_is_found(self):
        self.assertIn("has no translation", self.problems(Entry("too many of them", "")))

    def test_other_places_and_names_are_found(self):
        for entry, found in ((Entry("{} of {}", "{1} 中的"), "places"), (Entry("say --lang or x.json", "用 --land"), "names"),
                             (Entry("a b", "太多."), "full-width"), (Entry("a b", "太多 "), "blank")):
            self.assertIn(found, " ".join(make_texts.problems_of(entry)))
        for entry in (Entry("{} of {}", "{1} 中的 {0}"), Entry("{} run{}", "{} 次训练"), Entry("got ", "得到 ")):
            self.assertEqual(list(make_texts.problems_of(entry)), [])

    def test_another_order_is_found_and_mended(self):
        path = self.root / make_texts.PO
        path.write_text(path.read_text(encoding="utf-8").replace("\n\nmsgid", "\n\n\nmsgid"), encoding="utf-8")
        self.clear()
        self.assertIn("--write orders it", " ".join(make_texts.check(self.root)))
        make_texts.update(self.root)
        self.clear()
        self.assertEqual(make_texts.check(self.root), [])

    def test_what_is_missing_is_added_without_a_translation(self):
        self.write(Entry("too many of them", "太多了"))
        make_texts.update(self.root)
        entries = make_texts.read_po((self.root / make_texts.PO).read_text(encoding="utf-8"))
        self.assertEqual({entry.english: entry.chinese for entry in entries},
                         {"f: n must be positive; it is {}": "", "too many of them": "太多了"})


if __name__ == "__main__":
    unittest.main()

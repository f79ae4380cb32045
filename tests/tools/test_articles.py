# SPDX-License-Identifier: Apache-2.0
"""docs/articles: every name, number and question of the articles (article_names.json, a list made by reading them)
is on the page of its article, in both languages; every defect has a number, a place and a test."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unicodedata
import unittest
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "articles"
NAMES = json.loads((pathlib.Path(__file__).parent / "article_names.json").read_text(encoding="utf-8"))
INDEX = "README"
LINE = re.compile(r"\[`[^`]+`\]\((?:\.\./)+(?:fovea|cli|experiments|examples|tests|tools)/[^)]*\)")


def pages(name):
    """English, Chinese."""
    return [(FOLDER / f"{name}{ending}").read_text(encoding="utf-8") for ending in (".md", ".zh-CN.md")]


def blocks(text, language):
    """Code, without its comments, which are in the language of the page."""
    found = re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [re.sub(r" *(?://|#(?!include)).*", "", block) for block in found]


class Articles(unittest.TestCase):
    def test_every_article_has_two_pages_and_is_in_the_index(self):
        self.assertEqual({path.name for path in FOLDER.glob("*.md")},
                         {f"{name}{ending}" for name in (*NAMES, INDEX) for ending in (".md", ".zh-CN.md")})
        for text, ending in zip(pages(INDEX), (".md", ".zh-CN.md")):
            for name in NAMES:
                self.assertTrue(f"]({name}{ending})" in text, name)

    def test_every_name_number_and_author_is_on_its_page(self):
        for name, what in NAMES.items():
            for text in pages(name):
                for kind in ("who", "code", "numbers"):
                    for word in what[kind]:
                        with self.subTest(page=name, word=word):
                            self.assertTrue(word in text)

    def test_every_figure_and_question_is_on_its_page(self):
        for name, what in NAMES.items():
            for english_and_chinese in (*what["figures"], *what["questions"]):
                for text, words in zip(pages(name), english_and_chinese):
                    with self.subTest(page=name, words=words):
                        self.assertTrue(words in text)

    def test_every_defect_has_a_row_with_a_test_that_shows_it(self):
        shown = set()
        for name, what in NAMES.items():
            for text in pages(name):
                rows = [row for row in text.splitlines() if re.search(r"\| *(?:<a id=\"[^\"]+\"></a>)?D\d+", row)]
                for number in what["defects"]:
                    row = [row for row in rows if re.search(rf"\bD{number}\b", row.split("|")[1])]
                    self.assertEqual(len(row), 1, f"{name}: D{number}")
                    if number == 20 and name != "bojone-attention":
                        continue  # a reference to the page of the code
                    self.assertIn(f"`Defects.test_d{number}_", row[0])
                    shown.add(number)
        self.assertEqual(shown, set(range(1, 25)))

    def test_both_languages_have_the_same_code_lines_tables_and_sections(self):
        for name in (*NAMES, INDEX):
            english, chinese = pages(name)
            for language in ("python", "cpp"):
                self.assertEqual(blocks(english, language), blocks(chinese, language), name)
            for part in (LINE.pattern, r"^#+ ", r"^\|", r"^```", r'<a id="[^"]+"></a>'):
                counts = [len(re.findall(part, text, re.MULTILINE)) for text in (english, chinese)]
                self.assertEqual(*counts, f"{name}: {part}")
            self.assertEqual(sorted(LINE.findall(english)), sorted(LINE.findall(chinese)), name)

    def test_no_name_is_one_of_ours_alone(self):
        for name in (*NAMES, INDEX):
            for text in pages(name):
                self.assertIsNone(re.search(r"\bs[0-4]\b|\bS[0-4]\b|the source\b|源文章", text), name)

    def test_programs_compile(self):
        compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
        if not compiler:
            self.skipTest("there is no C++ compiler")
        programs = [block for name in NAMES for block in blocks(pages(name)[0], "cpp")]
        self.assertTrue(programs)
        with tempfile.TemporaryDirectory() as folder:
            for program in programs:
                source = pathlib.Path(folder) / "program.cc"
                source.write_text(program, encoding="utf-8")
                done = subprocess.run([compiler, "-std=c++20", "-Wall", "-fsyntax-only", f"-I{ROOT}", source],
                                      capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)

    def test_texts_of_the_picture_have_room(self):
        """Each ends before the next column, or before the border; both languages have the same boxes."""
        boxes = []
        for name in ("architecture.svg", "architecture.zh-CN.svg"):
            picture = ElementTree.parse(ROOT / "docs/images" / name).getroot()
            svg = "{http://www.w3.org/2000/svg}"
            texts = [text for text in picture.iter(f"{svg}text") if text.get("class") not in ("title", "soft")]
            starts = {float(text.get("x")) for text in texts if text.get("text-anchor") is None}
            for text in texts:
                x, size = float(text.get("x")), 7.3 if text.get("class") == "code" else 6.9
                width = sum(13 if unicodedata.east_asian_width(c) in "WF" else size for c in text.text)
                left = x - width / 2 if text.get("text-anchor") == "middle" else x
                room = min([start for start in starts if start > left + 1] + [float(picture.get("width"))])
                self.assertLess(left + width, room, f"{name}: {text.text}")
            boxes.append([box.attrib for box in picture.iter(f"{svg}rect")])
        self.assertEqual(*boxes)

    def test_the_front_pages_lead_here(self):
        for page in ("README.md", "docs/FAQ.md", "docs/REPRODUCE.md", "docs/formulas.md"):
            self.assertRegex((ROOT / page).read_text(encoding="utf-8"), r"\((?:docs/)?articles/README\.md\)")
        for page in ("README.zh-CN.md", "docs/FAQ.zh-CN.md", "docs/REPRODUCE.zh-CN.md"):
            self.assertRegex((ROOT / page).read_text(encoding="utf-8"), r"\((?:docs/)?articles/README\.zh-CN\.md\)")


if __name__ == "__main__":
    unittest.main()

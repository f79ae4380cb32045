# SPDX-License-Identifier: Apache-2.0
"""docs/learn: the two languages of a chapter have the same code, what is made of them is up to date, and every chapter
has what a chapter has."""

import ast
import json
import pathlib
import re
import subprocess
import sys
import unittest
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import make_lessons  # noqa: E402

# Words of the field that the Chinese chapters do not use, and those that they use.
TERMS = {"次序": "语序", "加标签": "序列标注", "远距离回忆": "长距离依赖", "最强设置": "最快配置", "奈特": "nat", "百分之": "%"}
LEADS = re.compile(r"\]\((?:\.\./)+docs/|\]\(\.\./(?:REPRODUCE|experiments|ideas|benchmarks|formulas|speed)[^)]*\.md")
SAMPLE = """# 3. Title

> Of what.

Text.

```sh
echo a
```

```text
a
```

## Part

```text
kept
```

```python
print(1)
```

```text measured
0.5 s
```

End.
"""


def code(chapter):
    return [(block.kind, block.text, block.prints) for block in chapter.blocks if block.kind]


class Lessons(unittest.TestCase):
    def test_what_is_made_of_the_chapters_is_up_to_date(self):
        self.assertEqual(make_lessons.problems(), [], "run tools/make_lessons.py")

    def test_blocks_and_what_they_print_are_found(self):
        chapter = make_lessons.chapter_of(pathlib.Path("03-x.md"), SAMPLE)
        self.assertEqual((chapter.title, chapter.summary), ("Title", "Of what."))
        self.assertEqual([(b.kind, b.section, b.prints) for b in chapter.blocks if b.kind],
                         [("sh", "3. Title", "a\n"), ("python", "Part", None)])
        self.assertIn("kept", chapter.blocks[2].text)
        self.assertIn("0.5 s", chapter.blocks[4].text)
        self.assertEqual(make_lessons.shell_script(chapter).splitlines()[-2:], ["# 3. Title", "echo a"])
        cells = json.loads(make_lessons.notebook(chapter))["cells"]
        self.assertEqual([c["cell_type"] for c in cells], ["markdown", "code", "markdown", "code", "markdown"])
        self.assertEqual("".join(cells[1]["source"]), "%%sh -e\necho a")

    def test_a_chapter_without_title_or_summary_is_an_error(self):
        for text in (SAMPLE.replace("# 3.", "# 4."), SAMPLE.replace("> Of what.", "Of what.")):
            with self.assertRaises(ValueError):
                make_lessons.chapter_of(pathlib.Path("03-x.md"), text)

    def test_links_of_notebooks_lead_to_the_same_files(self):
        moved = make_lessons.moved("[a](../FAQ.md#b) ![c](images/d.svg) [e](https://f.org) [g](#h)")
        self.assertEqual(moved, "[a](../../docs/FAQ.md#b) ![c](../../docs/learn/images/d.svg) [e](https://f.org) [g](#h)")

    def test_both_languages_have_the_same_code_and_the_same_links(self):
        english, chinese = make_lessons.chapters(), make_lessons.chapters(".zh-CN")
        self.assertEqual([c.name for c in english], [c.name for c in chinese])
        self.assertEqual([c.number for c in english], list(range(1, len(english) + 1)))
        for one, other in zip(english, chinese):
            with self.subTest(chapter=one.name):
                self.assertEqual(code(one), code(other))

    def test_every_chapter_has_commands_python_exercises_and_links_to_experiments(self):
        for ending in ("", ".zh-CN"):
            for chapter in make_lessons.chapters(ending):
                text = (ROOT / make_lessons.CHAPTERS / f"{chapter.name}{ending}.md").read_text(encoding="utf-8")
                with self.subTest(chapter=chapter.name, language=ending):
                    self.assertTrue(chapter.code("sh") and chapter.code("python"))
                    exercises = text.split("\n## ")[-1]
                    self.assertRegex(exercises, "^(Exercises|练习)\n")
                    self.assertEqual(re.findall(r"^\*\*(\d)\.\*\* ", exercises, re.MULTILINE), ["1", "2", "3"])
                    self.assertEqual(len(re.findall(r"^<details><summary>(?:Answer|答案)</summary>$", exercises, re.MULTILINE)), 3)
                    self.assertEqual(exercises.count("</details>"), 3)
                    self.assertRegex(text, LEADS)

    def test_chinese_chapters_use_the_words_of_the_field(self):
        for chapter in make_lessons.chapters(".zh-CN"):
            for block in chapter.blocks:
                if not block.kind:
                    for word, better in TERMS.items():
                        self.assertNotIn(word, block.text, f"{chapter.name}: {better}")

    def test_scripts_and_programs_can_be_parsed(self):
        for chapter in make_lessons.chapters():
            done = subprocess.run(["sh", "-n", ROOT / chapter.made("sh")], capture_output=True, text=True)
            self.assertEqual(done.stderr, "")
            ast.parse((ROOT / chapter.made("py")).read_text(encoding="utf-8"))
            self.assertEqual(json.loads((ROOT / chapter.made("ipynb")).read_text(encoding="utf-8"))["nbformat"], 4)

    def test_pictures_are_shown_and_nothing_in_them_is_clipped(self):
        text = "".join(path.read_text(encoding="utf-8") for path in (ROOT / make_lessons.CHAPTERS).glob("*.md"))
        for path in sorted((ROOT / make_lessons.CHAPTERS / "images").glob("*.svg")):
            with self.subTest(picture=path.name):
                self.assertIn(f"(images/{path.name})", text)
                self.assertIn("prefers-color-scheme", path.read_text(encoding="utf-8"))
                self.assertLess(path.stat().st_size, 40000)
                picture = ElementTree.fromstring(path.read_text(encoding="utf-8"))
                _, _, width, height = map(float, picture.get("viewBox").split())
                for word in picture.iter("{http://www.w3.org/2000/svg}text"):
                    size = float(word.get("font-size", 15))
                    long = sum(size if ord(c) > 0x2E80 else 0.6 * size for c in word.text or "")
                    start = float(word.get("x")) - long * {"start": 0, "middle": 0.5, "end": 1}[word.get("text-anchor", "start")]
                    self.assertTrue(0 <= start and start + long <= width and 0 < float(word.get("y")) < height, word.text)


if __name__ == "__main__":
    unittest.main()

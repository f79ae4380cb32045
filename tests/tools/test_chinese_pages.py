# SPDX-License-Identifier: Apache-2.0
"""A page NAME.zh-CN.md says what NAME.md says: the same code, sections, tables, links, names and numbers."""

import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools")]
import make_chinese_pages as chinese_pages  # noqa: E402

SPAN = re.compile(r"(`+)(?!`)(.+?)(?<!`)\1(?!`)")
CHINESE = r"[\u4e00-\u9fff]"
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
# A number by itself: none of T2048, E0202, bfloat16, 3e-4 halves, or a section's name in a link.
NUMBER = re.compile(r"(?<![\w.^/*-])(\d[\d,]*(?:\.\d+)?|\.\d+)(e-?\d+)?(?: ?(thousand|million|billion)|( ?[万亿]))?(?![\d\w])", re.ASCII)
FACTORS = {"thousand": 1e3, "million": 1e6, "billion": 1e9, "万": 1e4, "亿": 1e8, "": 1}
# Words that Chinese readers had to read twice, or that are no words of the field, and what stands there instead.
WORDS = {"次序": "语序, 顺序", "加标签": "序列标注", "远距离回忆": "长距离依赖", "略微偏好": "略微偏乐观", "最强设置": "最快配置", "奈特": "nat",
         "百分之": "%", "令牌": "词元", "时期": "轮"}


def sections(text):
    """(Heading or "", text below it), without code."""
    parts = re.split(r"^(#+ .*)$", chinese_pages.without_code(text), flags=re.MULTILINE)
    return list(zip(["", *parts[1::2]], parts[::2]))


def levels(text):
    return [heading.split(" ")[0] for heading, _ in sections(text)[1:]]


def tables(text):
    """The rows of each table of a page: (cells, of how many characters) of each."""
    found = re.findall(r"(?:^\|.*\n)+", chinese_pages.without_code(text), re.MULTILINE)
    return [[len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()] for table in found]


def codes(text):
    """What is marked as code. Two names in one span count as it stands."""
    return sorted({span for _, span in SPAN.findall(text)})


def formulas(text):
    return re.findall(r"^    .*$", text, re.MULTILINE)


def is_same_formula(english, chinese):
    """Words of a formula may be Chinese; then its numbers, brackets and signs are the same."""
    signs = [sorted(re.sub(r"[^0-9=+*/|\[\]{}<>^]", "", formula)) for formula in (english, chinese)]
    return english == chinese or (re.search(CHINESE, chinese) is not None and signs[0] == signs[1])


def numbers(text):
    text = SPAN.sub("`", re.sub(r"\]\([^)\s]+\)", "]", COMMENT.sub("", text)))
    text = re.sub(r"^    .*$", "", text, flags=re.MULTILINE)
    found = set()
    for number, power, english, chinese in NUMBER.findall(text):
        value = float(number.rstrip(",").replace(",", "") + power) * FACTORS[english or chinese.strip()]
        found.add(float(f"{value:.9g}"))
    return sorted(found)


def links(page, text):
    """Where each link of a section leads, in the words of the Chinese page."""
    lines = [line for line in text.splitlines() if not re.match(r"\[(?:中文|English)\]\(", line)]
    return sorted(chinese_pages.chinese_target(page, target) for target in chinese_pages.TARGET.findall("\n".join(lines)))


class ChinesePages(unittest.TestCase):
    def test_there_are_pages_of_commands_formulas_and_attention(self):
        names = {str(english) for english, _ in chinese_pages.translated()}
        commands = {str(p.relative_to(ROOT)) for p in (ROOT / "docs/commands").glob("*.md") if ".zh-CN" not in p.name}
        self.assertGreater(len(commands), 25)
        self.assertLessEqual(commands | {f"docs/{name}.md" for name in ("attention", "formulas", "ideas")}, names)

    def test_each_leads_to_the_other(self):
        for english, chinese in chinese_pages.pairs():
            for page, word, other in ((english, "中文", chinese), (chinese, "English", english)):
                line = chinese_pages.read(page).split("\n")[2]
                self.assertTrue(line.startswith(f"[{word}]({other.name})"), f"{page}: {line}")

    def test_code_and_links_are_in_step(self):
        for english, chinese in chinese_pages.pairs():
            text = chinese_pages.read(chinese)
            self.assertEqual(text, chinese_pages.in_step(chinese, text, chinese_pages.read(english)),
                             f"{chinese}: run tools/make_chinese_pages.py")

    def test_the_tool_leads_links_and_copies_blocks(self):
        page = pathlib.Path("docs/ideas.zh-CN.md")
        for target, led in (("attention.md#costs", "attention.zh-CN.md#开销"), ("attention.md", "attention.zh-CN.md"),
                            ("attention.zh-CN.md#开销", "attention.zh-CN.md#开销"), ("#masks", "#掩码"),
                            ("commands/eval.md#errors", "commands/eval.zh-CN.md#错误"), ("metrics.md#x", "metrics.md#x"),
                            ("../fovea/x.h#L1", "../fovea/x.h#L1"), ("https://example.org/a.md", "https://example.org/a.md")):
            self.assertEqual(chinese_pages.chinese_target(page, target), led)
        english = "```sh\nfovea a  # one\n```\n[x](ideas.md)\n"
        led = english.replace("ideas.md", "ideas.zh-CN.md")
        self.assertEqual(chinese_pages.in_step(page, english.replace("fovea a", "fovea b"), english), led)
        self.assertEqual(chinese_pages.in_step(page, english.replace("one", "一"), english), led)
        front = pathlib.Path("README.zh-CN.md")  # its comments are Chinese
        self.assertIn("# 一", chinese_pages.in_step(front, english.replace("one", "一"), english))
        self.assertIn("# one", chinese_pages.in_step(front, english.replace("a  # one", "b  # 一"), english))

    def test_blocks_sections_and_tables_are_those_of_the_english_page(self):
        for pair in chinese_pages.translated():
            english, chinese = map(chinese_pages.read, pair)
            with self.subTest(page=str(pair[1])):
                self.assertEqual(chinese_pages.FENCE.findall(english), chinese_pages.FENCE.findall(chinese))
                self.assertEqual(levels(english), levels(chinese))
                self.assertEqual(tables(english), tables(chinese))
                ids = [re.findall(r'<a id="[^"]+"></a>', text) for text in (english, chinese)]
                self.assertEqual(*ids)

    def test_each_section_has_the_names_numbers_and_links_of_the_english_one(self):
        for english_page, page in chinese_pages.translated():
            english, chinese = (sections(chinese_pages.read(p)) for p in (english_page, page))
            for (heading, ours), (title, theirs) in zip(chinese, english):
                with self.subTest(page=str(page), section=heading, english=title):
                    self.assertEqual(codes(ours), codes(theirs))
                    self.assertEqual(len(formulas(ours)), len(formulas(theirs)))
                    self.assertEqual([pair for pair in zip(formulas(theirs), formulas(ours)) if not is_same_formula(*pair)], [])
                    self.assertEqual(numbers(heading + ours), numbers(title + theirs))
                    self.assertEqual(links(page, ours), links(page, theirs))

    def test_an_option_is_said_alike_on_all_pages(self):
        """Rows of options that are equal in English are equal in Chinese."""
        said = {}
        for pair in chinese_pages.translated():
            rows = [re.findall(r"^\| `-.*", chinese_pages.read(page), re.MULTILINE) for page in pair]
            for english, chinese in zip(*rows):
                says = [re.split(r"(?<!\\) \| ", row.rstrip(" |"))[-1] for row in (english, chinese)]
                found = said.setdefault(says[0], (says[1], pair[1]))
                self.assertEqual(says[1], found[0], f"{pair[1]} and {found[1]}: {english}")
        self.assertGreater(len(said), 100)

    def test_no_line_is_left_in_english(self):
        """A line of prose has a Chinese character for every two Latin words, names and titles of papers apart."""
        for _, page in chinese_pages.translated():
            for line in chinese_pages.without_code(chinese_pages.read(page)).splitlines():
                prose = re.sub(r"[\w/.-]+\.(?:cc|h|py)|\"[^\"]*\"", "", SPAN.sub("", chinese_pages.TARGET.sub("]", line)))
                latin, ours = re.findall(r"\b[a-z]{3,}", prose), re.findall(CHINESE, prose)
                if len(latin) > 8 and not line.startswith("    "):
                    self.assertGreater(2 * len(ours), len(latin), f"{page}: {line}")

    def test_words_are_those_of_the_field(self):
        for _, page in chinese_pages.pairs():
            text = chinese_pages.read(page)
            self.assertEqual({word: better for word, better in WORDS.items() if word in text}, {}, page)

    def test_punctuation_is_full_width(self):
        for _, page in chinese_pages.translated():
            text = re.sub(r"^    .*$", "", chinese_pages.without_code(chinese_pages.read(page)), flags=re.MULTILINE)
            text = chinese_pages.TARGET.sub("]", SPAN.sub("`", text))
            for pattern in (r"[\u4e00-\u9fff][,;:!?(]", r"[,;:!?)][\u4e00-\u9fff]", r"[\u4e00-\u9fff]\.(?:\s|$)",
                            r"[\u4e00-\u9fff][A-Za-z0-9`]", r"[A-Za-z0-9%`][\u4e00-\u9fff]", r"[，。；：、（）] (?![|])", r"(?<![|]) [，。；：、（）]"):
                found = re.findall(f".{{0,12}}{pattern}.{{0,12}}", text, re.MULTILINE)
                self.assertEqual(found, [], page)

    def test_what_differs_is_found(self):
        english = "# A\n\n[中文](a.zh-CN.md)\n\nIt costs 1.24 million, or 3 %: `--x`, [more](https://example.org/a).\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
        chinese = "# 甲\n\n[English](a.md)\n\n要 124 万，即 3%：`--x`，[更多](https://example.org/a)。\n\n| 甲 | 乙 |\n|---|---|\n| 1 | 2 |\n"
        page = pathlib.Path("docs/none.zh-CN.md")
        self.assertEqual(numbers(english), [1, 2, 3, 1240000])
        for what in (numbers, codes, tables, levels, lambda text: links(page, text)):
            self.assertEqual(what(english), what(chinese))
        self.assertNotEqual(numbers(chinese.replace("124 万", "12.4 万")), numbers(english))
        self.assertNotEqual(codes(chinese.replace("--x", "--y")), codes(english))
        self.assertNotEqual(tables(chinese.replace("| 1 | 2 |\n", "")), tables(english))
        self.assertTrue(is_same_formula("    y = 1 / x, 0 for none", "    y = 1 / x，没有时为 0"))
        for wrong in ("    y = 1 / x，没有时为 1", "    y = 1 * x，没有时为 0", "    y = 1 / x, 0 for all"):
            self.assertFalse(is_same_formula("    y = 1 / x, 0 for none", wrong))
        self.assertNotEqual(levels(chinese.replace("# 甲", "## 甲")), levels(english))
        self.assertNotEqual(links(page, chinese.replace("org/a", "org/b")), links(page, english))


if __name__ == "__main__":
    unittest.main()

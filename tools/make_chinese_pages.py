#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Brings Chinese pages in step with the English ones: NAME.zh-CN.md stands beside NAME.md.

Fenced blocks are those of the English page, and a link leads to the Chinese page where there is one, to the section
of the same number. What is left to say in Chinese, tests/tools/test_chinese_pages.py finds.

  tools/make_chinese_pages.py           writes the pages again
  tools/make_chinese_pages.py --check   exit status 1 if a page is not in step
"""

import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
ENDING = ".zh-CN.md"
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
TARGET = re.compile(r"\]\(([^)\s]+)\)")


def read(page):
    return (ROOT / page).read_text(encoding="utf-8")


def pairs():
    """(English, Chinese) pages, below ROOT."""
    pages = sorted(p.relative_to(ROOT) for p in [*ROOT.glob(f"*{ENDING}"), *(ROOT / "docs").rglob(f"*{ENDING}")])
    return [(page.with_name(page.name.replace(ENDING, ".md")), page) for page in pages]


def translated():
    """The pairs of which the Chinese page says what the English one says, sentence by sentence. The others were
    written for their readers each: the front page, the questions, the articles, the
    course, and what was run again."""
    own = ("README", "docs/FAQ", "docs/REPRODUCE", "docs/articles/", "docs/learn/")
    return [pair for pair in pairs() if not str(pair[0]).startswith(own)]


def without_code(text):
    return FENCE.sub("", text)


def without_comments(block):
    return re.sub(r" *(?://|#(?!include)).*", "", block)


def anchors(text):
    """Those of the headings, in their order, as GitHub makes them."""
    return [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in HEADING.findall(without_code(text))]


def chinese_target(page, target):
    """Where a link of a Chinese page leads: to Chinese if there is such a page."""
    name, _, anchor = target.partition("#")
    if re.match(r"[a-z]+:", target) or name.endswith(ENDING) or (name and not name.endswith(".md")):
        return target
    there = (ROOT / page).parent / name if name else ROOT / page
    chinese = there if not name else there.with_name(there.name.replace(".md", ENDING))
    if not chinese.is_file():
        return target
    english = chinese.with_name(chinese.name.replace(ENDING, ".md"))
    new = name and name.replace(".md", ENDING)
    if not anchor:
        return new
    sections = anchors(english.read_text(encoding="utf-8"))
    ours = anchors(chinese.read_text(encoding="utf-8"))
    if anchor in sections and anchor not in ours and len(sections) == len(ours):
        anchor = ours[sections.index(anchor)]
    return f"{new}#{anchor}"


def in_step(page, text, english):
    """The text of a Chinese page, with the blocks of the English one and with its links led to Chinese pages."""
    blocks = FENCE.findall(english)
    if len(blocks) == len(FENCE.findall(text)):
        exact = page in [chinese for _, chinese in translated()]
        rest = iter(blocks)

        def block(found):
            wanted = next(rest)
            same = not exact and without_comments(wanted) == without_comments(found[0])
            return found[0] if same else wanted
        text = FENCE.sub(block, text)
    lines = text.split("\n")
    for at, line in enumerate(lines):
        if not line.startswith("[English]("):
            lines[at] = TARGET.sub(lambda found: f"]({chinese_target(page, found[1])})", line)
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    for english, chinese in pairs():
        text = read(chinese)
        new = in_step(chinese, text, read(english))
        if options.check and new != text:
            sys.exit(f"{chinese} is not in step with {english}: run tools/make_chinese_pages.py")
        if new != text:
            (ROOT / chinese).write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the scripts and notebooks of the course from its chapters, docs/learn/NN-name.md.

  tools/make_lessons.py           writes them, and what names them in the chapters and in the index
  tools/make_lessons.py --check   exit status 1 if a file is not up to date

A chapter is text with blocks of code, ```sh and ```python. All of its sh blocks are examples/learn/NN_name.sh, all of
its python blocks NN_name.py, and text and blocks in their order the notebook NN_name.ipynb. A ```text block behind a
block of code is what the code prints, and a test compares them; ```text measured is shown, and not compared. The
Chinese chapter, NN-name.zh-CN.md, has the same blocks, byte for byte.
"""

import argparse
import functools
import json
import os
import pathlib
import re
import sys
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[1]
CHAPTERS = pathlib.Path("docs/learn")
MADE = pathlib.Path("examples/learn")
INDEX = {CHAPTERS / "README.md": "", CHAPTERS / "README.zh-CN.md": ".zh-CN"}
TABLE = re.compile(r"(?<=<!-- chapters: begin \(tools/make_lessons\.py\) -->\n).*?(?=<!-- chapters: end -->)", re.DOTALL)
FENCE = re.compile(r"^```(?P<kind>[^\n]*)\n(?P<code>.*?)^```$\n?", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(\]\()([^)\s#][^)\s]*)(?=\))")
NOTE = "Made by tools/make_lessons.py from {}: do not edit."
NAVIGATION = {"": ("[中文]({zh}) · [all chapters](README.md)", "script", "Python", "notebook"),
              ".zh-CN": ("[English]({en}) · [全部章节](README.zh-CN.md)", "脚本", "Python", "笔记本")}


class Block(NamedTuple):
    """Code with what it prints, or a piece of text between such (kind "")."""

    kind: str
    text: str
    section: str = ""
    prints: str | None = None  # None: not said, or not compared


class Chapter(NamedTuple):
    number: int
    name: str  # "03-masks"
    title: str
    summary: str
    blocks: list[Block]

    @property
    def path(self):
        return CHAPTERS / f"{self.name}.md"

    def made(self, suffix):
        """The path of its script, program or notebook."""
        return MADE / f"{self.name.replace('-', '_')}.{suffix}"

    def code(self, kind):
        return [block for block in self.blocks if block.kind == kind]


def blocks_of(text):
    """Its code and the text between, in their order; what code prints stands with the code."""
    found, at, section = [], 0, ""

    def add_text(text):
        if found and not found[-1].kind:
            found[-1] = found[-1]._replace(text=found[-1].text + text)
        elif text.strip():
            found.append(Block("", text))

    for fence in FENCE.finditer(text):
        between, kind = text[at:fence.start()], fence["kind"]
        if kind not in ("sh", "python") and not kind.startswith("text"):
            continue  # part of the text
        at = fence.end()
        for title in re.findall(r"^#+ (.*)$", FENCE.sub("", between), re.MULTILINE):
            section = title
        follows = found and found[-1].kind and found[-1].prints is None and not between.strip()
        if kind == "text" and follows:
            found[-1] = found[-1]._replace(prints=fence["code"])
            continue
        add_text(between)
        if kind in ("sh", "python"):
            found.append(Block(kind, fence["code"], section))
        else:
            add_text(fence[0])
    add_text(text[at:])
    return found


def chapter_of(path, text):
    lines = text.splitlines()
    title = re.fullmatch(r"# (\d+)\. (.+)", lines[0])
    summary = next((line[2:] for line in lines[1:6] if line.startswith("> ")), "")
    name = path.name.split(".")[0]
    if not title or not summary or int(title[1]) != int(name[:2]):
        raise ValueError(f"{path}: begins with '# {int(name[:2])}. TITLE', its links, and a line '> What it is about.'")
    return Chapter(int(title[1]), name, title[2], summary, blocks_of(text))


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


@functools.lru_cache
def chapters(ending=""):
    """All of them, in one language: "" for English, ".zh-CN"."""
    paths = sorted((ROOT / CHAPTERS).glob(f"[0-9][0-9]-*{ending}.md"))
    return [chapter_of(path, path.read_text(encoding="utf-8")) for path in paths if path.name.count(".") == ending.count(".") + 1]


def script(chapter, kind, head):
    """All blocks of a kind, below the titles of their sections."""
    parts, section = [head], None
    for block in chapter.code(kind):
        title = f"# {block.section}\n" if block.section != section else ""
        section = block.section
        parts.append(title + block.text)
    return "\n".join(parts)


def shell_script(chapter):
    return script(chapter, "sh", f"#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0\n# {NOTE.format(chapter.path)}\nset -e\n")


def program(chapter):
    return script(chapter, "python", f"# SPDX-License-Identifier: Apache-2.0\n# {NOTE.format(chapter.path)}\n")


def moved(text):
    """Text of a chapter, with its links as they lead from the folder of the notebooks."""
    def lead(link):
        if re.match(r"[a-z]+:", link[2]):
            return link[0]
        target = os.path.normpath(CHAPTERS / link[2])
        return link[1] + os.path.relpath(target, MADE)
    return LINK.sub(lead, text)


def notebook(chapter):
    cells = []
    for block in chapter.blocks:
        text = "%%sh -e\n" + block.text if block.kind == "sh" else block.text
        text = moved(text) if not block.kind else text
        source = text.strip("\n").splitlines(keepends=True)
        if block.kind:
            cells.append({"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": source})
        else:
            cells.append({"cell_type": "markdown", "metadata": {}, "source": source})
    about = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
             "language_info": {"name": "python"}, "made_by": NOTE.format(chapter.path)}
    return json.dumps({"cells": cells, "metadata": about, "nbformat": 4, "nbformat_minor": 4}, ensure_ascii=False,
                      indent=1) + "\n"


def with_navigation(path, chapter, ending):
    """The chapter with its links to the other language, the index, and what is made of it, below its title."""
    begin, *names = NAVIGATION[ending]
    links = [f"[{name}](../../{chapter.made(suffix)})" for name, suffix in zip(names, ("sh", "py", "ipynb"))]
    line = " · ".join([begin.format(zh=f"{chapter.name}.zh-CN.md", en=f"{chapter.name}.md"), *links])
    lines = read(path).split("\n")
    at = 2 if len(lines) > 2 and lines[2].startswith("[") else None
    return "\n".join([*lines[:2], line, *(lines[3:] if at else ["", *lines[2:]])])


def table(ending):
    rows = [f"| {c.number} | [{c.title}]({c.name}{ending}.md) | {c.summary} |\n" for c in chapters(ending)]
    return ("| | Chapter | |\n|---|---|---|\n" if not ending else "| | 章 | |\n|---|---|---|\n") + "".join(rows)


def made():
    """{path: text} of all that this tool writes."""
    files = {}
    for chapter in chapters():
        files[chapter.made("sh")] = shell_script(chapter)
        files[chapter.made("py")] = program(chapter)
        files[chapter.made("ipynb")] = notebook(chapter)
    for index, ending in INDEX.items():
        files[index] = TABLE.sub(lambda _, ending=ending: table(ending), read(index))
        for chapter in chapters(ending):
            path = CHAPTERS / f"{chapter.name}{ending}.md"
            files[path] = with_navigation(path, chapter, ending)
    return files


def problems():
    """What of it is not as it should be: stale, or left over."""
    wanted = made()
    stale = [path for path, text in wanted.items() if not (ROOT / path).is_file() or read(path) != text]
    ours = (path.relative_to(ROOT) for path in (ROOT / MADE).glob("[0-9][0-9]_*"))
    return [f"{path} is not up to date" for path in stale] + [f"{path} is of no chapter" for path in ours if path not in wanted]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="say whether the files are up to date")
    if parser.parse_args().check:
        found = problems()
        if found:
            print(*found, "run tools/make_lessons.py", sep="\n", file=sys.stderr)
        return 1 if found else 0
    (ROOT / MADE).mkdir(parents=True, exist_ok=True)
    for _ in range(2):  # the second time with the links that the first has put into the chapters
        for path, text in made().items():
            (ROOT / path).write_text(text, encoding="utf-8")
            if path.suffix == ".sh":
                (ROOT / path).chmod(0o755)
        chapters.cache_clear()
    return 0


if __name__ == "__main__":
    sys.exit(main())

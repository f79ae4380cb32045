# SPDX-License-Identifier: Apache-2.0
"""The questions and answers, and the pages of the articles: every command of the English page, run, prints what
the page says, and the Chinese page has the same commands and prints."""

import math
import os
import re
import subprocess
import unittest
from pathlib import Path

from support import FOVEA, CommandTest
from tensor_files import Tensor, write

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = (DOCS / "FAQ.md", DOCS / "FAQ.zh-CN.md")
ARTICLES = sorted(path for path in (DOCS / "articles").glob("*.md") if ".zh-CN" not in path.name)
BLOCKS = re.compile(r"^```sh\n(.*?)^```\n\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page):
    """Commands, and what they print."""
    return BLOCKS.findall(page.read_text(encoding="utf-8"))


def numbers(*shape):
    return Tensor("F32", shape, [math.sin(i) for i in range(math.prod(shape))])


def movements():
    """The numbers, a quarter each; joint 2 is lifted or lowered."""
    x = [value / 4 for value in numbers(60, 12, 4, 3).values]
    for s in range(60):
        for t in range(4, 8):
            for feature in range(3):
                x[((s * 12 + t) * 4 + 2) * 3 + feature] += -1 if s % 2 else 1
    return {"x": Tensor("F32", (60, 12, 4, 3), x), "labels": Tensor("I64", (60,), [0, 1] * 30)}


class Faq(CommandTest):
    def prepare(self):
        """As the Python code of the page."""
        q = numbers(2, 6, 2, 4)
        lengths = Tensor("I32", (2,), [6, 3])
        write(self.folder / "in.npz", {"q": q, "k": q, "v": q})
        write(self.folder / "lengths.npz",
              {"q": q, "k": q, "v": q, "query_lengths": lengths, "key_lengths": lengths})
        for name, shape, others in (("pytorch", (2, 4, 6, 8), (2, 4, 9, 8)), ("swapped", (6, 2, 4, 8), (2, 6, 4, 8))):
            write(self.folder / f"{name}.npz", {"q": numbers(*shape), "k": numbers(*others), "v": numbers(*others)})
        write(self.folder / "moves.npz", movements())
        (self.folder / "reviews.tsv").write_text("".join(
            f"pos\ta good film number {i % 7}\nneg\ta dull plot number {i % 5}\n" for i in range(30)))

    def prepare_articles(self):
        """Files of the shapes that the Python code of the articles' pages writes; tests/python runs that code."""
        for name, shape, mask in (("masked", (2, 5, 2, 16), "drop"), ("padded", (2, 5, 1, 64), "keep"),
                                  ("heads", (2, 12, 8, 16), None)):
            x = numbers(*shape)
            masks = {mask: Tensor("U8", (2, 1, 1, 5), [1, 1, 1, 0, 0, 1, 1, 1, 1, 0])} if mask else {}
            write(self.folder / f"{name}.npz", {"q": x, "k": x, "v": x, **masks})

    def check_page(self, page):
        environment = self.environment()
        environment["PATH"] = os.pathsep.join([str(Path(FOVEA).resolve().parent), environment.get("PATH", os.defpath)])
        for command, wanted in blocks(page):
            with self.subTest(page=page.name, command=command):
                done = subprocess.run(["sh", "-c", command], cwd=self.folder, env=environment, text=True, timeout=60,
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                self.assertEqual(done.stdout, wanted)

    def test_commands_print_what_the_page_says(self):
        self.prepare()
        self.check_page(PAGES[0])

    def test_commands_of_articles_print_what_the_pages_say(self):
        self.prepare_articles()
        for page in ARTICLES:
            self.check_page(page)
            self.assertEqual(blocks(page), blocks(page.with_name(f"{page.stem}.zh-CN.md")))
        self.assertGreater(sum(len(blocks(page)) for page in ARTICLES), 10)

    def test_every_question_has_a_command_and_both_pages_agree(self):
        english, chinese = (page.read_text(encoding="utf-8") for page in PAGES)
        questions = re.findall(r"^## ", english, re.MULTILINE)
        self.assertGreater(len(questions), 10)
        self.assertEqual(len(questions), len(re.findall(r"^## ", chinese, re.MULTILINE)))
        self.assertEqual(len(blocks(PAGES[0])), len(questions))
        self.assertEqual(blocks(PAGES[0]), blocks(PAGES[1]))


if __name__ == "__main__":
    unittest.main()

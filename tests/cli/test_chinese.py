#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A classifier of Chinese texts, by the command as it is: Tang and Song verse (fortunes-zh) against the prose of
manual pages (manpages-zh), both packages of Debian. Only Han characters are kept, so punctuation and Latin letters
say nothing."""

import gzip
import json
import pathlib
import random
import re
import sys
import unittest

from support import CommandTest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import demo_text  # noqa: E402

PAGES = pathlib.Path("/usr/share/man/zh_CN")
OTHERS = re.compile("[^\u3400-\u9fff]+")
SHORTEST, LONGEST = 10, 28  # characters; a quatrain has 20 or 28


def verse():
    return [OTHERS.sub("", line) for line in demo_text.verse().splitlines()]


def prose(count):
    """Lines of manual pages without their commands, any `count` of them."""
    lines = set()
    for page in sorted(PAGES.rglob("*.gz")):
        text = gzip.decompress(page.read_bytes()).decode("utf-8", "ignore")
        lines.update(OTHERS.sub("", line)[:LONGEST] for line in text.splitlines() if not line.startswith((".", "'")))
    found = sorted(line for line in lines if len(line) >= SHORTEST)
    return random.Random(1).sample(found, count)


class Chinese(CommandTest):
    def setUp(self):
        super().setUp()
        if not PAGES.is_dir() or not all((demo_text.FORTUNES / name).is_file() for name in demo_text.COLLECTIONS):
            self.skipTest("there are no Chinese texts: apt-get install fortunes-zh manpages-zh")

    def test_verse_and_prose_by_the_command_as_it_is(self):
        poems = sorted({line for line in verse() if len(line) >= SHORTEST})
        self.assertGreater(len(poems), 500)
        rows = [("verse", line) for line in poems] + [("prose", line) for line in prose(len(poems))]
        random.Random(2).shuffle(rows)
        held_out = len(rows) // 5
        for name, part in ("test.tsv", rows[:held_out]), ("train.tsv", rows[held_out:]):
            (self.folder / name).write_text("".join(f"{label}\t{line}\n" for label, line in part), encoding="utf-8")
        model = self.folder / "model"
        said = self.succeed("train", "classify", "--train", self.folder / "train.tsv", "-o", model).stderr.decode()
        self.assertIn("a script without blanks between words", said)
        score = json.loads(self.succeed("eval", model, "--test", self.folder / "test.tsv", "--json").stdout)
        self.assertEqual(score["examples"], held_out)
        self.assertGreaterEqual(score["accuracy"]["value"], 0.95)
        asked = "床前明月光疑是地上霜举头望明月低头思故乡\n如果没有指定文件名则从标准输入读取数据\n"
        done = self.succeed("classify", model, stdin=asked.encode())
        self.assertEqual([line.split("\t")[0] for line in done.stdout.decode().splitlines()], ["verse", "prose"])


if __name__ == "__main__":
    unittest.main()

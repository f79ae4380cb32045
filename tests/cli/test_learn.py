# SPDX-License-Identifier: Apache-2.0
"""fovea learn: lists and prints the chapters of the course, and runs their commands, which print what the pages say."""

import os
import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

from support import FOVEA, CommandTest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import make_lessons  # noqa: E402


def shown(block):
    """A block as the command prints it before it runs."""
    return "".join(f"$ {line}\n" for line in block.text.splitlines() if line)


class Learn(CommandTest):
    def text_of(self, *args, **options):
        return self.succeed("learn", *args, **options).stdout.decode()

    def test_without_a_number_all_chapters_are_listed(self):
        for lang, ending in (("en", ""), ("zh", ".zh-CN")):
            listed = re.findall(r"^ ?(\d+)  (.*)$", self.text_of("--lang", lang), re.MULTILINE)
            self.assertEqual(listed, [(str(c.number), c.title) for c in make_lessons.chapters(ending)])

    def test_a_chapter_is_printed_as_plain_text(self):
        for lang, ending in (("en", ""), ("zh", ".zh-CN")):
            for chapter in make_lessons.chapters(ending):
                text = self.text_of(chapter.number, "--lang", lang)
                lines = text.splitlines()
                self.assertIn(chapter.title, lines[0])
                self.assertRegex(lines[1], "^=+$")
                prose = [line for line in lines if not line.startswith(("    ", "|"))]
                for mark in ("```", "](", "<details>", "**", "</"):
                    self.assertEqual([line for line in prose if mark in line], [], f"{chapter.name}{ending}")
                self.assertEqual([line for line in prose if len(line) > 100], [])
                for block in chapter.blocks:
                    if block.kind:
                        code = "".join(f"    {line}\n" if line else "\n" for line in block.text.splitlines())
                        self.assertIn(code, text)

    def test_brackets_before_a_link_stay(self):
        text = " ".join(self.text_of(4).split())
        self.assertIn("The order [batch, length, heads, width] is the one", text)
        self.assertIn("words attend over heads (an answer for readers).", text)

    def test_the_chapters_lie_in_the_command(self):
        """A copy elsewhere, with no source beside it, has them."""
        copy = self.folder / "fovea"
        shutil.copy(FOVEA, copy)
        done = subprocess.run([copy, "learn", "1"], capture_output=True, cwd=self.folder, env=self.environment())
        self.assertEqual(done.stdout.decode(), self.text_of(1))

    def test_commands_of_every_chapter_print_what_the_page_says(self):
        for chapter in make_lessons.chapters():
            with self.subTest(chapter=chapter.name):
                folder = self.folder / chapter.name
                transcript = self.text_of(chapter.number, "-o", folder, timeout=400)
                for block in chapter.code("sh"):
                    _, found, transcript = transcript.partition(shown(block))
                    self.assertTrue(found, block.text)
                    if block.prints is not None:
                        self.assertEqual(transcript[:len(block.prints)], block.prints, block.text)
                self.assertTrue((folder / chapter.made("py").name).is_file())

    def test_the_folder_is_named_after_the_chapter_and_must_be_empty(self):
        (self.folder / "learn-01").mkdir()
        done = self.succeed("learn", 1, "--run", cwd=self.folder)
        self.assertIn(b"lies in 'learn-01'", done.stderr)
        again = self.run_fovea("learn", 1, "--run", cwd=self.folder)
        self.assertEqual(again.returncode, 2)
        self.assertIn(b"error[E0205]: learn: 'learn-01' is there already\nhint: choose another folder", again.stderr)

    def test_it_stops_at_the_first_command_that_fails(self):
        """The first program that chapter 1 needs beside fovea is not there."""
        path = self.folder / "path"
        path.mkdir()
        os.symlink(shutil.which("sh"), path / "sh")
        done = self.run_fovea("learn", 1, "-o", self.folder / "here", env={"PATH": str(path)})
        first, second = make_lessons.chapters()[0].code("sh")[:2]
        self.assertEqual(done.returncode, 3)
        text = done.stdout.decode()
        self.assertIn(shown(first) + first.prints, text)
        self.assertIn(shown(second), text)
        self.assertEqual(text.count("$ fovea"), 2)
        self.assertRegex(done.stderr.decode(), r"error\[E0301\]: learn: block 2 of \d of chapter 1 ended with exit status 127\n"
                                               r"hint: the lines above say why, and what was made lies in ")

    def test_what_cannot_be_asked_for(self):
        for args, message in ((["99"], "there is no chapter 99"), (["x"], "there is no chapter x"),
                              (["--run"], "no chapter to run"), (["-o", "x"], "no chapter to run")):
            done = self.run_fovea("learn", *args, cwd=self.folder)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(message, done.stderr.decode())
            numbers = ", ".join(str(chapter.number) for chapter in make_lessons.chapters())
            self.assertIn(f"hint: name one of: {numbers}\n", done.stderr.decode())
        self.assertFalse((self.folder / "x").exists())

    def test_a_folder_that_cannot_be_made(self):
        done = self.run_fovea("learn", 1, "-o", self.text / "below")
        self.assertEqual(done.returncode, 5)
        self.assertIn(b"error[E0501]", done.stderr)


if __name__ == "__main__":
    unittest.main()

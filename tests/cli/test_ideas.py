# SPDX-License-Identifier: Apache-2.0
"""docs/ideas.md: its pictures are those of the planner, and no idea is left out."""

import re
import unittest
from pathlib import Path

from support import CommandTest

from tensor_files import Tensor, write

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = DOCS / "ideas.md"
T, S = 384, 640
# Of the run, not of what is computed.
NO_IDEA = {"backward", "precision", "reference"}
OPERANDS = {"q", "k", "v", "do", "dlse"}


def zeros(*shape):
    size = 1
    for n in shape:
        size *= n
    return Tensor("F32", shape, [0.0] * size)


def tensors_of(word):
    """key_lengths=500: a tensor of these numbers; segments and keep are made from one."""
    name, _, value = word.partition("=")
    if name == "segments":
        return {"query_segments": Tensor("I32", (1, T), [(i + S - T) // int(value) for i in range(T)]),
                "key_segments": Tensor("I32", (1, S), [j // int(value) for j in range(S)])}
    if name == "keep":
        return {"keep": Tensor("U8", (1, 1, 1, S), [int(j % int(value) != 0) for j in range(S)])}
    numbers = [int(x) for x in value.split(",")]
    return {name: Tensor("I32", (len(numbers),), numbers)}


class Ideas(CommandTest):
    def page(self):
        return PAGE.read_text(encoding="utf-8")

    def picture(self, words):
        tensors = {"q": zeros(1, T, 1, 1), "k": zeros(1, S, 1, 1), "v": zeros(1, S, 1, 1)}
        for word in words:
            if "=" in word and not word.startswith("--"):
                tensors.update(tensors_of(word))
        write(self.folder / "in.safetensors", tensors)
        options = [word for word in words if word.startswith("--") or "=" not in word]
        done = self.succeed("attention", self.folder / "in.safetensors", "--plan", "--json", *options)
        return self.last_object(done)["picture"]

    def test_pictures_are_those_of_the_planner(self):
        blocks = re.findall(r"^```tiles ?(.*)\n((?:[./#]+\n)*)```$", self.page(), re.MULTILINE)
        self.assertEqual(len(blocks), self.page().count("```tiles"))
        self.assertGreater(len(blocks), 8)
        for words, drawn in blocks:
            with self.subTest(words=words):
                self.assertEqual(drawn.splitlines(), self.picture(words.split()))

    def test_no_idea_is_left_out(self):
        said = self.succeed("attention", "--help").stdout.decode()
        operator = said.split("Operator:")[1].split("Run:")[0]
        options = set(re.findall(r"^  --([a-z0-9-]+)", operator, re.MULTILINE)) - NO_IDEA
        tensors = set(re.findall(r"^  (\w+) +\[", said.split("Tensors of IN")[1], re.MULTILINE)) - OPERANDS
        self.assertGreater(len(options), 12)
        self.assertGreater(len(tensors), 12)
        for option in options:
            self.assertRegex(self.page(), rf"`[^`]*--{option}\b")
        parts = (DOCS / "attention.md").read_text(encoding="utf-8").split("## Parts with a tensor")[1]
        for tensor in tensors:
            self.assertIn(f"`{tensor}`", self.page() + parts)


if __name__ == "__main__":
    unittest.main()

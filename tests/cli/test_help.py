# SPDX-License-Identifier: Apache-2.0
"""Help: what most people set stands first, the rest below headings, and options go by their dashes."""

import re
import unittest

from support import CommandTest

# What the first options of a command are about, in this order.
FIRST = {
    "train lm": ["train", "valid", "output", "model", "layers", "width", "batch-size", "lr", "stop-after", "resume"],
    "train classify": ["train", "valid", "output", "encoder", "width", "batch-size", "lr", "stop-after", "resume"],
    "train tag": ["train", "valid", "task", "output", "encoder", "width", "batch-size", "lr", "stop-after", "resume"],
    "train translate": ["source", "target", "train", "output", "model", "encoder-layers", "width", "preset",
                        "batch-tokens", "lr", "stop-after", "resume"],
    "eval": ["test", "source", "hypothesis", "reference"],
    "report": ["eval", "output"],
    "attention": ["output"],
    "tokenizer train": ["train", "output", "kind", "vocab-size"],
}
ANY_VALUE = {"auto", "none"}  # of many options; a sentence says them of its own


class Help(CommandTest):
    def setUp(self):
        super().setUp()
        overview = self.succeed("--help").stdout.decode()
        self.commands = re.findall(r"^  ([a-z]+(?: [a-z]+)?)  +[A-Z]", overview, re.MULTILINE)

    def groups_of(self, command):
        """{heading: [(name, value, text)]} in the order of the help."""
        said = self.succeed(*command.split(), "--help").stdout.decode().split("\nExample")[0]
        groups = {}
        for block in re.split(r"\n\n(?=\S)", said)[1:]:
            heading, *_ = block.split("\n", 1)
            for entry in re.split(r"\n(?=  -)", block)[1:]:
                names, value, text = re.match(r" +(\S+)(?: (?! )(\S+(?: \.\.\.)?))?\s*(.*)", entry, re.DOTALL).groups()
                name = re.findall(r"--([a-z0-9-]+)", names)[0]
                groups.setdefault(heading, []).append((name, value or "", " ".join(text.split())))
        return groups

    def test_what_most_people_set_stands_first(self):
        for command, wanted in FIRST.items():
            heading, first = next(iter(self.groups_of(command).items()))
            self.assertEqual(heading, "Options:", command)
            names = [name for name, _, _ in first]
            self.assertEqual([name for name in names if name in wanted], wanted, command)
            self.assertLessEqual(len(names), 24, command)

    def test_a_training_says_what_its_train_loss_is(self):
        for task in ("lm", "classify", "pairs", "tag", "translate"):
            said = " ".join(self.succeed("train", task, "--help").stdout.decode().split())
            self.assertIn("A train loss is a mean over the updates before, while the weights changed", said, task)

    def test_no_heading_has_more_than_a_screen(self):
        for command in self.commands:
            for heading, options in self.groups_of(command).items():
                self.assertLessEqual(len(options), 24, f"fovea {command}: {heading}")

    def test_an_option_is_named_by_its_dashes(self):
        for command in self.commands:
            options = [option for group in self.groups_of(command).values() for option in group]
            names = {name for name, _, _ in options}
            values = {value for _, choices, _ in options for value in choices.strip("[=]").split("|")}
            for name, choices, text in options:
                own = {*choices.strip("[=]").split("|"), *ANY_VALUE}
                for clause in re.findall(r"(?:^|; )([a-z][^:;]*): ", text):
                    first, *rest = clause.split()
                    if all(word in values | {"or", "and"} for word in rest):  # "tokenizer char and word: ..."
                        self.assertFalse(first in (names | values) - own, f"fovea {command} --{name}: {text}")


if __name__ == "__main__":
    unittest.main()

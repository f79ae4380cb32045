# SPDX-License-Identifier: Apache-2.0
"""A kill, a full disk, an error of the disk and a short write at every call of a small training."""

import unittest

from faults_support import BeginningAndSaving, FaultsTest
from support import words


class Faults(BeginningAndSaving, FaultsTest):
    settings = ["--layers", "1", "--heads", "1", "--width", "8", "--ff", "8", "--block", "8", "--batch-size", "1",
                "--tokenizer", "byte", "--warmup", "0", "--schedule", "constant", "--eval-every", "1u", "--save-every", "1u", "--log-every", "1"]

    def setUp(self):
        super().setUp()
        self.text.write_text(words(lines=8), encoding="utf-8")


class ClassifierFaults(BeginningAndSaving, FaultsTest):
    kind = "classify"
    settings = ["--format", "fasttext", "--valid-fraction", "0", "--ngrams", "0", "--width", "4", "--batch-size", "4", "--tokenizer", "word",
                "--min-count", "1", "--schedule", "constant", "--eval-every", "1u", "--save-every", "1u", "--log-every", "1"]

    def setUp(self):
        super().setUp()
        lines = words(lines=8).splitlines()
        self.text.write_text("".join(f"__label__{i % 2} {line}\n" for i, line in enumerate(lines)), encoding="utf-8")


if __name__ == "__main__":
    unittest.main()

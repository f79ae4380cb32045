# SPDX-License-Identifier: Apache-2.0
"""The faults of tests/cli/test_faults.py in a training with dropout, lines, two layers and several
updates between its saves, and in one of a tagger."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "cli"))

from faults_support import BeginningAndSaving, FaultsTest  # noqa: E402
from tag_support import conll, tagged  # noqa: E402


class LongerFaults(BeginningAndSaving, FaultsTest):
    settings = ["--layers", "2", "--heads", "2", "--width", "32", "--block", "24", "--batch-size", "6", "--warmup", "5",
                "--dropout", "0.1", "--data", "lines", "--schedule", "constant", "--eval-every", "2u",
                "--save-every", "4u", "--log-every", "2"]
    updates = 4  # from one save to the next; a record falls on the end of each run


class TaggerFaults(BeginningAndSaving, FaultsTest):
    kind = "tag"
    settings = ["--valid-fraction", "0", "--word-width", "4", "--character-width", "4", "--character-features", "4", "--shape-width",
                "0", "--width", "4", "--encoder", "", "--batch-size", "4", "--schedule", "constant", "--eval-every", "1u",
                "--save-every", "1u", "--log-every", "1"]

    def setUp(self):
        super().setUp()
        self.text.write_text(conll(tagged(count=8)), encoding="utf-8")


if __name__ == "__main__":
    unittest.main()

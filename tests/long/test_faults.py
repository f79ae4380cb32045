# SPDX-License-Identifier: Apache-2.0
"""The faults of tests/cli/test_faults.py in a training with dropout, lines, two layers and several
updates between its saves."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "cli"))

from faults_support import BeginningAndSaving, FaultsTest  # noqa: E402


class LongerFaults(BeginningAndSaving, FaultsTest):
    settings = ["--layers", "2", "--heads", "2", "--width", "32", "--block", "24", "--batch-size", "6", "--warmup", "5",
                "--dropout", "0.1", "--data", "lines", "--schedule", "constant", "--eval-every", "2u",
                "--save-every", "4u", "--log-every", "2"]
    updates = 4  # from one save to the next; a record falls on the end of each run


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""Fifty signals at random moments, with changing threads."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "cli"))

import test_signals  # noqa: E402


class FiftySignals(test_signals.RandomSignals):
    signals = 50
    seed = 2


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""Twenty kills of every kind of model."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "cli"))

import test_model_bits  # noqa: E402


class TwentyKills(test_model_bits.Kills):
    kills = 20
    seed = 2


class TwentyTaggerKills(test_model_bits.TaggerKills):
    kills = 20
    seed = 2


if __name__ == "__main__":
    unittest.main()

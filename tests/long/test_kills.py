# SPDX-License-Identifier: Apache-2.0
"""Twenty runs killed at random moments, some of them while saving or evaluating, end with the same bits."""

import os
import sys
import unittest
from pathlib import Path

os.environ.setdefault("FOVEA_KILLS", "20")
os.environ.setdefault("FOVEA_KILL_SEED", "2")
sys.path.insert(0, str(Path(__file__).parent.parent / "cli"))

from test_resume import Kill  # noqa: E402,F401

if __name__ == "__main__":
    unittest.main()

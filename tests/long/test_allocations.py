# SPDX-License-Identifier: Apache-2.0
"""Every allocation of every command that reads a model fails once, and once with all that follow
it; of those that train, one in four or five. All of those would take two hours more."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "cli"))

from allocations_support import AllocationTest, Survival  # noqa: E402


class EveryAllocation(Survival, AllocationTest):
    most_training = 2500  # of each kind, of about 11 000

    def check(self, output):
        if (output / "model.safetensors").exists():
            self.succeed("inspect", output, "--verify")


if __name__ == "__main__":
    unittest.main()

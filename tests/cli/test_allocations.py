# SPDX-License-Identifier: Apache-2.0
"""A thousand allocations that fail, spread over every command that trains or reads a model."""

import unittest

from allocations_support import AllocationTest, Survival


class Allocations(Survival, AllocationTest):
    most_reading = 70  # of each kind for each of six commands
    most_training = 42  # of two, which flush what they save and go on after it


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""Memory is foreseen for larger models, and for a text that is one line of 200 MB."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "cli"))

from test_memory import MemoryTest  # noqa: E402

LARGE = {
    "batch of 16 x 256": "--layers 6 --width 384 --heads 6 --block 256 --batch-size 16",
    "batch of 4 x 512": "--layers 12 --width 256 --heads 8 --block 512 --batch-size 4",
    "GPT-2, narrow": "--preset gpt2 --width 384 --heads 6 --layers 8 --block 256 --batch-size 4",
    "block of 1024": "--layers 4 --width 512 --heads 8 --block 1024 --batch-size 4 --threads 8",
    "few rows": "--layers 12 --width 512 --heads 8 --block 32 --batch-size 1",
}
SMALL = "--layers 1 --width 32 --heads 2 --block 64 --batch-size 4 --log-every 100"


class LargeMemory(MemoryTest):
    def test_of_large_models(self):
        for name, options in LARGE.items():
            with self.subTest(name):
                self.assert_foreseen(*self.foreseen_and_used(options))

    def test_of_one_long_line(self):
        line = self.folder / "line.txt"
        with open(line, "w", encoding="utf-8") as file:
            for _ in range(200):
                file.write("the cat sees a moon and a river that nobody hears " * 20000)
        for options in ["--valid-fraction 0.00001", "--valid-fraction 0 --data lines",
                        "--valid-fraction 0 --data lines --tokenizer byte"]:
            with self.subTest(options):
                self.assert_foreseen(*self.foreseen_and_used(f"{SMALL} {options}", line))


if __name__ == "__main__":
    unittest.main()

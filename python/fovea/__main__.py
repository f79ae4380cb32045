# SPDX-License-Identifier: Apache-2.0
"""The command: `python -m fovea` and `fovea` are the program that lies in the package."""

import os
import pathlib
import sys


def main() -> None:
    program = pathlib.Path(__file__).with_name("bin") / "fovea"
    os.execv(program, ["fovea", *sys.argv[1:]])


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that every C++ file is laid out as .clang-format says (clang-format 14)."""

import argparse
import pathlib
import subprocess
import sys

import sources

FORMATTER = "clang-format-14"


def check(root):
    paths = [str(path) for path in sources.cpp_files(root)]
    command = [FORMATTER, "--dry-run", "-Werror", "--ferror-limit=1", *paths]
    try:
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return [f"{FORMATTER} is not installed: tools/install_dependencies.sh installs it"]
    wrong = sorted({line.split(":")[0] for line in done.stderr.splitlines() if ": error:" in line})
    if done.returncode and not wrong:
        return [done.stderr]
    return [f"{path}: run {FORMATTER} -i on it" for path in wrong]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", nargs="?", type=pathlib.Path, default=sources.ROOT)
    return sources.report("format", check(parser.parse_args().root))


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the text of every file: its licence line, nothing left over, nothing of one machine."""

import argparse
import pathlib
import re
import sys

import sources

LICENCE = "SPDX-License-Identifier: Apache-2.0"
LICENSED = (".h", ".cc", ".py", ".sh", ".cmake")
LICENSED_NAMES = ("CMakeLists.txt", "Makefile", "run")

# What may stand in no file, and why. Spelled so that this file passes its own check.
FORBIDDEN = {
    r"(?<![\w.~-])/(?:work|root)/": "a path of one machine",
    r"(?<![\w.~-])/home/\w": "a path of one machine",
    r"/tmp/" r"venv": "a path of one machine",
    r"(?<![\d.])(?:10\.\d+|192\.168|172\.(?:1[6-9]|2\d|3[01]))\.\d+\.\d+\b": "a private address",
    r"(?i)\b(?:to" r"do|fix" r"me|xxx+)\b[:( ]": "work left over",
    r"(?i)artif" r"actory|\bnexus\b": "a registry",
    r"<{7} |>{7} ": "a conflict of a merge",
}


def needs_licence(path):
    return path.suffix in LICENSED or path.name in LICENSED_NAMES


def check_file(path, text):
    lines = text.splitlines()
    if needs_licence(path) and not any(LICENCE in line for line in lines[:3]):
        yield f"{path}: has no line {LICENCE}"
    if text and not text.endswith("\n"):
        yield f"{path}: does not end with a newline"
    for number, line in enumerate(lines, 1):
        if line != line.rstrip() and path.suffix != ".md":
            yield f"{path}:{number}: blanks at the end of the line"
        if "\t" in line and path.name != "Makefile" and path.suffix not in (".tsv", ".txt"):
            yield f"{path}:{number}: a tabulator"
        for pattern, meaning in FORBIDDEN.items():
            found = re.search(pattern, line)
            if found:
                yield f"{path}:{number}: {meaning}: {found.group()!r}"


def check(root):
    problems = []
    for path in sources.files(root):
        try:
            text = (root / path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # an image, an archive
        problems += check_file(path, text)
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", nargs="?", type=pathlib.Path, default=sources.ROOT)
    return sources.report("text", check(parser.parse_args().root))


if __name__ == "__main__":
    sys.exit(main())

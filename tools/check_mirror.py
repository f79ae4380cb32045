#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that each folder of sources has its tests: where fovea/ROOM/FOLDER holds a .cc, tests/ROOM/FOLDER holds
a file that ends in _test.cc."""

import argparse
import pathlib
import sys

import sources

# A folder whose tests stand elsewhere: where, and why.
COVERED_BY = {
    "fovea/attention/values": ("tests/attention/support/problem.cc", "a part of the random problems"),
    "fovea/grad/ops": ("tests/grad/ops_test.cc", "loops over the registered cases of every op"),
}


def check(names, table):
    """What is missing, given the names of all files."""
    paths = [pathlib.PurePosixPath(name) for name in names]
    tested = {path.parent for path in paths if path.name.endswith("_test.cc")}
    folders = {path.parent for path in paths if path.parts[0] == "fovea" and path.suffix == ".cc"}
    problems = []
    for folder in sorted(folders):
        if str(folder) in table:
            test = table[str(folder)][0]
            if test not in names:
                problems.append(f"{folder}: has no tests; expected {test}")
        elif "tests" / folder.relative_to("fovea") not in tested:
            problems.append(f"{folder}: has no tests; expected tests/{folder.relative_to('fovea')}/*_test.cc")
    for key, (_, reason) in table.items():
        if pathlib.PurePosixPath(key) not in folders:
            problems.append(f"{key}: is gone: drop it from the table")
        if not reason:
            problems.append(f"{key}: says no reason")
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", nargs="?", type=pathlib.Path, default=sources.ROOT)
    root = parser.parse_args().root
    names = [path.as_posix() for path in sources.files(root, ("fovea", "tests"))]
    return sources.report("mirror", check(names, COVERED_BY))


if __name__ == "__main__":
    sys.exit(main())

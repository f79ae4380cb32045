#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that every header compiles alone, and twice in a row, without a warning; and all that are
installed in one file, for a user may include any two of them.

A header that Highway compiles once for each instruction set (-inl.h) has no include guard of the
usual kind; it is included once.
"""

import argparse
import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys

import sources

FLAGS = ["-std=c++20", "-Wall", "-Wextra", "-Werror", "-Wshadow", "-Wno-psabi"]


def wrapper(header):
    once = f'#include "{header}"\n'
    return once if header.endswith("-inl.h") else once * 2


def compile_text(root, name, text, compiler, scratch):
    """What the compiler says against a file of this name and text, or an empty text."""
    source = scratch / (name.replace("/", "_") + ".cc")
    if not source.exists() or source.read_text() != text:
        source.write_text(text)
    command = [*compiler, *FLAGS, f"-I{root}", "-O0", "-c", str(source), "-o", f"{source}.o"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stderr if done.returncode else ""


def check(root, compiler, scratch):
    scratch.mkdir(parents=True, exist_ok=True)
    headers = [path.as_posix() for path in sources.cpp_files(root, ("fovea", "cli", "tests"))
               if path.suffix == ".h"]
    installed = [header for header in headers if header.startswith("fovea/")]
    files = {header: ("does not compile alone", wrapper(header)) for header in headers}
    files["fovea"] = ("its headers do not compile in one file",
                      "".join(f'#include "{header}"\n' for header in installed))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        said = pool.map(lambda name: compile_text(root, name, files[name][1], compiler, scratch), files)
    return [f"{name}: {files[name][0]}:\n{text}" for name, text in zip(files, said) if text]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", nargs="?", type=pathlib.Path, default=sources.ROOT)
    parser.add_argument("--compiler", default="c++")
    parser.add_argument("--scratch", type=pathlib.Path, default=sources.ROOT / "build" / "headers",
                        help="folder for objects; ccache makes the second run instant")
    options = parser.parse_args()
    compiler = [options.compiler]
    if shutil.which("ccache"):
        compiler.insert(0, "ccache")
    return sources.report("headers", check(options.root, compiler, options.scratch))


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""What the gates share: which files are ours, how C++ is read, how a gate reports."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]

# Folders that hold what we made: everything else in a checkout is built or borrowed.
FOLDERS = (".ci", "bench", "cli", "cmake", "docs", "examples", "experiments", "fovea", "python", "tests", "tools")
CPP = (".h", ".cc")
SKIPPED = {"__pycache__", "build"}


def files(root, folders=FOLDERS):
    """Every file below the folders and in the root itself, as paths relative to the root."""
    found = [path for path in root.iterdir() if path.is_file() and path.name != ".git"]  # git's, in a worktree
    for folder in folders:
        for path in (root / folder).rglob("*"):
            if path.is_file() and not SKIPPED.intersection(path.relative_to(root).parts):
                found.append(path)
    return sorted(path.relative_to(root) for path in found)


def cpp_files(root, folders=("fovea", "experiments", "cli", "python", "tests", "bench", "examples")):
    return [path for path in files(root, folders) if path.suffix in CPP]


def includes(text):
    """(line number, name, quoted or angled) of every #include of a C++ text."""
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
        if match:
            yield number, match.group(2), match.group(1)


TOKEN = re.compile(
    r"""
      (?P<comment>//[^\n]*|/\*.*?\*/)
    | (?P<directive>^[ \t]*\#(?:[^\n\\]|\\\n|\\.)*)
    | (?P<raw>R"(?P<tag>[^\s()\\]*)\(.*?\)(?P=tag)")
    | (?P<string>"(?:[^"\\\n]|\\.)*"|(?<![0-9a-fA-F])'(?:[^'\\\n]|\\.)+')
    | (?P<word>[A-Za-z_0-9](?:[A-Za-z_0-9.]|'(?=[0-9a-fA-F]))*)
    | (?P<symbol>::|->|<=>|<<=|>>=|&&|\|\||[<>=!+*/%&|^-]=|\+\+|--|<<|\.\.\.|[^\sA-Za-z_0-9])
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)


def tokens(text):
    """(token, line) of a C++ text without comments and directives; a literal is one '""'."""
    line, position = 1, 0
    for match in TOKEN.finditer(text):
        line += text.count("\n", position, match.start())
        position = match.start()
        if match.lastgroup in ("raw", "tag", "string"):
            yield '""', line
        elif match.lastgroup in ("word", "symbol"):
            yield match.group(), line


def report(gate, problems):
    """Prints the problems, and returns the exit status of the gate."""
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{gate}: {len(problems)} problems" if problems else f"{gate}: all is well")
    return 1 if problems else 0

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/errors.md from the table kErrorCodes in fovea/base/error.h.

  tools/make_error_docs.py           writes the page
  tools/make_error_docs.py --check   exit status 1 if the page is not up to date
"""

import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
TABLE = pathlib.Path("fovea/base/error.h")
PAGE = pathlib.Path("docs/errors.md")

ENTRY = re.compile(
    r'ErrorCodeInfo\{\s*ErrorCode::(?P<code>k\w+),\s*"(?P<name>E\d{4})",\s*(?P<status>\d+),\s*'
    r'(?P<meaning>"(?:[^"\\]|\\.)*"(?:\s*"(?:[^"\\]|\\.)*")*),\s*'
    r'(?P<hint>"(?:[^"\\]|\\.)*"(?:\s*"(?:[^"\\]|\\.)*")*)\s*\}')

CLASSES = {
    1: "A defect in fovea",
    2: "What was asked for",
    3: "Text to read",
    4: "Models and checkpoints",
    5: "Reading and writing",
    6: "Memory",
    7: "Training",
}

HEAD = """# Errors

Made from `kErrorCodes` in [fovea/base/error.h](../fovea/base/error.h) by `tools/make_error_docs.py`.

A command that fails prints two lines on stderr, and leaves nothing half written:

```text
error[E0301]: book.txt: cannot open: No such file or directory
hint: check the path
```

The first line says what went wrong and where, what was expected and what was found. The second line says what to do about it. The code is stable; its first two digits are the exit status. With `--json` the command also prints both lines as one object on stdout: `{"error": "E0301", "message": "...", "hint": "..."}`. The library throws the same as a `fovea::Error` with `code()`, `what()` and `hint()`. The hint is never empty: an error without a hint of its own has the hint of its code, below.

The other exit statuses: 0 means success; 129, 130 and 143 mean that a training was stopped by SIGHUP, SIGINT or SIGTERM; if it had read its data, it has saved a checkpoint.

If a result cannot be printed, because stdout is closed or its disk is full, the error is E0501. A pipe whose reader is gone is no error and does not change the exit status: `fovea train lm --help | head -1` ends with 0. If stderr is closed or full, the command goes on without messages.
"""


def codes(text):
    """(code, name, status, meaning, hint) of every entry; an error if an entry was not understood."""
    table = text[text.index("kErrorCodes = {"):]
    table = table[:table.index("};")]
    joined = lambda literals: "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', literals))  # noqa: E731
    found = [(m["code"], m["name"], int(m["status"]), joined(m["meaning"]), joined(m["hint"]))
             for m in ENTRY.finditer(table)]
    if not found or len(found) != table.count("ErrorCodeInfo{"):
        raise ValueError(f"{TABLE}: an entry of kErrorCodes was not understood")
    return found


def page(text):
    lines = [HEAD]
    for status, title in CLASSES.items():
        lines += [f"## {title}: exit status {status}", "", "| Code | In C++ | Meaning | Hint |", "|---|---|---|---|"]
        lines += [f"| {name} | `ErrorCode::{code}` | {meaning} | {hint} |"
                  for code, name, of, meaning, hint in codes(text) if of == status]
        lines.append("")
    unknown = {status for _, _, status, *_ in codes(text)} - set(CLASSES)
    if unknown:
        raise ValueError(f"{TABLE}: exit status {sorted(unknown)} has no title here")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="say whether the page is up to date")
    wanted = page((ROOT / TABLE).read_text(encoding="utf-8"))
    if not parser.parse_args().check:
        (ROOT / PAGE).write_text(wanted, encoding="utf-8")
        return 0
    if (ROOT / PAGE).is_file() and (ROOT / PAGE).read_text(encoding="utf-8") == wanted:
        return 0
    print(f"{PAGE} is not that of {TABLE}: run tools/make_error_docs.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())

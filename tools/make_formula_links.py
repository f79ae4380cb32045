#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Leads the links of docs/formulas.md (in both languages), docs/metrics.md and docs/articles to the lines where their symbols are defined.

A link reads [`symbol`](../path#L12). Lines move when code changes; then run

  tools/make_formula_links.py           writes the pages again
  tools/make_formula_links.py --check   exit status 1 if a link does not lead to its symbol
"""

import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGES = tuple(pathlib.Path("docs") / name for name in ("formulas.md", "formulas.zh-CN.md", "metrics.md"))
ARTICLES = tuple(sorted(page.relative_to(ROOT) for page in (ROOT / "docs/articles").glob("*.md")))
LINK = re.compile(r"\[`(?P<symbol>[^`]+)`\]\((?P<up>(?:\.\./)+)(?P<path>(?:fovea|cli|experiments|examples|tests|tools)/[\w/.-]+?)(?:#L\d+)?\)")


def code_of(source):
    """The lines of a source without what is in comments; their numbers stay."""
    return [re.sub(r"\s*(?://|#(?!include|define)).*", "", line) for line in source.splitlines()]


def is_defined(lines, at, name):
    """Does a definition of a function begin on this line? It has its name, its parameters, then a brace."""
    word = re.escape(name)
    if not re.match(rf"\s*(?!return\b|else\b|throw\b|co_)(?:[\w:<>,&*~\[\]= ]+[ &*>:])?{word}\(", lines[at]):
        return False
    rest = " ".join(lines[at:at + 12])
    rest = rest[re.search(rf"(?<!\w){word}\(", rest).end():]
    end = re.search(r"[;{]", rest)
    return bool(end) and end[0] == "{"


def rank(lines, at, name):
    """How much a line looks like the definition of a name; 0: it does not have it."""
    word = rf"(?<!\w){re.escape(name)}(?!\w)"
    if not re.search(word, lines[at]):
        return 0
    if re.search(rf"\b(?:class|struct|enum class|def) (?:\w+ )*{word}(?!.*;\s*$)", lines[at]):
        return 4
    if is_defined(lines, at, name):
        return 4 if not lines[at].startswith("   ") else 3
    return 2 if re.search(rf"{word}(?:\[\])?(?: =|\{{|\()", lines[at]) else 1


def line_of(path, source, symbol):
    """The number of the line that defines a symbol (of a test: its TEST, or the function of its class), or None."""
    if path.startswith("tests/") and path.endswith(".py"):
        suite, test = symbol.split(".")
        found = re.search(rf"^class {suite}\b(?:(?!^class ).)*?^    def {test}\(", source, re.MULTILINE | re.DOTALL)
        return source[:found.end()].count("\n") + 1 if found else None
    lines = code_of(source)
    if path.startswith("tests/"):
        suite, test = symbol.split(".")
        pattern = rf"\b(?:TYPED_)?TEST(?:_[FP])?\({suite}, {test}\)"
        return next((n for n, line in enumerate(lines, 1) if re.search(pattern, line)), None)
    *owners, name = symbol.split("::")
    if owners:
        qualified = r"(?:<\w+>)?::".join(map(re.escape, (*owners, name)))
        whole = next((n for n, line in enumerate(lines, 1) if re.search(rf"(?<!\w){qualified}\(", line)), None)
        if whole:
            return whole
    ranks = [rank(lines, at, name) for at in range(len(lines))]
    return ranks.index(max(ranks)) + 1 if any(ranks) else None


def linked(text):
    """The page with every link at the line of its symbol. A symbol that is not there is an error."""
    def lead(found):
        path, symbol = found["path"], found["symbol"]
        line = line_of(path, (ROOT / path).read_text(encoding="utf-8"), symbol)
        if line is None:
            raise ValueError(f"{path} has no {symbol}")
        return f"[`{symbol}`]({found['up']}{path}#L{line})"
    return LINK.sub(lead, text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    for page in (*PAGES, *ARTICLES):
        text = (ROOT / page).read_text(encoding="utf-8")
        new = linked(text)
        if options.check and new != text:
            sys.exit(f"{page}: links do not lead to their lines: run tools/make_formula_links.py")
        if not options.check:
            (ROOT / page).write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()

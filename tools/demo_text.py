#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the two texts of the demo, from packages of Debian, as UTF-8.

  english.txt  the King James Bible (bible-kjv, bible-kjv-text): one verse a line, in the order of
               the books, without references; 31,102 lines, 4.1 million characters
  verse.txt    Tang and Song poems (fortunes-zh): one quatrain a line, that is four clauses of five or
               seven characters with their punctuation (fewer at the end of a poem whose clauses are
               no multiple of four); no titles, authors, prefaces or irregular clauses; 982 lines,
               29 thousand characters

The same package versions give the same bytes.
"""
import argparse
import pathlib
import re
import subprocess
import sys

FORTUNES = pathlib.Path("/usr/share/games/fortunes")
COLLECTIONS = "tang300", "song100"
HAN = "[\u3400-\u9fff\U00020000-\U0003ffff]"
CLAUSE = f"(?:{HAN}{{7}}|{HAN}{{5}})[，。？！；：、]"
VERSE_LINE = re.compile(f"(?:{CLAUSE})+")
ESCAPE = re.compile("\x1b\\[[0-9;]*m")


def english():
    """The verses; `-f` turns the pretty printing off, which leaves `Ge1:1 In the beginning ...`."""
    command = ["bible", "-f", "gen1:1-rev22:21"]
    lines = subprocess.run(command, check=True, capture_output=True, encoding="utf-8").stdout
    return "".join(re.sub(r"^\S+ ", "", line) + "\n" for line in lines.splitlines())


def poems(collection):
    """The poems of one fortune file, each a list of clauses."""
    text = ESCAPE.sub("", collection)
    for entry in re.split(r"^%$", text, flags=re.MULTILINE):
        lines = [line.strip() for line in entry.splitlines()]
        clauses = [c for line in lines if VERSE_LINE.fullmatch(line) for c in re.findall(CLAUSE, line)]
        if len(clauses) > 1:
            yield clauses


def quatrains(poem):
    """The clauses of a poem, four at a time, joined."""
    return ["".join(poem[i:i + 4]) for i in range(0, len(poem), 4)]


def verse():
    """The quatrains of all poems, one a line."""
    files = [(FORTUNES / name).read_text(encoding="utf-8") for name in COLLECTIONS]
    return "".join(line + "\n" for text in files for poem in poems(text) for line in quatrains(poem))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="where english.txt and verse.txt go")
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in ("english.txt", english), ("verse.txt", verse):
        try:
            text = make()
        except FileNotFoundError as error:
            print(f"demo_text: {error.filename} is missing; install the packages bible-kjv,"
                  " bible-kjv-text and fortunes-zh", file=sys.stderr)
            return 3
        (folder / name).write_text(text, encoding="utf-8")
        print(f"{folder / name}: {len(text):,} characters, {text.count(chr(10)):,} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())

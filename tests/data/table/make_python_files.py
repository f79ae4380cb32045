#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes python_files.h: a random table as Python's csv and json write it, and files by hand as Python's csv
reads them. Fields end with U+001F, records with U+001E.

    python3 tests/data/table/make_python_files.py > tests/data/table/python_files.h
"""

import csv
import io
import json
import random

PIECES = ["a", "word", " ", '"', '""', ",", ";", "\t", "\n", "\r\n", "'", "\\", "é", "中", "\U0001f600", "\x85"]
READINGS = ['a,b\r\nc,d', 'a,"b""c",\n', 'x"y,"z"\n', ' "a",b\n', '"a\nb",c\n"",""\n', '"","a,b","c\r\nd"\r\n',
            'a""b,c""\n', '"a",""""\n', "'a,b'\n", ',,\n', '" a ", b \n', '"\u4e2d,\u6587",\U0001f600\n']


def literal(text):
    """As C++ string literals: bytes beyond printable ASCII in octal, lines of at most 90 characters."""
    pieces, line = [], ""
    for byte in text.encode():
        char = chr(byte)
        piece = "\\" + char if char in '"\\' else char if 32 <= byte < 127 and char != "?" else f"\\{byte:03o}"
        if len(line) + len(piece) > 90:
            pieces.append(line)
            line = ""
        line += piece
    pieces.append(line)
    return "\n".join(f'    "{line}"' for line in pieces)


def joined(table):
    return "".join("".join(field + "\x1f" for field in row) + "\x1e" for row in table)


def main():
    rng = random.Random(5)
    table = [["label", "text"]]
    for _ in range(25):
        label = rng.choice(["pos", "neg", "so so", "é, \"x\""])
        table.append([label, "t" + "".join(rng.choice(PIECES) for _ in range(rng.randrange(12))) + "."])
    print("// SPDX-License-Identifier: Apache-2.0\n"
          "// Made by make_python_files.py.\n"
          "#pragma once\n\n#include <string_view>\n\nnamespace fovea {\n\n"
          "struct PythonFile {\n  std::string_view name;\n  char separator;\n  std::string_view bytes;\n};\n\n"
          "struct PythonReading {\n  std::string_view bytes, fields;\n};\n")
    print(f"inline constexpr std::string_view kPythonTable =\n{literal(joined(table))};\n")
    print("inline constexpr PythonFile kPythonFiles[] = {")
    for name, options in [("excel", {"dialect": "excel"}), ("unix", {"dialect": "unix"}),
                          ("excel-tab", {"dialect": "excel-tab"}), ("semicolon", {"delimiter": ";"}),
                          ("bar", {"delimiter": "|", "quoting": csv.QUOTE_NONNUMERIC, "lineterminator": "\n"})]:
        out = io.StringIO(newline="")
        csv.writer(out, **options).writerows(table)
        separator = {"excel-tab": "\\t", "semicolon": ";", "bar": "|"}.get(name, ",")
        print(f'    {{"{name}", \'{separator}\',\n{literal(out.getvalue())}}},')
    print("};\n")
    lines = "".join(json.dumps({"label": row[0], "text": row[1]}, ensure_ascii=number % 2 == 0) + "\n"
                    for number, row in enumerate(table[1:]))
    print(f"/// That table, without its header, as lines of JSON.\n"
          f"inline constexpr std::string_view kPythonJson =\n{literal(lines)};\n")
    print("inline constexpr PythonReading kPythonReadings[] = {")
    for text in READINGS:
        rows = list(csv.reader(io.StringIO(text, newline="")))
        print(f"    {{{literal(text).strip()},\n{literal(joined(rows))}}},")
    print("};\n\n}  // namespace fovea")


if __name__ == "__main__":
    main()

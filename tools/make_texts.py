#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Chinese texts of the command, fovea/catalogue/zh_CN.po, and the English ones in the sources.

  make_texts.py              checks the file: nothing missing, nothing left over, the same places and names
  make_texts.py --write      puts it in the order of the sources, adds what is missing with an empty
                             translation, and drops what no source says any more
  make_texts.py --missing    prints the English texts that have no translation

English stays in the sources, and is the key. What must have a translation: every text in a call that tells
a person something (MESSAGE_CALLS, and every function that is [[noreturn]]). Texts of help are found by a test
that reads --help of every command (tests/cli/test_language.py). All other texts may have one.
"""

import argparse
import functools
import pathlib
import re
import sys

import sources

PO = pathlib.Path("fovea/catalogue/zh_CN.po")
FOLDERS = ("cli", "experiments", "fovea")

# Calls, or tables, whose texts a person reads. Functions that are [[noreturn]] are found.
MESSAGE_CALLS = set("""
    fail check Error with Hint require_option require warn note detail say told noticed require_together require_memory
    refuse_options refuse_set checked_product check_rows check_operand require_update Synonyms ErrorCodeInfo
    BadRow fail_entry check_page_file note_no_validation in_language works busy
""".split())
# Calls inside of these whose texts are no words.
SILENT_CALLS = {"static_assert", "getenv"}

# Texts that a person sees and that other programs say: the system, and the parser of options.
OF_OTHERS = ("No such file or directory", "Permission denied", "Is a directory", "Not a directory", "File exists",
             "No space left on device", "Read-only file system", "Input/output error", "File name too long",
             "File too large", "Disk quota exceeded", "Directory not empty", "Too many open files",
             "Too many levels of symbolic links", "Invalid argument", "Broken pipe", "Operation not permitted",
             "Cannot allocate memory", "No such device or address", "No such device", "Text file busy", "not enough memory",
             "{}: {} is required", "{}: {} required {} missing", "Expected at least {} arguments to {}, got {}",
             "Expected exactly {} arguments to {}, got {}", "Expected at most {} arguments to {}, got {}",
             # Headings of help, which are made of the names of groups of fields.
             "Text", "Model", "Training", "Linear")

TOKEN = re.compile(
    r"""
      (?P<comment>//[^\n]*|/\*.*?\*/)
    | (?P<directive>^[ \t]*\#(?:[^\n\\]|\\\n|\\.)*)
    | (?P<raw>R"(?P<tag>[^\s()\\]*)\((?P<inside>.*?)\)(?P=tag)")
    | (?P<string>"(?:[^"\\\n]|\\.)*")
    | (?P<character>(?<![0-9a-fA-F])'(?:[^'\\\n]|\\.)+')
    | (?P<word>[A-Za-z_]\w*)
    | (?P<symbol>[^\sA-Za-z_])
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
ESCAPES = {"n": "\n", "t": "\t", "0": "\0", "r": "\r"}
CHINESE = re.compile("[\u3000-\u9fff\uff00-\uffef]")


def value_of(string):
    inside = re.sub(r"\\x([0-9a-fA-F]{2})", lambda m: chr(int(m.group(1), 16)), string[1:-1])
    return re.sub(r"\\(.)", lambda m: ESCAPES.get(m.group(1), m.group(1)), inside)


class Literal:
    """A text of a source, joined of its parts, and the names of the calls and tables around it."""

    def __init__(self, text, path, calls, before):
        self.text, self.path, self.calls, self.before = text, path, calls, before
        self.is_phrase = False  # the Chinese text stands beside it, as in the tables of pages


def literals_of(path, text):
    found, around, before, joins = [], [], [], False
    for match in TOKEN.finditer(text):
        kind = match.lastgroup
        if kind in ("comment", "directive"):
            continue
        if match.group("raw") or match.group("string"):
            value = match.group("inside") if match.group("raw") else value_of(match.group("string"))
            if joins:
                found[-1].text += value
            else:
                found.append(Literal(value, path, tuple(name for name in around if name), tuple(before[-3:])))
            joins = True
            continue
        joins = False
        token = match.group()
        if token in "({[":
            around.append(before[-1] if before and re.match(r"[A-Za-z_]", before[-1]) else "")
        elif token in ")}]" and around:
            around.pop()
        before.append(token)
    for one, other in zip(found, found[1:]):
        one.is_phrase = one.calls == other.calls and CHINESE.search(other.text) is not None
    return found


@functools.cache
def literals(root):
    return [literal for path in sources.cpp_files(root, FOLDERS)
            for literal in literals_of(path, (root / path).read_text(encoding="utf-8"))]


@functools.cache
def message_calls(root):
    calls = set(MESSAGE_CALLS)
    for path in sources.cpp_files(root, FOLDERS):
        calls.update(re.findall(r"\[\[noreturn\]\][^;{(]*?(\w+)\(", (root / path).read_text(encoding="utf-8")))
    return calls


def units(text):
    """The texts that an epilog is translated by: its blocks, and the comments behind examples."""
    block = []
    for line in [*text.split("\n"), ""]:
        if line and not line.startswith("  fovea "):
            block.append(line)
            continue
        if block:
            yield "\n".join(block)
            block = []
        comment = re.match(r"  .*?  +(?=\S)", line)
        if comment:
            yield line[comment.end():]


def is_sentence(text):
    """Whether it has words between others: no name, no list of options, no picture of a page."""
    plain = re.sub(r"\{[^}]*\}", "{}", text)
    if CHINESE.search(plain) or re.search(r"</|^\s*<\w|\bvar\b", plain):
        return False
    words = r"[A-Za-z]{2,}[,.;:)'\"]* [A-Za-z({'\"\-\d]|\{\}[ ,:;]+[a-z]{2,}|[a-z]{2,} \{|: [a-z]{2,}|[a-z]{3,} [\d\-\[(]"
    return re.search(words, plain) is not None


def is_names(text):
    """Options, with values or without, or synonyms alone: nothing to translate."""
    if re.fullmatch(r"(--[a-z][a-z\d-]*( [a-z\d-]+)?(, )?)+", text):
        return True
    return all(re.fullmatch(r"-{0,2}[a-z\d][\w\-]*|\{\}|[A-Z]+|[\w.]*[/.<>][\w.|<>]*", word) and
               (word.startswith("-") or "-" in word or not word.isalpha() or word.isupper())
               for word in text.replace(",", " ").split())


def required(root):
    """The texts that must have a translation: {English: the file that says it}."""
    calls, found = message_calls(root), {}
    for literal in literals(root):
        names = set(literal.calls)
        if literal.path.parts[0] != "cli":
            names.discard("say")  # which has another meaning there
        if not names & calls or names & SILENT_CALLS or not is_sentence(literal.text) or is_names(literal.text):
            continue
        if literal.is_phrase or is_list_of_synonyms(literal):
            continue
        found.setdefault(literal.text.strip("\n"), str(literal.path))
    return found


def is_list_of_synonyms(literal):
    """The second of a row: names that other programs use."""
    return "Synonyms" in literal.calls and re.fullmatch(r"[a-z\d][a-z\d \-]*", literal.text) is not None


@functools.cache
def all_texts(root):
    """Every text of the sources by which something may be translated: {English: file}."""
    found = {text: "" for text in OF_OTHERS}
    for literal in literals(root):
        for text in (literal.text, literal.text.strip("\n"), *units(literal.text)):
            found.setdefault(text, str(literal.path))
    return found


class Entry:
    def __init__(self, english, chinese="", context=""):
        self.english, self.chinese, self.context = english, chinese, context


def read_po(text):
    """Its entries but the header."""
    entries, entry, field = [], None, None
    for line in text.splitlines():
        if line.startswith("msgctxt "):
            entry = Entry("", context=value_of(line[8:]))
            entries.append(entry)
            field = "context"
        elif line.startswith("msgid "):
            if field != "context":
                entry = Entry("")
                entries.append(entry)
            entry.english, field = value_of(line[6:]), "english"
        elif line.startswith("msgstr "):
            entry.chinese, field = value_of(line[7:]), "chinese"
        elif line.startswith('"'):
            setattr(entry, field, getattr(entry, field) + value_of(line))
    return [entry for entry in entries if entry.english]


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t") + '"'


def field(name, text):
    if "\n" not in text.rstrip("\n"):
        return f"{name} {quoted(text)}\n"
    return f'{name} ""\n' + "".join(f"{quoted(line)}\n" for line in text.splitlines(keepends=True))


HEADER = """# SPDX-License-Identifier: Apache-2.0
# What the command says, in Chinese. docs/adding.md says how to add a text; tools/make_texts.py checks this file.
msgid ""
msgstr ""
"Language: zh_CN\\n"
"MIME-Version: 1.0\\n"
"Content-Type: text/plain; charset=UTF-8\\n"
"Content-Transfer-Encoding: 8bit\\n"
"""


def write_po(entries, root):
    """In the order of the sources, each below the file that says it."""
    where, order = all_texts(root), {}
    for number, text in enumerate(where):
        order[text] = number
    text, last = HEADER, None
    for entry in sorted(entries, key=lambda one: (one.context, where.get(one.english, ""), order.get(one.english, 0))):
        path = where.get(entry.english, "")
        text += "\n" + (f"#: {path}\n" if path and path != last else "")
        last = path
        text += field("msgctxt", entry.context) if entry.context else ""
        text += field("msgid", entry.english) + field("msgstr", entry.chinese)
    return text


PLACE = re.compile(r"\{\{|\}\}|\{(\d*)(?::(?:[^{}]|\{\})*)?\}")


def places(text):
    """The numbers of the arguments that a format string shows, and those that are endings of words."""
    shown, endings, number = set(), set(), 0
    for match in PLACE.finditer(text):
        if match.group(1) is None:
            continue
        argument = int(match.group(1)) if match.group(1) else number
        number += 1
        shown.add(argument)
        if text[:match.start()][-1:].isalpha():
            endings.add(argument)
    return shown, endings


# What stays as it is in any language: options, variables, and names of files.
NAMES = re.compile(r"(?<![\w-])--[a-z][a-z\d-]*|\bFOVEA_[A-Z]+\b|\b[\w-]+\.(?:json|jsonl|safetensors|npz|toml|txt|html|"
                   r"svg|model|gguf|spm|csv|tsv|vec)\b")


def problems_of(entry):
    """What is wrong with one translation."""
    english, endings = places(entry.english)
    chinese, _ = places(entry.chinese)
    if chinese - english or english - endings - chinese:
        yield f"places {sorted(chinese)}, expected {sorted(english - endings)}"
    missing = set(NAMES.findall(entry.english)) - set(NAMES.findall(entry.chinese))
    more = set(NAMES.findall(entry.chinese)) - set(NAMES.findall(entry.english))
    if missing or more:
        yield f"names that are missing: {sorted(missing)}, or too many: {sorted(more)}"
    if re.search(r"[\u4e00-\u9fff] ?[,;?!](?=\s|$)|[\u4e00-\u9fff]\.$", entry.chinese):
        yield "punctuation behind Chinese is full-width"
    if entry.chinese.endswith(" ") and not entry.english.endswith(" "):
        yield "ends with a blank"
    if entry.context not in ("", "word"):
        yield f"the context {entry.context} is not known"


def check(root):
    if not (root / PO).is_file():
        return []
    entries = read_po((root / PO).read_text(encoding="utf-8"))
    problems, seen = [], {}
    known = all_texts(root)
    for entry in entries:
        name = f"{PO}: {entry.english[:70]!r}"
        if (entry.context, entry.english) in seen:
            problems.append(f"{name}: is there twice")
        seen[entry.context, entry.english] = entry.chinese
        if entry.english not in known and entry.context == "":
            problems.append(f"{name}: no source says this; drop it by tools/make_texts.py --write")
        if not entry.chinese:
            problems.append(f"{name}: has no translation")
            continue
        problems += [f"{name}: {what}" for what in problems_of(entry)]
    for text, path in required(root).items():
        if ("", text) not in seen:
            problems.append(f"{path}: {text[:90]!r} is not in {PO}; add it by tools/make_texts.py --write")
    if write_po(entries, root) != (root / PO).read_text(encoding="utf-8"):
        problems.append(f"{PO}: is not as tools/make_texts.py --write orders it")
    return problems


def update(root):
    entries = read_po((root / PO).read_text(encoding="utf-8")) if (root / PO).is_file() else []
    known, have = all_texts(root), {entry.english for entry in entries if not entry.context}
    entries = [entry for entry in entries if entry.context or entry.english in known]
    entries += [Entry(text) for text in required(root) if text not in have]
    (root / PO).write_text(write_po(entries, root), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", nargs="?", type=pathlib.Path, default=sources.ROOT)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--missing", action="store_true")
    arguments = parser.parse_args()
    root = arguments.root
    if arguments.missing:
        have = {entry.english for entry in read_po((root / PO).read_text(encoding="utf-8")) if entry.chinese}
        print("\n".join(repr(text) for text in required(root) if text not in have))
        return 0
    if arguments.write:
        update(root)
        return 0
    return sources.report("texts", check(root))


if __name__ == "__main__":
    sys.exit(main())

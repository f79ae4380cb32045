#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks sizes: a file has at most 800 lines, a function at most 80 lines and 6 parameters.

What is larger stands below with its reason; a reason that is no longer needed is an error, too.
"""

import argparse
import ast
import pathlib
import sys
from dataclasses import dataclass

import sources

FILE_LINES = 800
FUNCTION_LINES = 80
PARAMETERS = 6

# path: reason
LONG_FILES = {}
# path:function: reason
LONG_FUNCTIONS = {}
MANY_PARAMETERS = {
    "tests/faults/failing_malloc.cc:__libc_start_main": "it is glibc's",
    "python/fovea/torch/_sdpa.py:scaled_dot_product_attention": "it is torch's",
    "python/fovea/torch/_block_mask.py:create_block_mask": "it is torch's",
    "python/fovea/torch/_flex.py:flex_attention": "it is torch's",
    "python/fovea/torch/_flex.py:flex_plan": "it takes what flex_attention takes",
    "python/fovea/torch/_varlen.py:varlen_attn": "it is torch's",
    "python/fovea/transformers/_attention.py:attention_forward": "it is transformers'",
    "python/fovea/transformers/_mask.py:make_mask": "it is transformers'",
    "python/fovea/torch/_op.py:_sdpa_op": "torch.library takes no structs",
}

NO_FUNCTION = {"if", "for", "while", "switch", "catch", "return", "alignas", "decltype", "noexcept",
               "requires", "static_assert", "sizeof", "__attribute__", "throw", "co_return", "explicit"}
TYPES = {"class", "struct", "union", "enum"}
CLOSING = {"(": ")", "[": "]", "{": "}"}


@dataclass
class Function:
    name: str
    line: int
    lines: int  # 0: a declaration
    parameters: int


def closing(stream, start):
    """The place of the bracket that closes the one at `start`."""
    depth = 0
    for i in range(start, len(stream)):
        if stream[i][0] in CLOSING:
            depth += 1
        elif stream[i][0] in CLOSING.values():
            depth -= 1
            if depth == 0:
                return i
    return len(stream) - 1


def count_parameters(stream):
    """How many parameters stand between the parentheses."""
    words = [token for token, _ in stream]
    if not words or words == ["void"]:
        return 0
    commas = depth = angles = 0
    for i, word in enumerate(words):
        if word in CLOSING:
            depth += 1
        elif word in CLOSING.values():
            depth -= 1
        elif word == "<" and i and (words[i - 1][0].isalpha() or words[i - 1][0] == "_"):
            angles += 1
        elif word == ">" and angles:
            angles -= 1
        elif word == "," and depth == 0 and angles == 0:
            commas += 1
    return commas + 1


def signature(header):
    """(name, parameters) of the function that a header declares, or None."""
    i = 0
    while i < len(header):
        word = header[i][0]
        if word == "=" and not (i and header[i - 1][0] == "operator"):
            return None  # a variable and its value
        if word in ("[", "{"):
            i = closing(header, i)
        elif word == "(":
            end = closing(header, i)
            before = header[i - 1][0] if i else ""
            if before == "operator":  # operator()(...)
                i = end
            elif before not in NO_FUNCTION and i and (before[0].isalnum() or before[0] == "_"
                                                      or "operator" in [w for w, _ in header[:i]]):
                return before, count_parameters(header[i + 1:end])
            else:
                i = end
        i += 1
    return None


def starts_body(header):
    """Whether the brace after this header of a function opens its body, not a member's value."""
    words = [word for word, _ in header]
    depth = 0
    for i, word in enumerate(words):
        depth += word in CLOSING
        depth -= word in CLOSING.values()
        if word == ":" and depth == 0 and i and ")" in words[:i]:
            return words[-1] in (")", "}")  # after the members' values
    return True


def lambdas(stream):
    """The lambdas of a body that have parameters, as functions without lines."""
    for i in range(len(stream) - 1):
        if stream[i][0] == "]" and stream[i + 1][0] == "(":
            end = closing(stream, i + 1)
            if end + 1 < len(stream) and stream[end + 1][0] in ("{", "->", "mutable", "noexcept"):
                yield Function("lambda", stream[i][1], 0, count_parameters(stream[i + 2:end]))


def cpp_functions(text):
    """Every function that a C++ text declares or defines."""
    stream = list(sources.tokens(text))
    found, header, i = [], [], 0
    while i < len(stream):
        word, line = stream[i]
        if word == ";" or word == "}" or (word == ":" and header and header[-1][0] in
                                          ("public", "private", "protected")):
            declared = signature(header) if word == ";" else None
            if declared:
                found.append(Function(declared[0], header[0][1], 0, declared[1]))
            header = []
        elif word == "{":
            words = [w for w, _ in header]
            declared = signature(header)
            if declared and not TYPES.intersection(words[:1]) and not starts_body(header):
                end = closing(stream, i)
                header += stream[i:end + 1]
                i = end
            elif declared and "namespace" not in words:
                end = closing(stream, i)
                first = header[0][1]
                found.append(Function(declared[0], first, stream[end][1] - first + 1, declared[1]))
                found += lambdas(stream[i:end])
                header, i = [], end
            elif "namespace" in words or "extern" in words or (TYPES.intersection(words) and
                                                              "=" not in words):
                header = []  # look inside
            else:
                end = closing(stream, i)
                header += stream[i:end + 1]
                i = end
        elif word in ("(", "["):
            end = closing(stream, i)
            header += stream[i:end + 1]
            i = end
        else:
            header.append((word, line))
        i += 1
    return found


def python_functions(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            arguments = node.args
            count = len(arguments.posonlyargs + arguments.args + arguments.kwonlyargs)
            count -= bool(arguments.args and arguments.args[0].arg in ("self", "cls"))
            yield Function(node.name, node.lineno, node.end_lineno - node.lineno + 1, count)


class Sizes:
    def __init__(self, long_files, long_functions, many_parameters):
        self.reasons = {"file": long_files, "function": long_functions, "call": many_parameters}
        self.used = set()
        self.problems = []

    def limit(self, kind, key, where, problem):
        if key in self.reasons[kind]:
            self.used.add((kind, key))
        else:
            self.problems.append(f"{where}: {problem}")

    def check(self, path, text):
        lines = text.count("\n")
        if lines > FILE_LINES:
            self.limit("file", path, path, f"{lines} lines; at most {FILE_LINES}")
        read = python_functions if path.endswith(".py") else cpp_functions
        for f in read(text):
            key, where = f"{path}:{f.name}", f"{path}:{f.line}: {f.name}"
            if f.lines > FUNCTION_LINES:
                self.limit("function", key, where, f"{f.lines} lines; at most {FUNCTION_LINES}")
            if f.parameters > PARAMETERS:
                self.limit("call", key, where, f"{f.parameters} parameters; at most {PARAMETERS}")

    def finish(self):
        for kind, reasons in self.reasons.items():
            for key, reason in reasons.items():
                if (kind, key) not in self.used:
                    self.problems.append(f"{key}: is within the limits now: drop its reason")
                elif not reason:
                    self.problems.append(f"{key}: says no reason")
        return self.problems


def check(root):
    sizes = Sizes(LONG_FILES, LONG_FUNCTIONS, MANY_PARAMETERS)
    for path in sources.files(root):
        if path.suffix in (*sources.CPP, ".py"):
            sizes.check(path.as_posix(), (root / path).read_text())
    return sizes.finish()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", nargs="?", type=pathlib.Path, default=sources.ROOT)
    return sources.report("sizes", check(parser.parse_args().root))


if __name__ == "__main__":
    sys.exit(main())

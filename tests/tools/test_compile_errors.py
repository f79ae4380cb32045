#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the compiler says of programs that cannot be: its first error tells what to write instead."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMPILER = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
OF = "fovea/attention/lambda/of.h"
TRACE = "fovea/attention/lambda/trace.h"

# What is written, the header that it needs, and words of the first error.
CASES = {
    "a function of std:: on a score": (
        "auto b = bias::of<float>([](auto s) { return 30 * std::tanh(s / 30); });", OF, "write tanh(s)"),
    "a score that is a float": (
        "auto b = bias::of<float>([](float s) { return 2 * s; });", OF, "take the score as `auto s`"),
    "a lambda without the type of its scores": (
        "auto b = bias::of([](auto s) { return 2 * s; });", OF, "name the type of the scores: bias::of<float>"),
    "a function of std:: on a traced score": (
        "auto b = bias::traced<float>({}, [](TracedNumber s, const TracedPlace&) -> TracedNumber "
        "{ return 30 * std::tanh(s / 30); });", TRACE, "write tanh(s)"),
    "a branch on a traced score": (
        "auto b = bias::traced<float>({}, [](TracedNumber s, const TracedPlace&) -> TracedNumber "
        "{ if (s > 0) return s; return 0; });", TRACE, "select(s > 0, a, b)"),
    "a branch on a traced place": (
        "auto m = mask::traced({}, [](const TracedPlace& at) { return at.i == at.j ? 1 : 0; });", TRACE,
        "select(s > 0, a, b)"),
    "offsets of another type": (
        "std::vector<long> offsets; Packed packed{offsets, offsets};", "fovea/attention/attention.h",
        "lengths and offsets are std::int32_t"),
}
MOST_LINES = 25


@unittest.skipUnless(COMPILER, "there is no C++ compiler")
class CompileErrors(unittest.TestCase):
    def test_the_first_error_says_what_to_write(self):
        for name, (words, header, expected) in CASES.items():
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                source = pathlib.Path(folder) / "program.cc"
                source.write_text(f'#include <cmath>\n#include <vector>\n#include "{header}"\n'
                                  f"using namespace fovea;\n{words}\n")
                done = subprocess.run([COMPILER, "-std=c++20", "-fsyntax-only", f"-I{ROOT}", source],
                                      capture_output=True, text=True)
                self.assertNotEqual(done.returncode, 0)
                errors = re.findall(r"error: (.*)", done.stderr)
                self.assertIn(expected, errors[0])
                self.assertEqual(len(errors), 1, done.stderr)
                self.assertLessEqual(len(done.stderr.splitlines()), MOST_LINES, done.stderr)


if __name__ == "__main__":
    unittest.main()

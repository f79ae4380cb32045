# SPDX-License-Identifier: Apache-2.0
"""What type checkers and help() say of keywords and results."""

import importlib.util
import pathlib
import pydoc
import re
import subprocess
import sys
import tempfile
import unittest

import support

import fovea
from fovea import _fovea, _options, _parts, _traced_functions

CALLS = """
import numpy as np
import fovea

x = np.zeros((1, 2, 1, 4))
attended = fovea.attend(x, x, x, causal=True, window=(4, 0), slopes=np.ones(1), observe="entropy", softcap=np.float32(3))
fovea.attend(x, x, x, causal="top-left", window=np.zeros((1, 2), int), scale=0.5, dropout=None, threads=1)
reveal_type(attended.o)
reveal_type(attended.entropy)
reveal_type(attended.backward(x)["dq"])
reveal_type(fovea.attention(x, x, x))
model = fovea.LanguageModel.train("a.txt", "m", layers=2, stop_after="20u", valid=["b.txt"], report=True)
reveal_type(model.generate("a", max_tokens=3))
reveal_type(model.logits([1]))
reveal_type(model.weights()["wte"])
classifier = fovea.Classifier(folds=3).fit(["a", "b"], [0, 1], verbose=True)
reveal_type(classifier.score(["a"], [0]))
fovea.Classifier(fold=3)  # wrong
fovea.Classifier.train("a.tsv", "m", multi_label="yes")  # wrong
fovea.attend(x, x, x, casual=True)  # wrong
fovea.attention(x, x, x, casual=True)  # wrong
fovea.attend(x, x, x, causal="sideways")  # wrong
fovea.attend(x, x, x, softcap="much")  # wrong
attended.entropi  # wrong
model.generate("a", max_token=3)  # wrong
model.stream("a", greedy="yes")  # wrong
fovea.LanguageModel.train("a.txt", "m", lairs=2)  # wrong
fovea.LanguageModel.train("a.txt", "m", layers="two")  # wrong
"""
ARRAY = re.compile(r"ndarray\[")
REVEALED = [ARRAY] * 4 + [re.compile(r'"(builtins\.)?str"'), *[re.compile(r"ndarray\[.*(float32|_32Bit)")] * 2,
            re.compile(r'"(builtins\.)?float"')]
TORCH = """
import torch
import fovea.torch

x = torch.zeros(1, 2, 1, 4)
reveal_type(fovea.torch.attend(x, x, x, causal=True).lse)
fovea.torch.attend(x, x, x, casual=True)  # wrong
fovea.torch.attention(x, x, x, casual=True)  # wrong
fovea.torch.attend(x, x, x).entropi  # wrong
"""


@unittest.skipUnless(importlib.util.find_spec("mypy"), "mypy is not installed")
class TypesTest(unittest.TestCase):
    def check(self, program, revealed):
        """Errors are in the lines that say so, and nowhere else."""
        import mypy.api

        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "program.py"
            file.write_text(program, encoding="utf-8")
            said, errors, _ = mypy.api.run(
                ["--strict", "--config-file", str(support.ROOT / "pyproject.toml"), "--no-pretty",
                 "--cache-dir", str(support.ROOT / "build/python/mypy"), str(file)])
        self.assertEqual(errors, "")
        found = {int(line) for line in re.findall(r"program\.py:(\d+): error", said)}
        wrong = {n for n, line in enumerate(program.splitlines(), 1) if "# wrong" in line}
        self.assertEqual(found, wrong, said)
        types = re.findall(r"Revealed type is (.*)", said)
        self.assertEqual(len(types), len(revealed), said)
        for got, expected in zip(types, revealed):
            self.assertRegex(got, expected)

    def test_keywords_and_results_of_arrays(self):
        self.check(CALLS, REVEALED)

    @unittest.skipUnless(importlib.util.find_spec("torch"), "PyTorch is not installed")
    def test_keywords_and_results_of_tensors(self):
        self.check(TORCH, [re.compile(r"torch\..*Tensor")])

    def test_the_keywords_are_those_of_the_tables(self):
        spec = importlib.util.spec_from_file_location("keywords", support.ROOT / "tools/make_python_keywords.py")
        tool = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(tool)
        self.assertEqual(tool.FILE.read_text(encoding="utf-8"), tool.text(),
                         "run tools/make_python_keywords.py with the package installed")


@unittest.skipUnless(importlib.util.find_spec("torch"), "PyTorch is not installed")
class ResultsOfTensorsTest(unittest.TestCase):
    def test_they_say_what_they_are(self):
        import torch

        import fovea.torch

        x = torch.zeros(1, 2, 1, 4)
        attended = fovea.torch.attend(x, x, x, window=(1, 0), sink=torch.zeros(1))
        self.assertEqual(repr(attended), "Attended(o: torch.float32 [1, 2, 1, 4], lse: torch.float32 [1, 1, 2]; "
                         "window='1,0', sink=[1])")
        with self.assertRaisesRegex(AttributeError, "it has no entropi$"):
            attended.entropi


class HelpTest(unittest.TestCase):
    def assert_lists(self, function, rows):
        said = pydoc.render_doc(function, renderer=pydoc.plaintext).splitlines()
        for name, expected, _ in rows:
            lines = [line for line in said if line.strip().startswith(name + ": ") and line.endswith(f"({expected})")]
            self.assertEqual(len(lines), 1, (name, expected))

    def test_every_keyword_has_a_line(self):
        rows = _parts.keyword_rows()
        self.assertEqual({name for name, *_ in rows}, {*_parts.options(), *_parts.tensors()})
        self.assertTrue(all(does for _, _, does in rows))
        self.assert_lists(fovea.attend, rows)
        self.assert_lists(fovea.LanguageModel.generate, _fovea.sampling_options())
        self.assert_lists(fovea.LanguageModel.train, _options.training_rows())
        self.assert_lists(fovea.Classifier.train, _options.classifier_rows())
        self.assert_lists(fovea.Classifier.fit, _options.fit_rows())
        self.assert_lists(fovea.Tagger.train, _options.tagger_rows())
        self.assert_lists(fovea.Translator.train, _options.translator_rows())
        self.assert_lists(fovea.Translator.translate, _fovea.translation_options())

    def test_options_of_a_run_say_what_the_command_says(self):
        done = subprocess.run([sys.executable, "-m", "fovea", "train", "lm", "--help"], capture_output=True, check=True,
                              text=True)
        said, rows = " ".join(done.stdout.split()), {name: does for name, _, does in _options.training_rows()}
        for name in ("config", "threads", "overwrite", "report"):
            self.assertIn(rows[name], said)
        self.assertIn("--lang", said)  # there it is the language of all that the command says, here of the page
        self.assertIn("lang", rows)
        self.assertIn(f"--preset {rows['preset'].split('; ')[1]} ", said)

    def test_every_function_of_traced_ones_is_listed(self):
        listed = fovea.captured.__doc__.split("may use")[1].replace(",", " ").split()
        self.assertEqual(set(_traced_functions.FUNCTIONS) - set(listed), set())


if __name__ == "__main__":
    unittest.main()

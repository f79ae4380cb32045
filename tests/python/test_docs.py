# SPDX-License-Identifier: Apache-2.0
"""What docs/python.md and the READMEs show of Python, and examples/python, run."""

import contextlib
import importlib.util
import io
import re
import subprocess
import sys
import unittest

import support

HAS_TORCH = importlib.util.find_spec("torch") is not None
HAS_TRANSFORMERS = HAS_TORCH and importlib.util.find_spec("transformers") is not None


def blocks(page):
    text = (support.ROOT / page).read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


class DocsTest(unittest.TestCase):
    def run_page(self, page):
        names = {}
        shown = blocks(page)
        self.assertTrue(shown, f"{page} shows nothing")
        for block in shown:
            if not HAS_TORCH and "torch" in block:
                print(f"note: {page}: PyTorch is not installed: what needs it is skipped", file=sys.stderr)
                return
            if not HAS_TRANSFORMERS and "transformers" in block:
                print(f"note: {page}: transformers is not installed: what needs it is skipped", file=sys.stderr)
                continue
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(block, page, "exec"), names)

    def test_python_page(self):
        self.run_page("docs/python.md")

    def test_readmes(self):
        self.run_page("README.md")
        self.assertEqual([re.sub(r"#.*", "", block) for block in blocks("README.md")],
                         [re.sub(r"#.*", "", block) for block in blocks("README.zh-CN.md")])

    def test_examples(self):
        examples = sorted((support.ROOT / "examples/python").glob("*.py"))
        self.assertTrue(examples)
        for example in examples:
            if not HAS_TORCH and "import torch" in example.read_text():
                print(f"note: {example.name}: PyTorch is not installed: skipped", file=sys.stderr)
                continue
            done = subprocess.run([sys.executable, example], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_every_option_and_tensor_is_on_the_pages_of_attention(self):
        from fovea import _fovea

        pages = ("docs/commands/attention.md", "docs/attention.md")  # the second has the tensors of parts
        page = "".join((support.ROOT / name).read_text(encoding="utf-8") for name in pages)
        for name, _, _ in _fovea.attention_options():
            self.assertIn(f"--{name.replace('_', '-')}", page)
        for name, *_ in _fovea.attention_tensors():
            self.assertIn(f"`{name}`", page)


if __name__ == "__main__":
    unittest.main()

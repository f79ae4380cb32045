# SPDX-License-Identifier: Apache-2.0
"""What docs/python.md and the READMEs show of Python, and examples/python, run."""

import importlib.util
import re
import subprocess
import sys
import unittest

import support

HAS_TORCH = importlib.util.find_spec("torch") is not None


def blocks(page):
    text = (support.ROOT / page).read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


class DocsTest(unittest.TestCase):
    def run_page(self, page):
        support.run_page(self, page)

    def test_python_page(self):
        self.run_page("docs/python.md")

    def test_readmes(self):
        self.run_page("README.md")
        self.assertEqual([re.sub(r"#.*", "", block) for block in blocks("README.md")],
                         [re.sub(r"#.*", "", block) for block in blocks("README.zh-CN.md")])

    def test_articles(self):
        """test_articles.py runs the English pages, where PyTorch is installed; the Chinese ones have the same code."""
        pages = sorted((support.ROOT / "docs/articles").glob("*.zh-CN.md"))
        self.assertEqual(len(pages), 7)
        for page in pages:
            english = page.with_name(page.name.replace(".zh-CN", ""))
            if not HAS_TORCH and blocks(english):
                self.run_page(english)  # up to what needs PyTorch
            with self.subTest(page=page.name):
                self.assertEqual([re.sub(r" *#.*", "", block) for block in blocks(page)],
                                 [re.sub(r" *#.*", "", block) for block in blocks(english)])

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

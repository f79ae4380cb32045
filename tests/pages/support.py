# SPDX-License-Identifier: Apache-2.0
"""What tests of pages share: one browser for a program, the checks that every page must pass."""

import array
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import chromium

FOVEA = os.environ.get("FOVEA", "build/release/cli/fovea")
PAGES = os.environ.get("FOVEA_TEST_PAGES", "build/release/tests/fovea_test_pages")
CONTRAST = (pathlib.Path(__file__).parent / "contrast.js").read_text()


def floats(path):
    values = array.array("f")
    values.frombytes(pathlib.Path(path).read_bytes())
    return values


class PageTest(unittest.TestCase):
    """Skips without Chromium, unless CI is set: there it must be (tools/install_dependencies.sh test)."""

    @classmethod
    def setUpClass(cls):
        if chromium.find() is None:
            if os.environ.get("CI"):
                raise RuntimeError("there is no chromium: run tools/install_dependencies.sh test")
            raise unittest.SkipTest("there is no chromium: tools/install_dependencies.sh test installs it")
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="fovea-pages-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.browser = chromium.Browser()
        cls.addClassCleanup(cls.browser.close)
        cls.page = chromium.Page(cls.browser)

    def setUp(self):
        self.page.media()
        self.page.size(1280, 900)

    @staticmethod
    def make_pages(*words):
        subprocess.run([PAGES, *map(str, words)], check=True, timeout=120)

    def assert_sound(self, path):
        """Opens a page: no problem in the console, no request but for the file itself."""
        seconds = self.page.open(path)
        self.assertEqual(self.page.problems(), [])
        requests = [url for url in self.page.requests() if not url.startswith("data:")]
        self.assertEqual(requests, [pathlib.Path(path).resolve().as_uri()])
        return seconds

    def assert_accessible(self, least):
        """Every control has a name and Tab reaches it; every text stands out in both schemes."""
        named = [(role, name) for role, name in self.page.named() if role != "RootWebArea"]
        self.assertEqual([role for role, name in named if not name.strip()], [])
        self.assertGreaterEqual(len(named), least, named)
        controls = self.page.run("""(() => {
          const all = document.querySelectorAll('button, select, input, a[href], summary, [tabindex]');
          window.controls = Array.from(all).filter(c => c.checkVisibility() && c.tabIndex >= 0);
          document.activeElement.blur();
          return window.controls.length; })()""")
        reached = set()
        for _ in range(controls + 2):
            self.page.press("Tab")
            reached.add(self.page.run("window.controls.indexOf(document.activeElement)"))
        self.assertEqual(set(range(controls)) - reached, set(), "Tab does not reach these controls")
        for scheme in ("light", "dark"):
            self.page.media(scheme)
            contrast = self.page.run(CONTRAST)
            self.assertGreater(contrast["texts"], 10)
            self.assertEqual(contrast["found"], [], scheme)
        self.page.media()

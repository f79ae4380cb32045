# SPDX-License-Identifier: Apache-2.0
"""The course with the package that is installed: the notebooks' cells in their order, and the programs."""

import contextlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import support

sys.path.append(str(support.ROOT / "tools"))
import make_lessons  # noqa: E402

HAS_NBCLIENT = support.has("nbclient") and support.has("ipykernel")


class Lessons(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.folder = pathlib.Path(place.name, "work")
        self.folder.mkdir()
        path = pathlib.Path(place.name, "bin")
        path.mkdir()
        (path / "fovea").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m fovea "$@"\n')
        (path / "fovea").chmod(0o755)
        before = os.environ["PATH"]
        os.environ["PATH"] = f"{path}:{before}"
        self.addCleanup(os.environ.__setitem__, "PATH", before)

    def results_of(self, cells):
        """What each cell of code prints, executed in order, as Jupyter does."""
        names = {}
        for cell in cells:
            code = "".join(cell["source"])
            if code.startswith("%%sh -e\n"):
                done = subprocess.run(["sh", "-e", "-c", code.split("\n", 1)[1]], stdin=subprocess.DEVNULL, text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
                self.assertEqual(done.returncode, 0, f"{code}\n{done.stdout}")
                yield done.stdout
                continue
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(code, "cell", "exec"), names)
            yield out.getvalue()

    def results_of_jupyter(self, path):
        import nbclient
        import nbformat

        book = nbformat.read(path, as_version=4)
        nbclient.NotebookClient(book, timeout=300, kernel_name="python3").execute(cwd=str(self.folder))
        for cell in book.cells:
            if cell.cell_type == "code":
                yield "".join(out["text"] for out in cell.outputs if out["output_type"] == "stream")

    def check(self, chapter):
        path = support.ROOT / chapter.made("ipynb")
        if HAS_NBCLIENT:
            results = self.results_of_jupyter(path)
        else:
            cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
            results = self.results_of(cell for cell in cells if cell["cell_type"] == "code")
        for block, printed in zip((block for block in chapter.blocks if block.kind), results, strict=True):
            if block.prints is not None and not (HAS_NBCLIENT and block.kind == "sh"):  # where stderr comes apart
                self.assertEqual(printed, block.prints, block.text)
        for picture in self.folder.glob(f"{chapter.number:02}-*.svg"):
            kept = support.ROOT / make_lessons.CHAPTERS / "images" / picture.name
            if kept.is_file():
                self.assertEqual(picture.read_text(encoding="utf-8"), kept.read_text(encoding="utf-8"), picture.name)

    def test_cells_of_notebooks_print_what_the_pages_say_and_programs_run(self):
        if not HAS_NBCLIENT:
            print("note: nbclient and ipykernel are not installed: cells are executed without Jupyter", file=sys.stderr)
        for chapter in make_lessons.chapters():
            with self.subTest(chapter=chapter.name), support.working_in(self.folder):
                self.check(chapter)
                done = subprocess.run([sys.executable, support.ROOT / chapter.made("py")], capture_output=True, text=True,
                                      check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
                wanted = [block.prints for block in chapter.code("python") if block.prints]
                self.assertTrue(all(prints in done.stdout for prints in wanted))

    def test_every_picture_is_drawn_by_its_chapter(self):
        code = "".join(block.text for chapter in make_lessons.chapters() for block in chapter.blocks if block.kind)
        for picture in (support.ROOT / make_lessons.CHAPTERS / "images").iterdir():
            self.assertIn(picture.name.replace("-measured.svg", ".svg"), code)


if __name__ == "__main__":
    unittest.main()

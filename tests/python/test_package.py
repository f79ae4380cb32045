# SPDX-License-Identifier: Apache-2.0
"""The package: what it holds, what it imports, its command."""

import importlib.metadata
import importlib.util
import pathlib
import subprocess
import sys
import unittest

import support

import fovea

FOLDER = pathlib.Path(fovea.__file__).parent


class PackageTest(unittest.TestCase):
    def test_import_loads_neither_numpy_nor_torch(self):
        done = support.python("import fovea, sys; print('numpy' in sys.modules, 'torch' in sys.modules)")
        self.assertEqual(done.stdout, "False False\n", done.stderr)

    def test_it_holds_types_and_the_command(self):
        for name in ("py.typed", "_fovea.abi3.so", "_fovea.pyi", "bin/fovea"):
            self.assertTrue((FOLDER / name).is_file(), name)

    def test_the_extension_links_neither_python_nor_torch_and_finds_its_libraries(self):
        for program in ("_fovea.abi3.so", "bin/fovea"):
            done = subprocess.run(["ldd", FOLDER / program], capture_output=True, text=True, check=True)
            for unwanted in ("libpython", "libtorch", "libc10", "not found"):
                self.assertNotIn(unwanted, done.stdout)
            self.assertIn(str(FOLDER), done.stdout)

    def test_it_needs_numpy_and_the_backend_alone(self):
        needed = importlib.metadata.requires("fovea")
        self.assertEqual([name.split(">")[0].split("<")[0] for name in needed], ["numpy", "nanobind-backend"])

    def test_the_command(self):
        done = support.fovea("--version")
        self.assertEqual((done.returncode, done.stdout), (0, f"fovea {fovea.__version__}\n"))
        self.assertEqual(fovea.__version__, importlib.metadata.version("fovea"))
        self.assertEqual(support.fovea("nonsense").returncode, 2)

    def test_training_does_not_need_the_model_that_needs_it(self):
        text = (FOLDER / "_training.py").read_text(encoding="utf-8")
        self.assertNotIn("_language_model", text)

    def test_the_wheel_is_small(self):
        for wheel in (support.ROOT / "dist").glob("fovea-*.whl"):
            self.assertLess(wheel.stat().st_size, 12e6)
            self.assertIn("-cp310-abi3-", wheel.name)

    def test_the_wheel_uses_the_stable_interface_alone(self):
        if not importlib.util.find_spec("abi3audit"):
            self.skipTest("abi3audit is not installed")
        for wheel in (support.ROOT / "dist").glob("fovea-*.whl"):
            done = subprocess.run([sys.executable, "-m", "abi3audit", "--strict", wheel], capture_output=True, text=True,
                                  check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class TypesTest(unittest.TestCase):
    def test_mypy_is_content_with_the_package_and_the_examples(self):
        try:
            import mypy.api
        except ImportError:
            self.skipTest("mypy is not installed")
        options = ["--strict", "--config-file", str(support.ROOT / "pyproject.toml"),
                   "--cache-dir", str(support.ROOT / "build/python/mypy")]
        examples = sorted((support.ROOT / "examples/python").glob("*.py"))
        if not importlib.util.find_spec("torch"):
            options += ["--allow-untyped-calls", "--ignore-missing-imports"]
        for what in (["--package", "fovea"], map(str, examples)):
            said, errors, status = mypy.api.run([*options, *what])
            self.assertEqual(status, 0, said + errors)


if __name__ == "__main__":
    unittest.main()

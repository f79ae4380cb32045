# SPDX-License-Identifier: Apache-2.0
"""The conformance kit through `attend` and `backward`, in both precisions."""

import json
import pathlib
import tempfile
import unittest

import numpy as np
import support

import fovea


def run(case, tensors, dtype):
    """What `attend` and `backward` compute of a case, as one table."""
    settings = dict(case["settings"])
    backward = settings.pop("backward", False)
    given = {name: array.astype(dtype) if array.dtype.kind == "f" else array for name, array in tensors.items()}
    do, dlse = given.pop("do", None), given.pop("dlse", None)
    attended = fovea.attend(given.pop("q"), given.pop("k"), given.pop("v"), threads=1, **given, **settings)
    results = {name: getattr(attended, name) for name in dir(attended)
               if isinstance(getattr(attended, name), np.ndarray)}
    return results | (attended.backward(do, dlse) if backward else {})


class ConformanceTest(unittest.TestCase):
    def test_every_case_in_both_precisions(self):
        with tempfile.TemporaryDirectory() as folder:
            kit = pathlib.Path(folder) / "kit"
            written = support.fovea("conformance", "write", kit)
            self.assertEqual(written.returncode, 0, written.stderr)
            cases = json.loads((kit / "conformance.json").read_text())["cases"]
            self.assertGreater(len(cases), 100)
            for case in cases:
                tensors = support.read_safetensors(kit / case["inputs"]["file"])
                expected = support.read_safetensors(kit / case["expected"]["file"])
                for precision, dtype in (("f32", np.float32), ("f64", np.float64)):
                    got = run(case, tensors, dtype)
                    for name, values in expected.items():
                        with self.subTest(case=case["name"], precision=precision, tensor=name):
                            self.assertLessEqual(support.relative_error(got[name], values),
                                                 case["tolerance"][precision])


if __name__ == "__main__":
    unittest.main()

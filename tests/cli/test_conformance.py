# SPDX-License-Identifier: Apache-2.0
"""fovea conformance: the kit, the tool that knows nothing of the library, and what is noticed."""

import contextlib
import io
import json
import shutil
import unittest

from support import CommandTest

import conformance
from tensor_files import Tensor

OPTIONS_OF_COMMAND = ("precision", "reference", "backward", "observe")


def files_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


class KitTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.kit = self.folder / "kit"
        self.succeed("conformance", "write", self.kit)

    def index(self):
        return json.loads((self.kit / conformance.NAME).read_text())

    def keep_cases(self, wanted):
        """Only these cases stay in the kit."""
        kit = self.index()
        for case in kit["cases"]:
            if not wanted(case):
                for file in (case["inputs"], case["expected"]):
                    (self.kit / file["file"]).unlink()
        kit["cases"] = [case for case in kit["cases"] if wanted(case)]
        conformance.write_index(self.kit, kit)

    def change_case(self, name, change):
        kit = self.index()
        change(next(case for case in kit["cases"] if case["name"] == name))
        conformance.write_index(self.kit, kit)

    def change_expected(self, name, change):
        def replace(case):
            tensors = conformance.read_tensors(self.kit, case["expected"])
            change(tensors)
            case["expected"] = conformance.write_tensors(self.kit, case["expected"]["file"], tensors)
        self.change_case(name, replace)

    def differing(self):
        """How many cases the tool says differ."""
        with contextlib.redirect_stdout(io.StringIO()):
            return conformance.check_kit(self.kit)

    def results(self, *words, status=0):
        done = self.run_fovea("conformance", "check", self.kit, "--json", *words)
        self.assertEqual(done.returncode, status, done.stderr.decode())
        return self.last_object(done)


class Kit(KitTest):
    def test_the_same_bytes_every_time(self):
        self.succeed("conformance", "write", self.folder / "other")
        self.assertEqual(files_of(self.kit), files_of(self.folder / "other"))
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["kit", "other", "text.txt"])

    def test_two_implementations_agree_on_every_case(self):
        self.assertEqual(self.differing(), 0)

    def test_a_kit_of_another_implementation_passes(self):
        self.keep_cases(lambda case: not case["name"].endswith(("tiles", "chunks")))
        other = self.folder / "other"
        conformance.write_kit(other, self.kit)
        self.kit = other
        results = self.results()
        self.assertGreater(results["passed"], 120)
        self.assertEqual(results["failed"], 0)

    def test_every_instruction_set_passes(self):
        isas = json.loads(self.succeed("doctor", "--json").stdout)["instruction_sets"]
        for isa in isas:
            with self.subTest(isa=isa):
                results = self.results("--isa", isa, "--threads", "2")
                self.assertEqual(results["isa"], isa)
                self.assertEqual(results["passed"], 2 * results["cases"])
                self.assertEqual(len(results["results"]), 2 * results["cases"])

    def test_one_precision(self):
        for precision in ("f32", "f64"):
            results = self.results("--precision", precision)
            self.assertEqual(results["passed"], results["cases"])
            self.assertEqual({r["precision"] for r in results["results"]}, {precision})

    def test_a_line_for_each_check(self):
        done = self.succeed("conformance", "check", self.kit, "--precision", "f64")
        lines = done.stdout.decode().splitlines()
        cases = self.index()["cases"]
        self.assertEqual([line.split()[2] for line in lines[:-1]], [case["name"] for case in cases])
        self.assertEqual({line.split()[0] for line in lines[:-1]}, {"pass"})
        self.assertIn(f"{len(cases)} checks pass, 0 fail", lines[-1])
        self.assertEqual(done.stderr, b"")

    def test_the_settings_are_the_options_of_the_operator(self):
        for case in self.index()["cases"][::7]:
            words = ["--backward", "--observe", case["settings"]["observe"], "--precision", "f64"]
            for name, value in case["settings"].items():
                if name not in OPTIONS_OF_COMMAND:
                    option = "--" + name.replace("_", "-")
                    words += [option] if value is True else [f"{option}={value}"]
            given, made = self.kit / case["inputs"]["file"], self.folder / "out.safetensors"
            self.succeed("attention", given, "-o", made, "--overwrite", *words)
            expected = conformance.read_tensors(self.kit, case["expected"])
            error, _ = conformance.difference(conformance.read_safetensors(made.read_bytes()), expected)
            self.assertLessEqual(error, case["tolerance"]["f64"], case["name"])


class Differences(KitTest):
    def failed(self, *words):
        results = self.results(*words, status=1)
        failed = [r for r in results["results"] if not r["passed"]]
        self.assertEqual(len(failed), results["failed"])
        return failed

    def test_another_value_fails_and_says_where(self):
        def change(tensors):
            tensors["dk"].set((1, 6, 0, 4), tensors["dk"].at(1, 6, 0, 4) + 1e-5)
        self.change_expected("causal", change)
        failed = self.failed()
        self.assertEqual([(r["name"], r["tensor"], r["place"]) for r in failed],
                         [("causal", "dk", "[1, 6, 0, 4]")] * 2)
        self.assertAlmostEqual(failed[1]["error"], 1e-5, delta=1e-5)
        done = self.run_fovea("conformance", "check", self.kit)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout.decode(), r"FAIL +f64 +causal .* in dk\[1, 6, 0, 4\]")
        self.keep_cases(lambda case: case["name"] in ("plain", "causal"))
        self.assertEqual(self.differing(), 1)

    def test_the_tolerance_is_that_of_the_kit(self):
        self.change_case("plain", lambda case: case["tolerance"].update(f64=0))
        self.assertEqual([(r["name"], r["precision"]) for r in self.failed()], [("plain", "f64")])

    def test_whole_numbers_and_infinities_must_be_equal(self):
        def another_key(tensors):
            tensors["topk_index"].values[0] += 1

        def finite(tensors):
            tensors["lse"].set((0, 0, 0), -1e30)
        self.change_expected("plain", another_key)
        self.change_expected("key-lengths", finite)
        self.assertEqual({(r["name"], r["tensor"], r["error"]) for r in self.failed()},
                         {("plain", "topk_index", None), ("key-lengths", "lse", None)})

    def test_what_is_not_made_fails(self):
        self.change_expected("plain", lambda tensors: tensors.update(dx=Tensor("F64", (1,), [0])))
        self.change_expected("causal", lambda tensors: tensors.update(o=Tensor("F64", (1,), [0])))
        self.change_expected("window", lambda tensors: tensors.clear())
        problems = {r["name"]: r["problem"] for r in self.failed("--precision", "f64")}
        self.assertEqual(set(problems), {"plain", "causal", "window"})
        self.assertIn("dx", problems["plain"])
        self.assertIn("[1]", problems["causal"])
        self.assertIn("nothing", problems["window"])

    def test_what_the_operator_refuses_fails(self):
        self.change_case("sink", lambda case: case["settings"].update(norm="sigmoid"))
        (failed,) = self.failed("--precision", "f32")
        self.assertEqual(failed["name"], "sink")
        self.assertGreater(len(failed["problem"]), 10)


class Damage(KitTest):
    def refused(self, status, *needles):
        self.assert_error(self.run_fovea("conformance", "check", self.kit), status, *needles)

    def test_a_changed_byte_is_noticed_wherever_it_is(self):
        for name in ("plain.in.safetensors", "everything.out.safetensors", conformance.NAME):
            path = self.kit / name
            whole = path.read_bytes()
            for place in (8, len(whole) // 2, len(whole) - 3):
                with self.subTest(file=name, place=place):
                    path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1:])
                    self.refused(3, name)
            path.write_bytes(whole[:-1])
            self.refused(3, name)
            path.write_bytes(whole)
        self.succeed("conformance", "check", self.kit)

    def test_missing_files(self):
        (self.kit / "plain.out.safetensors").unlink()
        self.refused(3, "plain.out.safetensors")
        (self.kit / conformance.NAME).unlink()
        self.refused(3, conformance.NAME)
        shutil.rmtree(self.kit)
        self.refused(3, "kit")

    def test_extra_files(self):
        (self.kit / "more.safetensors").write_bytes(b"")
        self.refused(3, "more.safetensors")

    def test_a_list_that_cannot_be_used(self):
        whole = (self.kit / conformance.NAME).read_bytes()
        for change, needle in [(lambda c: c.update(name="causal"), "twice"),
                               (lambda c: c["settings"].update(windows="1,1"), "windows"),
                               (lambda c: c["settings"].update(causal="left"), "causal"),
                               (lambda c: c["settings"].update(reference=True), "precision"),
                               (lambda c: c["inputs"].update(file="../plain.in.safetensors"), "../plain"),
                               (lambda c: c["inputs"].update(size="many"), "case 1"),
                               (lambda c: c["tolerance"].update(f32=-1), "f32"),
                               (lambda c: c.pop("expected"), "expected")]:
            with self.subTest(needle=needle):
                self.change_case("plain", change)
                self.refused(3, needle)
            (self.kit / conformance.NAME).write_bytes(whole)
        for change in ({"version": 2}, {"kind": "other"}, {"cases": []}):
            conformance.write_index(self.kit, {**self.index(), **change})
            self.refused(3, conformance.NAME)
            (self.kit / conformance.NAME).write_bytes(whole)

    def test_what_is_there_is_not_replaced(self):
        self.assert_error(self.run_fovea("conformance", "write", self.kit), 2, "kit", "exists")
        self.succeed("conformance", "check", self.kit)
        done = self.run_fovea("conformance", "write", self.folder / "text.txt" / "kit")
        self.assert_error(done, 5, "text.txt")

    def test_options(self):
        done = self.run_fovea("conformance", "check", self.kit, "--precision", "f16")
        self.assert_error(done, 2, "--precision")
        self.assert_error(self.run_fovea("conformance", "check", self.kit, "--isa", "mmx"), 2, "mmx")


class Tool(KitTest):
    def test_it_notices_damage_too(self):
        path = self.kit / "plain.in.safetensors"
        path.write_bytes(path.read_bytes()[:-1] + b"?")
        with self.assertRaises(conformance.KitError):
            self.differing()

    def test_inputs_are_those_of_the_formula(self):
        case = self.index()["cases"][0]
        inputs = conformance.read_tensors(self.kit, case["inputs"])
        inputs["q"].values[5] += 0.5
        case["inputs"] = conformance.write_tensors(self.kit, case["inputs"]["file"], inputs)
        conformance.write_index(self.kit, {**self.index(), "cases": [case]})
        self.assertEqual(self.differing(), 1)


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""fovea attention on what cannot be: one error line, one hint, the documented status, no file."""

import random
import struct
import unittest
import zipfile

from attention_support import AttentionTest, normal, problem, whole
from tensor_files import Tensor, npy_bytes, npz_bytes, safetensors_bytes, write


class BadInput(AttentionTest):
    def refused(self, status, tensors, *words, needles=()):
        given, made = self.folder / "in.safetensors", self.folder / "out.npz"
        write(given, tensors)
        done = self.run_fovea("attention", given, "-o", made, *words)
        self.assert_error(done, status, *needles)
        self.assertFalse(made.exists(), "nothing may be written")
        return done

    def test_missing_tensors(self):
        for name in ("q", "k", "v"):
            tensors = problem()
            del tensors[name]
            self.refused(3, tensors, needles=["in.safetensors", f"the tensor {name} is missing"])
        tensors = problem()
        del tensors["do"]
        self.refused(3, tensors, "--backward", needles=["in.safetensors", "the tensor do is missing"])
        self.refused(3, {**problem(), "query_offsets": Tensor("I32", (2,), [0, 5])},
                     needles=["query_offsets is there without key_offsets"])

    def test_results_that_the_file_cannot_hold(self):
        done = self.refused(2, problem(), "--precision", "bf16", needles=["out.npz: npz: o is bfloat16", "numpy has no such type"])
        self.assertIn(b".safetensors", done.stderr)

    def test_unknown_tensors(self):
        done = self.refused(3, {**problem(), "slope": normal(random.Random(1), 4)}, needles=["'slope'"])
        self.assertIn(b"did you mean slopes?", done.stderr)
        done = self.refused(3, {**problem(), "mystery": Tensor("F32", (1,), [0])}, needles=["'mystery'"])
        self.assertIn(b"it takes q, k, v, do,", done.stderr)
        done = self.refused(3, {**problem(), "lse": Tensor("F32", (1,), [0])}, needles=["'lse'"])
        self.assertIn(b"a result", done.stderr)

    def test_hints_are_about_tensors(self):
        done = self.refused(3, {**problem(), "bias": Tensor("F32", (1,) * 7, [0])}, needles=["more than 6 axes"])
        self.assertIn(b"hint: write the file again with at most 100000 tensors of up to 6 axes", done.stderr)

    def test_a_name_is_escaped_once(self):
        self.refused(3, {**problem(), "\x1b[31m": Tensor("F32", (1,), [0])}, needles=["tensor '\\x1b[31m'"])

    def test_shapes(self):
        rng = random.Random(1)
        for name, shape, words in [
                ("q", (2, 5, 24), ["q must be [B, T, H, D]; it is [2, 5, 24]"]),
                ("k", (2, 7, 2, 5), ["k must be", "axis D is 5, and 6 in q"]),
                ("v", (2, 6, 2, 3), ["v must be", "axis S is 6, and 7 in k"]),
                ("do", (2, 5, 4, 4), ["do must be", "axis Dv is 4, and 3 in v"]),
                ("slopes", (3,), ["slopes must be", "axis H is 3, and 4 in q"]),
                ("k", (1, 7, 2, 6), ["k must be", "axis B is 1, and 2 in q"])]:
            with self.subTest(tensor=name, shape=shape):
                self.refused(2, {**problem(), name: normal(rng, *shape)}, needles=["in.safetensors", *words])
        self.refused(2, {**problem(G=1), "keep": whole(rng, 1, 2, 3, 5, 7, dtype="U8")}, needles=["axis H is 3"])
        self.refused(2, problem(H=2, G=4), needles=["in.safetensors", "no multiple of G=4"])

    def test_types(self):
        ints = Tensor("I32", (2, 5, 4, 6), [0] * 240)
        halves = Tensor("F16", (2, 5, 4, 6), [0] * 240)
        self.refused(3, {**problem(), "q": ints}, needles=["q must hold float32"])
        self.refused(3, {**problem(), "q": halves}, needles=["'q' is F16"])
        self.refused(3, {**problem(), "key_lengths": normal(random.Random(1), 2)},
                     needles=["key_lengths must hold int32"])
        self.refused(3, {**problem(), "key_lengths": Tensor("I64", (2,), [1, 2**31])},
                     needles=["key_lengths holds 2147483648"])
        self.refused(3, {**problem(), "keep": Tensor("I32", (1, 1, 1, 7), [1] * 7)},
                     needles=["keep must hold uint8 or bool"])

    def test_numbers_that_make_no_sense(self):
        tensors = problem(B=1)
        offsets = {"query_offsets": Tensor("I32", (2,), [0, 5]), "key_offsets": Tensor("I32", (2,), [0, 7])}
        lengths = {"key_lengths": Tensor("I32", (1,), [7])}
        self.refused(2, {**tensors, **offsets, **lengths}, needles=["offsets or lengths, not both"])
        self.refused(2, {**problem(), **offsets}, needles=["B = 1"])
        for values, words in [([1, 5], "must be 0"), ([0, 6], "end at 6; T is 5"), ([0, 4], "end at 4; T is 5")]:
            bad = {**offsets, "query_offsets": Tensor("I32", (2,), values)}
            self.refused(2, {**tensors, **bad}, needles=["in.safetensors", words])
        self.refused(2, {**tensors, "key_lengths": Tensor("I32", (1,), [-1])}, needles=["key_lengths"])
        self.refused(2, {**tensors, "window": Tensor("I32", (4, 2), [-2] * 8)}, needles=["windows[0]"])

    def test_options(self):
        for words in [["--scale", "nan"], ["--scale", "inf"], ["--scale", "big"], ["--window", "3"],
                      ["--window", "-2,0"], ["--dilation", "0"], ["--strided", "-3"], ["--dropout", "1"],
                      ["--dropout", "nan"], ["--causal=left"], ["--precision", "f16"], ["--isa", "mmx"],
                      ["--threads", "-1"], ["--seed", "-1"], ["--observe", "entrpy"],
                      ["--observe", "topk"], ["--observe", "topk=0"], ["--observe", "rows=3:9"],
                      ["--observe", "max,max"], ["--score", "euclid"], ["--softcap", "-1"], ["--softcap", "nan"]]:
            with self.subTest(words=words):
                self.refused(2, problem(), *words, needles=[] if words[0] == "--isa" else
                             [words[0].split("=")[0]])

    def test_a_score_and_its_tensor_come_together(self):
        w = {"score_w": normal(random.Random(1), 4, 12)}
        self.refused(2, {**problem(), **w}, needles=["score_w is there, and the score is dot"])
        self.refused(3, problem(), "--score", "concat", needles=["score_w is missing"])
        self.refused(3, problem(), "--score", "additive", needles=["score_v is missing"])
        narrow = {"score_w": normal(random.Random(1), 4, 11)}
        self.refused(2, {**problem(), **narrow}, "--score", "concat", needles=["axis 2D is 11, and 12 in q"])

    def test_pairs_that_make_no_sense(self):
        sink = {"sink": normal(random.Random(1), 4)}
        for tensors, words, name in [(sink, ["--norm", "sigmoid"], "sink"),
                                     ({}, ["--norm", "none", "--observe", "entropy"], "entropy"),
                                     ({}, ["--norm", "sigmoid", "--observe", "distance"], "distance")]:
            self.refused(2, {**problem(), **tensors}, *words, needles=[name, "softmax"])

    def test_buckets_that_make_no_sense(self):
        table = {"t5": normal(random.Random(1), 2, 4)}
        self.refused(2, {**problem(), **table}, needles=["t5", "at least 4 buckets"])
        self.refused(2, problem(), "--t5-causal", "--t5-bidirectional", needles=["--t5-causal"])

    def test_relative_positions_that_make_no_sense(self):
        def table(rows, width):
            return normal(random.Random(1), rows, width)
        self.refused(2, {**problem(), "shaw_k": table(4, 6)}, needles=["shaw_k", "4 is not 2s+1 for any s"])
        self.refused(2, {**problem(), "shaw_k": table(5, 3)}, needles=["shaw_k", "axis D is 3, and 6 in q"])
        self.refused(2, {**problem(), "shaw_k": table(5, 6), "shaw_v": table(7, 3)},
                     needles=["shaw_v", "axis 2s+1 is 7, and 5 in shaw_k"])
        self.refused(2, {**problem(), "shaw_k": table(5, 6)}, "--order", "i+j", needles=["--order"])
        concat = {"score_w": normal(random.Random(1), 4, 12), "shaw_k": table(5, 6)}
        self.refused(2, {**problem(), **concat}, "--score", "concat", needles=["shaw_k and --score concat exclude each other"])

    def test_unknown_option(self):
        done = self.refused(2, problem(), "--dilatation", "2", needles=["unknown option '--dilatation'"])
        self.assertIn(b"did you mean --dilation?", done.stderr)

    def test_places(self):
        given = self.folder / "in.npz"
        write(given, problem())
        self.assert_error(self.run_fovea("attention", given), 2, "nowhere to write to")
        self.assert_error(self.run_fovea("attention"), 2)
        self.assert_error(self.run_fovea("attention", given, "-o", self.folder / "out.bin"), 2, "out.bin")
        self.assert_error(self.run_fovea("attention", given, "-o", self.folder / "no" / "out.npz"), 5, "no")
        out = self.folder / "out.npz"
        self.assert_error(self.run_fovea("attention", self.folder / "nowhere.npz", "-o", out), 3, "nowhere.npz")
        self.assert_error(self.run_fovea("attention", self.text, "-o", out), 3, "text.txt")
        self.assert_error(self.run_fovea("attention", self.folder, "-o", out), 3)

    def test_damaged_files(self):
        for kind, data in [("npz", npz_bytes(problem())), ("safetensors", safetensors_bytes(problem()))]:
            given = self.folder / f"in.{kind}"
            for size in (0, 1, 7, 100, len(data) // 2, len(data) - 1):
                given.write_bytes(data[:size])
                done = self.run_fovea("attention", given, "-o", self.folder / "out.npz")
                self.assert_error(done, 3, f"in.{kind}")

    def test_sizes_beyond_counting(self):
        header = b'{"q":{"dtype":"F32","shape":[%d,%d,4,2],"data_offsets":[0,8]}}' % (2**40, 2**40)
        (self.folder / "in.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(8))
        done = self.run_fovea("attention", self.folder / "in.safetensors", "-o", self.folder / "out.npz")
        self.assert_error(done, 3, "in.safetensors", "'q'")
        self.refused(2, {**problem(), "q": Tensor("F64", (2, 2**40, 0, 6), [])},
                     needles=["too many rows of no values"])
        self.refused(6, problem(B=1, T=3 * 10**5, S=3 * 10**5, H=1, G=1, D=1, Dv=1), "--observe", "weights",
                     needles=["weights [1, 1, 300000, 300000]"])

    def test_arrays_of_numpy_that_cannot_be(self):
        def refused(array, *needles):
            with zipfile.ZipFile(self.folder / "in.npz", "w") as archive:
                for name in "qkv":
                    archive.writestr(f"{name}.npy", array)
            done = self.run_fovea("attention", self.folder / "in.npz", "-o", self.folder / "out.npz")
            self.assert_error(done, 3, "in.npz", "'q'", *needles)

        good = npy_bytes(problem()["q"])
        refused(npy_bytes(problem()["q"], fortran=True), "Fortran order")
        refused(good[:-1], "bytes follow its header")
        refused(good.replace(b"<f8", b">f8"), "'>f8'")
        refused(good.replace(b"<f8", b"|O8"), "'|O8'")
        refused(npy_bytes(Tensor("F16", (2,), [1, 2])), "'<f2'")
        refused(b"\x80\x04.", "no array of numpy")


if __name__ == "__main__":
    unittest.main()

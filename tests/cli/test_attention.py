# SPDX-License-Identifier: Apache-2.0
"""fovea attention on files: every tensor and option against the definition in plain Python."""

import math
import random
import re
import unittest
import zipfile
from pathlib import Path

from attention_support import FORWARD, OBSERVED, AttentionTest, normal, problem, whole
from support import CONVERSION, has_products

import attention_definition
from tensor_files import Tensor, npz_bytes, read, write

ISAS = ("scalar", "ssse3", "sse4", "avx2", "avx512", "amx")


def tensors_of_parts(rng):
    """For each tensor beside q, k, v and do: what it is added as."""
    return {
        "query_lengths": {"query_lengths": Tensor("I32", (2,), [5, 3])},
        "key_lengths": {"key_lengths": Tensor("I64", (2,), [0, 4])},
        "segments": {"query_segments": whole(rng, 1, 2, 5), "key_segments": whole(rng, 1, 2, 7)},
        "keep": {"keep": whole(rng, 1, 2, 1, 5, 7, dtype="U8")},
        "drop": {"drop": whole(rng, 1, 1, 4, 1, 7, dtype="BOOL")},
        "window": {"window": Tensor("I32", (4, 2), [0, 0, 2, -1, -1, 1, 3, 1])},
        "slopes": {"slopes": normal(rng, 4)},
        "bias": {"bias": normal(rng, 2, 4, 5, 7)},
        "bias-of-heads": {"bias": normal(rng, 1, 4, 1, 7)},
        "bias-of-rows": {"bias": normal(rng, 2, 1, 5, 7)},
        "t5": {"t5": normal(rng, 8, 4)},
        "sink": {"sink": normal(rng, 4)},
        "shaw": {"shaw_k": normal(rng, 5, 6), "shaw_v": normal(rng, 5, 3)},
        "shaw-values": {"shaw_v": normal(rng, 1, 3)},
    }


OPTIONS_OF_PARTS = {
    "scale": {"scale": -0.75},
    "cosine": {"score": "cosine", "scale": 2.5},
    "rotary-halves": {"rotary": "halves"},
    "rotary-interleaved": {"rotary": "interleaved"},
    "softcap": {"softcap": 1.5},
    "causal": {"causal": True},
    "top-left": {"causal": "top-left"},
    "window-option": {"window": (2, 1)},
    "open-window": {"window": (-1, 0)},
    "dilation": {"dilation": 2},
    "dilated-window": {"dilation": 2, "window": (1, 1)},
    "strided": {"strided": 3},
    "sigmoid": {"norm": "sigmoid"},
    "none": {"norm": "none"},
    "dropout": {"dropout": 0.3, "seed": 123456789012},
}


def types_of(tensors):
    """Of those that hold real numbers."""
    return {tensor.dtype for tensor in tensors.values()} - {"I32", "U8"}


class Results(AttentionTest):
    def parts(self):
        tensors = tensors_of_parts(random.Random(7))
        t5 = {"t5": normal(random.Random(8), 6, 4)}
        shaw = {"shaw_k": normal(random.Random(10), 7, 6), "shaw_v": normal(random.Random(11), 7, 3)}
        w = {"score_w": normal(random.Random(9), 4, 12)}
        v = {"score_v": normal(random.Random(10), 4, 6)}
        return {"concat": (w, {"score": "concat"}), "l2": ({}, {"score": "l2"}),
                "additive": (v, {"score": "additive", "scale": 0.7}),
                "concat-scale": (w, {"score": "concat", "scale": 0.5}), "t5-causal": (t5, {"t5-causal": True, "t5-max-distance": 5}),
                "shaw-j-i": (shaw, {"order": "j-i"}), "shaw-i-j": (shaw, {"order": "i-j"}),
                "t5-bidirectional": (t5, {"t5-bidirectional": True, "t5-max-distance": 4}),
                **{name: (tensors[name], {}) for name in tensors},
                **{name: ({}, options) for name, options in OPTIONS_OF_PARTS.items()}}

    def test_nothing_but_the_operands(self):
        out = self.run_on(problem())
        self.assertEqual(set(out), set(FORWARD))
        self.check(problem())

    def test_every_part_alone(self):
        for name, (tensors, options) in self.parts().items():
            with self.subTest(part=name):
                self.check({**problem(), **tensors}, **options)

    def test_parts_in_pairs(self):
        parts = self.parts()
        for first, second in [("causal", "key_lengths"), ("top-left", "slopes"), ("slopes", "dropout"),
                              ("window", "dilation"), ("keep", "drop"), ("segments", "open-window"),
                              ("strided", "query_lengths"), ("window", "top-left"), ("scale", "dropout"),
                              ("cosine", "rotary-halves"), ("cosine", "softcap"),
                              ("concat", "key_lengths"), ("l2", "causal"), ("l2", "softcap"), ("l2", "rotary-halves"),
                              ("additive", "dropout"), ("additive", "slopes"), ("additive", "key_lengths"), ("rotary-interleaved", "top-left"),
                              ("rotary-halves", "dropout"), ("softcap", "slopes"),
                              ("softcap", "bias"), ("t5", "top-left"), ("bias-of-rows", "query_lengths"),
                              ("t5-causal", "dropout"), ("softcap", "sigmoid"), ("sink", "key_lengths"), ("sink", "dropout"), ("sigmoid", "slopes"),
                              ("none", "dropout"), ("sigmoid", "causal"), ("shaw", "dropout"), ("shaw", "softcap"),
                              ("shaw-j-i", "rotary-halves"), ("shaw", "top-left"), ("shaw", "key_lengths"),
                              ("shaw-j-i", "sigmoid"), ("shaw", "scale")]:
            with self.subTest(first=first, second=second):
                tensors = {**problem(3), **parts[first][0], **parts[second][0]}
                self.check(tensors, **parts[first][1], **parts[second][1])

    def test_packed_sequences(self):
        rng = random.Random(5)
        offsets = {"query_offsets": Tensor("I32", (5,), [0, 3, 3, 8, 9]),
                   "key_offsets": Tensor("I32", (5,), [0, 4, 6, 11, 11])}
        tensors = {**problem(B=1, T=9, S=11), **offsets}
        self.check(tensors)
        self.check({**tensors, "slopes": normal(rng, 4), "bias": normal(rng, 1, 1, 9, 11), "keep": whole(rng, 1, 1, 4, 9, 11, dtype="U8")},
                   causal=True, dropout=0.25)

    def test_sizes(self):
        for sizes in [{"B": 1, "T": 1, "S": 1, "H": 1, "G": 1, "D": 1, "Dv": 1},
                      {"B": 1, "T": 3, "S": 140, "H": 3, "G": 1, "D": 17, "Dv": 33},
                      {"B": 3, "T": 9, "S": 2, "H": 2, "G": 2, "D": 2, "Dv": 5}]:
            with self.subTest(**sizes):
                self.check(problem(**sizes), causal=True)

    def test_no_queries_or_no_keys(self):
        self.assertEqual(self.run_on(problem(T=0))["o"].shape, (2, 0, 4, 3))
        out = self.check(problem(S=0))
        self.assertEqual(set(out["lse"].values), {-math.inf})

    def test_precision(self):
        tensors = problem(dtype="F32")
        out = self.check(tensors, tolerance=2e-6, causal=True)
        self.assertEqual(types_of(out), {"F32"})
        out = self.check(tensors, "--precision", "f64", causal=True)
        self.assertEqual(types_of(out), {"F64"})
        out = self.check(problem(), "--precision", "f32", tolerance=2e-6)
        self.assertEqual(types_of(out), {"F32"})

    def test_bfloat16(self):
        tensors = {**problem(T=70, S=90, D=16, Dv=9), "slopes": normal(random.Random(3), 4)}
        rows = ("o", "dq", "dk", "dv")
        out = self.check(tensors, "--precision", "bf16", names=(*rows, "lse", "entropy"), tolerance=.03, causal=True)
        self.assertEqual({name for name, tensor in out.items() if tensor.dtype == "BF16"}, set(rows))
        self.assertEqual(types_of(out), {"BF16", "F32"})
        # A file of bfloat16 is computed in float32, unless asked.
        rounded = {name: out[name] for name in ("o",)} | {"q": out["dq"], "k": out["dk"], "v": out["dv"]}
        self.assertEqual(types_of(self.run_on({name: rounded[name] for name in "qkv"})), {"F32"})
        given = self.folder / "in.safetensors"
        write(given, {name: rounded[name] for name in "qkv"})
        plan = self.last_object(self.succeed("attention", given, "--precision", "bf16", "--plan", "--json"))
        kernels = {"fused bfloat16", "fused bfloat16 on AMX"}
        self.assertEqual(plan["kernel"] in kernels, has_products(), plan["kernel"])
        for options, said in ((["--isa", "scalar"], CONVERSION), (["--norm", "none"], "and norm none: converted to float32")):
            out = self.folder / "converted.safetensors"
            done = self.succeed("attention", given, "-o", out, "--overwrite", "--precision", "bfloat16", *options)
            if has_products() or "scalar" in options:
                self.assertEqual(done.stderr.decode().count(said), 1, done.stderr)
        same = []
        for threads in (1, 2, 3, 8):
            made = self.folder / f"{threads}.safetensors"
            self.succeed("attention", given, "-o", made, "--precision", "bf16", "--threads", threads)
            same.append(made.read_bytes())
        self.assertEqual(same, same[:1] * 4)
        done = self.run_fovea("conformance", "check", self.folder, "--precision", "bf16")
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"bf16", done.stderr)

    def test_reference(self):
        for name, (tensors, options) in self.parts().items():
            with self.subTest(part=name):
                self.check({**problem(), **tensors}, "--reference", **options)
        out = self.run_on(problem(dtype="F32"), "--reference")
        self.assertEqual(types_of(out), {"F64"})

    def test_every_instruction_set(self):
        for isa in ISAS:
            done = self.run_fovea("doctor", "--json", env={"FOVEA_ISA": isa})
            if done.returncode == 0:
                self.check(problem(dtype="F32"), "--isa", isa, tolerance=2e-6, causal=True)

    def test_threads_change_no_bit(self):
        tensors = problem(T=70, S=150, D=16)
        for words in [(), ("--backward",)]:
            files = []
            for threads in (1, 2, 5):
                self.run_on(tensors, *words, "--threads", threads, causal=True, dropout=0.1)
                files.append((self.folder / "out.safetensors").read_bytes())
            self.assertEqual(len(set(files)), 1)

    def test_the_definition_has_the_parts_of_the_table_and_no_others(self):
        said = self.succeed("attention", "--help").stdout.decode().split("What the tensors of parts do:")[1]
        parts = re.findall(r"^  (\w+) ", said.split("\n\n")[0], re.MULTILINE)
        self.assertEqual(set(parts), attention_definition.PARAMETERS | set(attention_definition.BY_DISTANCE))

    def test_every_observer_alone(self):
        wanted = attention_definition.attention(problem())
        for asked, made in OBSERVED.items():
            out = self.run_on(problem(), "--observe", asked)
            self.assertEqual(set(out), {*FORWARD, *made})
            for name in made:
                self.assert_close(out[name], wanted[name], 1e-12)
        self.assertEqual(self.run_on(problem(), "--observe", "topk=3")["topk_index"].dtype, "I32")
        self.assertEqual(self.run_on(problem(), "--observe", "dropout_keep")["dropout_keep"].dtype, "U8")

    def test_chosen_rows_are_those_of_the_weights(self):
        out = self.run_on(problem(), "--observe", "weights,rows=1:4", causal=True)
        self.assertEqual(out["rows"].shape, (2, 4, 3, 7))
        for b in range(2):
            for h in range(4):
                for i in range(3):
                    self.assertEqual(out["rows"].row(b, h, i), out["weights"].row(b, h, i + 1))

    def test_more_than_there_is_of_the_top(self):
        out = self.run_on(problem(S=2), "--observe", "topk=5")
        self.assertEqual(out["topk_index"].row(0, 0, 0)[2:], [-1] * 3)
        self.assertEqual(out["topk_weight"].row(0, 0, 0)[2:], [0] * 3)

    def test_equal_keys_come_in_their_order(self):
        tensors = problem()
        tensors["q"].values = [0.0] * len(tensors["q"].values)
        out = self.run_on(tensors, "--observe", "topk=3")
        self.assertEqual(out["topk_index"].values, [0, 1, 2] * (2 * 4 * 5))

    def test_lengths_may_be_a_column(self):
        """Published code keeps them as [B, 1]."""
        for name in ("key_lengths", "query_lengths"):
            flat, column = ({**problem(), name: Tensor("I64", shape, [2, 4])} for shape in ((2,), (2, 1)))
            self.assertEqual(self.run_on(flat)["o"].values, self.run_on(column)["o"].values)

    def test_gradients_are_those_of_the_output(self):
        """Central differences of o . do, along one direction for each operand."""
        rng = random.Random(11)
        tensors = {**problem(), "slopes": normal(rng, 4), "key_lengths": Tensor("I32", (2,), [7, 5])}
        options = {"causal": True, "dropout": 0.2}
        gradients = self.run_on(tensors, "--backward", **options)
        step = 1e-5
        for name in ("q", "k", "v", "slopes"):
            direction = normal(rng, *tensors[name].shape)
            losses = []
            for sign in (1, -1):
                moved = Tensor("F64", direction.shape, [x + sign * step * d for x, d in
                                                        zip(tensors[name].values, direction.values)])
                out = self.run_on({**tensors, name: moved}, **options)["o"]
                losses.append(attention_definition.dot(out.values, tensors["do"].values))
            wanted = attention_definition.dot(gradients["d" + name].values, direction.values)
            self.assertAlmostEqual((losses[0] - losses[1]) / (2 * step), wanted, delta=1e-7)


class Files(AttentionTest):
    def test_npz_is_safetensors(self):
        tensors = {**problem(), **tensors_of_parts(random.Random(2))["drop"]}
        one = self.run_on(tensors, "--backward", "--observe", "weights")
        other = self.run_on(tensors, "--backward", "--observe", "weights", kind="npz")
        self.assertEqual(set(one), set(other))
        for name in one:
            self.assertEqual((one[name].dtype, one[name].shape, one[name].values),
                             (other[name].dtype, other[name].shape, other[name].values))

    def test_deflated_members(self):
        (self.folder / "in.npz").write_bytes(npz_bytes(problem(), zipfile.ZIP_DEFLATED))
        self.succeed("attention", self.folder / "in.npz", "-o", self.folder / "out.npz")
        wanted = attention_definition.attention(problem())
        self.assert_close(read(self.folder / "out.npz")["o"], wanted["o"], 1e-12)

    def test_one_format_in_and_another_out(self):
        write(self.folder / "in.npz", problem())
        self.succeed("attention", self.folder / "in.npz", "-o", self.folder / "out.safetensors")
        self.assertEqual(set(read(self.folder / "out.safetensors")), set(FORWARD))

    def test_the_same_call_writes_the_same_bytes(self):
        for kind in ("npz", "safetensors"):
            made = self.folder / f"out.{kind}"
            self.run_on(problem(), "--backward", kind=kind)
            first = made.read_bytes()
            self.run_on(dict(reversed(problem().items())), "--backward", kind=kind)
            self.assertEqual(made.read_bytes(), first)

    def test_what_is_there_is_not_replaced(self):
        write(self.folder / "in.npz", problem())
        made = self.folder / "out.npz"
        made.write_text("mine")
        done = self.run_fovea("attention", self.folder / "in.npz", "-o", made)
        self.assert_error(done, 2, "out.npz", "exists")
        self.assertIn(b"--overwrite", done.stderr)
        self.assertEqual(made.read_text(), "mine")
        self.succeed("attention", self.folder / "in.npz", "-o", made, "--overwrite")
        self.assertEqual(set(read(made)), set(FORWARD))
        done = self.run_fovea("attention", made, "-o", made, "--overwrite")
        self.assert_error(done, 2, "out.npz")


class Words(AttentionTest):
    def test_the_plan_alone_writes_nothing(self):
        given = self.folder / "in.npz"
        write(given, problem(T=300, S=700))
        before = sorted(self.folder.iterdir())
        done = self.succeed("attention", given, "--causal", "--plan")
        self.assertIn("mask            causal\n", done.stdout.decode())
        self.assertIn("\n                ####/.\n", done.stdout.decode())
        plan = self.last_object(self.succeed("attention", given, "--causal", "--plan", "--json"))
        self.assertEqual((plan["kernel"], plan["score"], plan["mask"], plan["bias"]),
                         ("fused float64", "dot", "causal", "none"))
        self.assertLess(plan["tiles_kept"], plan["tiles"])
        self.assertEqual(plan["forward_flops"], plan["kept_scores"] * 2 * (6 + 3))
        self.assertGreater(plan["scratch_bytes"], 0)
        self.assertEqual(sorted(self.folder.iterdir()), before)
        self.assertNotIn("output", plan)

    def test_the_plan_says_what_is_packed_and_dropped(self):
        offsets = Tensor("I32", (4,), [0, 3, 3, 5])
        given = self.folder / "in.npz"
        write(given, {**problem(B=1, T=5, S=5), "query_offsets": offsets, "key_offsets": offsets})
        said = self.succeed("attention", given, "--dropout", "0.25", "--plan").stdout.decode()
        self.assertRegex(said, r"(?m)^dropout +0\.25$")
        self.assertRegex(said, r"(?m)^packed +3 sequences$")
        plan = self.last_object(self.succeed("attention", given, "--dropout", "0.25", "--plan", "--json"))
        self.assertEqual((plan["dropout"], plan["packed_sequences"]), (0.25, 3))

    def test_plan_and_result_in_one_object(self):
        given, made = self.folder / "in.npz", self.folder / "out.npz"
        write(given, problem())
        said = self.last_object(self.succeed("attention", given, "-o", made, "--plan", "--json"))
        self.assertEqual((said["kernel"], said["output"], said["tensors"]),
                         ("fused float64", str(made), ["lse", "o"]))
        self.assertTrue(made.exists())

    def test_words_go_to_stderr(self):
        given, made = self.folder / "in.npz", self.folder / "out.npz"
        write(given, problem())
        done = self.succeed("attention", given, "-o", made)
        self.assertEqual(done.stdout, b"")
        self.assertIn(b"wrote", done.stderr)
        done = self.succeed("attention", given, "-o", made, "--overwrite", "--quiet")
        self.assertEqual(done.stderr, b"")

    def test_help_and_page_list_the_tensors(self):
        said = self.succeed("attention", "--help").stdout.decode().split("Tensors of IN")[1]
        rows = re.findall(r"^  (\w+) +(\[.*\])$", said, re.MULTILINE)
        self.assertGreater(len(rows), 12)
        docs = Path(__file__).resolve().parents[2] / "docs"
        table = (docs / "commands" / "attention.md").read_text().split("## Tensors of IN")[1].split("## Options")[0]
        parts = (docs / "attention.md").read_text().split("## Parts with a tensor")[1].split("\n## ")[0]
        table = table.splitlines() + parts.splitlines()
        for name, axes in rows:
            with self.subTest(tensor=name):
                self.assertTrue(any(f"`{name}`" in line and axes in line for line in table))

    def test_a_bare_causal_leaves_the_next_word_alone(self):
        write(self.folder / "in.npz", problem())
        for words in (["--causal", self.folder / "in.npz"], [self.folder / "in.npz", "--causal"]):
            plan = self.last_object(self.succeed("attention", *words, "--plan", "--json"))
            self.assertEqual(plan["mask"], "causal")

    def test_the_hint_says_how_causal_takes_a_value(self):
        write(self.folder / "in.npz", problem())
        done = self.run_fovea("attention", self.folder / "in.npz", "--causal", "top-left", "--plan")
        self.assert_error(done, 2, "unexpected argument 'top-left'")
        self.assertIn(b"hint: did you mean --causal=top-left?", done.stderr)
        done = self.run_fovea("attention", self.folder / "in.npz", "--causal", "left", "--plan")
        self.assertIn(b"hint: the value of an option stands behind its name", done.stderr)


if __name__ == "__main__":
    unittest.main()

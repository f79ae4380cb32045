#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--precision bf16 and --save-dtype bf16: what they change, and what they must not."""

import json
import shutil
import unittest

from support import CONVERSION, CommandTest, has_products, words
from tag_support import conll, tagged
from test_classify_train import reviews
from translate_support import WORDS, sentences

# A model that learns enough for losses to differ if something is wrong.
ARGS = ["--layers", "2", "--heads", "2", "--width", "64", "--block", "32", "--batch-size", "8", "--warmup", "20",
        "--stop-after", "120u", "--eval-every", "20u", "--save-every", "40u", "--dropout", "0.1", "--threads", "2"]
TIMES = {"seconds", "seconds_left", "tokens_per_second"}


class PrecisionTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.text.write_text(words(lines=2000), encoding="utf-8")

    def run_lm(self, name, *args, **options):
        output = self.folder / name
        done = self.succeed("train", "lm", "--train", self.text, "-o", output, *ARGS, *args, **options)
        return output, done.stderr.decode()

    def records(self, output):
        lines = map(json.loads, (output / "metrics.jsonl").read_text().splitlines())
        return [{k: v for k, v in record.items() if k not in TIMES} for record in lines]

    def valid_losses(self, output):
        return [r["valid_loss"] for r in self.records(output) if r["kind"] == "evaluation"]

    def bits(self, output):
        newest = max((output / "checkpoints").glob("step-??????"))
        return [newest.name, *((newest / f"{name}.safetensors").read_bytes() for name in ("model", "optimizer")),
                (output / "model.safetensors").read_bytes(), self.records(output)]

    def header(self, file):
        text = file.read_bytes()
        return json.loads(text[8:8 + int.from_bytes(text[:8], "little")])

    def dtypes(self, file):
        return {entry["dtype"] for name, entry in self.header(file).items() if name != "__metadata__"}


class Training(PrecisionTest):
    def test_the_loss_stays_near_that_of_float32(self):
        float32, _ = self.run_lm("float32")
        bf16, said = self.run_lm("bf16", "--precision", "bf16")
        self.assertEqual(said.count(CONVERSION), 0 if has_products() else 1)
        pairs = list(zip(self.valid_losses(float32), self.valid_losses(bf16), strict=True))
        self.assertGreaterEqual(len(pairs), 6)
        for was, now in pairs:
            self.assertLess(abs(was - now), 0.01)
        self.assertLess(pairs[-1][1], pairs[0][1] - 0.5)
        self.assertNotEqual(self.bits(float32), self.bits(bf16))
        self.assertEqual(json.loads((bf16 / "config.json").read_text())["recipe"]["precision"], "bf16")

    def test_any_number_of_threads_gives_the_same_bits(self):
        first = None
        for threads in (1, 2, 3, 8):
            output, _ = self.run_lm(f"threads{threads}", "--precision", "bf16", "--threads", threads)
            first = first or self.bits(output)
            self.assertEqual(self.bits(output) == first, True, threads)

    def test_resuming_goes_on_in_it_to_the_bit(self):
        straight, _ = self.run_lm("straight", "--precision", "bf16", "--save-dtype", "bf16")
        resumed = self.folder / "resumed"
        shutil.copytree(straight, resumed)
        shutil.rmtree(resumed / "checkpoints/step-000120")
        done = self.succeed("train", "lm", "--resume", "-o", resumed, "--threads", "1")
        self.assertNotIn("precision", done.stderr.decode().replace(CONVERSION, "").replace("precision bf16:", ""))
        self.assertEqual(self.bits(resumed) == self.bits(straight), True)
        self.assertEqual(self.dtypes(resumed / "model.safetensors"), {"BF16"})

    def test_without_the_products_values_are_converted_and_the_command_says_so_once(self):
        usual, _ = self.run_lm("usual", "--precision", "bf16")
        for isa in ("avx2", "scalar"):
            output, said = self.run_lm(isa, "--precision", "bf16", env={"FOVEA_ISA": isa})
            self.assertEqual(said.count(CONVERSION), 1, said)
            for was, now in zip(self.valid_losses(usual), self.valid_losses(output), strict=True):
                self.assertLess(abs(was - now), 0.01)

    def test_models_of_every_kind_train_in_it(self):
        tags = self.folder / "tags.conll"
        tags.write_text(conll(tagged()))
        texts = self.folder / "texts.tsv"
        texts.write_text("".join(f"{label}\t{text}\n" for label, text in reviews()))
        sides = [self.folder / side for side in ("a.en", "a.de")]
        for n, side in enumerate(sides):
            side.write_text("".join(pair[n] + "\n" for pair in sentences()))
        common = ("--precision", "bf16", "--save-dtype", "bf16", "--progress", "none", "--json", "--stop-after")
        runs = {"classify": ("--train", texts, "--width", "16", *common, "200u"),
                "tag": ("--train", tags, *common, "20e"),
                "translate": ("--source", sides[0], "--target", sides[1], "--width", "32", "--heads", "2",
                              "--encoder-layers", "1", "--decoder-layers", "1", "--min-count", "1", *common, "30u"),
                "lm": ("--train", self.text, "--model", "encoder", "--encoder", "conv3,conv3:dilation=3,lstm,gru",
                       "--width", "31", *common, "20u")}
        for name, args in runs.items():
            with self.subTest(name):
                output = self.folder / name
                result = self.last_object(self.succeed("train", name, *args, "-o", output))
                self.assertGreater(result["steps"], 0)
                self.assertEqual(self.dtypes(output / "model.safetensors"), {"BF16"})
                again = self.folder / f"{name}-3"
                self.succeed("train", name, *args, "-o", again, "--threads", "3")
                self.assertTrue((again / "model.safetensors").read_bytes()
                                == (output / "model.safetensors").read_bytes(), "other bits with 3 threads")
        for name, line in (("classify", "a fine film"), ("tag", "Anna lives"), ("translate", next(iter(WORDS)))):
            for precision in ("float32", "bf16"):
                done = self.succeed(name, self.folder / name, "--precision", precision, stdin=line.encode() + b"\n")
                self.assertTrue(done.stdout)
        score = [self.last_object(self.succeed("eval", self.folder / "classify", "--test", texts, "--json",
                                               "--precision", precision)) for precision in ("float32", "bf16")]
        self.assertNotEqual(score[0], score[1])


class Storing(PrecisionTest):
    def test_a_model_of_bfloat16_is_read_by_every_command(self):
        wide, _ = self.run_lm("wide")
        narrow, _ = self.run_lm("narrow", "--save-dtype", "bf16")
        self.assertEqual(self.dtypes(wide / "model.safetensors"), {"F32"})
        self.assertEqual(self.dtypes(narrow / "model.safetensors"), {"BF16"})
        sizes = [(folder / "model.safetensors").stat().st_size for folder in (wide, narrow)]
        self.assertLess(sizes[1], 0.6 * sizes[0])
        # The weights of checkpoints, from which a run goes on, are those of float32 to the bit.
        self.assertEqual(self.bits(wide)[:3] == self.bits(narrow)[:3], True)
        losses = [self.last_object(self.succeed("eval", folder, "--test", self.text, "--json"))["loss"]
                  for folder in (wide, narrow)]
        self.assertNotEqual(losses[0], losses[1])
        self.assertLess(abs(losses[0] - losses[1]), 0.01)
        self.assertIn("the", self.succeed("generate", narrow, "the", "--max-tokens", "20").stdout.decode())
        self.succeed("inspect", narrow, "--verify")
        self.succeed("explain", narrow, "the cat")

    def test_eval_and_generate_compute_in_it(self):
        model, _ = self.run_lm("model")
        losses = {}
        for precision in ("float32", "bf16"):
            done = self.succeed("eval", model, "--test", self.text, "--json", "--precision", precision)
            losses[precision] = self.last_object(done)["loss"]
            said = self.succeed("generate", model, "the", "--max-tokens", "30", "--greedy", "--precision", precision,
                                env={"FOVEA_ISA": "scalar"})
            self.assertEqual(said.stderr.decode().count(CONVERSION), int(precision == "bf16"))
        self.assertNotEqual(losses["float32"], losses["bf16"])
        self.assertLess(abs(losses["float32"] - losses["bf16"]), 0.01)


class BadInput(PrecisionTest):
    def test_values_that_are_none_are_refused(self):
        for option in ("--precision", "--save-dtype"):
            for value in ("fp16", "BF16", ""):
                done = self.run_fovea("train", "lm", "--train", self.text, "-o", self.folder / "m", option, value)
                self.assert_error(done, 2, option, "float32, bf16")
                self.assertFalse((self.folder / "m").exists())
        done = self.run_fovea("generate", self.folder, "the", "--precision", "half")
        self.assert_error(done, 2, "--precision", "float32, bf16")

    def test_what_others_call_it_is_hinted_at(self):
        done = self.run_fovea("train", "lm", "--train", self.text, "-o", self.folder / "m", "--amp")
        self.assertIn(b"did you mean --precision?", done.stderr)

    def test_both_spellings_of_a_precision_are_read(self):
        for name, value in (("float32", "f32"), ("bf16", "bfloat16")):
            output, _ = self.run_lm(value, "--precision", value, "--save-dtype", value, "--stop-after", "1u")
            recipe = json.loads((output / "config.json").read_text())["recipe"]
            self.assertEqual((recipe["precision"], recipe["save_dtype"]), (name, name))


if __name__ == "__main__":
    unittest.main()

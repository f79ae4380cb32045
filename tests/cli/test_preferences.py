#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Direct preference optimisation (train lm --objective dpo): small models of random weights, and pairs of answers."""

import json
import math
import shutil
import signal
import struct
import time
import unittest

from gguf_support import U32
from test_base import BaseTest, tensors_of

QUESTIONS = ["hello", "who?", "say it", "a b c"]


def pairs(count=12):
    """The answer that begins with "the" is preferred."""
    return [{"prompt": QUESTIONS[n % 4], "chosen": f"the {n % 5}", "rejected": f"no {n % 3}"} for n in range(count)]


class PreferenceTest(BaseTest):
    def setUp(self):
        super().setUp()
        self.base = self.foreign(llama_context_length=(U32, 200))
        self.data = self.lines(pairs())

    def lines(self, rows, name="pairs.jsonl", more=""):
        path = self.folder / name
        path.write_text("".join(json.dumps(row) + "\n" for row in rows) + more)
        return path

    def dpo(self, output, *more, data=None, run=None, **options):
        words = ["train", "lm", "--base", self.base, "--train", data or self.data, "--objective", "dpo", "-o", self.folder / output,
                 "--batch-size", 4, "--sequence-length", 150, "--valid-fraction", 0, "--threads", 2, "--progress", "none",
                 "--lr", "3e-3", "--warmup", 2, "--stop-after", "30u", "--save-every", "10u", *more]
        return (run or self.succeed)(*words, **options)

    def losses(self, output):
        lines = [json.loads(line) for line in (self.folder / output / "metrics.jsonl").read_text().splitlines()]
        return [line["loss"] for line in lines if "loss" in line]

    def bits(self, output):
        return tensors_of(self.folder / output / "model.safetensors")


class Preferences(PreferenceTest):
    def test_prefers_what_was_preferred(self):
        for name, more in (("whole", ()), ("adapters", ("--lora", 4, "--lr", "2e-2"))):
            with self.subTest(name):
                self.dpo(name, *more, "--log-every", 1)
                losses = self.losses(name)
                self.assertAlmostEqual(losses[0], math.log(2), 6)  # the model is still that of the beginning
                self.assertLess(losses[-1], 0.4)
                config = json.loads((self.folder / name / "config.json").read_text())["text"]
                self.assertEqual((config["data"], config["objective"], config["dpo_beta"]), ("chat", "dpo", 0.1))
        self.succeed("report", self.folder / "whole", "-o", self.folder / "page.html")
        self.assertIn("nats per pair", (self.folder / "page.html").read_text())

    def test_validation_counts_pairs(self):
        self.dpo("run", "--valid", self.lines(pairs(5), "valid.jsonl"), "--eval-every", "10u")
        rows = [json.loads(line) for line in (self.folder / "run" / "metrics.jsonl").read_text().splitlines()]
        found = [row["values"]["accuracy"] for row in rows if row["kind"] == "metrics"]
        self.assertEqual((len(found), found[-1]), (3, 1))

    def test_any_number_of_threads_and_a_resumed_run_give_the_same_bits(self):
        for lora in ((), ("--lora", 2)):
            self.dpo("two", *lora, "--overwrite")
            self.dpo("three", *lora, "--threads", 3, "--overwrite")
            self.assertEqual(self.bits("three"), self.bits("two"))
            again = self.folder / "again"
            shutil.rmtree(again, ignore_errors=True)
            shutil.copytree(self.folder / "two", again)
            for step in (20, 30):
                shutil.rmtree(again / "checkpoints" / f"step-{step:06}", ignore_errors=True)
            self.succeed("train", "lm", "--resume", "-o", again, "--threads", 1)
            self.assertEqual(self.bits("again"), self.bits("two"))

    def test_what_the_base_made_of_the_answers_is_kept(self):
        self.dpo("run", "--keep", 5)
        reference = self.folder / "run" / "reference.safetensors"
        self.assertEqual(len(tensors_of(reference)["training"]), 12 * 8)
        reference.unlink()
        self.assert_error(self.run_fovea("train", "lm", f"--resume={self.folder}/run/checkpoints/step-000010", "--overwrite"), 4,
                          "reference.safetensors: no such file")
        # Adapters of an unchanged base: it can be asked again.
        self.dpo("adapters", "--lora", 2, "--keep", 5)
        expected = self.bits("adapters")
        (self.folder / "adapters" / "reference.safetensors").unlink()
        self.succeed("train", "lm", f"--resume={self.folder}/adapters/checkpoints/step-000010", "--overwrite")
        self.assertEqual(self.bits("adapters"), expected)

    def test_stops_and_goes_on(self):
        process = self.dpo("run", "--stop-after", "100000u", "--save-every", "1000u", run=self.start)
        while not (self.folder / "run" / "metrics.jsonl").exists():
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        self.assertIn("to go on", process.communicate(timeout=60)[1].decode())
        self.succeed("train", "lm", "--resume", "-o", self.folder / "run", "--stop-after", "1u")

    def test_stops_while_the_base_is_asked(self):
        process = self.dpo("run", data=self.lines(pairs(4000), "many.jsonl"), run=self.start)
        while not (self.folder / "run" / "config.json").exists():
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)
        self.assertIn("what the base makes of 4000 pairs", err.decode())
        self.assertIn("to go on", err.decode())
        self.assertEqual(out, b"")
        self.assertFalse((self.folder / "run" / "reference.safetensors").exists())
        self.lines(pairs(), "many.jsonl")  # fewer, for the time that it takes
        self.succeed("train", "lm", "--resume", "-o", self.folder / "run")
        self.assertEqual(len(tensors_of(self.folder / "run" / "reference.safetensors")["training"]), 12 * 8)

    def test_a_damaged_reference(self):
        self.dpo("run", "--keep", 5)
        reference = self.folder / "run" / "reference.safetensors"
        self.succeed("inspect", self.folder / "run", "--verify")
        data = bytearray(reference.read_bytes())
        data[-1] ^= 64
        reference.write_bytes(data)
        self.assertNotEqual(self.run_fovea("inspect", self.folder / "run", "--verify").returncode, 0)
        self.assert_error(self.run_fovea("train", "lm", f"--resume={self.folder}/run/checkpoints/step-000010", "--overwrite"), 4,
                          "reference.safetensors")

    def test_lists_of_messages(self):
        user, answer = {"role": "user", "content": "hello"}, {"role": "assistant", "content": "yes"}
        other = {"role": "assistant", "content": "never"}
        forms = [{"prompt": "hello", "chosen": "yes", "rejected": "never"},
                 {"prompt": [user], "chosen": [answer], "rejected": [other]},
                 {"chosen": [user, answer], "rejected": [user, other]}]
        weights = []
        for n, form in enumerate(forms):
            self.dpo(f"run{n}", "--stop-after", "5u", data=self.lines([form] * 4, f"{n}.jsonl"))
            weights.append(self.bits(f"run{n}"))
        self.assertEqual(weights[1], weights[0])
        self.assertEqual(weights[2], weights[0])

    def test_pairs_that_are_left_out_are_counted(self):
        long = {"prompt": "x", "chosen": "x" * 300 + "good", "rejected": "y"}
        same = {"prompt": "x", "chosen": "y", "rejected": "y"}
        said = self.dpo("run", "--stop-after", "1u", data=self.lines([*pairs(), long, same])).stderr.decode()
        self.assertIn("pairs with more than 150 tokens: 1 of 14; they are left out", said)
        self.assertNotIn("lines of more than", said)
        self.assertIn("pairs of equal answers: 1 of 14; they are left out", said)
        self.assert_error(self.dpo("x", data=self.lines([same]), run=self.run_fovea), 3, "both answers are equal")
        self.assert_error(self.dpo("x", data=self.lines([long]), run=self.run_fovea), 3, "no answer fits")

    def test_bad_input(self):
        user, answer = {"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}
        for bad, needle in (({"prompt": "a", "chosen": "b"}, 'line 13: expected "rejected"'),
                            ({"prompt": "a", "completion": "b"}, 'line 13: expected "chosen"'),
                            ({"chosen": [user], "rejected": [user]}, 'line 13: "chosen" does not end with an answer'),
                            ({"chosen": [user, answer], "rejected": [{**user, "content": "c"}, answer]}, "differ before"),
                            ({"prompt": "a", "chosen": [user, answer], "rejected": "c"}, "line 13"), ([1], "expected an object")):
            with self.subTest(needle):
                self.assert_error(self.dpo("x", data=self.lines([*pairs(), bad]), run=self.run_fovea), 3, needle)
        self.assert_error(self.dpo("x", data=self.lines(pairs(), more="{"), run=self.run_fovea), 3, "line 13")
        self.assert_error(self.dpo("x", "--objective", "next-token", "--data", "chat", run=self.run_fovea), 3, "--objective dpo compares")
        for more, needle in ((("--data", "blocks"), "--objective"), (("--loss-on", "all"), "--loss-on all"),
                             (("--evaluate-training",), "--evaluate-training"), (("--dropout", 0.1), "--dropout"),
                             (("--dpo-beta", 0), "--dpo-beta")):
            with self.subTest(needle):
                self.assert_error(self.dpo("x", *more, run=self.run_fovea), 2, needle)
        self.assert_error(self.run_fovea("train", "lm", "--train", self.data, "--objective", "dpo", "-o", self.folder / "x"), 2, "--objective")


class Measured(PreferenceTest):
    """What eval says of pairs. tests/python/test_preferences.py compares it with PyTorch."""

    def score(self, model, *more, data=None):
        return json.loads(self.succeed("eval", model, "--test", data or self.data, "--json", *more).stdout)

    def numbers(self, score):
        return {name: value["value"] for name, value in score.items() if isinstance(value, dict)}

    def assert_near(self, a, b, places=6):
        self.assertEqual(a.keys(), b.keys())
        for name in a:
            self.assertAlmostEqual(a[name], b[name], places, name)

    def test_a_run_is_measured_as_its_training_measures_it(self):
        valid = self.lines([*pairs(7), {"prompt": "hello", "chosen": "no 1", "rejected": "the 2"}], "valid.jsonl")
        for name, more in (("whole", ()), ("adapters", ("--lora", 4, "--lr", "2e-2")), ("beta", ("--dpo-beta", 0.5))):
            with self.subTest(name):
                self.dpo(name, *more, "--valid", valid, "--eval-every", "30u")
                rows = [json.loads(line) for line in (self.folder / name / "metrics.jsonl").read_text().splitlines()]
                accuracy = [row["values"]["accuracy"] for row in rows if row["kind"] == "metrics"][-1]
                loss = [row["valid_loss"] for row in rows if "valid_loss" in row][-1]
                found = self.score(self.folder / name, data=valid)
                self.assertEqual((found["task"], found["pairs"], found["left_out"], found["equal"]), ("preferences", 8, 0, 0))
                self.assertEqual((found["beta"], found["reference"]), (0.5 if name == "beta" else 0.1, str(self.base)))
                self.assertEqual(found["accuracy"]["value"], accuracy)
                self.assertAlmostEqual(found["loss"]["value"], loss, 4)
                self.assertAlmostEqual(found["margin"]["value"], found["chosen_reward"]["value"] - found["rejected_reward"]["value"], 9)
                for interval in (found[key] for key in ("accuracy", "margin", "loss", "chosen_reward", "rejected_reward")):
                    self.assertLessEqual(interval["low"], interval["value"])
                    self.assertLessEqual(interval["value"], interval["high"])
                self.assertEqual([self.score(self.folder / name, "-t", threads, data=valid) for threads in (1, 3)], [found] * 2)

    def test_any_model_beside_any_other(self):
        self.dpo("run", "--lora", 4, "--lr", "2e-2")
        run, peft, whole = self.folder / "run", self.folder / "peft", self.folder / "whole"
        self.succeed("export", run, "--to", "peft", "-o", peft)
        self.succeed("import", run, "-o", whole)
        expected = self.numbers(self.score(run))
        self.assertGreater(expected["margin"], 0.1)
        self.assert_near(self.numbers(self.score(self.base, "--adapter", peft, "--preferences")), expected)
        self.assert_near(self.numbers(self.score(whole, "--preferences", "--reference-model", self.base)), expected, 4)
        turned = self.numbers(self.score(self.base, "--preferences", "--reference-model", run))
        self.assertAlmostEqual(turned["margin"], -expected["margin"], 6)
        self.assertAlmostEqual(self.numbers(self.score(run, "--dpo-beta", 0.3))["margin"], 3 * expected["margin"], 6)
        itself = self.score(self.base, "--preferences", "--reference-model", self.base)
        self.assertEqual((itself["accuracy"]["value"], itself["margin"]["value"]), (0, 0))
        self.assertAlmostEqual(itself["loss"]["value"], math.log(2), 9)

    def test_text_and_page(self):
        self.dpo("run")
        long = {"prompt": "x", "chosen": "x" * 300 + "good", "rejected": "y"}
        done = self.succeed("eval", self.folder / "run", "--test", self.lines([*pairs(5), long, {"prompt": "x", "chosen": "y", "rejected": "y"}], "t.jsonl"))
        said = done.stdout.decode()
        self.assertIn(f"5 pairs, rewards of beta 0.1, held to {self.base}", said)
        for name in ("accuracy", "margin", "loss", "chosen reward", "rejected reward"):
            self.assertIn(f"\n{name} ", said)
        self.assertIn("pairs that are longer than the model reads: 1 of 7", done.stderr.decode())
        self.assertIn("pairs of equal answers: 1 of 7", done.stderr.decode())
        evaluation = self.folder / "evaluation.json"
        evaluation.write_bytes(self.succeed("eval", self.folder / "run", "--test", self.data, "--json").stdout)
        self.succeed("report", self.folder / "run", "--eval", evaluation, "-o", self.folder / "page.html")
        page = (self.folder / "page.html").read_text()
        self.assertIn("rejected", page)
        self.assertIn("margin", page)

    def test_next_tokens_of_such_a_model(self):
        self.dpo("run")
        chat = self.lines([{"prompt": "hello", "completion": "the 1"}], "chat.jsonl")
        self.assertIn("perplexity", self.score(self.folder / "run", "--no-preferences", data=chat))

    def test_what_cannot_be_measured(self):
        def fails(status, needle, *words):
            self.assert_error(self.run_fovea("eval", *words, "--test", self.data), status, needle)

        fails(2, "no model that its training began with", self.base, "--preferences")
        fails(2, "--dpo-beta has no effect without --preferences", self.base, "--dpo-beta", 0.2)
        fails(2, "--reference-model has no effect without --preferences", self.base, "--reference-model", self.base)
        fails(2, "--stride", self.base, "--preferences", "--reference-model", self.base, "--stride", 4)
        fails(2, "--dpo-beta", self.base, "--preferences", "--reference-model", self.base, "--dpo-beta", 0)
        self.train(self.folder / "own", "--stop-after", "2u")
        fails(4, "the model has no chat template", self.folder / "own", "--preferences", "--reference-model", self.base)
        short = self.foreign("short.gguf", llama_context_length=(U32, 100))
        fails(4, "sees 100 tokens, and", self.base, "--preferences", "--reference-model", short)
        fails(4, "no such folder", self.base, "--preferences", "--reference-model", "")
        done = self.run_fovea("eval", self.base, "--test", self.data, "--preferences", "--reference-model", self.base, "--max-context", 20)
        self.assert_error(done, 3, "no answer fits into a sequence of 20 tokens")
        self.assertIn("--max-context of eval", done.stderr.decode())
        self.dpo("run", "--lora", 2)
        fails(4, "the reward of an answer of pair 1 is not finite", self.folder / "run", "--dpo-beta", "1e308")
        peft = self.folder / "peft"
        self.succeed("export", self.folder / "run", "--to", "peft", "-o", peft)
        weights = peft / "adapter_model.safetensors"
        count = sum(map(len, tensors_of(weights).values())) // 4
        weights.write_bytes(weights.read_bytes()[:-4 * count] + struct.pack("<f", 1e30) * count)  # whose products overflow
        fails(4, f"{self.base}: the log-probability of an answer is not finite", self.base, "--adapter", peft, "--preferences")
        self.base.unlink()
        fails(4, "the base of these adapters is not there", self.folder / "run")


if __name__ == "__main__":
    unittest.main()

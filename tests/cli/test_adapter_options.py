#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What adapters of any model can have besides their rank: dropout (--lora-dropout)."""

import json
import shutil
import unittest

import test_base
from forged import forge_json
from test_base import tensors_of
from test_encoder_adapters import AdapterTest

STEPS = ("--stop-after", "20u", "--save-every", "10u", "--eval-every", "10u", "--keep", 3, "--lr", "2e-2")


class OfLanguageModels(test_base.BaseTest):
    options = ("--lora-dropout", 0.4)

    def adapt(self, output, *more, **options):
        self.begin(self.folder / "m.gguf", self.folder / output, "--lora", 2, *STEPS, *more, **options)
        return tensors_of(self.folder / output / "model.safetensors")

    def setUp(self):
        super().setUp()
        self.foreign()

    def test_threads_resumed_runs_and_recomputing_give_the_same_bits(self):
        plain, found = self.adapt("plain"), self.adapt("run", *self.options)
        self.assertNotEqual(found, plain)
        for name, more in (("one", ("--threads", 1)), ("three", ("--threads", 3)), ("again", ("--recompute",))):
            self.assertEqual(self.adapt(name, *self.options, *more), found)
        shutil.copytree(self.folder / "run", self.folder / "resumed")
        self.succeed("train", "lm", f"--resume={self.folder}/resumed/checkpoints/step-000010", "--overwrite", "--threads", 3)
        self.assertEqual(tensors_of(self.folder / "resumed" / "model.safetensors"), found)

    def test_parts_of_a_batch_have_the_masks_of_the_whole(self):
        losses = []
        for name, more in (("whole", ("--batch-size", 4)), ("parts", ("--batch-size", 2, "--accumulate", 2))):
            self.adapt(name, *self.options, *more, "--stop-after", "3u")
            rows = [json.loads(line) for line in (self.folder / name / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
            losses.append([row["loss"] for row in rows if "loss" in row])
        self.assertEqual(len(losses[0]), len(losses[1]))
        for whole, parts in zip(*losses):
            self.assertAlmostEqual(whole, parts, 4)

    def test_what_cannot_be(self):
        train = ["train", "lm", "--base", self.folder / "m.gguf", "--train", self.text, "-o", self.folder / "x"]
        for value in (1, -0.1, "nan"):
            self.fails(2, "--lora-dropout", *train, "--lora", 2, "--lora-dropout", value)
        self.fails(2, "--lora-dropout", *train, "--lora-dropout", 0.1)
        self.adapt("run", *self.options)
        self.fails(2, "--lora-dropout", "train", "lm", "--resume", "-o", self.folder / "run", "--lora-dropout", 0.5)
        self.succeed("export", self.folder / "run", "--to", "peft", "-o", self.folder / "peft")
        config = json.loads((self.folder / "peft" / "adapter_config.json").read_text(encoding="utf-8"))
        self.assertEqual(config["lora_dropout"], 0.4)
        forge_json(self.folder / "run", "config.json", lambda config: config["from"].update(lora_dropout=2))
        self.fails(4, "config.json", "eval", self.folder / "run", "--test", self.text)


class OfEncoders(AdapterTest):
    options = ("--lora-dropout", 0.4)

    def test_threads_resumed_runs_and_recomputing_give_the_same_bits(self):
        for task in self.data:
            with self.subTest(task=task):
                self.begin(task, f"{task}-plain", "--lora", 2)
                self.begin(task, f"{task}-run", "--lora", 2, *self.options)
                found = self.tensors(f"{task}-run")
                self.assertNotEqual(found, self.tensors(f"{task}-plain"))
                for name, *more in (("one", "--threads", 1), ("three", "--threads", 3), ("again", "--recompute")):
                    self.begin(task, f"{task}-{name}", "--lora", 2, *self.options, *more)
                    self.assertEqual(self.tensors(f"{task}-{name}"), found)
                self.succeed("train", task, f"--resume={self.folder}/{task}-run/checkpoints/step-000020", "--overwrite")
                self.assertEqual(self.tensors(f"{task}-run"), found)


if __name__ == "__main__":
    unittest.main()

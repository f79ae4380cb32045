#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What adapters of any model can have besides their rank: dropout (--lora-dropout) and magnitudes (--dora)."""

import json
import shutil
import unittest

import test_base
from forged import forge_json
from test_base import tensors_of
from test_encoder_adapters import AdapterTest

STEPS = ("--stop-after", "20u", "--save-every", "10u", "--eval-every", "10u", "--keep", 3, "--lr", "2e-2")


class LanguageModels:
    """What holds for every one of these options."""

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


class DropoutOfLanguageModels(LanguageModels, test_base.BaseTest):
    options = ("--lora-dropout", 0.4)

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


class MagnitudesOfLanguageModels(LanguageModels, test_base.BaseTest):
    options = ("--dora",)

    def test_the_model_begins_as_its_base_and_learns(self):
        base = self.folder / "m.gguf"
        self.begin(base, self.folder / "start", "--lora", 2, "--dora", "--stop-after", "1u", "--lr", "1e-30", "--weight-decay", 0)
        self.assertAlmostEqual(self.loss(self.folder / "start"), self.loss(base), 6)
        self.adapt("run", "--dora", "--stop-after", "40u")
        self.assertLess(self.loss(self.folder / "run"), self.loss(base) - 0.05)

    def test_given_to_a_model_merged_and_exported(self):
        for brain in (False, True):  # halves of a base stay as they lie
            base, run, peft, whole = (self.folder / f"{name}{brain}" for name in ("base.gguf", "run", "peft", "whole"))
            self.foreign(base.name, brain=brain)
            self.begin(base, run, "--lora", 2, "--dora", *STEPS)
            held = tensors_of(run / "model.safetensors")
            self.assertEqual(len(held), 3 * 2 * 7)
            self.assertEqual(len(held["base_model.model.model.layers.1.mlp.down_proj.lora_magnitude_vector"]), 16 * 4)
            self.succeed("export", run, "--to", "peft", "-o", peft)
            config = json.loads((peft / "adapter_config.json").read_text(encoding="utf-8"))
            self.assertIs(config["use_dora"], True)
            self.assertEqual(tensors_of(peft / "adapter_model.safetensors"), held)
            for folder in (run, peft):
                self.assertAlmostEqual(self.loss(base, "--adapter", folder), self.loss(run), 6)
            self.assertEqual(*(self.succeed("generate", *words, "--greedy", "--max-tokens", 8).stdout
                               for words in ((run, "the"), (base, "the", "--adapter", peft))))
            self.succeed("import", run, "-o", whole)
            self.assertAlmostEqual(self.loss(whole), self.loss(run), 5)
            self.fails(2, "count once", "eval", base, "--test", self.text, "--adapter", f"{peft}=0.5")
            self.fails(4, "llama.cpp", "export", run, "--to", "gguf-adapter", "-o", self.folder / "x.gguf")
            self.assertFalse((self.folder / "x.gguf").exists())
            config["use_dora"] = False
            (peft / "adapter_config.json").write_text(json.dumps(config), encoding="utf-8")
            self.fails(4, "are magnitudes (DoRA), which adapter_config.json does not ask for", "eval", base, "--test", self.text, "--adapter", peft)
            (peft / "adapter_config.json").write_text(json.dumps({**config, "use_dora": True, "r": 3}), encoding="utf-8")
            self.fails(4, "must be", "eval", base, "--test", self.text, "--adapter", peft)

    def test_magnitudes_do_not_add_up(self):
        for brain in (False, True):  # halves of a base stay as they lie
            base, one, two, both = (self.folder / f"{name}{brain}" for name in ("base.gguf", "one", "two", "both"))
            self.foreign(base.name, brain=brain)
            self.begin(base, one, "--lora", 2, "--dora", "--lora-targets", "q", "--stop-after", "2u")
            self.begin(base, two, "--lora", 2, "--lora-targets", "v", "--stop-after", "2u")
            self.loss(base, "--adapter", one, two)
            self.begin(base, both, "--lora", 2, "--lora-targets", "q,v", "--stop-after", "2u")
            for adapters in ((one, both), (both, one), (one, one)):
                self.fails(2, "do not add up", "eval", base, "--test", self.text, "--adapter", *adapters)


class Encoders:
    """What holds for every one of these options."""

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


class DropoutOfEncoders(Encoders, AdapterTest):
    options = ("--lora-dropout", 0.4)


class MagnitudesOfEncoders(Encoders, AdapterTest):
    options = ("--dora",)

    def test_commands_read_them(self):
        for task in self.data:
            with self.subTest(task=task):
                run, whole = f"{task}-run", f"{task}-whole"
                self.begin(task, run, "--lora", 2, "--dora")
                self.assertEqual(len([name for name in self.tensors(run) if name.endswith(".lora_magnitude_vector")]), 12)
                self.succeed("import", self.folder / run, "-o", self.folder / whole)
                self.assertEqual(self.use(task, run), self.use(task, whole))
                self.assertEqual(*(self.score(model, task) for model in (run, whole)))
                self.begin(task, f"{task}-on", "--lora", 1, "--dora", base=self.folder / run)
                self.use(task, f"{task}-on")


if __name__ == "__main__":
    unittest.main()

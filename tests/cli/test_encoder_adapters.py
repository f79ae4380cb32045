#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adapters of an encoder (--lora of train classify, pairs, tag and embed): small random models of BERT."""

import json
import shutil
import unittest

from bert_support import write_json, write_model
from forged import forge_json
from support import CommandTest
from test_base import tensors_of
from test_encoder_base import LABELS, labelled, tagged

FEW = ("--batch-size", 8, "--lr", "1e-2", "--stop-after", "40u", "--eval-every", "20u", "--save-every", "20u", "--keep", 3,
       "--threads", 2, "--progress", "none")
BLOCK = "base_model.model.bert.encoder.layer.1."


class AdapterTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.base = write_model(self.folder / "base")
        texts = labelled()
        self.data = {name: self.folder / f"{name}.txt" for name in ("classify", "pairs", "tag", "embed")}
        self.data["classify"].write_text("".join(f"{label}\t{text}\n" for label, text in texts), encoding="utf-8")
        pairs = [(first, second, int(label == other)) for (label, first), (other, second) in zip(texts, texts[1:] + texts[:1])]
        pairs += [(text, text.upper(), 1) for _, text in texts]
        self.data["pairs"].write_text("sentence1\tsentence2\tlabel\n" + "".join(f"{a}\t{b}\t{label}\n" for a, b, label in pairs),
                                      encoding="utf-8")
        self.data["tag"].write_text("".join("".join(f"{word}\t{tag}\n" for word, tag in sentence) + "\n" for sentence in tagged()),
                                    encoding="utf-8")
        self.data["embed"].write_text("".join(f"{text}\t{text[::-1]} {label}\n" for label, text in texts), encoding="utf-8")

    def begin(self, task, output, *more, base=None, **options):
        return self.succeed("train", task, "--base", base or self.base, "--train", self.data[task], "-o",
                            self.folder / output, *FEW, *more, **options)

    def bits(self, output):
        return (self.folder / output / "model.safetensors").read_bytes()

    def tensors(self, output):
        return tensors_of(self.folder / output / "model.safetensors")

    def use(self, task, model, *more):
        texts = {"pairs": b"the old king\tsees the moon\nthe dog\tthe dog", "tag": b"the\nold\nking\n.\n"}
        return self.succeed(task, self.folder / model, *more, stdin=texts.get(task, b"the old king\nsees the moon")).stdout

    def score(self, model, task):
        said = json.loads(self.succeed("eval", self.folder / model, "--test", self.data[task], "--json").stdout)
        return {name: value for name, value in said.items() if not name.startswith("model")}


class Adapts(AdapterTest):
    def test_only_adapters_and_the_head_are_trained_and_stored(self):
        for task, head in (("classify", {"pooler.weight", "pooler.bias", "output.weight", "output.bias"}),
                           ("pairs", {"pooler.weight", "pooler.bias", "output.weight", "output.bias"}),
                           ("tag", {"output.weight", "output.bias"}), ("embed", set())):
            with self.subTest(task=task):
                self.begin(task, task, "--lora", 2)
                held = self.tensors(task)
                adapters = {name for name in held if ".lora_" in name}
                self.assertEqual(set(held) - adapters, head)
                self.assertEqual(len(adapters), 2 * 2 * 6)
                prefix = "base_model.model." + ("" if task == "embed" else "bert.") + "encoder.layer.1.attention.output.dense"
                self.assertEqual(len(held[f"{prefix}.lora_A.weight"]), 2 * 8 * 4)
                self.assertTrue(any(held[f"{prefix}.lora_B.weight"]))
                moments = tensors_of(self.folder / task / "checkpoints" / "step-000040" / "optimizer.safetensors")
                self.assertEqual({name.split("/", 1)[-1].split(":", 1)[-1] for name in moments} & {"embedding.tokens"}, set())

    def test_it_learns(self):
        self.begin("classify", "run", "--lora", 4, "--stop-after", "300u", "--dropout", 0, "--encoder-dropout", 0)
        self.assertGreater(self.score("run", "classify")["accuracy"]["value"], 0.9)
        answers = self.use("classify", "run").decode()
        self.assertEqual([line.split("\t")[0] for line in answers.splitlines()], ["royal", "sky"])

    def test_threads_and_resumed_runs_give_the_same_bits(self):
        for task in self.data:
            with self.subTest(task=task):
                self.begin(task, f"{task}-2", "--lora", 2)
                for threads in (1, 3):
                    self.begin(task, f"{task}-{threads}", "--lora", 2, "--threads", threads)
                    self.assertEqual(self.bits(f"{task}-{threads}"), self.bits(f"{task}-2"))
                self.succeed("train", task, f"--resume={self.folder}/{task}-2/checkpoints/step-000020", "--overwrite", "--threads", 3)
                self.assertEqual(self.bits(f"{task}-2"), self.bits(f"{task}-1"))
                shutil.rmtree(self.folder / f"{task}-3" / "checkpoints")
                self.succeed("train", task, "--resume", "-o", self.folder / f"{task}-3")
                self.assertEqual(self.bits(f"{task}-3"), self.bits(f"{task}-1"))

    def test_every_command_reads_them_as_it_reads_the_whole_model(self):
        for task in self.data:
            with self.subTest(task=task):
                run, whole = f"{task}-run", f"{task}-whole"
                self.begin(task, run, "--lora", 2)
                self.succeed("import", self.folder / run, "-o", self.folder / whole)
                self.assertEqual(self.use(task, run), self.use(task, whole))
                self.assertEqual(*(self.score(model, task) for model in (run, whole)))
                self.succeed("inspect", self.folder / run, "--verify")
                self.assertIn("lora", self.succeed("inspect", self.folder / run).stdout.decode())
                if task in ("classify", "tag"):
                    text = "the old king"
                    self.assertEqual(*(self.succeed("explain", self.folder / model, text, "--json").stdout.replace(model.encode(), b"")
                                       for model in (run, whole)))
                self.assertIn("blocks.1.attention.qkv.weight", self.tensors(whole))
                self.assert_error(self.run_fovea("import", self.folder / whole, "-o", self.folder / "again"), 4, "a model of fovea already")
                self.succeed("export", self.folder / run, "-o", self.folder / f"{task}-hf")
                self.succeed("report", self.folder / run, "-o", self.folder / f"{task}.html")

    def test_targets_by_their_meaning(self):
        self.begin("classify", "run", "--lora", 2, "--lora-targets", "q,down", "--lora-alpha", 8, "--lora-rs")
        names = {name.removeprefix(BLOCK) for name in self.tensors("run") if name.startswith(BLOCK)}
        self.assertEqual(names, {f"{module}.lora_{part}.weight" for module in ("attention.self.query", "output.dense") for part in "AB"})
        self.succeed("export", self.folder / "run", "--to", "peft", "-o", self.folder / "peft")
        config = json.loads((self.folder / "peft" / "adapter_config.json").read_text(encoding="utf-8"))
        self.assertEqual((config["r"], config["lora_alpha"], config["use_rslora"], config["task_type"]), (2, 8, True, "SEQ_CLS"))
        self.assertEqual(config["modules_to_save"], ["classifier", "pooler"])
        self.assertIn("bert.encoder.layer.1.output.dense", config["target_modules"])
        held = tensors_of(self.folder / "peft" / "adapter_model.safetensors")
        self.assertIn("base_model.model.bert.pooler.dense.weight", held)
        self.assertEqual(held["base_model.model.classifier.weight"], self.tensors("run")["output.weight"])

    def test_a_head_that_transformers_does_not_have(self):
        self.begin("tag", "run", "--lora", 2, "--head", "crf")
        self.assertEqual({name for name in self.tensors("run") if ".lora_" not in name},
                         {"output.weight", "output.bias", "crf.transitions", "crf.start", "crf.end"})
        self.succeed("import", self.folder / "run", "-o", self.folder / "whole")
        self.assertEqual(self.use("tag", "run"), self.use("tag", "whole"))
        self.assert_error(self.run_fovea("export", self.folder / "run", "--to", "peft", "-o", self.folder / "peft"), 4, "CRF")
        self.assertFalse((self.folder / "peft").exists())

    def test_a_run_begins_from_adapters(self):
        self.begin("classify", "first", "--lora", 2)
        self.succeed("import", self.folder / "first", "-o", self.folder / "whole")
        for name in ("first", "whole"):
            self.begin("classify", f"on-{name}", base=self.folder / name)
            self.begin("tag", f"tag-on-{name}", "--lora", 1, base=self.folder / name)
        self.assertEqual(self.tensors("on-first"), self.tensors("on-whole"))
        self.assertEqual(self.tensors("tag-on-first"), self.tensors("tag-on-whole"))
        self.use("tag", "tag-on-first")
        shutil.rmtree(self.base)
        self.assert_error(self.run_fovea("tag", self.folder / "tag-on-first", stdin=b"the\n"), 4, "the base of these adapters is not there")

    def test_what_cannot_be(self):
        train = ["train", "classify", "--base", self.base, "--train", self.data["classify"], "-o", self.folder / "failed"]
        for status, needle, *more in ((2, "no products 'gate'; it has down, k, o, q, up, v", "--lora", 2, "--lora-targets", "gate"),
                                      (2, "--freeze", "--lora", 2, "--freeze", "0"), (2, "--lora", "--lora-alpha", 4),
                                      (2, "--layer-lr-decay", "--lora", 2, "--layer-lr-decay", 0.5), (2, "--lora", "--lora", -1)):
            self.assert_error(self.run_fovea(*train, *more), status, needle)
        for task in self.data:
            if task != "embed":
                self.assert_error(self.run_fovea("train", task, "--train", self.data[task], "-o", self.folder / "failed", "--lora", 2), 2, "--lora")
        self.assertFalse((self.folder / "failed").exists())
        self.begin("classify", "run", "--lora", 2)
        for task in self.data:
            whole = "whole" if task == "classify" else f"whole-{task}"
            self.begin(task, whole, "--stop-after", "2u")
            done = self.run_fovea("export", self.folder / whole, "--to", "peft", "-o", self.folder / "x")
            self.assert_error(done, 4, "holds no adapters")
            self.assertIn(f"fovea train {task} --base MODEL --lora 8", done.stderr.decode())
        self.assert_error(self.run_fovea("export", self.folder / "run", "--to", "gguf-adapter", "-o", self.folder / "x.gguf"), 4, "classifier")
        self.assert_error(self.run_fovea("import", self.folder / "run", "-o", self.folder / "x", "--adapter", self.folder / "run"), 2, "--adapter")
        for more in (("--lora", 3), ("--lora-targets", "q")):
            self.assert_error(self.run_fovea("train", "classify", "--resume", "-o", self.folder / "run", *more), 2, "--lora")
        self.assert_error(self.run_fovea("train", "classify", "--base", self.folder / "run", "--train", self.data["classify"], "-o",
                                         self.base, "--overwrite"), 2)
        forge_json(self.folder / "whole", "config.json", lambda config: config["from"].update(lora=2, base=str(self.folder / "whole")))
        self.assert_error(self.run_fovea("classify", self.folder / "whole", stdin=b"x"), 4, "without end")
        for change in ({"lora": 10 ** 15}, {"lora": -5}, {"lora": 3}, {"lora_targets": "q"}, {"lora_targets": "gate"}, {"lora_alpha": -3},
                       {"lora_dropout": 2}, {"dora": True}):
            shutil.copytree(self.folder / "run", self.folder / "forged")
            forge_json(self.folder / "forged", "config.json", lambda config: config["from"].update(change))
            self.assert_error(self.run_fovea("classify", self.folder / "forged", stdin=b"x"), 4, "config.json")
            train[3] = self.folder / "forged"
            self.assert_error(self.run_fovea(*train), 4, "config.json")
            self.assertFalse((self.folder / "failed").exists())
            shutil.rmtree(self.folder / "forged")
        shutil.copytree(self.folder / "run", self.folder / "forged")
        forge_json(self.folder / "forged", "config.json", lambda config: config["model"].update(vocabulary=10 ** 9))
        self.assert_error(self.run_fovea("classify", self.folder / "forged", stdin=b"x"), 4, "config.json")
        config = json.loads((self.base / "config.json").read_text(encoding="utf-8"))
        write_json(self.base / "config.json", {**config, "hidden_act": "relu"})
        done = self.run_fovea("classify", self.folder / "run", stdin=b"x")
        self.assert_error(done, 4, "the layers are not those of")
        self.assertIn("put the base back", done.stderr.decode())
        write_json(self.base / "config.json", config)
        self.use("classify", "run")
        other = write_model(self.folder / "other")
        weights = bytearray((other / "model.safetensors").read_bytes())
        weights[-1] ^= 64
        (self.base / "model.safetensors").write_bytes(weights)
        for command in (("classify", self.folder / "run"), ("train", "classify", "--resume", "-o", self.folder / "run")):
            self.assert_error(self.run_fovea(*command, stdin=b"x"), 4, "not the model that the adapters were trained on")


if __name__ == "__main__":
    unittest.main()

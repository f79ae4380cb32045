#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trainings that begin from a model (--base), and folders that are made of models from elsewhere (import)."""

import json
import shutil
import unittest

from gguf_support import CONTEXT, STRING, U32, gguf
from support import SMALL, CommandTest

FEW = ["--batch-size", 4, "--sequence-length", 16, "--threads", 2]


class BaseTest(CommandTest):
    def foreign(self, name="m.gguf", **changed):
        path = self.folder / name
        path.write_bytes(gguf(**changed))
        return path

    def begin(self, base, output, *more, **options):
        return self.succeed("train", "lm", "--base", base, "--train", self.text, "-o", output, *FEW, *more, **options)

    def loss(self, model, *more):
        return json.loads(self.succeed("eval", model, "--test", self.text, "--json", *more).stdout)["loss"]

    def fails(self, status, needle, *args):
        self.assert_error(self.run_fovea(*args), status, needle)


class FromGguf(BaseTest):
    def test_begins_where_the_model_is_and_gets_better(self):
        base, run = self.foreign(), self.folder / "run"
        before = self.loss(base)
        self.begin(base, run, "--stop-after", "60u", "--lr", "1e-2")
        self.assertLess(self.loss(run), before - 0.1)
        first = self.folder / "first"  # one update of no size: the weights are those of the base
        self.begin(base, first, "--stop-after", "1u", "--lr", "1e-30", "--weight-decay", 0)
        self.assertAlmostEqual(self.loss(first), before, 6)

    def test_keeps_layers_tokens_and_template(self):
        base, run = self.foreign(llama_context_length=(U32, 400)), self.folder / "run"
        self.begin(base, run, "--stop-after", "3u")
        config = json.loads((run / "config.json").read_text())
        self.assertEqual((config["model"]["layers"], config["model"]["kv_heads"], config["model"]["block"]), (2, 2, 400))
        self.assertEqual(config["text"]["sequence_length"], 16)
        base.unlink()  # the folder is whole without it
        said = json.loads(self.succeed("generate", run, "hello", "--chat", "--json", "--max-tokens", 5).stdout)
        self.assertEqual(said["message"], "hello")
        self.assertIn("parameters", self.succeed("inspect", run).stdout.decode())

    def test_goes_on_to_the_same_bits_without_the_base(self):
        base, run, again = self.foreign(), self.folder / "run", self.folder / "again"
        self.begin(base, run, "--stop-after", "8u", "--save-every", "4u", "--keep", 3)
        base.unlink()
        shutil.copytree(run, again)
        self.succeed("train", "lm", f"--resume={again}/checkpoints/step-000004", "--overwrite")
        self.assertEqual((again / "model.safetensors").read_bytes(), (run / "model.safetensors").read_bytes())

    def test_defaults_are_those_of_a_model_that_is_trained_already(self):
        base = self.foreign(llama_context_length=(U32, 4096))
        shown = self.succeed("train", "lm", "--base", base, "--train", self.text, "--dump-config").stdout.decode()
        for line in ("lr = 0.0001", "batch_size = 4", "sequence_length = 512", "stop_after = '1e'", "block = 4096"):
            self.assertIn(line, shown)

    def test_what_does_not_fit_is_named(self):
        base = self.foreign()
        train = ["train", "lm", "--base", base, "--train", self.text, "-o", self.folder / "run"]
        self.fails(2, "--layers: ", *train, "--layers", 6)
        self.fails(2, "--tokenizer: ", *train, "--tokenizer", "char")
        self.fails(2, f"--block {CONTEXT + 1}", *train, "--block", CONTEXT + 1)
        self.fails(2, "--sequence-length", *train, "--sequence-length", CONTEXT + 1)
        self.fails(4, "nowhere", *train[:3], self.folder / "nowhere", *train[4:])
        self.assertFalse((self.folder / "run").exists())
        self.succeed(*train, "--layers", 2, "--stop-after", "1u", "--dropout", 0.1, *FEW)  # what the base has is no error


class FromFovea(BaseTest):
    def test_goes_on_with_another_text(self):
        own, run = self.folder / "own", self.folder / "run"
        self.train(own, "--stop-after", "5u")
        other = self.folder / "other.txt"
        other.write_text("Une autre langue, déjà.\n" * 40)
        self.succeed("train", "lm", "--base", own, "--train", other, "-o", run, *FEW, "--stop-after", "20u", "--lr", "1e-2")
        self.assertEqual((own / "tokenizer.txt").read_bytes(), (run / "tokenizer.txt").read_bytes())
        scores = [json.loads(self.succeed("eval", model, "--test", other, "--json").stdout)["loss"] for model in (own, run)]
        self.assertLess(scores[1], scores[0])
        self.fails(2, "--lower: ", "train", "lm", "--base", own, "--train", other, "-o", self.folder / "x", "--lower")


class Import(BaseTest):
    def test_the_folder_is_the_model(self):
        base, folder = self.foreign(), self.folder / "imported"
        found = json.loads(self.succeed("import", base, "-o", folder, "--json").stdout)
        self.assertEqual((found["architecture"], found["output"]), ("llama", str(folder)))
        texts = {self.succeed("generate", model, "the", "--greedy", "--max-tokens", 40).stdout for model in (base, folder)}
        self.assertEqual(len(texts), 1)
        self.assertEqual(self.loss(base), self.loss(folder))
        self.assertIn("whole", self.succeed("inspect", folder, "--verify").stdout.decode())
        further = self.folder / "further"
        self.begin(folder, further, "--stop-after", "2u")
        self.succeed("generate", further, "the", "--max-tokens", 3)

    def test_a_folder_of_hugging_face(self):
        own, exported, folder = (self.folder / name for name in ("own", "exported", "imported"))
        self.train(own, "--stop-after", "2u", "--tokenizer", "byte", "--position", "rotary", "--norm", "rms",
                   "--activation", "swiglu")
        self.succeed("export", own, "-o", exported)
        self.succeed("import", exported, "-o", folder)
        texts = {self.succeed("generate", model, "the", "--greedy", "--max-tokens", 20).stdout
                 for model in (exported, folder)}
        self.assertEqual(len(texts), 1)

    def test_half_precision_takes_half_the_room(self):
        base, half, whole = self.foreign(), self.folder / "half", self.folder / "whole"
        self.succeed("import", base, "-o", half, "--dtype", "bf16")
        self.succeed("import", base, "-o", whole)
        sizes = [(folder / "model.safetensors").stat().st_size for folder in (half, whole)]
        self.assertLess(sizes[0], 0.75 * sizes[1])
        self.assertAlmostEqual(self.loss(half), self.loss(whole), delta=0.05)

    def test_what_cannot_be_imported(self):
        base, folder = self.foreign(), self.folder / "imported"
        self.fails(2, "--output is missing", "import", base)
        self.fails(4, "expected a model of another program", "import", self.text, "-o", folder)
        self.fails(4, "nowhere: no such", "import", self.folder / "nowhere", "-o", folder)
        self.fails(4, "mamba", "import", self.foreign("x.gguf", general_architecture=(STRING, "mamba")), "-o", folder)
        self.assertFalse(folder.exists())
        folder.mkdir()
        (folder / "mine").touch()
        self.fails(2, "is there already", "import", base, "-o", folder)

    def test_a_kept_tokenizer_that_is_damaged(self):
        base, folder = self.foreign(), self.folder / "imported"
        self.succeed("import", base, "-o", folder)
        text = (folder / "tokenizer.txt").read_text().splitlines()
        text[5] = text[6]
        (folder / "tokenizer.txt").write_text("\n".join(text) + "\n")
        self.fails(4, "tokenizer.txt", "generate", folder, "a")


if __name__ == "__main__":
    unittest.main()

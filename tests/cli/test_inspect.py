# SPDX-License-Identifier: Apache-2.0
"""What inspect tells of a model, its run, and its files."""

import json
import math
import shutil
import unittest

from support import CommandTest


class Inspect(CommandTest):
    @classmethod
    def setUpClass(cls):
        cls.keep = CommandTest()
        cls.keep.setUp()
        cls.model = cls.keep.folder / "model"
        cls.keep.train(cls.model, "--stop-after", "300u", "--eval-every", "100u")

    @classmethod
    def tearDownClass(cls):
        cls.keep.doCleanups()

    def test_inspect(self):
        said = self.succeed("inspect", self.model).stdout.decode()
        self.assertIn("language model", said)
        self.assertIn("model.width", said)
        verified = self.succeed("inspect", self.model, "--verify").stdout.decode()
        self.assertIn("whole", verified)
        self.assertNotIn("DAMAGED", verified)

    def test_inspect_shows_losses_and_how_far_the_run_is(self):
        evaluations = [r for r in map(json.loads, (self.model / "metrics.jsonl").read_text().splitlines())
                       if r["kind"] == "evaluation"]
        best, last = min(evaluations, key=lambda r: r["valid_loss"]), evaluations[-1]
        said = self.succeed("inspect", self.model).stdout.decode()
        self.assertIn("training: 300 of 300 updates (100%), 19200 target tokens, 0:0", said)
        self.assertIn(f"best validation loss {best['valid_loss']:.4f}, at update {best['step']}\n", said)
        self.assertIn(f"last validation loss {last['valid_loss']:.4f}, at update {last['step']}\n", said)
        self.assertIn(f"last train loss {last['train_loss']:.4f}\n", said)

    def test_a_checkpoint_that_a_training_removes_meanwhile_is_passed_over(self):
        model = self.folder / "model"
        shutil.copytree(self.model, model)
        # Listed, and gone when it is read.
        (model / "checkpoints" / "step-999999").symlink_to("nowhere")
        for more in [(), ("--json",), ("--verify",)]:
            self.assertEqual(self.succeed("inspect", model, *more).stderr, b"")

    def test_inspect_as_json(self):
        done = self.succeed("inspect", self.model, "--json")
        self.assertEqual(len(done.stdout.splitlines()), 1)
        said = self.last_object(done)
        self.assertEqual(list(said), ["kind", "parameters", "step", "training", "settings", "tensors",
                                      "checkpoints"])
        self.assertEqual(list(said["training"]), ["step", "tokens", "seconds", "train_loss", "valid_loss", "valid_step",
                                                  "best_valid_loss", "best_step"])
        self.assertEqual((said["training"]["step"], said["training"]["valid_step"]), (300, 300))
        self.assertEqual(said["step"], said["training"]["best_step"])
        self.assertEqual(said["settings"]["model"]["width"], 32)
        self.assertEqual(said["parameters"], sum(math.prod(t["shape"]) for t in said["tensors"]))
        self.assertEqual({t["type"] for t in said["tensors"]}, {"float32"})
        at = self.last_object(self.succeed("inspect", said["checkpoints"][0], "--json"))
        self.assertEqual(at["training"]["step"], at["step"])
        # A model alone has no losses to show.
        bare = self.folder / "bare"
        bare.mkdir()
        for name in ["MANIFEST.json", "config.json", "tokenizer.txt", "model.safetensors"]:
            shutil.copy(self.model / name, bare)
        alone = self.last_object(self.succeed("inspect", bare, "--json"))
        self.assertEqual((alone["training"]["step"], alone["training"]["best_valid_loss"]), (0, None))
        self.assertNotIn(b"training:", self.succeed("inspect", bare).stdout)

    def test_inspect_verify_of_weights_that_lead_to_themselves(self):
        model = self.folder / "loop"
        shutil.copytree(self.model, model)
        (model / "model.safetensors").unlink()
        (model / "model.safetensors").symlink_to("model.safetensors")
        self.assert_error(self.run_fovea("inspect", model, "--verify"), 4, "damaged files: 1")

    def test_inspect_verify_as_json(self):
        files = self.last_object(self.succeed("inspect", self.model, "--verify", "--json"))["files"]
        self.assertGreater(len(files), 6)
        self.assertEqual({f["problem"] for f in files}, {""})
        damaged = self.folder / "damaged"
        shutil.copytree(self.model, damaged)
        (damaged / "tokenizer.txt").write_text("no")
        done = self.run_fovea("inspect", damaged, "--verify", "--json")
        self.assert_error(done, 4, "damaged files: 1")
        listed, error = map(json.loads, done.stdout.decode().splitlines())
        self.assertEqual([f["path"] for f in listed["files"] if f["problem"]], [str(damaged / "tokenizer.txt")])
        self.assertEqual(error["error"], "E0401")


if __name__ == "__main__":
    unittest.main()

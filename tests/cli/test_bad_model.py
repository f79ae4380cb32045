# SPDX-License-Identifier: Apache-2.0
"""Models and runs that are damaged, of another kind, or not what is to be resumed; divergence."""

import os
import shutil
import unittest

from support import SMALL, CommandTest


class BadModel(CommandTest):
    def setUp(self):
        super().setUp()
        self.model = self.folder / "model"
        self.train(self.model, "--stop-after", "6u", "--save-every", "3u", "--eval-every", "3u")

    def uses(self):
        return [["generate", self.model, "the"], ["eval", self.model, "--test", self.text],
                ["inspect", self.model]]

    def assert_all_refuse(self, *needles):
        for args in self.uses():
            with self.subTest(args=args[0]):
                self.assert_error(self.run_fovea(*args), 4, *needles)

    def flip(self, path, at):
        data = bytearray(path.read_bytes())
        data[at % len(data)] ^= 1 << (at % 8)
        path.write_bytes(data)

    def test_every_file_flipped(self):
        for name in ["model.safetensors", "config.json", "tokenizer.txt", "MANIFEST.json"]:
            path = self.model / name
            whole = path.read_bytes()
            for at in [3, len(whole) // 3, len(whole) // 2, len(whole) - 2]:
                with self.subTest(name=name, at=at):
                    self.flip(path, at)
                    self.assert_error(self.run_fovea("generate", self.model, "the"), 4)
                    self.assert_error(self.run_fovea("inspect", self.model, "--verify"), 4)
                    path.write_bytes(whole)
        self.succeed("inspect", self.model, "--verify")

    def test_truncated(self):
        path = self.model / "model.safetensors"
        whole = path.read_bytes()
        for size in [0, 5, 8, 100, len(whole) // 2, len(whole) - 1]:
            path.write_bytes(whole[:size])
            self.assert_error(self.run_fovea("generate", self.model, "the"), 4)

    def test_weights_that_are_no_file(self):
        path = self.model / "model.safetensors"
        for make, kind in [(os.mkfifo, "FIFO"), (os.mkdir, "directory")]:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
            make(path)
            self.assert_all_refuse("E0401", "model.safetensors", kind)
            done = self.run_fovea("inspect", self.model, "--verify")
            self.assert_error(done, 4, "E0401")
            self.assertIn(f"DAMAGED  {path}", done.stdout.decode())

    def test_weights_of_another_model(self):
        other = self.folder / "other"
        self.train(other, "--stop-after", "2u", "--layers", "1")
        shutil.copy(other / "model.safetensors", self.model / "model.safetensors")
        self.assert_all_refuse("model.safetensors")

    def test_no_model(self):
        shutil.rmtree(self.model)
        self.assert_all_refuse()
        self.model.mkdir()
        self.assert_all_refuse()

    def test_another_kind_of_model(self):
        config = self.model / "config.json"
        checkpoints = self.model / "checkpoints"
        shutil.rmtree(checkpoints)
        config.write_text(config.read_text().replace("language_model", "classifier"))
        self.assert_all_refuse("config.json")

    def test_one_damaged_checkpoint_is_passed_over(self):
        self.flip(self.model / "checkpoints" / "step-000006" / "optimizer.safetensors", 1000)
        done = self.succeed("train", "lm", "--resume", "-o", self.model, "--json")
        self.assertIn(b"step-000006", done.stderr)
        self.assertEqual(self.last_object(done)["steps"], 6)

    def test_all_checkpoints_damaged(self):
        for step in ["step-000003", "step-000006"]:
            self.flip(self.model / "checkpoints" / step / "model.safetensors", 1000)
        self.assert_error(self.run_fovea("train", "lm", "--resume", "-o", self.model), 4)

    def resume(self, *args):
        return self.run_fovea("train", "lm", "--resume", "-o", self.model, *args)

    def test_resume_with_other_text(self):
        self.text.write_text("completely different words\n" * 400)
        self.assert_error(self.resume(), 2, "cannot resume", str(self.text), "the text has changed")
        other = self.folder / "other.txt"
        other.write_text("other words\n" * 400)
        self.assert_error(self.resume("--train", other), 2,
                          f"--train: the run began with {self.text}, given is {other}")

    def test_resume_says_what_may_not_change(self):
        before = {p: p.read_bytes() for p in self.model.rglob("*") if p.is_file()}
        for option, began, given in [("--width", "32", "64"), ("--layers", "2", "3"), ("--norm", "layer", "rms"),
                                     ("--tokenizer", "char", "byte"), ("--data", "blocks", "lines"),
                                     ("--valid-fraction", "0.1", "0.2"), ("--dropout", "0", "0.1")]:
            with self.subTest(option=option):
                done = self.resume(option, given)
                self.assert_error(done, 2, f"cannot resume: {option}: the run began with {began}, given is {given}")
                self.assertIn(f"leave {option} out".encode(), done.stderr)
        self.assertEqual({p: p.read_bytes() for p in self.model.rglob("*") if p.is_file()}, before)

    def test_resume_names_the_path_it_was_given(self):
        other = self.folder / "other"
        self.train(other, "--stop-after", "2u")
        for path, needle in [(self.folder / "nowhere", "nowhere: neither a run nor a checkpoint"),
                             (self.model / "checkpoints", "checkpoints: neither a run nor a checkpoint")]:
            self.assert_error(self.run_fovea("train", "lm", f"--resume={path}"), 4, needle)
        shutil.copytree(self.model / "checkpoints" / "step-000003", self.folder / "copy")
        self.assert_error(self.run_fovea("train", "lm", f"--resume={self.folder / 'copy'}"), 4, "outside its run")
        before = (other / "metrics.jsonl").read_bytes()
        for path in [self.model, self.model / "checkpoints" / "step-000003"]:
            done = self.run_fovea("train", "lm", f"--resume={path}", "-o", other)
            self.assert_error(done, 2, f"{path} is not of the run in {other}")
        self.assertEqual((other / "metrics.jsonl").read_bytes(), before)


class Divergence(CommandTest):
    def test_stops_with_its_own_status(self):
        output = self.folder / "model"
        done = self.run_fovea("train", "lm", "--train", self.text, "-o", output, *SMALL, "--lr", "1e30",
                              "--warmup", "0", "--clip", "0", "--save-every", "1u", "--stop-after", "500u",
                              "--eval-every", "500u")
        self.assert_error(done, 7, "diverged")
        self.assertEqual(list(output.glob("*.tmp*")), [])
        self.succeed("inspect", output, "--verify")


if __name__ == "__main__":
    unittest.main()

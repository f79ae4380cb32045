# SPDX-License-Identifier: Apache-2.0
"""stdin, stdout and stderr that are closed, full, or that nobody reads any more."""

import json
import os
import resource
import subprocess
import unittest

from support import FOVEA, SMALL, CommandTest

from tensor_files import Tensor, write

RUN = ["--stop-after", "4u", "--eval-every", "2u", "--save-every", "2u"]


class Streams(CommandTest):
    def setUp(self):
        super().setUp()
        self.model = self.folder / "model"
        self.train(self.model, *RUN)

    def run_closed(self, descriptors, *args, **options):
        """The command, started without these descriptors."""
        def close():
            for descriptor in descriptors:
                os.close(descriptor)

        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        return subprocess.run([FOVEA, *map(str, args)], env=self.environment(), preexec_fn=close, timeout=120, **streams)

    def training(self, output, *args):
        return ["train", "lm", "--train", self.text, "-o", output, *SMALL, *RUN, *args]

    def results(self):
        """Every kind of result that is printed."""
        return [["--help"], ["--version"], ["train", "--help"], ["train", "lm", "--help"], ["doctor"], ["doctor", "--json"],
                ["generate", self.model, "the", "--max-tokens", "3"], ["inspect", self.model],
                ["inspect", self.model, "--verify"], ["eval", self.model, "--test", self.text],
                ["eval", self.model, "--test", self.text, "--json"], ["attention", self.tensors(), "--plan"],
                ["bench", "attention", "--batch", "1", "--heads", "1", "--length", "8", "--head-dim", "8"],
                self.training(self.folder / "dry", "--dry-run"), self.training(self.folder / "dump", "--dump-config"),
                self.training(self.model, "--overwrite"), self.training(self.model, "--overwrite", "--json")]

    def tensors(self):
        path = self.folder / "in.safetensors"
        write(path, {name: Tensor("F64", [1, 4, 1, 8], [0.5] * 32) for name in "qkv"})
        return path

    def assert_whole(self, model):
        self.succeed("inspect", model, "--verify")
        records = [json.loads(line) for line in (model / "metrics.jsonl").read_text().splitlines()]
        self.assertEqual(records[-1]["step"], 4)
        self.assertFalse((model / "run.lock").exists())

    def test_training_that_can_say_nothing_goes_on(self):
        for descriptors in [[2], [0], [0, 2]]:
            with self.subTest(closed=descriptors):
                output = self.folder / f"closed{len(descriptors)}{descriptors[0]}"
                done = self.run_closed(descriptors, *self.training(output))
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(b"4 updates", done.stdout)
                self.assert_whole(output)
                self.assertEqual((output / "model.safetensors").read_bytes(), (self.model / "model.safetensors").read_bytes())

    def test_stderr_that_is_full_is_as_none(self):
        with open("/dev/full", "wb") as full:
            done = self.run_closed([], *self.training(self.folder / "full"), stderr=full)
        self.assertEqual(done.returncode, 0)
        self.assert_whole(self.folder / "full")

    def test_a_result_that_cannot_be_printed_is_an_error(self):
        with open("/dev/full", "wb") as full:
            for args in self.results():
                with self.subTest(args=args[:3]):
                    self.assert_error(self.run_closed([1], *args), 5, "E0501", "standard output")
                    self.assert_error(self.run_closed([], *args, stdout=full), 5, "E0501", "standard output")
                    self.assertEqual(self.run_closed([0, 1, 2], *args).returncode, 5)
        self.assert_whole(self.model)

    def test_an_error_keeps_its_status_wherever_it_is_said(self):
        missing = ["eval", self.folder / "nowhere", "--test", self.text, "--json"]
        with open("/dev/full", "wb") as full:
            for done in [self.run_closed([1], *missing), self.run_closed([], *missing, stdout=full)]:
                self.assert_error(done, 4, "nowhere")
        done = self.run_closed([2], *missing)
        self.assertEqual(done.returncode, 4)
        self.assertEqual(self.last_object(done)["error"], "E0403")
        self.assertEqual(self.run_closed([0, 1, 2], *missing).returncode, 4)

    def test_whoever_reads_no_more_has_read_enough(self):
        for args in self.results():
            with self.subTest(args=args[:3]):
                read, write = os.pipe()
                os.close(read)
                done = self.run_closed([], *args, stdout=write)
                os.close(write)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertNotIn(b"error", done.stderr)

    def test_files_may_not_be_larger_than_the_shell_allows(self):
        output, tensors = self.folder / "limited", self.tensors()
        few = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (256, 256))  # noqa: E731
        for command in [self.training(output), ["attention", tensors, "-o", self.folder / "out.npz"],
                        ["conformance", "write", self.folder / "kit"]]:
            done = subprocess.run([FOVEA, *map(str, command)], capture_output=True, env=self.environment(),
                                  preexec_fn=few, timeout=120)
            self.assert_error(done, 5, "E0501", "File too large")
        left = {path.name for path in self.folder.iterdir()}
        self.assertEqual(left, {"model", "text.txt", tensors.name})
        self.succeed(*self.training(output))

    def test_a_status_does_not_depend_on_who_reads(self):
        weights = self.model / "model.safetensors"
        weights.write_bytes(weights.read_bytes()[:-1])
        read, write = os.pipe()
        os.close(read)
        done = self.run_closed([], "inspect", self.model, "--verify", stdout=write)
        os.close(write)
        self.assert_error(done, 4, "damaged files: 1")


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""Commands for which an allocation fails: the n-th alone, or all from the n-th on.

tests/faults/failing_malloc.cc lets them fail. A command may then end with exit status 6, its two
lines and nothing lost, or go on without what it could not have, and give the same result.
"""

import os
import shutil
from pathlib import Path

from support import words
from test_resume import ResumeTest

from tensor_files import Tensor, write

FAILING_MALLOC = os.environ.get("FAILING_MALLOC", "build/release/tests/libfovea_failing_malloc.so")

# A model so small that a command takes some hundredths of a second.
TINY = ["--layers", "1", "--heads", "1", "--width", "8", "--block", "8", "--batch-size", "2", "--warmup", "1",
        "--eval-every", "1u", "--save-every", "1u", "--threads", "2"]


class AllocationTest(ResumeTest):
    # Numbers of allocations for each command and kind, evenly spread; None: all.
    most_reading = None
    most_training = None

    def setUp(self):
        super().setUp()
        self.assertTrue(Path(FAILING_MALLOC).is_file(), f"{FAILING_MALLOC} is missing: build fovea_failing_malloc")
        self.text.write_text(words(lines=8), encoding="utf-8")
        self.valid = self.folder / "valid.txt"
        self.valid.write_text(words(seed=2, lines=3), encoding="utf-8")
        self.model = self.folder / "model"
        self.succeed(*self.training(self.model, "--stop-after", "2u"))

    def training(self, output, *args):
        return ["train", "lm", "--train", self.text, "--valid", self.valid, "-o", output, *TINY, *args]

    def run_with(self, command, **variables):
        return self.run_fovea(*command, env={"LD_PRELOAD": str(Path(FAILING_MALLOC).resolve()), **variables})

    def failures(self, command, most):
        """What FAIL_ALLOCATION may be: for each number, alone and from it on."""
        file = self.folder / "count"
        self.assertEqual(self.run_with(command, COUNT_ALLOCATIONS=str(file)).returncode, 0)
        count = int(file.read_text())
        self.assertGreater(count, 500)
        step = 1 if most is None else max(1, count // most)
        # The numbers of one kind lie between those of the other.
        return [f"{n}{kind}" for kind, first in [("", 1), ("+", 1 + step // 2)] for n in range(first, count + 1, step)]

    def attempt(self, command, failure):
        """Whether it was done; otherwise it has ended as it should."""
        done = self.run_with(command, FAIL_ALLOCATION=failure)
        if done.returncode != 0:
            self.assert_error(done, 6, "E0601")
            self.assertNotIn(b"block", done.stderr)  # whatever the command, the hint is true of it
        return done.returncode == 0, done

    def survive(self, command):
        """A command that reads."""
        expected = self.succeed(*command).stdout
        for failure in self.failures(command, self.most_reading):
            with self.subTest(command=command[0], failure=failure):
                was_done, done = self.attempt(command, failure)
                if was_done:
                    self.assertEqual(done.stdout, expected)

    def survive_training(self, output, begin, command):
        """A command that trains, in what `begin` makes; it goes on to the same bits."""
        begin()
        failures = self.failures(command, self.most_training)
        expected = self.outcome(output)
        for failure in failures:
            with self.subTest(command=command[-1], failure=failure):
                shutil.rmtree(output, ignore_errors=True)
                begin()
                was_done, _ = self.attempt(command, failure)
                if not was_done:
                    self.go_on(output, command)
                self.assert_same(expected, self.outcome(output))

    def go_on(self, output, command):
        resume = command if "--resume" in command else [*command, "--resume"]
        if (output / "MANIFEST.json").exists():
            self.check(output)
            self.succeed(*resume)
        else:
            self.assertNotIn("--resume", command, "the run is lost")
            self.succeed(*command, "--overwrite")

    def check(self, output):
        """Before the run goes on."""


class Survival:
    """The tests of an AllocationTest."""

    def test_eval(self):
        self.survive(["eval", self.model, "--test", self.valid, "--json"])

    def test_generate(self):
        self.survive(["generate", self.model, "the", "--max-tokens", "3", "--threads", "2"])

    def test_verify(self):
        self.survive(["inspect", self.model, "--verify"])

    def test_inspect(self):
        self.survive(["inspect", self.model])

    def test_config(self):
        recipe = self.folder / "recipe.toml"
        recipe.write_text("[recipe]\nlr = 0.001\nmin_lr = 1e-5\nbeta1 = 0.8\nbeta2 = 0.95\nclip = 2.5\n")
        self.survive(["train", "lm", "--train", self.text, "--config", recipe, "--dump-config"])

    def test_attention(self):
        given = self.folder / "in.npz"
        write(given, {name: Tensor("F32", [1, 4, 1, 8], [0.5] * 32) for name in "qkv"})
        self.survive(["attention", given, "-o", self.folder / "out.npz", "--overwrite", "--causal"])

    def test_train(self):
        output = self.folder / "run"
        recipe = self.folder / "recipe.toml"
        recipe.write_text("[recipe]\nlr = 0.001\n")
        command = self.training(output, "--config", recipe, "--log-file", self.folder / "log.txt", "--stop-after", "2u")
        self.survive_training(output, lambda: None, command)

    def test_resume(self):
        output = self.folder / "run"
        self.survive_training(output, lambda: shutil.copytree(self.model, output),
                              ["train", "lm", "--resume", "-o", output, "--stop-after", "3u"])

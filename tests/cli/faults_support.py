# SPDX-License-Identifier: Apache-2.0
"""A training that is killed, or whose disk fails, at each of its calls that concern its folder.

tests/faults/failing_disk.cc counts the calls and makes the n-th one fail. After each fault: what was there
before is whole, exit status and messages are as documented, nothing is left half written, and the
run goes on to the same bits.
"""

import json
import os
import shutil
from pathlib import Path

from support import CommandTest

FAILING_DISK = os.environ.get("FAILING_DISK", "build/release/tests/libfovea_failing_disk.so")
TIMES = {"seconds", "seconds_left", "tokens_per_second"}

# A kill at any other call leaves the disk as a kill at the next of these does.
CHANGES = {"create", "write", "truncate", "flush", "rename", "mkdir", "chmod", "unlink", "rmdir"}
NEED_ROOM = {"create", "write", "flush", "rename", "mkdir"}
KINDS = {"kill": CHANGES, "full": NEED_ROOM, "error": CHANGES | {"open", "read", "close"}, "short": {"write"}}


class FaultsTest(CommandTest):
    kind = "lm"  # of the model
    settings = []  # of the training
    updates = 1  # from one save to the next

    def setUp(self):
        super().setUp()
        self.assertTrue(Path(FAILING_DISK).is_file(), f"{FAILING_DISK} is missing: build fovea_failing_disk")
        self.log = self.folder / "calls.log"

    def environment(self, extra=None):
        return super().environment({"LD_PRELOAD": str(Path(FAILING_DISK).resolve()), **(extra or {})})

    def command(self, output, *args):
        # One thread: each run makes the same calls in the same order.
        return ["train", self.kind, "--train", self.text, "-o", output, *self.settings, "--threads", "1", *args]

    def faulty(self, output, command, at=0, kind=""):
        """Runs the command; calls below the folder around `output` are counted."""
        return self.run_fovea(*command, env={
            "FAULTS_BELOW": str(output.parent), "FAULTS_LOG": str(self.log), "FAULTS_AT": str(at),
            "FAULTS_KIND": kind})

    def calls(self, output, command):
        """The kinds of all calls of a run without a fault."""
        self.log.unlink(missing_ok=True)
        done = self.faulty(output, command)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.log.read_text().split()

    def files(self, output):
        return sorted(str(p.relative_to(output)) for p in output.rglob("*") if p.name != "run.lock")

    def outcome(self, output):
        newest = max((output / "checkpoints").glob("step-??????"))
        records = [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()]
        return {
            "files": self.files(output),
            "model": (output / "model.safetensors").read_bytes(),
            "weights": (newest / "model.safetensors").read_bytes(),
            "optimizer": (newest / "optimizer.safetensors").read_bytes(),
            "metrics": [{k: v for k, v in r.items() if k not in TIMES} for r in records],
        }

    def go_on(self, output, args):
        """To the end of the run, by the way that its folder asks for."""
        begin = self.command(output, *[argument for argument in args if argument != "--resume"])
        resume = [*begin, "--resume"]
        if (output / "MANIFEST.json").exists():
            self.assert_error(self.run_fovea(*begin), 2, "E0205")
            self.assertNotIn(b"passed over", self.succeed(*resume).stderr)
        else:
            self.assert_error(self.run_fovea(*resume), 4, "E0404")
            self.succeed(*begin)

    def survive_one(self, kind, at, begin, args, expected):
        """The run's folder, after it has gone on if it had to, and how the fault ended it."""
        output = begin(self.folder / f"{kind}{at}")
        done = self.faulty(output, self.command(output, *args), at, kind)
        if kind == "kill":
            self.assertEqual(done.returncode, -9)
        elif done.returncode != 0:
            self.assertNotEqual(kind, "short", done.stderr)
            self.assert_error(done, 5)
            self.assert_nothing_half_written(output)
        elif self.files(output) != expected["files"]:
            self.assertRegex(done.stderr, b"cannot be removed|cannot list the folder")
        else:
            return output, 0
        self.go_on(output, args)
        return output, done.returncode

    def assert_nothing_half_written(self, output):
        self.assertEqual(list(output.rglob("*.tmp.*")), [])
        if not (output / "model.safetensors").exists():
            self.assertFalse(output.parent.exists(), "a run that could save nothing has left a folder")

    def survive(self, begin, args):
        """Every kind of fault at every call of the run with `args`, in what `begin(place)` makes;
        how often each kind ended with which status."""
        whole = begin(self.folder / "whole")
        calls = self.calls(whole, self.command(whole, *args))
        expected = self.outcome(whole)
        counts = {}
        for kind, at in [(kind, at) for at, call in enumerate(calls, 1) for kind in KINDS if call in KINDS[kind]]:
            with self.subTest(kind=kind, at=at, call=calls[at - 1]):
                output, status = self.survive_one(kind, at, begin, args, expected)
                counts[kind, status] = counts.get((kind, status), 0) + 1
                for part, value in self.outcome(output).items():
                    self.assertTrue(value == expected[part], f"{part}: {value!r:.400}, not {expected[part]!r:.400}")
            shutil.rmtree(self.folder / f"{kind}{at}", ignore_errors=True)
        print(f"{len(calls)} calls, {sum(counts.values())} faults: "
              + ", ".join(f"{kind} ends with {status} {n} times" for (kind, status), n in sorted(counts.items())),
              flush=True)
        return counts


class BeginningAndSaving:
    """The tests of a FaultsTest, for its settings and its text."""

    def test_a_run_that_begins(self):
        counts = self.survive(lambda place: place / "made" / "run", ["--stop-after", f"{self.updates}u"])
        self.assertGreater(counts["kill", -9], 50)
        self.assertGreater(counts["full", 5], 30)

    def test_a_later_save_that_drops_an_old_checkpoint(self):
        base = self.folder / "base"
        self.succeed(*self.command(base, "--stop-after", f"{2 * self.updates}u", "--keep", "9"))

        def begin(place):
            return Path(shutil.copytree(base, place / "run"))

        counts = self.survive(begin, ["--stop-after", f"{3 * self.updates}u", "--resume", "--keep", "1"])
        self.assertGreater(counts["kill", -9], 50)
        self.assertGreater(counts["full", 5], 30)

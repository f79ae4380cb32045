# SPDX-License-Identifier: Apache-2.0
"""Twenty runs and more, killed with -9, some of them in a save, some in an evaluation: all resume
and end with the same bits.

A kill counts as one in a save if the save's temporary folder or file is left, and as one in an
evaluation if the run had said that it evaluates, and had not said a result, when it died. Such
moments cannot be ordered, only tried for: a kill that misses its moment is one at a random moment.
"""

import collections
import os
import pty
import random
import re
import subprocess
import sys
import threading
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "cli"))

from support import FOVEA  # noqa: E402
from test_resume import ResumeTest  # noqa: E402

WANTED = {"a random moment": 8, "the save of a checkpoint": 4, "the save of the best model": 4,
          "an evaluation": 4}
MOST_KILLS = 200


class Terminal:
    """A process whose stderr is a terminal, and all that it has said there."""

    def __init__(self, command, environment):
        self.said = b""
        ours, its = pty.openpty()
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=its, env=environment)
        os.close(its)
        self.reader = threading.Thread(target=self._read, args=(ours,))
        self.reader.start()

    def _read(self, ours):
        try:
            while chunk := os.read(ours, 65536):
                self.said += chunk
        except OSError:
            pass  # EIO: the other end is closed
        os.close(ours)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.reader.join()

    def running(self):
        return self.process.poll() is None

    def evaluates(self):
        """Whether an evaluation was begun whose result has not been said."""
        begun = [int(step) for step in re.findall(rb"(\d+)/\d+  [^\r]*evaluating", self.said)]
        told = [int(step) for step in re.findall(rb"update (\d+): validation loss", self.said)]
        return max(begun, default=0) > max(told, default=0)


def leftovers(output):
    """(temporary folders of checkpoints, temporary files of the model)"""
    try:
        checkpoints = [n for n in os.listdir(output / "checkpoints") if ".tmp." in n]
    except FileNotFoundError:
        checkpoints = []
    return checkpoints, [n for n in os.listdir(output) if n.startswith("model.safetensors.tmp.")]


class Kills(ResumeTest):
    def wait_for(self, what, run, output, rng, duration):
        """Returns in the moment that is asked for, or when the run has ended."""
        if what == "a random moment":
            time.sleep(rng.uniform(0.05, 0.9) * duration)
            return
        moments = rng.randint(1, 5)  # which of its saves or evaluations
        inside = False
        while run.running():
            if what == "an evaluation":
                now = run.evaluates()
            elif not output.exists():
                now = False
            else:
                checkpoint, model = leftovers(output)
                now = bool(checkpoint if what == "the save of a checkpoint" else model)
            moments -= now and not inside
            inside = now
            if inside and moments <= 0:
                return

    def found(self, run, output):
        """What the kill interrupted, by what it left."""
        checkpoint, model = leftovers(output)
        if checkpoint:
            return "the save of a checkpoint"
        if model:
            return "the save of the best model"
        return "an evaluation" if run.evaluates() else "a random moment"

    def finish(self, output):
        if (output / "MANIFEST.json").exists():
            self.until_done(output)
        else:
            self.succeed(*self.arguments(output))

    def kill_once(self, number, what, rng, duration):
        output = self.folder / f"kill{number}"
        command = [FOVEA, *map(str, self.arguments(output, "--threads", "2"))]
        run = Terminal(command, self.environment({"TERM": "xterm"}))
        self.wait_for(what, run, output, rng, duration)
        survived = not run.running()
        run.kill()
        if survived:
            self.assertEqual(run.process.returncode, 0, run.said.decode("utf-8", "replace"))
            return None
        happened = self.found(run, output) if output.exists() else "a random moment"
        steps = [int(s) for s in re.findall(rb"saved \S*step-(\d{6})", run.said)]
        for folder in output.glob("checkpoints/step-??????"):
            self.succeed("inspect", folder, "--verify")
        self.finish(output)
        return happened, steps[-1] if steps else 0, output

    def test_every_killed_run_ends_with_the_same_bits(self):
        straight = self.straight()
        began = time.monotonic()
        self.succeed(*self.arguments(self.folder / "timed", "--threads", "2"))
        duration = time.monotonic() - began
        rng = random.Random(2)
        counts, saved = collections.Counter(), 0
        for number in range(MOST_KILLS):
            missing = [what for what, n in WANTED.items() if counts[what] < n]
            if not missing:
                break
            killed = self.kill_once(number, missing[number % len(missing)], rng, duration)
            if killed is None:
                continue
            happened, step, output = killed
            counts[happened] += 1
            saved += step > 0
            self.assert_same(straight, self.outcome(output))
            self.assertEqual([p for p in output.rglob("*.tmp*")], [])
            self.succeed("inspect", output, "--verify")
        print(f"{sum(counts.values())} kills, {saved} of them after a checkpoint; in "
              + ", ".join(f"{what}: {n}" for what, n in sorted(counts.items())), flush=True)
        for what, n in WANTED.items():
            self.assertGreaterEqual(counts[what], n, what)
        self.assertGreaterEqual(sum(counts.values()), 20)
        self.assertGreater(saved, 5)


if __name__ == "__main__":
    unittest.main()

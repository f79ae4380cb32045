# SPDX-License-Identifier: Apache-2.0
"""A run that is killed at any one system call that changes a file still has a folder that loads.

strace delivers SIGKILL as the run enters the call, once for each call in turn: opening with O_CREAT
or O_TRUNC, writing, truncating, flushing, renaming, linking, removing, making folders, changing
modes. A kill at any other call leaves the disk as a kill at the next of these does.
"""

import collections
import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "cli"))

from support import FOVEA  # noqa: E402
from test_resume import ResumeTest  # noqa: E402

CHANGING = ("open openat creat write pwrite64 writev truncate ftruncate fallocate fsync fdatasync rename"
            " renameat renameat2 link linkat symlink unlink unlinkat mkdir mkdirat rmdir chmod fchmod"
            " fchmodat").split()
CALL = re.compile(r"^(?:\d+ +)?(\w+)\((.*)$")


def available():
    """Those of the calls that this machine's strace knows."""
    return [call for call in CHANGING
            if subprocess.run(["strace", "-e", f"trace={call}", "true"], capture_output=True).returncode == 0]


class Save(ResumeTest):
    def setUp(self):
        super().setUp()
        self.calls = ",".join(available())
        self.assertTrue(self.calls, "strace does not work here; tools/install_dependencies.sh long")

    def command(self, output, *args):
        # One thread: each run makes the same calls in the same order.
        return [FOVEA, *map(str, self.arguments(output, "--threads", "1", "--save-every", "4u", *args))]

    def strace(self, command, *options):
        log = self.folder / "strace.log"
        done = subprocess.run(["strace", "-f", "-o", log, *options, *command], capture_output=True,
                              env=self.environment(), stdin=subprocess.DEVNULL, timeout=120)
        return done, log.read_text(errors="replace").splitlines()

    def places(self, command, output):
        """(call, which of its kind) of every call that changes a file of the run."""
        done, log = self.strace(command, "-y", "-e", f"trace={self.calls}")
        self.assertEqual(done.returncode, 0, done.stderr)
        counts, found = collections.Counter(), []
        for line in log:
            call = CALL.match(line)
            if not call:
                continue
            name, arguments = call.groups()
            counts[name] += 1
            opens = name in ("open", "openat")
            changes = not opens or "O_CREAT" in arguments or "O_TRUNC" in arguments
            if changes and str(output) in arguments:
                found.append((name, counts[name]))
        return found

    def kill_everywhere(self, begin, args):
        """`begin(output)` makes a folder; the run with `args` is killed in it at every place."""
        whole = begin("whole")
        places = self.places(self.command(whole, *args), whole)
        self.assertGreater(len(places), 40)
        expected = self.outcome(whole)
        loaded = collections.Counter()
        for number, (call, nth) in enumerate(places):
            output = begin(f"kill{number}")
            inject = f"inject={call}:signal=SIGKILL:when={nth}"
            with self.subTest(call=call, nth=nth):
                done, _ = self.strace(self.command(output, *args), "-e", f"trace={call}", "-e", inject)
                self.assertIn(done.returncode, (-9, 137), "the run was not killed")
                loaded[self.load(output)] += 1
                self.go_on(output, args)
                self.assert_same(expected, self.outcome(output))
                self.assertEqual([p for p in output.rglob("*.tmp*")], [])
            shutil.rmtree(output, ignore_errors=True)
        print(f"killed at {len(places)} calls; newest checkpoint that loads afterwards: "
              + ", ".join(f"{name} {n} times" for name, n in sorted(loaded.items())), flush=True)
        return loaded

    def load(self, output):
        """Every checkpoint that is there, and the model if there is one, is whole."""
        checkpoints = sorted(output.glob("checkpoints/step-??????"))
        for folder in checkpoints:
            self.succeed("inspect", folder, "--verify")
        if (output / "model.safetensors").exists():
            self.succeed("inspect", output, "--verify")
        return checkpoints[-1].name if checkpoints else "none"

    def go_on(self, output, args):
        begun = (output / "MANIFEST.json").exists()
        rest = [argument for argument in args if argument != "--resume"]
        self.succeed(*self.command(output, *rest, "--resume" if begun else "--overwrite")[1:])

    def test_the_first_save(self):
        loaded = self.kill_everywhere(lambda name: self.folder / name, ["--stop-after", "4u"])
        self.assertEqual(set(loaded), {"none", "step-000004"})

    def test_a_later_save_that_drops_an_old_checkpoint(self):
        base = self.folder / "base"
        self.succeed(*self.command(base, "--stop-after", "8u", "--keep", "9")[1:])

        def begin(name):
            return shutil.copytree(base, self.folder / name)

        loaded = self.kill_everywhere(begin, ["--stop-after", "12u", "--resume", "--keep", "1"])
        self.assertEqual(set(loaded), {"step-000008", "step-000012"})


if __name__ == "__main__":
    unittest.main()

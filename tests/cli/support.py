# SPDX-License-Identifier: Apache-2.0
"""The real binary, run as a user runs it."""

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

# The definition and the files of tensors, which the tools share.
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

FOVEA = os.environ.get("FOVEA", "build/release/cli/fovea")

# A model that trains in a second.
SMALL = ["--layers", "2", "--heads", "2", "--width", "32", "--block", "16", "--batch-size", "4",
         "--warmup", "5", "--threads", "2"]

# What a command says of bfloat16 where the machine multiplies it no faster than float32.
CONVERSION = "values are rounded to bfloat16 and multiplied as float32"


def has_products():
    """Whether this machine multiplies bfloat16 in pairs, as has_bfloat16_products() says."""
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        text = info.read()
    has = ("avx512_bf16" in text and "AuthenticAMD" in text) or "amx_bf16" in text
    return has and os.environ.get("FOVEA_ISA", "") in ("", *(["avx512"] if "AuthenticAMD" in text else ["amx"]))


def words(seed=1, lines=400):
    """Text with something to learn: sentences of a small grammar."""
    rng = random.Random(seed)
    subjects = ["the cat", "a dog", "my friend", "the old king", "one bird"]
    verbs = ["sees", "likes", "hears", "follows", "forgets"]
    objects = ["the moon.", "a river.", "the house.", "no one.", "every tree."]
    return "".join(f"{rng.choice(subjects)} {rng.choice(verbs)} {rng.choice(objects)}\n"
                   for _ in range(lines))


class CommandTest(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="fovea-cli-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.text = self.folder / "text.txt"
        self.text.write_text(words(), encoding="utf-8")

    def environment(self, extra=None):
        kept = {k: v for k, v in os.environ.items() if not k.startswith("FOVEA_")}
        for name in ("LC_ALL", "LC_MESSAGES", "LANG"):  # the tests read English
            if kept.get(name, "").startswith("zh"):
                kept[name] = "C.UTF-8"
        return {**kept, **(extra or {})}

    def start(self, *args, env=None, **options):
        return subprocess.Popen([FOVEA, *map(str, args)], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, env=self.environment(env), **options)

    def run_fovea(self, *args, env=None, timeout=120, stdin=b"", cwd=None):
        return subprocess.run([FOVEA, *map(str, args)], capture_output=True, timeout=timeout,
                              env=self.environment(env), input=stdin, cwd=cwd)

    def peak_of(self, *args):
        """What the command says, and its peak memory in bytes."""
        run = self.start(*args, stdin=subprocess.DEVNULL)
        with run.stdout, run.stderr:
            out, err = run.stdout.read(), run.stderr.read()
        _, status, usage = os.wait4(run.pid, 0)
        run.returncode = os.waitstatus_to_exitcode(status)
        return subprocess.CompletedProcess(args, run.returncode, out, err), usage.ru_maxrss << 10

    def succeed(self, *args, **options):
        done = self.run_fovea(*args, **options)
        self.assertEqual(done.returncode, 0, done.stderr.decode("utf-8", "replace"))
        return done

    def last_object(self, done):
        return json.loads(done.stdout.decode().splitlines()[-1])

    def assert_error(self, done, status, *needles):
        """One error line that says what and where, one hint line, the documented status."""
        said = done.stderr.decode("utf-8", "replace")
        lines = said.splitlines()
        errors = [line for line in lines if line.startswith("error[E")]
        hints = [line for line in lines if line.startswith("hint: ")]
        self.assertEqual(done.returncode, status, said)
        self.assertEqual(len(errors), 1, said)
        self.assertEqual(len(hints), 1, said)
        self.assertRegex(errors[0], r"^error\[E0\d{3}\]: .{10,}")
        self.assertEqual(int(errors[0][7:9]), status, said)
        self.assertGreater(len(hints[0]), len("hint: ") + 5)
        for needle in needles:
            self.assertIn(needle, errors[0])
        self.assertNotIn("\x1b", said)

    def train(self, output, *args, **options):
        return self.succeed("train", "lm", "--train", self.text, "-o", output, *SMALL, *args, **options)

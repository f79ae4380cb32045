# SPDX-License-Identifier: Apache-2.0
"""Stopped by one signal after another at random moments, with another number of threads each time,
a run ends with the bits of one that was never stopped."""

import random
import signal
import time
import unittest
from pathlib import Path

from support import SMALL
from test_resume import ResumeTest

STATUS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}


class RandomSignals(ResumeTest):
    signals = 8  # that a run has to meet, in all
    seed = 1

    def duration(self, output):
        began = time.monotonic()
        self.succeed(*self.arguments(output, "--threads", "2"))
        return time.monotonic() - began

    def run_until(self, output, threads, number, seconds):
        """Whether the signal came while the run was at work."""
        begun = (output / "MANIFEST.json").exists()
        arguments = self.arguments(output, *(["--resume"] if begun else []), "--threads", threads)
        process = self.start(*arguments)
        time.sleep(seconds)
        process.send_signal(number)
        err = process.communicate(timeout=60)[1].decode()
        if process.returncode == -number:
            self.assertEqual(err, "", "main promises a status")
        elif process.returncode != 0:
            self.assertEqual(process.returncode, STATUS[number], err)
        return process.returncode != 0

    def test_any_signals_and_threads_give_the_same_bits(self):
        straight = self.straight()
        duration = self.duration(self.folder / "timed")
        rng = random.Random(self.seed)
        met = runs = 0
        while met < self.signals:
            runs += 1
            self.assertLess(runs, 20 * self.signals, "hardly any signal meets a run")
            output = self.folder / f"run{runs}"
            threads = rng.randint(1, 3)
            while self.run_until(output, threads, rng.choice(list(STATUS)), rng.uniform(0, 0.5) * duration):
                met += 1
                threads = threads % 3 + 1
            self.assert_same(straight, self.outcome(output))
            self.assertEqual(list(output.rglob("*.tmp*")), [])
        print(f"{met} signals in {runs} runs", flush=True)

    def test_requests_during_the_start_are_kept(self):
        """SIGUSR1 and SIGUSR2 would end a process that does not listen yet."""
        large = self.folder / "large.txt"
        large.write_text(self.text.read_text() * 1000)
        for number in (signal.SIGUSR1, signal.SIGUSR2):
            process = self.starting(large, number)
            process.send_signal(number)
            err = process.communicate(timeout=60)[1].decode()
            self.assertEqual(process.returncode, 0, err)

    def test_requests_are_kept_before_the_options_are_read(self):
        """A dry run never trains: main alone keeps them."""
        large = self.folder / "large.txt"
        large.write_text(self.text.read_text() * 1000)
        process = self.starting(large, signal.SIGUSR1, "--dry-run")
        process.send_signal(signal.SIGUSR1)
        self.assertEqual(process.wait(timeout=60), 0)
        process.communicate()

    def test_a_stop_before_the_data_are_read_has_its_status_and_leaves_nothing(self):
        large = self.folder / "large.txt"
        large.write_text(self.text.read_text() * 1000)
        before = sorted(self.folder.iterdir())
        for number, status in STATUS.items():
            process = self.starting(large, number)
            process.send_signal(number)
            process.communicate(timeout=60)
            self.assertEqual(process.returncode, status)
        self.assertEqual(sorted(self.folder.iterdir()), before)

    def starting(self, text, number, *more):
        """A training that catches the signal and still reads its text."""
        for attempt in range(20):  # on a busy machine it may be over before it is looked at
            process = self.start("train", "lm", "--train", text, "-o", self.folder / f"start{number}-{attempt}", *SMALL,
                                 "--stop-after", "3u", "--valid-fraction", "0", *more)
            while process.poll() is None:
                if self.catches(process.pid, number):
                    return process
            self.assertEqual(process.returncode, 0, process.communicate()[1])
        self.fail("no training was seen at its start")

    def catches(self, pid, number):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        caught = next((line.split()[1] for line in lines if line.startswith("SigCgt")), "0")
        return int(caught, 16) >> (number - 1) & 1


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""Whatever interrupts a run, and however many threads it has, it ends with the same bits."""

import json
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

from support import FOVEA, CommandTest, words

STEPS = 60
KILLS = int(os.environ.get("FOVEA_KILLS", "4"))

# Dropout and mixed lengths on; evaluations and saves so often that kills meet them.
ARGS = ["--layers", "2", "--heads", "2", "--width", "32", "--block", "24", "--batch-size", "6",
        "--warmup", "5", "--dropout", "0.1", "--data", "lines", "--eval-every", "4u", "--save-every",
        "6u", "--log-every", "3"]

TIMES = {"seconds", "seconds_left", "tokens_per_second"}


class ResumeTest(CommandTest):
    more = ()  # options of every run

    def setUp(self):
        super().setUp()
        self.text.write_text(words(lines=3000), encoding="utf-8")

    def arguments(self, output, *args):
        return ["train", "lm", "--train", self.text, "-o", output, *ARGS, *self.more,
                "--stop-after", f"{STEPS}u", *args]

    def outcome(self, output):
        newest = max((output / "checkpoints").glob("step-??????"))
        records = [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()]
        return {
            "model": (output / "model.safetensors").read_bytes(),
            "last": newest.name,
            "weights": (newest / "model.safetensors").read_bytes(),
            "optimizer": (newest / "optimizer.safetensors").read_bytes(),
            "metrics": [{k: v for k, v in r.items() if k not in TIMES} for r in records],
        }

    def assert_same(self, a, b):
        for part in a:
            self.assertEqual(a[part] == b[part], True, part)

    def straight(self):
        output = self.folder / "straight"
        self.succeed(*self.arguments(output, "--threads", "2"))
        return self.outcome(output)

    def until_done(self, output):
        return self.succeed("train", "lm", "--resume", "-o", output, "--threads", "1", "--json")


class Threads(ResumeTest):
    def test_any_number_gives_the_same_model(self):
        for data in ["lines", "blocks"]:
            models = []
            for threads in [1, 2, 3, 8]:
                output = self.folder / f"{data}{threads}"
                self.succeed(*self.arguments(output, "--threads", threads, "--data", data))
                models.append(self.outcome(output))
            for other in models[1:]:
                self.assert_same(models[0], other)

    def test_another_seed_gives_another_model(self):
        first = self.straight()
        output = self.folder / "other"
        self.succeed(*self.arguments(output, "--seed", "2"))
        self.assertNotEqual(first["model"], self.outcome(output)["model"])


class RunningTest(ResumeTest):
    def wait_for_steps(self, process, output, steps=6):
        metrics = output / "metrics.jsonl"
        limit = time.monotonic() + 60
        while time.monotonic() < limit and process.poll() is None:
            if metrics.exists() and metrics.read_text().count('"update"') >= steps // 3:
                return
            time.sleep(0.005)
        self.fail("the run did not begin")

    def interrupt(self, number, extra=("--stop-after", "100000u")):
        output = self.folder / f"signal{number}"
        process = self.start(*self.arguments(output, *extra))
        self.wait_for_steps(process, output)
        process.send_signal(number)
        return output, process

    def finish(self, process):
        out, err = process.communicate(timeout=60)
        return process.returncode, out.decode(), err.decode()


class Signals(RunningTest):
    def test_interrupt_and_terminate_save_and_say_how_to_go_on(self):
        for number, status in [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGUSR2, 0)]:
            with self.subTest(signal=number):
                output, process = self.interrupt(number)
                code, _, err = self.finish(process)
                self.assertEqual(code, status, err)
                self.assertIn(f"fovea train lm --resume -o {output}", err)
                self.assertNotIn("error[", err)
                self.succeed("inspect", output, "--verify")
                self.succeed("generate", output, "the", "--max-tokens", "3")

    def test_the_printed_command_goes_on_from_anywhere(self):
        output = self.folder / "it's a run"
        process = self.start(*self.arguments(output, "--stop-after", "100000u"))
        self.wait_for_steps(process, output)
        process.send_signal(signal.SIGINT)
        err = self.finish(process)[2]
        command = shlex.split(err.split("to go on: ")[1].splitlines()[0])
        self.assertEqual(command[0], "fovea")
        done = subprocess.run([FOVEA, *command[1:], "--stop-after", "1u"], cwd="/", capture_output=True,
                              env=self.environment(), timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_run_that_was_interrupted_ends_with_the_same_bits(self):
        straight = self.straight()
        for number in [signal.SIGINT, signal.SIGTERM]:
            output, process = self.interrupt(number, ())
            self.finish(process)
            self.until_done(output)
            self.assert_same(straight, self.outcome(output))

    def test_a_second_hangup_changes_nothing(self):
        output, process = self.interrupt(signal.SIGHUP)
        process.send_signal(signal.SIGHUP)  # as a terminal that is closed does
        self.assertEqual(self.finish(process)[0], 129)
        self.succeed("inspect", output, "--verify")

    def test_a_hangup_that_the_caller_ignores_is_ignored(self):
        output = self.folder / "nohup"
        ignore = "import os, signal, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
        command = [sys.executable, "-c", ignore, FOVEA, *self.arguments(output, "--stop-after", "100000u")]
        process = subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=self.environment())
        self.wait_for_steps(process, output)
        process.send_signal(signal.SIGHUP)
        self.wait_for_steps(process, output, 60)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(self.finish(process)[0], 143)

    def test_usr1_saves_and_goes_on(self):
        output, process = self.interrupt(signal.SIGUSR1, ("--save-every", "100000u", "--stop-after", "3000u"))
        limit = time.monotonic() + 30
        while time.monotonic() < limit and not list(output.glob("checkpoints/step-??????")):
            time.sleep(0.005)
        self.assertTrue(list(output.glob("checkpoints/step-??????")))
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        self.assertEqual(self.finish(process)[0], 130)

    def test_second_signal_stops_now(self):
        output = self.folder / "hurried"
        self.succeed(*self.arguments(output, "--width", "256", "--stop-after", "6u"))
        # An update of 20000 batches takes minutes; the first signal waits for its end.
        process = self.start("train", "lm", "--resume", "-o", output, "--stop-after", "7u",
                             "--accumulate", "20000", "--threads", "1")
        self.wait_for_cpu(process, 2)  # many times what comes before the update
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        self.assertIsNone(process.poll(), "the first signal lets the update end")
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        self.assertEqual(self.finish(process)[0], -signal.SIGINT)
        self.assertLess(time.monotonic() - began, 5)
        self.succeed("train", "lm", "--resume", "-o", output, "--accumulate", "1", "--stop-after", "8u")

    def wait_for_cpu(self, process, seconds):
        limit = time.monotonic() + 60
        while time.monotonic() < limit and process.poll() is None:
            times = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
            if sum(map(int, times)) >= seconds * os.sysconf("SC_CLK_TCK"):
                return
            time.sleep(0.02)
        process.kill()
        self.fail(f"the run took no {seconds} s: {self.finish(process)}")

    def test_a_closed_stderr_does_not_end_a_run(self):
        output = self.folder / "deaf"
        process = self.start(*self.arguments(output, "--json"))
        process.stderr.close()
        out = process.stdout.read()
        process.stdout.close()
        self.assertEqual(process.wait(timeout=60), 0)
        self.assertEqual(json.loads(out)["steps"], STEPS)


class OneAtATime(RunningTest):
    def test_a_folder_in_use_is_refused_until_its_run_ends(self):
        output, process = self.interrupt(signal.SIGUSR1)
        limit = time.monotonic() + 30
        while time.monotonic() < limit and not list(output.glob("checkpoints/step-??????")):
            time.sleep(0.005)
        before = (output / "config.json").read_bytes()
        for extra in [[], ["--overwrite"], ["--resume"]]:
            with self.subTest(extra=extra):
                done = self.run_fovea(*self.arguments(output, *extra))
                self.assert_error(done, 2, "E0205", "another training", f"process {process.pid}")
        self.assertEqual((output / "config.json").read_bytes(), before)
        self.succeed("eval", output, "--test", self.text)
        self.succeed("generate", output, "the", "--max-tokens", "3")
        self.succeed("inspect", output, "--verify")
        self.assertIsNone(process.poll())
        process.kill()
        self.finish(process)
        self.succeed("train", "lm", "--resume", "-o", output, "--stop-after", "60u")
        self.assertFalse((output / "run.lock").exists())

    def test_a_lock_that_was_left_over_is_nothing(self):
        output = self.folder / "left"
        output.mkdir()
        (output / "run.lock").write_text("1\n")
        self.succeed(*self.arguments(output, "--stop-after", "2u"))


class Kill(ResumeTest):
    def test_kill_at_random_moments(self):
        straight = self.straight()
        began = time.monotonic()
        self.succeed(*self.arguments(self.folder / "timed", "--threads", "2"))
        duration = time.monotonic() - began
        rng = random.Random(int(os.environ.get("FOVEA_KILL_SEED", "1")))
        kept = 0
        for number in range(KILLS):
            output = self.folder / f"kill{number}"
            process = self.start(*self.arguments(output, "--threads", "2"))
            time.sleep(rng.uniform(0.1, 0.9) * duration)
            process.kill()
            process.communicate()
            kept += len(list(output.glob("checkpoints/step-??????"))) > 0
            if not (output / "MANIFEST.json").exists():
                self.succeed(*self.arguments(output))
            else:
                self.until_done(output)
            self.assert_same(straight, self.outcome(output))
            self.assertEqual([p for p in output.rglob("*.tmp*")], [])
            self.succeed("inspect", output, "--verify")
        self.assertGreater(kept, 0, "no kill came after a checkpoint: nothing was tested")


class KillInBFloat16(Kill):
    more = ("--precision", "bf16", "--save-dtype", "bf16")


class Resume(ResumeTest):
    def test_longer_run(self):
        output = self.folder / "run"
        self.succeed(*self.arguments(output))
        done = self.succeed("train", "lm", "--resume", "-o", output, "--stop-after", "70u", "--json")
        self.assertEqual(self.last_object(done)["steps"], 70)

    def test_what_only_looks_removes_nothing(self):
        output = self.folder / "run"
        self.succeed(*self.arguments(output, "--stop-after", "12u"))
        gone = subprocess.Popen(["true"])
        gone.wait()
        left = output / "checkpoints" / f"step-000040.tmp.{gone.pid}"
        left.mkdir()
        (left / "model.safetensors").write_bytes(b"half")
        for look in ["--dump-config", "--dry-run"]:
            self.succeed("train", "lm", "--resume", "-o", output, look)
            self.assertTrue((left / "model.safetensors").exists(), look)
        self.succeed("train", "lm", "--resume", "-o", output)
        self.assertFalse(left.exists())

    def test_from_a_named_checkpoint(self):
        output = self.folder / "run"
        self.succeed(*self.arguments(output, "--keep", "20"))
        before = self.outcome(output)
        back = ["train", "lm", f"--resume={output}/checkpoints/step-000030", "--json"]
        self.assert_error(self.run_fovea(*back), 2, "gone on to update")
        self.assert_same(before, self.outcome(output))
        self.succeed(*back, "--overwrite", "--stop-after", "30u")
        self.assertEqual(max(path.name for path in output.glob("checkpoints/step-*")), "step-000030")
        done = self.succeed("train", "lm", "--resume", "-o", output, "--stop-after", f"{STEPS}u", "--json")
        self.assertEqual(self.last_object(done)["steps"], STEPS)
        self.assert_same(before, self.outcome(output))

    def test_changed_options_are_noticed(self):
        for change in [["--lr", "1e-4"], ["--batch-size", "5"], ["--accumulate", "2"], ["--seed", "3"]]:
            with self.subTest(change=change):
                output = self.folder / change[0][2:]
                self.succeed(*self.arguments(output, "--stop-after", "12u"))
                done = self.succeed("train", "lm", "--resume", "-o", output, "--stop-after", "14u", *change)
                warnings = [line for line in done.stderr.decode().splitlines() if line.startswith("warning: --")]
                self.assertEqual(sorted(line.split(": ")[1] for line in warnings), sorted(["--stop-after", change[0]]))
                for line in warnings:
                    self.assertRegex(line, "^warning: --[a-z-]+: the checkpoint has .*; from now on it is ")

    def test_a_longer_run_says_how_the_learning_rate_jumps_and_how_it_would_not(self):
        first = self.folder / "first"
        self.succeed(*self.arguments(first, "--stop-after", "20u"))

        def go_on(name, *args):
            shutil.copytree(first, self.folder / name)
            said = self.succeed("train", "lm", "--resume", "-o", self.folder / name, "--stop-after", "40u", *args)
            lines = (self.folder / name / "metrics.jsonl").read_text().splitlines()
            rates = {r["step"]: r["lr"] for r in map(json.loads, lines) if r["kind"] == "update"}
            return said.stderr.decode(), rates

        said, rates = go_on("jumps")
        self.assertRegex(said, r"(?m)^warning: the schedule changes: learning rate 0\.0001 -> 0\.000\d+ at update 21; "
                               r"without that jump: --schedule constant --lr 0\.0001, "
                               r"or --schedule wsd --lr 0\.0001 --min-lr 1e-05$")
        self.assertGreater(rates[21], 5e-4)
        for name, args in re.findall(r"--schedule (\w+) (--lr [^,\n]*)", said):
            with self.subTest(schedule=name):
                said, rates = go_on(name, "--schedule", name, *args.split())
                self.assertNotIn("the schedule changes", said)
                self.assertAlmostEqual(rates[21], 1e-4)
                self.assertEqual(rates[40] < 5e-5, name == "wsd", "it decays at its end")
                # Killed on the way, it ends with the same bits.
                twice = self.folder / f"{name}-twice"
                shutil.copytree(first, twice)
                more = ["train", "lm", "--resume", "-o", twice, "--stop-after", "40u"]
                self.succeed(*more, "--schedule", name, *args.split())
                checkpoints = sorted(path.name for path in twice.glob("checkpoints/step-*"))
                shutil.rmtree(twice / "checkpoints" / checkpoints[-1])
                self.succeed("train", "lm", "--resume", "-o", twice)
                self.assert_same(self.outcome(self.folder / name), self.outcome(twice))

    def recipe_of(self, checkpoint):
        return json.loads((checkpoint / "config.json").read_text())["recipe"]

    def test_the_end_of_the_schedule_stays_where_only_its_height_changes(self):
        output = self.folder / "run"
        self.succeed(*self.arguments(output, "--stop-after", "12u", "--lr", "1e-3", "--min-lr", "5e-4"))
        self.succeed("train", "lm", "--resume", "-o", output, "--stop-after", "18u", "--lr", "2e-3")
        recipe = self.recipe_of(output / "checkpoints" / "step-000018")
        self.assertEqual((recipe["lr"], recipe["min_lr"]), (2e-3, 5e-4))
        # It cannot end above its height.
        self.succeed("train", "lm", "--resume", "-o", output, "--stop-after", "24u", "--lr", "1e-4")
        self.assertAlmostEqual(self.recipe_of(output / "checkpoints" / "step-000024")["min_lr"], 1e-5)
        # A run that begins means the whole schedule.
        self.succeed(*self.arguments(self.folder / "other", "--stop-after", "12u", "--lr", "2e-3"))
        self.assertAlmostEqual(self.recipe_of(self.folder / "other")["min_lr"], 2e-4)

    def test_inspect_tells_what_a_resumed_run_has_changed(self):
        output = self.folder / "run"
        self.succeed(*self.arguments(output, "--stop-after", "12u"))
        self.succeed("train", "lm", "--resume", "-o", output, "--stop-after", "18u", "--seed", "7")
        said = self.succeed("inspect", output).stdout.decode()
        self.assertRegex(said, r"recipe\.seed +1, since it was resumed 7\n")
        self.assertRegex(said, r"recipe\.lr +0\.001\n")

    def test_more_patience_goes_on_as_if_the_run_had_never_ended(self):
        steady = ["--lr", "0.3", "--schedule", "constant", "--eval-every", "2u", "--log-every", "7", "--keep", "60"]
        straight, output = self.folder / "straight", self.folder / "ended"
        self.succeed(*self.arguments(straight, *steady))
        said = self.succeed(*self.arguments(output, *steady, "--patience", "2")).stderr.decode()
        end = int(re.search(r"the run ends early.*", said) and max((output / "checkpoints").glob("step-*")).name[5:])
        lines = [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()]
        self.assertIn(end, [r["step"] for r in lines if r["kind"] == "update"], "an end is written")
        self.assertNotEqual(end % 7, 0, "choose another seed")
        self.succeed("train", "lm", "--resume", "-o", output, "--patience", "0")
        ended, never = self.outcome(output), self.outcome(straight)
        del ended["model"], never["model"]  # it names its settings, of which --patience is one
        self.assert_same(never, ended)

    def test_path_may_be_the_folder_of_the_run(self):
        output = self.folder / "run"
        self.succeed(*self.arguments(output, "--stop-after", "12u"))
        for path in [output, f"{output}/"]:
            done = self.succeed("train", "lm", f"--resume={path}", "--stop-after", "14u", "--json")
            self.assertEqual(self.last_object(done)["steps"], 14)

    def test_from_another_folder_with_relative_paths(self):
        process = self.start(*self.arguments("run", "--train", "text.txt", "--stop-after", "12u"), cwd=self.folder)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0)
        done = self.succeed("train", "lm", "--resume", "-o", self.folder / "run", "--stop-after", "14u", "--json")
        self.assertEqual(self.last_object(done)["steps"], 14)

    def test_moved_text_is_the_same_text(self):
        output = self.folder / "run"
        self.succeed(*self.arguments(output, "--stop-after", "12u"))
        moved = self.folder / "moved.txt"
        self.text.rename(moved)
        self.assert_error(self.run_fovea("train", "lm", "--resume", "-o", output), 3, str(self.text))
        self.succeed("train", "lm", "--resume", "-o", output, "--train", moved, "--stop-after", "14u")


if __name__ == "__main__":
    unittest.main()

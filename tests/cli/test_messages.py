# SPDX-License-Identifier: Apache-2.0
"""What is said while the work is done: how much, where, in which colours; and the settings, dumped."""

import json
import os
import pty
import re
import subprocess
import unittest

from support import FOVEA, SMALL, CommandTest

RUN = ["--stop-after", "40u", "--eval-every", "20u", "--save-every", "20u"]
PROGRESS = re.compile(r"^update \d+/40 \(\d+%\): train loss ", re.MULTILINE)


class Messages(CommandTest):
    def setUp(self):
        super().setUp()
        self.model = self.folder / "model"

    def said(self, *args, **options):
        return self.train(self.model, *RUN, *args, **options).stderr.decode()

    def on_terminal(self, *args, env=None):
        """stderr of a run, as a terminal of 100 columns gets it."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen([FOVEA, *map(str, args)], stdout=subprocess.PIPE, stderr=theirs,
                                   env={**self.environment(), "TERM": "xterm", **(env or {})})
        os.close(theirs)
        data = b""
        try:
            while chunk := os.read(ours, 4096):
                data += chunk
        except OSError:
            pass  # the other end is closed
        os.close(ours)
        process.communicate(timeout=60)
        return data.decode("utf-8", "replace").replace("\r\n", "\n")

    def train_on_terminal(self, *args, env=None):
        return self.on_terminal("train", "lm", "--train", self.text, "-o", self.model, *SMALL, *RUN, *args, env=env)

    def test_lines_where_no_terminal_is(self):
        said = self.said()
        self.assertRegex(said, PROGRESS)
        self.assertIn("update 20: validation loss", said)
        self.assertIn("saved ", said)
        self.assertNotIn("threads, instruction set", said)

    def test_lines_with_losses_are_short_and_name_the_best_first(self):
        done = self.train(self.model, *RUN)
        said = done.stderr.decode()
        self.assertRegex(said, r"(?m)^update 20: validation loss \d\.\d{4}, of the best weights so far; train loss \d\.\d{4}$")
        self.assertRegex(said, r"(?m)^update 40/40 \(100%\): train loss \d\.\d{4}, valid \d\.\d{4} at update 40, ")
        self.assertRegex(done.stdout.decode(), r"(?m)^best validation loss \d\.\d{4}, at update 40; "
                                               r"last validation loss \d\.\d{4}; train loss \d\.\d{4}$")

    def test_an_update_is_called_an_update(self):
        """`step` is the name of a field and of a folder alone."""
        done = self.train(self.model, *RUN)
        resumed = self.succeed("train", "lm", "--resume", "-o", self.model, "--stop-after", "44u")
        looked = self.succeed("inspect", self.model)
        for said in [done.stderr, done.stdout, resumed.stderr, resumed.stdout, looked.stdout]:
            self.assertNotRegex(said.decode().replace("step-0000", ""), r"(?i)\bsteps?\b")
        for command in ["train lm", "generate", "eval", "inspect"]:
            self.assertNotRegex(self.succeed(*command.split(), "--help").stdout.decode(), r"(?i)\bsteps?\b")

    def test_a_bar_on_a_terminal(self):
        said = self.train_on_terminal()
        self.assertIn("\r\x1b[K", said)
        self.assertIn("update 20: validation loss", said)

    def test_progress_plain(self):
        said = self.train_on_terminal("--progress", "plain")
        self.assertNotIn("\r", said)
        self.assertRegex(said, PROGRESS)

    def test_progress_none(self):
        for said in [self.train_on_terminal("--progress", "none"), self.said("--progress", "none", "--overwrite")]:
            self.assertNotIn("\r", said)
            self.assertNotRegex(said, PROGRESS)
            self.assertIn("update 20: validation loss", said)

    def test_quiet_says_nothing_but_warnings_and_errors(self):
        for option in ["-q", "--quiet"]:
            self.assertEqual(self.said(option, "--overwrite"), "")
        crlf = self.folder / "crlf.txt"
        crlf.write_bytes(self.text.read_bytes().replace(b"\n", b"\r\n"))
        said = self.said("--quiet", "--overwrite", "--train", crlf)
        self.assertRegex(said, r"\Awarning: .*CR LF.*\n\Z")
        self.assert_error(self.run_fovea("train", "lm", "--train", "nowhere", "-o", self.model, "-q", "--overwrite"), 3)

    def test_verbose_says_what_is_used(self):
        for option in ["-v", "--verbose"]:
            said = self.said(option, "--overwrite")
            for what in ["2 threads, instruction set ", "vocabulary of 283 tokens", "validation: ", " parameters; about "]:
                self.assertIn(what, said)
        said = self.succeed("eval", self.model, "--test", self.text, "-v", "-t", "1").stderr.decode()
        self.assertIn("1 thread, instruction set ", said)
        self.assertIn(" parameters", said)
        done = self.succeed("generate", self.model, "the", "--max-tokens", "7", "--verbose")
        self.assertRegex(done.stderr.decode(), r"(?m)^7 tokens in \S+ s \(\S+ tokens/s\)$")
        self.assertEqual(self.succeed("generate", self.model, "the", "--max-tokens", "7").stderr, b"")

    def test_quiet_and_verbose_exclude_each_other(self):
        self.assert_error(self.run_fovea("train", "lm", "--train", self.text, "-o", self.model, "-q", "-v"), 2, "--quiet")
        self.assertFalse(self.model.exists())

    def test_mistyped_variables_of_the_environment(self):
        said = self.said(env={"FOVEA_WIDHT": "32", "FOVEA_SOMEBODYS_OWN": "1"})
        self.assertIn("warning: the environment variable FOVEA_WIDHT is not read; did you mean FOVEA_WIDTH?\n", said)
        self.assertNotIn("SOMEBODYS", said)
        self.assertNotIn("did you mean", self.train(self.folder / "other", *RUN, env={"FOVEA_WIDTH": "32"}).stderr.decode())

    def test_log_file_holds_what_is_said(self):
        log = self.folder / "log.txt"
        said = self.said("--log-file", log)
        self.assertEqual(log.read_text(), said)
        again = self.said("--log-file", log, "--overwrite")
        self.assertEqual(log.read_text(), said + again, "it is added to")

    def test_log_file_has_lines_where_the_terminal_has_a_bar(self):
        log = self.folder / "log.txt"
        self.train_on_terminal("--log-file", log, "--color", "always")
        self.assertRegex(log.read_text(), PROGRESS)
        self.assertIn("update 20: validation loss", log.read_text())
        self.assertNotRegex(log.read_text(), "[\r\x1b]")

    def test_log_file_has_errors_too(self):
        log = self.folder / "log.txt"
        for args in [["train", "lm", "--train", "nowhere", "-o", self.model], ["generate", "nowhere"],
                     ["eval", "nowhere", "--test", self.text]]:
            log.unlink(missing_ok=True)
            done = self.run_fovea(*args, "--log-file", log, "--color", "always")
            self.assertIn(b"\x1b[1;31merror[", done.stderr)
            self.assertRegex(log.read_text(), r"\Aerror\[E0[34]0\d\]: .*nowhere.*\nhint: .*\n\Z")

    def test_log_file_that_cannot_be_written(self):
        for path in [self.folder / "no" / "log.txt", self.folder]:
            done = self.run_fovea("train", "lm", "--train", self.text, "-o", self.model, "--log-file", path)
            self.assert_error(done, 5, "--log-file", str(path))
            self.assertFalse(self.model.exists())

    def test_log_file_is_no_file_of_the_command(self):
        self.train(self.model, *RUN)
        for log, *command in [
                (self.text, "train", "lm", "--train", self.text, "-o", self.folder / "other", *SMALL, *RUN),
                (self.text, "eval", self.model, "--test", self.text, "-v"),
                (self.model / "tokenizer.txt", "train", "lm", "--resume", "-o", self.model, "--stop-after", "50u"),
                (self.model / "MANIFEST.json", "train", "lm", "--resume", "-o", self.model, "--stop-after", "50u"),
                (self.model / "config.json", "generate", self.model, "the"),
                (self.model / "new.log", "generate", self.model, "the")]:
            before = log.read_bytes() if log.exists() else None
            with self.subTest(log=log.name, command=command[0]):
                self.assert_error(self.run_fovea(*command, "--log-file", log), 2, "E0201", "--log-file", log.name)
                self.assertEqual(log.read_bytes() if log.exists() else None, before)
        self.succeed("inspect", self.model, "--verify")
        self.assertFalse((self.folder / "other").exists())

    def test_log_file_that_is_a_pipe_nobody_reads(self):
        log = self.folder / "pipe"
        os.mkfifo(log)
        done = self.run_fovea("eval", self.model, "--test", self.text, "--log-file", log, timeout=20)
        self.assert_error(done, 5, "--log-file", "pipe")

    def test_log_file_on_a_full_disk(self):
        done = self.run_fovea("train", "lm", "--train", self.text, "-o", self.model, *SMALL, *RUN, "-v",
                              "--log-file", "/dev/full", "--json")
        self.assert_error(done, 5, "E0503", "--log-file: /dev/full", "No space left")
        said = done.stderr.decode()
        self.assertEqual(said.count("warning: --log-file: /dev/full: No space left"), 1, said)
        self.assertLess(said.index("warning: "), said.index("update 20: "), "it is said at once")
        self.assertRegex(said, PROGRESS)
        steps, error = map(json.loads, done.stdout.decode().splitlines())
        self.assertEqual((steps["steps"], error["error"]), (40, "E0503"))
        self.succeed("inspect", self.model, "--verify")
        # Where something else is wrong, that is the error.
        self.assert_error(self.run_fovea("generate", "nowhere", "--log-file", "/dev/full"), 4, "nowhere")

    def test_color(self):
        wrong = ["generate", "nowhere"]
        for args, env, colored in [([], {}, True), (["--color", "never"], {}, False), ([], {"NO_COLOR": "1"}, False),
                                   ([], {"TERM": "dumb"}, False), (["--color", "always"], {"NO_COLOR": "1"}, True),
                                   (["--color", "auto"], {}, True)]:
            with self.subTest(args=args, env=env):
                said = self.on_terminal(*wrong, *args, env=env)
                self.assertIn("error[E0403]:", said)
                self.assertEqual("\x1b[" in said, colored, said)
        for args, env, colored in [([], {}, False), (["--color", "always"], {}, True), ([], {"CLICOLOR_FORCE": "1"}, True),
                                   (["--color", "never"], {"CLICOLOR_FORCE": "1"}, False)]:
            with self.subTest(args=args, env=env):
                said = self.run_fovea(*wrong, *args, env=env).stderr.decode()
                self.assertEqual("\x1b[" in said, colored, said)

    def test_colors_of_the_bar(self):
        self.assertIn("\x1b[36m", self.train_on_terminal())
        self.assertNotIn("\x1b[36m", self.train_on_terminal("--overwrite", "--color", "never"))

    def test_choices(self):
        for option, value in [("--progress", "bar"), ("--color", "red")]:
            done = self.run_fovea("train", "lm", "--train", self.text, "-o", self.model, option, value)
            self.assert_error(done, 2, f"{option}: expected one of: auto, ")


class DumpConfig(CommandTest):
    def dump(self, *args, **options):
        return self.succeed("train", "lm", *args, "--dump-config", **options).stdout.decode()

    def test_is_what_config_takes(self):
        model = self.folder / "model"
        first = self.dump("--train", self.text, "--preset", "tiny", "--lr", "3e-4", "-o", model, "--stop-after", "4u",
                          "--position", "alibi", "--no-tie", "--threads", "2", env={"FOVEA_HEADS": "1"})
        self.assertFalse(model.exists(), "nothing is done")
        for line in ["heads = 1", "block = 32", "lr = 0.0003", "position = 'alibi'", "tie = false", "threads = 2"]:
            self.assertIn(f"\n{line}\n", first)
        config = self.folder / "c.toml"
        config.write_text(first)
        self.assertEqual(self.dump("-c", config), first)
        self.succeed("train", "lm", "-c", config)
        stored = json.loads((model / "config.json").read_text())
        self.assertEqual((stored["model"]["heads"], stored["recipe"]["stop_after"]), (1, "4u"))

    def test_begins_no_log(self):
        log = self.folder / "log.txt"
        self.assertIn(f"\nlog_file = '{log}'\n", self.dump("--train", self.text, "--log-file", log))
        self.assertFalse(log.exists(), "nothing is done")

    def test_of_a_run_that_would_be_resumed(self):
        model = self.folder / "model"
        self.train(model, "--stop-after", "4u")
        said = self.dump("--resume", "-o", model, "--stop-after", "9u")
        self.assertIn("\nwidth = 32\n", said)
        self.assertIn("\nstop_after = '9u'\n", said)

    def test_refuses_what_makes_no_sense(self):
        self.assert_error(self.run_fovea("train", "lm", "--dump-config", "--lr", "-1"), 2, "--lr: -1")


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""The folder of a run that ended early, that was moved, or that holds what is not ours."""

import json
import os
import shutil
import signal
import time
import unittest

from support import SMALL, CommandTest
from tag_support import SEGMENT as SEGMENTER
from tag_support import SMALL as TAGGER
from tag_support import conll, segmented, tagged
from translate_support import SMALL as TRANSLATOR
from translate_support import sentences


class RunFolderTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.output = self.folder / "run"

    def command(self, *args, stop="4u"):
        return ["train", "lm", "--train", self.text, "-o", self.output, *SMALL, "--stop-after", stop, *args]

    def train_here(self, *args, **options):
        return self.succeed(*self.command(*args, **options))

    def files(self):
        return sorted(str(p.relative_to(self.output)) for p in self.output.rglob("*") if p.is_file())


class EndedEarly(RunFolderTest):
    """What is left of a run that ended before its manifest, or before its first weights."""

    def leave(self, *names):
        """What an earlier training has written under these names, and nothing else."""
        whole = self.folder / "whole"
        if not whole.exists():
            self.train(whole, "--stop-after", "2u")
        shutil.rmtree(self.output, ignore_errors=True)
        self.output.mkdir()
        for name in names:
            shutil.copy(whole / name, self.output / name)

    def test_before_the_manifest_it_is_begun_again(self):
        cases = [[], ["run.lock"], ["config.json"], ["config.json", "tokenizer.txt"],
                 ["config.json", "tokenizer.txt", "run.lock"], ["config.json.tmp.12.0", "run.lock"]]
        for left in cases:
            for extra in [[], ["--overwrite"]]:
                with self.subTest(left=left, extra=extra):
                    self.leave(*[name for name in left if name in ("config.json", "tokenizer.txt")])
                    for name in left:
                        if not (self.output / name).exists():
                            (self.output / name).write_text("1")
                    resumed = self.run_fovea("train", "lm", "--resume", "-o", self.output)
                    said = "ended before it had anything to resume" if left else "no run here to resume"
                    self.assert_error(resumed, 4, "E0404", said)
                    self.assertIn(b"without --resume", resumed.stderr)
                    self.train_here(*extra)
                    self.succeed("inspect", self.output, "--verify")
                    self.assertEqual([n for n in self.files() if ".tmp." in n or n == "run.lock"], [])

    def test_before_the_first_weights_nothing_is_damaged(self):
        self.leave("config.json", "tokenizer.txt", "MANIFEST.json")
        for args in [["inspect", "--verify"], ["inspect"], ["generate"]]:
            done = self.run_fovea(args[0], self.output, *args[1:])
            self.assert_error(done, 4, "E0403", "no weights have been saved yet")
            self.assertIn(b"--resume", done.stderr)
            self.assertNotIn(b"DAMAGED", done.stdout)
        self.assert_error(self.run_fovea(*self.command()), 2, "E0205")
        self.succeed("train", "lm", "--resume", "-o", self.output, "--stop-after", "4u")
        self.succeed("inspect", self.output, "--verify")

    def test_weights_that_are_lost_are_damage(self):
        self.train_here()
        (self.output / "model.safetensors").unlink()
        self.assert_error(self.run_fovea("inspect", self.output, "--verify"), 4, "E0401")
        self.assert_error(self.run_fovea("inspect", self.output), 4, "E0403", "model.safetensors is missing")
        self.succeed("train", "lm", "--resume", "-o", self.output)
        self.succeed("inspect", self.output, "--verify")

    def test_a_damaged_manifest_can_be_overwritten(self):
        self.train_here()
        (self.output / "MANIFEST.json").write_text("{")
        self.assert_error(self.run_fovea(*self.command()), 2, "E0205")
        self.train_here("--overwrite")
        self.succeed("inspect", self.output, "--verify")


class OfOtherTasks(RunFolderTest):
    """The files that runs of some tasks alone have."""

    def test_overwriting_removes_them(self):
        cases = (("translate", "pairs.tsv", "".join(f"{a}\t{b}\n" for a, b in sentences()), TRANSLATOR,
                  ["target-tokenizer.txt", "target-vocab.txt", "vocab.txt"]),
                 ("tag", "names.conll", conll(tagged()), TAGGER, ["characters.txt", "vocab.txt"]),
                 ("tag", "words.seg", segmented(), SEGMENTER, ["vocab.txt", "words.txt"]))
        for task, name, text, args, own in cases:
            with self.subTest(own=own):
                data = self.folder / name
                data.write_text(text)
                self.succeed("train", task, "--train", data, *args, "--stop-after", "2u", "-o", self.output, "--overwrite")
                self.assertEqual([name for name in own if name in self.files()], own)
                self.train_here("--overwrite")
                self.assertEqual([name for name in own if name in self.files()], [])


class Foreign(RunFolderTest):
    """What fovea has not written is refused, or stays."""

    def test_files_with_our_names_are_refused(self):
        for name, text in [("config.json", "{}"), ("config.json", '{"kind": "language_model", "x": 1}'),
                           ("tokenizer.txt", "a b c\n"), ("vocab.txt", "<pad>\n<unk>\nthe\n"), ("model.safetensors", "x"), ("metrics.jsonl", "{}\n"),
                           ("MANIFEST.json", '{"name": "an extension"}')]:
            for lock in [False, True]:
                with self.subTest(name=name, text=text, lock=lock):
                    shutil.rmtree(self.output, ignore_errors=True)
                    self.output.mkdir()
                    (self.output / name).write_text(text)
                    if lock:
                        (self.output / "run.lock").write_text("1\n")
                    for extra in [[], ["--overwrite"]]:
                        self.assert_error(self.run_fovea(*self.command(*extra)), 2, "E0205")
                    self.assertEqual((self.output / name).read_text(), text)

    def test_a_lock_that_is_none_of_ours_is_refused(self):
        lock, other = self.output / "run.lock", self.folder / "precious.txt"
        self.output.mkdir()
        other.write_text("1\n")
        for make in (lambda: lock.write_text("my notes"), lambda: os.link(other, lock), lambda: os.mkfifo(lock)):
            lock.unlink(missing_ok=True)
            make()
            for extra in [[], ["--overwrite"]]:
                self.assert_error(self.run_fovea(*self.command(*extra), timeout=20), 2, "E0205", "run.lock")
            self.assertTrue(lock.exists())
        self.assertEqual(other.read_text(), "1\n")

    def test_checkpoints_of_another_tool_are_refused(self):
        theirs = self.output / "checkpoints" / "step-000100" / "weights.pt"
        theirs.parent.mkdir(parents=True)
        theirs.write_text("theirs")
        self.assert_error(self.run_fovea(*self.command("--overwrite")), 2, "checkpoints")
        self.assertEqual(theirs.read_text(), "theirs")

    def test_other_files_stay(self):
        self.train_here()
        names = ["notes.txt", "config.json.tmp.bak", "loss.svg.tmp.1", "config.json.tmp.1.2.txt", "x.tmp.1.0"]
        for name in names:
            (self.output / name).write_text("mine")
        (self.output / "checkpoints" / "step-000004.tmp.old").mkdir()
        self.train_here("--overwrite")
        self.succeed("train", "lm", "--resume", "-o", self.output, "--stop-after", "6u")
        for name in names:
            self.assertEqual((self.output / name).read_text(), "mine")
        self.assertTrue((self.output / "checkpoints" / "step-000004.tmp.old").is_dir())


class Kept(RunFolderTest):
    def test_a_resume_with_nothing_to_do_keeps_no_more_than_it_is_told(self):
        self.train_here("--save-every", "1u", "--keep", "9")
        done = self.succeed("train", "lm", "--resume", "-o", self.output, "--keep", "2", "--json")
        self.assertEqual(self.last_object(done)["steps"], 4)
        self.assertEqual(sorted(p.name for p in (self.output / "checkpoints").iterdir()),
                         ["step-000003", "step-000004"])


class Final(RunFolderTest):
    def test_only_the_model_is_kept(self):
        self.train_here()
        weights = (self.output / "model.safetensors").read_bytes()
        self.assertIn("checkpoints/step-000004/optimizer.safetensors", self.files())
        said = self.train_here("--final", "--overwrite", "--json")
        self.assertEqual(json.loads(said.stdout)["steps"], 4)
        self.assertEqual((self.output / "model.safetensors").read_bytes(), weights)
        self.assertFalse([name for name in self.files() if name.startswith("checkpoints")])
        self.succeed("inspect", self.output, "--verify")
        self.succeed("report", self.output, "-o", self.folder / "page.html")
        # There is nothing to go on from, so a run that is resumed begins anew, and ends the same.
        self.train_here("--resume")
        self.assertEqual((self.output / "model.safetensors").read_bytes(), weights)

    def test_a_run_that_is_stopped_keeps_its_checkpoints(self):
        process = self.start(*self.command("--final", stop="1000000u"), "--save-every", "2u")
        while process.poll() is None and not (self.output / "model.safetensors").exists():
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        process.communicate()
        self.assertTrue([name for name in self.files() if name.startswith("checkpoints")])


class Moved(RunFolderTest):
    def test_a_folder_that_is_moved_away_is_an_error_of_the_output(self):
        moved = self.folder / "moved"
        process = self.start(*self.command("--save-every", "50u", "--eval-every", "50u", stop="100000u"))
        while process.poll() is None and not list(self.output.glob("checkpoints/step-*")):
            pass
        self.output.rename(moved)
        out, err = process.communicate(timeout=60)
        lines = [line for line in err.decode().splitlines() if line.startswith(("error[", "hint: "))]
        self.assertEqual(process.returncode, 5, err)
        self.assertIn("error[E0501]", lines[0])
        self.assertIn("moved or removed while it was at work", lines[0])
        self.assertIn("if it was removed, train again", lines[1])
        self.assertFalse(self.output.exists())
        self.succeed("inspect", moved, "--verify")
        process = self.start("train", "lm", "--resume", "-o", moved)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)

    def test_a_file_of_the_model_that_is_removed_is_an_error_of_the_next_save(self):
        """Also what an `rm -rf` leaves that meets a save: the folder, without these files."""
        for name in ["config.json", "MANIFEST.json"]:
            with self.subTest(name):
                shutil.rmtree(self.output, ignore_errors=True)
                process = self.start(*self.command("--save-every", "50u", "--eval-every", "50u", stop="100000u"))
                while process.poll() is None and not list(self.output.glob("checkpoints/step-*")):
                    pass
                (self.output / name).unlink()
                err = process.communicate(timeout=60)[1].decode()
                self.assertEqual(process.returncode, 5, err)
                self.assertRegex(err, rf"error\[E0501\].*{name}: the file of the run was moved or removed")
                goes_on = self.run_fovea("train", "lm", "--resume", "-o", self.output, "--stop-after", "1u")
                if name == "MANIFEST.json":
                    self.assertEqual(goes_on.returncode, 4)
                    self.assertIn("once it is back", err)
                    self.train_here("--overwrite")
                else:
                    self.assertEqual(goes_on.returncode, 0, goes_on.stderr)
                    self.assertIn("--resume -o DIR goes on", err)
                    self.succeed("inspect", self.output, "--verify")  # it was put back

    def test_before_the_first_checkpoint_a_lost_file_does_not_cost_the_run(self):
        rare = ["--save-every", "1000000u", "--eval-every", "1000000u"]
        for name in ["config.json", "MANIFEST.json"]:
            with self.subTest(name):
                shutil.rmtree(self.output, ignore_errors=True)
                process = self.start(*self.command(*rare, stop="100000u"))
                while process.poll() is None and not (self.output / "starts.jsonl").exists():
                    pass
                lost = (self.output / name).read_bytes()
                (self.output / name).unlink()
                process.send_signal(signal.SIGTERM)
                err = process.communicate(timeout=60)[1].decode()
                self.assertEqual(process.returncode, 5, err)
                self.assertIn("--resume -o DIR goes on", err)
                if name == "config.json":
                    self.assertTrue(list(self.output.glob("checkpoints/step-*")))
                else:
                    (self.output / name).write_bytes(lost)  # as the hint says
                done = self.succeed("train", "lm", "--resume", "-o", self.output, *rare, "--stop-after", "1u")
                self.assertEqual(b"it comes from the checkpoint" in done.stderr, name == "config.json")
                self.assertEqual((self.output / name).read_bytes(), lost)
                self.succeed("inspect", self.output, "--verify")


class Names(CommandTest):
    """Paths that are not UTF-8."""

    def setUp(self):
        super().setUp()
        self.odd = self.folder / os.fsdecode(b"caf\xe9.txt")
        shutil.copy(self.text, self.odd)
        self.output = self.folder / "run"

    def test_texts_are_refused_before_anything_is_written(self):
        for args in [["--train", self.odd], ["--train", self.text, "--valid", self.odd]]:
            for extra in [[], ["--dry-run"], ["--dump-config"]]:
                done = self.run_fovea("train", "lm", *args, "-o", self.output, *SMALL, *extra)
                self.assert_error(done, 2, "E0203", args[-2], r"caf\xE9.txt: not UTF-8")
        self.assertFalse(self.output.exists())

    def test_a_link_names_them(self):
        link = self.folder / "link.txt"
        link.symlink_to(self.odd)
        self.succeed("train", "lm", "--train", link, "-o", self.output, *SMALL, "--stop-after", "2u")
        self.succeed("train", "lm", "--resume", "-o", self.output, "--stop-after", "4u")

    def test_a_folder_above_counts_too(self):
        folder = self.folder / os.fsdecode(b"\xff")
        folder.mkdir()
        shutil.copy(self.text, folder / "text.txt")
        done = self.run_fovea("train", "lm", "--train", "text.txt", "-o", "run", *SMALL, cwd=folder)
        self.assert_error(done, 2, "E0203", "--train")
        self.assertEqual(os.listdir(folder), ["text.txt"])

    def test_a_configuration_file_may_be_called_so_and_not_say_so(self):
        config = self.folder / os.fsdecode(b"\xff.toml")
        arguments = ["train", "lm", "-c", config, "-o", self.output, *SMALL, "--stop-after", "2u"]
        config.write_bytes(b'[text]\ntrain = ["' + os.fsencode(self.odd) + b'"]\n')
        self.assert_error(self.run_fovea(*arguments), 2, "E0204")
        config.write_text(f'[text]\ntrain = ["{self.text}"]\n')
        self.succeed(*arguments)

    def test_an_output_may_be_called_so(self):
        output = self.folder / os.fsdecode(b"r\xfcn")
        self.succeed("train", "lm", "--train", self.text, "-o", output, *SMALL, "--stop-after", "2u")
        self.succeed("train", "lm", "--resume", "-o", output, "--stop-after", "4u")
        self.succeed("inspect", output, "--verify")
        done = self.run_fovea("train", "lm", "--train", self.text, "-o", output, *SMALL, "--dump-config")
        self.assert_error(done, 2, "E0203", "--output")


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""fovea reproduce: numbers as lines and as a table, runs that go on, data that is missing."""

import json
import pathlib
import signal
import time
import unittest

from support import CommandTest

FIELDS = ["experiment", "variant", "seed", "metric", "published", "ours", "by_epoch", "seconds_per_epoch",
          "pytorch_seconds_per_epoch"]
QUICK = ["order", "--share", "0.002", "--seeds", "1", "--threads", "2"]


class Reproduce(CommandTest):
    def test_each_number_is_a_line_of_json(self):
        done = self.succeed("reproduce", *QUICK, "--json", "-o", self.folder / "out")
        rows = [json.loads(line) for line in done.stdout.decode().splitlines()]
        self.assertIn("none", [row["variant"] for row in rows])
        for row in rows:
            self.assertEqual(list(row), FIELDS)
            self.assertTrue(0 <= row["ours"] <= 1)
        kept = [json.loads(line) for line in (self.folder / "out/share0.002/results.jsonl").read_text().splitlines()]
        self.assertEqual(kept, rows)

    def test_rows_of_earlier_calls_stay(self):
        out = self.folder / "out"
        self.succeed("reproduce", *QUICK, "-o", out)
        results = out / "share0.002/results.jsonl"
        before = results.read_text()
        self.succeed("reproduce", "order", "--share", "0.002", "--seeds", "2", "-o", out)
        both = results.read_text()
        self.assertTrue(set(before.splitlines()) < set(both.splitlines()))
        self.succeed("reproduce", *QUICK, "-o", out)
        self.assertEqual(results.read_text(), both)

    def test_a_file_of_something_else_is_kept(self):
        out = self.folder / "out/share0.002"
        out.mkdir(parents=True)
        (out / "results.jsonl").write_text("my notes\n")
        self.assert_error(self.run_fovea("reproduce", *QUICK, "-o", out.parent), 2, "results.jsonl:1")
        self.assertEqual((out / "results.jsonl").read_text(), "my notes\n")

    def test_a_last_line_that_is_not_finished_is_dropped(self):
        out = self.folder / "out"
        first = self.succeed("reproduce", *QUICK, "--json", "-o", out).stdout
        results = out / "share0.002/results.jsonl"
        whole = results.read_text()
        results.write_text(whole[:-20])
        done = self.succeed("reproduce", *QUICK, "--json", "-o", out)
        self.assertIn(b"the last line is not finished", done.stderr)
        self.assertEqual((done.stdout, results.read_text()), (first, whole))

    def test_a_table_ends_the_command(self):
        lines = self.succeed("reproduce", *QUICK, "-o", self.folder / "out").stdout.decode().splitlines()
        self.assertRegex(lines[0], r"variant +metric +published +ours")
        self.assertTrue(any(line.startswith("P8   none") for line in lines))

    def test_a_run_that_was_stopped_goes_on_with_the_same_numbers(self):
        arguments = ["order", "--share", "0.02", "--seeds", "1", "--json", "-o"]
        whole = self.succeed("reproduce", *arguments, self.folder / "whole").stdout
        for _ in range(3):
            process = self.start("reproduce", *arguments, self.folder / "parts")
            time.sleep(0.3)
            process.send_signal(signal.SIGINT)
            process.communicate()
            self.assertIn(process.returncode, (0, 130))
        self.assertEqual(self.succeed("reproduce", *arguments, self.folder / "parts").stdout, whole)

    def test_data_that_is_missing_is_named_with_its_checksum(self):
        done = self.run_fovea("reproduce", "prince", "--data", self.folder, "-o", self.folder / "out")
        self.assert_error(done, 3, "little_prince/sentences.tok.txt")
        self.assertIn(b"73158b350786dbf553b4986877bfc789e01c247b3a5a89df82094cb5be69b722", done.stderr)
        (self.folder / "little_prince").mkdir()
        (self.folder / "little_prince/sentences.tok.txt").write_text("another text\n")
        self.assert_error(self.run_fovea("reproduce", "prince", "--data", self.folder, "-o", self.folder / "out"), 3,
                          "this is another file")

    def test_a_trial_of_imdb_has_rows_without_published_numbers(self):
        data = next((folder / "shared/data" for folder in pathlib.Path(__file__).resolve().parents
                     if (folder / "shared/data/imdb").exists()), None)
        if data is None:
            self.skipTest("there is no shared/data/imdb above this folder")
        done = self.succeed("reproduce", "imdb", "--data", data, "--compat", "--share", "0.002", "--seeds", "1", "--json",
                            "-o", self.folder / "out")
        rows = [json.loads(line) for line in done.stdout.decode().splitlines()]
        self.assertEqual({row["experiment"] for row in rows}, {"E1", "E2", "E3", "P9"})
        self.assertEqual({row["published"] for row in rows}, {None})
        for row in rows:
            self.assertEqual(len(row["by_epoch"]), 5)

    def test_a_trial_of_taggers_runs_what_is_asked(self):
        data = next((folder / "shared/data" for folder in pathlib.Path(__file__).resolve().parents
                     if (folder / "shared/data/zh_gsdsimp").exists()), None)
        if data is None:
            self.skipTest("there is no shared/data/zh_gsdsimp above this folder")
        arguments = ["tag", "--data", data, "--only", "segment-linear", "--share", "0.1", "--seeds", "2", "--json", "-o",
                     self.folder / "out"]
        done = self.succeed("reproduce", *arguments)
        rows = [json.loads(line) for line in done.stdout.decode().splitlines()]
        self.assertEqual([(row["variant"], row["seed"], row["metric"]) for row in rows],
                         [("segment-linear-crf", seed, metric) for seed in (1, 2)
                          for metric in ("word_f1", "unknown_word_recall", "seconds")])
        self.assertEqual(len(rows[0]["by_epoch"]), 3)
        self.assertGreater(rows[0]["ours"], .75)
        self.assertEqual(self.succeed("reproduce", *arguments).stdout, done.stdout)
        self.assertTrue((self.folder / "out/share0.1/E8-segment.svg").exists())

    def test_what_does_not_fit_is_refused(self):
        self.assert_error(self.run_fovea("reproduce", "prince"), 2, "no folder of data")
        self.assert_error(self.run_fovea("reproduce", "translate"), 2, "no folder of data")
        self.assert_error(self.run_fovea("reproduce", "translate", "--data", self.folder, "--compat"), 2,
                          "--compat has no effect here")
        self.assert_error(self.run_fovea("reproduce", "translate", "--data", self.folder, "-o", self.folder / "out"), 3,
                          "zh_en_handson/zh.txt")
        self.assert_error(self.run_fovea("reproduce", "nothing"), 2, "there is no experiment 'nothing'")
        self.assert_error(self.run_fovea("reproduce", "prince", "--data", self.folder, "--compat", "--fixed"), 2, "exclude each other")
        for option, value in (("--seeds", "0"), ("--seeds", "1.5"), ("--share", "0"), ("--share", "2"), ("--share", "x")):
            self.assert_error(self.run_fovea("reproduce", "order", option, value), 2, option)
        for option in (["--compat"], ["--data", self.folder], ["--pytorch", "x"]):
            self.assert_error(self.run_fovea("reproduce", "order", *option), 2, f"{option[0]} has no effect here")
        self.assert_error(self.run_fovea("reproduce", "order", "--only", "none"), 2, "--only has no effect here")
        self.assert_error(self.run_fovea("reproduce", "tag"), 2, "no folder of data")
        self.assert_error(self.run_fovea("reproduce", "tag", "--data", self.folder, "--compat"), 2, "--compat has no effect")
        self.assert_error(self.run_fovea("reproduce", "tag", "--data", self.folder), 3, "wnut17/train.conll")
        self.assert_error(self.run_fovea("reproduce", "speed", "--seeds", "2"), 2, "--seeds has no effect here")
        self.assert_error(self.run_fovea("reproduce", "speed", "--python", "x"), 2, "--python has no effect")
        self.assert_error(self.run_fovea("reproduce", "imdb", "--data", self.folder, "--python", "x"), 2,
                          "--python has no effect without --pytorch")
        (self.folder / "model").mkdir()
        (self.folder / "model/config.json").write_text("{}")
        self.assert_error(self.run_fovea("reproduce", "order", "-o", self.folder / "model"), 2, "holds a model")
        (self.folder / "file").write_text("")
        done = self.run_fovea("reproduce", *QUICK, "-o", self.folder / "file")
        self.assertEqual(done.returncode, 5, done.stderr)


if __name__ == "__main__":
    unittest.main()

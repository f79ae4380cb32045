#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fovea train classify --auto: what is tried and chosen, resumed searches, options that stay."""

import json
import random
import signal
import time
import unittest

from support import CommandTest

WORDS = "film plot actor scene story music night road house friend water light summer train letter garden".split()


class SearchTest(CommandTest):
    def reviews(self, count=240, name="train.tsv", seed=1):
        rng = random.Random(seed)
        rows = []
        for i in range(count):
            words = rng.choices(WORDS, k=8)
            words[rng.randrange(7)] = rng.choice(("not", "so"))
            label = "bad" if "not" in words else "good"
            rows.append(f"{label if rng.random() < 0.9 else 'good'}\t{' '.join(words)}\n")
        path = self.folder / name
        path.write_text("".join(rows), encoding="utf-8")
        return path

    def search(self, *args, output="model"):
        return self.succeed("train", "classify", "--train", self.reviews(), "-o", self.folder / output, *args)

    def settings(self, output="model"):
        return json.loads((self.folder / output / "config.json").read_text())

    def trials(self, output="model"):
        lines = map(json.loads, (self.folder / output / "trials.jsonl").read_text().splitlines())
        return [line for line in lines if line["kind"] == "trial"]

    def weights(self, output):
        return (self.folder / output / "model.safetensors").read_bytes()

    def test_the_best_trial_is_trained(self):
        done = self.search("--auto", "5t")
        said = done.stderr.decode()
        trials = self.trials()
        self.assertEqual([trial["trial"] for trial in trials], [1, 2, 3, 4, 5])
        self.assertEqual(trials[0]["options"], "--model linear")  # the defaults
        self.assertEqual(len({trial["options"] for trial in trials}), 5)
        best = min(trials, key=lambda trial: trial["loss"])
        self.assertIn(f"chosen: trial {best['trial']}, of the lowest loss of 5", said)
        self.assertIn(f"{best['options']} {best['found']}".strip(), said)
        options = f"{best['options']} {best['found']}".split()
        given = dict(zip(options[::2], options[1::2])) if "--no-lower" not in options else None
        settings = self.settings()
        self.assertEqual(settings["search"]["auto"], "")
        if given:
            self.assertEqual(settings["linear"]["word_ngrams"], given["--word-ngrams"])
            self.assertEqual(settings["linear"]["weighting"], given["--weighting"])
        # Who gives these options gets the same model.
        self.search(*options, output="given")
        self.assertEqual(self.weights("given"), self.weights("model"))

    def uneven(self, rows):
        """Three classes of 90, 7 and 3 %, with a word that tells each, mostly."""
        rng = random.Random(3)
        lines = []
        for i in range(rows):
            label = "rare" if i % 33 == 0 else "some" if i % 14 == 0 else "usual"
            words = rng.choices(WORDS, k=8)
            if label != "usual" and rng.random() < 0.6:
                words[rng.randrange(8)] = {"rare": "comet", "some": "harbour"}[label]
            lines.append(f"{label}\t{' '.join(words)}\n")
        path = self.folder / "uneven.tsv"
        path.write_text("".join(lines), encoding="utf-8")
        return path

    def test_uneven_classes_are_compared_by_macro_f1(self):
        args = ("train", "classify", "--train", self.uneven(700), "--auto", "9t", "-o", self.folder / "model")
        said = self.succeed(*args).stderr.decode()
        head = json.loads((self.folder / "model" / "trials.jsonl").read_text().split("\n")[0])
        self.assertEqual(head["compared"], "macro_f1")
        trials = self.trials()
        usual = trials[0]
        self.assertGreater(usual["error"], 0.001)
        best = max(trials, key=lambda trial: trial["metrics"]["macro_f1"])
        if best["metrics"]["macro_f1"] <= usual["metrics"]["macro_f1"] + usual["error"]:
            best = usual
        self.assertIn(f"chosen: trial {best['trial']}, ", said)
        self.assertIn("best macro_f1 so far", said)
        # The number that is told is that of the model that is trained.
        self.assertIn(f"macro_f1 {best['metrics']['macro_f1']:.4f}", said)
        # Who asks for another metric gets it.
        said = self.succeed(*args[:-1], self.folder / "other", "--metric", "loss").stderr.decode()
        self.assertIn("best loss so far", said)

    def test_the_defaults_are_tried_on_all_texts_first(self):
        self.succeed("train", "classify", "--train", self.uneven(3300), "--auto", "3t", "--model", "linear",
                     "-o", self.folder / "model")
        rows = [(trial["rows"], trial["rung"]) for trial in self.trials()]
        self.assertEqual(rows, [(3300, 2), (1100, 1), (1100, 1)])

    def test_a_killed_search_goes_on_to_the_same_choice(self):
        args = ("train", "classify", "--train", self.reviews(600), "--auto", "40t", "-o")
        self.succeed(*args, self.folder / "whole")
        process = self.start(*args, self.folder / "cut", "--progress", "none")
        while not (self.folder / "cut" / "trials.jsonl").exists() or len(self.whole_lines("cut")) < 2:
            self.assertIsNone(process.poll())
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        self.assertLess(len(self.whole_lines("cut")), 40)
        with open(self.folder / "cut" / "trials.jsonl", "a") as file:
            file.write('{"kind": "tri')  # as if it died in the middle of a line
        done = self.succeed("train", "classify", "--resume", "-o", self.folder / "cut")
        self.assertIn("chosen: trial", done.stderr.decode())
        key = [(trial["options"], trial["loss"]) for trial in self.trials("whole")]
        self.assertEqual([(trial["options"], trial["loss"]) for trial in self.trials("cut")], key)
        self.assertEqual(self.weights("cut"), self.weights("whole"))
        self.assertEqual(self.settings("cut"), self.settings("whole"))

    def whole_lines(self, output):
        return (self.folder / output / "trials.jsonl").read_text().split("\n")[1:-1]

    def test_a_signal_stops_it_and_other_texts_do_not_resume_it(self):
        process = self.start("train", "classify", "--train", self.reviews(600), "-o", self.folder / "model", "--auto",
                             "1000t", "--progress", "plain")
        for line in process.stderr:
            if b"trial 1" in line:
                break
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()
        process.communicate()
        self.assertEqual(process.returncode, 130)
        self.assertIn(b"stopped in the search", said)
        self.assertFalse((self.folder / "model" / "model.safetensors").exists())
        other = self.reviews(50, "other.tsv", 7)
        done = self.run_fovea("train", "classify", "--resume", "-o", self.folder / "model", "--train", other)
        self.assert_error(done, 2, "of other texts or options")
        self.assert_error(self.run_fovea("classify", self.folder / "model", stdin=b"a\n"), 4, "")

    def test_options_that_are_given_stay(self):
        self.search("--auto", "4t", "--char-ngrams", "2-3", "--weighting", "ratio")
        self.assertEqual(self.settings()["linear"]["char_ngrams"], "2-3")
        self.assertEqual(self.settings()["linear"]["weighting"], "ratio")
        for trial in self.trials():
            self.assertNotIn("binary", trial["options"])

    def test_a_bag_is_searched(self):
        self.search("--auto", "2t", "--model", "bag", "--stop-after", "30u", "--width", "16")
        self.assertEqual([trial["options"].split()[1] for trial in self.trials()], ["bag", "bag"])
        settings = self.settings()
        self.assertEqual((settings["model"]["model"], settings["model"]["width"]), ("bag", 16))
        self.assertFalse((self.folder / "model" / "trial.tmp").exists())

    def test_budgets(self):
        self.search("--auto", "0.01s")  # the first trial is always measured
        self.assertEqual(len(self.trials()), 1)
        train = ("train", "classify", "--train", self.reviews(), "-o", self.folder / "new")
        for budget in ("5x", "0t", "-3t", "1.5t", "0s", "t", "10"):
            self.assert_error(self.run_fovea(*train, "--auto", budget), 2, "--auto")
        self.assertFalse((self.folder / "new").exists())


if __name__ == "__main__":
    unittest.main()

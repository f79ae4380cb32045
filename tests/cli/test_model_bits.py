# SPDX-License-Identifier: Apache-2.0
"""Every kind of model has the same bits with any number of threads, and after any number of kills."""

import random
import time
import unittest

from tag_support import conll, segmented, tagged
from test_models import MODELS
from test_resume import ResumeTest

TINY = ["--width", "16", "--block", "12", "--batch-size", "5", "--warmup", "5", "--dropout", "0.1", "--lr", "1e-2"]
EVERY = {"transformer": ["--layers", "2", "--heads", "2"], **MODELS,
         "wide": ["--model", "encoder", "--encoder", "conv3:70,sru:40+attention:heads=7:window=8,lstm:33", "--no-tie"],
         "steps": ["--model", "encoder", "--encoder", "attention:dilation=2,attention:strided=3", "--position", "shaw"]}


TAGGERS = {
    "names": ["--character-features", "8", "--character-width", "8", "--encoder", "conv3,bilstm:8", "--scheme", "bioes"],
    "softmax": ["--head", "softmax", "--character-reader", "bilstm", "--character-features", "8", "--encoder",
                "attention:window=4", "--position", "shaw", "--encoder-dropout", "0.1", "--ngram-width", "4", "--buckets", "50"],
    "segmenter": ["--task", "segment", "--encoder", "bilstm:8"],
}


def uneven_lines(lines=300):
    """Lines of one word to thirty: some are shorter than a block, some longer, and some are empty."""
    rng = random.Random(4)
    words = [f"w{n}" for n in range(40)]
    return "".join(" ".join(rng.choices(words, k=rng.choice([0, 1, 2, 3, 5, 9, 30]))) + "\n" for _ in range(lines))


class ModelTest(ResumeTest):
    model = []

    def setUp(self):
        super().setUp()
        self.text.write_text(uneven_lines())

    def arguments(self, output, *args):
        return ["train", "lm", "--train", self.text, "-o", output, *TINY, *self.model, *args]

    def weights(self, output):
        return (output / "model.safetensors").read_bytes()


class Bits(ModelTest):
    """After 200 updates: a thread that adds a number twice, or in another order, has time to show."""

    def expect_same_for_any_threads(self, *args):
        for name, self.model in EVERY.items():
            with self.subTest(name):
                weights = []
                for threads in (1, 2, 3, 8):
                    output = self.folder / f"{name}-{threads}"
                    self.succeed(*self.arguments(output, "--threads", threads, "--stop-after", "200u", "--eval-every",
                                                 "200u", "--save-every", "200u", *args))
                    weights.append(self.weights(output))
                self.assertEqual([other == weights[0] for other in weights], [True] * 4)

    def test_words_in_lines_of_all_lengths(self):
        self.expect_same_for_any_threads("--data", "lines", "--tokenizer", "word", "--min-count", "1")

    def test_a_stream_of_bytes(self):
        self.expect_same_for_any_threads("--data", "blocks", "--tokenizer", "byte")


class Kills(ModelTest):
    """Killed at random moments, and resumed with another number of threads, until it ends."""

    models = EVERY
    kills = 2  # of each model
    seed = 1

    def arguments(self, output, *args):
        return super().arguments(output, "--data", "lines", "--eval-every", "9u", "--save-every", "6u", "--log-every",
                                 "3", "--stop-after", "90u", *args)

    def run_until_killed(self, output, threads, seconds):
        """Whether the kill came while the run was at work."""
        begun = (output / "MANIFEST.json").exists()
        process = self.start(*self.arguments(output, *(["--resume"] if begun else []), "--threads", threads))
        time.sleep(seconds)
        process.kill()
        err = process.communicate(timeout=60)[1].decode("utf-8", "replace")
        if process.returncode != -9:
            self.assertEqual(process.returncode, 0, err)
        return process.returncode == -9

    def killed_runs(self, name, straight, duration):
        """(kills, kills after a checkpoint); every run ends with the bits of the straight one."""
        rng = random.Random(f"{self.seed}{name}")
        killed = kept = runs = 0
        while killed < self.kills:
            runs += 1
            self.assertLess(runs, 20 * self.kills, "hardly any kill meets a run")
            output = self.folder / f"{name}-run{runs}"
            while self.run_until_killed(output, rng.randint(1, 3), rng.uniform(0.1, 0.9) * duration):
                killed += 1
                kept += len(list(output.glob("checkpoints/step-??????"))) > 0
            self.assert_same(straight, self.outcome(output))
            self.assertEqual(list(output.rglob("*.tmp*")), [])
        return killed, kept

    def test_every_model_ends_with_the_same_bits(self):
        all_kept = 0
        for name, self.model in self.models.items():
            with self.subTest(name):
                output = self.folder / f"{name}-straight"
                began = time.monotonic()
                self.succeed(*self.arguments(output, "--threads", "2"))
                killed, kept = self.killed_runs(name, self.outcome(output), time.monotonic() - began)
                print(f"{name}: {killed} kills, {kept} after a checkpoint", flush=True)
                all_kept += kept
        self.assertGreater(all_kept, len(self.models) * self.kills // 4, "few kills came after a checkpoint")


class TaggerKills(Kills):
    """The same of taggers and a segmenter."""

    models = TAGGERS

    def setUp(self):
        super().setUp()
        self.text.write_text(conll(tagged()), encoding="utf-8")
        self.segmented = self.folder / "text.seg"
        self.segmented.write_text(segmented(), encoding="utf-8")

    def arguments(self, output, *args):
        return ["train", "tag", "--train", self.segmented if "segment" in self.model else self.text, "-o", output,
                "--word-width", "8", "--width", "16", "--lr", "1e-2", "--progress", "none", *self.model, "--eval-every",
                "9u", "--save-every", "6u", "--log-every", "3", "--stop-after", "90u", "--patience", "0", *args]


if __name__ == "__main__":
    unittest.main()

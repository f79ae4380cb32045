# SPDX-License-Identifier: Apache-2.0
"""fovea explain of models of numbers: what it prints, writes and refuses."""

import itertools
import json
import os
import shutil
import struct
import subprocess
import unicodedata
import unittest
from pathlib import Path

from frames_support import JOINTS, STEPS, gestures
from support import FOVEA, CommandTest
from tensor_files import Tensor, read, write

UTF8 = {"LC_ALL": "C.UTF-8", "NO_COLOR": "1"}
HEADS = 2


def float32(number):
    """As JSON writes it, with the fewest digits that read back to the same."""
    return struct.unpack("f", struct.pack("f", number))[0]


def width(text):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


class ExplainNumbers(CommandTest):
    models = None

    @classmethod
    def setUpClass(cls):
        """A model with joints, one without, both over samples of several lengths; and one of texts."""
        super().setUpClass()
        cls.models = Path(subprocess.run(["mktemp", "-d"], capture_output=True, check=True, text=True).stdout.strip())
        cls.addClassCleanup(shutil.rmtree, cls.models, ignore_errors=True)
        cls.file, cls.flat, cls.reviews = (cls.models / name for name in ("moves.npz", "flat.npz", "reviews.tsv"))
        cls.arrays = gestures(60, 5)[0]
        write(cls.file, cls.arrays)
        flat = Tensor("F32", (60, STEPS, 3 * JOINTS), cls.arrays["x"].values)
        write(cls.flat, {**cls.arrays, "x": flat})
        cls.reviews.write_text("pos\ta good film\nneg\ta dull plot\n" * 20)
        cls.small = ["--stop-after", "8u", "--width", "8", "--heads", str(HEADS), "--threads", "2", "-q"]
        cls.fit("joints", "--input", "npz", "--train", cls.file, "--encoder", "attention,attention:joints",
                "--max-length", "30", "--truncate", "front")
        cls.fit("flat", "--input", "npz", "--train", cls.flat, "--encoder", "attention,bigru:8")
        cls.fit("texts", "--train", cls.reviews, "--encoder", "attention")

    @classmethod
    def fit(cls, name, *args):
        env = {k: v for k, v in os.environ.items() if not k.startswith("FOVEA_")}
        command = [FOVEA, "train", "classify", *map(str, args), "-o", str(cls.models / name), *cls.small]
        done = subprocess.run(command, capture_output=True, env=env, timeout=120)
        assert done.returncode == 0, done.stderr.decode()

    def setUp(self):
        super().setUp()
        self.joints, self.texts = self.models / "joints", self.models / "texts"

    def object_of(self, *args):
        return json.loads(self.succeed("explain", *args, "--json").stdout)

    def weights_of(self, model, file):
        path = self.folder / "weights.npz"
        self.succeed("classify", model, file, "--weights", path)
        return read(path)

    def assert_received(self, matrices, received):
        """The mean of each column of [heads][n][n], over heads and queries, is what classify writes."""
        n = len(matrices[0])
        for key in range(n):
            mean = sum(row[key] for matrix in matrices for row in matrix) / (n * len(matrices))
            self.assertAlmostEqual(mean, received[key], delta=1e-6)

    def test_the_weights_are_those_that_classify_writes(self):
        arrays = self.weights_of(self.joints, self.file)
        for sample in (0, 17):
            said = self.object_of(self.joints, self.file, "--sample", sample)
            first, steps = said["first_step"], said["steps"]
            length = self.arrays["lengths"].values[sample]
            self.assertEqual((first, steps, said["joints"]), (max(0, length - 30), min(30, length), JOINTS))
            self.assertEqual(said["cut"], first)
            at = {(t, j): (sample * STEPS + first + t) * JOINTS + j for t in range(steps) for j in range(JOINTS)}
            for (t, j), place in at.items():
                self.assertEqual(float32(said["pooling"][t][j]), arrays["pooling"].values[place])
            over_time, over_joints = said["layers"]
            self.assertEqual((over_time["over"], over_joints["over"]), ("time", "joints"))
            for j in range(JOINTS):
                self.assert_received([head["weights"][j] for head in over_time["heads"]],
                                     [arrays["attention_0"].values[at[t, j]] for t in range(steps)])
            for t in range(steps):
                self.assert_received([head["weights"][t] for head in over_joints["heads"]],
                                     [arrays["attention_1"].values[at[t, j]] for j in range(JOINTS)])
            self.assertNotIn("distance", over_joints["heads"][0])
            self.assertIn("distance", over_time["heads"][0])
            for row in itertools.chain.from_iterable(over_joints["heads"][1]["weights"]):
                self.assertAlmostEqual(sum(row), 1, delta=1e-5)
            self.assertEqual([len(row) for row in said["saliency"]["values"]], [JOINTS] * steps)

    def test_the_prediction_is_that_of_classify(self):
        answers = self.succeed("classify", self.joints, self.file, "--json", "--top", "4").stdout.splitlines()
        said = self.object_of(self.joints, self.file, "--sample", 7)
        probabilities = json.loads(answers[7])["probabilities"]
        for one in said["prediction"]:
            self.assertAlmostEqual(one["probability"], probabilities[one["label"]], delta=1e-6)

    def test_without_joints(self):
        arrays = self.weights_of(self.models / "flat", self.flat)
        said = self.object_of(self.models / "flat", self.flat, "--sample", 3)
        self.assertNotIn("joints", said)
        length = self.arrays["lengths"].values[3]
        begin = 3 * STEPS
        self.assertEqual(list(map(float32, said["pooling"])), arrays["pooling"].values[begin:begin + length])
        self.assert_received([head["weights"] for head in said["layers"][0]["heads"]],
                             arrays["attention_0"].values[begin:begin + length])
        self.assertEqual(len(said["saliency"]["values"]), length)
        text = self.succeed("explain", self.models / "flat", self.flat, "--sample", 3, env=UTF8).stdout.decode()
        self.assertIn(f"sample 3: {length} time steps\n", text)
        self.assertNotIn("joint", text)

    def test_the_terminal_shows_both_axes(self):
        text = self.succeed("explain", self.joints, self.file, env=UTF8).stdout.decode()
        for part in ("sample 0: 30 time steps of 8 joints (", "layer 1 (attention), mean of 2 heads, mean of 8 joints",
                     "layer 2 (attention:joints), mean of 2 heads, mean of 30 time", "attention as pooling",
                     "gradient x input of each time step", "Attention weights are no explanation"):
            self.assertIn(part, text)
        self.assertLessEqual(max(map(width, text.splitlines())), 80)
        one = self.succeed("explain", self.joints, self.file, "--joint", 4, "--time", 20, "--head", 1).stdout.decode()
        self.assertIn("layer 1 (attention), head 1, joint 4", one)
        self.assertIn("layer 2 (attention:joints), head 1, time step 20", one)
        rollout = self.object_of(self.joints, self.file, "--saliency", "rollout")["saliency"]["values"]
        self.assertAlmostEqual(sum(map(sum, rollout)), 1, delta=1e-5)

    def test_the_same_bits_for_any_number_of_threads(self):
        once, more = (self.succeed("explain", self.joints, self.file, "--sample", 2, "--json", "-t", n).stdout
                      for n in (1, 3))
        self.assertEqual(once, more)

    def test_a_page(self):
        page = self.folder / "page.html"
        self.succeed("explain", self.joints, self.file, "--sample", 2, "--page", page)
        text = page.read_text(encoding="utf-8")
        for part in ("Joint or time step", "classifier of numbers", "mean of 8 joints", "time step"):
            self.assertIn(part, text)
        self.succeed("explain", self.joints, self.file, "--page", page, "--overwrite", "--lang", "zh")
        self.assertIn("数值分类器", page.read_text(encoding="utf-8"))

    def test_bad_input(self):
        damaged, text = self.models / "damaged.npz", self.models / "text.npz"
        damaged.write_bytes(self.file.read_bytes()[:900])
        text.write_text("a film")
        for status, args, needle in (
                (2, (self.joints, self.file, "--sample", 60), "--sample: 60 is not 0 to 59"),
                (2, (self.joints, self.file, "--sample", -1), "--sample"),
                (2, (self.joints, self.file, "--joint", 8), "--joint: 8 is not -1 to 7"),
                (2, (self.joints, self.file, "--time", 39), "--time: 39"),
                (2, (self.joints, self.file, "--steps", "9-99"), "--steps 9-99"),
                (2, (self.joints, self.file, "--layer", 3), "--layer"),
                (2, (self.joints, self.file, "--tokens", "1-2"), "--tokens has no effect"),
                (2, (self.joints, self.file, "--truncate"), "--truncate has no effect"),
                (2, (self.joints, "a film"), "expected an .npz file, got a film"),
                (2, (self.joints,), "expected an .npz file"),
                (3, (self.joints, self.flat), "expected [sample, time, 8, 3], as the model has"),
                (3, (self.joints, damaged), "damaged.npz"), (3, (self.joints, text), "text.npz"),
                (3, (self.joints, self.models / "none.npz"), "none.npz"),
                (3, (self.texts, self.file), "expected texts, got arrays of numbers"),
                (2, (self.texts, "a film", "--sample", 1), "--sample has no effect: the model reads texts"),
                (2, (self.models / "flat", self.flat, "--joint", 0), "the model has no joints")):
            with self.subTest(args=args):
                done = self.run_fovea("explain", *args)
                self.assert_error(done, status, needle)
                self.assertEqual(done.stdout, b"")


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""Arrays of numbers over time: train, eval, classify and its weights, and what they refuse."""

import math
import random
import unittest
import zipfile

from frames_support import JOINTS, KEY_JOINT, KEY_STEPS, STEPS, gestures
from support import CommandTest  # isort: skip
import tensor_files
from tensor_files import Tensor

def small(count=40, steps=6, features=2, **changes):
    """Two classes that differ in their mean."""
    rng = random.Random(7)
    labels = [s % 2 for s in range(count)]
    x = [rng.gauss(2 * label, 1) for label in labels for _ in range(steps * features)]
    arrays = {"x": Tensor("F32", (count, steps, features), x),
              "labels": Tensor("I64", (count,), labels)}
    return {name: array for name, array in {**arrays, **changes}.items() if array is not None}


class FramesTest(CommandTest):
    def write(self, name, arrays):
        path = self.folder / name
        tensor_files.write(path, arrays)
        return path

    def fit(self, arrays, *args):
        return self.run_fovea("train", "classify", "--input", "npz", "--train",
                              self.write("bad.npz", arrays), "-o", self.folder / "model",
                              "--stop-after", "2u", *args)

    def test_gestures_are_learned_and_the_weights_show_where_they_are(self):
        train, _ = gestures(1000, 1)
        test, starts = gestures(200, 2)
        model, weights = self.folder / "model", self.folder / "weights.npz"
        self.succeed("train", "classify", "--input", "npz", "--train",
                     self.write("train.npz", train), "-o", model, "--encoder", "conv5:plain",
                     "--pooling", "attention", "--width", "32", "--init", "keras", "--dropout", "0",
                     "--encoder-dropout", "0", "--lr", "0.01", "--patience", "0", "--stop-after",
                     "12e", "--threads", "2", timeout=280)
        file = self.write("test.npz", test)
        score = self.last_object(self.succeed("eval", model, "--test", file, "--json"))
        self.assertGreater(score["accuracy"]["value"], 0.95)
        said = self.succeed("classify", model, file, "--weights", weights).stdout.decode()
        self.assertEqual(len(said.splitlines()), 200)
        found = tensor_files.read(weights)
        self.assertEqual(found["time"].shape, (200, STEPS))
        self.assertEqual(found["joints"].shape, (200, JOINTS))
        self.assertEqual(found["pooling"].shape, (200, STEPS, JOINTS))
        time, joints = found["time"].values, found["joints"].values
        key_steps = sum(sum(time[s * STEPS + t] for t in range(start, start + KEY_STEPS))
                        for s, start in enumerate(starts)) / 200
        key_joint = sum(joints[s * JOINTS + KEY_JOINT] for s in range(200)) / 200
        self.assertGreater(key_steps, 0.5)  # uniform: 6 of 32
        self.assertGreater(key_joint, 0.6)  # uniform: 1 of 8

    def test_layers_over_time_and_joints_and_resuming(self):
        arrays, _ = gestures(60, 3)
        file, model = self.write("train.npz", arrays), self.folder / "model"
        run = ["train", "classify", "--input", "npz", "--train", file, "--encoder",
               "attention,attention:joints", "--width", "8", "--heads", "2", "--position",
               "learned", "--save-every", "4u", "--threads", "2"]
        self.succeed(*run, "-o", model, "--stop-after", "8u")
        resumed = self.succeed("train", "classify", "--resume", "-o", model, "--stop-after", "12u")
        self.assertNotIn("tokenizer.txt", resumed.stderr.decode())
        whole = self.folder / "whole"
        self.succeed(*run, "-o", whole, "--stop-after", "12u", "--dry-run")
        said = self.succeed("inspect", model).stdout.decode()
        self.assertIn("model.joints             8", said)
        bits = [self.succeed("classify", model, file, "--threads", n).stdout for n in (1, 2, 3)]
        self.assertEqual(bits[0], bits[1])
        self.assertEqual(bits[0], bits[2])
        # A sample alone, without its padding.
        length = arrays["lengths"].values[0]
        alone = Tensor("F32", (1, length, JOINTS, 3),
                       arrays["x"].values[:length * JOINTS * 3])
        one = self.succeed("classify", model, self.write("one.npz", {"x": alone})).stdout
        self.assertEqual(one.splitlines()[0], bits[0].splitlines()[0])

    def test_numbers_and_several_labels(self):
        for name, labels in (("--regression", Tensor("F32", (40,), [n / 7 for n in range(40)])),
                             ("--multi-label", Tensor("U8", (40, 2), [n % 3 % 2 for n in range(80)]))):
            done = self.fit(small(labels=labels), name, "--overwrite")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.succeed("eval", self.folder / "model", "--test", self.folder / "bad.npz")

    def test_labels_may_be_texts(self):
        names = ["left", "r\u00fcck"]
        data = "".join(names[n % 2].ljust(5, "\0") for n in range(40)).encode("utf-32-le")
        path = self.write("texts.npz", small(labels=None))
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr("labels.npy", self.numpy_array("<U5", data))
        model = self.folder / "model"
        run = ("train", "classify", "--input", "npz", "--train", path, "-o", model,
               "--stop-after", "2u")
        self.succeed(*run)
        self.assertIn("label r\u00fcck", self.succeed("inspect", model).stdout.decode())
        objects = self.write("objects.npz", small(labels=None))
        with zipfile.ZipFile(objects, "a") as archive:
            archive.writestr("labels.npy", self.numpy_array("|O", b"\0" * 320))
        run = ("train", "classify", "--input", "npz", "--train", objects, "-o", self.folder / "m")
        self.assert_error(self.run_fovea(*run), 3, "holds objects")

    @staticmethod
    def numpy_array(descr, data):
        header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': (40,), }}\n".encode()
        return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + data

    def test_bad_arrays(self):
        ones = [1] * 40
        bad = [
            ({"x": None}, "no array x"), ({"labels": None}, "no array labels"),
            ({"labels": Tensor("I64", (40,), ones)}, "every label is 1"),
            ({"labels": Tensor("I64", (39,), ones[1:])}, "labels: expected [40]"),
            ({"lengths": Tensor("I32", (40,), [0] + ones[1:])}, "sample 0: expected 1 to 6"),
            ({"lengths": Tensor("F32", (40,), ones)}, "lengths: expected int32, int64 or uint8"),
            ({"x": Tensor("F32", (40, 2), ones + ones)}, "x: expected 3 or 4 axes"),
            ({"x": Tensor("I32", (40, 1, 1), ones)}, "x: expected float32 or float64, got int32"),
            ({"x": Tensor("F64", (40, 1, 1), [math.inf] + ones[1:])},
             "x: sample 0, time step 0, feature 0: expected a finite number, got infinity"),
        ]
        for changes, needle in bad:
            done = self.fit(small(**changes))
            self.assertIn(done.returncode, (3, 4), done.stderr)
            self.assert_error(done, done.returncode, needle, "bad.npz")
            self.assertFalse((self.folder / "model").exists())

    def test_what_is_no_such_file(self):
        whole = tensor_files.npz_bytes(small())
        path = self.folder / "cut.npz"
        path.write_bytes(whole[:len(whole) // 2])
        run = ("train", "classify", "--train", path, "-o", self.folder / "model")
        self.assert_error(self.run_fovea(*run, "--input", "npz"), 3, "cut.npz")
        self.assert_error(self.run_fovea(*run), 3, "expected texts, got arrays of numbers")
        self.assert_error(self.run_fovea(*run, "--input", "npz", "--format", "tsv"), 2,
                          "--format tsv: has no effect without --input text")
        text = ("train", "classify", "--input", "npz", "--train", self.text, "-o", self.folder / "m")
        self.assert_error(self.run_fovea(*text), 3, "text.txt")

    def test_a_model_of_numbers_reads_its_own_kind(self):
        self.assertEqual(self.fit(small(), "--encoder", "gru", "--pooling", "mean").returncode, 0)
        model = self.folder / "model"
        self.assert_error(self.run_fovea("classify", model, self.text), 3, "text.txt")
        self.assert_error(self.run_fovea("classify", model), 2, "no file was named")
        wide = self.write("wide.npz", small(features=3))
        self.assert_error(self.run_fovea("classify", model, wide), 3,
                          "expected [sample, time, 2], as the model has, got [sample, time, 3]")
        self.assert_error(self.run_fovea("eval", model, "--test", wide), 3, "wide.npz")
        other = self.write("other.npz", small(labels=Tensor("I64", (40,), [5] * 40)))
        self.assert_error(self.run_fovea("eval", model, "--test", other), 3,
                          "other.npz: sample 0: expected a label that the model knows, got 5")
        good = self.folder / "bad.npz"
        self.assert_error(self.run_fovea("classify", model, good, "--weights", self.folder / "w.npz"), 2,
                          "no attention")
        taken = self.write("taken.npz", small())
        self.assert_error(self.run_fovea("classify", model, good, "--weights", taken), 2,
                          "exists already")


if __name__ == "__main__":
    unittest.main()

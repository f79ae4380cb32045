# SPDX-License-Identifier: Apache-2.0
"""Classifiers: what the command does, from Python, to the bit; and an estimator of scikit-learn, where that is."""

import copy
import importlib.util
import io
import json
import os
import pathlib
import pickle
import random
import signal
import tempfile
import threading
import unittest
import warnings
from contextlib import redirect_stderr

import numpy as np
import support

import fovea

HAS_SKLEARN = importlib.util.find_spec("sklearn") is not None
WORDS = {"good": ["fine", "good", "lovely", "grand"], "bad": ["poor", "bad", "awful", "dull"]}
COMMON = ["the", "a", "film", "plot", "was", "and", "actor"]


def reviews(count=120, seed=1):
    draw = random.Random(seed)
    texts, labels = [], []
    for _ in range(count):
        label = draw.choice(sorted(WORDS))
        words = [draw.choice(WORDS[label] if draw.random() < 0.3 else COMMON) for _ in range(8)]
        texts.append(" ".join([*words, draw.choice(WORDS[label])]))
        labels.append(label)
    return texts, labels


def topics(count=150):
    """Texts with several labels, and a number of each."""
    draw = random.Random(2)
    texts = [" ".join(draw.choice(["sun", "sea", "wind", "the", "of", "and"]) for _ in range(5)) for _ in range(count)]
    return texts, [sorted({word for word in text.split() if len(word) > 2 and word not in ("the", "and")})
                   for text in texts]


class ClassifierTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.texts, cls.labels = reviews()
        cls.model = fovea.Classifier().fit(cls.texts, cls.labels)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def command(self, *words, **options):
        done = support.fovea(*words, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def file(self, name, texts, labels):
        rows = [json.dumps({"text": text, "label": label}) + "\n" for text, label in zip(texts, labels, strict=True)]
        (self.folder / name).write_text("".join(rows))
        return self.folder / name

    def test_fit_has_the_bits_of_the_command(self):
        options = {"word_ngrams": "1-2", "folds": 3, "class_weights": "balanced"}
        flags = [word for name, value in options.items() for word in ("--" + name.replace("_", "-"), str(value))]
        for kind, labels, mode in (("classes", self.labels, []), ("sets", topics()[1], ["--multi-label"]),
                                   ("numbers", [len(text) / 3 for text in self.texts], ["--regression"])):
            texts = topics()[0] if kind == "sets" else self.texts
            given = options if kind != "numbers" else {**options, "class_weights": None, "regression": True}
            words = flags if kind != "numbers" else flags[:-2]
            told = self.file("train.jsonl", texts, labels)
            self.command("train", "classify", "--train", told, "-o", self.folder / kind, *mode, *words)
            model = fovea.Classifier(**given).fit(texts, labels)
            model.save(self.folder / f"{kind}-python")
            expected, got = (support.read_safetensors(self.folder / name / "model.safetensors")
                             for name in (kind, f"{kind}-python"))
            self.assertEqual({name: array.tobytes() for name, array in expected.items()},
                             {name: array.tobytes() for name, array in got.items()}, kind)
            asked = "\n".join(texts[:40]) + "\n"
            lines = self.command("classify", self.folder / kind, "--json", input=asked).splitlines()
            said = [json.loads(line) for line in lines]
            found = model.predict(texts[:40])
            key = {"classes": "label", "sets": "labels", "numbers": "value"}[kind]
            self.assertEqual(list(found), [one[key] for one in said], kind)
            if kind == "classes":
                rows = model.predict_proba(texts[:40])
                chosen = [row[list(model.classes_).index(one["label"])] for row, one in zip(rows, said, strict=True)]
                self.assertEqual([str(p) for p in chosen], [str(np.float32(one["probability"])) for one in said])

    def test_files_train_as_the_command_does(self):
        told = self.file("files.jsonl", self.texts, self.labels)
        lines = []
        model = fovea.Classifier.train(told, self.folder / "files", on_update=lines.append)
        self.assertTrue(any(line["kind"] == "evaluation" for line in lines))
        np.testing.assert_array_equal(model.predict_proba(self.texts), self.model.predict_proba(self.texts))
        with self.assertRaises(fovea.UsageError) as raised:
            fovea.Classifier.train(told, self.folder / "files")
        self.assertEqual(raised.exception.code, "E0205")

    def test_networks_fit_too(self):
        model = fovea.Classifier(encoder="conv3", width=8, stop_after="20u").fit(self.texts, self.labels)
        self.assertEqual(model.config["model"]["encoder"], "conv3")
        again = fovea.Classifier(encoder="conv3", width=8).fit(self.texts, self.labels, stop_after="20u")
        np.testing.assert_array_equal(model.predict_proba(self.texts), again.predict_proba(self.texts))
        model.save(self.folder / "network")
        self.assertFalse((self.folder / "network/checkpoints").exists())
        loaded = fovea.Classifier.load(self.folder / "network")
        np.testing.assert_array_equal(model.predict_proba(self.texts), loaded.predict_proba(self.texts))

    def test_labels_come_back_in_their_form(self):
        whole = [int(label == "good") for label in self.labels]
        for labels, dtype in ((self.labels, "U"), (whole, "i"), ([bool(n) for n in whole], "b"), (np.array(whole), "i"),
                              ([12.0 if n else 2.0 for n in whole], "f"), (np.array(self.labels, object), "U")):
            model = fovea.Classifier(folds=2).fit(self.texts, labels)
            found = model.predict(self.texts)
            self.assertEqual(found.dtype.kind, dtype)
            self.assertEqual(list(model.classes_), sorted(set(labels)))
            self.assertGreater(model.score(self.texts, labels), 0.9)
            best = model.classes_[model.predict_proba(self.texts).argmax(axis=1)]
            self.assertGreater((best == found).mean(), 0.9)
            model.save(self.folder / "form", overwrite=True)
            np.testing.assert_array_equal(fovea.Classifier.load(self.folder / "form").predict(self.texts), found)

    def test_several_labels(self):
        texts, labels = topics()
        model = fovea.Classifier().fit(texts, labels)
        self.assertEqual(list(model.classes_), ["sea", "sun", "wind"])
        self.assertGreater(model.score(texts, labels), 0.9)
        self.assertEqual(sorted(model.predict(["sun sea sun sea"], threshold=0.5)[0]), ["sea", "sun"])
        columns = np.array([[name in of_text for name in model.classes_] for of_text in labels]).astype(int)
        other = fovea.Classifier().fit(texts, columns)
        self.assertEqual(other.predict(texts).shape, columns.shape)
        self.assertGreater(other.score(texts, columns), 0.9)
        np.testing.assert_array_equal(other.predict_proba(texts), model.predict_proba(texts))

    def test_numbers(self):
        numbers = [float(text.count("good") - text.count("bad")) for text in self.texts]
        model = fovea.Classifier(regression=True).fit(self.texts, numbers)
        self.assertGreater(model.score(self.texts, numbers), 0.5)
        with self.assertRaisesRegex(fovea.UsageError, "numbers, which have no probabilities"):
            model.predict_proba(self.texts)

    def test_explanations_are_those_of_the_command(self):
        self.model.save(self.folder / "explained")
        told = json.loads(self.command("explain", self.folder / "explained", self.texts[0], "--json"))
        self.assertEqual(self.model.explain(self.texts[0]), told)
        other = next(label for label in self.model.classes_ if label != told["prediction"][0]["label"])
        self.assertIn(other, self.model.explain(self.texts[0], target=other)["saliency"]["of"])

    def test_copies(self):
        for copied in (pickle.loads(pickle.dumps(self.model)), copy.deepcopy(self.model)):
            np.testing.assert_array_equal(copied.predict_proba(self.texts), self.model.predict_proba(self.texts))
        self.assertEqual(pickle.loads(pickle.dumps(fovea.Classifier(lr=0.1))).get_params()["lr"], 0.1)

    def test_wrong_arguments_are_named(self):
        texts, labels = self.texts, self.labels
        for call, message in (
            (lambda: fovea.Classifier().fit("a text", labels), "X: expected a list of texts; got str"),
            (lambda: fovea.Classifier().fit([*texts[:-1], 3], labels), r"X\[119\]: expected a text; got int"),
            (lambda: fovea.Classifier().fit(np.array([texts]), labels), r"X: expected one column of texts; got shape"),
            (lambda: fovea.Classifier().fit(texts, labels[1:]), "y: expected 120 labels, one for each text; got 119"),
            (lambda: fovea.Classifier().fit(texts, [None, *labels[1:]]), r"y\[0\]: expected a text, .*got NoneType"),
            (lambda: fovea.Classifier().fit(texts, [1, *labels[1:]]), "of different types"),
            (lambda: fovea.Classifier().fit(texts, [0.5] * 120), r"y\[0\]: 0.5 is no class"),
            (lambda: fovea.Classifier().fit(texts, None), "y: expected labels"),
            (lambda: fovea.Classifier().fit([" ", *texts[1:]], labels), r"X\[0\]: expected a text, got none but"),
            (lambda: fovea.Classifier().fit(texts, labels, folds="many"), "folds: expected a whole number"),
            (lambda: fovea.Classifier(fold=3), "unknown keyword 'fold'\nhint: did you mean folds"),
            (lambda: fovea.Classifier().predict(texts), "this Classifier has no model yet"),
            (lambda: self.model.predict([None]), r"X\[0\]: expected a text; got NoneType"),
            (lambda: self.model.predict(["\ud800"]), r"X\[0\]: character 0 is half of a surrogate pair"),
        ):
            with self.assertRaisesRegex(fovea.Error, message):
                call()
        self.assertEqual(len(self.model.predict([])), 0)

    def test_warnings_and_progress(self):
        labels = ["Good" if n == 0 else label for n, label in enumerate(self.labels)]
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            said = io.StringIO()
            with redirect_stderr(said):
                fovea.Classifier(folds=2).fit(self.texts, labels)
            self.assertEqual(said.getvalue(), "")
            self.assertTrue(any("differ only in case" in str(one.message) for one in told))
            with redirect_stderr(said):
                fovea.Classifier(folds=2, verbose=True).fit(self.texts, labels)
            self.assertIn("n-grams", said.getvalue())

    def test_ctrl_c_ends_a_fit(self):
        texts, labels = reviews(4000, 3)
        # A shell's background process ignores it.
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))
        timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with self.assertRaises(KeyboardInterrupt):
            fovea.Classifier(encoder="attention", stop_after="1000e").fit(texts, labels)
        timer.join()
        self.assertEqual(len(self.model.predict(self.texts)), len(self.texts))


@unittest.skipUnless(HAS_SKLEARN, "scikit-learn is not installed here")
class ScikitLearnTest(unittest.TestCase):
    def setUp(self):
        self.texts, self.labels = reviews()

    def test_checks(self):
        from sklearn.utils import estimator_checks

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # most of its checks give numbers, and say that they are left out
            estimator_checks.check_estimator(fovea.Classifier())
        for name in ("check_estimator_cloneable", "check_no_attributes_set_in_init", "check_set_params",
                     "check_parameters_default_constructible", "check_estimator_repr", "check_get_params_invariance",
                     "check_valid_tag_types", "check_estimators_unfitted", "check_requires_y_none"):
            with self.subTest(name):
                getattr(estimator_checks, name)("Classifier", fovea.Classifier())

    def test_tools_take_it(self):
        from sklearn.base import clone
        from sklearn.model_selection import GridSearchCV, cross_val_score
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import FunctionTransformer

        estimator = fovea.Classifier(folds=2)
        self.assertEqual(clone(estimator).get_params(), estimator.get_params())
        self.assertGreater(cross_val_score(estimator, self.texts, self.labels, cv=2, scoring="roc_auc").min(), 0.9)
        search = GridSearchCV(estimator, {"regularization_c": [0.01, 10.0]}, cv=2).fit(self.texts, self.labels)
        self.assertGreater(search.score(self.texts, self.labels), 0.9)
        lower = FunctionTransformer(lambda texts: [text.lower() for text in texts])
        pipeline = make_pipeline(lower, estimator).fit(self.texts, self.labels)
        self.assertGreater(pipeline.score([text.upper() for text in self.texts], self.labels), 0.9)


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fovea train classify --model linear: every task, small and uneven data, the same bits, bad options."""

import json
import random
import resource
import shutil
import signal
import subprocess
import unittest

from support import FOVEA, CommandTest

WORDS = ("film plot actor scene story music night road house friend water light summer train letter garden city "
         "river stone window paper table morning voice").split()


def sentence(rng, *more):
    words = rng.choices(WORDS, k=8) + list(more)
    rng.shuffle(words)
    return " ".join(words)


class LinearTest(CommandTest):
    def table(self, rows, name="train.tsv"):
        path = self.folder / name
        path.write_text("".join(f"{label}\t{text}\n" for label, text in rows), encoding="utf-8")
        return path

    def reviews(self, count=200, name="train.tsv", seed=1):
        rng = random.Random(seed)
        rows = [("good", sentence(rng, "wonderful")) if i % 2 else ("bad", sentence(rng, "dreadful"))
                for i in range(count)]
        return self.table(rows, name)

    def fit(self, file, *args, output="model"):
        return self.succeed("train", "classify", "--train", file, "-o", self.folder / output, *args)

    def score(self, file, *args, output="model"):
        return json.loads(self.succeed("eval", self.folder / output, "--test", file, "--json", *args).stdout)

    def answers(self, text, output="model"):
        lines = self.succeed("classify", self.folder / output, "--json", "--top", "2", stdin=text.encode()).stdout.decode()
        return [json.loads(line) for line in lines.splitlines()]

    def weights(self, output):
        return (self.folder / output / "model.safetensors").read_bytes()


class Tasks(LinearTest):
    def test_two_classes_by_the_command_as_it_is(self):
        done = self.fit(self.reviews())
        self.assertIn("model: linear", done.stderr.decode())
        self.assertIn("validation accuracy 1.0000", done.stdout.decode())
        names = {file.name for file in (self.folder / "model").iterdir()}
        self.assertLessEqual({"config.json", "model.safetensors", "metrics.jsonl", "MANIFEST.json"}, names)
        self.assertEqual(self.score(self.reviews(40, "test.tsv", 2))["accuracy"]["value"], 1)
        good, bad, empty, unknown = self.answers("a wonderful film\na dreadful film\n\nzxqv\n")
        self.assertEqual([good["label"], bad["label"]], ["good", "bad"])
        for answer in empty, unknown:  # the shares of the classes
            self.assertAlmostEqual(answer["probabilities"]["good"], 0.5, delta=0.1)
        about = json.loads(self.succeed("inspect", self.folder / "model", "--json").stdout)
        self.assertEqual(about["settings"]["model"]["model"], "linear")
        self.assertIn(b"texts of any length", self.succeed("inspect", self.folder / "model").stdout)
        page = self.folder / "run.html"
        self.succeed("report", self.folder / "model", "-o", page)
        self.assertIn("model.model", page.read_text(encoding="utf-8"))

    def test_a_rare_class_is_found(self):
        rng = random.Random(3)
        rows = []
        for i in range(1000):
            label = "rare" if i % 100 == 0 else "some" if i % 25 == 0 else "most"
            rows.append((label, sentence(rng, *{"rare": ["zebra"], "some": ["violin"], "most": []}[label])))
        self.fit(self.table(rows[:600]))
        labels = {one["label"]: one for one in self.score(self.table(rows[600:], "test.tsv"))["labels"]}
        for label in ("rare", "some"):
            self.assertEqual(labels[label]["recall"]["value"], 1, label)

    def test_what_is_explained_is_what_classify_says(self):
        rng = random.Random(10)
        rows = []
        for i in range(900):  # of the texts with zebra one in three is rare, so its probability is below a half
            zebra = i % 10 == 0
            rows.append(("rare" if zebra and i % 30 == 0 else "most", sentence(rng, *(["zebra"] if zebra else []))))
        self.fit(self.table(rows))
        answer = self.answers("film plot zebra actor scene story music night road\n")[0]
        self.assertEqual(answer["label"], "rare")
        self.assertLess(answer["probability"], 0.5)
        said = self.succeed("explain", self.folder / "model", "film plot zebra actor scene story music night road",
                            "--json").stdout
        self.assertIn("rare", json.loads(said)["saliency"]["of"])

    def test_several_labels(self):
        rng = random.Random(4)
        topics = {"sea": "harbour", "war": "cannon", "love": "kiss", "food": "soup"}
        rows = []
        for _ in range(400):
            chosen = [label for label in topics if rng.random() < 0.3]
            text = sentence(rng, *(topics[label] for label in chosen))
            rows.append(json.dumps({"text": text, "labels": chosen}))
        train, test = self.folder / "train.jsonl", self.folder / "test.jsonl"
        train.write_text("\n".join(rows[:300]) + "\n")
        test.write_text("\n".join(rows[300:]) + "\n")
        self.fit(train, "--multi-label")
        score = self.score(test)
        self.assertGreater(score["micro_f1"]["value"], 0.98)
        self.assertGreater(score["macro_f1"]["value"], 0.98)

    def test_numbers(self):
        rng = random.Random(5)
        rows = []
        for _ in range(400):
            count = rng.randrange(5)
            rows.append((10 + 2 * count, sentence(rng, *["star"] * count)))
        self.fit(self.table(rows[:300]), "--regression")
        score = self.score(self.table(rows[300:], "test.tsv"))
        self.assertGreater(score["pearson"]["value"], 0.9)

    def test_many_classes_of_short_texts(self):
        rng = random.Random(6)
        starts = {name: "".join(rng.choices("abcdefghij", k=3)) for name in "uvwxyz"}
        rows = [(name, " ".join(start + "".join(rng.choices("klmnop", k=3)) for _ in range(3)))
                for name, start in starts.items() for _ in range(40)]
        rng.shuffle(rows)
        done = self.fit(self.table(rows[:180]))
        self.assertIn("short texts", done.stderr.decode())  # so there are n-grams of characters
        self.assertGreater(self.score(self.table(rows[180:], "test.tsv"))["accuracy"]["value"], 0.95)

    def test_weights_of_classes_count(self):
        rng = random.Random(7)
        rows = [("yes" if rng.random() < 0.2 else "no", sentence(rng)) for _ in range(300)]  # nothing to learn
        file = self.table(rows)
        self.fit(file)
        self.fit(file, "--class-weights", "yes=4", output="weighted")
        share = [self.answers("film plot\n", output)[0]["probabilities"]["yes"] for output in ("model", "weighted")]
        self.assertLess(share[0], 0.35)
        self.assertGreater(share[1], share[0] + 0.1)


class Features(LinearTest):
    def top(self, *args, output="model"):
        said = self.succeed("explain", self.folder / output, "--top-features", "5", "--json", *args).stdout
        return {one["label"]: one["features"] for one in json.loads(said)["labels"]}

    def test_the_strongest_ngrams_of_each_label(self):
        self.fit(self.reviews())
        page = self.folder / "top.html"
        top = self.top("--page", page)
        self.assertEqual(list(top), ["bad", "good"])
        for label, word in ("bad", "dreadful"), ("good", "wonderful"):
            self.assertEqual(len(top[label]), 5)
            self.assertEqual(top[label][0]["ngram"], word)
            weights = [one["weight"] for one in top[label]]
            self.assertEqual(weights, sorted(weights, reverse=True))
            self.assertGreater(weights[-1], 0)
            self.assertIn(f"<bdi>{word}</bdi>", page.read_text(encoding="utf-8"))
        printed = self.succeed("explain", self.folder / "model", "--top-features", "1").stdout.decode()
        self.assertRegex(printed, r"^bad\n +\d+\.\d+  dreadful\ngood\n +\d+\.\d+  wonderful\n$")

    def test_of_several_labels_and_of_numbers(self):
        rng = random.Random(13)
        topics = {"sea": "harbour", "war": "cannon", "love": "kiss"}
        chosen = [[label for label in topics if rng.random() < 0.3] for _ in range(200)]
        path = self.folder / "labels.jsonl"
        path.write_text("".join(json.dumps({"text": sentence(rng, *(topics[one] for one in some)), "labels": some}) + "\n"
                                for some in chosen))
        self.fit(path, "--multi-label")
        self.assertEqual({label: features[0]["ngram"] for label, features in self.top().items()}, topics)
        numbers = self.table([(len(some), sentence(rng, *["star"] * len(some))) for some in chosen], "numbers.tsv")
        self.fit(numbers, "--regression", output="numbers")
        top = self.top(output="numbers")
        self.assertEqual(list(top), ["larger numbers", "smaller numbers"])
        self.assertEqual(top["larger numbers"][0]["ngram"], "star")

    def test_what_has_no_top_features(self):
        self.fit(self.reviews(40), "--model", "bag", "--stop-after", "5u", "--width", "8", output="bag")
        done = self.run_fovea("explain", self.folder / "bag", "--top-features", "5")
        self.assert_error(done, 4, "--top-features is of linear models")
        done = self.run_fovea("explain", self.folder / "bag", "a film", "--top-features", "5")
        self.assert_error(done, 2, "TEXT has no effect with --top-features")
        done = self.run_fovea("explain", self.folder / "bag", "--top-features", "-1")
        self.assert_error(done, 2, "--top-features: -1")


class Runs(LinearTest):
    def test_the_same_bits_for_any_threads_and_after_an_interruption(self):
        file = self.reviews()
        self.fit(file, "-t", "1", output="one")
        self.fit(file, "-t", "3", output="three")
        self.assertEqual(self.weights("one"), self.weights("three"))
        # What an interruption leaves: the configuration, and a manifest.
        shutil.copytree(self.folder / "one", self.folder / "rest")
        for name in ("model.safetensors", "metrics.jsonl"):
            (self.folder / "rest" / name).unlink()
        self.succeed("train", "classify", "--resume", "-o", self.folder / "rest")
        self.assertEqual(self.weights("rest"), self.weights("one"))
        answers = [self.succeed("classify", self.folder / "one", file, "--format", "tsv", "-t", n).stdout for n in "13"]
        self.assertEqual(answers[0], answers[1])

    def test_a_signal_stops_it(self):
        rng = random.Random(8)
        file = self.table([(str(i % 40), sentence(rng, f"word{i % 40}")) for i in range(6000)])
        process = self.start("train", "classify", "--train", file, "-o", self.folder / "model", "--progress", "plain")
        for line in process.stderr:
            if b"cross-validation" in line:
                break
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()
        printed = process.communicate()[0]
        self.assertEqual(process.returncode, 130)
        self.assertEqual(printed or b"", b"")  # no model, no result
        self.assertIn(b"begin anew", said)
        self.assertFalse((self.folder / "model" / "model.safetensors").exists())

    def test_validation_texts_are_measured(self):
        self.fit(self.reviews(), "--valid", self.reviews(30, "valid.tsv", 9), "--json")
        records = map(json.loads, (self.folder / "model" / "metrics.jsonl").read_text().splitlines())
        values = [record["values"] for record in records if record["kind"] == "metrics"]
        self.assertEqual([value["accuracy"] for value in values], [1])

    def test_other_texts_do_not_resume_it(self):
        self.fit(self.reviews())
        before = self.weights("model")
        other = self.table([(str(i % 3), f"word{i % 3} film") for i in range(60)], "other.tsv")
        for name in (None, "model.safetensors"):  # finished, and as an interruption leaves it
            if name:
                (self.folder / "model" / name).rename(self.folder / "kept")
            done = self.run_fovea("train", "classify", "--resume", "-o", self.folder / "model", "--train", other)
            self.assert_error(done, 2, "cannot resume")
        (self.folder / "kept").rename(self.folder / "model" / "model.safetensors")
        self.assertEqual(self.weights("model"), before)
        self.answers("film")

    def test_renamed_labels_are_noticed(self):
        file = self.reviews()
        renamed = self.folder / "renamed.tsv"
        renamed.write_text(file.read_text().replace("good\t", "great\t"))
        for output, args in (("model", ()), ("bag", ("--model", "bag", "--stop-after", "5u", "--width", "8"))):
            self.fit(file, *args, output=output)
            if output == "model":
                (self.folder / "model" / "model.safetensors").unlink()  # as an interruption leaves it
            done = self.run_fovea("train", "classify", "--resume", "-o", self.folder / output, "--train", renamed)
            self.assert_error(done, 2, "the labels are not those of the run: great, it began with good")

    def test_what_inspect_and_pages_say_of_a_model_without_updates(self):
        self.fit(self.reviews())
        about = json.loads(self.succeed("inspect", self.folder / "model", "--json").stdout)
        sizes = {tensor["name"]: tensor["shape"] for tensor in about["tensors"]}
        self.assertEqual(about["parameters"], sizes["weight"][0] + 1)  # and the prior; no bytes of names
        said = self.succeed("inspect", self.folder / "model").stdout.decode()
        self.assertNotIn("update", said.split("\n  ")[0])
        self.assertRegex(said, r"training: solved; chosen weights: validation accuracy 1.0000.*, of setting \d+ that was tried")
        page = self.folder / "run.html"
        self.succeed("report", self.folder / "model", "-o", page)
        self.assertIn("<td>–</td><td>–</td>", page.read_text(encoding="utf-8"))

    def test_what_was_chosen_is_told(self):
        rng = random.Random(2)
        rows = []
        for i in range(1200):  # what tells the classes is how words end
            ends = [f"{rng.randrange(10**6)}x{i % 2 if rng.random() < 0.7 else rng.randrange(2)}" for _ in range(3)]
            rows.append((("even", "odd")[i % 2], sentence(rng, *ends)))
        file = self.table(rows)
        said = self.fit(file).stderr.decode()
        self.assertRegex(said, r"chosen: weighting ratio, C [0-9.]+, without the n-grams of words "
                               r"\(--leave-out none keeps these\)")
        model = self.folder / "model"
        self.assertIn("without the n-grams of words\n", self.succeed("inspect", model).stdout.decode())
        choice = json.loads(self.succeed("inspect", model, "--json").stdout)["choice"]
        self.assertEqual((choice["weighting"], choice["without_words"]), ("ratio", "true"))
        said = self.fit(file, "--leave-out", "none", output="all").stderr.decode()
        self.assertRegex(said, r"chosen: weighting (ratio|tfidf), C [0-9.]+\n")

    def test_too_few_texts_to_validate(self):
        printed = self.fit(self.reviews(4)).stdout.decode()
        self.assertIn("too few texts to validate", printed)
        self.assertNotIn("nan", printed)

    def test_a_dry_run_tells_memory_and_writes_nothing(self):
        dry = json.loads(self.fit(self.reviews(), "--dry-run", "--json").stdout)
        self.assertTrue(dry["fits"])
        self.assertGreater(dry["parameters"], 100)
        self.assertFalse((self.folder / "model").exists())


class Scores(LinearTest):
    def noisy(self, count, name, seed):
        rng = random.Random(seed)
        rows = []
        for _ in range(count):
            good = rng.random() < 0.5
            said = ["fine" if good == (rng.random() < 0.8) else "poor"]
            if rng.random() < 0.4:  # some texts are surer than others
                said.append("superb" if good == (rng.random() < 0.97) else "awful")
            rows.append(("good" if good else "bad", sentence(rng, *said)))
        return self.table(rows, name)

    def test_a_threshold_reaches_a_precision_or_a_recall(self):
        train, test = self.noisy(800, "train.tsv", 1), self.noisy(800, "test.tsv", 2)
        found = {}
        for rule in "f1", "precision=.93", "recall=.95", "0.25":
            self.fit(train, "--threshold", rule, output=rule)
            score = self.score(test, output=rule)
            found[rule] = score["labels"][1]
            if rule != "f1":
                self.assertEqual(score["threshold_rule"], rule)
                said = self.succeed("eval", self.folder / rule, "--test", test).stdout.decode()
                self.assertIn(f"thresholds of the model ({rule}): good {found[rule]['threshold']:.4f}", said)
        self.assertNotIn("threshold", found["f1"])  # the likelier class
        self.assertGreater(found["precision=.93"]["precision"]["value"], 0.9)
        self.assertLess(found["precision=.93"]["recall"]["value"], found["f1"]["recall"]["value"])
        self.assertGreater(found["recall=.95"]["recall"]["value"], 0.91)
        self.assertAlmostEqual(found["0.25"]["threshold"], 0.25, places=6)
        # classify names the same labels as eval
        answers = self.succeed("classify", self.folder / "precision=.93", test, "--format", "tsv").stdout.decode()
        self.assertEqual(sum(line.startswith("good") for line in answers.splitlines()), found["precision=.93"]["predicted"])

    def test_a_precision_that_no_threshold_reaches_is_told(self):
        rng = random.Random(12)
        rows = [("yes" if rng.random() < 0.3 else "no", sentence(rng)) for _ in range(300)]  # nothing to learn
        said = self.fit(self.table(rows), "--threshold", "precision=.99").stderr.decode()
        self.assertRegex(said, r"no threshold reaches a precision of 0.99: yes \(0\.\d+\)")
        said = self.fit(self.reviews(), "--threshold", "precision=.99", output="b").stderr.decode()
        self.assertNotIn("no threshold", said)

    def test_thresholds_that_mean_nothing_are_refused(self):
        many = self.table([(str(i % 3), f"word{i % 3} film") for i in range(60)], "many.tsv")
        two = self.reviews(40)
        for file, args, said in ((many, ("--threshold", ".3"), "two classes or for --multi-label"),
                                 (two, ("--threshold", "1.5"), "--threshold: 1.5"),
                                 (two, ("--threshold", "precision=x"), "--threshold: precision=x"),
                                 (two, ("--threshold", ".3", "--model", "bag"), "has no effect without --model linear"),
                                 (many, ("--threshold", ".3", "--regression"), "numbers have no probabilities"),
                                 (many, ("--calibrate", "none", "--regression"), "numbers have no probabilities")):
            done = self.run_fovea("train", "classify", "--train", file, "-o", self.folder / "none", *args)
            self.assert_error(done, 2, said)

    def test_calibration_is_chosen(self):
        train, test = self.noisy(400, "train.tsv", 1), self.noisy(800, "test.tsv", 2)
        loss = {}
        for kind in "none", "temperature", "platt", "isotonic":
            self.fit(train, "--calibrate", kind, "--regularization-c", "1000", output=kind)
            loss[kind] = self.score(test, output=kind)["log_loss"]["value"]
        self.assertLess(loss["temperature"], loss["none"] - 0.05)  # a large C is too sure
        self.assertLess(loss["platt"], loss["none"] - 0.05)
        self.assertLess(loss["isotonic"], loss["none"] - 0.05)
        self.assertNotEqual(loss["isotonic"], loss["platt"])
        self.succeed("export", self.folder / "isotonic", "--to", "compact", "-o", self.folder / "compact")
        self.assertAlmostEqual(self.score(test, output="compact")["log_loss"]["value"], loss["isotonic"], delta=0.02)
        self.fit(train, "--regularization-c", "1000", output="usual")
        self.assertEqual(self.weights("usual"), self.weights("platt"))

    def test_folds_have_intervals(self):
        train = self.noisy(400, "train.tsv", 1)
        done = json.loads(self.fit(train, "--folds", "4", "--json").stdout)
        folds = done["cross_validation"]
        self.assertEqual(set(folds), {"accuracy", "macro_f1", "loss"})
        for number in folds.values():
            self.assertEqual(len(number["folds"]), 4)
            self.assertAlmostEqual(number["mean"], sum(number["folds"]) / 4)
            self.assertLess(number["low"], number["mean"])
            self.assertAlmostEqual(number["high"] - number["mean"], number["mean"] - number["low"])
        self.assertAlmostEqual(folds["accuracy"]["mean"], done["best_valid_metrics"]["accuracy"], places=9)
        self.assertIn("4 folds, means with 95 % intervals: accuracy", self.fit(train, "--folds", "4", output="b").stdout.decode())
        page = self.folder / "run.html"
        self.succeed("report", self.folder / "model", "-o", page)
        self.assertIn("Cross-validation", page.read_text(encoding="utf-8"))

    def test_a_learning_curve_says_whether_more_data_are_worth_it(self):
        self.fit(self.noisy(800, "train.tsv", 1))
        before = self.weights("model")
        page = self.folder / "run.html"
        done = self.succeed("report", self.folder / "model", "--learning-curve", "--terminal", "-o", page)
        printed = done.stdout.decode()
        self.assertEqual([line.split()[0] for line in printed.splitlines() if " macro_f1 " in line],
                         ["50", "100", "200", "400", "800"])
        self.assertRegex(printed, "From 400 to 800 texts accuracy (gains|changes)")
        self.assertIn("Learning curve: is more data worth it?", page.read_text(encoding="utf-8"))
        self.assertEqual(self.weights("model"), before)
        self.assertNotIn(b"have changed", done.stderr)
        self.noisy(801, "train.tsv", 3)
        done = self.succeed("report", self.folder / "model", "--learning-curve", "--terminal", "-o", page, "--overwrite")
        self.assertIn(b"the texts have changed since the model was trained", done.stderr)
        self.fit(self.reviews(40), "--model", "bag", "--stop-after", "5u", "--width", "8", output="bag")
        done = self.run_fovea("report", self.folder / "bag", "--learning-curve", "-o", self.folder / "b.html")
        self.assert_error(done, 4, "a learning curve is of a linear classifier")

    def test_warnings_of_eval_are_in_its_object(self):
        train = self.noisy(400, "train.tsv", 1)
        self.fit(train)
        warned, = self.score(train)["warnings"]
        self.assertIn("the model was trained on this file", warned)
        self.assertNotIn("warnings", self.score(self.noisy(400, "test.tsv", 2)))

    def test_precision_over_recall_is_in_the_evaluation_and_on_its_page(self):
        self.fit(self.noisy(400, "train.tsv", 1))
        test = self.noisy(400, "test.tsv", 2)
        score = self.score(test)
        curve, = score["precision_recall"]
        self.assertEqual(curve["label"], "good")
        recalls = [recall for recall, _, _ in curve["points"]]
        self.assertEqual(recalls, sorted(recalls))
        self.assertEqual(recalls[-1], 1)
        evaluation, page = self.folder / "test.json", self.folder / "run.html"
        evaluation.write_text(json.dumps(score))
        self.succeed("report", self.folder / "model", "--eval", evaluation, "-o", page)
        self.assertIn("Precision over recall", page.read_text(encoding="utf-8"))


class Choice(LinearTest):
    def settings(self, *args):
        return self.succeed("train", "classify", "--train", self.reviews(), "--dump-config", *args).stdout.decode()

    def test_an_option_of_the_others_chooses_them(self):
        for args, kind in (((), "linear"), (("--width", "16"), "bag"), (("--encoder", "conv3"), "encoder"),
                           (("--model", "bag"), "bag"), (("--char-ngrams", "2-3"), "linear")):
            self.assertIn(f"\nmodel = '{kind}'\n", self.settings(*args), args)

    def test_too_many_labels(self):
        path = self.folder / "labels.tsv"
        train = ("train", "classify", "--train", path, "-o", self.folder / "model")
        path.write_text("label\ttext\n" + "".join(f"n{i}\tword{i} here\n" for i in range(100_001)))
        self.assert_error(self.run_fovea(*train), 3, "E0306", ":100002", "at most 100000 different labels")
        self.assertFalse((self.folder / "model").exists())
        path.write_text("label\ttext\n" + "".join(f"n{i}\tword{i} here\n" for i in range(20_000)))
        done = subprocess.run([FOVEA, *map(str, train)], capture_output=True, env=self.environment(), timeout=120,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (700 << 20, 700 << 20)))
        self.assert_error(done, 6, "E0601")
        self.assertIn(b"hint: choose a smaller number of labels, which takes most of it", done.stderr)

    def test_options_without_effect(self):
        train = ("train", "classify", "--train", self.reviews(), "-o", self.folder / "model")
        for args, said in ((("--model", "linear", "--width", "16"), "--width 16: has no effect without --model bag or encoder"),
                           (("--width", "16", "--folds", "3"), "--folds 3: has no effect without --model"),
                           (("--model", "encoder"), "--model: encoder"),
                           (("--model", "bag", "--encoder", "conv3"), "--model: bag"),
                           (("--word-ngrams", "3-1"), "--word-ngrams: 3-1"),
                           (("--char-ngrams", "9"), "--char-ngrams: 9"),
                           (("--regularization-c", "-1"), "--regularization-c: -1"),
                           (("--regularization-c", "1e300"), "--regularization-c: 1e+300"),
                           (("--folds", "1"), "--folds: 1"),
                           (("--word-ngrams", "0", "--char-ngrams", "0"), "no n-gram")):
            done = self.run_fovea(*train, *args)
            self.assertIn(said, done.stderr.decode())
            self.assertIn(done.returncode, (2, 3), args)
            self.assertFalse((self.folder / "model").exists())

    def test_a_damaged_model_is_named(self):
        self.fit(self.reviews())
        config = self.folder / "model" / "config.json"
        config.write_text(config.read_text().replace('"word_ngrams": "1-2"', '"word_ngrams": "7"'))
        self.assert_error(self.run_fovea("classify", self.folder / "model", stdin=b"a\n"), 4, "config.json")


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""fovea classify, and fovea eval and inspect of a classifier."""

import gzip
import json
import os
import random
import select
import subprocess
import unittest

from support import FOVEA, CommandTest

LABELS = {"好评": "good great fine", "差评": "bad awful poor", "neutral": "so it is"}


def reviews(seed=1, count=300, labels=LABELS):
    rng = random.Random(seed)
    rows = []
    for _ in range(count):
        label = rng.choice(list(labels))
        said = [rng.choice((labels[label] + " the film a was").split()) for _ in range(rng.randint(1, 12))]
        rows.append((label, " ".join(said)))
    return rows


def tsv(rows):
    return "".join(f"{label}\t{text}\n" for label, text in [("label", "text"), *rows])


class ClassifyTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.rows = reviews()
        self.test = self.folder / "test.tsv"
        self.test.write_text(tsv(self.rows), encoding="utf-8")
        self.texts = self.folder / "texts.txt"
        self.texts.write_text("".join(text + "\n" for _, text in self.rows), encoding="utf-8")
        self.model = self.train_classifier("model", self.test)

    def train_classifier(self, name, file, *options):
        self.succeed("train", "classify", "--train", file, "-o", self.folder / name, "--stop-after", "60u",
                     "--width", 16, "--max-length", 10, "--threads", 1, "--quiet", *options)
        return self.folder / name

    def answers(self, *args, **options):
        return self.succeed("classify", *args, **options).stdout.decode()

    def fails(self, status, needle, *args, stdin=b""):
        self.assert_error(self.run_fovea(*args, stdin=stdin), status, needle)


class TextCnn(ClassifyTest):
    """Kim 2014, through the command."""

    MODEL = ("--encoder", "textcnn:1,3,12", "--max-length", "12")

    def test_threads_and_kills_change_no_bit(self):
        folders = [self.train_classifier(f"cnn{threads}", self.test, *self.MODEL, "--threads", threads)
                   for threads in (1, 3)]
        parts = self.train_classifier("parts", self.test, *self.MODEL, "--stop-after", "30u", "--save-every", "30u",
                                      "--schedule", "constant")
        whole = self.train_classifier("whole", self.test, *self.MODEL, "--save-every", "30u", "--schedule", "constant")
        self.succeed("train", "classify", "--resume", "-o", parts, "--stop-after", "60u", "--quiet")
        weights = [(folder / "checkpoints/step-000060/model.safetensors").read_bytes()
                   for folder in (*folders, parts, whole)]
        self.assertTrue(weights[0] == weights[1])
        self.assertTrue(weights[2] == weights[3])

    def test_a_text_says_the_same_alone_and_among_longer_ones(self):
        model = self.train_classifier("cnn", self.test, *self.MODEL)
        alone = self.succeed("classify", model, stdin=b"good\n").stdout
        among = self.succeed("classify", model, stdin=b"good\nthe film was so awful and poor it is\n").stdout
        self.assertEqual(among.splitlines()[0], alone.splitlines()[0])

    def test_explain_shows_where_the_maxima_are(self):
        model, page = self.train_classifier("cnn", self.test, *self.MODEL), self.folder / "page.html"
        found = json.loads(self.succeed("explain", model, "a good film", "--page", page, "--json").stdout)
        self.assertEqual((len(found["pooling"]), len(found["saliency"]["values"])), (3, 3))
        self.assertTrue(0 < sum(found["pooling"]) < 1.001 and min(found["pooling"]) >= 0, found["pooling"])
        self.assertIn("maximum of each filter", " ".join(found["notes"]))
        self.assertIn("maximum of each filter", page.read_text(encoding="utf-8"))
        said = self.succeed("explain", model, "a good film", "--saliency", "rollout", env={"COLUMNS": "200"}).stdout
        self.assertIn(b"the share of the filters whose maximum is at each token", said)

    def test_another_pooling_is_refused_and_none_is_the_maximum(self):
        train = ("train", "classify", "--train", self.test, *self.MODEL, "--dump-config")
        self.fails(2, "--pooling mean: textcnn in --encoder takes the maximum", *train, "--pooling", "mean")
        for more in ((), ("--pooling", "max"), ("--input", "npz")):
            self.assertIn(b"pooling = 'max'", self.succeed(*train, *more).stdout)


class Classify(ClassifyTest):
    def test_a_line_for_each_line(self):
        lines = self.answers(self.model, self.texts).splitlines()
        self.assertEqual(len(lines), len(self.rows))
        for line in lines:
            label, probability = line.split("\t")
            self.assertIn(label, LABELS)
            self.assertTrue(1 / 3 <= float(probability) <= 1)

    def test_the_same_bytes_however_texts_come(self):
        expected = self.answers(self.model, self.texts, "--threads", 1)
        self.assertEqual(self.answers(self.model, self.texts, "--threads", 3), expected)
        one_by_one = "".join(self.answers(self.model, stdin=f"{text}\n".encode()) for _, text in self.rows[:15])
        self.assertEqual(one_by_one, "".join(expected.splitlines(True)[:15]))
        packed = self.folder / "texts.gz"
        packed.write_bytes(gzip.compress(self.texts.read_bytes()))
        for file in (packed, "-"):
            self.assertEqual(self.answers(self.model, file, stdin=self.texts.read_bytes()), expected)
        self.assertEqual(self.answers(self.model, self.test, "--text-column", "text"), expected)
        as_json = "".join(json.dumps({"text": text}) + "\n" for _, text in self.rows)
        self.assertEqual(self.answers(self.model, "--format", "jsonl", stdin=as_json.encode()), expected)

    def test_a_table_by_its_name(self):
        expected = self.answers(self.model, self.texts)
        self.assertEqual(self.answers(self.model, self.test), expected)
        self.assertEqual(len(self.answers(self.model, self.test, "--format", "lines").splitlines()),
                         len(self.rows) + 1)

    def test_any_bytes_for_a_model_of_bytes(self):
        file = self.folder / "bytes.tsv"
        file.write_bytes(b"".join(b"%d\tfilm \xff%d\n" % (i % 2, i % 2) for i in range(60)))
        model = self.train_classifier("bytes", file, "--tokenizer", "byte")
        self.assertEqual(len(self.answers(model, file).splitlines()), 60)
        self.assertIn("60 texts", self.succeed("eval", model, "--test", file).stdout.decode())

    def test_options_without_effect(self):
        self.fails(2, "--threshold has no effect", "classify", self.model, self.texts, "--threshold", 0.9)
        self.fails(2, "--threshold has no effect", "eval", self.model, "--test", self.test, "--threshold", 0.9)
        self.fails(2, "--weights has no effect", "classify", self.model, self.texts, "--weights",
                   self.folder / "w.npz")

    def test_a_fifo_is_no_archive(self):
        fifo = self.folder / "x.npz"
        os.mkfifo(fifo)
        self.fails(3, "a FIFO that nobody writes to", "classify", self.model, fifo)

    def test_output_that_does_not_wait(self):
        read, write = os.pipe()
        os.set_blocking(write, False)
        big = self.folder / "big.txt"
        big.write_bytes(self.texts.read_bytes() * 100)
        process = subprocess.Popen([FOVEA, "classify", self.model, big], stdout=write, env=self.environment())
        os.close(write)
        with os.fdopen(read, "rb") as lines:
            select.select([], [], [], 0.5)  # the pipe becomes full
            self.assertEqual(len(lines.read().splitlines()), 100 * len(self.rows))
        self.assertEqual(process.wait(60), 0)

    def test_json_has_the_likeliest_labels(self):
        plain = self.answers(self.model, self.texts, "--top", 3).splitlines()
        for line, text in zip(self.answers(self.model, self.texts, "--top", 3, "--json").splitlines(), plain):
            said = json.loads(line)
            self.assertEqual(list(said), ["label", "probability", "probabilities"])
            self.assertEqual(set(said["probabilities"]), set(LABELS))
            self.assertAlmostEqual(sum(said["probabilities"].values()), 1, places=5)
            cells = text.split("\t")
            self.assertEqual(list(said["probabilities"]), cells[::2])
            self.assertEqual(said["label"], cells[0])

    def test_empty_lines_have_answers(self):
        lines = self.answers(self.model, stdin=b"\n\ngood film\n\n").splitlines()
        self.assertEqual(len(lines), 4)
        self.assertEqual(lines[0], lines[1])
        self.assertEqual(self.answers(self.model, stdin=b""), "")

    def test_a_line_of_a_pipe_is_answered_at_once(self):
        process = subprocess.Popen([FOVEA, "classify", self.model], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   env=self.environment(), bufsize=0)
        for text in (b"good film\n", b"\n", b"awful\nbad\n"):
            process.stdin.write(text)
            for _ in range(text.count(b"\n")):
                self.assertTrue(select.select([process.stdout], [], [], 60)[0], "no answer")
                self.assertEqual(process.stdout.readline().count(b"\t"), 1)
        process.stdin.close()
        self.assertEqual(process.stdout.read(), b"")
        self.assertEqual(process.wait(60), 0)
        process.stdout.close()

    def test_long_texts_are_counted_once(self):
        done = self.succeed("classify", self.model, stdin=b"good " * 11 + b"\n" + b"bad " * 12 + b"\nfine\n")
        self.assertEqual(done.stderr.decode().count("truncated"), 1)
        self.assertIn("(10 tokens): 2 of 3", done.stderr.decode())

    def test_bad_input_is_an_error_with_its_place(self):
        before = self.answers(self.model, stdin=b"good\n")
        for text, needle in ((b"good\nx\0y\n", "standard input:2:2: expected text, got a NUL"),
                             (b"good\nab\xff\n", "standard input:2:3: expected UTF-8")):
            done = self.run_fovea("classify", self.model, stdin=text)
            self.assert_error(done, 3, needle)
            self.assertEqual(done.stdout.decode(), before)  # what stands before is answered
        self.fails(3, "expected a line of at most 64.0 MiB", "classify", self.model, stdin=b"x" * (65 << 20))
        self.fails(3, "got a directory", "classify", self.model, self.folder)
        done = self.run_fovea("classify", self.model, "a text where a file is expected")
        self.assert_error(done, 3, "cannot open")
        self.assertIn('hint: name a file, or give a text on standard input: echo "TEXT" | fovea', done.stderr.decode())
        empty = self.folder / "empty"
        empty.touch()
        self.fails(3, "is empty", "classify", self.model, empty)
        self.fails(2, "nosuch", "classify", self.model, self.test, "--text-column", "nosuch")
        self.fails(2, "--top: -1", "classify", self.model, "--top", -1)
        self.fails(2, "--threshold", "classify", self.model, "--threshold", 2)

    def test_output_that_nobody_reads(self):
        big = self.folder / "big.txt"
        big.write_bytes(self.texts.read_bytes() * 200)
        process = self.start("classify", self.model, big)
        process.stdout.readline()
        process.stdout.close()
        self.assertEqual(process.stderr.read(), b"")
        process.stderr.close()
        self.assertEqual(process.wait(60), 0)
        done = subprocess.run(["sh", "-c", '"$0" classify "$1" "$2" >&-', FOVEA, self.model, self.texts],
                              capture_output=True, env=self.environment(), check=False)
        self.assert_error(done, 5, "standard output")

    def test_several_labels(self):
        rows = [(f"{a};{b}" if a != b else a, f"{x} {y}") for (a, x), (b, y) in zip(self.rows, reviews(2))]
        file = self.folder / "several.tsv"
        file.write_text(tsv(rows), encoding="utf-8")
        model = self.train_classifier("several", file, "--multi-label", "--label-separator", ";")
        all_labels = self.answers(model, self.texts, "--threshold", 0).splitlines()
        self.assertEqual({line.count("\t") for line in all_labels}, {5})
        self.assertEqual(set(self.answers(model, self.texts, "--threshold", 1).splitlines()), {""})
        said = json.loads(self.answers(model, "--json", "--top", 2, stdin=b"good\n"))
        self.assertEqual(list(said), ["labels", "probabilities"])
        self.assertEqual(said["labels"], list(said["probabilities"]))
        score = self.last_object(self.succeed("eval", model, "--test", file, "--json", "--errors", 2))
        self.assertEqual(score["task"], "multi-label")
        for number in ("subset_accuracy", "macro_f1", "micro_f1", "loss"):
            self.assertLessEqual(score[number]["low"], score[number]["high"])
        self.assertNotIn("confusion", score)
        plots = self.folder / "plots"
        said = self.succeed("eval", model, "--test", file, "--plots", plots, "--errors", 2).stdout.decode()
        self.assertIn("subset accuracy", said)
        self.assertEqual(os.listdir(plots), ["reliability.svg"])

    def test_numbers(self):
        file = self.folder / "numbers.tsv"
        file.write_text(tsv([(len(text.split()), text) for _, text in self.rows]), encoding="utf-8")
        model = self.train_classifier("numbers", file, "--regression")
        numbers = [float(line) for line in self.answers(model, self.texts).splitlines()]
        self.assertEqual(len(numbers), len(self.rows))
        self.assertEqual(json.loads(self.answers(model, "--json", stdin=self.rows[0][1].encode())),
                         {"value": numbers[0]})
        score = self.last_object(self.succeed("eval", model, "--test", file, "--json"))
        mse = sum((n - len(text.split())) ** 2 for n, (_, text) in zip(numbers, self.rows)) / len(numbers)
        self.assertAlmostEqual(score["mse"]["value"], mse, places=4)
        self.assertIn("spearman", self.succeed("eval", model, "--test", file).stdout.decode())
        self.fails(2, "--plots has no effect", "eval", model, "--test", file, "--plots", self.folder / "p")


class Eval(ClassifyTest):
    def test_numbers_are_those_of_the_answers(self):
        predicted = [line.split("\t")[0] for line in self.answers(self.model, self.texts).splitlines()]
        right = sum(p == label for p, (label, _) in zip(predicted, self.rows))
        score = self.last_object(self.succeed("eval", self.model, "--test", self.test, "--json", "--errors", 1000))
        self.assertAlmostEqual(score["accuracy"]["value"], right / len(self.rows))
        self.assertEqual(sum(map(sum, score["confusion"])), len(self.rows))
        self.assertEqual(len(score["mistakes"]), len(self.rows) - right)
        for mistake in score["mistakes"]:
            self.assertEqual((mistake["label"], mistake["text"]), self.rows[mistake["line"] - 2])
            self.assertEqual(mistake["predicted"], predicted[mistake["line"] - 2])
        losses = [mistake["loss"] for mistake in score["mistakes"]]
        self.assertEqual(losses, sorted(losses, reverse=True))
        self.assertEqual({label["label"] for label in score["labels"]}, set(LABELS))

    def test_text_stands_in_columns(self):
        said = self.succeed("eval", self.model, "--test", self.test, "--errors", 2).stdout.decode()
        table = said[said.index("class  "):].splitlines()[1:4]
        columns = {sum(2 if ord(c) > 0x2000 else 1 for c in line) for line in table}
        self.assertEqual(len(columns), 1, said)
        self.assertIn("95 % interval", said)
        self.assertRegex(said, r"test\.tsv:\d+  true .* predicted ")

    def test_pictures_replace_nothing_else(self):
        plots = self.folder / "plots"
        self.succeed("eval", self.model, "--test", self.test, "--plots", plots)
        self.assertEqual(sorted(os.listdir(plots)), ["confusion.svg", "reliability.svg"])
        self.assertIn("好评", (plots / "confusion.svg").read_text(encoding="utf-8"))
        again = ("eval", self.model, "--test", self.test, "--plots", plots)
        self.fails(2, "exists already", *again)
        self.succeed(*again, "--overwrite")
        (plots / "confusion.svg").write_text("mine")
        self.fails(2, "is no picture", *again, "--overwrite")
        self.assertEqual((plots / "confusion.svg").read_text(), "mine")
        self.fails(5, "is not a folder", "eval", self.model, "--test", self.test, "--plots", self.test)

    def test_labels_that_the_model_does_not_know(self):
        file = self.folder / "other.tsv"
        file.write_text(tsv([("neutral", "a"), ("neutrall", "b")]), encoding="utf-8")
        done = self.run_fovea("eval", self.model, "--test", file)
        self.assert_error(done, 3, "other.tsv:3: expected a label that the model knows, got neutrall")
        self.assertIn("did you mean neutral?", done.stderr.decode())

    def test_kinds_of_models_are_told_apart(self):
        self.train(self.folder / "lm", "--stop-after", "5u")
        self.fails(4, "got \"language_model\"", "classify", self.folder / "lm", self.texts)
        self.fails(4, "got \"classifier\"", "generate", self.model, "good")
        self.fails(2, "--errors has no effect on a language model", "eval", self.folder / "lm", "--test", self.text,
                   "--errors", 3)
        self.fails(4, "", "eval", self.folder, "--test", self.test)
        self.assertIn("loss", self.last_object(self.succeed("eval", self.folder / "lm", "--test", self.text, "--json")))

    def test_inspect(self):
        said = self.last_object(self.succeed("inspect", self.model, "--json"))
        self.assertEqual(said["kind"], "classifier")
        self.assertEqual(set(said["labels"]), set(LABELS))
        text = self.succeed("inspect", self.model).stdout.decode()
        self.assertIn("classifier, ", text)
        self.assertIn("task: single-label, 3 classes, texts of at most 10 tokens", text)
        self.succeed("inspect", self.model, "--verify")


if __name__ == "__main__":
    unittest.main()

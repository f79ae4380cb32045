#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fovea train classify: what it learns, what it says, what it refuses, and that it gives the same bits."""

import json
import random
import signal
import time
import unittest

from support import CommandTest

SMALL = ("--width", "16", "--stop-after", "200u", "--eval-every", "50u", "--save-every", "50u", "--progress", "none")
GOOD = ["a fine film", "I liked it, really", "it's wonderful", "great actors"]
BAD = ["a dull film", "I hated it, really", "it's awful", "poor actors"]
GUT, SCHLECHT = ["非常好看", "我很喜欢", "值得推荐"], ["太差了", "浪费时间", "剧情无聊"]


def reviews(good=GOOD, bad=BAD, count=120, names=("bad", "good")):
    rng = random.Random(1)
    rows = []
    for i in range(count):
        words = good if i % 2 else bad
        rows.append((names[i % 2], f"{rng.choice(words)}. {rng.choice(words)}!"))
    return rows


class ClassifyTest(CommandTest):
    def write(self, name, text):
        path = self.folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def tsv(self, name="reviews.tsv", **kinds):
        return self.write(name, "".join(f"{label}\t{text}\n" for label, text in reviews(**kinds)))

    def fit(self, file, *args, output="model"):
        return self.succeed("train", "classify", "--train", file, "-o", self.folder / output, *SMALL, *args)

    def config(self, output="model"):
        return json.loads((self.folder / output / "config.json").read_text())

    def best(self, name, output="model"):
        records = map(json.loads, (self.folder / output / "metrics.jsonl").read_text().splitlines())
        return max(record["values"][name] for record in records if record["kind"] == "metrics")


class Learns(ClassifyTest):
    def test_english_and_chinese(self):
        for file, tokenizer, why in ((self.tsv(), "word", "spaces between words"),
                                     (self.tsv("zh.tsv", good=GUT, bad=SCHLECHT), "char", "Chinese")):
            with self.subTest(tokenizer):
                said = self.fit(file, output=tokenizer).stderr.decode()
                self.assertIn(f"--tokenizer {tokenizer}", said)
                self.assertIn(why, said)
                self.assertIn("classes: 2; bad 54 (50.0 %), good 54 (50.0 %)", said)
                self.assertIn("training: 108 texts; tokens: median", said)
                self.assertEqual(self.config(tokenizer)["labels"], ["bad", "good"])
                self.assertEqual(self.best("accuracy", tokenizer), 1)

    def test_every_format(self):
        rows = reviews()
        files = {"a.csv": "text,label\n" + "".join(f'"{t}",{l}\n' for l, t in rows),
                 "a.jsonl": "".join(json.dumps({"text": t, "label": l}) + "\n" for l, t in rows),
                 "a.txt": "".join(f"__label__{l} {t}\n" for l, t in rows)}
        self.fit(self.tsv(), output="tsv")
        weights = (self.folder / "tsv/checkpoints/step-000200/model.safetensors").read_bytes()
        for name, text in files.items():
            with self.subTest(name):
                self.fit(self.write(name, text), output="of-" + name)
                self.assertEqual((self.folder / f"of-{name}/vocab.txt").read_text(),
                                 (self.folder / "tsv/vocab.txt").read_text())
                self.assertEqual(len((self.folder / f"of-{name}/checkpoints/step-000200/model.safetensors").read_bytes()),
                                 len(weights))

    def test_several_labels_classes_and_numbers(self):
        rng = random.Random(2)
        tags, notes, classes = "", "", ""
        for i in range(150):
            chosen = [w for w in ("cat", "dog", "sun") if rng.random() < .5] or ["cat"]
            tags += json.dumps({"text": "see " + " ".join(chosen), "labels": chosen}) + "\n"
            notes += f"{100 * (i % 4)}\t{'well ' * (i % 4)} done\n"
            classes += f"{i % 3 + 9}\t{('red', 'green', 'blue')[i % 3]} thing\n"
        self.fit(self.write("tags.jsonl", tags), "--multi-label", "--class-weights", "balanced", "--lr",
                 "1e-2", output="tags")
        self.assertGreater(self.best("micro_f1", "tags"), .9)
        self.fit(self.write("notes.tsv", notes), "--regression", output="notes")
        self.assertGreater(self.best("pearson", "notes"), .8)
        self.fit(self.write("classes.tsv", classes), "--metric", "macro-f1", output="classes")
        self.assertEqual(self.config("classes")["labels"], ["9", "10", "11"])
        self.assertEqual(self.best("macro_f1", "classes"), 1)

    def test_encoders_pooling_and_length(self):
        file = self.tsv()
        for encoder, pooling in (("conv3", "max"), ("bilstm", "attention"), ("attention", "first")):
            with self.subTest(encoder):
                said = self.fit(file, "--encoder", encoder, "--pooling", pooling, "--max-length", "5", "--truncate",
                                "front", "--stop-after", "60u", output=encoder).stderr.decode()
                self.assertIn("cut to 5:", said)
                self.assertEqual(self.config(encoder)["text"]["max_length"], 5)


class Runs(ClassifyTest):
    def outcome(self, output):
        return (self.folder / output / "model.safetensors").read_bytes()

    def test_threads_and_resuming_give_the_same_bits(self):
        file = self.tsv()
        self.fit(file, "--threads", "1", output="one")
        self.fit(file, "--threads", "2", output="two")
        self.assertEqual(self.outcome("one"), self.outcome("two"))

    def test_a_run_that_was_killed_ends_with_the_same_bits(self):
        file = self.tsv()
        long = (*SMALL[:2], "--stop-after", "3000u", "--eval-every", "200u", "--save-every", "200u", "--patience",
                "0", "--progress", "none")
        self.succeed("train", "classify", "--train", file, "-o", self.folder / "whole", *long)
        process = self.start("train", "classify", "--train", file, "-o", self.folder / "killed", *long)
        deadline = time.monotonic() + 60
        while not list((self.folder / "killed/checkpoints").glob("step-*")) and time.monotonic() < deadline:
            time.sleep(.01)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        self.succeed("train", "classify", "--resume", "-o", self.folder / "killed", "--progress", "none")
        self.assertEqual(self.outcome("killed"), self.outcome("whole"))

    def test_settings_go_to_a_file_and_back(self):
        file = self.tsv()
        dumped = self.succeed("train", "classify", "--train", file, "--dump-config", "--width", "24").stdout
        recipe = self.write("recipe.toml", dumped)
        again = self.succeed("train", "classify", "-c", recipe, "--dump-config").stdout
        self.assertEqual(dumped, again)
        dry = self.last_object(self.succeed("train", "classify", "-c", recipe, "--dry-run", "--json"))
        self.assertEqual(dry["updates"], 1000)

    def test_columns_found_in_training_hold_for_eval(self):
        model = self.folder / "model"
        self.fit(self.tsv())
        # Alone, this file would have its labels in the second column.
        test = self.write("test.tsv", "good\tgreat actors\nbad\tgreat actors\n")
        found = self.last_object(self.succeed("eval", model, "--test", test, "--json"))
        self.assertEqual(found["examples"], 2)

    def test_several_labels_may_be_none(self):
        rows = [{"text": text, "labels": [label] if label == "good" else []} for label, text in reviews()]
        file = self.write("tags.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
        self.fit(file, "--multi-label")
        self.assertEqual(self.config()["labels"], ["good"])
        self.assertEqual(self.best("micro_f1"), 1)
        self.succeed("eval", self.folder / "model", "--test", file)

    def test_other_texts_are_noticed(self):
        file = self.tsv()
        self.fit(file)
        file.write_text(file.read_text() + "good\tmore of it\n")
        self.assert_error(self.run_fovea("train", "classify", "--resume", "-o", self.folder / "model"), 2, "changed")


class BadInput(ClassifyTest):
    def refuse(self, text, *needles, name="bad.tsv", args=()):
        before = self.write("good.tsv", "a\tx y\nb\ty z\n").read_bytes()
        done = self.run_fovea("train", "classify", "--train", self.write(name, text), "-o", self.folder / "none", *args)
        self.assertNotEqual(done.returncode, 0)
        self.assert_error(done, done.returncode, *needles)
        self.assertFalse((self.folder / "none").exists())
        self.assertEqual((self.folder / "good.tsv").read_bytes(), before)

    def test_texts_and_labels(self):
        self.refuse("a\tx\nb\n", "bad.tsv:2")
        self.refuse("a\tx\nb\t \n", "bad.tsv:2")
        self.refuse("a\tx\na\ty\n", "bad.tsv", "every label is a")
        self.refuse(b"a\tx\nb\t\xff\xfe\n", "bad.tsv:2")
        self.refuse(b"a\tx\nb\ty\0z\n", "bad.tsv:2")
        self.refuse('text,label\nx,a\n"y,b\n', "bad.csv:3", name="bad.csv")
        self.refuse(
            "1\tx\nten\ty\n", "bad.tsv:2", "ten", args=("--regression",))
        self.refuse("text,label\nx,a\ny,b\n", "stars", name="bad.csv", args=("--label-column", "stars"))
        valid = self.write("valid.tsv", "a\tx\nc\ty\n")
        self.refuse("a\tx\nb\ty\n", "valid.tsv:2", "label c", args=("--valid", valid))
        self.refuse('{"text":"x","label":["a","b"]}\n', "bad.jsonl:1", "expected one label", name="bad.jsonl")

    def test_options(self):
        for args, needle in ((("--multi-label", "--regression"), "--multi-label, --regression"),
                             (("--metric", "rmse"), "--metric rmse"), (("--class-weights", "c=2"), "label c"),
                             (("--label-smoothing", "1"), "--label-smoothing"),
                             (("--label-smoothing", ".1", "--regression"), "--label-smoothing, --regression"),
                             (("--label-smoothing", ".1", "--model", "linear"), "without --model bag or encoder"),
                             (("--tokenizer", "char", "--min-count", "3"), "--min-count")):
            with self.subTest(needle):
                self.refuse("a\tx x\nb\ty y\n", needle, args=args)


if __name__ == "__main__":
    unittest.main()

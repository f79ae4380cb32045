# SPDX-License-Identifier: Apache-2.0
"""fovea train pairs, pairs, and eval and explain of such models."""

import json
import random
import shutil
import unittest

from forged import forge_json
from support import CommandTest

SMALL = ["--min-count", "1", "--width", "16", "--batch-size", "16", "--threads", "2", "--stop-after", "300u",
         "--eval-every", "100u", "--save-every", "100u", "--progress", "none", "--lr", "0.01"]
COLOURS = ["red", "blue", "green", "black", "white", "brown"]
THINGS = ["cat", "dog", "bird", "horse", "fish"]


def problems(seed=1, count=400):
    """(text, text, label): whether both name the same colour. Neither text alone tells."""
    rng = random.Random(seed)
    for _ in range(count):
        one, same = rng.choice(COLOURS), rng.random() < .5
        other = one if same else rng.choice([c for c in COLOURS if c != one])
        yield (f"a {one} {rng.choice(THINGS)}", f"the {rng.choice(THINGS)} is {other}",
               "same" if same else "other")


class PairsTest(CommandTest):
    def tsv(self, name="pairs.tsv", rows=None, header="sentence1\tsentence2\tlabel\n"):
        path = self.folder / name
        path.write_text(header + "".join("\t".join(row) + "\n" for row in rows or problems()))
        return path

    def fit(self, file, *args, output="model"):
        return self.succeed("train", "pairs", "--train", file, "-o", self.folder / output, "--overwrite", *SMALL, *args)

    def answers(self, text, *args, output="model"):
        done = self.succeed("pairs", self.folder / output, *args, stdin=text.encode())
        return done.stdout.decode().splitlines()

    def score(self, file, *args, output="model"):
        return self.last_object(self.succeed("eval", self.folder / output, "--test", file, "--json", *args))


class Learns(PairsTest):
    def test_what_only_both_texts_tell(self):
        test = self.tsv("test.tsv", problems(seed=2, count=200))
        for options in ([], ["--pair-encoder", "cross", "--encoder", "bigru", "--pooling", "last", "--stop-after", "1000u"]):
            with self.subTest(options):
                self.fit(self.tsv(), *options)
                score = self.score(test)
                self.assertGreater(score["accuracy"]["value"], .95)
                self.assertEqual(score["examples"], 200)

    def test_short_texts_and_the_defaults(self):
        rows = [(a, b, "same" if a == b else "other") for a in "abcd" for b in "abcd"] * 10
        self.fit(self.tsv(rows=rows))
        self.assertGreater(self.score(self.tsv(rows=rows))["accuracy"]["value"], .95)

    def test_a_number(self):
        rows = [(a, b, str(4 if label == "same" else 1)) for a, b, label in problems()]
        self.fit(self.tsv(rows=rows), "--regression")
        same, other = map(float, self.answers("a red cat\tthe dog is red\na red cat\tthe dog is blue\n"))
        self.assertGreater(same, other + 1)

    def test_every_format(self):
        self.fit(self.tsv())
        rows = list(problems(seed=3, count=30))
        named = self.tsv("a.tsv", rows)
        expected = self.score(named)["accuracy"]
        plain = self.tsv("b.tsv", rows, header="")
        table = self.folder / "c.csv"
        table.write_text("label,first,second\n" + "".join(f'{c},"{a}","{b}"\n' for a, b, c in rows))
        objects = self.folder / "d.jsonl"
        objects.write_text("".join(json.dumps({"premise": a, "hypothesis": b, "gold_label": c}) + "\n"
                                   for a, b, c in rows))
        targets = self.folder / "f.jsonl"  # "target" is the name of a label elsewhere
        targets.write_text("".join(json.dumps({"source": a, "target": b, "score": c}) + "\n" for a, b, c in rows))
        other = self.folder / "e.jsonl"
        other.write_text("".join(json.dumps({"q": a, "a": b, "l": c}) + "\n" for a, b, c in rows))
        for file, options in [(plain, []), (table, []), (objects, []), (targets, []),
                              (other, ["--text-column", "q", "--second-column", "a", "--label-column", "l"])]:
            with self.subTest(file.name):
                self.assertEqual(self.score(file, *options)["accuracy"], expected)
        lines = self.answers("", named)
        self.assertEqual(len(lines), 30)
        self.assertEqual(self.answers("".join(f"{a}\t{b}\n" for a, b, _ in rows)), lines)
        self.assertEqual(self.answers("", other, "--text-column", "q", "--second-column", "a"), lines)


class Runs(PairsTest):
    def weights(self, output):
        """The values; the header names config.json, which says how long the run was to be."""
        file = (self.folder / output / "model.safetensors").read_bytes()
        return file[8 + int.from_bytes(file[:8], "little"):]

    def test_threads_and_resuming_give_the_same_bits(self):
        file = self.tsv()
        for encoder in ("bi", "cross"):
            options = ["--pair-encoder", encoder, "--encoder", "attention,conv3", "--dropout", "0.2",
                       "--encoder-dropout", "0.1", "--heads", "2", "--stop-after", "60u", "--save-every", "20u",
                       "--eval-every", "20u",
                       "--schedule", "constant"]
            self.fit(file, *options, output="whole")
            self.fit(file, *options, "--threads", "1", output="one")
            self.assertEqual(self.weights("one"), self.weights("whole"))
            self.fit(file, *options, "--stop-after", "20u", output="parts")
            self.succeed("train", "pairs", "--resume", "-o", self.folder / "parts", "--stop-after", "60u", "--progress",
                         "none")
            self.assertEqual(self.weights("parts"), self.weights("whole"))

    def test_a_pair_has_the_same_bits_alone_and_among_others(self):
        self.fit(self.tsv(), "--encoder", "attention", "--heads", "2", "--stop-after", "50u")
        lines = [f"{a}\t{b}" for a, b, _ in problems(seed=4, count=20)]
        together = self.answers("\n".join(lines) + "\n")
        self.assertEqual([self.answers(line + "\n")[0] for line in lines], together)
        self.assertEqual(self.answers("\n".join(lines) + "\n", "--threads", "1"), together)

    def test_settings_go_to_a_file_and_back(self):
        file = self.tsv()
        toml = self.succeed("train", "pairs", "--train", file, "--width", "8", "--dump-config").stdout
        path = self.folder / "c.toml"
        path.write_bytes(toml)
        again = self.succeed("train", "pairs", "--config", path, "--dump-config").stdout
        self.assertEqual(again, toml)

    def test_memory_is_foreseen(self):
        done = self.succeed("train", "pairs", "--train", self.tsv(), "--dry-run", "--json", "--encoder", "attention")
        self.assertTrue(self.last_object(done)["fits"])

    def test_inspect_and_report_know_such_a_model(self):
        self.fit(self.tsv(), "--stop-after", "20u")
        said = self.succeed("inspect", self.folder / "model").stdout.decode()
        self.assertIn("2 classes, pairs of at most", said)
        self.succeed("report", self.folder / "model", "-o", self.folder / "page.html")


class Explains(PairsTest):
    def test_both_texts_and_what_stands_between(self):
        for encoder in ("bi", "cross"):
            self.fit(self.tsv(), "--pair-encoder", encoder, "--encoder", "attention", "--heads", "2", "--stop-after",
                     "50u")
            for saliency in ("none", "rollout", "gradient-input"):
                said = self.last_object(self.succeed("explain", self.folder / "model", "a red cat", "the dog is odd",
                                                     "--saliency", saliency, "--json"))
                self.assertEqual(said["tokens"], ["a", "red", "cat", "<sep>", "the", "dog", "is", "odd", "<sep>"])
            weights = said["layers"][0]["heads"][0]["weights"]
            crosses = any(weights[i][j] for i in range(4) for j in range(4, 9))
            self.assertEqual(crosses, encoder == "cross", "a text sees the other with a cross-encoder alone")
        stdin = self.succeed("explain", self.folder / "model", "-", "--json", stdin=b"a red cat\tthe dog is odd\n")
        self.assertEqual(self.last_object(stdin)["tokens"], said["tokens"])

    def test_a_tab_in_the_second_text_is_a_blank(self):
        self.succeed("train", "pairs", "--train", self.tsv(), "-o", self.folder / "model", "--tokenizer", "char",
                     "--encoder", "attention", "--width", "8", "--heads", "2", "--stop-after", "5u", "-q")
        with_tab = self.succeed("explain", self.folder / "model", "-", "--json", stdin=b"a cat\tthe\tdog\n").stdout
        with_blank = self.succeed("explain", self.folder / "model", "a cat", "the dog", "--json").stdout
        self.assertEqual(with_tab, with_blank)

    def test_one_text_is_an_error(self):
        self.fit(self.tsv(), "--encoder", "attention", "--stop-after", "20u")
        self.assert_error(self.run_fovea("explain", self.folder / "model", "a red cat"), 2, "reads pairs of texts")


class Errors(PairsTest):
    def fails(self, status, needle, *args, stdin=b""):
        self.assert_error(self.run_fovea(*args, stdin=stdin), status, needle)

    def refuses(self, status, needle, text, *options, name="bad.tsv"):
        path = self.folder / name
        path.write_text(text)
        self.fails(status, needle, "train", "pairs", "--train", path, "-o", self.folder / "no", *options)
        self.assertFalse((self.folder / "no").exists())

    def test_texts(self):
        self.refuses(3, "bad.tsv:1: expected two texts and a label, got 2 columns", "a\tb\nc\td\n")
        self.refuses(3, "got 4 columns", "a\tb\tc\td\n" * 20)
        self.refuses(3, "bad.tsv:3: expected two texts, the second is none",
                     "sentence1\tsentence2\tlabel\na\tb\tx\na\t \tx\n")
        self.refuses(2, "a key of the first and of the second text", '{"text": "a", "label": "b"}\n', name="bad.jsonl")
        self.refuses(2, "has no second text", "__label__a b\n", "--format", "fasttext")
        self.refuses(2, "is the column of the first text", "a\tb\tc\n", "--text-column", "1", "--second-column", "1")

    def test_options(self):
        text = "".join("\t".join(row) + "\n" for row in problems(count=40))
        self.refuses(2, "--pair-encoder none", text, "--pair-encoder", "none")
        self.refuses(2, "--max-length 3: a pair has two tokens and two separators", text, "--max-length", "3")
        self.refuses(2, "a window of 5 is longer than --max-length (4)", text, "--max-length", "4")

    def test_models_of_another_input(self):
        self.fit(self.tsv(), "--stop-after", "20u")
        texts = self.folder / "texts.tsv"
        texts.write_text("a\tgood\nb\tbad\n" * 20)
        self.succeed("train", "classify", "--train", texts, "-o", self.folder / "single", "--stop-after", "5u")
        model, single = self.folder / "model", self.folder / "single"
        self.fails(4, "the model reads pairs of texts", "classify", model, stdin=b"a\n")
        self.fails(4, "reads single texts or numbers", "pairs", single, stdin=b"a\tb\n")
        self.fails(3, "no tab", "pairs", model, stdin=b"a b\n")
        self.fails(2, "--second-column has no effect", "eval", single, "--test", texts, "--second-column", "1")
        self.fails(2, "expected texts or numbers", "train", "classify", "--resume", "-o", model)
        self.fails(2, "expected pairs of texts", "train", "pairs", "--resume", "-o", single)
        self.fails(2, "two texts were given", "explain", single, "a", "b")

    def test_a_forged_folder(self):
        self.fit(self.tsv(), "--stop-after", "20u")
        model, forged = self.folder / "model", self.folder / "forged"
        self.assertEqual(len(self.answers("a red cat of many words\tb\n")), 1)
        for part, name, value, needle in [
                ("model", "pair_encoder", "none", "input pairs does not fit pair_encoder none"),
                ("model", "pair_encoder", "cross", "such a model does not have the"),
                ("model", "vocabulary", 1, "the tokenizer has"),
                ("text", "input", "text", "expected a label_of_two in 0 to 2, got 3"),
                ("text", "max_length", 3, "expected a max_length in 4 to"),
                (None, "label_of_two", 4, "expected a label_of_two in 0 to 3")]:
            with self.subTest(f"{name} {value}"):
                shutil.rmtree(forged, ignore_errors=True)
                shutil.copytree(model, forged)
                forge_json(forged, "config.json", lambda c: (c[part] if part else c).update({name: value}))
                self.fails(4, needle, "pairs", forged, stdin=b"a red cat of many words\tb\n")
                self.fails(4, needle, "explain", forged, "a red cat of many words", "b")


if __name__ == "__main__":
    unittest.main()

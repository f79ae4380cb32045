#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fovea train tag: what it learns, what it refuses, and that it gives the same bits."""

import gzip
import json
import signal
import time
import unittest

from tag_support import SEGMENT, SMALL, TagTest, conll, conllu, segmented, tagged


LINEAR = ("--encoder", "", "--word-width", "0", "--shape-width", "0", "--character-reader", "none", "--linear",
          "--linear-buckets", "5000")


class TrainTest(TagTest):
    def config(self, output="model"):
        return json.loads((self.folder / output / "config.json").read_text())

    def best(self, name, output="model"):
        records = map(json.loads, (self.folder / output / "metrics.jsonl").read_text().splitlines())
        return max(record["values"][name] for record in records if record["kind"] == "metrics")

    def weights(self, output):
        return (self.folder / output / "model.safetensors").read_bytes()


class Diverges(TrainTest):
    def test_with_its_own_status_and_keeps_the_run(self):
        file = self.write("a.conll", conll(tagged()))
        for head in ("crf", "softmax"):
            for often in ("1u", "40u"):  # seen by an evaluation, or by an update
                with self.subTest(head=head, often=often):
                    output = self.folder / f"{head}-{often}"
                    self.fails(7, "diverged", "train", "tag", "--train", file, "-o", output, *SMALL, "--head", head,
                               "--lr", "1e30", "--clip", "0", "--warmup", "0", "--eval-every", often)
                    self.assertTrue((output / "metrics.jsonl").exists())


class Notes(TrainTest):
    def test_a_mistyped_tag_that_hides_the_scheme(self):
        text = conll(tagged()).replace("\tB-person\n", "\tB_person\n", 1)
        said = self.fit(self.write("a.conll", text)).stderr.decode()
        self.assertIn("warning: tags look like the scheme bio but for ", said)
        self.assertIn("a.conll:1 (B_person): they are taken as they are", said)
        self.assertNotIn("look like", self.fit(self.write("b.conll", conllu(tagged())), "--format", "conllu",
                                               "--column", "xpos", output="other").stderr.decode())

    def test_tags_that_are_almost_the_same(self):
        text = conll(tagged()).replace("\tB-person\n", "\tB-Person  \n", 1)
        said = self.fit(self.write("a.conll", text)).stderr.decode()
        self.assertIn("warning: tags that differ only in case or in blanks are tags of their own: Person and person", said)

    def test_sentences_that_are_cut(self):
        said = self.fit(self.write("a.conll", conll(tagged())), "--max-length", "5").stderr.decode()
        self.assertRegex(said, r"warning: sentences longer than --max-length \(5\): \d+; they are read in pieces")

    def test_no_validation_loss(self):
        file, other = self.write("a.conll", conll(tagged())), self.write("v.conll", "Ada\tB-new\n\nBob\tB-new\n")
        said = self.fit(file, "--valid", other).stderr.decode()
        self.assertIn("there is no validation loss, and 0 is shown for it", said)
        self.fails(3, "--metric loss: each sentence to validate on has a tag that no word to train on has",
                   "train", "tag", "--train", file, "--valid", other, "--metric", "loss", "-o", self.folder / "no")


class Learns(TrainTest):
    def test_names(self):
        said = self.fit(self.write("a.conll", conll(tagged()))).stderr.decode()
        self.assertIn("tags: 5, scheme bio; B-person, B-place, I-person, I-place, O", said)
        self.assertIn("training: 108 sentences", said)
        self.assertEqual(self.best("span_f1"), 1)
        config = self.config()
        self.assertEqual(config["kind"], "tagger")
        self.assertEqual(config["text"]["scheme"], "bio")

    def test_every_format_gives_the_same_model(self):
        plain = self.write("a.conll", conll(tagged()))
        self.fit(plain, output="plain")
        files = {"blanks.txt": conll(tagged(), " "),
                 "packed.gz": gzip.compress(conll(tagged()).encode()),
                 "crlf.txt": conll(tagged()).replace("\n", "\r\n"),
                 "documents.txt": "-DOCSTART- O\n\n" + conll(tagged(), " "),
                 "a.conllu": conllu(tagged())}
        for name, text in files.items():
            with self.subTest(name):
                self.fit(self.write(name, text), output="of-" + name)
                self.assertEqual((self.folder / f"of-{name}/vocab.txt").read_text(),
                                 (self.folder / "plain/vocab.txt").read_text())
                self.assertEqual(self.config("of-" + name)["tags"], self.config("plain")["tags"])
        columns = "".join(f"{i} {w} x {t} y\n" if w != "\n" else "\n" for i, (w, t) in
                          enumerate(pair for s in tagged() for pair in [*s, ("\n", "")]))
        comments = "# a comment\n" + columns
        self.fit(self.write("columns.txt", comments), "--word-column", "2", "--tag-column", "4", "--comments",
                 output="columns")
        self.assertEqual(self.config("columns")["tags"], self.config("plain")["tags"])

    def test_the_training_set_is_measured_and_reported(self):
        self.fit(self.write("a.conll", conll(tagged())), "--evaluate-training", "--report")
        records = list(map(json.loads, (self.folder / "model/metrics.jsonl").read_text().splitlines()))
        measured = [record for record in records if record["kind"] == "training"]
        self.assertEqual([record["step"] for record in measured],
                         [record["step"] for record in records if record["kind"] == "evaluation"])
        self.assertEqual(measured[-1]["values"]["span_f1"], 1)
        self.fit(self.write("a.conll", conll(tagged())), output="plain")
        # The headers differ: they name the settings.
        data = [weights[8 + int.from_bytes(weights[:8], "little"):] for weights in map(self.weights, ("model", "plain"))]
        self.assertEqual(data[0], data[1])
        page = (self.folder / "model/report.html").read_text()
        for words in ("nats per word", "tagger", "span_f1", "</html>"):
            self.assertIn(words, page)

    def test_columns_of_conllu(self):
        self.fit(self.write("a.conllu", conllu(tagged())), "--column", "xpos", "--metric", "accuracy")
        self.assertIn("XO", self.config()["tags"])
        self.assertEqual(self.config()["text"]["scheme"], "none")
        self.assertEqual(self.best("accuracy"), 1)

    def test_schemes(self):
        broken = [[(w, t.replace("B-", "I-")) for w, t in s] for s in tagged(2, 10)]
        file = self.write("a.conll", conll(tagged() + broken))
        said = self.fit(file, "--scheme", "bioes").stderr.decode()
        self.assertIn("tags that break the scheme bio: 20 in 10 sentences, the first at ", said)
        self.assertIn("tags of the scheme bio are converted to bioes", said)
        self.assertEqual(sorted(self.config()["tags"]), sorted(
            ["O"] + [f"{part}-{kind}" for part in "BIES" for kind in ("person", "place")]))
        self.assertEqual(self.best("span_f1"), 1)

    def test_encoders_heads_and_readers_of_characters(self):
        file = self.write("a.conll", conll(tagged()))
        for n, args in enumerate((("--encoder", "conv3,attention", "--head", "softmax", "--position", "shaw"),
                                  ("--encoder", "", "--character-reader", "bilstm"),
                                  ("--encoder", "attention", "--position", "sinusoidal", "--character-reader", "none"),
                                  ("--ngram-width", "4", "--shape-width", "0", "--word-width", "0"),
                                  ("--linear", "--linear-buckets", "999"), LINEAR)):
            with self.subTest(args):
                self.fit(file, *args, "--stop-after", "60u", output=f"m{n}")
                self.succeed("tag", self.folder / f"m{n}", file)

    def test_segments(self):
        said = self.fit(self.write("a.seg", segmented()), small=SEGMENT).stderr.decode()
        self.assertIn("tags: B, M, E, S of characters", said)
        self.assertGreater(self.best("word_f1"), .9)
        self.assertIn("学习机", (self.folder / "model/words.txt").read_text())
        joint = "".join("".join(f"{w}\t{'N' if len(w) > 1 else 'V'}\n" for w in line.split()) + "\n"
                        for line in segmented().splitlines())
        self.fit(self.write("joint.conll", joint), "--joint", small=SEGMENT, output="joint")
        self.assertIn("B-N", self.config("joint")["tags"])

    def test_a_linear_crf(self):
        file = self.write("a.conll", conll(tagged()))
        for name, threads in (("model", 1), ("other", 3)):
            self.fit(file, *LINEAR, "--lr", "5e-2", "--threads", threads, output=name)
        self.assertEqual(self.best("span_f1"), 1)
        self.assertEqual(self.weights("model"), self.weights("other"))
        self.assertTrue((self.folder / "model/characters.txt").exists())
        done = self.succeed("tag", self.folder / "model", file).stdout.decode()
        self.assertIn("Bob\tB-person\tB-person\nStone\tI-person\tI-person\n", done)

    def test_vectors(self):
        vectors = self.write("v.vec", "2 4\nRome 1 2 3 4\nsaw 4 3 2 1\n")
        said = self.fit(self.write("a.conll", conll(tagged())), "--embeddings", vectors, "--freeze-embeddings",
                        "--word-width", "4").stderr.decode()
        self.assertIn("words with a vector of", said)
        self.assertEqual(self.config()["embeddings"]["exact"] + self.config()["embeddings"]["lower"], 2)

    def test_tags_that_only_validation_has(self):
        text = conll([*tagged(3, 20), [("x", "B-thing"), ("saw", "O")]])
        valid = self.write("v.conll", text)
        said = self.fit(self.write("a.conll", conll(tagged())), "--valid", valid).stderr.decode()
        self.assertIn("with a tag that no word to train on has: 1, the first at ", said)
        self.assertIn(f"v.conll:{text.splitlines().index('x' + chr(9) + 'B-thing') + 1} (B-thing);", said)
        self.assertLess(self.best("span_f1"), 1)


class Runs(TrainTest):
    def test_threads_give_the_same_bits(self):
        for name, text, small in (("a.conll", conll(tagged()), SMALL), ("a.seg", segmented(), SEGMENT)):
            file = self.write(name, text)
            for threads in (1, 2, 3, 8):
                self.fit(file, "--threads", threads, "--stop-after", "40u", small=small, output=f"{name}-{threads}")
                self.assertEqual(self.weights(f"{name}-1"), self.weights(f"{name}-{threads}"))

    def test_a_run_that_was_killed_ends_with_the_same_bits(self):
        for name, text, small in (("a.conll", conll(tagged()), SMALL), ("a.seg", segmented(), SEGMENT)):
            with self.subTest(name):
                file = self.write(name, text)
                long = (*small, "--stop-after", "400u", "--eval-every", "50u", "--save-every", "50u", "--patience", "0")
                self.succeed("train", "tag", "--train", file, "-o", self.folder / f"{name}-whole", *long)
                killed = self.folder / f"{name}-killed"
                process = self.start("train", "tag", "--train", file, "-o", killed, *long)
                deadline = time.monotonic() + 60
                while not list((killed / "checkpoints").glob("step-*")) and time.monotonic() < deadline:
                    time.sleep(.01)
                process.send_signal(signal.SIGKILL)
                process.communicate()
                self.succeed("train", "tag", "--resume", "-o", killed, "--progress", "none")
                self.assertEqual(self.weights(killed), self.weights(f"{name}-whole"))

    def test_settings_go_to_a_file_and_back(self):
        file = self.write("a.conll", conll(tagged()))
        dumped = self.succeed("train", "tag", "--train", file, "--dump-config", "--width", "24").stdout
        recipe = self.write("recipe.toml", dumped)
        self.assertEqual(dumped, self.succeed("train", "tag", "-c", recipe, "--dump-config").stdout)
        dry = self.last_object(self.succeed("train", "tag", "-c", recipe, "--dry-run", "--json"))
        self.assertGreater(dry["updates"], 0)

    def test_overwrite_removes_all_files_of_a_segmenter(self):
        self.fit(self.write("a.seg", segmented()), small=SEGMENT)
        self.fit(self.write("a.conll", conll(tagged())), "--overwrite")
        self.assertFalse((self.folder / "model/words.txt").exists())
        self.assertTrue((self.folder / "model/characters.txt").exists())

    def test_resuming_with_another_head_is_refused(self):
        self.fit(self.write("a.conll", conll(tagged())))
        self.fails(2, "--head", "train", "tag", "--resume", "-o", self.folder / "model", "--head", "softmax")


class Refuses(TrainTest):
    def refuses(self, status, needle, text, *args, name="bad.conll"):
        with self.subTest(needle):
            output = self.folder / "never"
            self.fails(status, needle, "train", "tag", "--train", self.write(name, text), "-o", output, *SMALL, *args)
            self.assertFalse(output.exists())

    def test_columns(self):
        self.refuses(3, "bad.conll:2: expected 2 columns, as in line 1, got 3", "a O\nb O x\n")
        self.refuses(3, "bad.conll:2: expected 2 columns, as in line 1, got 4", "a O\n# id = 2\n")
        self.refuses(3, "bad.conll:1: expected a tag beside the word", "word\nother\n")
        self.refuses(3, "bad.conll:1: expected the tag in column 3, got 2 columns", "a O\n", "--tag-column", "3")
        self.refuses(3, "bad.conll:3: expected a tag without blanks in column 2, got none", "a\tO\n\nb\t\n")
        self.refuses(3, "bad.conll:1: expected a word in column 1, got none", "\tO\n")
        self.refuses(2, "--tag-column: 1 is the column of the word", "a O\n", "--tag-column", "1")
        self.refuses(2, "--column", "a O\n", "--column", "nothing")

    def test_segmented_text_has_no_tags(self):
        self.refuses(3, "bad.seg:1: expected words with tags, got segmented text", segmented(), name="bad.seg")
        self.refuses(3, "bad.seg:1: expected words with tags", segmented(), "--task", "segment", "--joint",
                     name="bad.seg")

    def test_encoding_and_emptiness(self):
        self.refuses(3, "bad.conll:2:1: expected UTF-8, got 0xFF", b"a O\n\xff O\n")
        self.refuses(3, "bad.conll is empty", "")
        self.refuses(3, "expected sentences, got none", "\n\n \t\n")
        self.refuses(3, "every tag to train on is O", "a O\nb O\n")

    def test_conllu(self):
        row = "{}\tw\tw\tNOUN\t_\t_\t0\troot\t_\t_\n"
        for ids, needle in ((("1", "3"), "bad.conllu:2: expected the number 2, got 3"),
                            (("2",), "bad.conllu:1: expected the number 1, got 2"),
                            (("1", "x"), "bad.conllu:2: expected a number such as 3, 3-4 or 3.1, got x"),
                            (("1-3", "1", "2"), "expected the words up to 3"),
                            (("1", "1.2"), "bad.conllu:2: expected the number 1.1 or 2, got 1.2"),
                            (("1", "3-4"), "bad.conllu:2: expected the number 2, got 3-4")):
            self.refuses(3, needle, "".join(map(row.format, ids)) + "\n", name="bad.conllu")
        self.refuses(3, "expected 10 columns between tabs, got 2", "1\tw\n", name="bad.conllu")
        blanks = self.write("blanks.conllu", row.format(1) + row.format(2).replace("\t", " "))
        done = self.fails(3, "blanks.conllu:2: expected 10 columns between tabs, got no tab", "train", "tag", "--train",
                          blanks, "-o", self.folder / "never")
        self.assertIn("put a tab between columns", done.stderr.decode())
        late = self.write("late.conllu", row.format(1) + "# late\n" + row.format(2))
        done = self.fails(3, "late.conllu:2: expected 10", "train", "tag", "--train", late, "-o", self.folder / "never")
        self.assertIn("comments stand before the first word", done.stderr.decode())

    def test_schemes_and_options(self):
        self.refuses(3, "bad.conll:3: expected a tag of the scheme bio, got X-y", "a B-x\n\nb X-y\n", "--scheme", "bio")
        self.refuses(2, "--format words: such sentences have no tags", "a b\n", "--format", "words")
        self.refuses(2, "--joint", "a O\n", "--joint")
        self.refuses(2, "--metric span-f1: the tags to train on mark no spans", "a X\nb Y\n", "--metric", "span-f1")
        self.refuses(2, "--column: has no effect", "a B-x\nb O\n", "--column", "xpos")
        self.refuses(2, "--tag-column, --comments: have no effect", "1\ta\n", "--comments", name="bad.conllu")
        self.refuses(2, "--metric span-f1, --scheme none", "a O\n", "--metric", "span-f1", "--scheme", "none")
        self.refuses(2, "--word-dropout", "a O\n", "--word-dropout", "2")

    def test_options_without_effect(self):
        text = "a B-x\nb O\n"
        attention, residual = "an attention layer in --encoder", "a layer with a residual sum in --encoder"
        for words, needs in ((("--heads", "8"), attention), (("--score", "cosine"), attention), (("--sink",), attention),
                             (("--position", "alibi"), attention), (("--norm", "rms"), residual),
                             (("--ff", "8"), "a layer ff or transformer"), (("--bias",), "a layer of attention"),
                             (("--rope-base", "50"), "--position rotary"), (("--sinusoid", "cos-sin"), "--position sin"),
                             (("--linear-dropout", "0.1"), "--linear"),
                             (("--position-max", "2000"), "--position learned")):
            self.refuses(2, f"{' '.join(words[:2])}: has no effect without {needs}", text, *words)
        self.refuses(2, "--heads 8: has no effect", text, "--heads", "8", "--encoder", "bilstm,attention:heads=2")
        self.refuses(2, "--shaw-clip 9: has no effect", text, "--shaw-clip", "9", "--encoder", "attention")
        self.refuses(2, "--tag-column: has no effect on --task segment without --joint", text, "--task", "segment",
                     "--tag-column", "2")
        self.refuses(2, "--column: has no effect on --task segment without --joint", text, "--task", "segment",
                     "--column", "xpos", name="bad.conllu")
        # The same options where they have one.
        file = self.write("good.conll", conll(tagged(count=20)))
        for encoder, words in (("bilstm,attention", "--heads 8 --sink --position rotary --rope-base 50 --norm rms"),
                               ("bilstm+conv3", "--bias"), ("attention:position=shaw", "--shaw-clip 9"),
                               ("attention:heads=2,attention", "--heads 8"), ("bilstm:8:residual", "--ln-variant unbiased"),
                               ("bilstm", "--position sinusoidal --sinusoid cos-sin --position-max 2000")):
            with self.subTest(words):
                self.fit(file, "--encoder", encoder, *words.split(), "--stop-after", "2u", "--overwrite")

    def test_a_recipe_of_all_settings_is_taken(self):
        """One that was dumped names options without effect, but with their usual values."""
        for task in ((), ("--task", "segment")):
            recipe = self.write("recipe.toml", self.succeed("train", "tag", *task, "--dump-config").stdout)
            file = self.write("good.seg", segmented(count=20)) if task else self.write("good.conll", conll(tagged(count=20)))
            self.succeed("train", "tag", "-c", recipe, "--train", file, "-o", self.folder / "model", "--stop-after", "2u",
                         "--overwrite", "--progress", "none")


if __name__ == "__main__":
    unittest.main()

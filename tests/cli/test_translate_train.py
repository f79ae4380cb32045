#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fovea train translate: what it learns, what it refuses, and that it gives the same bits."""

import gzip
import json
import shutil
import signal
import time
import unittest

from translate_support import SMALL, TranslateTest, sentences


class TrainTest(TranslateTest):
    def config(self, output="model"):
        return json.loads((self.folder / output / "config.json").read_text())

    def weights(self, output="model"):
        return (self.folder / output / "model.safetensors").read_bytes()

    def data(self, output="model"):
        """The weights without their header, which names the settings."""
        weights = self.weights(output)
        return weights[8 + int.from_bytes(weights[:8], "little"):]

    def best_loss(self, output="model"):
        records = map(json.loads, (self.folder / output / "metrics.jsonl").read_text().splitlines())
        return min(r["valid_loss"] for r in records if r["kind"] == "evaluation")


class Learns(TrainTest):
    def test_word_for_word(self):
        said = self.fit("--report").stderr.decode()
        self.assertIn("training: 142 pairs", said)
        self.assertIn("unknown words of the validation: 0.0 % of the source", said)
        self.assertLess(self.best_loss(), .3)
        self.assertEqual(self.config()["kind"], "translator")
        page = (self.folder / "model/report.html").read_text()
        for words in ("nats per token", "translator", "</html>"):
            self.assertIn(words, page)

    def test_every_way_to_give_pairs_is_the_same(self):
        few = [*SMALL, "--stop-after", "40u"]
        self.fit(output="two", small=few)
        pairs = sentences()
        table = "".join(f"{s}\t{t}\n" for s, t in pairs)
        files = {"a.tsv": table, "b.tsv.gz": gzip.compress(table.encode()), "c.tsv": table.replace("\n", "\r\n"),
                 "d.tsv": "\ufeff" + table + "\n"}
        for name, text in files.items():
            with self.subTest(name):
                self.succeed("train", "translate", "--train", self.write(name, text), "-o", self.folder / f"of-{name}",
                             *few)
                self.assertEqual(self.data(f"of-{name}"), self.data("two"))
        source, target = self.parallel()
        self.succeed("train", "translate", "--source", source, "--target", target, "--valid-source", source,
                     "--valid-target", target, "-o", self.folder / "valid", *few)
        self.assertEqual(len(self.config("valid")["text"]["valid_source"]), 1)

    def test_tokenizers_tables_layers_and_positions(self):
        for n, args in enumerate((
                ("--tokenizer", "char", "--target-tokenizer", "word", "--position", "rotary"),
                ("--shared-vocabulary", "--share-embeddings", "--norm-position", "post"),
                ("--encoder", "conv3,bilstm:16", "--no-tie", "--decoder-position", "none"),
                ("--preset", "tiny", "--token-dropout", "0.1", "--position", "alibi", "--observe-every", "20"))):
            with self.subTest(args):
                small = [*SMALL, "--stop-after", "40u"]
                if "char" in args:
                    small += ["--block", "64"]
                self.fit(*args, output=f"m{n}", small=small)
                self.succeed("translate", self.folder / f"m{n}", self.folder / "text.en")
        self.assertEqual(self.config("m0")["text"]["target_tokenizer"], "word")
        self.assertFalse((self.folder / "m1/target-tokenizer.txt").exists())
        self.assertTrue((self.folder / "m2/target-vocab.txt").exists())

    def test_the_training_set_is_measured(self):
        few = [*SMALL, "--stop-after", "100u"]
        self.fit("--evaluate-training", small=few)
        self.fit(output="plain", small=few)
        self.assertEqual(self.data(), self.data("plain"))
        kinds = [json.loads(line)["kind"] for line in (self.folder / "model/metrics.jsonl").read_text().splitlines()]
        self.assertEqual(kinds.count("training"), kinds.count("evaluation"))


    def test_bleu_and_the_mean_of_checkpoints(self):
        said = self.fit("--metric", "bleu", "--average", "2", "--stop-after", "100u", "--report").stderr.decode()
        records = map(json.loads, (self.folder / "model/metrics.jsonl").read_text().splitlines())
        measured = [record for record in records if record["kind"] == "metrics"]
        self.assertEqual(set(measured[0]["values"]), {"bleu", "chrf"})
        self.assertIn("mean of the weights of updates 50, 100", said)


class Runs(TrainTest):
    def test_threads_give_the_same_bits(self):
        for threads in (1, 2, 3):
            self.fit("--threads", threads, "--stop-after", "40u", output=f"of-{threads}")
            self.assertEqual(self.weights("of-1"), self.weights(f"of-{threads}"))

    def test_a_run_that_was_killed_ends_with_the_same_bits(self):
        long = ("--stop-after", "400u", "--eval-every", "50u", "--save-every", "50u", "--patience", "0",
                "--token-dropout", "0.1", "--dropout", "0.1", "--average-best", "3")
        self.fit(*long, output="whole")
        killed = self.folder / "killed"
        process = self.start("train", "translate", "--source", self.folder / "text.en", "--target",
                             self.folder / "text.de", "-o", killed, *SMALL, *long)
        deadline = time.monotonic() + 60
        while not list((killed / "checkpoints").glob("step-*")) and time.monotonic() < deadline:
            time.sleep(.01)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        self.succeed("train", "translate", "--resume", "-o", killed, "--progress", "none", "--threads", "1")
        self.assertEqual(self.weights("killed"), self.weights("whole"))

    def test_best_weights_that_are_damaged_or_missing_are_said(self):
        self.fit("--stop-after", "60u", "--eval-every", "10u", "--save-every", "60u", "--patience", "0",
                 "--average-best", "4", "--keep", "9")
        kept = sorted((self.folder / "model/best").iterdir())
        self.assertEqual(len(kept), 4)

        def resumed(*args):
            return self.succeed("train", "translate", "--resume", "-o", self.folder / "model", "--progress", "none",
                                *args).stderr.decode()
        self.assertNotIn("best", [word for line in resumed().splitlines() if "warning" in line for word in line.split()])
        whole = kept[0].read_bytes()
        self.assertIn(f"whole    {kept[0]}", self.succeed("inspect", self.folder / "model", "--verify").stdout.decode())
        kept[0].write_bytes(whole[:-1])
        self.fails(4, "damaged files: 1", "inspect", self.folder / "model", "--verify")
        said = resumed("--stop-after", "70u")
        self.assertIn(f"{kept[0]}", said)
        self.assertIn("the run goes on without these weights", said)
        for file in sorted((self.folder / "model/best").iterdir())[:2]:
            file.unlink()
        self.assertIn("weights of 2 of the 4 best evaluations are missing", resumed("--stop-after", "80u"))
        # Fewer are asked for than are there.
        self.assertNotIn("missing", resumed("--average-best", "2"))

    def test_a_recurrent_network_learns_with_the_same_bits(self):
        gru = [*SMALL[4:], "--model", "bahdanau-gru", "--init", "source", "--stop-after", "150u", "--keep", "9"]
        self.fit("--threads", "1", small=gru)
        self.assertLess(self.best_loss(), .5)
        weights, model, source = self.weights(), self.folder / "model", self.folder / "text.en"
        self.succeed("train", "translate", f"--resume={model / 'checkpoints/step-000050'}", "-o", model, "--overwrite",
                     "--threads", "2", "--progress", "none")
        self.assertEqual(self.weights(), weights)
        one = self.succeed("translate", model, source, "--threads", "1").stdout
        self.assertEqual(self.succeed("translate", model, source, "--threads", "3").stdout, one)
        alone = self.succeed("translate", model, stdin=b"one two\n").stdout
        self.assertEqual(self.succeed("translate", model, stdin=b"red\none two\n").stdout.splitlines()[1:],
                         alone.splitlines())
        said = self.succeed("translate", model, "--alignments", stdin=b"one two\n").stdout.decode()
        self.assertRegex(said, r" \|\|\| [0-1]-0")
        self.fails(2, "--decoder-layers: 2", "train", "translate", "--source", source, "--target", source, "-o",
                   self.folder / "deep", "--model", "bahdanau-gru", "--decoder-layers", "2")

    def test_sigint_saves_and_stops(self):
        self.parallel()
        output = self.folder / "model"
        process = self.start("train", "translate", "--source", self.folder / "text.en", "--target",
                             self.folder / "text.de", "-o", output, *SMALL, "--stop-after", "100000u", "--patience", "0")
        deadline = time.monotonic() + 60
        while not list((output / "checkpoints").glob("step-*")) and time.monotonic() < deadline:
            time.sleep(.01)
        process.send_signal(signal.SIGINT)
        err = process.communicate(timeout=60)[1].decode()
        self.assertEqual(process.returncode, 130, err)
        self.assertIn("to go on: fovea train translate --resume -o", err)
        self.succeed("translate", output, self.folder / "text.en")

    def test_settings_go_to_a_file_and_back(self):
        source, target = self.parallel()
        dumped = self.succeed("train", "translate", "--source", source, "--target", target, "--dump-config", "--width",
                              "24").stdout
        recipe = self.write("recipe.toml", dumped)
        self.assertEqual(dumped, self.succeed("train", "translate", "-c", recipe, "--dump-config").stdout)
        dry = self.last_object(self.succeed("train", "translate", "-c", recipe, "--dry-run", "--json"))
        self.assertGreater(dry["updates"], 0)
        self.assertGreater(dry["flops_per_update"], 0)

    def test_overwrite_removes_all_files_of_a_translator(self):
        few = [*SMALL, "--stop-after", "20u"]
        self.fit(small=few)
        self.fit("--shared-vocabulary", "--overwrite", small=few)
        self.assertFalse((self.folder / "model/target-tokenizer.txt").exists())

    def test_resuming_with_another_model_or_other_pairs_is_refused(self):
        self.fit(small=[*SMALL, "--stop-after", "20u"])
        self.fails(2, "--decoder-layers", "train", "translate", "--resume", "-o", self.folder / "model",
                   "--decoder-layers", "2")
        self.parallel(sentences(2))
        done = self.fails(2, "the text has changed", "train", "translate", "--resume", "-o", self.folder / "model")
        self.assertIn("--source, --target", done.stderr.decode())


class Refuses(TrainTest):
    def refuses(self, status, needle, *args):
        with self.subTest(needle):
            output = self.folder / "never"
            self.fails(status, needle, "train", "translate", "-o", output, *SMALL, *args)
            self.assertFalse(output.exists())

    def test_files(self):
        source, target = self.parallel()
        short = self.write("short.de", "eins\n")
        self.refuses(3, "text.en has 150 lines, ", "--source", source, "--target", short)
        self.refuses(2, "--source, --target: 1 files and 0", "--source", source)
        self.refuses(2, "no text to train on")
        self.refuses(3, "bad.tsv:2: expected a sentence, a tab", "--train", self.write("bad.tsv", "a\tb\na b\n"))
        self.refuses(3, "bad.en:2:1", "--source", self.write("bad.en", b"a\n\xff\n"), "--target", target)
        self.refuses(3, "none.en", "--source", self.folder / "none.en", "--target", target)
        self.refuses(3, "empty.en: the file is empty", "--source", self.write("empty.en", ""), "--target", target)
        blank = self.write("blank.en", "\n" * 150)
        self.refuses(3, "", "--source", blank, "--target", target)

    def test_options(self):
        source, target = self.parallel()
        both = ("--source", source, "--target", target)
        self.refuses(2, "--share-embeddings", *both, "--share-embeddings")
        self.refuses(2, "--batch-tokens", *both, "--batch-tokens", "0")
        self.refuses(2, "--label-smoothing", *both, "--label-smoothing", "1")
        self.refuses(2, "--decoder-position", *both, "--decoder-position", "nowhere")
        self.refuses(2, "--heads", *both, "--heads", "5")
        self.refuses(2, "--preset", *both, "--preset", "huge")
        self.refuses(2, "--block", *both, "--block", "1")
        self.refuses(3, "there is no pair to train on: 2 have an empty side", "--train", self.write("a.tsv", "\tb\na\t \n"))
        self.refuses(3, "expected text, got a NUL byte", "--train", self.write("b.tsv", "a\tb\n" * 20 + "a\0b\tc\n"))
        said = self.succeed("train", "translate", *both, "--preset", "tiny", "--model", "bahdanau-gru", "-o",
                            self.folder / "gru", "--dry-run", "--stop-after", "210u")
        self.assertIn(b"the learning rate rises for 200 of the 210 updates", said.stderr)

    def test_pairs_that_are_left_out_are_counted(self):
        pairs = [*sentences(), ("one", ""), ("one " * 60, "eins")]
        said = self.fit(pairs=pairs, small=[*SMALL, "--stop-after", "20u"]).stderr.decode()
        self.assertIn("pairs with an empty side: 1; they are left out", said)
        self.assertIn("pairs longer than --block (32 tokens): 1; they are left out", said)


class FromABase(TrainTest):
    """A translator goes on with other sentences."""

    FEW = ("--batch-tokens", "160", "--stop-after", "60u", "--eval-every", "20u", "--save-every", "20u", "--lr", "5e-3",
           "--dropout", "0", "--warmup", "5", "--label-smoothing", "0", "--progress", "none")

    def setUp(self):
        super().setUp()
        self.fit("--stop-after", "100u", output="base")
        other = [(source, target.replace("rot", "zwei")) for source, target in sentences(seed=3)]  # red is two here
        self.other = self.write("other.tsv", "".join(f"{s}\t{t}\n" for s, t in other))

    def go_on(self, output, *more, run=None):
        return (run or self.succeed)("train", "translate", "--base", self.folder / "base", "--train", self.other, "-o",
                                     self.folder / output, *self.FEW, *more)

    def test_learns_the_other_sentences_with_the_tokens_of_the_base(self):
        self.go_on("run")
        for name in ("tokenizer.txt", "target-tokenizer.txt"):
            self.assertEqual((self.folder / "run" / name).read_bytes(), (self.folder / "base" / name).read_bytes())
        self.assertEqual(self.config("run")["model"], {**self.config("base")["model"], "dropout": 0})
        self.assertLess(self.best_loss("run"), 0.3)
        self.go_on("one", "--stop-after", "1u", "--lr", "1e-30", "--min-lr", "1e-30", "--weight-decay", "0")
        self.assertEqual(self.data("one"), self.data("base"))
        said = self.succeed("translate", self.folder / "run", stdin=b"one red\n").stdout.decode()
        self.assertEqual(said.strip(), "eins zwei")

    def test_bits_and_resuming_without_the_base(self):
        self.go_on("two", "--threads", "2")
        self.go_on("three", "--threads", "3")
        self.assertEqual(self.data("three"), self.data("two"))
        shutil.rmtree(self.folder / "base")
        self.succeed("train", "translate", f"--resume={self.folder}/three/checkpoints/step-000040", "--overwrite")
        self.assertEqual(self.data("three"), self.data("two"))

    def test_what_the_base_decides(self):
        for option, value in (("--width", "64"), ("--encoder-layers", "2"), ("--tokenizer", "char"), ("--min-count", "3"),
                              ("--heads", "4")):
            with self.subTest(option):
                self.assert_error(self.go_on("x", option, value, run=self.run_fovea), 2, f"{option}: ",
                                  "a training that begins from it keeps that")
        self.go_on("same", "--width", "32", "--stop-after", "1u")
        self.assert_error(self.go_on("x", "--preset", "tiny", run=self.run_fovea), 2, "--base, --preset")
        defaults = self.succeed("train", "translate", "--base", self.folder / "base", "--train", self.other, "--dump-config").stdout
        for line in (b"lr = 0.0002", b"schedule = 'linear'", b"width = 32"):
            self.assertIn(line, defaults)

    def test_what_is_no_base(self):
        def refused(base, status, needle):
            self.assert_error(self.run_fovea("train", "translate", "--base", base, "--train", self.other, "-o", self.folder / "x"),
                              status, needle)
            self.assertFalse((self.folder / "x").exists())

        refused(self.folder / "nowhere", 4, "nowhere")
        lines = self.write("labelled.tsv", "a\tone two\nb\tred\n" * 20)
        self.succeed("train", "classify", "--train", lines, "-o", self.folder / "classifier", "--progress", "none")
        refused(self.folder / "classifier", 4, "translator")
        (self.folder / "base" / "tokenizer.txt").unlink()
        refused(self.folder / "base", 4, "tokenizer.txt")


if __name__ == "__main__":
    unittest.main()

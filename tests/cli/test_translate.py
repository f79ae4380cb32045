#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fovea translate, and fovea eval and inspect of a translator."""

import gzip
import json
import math
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from support import FOVEA
from translate_support import TranslateTest, sentences


class ModelTest(TranslateTest):
    """The model is made once."""

    @classmethod
    def setUpClass(cls):
        cls.made = Path(tempfile.mkdtemp(prefix="fovea-translator-"))
        cls.addClassCleanup(shutil.rmtree, cls.made, ignore_errors=True)
        maker = cls("run_fovea")
        maker.folder = cls.made
        maker.fit("--stop-after", "300u", "--patience", "0")
        cls.model = cls.made / "model"

    def said(self, *args, **options):
        return self.succeed("translate", self.model, *args, **options).stdout.decode()


class Translates(ModelTest):
    def test_a_line_in_a_line_out_in_order(self):
        pairs = sentences(5, 60)
        source, _ = self.parallel(pairs)
        lines = self.said(source).splitlines()
        self.assertEqual(len(lines), 60)
        right = sum(line == target for line, (_, target) in zip(lines, pairs))
        self.assertGreater(right, 54)
        self.assertEqual(self.said(stdin=source.read_bytes()), "\n".join(lines) + "\n")
        self.assertEqual(self.said(self.write("a.gz", gzip.compress(source.read_bytes()))), "\n".join(lines) + "\n")

    def test_empty_lines_crlf_and_a_last_line_without_an_end(self):
        self.assertEqual(self.said(stdin=b"one\r\n\n  \ntwo"), "eins\n\n\nzwei\n")
        self.assertEqual(self.said(stdin=b""), "")
        self.assertEqual(self.said(stdin="\ufeffone\n".encode()), "eins\n")

    def test_the_same_bits_for_any_threads_and_order(self):
        source, _ = self.parallel(sentences(6, 40))
        one = self.said(source, "--nbest", "3", "--threads", "1")
        for threads in (2, 3):
            self.assertEqual(self.said(source, "--nbest", "3", "--threads", threads), one)
        lines = source.read_text().splitlines()
        alone = "".join(self.said("--nbest", "3", stdin=(line + "\n").encode()) for line in lines[:5])
        numbered = [line.split(" ||| ", 1)[1] for line in one.splitlines()[:15]]
        self.assertEqual([line.split(" ||| ", 1)[1] for line in alone.splitlines()], numbered)

    def test_n_best_lists_are_in_order_and_scored(self):
        rows = [line.split(" ||| ") for line in self.said("--nbest", "4", stdin=b"one two\nred\n").splitlines()]
        self.assertEqual([row[0] for row in rows], ["0"] * 4 + ["1"] * 4)
        self.assertEqual([row[1] for row in rows[::4]], ["eins zwei", "rot"])
        scores = [float(row[3]) for row in rows[:4]]
        self.assertEqual(scores, sorted(scores, reverse=True))
        for _, text, log_probability, score in rows:
            divisor = ((5 + len(text.split()) + 1) / 6) ** .6
            self.assertAlmostEqual(float(log_probability) / divisor, float(score), places=4)
        marian = [line.split(" ||| ") for line in self.said("--nbest", "2", "--length-penalty", "1", "--length-norm",
                                                            "marian", stdin=b"one two\n").splitlines()]
        self.assertAlmostEqual(float(marian[0][2]) / 3, float(marian[0][3]), places=4)

    def test_coverage_counts_in_scores(self):
        rows = [line.split(" ||| ") for line in self.said("--nbest", "4", "--coverage-penalty", "0.5",
                                                          stdin=b"one two three\n").splitlines()]
        self.assertEqual(rows[0][1], "eins zwei drei")
        scores = [float(row[3]) for row in rows]
        self.assertEqual(scores, sorted(scores, reverse=True))
        added = [float(score) - float(log) / ((5 + len(text.split()) + 1) / 6) ** .6 for _, text, log, score in rows]
        self.assertTrue(all(x < 1e-4 for x in added), added)
        self.assertLess(min(added), -.01)

    def test_objects(self):
        text = self.said("--json", "--nbest", "2", "--alignments", stdin=b"one two\n\n")
        first, empty = map(json.loads, text.splitlines())
        self.assertEqual(first["source"], "one two")
        self.assertEqual(first["translation"], "eins zwei")
        self.assertEqual(first["tokens"], 3)
        self.assertLess(first["log_probability"], 0)
        self.assertEqual(first["nbest"][0]["translation"], "eins zwei")
        self.assertEqual(len(first["nbest"]), 2)
        self.assertEqual([link[1] for link in first["alignment"]], [0, 1])
        self.assertEqual((empty["source"], empty["translation"]), ("", ""))

    def test_alignments(self):
        text, links = self.said("--alignments", stdin=b"one two three\n").strip().split(" ||| ")
        self.assertEqual(text, "eins zwei drei")
        self.assertRegex(links, r"^[0-2]-0 [0-2]-1 [0-2]-2$")

    def test_samples_are_functions_of_the_seed(self):
        line = b"one two three four\n" * 3
        one = self.said("--sample", "--temperature", "3", stdin=line)
        self.assertEqual(one, self.said("--sample", "--temperature", "3", stdin=line))
        self.assertNotEqual(one, self.said("--sample", "--temperature", "3", "--seed", "2", stdin=line))
        self.assertGreater(len(set(one.splitlines())), 1)

    def test_long_lines_are_refused_or_split(self):
        line = " ".join(["one", "two"] * 40)
        done = self.fails(3, "standard input:2: the line has 80 tokens; the model reads at most 31", "translate",
                          self.model, stdin=f"one\n{line}\n".encode())
        self.assertEqual(done.stdout, b"eins\n")  # what stands before is answered
        said = self.succeed("translate", self.model, "--long-lines", "split", stdin=f"{line}\n".encode())
        ends = [0, 26, 53, 80]
        pieces = "".join(" ".join(line.split()[a:b]) + "\n" for a, b in zip(ends, ends[1:]))
        self.assertEqual(said.stdout.decode().split(), self.said(stdin=pieces.encode()).split())
        self.assertIn(b"translated in pieces", said.stderr)

    def test_empty_translations_are_counted(self):
        """Samples at a high temperature are any tokens, and so the end at once, too."""
        lines = b"one two\n\n" * 60
        done = self.succeed("translate", self.model, "--sample", "--temperature", "1000", stdin=lines)
        answers = done.stdout.decode().split("\n")[:-1]
        self.assertEqual(set(answers[1::2]), {""})
        count = answers[::2].count("")
        self.assertGreater(count, 0)
        self.assertIn(f"lines with words whose translation is empty: {count} of 120".encode(), done.stderr)
        self.assertNotIn(b"is empty", self.succeed("translate", self.model, stdin=b"one\n\n").stderr)

    def test_lines_are_answered_as_they_come(self):
        process = subprocess.Popen([FOVEA, "translate", str(self.model)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   env=self.environment())
        process.stdin.write(b"one two\n")
        process.stdin.flush()
        self.assertEqual(process.stdout.readline(), b"eins zwei\n")
        process.stdin.close()
        self.assertEqual(process.wait(timeout=60), 0)
        process.stdout.close()

    def test_a_reader_that_is_gone_is_no_error(self):
        source, _ = self.parallel(sentences(5, 100))
        read, write = os.pipe()
        os.close(read)
        process = subprocess.run([FOVEA, "translate", str(self.model), str(source)], stdout=write,
                                 stderr=subprocess.PIPE, env=self.environment(), timeout=60)
        os.close(write)
        self.assertEqual(process.returncode, 0, process.stderr)


class Refuses(ModelTest):
    def test_options(self):
        self.fails(2, "--truecase", "translate", self.model, "--truecase", stdin=b"one\n")
        self.fails(2, "--beam: 0", "translate", self.model, "--beam", "0")
        self.fails(2, "--nbest", "translate", self.model, "--beam", "2", "--nbest", "3")
        self.fails(2, "--alignment-layer", "translate", self.model, "--alignments", "--alignment-layer", "9")
        self.fails(2, "--coverage-penalty", "translate", self.model, "--coverage-penalty", "-1")
        self.fails(2, "--coverage-penalty", "translate", self.model, "--coverage-penalty", "1", "--sample")
        self.fails(2, "--max-ratio", "translate", self.model, "--max-ratio", "0")
        self.fails(2, "--temperature", "translate", self.model, "--temperature", "0.5")
        self.fails(2, "--nbest: 2000 is not in 1 to 1024", "translate", self.model, "--sample", "--nbest", "2000")

    def test_inputs(self):
        self.fails(3, "standard input:2:1: expected UTF-8", "translate", self.model, stdin=b"one\n\xff\n")
        self.fails(3, "none.en", "translate", self.model, self.folder / "none.en")

    def test_folders_of_other_kinds(self):
        self.train(self.folder / "lm", "--stop-after", "5u", "--eval-every", "5u", "--save-every", "5u")
        self.fails(4, 'expected "kind": "translator", got "language_model"', "translate", self.folder / "lm")
        self.fails(4, 'expected "kind": "language_model", got "translator"', "generate", self.model, "one")
        self.fails(4, "none", "translate", self.folder / "none")

    def test_an_output_that_cannot_be_written(self):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([FOVEA, "translate", str(self.model)], input=b"one\n", stdout=full,
                                  stderr=subprocess.PIPE, env=self.environment(), timeout=60)
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertIn(b"error[E05", done.stderr)


class Evaluates(ModelTest):
    def evaluate(self, *args):
        return self.succeed("eval", self.model, *args)

    def test_loss_and_perplexity(self):
        source, target = self.parallel(sentences(7, 50))
        score = self.last_object(self.evaluate("--source", source, "--reference", target, "--json"))
        self.assertEqual(score["pairs"], 50)
        self.assertEqual(score["tokens"], 50 * 3 + 50)
        self.assertAlmostEqual(score["perplexity"], math.exp(score["loss"]), places=6)
        self.assertLess(score["loss"], .3)
        said = self.evaluate("--source", source, "--reference", target).stdout.decode()
        self.assertIn(f"loss {score['loss']:.4f} nats a token", said)
        self.assertIn("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp", said)
        table = self.write("t.tsv", "".join(f"{s}\t{t}\n" for s, t in sentences(7, 50)))
        self.assertEqual(self.last_object(self.evaluate("--test", table, "--json")), score)

    def test_translations_are_scored_as_files_of_them_are(self):
        source, target = self.parallel([*sentences(7, 30), ("", ""), ("one " * 50, "eins " * 50)])
        made = self.write("made.de", self.said(source, "--long-lines", "split"))
        options = ["--metric", "bleu,ter", "--tokenize", "char", "--sentence-scores", "--json"]
        found = self.last_object(self.evaluate("--source", source, "--reference", target, *options))
        alone = self.last_object(self.succeed("eval", "--hypothesis", made, "--reference", target, *options))
        self.assertEqual({key: found[key] for key in alone}, alone)
        self.assertLess(found["copy_chrf"], 30)
        greedy = self.write("greedy.de", self.said(source, "--long-lines", "split", "--beam", "1"))
        options = ["--metric", "chrf", "--json", "--resamples", "20"]
        of_greedy = self.last_object(self.evaluate("--source", source, "--reference", target, "--beam", "1", *options))
        self.assertEqual(of_greedy["metrics"], self.last_object(self.succeed(
            "eval", "--hypothesis", greedy, "--reference", target, *options))["metrics"])

    def test_two_models_or_a_file_are_compared(self):
        self.fit("--stop-after", "20u", output="worse")
        source, target = self.parallel(sentences(7, 40))
        other = self.write("worse.de", self.succeed("translate", self.folder / "worse", source).stdout)
        pairs = ["--source", source, "--reference", target, "--resamples", "50", "--json", "--against"]
        found = self.last_object(self.evaluate(*pairs, self.folder / "worse"))
        bleu = found["metrics"][0]
        self.assertGreater(bleu["difference"]["low"], 10)
        self.assertLess(bleu["p_value"], .05)
        self.assertEqual(self.last_object(self.evaluate(*pairs, other)), found)
        self.fails(3, "has 2 lines, but the sources has 40", "eval", self.model, *pairs, self.write("two", "a\nb\n"))

    def test_exchanged_languages_are_suspected(self):
        source, target = self.parallel([("one 12345 two", "eins 12345 zwei")] * 3)
        done = self.evaluate("--source", target, "--reference", source)
        self.assertIn(b"are --source and --reference exchanged?", done.stderr)

    def test_scores_are_those_of_the_search(self):
        rows = [line.split(" ||| ") for line in self.said("--nbest", "3", stdin=b"one two\n").splitlines()]
        source, target = self.parallel([("one two", row[1]) for row in rows])
        scored = self.evaluate("--source", source, "--reference", target, "--score").stdout.decode().splitlines()
        for line, row in zip(scored, rows):
            log_probability, tokens = line.split("\t")
            self.assertAlmostEqual(float(log_probability), float(row[2]), places=4)
            self.assertEqual(int(tokens), len(row[1].split()) + 1)

    def test_a_line_for_each_pair(self):
        source, target = self.parallel([("one", "eins"), ("", "eins"), ("one " * 40, "eins"), ("two", "zwei")])
        done = self.evaluate("--source", source, "--reference", target, "--score")
        lines = done.stdout.decode().split("\n")
        self.assertEqual([line == "" for line in lines], [False, True, True, False, True])
        self.assertIn(b"empty side: 1", done.stderr)
        self.assertIn(b"--block: 1", done.stderr)

    def test_what_has_no_effect_is_refused(self):
        source, target = self.parallel()
        self.fails(2, "--errors has no effect on a translator", "eval", self.model, "--source", source, "--reference",
                   target, "--errors", "3")
        self.fails(2, "no text to predict", "eval", self.model)
        self.fails(2, "--hypothesis scores files", "eval", self.model, "--source", source, "--hypothesis", target,
                   "--reference", target)
        self.fails(2, "--metric has no effect on --score", "eval", self.model, "--source", source, "--reference", target,
                   "--score", "--metric", "ter")
        self.fails(2, "files of sources: 1, of their translations: 0", "eval", self.model, "--source", source)
        self.train(self.folder / "lm", "--stop-after", "5u", "--eval-every", "5u", "--save-every", "5u")
        self.fails(2, "--source has no effect", "eval", self.folder / "lm", "--test", self.text, "--source", source)
        self.fails(2, "--metric has no effect", "eval", self.folder / "lm", "--test", self.text, "--metric", "ter")


class Punctuation(TranslateTest):
    """A model of --lower --words punctuation: its words are put together, and compared in lower case."""

    def test_text_and_scores_are_as_readers_write_them(self):
        pairs = [(f"{source} , one .", f"{target.capitalize()}, \"Eins\".") for source, target in sentences()]
        self.fit("--lower", "--words", "punctuation", "--patience", "0", "--stop-after", "400u", pairs=pairs)
        model = self.folder / "model"
        source, target = self.parallel(pairs[:40])
        said = lambda *args: self.succeed("translate", model, source, *args).stdout.decode()
        text = said()
        self.assertGreater(text.count(', "eins".\n'), 30)
        self.assertIn(' , " eins " .\n', said("--raw"))
        self.assertEqual([line[0] for line in said("--truecase").splitlines()], [line[0].upper() for line in text.splitlines()])
        rows = [json.loads(line)["translation"] for line in said("--json").splitlines()]
        self.assertEqual(rows, text.splitlines())
        ask = "eval", model, "--source", source, "--reference", target
        done = self.succeed(*ask, "--json")
        bleu, chrf, _ = self.last_object(done)["metrics"]
        self.assertGreater(bleu["score"], 60)
        self.assertIn("|case:lc|", bleu["signature"])
        self.assertIn("|case:lc|", chrf["signature"])
        self.assertNotIn(b"capital", done.stderr)
        done = self.succeed(*ask, "--json", "--no-lowercase")
        self.assertLess(self.last_object(done)["metrics"][0]["score"], bleu["score"] - 20)
        self.assertIn(b"the references have capital letters, the translations have none", done.stderr)


class Inspects(ModelTest):
    def test_a_translator(self):
        said = self.succeed("inspect", self.model).stdout.decode()
        for words_said in ("translator, ", "target tokens", "decoder.blocks.0.cross.q.weight", "model.encoder_layers"):
            self.assertIn(words_said, said)
        found = self.last_object(self.succeed("inspect", self.model, "--json"))
        self.assertEqual(found["kind"], "translator")
        self.assertEqual(found["settings"]["model"]["decoder_layers"], 1)
        self.succeed("inspect", self.model, "--verify")


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fovea tag, and fovea eval and inspect of a tagger."""

import gzip
import json
import os
import shutil
import struct
import subprocess
import tempfile
import unittest
from pathlib import Path

from forged import forge_listed_tensors
from support import FOVEA
from tag_support import SEGMENT, TagTest, conll, conllu, segmented, tagged


class ModelsTest(TagTest):
    """The models are made once."""

    @classmethod
    def setUpClass(cls):
        cls.made = Path(tempfile.mkdtemp(prefix="fovea-taggers-"))
        cls.addClassCleanup(shutil.rmtree, cls.made, ignore_errors=True)
        maker = cls("run_fovea")
        maker.folder = cls.made
        maker.fit(maker.write("a.conll", conll(tagged())), output="tagger")
        maker.fit(maker.write("a.seg", segmented()), output="segmenter", small=SEGMENT)
        cls.tagger, cls.segmenter = cls.made / "tagger", cls.made / "segmenter"

    def said(self, *args, **options):
        return self.succeed("tag", *args, **options).stdout.decode()


class Tags(ModelsTest):
    def test_what_was_there_stays_and_a_column_is_added(self):
        text = "-DOCSTART-\tO\n\n" + conll(tagged(7, 30)) + "\n\n"
        for name, between in (("a.conll", "\t"), ("b.conll", " ")):
            given = text.replace("\t", between)
            lines = self.said(self.tagger, self.write(name, given)).splitlines()
            self.assertEqual(len(lines), len(given.splitlines()))
            for line, before in zip(lines, given.splitlines()):
                self.assertTrue(line.startswith(before))
                self.assertEqual(len(line.split(between)), len(before.split(between)) + (1 if before else 0))
        self.assertEqual([line.split()[-1] for line in lines if line][1:],
                         [line.split()[-1] for line in given.splitlines() if line][1:])

    def test_words_alone_crlf_and_a_last_line_without_an_end(self):
        self.assertEqual(self.said(self.tagger, stdin=b"Ada\r\nsaw\r\nRome"),
                         "Ada\tB-person\r\nsaw\tO\r\nRome\tB-place\n")
        self.assertEqual(self.said(self.tagger, stdin=b""), "")

    def test_conllu(self):
        given = conllu(tagged(7, 5))
        lines = self.said(self.tagger, self.write("a.conllu", given)).splitlines()
        for line, before in zip(lines, given.splitlines()):
            self.assertTrue(line.startswith(before))
            if "\t" not in before:
                self.assertEqual(line, before)
                continue
            fields = line.split("\t")
            self.assertEqual(len(fields), 11)
            self.assertEqual(fields[10], fields[3])

    def test_text(self):
        self.assertEqual(self.said(self.tagger, "--text", stdin="Ada saw Rome there.\n".encode()),
                         "Ada\tB-person\nsaw\tO\nRome\tB-place\nthere\tO\n.\tO\n\n")
        spaces = self.said(self.tagger, "--text", "--words", "spaces", stdin=b"Ada saw Rome there.")
        self.assertIn("there.\t", spaces)
        self.assertEqual(self.said(self.tagger, "--format", "words", stdin=b"Ada saw Rome there."), spaces)

    def test_raw_text_is_taken_for_text(self):
        text = b"Ada saw Rome there.\n"
        done = self.succeed("tag", self.tagger, stdin=text)
        self.assertEqual(done.stdout.decode(), self.said(self.tagger, "--text", stdin=text))
        self.assertIn("standard input: lines of several words without a tab are taken for text", done.stderr.decode())
        more = self.write("a.txt", text + b"\nEve van Dyke saw it, too.\n")
        done = self.succeed("tag", self.tagger, more, "--json")
        self.assertEqual(done.stdout.decode(), self.said(self.tagger, more, "--text", "--json"))
        self.assertEqual(done.stderr.count(b"taken for text"), 1)
        self.assertEqual(self.said(self.tagger, "--format", "conll", stdin=text), "Ada saw Rome there. B-person\n")

    def test_a_sentence_may_end_with_a_word_that_is_called_as_a_tag_is(self):
        text = b"Ada saw a big O\n"
        done = self.succeed("tag", self.tagger, stdin=text)
        self.assertEqual(done.stdout.decode(), self.said(self.tagger, "--text", stdin=text))

    def test_lines_with_the_same_number_of_words_are_text_unless_they_end_with_tags(self):
        text = b"Ada saw Rome\nEve saw it\n"
        done = self.succeed("tag", self.tagger, stdin=text)
        self.assertEqual(done.stdout.decode(), self.said(self.tagger, "--text", stdin=text))
        self.assertIn("taken for text", done.stderr.decode())
        columns = self.said(self.tagger, "--format", "conll", stdin=b"Ada NNP\nsaw VBD\n")
        self.assertEqual(columns, "Ada NNP B-person\nsaw VBD O\n")
        for quiet in (b"Ada\nsaw\n", b"Ada O\nsaw O\n", b"Ada\tNNP\nsaw\tVBD\n"):
            self.assertNotIn(b"warning", self.succeed("tag", self.tagger, stdin=quiet).stderr)
        self.fails(3, "standard input:2: expected 1 column, as in line 1, got 2", "tag", self.tagger,
                   stdin=b"Ada\nsaw Rome\n")

    def test_probabilities(self):
        for line in self.said(self.tagger, "--probabilities", stdin=b"Ada O\nsaw O\n").splitlines():
            self.assertEqual(len(line.split()), 4)
            self.assertTrue(.2 < float(line.split()[-1]) <= 1)
        found = json.loads(self.said(self.tagger, "--text", "--json", "--probabilities", stdin=b"Eve van Dyke saw"))
        self.assertEqual(found["words"], ["Eve", "van", "Dyke", "saw"])
        self.assertEqual(found["tags"], ["B-person", "I-person", "I-person", "O"])
        self.assertEqual(found["spans"], [{"type": "person", "begin": 0, "end": 3, "text": "Eve van Dyke"}])
        self.assertEqual(len(found["probabilities"]), 4)

    def test_the_same_bits_for_any_threads_and_batch(self):
        sentences = tagged(5, 300)
        file = self.write("a.conll", conll(sentences))
        whole = self.said(self.tagger, file, "--probabilities", "--threads", 1)
        for threads in (2, 3, 8):
            self.assertEqual(self.said(self.tagger, file, "--probabilities", "--threads", threads), whole)
        one = self.said(self.tagger, "--probabilities", stdin=conll(sentences[:1]).encode())
        self.assertTrue(whole.startswith(one))

    def test_a_sentence_of_many_words(self):
        done = self.succeed("tag", self.tagger, stdin=b"Ada\nsaw\n" * 5000)
        self.assertEqual(len(done.stdout.splitlines()), 10000)
        self.assertIn("longer than the model's --max-length (1024): 1 of 1", done.stderr.decode())

    def test_answers_before_the_end_and_before_an_error(self):
        process = subprocess.Popen([FOVEA, "tag", self.tagger], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, env=self.environment())
        process.stdin.write(b"Ada\nsaw\n\n")
        process.stdin.flush()
        self.assertEqual(process.stdout.readline(), b"Ada\tB-person\n")
        process.stdin.close()
        process.stdout.close()
        self.assertEqual(process.wait(), 0)
        done = self.fails(3, "standard input:4: expected 1 column, as in line 1, got 2", "tag", self.tagger,
                          stdin=b"Ada\nsaw\n\nRome x\n")
        self.assertEqual(done.stdout, b"Ada\tB-person\nsaw\tO\n\n")

    def test_a_reader_that_leaves_is_no_error(self):
        file = self.write("a.conll", conll(tagged(5, 3000)))
        process = subprocess.Popen([FOVEA, "tag", self.tagger, file], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=self.environment())
        process.stdout.read(10)
        process.stdout.close()
        self.assertEqual(process.stderr.read(), b"")
        self.assertEqual(process.wait(), 0)
        process.stderr.close()


class Confusion(ModelsTest):
    def test_types_of_long_names_are_listed(self):
        person, place = ("a-person-of-a-rather-long-name", "a-place-of-a-rather-long-name")
        text = conll(tagged()).replace("person", person).replace("place", place)
        self.fit(self.write("a.conll", text))
        wrong = text.replace(place, person)
        said = self.succeed("eval", self.folder / "model", "--test", self.write("b.conll", wrong)).stdout.decode()
        self.assertRegex(said, r"\n +120  a-person-of\S* taken for a-place-of\S*\n")
        self.assertNotIn("spans by their type", said)


class Refuses(ModelsTest):
    def test_a_table_for_a_segmenter(self):
        file = self.write("a.conllu", conllu(tagged(2, 3)))
        self.fails(2, "a segmenter reads lines of text, and by its name this is CoNLL-U", "tag", self.segmenter, file)


class Damage(ModelsTest):
    def test_transitions_that_are_no_numbers(self):
        folder = self.folder / "damaged"
        shutil.copytree(self.tagger, folder)

        def poison(header, data):
            begin, _ = header["crf.transitions"]["data_offsets"]
            data[begin:begin + 4] = struct.pack("<f", float("nan"))
        forge_listed_tensors(folder, "model.safetensors", poison)
        self.fails(4, "crf.transitions is not finite", "tag", folder, stdin=b"Ada\n")


class Memory(ModelsTest):
    def peak(self, text):
        """MiB at most."""
        with open(self.write("a.txt", text), "rb") as stdin:
            process = subprocess.Popen([FOVEA, "tag", self.tagger, "--threads", "1"], stdin=stdin,
                                       stdout=subprocess.DEVNULL, env=self.environment())
            _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(process.returncode, 0)
        return usage.ru_maxrss / 1024

    def test_lines_without_words_and_long_words(self):
        usual = self.peak("Ada\n")
        self.assertLess(self.peak("\n" * 3_000_000), usual + 100)
        self.assertLess(self.peak("a" * 2_000_000), usual + 100)


class Segments(ModelsTest):
    def test_every_character_stays(self):
        line = "我们在北京学习。"
        text = f"{line}\n\n  他 不喜欢\u3000机器 \r\nabc 12我们\n{line}"
        found = self.said(self.segmenter, stdin=text.encode())
        self.assertIn("我们 在 北京 学习 。\n", found)
        self.assertEqual(found.replace(" ", ""), text.replace(" ", ""))
        self.assertTrue(found.startswith("我们") and not found.endswith("\n"))
        packed = self.write("a.txt.gz", gzip.compress(text.encode()))
        self.assertEqual(self.said(self.segmenter, packed, "--threads", 3), found)

    def test_json(self):
        found = [json.loads(line) for line in
                 self.said(self.segmenter, "--json", "--probabilities", stdin="我们 在\n\n".encode()).splitlines()]
        self.assertEqual(found[0]["words"], ["我们", "在"])
        self.assertEqual(len(found[0]["probabilities"]), 3)
        self.assertEqual(found[1]["words"], [])

    def test_the_score(self):
        test = self.write("t.seg", segmented(9, 40) + "我们 喜欢 未知词\n")
        score = self.last_object(self.succeed("eval", self.segmenter, "--test", test, "--json"))
        self.assertEqual(score["task"], "segment")
        self.assertGreater(score["f1"]["value"], .8)
        self.assertGreaterEqual(score["f1"]["high"], score["f1"]["low"])
        self.assertIsNotNone(score["unknown_recall"]["value"])
        said = self.succeed("eval", self.segmenter, "--test", test, "--errors", 2).stdout.decode()
        self.assertIn("unknown recall", said)
        self.assertNotIn("\x1b", said)


class Scores(ModelsTest):
    def test_names(self):
        test = self.write("t.conll", conll(tagged(11, 50)))
        score = self.last_object(self.succeed("eval", self.tagger, "--test", test, "--json"))
        self.assertEqual((score["sentences"], score["micro_f1"]["value"], score["accuracy"]["value"]), (50, 1, 1))
        self.assertEqual([t["type"] for t in score["types"]], ["person", "place"])
        self.assertEqual(score["types"][0]["support"], 50)

    def test_mistakes_and_unknown_tags(self):
        test = self.write("t.conll", "Ada\tB-person\nsaw\tO\nRome\tB-city\nthere\tO\n\nsaw\tO\n")
        done = self.succeed("eval", self.tagger, "--test", test, "--errors", 3)
        self.assertIn(f"words whose tag the model does not know: 1, the first at {test}:3 (B-city);", done.stderr.decode())
        said = done.stdout.decode()
        self.assertIn("Ada saw Rome [B-city, not B-place] there", said)
        self.assertIn("t.conll:1  wrong tags: 1 of 4", said)
        score = self.last_object(self.succeed("eval", self.tagger, "--test", test, "--json"))
        self.assertEqual(score["micro_f1"]["value"], .5)
        self.assertEqual(score["unknown_tags"], 1)

    def test_other_schemes_and_broken_sequences(self):
        bioes = "Ada\tS-person\nsaw\tO\nNew\tB-place\nYork\tE-place\nthere\tO\n"
        score = self.last_object(self.succeed("eval", self.tagger, "--test", self.write("t.conll", bioes), "--json"))
        self.assertEqual((score["micro_f1"]["value"], score["accuracy"]["value"]), (1, 1))
        broken = "Ada\tI-person\nsaw\tO\nNew\tI-place\nYork\tI-place\nthere\tO\n"
        score = self.last_object(self.succeed("eval", self.tagger, "--test", self.write("u.conll", broken), "--json"))
        self.assertEqual(score["micro_f1"]["value"], 1)

    def test_iob1_is_recognised_and_what_breaks_a_scheme_is_said(self):
        iob1 = "Ada\tI-person\nsaw\tO\nNew\tI-place\nYork\tI-place\nthere\tO\n"
        done = self.succeed("eval", self.tagger, "--test", self.write("t.conll", iob1), "--json")
        score = self.last_object(done)
        self.assertEqual((score["micro_f1"]["value"], score["accuracy"]["value"]), (1, 1))
        self.assertNotIn(b"break", done.stderr)
        broken = self.write("u.conll", "Ada\tB-person\nsaw\tO\nNew\tI-place\nYork\tI-place\nthere\tO\n")
        said = self.succeed("eval", self.tagger, "--test", broken).stderr.decode()
        self.assertIn("break the scheme bio: 1 in 1 sentence, the first at ", said)
        self.assertIn("u.conll:3 (1 span does not begin", said)

    def test_bad_files(self):
        self.fails(3, "t.conll:2: expected a tag of the scheme bio, got NOUN", "eval", self.tagger, "--test",
                   self.write("t.conll", "Ada\tB-person\nsaw\tNOUN\n"))
        self.fails(3, "u.conll:1: expected the word in column 3, got 2 columns", "eval", self.tagger, "--test",
                   self.write("u.conll", "a O\n"), "--tag-column", 2, "--word-column", 3)
        self.fails(2, "--errors", "eval", self.tagger, "--test", self.made / "a.conll", "--errors", -1)

    def test_options_of_others(self):
        self.fails(2, "eval: --column has no effect: no file is of the format conllu", "eval", self.tagger, "--test",
                   self.made / "a.conll", "--column", "xpos")
        self.fails(2, "tag: --comments has no effect", "tag", self.tagger, "--format", "conllu", "--comments")
        self.fails(2, "eval: --plots has no effect on a tagger", "eval", self.tagger, "--test", self.made / "a.conll",
                   "--plots", "x")


class Folders(ModelsTest):
    def test_inspect(self):
        said = self.succeed("inspect", self.tagger).stdout.decode()
        self.assertIn("task: tag, 5 tags, scheme bio, head crf", said)
        self.assertIn("  tag B-person\n", said)
        self.succeed("inspect", self.tagger, "--verify")
        found = self.last_object(self.succeed("inspect", self.tagger, "--json"))
        self.assertEqual((found["kind"], found["tags"][0]), ("tagger", "B-person"))

    def test_models_of_other_kinds(self):
        texts = self.write("c.tsv", "good\ta film\nbad\tno film\n" * 20)
        other = self.folder / "classifier"
        self.succeed("train", "classify", "--train", texts, "-o", other, "--stop-after", "2u", "--quiet")
        self.fails(4, 'expected "kind": "tagger", got "classifier"', "tag", other, stdin=b"a\n")
        self.fails(4, 'expected "kind": "classifier", got "tagger"', "classify", self.tagger, stdin=b"a\n")
        self.fails(4, "language_model", "generate", self.tagger)
        self.fails(2, "eval: --comments has no effect on a classifier", "eval", other,
                   "--test", texts, "--comments")

    def test_damage(self):
        for name in ("config.json", "characters.txt", "tokenizer.txt", "model.safetensors"):
            with self.subTest(name):
                copy = self.folder / ("copy-" + name)
                shutil.copytree(self.tagger, copy)
                with open(copy / name, "r+b") as file:
                    file.seek(os.path.getsize(copy / name) // 2)
                    file.write(b"#")
                self.fails(4, name, "tag", copy, stdin=b"a\n")

    def test_options_without_effect(self):
        self.fails(2, "--word-column has no effect", "tag", self.segmenter, "--word-column", 2)
        self.fails(2, "--text has no effect on a segmenter", "tag", self.segmenter, "--text")
        self.fails(2, "--words has no effect", "tag", self.tagger, "--words", "spaces")
        self.fails(2, "--probabilities of a segmenter", "tag", self.segmenter, "--probabilities")

    def test_invalid_text(self):
        self.fails(3, "standard input:1:1: expected UTF-8, got 0xFF", "tag", self.segmenter, stdin=b"\xff\n")
        self.fails(3, "standard input:2:1: expected UTF-8, got 0xFF", "tag", self.tagger, stdin=b"a\n\xff\n")


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fovea explain of taggers and segmenters."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from support import FOVEA, CommandTest
from tag_support import SEGMENT, SMALL, columns, segmented, tagged
from test_explain import SENTENCE, UTF8, width


class Taggers(CommandTest):
    @classmethod
    def setUpClass(cls):
        """A tagger of two columns and a segmenter, trained once."""
        super().setUpClass()
        cls.models = Path(tempfile.mkdtemp(prefix="fovea-explain-"))
        cls.addClassCleanup(shutil.rmtree, cls.models, ignore_errors=True)
        (cls.models / "a.conll").write_text(columns(tagged()), encoding="utf-8")
        (cls.models / "a.seg").write_text(segmented(), encoding="utf-8")
        env = {k: v for k, v in os.environ.items() if not k.startswith("FOVEA_")}
        for name, args in (("tagger", (*SMALL, "--tag-column", "2,3")), ("segmenter", SEGMENT)):
            file = cls.models / ("a.conll" if name == "tagger" else "a.seg")
            command = [FOVEA, "train", "tag", "--train", file, "-o", cls.models / name, *args, "--encoder",
                       "attention,bilstm:8", "-q"]
            done = subprocess.run(list(map(str, command)), capture_output=True, env=env, timeout=120)
            assert done.returncode == 0, done.stderr.decode()
        cls.tagger, cls.segmenter = cls.models / "tagger", cls.models / "segmenter"

    def test_tags_stand_beside_the_words(self):
        said = self.succeed("explain", self.tagger, "Ada saw New York there.", env=UTF8).stdout.decode()
        for part in ("tokens: 6", "column 2", "column 3", SENTENCE, "layer 1 (attention), mean of 4 heads",
                     'the score of "PROPN" for token 1, "Ada", before the CRF'):
            self.assertIn(part, said)
        self.assertRegex(said, r"\n +1 Ada +PROPN +[01]\.\d{4} +B-person +[01]\.\d{4}\n")
        self.assertRegex(said, r"\n +4 York +PROPN +[01]\.\d{4} +I-place +[01]\.\d{4}\n")
        for line in said.splitlines():
            self.assertLessEqual(width(line), 80, line)

    def test_the_numbers_are_those_of_tag(self):
        found = json.loads(self.succeed("explain", self.tagger, "Ada saw Rome", "--json", "--column", "3").stdout)
        self.assertEqual((found["kind"], found["tokens"], found["token"]), ("tagger", ["Ada", "saw", "Rome"], 1))
        self.assertNotIn("number", found)
        tags = json.loads(self.succeed("tag", self.tagger, "--text", "--json", "--probabilities", stdin=b"Ada saw Rome\n").stdout)
        for one, other in zip(found["columns"], tags["columns"]):
            self.assertEqual((one["column"], one["tags"]), (other["column"], other["tags"]))
            for p, q in zip(one["probabilities"], other["probabilities"]):
                self.assertAlmostEqual(p, q, delta=1e-6)
        self.assertEqual(len(found["layers"][0]["heads"][0]["weights"]), 3)
        self.assertEqual(len(found["saliency"]["values"]), 3)
        self.assertIn('the score of "B-person" for token 1', found["saliency"]["of"])
        lines = self.succeed("explain", self.tagger, "Ada\tPROPN\tO\nsaw\tVERB\tO\nRome\tPROPN\tO\n", "--json", "--column",
                             "3").stdout
        self.assertEqual(json.loads(lines), found)
        self.assertEqual(self.succeed("explain", self.tagger, "-", "--json", "--column", "3", "-t", 1,
                                      stdin=b"Ada\nsaw\nRome\n").stdout, lines)

    def test_another_token_and_tag(self):
        def saliency(*args):
            return json.loads(self.succeed("explain", self.tagger, "Ada saw Rome", "--json", *args).stdout)["saliency"]
        last = saliency("--token", 3, "--column", "3", "--target", "B-person")
        self.assertEqual(last["of"], 'the score of "B-person" for token 3, "Rome", before the CRF')
        self.assertNotEqual(last["values"], saliency("--token", 3, "--column", "3")["values"])
        self.assertEqual(saliency("--saliency", "rollout", "--token", 2)["of"], 'the row of token 2, "saw"')

    def test_a_segmenter_and_a_page(self):
        found = json.loads(self.succeed("explain", self.segmenter, "我们在 北京", "--json").stdout)
        self.assertEqual((found["kind"], found["tokens"]), ("segmenter", list("我们在北京")))
        self.assertEqual(set(found["tags"]) - set("BMES"), set())
        page = self.folder / "page.html"
        self.succeed("explain", self.tagger, "Ada </script> Rome", "--page", page)
        text = page.read_text(encoding="utf-8")
        for part in ("What the model says of each token", "<h3>column 3</h3>", "<bdi>B-person</bdi>"):
            self.assertIn(part, text)
        self.succeed("explain", self.segmenter, "我们", "--page", page, "--overwrite", "--lang", "zh")
        self.assertIn("模型对每个词元的判断", page.read_text(encoding="utf-8"))

    def test_bad_input(self):
        for status, args, needle in (
                (3, (self.tagger, " "), "no word"), (3, (self.tagger, "Ada\n\nsaw\n"), "text:3: expected one sentence"),
                (3, (self.tagger, "Ada O\nsaw\n"), "text:2: expected 2 columns"),
                (3, (self.tagger, "Ada O x\n# saw\n"), "text:2: expected 3 columns"), (3, (self.tagger, b"a \xff"), "invalid UTF-8"),
                (2, (self.tagger, "a " * 1025), "has 1025 words; the model sees at most 1024"),
                (2, (self.tagger, "Ada", "--token", 2), "--token: 2"), (2, (self.tagger, "Ada", "--target", "X"), "no tag X"),
                (2, (self.tagger, "Ada", "--column", "5"), "no tag column 5"), (2, (self.segmenter, "我", "--column", "5"), "--column"),
                (2, (self.tagger, "Ada", "--truncate"), "--truncate has no effect"),
                (2, (self.tagger, "Ada", "--target", "O", "--saliency", "none"), "--target: has no effect")):
            with self.subTest(args=args):
                command = [FOVEA, "explain", *(a if isinstance(a, bytes) else str(a) for a in args)]
                done = subprocess.run(command, capture_output=True, env=self.environment(), timeout=60)
                self.assert_error(done, status, needle)
                self.assertEqual(done.stdout, b"")
                for option in ("--comments", "--word-column", "--format"):  # of tag, not of explain
                    self.assertNotIn(option, done.stderr.decode())


if __name__ == "__main__":
    unittest.main()

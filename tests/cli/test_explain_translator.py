#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fovea explain of translators: what it shows is what translate and eval say."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from support import FOVEA, CommandTest
from test_explain import SENTENCE, UTF8, width
from translate_support import SMALL, sentences

TEXT = "two red and four"


def small(*without):
    """The options of a small model but for these."""
    options = list(SMALL)
    for option in without:
        at = options.index(option)
        del options[at:at + 2]
    return options


class Translators(CommandTest):
    @classmethod
    def setUpClass(cls):
        """A Transformer and a GRU with attention, trained once."""
        super().setUpClass()
        cls.models = Path(tempfile.mkdtemp(prefix="fovea-explain-"))
        cls.addClassCleanup(shutil.rmtree, cls.models, ignore_errors=True)
        pairs = cls.models / "pairs.tsv"
        pairs.write_text("".join(f"{source}\t{target}\n" for source, target in sentences()), encoding="utf-8")
        env = {k: v for k, v in os.environ.items() if not k.startswith("FOVEA_")}
        for name, args in (("transformer", (*small("--decoder-layers"), "--decoder-layers", "2")),
                           ("gru", (*small("--encoder-layers", "--decoder-layers", "--heads"), "--model", "bahdanau-gru"))):
            command = [FOVEA, "train", "translate", "--train", pairs, "-o", cls.models / name, *args, "-q"]
            done = subprocess.run(list(map(str, command)), capture_output=True, env=env, timeout=120)
            assert done.returncode == 0, done.stderr.decode()
        cls.transformer, cls.gru = cls.models / "transformer", cls.models / "gru"

    def object_of(self, *args):
        return json.loads(self.succeed("explain", *args, "--json").stdout)

    def test_the_translation_and_its_alignment_are_those_of_translate(self):
        for model in (self.transformer, self.gru):
            answer = self.succeed("translate", model, "--json", "--alignments", stdin=TEXT.encode() + b"\n").stdout
            made = json.loads(answer)
            found = self.object_of(model, TEXT)
            self.assertEqual((found["kind"], found["translation"], found["given"]),
                             ("translator", made["translation"], False))
            self.assertEqual(found["tokens"], [*TEXT.split(), "</s>"])
            self.assertEqual(found["target_tokens"], [*made["translation"].split(), "</s>"])
            self.assertAlmostEqual(found["log_probability"], made["log_probability"], delta=1e-4)
            cross = [layer for layer in found["layers"] if layer["keys"] == "source" != layer["queries"]][0]
            heads = [head["weights"] for head in cross["heads"]]
            links = []
            for target in range(len(found["target_tokens"]) - 1):
                mean = [sum(head[target][source] for head in heads) for source in range(len(found["tokens"]) - 1)]
                links.append([mean.index(max(mean)), target])
            self.assertEqual(links, made["alignment"])

    def test_every_layer_and_head(self):
        found = self.object_of(self.transformer, TEXT, "--target", "zwei rot")
        self.assertEqual([(layer["name"], layer["queries"], layer["keys"]) for layer in found["layers"]],
                         [("encoder 1 (transformer)", "source", "source"),
                          ("decoder 1 (self-attention)", "translation", "translation so far"),
                          ("decoder 1 (cross-attention)", "translation", "source"),
                          ("decoder 2 (self-attention)", "translation", "translation so far"),
                          ("decoder 2 (cross-attention)", "translation", "source")])
        for layer in found["layers"]:
            self.assertEqual(len(layer["heads"]), 2)
            for head in layer["heads"]:
                self.assertEqual(len(head["weights"]), 5 if layer["queries"] == "source" else 3)
                self.assertEqual("distance" in head, layer["queries"] == "source" or layer["keys"] != "source")
                for row in head["weights"]:
                    self.assertEqual(len(row), 5 if layer["keys"] == "source" else 3)
                    self.assertAlmostEqual(sum(row), 1, delta=1e-5)
        self.assertEqual(found["layers"][1]["heads"][0]["weights"][0], [1, 0, 0])
        one = self.object_of(self.transformer, TEXT, "--target", "zwei rot", "--layer", 5, "--head", 2)
        self.assertEqual(one["layers"], [{**found["layers"][4], "heads": found["layers"][4]["heads"][1:]}])

    def test_a_given_translation_is_scored_as_eval_does(self):
        (self.folder / "a.en").write_text(TEXT + "\n")
        (self.folder / "a.de").write_text("rot zwei\n")
        for model in (self.transformer, self.gru):
            found = self.object_of(model, TEXT, "--target", "rot zwei")
            self.assertEqual((found["translation"], found["given"]), ("rot zwei", True))
            said = self.succeed("eval", model, "--source", self.folder / "a.en", "--reference", self.folder / "a.de",
                                "--score").stdout.decode().split()
            self.assertAlmostEqual(found["log_probability"], float(said[0]), delta=1e-5)
            self.assertEqual(len(found["probabilities"]), int(said[1]))

    def test_the_terminal(self):
        for model, name in ((self.transformer, "decoder 1 (cross-attention), mean of 2 heads"),
                            (self.gru, "decoder (additive attention), its only head")):
            said = self.succeed("explain", model, TEXT, env=UTF8).stdout.decode()
            for part in ("translation: ", "log-probability: -", "tokens: 5 of the source", name, "probability",
                         "the log-probability of the translation", "5 </s>", SENTENCE):
                self.assertIn(part, " ".join(said.split()))
            for line in said.splitlines():
                self.assertLessEqual(width(line), 80, line)
        long = self.succeed("explain", self.transformer, " ".join(["two"] * 31), "--target", "zwei", env=UTF8).stdout.decode()
        for line in long.splitlines():
            self.assertLessEqual(width(line), 80, line)
        self.assertRegex(long, r"Shown: tokens 1 to \d+ of 32 of the source\.")
        inner = self.succeed("explain", self.transformer, TEXT, "--layer", 2, "--tokens", "0-1", env=UTF8).stdout.decode()
        self.assertIn("Shown: tokens 0 to 1 of 5 of the translation.", inner)

    def test_saliency_of_a_token_and_unknown_words(self):
        whole = self.object_of(self.gru, TEXT, "--target", "zwei rot")["saliency"]
        parts = [self.object_of(self.gru, TEXT, "--target", "zwei rot", "--token", n)["saliency"] for n in (1, 2, 3)]
        self.assertEqual(parts[1]["of"], 'the log-probability of token 2 of the translation, "rot"')
        for n, value in enumerate(whole["values"]):
            self.assertAlmostEqual(value, sum(part["values"][n] for part in parts), delta=1e-4)
        found = self.object_of(self.transformer, "two zebra", "--target", "zwei katze", "--saliency", "none")
        self.assertEqual((found["tokens"][1], found["target_tokens"][1]), ("zebra", "katze"))
        self.assertIn("1 of 2 tokens are words", found["notes"][0])
        self.assertIn("1 of 2 tokens of the translation", found["notes"][1])
        self.assertNotIn("saliency", found)

    def test_the_same_bits_for_any_number_of_threads(self):
        for model in (self.transformer, self.gru):
            once, more = (self.succeed("explain", model, TEXT, "--json", "-t", n).stdout for n in (1, 3))
            self.assertEqual(once, more)

    def test_a_page(self):
        page = self.folder / "page.html"
        self.succeed("explain", self.transformer, "two </script>", "--page", page)
        text = page.read_text(encoding="utf-8")
        for part in ("decoder 2 (cross-attention)", "<dt>log-probability</dt>", "no explanation by themselves"):
            self.assertIn(part, text)
        self.succeed("explain", self.gru, TEXT, "--target", "zwei", "--page", page, "--overwrite", "--lang", "zh")
        text = page.read_text(encoding="utf-8")
        for part in ("解码器 (加性注意力)", "给定的译文", "译文的对数概率"):
            self.assertIn(part, text)

    def test_bad_input(self):
        model = self.transformer
        for status, args, needle in (
                (3, ("",), "no token"), (3, (" ",), "no token"), (3, (b"two \xff",), "invalid UTF-8"),
                (3, ("two\none",), "expected one line to translate, got 2"),
                (2, ("two " * 32,), "has 32 tokens; the model reads at most 31"), (2, (), "no text was given"),
                (2, ("two", "--target", " "), '--target: " " holds no token'),
                (2, ("two", "--target", "zwei " * 32), "--target: it has 32 tokens"),
                (3, ("two", "--target", b"\xff"), "--target"),
                (2, ("two", "--token", 9), "--token: 9"), (2, ("two", "--layer", 6), "--layer: 6"),
                (2, ("two", "--head", 3), "--head: 3"), (2, ("two", "--tokens", "2-3"), "--tokens 2-3: expected A-B within 1-2"),
                (2, ("two", "--saliency", "rollout"), "--saliency rollout"),
                (2, ("two", "--saliency", "none", "--token", 1), "--token has no effect"),
                (2, ("two", "--column", "2"), "--column has no effect"), (2, ("two", "--adapter", "x"), "--adapter has no effect"),
                (2, ("two", "--truncate"), "--truncate has no effect"), (2, ("two", "--sample", 1), "--sample has no effect")):
            with self.subTest(args=args):
                command = [FOVEA, "explain", str(model), *(a if isinstance(a, bytes) else str(a) for a in args)]
                done = subprocess.run(command, capture_output=True, env=self.environment(), timeout=60)
                self.assert_error(done, status, needle)
                self.assertEqual(done.stdout, b"")


if __name__ == "__main__":
    unittest.main()

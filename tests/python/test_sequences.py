# SPDX-License-Identifier: Apache-2.0
"""Taggers, segmenters and translators: what the command does, from Python, to the bit."""

import json
import pathlib
import pickle
import tempfile
import unittest

import support

import fovea

PAIRS = [(" ".join(words), " ".join({"one": "eins", "two": "zwei", "red": "rot"}[word] for word in words))
         for words in (["one"], ["two", "red"], ["red", "one"], ["one", "two", "one"]) * 20]
SENTENCES = [[("Ada", "B-person"), ("saw", "O"), ("New", "B-place"), ("York", "I-place"), (".", "O")],
             [("Rome", "B-place"), ("saw", "O"), ("Bob", "B-person"), (".", "O")]] * 20
TAGGER = {"word_width": 8, "character_features": 4, "character_width": 4, "width": 8, "encoder": "bilstm:4",
          "stop_after": "40u", "lr": 1e-2}
TRANSLATOR = {"encoder_layers": 1, "decoder_layers": 1, "width": 16, "heads": 2, "min_count": 1, "stop_after": "60u",
              "warmup": 5, "dropout": 0, "block": 16, "batch_tokens": 200}


class SequencesTest(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temporary.name)
        self.addCleanup(self.temporary.cleanup)

    def write(self, name, text):
        (self.folder / name).write_text(text)
        return self.folder / name

    def objects(self, *words, text):
        done = support.fovea(*words, "--json", input=text)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def same_training(self, command, file, options):
        """The command's weights are those of the folder `model`."""
        flags = [word for name, value in options.items() for word in ("--" + name.replace("_", "-"), str(value))]
        done = support.fovea("train", command, "--train", file, "-o", self.folder / "command", *flags)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((self.folder / "command/model.safetensors").read_bytes(),
                         (self.folder / "model/model.safetensors").read_bytes())

    def test_tagger(self):
        file = self.write("train.conll", "".join("".join(f"{word}\t{tag}\n" for word, tag in sentence) + "\n"
                                                 for sentence in SENTENCES))
        tagger = fovea.Tagger.train(file, self.folder / "model", **TAGGER)
        self.same_training("tag", file, TAGGER)
        text = "Ada saw New York."
        (told,) = self.objects("tag", self.folder / "model", "--text", "--probabilities", text=text + "\n")
        loaded = fovea.Tagger.load(self.folder / "model")
        words = ["Ada", "saw", "New", "York", "."]
        for found in (tagger.tag([text, words], probabilities=True), loaded.tag([words, text], probabilities=True)):
            self.assertEqual(found, [told, told])
        self.assertEqual(tagger.tag([text])[0]["words"], words)
        self.assertEqual(tagger.tag(["Ada saw."], words="spaces")[0]["words"], ["Ada", "saw."])
        for wrong, message in (("a text", "sentences: expected a list; got str"),
                               ([3], r"sentences\[0\]: expected a text; got int"),
                               ([["a", None]], r"sentences\[0\]\[1\]: expected a text; got NoneType")):
            with self.assertRaisesRegex(fovea.UsageError, message):
                tagger.tag(wrong)
        with self.assertRaises(TypeError):
            pickle.dumps(tagger)

    def test_segmenter(self):
        file = self.write("train.txt", "red tree\ntree red red\nred red tree\n" * 20)
        options = {**TAGGER, "task": "segment", "format": "words"}
        for name in ("character_features", "character_width"):
            del options[name]
        segmenter = fovea.Tagger.train(file, self.folder / "model", **options)
        told = self.objects("tag", self.folder / "model", text="redtree\ntreered\n")
        self.assertEqual(segmenter.tag(["redtree", "treered"]), told)
        with self.assertRaisesRegex(fovea.UsageError, r"sentences\[0\]: expected a text; got list"):
            segmenter.tag([["red", "tree"]])

    def test_translator(self):
        file = self.write("train.tsv", "".join(f"{source}\t{target}\n" for source, target in PAIRS))
        lines = []
        translator = fovea.Translator.train(file, self.folder / "model", on_update=lines.append, **TRANSLATOR)
        self.assertTrue(lines)
        self.same_training("translate", file, TRANSLATOR)
        asked = ["red two", "", "one one"]
        told = self.objects("translate", self.folder / "model", "--nbest", "2", "--alignments",
                            text="\n".join(asked) + "\n")
        self.assertEqual(translator.translations(asked, nbest=2, alignments=True), told)
        loaded = fovea.Translator.load(self.folder / "model")
        self.assertEqual(loaded.translate(asked, nbest=2), [one["translation"] for one in told])
        sampled = self.objects("translate", self.folder / "model", "--sample", "--seed", "7",
                               text="\n".join(asked) + "\n")
        self.assertEqual(loaded.translations(asked, sample=True, seed=7), sampled)
        with self.assertRaisesRegex(fovea.UsageError, "translate: unknown keyword 'beams'\nhint: did you mean beam"):
            loaded.translate(asked, beams=3)
        with self.assertRaisesRegex(fovea.Error, "lines:1: "):
            loaded.translate(["one " * 100])

    def test_other_models_are_refused(self):
        for kind in (fovea.Tagger, fovea.Translator):
            with self.assertRaises(fovea.ModelError):
                kind.load(self.folder)


if __name__ == "__main__":
    unittest.main()

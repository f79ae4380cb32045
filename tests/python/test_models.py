# SPDX-License-Identifier: Apache-2.0
"""Models of every kind by their content, encoders and conversations: the results are those of the command."""

import concurrent.futures
import json
import pathlib
import sys
import tempfile
import unittest

import numpy as np
import support

import fovea

sys.path.append(str(support.ROOT / "tests/cli"))
import bert_support  # noqa: E402
from gguf_support import U32, gguf  # noqa: E402

TEXTS = ["the cat sees the moon .", "", "Running kings , OLD dogs !", "the"]


class ModelsTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def encoder(self):
        return bert_support.write_model(self.folder / "encoder")

    def llama(self, **changed):
        path = self.folder / "m.gguf"
        path.write_bytes(gguf(**changed))
        return path

    def fovea(self, *args, stdin=""):
        done = support.fovea(*args, input=stdin)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]


class Load(ModelsTest):
    def test_the_class_follows_from_the_content(self):
        (self.folder / "text.txt").write_text("the quick brown fox\n" * 100)
        (self.folder / "labelled.tsv").write_text("good\ta fine film\nbad\ta dull film\n" * 20)
        (self.folder / "tagged.txt").write_text("Ada\tname\nsaw\tverb\n\nBob\tname\nran\tverb\n\n" * 20)
        (self.folder / "pairs.tsv").write_text("one\teins\ntwo one\tzwei eins\n" * 20)
        few = {"stop_after": "2u", "threads": 2}
        small = {**few, "layers": 1, "width": 16, "heads": 2}
        made = {
            fovea.LanguageModel: fovea.LanguageModel.train(
                self.folder / "text.txt", self.folder / "lm", block=16, **small),
            fovea.Classifier: fovea.Classifier.train(self.folder / "labelled.tsv", self.folder / "classifier", **few),
            fovea.Tagger: fovea.Tagger.train(self.folder / "tagged.txt", self.folder / "tagger", width=8, **few),
            fovea.Translator: fovea.Translator.train(
                self.folder / "pairs.tsv", self.folder / "translator", encoder_layers=1, decoder_layers=1, width=16,
                heads=2, min_count=1, **few)}
        for kind, name in zip(made, ("lm", "classifier", "tagger", "translator"), strict=True):
            self.assertIs(type(fovea.load(self.folder / name)), kind)
        self.assertIs(type(fovea.load(self.encoder())), fovea.Encoder)
        for head, kind in (("Sequence", fovea.Classifier), ("Token", fovea.Tagger)):
            folder, _ = bert_support.write_head(self.folder / head, head, ["O", "B-PER"])
            self.assertIs(type(fovea.load(folder)), kind)
        self.assertIs(type(fovea.load(str(self.llama()), precision="bf16")), fovea.LanguageModel)
        with self.assertRaisesRegex(fovea.ModelError, "nowhere"):
            fovea.load(self.folder / "nowhere")

    def test_adapters_are_folders_with_factors(self):
        folder = self.encoder()
        for adapters, message in ((["peft"], "expected folders with their factors; got list"), ("peft", "got str"),
                                  (None, "got NoneType"), ({"peft": "half"}, "a number as a factor; got 'half'"),
                                  ({"peft": None}, "got None"), ({"peft": float("nan")}, "the factor must be"),
                                  ({1: 1}, "expected a path; got int")):
            for load in (fovea.load, fovea.Encoder.load):
                with self.assertRaisesRegex(fovea.UsageError, message):
                    load(folder, adapters=adapters)


class Encoder(ModelsTest):
    def test_vectors_are_those_of_the_command(self):
        folder = self.encoder()
        encoder = fovea.Encoder.load(folder)
        for options in ({}, {"pooling": "cls"}, {"normalize": False}, {"prompt": "the old "}, {"truncate_dim": 3}):
            flags = [f"--{name.replace('_', '-')}={value}" for name, value in options.items() if name != "normalize"]
            flags += ["--no-normalize"] if "normalize" in options else []
            shown = self.fovea("embed", folder, *flags, stdin="".join(text + "\n" for text in TEXTS))
            vectors = encoder.embed(TEXTS, threads=2, **options)
            self.assertEqual(vectors.dtype, np.float32)
            np.testing.assert_array_equal(vectors, np.array([line["vector"] for line in shown], np.float32))
        self.assertEqual((encoder.width, encoder.embed([]).shape), (8, (0, 8)))
        self.assertEqual(encoder.embed(iter(TEXTS)).shape, (4, 8))

    def test_cosines(self):
        encoder = fovea.Encoder.load(self.encoder())
        vectors = encoder.embed(TEXTS).astype(float)
        unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        np.testing.assert_allclose(encoder.similar(TEXTS[0], TEXTS), unit @ unit[0], atol=1e-6)
        np.testing.assert_allclose(encoder.similar(TEXTS, TEXTS[::-1]), (unit * unit[::-1]).sum(axis=1), atol=1e-6)

    def test_many_threads_at_once(self):
        encoder = fovea.Encoder.load(self.encoder())
        expected = encoder.embed(TEXTS)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for found in pool.map(lambda n: encoder.embed(TEXTS * n)[-4:], range(1, 9)):
                np.testing.assert_array_equal(found, expected)

    def test_what_is_wrong_is_named(self):
        encoder = fovea.Encoder.load(self.encoder())
        for call, message in ((lambda: encoder.embed("a text"), "expected a list of texts; got str"),
                              (lambda: encoder.embed(["a", 3]), r"texts\[1\]"),
                              (lambda: encoder.embed(["a"], truncate_dim=9), "at most 8"),
                              (lambda: encoder.embed(["a"], polling="cls"), "pooling"),
                              (lambda: encoder.similar(["a"], ["b", "c"]), "expected 1 texts"),
                              (lambda: fovea.Encoder(3), "Encoder.load")):
            with self.assertRaisesRegex(fovea.UsageError, message):
                call()
        with self.assertRaises(fovea.ModelError):
            fovea.Encoder.load(self.llama())
        with self.assertRaises(fovea.ModelError):
            fovea.LanguageModel.load(self.encoder())


class Conversations(ModelsTest):
    def test_answers_are_those_of_the_command(self):
        path = self.llama(llama_context_length=(U32, 400))
        model = fovea.LanguageModel.load(path)
        messages = ["hello", "again, café", "hello"]
        shown = self.fovea("generate", path, "--chat", "--json", "--max-tokens", "6", "--system", "Be brief.",
                           stdin="".join(message + "\n" for message in messages))
        chat = model.chat("Be brief.", max_tokens=6)
        self.assertIsInstance(chat, fovea.Chat)
        self.assertEqual([chat.answer(message) for message in messages], [line["text"] for line in shown])
        again = model.chat("Be brief.", max_tokens=6)
        self.assertEqual("".join(again.stream("hello")), shown[0]["text"])

    def test_a_conversation_keeps_its_model(self):
        chat = fovea.LanguageModel.load(self.llama(llama_context_length=(U32, 400))).chat(max_tokens=3, greedy=True)
        self.assertEqual(chat.answer("hello"), fovea.LanguageModel.load(self.folder / "m.gguf").chat(
            max_tokens=3, greedy=True).answer("hello"))

    def test_what_is_wrong_is_named(self):
        model = fovea.LanguageModel.load(self.llama())
        for call, message in ((lambda: model.chat(max_token=3), "max_tokens"), (lambda: model.chat(3), "system"),
                              (lambda: model.chat().answer(3), "message"), (lambda: fovea.Chat(3), "chat")):
            with self.assertRaisesRegex(fovea.UsageError, message):
                call()
        with self.assertRaisesRegex(fovea.DataError, "there is room for"):
            model.chat().answer("x" * 500)
        with self.assertRaisesRegex(fovea.ModelError, "no chat template"):
            fovea.LanguageModel.load(self.llama(tokenizer_chat_template=None)).chat()

    def test_a_shorter_context_and_windows_that_overlap(self):
        path, text = self.llama(), self.folder / "text.txt"
        text.write_text("the cat sees the moon\n" * 8)
        short = fovea.LanguageModel.load(path, max_context=8)
        shown = self.fovea("eval", path, "--test", text, "--json", "--max-context", "8", "--stride", "3")[0]
        self.assertEqual(short.evaluate(text, stride=3), shown)
        self.assertNotEqual(short.evaluate(text)["loss"], shown["loss"])
        with self.assertRaisesRegex(fovea.UsageError, "max_context: 1048576"):
            fovea.LanguageModel.load(path, max_context=1 << 20)


if __name__ == "__main__":
    unittest.main()

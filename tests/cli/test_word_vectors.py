#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fovea train classify --embeddings: what is found, what is kept, what is refused, and resuming without the file."""

import gzip
import json
import signal
import time
import unittest

from test_classify_train import ClassifyTest

VECTORS = "5 4\nfine 1 2 3 4\nFilm 5 6 7 8\nother 9 9 9 9\ndull -1 -2 -3 -4\nhated .5 .5 .5 .5\n"
LENGTHS = ("--stop-after", "60u", "--eval-every", "20u", "--save-every", "20u", "--progress", "none")


class WordVectors(ClassifyTest):
    def vectors(self, name="words.vec", text=VECTORS):
        return self.write(name, text)

    def train_with(self, *args, output="model"):
        return self.run_fovea("train", "classify", "--train", self.tsv(), "-o", self.folder / output, *LENGTHS, *args)

    def weights(self, output):
        return (self.folder / output / "checkpoints/step-000060/model.safetensors").read_bytes()

    def test_counts_are_said_and_kept(self):
        done = self.train_with("--embeddings", self.vectors(), "--freeze-embeddings")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b": 4 of ", done.stderr)
        self.assertIn(b"3 as spelled and 1 in other case", done.stderr)
        config = self.config()
        self.assertEqual((config["model"]["width"], config["model"]["freeze_embeddings"]), (4, True))
        self.assertEqual((config["embeddings"]["exact"], config["embeddings"]["lower"]), (3, 1))
        said = self.succeed("inspect", self.folder / "model").stdout.decode()
        self.assertIn("3 as spelled and 1 in other case; the table is frozen", said)
        shown = json.loads(self.succeed("inspect", self.folder / "model", "--json").stdout)
        self.assertEqual(shown["embeddings"], config["embeddings"])
        names = (self.folder / "model/checkpoints/step-000060/optimizer.safetensors").read_bytes()
        self.assertNotIn(b"embedding.tokens.m", names)

    def test_packed_files_and_pipes_are_the_same(self):
        self.train_with("--embeddings", self.vectors(), output="plain")
        packed = self.write("words.vec.gz", gzip.compress(VECTORS.encode()))
        self.train_with("--embeddings", packed, output="packed")
        glove = self.vectors("glove.txt", VECTORS.split("\n", 1)[1])
        self.train_with("--embeddings", glove, output="glove")
        self.assertEqual(self.weights("packed"), self.weights("plain"))
        self.assertEqual(self.weights("glove"), self.weights("plain"))

    def test_a_resumed_run_does_not_need_the_file(self):
        for frozen in ("--freeze-embeddings", "--no-freeze-embeddings"):
            with self.subTest(frozen):
                file = self.vectors()
                long = ("--embeddings", file, frozen, "--stop-after", "3000u", "--eval-every", "200u", "--save-every",
                        "200u", "--patience", "0", "--progress", "none")
                texts = self.tsv()
                self.succeed("train", "classify", "--train", texts, "-o", self.folder / "whole", "--overwrite", *long)
                killed = self.folder / f"killed{frozen}"
                process = self.start("train", "classify", "--train", texts, "-o", killed, *long)
                deadline = time.monotonic() + 60
                while not list((killed / "checkpoints").glob("step-??????")) and time.monotonic() < deadline:
                    time.sleep(.01)
                process.send_signal(signal.SIGKILL)
                process.communicate()
                file.unlink()
                self.succeed("train", "classify", "--resume", "-o", killed, "--progress", "none")
                self.assertEqual((killed / "model.safetensors").read_bytes(),
                                 (self.folder / "whole/model.safetensors").read_bytes())
                self.assertIn("3 as spelled", self.succeed("inspect", killed).stdout.decode())

    def test_settings_go_to_a_file_and_back(self):
        dumped = self.succeed("train", "classify", "--train", self.tsv(), "--embeddings", self.vectors(),
                              "--dump-config").stdout
        again = self.succeed("train", "classify", "-c", self.write("r.toml", dumped), "--dump-config").stdout
        self.assertEqual(dumped, again)

    def test_what_is_refused(self):
        cases = ((VECTORS, ("--width", "8"), 2, ("its vectors have 4 numbers", "are to have 8")),
                 (VECTORS, ("--tokenizer", "byte"), 2, ("bytes have no vectors",)),
                 (VECTORS + "x 1\n", (), 3, ("words.vec:7", "expected a word and 4 numbers")),
                 (VECTORS + "x 1 2 3 4\n", (), 3, ("words.vec:1", "the first line says 5 vectors; the file has 6")),
                 (VECTORS.replace("-3", "nan"), (), 3, ("words.vec:5", "expected a finite number, got 'nan'")),
                 ("", (), 3, ("no vectors in the file",)),
                 (b"2 2\nfine \x00\x00\x80?\x00\xff\x80?\n", (), 3, ("expected vectors as text, got word2vec's binary format",)),
                 (b"gut 1\nsch\xf6n 2\n", (), 3, ("words.vec:2", "UTF-8")))
        for text, args, status, needles in cases:
            with self.subTest(needles):
                done = self.train_with("--embeddings", self.vectors(text=text), *args, output="none")
                self.assert_error(done, status, *needles)
                self.assertFalse((self.folder / "none").exists())
        self.assert_error(self.train_with("--freeze-embeddings"), 2, "has no effect without --embeddings")
        self.assert_error(self.train_with("--embeddings", self.folder / "missing"), 3, "missing")


del ClassifyTest  # its tests run where they stand

if __name__ == "__main__":
    unittest.main()

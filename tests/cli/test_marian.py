# SPDX-License-Identifier: Apache-2.0
"""Translators of transformers (MarianMTModel): small random models, whose answers are those of the definition in plain Python."""

import json
import unittest

from bert_support import write_json
from marian_support import (END, GENERATION, LONGEST, PADDING, UNKNOWN, VOCABULARY, greedy, log_softmax, logits, text_of, tokens,
                            weights, write_marian)
from support import CommandTest
from translate_support import SMALL, TranslateTest

LINES = ["a b c", "", "j", ">>de<< a i c d", "b b b b b z", "c a", ">>fr<< f g h", "e d c b a"]
ALL = ("--max-ratio", 1000)  # as long as generation_config.json says


def marian(seed):
    """Weights whose greedy translations end."""
    tensors = weights(seed)
    tensors["final_logits_bias"].values[END] += 2
    return tensors


class Marian(CommandTest):
    def setUp(self):
        super().setUp()
        self.model = self.folder / "opus-mt"
        self.tensors = marian(1)
        write_marian(self.model, self.tensors)

    def translated(self, *args, lines=LINES):
        done = self.succeed("translate", self.model, *args, stdin="".join(line + "\n" for line in lines).encode())
        return done.stdout.decode().splitlines()

    def test_greedy_translations_are_those_of_the_definition(self):
        for seed in range(1, 6):
            self.tensors = marian(seed)
            write_marian(self.model, self.tensors)
            expected = [text_of(greedy([*tokens(line), END], self.tensors)) if line else "" for line in LINES]
            with self.subTest(seed):
                self.assertEqual(self.translated("--beam", 1, *ALL), expected)

    def test_scores_are_those_of_the_definition(self):
        pairs = [("a b c", "d e"), ("j", "a"), (">>de<< a i", "z c c"), ("e d c b a", "a b c d e f g h i j")]
        for side, name in enumerate(("source", "reference")):
            (self.folder / name).write_text("".join(pair[side] + "\n" for pair in pairs), encoding="utf-8")
        texts = ["--source", self.folder / "source", "--reference", self.folder / "reference"]
        lines = self.succeed("eval", self.model, *texts, "--score", "--json").stdout.decode().splitlines()
        for (source, target), line in zip(pairs, lines, strict=True):
            ids = [*tokens(target), END]
            rows = [log_softmax(row) for row in logits([*tokens(source), END], [PADDING, *ids[:-1]], self.tensors)]
            said = json.loads(line)
            self.assertEqual(said["tokens"], len(ids))
            self.assertAlmostEqual(said["log_probability"], sum(row[n] for row, n in zip(rows, ids)), places=4)
        whole = json.loads(self.succeed("eval", self.model, *texts, "--json").stdout)
        self.assertEqual(whole["pairs"], 4)
        self.assertEqual(whole["unknown"], 1)
        self.assertEqual([metric["name"] for metric in whole["metrics"]], ["BLEU", "chrF2", "TER"])
        self.succeed("eval", self.model, *texts, "--against", self.model, "--resamples", 10)

    # Without padding nothing has its probability; the forced end costs nothing.
    def test_what_a_search_says_of_itself(self):
        for line, source in zip(self.translated("--json", *ALL), LINES):
            said = json.loads(line)
            if not source:
                continue
            ids = [*tokens(said["translation"]), END]
            rows = logits([*tokens(source), END], [PADDING, *ids[:-1]], self.tensors)
            for row in rows:
                row[PADDING] = -1e9
            sums = [log_softmax(row)[n] for row, n in zip(rows, ids)]
            if said["tokens"] == LONGEST - 1:
                sums.pop()
            if UNKNOWN not in ids and said["tokens"] == len(ids):  # else the text does not say the tokens
                self.assertAlmostEqual(said["log_probability"], sum(sums), places=4)
                self.assertAlmostEqual(said["score"], sum(sums) / said["tokens"], places=4)

    def test_searches(self):
        beam = self.translated(*ALL)  # of generation_config.json
        self.assertEqual(self.translated("--beam", 4, "--length-penalty", 1, "--length-norm", "marian", *ALL), beam)
        write_marian(self.model, self.tensors, generation={"num_beams": 1})
        self.assertEqual(self.translated(*ALL), self.translated("--beam", 1, *ALL))
        best = self.translated("--beam", 3, "--nbest", 3, lines=LINES[:1])
        self.assertEqual(len(best), 3)
        write_marian(self.model, self.tensors, generation={"num_beams": 8})
        self.assertEqual(len(self.translated("--nbest", 8, lines=LINES[:1])), 8)
        self.assert_error(self.run_fovea("translate", self.model, "--nbest", 9, stdin=b"a\n"), 2, "--beam (8)")
        self.assertEqual(self.translated("--sample", "--seed", 3), self.translated("--sample", "--seed", 3, "--threads", 1))
        self.assertRegex(self.translated("--alignments", lines=["a b c"])[0], r"\|\|\|")
        self.assertEqual(self.translated("--threads", 1, *ALL), self.translated("--threads", 3, *ALL))

    def test_inspect_and_explain(self):
        self.assertIn("a model of Hugging Face, model_type marian", self.succeed("inspect", self.model).stdout.decode())
        self.succeed("inspect", self.model, "--verify")
        shown = json.loads(self.succeed("explain", self.model, "a b", "--json").stdout)
        self.assertEqual(shown["tokens"], [" a", " b", "</s>"])

    def test_long_lines(self):
        line = ">>de<< " + " ".join("abcdefghij" * 3)
        self.assert_error(self.run_fovea("translate", self.model, stdin=line.encode()), 3, "31 tokens")
        self.assertEqual(len(self.translated("--long-lines", "split", lines=[line])), 1)
        # The names of marks are marks wherever they stand; only one at the front is that of the line.
        lines = ["</s>" * count + " a b c d" for count in (15, 16, 40)]
        self.assertEqual(len(self.translated("--long-lines", "split", lines=lines)), 3)
        write_marian(self.model, self.tensors, config={"max_position_embeddings": 2}, generation={"max_length": 2})
        self.assertEqual(len(self.translated("--long-lines", "split", lines=[">>de<< a b"])), 1)

    # They stand for no text either, but are words of their line.
    def test_long_lines_of_unknown_words(self):
        names = [name for name in VOCABULARY if name != "\u2581a"]
        write_json(self.model / "vocab.json", {name: VOCABULARY.index(name) for name in names})

        def tokens_of(*counts):
            lines = [" ".join("a" * count) for count in counts]
            return [json.loads(line)["tokens"] for line in self.translated("--long-lines", "split", "--json", lines=lines)]

        *pieces, whole = tokens_of(13, 13, 14, 40)
        self.assertEqual(whole, sum(pieces))

    def test_its_tokenizers_are_two(self):
        for command in ("encode", "decode"):
            done = self.run_fovea("tokenizer", command, self.model, stdin=b"a\n")
            self.assert_error(done, 4, "a translator, and each of its sides has pieces of its own")
            self.assertIn(f"{self.model}/source.spm", done.stderr.decode())
        self.assertEqual(self.succeed("tokenizer", "encode", self.model / "source.spm", stdin=b"a b\n").stdout.decode(), "\u2581a \u2581b\n")

    def test_errors(self):
        def refused(status, *needles, command=("translate",), **change):
            write_marian(self.model, self.tensors, **change)
            self.assert_error(self.run_fovea(*command, self.model, stdin=b"a\n"), status, *needles)

        refused(4, "normalize_before", config={"normalize_before": True})
        refused(4, "rotary", config={"rotary": 3})
        refused(4, "no_repeat_ngram_size", generation={"no_repeat_ngram_size": 2})
        refused(4, "model.shared.weight", config={"vocab_size": 15})
        refused(4, "mbart", "marian", config={"model_type": "mbart"})
        # That of transformers, which this model does not have.
        for key in ("pad_token_id", "decoder_start_token_id"):
            refused(4, key, "missing", config={key: None}, generation={key: None})
        refused(4, "marian", command=("generate",))
        refused(4, "marian", command=("embed",))
        write_marian(self.model, self.tensors)
        base = ["train", "translate", "--base", self.model, "--train", self.text, "-o", self.folder / "out"]
        self.assert_error(self.run_fovea(*base), 4, "a translator of transformers")
        self.assertFalse((self.folder / "out").exists())
        write_json(self.model / "vocab.json", {name.strip("\u2581"): n for n, name in enumerate(VOCABULARY)})
        self.assert_error(self.run_fovea("translate", self.model, stdin=b"a\n"), 4, "source.spm", "none of its pieces")
        (self.model / "config.json").write_text('{"model_type": NaN}')
        self.assert_error(self.run_fovea("translate", self.model, stdin=b"a\n"), 4, "config.json: no valid JSON")
        write_marian(self.model, self.tensors)
        (self.model / "model.safetensors").rename(self.model / "pytorch_model.bin")
        self.assert_error(self.run_fovea("translate", self.model, stdin=b"a\n"), 4, "pytorch_model.bin")


class Export(TranslateTest):
    """A translator of ours in the form of transformers, read again."""

    def fit_pieces(self, *args):
        sides = self.parallel()
        for n, size in enumerate((20, 22, 30)):
            data = sides if n == 2 else [sides[n]]
            self.succeed("tokenizer", "train", *(word for file in data for word in ("--train", file)), "--vocab-size", size, "--overwrite", "-o",
                         self.folder / f"{n}.model")
        shared = "--shared-vocabulary" in args
        models = ["--tokenizer-model", self.folder / ("2.model" if shared else "0.model")]
        models += [] if shared else ["--target-tokenizer-model", self.folder / "1.model"]
        of_words = SMALL.index("--min-count")
        self.fit("--tokenizer", "sentencepiece", "--norm-position", "post", *models, *args, "--overwrite",
                 small=[*SMALL[:of_words], *SMALL[of_words + 2:], "--decoder-layers", "2"])

    def scores(self, model):
        done = self.succeed("eval", self.folder / model, "--source", self.folder / "text.en", "--reference", self.folder / "text.de",
                            "--score", "--json")
        return [json.loads(line)["log_probability"] for line in done.stdout.decode().splitlines()]

    def translated(self, model):
        return self.succeed("translate", self.folder / model, self.folder / "text.en", "--beam", 1).stdout

    # Columns in each order of sines and cosines, tables of one side, of both and of the logits, no biases.
    def test_what_is_written_computes_the_same(self):
        for args in ([], ["--no-tie", "--sinusoid", "cos-sin", "--activation", "gelu"],
                     ["--shared-vocabulary", "--share-embeddings", "--sinusoid", "sin-cos", "--activation", "silu"],
                     ["--shared-vocabulary", "--share-embeddings", "--no-tie", "--embedding-scale", "1"],
                     ["--shared-vocabulary", "--no-bias", "--activation", "gelu-tanh"]):
            with self.subTest(args):
                self.fit_pieces(*args, "--stop-after", "60u")
                done = self.succeed("export", self.folder / "model", "-o", self.folder / "out", "--overwrite", "--json")
                said = json.loads(done.stdout)
                self.assertEqual(said["architecture"], "MarianMTModel")
                self.assertEqual("target_vocab.json" in said["files"], "--shared-vocabulary" not in args)
                self.assertEqual(self.translated("out"), self.translated("model"))
                for ours, theirs in zip(self.scores("model"), self.scores("out"), strict=True):
                    self.assertAlmostEqual(ours, theirs, places=4)
        self.succeed("export", self.folder / "model", "-o", self.folder / "half", "--dtype", "bf16")
        self.succeed("inspect", self.folder / "half", "--verify")

    def test_what_transformers_does_not_have_is_named(self):
        def refused(*needles):
            out = self.folder / "out"
            self.assert_error(self.run_fovea("export", self.folder / "model", "-o", out), 4, *needles)
            self.assertFalse(out.exists())

        quick = ("--stop-after", "2u", "--overwrite")
        self.fit(*quick)
        refused("MarianMTModel", "--norm-position post")
        self.fit("--norm-position", "post", *quick)
        refused("--tokenizer word")
        self.fit("--position", "rotary", "--norm", "rms", "--activation", "swiglu", "--qk-norm", *quick)
        refused("--position sinusoidal", "--norm layer", "--activation relu, gelu, gelu-tanh or silu", "no --qk-norm")
        write_marian(self.folder / "opus-mt")
        self.assert_error(self.run_fovea("export", self.folder / "opus-mt", "-o", self.folder / "out"), 4,
                          "models that fovea has trained")


if __name__ == "__main__":
    unittest.main()

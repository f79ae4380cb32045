# SPDX-License-Identifier: Apache-2.0
"""Models that write a text from a text (T5, T5 1.1, mT5): small random ones, whose answers are those of the definition in plain
Python."""

import json
import unittest

from bert_support import write_json
from marian_support import log_softmax
from support import CommandTest
from t5_support import END, GATED, LONGEST, PADDING, VOCABULARY, ending, greedy, logits, spiece_model, text_of, tokens, write_t5

LINES = ["a b c", "", "j", "a <extra_id_0> i c d", "b b b b b z", "c a b d e f g h i j a a b c d e f g", "e d c b a"]
ALL = ("--max-ratio", 1000)  # as long as generation_config.json says


class T5(CommandTest):
    def setUp(self):
        super().setUp()
        self.model = self.folder / "t5-small"
        self.tensors = ending(1)
        write_t5(self.model, self.tensors)

    def written(self, *args, lines=LINES):
        done = self.succeed("translate", self.model, *args, stdin="".join(line + "\n" for line in lines).encode())
        return done.stdout.decode().splitlines()

    def take(self, seed, gated):
        self.tensors = ending(seed, gated)
        write_t5(self.model, self.tensors, config=GATED if gated else None)

    # Both forms; ends of the model and of max_length, pads and sentinels among the tokens.
    def test_greedy_texts_are_those_of_the_definition(self):
        ended = 0
        for seed in range(1, 6):
            for gated in (False, True):
                self.take(seed, gated)
                ids = [greedy(tokens(line), self.tensors) if line else [] for line in LINES]
                ended += sum(0 < len(one) < LONGEST - 1 for one in ids)
                said = [json.loads(line) for line in self.written("--beam", 1, "--json", *ALL)]
                with self.subTest(seed=seed, gated=gated):
                    self.assertEqual([one["translation"] for one in said], [text_of(one) for one in ids])
                    self.assertEqual([one["tokens"] for one in said if one["source"]], [len(one) for one in ids if one])
        self.assertGreater(ended, 5)

    def test_scores_are_those_of_the_definition(self):
        pairs = [("a b c", "d e"), ("j", "a"), ("a <extra_id_0> i", "<extra_id_0> z c c"),
                 ("e d c b a i j h g f e d c b a", "a b c d e f g h i j j i h g f e d c b a")]
        for side, name in enumerate(("source", "reference")):
            (self.folder / name).write_text("".join(pair[side] + "\n" for pair in pairs), encoding="utf-8")
        texts = ["--source", self.folder / "source", "--reference", self.folder / "reference"]
        for gated in (False, True):
            self.take(7, gated)
            lines = self.succeed("eval", self.model, *texts, "--score", "--json").stdout.decode().splitlines()
            for (source, target), line in zip(pairs, lines, strict=True):
                ids = tokens(target)
                rows = [log_softmax(row) for row in logits(tokens(source), [PADDING, *ids[:-1]], self.tensors)]
                said = json.loads(line)
                self.assertEqual(said["tokens"], len(ids))
                expected = sum(row[n] for row, n in zip(rows, ids))
                self.assertAlmostEqual(said["log_probability"], expected, delta=2e-5 * abs(expected))
        whole = json.loads(self.succeed("eval", self.model, *texts, "--json").stdout)
        self.assertEqual(whole["pairs"], 4)
        self.assertEqual([metric["name"] for metric in whole["metrics"]], ["BLEU", "chrF2", "TER"])

    def test_searches(self):
        write_t5(self.model, self.tensors, generation={"num_beams": 4, "length_penalty": 0.6})
        beam = self.written(*ALL)  # of generation_config.json
        self.assertEqual(self.written("--beam", 4, "--length-penalty", 0.6, "--length-norm", "marian", *ALL), beam)
        self.assertEqual(len(self.written("--beam", 3, "--nbest", 3, lines=LINES[:1])), 3)
        self.assertEqual(self.written("--sample", "--seed", 3), self.written("--sample", "--seed", 3, "--threads", 1))
        # Of one token alone it is the greedy text, which ends where that ends.
        sampled = [json.loads(line) for line in self.written("--sample", "--top-k", 1, "--json", *ALL)]
        for one, line in zip(sampled, LINES, strict=True):
            ids = greedy(tokens(line), self.tensors) if line else []
            self.assertEqual((one["translation"], one["tokens"]), (text_of(ids), len(ids)))
        self.assertRegex(self.written("--alignments", lines=["a b c"])[0], r"\|\|\|")
        self.assertEqual(self.written("--threads", 1, *ALL), self.written("--threads", 3, *ALL))
        # No positions bound a line.
        self.assertEqual(len(self.written(lines=[" ".join("abcdefghij" * 60)])), 1)

    def test_a_folder_without_tokenizer_json(self):
        expected = self.written("--beam", 1)
        (self.model / "tokenizer.json").unlink()
        (self.model / "spiece.model").write_bytes(spiece_model())
        (self.model / "tokenizer_config.json").write_text('{"extra_ids": 2, "tokenizer_class": "T5Tokenizer"}')
        self.assertEqual(self.written("--beam", 1), expected)
        ids = self.succeed("tokenizer", "encode", self.model, "--ids", stdin=b"a <extra_id_0> b\n").stdout.decode().split()
        self.assertEqual(ids, ["3", "14", "4"])
        # transformers would put <end> behind each line.
        (self.model / "special_tokens_map.json").write_text('{"eos_token": "<end>"}')
        self.assert_error(self.run_fovea("translate", self.model, stdin=b"a\n"), 4, "special_tokens_map.json", "<end>", "</s>")
        (self.model / "special_tokens_map.json").unlink()
        # No memory is taken for what a file claims.
        write_json(self.model / "config.json", {"model_type": "t5", "vocab_size": 2 ** 31 - 1})
        write_json(self.model / "tokenizer_config.json", {"extra_ids": 2 ** 31 - 1})
        self.assert_error(self.run_fovea("tokenizer", "encode", self.model, stdin=b"a\n"), 4, "extra_ids")

    def test_inspect_and_explain(self):
        self.assertIn("a model of Hugging Face, model_type t5", self.succeed("inspect", self.model).stdout.decode())
        self.succeed("inspect", self.model, "--verify")
        shown = json.loads(self.succeed("explain", self.model, "a <extra_id_0> z", "--target", "<extra_id_1> b", "--json").stdout)
        self.assertEqual(shown["tokens"], [" a", "<extra_id_0>", "<unk>", "</s>"])
        self.assertEqual(shown["target_tokens"], ["<extra_id_1>", " b", "</s>"])

    def test_an_explanation_counts_an_end_where_the_text_has_one(self):
        ended = set()
        for seed in (1, 2):
            for more in ({}, {"eos_token_id": [END, VOCABULARY.index("\u2581c")]}):
                write_t5(self.model, ending(seed), generation={"num_beams": 2, **more})
                lines = [line for line in LINES if line]
                for line, one in zip(lines, self.written("--json", *ALL, lines=lines), strict=True):
                    made, shown = json.loads(one), json.loads(self.succeed("explain", self.model, line, "--json").stdout)
                    if len(tokens(line)) * 2 + 8 < LONGEST:
                        continue  # there --max-ratio ends it
                    self.assertEqual(shown["target_tokens"][-1] == "</s>", made["tokens"] < LONGEST - 1 or "</s>" in shown["target_tokens"])
                    self.assertEqual(len(shown["target_tokens"]), made["tokens"])
                    self.assertAlmostEqual(shown["log_probability"], made["log_probability"], delta=1e-4)
                    ended.add(shown["target_tokens"][-1])
        self.assertGreater(len(ended), 1)
        self.assertIn("</s>", ended)

    # Of a list of ids each one ends a text, of which it stays the last token.
    def test_several_tokens_may_end_a_text(self):
        more = VOCABULARY.index("\u2581c")
        found = 0
        for seed in range(1, 5):
            tensors = ending(seed)
            for ends in ([END, more], [more, END, END]):
                write_t5(self.model, tensors, generation={"eos_token_id": ends})
                said = [json.loads(line) for line in self.written("--beam", 1, "--json", *ALL)]
                for line, one in zip(LINES, said, strict=True):
                    ids = greedy(tokens(line), tensors) if line else []
                    if more in ids:
                        ids = ids[:ids.index(more) + 1]
                        found += 1
                    self.assertEqual((one["translation"], one["tokens"]), (text_of(ids), len(ids)), line)
        self.assertGreater(found, 3)
        for ends, needle in (([], "one id or more"), ([END, 99], "ids from 0 to"), ([more], "behind a text"), (["</s>"], "ids from 0 to")):
            write_t5(self.model, tensors, generation={"eos_token_id": ends})
            self.assert_error(self.run_fovea("translate", self.model, stdin=b"a\n"), 4, needle)

    def test_errors(self):
        def refused(status, *needles, command=("translate",), **change):
            write_t5(self.model, self.tensors, **change)
            self.assert_error(self.run_fovea(*command, self.model, stdin=b"a\n"), status, *needles)

        refused(4, "feed_forward_proj", "gated-mish", config={"feed_forward_proj": "gated-mish"})
        refused(4, "rotary", config={"rotary": 3})
        refused(4, "no_repeat_ngram_size", generation={"no_repeat_ngram_size": 2})
        refused(4, "shared.weight", config={"vocab_size": 99})
        refused(4, "relative_attention_bias", config={"relative_attention_num_buckets": 4})
        refused(4, "relative_attention_max_distance", config={"relative_attention_max_distance": 4})
        refused(4, "umt5", "mt5", config={"model_type": "umt5"})
        refused(4, "t5", command=("generate",))
        write_t5(self.model, self.tensors)
        base = ["train", "translate", "--base", self.model, "--train", self.text, "-o", self.folder / "out"]
        self.assert_error(self.run_fovea(*base), 4, "a translator of transformers")
        self.assert_error(self.run_fovea("export", self.model, "-o", self.folder / "out"), 4, "models that fovea has trained")
        self.assertFalse((self.folder / "out").exists())
        (self.model / "model.safetensors").rename(self.model / "pytorch_model.bin")
        self.assert_error(self.run_fovea("translate", self.model, stdin=b"a\n"), 4, "pytorch_model.bin")


if __name__ == "__main__":
    unittest.main()

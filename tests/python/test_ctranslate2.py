# SPDX-License-Identifier: Apache-2.0
"""Translators in CTranslate2, by its converter for transformers: translations and scores are those of fovea, greedy and with a beam. A translator that
fovea has trained and exported, and random models of Marian."""

import json
import pathlib
import re
import unittest

try:
    import ctranslate2
    from ctranslate2.converters import transformers as converters
    import test_marian
    import torch
    import transformers
except ImportError as error:
    raise unittest.SkipTest(f"{error.name} is not installed: nothing to compare with") from error

import support

import fovea

LINES = ["one two", "red", "three red one two", "two two two", "one three red red", "red red", "three"]


class Ct2Test(test_marian.MarianTest):
    """Its tests are not run again."""
    test_translations_of_every_model = test_each_end_of_a_search = None
    test_other_types_of_weights = test_scores_of_random_strings = None

    def assert_same(self, translator, source, loaded, names, lines, most):
        """`translator`: CTranslate2's; `source`: the pieces of each line; `names`: the ids of pieces."""
        tokenizer = transformers.AutoTokenizer.from_pretrained(source)
        of_id = {n: name for name, n in names.items()}
        pieces = [[of_id[n] for n in tokenizer(line).input_ids] for line in lines]
        for beam in (1, 4):
            made = translator.translate_batch(pieces, beam_size=beam, return_scores=True, length_penalty=1, min_decoding_length=0,
                                              max_decoding_length=most, max_batch_size=1)
            said = loaded.translations(lines, beam=beam, length_penalty=1, patience=1, max_ratio=1000, **self.options)
            ended = [(one, theirs) for one, theirs in zip(said, made, strict=True) if one["tokens"] < most]
            self.assertGreater(len(ended), len(lines) // 2)  # the others meet the end of the positions, each program in its way
            for one, theirs in ended:
                ids = [names[piece] for piece in theirs.hypotheses[0]]
                self.assertEqual(one["translation"].strip(), tokenizer.decode(ids, skip_special_tokens=True).strip(), one["source"])
                self.assertAlmostEqual(one["score"], theirs.scores[0], delta=self.tolerance * max(1, abs(one["score"])), msg=one["source"])

    def translator(self, name):
        return ctranslate2.Translator(str(self.folder / name), "cpu", compute_type="float32", inter_threads=1, intra_threads=1)

    def test_what_fovea_exports(self):
        words = {"one": "eins", "two": "zwei", "three": "drei", "red": "rot"}
        pairs = [[list(words)[(n * 7 + k * k) % 4] for k in range(n % 5 + 1)] for n in range(120)]
        (self.folder / "pairs.tsv").write_text("".join(f"{' '.join(p)}\t{' '.join(map(words.get, p))}\n" for p in pairs))
        for n, name in enumerate(("one", "other")):
            text = "".join(line.split("\t")[n] + "\n" for line in (self.folder / "pairs.tsv").read_text().splitlines())
            (self.folder / name).write_text(text)
            done = support.fovea("tokenizer", "train", "--train", self.folder / name, "--vocab-size", 16, "-o", self.folder / f"{name}.model")
            self.assertEqual(done.returncode, 0, done.stderr)
        ours = fovea.Translator.train(
            self.folder / "pairs.tsv", self.folder / "model", tokenizer="sentencepiece", tokenizer_model=self.folder / "one.model",
            target_tokenizer_model=self.folder / "other.model", norm_position="post", encoder_layers=1, decoder_layers=2, width=32, heads=2,
            dropout=0, lr=5e-3, warmup=30, block=24, stop_after="60u")
        folder = self.folder / "translator-for-transformers"
        done = support.fovea("export", self.folder / "model", "-o", folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        page = (support.ROOT / "docs/commands/export.md").read_text(encoding="utf-8")
        block, = (code for code in re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL) if "ctranslate2" in code)
        before = dict(converters._MODEL_LOADERS)
        self.addCleanup(converters._MODEL_LOADERS.update, before)
        with support.working_in(self.folder):
            exec(compile(block, "export.md", "exec"), {})
        names = json.loads((folder / "vocab.json").read_text())
        self.options, self.tolerance = {"length_norm": "marian"}, 1e-5
        self.assert_same(self.translator("translator-for-ctranslate2"), folder, ours, names, LINES, 23)

    def test_what_transformers_writes(self):
        self.options, self.tolerance = {}, 1e-4
        for name in ("one table", "one table, other layers"):
            with self.subTest(name):
                # transformers keeps the row of padding, which begins a translation, zero; so has CTranslate2 it.
                model, tokenizer = self.save(name, 1, num_beams=4)
                with torch.no_grad():
                    model.model.shared.weight[-1] = 0
                    model.final_logits_bias[0, -1] = -1e4  # is never written
                    model.final_logits_bias[0, 0] += 4  # most translations end
                model.save_pretrained(self.folder)
                output = f"ct2 {name}"
                ctranslate2.converters.TransformersConverter(str(self.folder)).convert(str(self.folder / output))
                names = json.loads((self.folder / "vocab.json").read_text())
                lines = [line for line in self.lines(tokenizer) if "</s>" not in line and "<unk>" not in line]
                self.assert_same(self.translator(output), self.folder, fovea.load(self.folder), names, lines, test_marian.LONGEST - 1)


del test_marian.MarianTest  # is not run here


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""T5, T5 1.1 and mT5 as transformers has written them, read by fovea: scores and texts are the same. Small random models and
random strings."""

import pathlib
import random
import tempfile
import unittest

try:
    import google.protobuf  # transformers reads spiece.model by it
    import sentencepiece
    import torch
    import transformers
except ImportError as error:
    raise unittest.SkipTest(f"{error.name} is not installed: models of transformers are not read") from error

import support

import fovea

transformers.logging.disable_progress_bar()
LONGEST = 30
SENTINELS = 20
MODELS = {
    "T5 1.0": (transformers.T5ForConditionalGeneration, {"feed_forward_proj": "relu"}, False),
    "T5 1.1": (transformers.T5ForConditionalGeneration,
               {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False, "num_decoder_layers": 2}, True),
    "mT5": (transformers.MT5ForConditionalGeneration, {"d_kv": 5, "relative_attention_num_buckets": 12}, True),
}
WORDS = ["the", "model", "</s>", "<unk>", "<pad>", "<extra_id_0>", "<extra_id_19>", "<extra_id_20>", "attention", "\u2581", "é", "<0x41>",
         "e\u0301", "中文", "😀", "\u00a0", "ﬁ", "Ⅳ", "\u200b", "n't", " . ", "of", "reads", "<s>", "<sep>", "<br>", "a", "weights", "I", "1234",
         "translate English to German: ", "\t", "  "]


class T5Test(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.make_tokenizer()

    def make_tokenizer(self, pieces=300, **more):
        self.pieces = pieces
        text = self.folder / "text.txt"
        text.write_text("\n".join(filter(None, (support.ROOT / "docs/DESIGN.md").read_text(encoding="utf-8").split("\n"))))
        sentencepiece.SentencePieceTrainer.train(
            input=str(text), model_prefix=str(self.folder / "spiece"), vocab_size=pieces, character_coverage=0.98, minloglevel=2,
            pad_id=0, eos_id=1, unk_id=2, bos_id=-1, control_symbols="<sep>", user_defined_symbols="<br>", **more)
        for file in ("tokenizer.json", "tokenizer_config.json"):
            (self.folder / file).unlink(missing_ok=True)
        self.tokenizer = transformers.T5Tokenizer.from_pretrained(self.folder, extra_ids=SENTINELS)

    def save(self, name, seed, dtype=torch.float32, pieces=False, **generation):
        """With the tokenizer that transformers writes, or with spiece.model alone."""
        torch.manual_seed(seed)
        kind, options, own_head = MODELS[name]
        marks = {"pad_token_id": 0, "decoder_start_token_id": 0, "eos_token_id": generation.pop("eos_token_id", 1)}
        model = kind(kind.config_class(**{
            "vocab_size": self.pieces + 28, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 3, "num_heads": 4, "initializer_factor": 1.0,
            **marks, **options})).eval()
        if own_head:
            model.lm_head.weight = torch.nn.Parameter(torch.randn_like(model.lm_head.weight))
        with torch.no_grad():
            for parameter, values in model.named_parameters():
                if "norm" in parameter:
                    values += 0.3 * torch.randn_like(values)
                elif "relative_attention_bias" in parameter:
                    values.copy_(torch.randn_like(values))
                elif ".q." in parameter:
                    values *= 4
            model.lm_head.weight[1] *= 3
        model.generation_config = transformers.GenerationConfig(max_length=LONGEST, **marks, **generation)
        model.to(dtype).save_pretrained(self.folder)
        for file in ("tokenizer.json", "tokenizer_config.json"):
            (self.folder / file).unlink(missing_ok=True)
        if pieces:
            (self.folder / "tokenizer_config.json").write_text(f'{{"extra_ids": {SENTINELS}}}')
        else:
            self.tokenizer.save_pretrained(self.folder)
        return kind.from_pretrained(self.folder, dtype=torch.float32).eval()

    def lines(self):
        lines = [line.strip() for line in (support.ROOT / "docs/models.md").read_text(encoding="utf-8").split("\n")]
        return [*[line for line in lines if line][:12], "translate English to German: The model reads.", "a </s> b <unk> c",
                "The <extra_id_0> reads <extra_id_1> text", "Ünï 中文 x", "1"]

    def assert_same(self, model, loaded, **how):
        lines = self.lines()
        with torch.no_grad():
            made = model.generate(**self.tokenizer(lines, return_tensors="pt", padding=True), output_scores=True,
                                  return_dict_in_generate=True, **how)
        names = {"num_beams": "beam", "length_penalty": "length_penalty"}
        options = {names[name]: value for name, value in how.items() if name in names}
        said = loaded.translations(lines, max_ratio=1000, **options)
        for ids, one in zip(made.sequences.tolist(), said, strict=True):
            self.assertEqual(one["translation"], self.tokenizer.decode(ids, skip_special_tokens=True).strip(), one["source"])
        if "sequences_scores" in made:
            for score, one in zip(made.sequences_scores.tolist(), said, strict=True):
                self.assertAlmostEqual(one["score"], score, delta=1e-4 * max(1, abs(score)), msg=one["source"])

    def test_texts_of_every_model(self):
        for name in MODELS:
            for seed in (1, 2):
                with self.subTest(name, seed=seed):
                    model = self.save(name, seed, num_beams=4, pieces=seed == 2)
                    loaded = fovea.load(self.folder)
                    self.assertIsInstance(loaded, fovea.Translator)
                    self.assert_same(model, loaded)
                    self.assert_same(model, loaded, num_beams=1)
                    self.assert_same(model, loaded, num_beams=3, length_penalty=0.6)

    def test_each_end_of_a_search(self):
        for early in (True, False, "never"):
            with self.subTest(early):
                model = self.save("T5 1.1", 4, num_beams=4, length_penalty=1.5, early_stopping=early)
                self.assert_same(model, fovea.load(self.folder))

    # Also by an ordinary piece, which stays in the text, and by one that is no text. (transformers fills up texts that have ended
    # with the first of the list.)
    def test_several_ends(self):
        changed = 0
        for name, seed, ends in (("T5 1.0", 1, [1, 300]), ("T5 1.1", 2, [1, 40, 61]), ("mT5", 3, [1, 319])):
            with self.subTest(name, ends=ends):
                model = self.save(name, seed, num_beams=4, eos_token_id=ends)
                loaded = fovea.load(self.folder)
                self.assert_same(model, loaded)
                self.assert_same(model, loaded, num_beams=1)
                self.assert_same(model, loaded, num_beams=3, length_penalty=0.6)
                alone = self.save(name, seed, num_beams=4)
                lines = self.tokenizer(self.lines(), return_tensors="pt", padding=True)
                with torch.no_grad():
                    changed += not torch.equal(alone.generate(**lines), model.generate(**lines))
        self.assertGreater(changed, 0)

    def test_other_types_of_weights(self):
        for dtype in (torch.bfloat16, torch.float16):
            with self.subTest(dtype=dtype):
                model = self.save("T5 1.0", 5, dtype, num_beams=2)
                self.assert_same(model, fovea.load(self.folder))

    # The ids of both sides, and the logits: other ids would have other probabilities.
    def test_scores_of_random_strings(self):
        rng = random.Random(1)
        pairs = []
        while len(pairs) < 200:
            pair = ["".join(rng.choice([rng.choice(WORDS), " "]) for _ in range(rng.randint(1, 60))) for _ in range(2)]
            pair = [text.replace("\t", " ") for text in pair]
            if all(text.strip(" \u2581\u200b\u00a0") for text in pair):
                pairs.append(pair)
        for side, name in enumerate(("source", "reference")):
            (self.folder / name).write_text("".join(pair[side] + "\n" for pair in pairs), encoding="utf-8")
        for name, pieces, spells in (("T5 1.0", True, False), ("mT5", False, False), ("T5 1.0", True, True), ("T5 1.1", False, True)):
            self.make_tokenizer(**({"pieces": 600, "byte_fallback": True} if spells else {}))  # spells characters in bytes
            model = self.save(name, 6, pieces=pieces)
            done = support.fovea("eval", self.folder, "--source", self.folder / "source", "--reference",
                                 self.folder / "reference", "--score")
            self.assertEqual(done.returncode, 0, done.stderr)
            for (source, target), line in zip(pairs, done.stdout.splitlines(), strict=True):
                ids = self.tokenizer(target).input_ids
                with torch.no_grad():
                    logits = model(**self.tokenizer(source, return_tensors="pt"),
                                   decoder_input_ids=torch.tensor([[0, *ids[:-1]]])).logits[0]
                expected = logits.double().log_softmax(-1)[range(len(ids)), ids].sum().item()
                found, count = line.split("\t")
                self.assertEqual(int(count), len(ids), (source, target))
                self.assertAlmostEqual(float(found), expected, delta=2e-5 * abs(expected), msg=(source, target))


if __name__ == "__main__":
    unittest.main()

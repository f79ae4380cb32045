# SPDX-License-Identifier: Apache-2.0
"""fovea export beside transformers: what is opened there has the ids, logits and greedy text of the model here."""

import pathlib
import tempfile
import unittest

try:
    import torch
    import transformers
except ImportError as error:
    raise unittest.SkipTest(f"{error.name} is not installed: exported models are not opened") from error

import numpy as np
import support

import fovea

ROTARY = {"position": "rotary", "norm": "rms", "activation": "swiglu"}
GEMMA = {"position": "rotary", "norm": "rms", "norm_position": "sandwich", "activation": "geglu-tanh",
         "embedding_scale": 32 ** 0.5}
MODELS = {
    "GPT2LMHeadModel": [{}, {"bias": True, "activation": "gelu-tanh"}, {"tie": False, "tokenizer": "byte"},
                        {"data": "lines", "lower": True}, {"tokenizer": "word", "min_count": 1}],
    "LlamaForCausalLM": [{**ROTARY, "kv_heads": 2, "head_dim": 12},
                         {**ROTARY, "bias": True, "activation": "geglu", "rope_base": 500}],
    "MistralForCausalLM": [{**ROTARY, "window": "5", "tie": False}],
    "Qwen3ForCausalLM": [{**ROTARY, "qk_norm": True, "window": "0,6", "activation": "reglu"}],
    "GemmaForCausalLM": [{**GEMMA, "norm_position": "pre", "kv_heads": 1, "rope_base": 500}],
    "Gemma2ForCausalLM": [{**GEMMA, "window": "6,0", "softcap": 2, "logit_softcap": 4, "score_scale": 0.5}],
    "Gemma3ForCausalLM": [{**GEMMA, "window": "6,0", "qk_norm": True, "kv_heads": 1, "rope_base": 5000,
                           "rope_local_base": 20, "head_dim": 12}]}
SIZES = {"layers": 2, "heads": 4, "width": 32, "block": 24, "batch_size": 4, "stop_after": "40u", "warmup": 4, "lr": 0.01}
# A character that no training text has, a tab, two blanks.
PROMPT = "The  weights of\tattention ∯ are"


class ExportTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.text = cls.folder / "text.txt"
        cls.text.write_text((support.ROOT / "docs/DESIGN.md").read_text(encoding="utf-8")[:20000])

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def check(self, number, architecture, options):
        folder, output = self.folder / f"model{number}", self.folder / f"out{number}"
        model = fovea.LanguageModel.train(self.text, folder, **SIZES, **options)
        done = support.fovea("export", folder, "-o", output)
        self.assertEqual(done.returncode, 0, done.stderr)
        theirs = transformers.AutoModelForCausalLM.from_pretrained(output, dtype=torch.float32).eval()
        tokenizer = transformers.AutoTokenizer.from_pretrained(output)
        self.assertEqual(type(theirs).__name__, architecture)
        begin = [tokenizer.bos_token_id] if options.get("data") == "lines" else []
        ids = begin + model.encode(PROMPT)
        self.assertEqual(tokenizer(PROMPT).input_ids, ids)
        self.assertEqual(tokenizer.decode(ids[len(begin):]), model.decode(ids[len(begin):]))
        if options.get("tokenizer") != "word":
            self.assertEqual(tokenizer("中文 Ünï\n").input_ids[len(begin):], model.encode("中文 Ünï\n"))
        ids = ids[:SIZES["block"]]
        with torch.no_grad():
            logits = theirs(torch.tensor([ids])).logits[0].numpy()
        self.assertLess(support.relative_error(model.logits(ids), logits), 1e-5)

    def test_they_compute_the_same(self):
        cases = [(architecture, options) for architecture, many in MODELS.items() for options in many]
        for number, (architecture, options) in enumerate(cases):
            with self.subTest(architecture, **options):
                self.check(number, architecture, options)

    def test_greedy_text_is_the_same(self):
        folder, output = self.folder / "greedy", self.folder / "greedy_out"
        model = fovea.LanguageModel.train(self.text, folder, **SIZES, **ROTARY)
        support.fovea("export", folder, "-o", output)
        theirs = transformers.AutoModelForCausalLM.from_pretrained(output, dtype=torch.float32).eval()
        ids = model.encode("The ")
        with torch.no_grad():
            found = theirs.generate(torch.tensor([ids]), max_new_tokens=16, do_sample=False)[0].numpy()
        self.assertEqual(model.decode(list(map(int, found[len(ids):]))),
                         model.generate("The ", max_tokens=16, greedy=True))

    def test_subwords(self):
        # The text has no two cuts that are equally likely, so there is one answer.
        lines = [line for line in self.text.read_text().splitlines() if "--" not in line][:60]
        for kind, more in (("unigram", []), ("bpe", ["--byte-fallback"])):
            pieces, folder, output = (self.folder / f"{kind}{end}" for end in (".model", "", "_out"))
            done = support.fovea("tokenizer", "train", "--train", self.text, "-o", pieces, "--kind", kind,
                                 "--vocab-size", "600", *more)
            self.assertEqual(done.returncode, 0, done.stderr)
            model = fovea.LanguageModel.train(self.text, folder, **SIZES, tokenizer="sentencepiece", tokenizer_model=pieces)
            done = support.fovea("export", folder, "-o", output)
            self.assertEqual(done.returncode, 0, done.stderr)
            tokenizer = transformers.AutoTokenizer.from_pretrained(output)
            for text in [*lines, "", "  a  b ", "ﬁne Ⅳ é e\u0301", "中文", "one\n\n two\nthree\n"]:
                with self.subTest(kind, text=text):
                    ids = tokenizer(text).input_ids
                    self.assertEqual(ids, model.encode(text))
                    if tokenizer.unk_token_id not in ids:  # which is written <unk> there
                        self.assertEqual(tokenizer.decode(ids), model.decode(ids))

    def test_bfloat16_weights(self):
        folder, output = self.folder / "bf16", self.folder / "bf16_out"
        model = fovea.LanguageModel.train(self.text, folder, **SIZES, **ROTARY)
        support.fovea("export", folder, "-o", output, "--dtype", "bf16")
        theirs = transformers.AutoModelForCausalLM.from_pretrained(output)
        self.assertEqual(theirs.dtype, torch.bfloat16)
        stored = theirs.model.embed_tokens.weight.detach().float().numpy()
        np.testing.assert_allclose(stored, model.weights()["embedding.tokens"], rtol=2**-8)


if __name__ == "__main__":
    unittest.main()

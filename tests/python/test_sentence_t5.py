# SPDX-License-Identifier: Apache-2.0
"""The encoder of a T5 as transformers and sentence-transformers have written it: the vectors are theirs. Small random models."""

import pathlib
import shutil
import tempfile
import unittest

try:
    import google.protobuf  # transformers reads spiece.model by it
    import sentencepiece
    import torch
    import transformers
except ImportError as error:
    raise unittest.SkipTest(f"{error.name} is not installed: models of transformers are not read") from error
try:
    import sentence_transformers
except ImportError:
    sentence_transformers = None

import numpy as np
import support

import fovea

transformers.logging.disable_progress_bar()
FORMS = {"T5 1.0": (transformers.T5EncoderModel, transformers.T5ForConditionalGeneration, {"feed_forward_proj": "relu"}),
         "T5 1.1": (transformers.T5EncoderModel, transformers.T5ForConditionalGeneration,
                    {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}),
         "mT5": (transformers.MT5EncoderModel, transformers.MT5ForConditionalGeneration,
                 {"d_kv": 5, "relative_attention_num_buckets": 12})}
TEXTS = ["The model reads.", "", "a </s> b <unk> c", "The <extra_id_0> reads <extra_id_1> text", "Ünï 中文 x", "1",
         "the weights of attention " * 90, "  two  blanks \t", "the model"]


class SentenceT5(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.pieces = pathlib.Path(temporary.name)
        text = cls.pieces / "text.txt"
        text.write_text("\n".join(filter(None, (support.ROOT / "docs/DESIGN.md").read_text(encoding="utf-8").split("\n"))))
        sentencepiece.SentencePieceTrainer.train(
            input=str(text), model_prefix=str(cls.pieces / "spiece"), vocab_size=300, character_coverage=0.98, minloglevel=2,
            pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
        cls.tokenizer = transformers.T5Tokenizer.from_pretrained(cls.pieces, extra_ids=20)

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name) / "model"

    def save(self, name, seed, whole=False, pieces=False, dtype=torch.float32):
        torch.manual_seed(seed)
        encoder, both, options = FORMS[name]
        kind = both if whole else encoder
        model = kind(kind.config_class(**{
            "vocab_size": 328, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 3, "num_heads": 4, "initializer_factor": 1.0,
            "decoder_start_token_id": 0, **options}))
        with torch.no_grad():
            for parameter, values in model.named_parameters():
                if "norm" in parameter:
                    values += 0.3 * torch.randn_like(values)
                elif "relative_attention_bias" in parameter:
                    values.copy_(torch.randn_like(values))
                elif ".q." in parameter:
                    values *= 4
        shutil.rmtree(self.folder, ignore_errors=True)
        model.to(dtype).save_pretrained(self.folder)
        if pieces:
            shutil.copy(self.pieces / "spiece.model", self.folder)
            (self.folder / "tokenizer_config.json").write_text('{"extra_ids": 20}')
        else:
            self.tokenizer.save_pretrained(self.folder)
        return encoder.from_pretrained(self.folder, dtype=torch.float32).eval()

    def assert_near(self, found, expected, most=1e-5):
        found, expected = np.asarray(found), np.asarray(expected)
        self.assertEqual(found.shape, expected.shape)
        for a, b in zip(found, expected):
            self.assertLess(np.abs(a - b).max(), most * np.abs(b).max())

    # A padded batch of transformers, and one text at a time.
    def test_vectors_are_the_mean_of_the_rows_of_transformers(self):
        for name in FORMS:
            for whole, pieces in ((False, False), (True, True)):
                with self.subTest(name, whole=whole):
                    model = self.save(name, 3, whole, pieces)
                    encoder = fovea.Encoder.load(self.folder)
                    if not whole:
                        self.assertIsInstance(fovea.load(self.folder), fovea.Encoder)
                    batch = self.tokenizer(TEXTS, return_tensors="pt", padding=True)
                    with torch.no_grad():
                        rows = model(**batch).last_hidden_state
                        mask = batch.attention_mask[..., None]
                        padded = (rows * mask).sum(1) / mask.sum(1)
                        alone = [model(**self.tokenizer(text, return_tensors="pt")).last_hidden_state[0].mean(0).tolist()
                                 for text in TEXTS]
                    self.assert_near(encoder.embed(TEXTS), padded)
                    self.assert_near(encoder.embed(TEXTS), alone)

    def test_halves_are_widened(self):
        for dtype in (torch.bfloat16, torch.float16):
            model = self.save("T5 1.1", 4, dtype=dtype)
            with torch.no_grad():
                expected = [model(**self.tokenizer(text, return_tensors="pt")).last_hidden_state[0].mean(0).tolist() for text in TEXTS]
            self.assert_near(fovea.Encoder.load(self.folder).embed(TEXTS), expected)

    @unittest.skipIf(sentence_transformers is None, "sentence_transformers is not installed")
    def test_modules_are_those_of_sentence_transformers(self):
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.models import Dense, Normalize, Pooling, Transformer
        for seed, (name, whole, function, bias) in enumerate([
                ("T5 1.0", False, torch.nn.Identity(), False), ("T5 1.1", True, torch.nn.Tanh(), True),
                ("mT5", False, torch.nn.ReLU(), True), ("T5 1.0", True, torch.nn.GELU(), False), ("T5 1.1", False, torch.nn.SiLU(), True)]):
            with self.subTest(name, whole=whole, function=function):
                self.save(name, seed, whole)
                torch.manual_seed(seed)
                dense = Dense(32, 24, bias=bias, activation_function=function)
                theirs = SentenceTransformer(modules=[Transformer(str(self.folder), max_seq_length=40), Pooling(32, "mean"), dense, Normalize()],
                                             device="cpu")
                saved = self.folder.parent / f"saved-{seed}"
                theirs.save(str(saved))
                if whole:  # as the published ones lie: the weights of the decoder beside those of the encoder
                    shutil.copy(self.folder / "model.safetensors", saved)
                    shutil.copy(self.folder / "config.json", saved)
                theirs = SentenceTransformer(str(saved), device="cpu")
                encoder = fovea.load(saved)
                self.assertIsInstance(encoder, fovea.Encoder)
                expected = theirs.encode(TEXTS, batch_size=len(TEXTS))
                self.assert_near(encoder.embed(TEXTS), expected)
                self.assert_near(encoder.embed(TEXTS), [theirs.encode(text) for text in TEXTS])


if __name__ == "__main__":
    unittest.main()

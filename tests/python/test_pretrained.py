# SPDX-License-Identifier: Apache-2.0
"""Folders that transformers has written, read by fovea: the ids, logits and greedy text are the same. Small random
models of each architecture, in one file and in several, in each type of weights."""

import json
import pathlib
import tempfile
import unittest

try:
    import tokenizers
    import torch
    import transformers
except ImportError as error:
    raise unittest.SkipTest(f"{error.name} is not installed: folders of transformers are not read") from error

import numpy as np
import support

import fovea

VOCABULARY = 300
SHARED = {"vocab_size": VOCABULARY, "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": None, "initializer_range": 0.2}
LLAMA = {**SHARED, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
         "intermediate_size": 48, "max_position_embeddings": 64}
ROPE = {"rope_parameters": {"rope_type": "default", "rope_theta": 500.0}}


GEMMA = {**LLAMA, "head_dim": 12, "sliding_window": 5, "query_pre_attn_scalar": 9}


def scaled(kind, **rule):
    """Rotary positions that are stretched."""
    return {"rope_parameters": {"rope_type": kind, "rope_theta": 500.0, **rule}}


MODELS = {
    "gpt2": (transformers.GPT2Config, {**SHARED, "n_layer": 2, "n_head": 4, "n_embd": 32, "n_positions": 64}),
    "gpt2 untied, exact GELU": (transformers.GPT2Config, {
        **SHARED, "n_layer": 2, "n_head": 2, "n_embd": 32, "n_positions": 64, "n_inner": 40,
        "activation_function": "gelu", "tie_word_embeddings": False, "layer_norm_epsilon": 1e-3}),
    "llama": (transformers.LlamaConfig, {**LLAMA, **ROPE}),
    "llama, angles divided": (transformers.LlamaConfig, {**LLAMA, **scaled("linear", factor=3.0)}),
    "llama 3": (transformers.LlamaConfig, {**LLAMA, **scaled(
        "llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=16)}),
    "qwen2 with yarn": (transformers.Qwen2Config, {**LLAMA, **scaled(
        "yarn", factor=4.0, original_max_position_embeddings=16)}),
    "qwen3 with yarn": (transformers.Qwen3Config, {**LLAMA, "head_dim": 16, **scaled(
        "yarn", factor=8.0, original_max_position_embeddings=16, beta_fast=4.0, beta_slow=0.5, truncate=False,
        mscale=1.0, mscale_all_dim=0.7)}),
    "llama with biases": (transformers.LlamaConfig, {
        **LLAMA, "attention_bias": True, "mlp_bias": True, "hidden_act": "gelu", "rms_norm_eps": 1e-2,
        "tie_word_embeddings": True}),
    "mistral": (transformers.MistralConfig, {**LLAMA, "sliding_window": 5, "head_dim": 12}),
    "qwen2": (transformers.Qwen2Config, LLAMA),
    "qwen2 with windows": (transformers.Qwen2Config, {
        **LLAMA, "use_sliding_window": True, "sliding_window": 4, "max_window_layers": 1}),
    "gemma": (transformers.GemmaConfig, {**LLAMA, **ROPE, "head_dim": 12}),
    "gemma2": (transformers.Gemma2Config, {
        **GEMMA, **ROPE, "num_hidden_layers": 3, "attn_logit_softcapping": 0.7, "final_logit_softcapping": 1.5}),
    "gemma3": (transformers.Gemma3TextConfig, {
        **GEMMA, "num_hidden_layers": 7, "final_logit_softcapping": None, "rope_parameters": {
            "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 2000.0},
            "sliding_attention": {"rope_type": "default", "rope_theta": 40.0}}}),
    "qwen3": (transformers.Qwen3Config, {**LLAMA, "head_dim": 16, "rms_norm_eps": 1e-3}),
}
TEXTS = ["The weights of attention, don't they?", "  two  blanks\n\n\tand lines \r\n", "Ünï 中文 e\u0301 😀 ١٢٣ 12345", "",
         "<|end|>x", "\x00\x7f"]


def save_tokenizer(folder):
    """Byte-level BPE, as GPT-2 has it."""
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=VOCABULARY - 7, special_tokens=["<|end|>"], show_progress=False,
                                             initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator([(support.ROOT / "docs/DESIGN.md").read_text(encoding="utf-8")], trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    return tokenizer


def save_pieces(folder):
    """BPE of characters that falls back to bytes, as Llama 2 has it."""
    marks = ["<unk>", "<s>", "</s>"]
    trained = tokenizers.Tokenizer(tokenizers.models.BPE())
    trained.normalizer = tokenizers.normalizers.Replace(" ", "▁")
    trained.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=VOCABULARY - 259, show_progress=False)
    trained.train_from_iterator(["the weights of attention and the words of the text " * 20], trainer)
    model = json.loads(trained.to_str())["model"]
    names = marks + [f"<0x{byte:02X}>" for byte in range(256)] + sorted(model["vocab"], key=model["vocab"].get)
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(
        {name: n for n, name in enumerate(names)}, [tuple(pair) for pair in model["merges"]], unk_token="<unk>",
        fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = tokenizers.normalizers.Sequence(
        [tokenizers.normalizers.Prepend("▁"), tokenizers.normalizers.Replace(" ", "▁")])
    tokenizer.decoder = tokenizers.decoders.Sequence([
        tokenizers.decoders.Replace("▁", " "), tokenizers.decoders.ByteFallback(), tokenizers.decoders.Fuse(),
        tokenizers.decoders.Strip(" ", 1, 0)])
    tokenizer.add_special_tokens(marks)
    tokenizer.save(str(folder / "tokenizer.json"))
    return tokenizer


class PretrainedTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        torch.manual_seed(1)

    def save(self, name, dtype=torch.float32, **how):
        kind, options = MODELS[name]
        model = transformers.AutoModelForCausalLM.from_config(kind(**options)).to(dtype).eval()
        for parameter in model.parameters():  # gains and biases that are not one and zero
            if parameter.ndim == 1:
                parameter.data += 0.3 * torch.randn_like(parameter)
        model.save_pretrained(self.folder, **how)
        return model, save_tokenizer(self.folder)

    def assert_same(self, model, tokenizer, limit=2e-5):
        loaded = fovea.LanguageModel.load(self.folder)
        for text in TEXTS:
            self.assertEqual(loaded.encode(text), tokenizer.encode(text).ids, text)
        ids = tokenizer.encode("The weights of attention are shared by the heads of a layer.").ids[:40]
        with torch.no_grad():
            expected = model.float()(torch.tensor([ids])).logits[0].numpy()
        self.assertLess(support.relative_error(loaded.logits(ids), expected), limit)
        return loaded

    def test_every_architecture(self):
        for name in MODELS:
            with self.subTest(name):
                self.assert_same(*self.save(name))

    def test_files_in_parts_and_other_types(self):
        for dtype in (torch.float32, torch.bfloat16, torch.float16):
            with self.subTest(dtype=dtype):
                for file in self.folder.glob("model*"):
                    file.unlink()
                _, tokenizer = self.save("llama", dtype, max_shard_size="20KB")
                self.assertGreater(len(list(self.folder.glob("model-*.safetensors"))), 1)
                # Read again: .to(dtype) has rounded the frequencies of the positions, too.
                model = transformers.AutoModelForCausalLM.from_pretrained(self.folder, dtype=torch.float32).eval()
                self.assert_same(model, tokenizer)

    def test_a_model_that_was_saved_without_its_head(self):
        model, tokenizer = self.save("gpt2")
        model.transformer.save_pretrained(self.folder)
        self.assert_same(model, tokenizer)

    def test_greedy_text(self):
        model, tokenizer = self.save("llama")
        loaded = fovea.LanguageModel.load(self.folder)
        ids = tokenizer.encode("The weights").ids
        nameless = list(range(len(tokenizer.get_vocab()), VOCABULARY))  # rows of the table without a token
        found = model.generate(torch.tensor([ids]), max_new_tokens=20, do_sample=False,
                               suppress_tokens=nameless)[0].tolist()[len(ids):]
        if 0 in found:
            found = found[:found.index(0)]  # the end
        self.assertEqual(loaded.generate("The weights", max_tokens=20, greedy=True), tokenizer.decode(found))

    def test_a_vocabulary_of_characters(self):
        model, _ = self.save("mistral")
        tokenizer = save_pieces(self.folder)
        loaded = self.assert_same(model, tokenizer)
        nameless = list(range(len(tokenizer.get_vocab()), VOCABULARY))  # rows of the table without a token
        for prompt in ("the weights", "the text\n"):
            ids = tokenizer.encode(prompt).ids
            found = model.generate(torch.tensor([ids]), max_new_tokens=12, do_sample=False,
                                   suppress_tokens=nameless)[0].tolist()
            said = loaded.generate(prompt, max_tokens=12, greedy=True)
            # `tokenizers` makes U+FFFD of all bytes in a row where one is no UTF-8; as text is written, of that one.
            names = [tokenizer.id_to_token(n) for n in found if n > 2]
            spelled = b"".join(bytes.fromhex(name[3:5]) if name.startswith("<0x") else name.replace("▁", " ").encode()
                               for name in names)
            self.assertEqual(prompt + said, spelled.decode("utf-8", "replace")[1:])

    def test_the_command_reads_weights_as_they_lie(self):
        for dtype in (torch.bfloat16, torch.float16):
            with self.subTest(dtype=dtype):
                self.save("qwen3 with yarn", dtype)
                widened = fovea.LanguageModel.load(self.folder)
                done = support.fovea("generate", self.folder, "The weights", "--max-tokens", "20", "--greedy")
                self.assertEqual(done.returncode, 0, done.stderr)
                said = widened.generate("The weights", max_tokens=20, greedy=True)
                # A pipe of text reads each line end as a newline.
                expected = ("The weights" + said).replace("\r\n", "\n").replace("\r", "\n")
                self.assertEqual(done.stdout.rstrip("\n"), expected.rstrip("\n"))

    def test_what_is_exported_is_read_again(self):
        text = self.folder / "text.txt"
        text.write_text((support.ROOT / "docs/DESIGN.md").read_text(encoding="utf-8")[:20000])
        model = fovea.LanguageModel.train(text, self.folder / "model", tokenizer="byte", position="rotary", norm="rms",
                                          activation="swiglu", layers=2, width=32, block=24, stop_after="20u", warmup=2)
        done = support.fovea("export", self.folder / "model", "-o", self.folder / "out")
        self.assertEqual(done.returncode, 0, done.stderr)
        again = fovea.LanguageModel.load(self.folder / "out")
        ids = model.encode("The weights of 中文")[:24]
        self.assertEqual(again.encode("The weights of 中文")[:24], ids)
        np.testing.assert_array_equal(again.logits(ids), model.logits(ids))

    def test_what_is_not_known_is_named(self):
        self.save("llama")
        config = (self.folder / "config.json").read_text()
        for old, new, message in (('"llama"', '"mamba"', "mamba"), ('"silu"', '"quick_gelu"', "quick_gelu"),
                                  ('"default"', '"longrope"', "longrope"),
                                  ('"hidden_size": 32', '"hidden_size": 16', r"\["),
                                  ('"hidden_size": 32', '"hidden_size": 48', "more values than")):
            with self.subTest(new):
                self.assertIn(old, config)
                (self.folder / "config.json").write_text(config.replace(old, new))
                with self.assertRaisesRegex(fovea.ModelError, message):
                    fovea.LanguageModel.load(self.folder)


if __name__ == "__main__":
    unittest.main()

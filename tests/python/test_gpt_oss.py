# SPDX-License-Identifier: Apache-2.0
"""GPT-OSS as transformers has written it, in values and in blocks of MXFP4: logits, greedy texts, and what is trained further and
exported. Small random models."""

import json
import pathlib
import tempfile
import unittest

try:
    import tokenizers
    import torch
    import transformers
    from safetensors.torch import load_file, save_file
except ImportError as error:
    raise unittest.SkipTest(f"{error.name} is not installed: folders of transformers are not read") from error

import support
from test_pretrained import VOCABULARY, save_tokenizer

import fovea

SIZES = {"vocab_size": VOCABULARY, "hidden_size": 64, "intermediate_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4,
         "num_key_value_heads": 2, "head_dim": 12, "num_local_experts": 6, "num_experts_per_tok": 2, "sliding_window": 5,
         "max_position_embeddings": 64, "initializer_range": 0.2, "eos_token_id": 0, "bos_token_id": 0, "pad_token_id": None}
YARN = {"rope_type": "yarn", "rope_theta": 500.0, "factor": 4.0, "beta_fast": 8.0, "beta_slow": 1.0, "truncate": False,
        "original_max_position_embeddings": 16}
TEXT = "The weights of attention are shared by the heads of a layer."
PACKED = ("gate_up_proj", "down_proj")


class GptOss(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.root = pathlib.Path(temporary.name)
        self.folder = self.root / "model"
        torch.manual_seed(3)

    def save(self, dtype=torch.float32, **options):
        model = transformers.GptOssForCausalLM(transformers.GptOssConfig(**{**SIZES, "rope_parameters": YARN, **options})).eval()
        with torch.no_grad():
            for name, values in model.named_parameters():
                if "bias" in name or "sinks" in name or "norm" in name:
                    values += 0.3 * torch.randn_like(values)
                if "gate_up_proj" in name:
                    values *= 8  # beyond the limits of the gates
            model.lm_head.weight[VOCABULARY - 7:] = 0  # tokens without a text are never written here
        model.to(dtype).save_pretrained(self.folder)
        self.tokenizer = save_tokenizer(self.folder)
        return transformers.GptOssForCausalLM.from_pretrained(self.folder, dtype=torch.float32).eval()

    def pack(self):
        """Random blocks in the place of the values of the experts."""
        tensors = load_file(self.folder / "model.safetensors")
        for name in list(tensors):
            if not name.endswith(PACKED):
                continue
            experts, inputs, outputs = tensors.pop(name).shape
            tensors[f"{name}_blocks"] = torch.randint(0, 256, (experts, outputs, inputs // 32, 16), dtype=torch.uint8)
            tensors[f"{name}_scales"] = torch.randint(121, 128, (experts, outputs, inputs // 32), dtype=torch.uint8)
        save_file(tensors, self.folder / "model.safetensors", {"format": "pt"})
        config = json.loads((self.folder / "config.json").read_text())
        config["quantization_config"] = {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}
        (self.folder / "config.json").write_text(json.dumps(config))

    def assert_same(self, model, folder=None, limit=2e-5):
        loaded = fovea.load(folder or self.folder)
        self.assertIsInstance(loaded, fovea.LanguageModel)
        ids = self.tokenizer.encode(TEXT).ids[:40]
        with torch.no_grad():
            expected = model(torch.tensor([ids])).logits[0].numpy()
            written = model.generate(torch.tensor([ids[:5]]), max_new_tokens=20, do_sample=False, eos_token_id=None)[0].tolist()
        self.assertLess(support.relative_error(loaded.logits(ids), expected), limit)
        return self.tokenizer.decode(ids[:5]), self.tokenizer.decode(written[5:], skip_special_tokens=False)

    def assert_same_text(self, prompt, text):
        """Of the command, which keeps halves as they lie."""
        done = support.fovea("generate", self.folder, prompt, "--greedy", "--max-tokens", "20")
        self.assertEqual(done.returncode, 0, done.stderr)
        cut = text.split("<|end|>")[0]
        self.assertTrue(done.stdout.startswith(prompt + cut[:8]), (done.stdout, prompt + cut))

    def test_logits_and_greedy_texts(self):
        for options in ({}, {"num_experts_per_tok": 1, "sliding_window": 3}, {"num_experts_per_tok": 6, "layer_types": ["full_attention"] * 3},
                        {"rope_parameters": {"rope_type": "default", "rope_theta": 40.0}, "num_key_value_heads": 4}):
            with self.subTest(options):
                self.assert_same_text(*self.assert_same(self.save(**options)))

    def test_other_types_of_weights(self):
        for dtype in (torch.bfloat16, torch.float16):
            with self.subTest(dtype=dtype):
                self.assert_same_text(*self.assert_same(self.save(dtype)))

    def test_blocks_are_widened_as_transformers_does(self):
        self.save()
        self.pack()
        how = transformers.Mxfp4Config(dequantize=True)
        model = transformers.GptOssForCausalLM.from_pretrained(self.folder, quantization_config=how, dtype=torch.float32).float().eval()
        self.assert_same(model)
        done = support.fovea("inspect", self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("gate_up_proj_blocks", done.stdout)

    def test_eval_and_explain(self):
        model = self.save()
        text = self.root / "text.txt"
        text.write_text("The weights of attention.")
        done = support.fovea("eval", self.folder, "--test", text, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        ids = torch.tensor([self.tokenizer.encode("The weights of attention.").ids])
        with torch.no_grad():
            loss = model(ids, labels=ids).loss.item()
        said = json.loads(done.stdout)
        self.assertAlmostEqual(said["loss"], loss, delta=2e-5 * loss, msg=said)
        done = support.fovea("explain", self.folder, "The weights of attention", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)

    # Also of a model in blocks, whose values a training widens.
    def test_trained_further_imported_and_exported(self):
        text = self.root / "text.txt"
        text.write_text((support.ROOT / "docs/DESIGN.md").read_text(encoding="utf-8")[:4000])
        for packed in (False, True):
            self.save()
            if packed:
                self.pack()
            train = ("train", "lm", "--base", self.folder, "--train", text, "--block", "48", "--batch-size", "2", "--stop-after", "3u",
                     "--lr", "1e-3")
            for name, command in (("imported", ("import", self.folder)), ("trained", train)):
                with self.subTest(name, packed=packed):
                    ours, theirs = self.root / f"{name}{packed}", self.root / f"{name}{packed}-hf"
                    for done in (support.fovea(*command, "-o", ours), support.fovea("export", ours, "--to", "hf", "-o", theirs)):
                        self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertNotIn("quantization_config", (theirs / "config.json").read_text())
                    model = transformers.GptOssForCausalLM.from_pretrained(theirs, dtype=torch.float32).eval()
                    for folder in (ours, theirs):
                        self.assert_same(model, folder)

    def test_adapters_of_attention(self):
        self.save()
        text = self.root / "text.txt"
        text.write_text((support.ROOT / "docs/DESIGN.md").read_text(encoding="utf-8")[:4000])
        run, peft = self.root / "run", self.root / "peft"
        done = support.fovea("train", "lm", "--base", self.folder, "--lora", "2", "--train", text, "--block", "24", "--batch-size", "4",
                             "--stop-after", "3u", "-o", run)
        self.assertEqual(done.returncode, 0, done.stderr)
        done = support.fovea("export", run, "--to", "peft", "-o", peft)
        self.assertEqual(done.returncode, 0, done.stderr)
        names = load_file(peft / "adapter_model.safetensors")
        self.assertTrue(all("self_attn" in name for name in names), list(names))


if __name__ == "__main__":
    unittest.main()

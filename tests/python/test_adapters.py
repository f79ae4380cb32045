# SPDX-License-Identifier: Apache-2.0
"""Adapters that fovea trains, opened by PEFT: the loss of a text is that of fovea eval."""

import json
import pathlib
import subprocess
import tempfile
import unittest

try:
    import peft
    import torch
    import transformers
except ImportError as error:
    raise unittest.SkipTest(f"{error.name} is not installed: adapters are not opened by PEFT") from error

import support
from fovea._training import PROGRAM

TEXT = "the cat sat on the mat, and the dog ran. " * 40
OTHER = TEXT[::-1]  # for the adapters
SIZES = "--tokenizer byte --layers 2 --heads 4 --width 32 --block 64 --stop-after 100u --warmup 5 --lr 1e-2".split()
BASES = {"llama": "--position rotary --norm rms --activation swiglu --kv-heads 2".split(),
         "gpt2": "--bias --activation gelu-tanh".split()}


class AdaptersTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.text, self.other = self.folder / "text.txt", self.folder / "other.txt"
        self.text.write_text(TEXT)
        self.other.write_text(OTHER)

    def run_fovea(self, *words):
        done = subprocess.run([PROGRAM, *map(str, words), "--quiet"], capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return done.stdout

    def loss_by_peft(self, base, adapter, block):
        model = transformers.AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
        model = peft.PeftModel.from_pretrained(model, adapter).eval()
        ids = transformers.AutoTokenizer.from_pretrained(base)(OTHER, return_tensors="pt").input_ids
        total = 0.0
        with torch.no_grad():
            for begin in range(0, ids.shape[1] - 1, block):
                part = ids[:, begin:begin + block + 1]
                logits = model(part[:, :-1]).logits[0].double()
                total += torch.nn.functional.cross_entropy(logits, part[0, 1:], reduction="sum").item()
        return total / (ids.shape[1] - 1)

    def test_the_loss_is_the_same(self):
        for name, options in BASES.items():
            for more in (["--lora-alpha", 16], ["--lora-rs", "--lora-targets", "q,v" if name == "llama" else "c_attn"], ["--dora"]):
                with self.subTest(base=name, options=more):
                    own, base, run, out = (self.folder / f"{name}{part}{more[0]}" for part in ("own", "base", "run", "out"))
                    self.run_fovea("train", "lm", "--train", self.text, "-o", own, *SIZES, *options)
                    self.run_fovea("export", own, "-o", base)
                    self.run_fovea("train", "lm", "--base", base, "--train", self.other, "-o", run, "--lora", 4, *more,
                                   "--stop-after", "30u", "--lr", "1e-2", "--sequence-length", 32)
                    self.run_fovea("export", run, "--to", "peft", "-o", out)
                    before, ours = (json.loads(self.run_fovea("eval", model, "--test", self.other, "--json"))["loss"]
                                    for model in (base, run))
                    self.assertLess(ours, before - 0.5)
                    self.assertAlmostEqual(self.loss_by_peft(base, out, 64), ours, 5)

    def tensors(self, folder):
        return {name: torch.tensor(values) for name, values in support.read_safetensors(folder / "adapter_model.safetensors").items()}

    def test_the_updates_are_the_same(self):
        """One block of text, of which each update sees all: what is trained after 20 updates is what PEFT has trained with torch's AdamW.
        (A large epsilon, so that gradients which are almost 0 do not decide.)"""
        text = self.folder / "one.txt"
        text.write_text(OTHER[:65])
        recipe = ["--batch-size", 1, "--sequence-length", 64, "--valid-fraction", 0, "--warmup", 0, "--schedule", "constant", "--clip", 0,
                  "--weight-decay", 0, "--beta1", 0.9, "--beta2", 0.999, "--epsilon", 1e-3, "--lora", 3]
        for name, options in BASES.items():
            own, base = self.folder / f"{name}-own", self.folder / f"{name}-base"
            self.run_fovea("train", "lm", "--train", self.text, "-o", own, *SIZES, *options)
            self.run_fovea("export", own, "-o", base)
            for more in ([], ["--dora"]):
                with self.subTest(base=name, options=more):
                    for part, length in (("start", ["--stop-after", "1u", "--lr", "1e-30"]), ("end", ["--stop-after", "20u", "--lr", "1e-2"])):
                        run, out = self.folder / f"{name}{len(more)}-{part}", self.folder / f"{name}{len(more)}-{part}-peft"
                        self.run_fovea("train", "lm", "--base", base, "--train", text, "-o", run, *recipe, *length, *more)
                        self.run_fovea("export", run, "--to", "peft", "-o", out)
                    start, out = self.folder / f"{name}{len(more)}-start-peft", self.folder / f"{name}{len(more)}-end-peft"
                    model = transformers.AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
                    model = peft.PeftModel.from_pretrained(model, start, is_trainable=True).eval()
                    trained = [one for one in model.parameters() if one.requires_grad]
                    optimizer = torch.optim.AdamW(trained, lr=1e-2, eps=1e-3, weight_decay=0)
                    ids = transformers.AutoTokenizer.from_pretrained(base)(OTHER[:65], return_tensors="pt").input_ids
                    for _ in range(20):
                        optimizer.zero_grad()
                        logits = model(ids[:, :-1]).logits[0]
                        torch.nn.functional.cross_entropy(logits, ids[0, 1:]).backward()
                        optimizer.step()
                    theirs, ours, before = peft.get_peft_model_state_dict(model), self.tensors(out), self.tensors(start)
                    self.assertEqual(set(ours), set(theirs))
                    for key, value in theirs.items():
                        self.assertGreater((ours[key] - before[key]).abs().max().item(), 1e-3, key)
                        self.assertLess((ours[key] - value).abs().max().item(), 1e-5, key)
                    saved = self.folder / f"{name}{len(more)}-saved"
                    model.save_pretrained(saved)
                    with torch.no_grad():
                        loss = torch.nn.functional.cross_entropy(model(ids[:, :-1]).logits[0], ids[0, 1:]).item()
                    found = json.loads(self.run_fovea("eval", base, "--test", text, "--adapter", saved, "--json"))["loss"]
                    self.assertAlmostEqual(found, loss, 5)


if __name__ == "__main__":
    unittest.main()

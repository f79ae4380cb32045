#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fovea export: the files of a folder, what is refused, and what is replaced."""

import json
import random
import struct
import unittest

from support import CommandTest

SMALL = "--layers 1 --heads 2 --width 32 --block 16 --batch-size 4 --stop-after 4u --warmup 1 -q".split()
FILES = ["config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]
GEMMA1 = ["--embedding-scale", str(32 ** 0.5), *"--layers 3 --position rotary --norm rms --activation geglu-tanh".split()]
GEMMA = [*GEMMA1, "--norm-position", "sandwich", "--window", "5,0,5"]
GEMMA2 = [*GEMMA, "--softcap", "3", "--logit-softcap", "5"]
GEMMA3 = [*GEMMA, "--qk-norm", "--rope-base", "1000", "--rope-local-base", "30"]


def tensors_of(path):
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    return {name: (one["dtype"], one["shape"]) for name, one in header.items() if name != "__metadata__"}


class ExportTest(CommandTest):
    def train(self, *options, name="model"):
        text = self.folder / "text.txt"
        text.write_text("the quick brown fox jumps over the lazy dog\n" * 40, encoding="utf-8")
        self.succeed("train", "lm", "--train", text, "-o", self.folder / name, *SMALL, *options)
        return self.folder / name

    def test_a_folder_has_all_that_transformers_reads(self):
        model, output = self.train("--tokenizer", "byte"), self.folder / "out"
        done = json.loads(self.succeed("export", model, "-o", output, "--json").stdout)
        self.assertEqual(done["architecture"], "GPT2LMHeadModel")
        self.assertEqual(sorted(done["files"]), FILES)
        self.assertEqual(sorted(file.name for file in output.iterdir()), FILES)
        config = json.loads((output / "config.json").read_text())
        self.assertEqual((config["n_embd"], config["n_layer"], config["n_positions"], config["vocab_size"]), (32, 1, 16, 259))
        self.assertIsNone(config["eos_token_id"])  # blocks of text do not end
        tensors = tensors_of(output / "model.safetensors")
        self.assertEqual(tensors["transformer.h.0.attn.c_attn.weight"], ("F32", [32, 96]))
        self.assertNotIn("lm_head.weight", tensors)

    def test_the_type_of_the_weights(self):
        model = self.train()
        self.succeed("export", model, "-o", self.folder / "out", "--dtype", "bf16")
        self.assertEqual({dtype for dtype, _ in tensors_of(self.folder / "out/model.safetensors").values()}, {"BF16"})
        self.assertEqual(json.loads((self.folder / "out/config.json").read_text())["dtype"], "bfloat16")

    def test_lines_have_begin_and_end(self):
        self.succeed("export", self.train("--data", "lines"), "-o", self.folder / "out")
        config = json.loads((self.folder / "out/config.json").read_text())
        self.assertEqual((config["bos_token_id"], config["eos_token_id"]), (1, 2))

    def test_a_model_without_a_home_is_refused_before_anything_is_written(self):
        model = self.train("--position", "alibi")
        self.assert_error(self.run_fovea("export", model, "-o", self.folder / "out"), 4, "E0402",
                          "GPT2LMHeadModel, has --position learned")
        self.assertFalse((self.folder / "out").exists())

    def test_only_an_earlier_export_is_replaced(self):
        model, output = self.train(), self.folder / "out"
        self.succeed("export", model, "-o", output)
        self.assert_error(self.run_fovea("export", model, "-o", output), 2, "E0205")
        self.succeed("export", model, "-o", output, "--overwrite")
        for name in ("notes.txt", "notes.txt.tmp.12.0", "config.json.tmp"):
            (output / name).write_text("mine")
            self.assert_error(self.run_fovea("export", model, "-o", output, "--overwrite"), 2, name)
            (output / name).unlink()
        self.assert_error(self.run_fovea("export", model, "-o", model, "--overwrite"), 2, "the model itself")
        self.succeed("inspect", model, "--verify")
        linked = self.folder / "linked"
        linked.mkdir()
        (linked / "model.safetensors").symlink_to(model / "model.safetensors")
        self.assert_error(self.run_fovea("export", model, "-o", linked, "--overwrite"), 2, "E0205")
        self.succeed("inspect", model, "--verify")
        foreign = self.folder / "foreign"
        foreign.mkdir()
        (foreign / "config.json").write_text('{"model_type": "llama"}')
        self.assert_error(self.run_fovea("export", model, "-o", foreign, "--overwrite"), 2, "not from fovea export")
        self.assert_error(self.run_fovea("export", model, "-o", self.folder / "text.txt"), 2, "no folder")

    def test_an_export_that_was_killed_is_replaced(self):
        model, output = self.train(), self.folder / "out"
        output.mkdir()
        (output / "model.safetensors.tmp.12.3").write_text("half")
        self.assert_error(self.run_fovea("export", model, "-o", output), 2, "E0205")
        self.succeed("export", model, "-o", output, "--overwrite")
        self.assertEqual(list(output.glob("*.tmp.*")), [])

    def test_a_folder_is_a_model_with_the_same_text(self):
        for number, options in enumerate(([], "--position rotary --norm rms --activation swiglu --qk-norm --window 5".split(),
                                          GEMMA1, GEMMA2, GEMMA3)):
            with self.subTest(options=options):
                model = self.train("--tokenizer", "byte", *options, name=f"model{number}")
                out = self.folder / f"out{number}"
                self.succeed("export", model, "-o", out)
                for command in (("generate", "the ", "--greedy", "--max-tokens", "9"),
                                ("eval", "--test", self.folder / "text.txt", "--json")):
                    expected, read = (self.succeed(command[0], folder, *command[1:]).stdout for folder in (model, out))
                    if command[0] == "eval":
                        expected, read = (json.loads(text)["loss"] for text in (expected, read))
                        self.assertAlmostEqual(read, expected, places=6)
                    else:
                        self.assertEqual(read, expected)
                ids = self.succeed("tokenizer", "encode", out, "--ids", stdin="aé\n".encode()).stdout
                self.assertEqual(ids, b"100 198 172\n")
                self.assertEqual(self.succeed("tokenizer", "decode", out, "--ids", stdin=ids).stdout, "aé\n".encode())
                told = json.loads(self.succeed("inspect", out, "--json").stdout)
                self.assertEqual((told["kind"], told["metadata"]["vocab_size"]), ("hugging_face", 259))
                self.assertIn("whole", self.succeed("inspect", out, "--verify").stdout.decode())
                self.assertIn("max_position", self.succeed("inspect", self.folder / "out1").stdout.decode() if number else "max_position")

    def test_a_damaged_folder_is_named(self):
        model, out = self.train("--tokenizer", "byte"), self.folder / "out"
        self.succeed("export", model, "-o", out)
        whole = {name: (out / name).read_bytes() for name in FILES}
        for name, old, new, needle in (("config.json", b'"n_embd": 32', b'"n_embd": 16', "wte"),
                                       ("config.json", b'"n_embd": 32', b'"n_embd": 48', "out: a model of 1 layers"),
                                       ("config.json", b'"n_layer": 1', b'"n_layer": 100000000', "n_layer"),
                                       ("config.json", b'"n_embd": 32', b'"n_embd": -1', "n_embd"),
                                       ("config.json", b"{", b"[", "config.json"),
                                       ("tokenizer.json", b'"BPE"', b'"Unigram"', "vocab"),
                                       ("tokenizer.json", b"{", b"", "tokenizer.json"),
                                       ("model.safetensors", b"transformer.h.0.ln_1.bias", b"transformer.h.7.ln_1.bias", "ln_1.bias")):
            with self.subTest(new):
                self.assertIn(old, whole[name])
                (out / name).write_bytes(whole[name].replace(old, new, 1))
                done = self.run_fovea("generate", out, "a")
                (out / name).write_bytes(whole[name])
                self.assert_error(done, 4, needle)
        (out / "tokenizer.json").unlink()
        self.assert_error(self.run_fovea("generate", out, "a"), 4, "tokenizer.json")

    def test_a_gguf_file_is_a_model_with_the_same_text(self):
        model = self.train("--tokenizer", "byte", "--position", "rotary", "--norm", "rms", "--activation", "swiglu")
        file = self.folder / "model.gguf"
        done = json.loads(self.succeed("export", model, "--to", "gguf", "-o", file, "--json").stdout)
        self.assertEqual((done["architecture"], done["files"]), ("llama", []))
        self.assertEqual(self.succeed("generate", file, "the ", "--greedy", "--max-tokens", "9").stdout,
                         self.succeed("generate", model, "the ", "--greedy", "--max-tokens", "9").stdout)
        self.assert_error(self.run_fovea("export", model, "--to", "gguf", "-o", file), 2, "E0205")
        self.succeed("export", model, "--to", "gguf", "-o", file, "--overwrite", "--dtype", "q8_0")
        self.assert_error(self.run_fovea("export", model, "--to", "gguf", "-o", self.folder / "text.txt", "--overwrite"), 2, "E0205")
        self.assert_error(self.run_fovea("export", file, "-o", self.folder / "out"), 4, "E0402")

    def test_a_gguf_file_of_gemma(self):
        for name, options in (("gemma", GEMMA1), ("gemma2", GEMMA2), ("gemma3", GEMMA3)):
            with self.subTest(name):
                model = self.train("--tokenizer", "byte", *options, name=name)
                file = self.folder / f"{name}.gguf"
                done = json.loads(self.succeed("export", model, "--to", "gguf", "-o", file, "--json").stdout)
                self.assertEqual(done["architecture"], name)
                prompt = ("the weights of the ", "--greedy", "--max-tokens", "9")
                self.assertEqual(self.succeed("generate", file, *prompt).stdout, self.succeed("generate", model, *prompt).stdout)

    def test_what_llama_cpp_computes_in_another_way_is_refused(self):
        for number, (options, word) in enumerate(((["--tokenizer", "byte"], "activation"),
                                                  (["--lower", "--activation", "gelu-tanh"], "--lower"),
                                                  (["--tokenizer", "word", "--activation", "gelu-tanh"], "word"))):
            with self.subTest(word):
                model = self.train(*options, name=f"model{number}")
                self.assert_error(self.run_fovea("export", model, "--to", "gguf", "-o", self.folder / "x.gguf"), 4, "E0402", word)
                self.assertFalse((self.folder / "x.gguf").exists())

    def test_bad_calls(self):
        model = self.train()
        self.assert_error(self.run_fovea("export", model), 2, "--output")
        self.assert_error(self.run_fovea("export", model, "-o", self.folder / "out", "--to", "onnx"), 2, "E0203")
        self.assert_error(self.run_fovea("export", model, "-o", self.folder / "out", "--dtype", "q8_0"), 2, "E0203", "f32 or bf16")
        self.assert_error(self.run_fovea("export", model, "-o", self.folder / "out", "--dtype", "q9"), 2, "E0203")
        self.assert_error(self.run_fovea("export", self.folder, "-o", self.folder / "out"), 4, "E0403")


class CompactTest(CommandTest):
    def train(self, *options, name="model"):
        draw = random.Random(1)
        words = [f"word{n}" for n in range(400)]
        rows = []
        for n in range(400):
            label = ("good", "bad", "odd")[n % 3]
            text = [*draw.sample(words, 12), label * 2, draw.choice(["good", "bad", "odd"])]
            rows.append(f"{label}\t{' '.join(text)}\n")
        self.table = self.folder / "texts.tsv"
        self.table.write_text("".join(rows), encoding="utf-8")
        self.succeed("train", "classify", "--train", self.table, "-o", self.folder / name, "-q", *options)
        return self.folder / name

    def accuracy(self, model):
        return json.loads(self.succeed("eval", model, "--test", self.table, "--json").stdout)["accuracy"]["value"]

    def test_a_compact_model_is_used_like_any(self):
        model, small = self.train("--class-weights", "balanced"), self.folder / "small"
        done = json.loads(self.succeed("export", model, "--to", "compact", "-o", small, "--size", "0.02",
                                       "--json").stdout)
        size = (small / "model.safetensors").stat().st_size
        self.assertEqual(done["bytes"], size)
        self.assertLess(size, 20_000)
        self.assertGreater(size, 15_000)  # as many n-grams as there is room for
        self.assertLess(done["ngrams"], done["ngrams_before"])
        self.assertLess(size, (model / "model.safetensors").stat().st_size / 4)
        self.assertGreater(self.accuracy(small), self.accuracy(model) - 0.01)
        self.succeed("inspect", small, "--verify")
        said = self.succeed("classify", small, "--top", "3", stdin=b"word1 goodgood\n").stdout.decode().split("\t")
        self.assertEqual((said[0], len(said)), ("good", 6))
        explained = json.loads(self.succeed("explain", small, "word1 goodgood", "--json").stdout)["saliency"]
        self.assertAlmostEqual(sum(explained["values"]) + explained["bias"], explained["value"], places=4)
        self.assertGreater(explained["values"][1], explained["values"][0])
        self.assert_error(self.run_fovea("export", model, "--to", "compact", "-o", small), 2, "E0205")
        self.succeed("export", model, "--to", "compact", "-o", small, "--size", "0.01", "--overwrite")
        self.assertLess((small / "model.safetensors").stat().st_size, 10_000)

    def test_what_cannot_become_compact_is_refused(self):
        model, small = self.train("--model", "bag", "--stop-after", "4u", "--warmup", "1"), self.folder / "small"
        self.assert_error(self.run_fovea("export", model, "--to", "compact", "-o", small), 4, "E0402",
                          "the model is bag, and only linear classifiers become compact")
        self.assertFalse(small.exists())
        linear = self.train(name="linear")
        self.assert_error(self.run_fovea("export", linear, "-o", small), 4, "E0402")
        for words, message in ((("--to", "compact", "--dtype", "bf16"), "--dtype has no effect with --to compact"),
                               (("--size", "1"), "--size has no effect with --to hf"),
                               (("--to", "compact", "--size", "0"), "E0203"),
                               (("--to", "compact", "--size", "0.0001"), "no room")):
            self.assert_error(self.run_fovea("export", linear, "-o", small, *words), 2, message)


if __name__ == "__main__":
    unittest.main()

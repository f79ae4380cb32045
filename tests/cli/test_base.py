#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trainings that begin from a model (--base), and folders that are made of models from elsewhere (import)."""

import base64
import io
import json
import random
import shutil
import struct
import subprocess
import unittest
import zipfile

from forged import forge, forge_json
from gguf_support import CONTEXT, F32, STRING, U32, gguf
from support import FOVEA, SMALL, CommandTest

FEW = ["--batch-size", 4, "--sequence-length", 16, "--threads", 2]


def tensors_of(path):
    """The bytes of each tensor of a safetensors file."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    begin = 8 + size
    return {name: data[begin + one["data_offsets"][0]:begin + one["data_offsets"][1]] for name, one in header.items()}


def write_safetensors(path, shapes, seed):
    """Float32 tensors of random numbers."""
    rng, header, data = random.Random(seed), {}, b""
    for name, shape in shapes.items():
        values = struct.pack(f"<{shape[0] * shape[1]}f", *(rng.gauss(0, 1) for _ in range(shape[0] * shape[1])))
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def tokenizer_text(archive):
    """A tokenizer.txt that holds an archive (docs/formats.md)."""
    lines = ["fovea-tokenizer 1", "kind pretrained", f"model {len(archive)}"]
    lines += [base64.b64encode(archive[at:at + 72]).decode() for at in range(0, len(archive), 72)]
    text = "".join(line + "\n" for line in lines)
    checksum = 0xcbf29ce484222325
    for byte in text.encode():
        checksum = (checksum ^ byte) * 0x100000001b3 % 2**64
    return text + f"checksum {checksum:016x}\n"


class BaseTest(CommandTest):
    def foreign(self, name="m.gguf", **changed):
        path = self.folder / name
        path.write_bytes(gguf(**changed))
        return path

    def begin(self, base, output, *more, **options):
        return self.succeed("train", "lm", "--base", base, "--train", self.text, "-o", output, *FEW, *more, **options)

    def loss(self, model, *more):
        return json.loads(self.succeed("eval", model, "--test", self.text, "--json", *more).stdout)["loss"]

    def fails(self, status, needle, *args):
        self.assert_error(self.run_fovea(*args), status, needle)


class FromGguf(BaseTest):
    def test_begins_where_the_model_is_and_gets_better(self):
        base, run = self.foreign(), self.folder / "run"
        before = self.loss(base)
        self.begin(base, run, "--stop-after", "60u", "--lr", "1e-2")
        self.assertLess(self.loss(run), before - 0.1)
        first = self.folder / "first"  # one update of no size: the weights are those of the base
        self.begin(base, first, "--stop-after", "1u", "--lr", "1e-30", "--weight-decay", 0)
        self.assertAlmostEqual(self.loss(first), before, 6)

    def test_keeps_layers_tokens_and_template(self):
        base, run = self.foreign(llama_context_length=(U32, 400)), self.folder / "run"
        self.begin(base, run, "--stop-after", "3u")
        config = json.loads((run / "config.json").read_text())
        self.assertEqual((config["model"]["layers"], config["model"]["kv_heads"], config["model"]["block"]), (2, 2, 400))
        self.assertEqual(config["text"]["sequence_length"], 16)
        base.unlink()  # the folder is whole without it
        said = json.loads(self.succeed("generate", run, "hello", "--chat", "--json", "--max-tokens", 5).stdout)
        self.assertEqual(said["message"], "hello")
        self.assertIn("parameters", self.succeed("inspect", run).stdout.decode())

    def test_goes_on_to_the_same_bits_without_the_base(self):
        base, run, again = self.foreign(), self.folder / "run", self.folder / "again"
        self.begin(base, run, "--stop-after", "8u", "--save-every", "4u", "--keep", 3)
        base.unlink()
        shutil.copytree(run, again)
        self.succeed("train", "lm", f"--resume={again}/checkpoints/step-000004", "--overwrite")
        self.assertEqual((again / "model.safetensors").read_bytes(), (run / "model.safetensors").read_bytes())

    def test_a_run_without_a_checkpoint_begins_from_the_base_again(self):
        base, run, again = self.foreign(), self.folder / "run", self.folder / "again"
        self.begin(base, run, "--stop-after", "8u")
        shutil.copytree(run, again)
        shutil.rmtree(again / "checkpoints")
        self.succeed("train", "lm", "--resume", "-o", again)
        self.assertEqual((again / "model.safetensors").read_bytes(), (run / "model.safetensors").read_bytes())

    def test_frozen_parts_stay_as_they_are(self):
        base, run = self.foreign(), self.folder / "run"
        self.succeed("import", base, "-o", self.folder / "as-it-was")
        self.begin(base, run, "--stop-after", "4u", "--freeze", "embeddings,0")
        was, now = (tensors_of(folder / "model.safetensors") for folder in (self.folder / "as-it-was", run))
        kept = {name for name in was if was[name] == now[name]}
        self.assertEqual(kept, {name for name in was if name.startswith(("embedding.", "blocks.0."))})
        again = self.folder / "again"  # resuming keeps them, too
        shutil.copytree(run, again)
        self.succeed("train", "lm", "--resume", "-o", again, "--stop-after", "8u")
        later = tensors_of(again / "model.safetensors")
        self.assertEqual({name for name in was if was[name] == later[name]}, kept)
        for wrong in ("2", "embedding", "1-0", "0,,1"):  # and where nothing is left to train, below
            self.fails(2, "--freeze: expected embeddings, or layers from 0 to 1", "train", "lm", "--base", base,
                       "--train", self.text, "-o", self.folder / "x", "--freeze", wrong)
        self.fails(2, "--freeze", "train", "lm", "--train", self.text, "-o", self.folder / "x", "--freeze", "0")

    def test_frozen_layers_of_other_models(self):
        own, run = self.folder / "own", self.folder / "run"
        self.succeed("train", "lm", "--train", self.text, "-o", own, "--model", "encoder", "--encoder", "conv3,lstm",
                     "--width", 16, "--block", 16, "--stop-after", "2u")
        self.begin(own, run, "--stop-after", "4u", "--freeze", "1")
        was, now = (tensors_of(folder / "model.safetensors") for folder in (own, run))
        self.assertEqual({name for name in was if was[name] == now[name]},
                         {name for name in was if name.startswith("encoder.1.")})
        post = self.folder / "post"
        self.train(post, "--stop-after", "2u", "--norm-position", "post")
        self.fails(2, "nothing is left to train", "train", "lm", "--base", post, "--train", self.text, "-o",
                   self.folder / "x", "--freeze", "embeddings,0-1")

    def test_defaults_are_those_of_a_model_that_is_trained_already(self):
        base = self.foreign(llama_context_length=(U32, 4096))
        shown = self.succeed("train", "lm", "--base", base, "--train", self.text, "--dump-config").stdout.decode()
        for line in ("lr = 0.0001", "batch_size = 4", "sequence_length = 512", "stop_after = '1e'", "block = 4096"):
            self.assertIn(line, shown)

    def test_what_does_not_fit_is_named(self):
        base = self.foreign()
        train = ["train", "lm", "--base", base, "--train", self.text, "-o", self.folder / "run"]
        self.fails(2, "--layers: ", *train, "--layers", 6)
        self.fails(2, "--tokenizer: ", *train, "--tokenizer", "char")
        self.fails(2, f"--block {CONTEXT + 1}", *train, "--block", CONTEXT + 1)
        self.fails(2, "--sequence-length", *train, "--sequence-length", CONTEXT + 1)
        self.fails(4, "nowhere", *train[:3], self.folder / "nowhere", *train[4:])
        self.assertFalse((self.folder / "run").exists())
        self.succeed(*train, "--layers", 2, "--stop-after", "1u", "--dropout", 0.1, *FEW)  # what the base has is no error


class Adapters(BaseTest):
    def test_train_resume_and_use(self):
        base, run, again = self.foreign(llama_context_length=(U32, 400)), self.folder / "run", self.folder / "again"
        before = self.loss(base)
        self.begin(base, run, "--lora", 2, "--stop-after", "40u", "--save-every", "20u", "--keep", 3, "--lr", "2e-2")
        self.assertLess(self.loss(run), before - 0.05)
        tensors = tensors_of(run / "model.safetensors")
        self.assertEqual(len(tensors), 2 * 7 * 2)  # layers, products of each, A and B
        name = "base_model.model.model.layers.1.self_attn.v_proj.lora_B.weight"
        self.assertEqual(len(tensors[name]), 8 * 2 * 4)
        self.assertLess((run / "checkpoints/step-000040/model.safetensors").stat().st_size, 20000)
        self.succeed("generate", run, "hello", "--chat", "--max-tokens", 5)
        self.assertIn("whole", self.succeed("inspect", run, "--verify").stdout.decode())
        self.succeed("inspect", run)
        shutil.copytree(run, again)
        self.succeed("train", "lm", f"--resume={again}/checkpoints/step-000020", "--overwrite")
        self.assertEqual((again / "model.safetensors").read_bytes(), (run / "model.safetensors").read_bytes())
        threads = self.folder / "threads"
        self.begin(base, threads, "--lora", 2, "--stop-after", "40u", "--save-every", "20u", "--keep", 3, "--lr", "2e-2",
                   "--threads", 1)
        self.assertEqual(tensors_of(threads / "model.safetensors"), tensors)

    def test_no_update_is_the_base(self):
        base, run = self.foreign(), self.folder / "run"
        self.begin(base, run, "--lora", 4, "--lora-targets", "q,v", "--stop-after", "1u", "--lr", "1e-30", "--weight-decay", 0)
        self.assertAlmostEqual(self.loss(run), self.loss(base), 6)
        self.assertEqual({name.split(".")[-3] for name in tensors_of(run / "model.safetensors")}, {"q_proj", "v_proj"})

    def test_export(self):
        base, run, peft, whole = self.foreign(), self.folder / "run", self.folder / "peft", self.folder / "whole"
        self.begin(base, run, "--lora", 2, "--lora-alpha", 8, "--lora-rs", "--stop-after", "2u")
        self.succeed("export", run, "--to", "peft", "-o", peft)
        config = json.loads((peft / "adapter_config.json").read_text())
        self.assertEqual((config["r"], config["lora_alpha"], config["use_rslora"], config["peft_type"]), (2, 8, True, "LORA"))
        self.assertEqual(config["target_modules"],
                         ["down_proj", "gate_proj", "k_proj", "o_proj", "q_proj", "up_proj", "v_proj"])
        self.assertEqual(tensors_of(peft / "adapter_model.safetensors"), tensors_of(run / "model.safetensors"))
        self.begin(base, whole, "--stop-after", "1u")
        self.fails(4, "holds no adapters", "export", whole, "--to", "peft", "-o", self.folder / "x")
        self.fails(4, "holds no adapters", "export", whole, "--to", "gguf-adapter", "-o", self.folder / "x.gguf")

    def test_a_file_for_llama_cpp(self):
        base, run, file = self.foreign(), self.folder / "run", self.folder / "adapters.gguf"
        self.begin(base, run, "--lora", 2, "--lora-alpha", 6, "--lora-rs", "--stop-after", "5u", "--lr", "1e-2")
        self.succeed("export", run, "--to", "gguf-adapter", "-o", file)
        found = json.loads(self.succeed("inspect", file, "--json").stdout)
        metadata = found["metadata"]
        self.assertEqual([metadata[key] for key in ("general.type", "general.architecture", "adapter.type")],
                         ["adapter", "llama", "lora"])
        self.assertAlmostEqual(metadata["adapter.lora.alpha"], 6 * 2 ** 0.5, 5)  # which it divides by the rank
        ours, data = tensors_of(run / "model.safetensors"), file.read_bytes()
        layer = "base_model.model.model.layers.1."
        for theirs, module in (("attn_v", "self_attn.v_proj"), ("ffn_down", "mlp.down_proj")):
            for part in "ab":
                self.assertIn(f"blk.1.{theirs}.weight.lora_{part}", json.dumps(found))
                self.assertIn(ours[f"{layer}{module}.lora_{part.upper()}.weight"], data)
        self.assertNotIn(ours[f"{layer}self_attn.q_proj.lora_B.weight"], data)  # llama.cpp pairs columns otherwise
        rows = [ours[f"{layer}self_attn.q_proj.lora_B.weight"][at:at + 8] for at in range(0, 16 * 8, 8)]
        order = [4 * head + row for head in range(4) for row in (0, 2, 1, 3)]
        self.assertIn(b"".join(rows[row] for row in order), data)

    def test_merged_into_one_model_and_trained_again(self):
        base, run, whole, again = self.foreign(), self.folder / "run", self.folder / "whole", self.folder / "again"
        self.begin(base, run, "--lora", 2, "--stop-after", "20u", "--lr", "2e-2")
        self.succeed("import", run, "-o", whole)
        self.begin(run, again, "--lora", 2, "--stop-after", "1u", "--lr", "1e-30", "--weight-decay", 0)
        self.assertAlmostEqual(self.loss(again), self.loss(run), 6)  # adapters on adapters
        before = self.loss(run)
        base.unlink()
        self.assertAlmostEqual(self.loss(whole), before, 6)
        self.succeed("generate", whole, "the", "--max-tokens", 3)
        self.fails(4, "a model of fovea already", "import", whole, "-o", self.folder / "x")

    def test_all_weights_of_a_base_of_adapters_are_trained(self):
        base, run, full, again = self.foreign(), self.folder / "run", self.folder / "full", self.folder / "again"
        self.begin(base, run, "--lora", 2, "--stop-after", "5u")
        self.begin(run, full, "--stop-after", "20u", "--save-every", "10u", "--keep", 3, "--lr", "1e-2")
        self.assertLess(self.loss(full), self.loss(run) - 0.05)
        shutil.copytree(full, again)
        self.succeed("train", "lm", f"--resume={again}/checkpoints/step-000010", "--overwrite")
        self.assertEqual((again / "model.safetensors").read_bytes(), (full / "model.safetensors").read_bytes())

    def test_what_overwrite_does_not_remove(self):
        own, adapters, peft = self.folder / "own", self.folder / "adapters", self.folder / "peft"
        self.train(own, "--stop-after", "2u", "--bias", "--activation", "gelu-tanh")
        kept = (own / "model.safetensors").read_bytes()
        for base in (own, own / "checkpoints/step-000002"):
            self.fails(2, "lies in the folder that --overwrite replaces", "train", "lm", "--base", base, "--train",
                       self.text, "-o", own, "--overwrite", *FEW)
        self.assertEqual((own / "model.safetensors").read_bytes(), kept)
        self.begin(own, adapters, "--lora", 2, "--stop-after", "2u")
        self.fails(2, "lies in the folder that --overwrite replaces", "train", "lm", "--base", adapters, "--train",
                   self.text, "-o", own, "--overwrite", *FEW)  # own is the base of its base
        peft.mkdir()
        (peft / "adapter_model.safetensors").write_bytes(b"of somebody")
        (peft / "adapter_config.json").write_text("{}")
        self.fails(2, "not from fovea export", "export", adapters, "--to", "peft", "-o", peft, "--overwrite")
        self.assertEqual((peft / "adapter_model.safetensors").read_bytes(), b"of somebody")
        mine = self.folder / "mine"
        self.succeed("export", adapters, "--to", "peft", "-o", mine)
        self.succeed("export", adapters, "--to", "peft", "-o", mine, "--overwrite")

    def test_weights_stay_as_they_lie(self):
        base, run, threads = self.foreign(brain=True), self.folder / "run", self.folder / "threads"
        train = ["--lora", 2, "--stop-after", "30u", "--save-every", "10u", "--keep", 3, "--lr", "2e-2"]
        self.begin(base, run, *train)
        self.assertLess(self.loss(run), self.loss(base) - 0.05)
        self.begin(base, threads, *train, "--threads", 1)
        self.assertEqual(tensors_of(threads / "model.safetensors"), tensors_of(run / "model.safetensors"))
        again, whole = self.folder / "again", self.folder / "whole"
        shutil.copytree(run, again)
        self.succeed("train", "lm", f"--resume={again}/checkpoints/step-000010", "--overwrite")
        self.assertEqual((again / "model.safetensors").read_bytes(), (run / "model.safetensors").read_bytes())
        self.succeed("import", run, "-o", whole)  # merged, in float32
        self.assertAlmostEqual(self.loss(whole), self.loss(run), 5)

    def test_given_to_a_model_that_is_loaded_without_them(self):
        for brain in (False, True):
            base, run, peft = self.foreign(brain=brain), self.folder / f"run{brain}", self.folder / f"peft{brain}"
            other = self.folder / f"other{brain}"
            self.begin(base, run, "--lora", 2, "--lora-rs", "--stop-after", "20u", "--lr", "2e-2")
            self.begin(base, other, "--lora", 3, "--lora-targets", "q,down", "--stop-after", "20u", "--lr", "2e-2")
            self.succeed("export", run, "--to", "peft", "-o", peft)
            for folder in (run, peft):
                self.assertAlmostEqual(self.loss(base, "--adapter", folder), self.loss(run), 6)
                self.assertAlmostEqual(self.loss(base, "--adapter", f"{folder}=0"), self.loss(base), 6)
            said = [self.succeed("generate", *words, "--greedy", "--max-tokens", 8).stdout
                    for words in ((run, "the"), (base, "the", "--adapter", peft))]
            self.assertEqual(*said)
            shown = [self.last_object(self.succeed("explain", *words, "--json"))["prediction"]
                     for words in ((run, "the"), (base, "the", "--adapter", peft), (base, "the"))]
            self.assertEqual([one["label"] for one in shown[0]], [one["label"] for one in shown[1]])
            for a, b in zip(*shown[:2], strict=True):
                self.assertAlmostEqual(a["probability"], b["probability"], 5)
            self.assertNotEqual(shown[1], shown[2])
            twice, both = self.folder / f"twice{brain}", self.loss(base, "--adapter", run, f"{other}=-0.5")
            self.assertNotAlmostEqual(both, self.loss(run), 4)
            self.succeed("import", base, "--adapter", f"{run}=0.5", f"{peft}=0.5", f"{other}=-0.5", "-o", twice)
            self.assertAlmostEqual(self.loss(twice), both, 5)
            self.assertAlmostEqual(self.loss(run, "--adapter", f"{other}=-0.5"), both, 5)
            for folder in (run, peft):
                self.fails(4, "has these adapters already, and they would count twice", "eval", run, "--test", self.text, "--adapter", folder)

    def test_adapters_of_the_output_count_in_the_loss(self):
        own, base, peft = self.folder / "own", self.folder / "base", self.folder / "peft"
        self.train(own, "--stop-after", "2u", "--no-tie", "--position", "rotary", "--norm", "rms", "--activation", "swiglu",
                   "--width", 32)
        self.succeed("export", own, "-o", base, "--dtype", "bf16")
        run = self.folder / "run"
        self.begin(base, run, "--lora", 1, "--stop-after", "1u")
        self.succeed("export", run, "--to", "peft", "-o", peft)
        vocabulary = json.loads((base / "config.json").read_text())["vocab_size"]
        prefix = "base_model.model.lm_head.lora_"
        write_safetensors(peft / "adapter_model.safetensors",
                          {f"{prefix}A.weight": (1, 32), f"{prefix}B.weight": (vocabulary, 1)}, seed=3)
        plain, whole = self.loss(base), self.folder / "whole"
        adapted = self.loss(base, "--adapter", peft)
        self.assertGreater(abs(adapted - plain), 0.01)
        self.succeed("import", base, "--adapter", peft, "-o", whole)
        self.assertAlmostEqual(self.loss(whole), adapted, 4)
        table = {"base_model.model.model.embed_tokens.lora_A.weight": (1, 32),
                 "base_model.model.model.embed_tokens.lora_B.weight": (vocabulary, 1)}
        write_safetensors(peft / "adapter_model.safetensors", table, seed=3)
        self.fails(4, "which is a table and no product", "eval", base, "--test", self.text, "--adapter", peft)

    def test_adapters_in_halves_and_adapters_of_no_numbers(self):
        base, run, peft = self.foreign(), self.folder / "run", self.folder / "peft"
        self.begin(base, run, "--lora", 2, "--stop-after", "5u", "--lr", "1e-2")
        self.succeed("export", run, "--to", "peft", "-o", peft)
        file = peft / "adapter_model.safetensors"
        tensors = {name: struct.unpack(f"<{len(data) // 4}f", data) for name, data in tensors_of(file).items()}
        shapes = {name: (2, len(values) // 2) if "lora_A" in name else (len(values) // 2, 2) for name, values in tensors.items()}

        def store(kind, code, change=lambda values: values):
            header, data = {}, b""
            for name, values in tensors.items():
                packed = struct.pack(f"<{len(values)}{code}", *change(values))
                header[name] = {"dtype": kind, "shape": shapes[name], "data_offsets": [len(data), len(data) + len(packed)]}
                data += packed
            text = json.dumps(header).encode()
            file.write_bytes(len(text).to_bytes(8, "little") + text + data)

        store("F16", "e")
        self.assertAlmostEqual(self.loss(base, "--adapter", peft), self.loss(run), 3)
        store("F32", "f", lambda values: (float("nan"), *values[1:]))
        self.fails(4, "is not finite", "import", base, "--adapter", peft, "-o", self.folder / "x")
        self.assertFalse((self.folder / "x").exists())
        write_safetensors(file, {}, seed=1)
        self.fails(4, "no tensors", "generate", base, "a", "--adapter", peft)

    def test_a_result_says_which_adapters_it_has(self):
        base, run = self.foreign(), self.folder / "run"
        self.begin(base, run, "--lora", 2, "--stop-after", "1u")
        alone, adapted, half = (json.loads(self.succeed("eval", base, "--test", self.text, "--json", *more).stdout)
                                for more in ([], ["--adapter", run], ["--adapter", f"{run}=0.5"]))
        self.assertNotIn("adapters", alone)
        self.assertEqual(adapted["adapters"], [str(run)])
        self.assertEqual(len({alone["model"], adapted["model"], half["model"]}), 3)

    def test_adapters_that_do_not_fit_are_named(self):
        base, run, peft = self.foreign(), self.folder / "run", self.folder / "peft"
        self.begin(base, run, "--lora", 2, "--stop-after", "1u")
        self.succeed("export", run, "--to", "peft", "-o", peft)
        other = self.foreign("other.gguf", seed=2)
        self.fails(4, "adapters of another model than", "generate", other, "a", "--adapter", run)
        self.fails(4, "no such folder", "generate", base, "a", "--adapter", self.folder / "nowhere")
        self.fails(4, "a file, no folder", "generate", base, "a", "--adapter", other)
        self.fails(2, "must be from -1000 to 1000", "generate", base, "a", "--adapter", f"{run}=inf")
        shutil.copytree(run, self.folder / "x=2")  # a folder may be called so
        self.succeed("generate", base, "a", "--max-tokens", 1, "--adapter", self.folder / "x=2")
        own = self.folder / "own"
        self.train(own, "--stop-after", "1u", "--bias", "--activation", "gelu-tanh")
        self.fails(4, "a whole model, not adapters", "eval", base, "--test", self.text, "--adapter", own)
        self.fails(4, "which", "eval", own, "--test", self.text, "--adapter", peft)
        config = json.loads((peft / "adapter_config.json").read_text())
        self.fails(4, "adapters of PEFT, without the model", "generate", peft, "a")
        self.fails(4, "adapters of PEFT, without the model", "import", peft, "-o", self.folder / "x")
        for change, words in (({"use_dora": True}, "lora_magnitude"), ({"peft_type": "IA3"}, "peft_type"),
                              ({"rank_pattern": {"q_proj": 4}}, "rank_pattern"), ({"bias": "all"}, "bias"),
                              ({"r": 3}, "lora_A"), ({"r": 0}, "'r' is 0"), ({"modules_to_save": ["lm_head"]}, "modules_to_save"),
                              ({"init_lora_weights": "pissa"}, "init_lora_weights"), ({"r": 60000}, "must be")):
            (peft / "adapter_config.json").write_text(json.dumps({**config, **change}))
            self.fails(4, words, "generate", base, "a", "--adapter", peft)

    def test_an_export_does_not_replace_the_base(self):
        base, run = self.foreign(), self.folder / "run"
        kept = base.read_bytes()
        self.begin(base, run, "--lora", 2, "--stop-after", "1u")
        self.fails(2, "is the model that", "export", run, "--to", "gguf", "-o", base, "--overwrite")
        self.assertEqual(base.read_bytes(), kept)

    def test_of_a_model_of_fovea(self):
        own, run = self.folder / "own", self.folder / "run"
        self.train(own, "--stop-after", "2u", "--bias", "--activation", "gelu-tanh")  # a GPT-2
        self.begin(own, run, "--lora", 2, "--stop-after", "30u", "--lr", "1e-2")
        self.assertLess(self.loss(run), self.loss(own))
        self.assertIn("base_model.model.transformer.h.1.mlp.c_fc.lora_A.weight", tensors_of(run / "model.safetensors"))

    def test_the_base_must_be_the_same(self):
        base, run = self.foreign(), self.folder / "run"
        self.begin(base, run, "--lora", 2, "--stop-after", "2u")
        data = bytearray(base.read_bytes())
        data[-5] ^= 1
        base.write_bytes(data)
        self.fails(4, "not the model that the adapters were trained on", "generate", run, "a")
        self.fails(4, "not the model that the adapters were trained on", "train", "lm", "--resume", "-o", run,
                   "--stop-after", "4u")
        base.unlink()
        self.fails(4, "the base of these adapters is not there", "generate", run, "a")

    def test_a_folder_of_a_stranger(self):
        base, run = self.foreign(), self.folder / "run"
        self.begin(base, run, "--lora", 2, "--stop-after", "1u")
        for change in ({"lora": 400000000}, {"lora": -5}, {"lora": 3}, {"lora_targets": "q"}):
            forge_json(run, "config.json", lambda config, change=change: config["from"].update(change))
            self.fails(4, "config.json", "generate", run, "a")
            self.fails(4, "config.json", "export", run, "--to", "peft", "-o", self.folder / "peft")
        forge_json(run, "config.json", lambda config: config["from"].update(lora=2, lora_targets="all", base=str(run)))
        self.fails(4, "adapters on adapters without end", "generate", run, "a")

    def test_what_does_not_fit_is_named(self):
        base = self.foreign()
        train = ["train", "lm", "--base", base, "--train", self.text, "-o", self.folder / "run", *FEW]
        self.fails(2, "--lora-targets: expected names, or all", *train, "--lora", 2, "--lora-targets", "all,q")
        self.fails(2, "the model has no products 'c_attn'; it has down_proj, gate_proj", *train, "--lora", 2,
                   "--lora-targets", "q,c_attn")
        self.fails(2, "--lora", *train, "--lora", -1)
        self.fails(2, "--lora-alpha", *train, "--lora-alpha", 4)
        self.fails(2, "--lora", "train", "lm", "--train", self.text, "-o", self.folder / "x", "--lora", 2)
        self.fails(2, "--freeze", *train, "--lora", 2, "--freeze", "0")


class Export(BaseTest):
    def test_a_gguf_file_becomes_one(self):
        base = self.foreign(llama_context_length=(U32, 400), general__file_type=(U32, 3))
        for number, more in enumerate(([], ["--lora", 2])):
            run, out = self.folder / f"run{number}", self.folder / f"{number}.gguf"
            self.begin(base, run, "--stop-after", "5u", "--lr", "1e-2", *more)
            self.succeed("export", run, "--to", "gguf", "-o", out)
            self.assertAlmostEqual(self.loss(out), self.loss(run), 6)
            self.succeed("generate", out, "hello", "--chat", "--max-tokens", 3)
            found = json.loads(self.succeed("inspect", out, "--json").stdout)
            self.assertEqual(found["metadata"]["llama.context_length"], 400)
            self.assertEqual(found["metadata"]["general.file_type"], 0)
            self.fails(4, "began from a GGUF file", "export", run, "-o", self.folder / "hf")

    def test_divisors_of_positions_are_kept(self):
        base, run, out = self.foreign(llama__rope__scaling__factor=(F32, 4.0)), self.folder / "run", self.folder / "out.gguf"
        self.begin(base, run, "--stop-after", "1u", "--lr", "1e-30", "--weight-decay", 0)
        self.succeed("export", run, "--to", "gguf", "-o", out)
        self.assertAlmostEqual(self.loss(run), self.loss(base), 6)
        self.assertAlmostEqual(self.loss(out), self.loss(base), 6)

    def test_gemma_in_both_forms(self):
        own = self.folder / "own"
        self.train(own, "--stop-after", "2u", "--tokenizer", "byte", "--layers", 2, "--position", "rotary", "--norm", "rms",
                   "--norm-position", "sandwich", "--activation", "geglu-tanh", "--embedding-scale", 32 ** 0.5, "--width", 32,
                   "--heads", 2, "--window", "5,0", "--rope-local-base", 30, "--qk-norm")
        for form in ("hf", "gguf"):
            base = self.folder / f"base-{form}"
            self.succeed("export", own, "--to", form, "-o", base)
            self.assertAlmostEqual(self.loss(base), self.loss(own), 5)
            for more in ((), ("--lora", 2)):
                with self.subTest(form, adapters=more):
                    run, out = (self.folder / f"{name}-{form}{len(more)}" for name in ("run", "out"))
                    self.begin(base, run, "--stop-after", "9u", "--lr", "1e-2", *more)
                    self.succeed("export", run, "--to", form, "-o", out)
                    self.assertAlmostEqual(self.loss(out), self.loss(run), 5)
                    self.assertLess(self.loss(run), self.loss(base) - 0.01)
                    texts = {self.succeed("generate", model, "the", "--greedy", "--max-tokens", 20).stdout for model in (run, out)}
                    self.assertEqual(len(texts), 1)

    def test_a_folder_becomes_one(self):
        own, base, run, out = (self.folder / name for name in ("own", "base", "run", "out"))
        self.train(own, "--stop-after", "2u", "--tokenizer", "byte", "--position", "rotary", "--norm", "rms",
                   "--activation", "swiglu")
        self.succeed("export", own, "-o", base)
        self.begin(base, run, "--stop-after", "5u", "--lr", "1e-2")
        done = json.loads(self.succeed("export", run, "-o", out, "--json").stdout)
        self.assertEqual(done["architecture"], "LlamaForCausalLM")
        self.assertEqual(set(done["files"]), {path.name for path in out.iterdir()})
        self.assertEqual((out / "tokenizer.json").read_bytes(), (base / "tokenizer.json").read_bytes())
        self.assertAlmostEqual(self.loss(out), self.loss(run), 6)
        self.assertNotAlmostEqual(self.loss(out), self.loss(base), 3)
        self.succeed("export", run, "-o", out, "--overwrite", "--dtype", "bf16")
        self.assertEqual(json.loads((out / "config.json").read_text())["dtype"], "bfloat16")
        self.fails(4, "began from a folder", "export", run, "--to", "gguf", "-o", self.folder / "x.gguf")


class Chat(BaseTest):
    LINES = [{"messages": [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "the cat"}]},
             {"messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "a"},
                           {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"},
                           {"role": "assistant", "content": "the dog"}]},
             {"prompt": "<|im_end|> what?", "completion": "the end"},
             {"instruction": "Say", "input": "it", "output": "again"},
             {"conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "r"}]}]

    def lines(self, lines, name="chat.jsonl", more=""):
        path = self.folder / name
        path.write_text("".join(json.dumps(line) + "\n" for line in lines) + more)
        return path

    def chat(self, file, output, *more, **options):
        return self.succeed("train", "lm", "--base", self.foreign(llama_context_length=(U32, 400)), "--train", file,
                            "--data", "chat", "-o", output, "--batch-size", 3, "--sequence-length", 200, "--valid-fraction", 0,
                            *more, **options)

    def test_learns_answers(self):
        run = self.folder / "run"
        self.chat(self.lines(self.LINES), run, "--stop-after", "150u", "--lr", "1e-2", "--warmup", 5)
        said = json.loads(self.succeed("generate", run, "hello", "--chat", "--greedy", "--json", "--max-tokens", 20).stdout)
        self.assertEqual(said["text"], "the cat")  # and the mark that ends it
        score = json.loads(self.succeed("eval", run, "--test", self.lines(self.LINES, "test.jsonl"), "--json").stdout)
        answers = ["the cat", "b", "the dog", "the end", "again", "r"]
        merged = sum(answer.count("the") for answer in answers)  # " the" would be one token, "the" is two: t + he
        self.assertLess(score["loss"], 0.2)
        self.assertEqual(score["tokens"], sum(map(len, answers)) - merged + len(answers))

    def test_all_tokens_may_be_learned(self):
        losses = []
        for on in ("answers", "all"):
            run = self.folder / on
            self.chat(self.lines(self.LINES), run, "--stop-after", "1u", "--loss-on", on)
            losses.append(json.loads(self.succeed("eval", run, "--test", self.lines(self.LINES), "--json").stdout)["tokens"])
        self.assertGreater(losses[1], 3 * losses[0])

    def test_long_conversations_are_counted(self):
        long = [{"prompt": "x" * 300, "completion": "y"}, {"prompt": "x", "completion": "y" * 300}]
        done = self.chat(self.lines([*self.LINES, *long]), self.folder / "run", "--stop-after", "1u")
        self.assertIn("conversations of more than 200 tokens: 2 of 7; their end is dropped, and 1 without an answer "
                      "then are left out", done.stderr.decode())

    def test_what_is_no_conversation(self):
        for bad, needle in (
                ({"messages": [{"role": "tool", "content": "x"}]}, "line 6: expected a role system, user or assistant"),
                ({"messages": [{"role": "user", "content": "x"}]}, "line 6: no answer"),
                ({"messages": [{"role": "assistant", "content": "x"}]}, "line 6: message 1 is of the role assistant"),
                ({"messages": [{"role": "user", "content": 3}]}, 'line 6: expected a text "content"'),
                ({"messages": "x"}, "line 6: expected a list of messages"), ({"text": "x"}, "line 6: no conversation"),
                ([1], "line 6: expected an object")):
            path = self.lines([*self.LINES, bad])
            self.fails(3, needle, "train", "lm", "--base", self.foreign(), "--train", path, "--data", "chat", "-o",
                       self.folder / "x", "--valid-fraction", 0)
        path = self.lines(self.LINES, more="{")
        self.fails(3, "line 6", "train", "lm", "--base", self.foreign(), "--train", path, "--data", "chat", "-o",
                   self.folder / "x", "--valid-fraction", 0)

    def test_what_has_no_template(self):
        own, path = self.folder / "own", self.lines(self.LINES)
        self.train(own, "--stop-after", "2u")
        chat = ["--train", path, "--data", "chat", "-o", self.folder / "x", "--valid-fraction", 0]
        self.fails(4, "has no chat template", "train", "lm", "--base", own, *chat)
        self.fails(4, "has no chat template", "train", "lm", *chat)
        self.fails(4, "chat template", "train", "lm", "--base", self.foreign(tokenizer_chat_template=(STRING, "{{ x }}")), *chat)
        self.fails(2, "--loss-on", "train", "lm", "--base", self.foreign(), "--train", self.text, "-o", self.folder / "x",
                   "--loss-on", "all")


class FromFovea(BaseTest):
    def test_goes_on_with_another_text(self):
        own, run = self.folder / "own", self.folder / "run"
        self.train(own, "--stop-after", "5u")
        other = self.folder / "other.txt"
        other.write_text("Une autre langue, déjà.\n" * 40)
        self.succeed("train", "lm", "--base", own, "--train", other, "-o", run, *FEW, "--stop-after", "20u", "--lr", "1e-2")
        self.assertEqual((own / "tokenizer.txt").read_bytes(), (run / "tokenizer.txt").read_bytes())
        scores = [json.loads(self.succeed("eval", model, "--test", other, "--json").stdout)["loss"] for model in (own, run)]
        self.assertLess(scores[1], scores[0])
        self.fails(2, "--lower: ", "train", "lm", "--base", own, "--train", other, "-o", self.folder / "x", "--lower")


class Import(BaseTest):
    def test_the_folder_is_the_model(self):
        base, folder = self.foreign(), self.folder / "imported"
        found = json.loads(self.succeed("import", base, "-o", folder, "--json").stdout)
        self.assertEqual((found["architecture"], found["output"]), ("llama", str(folder)))
        texts = {self.succeed("generate", model, "the", "--greedy", "--max-tokens", 40).stdout for model in (base, folder)}
        self.assertEqual(len(texts), 1)
        self.assertEqual(self.loss(base), self.loss(folder))
        self.assertIn("whole", self.succeed("inspect", folder, "--verify").stdout.decode())
        further = self.folder / "further"
        self.begin(folder, further, "--stop-after", "2u")
        self.succeed("generate", further, "the", "--max-tokens", 3)

    def test_a_folder_of_hugging_face(self):
        own, exported, folder = (self.folder / name for name in ("own", "exported", "imported"))
        self.train(own, "--stop-after", "2u", "--tokenizer", "byte", "--position", "rotary", "--norm", "rms",
                   "--activation", "swiglu")
        self.succeed("export", own, "-o", exported)
        self.succeed("import", exported, "-o", folder)
        texts = {self.succeed("generate", model, "the", "--greedy", "--max-tokens", 20).stdout
                 for model in (exported, folder)}
        self.assertEqual(len(texts), 1)

    def test_a_full_disk_leaves_nothing(self):
        base, folder = self.foreign(), self.folder / "imported"
        # The tokenizer fits, the weights do not.
        done = subprocess.run(["bash", "-c", f'ulimit -f 16; exec "{FOVEA}" import "{base}" -o "{folder}"'],
                              capture_output=True, env=self.environment())
        self.assert_error(done, 5, "model.safetensors")
        self.assertFalse(folder.exists())
        self.succeed("import", base, "-o", folder)

    def test_half_precision_takes_half_the_room(self):
        base, half, whole = self.foreign(), self.folder / "half", self.folder / "whole"
        self.succeed("import", base, "-o", half, "--dtype", "bf16")
        self.succeed("import", base, "-o", whole)
        sizes = [(folder / "model.safetensors").stat().st_size for folder in (half, whole)]
        self.assertLess(sizes[0], 0.75 * sizes[1])
        self.assertAlmostEqual(self.loss(half), self.loss(whole), delta=0.05)

    def test_what_cannot_be_imported(self):
        base, folder = self.foreign(), self.folder / "imported"
        self.fails(2, "--output is missing", "import", base)
        self.fails(4, "expected a model of another program", "import", self.text, "-o", folder)
        self.fails(4, "nowhere: no such", "import", self.folder / "nowhere", "-o", folder)
        self.fails(4, "mamba", "import", self.foreign("x.gguf", general_architecture=(STRING, "mamba")), "-o", folder)
        self.assertFalse(folder.exists())
        folder.mkdir()
        (folder / "mine").touch()
        self.fails(2, "is there already", "import", base, "-o", folder)

    def test_a_kept_tokenizer_of_a_stranger(self):
        base, folder = self.foreign(), self.folder / "imported"
        self.succeed("import", base, "-o", folder)
        for members, needle in (([("../out.txt", b"x")], "does not belong there"), ([("/tmp/out.txt", b"x")], "does not belong"),
                                ([("text.gguf", b"x")], "tokenizer.txt"), ([("config.json", b"{}")], "tokenizer.txt")):
            packed = io.BytesIO()
            with zipfile.ZipFile(packed, "w") as archive:
                for name, data in members:
                    archive.writestr(name, data)
            forge(folder, "tokenizer.txt", tokenizer_text(packed.getvalue()).encode())
            self.fails(4, needle, "generate", folder, "a")
            self.fails(4, needle, "export", folder, "-o", self.folder / "out")
        self.assertFalse((self.folder / "out").exists())

    def test_a_kept_tokenizer_that_is_damaged(self):
        base, folder = self.foreign(), self.folder / "imported"
        self.succeed("import", base, "-o", folder)
        text = (folder / "tokenizer.txt").read_text().splitlines()
        text[5] = text[6]
        (folder / "tokenizer.txt").write_text("\n".join(text) + "\n")
        self.fails(4, "tokenizer.txt", "generate", folder, "a")


if __name__ == "__main__":
    unittest.main()

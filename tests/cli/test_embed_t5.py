# SPDX-License-Identifier: Apache-2.0
"""fovea embed and fovea similar with the encoder of a T5, and with Dense modules: the numbers of the definition in plain Python."""

import json
import math
import random
import unittest

from bert_support import MODULES, POOLING, write_json
from support import CommandTest
from t5_support import GATED, VOCABULARY, WIDTH, linear, spiece_model, stack, tokens, weights, write_t5
from tensor_files import Tensor, safetensors_bytes

TEXTS = ["a b c", "", "j", "a <extra_id_0> i c d", "b b b b b z", "c a b d e f g h i j a a b c d e f g " * 3, "e d c b a"]
ENCODER = {"architectures": ["T5EncoderModel"], "is_encoder_decoder": False}
FUNCTIONS = {"torch.nn.modules.linear.Identity": lambda x: x, "torch.nn.modules.activation.Tanh": math.tanh,
             "torch.nn.modules.activation.ReLU": lambda x: max(x, 0.0),
             "torch.nn.modules.activation.GELU": lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2,
             "torch.nn.modules.activation.SiLU": lambda x: x / (1 + math.exp(-x))}


def module(number, name, path):
    return {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{name}"}


def dense_weights(seed, out, columns, *more):
    rng = random.Random(seed)
    shapes = {"linear.weight": (out, columns), "linear.bias": (out,), "residual.weight": (out, columns)}
    return {name: Tensor("F32", shapes[name], [rng.randint(-64, 64) / 64 for _ in range(math.prod(shapes[name]))])
            for name in ("linear.weight", *more)}


def unit(x):
    length = math.sqrt(sum(a * a for a in x))
    return [a / length for a in x]


class EmbedT5(CommandTest):
    def setUp(self):
        super().setUp()
        self.model = self.folder / "sentence-t5"
        self.take(1)

    def take(self, seed, gated=False, whole=False):
        """With a decoder beside the encoder, or without."""
        self.tensors = weights(seed, gated)
        kept = {name: t for name, t in self.tensors.items() if whole or not name.startswith(("decoder.", "lm_head."))}
        write_t5(self.model, kept, config={**(GATED if gated else {}), **({} if whole else ENCODER)})
        (self.model / "generation_config.json").unlink()

    def add_modules(self, *dense, normalizes=True):
        names = [("Transformer", ""), ("Pooling", "1_Pooling"), *(("Dense", f"{n + 2}_Dense") for n in range(len(dense)))]
        if normalizes:
            names.append(("Normalize", f"{len(names)}_Normalize"))
        write_json(self.model / "modules.json", [module(n, *one) for n, one in enumerate(names)])
        (self.model / "1_Pooling").mkdir(exist_ok=True)
        write_json(self.model / "1_Pooling" / "config.json", {**POOLING, "word_embedding_dimension": WIDTH})
        for n, (config, tensors) in enumerate(dense):
            folder = self.model / f"{n + 2}_Dense"
            folder.mkdir(exist_ok=True)
            write_json(folder / "config.json", config)
            (folder / "model.safetensors").write_bytes(safetensors_bytes(tensors))

    def pooled(self, text):
        rows = stack(tokens(text), self.tensors, "encoder")
        return [sum(column) / len(rows) for column in zip(*rows)]

    def embed(self, *args, texts=TEXTS):
        done = self.succeed("embed", self.model, *args, stdin="".join(t + "\n" for t in texts).encode())
        return [json.loads(line)["vector"] for line in done.stdout.decode().splitlines()]

    def assert_near(self, got, expected, most=1e-5):
        self.assertEqual(len(got), len(expected))
        for a, b in zip(got, expected):
            self.assertEqual(len(a), len(b))
            self.assertLess(max(abs(x - y) for x, y in zip(a, b)), most * max(map(abs, b)))

    def test_vectors_are_those_of_the_definition(self):
        for gated in (False, True):
            for whole in (False, True):
                with self.subTest(gated=gated, whole=whole):
                    (self.model / "modules.json").unlink(missing_ok=True)
                    self.take(3, gated, whole)
                    expected = [self.pooled(text) for text in TEXTS]
                    self.assert_near(self.embed(), expected)
                    self.add_modules()
                    self.assert_near(self.embed(), [unit(x) for x in expected])
                    self.assertEqual(self.embed("--threads", 1), self.embed("--threads", 3))
                    self.assertEqual(self.embed(texts=TEXTS[::-1]), self.embed()[::-1])

    def test_every_function_of_a_dense_module(self):
        for name, function in FUNCTIONS.items():
            tensors = dense_weights(2, 5, WIDTH)
            self.add_modules(({"in_features": WIDTH, "out_features": 5, "bias": False, "activation_function": name}, tensors))
            with self.subTest(name):
                expected = [[function(a) for a in linear(self.pooled(text), tensors, "linear")] for text in TEXTS]
                self.assert_near(self.embed(), [unit(x) for x in expected])

    def test_one_dense_over_another_with_biases_and_residuals(self):
        shape = {"in_features": WIDTH, "out_features": WIDTH, "use_residual": True, "module_input_name": "sentence_embedding",
                 "module_output_name": "sentence_embedding"}  # a tanh, unless it says another
        one, two = dense_weights(4, WIDTH, WIDTH, "linear.bias"), dense_weights(5, 3, WIDTH, "residual.weight")
        narrow = {"in_features": WIDTH, "out_features": 3, "bias": False, "use_residual": True,
                  "activation_function": "torch.nn.modules.linear.Identity"}
        self.add_modules((shape, one), (narrow, two), normalizes=False)
        expected = []
        for text in TEXTS:
            x = self.pooled(text)
            x = [math.tanh(a + b) + c for a, b, c in zip(linear(x, one, "linear"), one["linear.bias"].values, x)]
            expected.append([a + b for a, b in zip(linear(x, two, "linear"), linear(x, two, "residual"))])
        self.assert_near(self.embed(), expected)
        self.assert_near(self.embed("--truncate-dim", 2), [x[:2] for x in expected])
        self.assert_error(self.run_fovea("embed", self.model, "--truncate-dim", 4), 2, "at most 3")
        pairs = "\n".join(f"{a}\t{b}" for a, b in zip(TEXTS, TEXTS[1:])) + "\n"
        cosines = self.succeed("similar", self.model, stdin=pairs.encode()).stdout.decode().split()
        for cosine, a, b in zip(cosines, expected, expected[1:]):
            self.assertAlmostEqual(float(cosine), sum(x * y for x, y in zip(unit(a), unit(b))), delta=2e-6)

    def test_a_changed_module_makes_a_corpus_new(self):
        corpus = self.folder / "corpus.txt"
        corpus.write_text("a b\nc d\n")
        config = {"in_features": WIDTH, "out_features": 5, "bias": False}
        hits = []
        for seed in (1, 2):
            self.add_modules((config, dense_weights(seed, 5, WIDTH)))
            hits.append(self.succeed("embed", self.model, "--search", corpus, "--query", "a").stdout)
        self.assertNotEqual(*hits)

    def test_pieces_of_spiece_model(self):
        # Their <unk> is the third, as transformers expects.
        before = self.embed()
        (self.model / "tokenizer.json").unlink()
        (self.model / "spiece.model").write_bytes(spiece_model())
        write_json(self.model / "tokenizer_config.json", {"extra_ids": 2})
        self.assertEqual(self.embed(), before)

    def test_texts_have_any_length_unless_the_folder_says_one(self):
        long = "a b c d " * 3000
        self.assertEqual(len(self.embed(texts=[long])), 1)
        write_json(self.model / "tokenizer_config.json", {"model_max_length": 7})
        done = self.succeed("embed", self.model, stdin=f"{long}\na b c d a b\n".encode())
        self.assertIn("1 of 2 texts were longer than the model's 7 tokens", done.stderr.decode())
        vectors = [json.loads(line)["vector"] for line in done.stdout.decode().splitlines()]
        self.assertEqual(*vectors)

    def test_what_it_is(self):
        self.add_modules()
        self.assertIn("T5EncoderModel", self.succeed("inspect", self.model).stdout.decode())
        self.assert_error(self.run_fovea("translate", self.model, stdin=b"a\n"), 4, "T5ForConditionalGeneration")
        self.assert_error(self.run_fovea("explain", self.model, "a"), 4, "a sentence encoder gives vectors")
        pairs = self.folder / "pairs.tsv"
        pairs.write_text("a b\ta c\nd e\tf g\n")
        self.assertIn("2 pairs", self.succeed("eval", self.model, "--test", pairs).stdout.decode())
        base = ("train", "embed", "--base", self.model, "--train", pairs, "-o", self.folder / "run")
        self.assert_error(self.run_fovea(*base), 4, "model_type")

    def test_modules_that_do_not_fit(self):
        config = {"in_features": WIDTH, "out_features": 5, "bias": False}
        tensors = dense_weights(1, 5, WIDTH)
        for change, needle in (({"in_features": 9}, "in_features"), ({"out_features": 0}, "out_features"),
                               ({"out_features": 6}, "linear.weight is [5, 8]"), ({"bias": True}, "linear.bias"),
                               ({"activation_function": "torch.nn.modules.activation.Mish"}, "activation_function"),
                               ({"activation_function": "os.system"}, "activation_function"),
                               ({"module_input_name": "token_embeddings"}, "module_input_name"), ({"more": 1}, "more")):
            with self.subTest(change):
                self.add_modules(({**config, **change}, tensors))
                self.assert_error(self.run_fovea("embed", self.model, stdin=b"a\n"), 4, needle)
        self.add_modules((config, {**tensors, "other": tensors["linear.weight"]}))
        self.assert_error(self.run_fovea("embed", self.model, stdin=b"a\n"), 4, "expected 1 tensors of a Dense module, got 2")
        self.add_modules((config, {"linear.weight": Tensor("F32", (5, WIDTH), [math.nan] * 40)}))
        self.assert_error(self.run_fovea("embed", self.model, stdin=b"a\n"), 4, "linear.weight")
        (self.model / "2_Dense" / "model.safetensors").unlink()
        (self.model / "2_Dense" / "pytorch_model.bin").write_bytes(b"")
        self.assert_error(self.run_fovea("embed", self.model, stdin=b"a\n"), 4, "pytorch_model.bin")
        names = [("Transformer", ""), ("Pooling", "1_Pooling"), ("Normalize", "3_Normalize"), ("Dense", "2_Dense")]
        write_json(self.model / "modules.json", [module(n, *one) for n, one in enumerate(names)])
        self.assert_error(self.run_fovea("embed", self.model, stdin=b"a\n"), 4, "Dense in this place")
        for name in ("", "D", "Normal", "or"):  # a part of the name of a module is none
            write_json(self.model / "modules.json", [module(n, *one) for n, one in enumerate([*names[:2], (name, "2_Dense")])])
            self.assert_error(self.run_fovea("embed", self.model, stdin=b"a\n"), 4, "Dense or Normalize in this place")

    def test_how_later_versions_describe_the_first_module(self):
        self.add_modules()
        expected = self.embed()
        text = {"method": "forward", "method_output_name": "last_hidden_state"}
        said = {"transformer_task": "feature-extraction", "modality_config": {"text": text}, "module_output_name": "token_embeddings"}
        write_json(self.model / "sentence_bert_config.json", said)
        self.assertEqual(self.embed(), expected)
        for change, needle in (({"transformer_task": "fill-mask"}, "transformer_task"),
                               ({"modality_config": {"text": text, "image": text}}, "modality_config"),
                               ({"module_output_name": "sentence_embedding"}, "module_output_name")):
            write_json(self.model / "sentence_bert_config.json", {**said, **change})
            self.assert_error(self.run_fovea("embed", self.model, stdin=b"a\n"), 4, needle)

    def test_tensors_that_do_not_fit(self):
        names = {"encoder.block.1.layer.0.SelfAttention.v.weight": None, "encoder.extra.weight": Tensor("F32", (2,), [1, 2])}
        for name, tensor in names.items():
            kept = {n: t for n, t in self.tensors.items() if not n.startswith("decoder.")}
            kept.pop(name, None)
            if tensor:
                kept[name] = tensor
            (self.model / "model.safetensors").write_bytes(safetensors_bytes(kept))
            self.assert_error(self.run_fovea("embed", self.model, stdin=b"a\n"), 4, name)


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adapters of PEFT for a model on an encoder (--adapter of classify, pairs, tag, embed, similar, eval and explain): small random models of BERT,
and what they answer in plain Python. What PEFT itself answers is compared in tests/python/test_encoder_peft.py."""

import json
import math
import random
import shutil
import unittest

import bert_support
import gguf_support
from bert_support import softmax, text_logits, vector, weights, word_logits, write_head, write_json, write_model
from support import CommandTest
from tensor_files import Tensor, safetensors_bytes
from test_encoder_adapters import FEW, AdapterTest

TEXTS = ["the old king sees the moon", "cat", "a running dog !"]
QUERY, OUT = "encoder.layer.0.attention.self.query", "encoder.layer.1.output.dense"
CONFIG = {"peft_type": "LORA", "r": 2, "lora_alpha": 3, "bias": "none", "task_type": None, "target_modules": ["query", "dense"],
          "use_rslora": False, "use_dora": False, "modules_to_save": None, "peft_version": "0.21.2", "rank_pattern": {}}


def numbers(seed, *shape):
    rng = random.Random(seed)
    return Tensor("F32", shape, [rng.randint(-64, 64) / 128 for _ in range(math.prod(shape))])


def product(b, a, factor):
    """factor B A, row by row."""
    return [factor * sum(x * a.at(r, c) for r, x in enumerate(b.row(n))) for n in range(b.shape[0]) for c in range(a.shape[1])]


class PeftTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.base = write_model(self.folder / "base")

    def adapter(self, name="adapter", modules=(QUERY, OUT), **more):
        """A folder of PEFT, and what it changes: {tensor: what is added} and {tensor: its values}. The options are those of adapter_config.json,
        and some of what the folder holds."""
        seed, prefix, head, rank = (more.pop(key, usual) for key, usual in (("seed", 1), ("prefix", ""), ("head", 0), ("rank", 2)))
        whole = dict(more.pop("whole", {}))
        shapes, tensors, added = bert_support.shapes(), {}, {}
        config = {**CONFIG, "r": rank, **more}
        scale = config["lora_alpha"] / (math.sqrt(rank) if config["use_rslora"] else rank)
        for n, module in enumerate(modules):
            rows, columns = shapes.get(f"{module}.weight", (8, 8))
            a, b = numbers(seed + 10 * n, rank, columns), numbers(seed + 10 * n + 1, rows, rank)
            tensors.update({f"{prefix}{module}.lora_A.weight": a, f"{prefix}{module}.lora_B.weight": b})
            added[f"{module}.weight"] = product(b, a, scale)
        if head:
            whole.update({"classifier.weight": numbers(seed + 5, head, 8), "classifier.bias": numbers(seed + 6, head)})
        tensors.update(whole)
        folder = self.folder / name
        write_json(folder / "adapter_config.json", config)
        (folder / "adapter_model.safetensors").write_bytes(safetensors_bytes({f"base_model.model.{key}": t for key, t in tensors.items()}))
        return folder, added, whole

    def adapted(self, tensors, *changes):
        """The tensors of a base with these changes, each with its factor."""
        found = {name: Tensor("F32", tensor.shape, tensor.values) for name, tensor in tensors.items()}
        for (_, added, whole), factor in changes:
            found.update(whole)
            for name, values in added.items():
                found[name] = Tensor("F32", found[name].shape, [x + factor * y for x, y in zip(found[name].values, values)])
        return found

    def lines(self, command, model, *more, texts=TEXTS):
        done = self.succeed(command, model, *more, stdin="".join(text + "\n" for text in texts).encode())
        return [json.loads(line) for line in done.stdout.splitlines()]

    def assert_near(self, got, expected, places=5):
        self.assertEqual(len(got), len(expected))
        for a, b in zip(got, expected):
            self.assertAlmostEqual(a, b, places)


class Answers(PeftTest):
    def test_vectors(self):
        one, two = self.adapter("one"), self.adapter("two", (QUERY,), seed=50, rank=3, use_rslora=True, prefix="bert.")
        both = self.adapted(weights(), (one, 0.5), (two, -2))
        found = self.lines("embed", self.base, "--adapter", f"{one[0]}=0.5", f"{two[0]}=-2")
        for line, text in zip(found, TEXTS, strict=True):
            self.assert_near(line["vector"], vector(text, both))
        self.assertEqual(self.lines("embed", self.base, "--adapter", f"{one[0]}=0"), self.lines("embed", self.base))
        pair = "the old king\tthe old cat\n".encode()
        alike = self.succeed("similar", self.base, "--adapter", f"{one[0]}=0.5", f"{two[0]}=-2", stdin=pair).stdout
        a, b = vector("the old king", both), vector("the old cat", both)
        self.assertAlmostEqual(float(alike), sum(x * y for x, y in zip(a, b)), 5)

    def test_threads_give_the_same_bits(self):
        one = self.adapter("one")[0]
        said = [self.succeed("embed", self.base, "-t", threads, "--adapter", one, stdin=b"the old king\n").stdout for threads in (1, 2, 3)]
        self.assertEqual(said, said[:1] * 3)

    def test_kept_vectors_are_those_of_the_adapters(self):
        corpus = self.folder / "corpus.txt"
        corpus.write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
        one = self.adapter("one")[0]

        def scores(*more):
            return self.succeed("embed", self.base, "--search", corpus, "--query", "moon", *more).stdout

        plain, adapted = scores(), scores("--adapter", one)
        self.assertNotEqual(plain, adapted)
        self.assertEqual([scores(), scores("--adapter", one)], [plain, adapted])

    def test_a_classifier_on_a_bare_base(self):
        pooler = {"bert.pooler.dense.weight": numbers(7, 8, 8), "bert.pooler.dense.bias": numbers(8, 8)}
        change = self.adapter(prefix="bert.", head=3, whole=pooler, task_type="SEQ_CLS", modules_to_save=["classifier", "pooler"])
        whole = {name.removeprefix("bert."): tensor for name, tensor in change[2].items()}
        tensors = self.adapted(weights(), ((None, change[1], whole), 1))
        found = self.lines("classify", self.base, "--json", "--top", 3, "--adapter", change[0])
        for line, text in zip(found, TEXTS, strict=True):
            self.assert_near([line["probabilities"][f"LABEL_{n}"] for n in range(3)], softmax(text_logits(text, tensors)))
        labelled = self.folder / "texts.tsv"
        labelled.write_text("".join(f"{line['label']}\t{text}\n" for line, text in zip(found, TEXTS)), encoding="utf-8")
        score = json.loads(self.succeed("eval", self.base, "--test", labelled, "--json", "--adapter", change[0]).stdout)
        self.assertEqual((score["task"], score["accuracy"]["value"], score["adapters"]), ("single-label", 1, [str(change[0])]))
        shown = json.loads(self.succeed("explain", self.base, TEXTS[0], "--json", "--adapter", change[0]).stdout)
        self.assertEqual(shown["prediction"][0]["label"], found[0]["label"])
        self.assertAlmostEqual(shown["prediction"][0]["probability"], found[0]["probability"], 5)
        pair = self.succeed("pairs", self.base, "--json", "--adapter", change[0], stdin=b"the old\tking\n").stdout
        self.assertIn("LABEL_", json.loads(pair)["label"])

    def test_a_number(self):
        """Of one output; the layer over the first row is that of the base."""
        folder, tensors = write_head(self.folder / "text", "Sequence", ["a", "b"])
        change = self.adapter(head=1, prefix="bert.", task_type="SEQ_CLS")
        adapted = self.adapted(tensors, (change, 1))
        for line, text in zip(self.lines("classify", folder, "--json", "--adapter", change[0]), TEXTS, strict=True):
            self.assertAlmostEqual(line["value"], text_logits(text, adapted)[0], 5)

    def test_a_head_in_the_place_of_another(self):
        folder, tensors = write_head(self.folder / "text", "Sequence", ["a", "b"])
        for count, labels in ((2, ["a", "b"]), (3, ["LABEL_0", "LABEL_1", "LABEL_2"])):
            change = self.adapter(head=count, prefix="bert.", task_type="SEQ_CLS")
            adapted = self.adapted(tensors, (change, 1))
            for line, text in zip(self.lines("classify", folder, "--json", "--top", 3, "--adapter", change[0]), TEXTS, strict=True):
                self.assert_near([line["probabilities"][label] for label in labels], softmax(text_logits(text, adapted)))
        beside = self.adapter("beside", prefix="bert.", task_type="SEQ_CLS")  # which has no head: that of the model stays
        adapted = self.adapted(tensors, (beside, 1))
        for line, text in zip(self.lines("classify", folder, "--json", "--top", 2, "--adapter", beside[0]), TEXTS, strict=True):
            self.assert_near([line["probabilities"][label] for label in "ab"], softmax(text_logits(text, adapted)))

    def test_tags(self):
        sentence = ["the", "old", "king", "."]
        change = self.adapter(head=3, prefix="bert.", task_type="TOKEN_CLS", whole={"bert.embeddings.LayerNorm.bias": numbers(9, 8)})
        whole = {name.removeprefix("bert."): tensor for name, tensor in change[2].items()}
        tensors = self.adapted(weights(), ((None, change[1], whole), 1))
        said = self.lines("tag", self.base, "--json", "--probabilities", "--adapter", change[0], texts=["\n".join(sentence) + "\n"])
        expected = [softmax(logits) for logits in word_logits(sentence, tensors)]
        self.assertEqual(said[0]["tags"], [f"LABEL_{max(range(3), key=row.__getitem__)}" for row in expected])
        self.assert_near(said[0]["probabilities"], [max(row) for row in expected])
        tagged = self.folder / "tagged.conll"
        tagged.write_text("".join(f"{word}\t{tag}\n" for word, tag in zip(sentence, said[0]["tags"])), encoding="utf-8")
        score = json.loads(self.succeed("eval", self.base, "--test", tagged, "--json", "--adapter", change[0]).stdout)
        self.assertEqual(score["accuracy"]["value"], 1)
        shown = json.loads(self.succeed("explain", self.base, "the old king .", "--json", "--adapter", change[0]).stdout)
        self.assertIn(said[0]["tags"][1], shown["tags"])

    def test_a_folder_without_task_type(self):
        """classify and tag know what it is; eval and explain cannot."""
        change = self.adapter(head=2, prefix="bert.")
        self.lines("tag", self.base, "--json", "--adapter", change[0], texts=["the\nold\n"])
        self.assert_error(self.run_fovea("explain", self.base, "the", "--adapter", change[0]), 4, "no task_type says whether")


class Errors(PeftTest):
    def fails(self, needle, *words, status=4):
        self.assert_error(self.run_fovea(*words, stdin=b"the\n"), status, needle)

    def test_what_cannot_be(self):
        good = self.adapter(head=2, prefix="bert.", task_type="SEQ_CLS")[0]
        self.fails("no such folder", "embed", self.base, "--adapter", self.folder / "nowhere")
        self.fails("the factor must be", "embed", self.base, "--adapter", f"{good}=1e9", status=2)
        self.fails("there is no pooler.dense.weight", "classify", self.base, "--adapter", good)
        self.fails("adapters of a model for SEQ_CLS, and this is one for TOKEN_CLS", "tag", self.base, "--adapter", good)
        for name, needle, options in (("module", "adapters of 'encoder.layer.7.output.dense', which", {"modules": ("encoder.layer.7.output.dense",)}),
                                      ("task", "adapters of the task 'CAUSAL_LM'", {"task_type": "CAUSAL_LM"}),
                                      ("whole", "adapters of 'embeddings.other', which", {"whole": {"embeddings.other": numbers(1, 8)}}),
                                      ("shape", "must be [8]; it is", {"whole": {"embeddings.LayerNorm.bias": numbers(1, 9)}}),
                                      ("bias", "bias", {"bias": "all"}), ("pattern", "rank_pattern", {"rank_pattern": {"query": 4}}),
                                      ("nan", "is not finite", {"whole": {"embeddings.LayerNorm.bias": Tensor("F32", (8,), [math.nan] * 8)}})):
            self.fails(needle, "embed", self.base, "--adapter", self.adapter(name, **options)[0])
        config = json.loads((good / "adapter_config.json").read_text(encoding="utf-8"))
        write_json(good / "adapter_config.json", {**config, "r": 3})
        self.fails("must be [3, 8]; it is", "embed", self.base, "--adapter", good)
        (good / "adapter_model.safetensors").unlink()
        self.fails("no such file", "embed", self.base, "--adapter", good)

    def test_two_heads(self):
        folder, _ = write_head(self.folder / "text", "Sequence", ["a", "b"])
        one, two = (self.adapter(name, head=2, prefix="bert.", seed=n)[0] for n, name in enumerate(("one", "two")))
        self.fails("hold a head", "classify", folder, "--adapter", one, two)
        self.fails("hold a head", "classify", folder, "--adapter", one, one)
        self.lines("embed", self.base, "--adapter", one, two)  # which leaves heads out

    def test_what_is_there_twice(self):
        """Sums are of adapters alone: nothing that is held whole may depend on which folder is the last."""
        bias = "embeddings.LayerNorm.bias"
        one, two = (self.adapter(name, whole={bias: numbers(n, 8)})[0] for n, name in enumerate(("one", "two")))
        for other in (two, one):
            self.fails(f"{other / 'adapter_model.safetensors'} hold 'embeddings.LayerNorm.bias'", "embed", self.base, "--adapter", one, other)
        for name, options in (("adapter", {"modules": (QUERY, f"bert.{QUERY}")}), ("module", {"whole": {bias: numbers(1, 8), f"bert.{bias}": numbers(2, 8)}}),
                              ("head", {"head": 2, "whole": {"bert.classifier.weight": numbers(1, 2, 8)}})):
            with self.subTest(name):
                self.fails("is there twice, with the prefix bert. and without it", "embed", self.base, "--adapter", self.adapter(name, **options)[0])

    def test_half_a_head(self):
        folder, _ = write_head(self.folder / "text", "Sequence", ["a", "b"])
        for name, tensor in (("classifier.weight", numbers(1, 2, 8)), ("classifier.bias", numbers(1, 2))):
            half = self.adapter(name, whole={name: tensor})[0]
            self.fails("expected a matrix and a bias of the head", "classify", folder, "--adapter", half)

    def test_sums_that_overflow(self):
        large = Tensor("F32", (2, 8), [1e30] * 16), Tensor("F32", (8, 2), [1e30] * 16)
        whole = {f"{QUERY}.lora_A.weight": large[0], f"{QUERY}.lora_B.weight": large[1]}
        adapter = self.adapter(modules=(), whole=whole)[0]
        for command, model in (("embed", self.base), ("classify", write_head(self.folder / "text", "Sequence", ["a", "b"])[0])):
            self.fails("with the adapters a value of", command, model, "--adapter", adapter)

    def test_more_than_fits_into_memory(self):
        adapter = self.adapter()[0]
        size = 1 << 38  # of a file with a hole
        header = json.dumps({"base_model.model.x.lora_A.weight": {"dtype": "F32", "shape": [size >> 5, 8], "data_offsets": [0, size]}}).encode()
        with open(adapter / "adapter_model.safetensors", "wb") as file:
            file.write(len(header).to_bytes(8, "little") + header)
            file.truncate(8 + len(header) + size)
        self.fails("the adapters would take 256 GiB", "embed", self.base, "--adapter", adapter, status=6)

    def test_models_that_have_no_such_adapters(self):
        adapter = self.adapter()[0]
        self.text.write_text("".join(f"{label}\t{text}\n" for label, text in (("a", "the cat"), ("b", "old king")) * 30), encoding="utf-8")
        self.succeed("train", "classify", "--train", self.text, "-o", self.folder / "linear", "--progress", "none")
        self.fails("did not begin from an encoder", "classify", self.folder / "linear", "--adapter", adapter)
        self.fails("did not begin from an encoder", "eval", self.folder / "linear", "--test", self.text, "--adapter", adapter)
        llama = self.folder / "m.gguf"
        llama.write_bytes(gguf_support.gguf())
        self.succeed("import", llama, "-o", self.folder / "llama")
        for model in (llama, self.folder / "llama"):
            self.fails("did not begin from an encoder", "embed", model, "--adapter", adapter)
        self.fails('expected "kind": "sentence-encoder", got "language_model"', "embed", self.folder / "llama")

    def test_magnitudes_do_not_add_up(self):
        whole = {f"{QUERY}.lora_magnitude_vector": Tensor("F32", (8,), [1 + n / 8 for n in range(8)])}
        one = self.adapter("one", (QUERY,), use_dora=True, whole=whole)[0]
        two = self.adapter("two", (QUERY,), seed=30)[0]
        self.lines("embed", self.base, "--adapter", one)
        self.fails("count once", "embed", self.base, "--adapter", f"{one}=0.5", status=2)
        self.fails("do not add up", "embed", self.base, "--adapter", one, two, status=2)
        other = self.adapter("other", (QUERY,), whole=whole)[0]
        self.fails("are magnitudes (DoRA), which adapter_config.json does not ask for", "embed", self.base, "--adapter", other)


class Runs(AdapterTest):
    """Adapters of PEFT and a run of --lora."""

    def test_a_run_written_for_peft_is_that_run(self):
        for task, dora in (("classify", False), ("pairs", True), ("tag", True), ("embed", False)):
            with self.subTest(task=task):
                run, peft = self.folder / task, self.folder / f"{task}-peft"
                self.begin(task, task, "--lora", 2, *(["--dora"] if dora else []))
                self.succeed("export", run, "--to", "peft", "-o", peft)
                texts = {"pairs": b"the old king\tsees the moon\n", "tag": b"the\nold\nking\n"}.get(task, b"the old king\n")
                more = {"tag": ("--probabilities",)}.get(task, ())
                said, given = (self.succeed(task, *words, *more, *(() if task == "embed" else ("--json",)), *adapter, stdin=texts).stdout
                               for words, adapter in (((run,), ()), ((self.base,), ("--adapter", peft))))
                said, given = json.loads(said), json.loads(given)
                key = {"tag": "probabilities", "embed": "vector"}.get(task, "probability")
                for a, b in zip(*(one[key] if isinstance(one[key], list) else [one[key]] for one in (said, given)), strict=True):
                    self.assertAlmostEqual(a, b, 6)

    def test_a_runs_own_adapters_count_once(self):
        self.begin("embed", "run", "--lora", 2)
        run, peft, whole = self.folder / "run", self.folder / "peft", self.folder / "whole"
        self.succeed("export", run, "--to", "peft", "-o", peft)
        self.begin("embed", "further", "--lora", 1, base=run)
        for model in (run, self.folder / "further"):
            done = self.run_fovea("embed", model, "--adapter", peft, stdin=b"the\n")
            self.assert_error(done, 4, "has these adapters already, and they would count twice")
        done = self.run_fovea("embed", self.base, "--adapter", run, stdin=b"the\n")
        self.assert_error(done, 4, "a folder of fovea, and none of PEFT")
        self.assertIn(f"fovea export {run} --to peft", done.stderr.decode())
        self.begin("embed", "other", "--lora", 3, "--lora-targets", "q,down", "--stop-after", "20u")
        self.succeed("export", self.folder / "other", "--to", "peft", "-o", self.folder / "other-peft")
        self.succeed("import", run, "-o", whole)
        said = [self.succeed("embed", model, "--adapter", self.folder / "other-peft", stdin=b"the old king\n").stdout for model in (run, whole)]
        self.assertEqual(*said)
        self.assertNotEqual(said[0], self.succeed("embed", run, stdin=b"the old king\n").stdout)

    def test_a_head_that_says_numbers(self):
        """As they are, while the run's own head says them in its unit."""
        numbers_file, run, peft = self.folder / "numbers.tsv", self.folder / "run", self.folder / "peft"
        numbers_file.write_text("".join(f"{1000 + 50 * (line[0] == 'r')}\t{line.split(chr(9))[1]}\n"
                                        for line in self.data["classify"].read_text(encoding="utf-8").splitlines()), encoding="utf-8")
        for output, more in (("run", ("--lora", 2)), ("whole", ("--stop-after", "2u"))):
            self.succeed("train", "classify", "--base", self.base, "--train", numbers_file, "-o", self.folder / output, *FEW, "--regression", *more)
        self.succeed("export", run, "--to", "peft", "-o", peft)

        def value(model, *adapter):
            return json.loads(self.succeed("classify", model, "--json", *adapter, stdin=b"the old king\n").stdout)["value"]

        self.assertGreater(value(run), 900)
        self.assertAlmostEqual(value(self.base, "--adapter", peft), value(run), 2)
        self.assertNotAlmostEqual(value(self.folder / "whole"), value(run), 2)
        config = json.loads((peft / "adapter_config.json").read_text(encoding="utf-8"))
        self.assertEqual(config["modules_to_save"], ["classifier", "pooler"])
        found = value(self.folder / "whole", "--adapter", peft)
        self.assertGreater(found, 900)
        self.assertLess(found, 1200)

    def test_a_head_on_a_run(self):
        """It takes the place of the run's own."""
        self.begin("classify", "run", "--stop-after", "2u")
        self.begin("classify", "other", "--lora", 2)
        self.succeed("export", self.folder / "other", "--to", "peft", "-o", self.folder / "peft")
        shutil.copytree(self.folder / "peft", self.folder / "head")
        said = self.succeed("classify", self.folder / "run", "--json", "--adapter", self.folder / "head", stdin=b"the old king\n").stdout
        self.assertIn(json.loads(said)["label"], {label for label, _ in (line.split("\t") for line in self.data["classify"].read_text().splitlines())})
        self.begin("tag", "crf", "--stop-after", "2u", "--head", "crf")
        self.begin("tag", "tags", "--lora", 2)
        self.succeed("export", self.folder / "tags", "--to", "peft", "-o", self.folder / "tags-peft")
        done = self.run_fovea("tag", self.folder / "crf", "--adapter", self.folder / "tags-peft", stdin=b"the\n")
        self.assert_error(done, 4, "a CRF, and adapters hold a head of transformers")


if __name__ == "__main__":
    unittest.main()

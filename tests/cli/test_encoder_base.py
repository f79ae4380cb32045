#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Classifiers and taggers that begin from a pretrained encoder (train classify --base, train tag --base): small random
models of BERT."""

import json
import random
import shutil
import signal
import time
import unittest

from bert_support import VOCABULARY, WORDS, weights, write_head, write_json, write_model, write_mpnet
from forged import forge_json
from gguf_support import gguf
from support import CommandTest
from test_base import tensors_of

FEW = ("--batch-size", 8, "--lr", "1e-2", "--stop-after", "400u", "--eval-every", "100u", "--save-every", "100u",
       "--threads", 2, "--progress", "none", "--dropout", 0, "--encoder-dropout", 0)
LABELS = {"king": "royal", "dog": "animal", "moon": "sky"}
FILLER = ["the", "old", "sees", "running", "runs", "unable", "!", ","]


def labelled(count=120, most=9, seed=1):
    """Texts with one telling word, and its label."""
    rng = random.Random(seed)
    rows = []
    for n in range(count):
        word = list(LABELS)[n % 3]
        text = rng.choices(FILLER, k=rng.randint(2, most))
        text[rng.randrange(len(text))] = word
        rows.append((LABELS[word], " ".join(text)))
    return rows


def tagged(count=100, seed=2):
    """Sentences of words and tags: a span is "the old KING", its type that of the last word."""
    rng = random.Random(seed)
    sentences = []
    for n in range(count):
        kind = list(LABELS)[n % 3]
        span = [("old", f"B-{LABELS[kind]}"), (kind, f"I-{LABELS[kind]}")]
        before = [(rng.choice(["sees", "running", "unable"]), "O") for _ in range(rng.randint(0, 3))]
        sentences.append([*before, *span, (rng.choice([".", "!"]), "O")])
    return sentences


class BaseTest(CommandTest):
    task = "classify"

    def setUp(self):
        super().setUp()
        self.base = write_model(self.folder / "base")
        self.data = self.folder / "data.tsv"
        self.data.write_text("".join(f"{label}\t{text}\n" for label, text in labelled()), encoding="utf-8")

    def begin(self, output, *more, base=None, data=None, **options):
        return self.succeed("train", self.task, "--base", base or self.base, "--train", data or self.data, "-o",
                            self.folder / output, *FEW, *more, **options)

    def fails(self, status, needle, *more, base=None):
        done = self.run_fovea("train", self.task, "--base", base or self.base, "--train", self.data, "-o",
                              self.folder / "failed", *more)
        self.assert_error(done, status, *([needle] if isinstance(needle, str) else needle))
        self.assertFalse((self.folder / "failed").exists())

    def bits(self, output):
        return (self.folder / output / "model.safetensors").read_bytes()

    def config(self, output):
        return json.loads((self.folder / output / "config.json").read_text(encoding="utf-8"))

    def score(self, output, data=None):
        return json.loads(self.succeed("eval", self.folder / output, "--test", data or self.data, "--json").stdout)

    def bad_bases(self):
        """Of each base that cannot be one, what is said of it."""
        model = self.folder / "lm.gguf"
        model.write_bytes(gguf())
        bag = self.folder / "bag"
        self.succeed("train", "classify", "--train", self.folder / "data.tsv", "--model", "bag", "--width", 8, "-o",
                     bag, "--stop-after", "2u", "--progress", "none")
        lacking = write_model(self.folder / "lacking")
        (lacking / "tokenizer.json").unlink()
        other = write_model(self.folder / "other")
        write_json(other / "config.json", {"model_type": "t5"})
        short = write_model(self.folder / "short", {name: tensor for name, tensor in weights().items() if "layer.1.output" not in name})
        return [(model, "a language model, and no encoder"), (bag, "trained from the start"),
                (self.folder / "nowhere", "no such folder"), (lacking, "neither tokenizer.json nor vocab.txt"),
                (other, "t5"), (short, "layer.1.output")]


class Classifies(BaseTest):
    def test_learns_and_needs_the_base_no_longer(self):
        said = self.begin("run").stderr.decode()
        self.assertIn("classes: 3", said)
        shutil.rmtree(self.base)
        config = self.config("run")
        self.assertEqual((config["model"]["model"], config["model"]["base"]["layers"], config["model"]["width"],
                          config["text"]["tokenizer"]), ("pretrained", 2, 8, "pretrained"))
        self.assertGreater(self.score("run")["accuracy"]["value"], 0.9)
        answers = self.succeed("classify", self.folder / "run", stdin=b"the old king\nsees the moon").stdout.decode()
        self.assertEqual([line.split("\t")[0] for line in answers.splitlines()], ["royal", "sky"])
        shown = self.succeed("inspect", self.folder / "run").stdout.decode()
        self.assertIn("label royal", shown)
        self.assertIn("model.heads", shown)
        for idle in ("model.pooling", "model.init", "text.words", "text.min_count", "linear."):
            self.assertNotIn(idle, shown)
        self.succeed("inspect", self.folder / "run", "--verify")
        shown = json.loads(self.succeed("explain", self.folder / "run", "the running king", "--json").stdout)
        self.assertEqual(shown["tokens"], ["[CLS]", "the", "run", "##ning", "king", "[SEP]"])
        self.assertEqual((len(shown["layers"]), shown["prediction"][0]["label"]), (2, "royal"))
        self.assertAlmostEqual(sum(json.loads(self.succeed(
            "explain", self.folder / "run", "the king", "--json", "--saliency", "rollout").stdout)["saliency"]["values"]), 1, places=5)
        self.assert_error(self.run_fovea("explain", self.folder / "run", ""), 3, "no token")
        self.succeed("report", self.folder / "run", "-o", self.folder / "page.html")

    def test_the_first_weights_are_those_of_the_base(self):
        self.begin("run", "--stop-after", "1u", "--freeze", "embeddings,0-1")
        ours, theirs = (tensors_of(folder / "model.safetensors") for folder in (self.folder / "run", self.base))
        self.assertEqual(ours["embedding.tokens"], theirs["embeddings.word_embeddings.weight"])
        self.assertEqual(ours["blocks.1.attention.qkv.weight"],
                         b"".join(theirs[f"encoder.layer.1.attention.self.{part}.weight"] for part in ("query", "key", "value")))
        self.assertEqual(len(ours["output.weight"]), 3 * 8 * 4)

    def test_defaults_are_those_of_an_encoder_that_is_trained_already(self):
        shown = self.succeed("train", "classify", "--base", self.base, "--train", self.data, "--dump-config").stdout.decode()
        for line in ("lr = 5e-05", "batch_size = 16", "schedule = 'linear'", "dropout = 0.1", "encoder_dropout = 0.1",
                     "tokenizer = 'pretrained'"):
            self.assertIn(line, shown)
        recipe = self.folder / "recipe.toml"
        recipe.write_text(shown.replace("5e-05", "0.01"), encoding="utf-8")
        self.succeed("train", "classify", "-c", recipe, "-o", self.folder / "run", "--stop-after", "2u")

    def test_any_number_of_threads_and_a_resumed_run_give_the_same_bits(self):
        self.begin("two", "--dropout", 0.1, "--encoder-dropout", 0.1)
        for threads in (1, 3):
            self.begin(f"threads-{threads}", "--threads", threads, "--dropout", 0.1, "--encoder-dropout", 0.1)
            self.assertEqual(self.bits(f"threads-{threads}"), self.bits("two"))
        shutil.rmtree(self.base)
        again = self.folder / "again"
        shutil.copytree(self.folder / "two", again)
        self.succeed("train", "classify", f"--resume={again}/checkpoints/step-000300", "--overwrite", "--threads", 3)
        self.assertEqual(self.bits("again"), self.bits("two"))

    def test_stops_and_goes_on(self):
        process = self.start("train", "classify", "--base", self.base, "--train", self.data, "-o", self.folder / "run",
                             *FEW, "--stop-after", "100000u")
        while not (self.folder / "run" / "checkpoints").exists():
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        self.assertIn("to go on", process.communicate(timeout=60)[1].decode())
        checkpoints = self.folder / "run" / "checkpoints"
        stopped = int(max(checkpoints.glob("step-??????")).name.removeprefix("step-"))
        end = 100 * (stopped // 100 + 2)
        self.succeed("train", "classify", "--resume", "-o", self.folder / "run", "--stop-after", f"{end}u")
        self.assertEqual(max(checkpoints.glob("step-??????")).name, f"step-{end:06}")

    def test_a_run_without_a_checkpoint_begins_from_the_base_again(self):
        self.begin("run")
        again = self.folder / "again"
        shutil.copytree(self.folder / "run", again)
        shutil.rmtree(again / "checkpoints")
        self.succeed("train", "classify", "--resume", "-o", again)
        self.assertEqual(self.bits("again"), self.bits("run"))

    def test_a_warm_up_that_is_said_is_kept(self):
        few = ("--stop-after", "100u")
        self.begin("usual", *few)
        self.assertEqual(self.config("usual")["recipe"]["warmup"], 10)
        self.begin("run", *few, "--warmup", 50)
        self.assertEqual(self.config("run")["recipe"]["warmup"], 50)
        self.begin("long", "--stop-after", "500u", "--keep", 9)
        said = self.succeed("train", "classify", f"--resume={self.folder}/long/checkpoints/step-000100", "--overwrite",
                            "--stop-after", "200u").stderr.decode()
        self.assertNotIn("--warmup", said)
        kept = self.folder / "long" / "checkpoints" / "step-000200" / "config.json"
        self.assertEqual(json.loads(kept.read_text(encoding="utf-8"))["recipe"]["warmup"], 50)

    def test_biases_that_all_blocks_share_are_frozen_with_the_embeddings(self):
        self.base = write_mpnet(self.folder / "mpnet")
        self.begin("run", "--stop-after", "3u", "--freeze", "embeddings,0-1")
        ours, theirs = (tensors_of(folder / "model.safetensors") for folder in (self.folder / "run", self.base))
        self.assertEqual(ours["distances.weight"], theirs["encoder.relative_attention_bias.weight"])

    def test_frozen_parts_stay_as_they_are(self):
        self.begin("first", "--stop-after", "1u", "--freeze", "embeddings,0-1")
        self.begin("run", "--stop-after", "4u", "--freeze", "embeddings,0")
        shutil.rmtree(self.base)
        self.succeed("train", "classify", "--resume", "-o", self.folder / "run", "--stop-after", "8u")
        was, now = (tensors_of(self.folder / name / "model.safetensors") for name in ("first", "run"))
        kept = {name for name in was if was[name] == now[name]}
        self.assertEqual(kept, {name for name in was if name.startswith(("embedding", "types.", "blocks.0."))})
        self.base = write_model(self.folder / "base")
        self.fails(2, "layers from 0 to 1", "--freeze", "2")

    def test_layers_learn_the_slower_the_lower_they_are(self):
        self.begin("run", "--stop-after", "1u", "--weight-decay", 0, "--layer-lr-decay", 0.5)
        ours, theirs = (tensors_of(folder / "model.safetensors") for folder in (self.folder / "run", self.base))

        def change(name, was):
            """The first step of Adam is the learning rate."""
            return max(abs(a - b) for a, b in zip(memoryview(ours[name]).cast("f"), memoryview(theirs[was]).cast("f")))

        rates = [change("embedding_norm.bias", "embeddings.LayerNorm.bias"),
                 *(change(f"blocks.{n}.feed_forward_norm.bias", f"encoder.layer.{n}.output.LayerNorm.bias") for n in (0, 1)),
                 max(map(abs, memoryview(ours["output.bias"]).cast("f")))]
        for rate, share in zip(rates, (0.125, 0.25, 0.5, 1), strict=True):
            self.assertAlmostEqual(rate / rates[-1], share, 2)
        self.begin("whole", "--stop-after", "20u", "--save-every", "10u", "--layer-lr-decay", 0.5)
        shutil.copytree(self.folder / "whole", self.folder / "again")
        self.succeed("train", "classify", f"--resume={self.folder}/again/checkpoints/step-000010", "--overwrite")
        self.assertEqual(self.bits("again"), self.bits("whole"))
        self.fails(2, "--layer-lr-decay", "--layer-lr-decay", 1.5)
        self.assert_error(self.run_fovea("train", "classify", "--train", self.data, "--layer-lr-decay", 0.5, "-o",
                                         self.folder / "x"), 2, "--layer-lr-decay")

    def test_several_labels_and_numbers(self):
        several = self.folder / "several.jsonl"
        several.write_text("".join(json.dumps({"text": text, "label": [label] + ["loud"] * ("!" in text)}) + "\n"
                                   for label, text in labelled()), encoding="utf-8")
        self.begin("several", "--multi-label", "--lr", "5e-3", "--stop-after", "1000u", data=several)
        self.assertGreater(self.score("several", several)["micro_f1"]["value"], 0.8)
        numbers = self.folder / "numbers.tsv"
        numbers.write_text("".join(f"{100 + 10 * len(label)}\t{text}\n" for label, text in labelled()), encoding="utf-8")
        self.begin("numbers", "--regression", data=numbers)
        self.assertGreater(self.score("numbers", numbers)["pearson"]["value"], 0.8)
        value = float(self.succeed("classify", self.folder / "numbers", stdin=b"the moon").stdout)
        self.assertLess(abs(value - 130), 15)

    def test_long_texts_are_cut_and_counted(self):
        long = self.folder / "long.tsv"
        long.write_text("".join(f"{label}\t{text} {'the ' * 40}\n" for label, text in labelled(60)), encoding="utf-8")
        said = self.begin("run", data=long).stderr.decode()
        self.assertIn("cut to 16: 54", said)
        self.assertEqual(self.config("run")["text"]["max_length"], 16)
        self.assertIn("truncated", self.succeed("classify", self.folder / "run", stdin=b"the " * 50).stderr.decode())
        front = self.begin("front", "--truncate", "front", "--max-length", 8, data=long).stderr.decode()
        self.assertIn("cut to 8: 54", front)

    def test_a_base_with_a_head_gets_a_new_one(self):
        base, _ = write_head(self.folder / "head", "Sequence", ["bad", "good"])
        said = self.begin("run", base=base).stderr.decode()
        self.assertIn(f"{base} has a head (bad, good): it is left out", said)
        self.assertNotIn("warning", said)
        self.assertEqual(self.config("run")["labels"], ["animal", "royal", "sky"])
        ours, theirs = (tensors_of(folder / "model.safetensors") for folder in (self.folder / "run", base))
        self.assertEqual(ours.keys() - theirs.keys(), ours.keys())
        self.assertEqual(len(ours["pooler.weight"]), len(theirs["bert.pooler.dense.weight"]))

    def test_a_base_of_fovea(self):
        self.begin("first")
        said = self.begin("second", "--stop-after", "2u", "--freeze", "embeddings,0-1", base=self.folder / "first").stderr.decode()
        self.assertIn("has a head (animal, royal, sky)", said)
        was, now = (tensors_of(self.folder / name / "model.safetensors") for name in ("first", "second"))
        self.assertEqual({name for name in was if was[name] != now[name]},
                         {name for name in was if name.startswith(("pooler.", "output."))})
        self.assertEqual((self.folder / "first" / "tokenizer.txt").read_bytes(),
                         (self.folder / "second" / "tokenizer.txt").read_bytes())

    def test_mpnet(self):
        self.base = write_mpnet(self.folder / "mpnet")
        short = self.folder / "short.tsv"  # no text is longer than its positions
        short.write_text("".join(f"{label}\t{text}\n" for label, text in labelled(most=4)), encoding="utf-8")
        self.assertNotIn("cut to", self.begin("run", "--stop-after", "1500u", data=short).stderr.decode())
        self.assertGreater(self.score("run", short)["accuracy"]["value"], 0.9)
        self.succeed("inspect", self.folder / "run", "--verify")
        two = self.folder / "two.tsv"
        two.write_text("0\tthe king\n1\tthe moon\n", encoding="utf-8")
        head = write_mpnet(self.folder / "head", ["0", "1"])
        said = json.loads(self.succeed("eval", head, "--test", two, "--json").stdout)
        self.assertIn("accuracy", said)

    def test_what_the_base_decides(self):
        for option, value, has in (("--width", 9, "has 8"), ("--heads", 4, "has 2"), ("--model", "bag", "pretrained"),
                                   ("--tokenizer", "word", "pretrained"), ("--norm-position", "pre", "post")):
            self.fails(2, [option, has, "a training that begins from it keeps that"], option, value)
        for option, value in (("--encoder", "conv3"), ("--pooling", "max"), ("--words", "spaces"), ("--embeddings", "file.vec"),
                              ("--folds", 3), ("--min-count", 3), ("--word-ngrams", "1-2"), ("--ngrams", 2)):
            self.fails(2, f"{option}: has no effect with --base", option, value)
        self.fails(2, "reads at most 16 tokens", "--max-length", 17)
        for length in (1, 2):
            self.fails(2, [f"--max-length {length}", "2 marks", "no room"], "--max-length", length)
        self.begin("short", "--max-length", 3, "--stop-after", "1u")
        self.fails(2, "--auto, --base", "--auto", "3t")
        self.begin("run", "--width", 8, "--stop-after", "1u")  # as it is
        self.assert_error(self.run_fovea("train", "classify", "--train", self.data, "--model", "pretrained", "-o",
                                         self.folder / "x"), 2, "--model: pretrained is not a model without --base")

    def test_bases_that_are_none(self):
        for base, needle in self.bad_bases():
            with self.subTest(base.name):
                self.fails(4, needle, base=base)

    def test_plans_without_training(self):
        said = self.succeed("train", "classify", "--base", self.base, "--train", self.data, "--dry-run").stdout.decode()
        self.assertIn("memory", said)

    def test_a_length_without_room_beside_the_marks_is_damage(self):
        self.begin("run", "--stop-after", "1u")
        forge_json(self.folder / "run", "config.json", lambda config: config["text"].update(max_length=2))
        self.assert_error(self.run_fovea("classify", self.folder / "run", stdin=b"the"), 4, "config.json", "2 marks")

    def test_a_damaged_base_of_fovea_is_found(self):
        self.begin("first", "--stop-after", "1u")
        weights_of_first = self.folder / "first" / "model.safetensors"
        whole = weights_of_first.read_bytes()
        weights_of_first.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        done = self.run_fovea("train", "classify", "--base", self.folder / "first", "--train", self.data, "-o", self.folder / "x", *FEW)
        self.assert_error(done, 4, "wrong checksum")
        weights_of_first.unlink()
        self.fails(4, "model.safetensors", base=self.folder / "first")

    def test_a_damaged_tokenizer_is_found(self):
        self.begin("run", "--stop-after", "1u")
        file = self.folder / "run" / "tokenizer.txt"
        file.write_text(file.read_text().replace("kind pretrained", "kind byte"))
        self.assert_error(self.run_fovea("classify", self.folder / "run", stdin=b"the"), 4, "tokenizer.txt")


class Tags(BaseTest):
    task = "tag"

    def setUp(self):
        super().setUp()
        self.data = self.folder / "data.conll"
        self.data.write_text("".join("".join(f"{w}\t{t}\n" for w, t in s) + "\n" for s in tagged()), encoding="utf-8")

    def test_learns_and_needs_the_base_no_longer(self):
        for head in ("softmax", "crf"):
            self.begin(head, "--head", head)
        shutil.rmtree(self.base)
        for head in ("softmax", "crf"):
            with self.subTest(head):
                run = self.folder / head
                self.assertGreater(self.score(head)["micro_f1"]["value"], 0.9)
                said = json.loads(self.succeed("tag", run, "--json", stdin=b"sees old king !").stdout)
                self.assertEqual(said["spans"], [{"type": "royal", "begin": 1, "end": 3, "text": "old king"}])
                self.assertIn("tag B-royal", self.succeed("inspect", run).stdout.decode())
                shown = json.loads(self.succeed("explain", run, "sees running old king !", "--json").stdout)
                self.assertEqual(shown["tokens"], ["[CLS]", "sees", "run", "##ning", "old", "king", "!", "[SEP]"])
                self.assertEqual(shown["tags"], ["", "O", "O", "", "B-royal", "I-royal", "O", ""])
                self.assertEqual((shown["probabilities"][3], len(shown["layers"])), (0, 2))
                for saliency in ("rollout", "gradient"):
                    self.succeed("explain", run, "old king", "--saliency", saliency, "--token", 3)
                self.assert_error(self.run_fovea("explain", run, "running king", "--token", 3), 2, '"##ning" begins no word')
                self.assert_error(self.run_fovea("explain", run, "old " * 30), 2, "at most 16 at once")
        self.succeed("report", self.folder / "crf", "-o", self.folder / "page.html")

    def test_the_first_weights_are_those_of_the_base(self):
        self.begin("run", "--stop-after", "1u", "--freeze", "embeddings,0-1")
        ours, theirs = (tensors_of(folder / "model.safetensors") for folder in (self.folder / "run", self.base))
        self.assertEqual(ours["embedding.tokens"], theirs["embeddings.word_embeddings.weight"])
        self.assertEqual(ours["blocks.0.feed_forward.out.weight"], theirs["encoder.layer.0.output.dense.weight"])
        self.assertNotIn("pooler.weight", ours)

    def test_any_number_of_threads_and_a_resumed_run_give_the_same_bits(self):
        more = ("--dropout", 0.1, "--encoder-dropout", 0.1)
        self.begin("two", *more)
        for threads in (1, 3):
            self.begin(f"threads-{threads}", "--threads", threads, *more)
            self.assertEqual(self.bits(f"threads-{threads}"), self.bits("two"))
        shutil.rmtree(self.base)
        again = self.folder / "again"
        shutil.copytree(self.folder / "two", again)
        self.succeed("train", "tag", f"--resume={again}/checkpoints/step-000300", "--overwrite", "--threads", 3)
        self.assertEqual(self.bits("again"), self.bits("two"))

    def test_a_run_without_a_checkpoint_begins_from_the_base_again(self):
        self.begin("run", "--stop-after", "20u")
        again = self.folder / "again"
        shutil.copytree(self.folder / "run", again)
        shutil.rmtree(again / "checkpoints")
        self.succeed("train", "tag", "--resume", "-o", again)
        self.assertEqual(self.bits("again"), self.bits("run"))

    def test_long_sentences_are_read_in_parts(self):
        long = self.folder / "long.conll"
        long.write_text("".join("".join(f"{w}\t{t}\n" for w, t in s * 6) + "\n" for s in tagged(40)), encoding="utf-8")
        said = self.begin("run", data=long).stderr.decode()
        self.assertIn("training sentences of more than 16 tokens: 3", said)
        self.assertIn("they are read in parts", said)
        self.assertGreater(self.score("run", long)["micro_f1"]["value"], 0.9)

    def test_a_word_without_a_subword(self):
        """Such a word is left out: what is learned, and said of the others, is as without it."""
        odd, all_odd = self.folder / "odd.conll", self.folder / "all.conll"
        text = self.data.read_text(encoding="utf-8")
        odd.write_text(text.replace("old\t", "\u200d\tB-sky\nold\t") + "\u200d\tO\n\n", encoding="utf-8")
        all_odd.write_text("\u200d\tO\n\u200d\tB-sky\n\n" * 20, encoding="utf-8")
        for head in ("softmax", "crf"):
            with self.subTest(head):
                self.begin(f"{head}-without", "--head", head, "--valid-fraction", 0)
                said = self.begin(head, "--head", head, "--valid-fraction", 0, data=odd).stderr.decode()
                self.assertIn("training words without a subword: 101; they are left out", said)
                self.assertEqual(*(tensors_of(self.folder / name / "model.safetensors") for name in (head, f"{head}-without")))
                said = json.loads(self.succeed("tag", self.folder / head, "--json", "--probabilities",
                                               stdin="sees old \u200d king ! \u200d".encode()).stdout)
                plain = json.loads(self.succeed("tag", self.folder / head, "--json", "--probabilities",
                                                stdin=b"sees old king !").stdout)
                self.assertEqual((said["tags"].pop(5), said["tags"].pop(2)), ("O", "O"))
                self.assertEqual(said["tags"], plain["tags"])
                self.assertEqual(said["probabilities"], [*plain["probabilities"][:2], 1, *plain["probabilities"][2:], 1])
                said = json.loads(self.succeed("tag", self.folder / head, "--json", stdin="\u200d".encode()).stdout)
                self.assertEqual(said["tags"], ["O"])
        self.data = all_odd
        self.fails(3, "which are all")

    def test_mpnet(self):
        self.base = write_mpnet(self.folder / "mpnet")
        self.begin("run")
        self.assertGreater(self.score("run")["micro_f1"]["value"], 0.9)

    def test_several_tag_columns(self):
        several = self.folder / "several.conll"
        several.write_text("".join("".join(f"{w}\t{t}\t{'X' if t == 'O' else 'Y'}\n" for w, t in s) + "\n" for s in tagged()),
                           encoding="utf-8")
        self.begin("run", "--tag-column", "2,3", "--scheme", "bio,none", data=several)
        said = json.loads(self.succeed("tag", self.folder / "run", "--json", stdin=b"sees old king !").stdout)
        self.assertEqual(said["columns"][1]["tags"], ["X", "Y", "Y", "X"])

    def test_a_base_with_a_head_gets_a_new_one(self):
        base, _ = write_head(self.folder / "head", "Token", ["O", "B-x", "I-x"])
        self.assertIn("has a head (O, B-x, I-x): it is left out", self.begin("run", base=base).stderr.decode())

    def test_a_classifier_of_fovea_as_base(self):
        self.succeed("train", "classify", "--base", self.base, "--train", self.folder / "data.tsv", "-o",
                     self.folder / "classifier", *FEW, "--stop-after", "5u")
        self.begin("run", "--stop-after", "1u", "--freeze", "embeddings,0-1", base=self.folder / "classifier")
        was, now = (tensors_of(self.folder / name / "model.safetensors") for name in ("classifier", "run"))
        self.assertEqual({name for name in now if was.get(name) != now[name]}, {"output.weight", "output.bias"})

    def test_what_the_base_decides(self):
        self.fails(2, ["--width", "has 8", "a training that begins from it keeps that"], "--width", 9)
        for option, value in (("--encoder", "conv3"), ("--word-width", 4), ("--character-reader", "bilstm"),
                              ("--embeddings", "file.vec"), ("--min-count", 3), ("--word-dropout", 0.4)):
            self.fails(2, f"{option}: has no effect with --base", option, value)
        self.fails(2, "reads at most 16 tokens", "--max-length", 17)
        for length in (1, 2):
            self.fails(2, [f"--max-length {length}", "2 marks", "no room"], "--max-length", length)
        self.begin("run", "--max-length", 3, "--stop-after", "1u")
        forge_json(self.folder / "run", "config.json", lambda config: config["text"].update(max_length=1))
        self.assert_error(self.run_fovea("tag", self.folder / "run", stdin=b"the"), 4, "config.json", "2 marks")
        self.fails(2, "--base, --task segment", "--task", "segment")

    def test_bases_that_are_none(self):
        for base, needle in self.bad_bases():
            with self.subTest(base.name):
                self.fails(4, needle, base=base)

    def test_plans_without_training(self):
        self.assertIn("memory", self.succeed("train", "tag", "--base", self.base, "--train", self.data, "--dry-run").stdout.decode())


class Exports(BaseTest):
    """What transformers says of such folders: tests/python/test_encoder_export.py."""

    def same(self, command, text):
        found = [self.succeed(command, self.folder / name, "--json", *self.more, stdin=text).stdout for name in ("run", "exported")]
        self.assertEqual(*found)

    def test_what_was_exported_gives_the_same_answers(self):
        long = self.folder / "long.jsonl"
        long.write_text("".join(json.dumps({"text": text + " moon" * 20, "label": label}) + "\n" for label, text in labelled()))
        numbers = self.folder / "numbers.tsv"
        numbers.write_text("".join(f"{100 + 10 * len(label)}\t{text}\n" for label, text in labelled()), encoding="utf-8")
        conll = self.folder / "data.conll"
        conll.write_text("".join("".join(f"{w}\t{t}\n" for w, t in s) + "\n" for s in tagged()), encoding="utf-8")
        for task, data, options in (("classify", self.data, ()), ("classify", long, ("--max-length", 9)), ("tag", conll, ())):
            with self.subTest(task, options=options):
                self.task, self.more = task, ("--probabilities",) if task == "tag" else ("--top", 3)
                self.begin("run", "--stop-after", "30u", "--overwrite", *options, data=data)
                said = json.loads(self.succeed("export", self.folder / "run", "-o", self.folder / "exported", "--overwrite", "--json").stdout)
                self.assertEqual(said["architecture"], f"BertFor{'Token' if task == 'tag' else 'Sequence'}Classification")
                self.same(task, b"the old king sees " * 4)
                self.succeed("inspect", self.folder / "exported")
        self.task = "classify"
        self.begin("run", "--stop-after", "30u", "--overwrite", "--regression", data=numbers)
        self.succeed("export", self.folder / "run", "-o", self.folder / "exported", "--overwrite")
        values = [float(self.succeed("classify", self.folder / name, stdin=b"the king").stdout) for name in ("run", "exported")]
        self.assertAlmostEqual(*values, 3)

    def test_an_export_is_a_base_again(self):
        self.begin("run", "--stop-after", "5u")
        self.succeed("export", self.folder / "run", "-o", self.folder / "exported")
        self.begin("again", "--stop-after", "1u", "--freeze", "embeddings,0-1", base=self.folder / "exported")
        was, now = (tensors_of(self.folder / name / "model.safetensors") for name in ("run", "again"))
        self.assertEqual({name for name in was if was[name] != now[name] and not name.startswith("pooler.")},
                         {"output.weight", "output.bias"})

    def test_what_transformers_does_not_have(self):
        data = self.data
        self.data = self.folder / "data.conll"
        self.data.write_text("".join("".join(f"{w}\t{t}\n" for w, t in s) + "\n" for s in tagged()), encoding="utf-8")
        self.task = "tag"
        self.begin("crf", "--head", "crf", "--stop-after", "1u")
        self.succeed("train", "classify", "--train", data, "--model", "bag", "-o", self.folder / "bag", "--stop-after", "1u")
        foreign, _ = write_head(self.folder / "head", "Sequence", ["bad", "good"])
        for model, needle in ((self.folder / "crf", "a CRF"), (self.folder / "bag", "did not begin from an encoder"),
                              (foreign, "models that fovea has trained")):
            self.assert_error(self.run_fovea("export", model, "-o", self.folder / "x"), 4, needle)
            self.assertFalse((self.folder / "x").exists())


if __name__ == "__main__":
    unittest.main()

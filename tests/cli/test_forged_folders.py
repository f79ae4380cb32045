# SPDX-License-Identifier: Apache-2.0
"""Folders that somebody has altered, with every checksum right: refused in a line, in little memory, without harm."""

import os
import shutil
import struct
import unittest

import forged
from support import CommandTest
from tag_support import TagTest, conll, tagged

MIB = 1 << 20
CHECKPOINT = "checkpoints/step-000006"


def setting(part, **values):
    """config.json with other values."""
    return lambda folder: forged.forge_json(folder, "config.json", lambda config: config[part].update(values))


def state(name, value):
    return lambda folder: forged.forge_json(folder, "state.json", lambda content: content["state"].update({name: value}))


def text_of(name, old, new):
    """A file whose text is changed."""
    def change(folder):
        whole = (folder / name).read_bytes()
        assert old in whole, old
        forged.forge(folder, name, whole.replace(old, new, 1))
    return change


def tokenizer(*args, **options):
    return lambda folder: forged.forge(folder, "tokenizer.txt", forged.tokenizer_bytes(*args, **options))


def tensors(name, change):
    return lambda folder: forged.forge_listed_tensors(folder, name, change)


def reshaped(header, _):
    name = next(key for key in header if header[key].get("shape", []) == [32, 32])
    header[name]["shape"] = [16, 64]


def renamed(header, _):
    name = next(key for key in header if key != "__metadata__")
    header["other"] = header.pop(name)


def dropped(header, data):
    """The last one is not there."""
    names = [key for key in header if key != "__metadata__"]
    last = max(names, key=lambda key: header[key]["data_offsets"])
    del data[header.pop(last)["data_offsets"][0]:]


def another(header, data):
    header["more"] = {"dtype": "F32", "shape": [1], "data_offsets": [len(data), len(data) + 4]}
    data += bytes(4)


def retyped(name, dtype):
    """The values of a tensor are read as another type of the same size."""
    def change(header, _):
        key = next(key for key in header if key.endswith(name))
        header[key]["dtype"] = dtype
    return change


def not_a_number(_, data):
    data[:] = struct.pack("<f", float("nan")) * (len(data) // 4)


def infinite(header, data):
    """The first gain of the norm before the logits."""
    begin = header["norm.weight"]["data_offsets"][0]
    data[begin:begin + 4] = struct.pack("<f", float("inf"))


def listed(change):
    return lambda folder: forged.forge_manifest(folder, change)


def entry(**values):
    """The manifest says other things of its first file."""
    return listed(lambda body: body["files"][0].update(values))


def one_more(name, size=0):
    return listed(lambda body: body["files"].append({"name": name, "size": size, "xxh3-128": "0" * 32}))


def linked(name, target):
    """A file is a link to what lies elsewhere."""
    def change(folder):
        (folder / name).unlink()
        (folder / name).symlink_to(target)
    return change


def hole(name, size):
    """The file is as large as the manifest says, and holds nothing."""
    def change(folder):
        os.truncate(folder / name, size)
        forged.forge_manifest(folder, lambda body: next(e for e in body["files"] if e["name"] == name).update(size=size))
    return change


def nested(folder):
    forged.forge(folder, "config.json", b'{"kind":"language_model","text":' + b"[" * 100000)


# What is wrong, and who refuses it: all that take a model, or a resume alone.
MODELS = [
    ("a width beyond any memory", setting("model", width=2**31 - 1), "config.json"),
    ("a width beyond this machine's memory", setting("model", width=2**21), "config.json"),
    ("layers beyond any memory", setting("model", layers=65536, width=1 << 20), "config.json"),
    ("a feed-forward width beyond memory", setting("model", ff=2**31 - 1), "config.json"),
    ("a head width beyond counting", setting("model", head_dim=2**62), "config.json"),
    ("a block beyond memory", setting("model", block=2**31 - 1), "config.json"),
    ("heads below zero", setting("model", heads=-2), "config.json"),
    ("no layers", setting("model", layers=0), "config.json"),
    ("an unknown position", setting("model", position="../x"), "config.json"),
    ("a number beyond a double", text_of("config.json", b'"dropout": 0.0', b'"dropout": 1e999'), "config.json"),
    ("a text for a number", setting("model", width="32"), "config.json"),
    ("a key twice", text_of("config.json", b'"layers": 2,', b'"layers": 2, "layers": 3,'), "config.json"),
    ("nesting without end", nested, "config.json"),
    ("a model of another kind", text_of("config.json", b"language_model", b"classifier"), "config.json"),
    ("a larger vocabulary", setting("model", vocabulary=2**31 - 1), "the tokenizer has"),
    ("characters twice", tokenizer("char", ["U+0041"] * 2), "tokenizer.txt"),
    ("a character that is none", tokenizer("char", ["U+D800"]), "tokenizer.txt"),
    ("characters beyond memory", tokenizer("char", ["U+0041"], count=10**15), "tokenizer.txt"),
    ("an unknown tokenizer", tokenizer("../x", []), "tokenizer"),
    ("another tokenizer", tokenizer("byte", []), "the tokenizer has"),
    ("weights of another shape", tensors("model.safetensors", reshaped), "model.safetensors"),
    ("weights of another type", tensors("model.safetensors", retyped("weight", "I32")), "model.safetensors"),
    ("weights of another name", tensors("model.safetensors", renamed), "model.safetensors"),
    ("weights that are missing", tensors("model.safetensors", dropped), "model.safetensors"),
    ("weights of nothing", tensors("model.safetensors", another), "model.safetensors"),
    ("a file elsewhere", entry(name="../config.json"), "'../config.json'"),
    ("a file at the root", entry(name="/etc/passwd"), "'/etc/passwd'"),
    ("a hidden file", entry(name=".config.json"), "'.config.json'"),
    ("the manifest in itself", one_more("MANIFEST.json"), "'MANIFEST.json'"),
    ("a file twice", one_more("config.json"), "'config.json'"),
    ("a size below zero", entry(size=-1), "config.json"),
    ("a size beyond any disk", entry(size=2**63 - 1), "config.json"),
    ("a manifest of another version", listed(lambda body: body.update(version=2)), "version 2"),
    ("a manifest that has more keys", listed(lambda body: body.update(more=1)), "MANIFEST.json"),
    ("a device for a file", linked("config.json", "/dev/zero"), "config.json"),
    ("a folder for a file", linked("config.json", "/"), "config.json"),
]
RESUMES = [
    ("a step before the first", state("step", -1), "step"),
    ("a step beyond counting", state("step", 2**63), "step"),
    ("a step that is not the folder's", state("step", 2**62), "step"),
    ("metrics before their begin", state("metrics_bytes", -1), "metrics_bytes"),
    ("targets below zero", state("tokens", -1), "tokens"),
    ("a window below zero", state("window_tokens", -1), "window_tokens"),
    ("time that ran backwards", state("seconds", -1e300), "seconds"),
    ("a best step to come", state("best_step", 2**62), "best_step"),
    ("a loss that is a text", state("train_loss", "low"), "train_loss"),
    ("moments of another shape", tensors("optimizer.safetensors", reshaped), "optimizer.safetensors"),
    ("moments of another type", tensors("optimizer.safetensors", retyped(".m", "I32")), "optimizer.safetensors"),
    ("moments that are missing", tensors("optimizer.safetensors", dropped), "optimizer.safetensors"),
    ("moments that are no numbers", tensors("optimizer.safetensors", not_a_number), "optimizer.safetensors"),
    ("losses of another type", tensors("optimizer.safetensors", retyped("recent_losses", "I64")), "recent_losses"),
    ("a checkpoint of another step", listed(lambda body: body.update(step=7)), "step"),
]


class ForgedFolders(CommandTest):
    def setUp(self):
        super().setUp()
        self.model = self.folder / "model"
        self.train(self.model, "--stop-after", "6u", "--save-every", "3u", "--eval-every", "3u")
        self.outside = self.folder / "outside.txt"
        self.outside.write_text("mine")

    def said(self, *words):
        """What the command says; it is refused with little memory."""
        done, peak = self.peak_of(*words)
        self.assertLess(peak, 384 * MIB)
        return done

    def forged(self, change):
        """A run whose newest checkpoint is changed."""
        run = self.folder / "forged"
        shutil.rmtree(run, ignore_errors=True)
        shutil.copytree(self.model, run)
        shutil.rmtree(run / "checkpoints" / "step-000003")
        change(run / CHECKPOINT)
        return run

    def assert_nothing_else_changed(self):
        self.assertEqual({path.name for path in self.folder.iterdir()}, {"model", "forged", "outside.txt", "text.txt"})
        self.assertEqual(self.outside.read_text(), "mine")

    def resume(self, run):
        return self.said("train", "lm", f"--resume={run / CHECKPOINT}", "-o", run, "--stop-after", "9u")

    def test_a_copy_that_is_not_altered_is_whole(self):
        run = self.forged(lambda folder: forged.forge_json(folder, "config.json", lambda config: None))
        for words in [["generate", run / CHECKPOINT, "the", "--max-tokens", "3"], ["inspect", run / CHECKPOINT, "--verify"]]:
            self.assertEqual(self.said(*words).returncode, 0, words)
        self.assertEqual(self.resume(run).returncode, 0)

    def test_models_are_refused(self):
        for name, change, needle in MODELS:
            with self.subTest(forged=name):
                checkpoint = self.forged(change) / CHECKPOINT
                for words in [["generate", checkpoint, "the"], ["eval", checkpoint, "--test", self.text]]:
                    self.assert_error(self.said(*words), 4, needle)
                self.assertIn(self.said("inspect", checkpoint).returncode, (0, 4))
                self.assertIn(self.said("inspect", checkpoint, "--verify").returncode, (0, 4))
                # A resume reads the sizes as options are read, and takes the vocabulary of the tokenizer.
                self.assertIn(self.resume(checkpoint.parents[1]).returncode, (0, 2, 4, 6, 7))
                self.assert_nothing_else_changed()

    def test_a_file_of_holes_is_larger_than_memory(self):
        checkpoint = self.forged(hole("model.safetensors", 1 << 42)) / CHECKPOINT
        self.assert_error(self.said("generate", checkpoint, "the"), 6, "TiB")
        self.assert_error(self.resume(checkpoint.parents[1]), 6, "model.safetensors")

    def test_weights_that_are_no_numbers_write_nothing(self):
        checkpoint = self.forged(tensors("model.safetensors", not_a_number)) / CHECKPOINT
        self.assert_error(self.said("generate", checkpoint, "the"), 4, "the model gives no token a probability")

    def test_a_logit_that_is_infinite_writes_nothing(self):
        checkpoint = self.forged(tensors("model.safetensors", infinite)) / CHECKPOINT
        for options in ([], ["--greedy"]):
            self.assert_error(self.said("generate", checkpoint, "the", *options), 4, "a logit of the model is NaN or infinite")

    def test_weights_that_are_no_numbers_have_no_loss(self):
        checkpoint = self.forged(tensors("model.safetensors", not_a_number)) / CHECKPOINT
        self.assert_error(self.said("eval", checkpoint, "--test", self.folder / "text.txt"), 4, "the loss of the text is NaN")

    def test_weights_of_no_update_are_damage(self):
        for step in ("final", "9" * 30, "-1", "6 "):
            self.forged(lambda folder: forged.forge_tensors(
                folder.parents[1] / "model.safetensors",
                lambda header, _, step=step: header["__metadata__"].update(step=step)))
            self.assert_error(self.said("inspect", self.folder / "forged"), 4, "step: expected a number of updates")

    def test_another_kind_is_no_checkpoint(self):
        run = self.forged(listed(lambda body: body.update(kind="other")))
        self.assert_error(self.resume(run), 2, "is not of the run in")

    def test_states_are_refused(self):
        for name, change, needle in RESUMES:
            with self.subTest(forged=name):
                self.assert_error(self.resume(self.forged(change)), 4, needle)
                self.assert_nothing_else_changed()


def of_text(**values):
    return lambda config: config["text"].update(values)


def of_model(**values):
    return lambda config: config["model"].update(values)


TAGGERS = [
    ("a word in no column", of_text(word_column=-1), "--word-column: -1 is not in 1 to 10000"),
    ("a tag in the column of the word", of_text(tag_column=1), "--tag-column: 1 is the column of the word"),
    ("columns twice", of_text(column=["upos", "upos"]), "--column"),
    ("another format", of_text(format="nonsense"), "format"),
    ("a scheme that is none", of_text(scheme="nonsense"), "scheme"),
    ("another scheme", of_text(scheme="bmes"), "config.json"),
    ("the scheme is left open", of_text(scheme="auto"), "expected a scheme, got auto"),
    ("two schemes", of_text(scheme=["bio", "bio"]), "expected schemes for 1 tag columns"),
    ("no sentence is short enough", of_text(max_length=0), "max_length"),
    ("equal tags", lambda config: config.update(tags=config["tags"][:1] * len(config["tags"])), "differ from each other"),
    ("tags of no scheme", lambda config: config["tags"].__setitem__(0, "nonsense"), "config.json"),
    ("fewer tags", lambda config: config["tags"].pop(), "tags"),
    ("tags that are numbers", lambda config: config.update(tags=[1, 2, 3]), "tags"),
    ("no tags", of_model(tags=0), "tags"),
    ("negative tags", of_model(tags=[-1, 6]), "tags"),
    ("two heads", of_model(head=["crf", "crf"]), "--head"),
    ("an odd width of characters", of_model(character_reader="bilstm", character_features=7), "config.json"),
    ("no layer of that name", of_model(encoder="nonsense"), "nonsense"),
    ("an unknown field", of_model(more=1), "more"),
]


class Taggers(TagTest):
    def test_taggers_are_refused(self):
        text = self.write("text.conll", conll(tagged(count=40)))
        self.fit(text, "--stop-after", "6u", "--save-every", "6u")
        for name, change, needle in TAGGERS:
            with self.subTest(forged=name):
                run = self.folder / "forged"
                shutil.rmtree(run, ignore_errors=True)
                shutil.copytree(self.folder / "model", run)
                for folder in (run, run / CHECKPOINT):
                    forged.forge_json(folder, "config.json", change)
                    for words in (["tag", folder, text], ["eval", folder, "--test", text], ["explain", folder, "Ada saw"]):
                        self.fails(4, needle, *words)
                self.assertIn(self.run_fovea("inspect", run).returncode, (0, 4))
                self.fails(4, "config.json", "train", "tag", "--resume", "-o", run, "--stop-after", "9u")

    def test_a_classifier_whose_table_cannot_be_is_refused(self):
        text = self.write("text.tsv", "good film\tp\nbad film\tn\n" * 20)
        self.succeed("train", "classify", "--train", text, "-o", self.folder / "model", "--width", "8", "--stop-after",
                     "2u", "--progress", "none")
        for folder in (self.folder / "model", self.folder / "model/checkpoints/step-000002"):
            forged.forge_json(folder, "config.json", of_text(separator="nonsense"))
        for words in (["classify", self.folder / "model", text], ["eval", self.folder / "model", "--test", text],
                      ["train", "classify", "--resume", "-o", self.folder / "model"]):
            self.fails(4, "--separator: nonsense", *words)


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""fovea explain and fovea demo: what they print, write and refuse."""

import base64
import fcntl
import hashlib
import json
import math
import os
import pty
import re
import shutil
import struct
import subprocess
import termios
import unicodedata
import unittest
from pathlib import Path

from support import FOVEA, CommandTest
from tensor_files import Tensor, write

SENTENCE = "Attention weights are no explanation by themselves"
UTF8 = {"LC_ALL": "C.UTF-8", "NO_COLOR": "1"}
LATIN = {"LC_ALL": "C", "NO_COLOR": "1"}


def width(text):
    """Columns of a terminal."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


class Explain(CommandTest):
    models = None

    @classmethod
    def setUpClass(cls):
        """Two models, trained once: a classifier and a language model."""
        super().setUpClass()
        cls.models = Path(subprocess.run(["mktemp", "-d"], capture_output=True, check=True, text=True).stdout.strip())
        cls.addClassCleanup(shutil.rmtree, cls.models, ignore_errors=True)
        reviews = cls.models / "reviews.tsv"
        reviews.write_text("".join(f"pos\ta good film, number {i % 7}\nneg\ta dull plot, number {i % 5}\n"
                                   for i in range(40)), encoding="utf-8")
        write(cls.models / "moves.npz", {"x": Tensor("F32", (1, 2, 1), [0, 1])})
        lines = cls.models / "lines.txt"
        lines.write_text("你是人，我是猫。今天很好 😀\nthe cat sees the moon\n" * 60, encoding="utf-8")
        env = {k: v for k, v in os.environ.items() if not k.startswith("FOVEA_")}
        small = ["--stop-after", "150u", "--lr", "0.01", "--width", "16", "--heads", "2", "--threads", "2", "-q"]
        for args in (["train", "classify", "--train", reviews, "--encoder", "attention,transformer", "-o",
                      cls.models / "reviews", *small],
                     ["train", "lm", "--train", lines, "--layers", "2", "--block", "24", "-o", cls.models / "lm", *small]):
            done = subprocess.run([FOVEA, *map(str, args)], capture_output=True, env=env, timeout=120)
            assert done.returncode == 0, done.stderr.decode()

    def object_of(self, *args, **options):
        return json.loads(self.succeed("explain", *args, "--json", **options).stdout)

    def test_a_classifier(self):
        said = self.succeed("explain", self.models / "reviews", "a good film", env=UTF8).stdout.decode()
        self.assertRegex(said, r"\Alabel: pos [.\d]+, neg [.\d]+\n")
        for part in (SENTENCE, "layer 2 (transformer), mean of 2 heads", "gradient x input", "1 a ", "3 film ",
                     'the logit of "pos"', "arXiv:1312.6034"):
            self.assertIn(part, said)
        self.assertNotIn("\x1b", said)
        answer = self.succeed("classify", self.models / "reviews", "--json", "--top", "2", stdin=b"a good film\n")
        probabilities = json.loads(answer.stdout)["probabilities"]
        found = self.object_of(self.models / "reviews", "a good film")
        self.assertEqual([p["label"] for p in found["prediction"]], ["pos", "neg"])
        for one in found["prediction"]:
            self.assertAlmostEqual(one["probability"], probabilities[one["label"]], delta=1e-6)
        self.assertGreater(found["saliency"]["values"][1], found["saliency"]["values"][0])  # "good"

    def test_the_weights_of_every_head(self):
        found = self.object_of(self.models / "lm", "the cat")
        self.assertEqual(found["tokens"], list("the cat"))
        self.assertEqual([layer["layer"] for layer in found["layers"]], [1, 2])
        for layer in found["layers"]:
            self.assertEqual([head["head"] for head in layer["heads"]], [1, 2])
            for head in layer["heads"]:
                entropy = distance = 0
                for i, row in enumerate(head["weights"]):
                    self.assertAlmostEqual(sum(row), 1, delta=1e-5)
                    self.assertEqual(set(row[i + 1:]) - {0}, set())  # later tokens
                    entropy -= sum(w * math.log(w) for w in row if w > 0)
                    distance += sum(w * abs(i - j) for j, w in enumerate(row))
                self.assertAlmostEqual(head["entropy"], entropy / 7, delta=1e-4)
                self.assertAlmostEqual(head["distance"], distance / 7, delta=1e-4)
                self.assertEqual(head["largest"], max(map(max, head["weights"][1:])))  # the first has no choice
        one = self.object_of(self.models / "lm", "the cat", "--layer", 2, "--head", 1)
        self.assertEqual(one["layers"], [{**found["layers"][1], "heads": found["layers"][1]["heads"][:1]}])
        self.assertIn(SENTENCE, found["notes"][-1])

    def test_the_same_bits_for_any_number_of_threads(self):
        for model in ("lm", "reviews"):
            once, more = (self.succeed("explain", self.models / model, "a good film", "--json", "-t", n).stdout
                          for n in (1, 3))
            self.assertEqual(once, more)

    def test_other_saliency(self):
        rollout = self.object_of(self.models / "lm", "the cat", "--saliency", "rollout")["saliency"]
        self.assertAlmostEqual(sum(rollout["values"]), 1, delta=1e-5)
        self.assertIn("arXiv:2005.00928", rollout["source"])
        self.assertNotIn("saliency", self.object_of(self.models / "lm", "the cat", "--saliency", "none"))
        length = self.object_of(self.models / "reviews", "a good film", "--saliency", "gradient")["saliency"]
        self.assertEqual(len(length["values"]), 3)
        self.assertGreater(min(length["values"]), 0)
        of = [self.object_of(self.models / "reviews", "a good film", "--target", label)["saliency"]
              for label in ("pos", "neg")]
        self.assertEqual([one["of"] for one in of], ['the logit of "pos"', 'the logit of "neg"'])
        self.assertNotEqual(of[0]["values"], of[1]["values"])
        self.assertIn('"m" as next token',
                      self.object_of(self.models / "lm", "the cat", "--target", "m")["saliency"]["of"])

    def test_every_line_fits(self):
        """Chinese, emoji, right-to-left writing and combining characters, in 80 columns."""
        for text in ("今天很好，我是猫。你是人", "😀 cat 😀", "שלום עולם", "ấâ\u0301e\u0301", "the cat sees the mo"):
            for env in (UTF8, LATIN):
                said = self.succeed("explain", self.models / "lm", text, "--truncate", env=env).stdout.decode()
                for line in said.splitlines():
                    self.assertLessEqual(width(line), 80, line)
                    if re.match(r" *\d+ ", line) and "░" in line:
                        self.assertNotIn("\x1b", line)
        letters = self.succeed("explain", self.models / "lm", "the cat", env=LATIN).stdout.decode()
        self.assertNotIn("█", letters)
        self.assertIn("@@", letters)

    def test_nothing_of_a_text_controls_the_terminal(self):
        said = self.succeed("explain", self.models / "lm", "a\x1b[31m\u202e\x07\rb", env=UTF8).stdout.decode()
        self.assertFalse(set("\x1b\u202e\x07\r") & set(said))
        self.assertIn("\\u{202E}", said + "\\u{202E}" if "\\xE2" in said else said)
        self.assertIn("\\u{1B}", said)

    def test_a_terminal_has_colours_unless_told_otherwise(self):
        def shown(env, *args):
            master, slave = pty.openpty()
            fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 70, 0, 0))
            process = subprocess.Popen([FOVEA, "explain", str(self.models / "lm"), "the cat sees the moon", *args],
                                       stdout=slave, stderr=subprocess.DEVNULL,
                                       env=self.environment({"TERM": "xterm-256color", "LC_ALL": "C.UTF-8", **env}))
            os.close(slave)
            said = b""
            try:
                while part := os.read(master, 65536):
                    said += part
            except OSError:
                pass
            os.close(master)
            self.assertEqual(process.wait(), 0)
            return said.decode()
        colored = shown({})
        self.assertIn("\x1b[48;5;220m  \x1b[0m", colored)
        for line in re.sub(r"\x1b\[[\d;]*m", "", colored).splitlines():
            self.assertLessEqual(width(line), 70, line)
        self.assertIn("Shown: tokens", colored)
        self.assertNotIn("\x1b", shown({"NO_COLOR": "1"}))
        self.assertNotIn("\x1b", shown({}, "--color", "never"))
        self.assertIn("\x1b[48;5;", self.succeed("explain", self.models / "lm", "the", "--color", "always").stdout.decode())

    def test_a_window_of_the_tokens(self):
        said = self.succeed("explain", self.models / "lm", "the cat sees the moon", "--tokens", "3-6", env=UTF8).stdout.decode()
        self.assertIn("Shown: tokens 3 to 6 of 21", said)
        self.assertRegex(said, r"\n *3 e ")
        self.assertNotRegex(said, r"\n *7 t ")
        for tokens in ("0-1", "5-2", "20-22", "x"):
            self.assert_error(self.run_fovea("explain", self.models / "lm", "the cat sees the moon", "--tokens", tokens), 2,
                              "--tokens")

    def test_standard_input(self):
        args = ("explain", self.models / "lm")
        self.assertEqual(self.succeed(*args, "-", stdin=b"the cat\n", env=UTF8).stdout,
                         self.succeed(*args, "the cat", env=UTF8).stdout)
        for text, place in ((b"the\0cat", "standard input:1:4"), (b"a\nlong \0", "standard input:2:6")):
            done = self.run_fovea(*args, "-", stdin=text)
            self.assert_error(done, 3, f"{place}: expected text, got a NUL byte")
            self.assertEqual(done.stdout, b"")

    def test_json_has_the_whole_of_a_long_label(self):
        label = "a label of more than forty columns, which pages and terminals cut"
        file = self.folder / "long.tsv"
        file.write_text("".join(f"{label}\ta good film, number {i % 7}\nother\ta dull plot, number {i % 5}\n"
                                for i in range(20)), encoding="utf-8")
        model = self.folder / "long"
        self.succeed("train", "classify", "--train", file, "--encoder", "attention", "--stop-after", "3u", "--width", "8",
                     "--heads", "1", "-o", model, "-q")
        found = self.object_of(model, "a good film", "--target", label)
        self.assertEqual(found["saliency"]["of"], f'the logit of "{label}"')
        said = self.succeed("explain", model, "a good film", "--target", label, env=UTF8).stdout.decode()
        self.assertIn('the logit of "a label of more than forty columns, w..."', " ".join(said.split()))
        shutil.rmtree(model)
        file.unlink()

    def test_the_policy_of_a_page_names_its_scripts(self):
        page = self.folder / "policy.html"
        self.succeed("explain", self.models / "reviews", "a good film", "--page", page)
        text = page.read_text()
        scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
        self.assertEqual(len(scripts), 4)
        for script in scripts:
            digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
            self.assertIn(f"'sha256-{digest}'", text)

    def test_a_page(self):
        page = self.folder / "page.html"
        self.succeed("explain", self.models / "reviews", "a </script> film", "--page", page)
        first = page.read_text(encoding="utf-8")
        self.assertTrue(first.startswith("<!DOCTYPE html>"))
        self.assertIn("no explanation by themselves", first)
        self.assertIn("default-src", first)
        self.assert_error(self.run_fovea("explain", self.models / "reviews", "a film", "--page", page), 2, "exists already")
        self.assertEqual(page.read_text(encoding="utf-8"), first)
        self.succeed("explain", self.models / "reviews", "a film", "--page", page, "--overwrite", "--lang", "zh")
        self.assertIn("注意力权重本身不是解释", page.read_text(encoding="utf-8"))
        said = ("explain", self.models / "reviews", "a film", "--page")
        self.assert_error(self.run_fovea(*said, page, env={"FOVEA_OVERWRITE": "1"}), 2, "exists already")
        mine = self.folder / "mine.html"
        mine.write_text("<!DOCTYPE html>")
        self.assert_error(self.run_fovea(*said, mine, "--overwrite"), 2, "no page that fovea has written")
        mine.unlink()
        self.assert_error(self.run_fovea(*said, ""), 2, "expected the name of a file")
        self.assert_error(self.run_fovea(*said, self.folder / ("a" * 300)), 5, "the name is too long")
        self.assert_error(self.run_fovea(*said, "/dev/null", "--overwrite"), 2, "no page that fovea has written")
        weights = self.folder / "reviews" / "model.safetensors"
        shutil.copytree(self.models / "reviews", weights.parent)
        before, link = weights.read_bytes(), self.folder / "link.html"
        link.symlink_to(weights)
        for file in (weights, link):
            self.assert_error(self.run_fovea("explain", weights.parent, "a film", "--page", file, "--overwrite"), 2,
                              "is a file of the model")
        self.assertEqual(weights.read_bytes(), before)
        inside = weights.parent / "page.html"
        for more in ((), ("--overwrite",)):
            self.succeed("explain", weights.parent, "a film", "--page", inside, *more)
        self.succeed("inspect", weights.parent, "--verify")
        shutil.rmtree(weights.parent)
        link.unlink()
        missing = self.folder / "none" / "page.html"
        self.assert_error(self.run_fovea("explain", self.models / "reviews", "a film", "--page", missing), 5, "no such folder")
        self.assert_error(self.run_fovea("explain", self.models / "reviews", "a film", "--page", self.folder), 5, "is a folder")
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["page.html", "text.txt"])

    def test_bad_input(self):
        lm, reviews = self.models / "lm", self.models / "reviews"
        for status, args, needle in (
                (3, (lm, ""), "no token"), (3, (reviews, "  "), "no token"), (3, (reviews, b"a \xff film"), "invalid UTF-8"),
                (2, (lm, "x" * 25), "has 25 tokens; the model sees at most 24"), (2, (lm,), "no text was given"),
                (2, (), "no model was named"), (2, (lm, "the", "--layer", 3), "--layer"), (2, (lm, "the", "--head", 9), "--head"),
                (2, (lm, "the", "--target", "moon"), "4 tokens"), (2, (reviews, "a", "--target", "fair"), "no label fair"),
                (2, (lm, "the", "--saliency", "magic"), "--saliency"),
                (2, (lm, "the", "--token", 1), "--token has no effect"), (2, (reviews, "a", "--column", "2"), "--column has no effect"),
                (2, (reviews, "a", "--target", "pos", "--saliency", "rollout"), "--target: has no effect"), (2, (reviews, "a", "--truncate"), "no effect"),
                (3, (lm, self.models / "moves.npz"), "expected texts, got arrays of numbers"), (4, (self.folder / "none", "a"), "none"), (4, (self.folder, "a"), "no model"),
                (2, ("--q", "a"), "belong together"), (2, (lm, "--q", "a", "--kv", "b"), "belong together"),
                (3, ("--q", "", "--kv", "b"), "--q: the text is empty"), (3, ("--q", "a", "--kv", b"\xff"), "--kv"),
                (2, ("--q", "a", "--kv", "b" * 65), "at most 64"), (2, ("--q", "a", "--kv", "b", "--head", 1), "no effect"),
                (2, ("--q", "a", "--kv", "b", "--adapter", "x"), "--adapter has no effect")):
            with self.subTest(args=args):
                command = [FOVEA, "explain", *(a if isinstance(a, bytes) else str(a) for a in args)]
                done = subprocess.run(command, capture_output=True, env=self.environment(), timeout=60)
                self.assert_error(done, status, needle)
                self.assertEqual(done.stdout, b"")

    def test_what_a_bag_of_ngrams_adds_is_exact(self):
        """The default classifier, without attention."""
        bag, page = self.folder / "bag", self.folder / "bag.html"
        self.succeed("train", "classify", "--train", self.models / "reviews.tsv", "--lr", "0.05", "--stop-after", "100u",
                     "-o", bag, "-q")
        shares = {}
        for label in ("pos", "neg"):
            found = self.object_of(bag, "a good film", "--target", label)
            self.assertEqual(found["layers"], [])
            self.assertFalse(any(SENTENCE in note for note in found["notes"]))
            saliency = found["saliency"]
            self.assertAlmostEqual(sum(saliency["values"]) + saliency["bias"], saliency["value"], delta=1e-4)
            shares[label] = saliency["values"][1]
        self.assertGreater(shares["pos"], 0)  # "good"
        self.assertLess(shares["neg"], 0)
        said = self.succeed("explain", bag, "a good film", "--page", page, env=UTF8).stdout.decode()
        self.assertIn("2 good", said)
        self.assertRegex(" ".join(said.split()), r'so this is exact: what the tokens add to the logit of "pos" is \S+, and with')
        self.assertNotIn(SENTENCE, said)
        html = page.read_text(encoding="utf-8")
        self.assertIn("What each token counts for", html)
        self.assertNotIn('id="map"', html)

    def test_what_the_words_of_a_linear_model_add_is_exact(self):
        """The classifier that is made without options."""
        model = self.folder / "linear"
        self.succeed("train", "classify", "--train", self.models / "reviews.tsv", "-o", model, "-q")
        for text, tokens in (("a good film, unheard", ["a", "good", "film", ",", "unheard"]), ("good 好片", ["good", "好", "片"])):
            for label in ("pos", "neg"):
                found = self.object_of(model, text, "--target", label)
                self.assertEqual(found["tokens"], tokens)
                saliency = found["saliency"]
                self.assertAlmostEqual(sum(saliency["values"]) + saliency["bias"], saliency["value"], delta=1e-5)
                good = saliency["values"][tokens.index("good")]
                self.assertGreater(good if label == "pos" else -good, 0)
        self.assertIn("this is exact", " ".join(self.succeed("explain", model, "a good film").stdout.decode().split()))
        self.assert_error(self.run_fovea("explain", model, "a film", "--saliency", "gradient"), 2, "the model is linear")
        self.assert_error(self.run_fovea("explain", model, " "), 3, "no token")

    def test_recurrent_layers_without_attention(self):
        model = self.folder / "recurrent"
        self.succeed("train", "classify", "--train", self.models / "reviews.tsv", "--encoder", "bilstm:8", "--stop-after",
                     "20u", "-o", model, "-q")
        found = self.object_of(model, "a good film")
        self.assertEqual((found["layers"], len(found["saliency"]["values"])), ([], 3))
        self.assertNotIn("bias", found["saliency"])
        self.assertNotIn(SENTENCE, self.succeed("explain", model, "a good film", env=UTF8).stdout.decode())

    def test_models_that_cannot_be_explained(self):
        plain = self.folder / "plain"
        self.succeed("train", "classify", "--train", self.models / "reviews.tsv", "--stop-after", "5u", "-o", plain, "-q")
        for saliency in ("rollout", "none"):
            self.assert_error(self.run_fovea("explain", plain, "a film", "--saliency", saliency), 2, "no attention")
        moves = self.folder / "moves.npz"
        write(moves, {"x": Tensor("F32", (20, 16, 2), [math.sin(i) for i in range(640)]),
                      "labels": Tensor("I64", (20,), [0, 1] * 10)})
        numbers = self.folder / "numbers"
        self.succeed("train", "classify", "--input", "npz", "--train", moves, "--stop-after", "5u", "-o", numbers, "-q")
        self.assert_error(self.run_fovea("explain", numbers, "a film"), 2, "reads numbers")
        sentences = self.folder / "names.conll"
        sentences.write_text("Ada\tB-person\nsaw\tO\nRome\tB-place\n\n" * 20)
        tagger = self.folder / "tagger"
        self.succeed("train", "tag", "--train", sentences, "--stop-after", "5u", "-o", tagger, "-q", "--linear",
                     "--word-width", "0", "--character-reader", "none", "--shape-width", "0", "--encoder", "")
        self.assert_error(self.run_fovea("explain", tagger, "a film"), 4, "reads hashed features alone")
        damaged = self.folder / "damaged"
        shutil.copytree(self.models / "reviews", damaged)
        weights = damaged / "model.safetensors"
        data = bytearray(weights.read_bytes())
        data[-8] ^= 1
        weights.write_bytes(data)
        self.assert_error(self.run_fovea("explain", damaged, "a film"), 4, "model.safetensors")

    def test_a_text_that_is_too_long_for_any_model(self):
        done = self.run_fovea("explain", self.models / "lm", "-", "--truncate", stdin=b"a" * ((16 << 20) + 1))
        self.assert_error(done, 3, "more than 16.0 MiB")

    def test_a_page_of_words_without_end_stays_small(self):
        page = self.folder / "page.html"
        for text in ("a" * 10_000_000, " ".join(30 * ["\u4f60" * 40_000])):
            self.succeed("explain", self.models / "reviews", "-", "--page", page, "--overwrite", stdin=text.encode())
            self.assertLess(page.stat().st_size, 8_000_000)
        page.read_text(encoding="utf-8")  # no character is cut in two
        self.assert_error(self.run_fovea("explain", self.models / "reviews", "a film", "--page", "-"), 2,
                          "not to standard output")

    def test_classifiers_cut_texts_as_in_training(self):
        done = self.succeed("explain", self.models / "reviews", "good " * 600, "--json")
        self.assertIn(b"were cut", done.stderr)
        found = json.loads(done.stdout)
        self.assertGreater(found["cut"], 0)
        self.assertEqual(found["cut"] + len(found["tokens"]), 600)
        cut = self.object_of(self.models / "lm", "x" * 30, "--truncate")
        self.assertEqual((cut["cut"], len(cut["tokens"])), (6, 24))


class Steps(CommandTest):
    def test_the_translation_example(self):
        found = self.last_object(self.succeed("explain", "--q", "是", "--kv", "你人", "--json"))
        self.assertEqual((found["queries"], found["keys"]), (["是"], ["你", "人"]))
        embedding = [[((ord(c) % m) - (m - 1) // 2) / 10 for m in (19, 23, 29, 31)] for c in "是你人"]
        self.assertEqual([*found["q"], *found["k"]], embedding)
        self.assertEqual(found["v"], found["k"])
        scores = [sum(a * b for a, b in zip(embedding[0], k)) for k in embedding[1:]]
        total = sum(math.exp(s / 2) for s in scores)
        for j, score in enumerate(scores):
            self.assertAlmostEqual(found["scores"][0][j], score, delta=1e-12)
            self.assertAlmostEqual(found["scaled"][0][j], score / 2, delta=1e-12)
            self.assertAlmostEqual(found["weights"][0][j], math.exp(score / 2) / total, delta=1e-12)
        for c in range(4):
            mean = sum(w * k[c] for w, k in zip(found["weights"][0], found["k"]))
            self.assertAlmostEqual(found["output"][0][c], mean, delta=1e-12)

    def test_every_step_is_printed_and_fits(self):
        said = self.succeed("explain", "--q", "是😀", "--kv", "你人 שלום\u202e abcdefgh").stdout.decode()
        for step in ("1. Embeddings", "2. Scores  Q K^T", "3. Scaled scores", "4. Weights  P = softmax", "5. Output  P V"):
            self.assertIn(step, said)
        self.assertNotIn("\u202e", said)
        for line in said.splitlines():
            self.assertLessEqual(width(line), 80, line)


class Demo(CommandTest):
    def test_the_shapes_of_the_articles(self):
        for name, shape in (("transformer-3", [6, 3, 8]), ("padding-mask", [2, 5, 64])):
            said = self.succeed("demo", name).stdout.decode()
            self.assertEqual(said.splitlines()[-1], str(shape))
            for line in said.splitlines():
                self.assertLessEqual(len(line), 80, line)
            found = self.last_object(self.succeed("demo", name, "--json"))
            self.assertEqual(found["shape"], shape)
            self.assertEqual(len(found["output"]), math.prod(shape))
            self.assertEqual(self.succeed("demo", name, "-t", 1).stdout, self.succeed("demo", name, "-t", 3).stdout)
        self.assertIn("the same bits", said)
        weights = found["weights"]
        for row in range(10):
            valid = 3 if row < 5 else 4
            self.assertAlmostEqual(sum(weights[5 * row:5 * row + valid]), 1, delta=1e-6)
            self.assertEqual(set(weights[5 * row + valid:5 * row + 5]), {0})

    def test_the_seed_and_the_language(self):
        chinese = self.succeed("explain", "--q", "是", "--kv", "你人", "--lang", "zh").stdout.decode()
        chinese += "".join(self.succeed("demo", name, "--lang", "zh").stdout.decode() for name in ("transformer-3", "padding-mask"))
        for words in ("缩放点积注意力", "多头注意力", "填充掩码"):
            self.assertIn(words, chinese)
        for line in chinese.splitlines():
            self.assertLessEqual(width(line), 80, line)
        for word in ("Weights", "Output", "article", "the same"):
            self.assertNotIn(word, chinese)
        first, second = (self.last_object(self.succeed("demo", "padding-mask", "--json", "--seed", n)) for n in (0, 42))
        self.assertEqual((first["seed"], len(first["input"])), (0, 3 * 640))
        self.assertAlmostEqual(first["input"][0], 0.49625659, delta=1e-8)  # torch.manual_seed(0); torch.rand(1)
        self.assertAlmostEqual(second["input"][0], 0.88226926, delta=1e-8)

    def test_the_older_names_still_work(self):
        for name, older in (("transformer-3", "s1"), ("padding-mask", "s3")):
            self.assertEqual(self.succeed("demo", older).stdout, self.succeed("demo", name).stdout)

    def test_there_is_no_other(self):
        self.assert_error(self.run_fovea("demo", "s2"), 2, "there is no s2")
        self.assert_error(self.run_fovea("demo"), 2)


if __name__ == "__main__":
    unittest.main()

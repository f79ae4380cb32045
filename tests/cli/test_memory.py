# SPDX-License-Identifier: Apache-2.0
"""Memory: what is foreseen before a run is what the run takes, and too much is refused.

tests/long/test_large_memory.py has larger models and a text of 200 MB.
"""

import math
import random
import re
import resource
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from bert_support import CONFIG, WORDS, shapes, tokenizer_json, weights, write_json, write_model  # noqa: E402
from support import FOVEA, CommandTest, words  # noqa: E402
from tag_support import SEGMENT, segmented  # noqa: E402
from tensor_files import Tensor, safetensors_bytes, write  # noqa: E402

MIB = 1 << 20

# Options, and what is read. Every run evaluates and saves, twice, on THREADS unless it says how many: what is foreseen
# of a thread is more than most threads take, so the number of cores would decide on the difference.
THREADS = ("--threads", "2")
SHAPES = {
    "one layer": "--layers 1 --width 64 --heads 2 --block 32 --batch-size 1 --threads 1",
    "few rows": "--layers 4 --width 256 --heads 4 --block 64 --batch-size 1 --threads 2",
    "many rows": "--layers 2 --width 64 --heads 2 --block 512 --batch-size 24",
    "deep": "--layers 12 --width 64 --heads 4 --block 128 --batch-size 16",
    "wide": "--layers 2 --width 512 --heads 8 --block 64 --batch-size 4",
    "many parameters": "--layers 5 --width 512 --heads 8 --block 32 --batch-size 2",
    "grouped heads": "--layers 4 --width 128 --heads 8 --kv-heads 1 --block 256 --batch-size 8",
    "wide heads": "--layers 3 --width 64 --heads 4 --head-dim 64 --block 128 --batch-size 12",
    "wide feed-forward": "--layers 2 --width 64 --heads 2 --ff 2048 --block 64 --batch-size 32",
    "RMS and ReLU": "--layers 4 --width 128 --heads 4 --block 128 --batch-size 16 --norm rms --activation relu",
    "post-norm": "--layers 3 --width 128 --heads 4 --block 128 --batch-size 16 --norm-position post --bias",
    "sinusoids": "--layers 1 --width 256 --heads 4 --block 1024 --batch-size 4 --position sinusoidal",
    "ALiBi": "--layers 3 --width 128 --heads 4 --block 512 --batch-size 4 --position alibi",
    "rotary": "--layers 3 --width 128 --heads 4 --block 512 --batch-size 4 --position rotary --window 64",
    "T5 and sinks": "--layers 3 --width 128 --heads 4 --block 512 --batch-size 4 --position t5 --sink",
    "Shaw, softcap": "--layers 2 --width 128 --heads 4 --block 512 --batch-size 4 --position shaw --softcap 30",
    "sandwich, capped logits": "--layers 3 --width 128 --heads 4 --block 128 --batch-size 16 --norm rms --norm-position sandwich "
                               "--activation geglu-tanh --logit-softcap 30",
    "QK-norm, observed": "--layers 3 --width 128 --heads 4 --block 512 --batch-size 4 --qk-norm --observe-every 1",
    "many narrow heads, observed": "--layers 1 --heads 256 --width 64 --ff 8 --head-dim 1 --block 128 --batch-size 96 --observe-every 1",
    "concatenated": "--layers 1 --width 512 --heads 4 --block 512 --batch-size 4 --position-join concat --position-max 4096",
    "cosine, rotary": "--layers 1 --width 256 --heads 8 --block 1024 --batch-size 4 --position rotary --score cosine",
    "no positions, untied": "--layers 2 --width 128 --heads 4 --block 128 --batch-size 8 --position none --no-tie --bias",
    "dropout": "--layers 4 --width 128 --heads 4 --block 128 --batch-size 16 --dropout 0.1",
    "accumulated": "--layers 3 --width 128 --heads 4 --block 128 --batch-size 8 --accumulate 4",
    "recomputed": "--layers 12 --width 128 --heads 4 --block 128 --batch-size 16 --dropout 0.1 --recompute",
    "moments in 8 bits": "--layers 3 --width 512 --heads 8 --block 32 --batch-size 2 --optimizer adamw8",
    "Muon": "--layers 3 --width 512 --heads 8 --block 32 --batch-size 2 --optimizer muon",
    "Lion": "--layers 3 --width 512 --heads 8 --block 32 --batch-size 2 --optimizer lion",
    "Lion, untied": "--layers 1 --width 16 --heads 2 --block 32 --batch-size 2 --optimizer lion --no-tie --tokenizer word TEXT=vocabulary",
    "LSTM, dropout": "--model encoder --encoder lstm:256:layers=4 --no-tie --position none --block 256 --batch-size 64 --dropout 0.1",
    "SRU": "--model sru --layers 4 --position none --block 256 --batch-size 64",
    "convolutions": "--model encoder --encoder conv5:256:layers=3 --no-tie --position none --block 256 --batch-size 64",
    "convolutions by pairs": "--model encoder --encoder conv3:256:layers=3 --no-tie --position none --block 256 --batch-size 64",
    "eight threads": "--layers 2 --width 128 --heads 4 --block 256 --batch-size 8 --threads 8",
    "lines": "--layers 3 --width 128 --heads 4 --block 64 --batch-size 32 --data lines --tokenizer byte",
    "words": "--layers 3 --width 128 --heads 4 --block 64 --batch-size 32 --data lines --tokenizer word",
    "many words": "--layers 1 --width 16 --heads 2 --block 32 --batch-size 2 --tokenizer word TEXT=vocabulary",
    "many characters": "--layers 1 --width 128 --heads 4 --block 64 --batch-size 8 TEXT=characters",
    "much text": "--layers 1 --width 32 --heads 2 --block 64 --batch-size 4 --valid-fraction 0.001 TEXT=long",
}


# Options of train classify; each text has up to 400 words of 40,000.
CLASSIFIERS = {
    "a bag": "--width 256 --batch-size 32",
    "a bag, observed by attention": "--width 64 --batch-size 16 --pooling attention",
    "LSTM, last": "--encoder lstm --pooling last --width 64 --batch-size 16 --max-length 256",
    "attention": "--encoder attention --width 128 --batch-size 16 --max-length 256",
    "convolutions": "--encoder conv3,conv3 --pooling max --width 128 --batch-size 16 --max-length 256",
    "vectors": "--embeddings VECTORS",
    "frozen vectors": "--embeddings VECTORS --freeze-embeddings",
}


class MemoryTest(CommandTest):
    def text_of(self, name):
        """The file of a text: of few words, of many, of as many characters as a vocabulary may have, or long."""
        text = {"words": lambda: words(lines=1500),
                "characters": lambda: "".join(map(chr, range(0x4E00, 0x9000))) * 3,
                "vocabulary": lambda: "".join(f"word{i // 2}\n" for i in range(400000)),
                "long": lambda: words(lines=5000) * 150}[name]()
        path = self.folder / f"{name}.txt"
        path.write_text(text, encoding="utf-8")
        return path

    def foreseen_and_used(self, options, *more):
        """Bytes, of one and the same process."""
        arguments, _, text = options.partition(" TEXT=")
        path = more[0] if more else self.text_of(text or "words")
        done = self.succeed("train", "lm", "--train", path, "-o", self.folder / "model", "--overwrite",
                            *THREADS, *arguments.split(), "--stop-after", "4u", "--eval-every", "2u", "--save-every", "2u",
                            "--warmup", "1", "--verbose", "--json", timeout=1200)
        return self.foreseen(done), self.last_object(done)["peak_memory_bytes"]

    def foreseen(self, done):
        number, unit = re.search(r"about ([\d.]+) ([MG])iB of", done.stderr.decode()).groups()
        return float(number) * {"M": MIB, "G": 1 << 30}[unit]

    def assert_foreseen(self, foreseen, used):
        self.assertGreaterEqual(1.005 * foreseen, used)  # it has three digits
        self.assertLessEqual(foreseen, max(1.1 * used, used + 30e6))


class Shapes(MemoryTest):
    def test_memory_is_foreseen(self):
        for name, options in SHAPES.items():
            with self.subTest(name):
                self.assert_foreseen(*self.foreseen_and_used(options))

    def test_adapters_are_foreseen(self):
        own, halves = self.folder / "own", self.folder / "halves"
        self.succeed("train", "lm", "--train", self.text, "-o", own, "--stop-after", "1u", "--valid-fraction", 0, *THREADS,
                     *"--tokenizer byte --width 512 --layers 6 --block 128 --batch-size 1 --position rotary --norm rms "
                      "--activation swiglu".split(), timeout=1200)
        self.succeed("export", own, "-o", halves, "--dtype", "bf16")
        for base in (own, halves):
            for rank in (8, 128):
                with self.subTest(base=base.name, rank=rank):
                    self.assert_foreseen(*self.foreseen_and_used(f"--base {base} --lora {rank} --batch-size 2"))
            with self.subTest(base=base.name, options="magnitudes and dropout"):
                self.assert_foreseen(*self.foreseen_and_used(f"--base {base} --lora 8 --batch-size 2 --dora --lora-dropout 0.1"))

    def test_dry_run_says_the_same(self):
        options = SHAPES["many rows"].split()
        said = self.last_object(self.succeed("train", "lm", "--train", self.text_of("words"), *THREADS, *options,
                                             "--dry-run", "--json"))
        foreseen, _ = self.foreseen_and_used(SHAPES["many rows"])
        self.assertAlmostEqual(said["predicted_memory_bytes"], foreseen, delta=4 * MIB)
        self.assertTrue(said["fits"])

    def test_a_plan_touches_no_value(self):
        models = ["transformer", "attention-rnn", "rnn", "gru", "lstm", "sru", "encoder --encoder conv3", "encoder --encoder attention", "transformer --bias --position shaw"]
        for model in models:
            done, peak = self.peak_of("train", "lm", "--train", self.text, "-o", self.folder / "run", "--dry-run",
                                      *f"--width 262144 --model {model}".split())
            self.assertEqual(done.returncode, 0, model)
            self.assertIn(b"too much: the run would be refused", done.stdout, model)
            self.assertLess(peak, 128 * MIB, model)

    def test_a_plan_of_a_crf_touches_no_value_either(self):
        tagged = self.folder / "tags.conll"
        tagged.write_text("".join(f"w T{n}\n" + "\n" * (n % 10 == 9) for n in range(4000)))
        done, peak = self.peak_of("train", "tag", "--train", tagged, "-o", self.folder / "run", "--dry-run")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertLess(peak, 192 * MIB)

    def test_resuming_is_foreseen(self):
        options = SHAPES["many parameters"]
        self.foreseen_and_used(options)
        done = self.succeed("train", "lm", "--resume", "-o", self.folder / "model", "--stop-after", "5u",
                            "--verbose", "--json")
        self.assert_foreseen(self.foreseen(done), self.last_object(done)["peak_memory_bytes"])


class Classifiers(MemoryTest):
    def texts(self):
        rng, path = random.Random(1), self.folder / "texts.tsv"
        rows = (" ".join(f"w{rng.randrange(40000)}" for _ in range(rng.randrange(20, 400))) for _ in range(1200))
        path.write_text("".join(f"{'ab'[i % 2]}\t{row}\n" for i, row in enumerate(rows)))
        vectors = self.folder / "words.vec"
        row = " ".join(["0.5"] * 200)
        vectors.write_text("".join(f"w{i} {row}\n" for i in range(20000)))
        return path, vectors

    def test_memory_is_foreseen(self):
        """Texts have lengths of their own, so the largest batch comes once an epoch, of 38 updates or more."""
        path, vectors = self.texts()
        for name, options in CLASSIFIERS.items():
            with self.subTest(name):
                done = self.succeed("train", "classify", "--train", path, "-o", self.folder / "model", "--overwrite",
                                    *THREADS, *options.replace("VECTORS", str(vectors)).split(), "--min-count", "1",
                                    "--stop-after", "80u", "--eval-every", "40u", "--save-every", "40u",
                                    "--warmup", "1", "--verbose", "--json", timeout=1200)
                self.assert_foreseen(self.foreseen(done), self.last_object(done)["peak_memory_bytes"])


class Bases(MemoryTest):
    def test_memory_is_foreseen(self):
        config = {**CONFIG, "hidden_size": 128, "num_attention_heads": 4, "intermediate_size": 512, "num_hidden_layers": 4,
                  "max_position_embeddings": 256}
        base, rng = self.folder / "base", random.Random(1)
        write_json(base / "config.json", config)
        write_json(base / "tokenizer.json", tokenizer_json())
        (base / "model.safetensors").write_bytes(safetensors_bytes(weights(config=config)))
        texts, tagged = self.folder / "texts.tsv", self.folder / "words.conll"
        rows = [rng.choices(["the", "old", "king", "running", "unable", "moon"], k=rng.randrange(20, 240)) for _ in range(700)]
        texts.write_text("".join(f"{'ab'[n % 2]}\t{' '.join(row)}\n" for n, row in enumerate(rows)))
        tagged.write_text("".join("".join(f"{word}\t{word[0]}\n" for word in row) + "\n" for row in rows))
        for task, data, more in (("classify", texts, ()), ("tag", tagged, ()), ("classify", texts, ("--lora", 8, "--lora-dropout", 0.1)),
                                 ("tag", tagged, ("--lora", 64, "--dora"))):
            with self.subTest(task, options=more):
                done = self.succeed("train", task, "--train", data, "--base", base, "-o", self.folder / "model", "--overwrite",
                                    *THREADS, *more, "--stop-after", "80u", "--eval-every", "40u", "--save-every", "40u", "--verbose",
                                    "--json", timeout=1200)
                self.assert_foreseen(self.foreseen(done), self.last_object(done)["peak_memory_bytes"])


class Encoders(MemoryTest):
    SIZES = {"hidden_size": 256, "num_attention_heads": 4, "intermediate_size": 1024, "num_hidden_layers": 4,
             "max_position_embeddings": 128}

    def test_memory_is_foreseen(self):
        """A folder of BERT as base, then a folder of fovea that began from it."""
        base, path = self.folder / "bert", self.folder / "texts.tsv"
        write_model(base, {name: Tensor("F32", shape, [0.01] * math.prod(shape)) for name, shape in shapes(self.SIZES).items()}, 128)
        write_json(base / "config.json", {**CONFIG, **self.SIZES})
        rng = random.Random(1)
        path.write_text("".join(f"{'ab'[i % 2]}\t{' '.join(rng.choices(WORDS[:7], k=rng.randrange(10, 60)))}\n" for i in range(160)))
        for name, options in {"whole": f"--base {base}", "adapters": f"--base {base} --lora 16 --batch-size 4", "frozen": f"--base {base} --batch-size 1 --freeze embeddings,0-3",
                              "from a run": f"--base {self.folder}/whole --batch-size 1 --freeze embeddings,0-3"}.items():
            with self.subTest(name):
                done = self.succeed("train", "classify", "--train", path, "-o", self.folder / name, *THREADS, *options.split(),
                                    "--stop-after", "20u", "--eval-every", "10u", "--save-every", "10u", "--verbose", "--json",
                                    timeout=1200)
                self.assert_foreseen(self.foreseen(done), self.last_object(done)["peak_memory_bytes"])


class TooMuch(MemoryTest):
    """What a limit does not leave room for is refused before it is taken (exit status 6)."""

    def limited(self, megabytes, *args, stdin=subprocess.DEVNULL):
        limit = megabytes * MIB
        return subprocess.run([FOVEA, *map(str, args)], capture_output=True, timeout=120, env=self.environment(),
                              stdin=stdin,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))

    def test_training(self):
        done = self.limited(700, "train", "lm", "--train", self.text, "-o", self.folder / "model", "--threads", "1",
                            "--width", "512", "--layers", "12")
        self.assert_error(done, 6, "training would take", "ulimit -v")
        self.assertFalse((self.folder / "model").exists())

    def test_the_hint_names_the_option_that_takes_most(self):
        for options, hint in [
                (["--width", "1024", "--layers", "12"], "choose a smaller --batch-size, --block, --width or --layers"),
                (["--position-max", "2000000"], "choose a smaller --position-max, which takes most of it"),
                (["--position", "shaw", "--shaw-clip", "1000000"], "choose a smaller --shaw-clip, which takes"),
                (["--observe-every", "1", "--stop-after", "10000000u"], "choose a larger --observe-every, which")]:
            with self.subTest(options=options):
                done = self.limited(700, "train", "lm", "--train", self.text, "-o", self.folder / "model", "--threads",
                                    "1", *options)
                self.assert_error(done, 6, "E0601", "training would take")
                self.assertIn("\nhint: " + hint, done.stderr.decode())

    def test_a_classifier(self):
        path = self.folder / "texts.tsv"
        path.write_text("a\tgood film\nb\tbad film\n" * 20)
        done = self.limited(700, "train", "classify", "--train", path, "-o", self.folder / "model", "--threads", "1",
                            "--width", "20000000")
        self.assert_error(done, 6, "training would take")
        self.assertIn("hint: choose a smaller --batch-size, --max-length, --width or --buckets\n", done.stderr.decode())

    def test_text(self):
        path = self.text_of("long")
        path.write_bytes(2 * path.read_bytes())  # so that the command and its libraries fit into `size`
        size = path.stat().st_size // MIB + 1
        args = ["train", "lm", "--train", path, "-o", self.folder / "model", "--threads", "1"]
        self.assert_error(self.limited(size, *args), 6, f"{path} would take")
        self.assert_error(self.limited(3 * size, *args), 6, "the tokens of the text would take")

    def test_words(self):
        path = self.folder / "words.txt"
        path.write_text("".join(f"w{i} " for i in range(2000000)))
        done = self.limited(120, "train", "lm", "--train", path, "-o", self.folder / "model", "--threads", "1",
                            "--tokenizer", "word", "--min-count", "1")
        self.assert_error(done, 6, "the words of the text would take", "ulimit -v")

    def test_a_long_line_of_a_segmenter(self):
        """Its characters are counted before they are kept."""
        text, model, line = (self.folder / name for name in ("a.seg", "segmenter", "line.txt"))
        text.write_text(segmented())
        self.succeed("train", "tag", "--train", text, "-o", model, *SEGMENT)
        line.write_text("我" * 3_000_000)
        done = self.limited(700, "tag", model, line, "--threads", "1")
        self.assert_error(done, 6, "a line of 3000000 characters would take", "ulimit -v")

    def test_text_to_evaluate_and_prompts(self):
        model = self.folder / "model"
        self.train(model, "--stop-after", "1u")
        text = self.text_of("long")
        size = text.stat().st_size // MIB + 1
        done = self.limited(3 * size, "eval", model, "--test", text, "--threads", "1")
        self.assert_error(done, 6, "the tokens of the text would take")
        with text.open("rb") as prompt:
            done = self.limited(3 * size, "generate", model, "-", "--threads", "1", stdin=prompt)
        self.assert_error(done, 6, "would take", "ulimit -v")

    def test_results_and_the_copies_that_are_written(self):
        given = self.folder / "in.safetensors"
        write(given, {name: Tensor("F32", [1, 2048, 1, 4], [0.5] * 8192) for name in "qkv"})
        args = ["attention", given, "--observe", "weights", "--threads", "1"]
        # The weights take 16 MiB, a file .npz twice that besides.
        done = self.limited(56, *args, "-o", self.folder / "out.npz")
        self.assert_error(done, 6, "attention: writing", "out.npz would take 32")
        self.assertFalse((self.folder / "out.npz").exists())

    def test_generation_and_evaluation(self):
        model = self.folder / "model"
        self.succeed("train", "lm", "--train", self.text, "-o", model, "--layers", "4", "--width", "64", "--block",
                     "8192", "--batch-size", "1", "--valid-fraction", "0", "--stop-after", "1u", "--warmup", "1",
                     "--threads", "1")
        prompt = self.text.read_text()
        args = ["--threads", "1"]
        self.assert_error(self.limited(100, "generate", model, prompt, *args), 6, "the text would take")
        self.assert_error(self.limited(100, "eval", model, "--test", self.text, *args), 6,
                          "the evaluation would take")


if __name__ == "__main__":
    unittest.main()

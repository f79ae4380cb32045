# SPDX-License-Identifier: Apache-2.0
"""fovea tokenizer: subwords learned, cut and joined; and compared with SentencePiece where it is installed."""

import random
import resource
import struct
import subprocess
import unittest

from support import FOVEA, CommandTest, words

try:
    import sentencepiece
except ImportError:
    sentencepiece = None


def chinese(lines, seed=2):
    """Lines of a small grammar, with punctuation, digits and Latin letters in both widths."""
    rng = random.Random(seed)
    subjects = ["那只猫", "我的朋友", "老国王", "一只鸟", "北京大学", "ＡＩ"]
    verbs = ["看见了", "喜欢", "听说过", "忘记了", "建在"]
    objects = ["月亮", "一条河", "２０２０年的房子", "每一棵树", "OpenAI①", "Ｔ恤衫"]
    ends = ["。", "，", "！", " …", "？\u3000"]
    tails = ["", " ok", "  12.5%", "\u200b"]
    return ["".join(map(rng.choice, (subjects, verbs, objects, ends, tails))) for _ in range(lines)]


def german(lines, seed=3):
    rng = random.Random(seed)
    parts = ["Haus", "haus", "Tür", "straße", "Groß", "vater", "schön", "heit", "un", "mög", "lich", "keit", "Ärzte", "ﬁnal",
             "cafe\u0301", "naïve", "İ", "🙂", "x²"]
    return [" ".join("".join(rng.choice(parts) for _ in range(rng.randint(1, 3))) + rng.choice(["", "", ",", ".", "  ", "\t"])
                     for _ in range(rng.randint(0, 12))) for _ in range(lines)]


class Tokenizer(CommandTest):
    def learn(self, name="m.model", *args):
        path = self.folder / name
        self.succeed("tokenizer", "train", "--train", self.text, "-o", path, "--vocab-size", 40, *args)
        return path

    def lines(self, *args, stdin=b""):
        return self.succeed("tokenizer", *args, stdin=stdin).stdout.decode().splitlines()

    def test_what_is_cut_is_joined_again(self):
        text = self.text.read_text().splitlines()
        for kind in ("unigram", "bpe"):
            model = self.learn(f"{kind}.model", "--kind", kind)
            pieces = self.lines("encode", model, self.text)
            self.assertEqual(len(pieces), len(text))
            self.assertEqual("".join(pieces[0].split()).replace("▁", " ")[1:], text[0])
            self.assertEqual(self.lines("decode", model, stdin="\n".join(pieces).encode()), text)
            ids = self.lines("encode", model, "--ids", stdin=self.text.read_bytes())
            self.assertEqual([len(line.split()) for line in ids], [len(line.split()) for line in pieces])
            self.assertEqual(self.lines("decode", model, "--ids", stdin="\n".join(ids).encode()), text)

    def test_the_same_text_gives_the_same_file(self):
        self.assertEqual(self.learn("a").read_bytes(), self.learn("b").read_bytes())

    def test_output_does_not_depend_on_threads(self):
        model = self.learn()
        many = self.folder / "many.txt"
        many.write_text(words(lines=6000))
        for sampling in ([], ["--subword-sampling", "0.3", "--seed", "5"]):
            one = self.lines("encode", model, many, "--threads", 1, *sampling)
            self.assertEqual(one, self.lines("encode", model, many, "--threads", 3, *sampling))
        self.assertNotEqual(one, self.lines("encode", model, many))
        self.assertNotEqual(one, self.lines("encode", model, many, "--subword-sampling", "0.3", "--seed", "6"))
        self.assertEqual(self.lines("decode", model, stdin="\n".join(one).encode()), many.read_text().splitlines())

    def test_lines_are_answered_as_they_come(self):
        process = self.start("tokenizer", "encode", self.learn(), stdin=subprocess.PIPE)
        for line in (b"the cat\n", b"a dog\n"):
            process.stdin.write(line)
            process.stdin.flush()
            self.assertTrue(process.stdout.readline().startswith("▁".encode()))
        process.communicate()

    def test_an_output_is_replaced_only_when_asked(self):
        model = self.learn()
        before = model.read_bytes()
        again = ["tokenizer", "train", "--train", self.text, "-o", model, "--vocab-size", "36"]
        self.assert_error(self.run_fovea(*again), 2, "exists already")
        self.assertEqual(model.read_bytes(), before)
        self.succeed(*again, "--overwrite")
        self.assertNotEqual(model.read_bytes(), before)
        self.assertEqual([path.name for path in self.folder.iterdir() if "tmp" in path.name], [])
        self.assert_error(self.run_fovea(*again[:-3], self.folder / "no" / "m", "--vocab-size", "36"), 5, "no such folder")
        self.assert_error(self.run_fovea(*again[:-3], self.folder, "--vocab-size", "36", "--overwrite"), 5, "is a folder")
        text = self.text.read_bytes()
        self.assert_error(self.run_fovea(*again[:-3], self.text, "--vocab-size", "36", "--overwrite"), 2,
                          "is a text to train on")
        self.assertEqual(self.text.read_bytes(), text)

    def test_bad_input(self):
        train = ["tokenizer", "train", "--train", self.text, "-o", self.folder / "n.model"]
        for args, status, needle in [
                (["--vocab-size", "5000"], 2, "--vocab-size: 5000 is not possible: the text has"),
                (["--vocab-size", "10"], 2, "characters and symbols alone"),
                (["--coverage", "0.5"], 2, "--coverage"),
                (["--kind", "word"], 2, "--kind"),
                (["--user-symbols", "<s>"], 2, "--user-symbols")]:
            self.assert_error(self.run_fovea(*train, *args), status, needle)
        self.assert_error(self.run_fovea(*train[:2], "-o", "x"), 2, "--train is missing")
        model = self.learn()
        damaged = self.folder / "damaged.model"
        damaged.write_bytes(model.read_bytes()[:-100])
        self.assert_error(self.run_fovea("tokenizer", "encode", damaged), 4, "damaged.model", "announced")
        self.assert_error(self.run_fovea("tokenizer", "encode", self.text), 4, "text.txt: byte")
        self.assert_error(self.run_fovea("tokenizer", "encode", self.folder / "none"), 3, "none")
        self.assert_error(self.run_fovea("tokenizer", "encode", model, stdin=b"a\n\xff\n"), 3, "standard input:2")
        self.assert_error(self.run_fovea("tokenizer", "decode", model, "--ids", stdin=b"1 2\n40\n"), 3, "standard input:2: 40")
        self.assertEqual(self.run_fovea("tokenizer", "decode", model, "--ids", stdin=b"5\n6\n40\n7\n").stdout.count(b"\n"), 2)
        self.assert_error(self.run_fovea("tokenizer", "decode", model, "--ids", stdin=b"1 x\n"), 3, "standard input:1: x")
        self.assert_error(self.run_fovea("tokenizer", "encode", model, "--best", "3"), 2, "--best")

    def test_little_memory_is_an_error_before_the_library_ends_the_process(self):
        for mebibytes in (80, 200, 600):
            few = lambda: resource.setrlimit(resource.RLIMIT_AS, (mebibytes << 20, mebibytes << 20))  # noqa: B023, E731
            done = subprocess.run([FOVEA, "tokenizer", "train", "--train", str(self.text), "-o", str(self.folder / "n.model"),
                                   "--vocab-size", "40"], capture_output=True, env=self.environment(), preexec_fn=few,
                                  timeout=60)
            self.assert_error(done, 6, "learning the pieces")
        self.assertFalse((self.folder / "n.model").exists())

    def test_rules_that_swell_a_line(self):
        """One rule: an a becomes ten megabytes. Of ten gigabytes for a line of a kilobyte, none are taken."""
        units = [1 << 31] * 768
        units[0] = 256 << 10  # what stands behind nothing; behind "a"; and what it becomes
        units[256 ^ ord("a")] = ((256 ^ ord("a")) ^ 512) << 10 | 1 << 8 | ord("a")
        rules = struct.pack("<769I", 4 * len(units), *units) + b"b" * 10_000_000 + b"\0"

        def field(number, data):
            size = len(data)
            varint = bytes(size >> 7 * n & 127 | 128 for n in range(4)) + bytes([size >> 28])
            return bytes([number << 3 | 2]) + varint + data

        pieces = b"".join(field(1, field(1, text) + bytes([24, kind])) for text, kind in ((b"<unk>", 2), (b"a", 1)))
        model, line = self.folder / "swells.model", self.folder / "line.txt"
        line.write_text("a\n" + "a" * 1000 + "\n")
        for spec, command in ((3, "encode"), (5, "decode")):
            model.write_bytes(pieces + field(spec, field(2, rules)))
            few = lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))  # noqa: E731
            done = subprocess.run([FOVEA, "tokenizer", command, model, line, "--threads", "1"], capture_output=True,
                                  env=self.environment(), preexec_fn=few, timeout=60)
            self.assert_error(done, 3, f"{line}:1: the model's rules make more than 64.1 KiB of a text of")

    def test_no_model_ends_the_process_by_a_signal(self):
        """A SentencePiece model of its own, changed in many places."""
        bytes_of = self.learn().read_bytes()
        rng = random.Random(1)
        damaged = self.folder / "damaged.model"
        refused = 0
        for _ in range(40):
            changed = bytearray(bytes_of)
            for _ in range(rng.randint(1, 20)):
                changed[rng.randrange(len(changed) if rng.random() < .5 else 1500)] = rng.randrange(256)
            damaged.write_bytes(changed[:rng.randrange(len(changed))] if rng.random() < .2 else changed)
            done = self.run_fovea("tokenizer", "encode", damaged, self.text)
            self.assertIn(done.returncode, (0, 4), done.stderr)
            refused += done.returncode == 4
        self.assertGreater(refused, 10)


@unittest.skipUnless(sentencepiece, "there is no sentencepiece: pip install sentencepiece")
class SameAsSentencePiece(CommandTest):
    """Models learned by either are cut alike by both: 10,000 lines of each of two languages."""

    LANGUAGES = {"zh": chinese, "de": german}

    def compare(self, model, lines):
        path = self.folder / "lines.txt"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        theirs = sentencepiece.SentencePieceProcessor(model_file=str(model))
        for args, kind in ([], str), (["--ids"], int):
            ours = self.succeed("tokenizer", "encode", model, path, *args).stdout.decode().split("\n")[:-1]
            wanted = [" ".join(map(str, line)) for line in theirs.encode(lines, out_type=kind)]
            self.assertEqual(ours, wanted)
        path.write_text("\n".join(ours) + "\n")
        decoded = self.succeed("tokenizer", "decode", model, path, "--ids").stdout.decode().split("\n")[:-1]
        self.assertEqual(decoded, theirs.decode(theirs.encode(lines)))

    def test_models_of_sentencepiece(self):
        for language, lines_of in self.LANGUAGES.items():
            text = self.folder / f"{language}.txt"
            text.write_text("\n".join(lines_of(2000, seed=9)))
            for number, settings in enumerate([
                    {"model_type": "unigram", "vocab_size": 150, "user_defined_symbols": ["<x>", "ＡＩ", "heit"]},
                    {"model_type": "bpe", "vocab_size": 500, "byte_fallback": True, "character_coverage": .99},
                    {"model_type": "unigram", "vocab_size": 420, "normalization_rule_name": "nfkc_cf",
                     "byte_fallback": True, "remove_extra_whitespaces": False},
                    {"model_type": "bpe", "vocab_size": 150, "normalization_rule_name": "identity",
                     "treat_whitespace_as_suffix": True}]):
                with self.subTest(language=language, settings=settings):
                    prefix = str(self.folder / f"{language}{number}")
                    sentencepiece.SentencePieceTrainer.train(input=str(text), model_prefix=prefix, minloglevel=2,
                                                             hard_vocab_limit=False, **settings)
                    self.compare(prefix + ".model", lines_of(10000))

    def test_our_models(self):
        for language, lines_of in self.LANGUAGES.items():
            text = self.folder / f"{language}.txt"
            text.write_text("\n".join(lines_of(2000, seed=9)))
            for kind in ("unigram", "bpe"):
                model = self.folder / f"{language}.{kind}"
                self.succeed("tokenizer", "train", "--train", text, "-o", model, "--kind", kind, "--vocab-size", 140)
                self.compare(model, lines_of(10000))


if __name__ == "__main__":
    unittest.main()

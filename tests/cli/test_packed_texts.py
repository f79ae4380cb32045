# SPDX-License-Identifier: Apache-2.0
"""Texts packed by gzip or zstd, and texts that come through pipes."""

import gzip
import os
import resource
import struct
import subprocess
import threading
import unittest

from support import FOVEA, SMALL, CommandTest

RUN = ["--stop-after", "4u", "--eval-every", "2u", "--save-every", "2u"]


def zstd_frame(text):
    """A frame of raw blocks, which needs no packer."""
    blocks = [text[i:i + (1 << 17)] for i in range(0, len(text), 1 << 17)] or [b""]
    frame = b"\x28\xb5\x2f\xfd\xe0" + struct.pack("<Q", len(text))
    for number, block in enumerate(blocks):
        frame += struct.pack("<I", (number == len(blocks) - 1) | len(block) << 3)[:3] + block
    return frame


def zstd_bomb(size):
    """A frame of `size` bytes "a", that does not say its size: 4 bytes for 128 KiB."""
    block = struct.pack("<I", 1 << 1 | (1 << 17) << 3)[:3] + b"a"
    return b"\x28\xb5\x2f\xfd\x00\x58" + block * (size >> 17) + b"\x01\x00\x00"


class PackedTexts(CommandTest):
    def setUp(self):
        super().setUp()
        self.bytes = self.text.read_bytes()
        half = len(self.bytes) // 2
        self.gz = self.write("text.txt.gz", gzip.compress(self.bytes))
        self.members = self.write("members", gzip.compress(self.bytes[:half]) + gzip.compress(self.bytes[half:]))
        self.zst = self.write("text.txt.zst", zstd_frame(self.bytes[:half]) + zstd_frame(self.bytes[half:]))

    def write(self, name, data):
        path = self.folder / name
        path.write_bytes(data)
        return path

    def train_on(self, path, output, **options):
        self.succeed("train", "lm", "--train", path, "-o", output, *SMALL, *RUN, **options)
        return self.weights(output)

    def weights(self, model):
        """Behind the header, which depends on the names of the files."""
        data = (model / "model.safetensors").read_bytes()
        return data[8 + struct.unpack("<Q", data[:8])[0]:]

    def test_the_model_and_its_score_are_those_of_the_text(self):
        model = self.folder / "plain"
        expected = self.train_on(self.text, model)
        for path in [self.gz, self.members, self.zst]:
            self.assertEqual(self.train_on(path, self.folder / f"of-{path.name}"), expected, path)
        score = self.succeed("eval", model, "--test", self.text, "--json").stdout
        for path in [self.gz, self.members, self.zst]:
            self.assertEqual(self.succeed("eval", model, "--test", path, "--json").stdout, score)
            self.assertEqual(self.succeed("eval", model, "--test", "-", "--json", stdin=path.read_bytes()).stdout, score)
        both = self.succeed("eval", model, "--test", self.text, self.text, "--json").stdout
        self.assertEqual(self.succeed("eval", model, "--test", self.gz, "-", "--json", stdin=self.bytes).stdout, both)

    def test_validation_texts_and_vocabularies_are_unpacked(self):
        words = b"<pad>\n<unk>\n<s>\n</s>\nthe\ncat\nsees\nmoon.\n"
        weights = []
        for name, train, valid, vocabulary in [("plain", self.text, self.text, words),
                                               ("packed", self.gz, self.zst, gzip.compress(words))]:
            self.succeed("train", "lm", "--train", train, "--valid", valid, "--tokenizer", "word", "--vocabulary",
                         self.write("words-" + name, vocabulary), "-o", self.folder / name, *SMALL, *RUN)
            weights.append(self.weights(self.folder / name))
        self.assertEqual(*weights)

    def test_a_run_on_standard_input_can_be_resumed(self):
        model = self.folder / "model"
        expected = self.train_on(self.text, self.folder / "plain")
        self.train_on("-", model, stdin=self.gz.read_bytes())
        self.assertEqual(self.weights(model), expected)
        longer = ["train", "lm", "--resume", "-o", model, "--stop-after", "6u"]
        self.assert_error(self.run_fovea(*longer), 3, "standard input is empty")
        self.succeed(*longer, stdin=self.bytes)

    def test_a_pipe_is_read_and_one_without_a_writer_is_not_waited_for(self):
        model = self.folder / "plain"
        self.train_on(self.text, model)
        score = self.succeed("eval", model, "--test", self.text, "--json").stdout
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        self.assert_error(self.run_fovea("eval", model, "--test", pipe), 3, "E0303", "a FIFO that nobody writes to")
        # As the shell's <(...), which has a writer from the beginning.
        reading, writing = os.pipe()
        command = self.start("eval", model, "--test", f"/dev/fd/{reading}", "--json", pass_fds=[reading])
        os.close(reading)

        def write():
            with os.fdopen(writing, "wb") as file:
                file.write(self.gz.read_bytes())
        thread = threading.Timer(0.2, write)
        thread.start()
        said, errors = command.communicate(timeout=60)
        thread.join()
        self.assertEqual(said, score, errors)

    def test_prompts_are_unpacked(self):
        model = self.folder / "plain"
        self.train_on(self.text, model)
        args = ["generate", model, "-", "--max-tokens", "5"]
        self.assertEqual(self.succeed(*args, stdin=gzip.compress(b"the cat")).stdout,
                         self.succeed(*args, stdin=b"the cat").stdout)

    def test_damaged_files_are_named_with_the_byte(self):
        cut = self.write("cut.gz", self.gz.read_bytes()[:-9])
        frame = zstd_frame(self.bytes)
        for path, needle in [(cut, f"cut.gz: byte {cut.stat().st_size}: the gzip data ends too early"),
                             (self.write("cut.zst", frame[:1000]), "cut.zst: byte 1000: the zstd data ends too early"),
                             (self.write("more.gz", self.gz.read_bytes() + b"more"),
                              f"more.gz: byte {self.gz.stat().st_size}: after the end"),
                             (self.write("bad.zst", frame[:13] + b"\xff\xff\xff" + frame[16:]), "bad.zst: byte "),
                             (self.write("empty.gz", gzip.compress(b"")), "empty.gz: the file is empty")]:
            with self.subTest(path=path.name):
                done = self.run_fovea("train", "lm", "--train", path, "-o", self.folder / "m")
                self.assert_error(done, 3, needle)
                self.assertFalse((self.folder / "m").exists())

    def test_packers_that_are_not_read_are_named(self):
        for magic, name in [(b"\xfd7zXZ\0\0\x04\xe6", "xz"), (b"BZh91AY&SY\xe9", "bzip2")]:
            done = self.run_fovea("train", "lm", "--train", self.write("x", magic * 9), "-o", self.folder / "m")
            self.assert_error(done, 3, "E0304")
            self.assertIn(f"packed with {name}".encode(), done.stderr)

    def test_a_text_that_unpacks_to_more_than_there_is_memory_is_refused(self):
        few = lambda: resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20))  # noqa: E731
        for path in [self.write("bomb.zst", zstd_bomb(4 << 30)), self.write("large.gz", gzip.compress(bytes(1 << 29), 1))]:
            for command in [["train", "lm", "--train", path, "-o", self.folder / "m"],
                            ["train", "lm", "--tokenizer", "byte", "--train", path, "-o", self.folder / "m"]]:
                done = subprocess.run([FOVEA, *map(str, command)], capture_output=True, preexec_fn=few, timeout=120,
                                      env=self.environment())
                self.assert_error(done, 6, "E0601", path.name)


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""Tokenizers that the package `tokenizers` trains: `fovea tokenizer encode` gives its ids for random lines of all scripts. (bench/tokenizer_peers.py
compares a million texts, with newlines and words of 100 KB, and real vocabularies.)"""
import pathlib
import sys
import tempfile
import unittest

try:
    import google.protobuf  # SentencePiece's rules are read by it
    import sentencepiece
    import tokenizers
except ImportError as error:
    raise unittest.SkipTest(f"{error.name} is not installed: nothing to compare with") from error

import support

sys.path.insert(0, str(support.ROOT / "bench"))
import peer_tokenizers  # noqa: E402

LINES = 500


class Ids(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        page = support.ROOT / "README.zh-CN.md"
        cls.names = [name for name in peer_tokenizers.NAMES if name not in peer_tokenizers.REAL]
        peer_tokenizers.make(cls.folder.name, 1, 3000, [page], None, cls.names)
        strings = peer_tokenizers.Strings(2, [page.read_text(encoding="utf-8")])
        texts = (strings.text(0).replace(b"\n", b" ").replace(b"\r", b" ").replace(b"\0", b"0").decode("utf-8", "ignore") for _ in range(LINES))
        cls.lines = [text for text in texts if text.strip()]

    def test_ids_are_those_of_tokenizers(self):
        for name in self.names:
            with self.subTest(name):
                folder = pathlib.Path(self.folder.name) / name
                theirs = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
                text = pathlib.Path(self.folder.name) / "lines.txt"
                text.write_text("\n".join(self.lines) + "\n", encoding="utf-8", newline="\n")
                answer = support.fovea("tokenizer", "encode", folder, text, "--ids", "--quiet").stdout
                ours = [[int(word) for word in line.split()] for line in answer.split("\n")[:-1]]
                self.assertEqual(ours, [encoding.ids for encoding in theirs.encode_batch(self.lines, add_special_tokens=False)])


if __name__ == "__main__":
    unittest.main()

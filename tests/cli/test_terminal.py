# SPDX-License-Identifier: Apache-2.0
"""What comes from others is printed byte for byte; but a terminal gets nothing that it would obey."""

import json
import os
import pty
import subprocess
import unittest

from support import FOVEA, SMALL
from tag_support import TagTest, conll, tagged

RED = "\x1b[31m"
BIDI, TAG = "\u202e", "\U000e0041"  # the direction of writing; what takes no room


class TerminalTest(TagTest):
    def on_terminal(self, *args, stdin=b""):
        """What a terminal gets."""
        master, slave = pty.openpty()
        process = subprocess.Popen([FOVEA, *map(str, args)], stdin=subprocess.PIPE, stdout=slave,
                                   stderr=subprocess.DEVNULL, env=self.environment({"TERM": "xterm"}))
        os.close(slave)
        process.stdin.write(stdin)
        process.stdin.close()
        said = b""
        try:
            while part := os.read(master, 65536):
                said += part
        except OSError:
            pass  # EIO: the other end is closed
        os.close(master)
        self.assertEqual(process.wait(), 0)
        return said.decode().replace("\r\n", "\n")  # the terminal makes these

    def assert_shown(self, args, text, stdin=b""):
        """`text`, in which RED, BIDI and TAG may stand, is printed as it is, and a terminal shows these as escapes."""
        self.assertIn(text.encode(), self.succeed(*args, stdin=stdin).stdout)
        shown = self.on_terminal(*args, stdin=stdin)
        self.assertIn(text.replace(RED, "\\u001B[31m").replace(BIDI, "\\u202E").replace(TAG, "\\uDB40\\uDC41"), shown)
        for character in ("\x1b", BIDI, TAG):
            self.assertNotIn(character, shown)
        return shown

    def test_tag(self):
        self.fit(self.write("a.conll", conll(tagged())), "--stop-after", "2u")
        model = self.folder / "model"
        self.assert_shown(("tag", model), f"Ada{RED}{TAG}\tsee{BIDI}\t", f"Ada{RED}{TAG}\tsee{BIDI}\n".encode())
        given = f"Ada{BIDI}{TAG}"
        line = self.assert_shown(("tag", model, "--json"), given, f"{given}\tO\n".encode())
        self.assertEqual(json.loads(line)["words"], [given])

    def test_generate(self):
        model = self.folder / "lm"
        self.succeed("train", "lm", "--train", self.text, "-o", model, *SMALL, "--stop-after", "2u")
        self.assert_shown(("generate", model, f"the{RED}{BIDI}\tcat", "--max-tokens", "3"), f"the{RED}{BIDI}\tcat")

    def test_classify(self):
        model = self.folder / "classifier"
        texts = "".join(f"__label__{name} the {name} text {n % 7}\n" for n in range(40)
                        for name in (f"a{BIDI}", f"b{BIDI}"))
        self.succeed("train", "classify", "--format", "fasttext", "--train", self.write("t.txt", texts), "-o", model,
                     "--width", "8", "--stop-after", "2u")
        # A label is a column: it is escaped in files, too. In an object it is not.
        self.assertIn(b"a\\u{202E}\t", self.succeed("classify", model, "--top", "2", stdin=b"the\n").stdout)
        line = self.assert_shown(("classify", model, "--json"), BIDI, b"the\n")
        self.assertIn(json.loads(line)["label"], (f"a{BIDI}", f"b{BIDI}"))


if __name__ == "__main__":
    unittest.main()

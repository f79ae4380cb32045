# SPDX-License-Identifier: Apache-2.0
"""Manual pages: they say what --help says, and the programs that read them find nothing to mend."""

import os
import re
import shutil
import subprocess
import unittest
from pathlib import Path

from support import FOVEA, CommandTest


def shown(page):
    """The text of a page, without fonts and escapes."""
    text = re.sub(r"\\f[BIR]", "", page)
    for name, character in ((r"\-", "-"), (r"\(ha", "^"), (r"\(ti", "~"), (r"\(ga", "`"), (r"\(aq", "'"), (r"\&", ""),
                            (r"\e", "\\")):
        text = text.replace(name, character)
    return re.sub(r"\\\[u([0-9A-F]+)\]", lambda code: chr(int(code[1], 16)), text)


class Man(CommandTest):
    def setUp(self):
        super().setUp()
        self.succeed("man", "-o", self.folder / "man1")
        self.pages = {page.name: page for page in (self.folder / "man1").iterdir()}
        overview = self.succeed("--help").stdout.decode()
        self.commands = re.findall(r"^  ([a-z]+(?: [a-z]+)?)  +[A-Z]", overview, re.MULTILINE)

    def test_each_command_has_a_page_which_is_what_is_printed(self):
        names = {"fovea.1", *(f"fovea-{command.replace(' ', '-')}.1" for command in self.commands)}
        self.assertEqual(set(self.pages), names)
        self.assertEqual(self.succeed("man", "train", "lm").stdout, self.pages["fovea-train-lm.1"].read_bytes())
        self.assertEqual(self.succeed("man").stdout, self.pages["fovea.1"].read_bytes())

    def test_a_page_says_what_help_says(self):
        for command in self.commands:
            page = shown(self.pages[f"fovea-{command.replace(' ', '-')}.1"].read_text())
            words = " ".join(page.split()).replace(" [=", "[=")
            said, _, epilog = self.succeed(*command.split(), "--help").stdout.decode().partition("\nExample")
            at = []
            for entry in re.split(r"\n(?=  -)", said)[1:]:
                names, rest = re.match(r" *(\S+)(.*)", entry.split("\n\n")[0], re.DOTALL).groups()
                term = f"{names.replace(',', ', ')} {' '.join(rest.split())}".replace(" [=", "[=")
                self.assertIn(term, words, command)
                at.append(words.index(f" .TP {term}"))
            self.assertEqual(at, sorted(at), f"{command}: another order than that of the help")
            for group in re.findall(r"^(?!Options)(\S.*):\n  -", said, re.MULTILINE):
                self.assertIn(f"\n.SS {group}\n", page, command)
            for line in epilog.splitlines()[1:]:
                self.assertIn(" ".join(line.split()), words, command)

    def test_a_page_has_the_sections_of_a_manual(self):
        for name, page in self.pages.items():
            sections = re.findall(r"^\.SH (.*)$", page.read_text(), re.MULTILINE)
            for section in ("NAME", "SYNOPSIS", "DESCRIPTION", "EXIT STATUS", "ENVIRONMENT", "SEE ALSO"):
                self.assertEqual(sections.count(section), 1, name)
        text = shown(self.pages["fovea-train-lm.1"].read_text())
        self.assertIn("FOVEA_HEAD_DIM", text)
        self.assertIn("training diverged", text)

    def test_pages_name_pages_that_exist(self):
        for page in self.pages.values():
            named = re.findall(r"^(fovea\S*)\(1\)", shown(page.read_text()), re.MULTILINE)
            self.assertTrue(named, page.name)
            self.assertLessEqual({f"{name}.1" for name in named}, set(self.pages))

    def test_files_of_a_model_exist(self):
        self.train(self.folder / "model", "--stop-after", "4u", "--save-every", "2u")
        files = shown(self.pages["fovea.1"].read_text()).split(".SH FILES")[1].split(".SH")[0]
        names = re.findall(r"^\.TP\n(\S+)$", files, re.MULTILINE)
        self.assertGreater(len(names), 3)
        for name in names:
            self.assertTrue((self.folder / "model" / name).exists(), name)

    def checked(self, *command):
        if not shutil.which(command[0]):
            self.skipTest(f"{command[0]} is not installed: apt-get install {command[0]}")
        for page in self.pages.values():
            done = subprocess.run([*command, page], capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""), page.name)
            yield page.name, done.stdout

    def test_groff_warns_of_nothing(self):
        for name, text in self.checked("groff", "-man", "-ww", "-Tutf8", "-P-cbou"):
            self.assertIn("EXIT STATUS", text, name)

    def test_mandoc_finds_nothing_to_mend(self):
        for name, said in self.checked("mandoc", "-T", "lint", "-W", "warning"):
            self.assertEqual(said, "", name)

    def test_an_installation_has_pages_and_completions(self):
        build = Path(FOVEA).resolve().parents[1]
        if not (build / "cmake_install.cmake").is_file():
            self.skipTest(f"{build} is no build folder of fovea")
        cmake = shutil.which("cmake", path="/usr/bin:" + os.environ["PATH"])
        subprocess.run([cmake, "--install", build, "--component", "command", "--prefix", "/usr"], check=True, timeout=60,
                       capture_output=True, env=self.environment({"DESTDIR": str(self.folder / "root")}))
        share = self.folder / "root" / "usr" / "share"
        for name, page in self.pages.items():
            self.assertEqual((share / "man" / "man1" / name).read_bytes(), page.read_bytes())
        for shell, file in (("bash", "bash-completion/completions/fovea"), ("zsh", "zsh/site-functions/_fovea"),
                            ("fish", "fish/vendor_completions.d/fovea.fish")):
            self.assertEqual((share / file).read_bytes(), self.succeed("completion", shell).stdout)

    def test_a_command_that_is_not_there(self):
        self.assert_error(self.run_fovea("man", "train", "ml"), 2, "unknown command 'train ml'")
        self.assert_error(self.run_fovea("man", "eval", "-o", self.folder), 2, "--output writes the pages of all")


if __name__ == "__main__":
    unittest.main()

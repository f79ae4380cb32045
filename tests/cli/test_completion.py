# SPDX-License-Identifier: Apache-2.0
"""Completion, in the shells themselves: what each offers is what --help says."""

import os
import pty
import re
import shutil
import subprocess
import threading
import time
import unittest

from support import CommandTest

# What a line offers where a command, an argument or a file is typed.
LINES = {
    "fovea tr": {"train", "translate"},
    "fovea train ": {"lm", "classify", "pairs", "embed", "tag", "translate"},
    "fovea train lm --posit": {"--position", "--position-max", "--position-join"},
    "fovea train lm --no-ti": {"--no-tie"},
    "fovea train lm --position=al": {"alibi"},
    "fovea train lm --tie=": {"true", "false"},
    "fovea train lm --train b": {"book.txt"},
    "fovea train lm --train book.txt ": {"a file.txt", "book.txt", "folder"},
    "fovea train lm --train book.txt --valid b": {"book.txt"},
    "fovea train lm --resume=b": {"book.txt"},
    "fovea train lm -o ": {"folder"},
    "fovea train lm --output f": {"folder"},
    "fovea train lm --width ": set(),
    "fovea generate ": {"a file.txt", "book.txt", "folder"},
    "fovea generate folder --precision bf16 --max-t": {"--max-tokens"},
    "fovea attention --causal=t": {"top-left"},
    "fovea attention --causal b": {"book.txt"},
    "fovea report --lang zh folder f": {"folder"},
    "fovea classify --json folder b": {"book.txt"},
    "fovea completion ": {"bash", "zsh", "fish"},
    "fovea demo ": {"transformer-3", "padding-mask"},
    "fovea learn --lang ": {"en", "zh"},
    "fovea man tra": {"train", "translate"},
    "fovea man train cl": {"classify"},
    "fovea nothing ": set(),
}

BASH = r"""
source script
while IFS= read -r line; do
  # The words as readline cuts them.
  words=$line
  [[ $COMP_WORDBREAKS != *=* ]] || words=${line//=/ = }
  read -ra COMP_WORDS <<< "$words"
  [[ $words != *' ' || $words == *'= ' ]] || COMP_WORDS+=('')
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
  _fovea
  printf '== %s\n' "$line"
  printf '%s\n' "${COMPREPLY[@]}"
done < lines
"""

FISH = r"""
source script
while read -l line
  echo "== $line"
  complete -C "$line" | string replace -r '\t.*' ''
end < lines
"""

# A key that completes; what is offered goes to a file, and "(end)" when that is done.
ZSHRC = r"""
fpath=(FPATH $fpath); autoload -U compinit; compinit -u -D
SOURCE
compadd() {
  if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then builtin compadd "$@"; return $?; fi
  local -a hits
  builtin compadd -A hits "$@"
  (($#hits)) && print -rl -- "${(@Q)hits}" >> offered
  builtin compadd "$@"
}
try() { print -r -- "== $BUFFER" >> offered; zle complete-word; print "(end)" >> offered; BUFFER= }
zle -N try; bindkey '^I' try
LISTMAX=10000; PS1=
print ready >> offered
"""


class Completion(CommandTest):
    def setUp(self):
        super().setUp()
        for name in ("book.txt", "a file.txt"):
            (self.folder / name).touch()
        (self.folder / "folder").mkdir()
        self.text.unlink()
        self.here = self.folder / "here"  # what the test itself needs is not offered
        self.here.mkdir()
        overview = self.succeed("--help").stdout.decode()
        self.commands = re.findall(r"^  ([a-z]+(?: [a-z]+)?)  +[A-Z]", overview, re.MULTILINE)
        self.lines = dict(LINES)
        self.lines["fovea "] = {name.split()[0] for name in self.commands}
        for command in self.commands:
            self.add_help(command)

    def add_help(self, command):
        """The options of a command, and the values of those that have a fixed set, as --help has them."""
        text = self.succeed(*command.split(), "--help").stdout.decode().split("\nExample")[0]
        options = set()
        for entry in re.split(r"\n(?=  -)", text)[1:]:
            names, placeholder = re.match(r" *(\S+)(?: (\S+(?:; \S+)*))?", entry).groups()
            options |= set(re.findall(r"(?<![\w-])--?[a-z][a-z0-9-]*", names))
            values = re.fullmatch(r"[a-z0-9+-]+(?:(?:\||; )[a-z0-9+-]+)+", placeholder or "")
            if values:
                name = names.split(",")[-1]
                self.lines[f"fovea {command} {name} "] = set(re.split(r"\||; ", values[0]))
        self.assertIn("--help", options)
        self.lines[f"fovea {command} --"] = {name for name in options if name.startswith("--")}

    def script(self, shell):
        if not shutil.which(shell):
            self.skipTest(f"{shell} is not installed: apt-get install {shell}")
        done = self.succeed("completion", shell)
        (self.here / "script").write_bytes(done.stdout)
        (self.here / "lines").write_text("".join(line + "\n" for line in self.lines))
        subprocess.run([shell, "-n", self.here / "script"], check=True)

    def compare(self, printed, lines=None):
        """`printed` has "== LINE" and below it what is offered there, a line each."""
        offered = {}
        for block in re.split(r"^== ", printed, flags=re.MULTILINE)[1:]:
            line, *words = block.splitlines()
            offered[line] = {word.rstrip("=").split("=")[-1].rstrip("/") for word in words if word and word != "(end)"} - {"here"}
        for line in lines or self.lines:
            with self.subTest(line=line):
                options = {"--help", "--version"} if line == "fovea " else set()
                self.assertEqual(offered[line] - options, self.lines[line])
        self.assertGreater(len(lines or self.lines), 100 if lines is None else 20)

    def run_shell(self, *command, **options):
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=120, check=True,
                              env=self.environment({"HOME": str(self.here)}), **options)

    def test_bash(self):
        self.script("bash")
        for breaks in ("", "COMP_WORDBREAKS=' '"):  # with the equals sign, and without
            with self.subTest(breaks=breaks):
                program = breaks + BASH.replace("script", "here/script").replace("< lines", "< here/lines")
                done = self.run_shell("bash", "--noprofile", "--norc", "-c", program)
                self.assertEqual(done.stderr, "")
                self.compare(done.stdout)

    def test_fish(self):
        self.script("fish")
        program = FISH.replace("script", "here/script").replace("< lines", "< here/lines")
        done = self.run_shell("fish", "--no-config", "-c", program)
        self.assertEqual(done.stderr, "")
        self.compare(done.stdout)

    def test_zsh(self):
        self.script("zsh")
        lines = [*LINES, "fovea ", *(f"fovea {command} --" for command in self.commands)]
        lines += [line for line in self.lines if line.startswith("fovea train lm --") and line not in lines]
        installed = self.here / "functions"
        installed.mkdir()
        shutil.copy(self.here / "script", installed / "_fovea")
        self.compare(self.offered_by_zsh(installed, "", lines), lines)

    def test_zsh_that_sources_the_script(self):
        self.script("zsh")
        self.compare(self.offered_by_zsh(self.here, "source here/script", LINES), LINES)

    def offered_by_zsh(self, fpath, source, lines):
        offered = self.here / "offered"
        setup = ZSHRC.replace("FPATH", str(fpath)).replace("SOURCE", source).replace(">> offered", f">> {offered}")
        (self.here / ".zshrc").write_text(setup)
        ours, theirs = pty.openpty()
        shell = subprocess.Popen(["zsh", "-d", "-i"], stdin=theirs, stdout=theirs, stderr=theirs, cwd=self.folder,
                                 start_new_session=True,
                                 env=self.environment({"ZDOTDIR": str(self.here), "TERM": "dumb"}))
        os.close(theirs)
        threading.Thread(target=self.drain, args=(ours,), daemon=True).start()
        try:
            self.wait_for(offered, r"^ready$", 1)
            for number, line in enumerate(lines, 1):
                os.write(ours, f"{line}\t".encode())
                self.wait_for(offered, r"^\(end\)$", number)
        finally:
            shell.kill()
            shell.wait()
        return offered.read_text()

    def drain(self, terminal):
        try:
            while os.read(terminal, 4096):
                pass
        except OSError:
            pass  # the other end is closed

    def wait_for(self, file, pattern, times):
        for _ in range(6000):
            if file.is_file() and len(re.findall(pattern, file.read_text(), re.MULTILINE)) >= times:
                return
            time.sleep(0.01)
        self.fail(f"zsh: {file.read_text() if file.is_file() else 'does not start'}")

    def test_an_unknown_shell_is_an_error(self):
        self.assert_error(self.run_fovea("completion", "tcsh"), 2, "no script for 'tcsh'")


if __name__ == "__main__":
    unittest.main()

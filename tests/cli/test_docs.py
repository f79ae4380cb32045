# SPDX-License-Identifier: Apache-2.0
"""What the documentation says of the command: every option, and every line that is shown, run.

The lines are run as they stand, one page after another in a folder of its own, on small texts, with
these cheap substitutions (the last value of an option counts):
  train lm         a model of one layer; --stop-after a hundredth of what is said, or 20u
  generate         --max-tokens 20
  bench attention  one head, 64 tokens, one thread
  bench step       a model of one layer, two steps
  reproduce        a run of each variant, a few updates
  tokenizer train  40 pieces, with bytes 300
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import unittest
from pathlib import Path

from attention_support import problem
from support import FOVEA, CommandTest, words
from bert_support import write_model
from frames_support import gestures
from gguf_support import U32, gguf
from marian_support import write_marian
from t5_support import write_t5
from tag_support import columns, conllu, segmented, tagged
from tensor_files import write
from translate_support import sentences

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = ("train lm", "train classify", "train pairs", "train tag", "train translate", "train embed", "generate", "classify",
            "pairs", "tag", "translate", "embed", "similar", "explain", "demo", "learn", "eval", "inspect", "import", "export", "report", "tokenizer train", "tokenizer encode", "tokenizer decode",
            "doctor", "attention", "conformance write", "conformance check", "bench attention", "bench step", "reproduce",
            "completion", "man")
TRANSLATOR = "--encoder-layers 1 --decoder-layers 1 --heads 2 --width 32 --min-count 1 --batch-tokens 80".split()
SMALL = ("--layers 1 --heads 2 --width 32 --block 16 --batch-size 4 --eval-every 10u --save-every 10u").split()


def page_of(command):
    """Its own page, or that of its first word."""
    pages = [ROOT / "docs" / "commands" / (name + ".md") for name in (command.replace(" ", "-"), command.split()[0])]
    return next((page for page in pages if page.is_file()), pages[0])


def text_of(command):
    """What its page says, or its section of a page of several."""
    text = page_of(command).read_text(encoding="utf-8")
    section = re.search(rf"^## fovea {command}$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    text = section[1] if section else text
    for other, shared in re.findall(r"those of \[(train \w+)\]\(train-\w+\.md#(\w+)\)", text):
        page = page_of(other).read_text(encoding="utf-8")
        text += re.search(rf"^## {shared}$(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL | re.IGNORECASE)[1]
    return text


def shell_blocks(text):
    return re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def makes_its_data(block):
    return "printf" in block


def shell_lines(text):
    for block in shell_blocks(text):
        for line in block.splitlines():
            line = re.sub(r"\s+#.*", "", line).strip()
            if line:
                yield line


def cheaper(arguments):
    if arguments[0] == "generate":
        return [*arguments, "--max-tokens", "20"]
    if arguments[:2] == ["bench", "attention"]:
        return [*arguments, "--batch", "1", "--heads", "1", "--length", "64", "--threads", "1"]
    if arguments[:2] == ["reproduce", "speed"]:
        return [*arguments, "--share", "0.002"]
    if arguments[0] == "reproduce":
        return [*arguments, "--share", "0.002", "--seeds", "1"]
    if arguments[:2] == ["bench", "step"]:
        return [*arguments, *SMALL[:10], "--steps", "2"]
    if arguments[:2] == ["train", "classify"] and "--buckets" in arguments:
        return [*arguments, "--buckets", "1000"]
    if arguments[:2] == ["tokenizer", "train"]:
        return [*arguments, "--vocab-size", "300" if "--byte-fallback" in arguments else "40"]
    if arguments[:2] in (["train", "tag"], ["train", "pairs"], ["train", "embed"]):
        return [*arguments, "--stop-after", "20u"]
    if arguments[:2] == ["train", "translate"]:
        sizes = TRANSLATOR[2:] if "bahdanau-gru" in arguments else TRANSLATOR  # it has no --encoder-layers
        return [*arguments, *([] if "--resume" in arguments else sizes), "--stop-after", "20u"]
    if arguments[:2] != ["train", "lm"] or "--dry-run" in arguments:
        return arguments
    stop = "20u"
    if "--stop-after" in arguments:
        said = re.fullmatch(r"(\d+)00u", arguments[arguments.index("--stop-after") + 1])
        assert said, "a page shows a length that this test cannot shorten"
        stop = said[1] + "u"
    small = SMALL[4:] if "--model" in arguments else SMALL  # a Transformer's layers and heads
    if "--base" in arguments:  # which has its own
        small = ["--batch-size", "4"]
    resumes = any(argument.startswith("--resume") for argument in arguments)
    return [*arguments, *([] if resumes else small), "--stop-after", stop, "--threads", "2"]


class Pages(CommandTest):
    def help_of(self, command):
        return self.succeed(*command.split(), "--help").stdout.decode()

    def entries_of(self, command):
        """(its names, the rest) of each option, as --help has them."""
        text = self.help_of(command).split("\nExample")[0]
        for entry in re.split(r"\n(?=  -)", text)[1:]:
            names, rest = entry.split("\n\n")[0].split(None, 1)
            yield re.findall(r"(?<![\w-])--?[a-z][a-z0-9-]*", names), " ".join(rest.split())

    def options_in_help(self, command):
        """{option: default or None}, as --help has them."""
        found = {}
        for names, rest in self.entries_of(command):
            default = re.search(r"\[([^\[\]=]*)\]$", rest)
            found.update(dict.fromkeys(names, default[1] if default else None))
        return found

    def rows_of(self, command):
        """{option: default or None}, as the tables of its page have them."""
        found = {}
        for line in text_of(command).splitlines():
            row = re.match(r"\| ((?:`--?[a-z][a-z0-9-]*`(?:, )?)+)[^`]*\| (?:`([^`]*)`)? ?\|", line)
            for name in re.findall(r"`(--?[a-z0-9-]+)`", row[1]) if row else ():
                found.setdefault(name, row[2])  # its own, before those of the page that it shares
        return found

    def test_every_option_is_on_its_page_with_its_default(self):
        for command in COMMANDS:
            with self.subTest(command=command):
                known = self.options_in_help(command)
                self.assertIn("--help", known)
                known = {name: d for name, d in known.items() if name not in ("-h", "--help")}
                self.assertEqual(self.rows_of(command), known)

    def test_pages_say_of_an_option_what_its_help_says(self):
        row = re.compile(r"\| ((?:`--?[a-z][a-z0-9-]*`(?:, )?)+)[^`]*\| (?:`[^`]*`)? ?\| (.*) \|")
        for command in COMMANDS:
            said = {name: re.sub(r" \[[^\[\]=]*\]$", "", rest) for names, rest in self.entries_of(command) for name in names}
            for line in text_of(command).replace("\\|", "\0").splitlines():
                found = row.fullmatch(line)
                if found:
                    words, name = found[2].replace("\0", "|").replace("`", ""), found[1].split("`")[1]
                    self.assertTrue(f" {said[name]}".endswith(" " + words), f"fovea {command} {name}: {words}\n{said[name]}")

    def test_pages_and_front_pages_name_only_options_that_exist(self):
        for command in COMMANDS:
            known = set(self.options_in_help(command)) | {"--help"}
            for page in [page_of(command), ROOT / "README.md", ROOT / "README.zh-CN.md"]:
                for line in shell_lines(page.read_text(encoding="utf-8")):
                    if not line.startswith(f"fovea {command}"):
                        continue
                    used = set(re.findall(r"(?<![\w-])--?[a-z][a-z0-9-]*", line))
                    self.assertLessEqual(used, known, line)

    def test_every_command_has_its_page(self):
        overview = self.succeed("--help").stdout.decode()
        listed = re.findall(r"^  ([a-z]+(?: [a-z]+)?)  +[A-Z]", overview, re.MULTILINE)
        self.assertEqual(tuple(listed), COMMANDS)
        for command in COMMANDS:
            self.assertTrue(page_of(command).is_file())

    def test_the_page_of_parts_is_the_table_of_parts(self):
        said = self.help_of("attention")
        formulas = dict(re.findall(r"^  (\w+) +(.+)$", said.split("What the tensors of parts do:")[1].split("\n\n")[0],
                                   re.MULTILINE))
        self.assertGreater(len(formulas), 8)
        axes = dict(re.findall(r"^  (\w+) +(\[.*\])$", said, re.MULTILINE))
        page = (ROOT / "docs" / "attention.md").read_text(encoding="utf-8")
        section = page.split("## Parts with a tensor")[1].split("\n## ")[0].replace("\\|", "\0")
        rows = [[cell.strip().replace("\0", "|") for cell in line.split("|")[1:-1]]
                for line in section.splitlines() if line.startswith("| `")]
        self.assertEqual([row[0].strip("`") for row in rows], list(formulas))
        derivations = (ROOT / "docs" / "formulas.md").read_text(encoding="utf-8")
        for tensor, shape, what, *_ in rows:
            formula = formulas[tensor.strip("`")]
            self.assertEqual(shape, axes[tensor.strip("`")])
            self.assertTrue(what.startswith(f"`{formula}`"), f"{tensor}: {formula}")
            self.assertIn(formula, derivations)
        positions = re.search(r"--position (\S+)", self.help_of("train lm"))[1].split("|")
        self.assertEqual({row[3] for row in rows} - {""}, set(positions) - {"learned", "sinusoidal", "rotary", "none"})

    def test_the_page_of_layers_is_the_table_of_layers(self):
        said = self.run_fovea("train", "lm", "--train", ROOT / "README.md", "-o", self.folder / "no",
                              "--model", "encoder", "--encoder", "no-layer")
        known = re.search(r"layers are: (.*)", said.stderr.decode())[1].split(", ")
        self.assertGreater(len(known), 8)
        section = text_of("train lm").split("| Layer | What | Settings |")[1].split("\n\n")[0]
        cells = " ".join(line.split("|")[1] for line in section.splitlines() if line.startswith("| `"))
        rows = {re.match("[a-z-]+", name)[0] for name in re.findall("`([^`]+)`", cells)}
        self.assertEqual(rows, set(known))

    def test_fields_of_the_objects_are_documented(self):
        self.prepare()
        self.train(self.folder / "m", "--stop-after", "20u")
        self.run_here(["conformance", "write", "kit"])
        for line in ["train lm --overwrite --json --stop-after 2u -o m --train text.txt",
                     "train lm --dry-run --json --train text.txt", "eval m --test text.txt --json", "doctor --json",
                     "generate m --max-tokens 5 --json", "inspect m --json", "inspect m --verify --json",
                     "attention in.npz -o out.npz --plan --json", "conformance check kit --json",
                     "bench attention --batch 1 --heads 1 --length 64 --threads 1 --json"]:
            printed = self.run_here(line.split())
            command = next(c for c in COMMANDS if line.startswith(c))
            page = page_of(command).read_text(encoding="utf-8")
            said = json.loads(printed.splitlines()[-1])
            for field in [*said, *said.get("results", [{}])[0]]:
                self.assertIn(f"`{field}`", page, command)

    def test_fields_of_files_are_documented(self):
        self.train(self.folder / "m", "--stop-after", "20u")
        page = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
        config = json.loads((self.folder / "m" / "config.json").read_text())
        state = json.loads((self.folder / "m" / "checkpoints" / "step-000020" / "state.json").read_text())
        fields = {"identity", "state", *state["identity"], *state["state"]}
        for table in ("text", "model", "recipe"):
            fields |= set(config[table])
        for line in (self.folder / "m" / "metrics.jsonl").read_text().splitlines():
            fields |= set(json.loads(line)) - {"kind"}
        for path in (self.folder / "m").rglob("*"):
            if path.is_file():
                self.assertIn(path.name, page)
        for field in sorted(fields):
            self.assertIn(f"`{field}`", page)

    # ---- what is shown, run

    def run_here(self, arguments, source=os.devnull):
        with open(self.folder / source, "rb") as stdin:
            done = self.start(*arguments, cwd=self.folder, stdin=stdin)
        out, err = done.communicate(timeout=120)
        self.assertEqual(done.returncode, 0, f"fovea {shlex.join(arguments)}\n{err.decode()}")
        return out.decode("utf-8", "replace")

    def prepare(self):
        for name, seed in [("book.txt", 1), ("a.txt", 2), ("b.txt", 3), ("c.txt", 4), ("test.txt", 5)]:
            (self.folder / name).write_text(words(seed), encoding="utf-8")
        (self.folder / "names.txt").write_text("the cat\na dog\n", encoding="utf-8")
        rows = [(i % 2, f"{('dull', 'fine')[i % 2]} film number {i % 5}") for i in range(40)]
        (self.folder / "reviews.tsv").write_text("".join(f"{label}\t{text}\n" for label, text in rows))
        (self.folder / "glove.6B.100d.txt").write_text("film 0.1 -0.2 0.3\nfine 1 0.5 -1\n")
        table = "".join(f"{text},{label}\n" for label, text in rows)
        for name, header in (("a.csv", "body,stars\n"), ("b.csv", "body,stars\n"), ("grades.csv", "text,label\n"),
                             ("reviews.csv", "text,label\n"), ("pool.csv", "text,label\n")):
            (self.folder / name).write_text(header + table)
        (self.folder / "tags.jsonl").write_text("".join(
            json.dumps({"text": text, "labels": text.split()[:1 + label]}) + "\n" for label, text in rows))
        for name in ("in.npz", "in.safetensors"):
            write(self.folder / name, problem(dtype="F32"))
        for name in ("train.conll", "dev.conll", "test.conll"):
            (self.folder / name).write_text(columns(tagged(count=30)))
        (self.folder / "train.conllu").write_text(conllu(tagged(count=30)))
        (self.folder / "words.seg").write_text(segmented(count=30))
        write_model(self.folder / "minilm")
        write_marian(self.folder / "opus-mt-en-de")
        write_t5(self.folder / "t5-small")
        (self.folder / "smollm2.gguf").write_bytes(gguf(llama_context_length=(U32, 400)))
        (self.folder / "chat.jsonl").write_text('{"prompt": "a", "completion": "b"}\n' * 20)
        (self.folder / "preferences.jsonl").write_text('{"prompt": "a", "chosen": "b", "rejected": "c"}\n' * 20)
        (self.folder / "notes.txt").write_text(words(8), encoding="utf-8")
        (self.folder / "texts.txt").write_text(words(7, 30), encoding="utf-8")
        (self.folder / "two-texts.tsv").write_text("the cat\tthe dog\n")
        (self.folder / "novel.txt").write_text("我们在北京学习。\n")
        pairs = sentences(count=40)
        (self.folder / "pairs.tsv").write_text("".join(f"{s}\t{t}\n" for s, t in pairs))
        for name in ("train", "dev", "test"):
            for side, language in enumerate(("en", "de")):
                (self.folder / f"{name}.{language}").write_text("".join(pair[side] + "\n" for pair in pairs))
        pairs = [(f"a {a} film", f"the film is {b}", int(a == b)) for a in ("dull", "fine") for b in ("dull", "fine")] * 10
        (self.folder / "sts.tsv").write_text("".join(f"{a}\t{b}\t{label}\n" for a, b, label in pairs))
        (self.folder / "scored.tsv").write_text("".join(f"{a}\t{b}\t{label}\n" for a, b, label in pairs))
        (self.folder / "triplets.tsv").write_text("anchor\tpositive\tnegative\n" + "".join(
            f"{a} {n}\tthe {b} {n}\tno film\n" for n, (a, b, label) in enumerate(pairs) if label))
        (self.folder / "asked.csv").write_text("question,answer,label\n" + "".join(f"{a},{b},{c}\n" for a, b, c in pairs))
        for name, keys in (("snli", ("premise", "hypothesis", "gold_label")), ("asked", ("question", "answer", "label"))):
            (self.folder / f"{name}.jsonl").write_text("".join(json.dumps(dict(zip(keys, row))) + "\n" for row in pairs))
        (self.folder / "text.txt").write_text(words(6), encoding="utf-8")
        (self.folder / "translated.en").write_bytes((self.folder / "test.en").read_bytes())
        for name, text in [("a.zh", "我们在\n"), ("b.zh", "我们在北京\n"), ("test.zh", "我们在北京。\n"),
                           ("pieces.txt", "▁the ▁cat s\n"), ("ids.txt", "3 4 5\n")]:
            (self.folder / name).write_text(text, encoding="utf-8")

    def prepare_classifier(self, output):
        self.prepare()
        (self.folder / "texts.txt").write_text(words(7, 30), encoding="utf-8")
        self.run_here(["train", "classify", "--train", "reviews.tsv", "-o", output, "--stop-after", "20u",
                       "--overwrite"])

    def prepare_taggers(self):
        self.prepare()
        for task, file, output in (("tag", "train.conll", "names"), ("segment", "words.seg", "segmenter")):
            self.run_here(["train", "tag", "--task", task, "--train", file, "-o", output, "--stop-after", "20u",
                           "--overwrite"])

    def prepare_translators(self, *names):
        self.prepare()
        for name in names:
            self.run_here(cheaper(f"train translate --source train.en --target train.de --overwrite -o {name}".split()))

    def toml_of(self, page):
        for block in re.findall(r"^```toml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
            (self.folder / "recipe.toml").write_text(block)

    def run_page(self, path):
        text = path.read_text(encoding="utf-8")
        self.prepare()
        self.toml_of(text)
        for block in filter(makes_its_data, shell_blocks(text)):
            self.run_block(block)
            text = text.replace(block, "")
        lines = [line for line in shell_lines(text) if line.startswith("fovea ")]
        for line in lines:
            command, _, source = line.partition(" < ")
            arguments = cheaper(shlex.split(command)[1:])
            arguments = [a.replace("step-002000", "step-000020") for a in arguments]
            self.run_here(arguments, source or os.devnull)
        return len(lines)

    def run_block(self, block):
        """As it stands, in an empty folder."""
        folder = self.folder / "block"
        folder.mkdir()
        program = f'set -e; fovea() {{ "{os.path.abspath(FOVEA)}" "$@"; }}\n{block}'
        done = subprocess.run(["bash", "-c", program], cwd=folder, env=self.environment(), capture_output=True,
                              timeout=120, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        shutil.rmtree(folder)
        return done.stdout

    def test_lines_to_try_print_what_they_say(self):
        for page in ("README.md", "README.zh-CN.md"):
            [block] = filter(makes_its_data, shell_blocks((ROOT / page).read_text(encoding="utf-8")))
            printed = self.run_block(block)
            self.assertRegex(printed, r"(?m)^good\t0\.9")
            self.assertRegex(printed, r"(?m)^Ada.B-PER\nleft.O\nParis.B-LOC$")
            self.assertRegex(printed, r"(?m)^eine Katze schläft$")

    def test_readme(self):
        self.assertGreater(self.run_page(ROOT / "README.md"), 8)

    def test_pages(self):
        for page in dict.fromkeys(map(page_of, COMMANDS)):
            with self.subTest(page=page.name):
                if page.stem in ("classify", "eval"):
                    self.prepare_classifier("model" if page.stem == "classify" else "classifier")
                if page.stem in ("tag", "eval"):
                    self.prepare_taggers()
                if page.stem == "pairs":
                    self.prepare()
                    shutil.copy(self.folder / "sts.tsv", self.folder / "pairs.tsv")
                    self.run_here("train pairs --train sts.tsv --overwrite -o model --stop-after 20u".split())
                if page.stem in ("translate", "eval"):
                    self.prepare_translators("translator", "other")
                if page.stem == "explain":
                    self.prepare_translators("translator")
                    self.run_here("train classify --train reviews.tsv --encoder attention --stop-after 20u --overwrite "
                                  "-o reviews".split())
                    self.run_here("train pairs --train sts.tsv --stop-after 20u --overwrite -o entailment".split())
                    self.run_here("train tag --train train.conll --encoder bilstm:8,attention --stop-after 20u --overwrite "
                                  "-o names".split())
                    write(self.folder / "test.npz", gestures(40, 1)[0])
                    self.run_here("train classify --input npz --train test.npz --encoder attention,attention:joints "
                                  "--width 8 --heads 2 --stop-after 5u --overwrite -o gestures".split())
                if page.stem == "eval":
                    self.run_here("train lm --train preferences.jsonl --objective dpo --base smollm2.gguf --lora 2 --stop-after 2u "
                                  "--valid-fraction 0 --overwrite -o preferred".split())
                if page.stem in ("generate", "explain", "eval", "inspect", "report"):
                    self.prepare()
                    self.run_here(cheaper("train lm --train book.txt --overwrite -o model".split()))
                self.assertGreater(self.run_page(page), 0)


if __name__ == "__main__":
    unittest.main()

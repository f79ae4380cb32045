# SPDX-License-Identifier: Apache-2.0
"""What the documentation says of files: links, symbols, targets, tables, and code that compiles."""

import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "bench")]
import make_error_docs  # noqa: E402
import make_formula_links  # noqa: E402
import speed_page  # noqa: E402

READMES = ("README.md", "README.zh-CN.md")
PAGES = sorted(p.relative_to(ROOT) for p in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"),
                                            *(ROOT / "examples").rglob("*.md")])
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


def text_of(page):
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def without_code(text):
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(text):
    titles = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
              for title in re.findall(r"^#+ (.*)$", without_code(text), re.MULTILINE)}
    return titles | set(re.findall(r'<a id="([^"]+)"></a>', text))


def commands(text):
    """The lines of all shell blocks, without their comments."""
    lines = "".join(blocks(text, "sh")).splitlines()
    return [line for line in (re.sub(r"\s+#.*", "", line).strip() for line in lines) if line]


class Links(unittest.TestCase):
    def test_every_relative_link_leads_somewhere(self):
        self.assertGreater(len(PAGES), 10)
        for page in PAGES:
            for target in LINK.findall(without_code(text_of(page))):
                if re.match(r"[a-z]+:", target):
                    continue
                name, _, anchor = target.partition("#")
                path = (ROOT / page).parent / name if name else ROOT / page
                with self.subTest(page=str(page), link=target):
                    self.assertTrue(path.exists())
                    if anchor and path.suffix == ".md":
                        self.assertIn(anchor, anchors(path.read_text(encoding="utf-8")))


class Formulas(unittest.TestCase):
    def test_every_link_leads_to_the_line_of_its_symbol(self):
        least = dict(zip(make_formula_links.PAGES, (200, 200, 30)))
        for name in (*make_formula_links.PAGES, *make_formula_links.ARTICLES):
            page = text_of(name)
            index = name.name.startswith("README")  # of the articles: it has no links to lines
            self.assertGreaterEqual(len(make_formula_links.LINK.findall(page)), 0 if index else least.get(name, 10))
            self.assertEqual(page, make_formula_links.linked(page), "run tools/make_formula_links.py")

    def test_no_link_to_code_is_without_its_symbol(self):
        for name in make_formula_links.PAGES:
            links = [link for link in LINK.findall(text_of(name)) if link.startswith("../")]
            self.assertEqual([link for link in links if not re.search(r"#L[0-9]+$", link)], [])
        for name in make_formula_links.ARTICLES:
            links = [link for link in LINK.findall(text_of(name)) if re.match(r"\.\./\.\./(?!README)", link)]
            self.assertEqual([link for link in links if not re.search(r"#L[0-9]+$", link)], [], name)

    def test_the_definition_is_found_among_what_only_names_it(self):
        source = """// softmax of a row
void softmax(Row& row);
int other() { return softmax(1); }
void softmax(Row& row,
             int n) {
  struct Row* rows;
}
template <class T>
T Call<T>::softmax_of() const {
"""
        line_of = make_formula_links.line_of
        self.assertEqual(line_of("fovea/x.cc", source, "softmax"), 4)
        self.assertEqual(line_of("fovea/x.cc", source, "softmax_of"), 9)
        self.assertIsNone(line_of("fovea/x.cc", source, "softma"))
        self.assertEqual(line_of("tests/x_test.cc", "\nTEST(A, Bc) {", "A.Bc"), 2)
        self.assertIsNone(line_of("tests/x_test.cc", "TEST(A, Bc) {", "A.B"))
        program = "class A(Test):\n    def test_b(self):\n        pass\n\n\nclass C(Test):\n    def test_b(self):\n"
        self.assertEqual(line_of("tests/cli/test_x.py", program, "A.test_b"), 2)
        self.assertEqual(line_of("tests/cli/test_x.py", program, "C.test_b"), 7)
        self.assertIsNone(line_of("tests/cli/test_x.py", program + "    def test_c(self):\n", "A.test_c"))


class Path(unittest.TestCase):
    """From main() to the product of Q and K, as docs/DESIGN.md names it."""

    STEP = re.compile(r"\[`([\w:]+)`\]\(\.\./(\S+?)\)")

    @staticmethod
    @functools.lru_cache(maxsize=None)
    def code_of(path):
        """The code of a file and of its header, without comments: members are declared there."""
        twin = path.removesuffix(".cc") + ".h"
        files = {path, twin} if (ROOT / twin).is_file() else {path}
        return re.sub(r"//.*", "", "".join(text_of(file) for file in files))

    def problems_of(self, steps):
        """What is untrue: a function that its file does not define, or that no file above it names."""
        problems = [] if "main(" in self.code_of(steps[0][1]) else [f"{steps[0][1]} has no main"]
        above = set()
        for symbol, path in steps:
            name = symbol.split("::")[-1]
            if make_formula_links.line_of(path, text_of(path), symbol) is None:
                problems.append(f"{path} has no {symbol}")
            if above and not any(re.search(rf"\b{name}\b", self.code_of(file)) for file in above - {path}):
                problems.append(f"{symbol} of {path} is named in no file above it")
            above.add(path)
        return problems

    def steps(self):
        return self.STEP.findall(text_of("docs/DESIGN.md").split("### From `main()`")[1].split("\n## ")[0])

    def test_each_function_is_named_in_a_file_above_it(self):
        steps = self.steps()
        self.assertEqual([steps[0][1], steps[-1][1]], ["cli/main.cc", "fovea/attention/relative/by_distance.cc"])
        self.assertIn(("TileProduct", "fovea/simd/product-inl.h"), steps)
        self.assertEqual(self.problems_of(steps), [])
        count = re.search(r"in this order, in (\d+) files", text_of("docs/DESIGN.md"))[1]
        self.assertEqual(int(count), len({path for _, path in steps}))

    def test_files_on_the_stack_at_the_product(self):
        section = text_of("docs/DESIGN.md").split("### From `main()`")[1].split("\n## ")[0]
        stages = {row.split("|")[1].strip(): self.STEP.findall(row) for row in section.splitlines() if row.startswith("|")}
        calls = [step for stage in ("command", "update", "op", "operator") for step in stages[stage]]
        returned = {"make_attention", "LoweredCall"}
        files = {path for name, path in calls if name not in returned}
        self.assertEqual({name for name, _ in calls} & returned, returned)
        self.assertEqual(re.search(r"(\d+) of these files are on the stack", section)[1], str(len(files)))
        self.assertLessEqual(len(files), 20)

    def test_a_layer_is_five_files_above_the_product(self):
        paths = [path for _, path in self.steps()]
        layer = len(paths) - 1 - paths[::-1].index("fovea/nn/attention.cc")
        called = ["fovea/nn/attention.cc", "fovea/grad/ops/attention.cc", "fovea/attention/attention.cc",
                  "fovea/attention/fused/forward.cc", "fovea/attention/fused/forward_tile-inl.h"]
        self.assertEqual([path for path in paths[layer:] if path in called], called)
        for path, name in zip(called, ["attention", "attention_forward", "fused_forward", "Scores", "TileProduct"]):
            self.assertRegex(self.code_of(path), rf"\b{name}(<[^>]*>)?\(")

    def test_a_missing_file_and_a_wrong_order_are_found(self):
        steps = self.steps()
        for left_out in ("cli/run_training.cc", "fovea/task/objective.h", "fovea/attention/attention.cc",
                         "fovea/attention/fused/forward_tile-inl.h", "fovea/attention/bias/distance.cc"):
            self.assertNotEqual(self.problems_of([step for step in steps if step[1] != left_out]), [], left_out)
        self.assertNotEqual(self.problems_of(steps[:1] + steps[:0:-1]), [])
        self.assertNotEqual(self.problems_of([*steps, ("no_such_function", "cli/main.cc")]), [])


class Errors(unittest.TestCase):
    def test_the_page_is_that_of_the_table(self):
        table = text_of(make_error_docs.TABLE)
        self.assertEqual(text_of(make_error_docs.PAGE), make_error_docs.page(table),
                         "run tools/make_error_docs.py")

    def test_every_code_is_there(self):
        names = re.findall(r'"(E\d{4})"', text_of(make_error_docs.TABLE))
        self.assertEqual([name for _, name, *_ in make_error_docs.codes(text_of(make_error_docs.TABLE))],
                         names)

    def test_an_entry_that_cannot_be_read_is_an_error(self):
        with self.assertRaises(ValueError):
            make_error_docs.codes('kErrorCodes = {\n ErrorCodeInfo{ErrorCode::kX, name, 1, "x", "y"}\n};')

    def test_pages_name_only_codes_that_exist(self):
        known = {name for _, name, *_ in make_error_docs.codes(text_of(make_error_docs.TABLE))}
        for page in PAGES:
            self.assertLessEqual(set(re.findall(r"\bE0\d{3}\b", text_of(page))), known, page)


class FrontPages(unittest.TestCase):
    def test_both_show_the_same(self):
        english, chinese = map(text_of, READMES)
        self.assertEqual(commands(english), commands(chinese))
        self.assertEqual(blocks(english, "cpp"), blocks(chinese, "cpp"))
        self.assertEqual(english.count("\n|"), chinese.count("\n|"))
        self.assertEqual([m for m in re.findall(r"`[^`\n]+` \|$", english, re.MULTILINE)],
                         [m for m in re.findall(r"`[^`\n]+` \|$", chinese, re.MULTILINE)])

    def test_the_program_compiles(self):
        compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
        if not compiler:
            self.skipTest("there is no C++ compiler")
        for program in blocks(text_of(READMES[0]), "cpp"):
            with tempfile.TemporaryDirectory() as folder:
                source = pathlib.Path(folder) / "program.cc"
                source.write_text(program)
                done = subprocess.run([compiler, "-std=c++20", "-Wall", "-fsyntax-only", f"-I{ROOT}", source],
                                      capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)

    def test_make_targets_exist(self):
        targets = set(re.findall(r"^([a-z-]+):", text_of("Makefile"), re.MULTILINE))
        for page in PAGES:
            shown = re.findall(r"(?:^|`)make ([a-z-]+)", text_of(page), re.MULTILINE)
            self.assertLessEqual(set(shown), targets, page)

    def test_programs_and_scripts_exist(self):
        for page in PAGES:
            for name in re.findall(r"(?<!tests/)\b((?:bench|tools)/[\w/]+\.(?:py|sh))\b", text_of(page)):
                self.assertTrue((ROOT / name).is_file(), f"{page}: {name}")


class LibraryPage(unittest.TestCase):
    PAGE = "docs/library.md"

    def test_its_programs_are_those_of_examples(self):
        page = text_of(self.PAGE)
        programs = [path.read_text(encoding="utf-8") for path in (ROOT / "examples").glob("*.cc")]
        shown = blocks(page, "cpp")
        self.assertGreater(len(shown), 5)
        for block in shown:
            self.assertTrue(any(block in program for program in programs), block)

    def test_every_example_is_in_its_index_and_built(self):
        index = text_of(self.PAGE).split("## Examples")[1]
        made = text_of("examples/CMakeLists.txt")
        found = re.findall(r"foreach\(example ([^)]*)\)|add_executable\(\S+ (learn/\w+)\.cc", made)
        built = " ".join(f"{names} {name}" for names, name in found).split()
        for path in (ROOT / "examples").rglob("*.cc"):
            name = path.relative_to(ROOT / "examples")
            self.assertIn(f"(../examples/{name})", index)
            self.assertIn(str(name.with_suffix("")), built)

    def test_public_headers_are_those_that_are_installed_as_such(self):
        installed = re.findall(r"^  ([\w/]+\.h)", text_of("cmake/FoveaPublicHeaders.cmake"), re.MULTILINE)
        listed = re.findall(r"^\| \[`([\w/]+\.h)`\]\(\.\./fovea/\1\)", text_of(self.PAGE), re.MULTILINE)
        self.assertGreater(len(installed), 40)
        self.assertEqual(listed, installed)
        included = re.findall(r'^#include "fovea/([\w/]+\.h)"', text_of("fovea/fovea.h"), re.MULTILINE)
        rest = [name for name in installed if name != "fovea.h" and not name.startswith("reference/")]
        self.assertEqual(sorted(included), sorted(rest))

    def test_the_version_is_said_once(self):
        header = text_of("fovea/base/version.h")
        parts = [re.search(rf"FOVEA_VERSION_{part} (\d+)", header)[1] for part in ("MAJOR", "MINOR", "PATCH")]
        self.assertIn(f'FOVEA_VERSION "{".".join(parts)}"', header)


# Wordings that readers had to read twice.
RIDDLES = ("told what earlier sums are worth", "for what means nothing", "what is decided anew each time", "costs what it weighs",
           "a loop in registers reaches", "goes on otherwise than")


class Words(unittest.TestCase):
    def test_riddles_do_not_return(self):
        for path in [*map(ROOT.joinpath, PAGES), *(ROOT / "fovea").rglob("*.h")]:
            text = re.sub(r"\s+(?://+ ?)?", " ", path.read_text(encoding="utf-8")).lower()
            self.assertEqual([words for words in RIDDLES if words in text], [], path)

    def test_sources_are_cited_by_name(self):
        """Not by the row of a list that readers do not have, as in "spec L" and a number."""
        rows = re.compile(r"\bspec(?:ification)?,? [A-Z]\d")
        for room in ("fovea", "cli", "python", "docs", "bench", "examples", "tests"):
            for path in (ROOT / room).rglob("*"):
                if path.suffix in (".h", ".cc", ".py", ".md", ".js"):
                    self.assertIsNone(rows.search(path.read_text(encoding="utf-8")), path)

    def test_chinese_terms_are_those_of_the_field(self):
        text = text_of(READMES[1])
        self.assertEqual([word for word in ("每一位", "观察量", "个 token") if word in text], [])
        for word in ("逐比特", "观察器", "尚未支持", "词元"):
            self.assertIn(word, text)

    def test_the_first_screen_has_speeds_and_lines_to_try(self):
        for page in READMES:
            screen = text_of(page).split("\n## ")
            self.assertIn("<!-- speeds: begin", screen[0])
            tries = re.findall(r"^(?:.* \| )?fovea ([a-z]+(?: lm| classify| tag| translate)?)", screen[1], re.MULTILINE)
            self.assertLessEqual({"train lm", "generate", "train classify", "classify", "train tag", "tag",
                                  "train translate", "translate", "explain", "attention"}, set(tries))

    def test_the_table_of_what_people_want_names_every_page_of_a_command(self):
        for page in READMES:
            table = text_of(page).split("<!-- speeds: begin")[0]
            named = set(re.findall(r"^\| .*", table, re.MULTILINE))
            ending = page.removeprefix("README")  # .md, .zh-CN.md
            linked = set(re.findall(rf"\]\(docs/commands/([\w-]+{re.escape(ending)})[#)]", "".join(named)))
            pages = {path.name for path in (ROOT / "docs" / "commands").iterdir()}
            self.assertEqual(linked, {name for name in pages if name.endswith(".zh-CN.md") == (ending != ".md")})


class Speeds(unittest.TestCase):
    def test_page_pictures_and_front_pages_are_those_of_the_results(self):
        for path, text in speed_page.made().items():
            self.assertEqual(path.read_text(encoding="utf-8"), text, f"{path.name}: run bench/speed_page.py")

    def test_no_picture_is_left_over(self):
        made = {path for path in speed_page.made() if path.suffix == ".svg"}
        self.assertEqual(set(speed_page.IMAGES.glob("speed-*.svg")), made)

    def test_a_figure_below_its_target_is_marked_whatever_it_measures(self):
        self.assertEqual(speed_page.with_target(0.798, 0.8), "0.798 (0.8)" + speed_page.BELOW)
        self.assertEqual(speed_page.with_target(1.5, 1.5), "1.500 (1.5)")
        self.assertEqual(speed_page.with_target(1.4, 1.35, most=True), "1.40 (1.35)" + speed_page.BELOW)
        for results in speed_page.everything():
            rows = results.of_section("dot")
            lines = list(speed_page.lines_of_dot(rows))[2:]
            below = [value < target for row in rows.values() for one in (row["forward"], row["backward"])
                     for value, target in ((one.get("strongest"), one["target"]), (one["share"], one["target_share"]))
                     if target and value is not None]
            self.assertEqual("".join(lines).count(speed_page.BELOW), sum(below))

    def test_nothing_in_a_picture_is_clipped(self):
        for path in speed_page.IMAGES.glob("speed-*.svg"):
            picture = ElementTree.fromstring(path.read_text(encoding="utf-8"))
            width, height = float(picture.get("width")), float(picture.get("height"))
            for word in picture.iter("{http://www.w3.org/2000/svg}text"):
                x, long = float(word.get("x")), len(word.text) * (9.5 if word.get("class") == "title" else 6.6)
                start = x - long * {"start": 0, "middle": 0.5, "end": 1}[word.get("text-anchor")]
                self.assertTrue(0 <= start and start + long <= width and float(word.get("y")) < height,
                                f"{path.name}: {word.text}")


if __name__ == "__main__":
    unittest.main()

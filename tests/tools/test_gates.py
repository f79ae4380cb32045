# SPDX-License-Identifier: Apache-2.0
"""Every gate passes what is right and fails what is wrong."""

import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import check_floors  # noqa: E402
import check_format  # noqa: E402
import check_headers  # noqa: E402
import check_mirror  # noqa: E402
import check_sizes  # noqa: E402
import check_text  # noqa: E402
import sources  # noqa: E402

SPDX = "// SPDX-License-Identifier: Apache-2.0\n"


class InAFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


class Floors(InAFolder):
    def problems(self, name, include, rooms="fovea_room(base)\nfovea_room(attention LINK fovea_base)"):
        self.write("cmake/FoveaRooms.cmake", rooms)
        self.write(name, f"#include {include}\n")
        return check_floors.check(self.root)

    def test_a_lower_floor_and_the_own_room_may_be_included(self):
        self.assertEqual(self.problems("fovea/attention/a.cc", '"fovea/base/error.h"'), [])
        self.assertEqual(self.problems("fovea/attention/attention.cc", '"fovea/attention/attention.h"'), [])
        self.assertEqual(self.problems("cli/a.cc", '"fovea/task/a.h"'), [])
        self.assertEqual(self.problems("tests/base/a.cc", '"fovea/task/a.h"'), [])

    def test_a_higher_floor_may_not(self):
        self.assertIn("only strictly lower", self.problems("fovea/base/a.cc", '"fovea/simd/isa.h"')[0])
        self.assertIn("only strictly lower", self.problems("fovea/task/a.cc", '"cli/output.h"')[0])

    def test_rooms_of_one_floor_may_not_include_each_other(self):
        self.assertIn("only strictly lower", self.problems("fovea/kernel/a.cc", '"fovea/attention/a.h"')[0])

    def test_the_product_does_without_the_reference(self):
        for name in ("fovea/task/a.cc", "cli/a.cc", "fovea/kernel/a.cc"):
            self.assertIn("only strictly lower", self.problems(name, '"fovea/reference/kernels.h"')[0])
        self.assertIn("links reference", self.problems("fovea/base/a.cc", "<vector>", "fovea_room(task LINK fovea_reference)")[0])

    def test_a_room_has_a_floor(self):
        self.assertTrue(self.problems("fovea/attic/a.cc", "<vector>"))

    def test_the_product_includes_no_test(self):
        self.assertTrue(self.problems("fovea/base/a.cc", '"tests/support/throws.h"'))

    def test_a_borrowed_header_stands_in_one_place(self):
        self.assertTrue(self.problems("fovea/task/a.cc", '"nlohmann/json.hpp"'))
        self.assertTrue(self.problems("fovea/attention/tile.h", '"hwy/foreach_target.h"'))

    def test_the_one_place_may_include_it(self):
        self.assertEqual(self.problems("fovea/attention/b.cc", '"hwy/foreach_target.h"'), [])

    def test_attention_has_floors_of_its_own(self):
        self.assertEqual(self.problems("fovea/attention/fused/a.cc", '"fovea/attention/call.h"'), [])
        self.assertIn("only strictly lower", self.problems("fovea/attention/mask/a.h", '"fovea/attention/call.h"')[0])
        self.assertIn("only strictly lower",
                      self.problems("fovea/attention/fused/a.h", '"fovea/attention/linear/linear.h"')[0])
        problems = self.problems("fovea/attention/fused/forward_tile-inl.h", '"fovea/attention/fused/backward_chunk.h"')
        self.assertIn("of the backward", " ".join(problems))
        self.assertIn("without a room", self.problems("fovea/attention/attic.h", '"fovea/attention/call.h"')[0])

    def test_internal_headers_of_attention_declare_in_detail(self):
        plain, detail = "namespace fovea {\n\nint f();\n}\n", "namespace fovea::detail {\n\nint f();\n}\n"
        self.assertIn("only fovea::detail", check_floors.check_namespace("fovea/attention/fused/a.h", plain)[0])
        self.assertEqual(check_floors.check_namespace("fovea/attention/fused/a.h", detail), [])
        self.assertEqual(check_floors.check_namespace("fovea/attention/mask/a.h", plain), [])
        self.assertEqual(check_floors.check_namespace("fovea/attention/checks.h", "namespace fovea {\nstruct A;\n}\n"), [])
        mixed = "namespace fovea {\nstruct A;\n\nint f();\n}\n"
        self.assertEqual(len(check_floors.check_namespace("fovea/attention/checks.h", mixed)), 1)

    def test_the_rooms_of_attention_include_each_other_seldom(self):
        includes = [("fovea/attention/mask/a.h", n, "fovea/attention/tile.h") for n in range(51)]
        self.assertIn("51 includes", check_floors.check_attention(includes)[0])
        self.assertEqual(check_floors.check_attention(includes[:50]), [])

    def test_libraries_link_downwards_and_what_they_include(self):
        include = ("fovea/attention/a.cc", '"fovea/base/error.h"')
        self.assertIn("links kernel", self.problems(*include, "fovea_room(attention LINK fovea_base fovea_kernel)")[0])
        self.assertIn("does not link", self.problems(*include, "fovea_room(attention LINK fovea_simd)")[0])
        chain = "fovea_room(attention LINK fovea_simd)\nfovea_room(simd LINK fovea::base)"
        self.assertEqual(self.problems(*include, chain), [])


class Sizes(unittest.TestCase):
    def functions(self, text):
        return {f.name: (f.lines, f.parameters) for f in check_sizes.cpp_functions(text)}

    def test_functions_are_found_wherever_they_stand(self):
        text = """
            namespace a::b {
            int free(int x, std::map<int, int> y = {}) {
              return x;
            }
            struct S : T<(1 > 2)> {
              S(int x) : x_{x}, y_(x) {
              }
              template <class F> requires std::is_enum_v<F>
              auto operator()(F f) const -> int { if (f) { } return 1; }
              int x_{0};
            };
            constexpr int kTable[] = {1, 2};
            inline const auto kCall = [](int, int) { return 1; };
            }  // namespace
            TEST(Suite, Name) {
            }
        """
        found = self.functions(text)
        self.assertEqual(found["free"], (3, 2))
        self.assertEqual(found["S"], (2, 1))
        self.assertEqual(found["operator"] if "operator" in found else found[")"], (2, 1))
        self.assertEqual(found["TEST"], (2, 2))

    def test_what_looks_like_code_in_a_text_or_comment_is_none(self):
        text = 'void f() {\n  g("}", \'}\', R"(})");  // }\n  /* } */\n}\nvoid h(int a) {}\n'
        self.assertEqual(self.functions(text), {"f": (4, 0), "h": (1, 1)})

    def test_parameters_of_declarations_and_lambdas_count(self):
        text = "void f(int a, F<int, int> b, int (*c)(int, int));\nvoid g() { [&](int, int, int) {}(); }\n"
        found = self.functions(text)
        self.assertEqual(found["f"], (0, 3))
        self.assertEqual(found["lambda"], (0, 3))

    def problems(self, text, path="a.cc", long_files=None, long_functions=None):
        sizes = check_sizes.Sizes(long_files or {}, long_functions or {}, {})
        sizes.check(path, text)
        return sizes.finish()

    def test_limits(self):
        def body(n):
            return "void f() {\n" + "  g();\n" * (n - 2) + "}\n"
        self.assertEqual(self.problems(body(80)), [])
        self.assertIn("81 lines", self.problems(body(81))[0])
        self.assertEqual(self.problems("int x;\n" * 800), [])
        self.assertIn("801 lines", self.problems("int x;\n" * 801)[0])
        self.assertEqual(self.problems("void f(int a, int b, int c, int d, int e, int f);"), [])
        self.assertIn("7 parameters", self.problems("void f(int a, int b, int c, int d, int e, int f, int g);")[0])
        self.assertIn("81 lines", self.problems("def f():\n" + "    g()\n" * 80, "a.py")[0])

    def test_a_reason_excuses_and_must_be_needed(self):
        long = "void f() {\n" + "  g();\n" * 80 + "}\n"
        self.assertEqual(self.problems(long, long_functions={"a.cc:f": "one table"}), [])
        self.assertIn("says no reason", self.problems(long, long_functions={"a.cc:f": ""})[0])
        self.assertIn("drop its reason", self.problems("", long_files={"a.cc": "was long"})[0])


class Mirror(unittest.TestCase):
    TABLE = {"fovea/a/mask": ("tests/a/mask_test.cc", "loops over the table")}

    def test_every_folder_has_tests(self):
        names = ["fovea/a/x.cc", "fovea/a/other.cc", "tests/a/x_test.cc", "fovea/a/folder/y.cc",
                 "tests/a/folder/some_test.cc", "fovea/a/mask/z.cc", "tests/a/mask_test.cc", "fovea/b/header.h"]
        self.assertEqual(check_mirror.check(names, self.TABLE), [])
        for missing, expected in (("tests/a/folder/some_test.cc", "tests/a/folder/*_test.cc"),
                                  ("tests/a/mask_test.cc", "tests/a/mask_test.cc")):
            rest = [name for name in names if name != missing]
            self.assertIn(f"expected {expected}", check_mirror.check(rest, self.TABLE)[0])

    def test_the_table_does_not_rot(self):
        self.assertIn("is gone", check_mirror.check([], self.TABLE)[0])


class Headers(InAFolder):
    def problems(self, text, name="fovea/base/a.h"):
        self.write(name, text)
        return check_headers.check(self.root, ["c++"], self.root / "scratch")

    def test_a_header_that_brings_what_it_needs_passes(self):
        self.assertEqual(self.problems("#pragma once\n#include <vector>\ninline std::vector<int> v;\n"), [])

    def test_one_that_does_not_fails(self):
        self.assertIn("does not compile alone", self.problems("#pragma once\nstd::vector<int> v;\n")[0])

    def test_one_without_a_guard_fails(self):
        self.assertTrue(self.problems("struct A {};\n"))

    def test_two_that_clash_fail(self):
        self.write("fovea/train/b.h", "#pragma once\ntemplate <class T> class A {};\n")
        self.assertIn("fovea: its headers do not compile in one file",
                      self.problems("#pragma once\nclass A {};\n")[0])


class Format(InAFolder):
    def setUp(self):
        super().setUp()
        self.write(".clang-format", (ROOT / ".clang-format").read_text())

    def test_the_layout_is_checked(self):
        self.write("fovea/base/a.cc", "int f() { return 1; }\n")
        self.assertEqual(check_format.check(self.root), [])
        self.write("fovea/base/b.cc", "int  f( ) {return 1;}\n")
        self.assertIn("fovea/base/b.cc", check_format.check(self.root)[0])


class Text(unittest.TestCase):
    def problems(self, text, name="fovea/base/a.cc"):
        return list(check_text.check_file(pathlib.Path(name), text))

    def test_what_is_right_passes(self):
        self.assertEqual(self.problems(SPDX + "// see the network/work/done, 1.10.2.3\nint x;\n"), [])
        self.assertEqual(self.problems("no licence needed\n", "docs/a.md"), [])

    def test_the_licence_is_asked_for(self):
        self.assertIn("SPDX", self.problems("int x;\n")[0])

    def test_what_is_left_over_is_found(self):
        for line in ("// TO" "DO: more", "// FIX" "ME(me)", "x = '/wo" "rk/main'", "cd /ro" "ot/x",
                     "/tmp/" "venv/bin/python", "http://10." "1.2.3/simple", "<<<<" "<<< HEAD",
                     "blank ", "\ttab"):
            self.assertEqual(len(self.problems(SPDX + line + "\n")), 1, line)
        self.assertIn("newline", self.problems(SPDX + "int x;")[0])


class Tokens(unittest.TestCase):
    def test_lines_are_counted_through_comments_and_texts(self):
        text = "/* a\n b */ x\n#define y \\\n  {\nz R\"t(\n)t\" w"
        self.assertEqual(list(sources.tokens(text)), [("x", 2), ("z", 5), ('""', 5), ("w", 6)])

    def test_digits_may_be_apart(self):
        self.assertEqual([t for t, _ in sources.tokens("1'000'000 + 'x'")], ["1'000'000", "+", '""'])


if __name__ == "__main__":
    unittest.main()

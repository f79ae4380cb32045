# SPDX-License-Identifier: Apache-2.0
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import demo_text  # noqa: E402

COLLECTION = """\x1b[32m《感遇・其一》\x1b[m
\x1b[33m作者：张九龄\x1b[m
兰叶春葳蕤，桂华秋皎洁。
君不见，
何求美人折？
%
\x1b[32m题目:《春居杂兴》二首\x1b[m
\x1b[33m作者:王禹偁（９５４－１００１）\x1b[m

            其一

两株桃杏映篱斜，妆点商山副使家，
%
一篇散文，没有诗句。
"""


class Poems(unittest.TestCase):
    def test_only_lines_of_five_and_seven_are_kept(self):
        self.assertEqual(list(demo_text.poems(COLLECTION)), [
            ["兰叶春葳蕤，", "桂华秋皎洁。", "何求美人折？"],
            ["两株桃杏映篱斜，", "妆点商山副使家，"],
        ])

    def test_four_clauses_are_a_quatrain(self):
        self.assertEqual(demo_text.quatrains(list("abcdef")), ["abcd", "ef"])

    def test_no_escape_code_survives(self):
        self.assertNotIn("\x1b", "".join(c for poem in demo_text.poems(COLLECTION) for c in poem))


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""Tables as spreadsheets and programs write them: train, eval and classify read each the same, or say what to do."""

import csv
import io
import json
import shutil
import unittest

from forged import forge_json
from support import CommandTest

GOOD, BAD = "a wonderful {}", "a dreadful {}"
THINGS = "film plot actor scene story music night road house friend water light".split()


def rows(count=24):
    """Texts with what tables trip over: quotes, commas, semicolons, ends of lines."""
    marks = ("", ", and more", "; and more", ' "quoted"', "\nin two lines")
    return [((GOOD, BAD)[i % 2].format(THINGS[i % len(THINGS)]) + marks[i % len(marks)], ("good", "bad")[i % 2])
            for i in range(count)]


def table(names, columns, between=",", end="\n", **how):
    """CSV of rows, each a list of cells."""
    file = io.StringIO()
    writer = csv.writer(file, delimiter=between, lineterminator=end, **how)
    writer.writerows([names, *columns] if names else columns)
    return file.getvalue()


class TablesTest(CommandTest):
    def file(self, name, text, encoding="utf-8"):
        path = self.folder / name
        path.write_bytes(text.encode(encoding))
        return path

    def fit(self, file, *args):
        return self.succeed("train", "classify", "--train", file, "-o", self.folder / "model", "--overwrite", "--folds", "2",
                            "--quiet", *args)

    def answers(self, file, *args):
        done = self.succeed("classify", self.folder / "model", file, *args)
        return done.stdout.decode().splitlines()

    def lines(self, texts):
        """The answers to these texts, asked by a file that cannot be misread."""
        asked = self.file("asked.jsonl", "".join(json.dumps({"text": text}) + "\n" for text in texts))
        return self.answers(asked, "--text-column", "text")

    def same(self, file, *args, texts=None, name=None):
        """Trained without a word more, then evaluated and asked by the same file, and by one without labels."""
        texts = texts or [text for text, _ in rows()]
        self.fit(file, *args)
        score = json.loads(self.succeed("eval", self.folder / "model", "--test", file, "--json").stdout)
        self.assertEqual((score["examples"], score["accuracy"]["value"]), (len(texts), 1))
        expected = self.lines(texts)
        self.assertEqual(self.answers(file), expected)
        if name is not None:  # one that does not say what the file is
            self.assertEqual(self.answers(shutil.copy(file, self.folder / name)), expected)


class Traps(TablesTest):
    def test_excel_with_bom_and_crlf(self):
        self.same(self.file("t.csv", "\ufeff" + table(["text", "label"], rows(), end="\r\n")), name="c.txt")

    def test_sep_in_the_first_line(self):
        self.same(self.file("t.csv", "\ufeffsep=;\r\n" + table(["text", "label"], rows(), ";", "\r\n")), name="c.txt")

    def test_semicolons_and_names_with_commas(self):
        names = ["body, as written", "label name"]
        self.same(self.file("t.csv", table(names, rows(), ";")), "--separator", ";", "--text-column", names[0], name="c.txt")

    def test_tabs_of_a_csv(self):
        self.same(self.file("t.csv", table(["text", "label"], rows(), "\t")), name="c.txt")

    def test_tsv_without_names(self):
        flat = [(label, text.replace("\n", " ").replace('"', "")) for text, label in rows()]
        self.same(self.file("t.tsv", "".join(f"{a}\t{b}\n" for a, b in flat)), texts=[b for _, b in flat], name="c.txt")

    def test_three_columns_without_names(self):
        cells = [(i, text, label) for i, (text, label) in enumerate(rows())]
        self.same(self.file("t.csv", table(None, cells)), "--header", "no", "--text-column", "2", "--label-column", "3")

    def test_names_in_chinese_and_arabic(self):
        for text, label in ("文本", "标签"), ("النص", "التصنيف"):
            self.same(self.file("t.csv", "\ufeff" + table(["id", text, label], [(i, *row) for i, row in enumerate(rows())])),
                      name="c.txt")

    def test_a_name_of_the_training_goes_before_a_usual_one(self):
        cells = [(f"nothing {i % 3}", *row) for i, row in enumerate(rows())]
        file = self.file("t.csv", table(["text", "what was written", "label"], cells))
        self.same(file, "--text-column", "what was written", "--label-column", "label", name="c.txt")
        other = self.file("other.csv", table(["what was written", "id", "text"], [(row[0], 1, "dreadful") for row in rows()]))
        self.assertEqual(self.answers(other), self.lines([text for text, _ in rows()]))

    def test_names_that_are_there_twice(self):
        cells = [("nothing", *row) for row in rows()]
        file = self.file("t.csv", table(["text", "text", "label"], cells))
        self.assert_error(self.run_fovea("train", "classify", "--train", file, "-o", self.folder / "model"), 3,
                          "expected one column text, got 2")
        self.same(file, "--text-column", "2", "--label-column", "label", "--header", "yes", name="c.txt")

    def test_a_thousand_columns(self):
        names = [f"c{i}" for i in range(998)]
        cells = [(*range(499), text, *range(499), label) for text, label in rows()]
        self.same(self.file("t.csv", table([*names[:499], "text", *names[499:], "label"], cells)), name="c.txt")

    def test_one_usual_name_beside_another(self):
        self.same(self.file("t.csv", 'body,"label name"\n' + table(None, rows())), name="c.txt")
        self.same(self.file("t.csv", "what was said,label\n" + table(None, rows())), name="c.txt")

    def test_gb18030_is_refused_with_what_to_do(self):
        file = self.file("t.csv", table(["文本", "标签"], [("很好的电影", "好"), ("很差的电影", "差")] * 9), "gb18030")
        for command in (("train", "classify", "-o", self.folder / "other", "--train", file),):
            done = self.run_fovea(*command)
            self.assert_error(done, 3, "expected UTF-8")
            self.assertIn(b"iconv -f GB18030 -t UTF-8", done.stderr)
        self.fit(self.file("good.csv", table(["文本", "标签"], [("很好的电影", "好"), ("很差的电影", "差")] * 9)))
        for command in (("classify", self.folder / "model", file), ("eval", self.folder / "model", "--test", file)):
            done = self.run_fovea(*command)
            self.assert_error(done, 3, "expected UTF-8")
            self.assertIn(b"iconv -f GB18030 -t UTF-8", done.stderr)


class Forms(TablesTest):
    def edit(self, change):
        """Changes config.json, and returns what it was."""
        was = json.loads((self.folder / "model" / "config.json").read_text())
        forge_json(self.folder / "model", "config.json", change)
        return was

    def test_json_lines_and_fasttext_are_known_again(self):
        flat = [(text.replace("\n", " "), label) for text, label in rows()]
        lines = "".join(json.dumps({"id": i, "said": text, "mood": label}) + "\n" for i, (text, label) in enumerate(flat))
        self.same(self.file("t.jsonl", lines), "--text-column", "said", "--label-column", "mood",
                  texts=[text for text, _ in flat], name="c.txt")
        self.same(self.file("t.ft", "".join(f"__label__{label} {text}\n" for text, label in flat)),
                  texts=[text for text, _ in flat], name="c.txt")

    def test_a_name_alone_is_a_header_of_a_file_only(self):
        self.fit(self.file("t.csv", table(["text", "label"], rows())))
        self.assertEqual(len(self.answers(self.file("c.txt", "text\na wonderful film\n"))), 1)
        spoken = self.succeed("classify", self.folder / "model", stdin=b"text\na wonderful film\n")
        self.assertEqual(len(spoken.stdout.splitlines()), 2)
        self.assertEqual(len(self.answers(self.file("d.txt", "text, label\n"), "--format", "lines")), 1)

    def test_folders_of_before_are_read_as_before(self):
        self.fit(self.file("t.csv", table(["text", "label"], rows())))
        self.edit(lambda about: about.pop("columns"))
        self.assertEqual(len(self.answers(self.file("c.txt", "text,label\na wonderful film,good\n"))), 2)
        self.assertEqual(len(self.answers(self.folder / "t.csv")), len(rows()))

    def test_damaged_columns_are_named(self):
        self.fit(self.file("t.csv", table(["text", "label"], rows())))
        for values in ({"text_at": 3}, {"columns": -1}, {"separator": ""}, {"label_at": 2**40}, {"format": "jsonl"}):
            old = self.edit(lambda about, values=values: about["columns"].update(values))
            self.assert_error(self.run_fovea("classify", self.folder / "model", stdin=b"a\n"), 4,
                              "config.json: expected columns in")
            self.edit(lambda about, old=old: about.update(old))


if __name__ == "__main__":
    unittest.main()

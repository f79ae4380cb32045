# SPDX-License-Identifier: Apache-2.0
"""Tables as spreadsheets and programs write them: train, eval and classify read each the same, or say what to do."""

import csv
import io
import json
import shutil
import signal
import subprocess
import unittest

from forged import forge_json
from support import FOVEA, CommandTest

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


class Answered(TablesTest):
    """classify -o: the table, with the answer behind its own columns."""

    def setUp(self):
        super().setUp()
        self.train = self.file("train.csv", table(["id", "text", "label"], [(i, *row) for i, row in enumerate(rows())]))
        self.fit(self.train)
        self.out = self.folder / "out.csv"

    def ask(self, file, *args, output=None):
        done = self.succeed("classify", self.folder / "model", file, "-o", output or self.out, *args)
        self.assertEqual(done.stdout, b"")
        return done.stderr.decode()

    def read(self, between=","):
        with open(self.out, encoding="utf-8-sig", newline="") as file:
            return list(csv.reader(file, delimiter=between))

    def test_every_byte_of_the_table_stays(self):
        for end, between, first in (("\r\n", ",", "\ufeff"), ("\n", ";", ""), ("\r\n", ";", "\ufeffsep=;\r\n")):
            cells = [(i, text) for i, (text, _) in enumerate(rows())]
            text = first + table(["id", "text"], cells, between, end, quoting=csv.QUOTE_NONNUMERIC)
            file = self.file("in.csv", text[:-len(end)])  # the last line does not end
            self.ask(file, "--overwrite")
            expected = [line.split("\t") for line in self.lines([text for text, _ in rows()])]
            given = list(csv.reader(io.StringIO(text.lstrip("\ufeff"), newline=""), delimiter=between))
            names = next(i for i, row in enumerate(given) if "id" in row)
            got = self.read(between)
            self.assertEqual(got[names], [*given[names], "label", "probability"])
            self.assertEqual(got[names + 1:], [[*row, *answer] for row, answer in zip(given[names + 1:], expected)])
            written = self.out.read_bytes().decode()
            for label, probability in expected:
                written = written.replace(f"{between}{label}{between}{probability}", "", 1)
            self.assertEqual(written.replace(f"{between}label{between}probability", "", 1), text[:-len(end)])

    def test_rows_that_cannot_be_read_stay_in_place(self):
        file = self.folder / "in.csv"
        file.write_bytes(b'id,text\n1,a wonderful film\n\n2,a,b\n3,"x" y\n4,\xff\xfe\n5,"in two\nlines, dreadful"\n6\n7,good\n')
        said = self.ask(file)
        self.assertIn("rows that cannot be read: 4 of 7; they stay without an answer", said)
        lines = self.out.read_bytes().split(b"\n")
        self.assertEqual(len(lines), 11)
        self.assertEqual([lines[i] for i in (0, 2, 3, 4, 5, 8)],
                         [b"id,text,label,probability", b"", b"2,a,b,,", b'3,"x" y,,', b"4,\xff\xfe,,", b"6,,"])
        self.assertRegex(lines[1], rb"^1,a wonderful film,good,0\.\d+$")
        self.assertRegex(lines[7], rb'^lines, dreadful",bad,0\.\d+$')
        self.assert_error(self.run_fovea("classify", self.folder / "model", file, "-o", self.folder / "no.csv",
                                         "--bad-rows", "stop"), 3, "in.csv:4: expected 2 columns")
        self.assertEqual([f.name for f in self.folder.glob("no*")], [])  # nor a temporary file

    def test_objects_keep_their_keys(self):
        file = self.file("in.jsonl", '{"id": 1, "text": "a wonderful film", "more": [1, {"a": null}]}\r\n{"text":"dreadful"} \n'
                         '{"id": 3}\n{"text": }\n')
        self.out = self.folder / "out.jsonl"
        said = self.ask(file)
        self.assertIn("rows that cannot be read: 2 of 4", said)
        first, second, third, fourth = self.out.read_bytes().split(b"\n")[:4]
        self.assertTrue(first.startswith(b'{"id": 1, "text": "a wonderful film", "more": [1, {"a": null}],"label":"good"'), first)
        self.assertEqual(list(json.loads(first)), ["id", "text", "more", "label", "probability", "probabilities"])
        self.assertEqual(json.loads(second)["label"], "bad")
        self.assertEqual(json.loads(third), {"id": 3, "label": None, "probability": None, "probabilities": None})
        self.assertEqual(fourth, b'{"text": }')
        file.write_text('{"text": "good"}\n{"text": "bad", "label": "x"}\n')
        self.assert_error(self.run_fovea("classify", self.folder / "model", file, "-o", self.out, "--overwrite"), 3,
                          "in.jsonl:2: the object has the key label")

    def test_objects_that_have_a_label_keep_it(self):
        file = self.folder / "in.jsonl"
        file.write_bytes(b'\xef\xbb\xbf{"text": "good", "label": "x"}\n{"text": "bad", "label": "y"}\n')
        out = self.folder / "out.jsonl"
        self.succeed("classify", self.folder / "model", file, "-o", out)
        written = out.read_bytes()
        self.assertTrue(written.startswith(b'\xef\xbb\xbf{"text": "good", "label": "x","predicted_label":'), written)
        for line, label in zip(written.decode("utf-8-sig").splitlines(), "xy"):
            self.assertEqual(list(json.loads(line))[:3], ["text", "label", "predicted_label"])
            self.assertEqual(json.loads(line)["label"], label)

    def test_names_that_are_taken(self):
        self.ask(self.train)
        self.assertEqual(self.read()[0], ["id", "text", "label", "predicted_label", "predicted_probability"])
        again = self.folder / "again.csv"
        again.write_bytes(self.out.read_bytes())
        self.ask(again, "--overwrite", "--top", 2)
        self.assertEqual(self.read()[0][5:], ["predicted_predicted_" + name for name in
                                              ("label", "probability", "label_2", "probability_2")])

    def test_labels_are_quoted_as_the_table_needs(self):
        odd = [(text, {"good": 'a "fine" one', "bad": "no; never"}[label]) for text, label in rows()]
        self.fit(self.file("t.csv", table(["text", "label"], odd, ";")))
        self.ask(self.file("in.csv", "text;n\nwonderful;1\ndreadful;2\n"))
        self.assertEqual([row[:3] for row in self.read(";")[1:]],
                         [["wonderful", "1", 'a "fine" one'], ["dreadful", "2", "no; never"]])

    def test_files_that_are_refused(self):
        model, file = self.folder / "model", self.train
        with open(file, "rb") as stream:  # standard input is the file that would be written
            done = subprocess.run([FOVEA, "classify", model, "-", "-o", file, "--overwrite"], stdin=stream,
                                  capture_output=True, env=self.environment(None))
        self.assert_error(done, 2, "is the file that is read")
        for args, status, said in (((file, "-o", file, "--overwrite"), 2, "is the file that is read"),
                                   ((file, "-o", model / "config.json", "--overwrite"), 2, "folder of the model"),
                                   ((file, "-o", self.folder / "x.jsonl"), 2, "the texts are csv"),
                                   ((file, "-o", self.folder / "x.csv.gz"), 2, "is not packed"),
                                   ((file, "-o", self.folder), 5, "is a folder"),
                                   ((file, "-o", self.folder / "none" / "x.csv"), 5, "no such folder")):
            self.assert_error(self.run_fovea("classify", model, *args), status, said)
        self.out.write_text("mine")
        self.assert_error(self.run_fovea("classify", model, file, "-o", self.out), 2, "exists already")
        self.assertEqual(self.out.read_text(), "mine")

    def test_lines_and_standard_output(self):
        texts = self.file("in.txt", "wonderful\ndreadful\n")
        self.ask(texts)
        self.assertEqual(self.out.read_bytes(), self.succeed("classify", self.folder / "model", texts).stdout)
        self.ask(self.train, "--overwrite")
        printed = self.succeed("classify", self.folder / "model", "-", "-o", "-", stdin=self.train.read_bytes()).stdout
        self.assertEqual(printed, self.out.read_bytes())

    def test_several_labels_are_one_column(self):
        both = [(text, label if i % 3 else "good+bad") for i, (text, label) in enumerate(rows())]
        self.fit(self.file("t.csv", table(["text", "label"], both)), "--multi-label", "--label-separator", "+")
        self.ask(self.file("in.csv", "text\nwonderful\n"), "--threshold", "0")
        (names, row) = self.read()
        self.assertEqual(names, ["text", "labels", "probabilities"])
        self.assertEqual(sorted(row[1].split("+")), ["bad", "good"])
        self.assertEqual(len(row[2].split("+")), 2)

    def test_threads_change_nothing(self):
        file = self.file("in.csv", table(["id", "text"], [(i, text) for i, (text, _) in enumerate(rows(20000))]))
        for sort in ("input", "uncertain"):
            written = []
            for threads in (1, 3):
                self.ask(file, "--overwrite", "-t", threads, "--sort", sort)
                written.append(self.out.read_bytes())
            self.assertEqual(written[0], written[1])

    def test_a_signal_leaves_nothing(self):
        process = self.start("classify", self.folder / "model", "-", "-o", self.out, stdin=subprocess.PIPE)
        process.stdin.write(b"a wonderful film\n")
        process.stdin.flush()
        while not any(file.stat().st_size for file in self.folder.glob("out.csv.tmp*")):  # the first answer
            self.assertIsNone(process.poll())
        process.send_signal(signal.SIGTERM)
        process.communicate()
        self.assertEqual(process.returncode, 143)
        self.assertEqual(list(self.folder.glob("out.csv*")), [])


class Certainty(TablesTest):
    def setUp(self):
        super().setUp()
        self.fit(self.file("train.csv", table(["text", "label"], rows())))
        self.asked = self.file("in.csv", "id,text\n1,wonderful film\n2,zzz\n3,wonderful dreadful\n4,\"\n\"\n5,dreadful\n")

    def ask(self, *args, stdin=b""):
        return self.succeed("classify", self.folder / "model", *args, stdin=stdin)

    def test_a_label_that_is_improbable_is_empty(self):
        sure, unsure = self.ask("--min-probability", "0.7", stdin=b"wonderful\nzzz\n").stdout.decode().splitlines()
        self.assertTrue(sure.startswith("good\t"))
        self.assertRegex(unsure, r"^\t0\.\d+$")
        done = self.ask("--min-probability", "0.7", "--json", stdin=b"wonderful\nzzz\n")
        self.assertIn(b"without a label: 1 of 2; theirs has a probability below --min-probability 0.7", done.stderr)
        sure, unsure = map(json.loads, done.stdout.splitlines())
        self.assertEqual((sure["label"], unsure["label"], len(unsure["probabilities"])), ("good", None, 1))
        out = self.folder / "out.csv"
        self.ask(self.asked, "-o", out, "--min-probability", "1")
        self.assertIn("1,wonderful film,,0.", out.read_text())
        self.assertNotIn(b"without a label", self.ask(stdin=b"zzz\n").stderr)

    def test_what_to_label_next_comes_first(self):
        out = self.folder / "out.csv"
        self.ask(self.asked, "-o", out, "--sort", "uncertain")
        with open(out, encoding="utf-8", newline="") as file:
            names, *answers = csv.reader(file)
        self.assertEqual(names, ["id", "text", "label", "probability"])
        self.assertEqual(sorted(row[0] for row in answers), list("12345"))
        sure = [float(row[3]) for row in answers]
        self.assertEqual(sure, sorted(sure))
        self.assertEqual([row[0] for row in answers[:2]], ["2", "4"])  # as sure as each other: in their order
        lines = self.ask(self.asked, "--sort", "uncertain").stdout.decode().splitlines()
        self.assertEqual([line.split("\t")[2:] for line in lines[:2]], [["3", "zzz"], ["5", "\\n"]])
        objects = [json.loads(line) for line in self.ask(self.asked, "--sort", "uncertain", "--json").stdout.splitlines()]
        self.assertEqual([(one["line"], one["text"]) for one in objects[:2]], [(3, "zzz"), (5, "\n")])

    def test_models_without_one_label(self):
        numbers = [(text, len(text)) for text, _ in rows()]
        self.fit(self.file("n.csv", table(["text", "label"], numbers)), "--regression")
        for args in ("--min-probability", "0.5"), ("--sort", "uncertain"):
            self.assert_error(self.run_fovea("classify", self.folder / "model", *args), 2, f"{args[0]} has no effect")
        self.ask(self.asked, "-o", self.folder / "out.csv")
        self.assertIn("id,text,value\n", (self.folder / "out.csv").read_text())
        self.fit(self.file("m.csv", table(["text", "label"], rows())), "--multi-label")
        self.assert_error(self.run_fovea("classify", self.folder / "model", "--min-probability", "0.5"), 2, "--threshold")
        self.assertEqual(len(self.ask(self.asked, "--sort", "uncertain").stdout.splitlines()), 5)


if __name__ == "__main__":
    unittest.main()

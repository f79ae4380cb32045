# SPDX-License-Identifier: Apache-2.0
"""fovea report, and --report of the trainings."""

import csv
import html.parser
import json
import os
import re
import signal
import time
import unittest
import xml.etree.ElementTree

from support import SMALL, CommandTest

FAST = ["--stop-after", "40u", "--eval-every", "10u", "--log-every", "5", "--save-every", "20u"]
HOSTILE = "</script><img src=x onerror=alert(1)>\u202e"
VOID = {"meta", "link", "br", "img", "hr", "input"}


class Page(html.parser.HTMLParser):
    """A page whose elements are closed in order: its text, ids, tables of numbers."""

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.tags, self.words, self.rows = [], [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.ids += [value for name, value in attributes if name == "id"]
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, tag

    def handle_data(self, data):
        self.words.append(data)
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data

    def text(self):
        return " ".join("".join(self.words).split())


class ReportTest(CommandTest):
    def page(self, path):
        text = path.read_text(encoding="utf-8")
        self.assertTrue(text.endswith("</html>\n"))
        page = Page(text)
        self.assertEqual(len(page.ids), len(set(page.ids)))
        self.assertIn("default-src 'none'", text)
        self.assertNotRegex(text, r"(src|href)=\"(?!data:|#)")
        main = re.search(r"<main>.*</main>", text, re.DOTALL)[0].replace("&#39;", "&apos;")
        xml.etree.ElementTree.fromstring(main)
        return page

    def report(self, *folders):
        output = self.folder / f"page{len(list(self.folder.iterdir()))}.html"
        self.succeed("report", *folders, "-o", output)
        return self.page(output)

    def reviews(self, name="reviews.tsv", labels=("good", "bad")):
        path = self.folder / name
        path.write_text("".join(f"{labels[0]}\ta fine film, number {i % 7}\n{labels[1]}\ta dull film, number {i % 5}\n"
                                for i in range(30)), encoding="utf-8")
        return path

    def classifier(self, output, *args):
        return self.succeed("train", "classify", "--train", self.reviews(), "-o", output, "--width", "8",
                            "--batch-size", "8", *FAST, *args)


class Pages(ReportTest):
    def test_every_point_of_a_curve_is_in_a_table(self):
        model = self.folder / "model"
        self.classifier(model, "--evaluate-training")
        page = self.report(model)
        rows = {tuple(row) for row in page.rows}
        cells = {cell for row in rows for cell in row}
        records = [json.loads(line) for line in (model / "metrics.jsonl").read_text().splitlines()]
        kinds = {r["kind"] for r in records}
        self.assertEqual(kinds, {"update", "evaluation", "metrics", "training"})
        for record in records:
            self.assertTrue(any(row[0] == str(record["step"]) for row in rows), record)
            fields = {"update": ["loss", "running_loss", "running_accuracy", "lr", "gradient_norm",
                                 "tokens_per_second"],
                      "evaluation": ["train_loss", "train_accuracy", "valid_loss"], "training": ["loss"], "metrics": []}[record["kind"]]
            numbers = [record[f] for f in fields] + list(record.get("values", {}).values())
            for number in numbers:
                self.assertIn(f"{number:.6g}", {c.replace("e-0", "e-0") for c in cells}, record)
        self.assertIn("training: whole set, weights of that update", page.text())
        self.assertIn("How to read this page", page.text())

    def test_runs_side_by_side_show_what_differs(self):
        a, b, c = (self.folder / name for name in "abc")
        self.classifier(a)
        self.classifier(b, "--lr", "0.02")
        self.train(c, *FAST)
        page = self.report(a, b, c)
        differing = [row[0] for row in page.rows if "recipe.lr" in row[0]]
        self.assertEqual(differing, ["recipe.lr"])
        self.assertIn("different data", page.text())
        self.assertIn("nats per token", page.text())
        self.assertIn("nats per text", page.text())

    def test_losses_in_the_terminal(self):
        model = self.folder / "model"
        self.classifier(model)
        said = {}
        for name, environment in (("utf-8", {"LC_ALL": "C.UTF-8", "TERM": "xterm"}), ("ascii", {"LC_ALL": "C"}),
                                  ("dumb", {"LC_ALL": "C.UTF-8", "TERM": "dumb"})):
            said[name] = self.succeed("report", model, "--terminal", env=environment).stdout.decode("utf-8")
        self.assertEqual(said["ascii"], said["dumb"])
        self.assertTrue(said["ascii"].isascii())
        self.assertRegex(said["utf-8"], "[\u2801-\u28ff]")  # braille
        for text in said.values():
            self.assertTrue(text.startswith(f"{model}: loss, nats per text\n"))
            self.assertIn("@ best weights: ", text)
            self.assertGreaterEqual(text.count("o"), 3)
        self.assertFalse((self.folder / "report.html").exists())

    def test_csv_has_every_number(self):
        model, output = self.folder / "model", self.folder / "curves.csv"
        self.classifier(model, "--evaluate-training")
        self.succeed("report", model, "--csv", output)
        self.assertEqual(self.succeed("report", model, "--csv", "-").stdout, output.read_bytes())
        with open(output, newline="", encoding="utf-8") as file:
            rows = {int(row["update"]): row for row in csv.DictReader(file)}
        columns = {"update": {"loss": "training_loss_batch", "running_loss": "training_loss_running_mean", "lr": "lr",
                              "mean16_loss": "training_loss_last16_mean",
                              "gradient_norm": "gradient_norm", "tokens_per_second": "targets_per_second",
                              "running_accuracy": "training_running_mean_accuracy"},
                   "evaluation": {"train_loss": "training_loss_interval_mean", "valid_loss": "validation_loss",
                                  "train_accuracy": "training_interval_mean_accuracy"},
                   "training": {"loss": "training_loss"}, "metrics": {}}
        count = 0
        for record in map(json.loads, (model / "metrics.jsonl").read_text().splitlines()):
            of = {"metrics": "validation_", "training": "training_"}.get(record["kind"], "")
            numbers = {column: record[field] for field, column in columns[record["kind"]].items()}
            numbers |= {of + name: value for name, value in record.get("values", {}).items()}
            for column, value in numbers.items():
                self.assertEqual(float(rows[record["step"]][column]), value, (record, column))
                count += 1
        self.assertEqual(count, sum(cell != "" for row in rows.values() for cell in row.values()) - 2 * len(rows))
        self.assert_error(self.run_fovea("report", model, "--csv", output), 2, "exists already")
        self.succeed("report", model, "--csv", output, "--overwrite")
        output.write_text("mine")
        self.assert_error(self.run_fovea("report", model, "--csv", output, "--overwrite"), 2, "is no CSV that fovea")

    def test_an_evaluation_adds_metrics_confusion_and_calibration(self):
        model, test = self.folder / "model", self.folder / "test.json"
        self.classifier(model)
        test.write_bytes(self.succeed("eval", model, "--test", self.reviews(), "--json").stdout)
        output = self.folder / "page.html"
        self.succeed("report", model, "--eval", test, "-o", output, "--lang", "zh")
        page = self.page(output)
        for words in ("混淆矩阵", "校准", "95 % 区间", "如何阅读本页", "训练报告"):
            self.assertIn(words, page.text())
        counts = json.loads(test.read_text())["confusion"]
        for row in counts:
            self.assertTrue(any(cells[1:] == [str(n) for n in row] for cells in page.rows), row)

    def test_hostile_names_stay_text(self):
        model = self.folder / HOSTILE.replace("/", "|")
        data = self.reviews(labels=(HOSTILE, "bad"))
        self.succeed("train", "classify", "--train", data, "-o", model, "--width", "8", *FAST)
        test, output = self.folder / "test.json", self.folder / "page.html"
        test.write_bytes(self.succeed("eval", model, "--test", data, "--json").stdout)
        self.succeed("report", model, "--eval", test, "-o", output)
        page = self.page(output)
        self.assertNotIn("img", [tag for tag, _ in page.tags])
        self.assertNotIn("\u202e", output.read_text(encoding="utf-8"))
        self.assertIn("</script><img src=x onerror=alert(1)>", page.text())

    def test_a_long_run_stays_small_and_says_that_it_is_thinned(self):
        model = self.folder / "model"
        self.train(model, "--stop-after", "10u", "--log-every", "1")
        line = json.loads((model / "metrics.jsonl").read_text().splitlines()[0])
        with open(model / "metrics.jsonl", "w", encoding="utf-8") as file:
            for step in range(1, 100001):
                file.write(json.dumps({**line, "step": step, "loss": 1 + 1 / step}) + "\n")
        started = time.monotonic()
        page = self.report(model)
        self.assertLess(time.monotonic() - started, 30)
        output = max(self.folder.glob("page*.html"))
        self.assertLess(output.stat().st_size, 8e6)
        self.assertIn("up to 100 measurements in a row", page.text())
        self.assertTrue(any(row[0] == "1–100" and "2" in row[1] for row in page.rows))

    def test_fifty_runs(self):
        folders = []
        self.train(self.folder / "m0", *FAST)
        for n in range(50):
            folders.append(self.folder / f"run{n}")
            os.symlink(self.folder / "m0", folders[-1])
        done = self.run_fovea("report", *folders, "-o", self.folder / "page.html")
        self.assert_error(done, 2, "same folder")
        for folder in folders:
            folder.unlink()
            folder.mkdir()
            for name in ("MANIFEST.json", "config.json", "tokenizer.txt", "model.safetensors", "metrics.jsonl"):
                os.link(self.folder / "m0" / name, folder / name)
        page = self.report(*folders)
        self.assertIn("50 runs", page.text())

    def records(self, model):
        return [json.loads(line) for line in (model / "metrics.jsonl").read_text().splitlines()]

    def test_the_running_accuracy_is_that_of_the_batches_and_resumed_to_the_bit(self):
        """Batches of all texts, one an update, without dropout: what the whole set had before it."""
        whole, parts = self.folder / "whole", self.folder / "parts"
        options = ["--train", self.reviews(), "--width", "8", "--batch-size", "60", "--valid-fraction", "0.2",
                   "--stop-after", "12u", "--log-every", "1", "--eval-every", "1u", "--save-every", "7u",
                   "--evaluate-training", "--dropout", "0", "--encoder-dropout", "0"]
        self.succeed("train", "classify", *options, "-o", whole)
        exact = {r["step"]: r["values"]["accuracy"] for r in self.records(whole) if r["kind"] == "training"}
        running = {r["step"]: r["running_accuracy"] for r in self.records(whole) if r["kind"] == "update"}
        for step in range(2, 13):
            self.assertEqual(running[step], exact[step - 1], step)
        options[options.index("--eval-every") + 1] = "5u"
        self.succeed("train", "classify", *options, "-o", whole, "--overwrite")
        self.succeed("train", "classify", *options, "-o", parts, "--stop-after", "7u", "--schedule", "constant")
        self.succeed("train", "classify", *options, "-o", whole, "--overwrite", "--schedule", "constant")
        self.succeed("train", "classify", "--resume", "-o", parts, "--stop-after", "12u")
        accuracies = [[r.get("running_accuracy", r.get("train_accuracy")) for r in self.records(run)
                       if r["kind"] in ("update", "evaluation") and r["step"] not in (7,)] for run in (whole, parts)]
        self.assertEqual(*accuracies)
        self.assertGreater(len(set(accuracies[0])), 2)

    def test_the_running_accuracy_of_a_tagger_and_of_an_older_run(self):
        sentences = self.folder / "names.conll"
        sentences.write_text("Ada\tB-person\nsaw\tO\nRome\tB-place\n\n" * 20)
        tagger = self.folder / "tagger"
        self.succeed("train", "tag", "--train", sentences, "-o", tagger, "--width", "8", *FAST)
        running = [r["running_accuracy"] for r in self.records(tagger) if r["kind"] == "update"]
        self.assertTrue(all(0 <= r <= 1 for r in running) and running[-1] > running[0], running)
        words = "training: running mean of the interval so far"
        self.assertEqual(self.report(tagger).text().count(words), 6)  # two figures: legend, plot, table
        lines = [re.sub(r',"(running|train)_accuracy":[^,}]*', "", line)
                 for line in (tagger / "metrics.jsonl").read_text().splitlines()]
        (tagger / "metrics.jsonl").write_text("\n".join(lines) + "\n")
        self.assertEqual(self.report(tagger).text().count(words), 3)

    def test_a_model_or_a_checkpoint_gives_what_it_has(self):
        model = self.folder / "model"
        self.train(model, *FAST)
        page = self.report(model / "checkpoints" / "step-000040")
        self.assertIn("there is no history", page.text())
        self.assertIn("recipe.lr", page.text())


class BadInput(ReportTest):
    def setUp(self):
        super().setUp()
        self.model = self.folder / "model"
        self.train(self.model, *FAST)
        self.output = self.folder / "page.html"

    def refused(self, status, *needles, args=(), folders=None):
        before = self.output.read_bytes() if self.output.is_file() else None
        done = self.run_fovea("report", *(folders or [self.model]), "-o", self.output, *args)
        self.assert_error(done, status, *needles)
        self.assertEqual(self.output.read_bytes() if self.output.is_file() else None, before)
        self.assertEqual([p.name for p in self.folder.iterdir() if ".tmp." in p.name], [])

    def test_folders_that_are_no_runs(self):
        (self.folder / "empty").mkdir()
        self.refused(4, "empty", folders=[self.folder / "empty"])
        self.refused(4, "none", folders=[self.model, self.folder / "none"])
        self.refused(2, "same folder", folders=[self.model, f"{self.model}/"])
        self.assert_error(self.run_fovea("report"), 2, "DIR")

    def test_a_damaged_config(self):
        config = self.model / "config.json"
        config.write_text(config.read_text().replace("2", "3", 1))
        self.refused(4, "config.json")

    def test_a_torn_line_is_said_and_passed_over(self):
        with open(self.model / "metrics.jsonl", "a", encoding="utf-8") as file:
            file.write('garbage\n{"kind": "update", "step": 4')
        done = self.succeed("report", self.model, "-o", self.output)
        said = done.stderr.decode()
        self.assertIn("the last line of metrics.jsonl is incomplete", said)
        self.assertIn("some lines of metrics.jsonl cannot be read", said)
        self.assertIn("is incomplete", self.page(self.output).text())

    def test_lines_that_no_training_writes(self):
        """Numbers that are none, out of order, huge or many; kinds, metrics and heads of any names."""
        metrics = self.model / "metrics.jsonl"
        line = json.loads(metrics.read_text().splitlines()[0])
        hostile = [{**line, "step": step, "loss": loss, "running_loss": loss, "lr": loss}
                   for step, loss in ((7, None), (3, 1e308), (9 * 10**18, -1e308), (-5, 5e-324), (8, 0.5))]
        hostile += [{"kind": "metrics", "step": 8, "is_best": True,
                     "values": {HOSTILE: 1e300, **{f"m{n}": n for n in range(500)}}},
                    {"kind": "attention", "step": 8, "entropy": [[1] * 300] * 3, "max_logit": [[]], "distance": []},
                    {"kind": "attention", "step": 9, "entropy": [[None]], "max_logit": [], "distance": []},
                    {"kind": "evaluation", "step": 8, "train_loss": None, "valid_loss": 1e999, "is_best": True},
                    {"kind": "later", "step": 9, "loss": 0}, {"kind": "metrics", "step": 9}, [], 7, {}]
        with open(metrics, "a", encoding="utf-8") as file:
            for one in hostile:
                file.write(json.dumps(one).replace("Infinity", "1e999") + "\n")
            file.write("[" * 100 + "\n" + "\0\n" + '{"kind":"update","kind":"update"}\n')
        started = time.monotonic()
        done = self.succeed("report", self.model, "-o", self.output)
        self.assertLess(time.monotonic() - started, 30)
        self.assertIn("some lines of metrics.jsonl cannot be read", done.stderr.decode())
        page = self.page(self.output)
        self.assertNotIn("img", [tag for tag, _ in page.tags])
        self.assertNotIn("nan", self.output.read_text(encoding="utf-8").replace("nance", ""))
        self.assertNotIn("inf ", page.text())

    def test_a_history_that_is_no_file(self):
        metrics = self.model / "metrics.jsonl"
        metrics.unlink()
        metrics.mkdir()
        self.refused(4, "metrics.jsonl")
        metrics.rmdir()
        os.mkfifo(metrics)
        self.refused(4, "metrics.jsonl")
        metrics.unlink()
        metrics.symlink_to("/dev/zero")
        self.refused(4, "metrics.jsonl")
        metrics.unlink()
        self.succeed("report", self.model, "-o", self.output)

    def test_outputs(self):
        self.output.write_text("mine")
        self.refused(2, "exists already")
        self.refused(2, "no page that fovea has written", args=["--overwrite"])
        self.output.unlink()
        self.succeed("report", self.model, "-o", self.output)
        self.succeed("report", self.model, "-o", self.output, "--overwrite", "--lang", "zh")
        self.assertIn("训练报告", self.page(self.output).text())
        self.output = self.folder / "no" / "page.html"
        self.refused(5, "no such folder")
        self.output = self.folder
        done = self.run_fovea("report", self.model, "-o", self.folder)
        self.assert_error(done, 5, "is a folder")

    def test_evaluations(self):
        bad = self.folder / "bad.json"
        bad.write_text('{"task": "binary"}')
        self.refused(3, "bad.json", "not an evaluation", args=["--eval", bad])
        self.refused(3, "none.json", args=["--eval", self.folder / "none.json"])
        self.refused(2, "1 folders and 2 files", args=["--eval", bad, bad])
        self.refused(2, "lang", args=["--lang", "de"])


class Live(ReportTest):
    def test_a_page_is_kept_while_a_run_trains(self):
        model = self.folder / "model"
        self.train(model, *FAST, "--report")
        page = self.page(model / "report.html")
        self.assertNotIn("goes on", page.text())
        self.assertIn("40", [row[0] for row in page.rows])
        self.succeed("inspect", model, "--verify")
        self.train(model, *FAST, "--report", "--lang", "zh", "--resume", "--stop-after", "60u")
        page = self.page(model / "report.html")
        self.assertIn("训练报告", page.text())
        self.assertIn("60", [row[0] for row in page.rows])
        self.train(model, *FAST, "--overwrite")
        self.assertFalse((model / "report.html").exists())

    def test_a_page_changes_no_bit(self):
        a, b = self.folder / "a", self.folder / "b"
        self.train(a, *FAST)
        self.train(b, *FAST, "--report", "--evaluate-training")
        for name in ["checkpoints/step-000040/optimizer.safetensors"]:
            self.assertEqual((a / name).read_bytes(), (b / name).read_bytes())

    def test_evaluating_the_training_set_needs_a_validation(self):
        done = self.run_fovea("train", "lm", "--train", self.text, "-o", self.folder / "x", *SMALL,
                              "--evaluate-training", "--valid-fraction", "0")
        self.assert_error(done, 2, "--evaluate-training")

    def test_a_reload_shows_progress(self):
        model = self.folder / "model"
        # A page takes at most a fiftieth of the time, so few points, which are drawn soon, bring more pages.
        process = self.start("train", "lm", "--train", self.text, "-o", model, *SMALL, "--stop-after", "1000000u",
                             "--eval-every", "100u", "--save-every", "100000u", "--log-every", "100", "--report")
        seen = []
        limit = time.monotonic() + 150
        try:
            while len(seen) < 3 and time.monotonic() < limit:
                time.sleep(0.1)
                if not (model / "report.html").exists():
                    continue
                page = self.page(model / "report.html")
                self.assertIn("goes on", page.text())
                reached = max((int(row[2]) for row in page.rows if len(row) > 3 and row[1] == "language model"), default=0)
                if reached not in seen:
                    seen.append(reached)
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=60)
        self.assertEqual(seen, sorted(seen))
        self.assertEqual(len(seen), 3, seen)
        self.assertNotIn("goes on", self.page(model / "report.html").text())

    def test_a_killed_run_leaves_a_whole_page_or_none(self):
        inside = 0
        for n in range(20):
            model = self.folder / f"killed{n}"
            process = self.start("train", "lm", "--train", self.text, "-o", model, *SMALL, "--stop-after",
                                 "1000000u", "--eval-every", "100000u", "--report")
            limit = time.monotonic() + 30
            # The page of the beginning: killed while it is written, or a moment later.
            while time.monotonic() < limit and process.poll() is None:
                names = os.listdir(model) if model.is_dir() else []
                if any(name.startswith("report.html") for name in names):
                    break
            if n % 2:
                time.sleep(0.0005 * n)
            process.kill()
            process.communicate()
            inside += any(name.startswith("report.html.tmp.") for name in os.listdir(model))
            if (model / "report.html").exists():
                self.page(model / "report.html")
            self.succeed("train", "lm", "--resume", "-o", model, "--stop-after", "2u", "--schedule", "constant")
            self.assertEqual([name for name in os.listdir(model) if ".tmp." in name], [])
        self.assertGreaterEqual(inside, 1)


if __name__ == "__main__":
    unittest.main()

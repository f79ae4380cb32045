#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How good and how quick `fovea train classify --model linear` is beside linear models of scikit-learn.

  bench/linear_peers.py DATA                      all sets
  bench/linear_peers.py DATA --only imdb-500 zh   some of them
  bench/linear_peers.py DATA --only imdb-500 --draw 1 --no-peers
  bench/linear_peers.py DATA --only labels-1000 classes-1000 --no-peers

Needs scikit-learn (pip install scikit-learn), and zstd for packed files. DATA has the folders imdb, multi30k,
wikitext2, tinyshakespeare, zh_en_handson and zh_gsdsimp; a set whose folder is not there is left out. "manuals" and
"pages" need Debian's packages of manual pages (manpages, manpages-dev, manpages-de, manpages-fr, ...), or their folder:
--manuals DIR; "packages" needs apt's list of packages. Each peer is
TF-IDF (sublinear) of words, of characters, or of both, with a linear model whose C is chosen by cross-validation
(logistic regression by log loss, a linear SVM by accuracy, or macro F1 where classes are uneven; with and without
balanced weights there). Peers take hours for the sets of 1,000: --no-peers. fovea runs once, with its defaults. All read the test texts once, at the end; the seconds are
those of training, from the file (fovea) or from texts in memory (peers), on --threads threads.
"""
import argparse
import collections
import gzip
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time
import warnings

import common

Set = collections.namedtuple("Set", "kind train test score")  # rows are (label, text); of "labels": (labels, text)

TOPICS = {"horror": "horror zombie ghost monster", "comedy": "comedy funny hilarious", "war": "war soldier army",
          "music": "music song songs musical", "children": "kids children family", "book": "book novel",
          "series": "series episode tv", "action": "action fight", "love": "love romance romantic",
          "animation": "animation animated cartoon", "documentary": "documentary", "game": "game games"}


def unpacked(path):
    if path.suffix == ".zst":
        return subprocess.run(["zstd", "-dcq", path], check=True, capture_output=True).stdout.decode()
    if path.suffix == ".gz":
        return gzip.decompress(path.read_bytes()).decode()
    return path.read_text(encoding="utf-8")


def lines_of(path):
    return [line for line in unpacked(path).split("\n") if line.strip()]


class Data:
    """The rows of the sets, each drawn with the same seed."""

    def __init__(self, folder, draw=0):
        self.folder = pathlib.Path(folder)
        self.draw = draw
        self.read = {}

    def reviews(self, split):
        """(positive, rating, text) of IMDB, shuffled."""
        if split not in self.read:
            ids = [line.split("\t") for line in lines_of(self.folder / "imdb" / "ids.tsv.zst")]
            ratings = [int(name.split("_")[1]) for part, _, name in ids if part == split]
            texts = [line.split("\t", 1) for line in lines_of(self.folder / "imdb" / f"{split}.tsv.zst")]
            rows = [(label, rating, text) for rating, (label, text) in zip(ratings, texts)]
            random.Random(1).shuffle(rows)
            self.read[split] = rows
        return self.read[split]

    def imdb(self, count):
        train, test = ([(label, text) for label, _, text in self.reviews(split)] for split in ("train", "test"))
        first = self.draw * count
        return Set("classes", train[first:first + count], test, "accuracy")

    def uneven(self):
        """95 % bad reviews, 4 % middling ones and 1 % very good ones."""
        rows = {}
        for split in ("train", "test"):
            of = {"bad": [], "middling": [], "best": []}
            for _, rating, text in self.reviews(split):
                name = "bad" if rating <= 3 else "middling" if rating in (4, 7) else "best" if rating == 10 else None
                if name:
                    of[name].append((name, text))
            rows[split] = of["bad"][:4750] + of["middling"][:200] + of["best"][:50]
            random.Random(2).shuffle(rows[split])
        return Set("classes", rows["train"], rows["test"], "macro_f1")

    def labels(self):
        """Topics, by words that are then taken out of the text; and whether the rating is at one end."""
        rows = {}
        for split in ("train", "test"):
            rows[split] = []
            for _, rating, text in self.reviews(split)[:5000]:
                found = {"extreme"} if rating in (1, 10) else set()
                for topic, words in TOPICS.items():
                    pattern = re.compile(rf"\b({words.replace(' ', '|')})\b", re.I)
                    if pattern.search(text):
                        found.add(topic)
                        text = pattern.sub("", text)
                rows[split].append((sorted(found), text))
        return Set("labels", rows["train"], rows["test"], "macro_f1")

    def many_labels(self):
        """Pieces of 357 characters, 999 labels: words that are not the commonest; every second is taken out of the
        text, as far as its own word goes."""
        pieces = {split: [text[200:557] for _, _, text in self.reviews(split) if len(text) >= 800][:3000]
                  for split in ("train", "test")}
        word = re.compile(r"\w+")
        counts = collections.Counter(w for text in pieces["train"] for w in set(word.findall(text.lower())))
        number = {w: n for n, w in enumerate(sorted(counts, key=lambda w: (-counts[w], w))[60:1059])}

        def kept(match):
            return "" if number.get(match[0].lower(), 0) % 2 else match[0]

        rows = {split: [(sorted(number.keys() & word.findall(text.lower())), word.sub(kept, text)) for text in texts]
                for split, texts in pieces.items()}
        return Set("labels", rows["train"], rows["test"], "macro_f1")

    def many_classes(self):
        """From which of 1,000 reviews a piece of 357 characters is: three pieces of each to train on, two to test."""
        texts = [text for _, _, text in self.reviews("train") if len(text) >= 5 * 357][:1000]
        rows = [(f"r{i}", text[357 * k:357 * (k + 1)], k) for i, text in enumerate(texts) for k in range(5)]
        random.Random(2).shuffle(rows)
        train, test = ([(label, text) for label, text, k in rows if (k < 3) == first] for first in (True, False))
        return Set("classes", train, test, "accuracy")

    def numbers(self):
        train, test = ([(rating, text) for _, rating, text in self.reviews(split)[:5000]] for split in ("train", "test"))
        return Set("numbers", train, test, "mse")

    def halves(self, sources, count, score="accuracy"):
        """Texts without duplicates: the first half of each source to train on, `count` of each at most."""
        train, test = [], []
        for label, texts in sources.items():
            texts = list(dict.fromkeys(texts))
            random.Random(3).shuffle(texts)
            half = min(count, len(texts) // 2)
            train += [(label, text) for text in texts[:half]]
            test += [(label, text) for text in texts[half:half + min(count, len(texts) - half)]]
        random.Random(4).shuffle(train)
        return Set("classes", train, test, score)

    def zh(self):
        of = self.folder / "zh_gsdsimp"
        treebank = [line[9:] for part in ("dev", "test") for line in lines_of(of / f"{part}.conllu.gz")
                    if line.startswith("# text = ")]
        return self.halves({"treebank": treebank, "titles": lines_of(self.folder / "zh_en_handson" / "zh.txt")}, 1000)

    def languages(self):
        """Lines of at most 25 characters, by language and kind."""
        of = {"de": ("multi30k", "train.de.gz"), "captions": ("multi30k", "train.en.gz"),
              "wiki": ("wikitext2", "valid.txt.zst"), "plays": ("tinyshakespeare", "input.txt"),
              "zh": ("zh_en_handson", "zh.txt")}
        return self.halves({label: [line.strip()[:25] for line in lines_of(self.folder.joinpath(*path))]
                            for label, path in of.items()}, 1000, "macro_f1")


MANUALS = pathlib.Path("/usr/share/man")
MARKS = re.compile(r"\\f(\[[^\]]*\]|.)|\\[&|^,/]|\\s[-+]?\d")  # of roff, in a line


def manual_lines(folder):
    """The lines of text of the manual pages of a language, cut at 60 characters, without duplicates."""
    found = {}
    for path in sorted(folder.rglob("*.gz")):
        try:
            text = unpacked(path)
        except UnicodeDecodeError:
            continue
        for line in text.split("\n"):
            if line[:1] in (".", "'", "\\"):
                continue
            line = MARKS.sub("", line).replace("\\-", "-").replace("\\(aq", "'").replace("\\ ", " ").strip()
            if len(line) >= 15:
                found[line[:60]] = None
    return list(found)


def manuals(data, folder):
    """Which language a line of a manual page is of: 300 lines each of Debian's packages manpages-*. Many lines are not
    translated: those in which more than half of the words are known from English pages are left out."""
    word = re.compile(r"[^\W\d_]{2,}")
    folders = {is_english: sorted(path for path in folder.iterdir()
                                  if path.is_dir() and path.name.startswith("man") == is_english)
               for is_english in (True, False)}
    counts = collections.Counter(w for path in folders[True] for line in manual_lines(path)
                                 for w in set(word.findall(line.lower())))

    def is_own(line):
        words = word.findall(line.lower())
        return len(words) >= 3 and sum(counts[w] >= 3 for w in words) <= len(words) / 2

    sources = {path.name: [line for line in manual_lines(path) if is_own(line)] for path in folders[False]}
    sources = {name: lines for name, lines in sources.items() if len(lines) >= 200}
    if len(sources) < 10:
        raise FileNotFoundError(f"{folder} has pages of {len(sources)} languages; install manpages-*")
    return data.halves(sources, 300)


def kinds_of_pages(data, folder):
    """Of which section of the manual a page in English is: its first 3,000 characters, 200 pages of each section."""
    sources = {}
    for path in sorted(folder.glob("man[1-8]/*.gz")):
        try:
            lines = [MARKS.sub("", line).replace("\\-", "-") for line in unpacked(path).split("\n")
                     if line[:1] not in (".", "'", "\\")]
        except (UnicodeDecodeError, OSError):
            continue
        text = " ".join(lines)[:3000]
        if len(text) >= 1000:
            sources.setdefault(path.parent.name, []).append(text)
    sources = {name: texts for name, texts in sources.items() if len(set(texts)) >= 100}
    if len(sources) < 3:
        raise FileNotFoundError(f"{folder} has long pages of {len(sources)} sections")
    return data.halves(sources, 200)


def packages(data):
    """Which section of Debian a package is of, by the line that describes it: 100 of each section."""
    lists = sorted(pathlib.Path("/var/lib/apt/lists").glob("*_main_binary-*_Packages*"))
    if not lists:
        raise FileNotFoundError("no lists of Debian's packages: apt-get update")
    command = ["/usr/lib/apt/apt-helper", "cat-file", lists[0]]
    sources = {}
    for block in subprocess.run(command, check=True, capture_output=True).stdout.decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.split("\n") if line[:1] != " " and ": " in line)
        if "Section" in fields and "Description" in fields:
            sources.setdefault(fields["Section"], []).append(fields["Description"])
    return data.halves({name: texts for name, texts in sources.items() if len(set(texts)) >= 1000}, 100)


def sets_of(data, manual_pages=MANUALS):
    """name -> what reads it."""
    sets = {f"imdb-{count}": lambda count=count: data.imdb(count) for count in (200, 500, 2000, 10000, 25000)}
    return {**sets, "uneven": data.uneven, "labels": data.labels, "numbers": data.numbers, "zh": data.zh,
            "languages": data.languages, "manuals": lambda: manuals(data, manual_pages), "pages": lambda: kinds_of_pages(data, manual_pages),
            "packages": lambda: packages(data), "labels-1000": data.many_labels, "classes-1000": data.many_classes}


def write(path, rows):
    lines = (json.dumps({"label": label, "text": text}) + "\n" for label, text in rows)
    path.write_text("".join(lines), encoding="utf-8")


def run_fovea(options, found):
    """(score, seconds, more to tell) of the command with its defaults."""
    more = {"classes": [], "labels": ["--multi-label"], "numbers": ["--regression"]}[found.kind]
    with tempfile.TemporaryDirectory() as folder:
        train, test, model = (pathlib.Path(folder) / name for name in ("train.jsonl", "test.jsonl", "model"))
        write(train, found.train)
        write(test, found.test)
        began = time.monotonic()
        common.fovea(options, "train", "classify", "--train", train, "-t", options.threads, "-o",
                     model, *more, *options.flags.split())
        seconds = time.monotonic() - began
        said = common.fovea(options, "eval", model, "--test", test, "-t", options.threads)
    told = {name: said[name]["value"] for name in ("accuracy", "macro_f1", "micro_f1", "mse", "log_loss", "ece")
            if isinstance(said.get(name), dict)}
    return told.get(found.score), seconds, told


def feature_sets():
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_union
    words = dict(ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"\w+|[^\w\s]")
    characters = dict(analyzer="char_wb", ngram_range=(1, 5), sublinear_tf=True)
    return {"words": lambda: TfidfVectorizer(**words), "characters": lambda: TfidfVectorizer(**characters),
            "both": lambda: make_union(TfidfVectorizer(**words), TfidfVectorizer(**characters))}


def models(found, threads):
    """name -> a model that chooses its own C."""
    from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, Ridge
    from sklearn.model_selection import GridSearchCV
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.svm import LinearSVC
    few = [0.1, 1, 10, 100]
    if found.kind == "numbers":
        return {"Ridge": GridSearchCV(Ridge(solver="sparse_cg"), {"alpha": [0.1, 0.3, 1, 3, 10]}, cv=5, n_jobs=threads)}
    uneven = found.score == "macro_f1"
    scoring = "f1_macro" if uneven else "accuracy"
    all_models = {}
    for weights in (None, "balanced") if uneven else (None,):
        name = ", balanced" if weights else ""
        if found.kind == "labels":
            for kind, make in (("LogisticRegression", LogisticRegression(class_weight=weights, solver="liblinear")),
                               ("LinearSVC", LinearSVC(class_weight=weights))):
                all_models[kind + name] = GridSearchCV(OneVsRestClassifier(make), {"estimator__C": few}, cv=3,
                                                       scoring="f1_macro", n_jobs=threads)
            continue
        all_models["LogisticRegressionCV" + name] = LogisticRegressionCV(
            Cs=few, cv=5, class_weight=weights, scoring=scoring if uneven else "neg_log_loss", max_iter=300,
            n_jobs=threads)
        all_models["LinearSVC" + name] = GridSearchCV(LinearSVC(class_weight=weights),
                                                      {"C": [0.01, 0.03, 0.1, 0.3, 1, 3]}, cv=5, scoring=scoring,
                                                      n_jobs=threads)
    return all_models


def score_of(found, truth, predicted):
    from sklearn import metrics
    if found.score == "mse":
        return metrics.mean_squared_error(truth, predicted)
    if found.score == "macro_f1":
        return metrics.f1_score(truth, predicted, average="macro", zero_division=0)
    return metrics.accuracy_score(truth, predicted)


def run_peers(options, found):
    """(name, score, seconds) of each."""
    from sklearn.preprocessing import MultiLabelBinarizer
    texts, labels = [text for _, text in found.train], [label for label, _ in found.train]
    truth = [label for label, _ in found.test]
    if found.kind == "labels":
        binary = MultiLabelBinarizer().fit(labels)
        labels, truth = binary.transform(labels), binary.transform(truth)
    for features, make in feature_sets().items():
        if features not in options.features:
            continue
        for name, model in models(found, options.threads).items():
            began = time.monotonic()
            vectorizer = make()
            model.fit(vectorizer.fit_transform(texts), labels)
            seconds = time.monotonic() - began
            predicted = model.predict(vectorizer.transform([text for _, text in found.test]))
            yield f"{name}, {features}", score_of(found, truth, predicted), seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--only", nargs="+", metavar="SET", help="the sets to run")
    parser.add_argument("--features", nargs="+", default=["words", "characters", "both"], help="of the peers")
    parser.add_argument("--manuals", type=pathlib.Path, default=MANUALS, metavar="DIR", help="folders of manual pages, one a language")
    parser.add_argument("--flags", default="", help="further options of fovea train classify")
    parser.add_argument("--draw", type=int, default=0, help="which reviews the sets of IMDB have: the N-th so many, from 0")
    parser.add_argument("--no-peers", action="store_true", help="fovea alone")
    parser.add_argument("--output", help="a file to which a line of JSON is added for each result")
    common.add_common_options(parser, rounds=None)
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    sets = sets_of(Data(options.data, options.draw), options.manuals)
    for name in options.only or sets:
        if name not in sets:
            sys.exit(f"{name}: no such set; there are {', '.join(sets)}")
        try:
            found = sets[name]()
        except (FileNotFoundError, subprocess.CalledProcessError) as error:
            print(f"{name}: left out ({error})")
            continue
        print(f"{name}: {len(found.train)} texts, {len(found.test)} to test; {found.score}", flush=True)
        score, seconds, told = run_fovea(options, found)
        results = [("fovea", score, seconds)]
        print(f"  {score:.4f} {seconds:7.1f} s  fovea ({', '.join(f'{k} {v:.4f}' for k, v in told.items() if v)})",
              flush=True)
        for result in () if options.no_peers else run_peers(options, found):
            results.append(result)
            print(f"  {result[1]:.4f} {result[2]:7.1f} s  {result[0]}", flush=True)
        if options.output:
            with open(options.output, "a", encoding="utf-8") as out:
                for peer, value, took in results:
                    out.write(json.dumps({"set": name, "model": peer, found.score: value, "seconds": took}) + "\n")


if __name__ == "__main__":
    main()

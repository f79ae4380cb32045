# SPDX-License-Identifier: Apache-2.0
"""Small tagged files with something to learn, and models of them."""

import random

from support import CommandTest

NAMES = {"person": ["Ada", "Bob Stone", "Eve van Dyke"], "place": ["Rome", "New York", "Old Oak Town"]}
SMALL = ("--word-width", "16", "--character-features", "8", "--character-width", "8", "--width", "16", "--encoder",
         "bilstm:8", "--stop-after", "120u", "--eval-every", "40u", "--save-every", "40u", "--progress", "none",
         "--lr", "1e-2")
SEGMENT = ("--task", "segment", "--word-width", "8", "--width", "16", "--encoder", "bilstm:8", "--ngram-width", "8",
           "--buckets", "500", "--stop-after", "120u", "--eval-every", "40u", "--save-every", "40u", "--progress",
           "none", "--lr", "1e-2")


def tagged(seed=1, count=120):
    """Sentences of (word, tag) pairs."""
    rng = random.Random(seed)
    sentences = []
    for _ in range(count):
        sentence = []
        for kind, verb in (("person", "saw"), ("place", "there")):
            name = rng.choice(NAMES[kind]).split()
            sentence += [(w, ("B-" if i == 0 else "I-") + kind) for i, w in enumerate(name)]
            sentence.append((verb, "O"))
        sentences.append(sentence + [(".", "O")])
    return sentences


def conll(sentences, between="\t"):
    return "".join("".join(f"{w}{between}{t}\n" for w, t in s) + "\n" for s in sentences)


def conllu(sentences):
    """The same as CoNLL-U, with comments, a word of two, and an empty node."""
    text = ""
    for n, sentence in enumerate(sentences):
        text += f"# sent_id = {n}\n"
        for i, (word, tag) in enumerate(sentence, 1):
            if i == 1:
                text += f"1-2\t{word}{sentence[1][0]}\t" + "\t".join("_" * 8) + "\n"
            text += f"{i}\t{word}\t{word.lower()}\t{tag}\tX{tag}\t_\t0\troot\t_\t_\n"
            if i == 2:
                text += "2.1\tgone\t" + "\t".join("_" * 8) + "\n"
        text += "\n"
    return text


def part_of_speech(word):
    return {"saw": "VERB", "there": "ADV", ".": "PUNCT"}.get(word, "PROPN")


def columns(sentences, between="\t"):
    """Three columns: the word, its part of speech, its tag."""
    return "".join("".join(between.join((w, part_of_speech(w), t)) + "\n" for w, t in s) + "\n" for s in sentences)


def segmented(seed=1, count=120):
    rng = random.Random(seed)
    words = ["我们", "在", "北京", "学习", "机器", "学习机", "。", "他", "不", "喜欢"]
    return "".join(" ".join(rng.choice(words) for _ in range(rng.randint(3, 9))) + "\n" for _ in range(count))


class TagTest(CommandTest):
    def write(self, name, text):
        path = self.folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def fit(self, file, *args, output="model", small=SMALL):
        return self.succeed("train", "tag", "--train", file, "-o", self.folder / output, *small, *args)

    def fails(self, status, needle, *args, stdin=b""):
        done = self.run_fovea(*args, stdin=stdin)
        self.assert_error(done, status, needle)
        return done

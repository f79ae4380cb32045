#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The yardstick beside a character model: an n-gram model, and checks of what a model wrote.

  ngram.py score TEXT             nats per character of a Kneser-Ney 5-gram on the last tenth of TEXT
  ngram.py check TRAIN GENERATED  longest run copied from TRAIN, and the length of verse lines

The split and the vocabulary are those of `fovea train lm --tokenizer char`: the last characters of
the text validate (with `--split line`, as for `--data lines`, from the next start of a line on; the
newline is then the model's end of a line); the vocabulary is special tokens, 256 bytes and the characters of the training
part; a validation character that training never showed is spelled as its UTF-8 bytes.
"""
import argparse
import collections
import json
import math
import pathlib
import re
import sys

BYTE = 0xDC00  # a byte token is this lone surrogate + its value: no valid text contains one
SPECIALS = 3  # pad, begin, end


def split(text, fraction, at="character"):
    """The training part and the validation part: the last `fraction` of the characters."""
    cut = int(len(text) * (1 - fraction + sys.float_info.epsilon))  # 1 - 0.9 is less than 0.1
    if at == "line" and cut > 0:
        cut = text.find("\n", cut - 1) + 1 or len(text)
    return text[:cut], text[cut:]


def spell(text, known):
    """One code point per token: characters outside `known` become their UTF-8 bytes."""
    unseen = set(text) - known
    table = {ord(c): "".join(chr(BYTE + b) for b in c.encode()) for c in unseen}
    return text.translate(table)


def discounts(counts):
    """Chen and Goodman's three discounts (1999, eq. 26); fixed ones where n1..n4 are degenerate."""
    seen = collections.Counter(counts)
    n1, n2, n3, n4 = (seen[k] for k in (1, 2, 3, 4))
    if min(n1, n2, n3) == 0:
        return 0.0, 0.5, 1.0, 1.5
    y = n1 / (n1 + 2 * n2)
    found = 1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3
    if any(not 0 < d < k for k, d in enumerate(found, 1)):
        return 0.0, 0.5, 1.0, 1.5
    return (0.0, *found)


class KneserNey:
    """Interpolated modified Kneser-Ney: raw counts on top, continuation counts below, 1/V at the end."""

    def __init__(self, tokens, order, vocabulary_size):
        self.order = order
        self.uniform = 1.0 / vocabulary_size
        self.grams = [None] * (order + 1)
        self.grams[order] = collections.Counter(
            map("".join, zip(*(tokens[k:] for k in range(order)))))
        for n in range(order - 1, 0, -1):
            self.grams[n] = collections.Counter(g[1:] for g in self.grams[n + 1])
        self.discounts = [discounts(g.values()) if g else None for g in self.grams]
        self.contexts = [self._contexts(n) if n else None for n in range(order + 1)]

    def _contexts(self, n):
        """context -> (total count, mass that the discounts leave to the shorter context)."""
        totals = collections.defaultdict(lambda: [0, 0.0])
        cut = self.discounts[n]
        for gram, count in self.grams[n].items():
            entry = totals[gram[:-1]]
            entry[0] += count
            entry[1] += cut[min(count, 3)]
        return totals

    def probability(self, gram):
        """P(last token | those before it); `gram` has at most `order` tokens."""
        if not gram:
            return self.uniform
        n = len(gram)
        shorter = self.probability(gram[1:])
        context = self.contexts[n].get(gram[:-1])
        if context is None:
            return shorter
        total, left = context
        count = self.grams[n].get(gram, 0)
        return (count - self.discounts[n][min(count, 3)] + left * shorter) / total

    def nats(self, tokens):
        """-ln P of the whole sequence, which starts without context."""
        n = self.order
        head = [tokens[:i + 1] for i in range(min(n - 1, len(tokens)))]
        full = map("".join, zip(*(tokens[k:] for k in range(n))))
        counted = collections.Counter(head) + collections.Counter(full)
        return -sum(c * math.log(self.probability(g)) for g, c in counted.items())


def score(text, fraction=0.1, order=5, at="character"):
    """The figures of one text, as a dict."""
    train, valid = split(text, fraction, at)
    known = set(train)
    tokens = spell(valid, known)
    vocabulary = SPECIALS + 256 + len(known)
    nats = KneserNey(train, order, vocabulary).nats(tokens)
    return {
        "order": order,
        "vocabulary": vocabulary,
        "train_characters": len(train),
        "valid_characters": len(valid),
        "valid_tokens": len(tokens),
        "unseen_characters": sum(c not in known for c in valid),
        "nats_per_character": nats / len(valid),
        "nats_per_token": nats / len(tokens),
    }


def longest_copy(source, written):
    """The longest run of `written` that also stands in `source`."""
    best, start = "", 0
    while start + len(best) < len(written):
        longer = written[start:start + len(best) + 1]
        if longer in source:
            best = longer
        else:
            start += 1
    return best


def verse_shape(written, lengths=(5, 7)):
    """(verse lines of the given numbers of characters, all verse lines); punctuation ends a line."""
    lines = [re.sub(r"\W", "", part) for part in re.split(r"[\n，。？！；：、]", written)]
    lines = [line for line in lines if line]
    return sum(len(line) in lengths for line in lines), len(lines)


def main_score(arguments):
    text = pathlib.Path(arguments.text).read_text(encoding="utf-8")
    found = score(text, arguments.valid_fraction, arguments.order, arguments.split)
    if arguments.json:
        print(json.dumps(found))
        return 0
    print(f"Kneser-Ney {found['order']}-gram: {found['nats_per_character']:.4f} nats per character"
          f" ({found['valid_characters']} validate, {found['unseen_characters']} of them unseen and"
          f" spelled in bytes; vocabulary {found['vocabulary']})")
    if arguments.model_loss is not None:
        model = arguments.model_loss * found["valid_tokens"] / found["valid_characters"]
        ratio = model / found["nats_per_character"]
        print(f"the model: {model:.4f} nats per character, {ratio:.3f} of the {found['order']}-gram")
    return 0


def main_check(arguments):
    source = pathlib.Path(arguments.train).read_text(encoding="utf-8")
    source = split(source, arguments.valid_fraction, arguments.split)[0]
    written = pathlib.Path(arguments.generated).read_text(encoding="utf-8")
    run = longest_copy(source, written)
    good = arguments.max_run is None or len(run) <= arguments.max_run
    limit = "" if arguments.max_run is None else f" (at most {arguments.max_run})"
    print(f"written: {len(written)} characters; longest run of them that stands in the training text:"
          f" {len(run)}{limit}: {run!r}")
    if arguments.verse:
        right, lines = verse_shape(written)
        print(f"lines of five or seven characters: {right} of {lines}"
              + (f" ({right / lines:.0%})" if lines else ""))
        good = good and lines > 0 and right >= arguments.min_share * lines
    return 0 if good else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True, metavar="score|check")
    one = commands.add_parser("score", help="the n-gram's nats per character")
    one.add_argument("text")
    one.add_argument("--order", type=int, default=5)
    one.add_argument("--model-loss", type=float, help="a model's valid_loss (nats per token), to compare")
    one.add_argument("--json", action="store_true")
    one.set_defaults(run=main_score)
    two = commands.add_parser("check", help="copied runs and verse lines of generated text")
    two.add_argument("train", help="the text that the model was trained on")
    two.add_argument("generated")
    two.add_argument("--max-run", type=int, help="exit 1 if a longer run is copied")
    two.add_argument("--verse", action="store_true", help="count lines of five or seven characters")
    two.add_argument("--min-share", type=float, default=0.0, help="exit 1 if fewer lines have them")
    two.set_defaults(run=main_check)
    for command in one, two:
        command.add_argument("--valid-fraction", type=float, default=0.1,
                             help="the part that is never trained on")
        command.add_argument("--split", choices=["character", "line"], default="character",
                             help="where the text may be cut in two")
    arguments = parser.parse_args()
    return arguments.run(arguments)


if __name__ == "__main__":
    sys.exit(main())

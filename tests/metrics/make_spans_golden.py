#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes spans_golden.h: what conlleval and seqeval count in files that tests/metrics/spans_test.cc makes again from the
same integers. Most of their tags break their scheme.

Needs seqeval; run it again only if a definition changes:

    python3 tests/metrics/make_spans_golden.py > tests/metrics/spans_golden.h

conlleval is a Perl script: its rules are written here once more, and must agree with seqeval's default mode.
"""

import pathlib
import sys
import textwrap
import warnings

from seqeval import metrics, scheme
from seqeval.metrics import sequence_labeling

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from draws import MASK, Draws  # noqa: E402

warnings.filterwarnings("ignore")
FILES, GROUP = 1000, 100
TYPES = ("x", "y", "z")
# The name of a kind, its letters, and seqeval's scheme in mode strict.
KINDS = (("lenient bio", "OBI", None), ("lenient bioes", "OBIES", None), ("strict iob1", "OBI", scheme.IOB1),
         ("strict bio", "OBI", scheme.IOB2), ("strict bioes", "OBIES", scheme.IOBES))


def file_of(seed, letters):
    """Sentences of (true tag, predicted tag)."""
    draws = Draws(seed)

    def tag():
        letter = letters[draws.below(len(letters))]
        kind = TYPES[draws.below(len(TYPES))]
        return letter if letter == "O" else f"{letter}-{kind}"

    agreement = draws.below(100)
    sentences = []
    for _ in range(1 + draws.below(6)):
        sentence = []
        for _ in range(1 + draws.below(12)):
            truth = tag()
            agrees = draws.below(100) < agreement
            predicted = tag()
            sentence.append((truth, truth if agrees else predicted))
        sentences.append(sentence)
    return sentences


def conlleval_chunks(tags):
    """The chunks of one sentence, by the rules of startOfChunk and endOfChunk."""
    chunks, begin, before = [], 0, ("O", "")
    for at, tag in enumerate([*tags, "O"]):
        letter, _, kind = tag.partition("-")
        pair = before[0] + letter
        other_type = before[1] != kind
        ends = pair in ("BB", "BO", "BS", "IB", "IO", "IS") or before[0] in "ES"
        ends = ends or (before[0] != "O" and other_type)
        starts = letter in "BS" or pair in ("EE", "EI", "SE", "SI", "OE", "OI")
        starts = starts or (letter != "O" and other_type)
        if ends:
            chunks.append((begin, at, before[1]))
        if starts:
            begin = at
        before = (letter, kind)
    return chunks


def conlleval_counts(sentences):
    """Of each type: chunks of the truth, predicted ones, and those in both."""
    counts = {kind: [0, 0, 0] for kind in TYPES}
    for sentence in sentences:
        truth = conlleval_chunks([t for t, _ in sentence])
        predicted = conlleval_chunks([p for _, p in sentence])
        for chunk in truth:
            counts[chunk[2]][0] += 1
        for chunk in predicted:
            counts[chunk[2]][1] += 1
            counts[chunk[2]][2] += chunk in truth
    return [counts[kind] for kind in TYPES]


def seqeval_entities(tags, strict):
    """(type, first, last) of one sentence."""
    if strict is None:
        return [tuple(e) for e in sequence_labeling.get_entities(tags)]
    return [e.to_tuple()[1:] for s in scheme.Entities([tags], strict, False).entities for e in s]


def seqeval_counts(sentences, strict):
    counts = {kind: [0, 0, 0] for kind in TYPES}
    for sentence in sentences:
        truth, predicted = (set(seqeval_entities([pair[i] for pair in sentence], strict)) for i in (0, 1))
        for at, entities in enumerate((truth, predicted, truth & predicted)):
            for entity in entities:
                counts[entity[0]][at] += 1
    return [counts[kind] for kind in TYPES]


def scores(sentences, strict):
    truth, predicted = ([[pair[i] for pair in s] for s in sentences] for i in (0, 1))
    options = {} if strict is None else {"mode": "strict", "scheme": strict}
    numbers = [sum(t == p for s in sentences for t, p in s) / sum(len(s) for s in sentences)]
    for average in ("micro", "macro", "weighted"):
        for score in (metrics.precision_score, metrics.recall_score, metrics.f1_score):
            numbers.append(float(score(truth, predicted, average=average, zero_division=0, **options)))
    return numbers


def mix(state, number):
    """FNV-1a of a whole number."""
    return ((state ^ number) * 0x100000001B3) & MASK


def main():
    print("// SPDX-License-Identifier: Apache-2.0")
    print("// Made by tests/metrics/make_spans_golden.py: see there.")
    print("#pragma once\n\n#include <cstdint>\n#include <vector>\n\nnamespace fovea::golden {\n")
    print("// clang-format off\n")
    print(f"inline constexpr int kSpanFiles = {FILES}, kFilesOfAHash = {GROUP};\n")
    print("/// FNV-1a of what is counted in the files of a group, for each kind.")
    print(f"inline constexpr std::uint64_t kSpanHashes[{len(KINDS)}][{FILES // GROUP}] = {{")
    for name, letters, strict in KINDS:
        hashes = []
        for first in range(0, FILES, GROUP):
            state = 0xCBF29CE484222325
            for seed in range(first, first + GROUP):
                sentences = file_of(seed, letters)
                counts = seqeval_counts(sentences, strict)
                if strict is None:
                    assert counts == conlleval_counts(sentences), (seed, name)
                for number in sum(counts, []):
                    state = mix(state, number)
            hashes.append(f"0x{state:016X}u")
        print(f"    // {name}")
        print(textwrap.fill("{" + ", ".join(hashes) + "},", 100, initial_indent="    ", subsequent_indent="     "))
    print("};\n")
    print("/// accuracy, then precision, recall and F1: micro, macro, weighted.")
    print("struct SpanCase {\n  int kind, seed;\n  std::vector<double> numbers;\n};")
    print("inline const std::vector<SpanCase> kSpanCases = {")
    for kind, (_, letters, strict) in enumerate(KINDS):
        for seed in (3, 14, 159, 265):
            numbers = ", ".join(repr(x) for x in scores(file_of(seed, letters), strict))
            print(textwrap.fill(f"{{{kind}, {seed}, {{{numbers}}}}},", 100, initial_indent="    ",
                                subsequent_indent="     "))
    print("};\n\n// clang-format on\n\n}  // namespace fovea::golden")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes translation_golden.h: the scores of sacreBLEU for sentences that tests/metrics/translation_test.cc
makes again from the same integers and the words below.

Needs sacrebleu 2.6.0; run it again only if a definition changes:

    python3 tests/metrics/make_translation_golden.py > tests/metrics/translation_golden.h
"""

import pathlib
import sys

import numpy as np
import sacrebleu
from sacrebleu.metrics import BLEU, CHRF, TER

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from draws import Draws  # noqa: E402

# The text of the examples: words, their neighbours in other scripts, and what tokenizers treat specially.
WORDS = ("the", "The", "cat", "cats", "sat", "on", "a", "mat", "house", "of", "river", "and", "moon", "old",
         "Katze", "Fluß", "schön", "ΟΔΟΣ", "ΣΟΦΟΣ.", "İstanbul", "don't", "well-known", "e.g.", "1,000.50", "3-4",
         "x=1", "(yes)", "\"no\"", "&quot;", "&amp;lt;", "<skipped>", "50%", "end.", "end,", ",", ".", "...", "…",
         "“so”", "月亮", "我们在家", "今天，很好。", "東京2020", "カタカナ", "ｆｕｌｌ", "한국어", "🙂", "e\u0301", "a\u00a0b",
         "a\x1cb", "\u3000", "-", "--", "/", "@user", "#tag", "http://a.b/c?d=1")
METRICS = ("bleu-13a", "bleu-zh", "bleu-char", "bleu-none", "chrf", "chrf++", "ter")


def changed(draws, words):
    """A translation that is wrong in places: words left out, replaced, put in, and a run of words moved."""
    out = []
    for word in words:
        what = draws.below(10)
        if what == 0:
            continue
        out.append(WORDS[draws.below(len(WORDS))] if what == 1 else word)
        if what == 2:
            out.append(WORDS[draws.below(len(WORDS))])
    if len(out) > 3 and draws.below(2) == 0:
        begin = draws.below(len(out))
        length = 1 + draws.below(4)
        run = out[begin:begin + length]
        del out[begin:begin + length]
        at = draws.below(len(out) + 1)
        out[at:at] = run
    return out


def corpus(seed, sentences, longest, systems):
    """Lists of sentences: each is one text, as the first list has it, changed. [systems][sentences]"""
    draws = Draws(seed)
    lists = [[] for _ in range(systems)]
    for _ in range(sentences):
        words = [WORDS[draws.below(len(WORDS))] for _ in range(draws.below(longest + 1))]
        lists[0].append(" ".join(words))
        for other in lists[1:]:
            other.append(" ".join(changed(draws, words)))
    return lists


def metric(name, sentence=False):
    if name.startswith("bleu-"):
        return BLEU(tokenize=name[5:], force=True, effective_order=sentence)
    return {"chrf": CHRF(), "chrf++": CHRF(word_order=2), "ter": TER()}[name]


# seed, sentences, longest, references
CASES = ((1, 1, 8, 1), (2, 3, 2, 1), (3, 20, 12, 1), (4, 60, 30, 1), (5, 25, 20, 2), (6, 10, 15, 3), (7, 4, 120, 1),
         (8, 12, 3, 1), (9, 2, 0, 1))


def quoted(text):
    return '"' + "".join(chr(b) if 0x20 <= b < 0x7F and chr(b) not in '"\\?' else f"\\{b:03o}"
                         for b in text.encode()) + '"'


def paired(name, hypotheses, baseline, reference):
    """Scores, means, half widths and the p-value, with so many resamples that other draws hardly differ."""
    from sacrebleu.significance import PairedTest
    signatures, scores = PairedTest([("b", baseline), ("s", hypotheses)], {name: metric(name)}, [reference],
                                    test_type="bs", n_samples=20000)()
    first, second = next(v for k, v in scores.items() if k != "System")
    return [first.score, first.mean, first.ci, second.score, second.mean, second.ci, second.p_value]


def main():
    assert sacrebleu.__version__ == "2.6.0", sacrebleu.__version__
    print("// SPDX-License-Identifier: Apache-2.0\n"
          "// Scores of sacreBLEU 2.6.0: made by make_translation_golden.py.\n"
          "#pragma once\n\n#include <string_view>\n#include <vector>\n\nnamespace fovea::golden {\n\n"
          "// clang-format off\n\n"
          "inline constexpr std::string_view kWords[] = {")
    for word in WORDS:
        print(f"    {quoted(word)},")
    print("};\n\nstruct TranslationCase {\n  int seed, sentences, longest, references;\n  const char* metric;\n"
          "  const char* signature;\n  double score;\n  std::vector<double> sentence_scores;  // of the first 3\n};\n\n"
          "inline const std::vector<TranslationCase> kTranslationCases = {")
    for seed, sentences, longest, references in CASES:
        lists = corpus(seed, sentences, longest, 1 + references)
        hypotheses, refs = lists[-1], lists[:-1]
        for name in METRICS:
            of = metric(name)
            score = of.corpus_score(hypotheses, refs).score
            each = [metric(name, True).sentence_score(h, [r[i] for r in refs]).score
                    for i, h in enumerate(hypotheses[:3])]
            print(f'    {{{seed}, {sentences}, {longest}, {references}, "{name}", "{of.get_signature()}",\n'
                  f"     {score!r}, {{{', '.join(map(repr, each))}}}}},")
    print("};\n\n/// Score, mean and half width of the baseline and of the system, and the p-value; 20,000 resamples of the "
          "corpus\n/// of seed 11: 50 sentences of up to 20 words, the reference, the baseline, the system.\n"
          "struct PairedCase {\n  const char* metric;\n  double numbers[7];\n};\n\n"
          "inline constexpr PairedCase kPairedCases[] = {")
    reference, baseline, system = corpus(11, 50, 20, 3)
    system = [r if i % 7 == 0 else s for i, (r, s) in enumerate(zip(reference, system))]
    for name in ("bleu-13a", "chrf", "ter"):
        numbers = [float(x) for x in paired(name, system, baseline, reference)]
        print(f'    {{"{name}", {{{", ".join(map(repr, numbers))}}}}},')
    print("};\n\n// clang-format on\n\n}  // namespace fovea::golden")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Writes unigram_pieces_golden.h: the unigram model of T5 in GGUF files, and the ids that llama.cpp gives.

    python3 tests/pretrained/make_unigram_pieces_golden.py > tests/pretrained/unigram_pieces_golden.h
    (gguf, sentencepiece, protobuf, xllamacpp)
"""

import contextlib
import os
import pathlib
import tempfile

import sentencepiece
from make_scored_pieces_golden import CONTROL, NORMAL, UNKNOWN, USER, ids_of, quoted, write
from sentencepiece import sentencepiece_model_pb2

UNUSED = 5
PIECES = {"\u2581": -3, "a": -4, "b": -5, "c": -6, "t": -4.5, "h": -5.5, "e": -3.5, "\u2581t": -4, "th": -6, "he": -4.25, "\u2581the": -5,
          "ab": -5.75, "\u2581ab": -6.5, "abc": -9, "\u2581\u2581": -8, "\u4e2d": -7, "fi": -7.25, "\u2581a": -4.75, "bc": -9.5}
TOKENS = ([("<pad>", 0.0, CONTROL), ("</s>", 0.0, CONTROL), ("<unk>", 0.0, UNKNOWN)]
          + [(name, float(score), NORMAL) for name, score in PIECES.items()]
          + [("<extra_id_1>", 0.0, USER), ("<extra_id_0>", 0.0, USER), ("[PAD24]", -10000.0, UNUSED), ("[PAD25]", -10000.0, UNUSED)])
# What a text becomes before it is cut: characters of two widths, a ligature, blanks, nothing.
RULES = {"\uff41": "a", "\uff42": "b", "\ufb01": "fi", "\u00a0": " ", "\u3000": " ", "\u200b": "", "e\u0301": "e", "\u2026": "..."}
TEXTS = ["", " ", "the abc", "  the   cab ", "<pad>the</s>a", "\u4e2d z \u4e2d\u4e2dzz", "ababab", "a<extra_id_0> b<extra_id_1>", "thethe",
         "\uff41\uff42c \ufb01 \ufb01\u200bab", "the\u3000\u00a0ab", "e\u0301h\u2026", "\u2581the", "<extra_id_0>", "h[PAD24]", "tt hh ee"]


def rules_of(folder):
    """The bytes of these rules, as SentencePiece compiles them."""
    table = folder / "rules.tsv"
    table.write_text("".join(f"{' '.join(f'{ord(c):X}' for c in text)}\t{' '.join(f'{ord(c):X}' for c in to)}\n"
                             for text, to in RULES.items()))
    text = folder / "text.txt"
    text.write_text("the abc cab\n" * 20)
    sentencepiece.SentencePieceTrainer.train(
        input=str(text), model_prefix=str(folder / "rules"), vocab_size=12, hard_vocab_limit=False, minloglevel=2,
        normalization_rule_tsv=str(table))
    model = sentencepiece_model_pb2.ModelProto()
    model.ParseFromString((folder / "rules.model").read_bytes())
    return model.normalizer_spec.precompiled_charsmap


def of_t5(rules, merges):
    def add(file):
        file.add_tokenizer_model("t5")
        file.add_add_space_prefix(True)
        file.add_remove_extra_whitespaces(merges)
        file.add_precompiled_charsmap(rules)
        file.add_eos_token_id(1)
        file.add_unk_token_id(2)
        file.add_pad_token_id(0)
    return add


def main():
    with tempfile.TemporaryDirectory() as name, open(os.devnull, "w", encoding="utf-8") as quiet:
        folder = pathlib.Path(name)
        with contextlib.redirect_stdout(quiet):
            rules = rules_of(folder)
            found = []
            for merges in (True, False):
                path = str(folder / f"{merges}.gguf")
                write(path, TOKENS, of_t5(rules, merges))
                # Without merged blanks, llama.cpp puts none before what has no other character.
                found.append(list(ids_of(path, [text for text in TEXTS if merges or text.strip(" ")])))
    print("""// SPDX-License-Identifier: Apache-2.0
// Made by make_unigram_pieces_golden.py.
// clang-format off
#pragma once

#include "tests/pretrained/scored_pieces_golden.h"

namespace fovea {

inline const std::vector<GoldenScoredToken> kGoldenUnigramTokens = {""")
    for name, score, kind in TOKENS:
        print(f"    {{{quoted(name)}, {score:g}, {kind}}},")
    print("};\n\ninline const std::vector<std::int32_t> kGoldenCharsmap = {")
    for begin in range(0, len(rules), 32):
        print("    " + " ".join(f"{byte}," for byte in rules[begin:begin + 32]))
    for merges, texts in zip(("Merged", "Kept"), found):
        print(f"}};\n\n// Where blanks are {merges.lower()}.\ninline const std::vector<GoldenScoredText> kGoldenUnigram{merges} = {{")
        for text, ids in texts:
            print(f"    {{{quoted(text)}, {{{', '.join(map(str, ids))}}}}},")
    print("};\n\n}  // namespace fovea")


if __name__ == "__main__":
    main()

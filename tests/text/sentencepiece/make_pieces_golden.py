#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes pieces_golden.h: small models that SentencePiece has learned, and what it makes of lines that
tests/text/sentencepiece/sentencepiece_test.cc makes again from the same integers.

Needs sentencepiece 0.2; run it again only if a definition changes:

    python3 tests/text/sentencepiece/make_pieces_golden.py > tests/text/sentencepiece/pieces_golden.h
"""

import io
import pathlib
import sys
import tempfile

import sentencepiece

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
from draws import MASK, Draws  # noqa: E402

LINES, GROUP = 1000, 100
# What lines are made of; a fifth of the words is glued to the next one.
WORDS = ("the", "cat", "cats", "sat", "on", "mat", "house", "houses", "housing", "river", "aaaa", "aa", "abab", "Katze",
         "Fluß", "schön", "ﬁnally", "①②", "ＡＢ", "e\u0301t\u00e9", "月亮", "我们在家", "今天很好。", "カタカナ", "🙂", "<s>",
         "<mask>", "<unk>", "<0x41>", "<tag>", "<tag>x", "tag", "▁", "▁▁a", "", " ", "\u3000", "\u00a0", "\t", "2020",
         "12", ",", ".", "...", "-", "ü", "ẞ", "\u2047", "\ufffd", "é")
RULES = "FB01\t66 69\n2460\t31\n2461\t32\nFF21\t41\nFF22\t42\n65 301\tE9\n3000\t20\nA0\t20\n9\t20\n2047\t\n"

# name: what is not the trainer's default.
MODELS = {
    "unigram": {"model_type": "unigram", "vocab_size": 110, "user_defined_symbols": ["<tag>", "aab", "ＡＢ"],
                "control_symbols": ["<mask>"], "character_coverage": 0.985},
    "bpe with bytes": {"model_type": "bpe", "vocab_size": 380, "byte_fallback": True, "character_coverage": 0.985,
                       "user_defined_symbols": ["<tag>", "aab"], "split_digits": True},
    "unigram, spaces as they are": {"model_type": "unigram", "vocab_size": 100, "remove_extra_whitespaces": False,
                                    "treat_whitespace_as_suffix": True, "character_coverage": 0.985},
    "bpe without a dummy space": {"model_type": "bpe", "vocab_size": 120, "add_dummy_prefix": False,
                                  "remove_extra_whitespaces": False, "character_coverage": 0.985},
}


def line_of(seed):
    draws = Draws(seed)
    line = ""
    for _ in range(draws.below(13)):
        line += WORDS[draws.below(len(WORDS))]
        line += "" if draws.below(5) == 0 else " "
    return line


def mixed(value, data):
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) & MASK
    return value


def learned(settings):
    model = io.BytesIO()
    with tempfile.NamedTemporaryFile("w", suffix=".tsv", encoding="utf-8") as rules:
        rules.write(RULES)
        rules.flush()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter([line_of(10000 + n) for n in range(2000)]), model_writer=model, minloglevel=2,
            normalization_rule_tsv=rules.name, hard_vocab_limit=False, num_threads=1, **settings)
    return model.getvalue().replace(rules.name.encode(), b"/" * len(rules.name))


def hash_of(model, line):
    """FNV-1a of the ids, the pieces, and what they are decoded to."""
    value = 0xCBF29CE484222325
    pieces, ids = model.encode(line, out_type=str), model.encode(line)
    for piece, number in zip(pieces, ids, strict=True):
        value = mixed(mixed(value, str(number).encode() + b" "), piece.encode() + b" ")
    value = mixed(value, model.decode(ids).encode() + b"|")
    return mixed(value, model.decode_pieces(pieces).encode() + b"|")


def quoted(data):
    return "".join(chr(b) if 0x20 <= b < 0x7F and chr(b) not in '"\\?' else f"\\{b:03o}" for b in data)


def main():
    print("// SPDX-License-Identifier: Apache-2.0\n"
          f"// Models and pieces of SentencePiece {sentencepiece.__version__}: made by make_pieces_golden.py.\n"
          "#pragma once\n\n#include <cstdint>\n#include <string_view>\n\nnamespace fovea::golden {\n\n"
          "// clang-format off\n\n// NOLINTBEGIN\ninline constexpr std::string_view kPieceWords[] = {")
    for word in WORDS:
        print(f'    "{quoted(word.encode())}",')
    print("};\n\ninline constexpr int kPieceLines = %d, kLinesOfAHash = %d;\n" % (LINES, GROUP))
    print("struct PieceCase {\n  const char* name;\n  std::string_view model;\n  /// A hash for the lines of each group.\n"
          f"  std::uint64_t hashes[{LINES // GROUP}];\n}};\n\ninline constexpr PieceCase kPieceCases[] = {{")
    for name, settings in MODELS.items():
        data = learned(settings)
        model = sentencepiece.SentencePieceProcessor(model_proto=data)
        print(f'    {{"{name}",\n     {{')
        for begin in range(0, len(data), 72):
            print(f'      "{quoted(data[begin:begin + 72])}"')
        print(f"      , {len(data)}}},\n     {{")
        for first in range(0, LINES, GROUP):
            value = 0xCBF29CE484222325
            for seed in range(first, first + GROUP):
                value = mixed(value, hash_of(model, line_of(seed)).to_bytes(8, "little"))
            print(f"      0x{value:016X}u,")
        print("     }},")
    print("};\n// NOLINTEND\n\n// clang-format on\n\n}  // namespace fovea::golden")


if __name__ == "__main__":
    main()

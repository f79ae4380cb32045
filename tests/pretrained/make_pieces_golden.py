# SPDX-License-Identifier: Apache-2.0
"""Writes pieces_golden.h: tokenizers of subwords in tokenizer.json, and the ids and text that `tokenizers` gives.

    python3 tests/pretrained/make_pieces_golden.py > tests/pretrained/pieces_golden.h     (tokenizers 0.23)
"""

import json

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

# What SentencePiece makes of these rules: U+FB01 -> fi, e U+0301 -> U+00E9, A -> a, A U+0301 -> U+00E1, U+FF21 -> a,
# U+1F600 -> :), U+2026 -> ..., U+200B and U+00AD -> nothing, U+00A0, U+3000, tab and newline -> a blank.
CHARSMAP = (
    "AAQAAAAgAAAJCQAACgUAAAEAAIAOAACAgQ0AABMAAIDMOAIAgQUAABYAAIADAACAAAAAgIAoAgCLGQAABwAAgIB4AgCgTQAAgEkAAIEFAAAQAA"
    "CAoQUAAA4AAICYPAIAn2QCAKhJAACADQAACwAAgBoAAAAdAAAArVkAAB8AAAAeAAAAprkAAKzIAgAjAAAAIgAAACUAAAAkAAAAJwAAACYAAAAp"
    "AAAAKAAAACsAAAAqAAAALQAAACwAAAAvAAAALgAAADEAAAC8EAIAMwAAADIAAAA1AAAANAAAADcAAAA2AAAAOQAAADgAAAA7AAAAOgAAAD0AAA"
    "A8AAAAPwAAAD4AAABBAAAAQAAAAEMAAABCAAAARQAAAEQAAABHAAAARgAAAEkAAABBNQEASwAAAEoAAABNAAAATAAAAE8AAABOAAAAUQAAAFAA"
    "AABTAAAAUgAAAFUAAABUAAAAVwAAAFYAAABZAAAAWAAAAFsAAABaAAAAXQAAAFwAAABfAAAAXgAAAGEAAABgAAAAYwAAAGIAAABlAAAAZAAAAG"
    "cAAABmAAAAaQAAAGgAAABrAAAAagAAAG0AAABlmAIAbwAAAG4AAABxAAAAcAAAAHMAAAByAAAAdQAAAHQAAAB3AAAAdgAAAHkAAAB4AAAAewAA"
    "AHoAAAB9AAAAfAAAAH8AAAB+AAAAgQAAAIAAAACDAAAAggAAAIUAAACEAAAAhwAAAIYAAACJAAAAiAAAAIsAAACKAAAAjQAAAIwAAACPAAAAjg"
    "AAAJEAAACQAAAAkwAAAJIAAACVAAAAlAAAAJcAAACWAAAAmQAAAJgAAACbAAAAmgAAAJ0AAACcAAAAnwAAAJ4AAAChAAAAoAAAAKMAAACiAAAA"
    "pQAAAKQAAACnAAAApgAAAKkAAACoAAAAqwAAAKoAAACtAAAArAAAAK8AAACuAAAAsQAAALAAAACzAAAAsgAAALUAAAC0AAAAtwAAALYAAAC5AA"
    "AAuAAAALsAAAC6AAAAvQAAALwAAAC/AAAAvgAAAMEAAADAAAAAwwAAAMIAAADFAAAAxAAAAMcAAADGAAAAzDABAMgAAADC6AEAygAAAM0AAADM"
    "AAAAzwAAAM4AAADRAAAA0AAAANMAAADSAAAA1QAAANQAAADXAAAA1gAAANkAAADYAAAA2wAAANoAAADdAAAA3AAAAN8AAADeAAAA4QAAAOAAAA"
    "DjAAAA4gAAAOUAAADkAAAA5wAAAO+oAQDpAAAA6AAAAOKYAQDjkAEA7QAAAOwAAADvAAAA7gAAAPEAAADwAAAA8wAAAPIAAAD1AAAA9AAAAPcA"
    "AAD2AAAA8MABAPgAAAD7AAAA+gAAAP0AAAD8AAAA/wAAAP4AAAAAIAAgzIgALi4uADopAGEAZmkAw6EAw6kA")
PIECES = ["▁", "a", "b", "c", "t", "h", "e", "é", "▁a", "▁t", "th", "he", "▁the", "▁th", "ab", "abc", "at", "▁▁", "中",
          "."]
MERGES = [("▁", "t"), ("t", "h"), ("▁t", "h"), ("h", "e"), ("▁th", "e"), ("a", "b"), ("ab", "c"), ("a", "t"),
          ("▁", "a"), ("▁", "▁")]
TEXTS = ["", " ", "the abc", "  the  cat at ", "thethe", "<s>the</s> ab<unk>", "中 zz é z",
         "e\u0301 \ufb01 A\u0301bc\uff21", "a\tb\nc", "the\u200bb\u00ad", "\U0001f600\u2026", "▁the▁",
         "the <mask>  abc", "user word ab", "<0x41>", "\x00\x7f", " abc", "a\r\nb"]
# Marks since Unicode 10 and 16, and what no mark joins.
MARKED = ["a\u1ac3\u17d2 \u0323\u1dfa", "A\u1ae7bc \u00a0\u0897", "A\U00010d69b", "\u2065\u200bA \u2065A\u0301"]
# Of the bytes those that texts have.
BYTES = [f"<0x{byte:02X}>" for byte in sorted(set("".join(TEXTS + MARKED).encode()) | {0, 1})]
MARKS = ["<unk>", "<s>", "</s>"]
BPE_IDS = {name: n for n, name in enumerate(MARKS + BYTES + PIECES)}
SHORT_IDS = {name: n for n, name in enumerate(MARKS + PIECES)}
# Of "x000" the last bit of a sum decides, and of that the digits of these numbers.
TIES = [(name, 0.0) for name in MARKS] + [("▁x", -9.398437589368445), ("0", -11.335460862310574), ("00", -6.795403182513847)]
SCORES = [(name, 0.0) for name in MARKS] + [(name, -2.0 - 0.37 * n + 0.4 * len(name)) for n, name in enumerate(PIECES)]


def marked(tokenizer, begin="<s>", end=""):
    tokenizer.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in MARKS])
    tokenizer.add_special_tokens([AddedToken("<mask>", special=True, lstrip=True, rstrip=True)])
    tokenizer.add_tokens([AddedToken("user word", normalized=True)])
    single = " ".join(part for part in (begin, "$A", end) if part)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=single, pair=single + " $B", special_tokens=[("<s>", 1), ("</s>", 2)])
    return tokenizer


def spelled(strips):
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    return decoders.Sequence(steps + ([decoders.Strip(" ", 1, 0)] if strips else []))


def bpe(normalizer=None, cuts=None, strips=True, **options):
    tokenizer = Tokenizer(models.BPE(BPE_IDS, MERGES, fuse_unk=True, byte_fallback=True, **options))
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    if cuts is not None:
        tokenizer.pre_tokenizer = cuts
    tokenizer.decoder = spelled(strips)
    return marked(tokenizer)


def unigram(normalizer, cuts, scheme, begin="<s>", end="</s>", scores=SCORES):
    tokenizer = Tokenizer(models.Unigram(scores, unk_id=0))
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = cuts
    tokenizer.decoder = decoders.Metaspace("▁", scheme)
    return marked(tokenizer, begin, end)


def unknown(fuses):
    tokenizer = Tokenizer(models.BPE(SHORT_IDS, MERGES, unk_token="<unk>", fuse_unk=fuses))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace("▁", "always")
    return marked(tokenizer)  # without a decoder


def precompiled():
    import base64
    return normalizers.Precompiled(base64.b64decode(CHARSMAP))


CASES = {
    "llama 2": bpe(
        normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]), unk_token="<unk>"),
    "llama of transformers 5": bpe(cuts=pre_tokenizers.Metaspace("▁", "first", False)),
    "gemma": bpe(normalizers.Replace(" ", "▁"), pre_tokenizers.Split(" ", "merged_with_previous"), strips=False),
    "ignored merges": bpe(cuts=pre_tokenizers.Metaspace("▁", "always", True), ignore_merges=True),
    "composed": bpe(normalizers.Sequence([normalizers.NFC(), normalizers.Replace(" ", "▁")])),
    "xlm-roberta": unigram(precompiled(), pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace("▁", "always")]), "always"),
    "t5": unigram(precompiled(), pre_tokenizers.Metaspace("▁", "always"), "always", begin=""),
    "mbart": unigram(normalizers.Sequence([precompiled(), normalizers.Replace(Regex(" {2,}"), " ")]),
                     pre_tokenizers.Metaspace("▁", "never"), "never"),
    "deberta": unigram(normalizers.Sequence([normalizers.Strip(), precompiled()]),
                       pre_tokenizers.Metaspace("▁", "always"), "always"),
    "lines": unigram(normalizers.Sequence([
        normalizers.Replace("\n", "</s>"), normalizers.Replace(Regex("^ | $"), ""),
        normalizers.Replace(Regex(" ?</s> ?"), "</s>")]),
        pre_tokenizers.Metaspace("▁", "always", False), "always"),
    "ties": unigram(None, pre_tokenizers.Metaspace("▁", "always"), "always", scores=TIES),
    "unknown characters fused": unknown(True),
    "unknown characters one by one": unknown(False),
}


def quoted(text):
    """A literal of C++, in parts that no compiler finds too long."""
    parts, line = [], ""
    for byte in text.encode():
        one = chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}"
        if len(line) + len(one) > 108:
            parts.append(line)
            line = ""
        line += one
    return "\n     ".join(f'"{part}"' for part in parts + [line])


def raw(text):
    """The same of JSON."""
    return "\n     ".join(f'R"x({text[n:n + 108]})x"' for n in range(0, len(text), 108))


def main():
    print("""// SPDX-License-Identifier: Apache-2.0
// Made by make_pieces_golden.py.
// clang-format off
#pragma once

#include <string_view>
#include <vector>

#include "fovea/text/vocabulary.h"

namespace fovea {

struct GoldenText {
  std::string_view text;
  std::vector<token> ids;
  std::string_view decoded;
};
struct GoldenPieces {
  std::string_view name;
  std::string_view file;  // tokenizer.json
  std::vector<token> before, after;
  std::vector<GoldenText> texts;
};

inline const std::vector<GoldenPieces> kGoldenPieces = {""")
    for name, made in CASES.items():
        tokenizer = Tokenizer.from_str(made.to_str())  # with the numbers of the file
        file = json.dumps(json.loads(tokenizer.to_str()), ensure_ascii=False, separators=(",", ":"))
        around = tokenizer.encode("a").ids
        bare = tokenizer.encode("a", add_special_tokens=False).ids
        begin = 1 if around[0] == 1 else 0
        end = around[begin + len(bare):]
        print(f'    {{{quoted(name)},\n     {raw(file)},\n     {{{"1" if begin else ""}}}, '
              f'{{{", ".join(map(str, end))}}},\n     {{')
        more = MARKED if name in ("composed", "t5", "mbart") else []
        for text in ["x000", "0000"] if name == "ties" else TEXTS + more:
            ids = tokenizer.encode(text, add_special_tokens=False).ids
            decoded = tokenizer.decode(ids, skip_special_tokens=False)
            # A literal with NUL needs its length.
            literal = f"std::string_view({quoted(text)}, {len(text.encode())})"
            back = f"std::string_view({quoted(decoded)}, {len(decoded.encode())})"
            line = f"         {{{literal}, {{{', '.join(map(str, ids))}}}, {back}}},"
            if len(line) > 116 and "\n" not in line:
                line = line.replace("}, std::string_view", "},\n          std::string_view")
            print(line)
        print("     }},")
    print("};\n\n}  // namespace fovea")


if __name__ == "__main__":
    main()

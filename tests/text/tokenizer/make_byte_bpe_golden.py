# SPDX-License-Identifier: Apache-2.0
"""Writes byte_bpe_golden.h: a vocabulary, texts, and how the library `tokenizers` cuts them.

    python3 tests/text/tokenizer/make_byte_bpe_golden.py > tests/text/tokenizer/byte_bpe_golden.h  (tokenizers 0.23)
"""

import json

from tokenizers import AddedToken, Regex, Tokenizer, models, pre_tokenizers, trainers

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace("{1,3}", "")
UPPER, LOWER = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
TEKKEN = (UPPER + "*" + LOWER + "+|" + UPPER + "+" + LOWER + r"*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
O200K = TEKKEN.replace(LOWER + "+|", LOWER + "+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|").replace(
    LOWER + "*|", LOWER + "*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|").replace(r"\p{N}|", r"\p{N}{1,3}|")
ByteLevel, Digits, Sequence, Split = (pre_tokenizers.ByteLevel, pre_tokenizers.Digits, pre_tokenizers.Sequence,
                                      pre_tokenizers.Split)
SPLITS = {
    "gpt-2": ByteLevel(add_prefix_space=False),
    "smollm": Sequence([Digits(individual_digits=True), ByteLevel(add_prefix_space=False)]),
    "llama-bpe": Sequence([Split(Regex(LLAMA3), "isolated"), ByteLevel(add_prefix_space=False, use_regex=False)]),
    "qwen2": Sequence([Split(Regex(QWEN2), "isolated"), ByteLevel(add_prefix_space=False, use_regex=False)]),
    "o200k": Sequence([Split(Regex(O200K), "isolated"), ByteLevel(add_prefix_space=False, use_regex=False)]),
    "tekken": Sequence([Split(Regex(TEKKEN), "isolated"), ByteLevel(add_prefix_space=False, use_regex=False)]),
}
TEXTS = [
    "Hello, world!  It's the 1st of 2024; they've said: \"I'LL go\"\n\n  and\tso on... \r\n ",
    "def f(x):\n    return x**2  # 3.14159e-10\n\n\n\nclass A:\n\tpass",
    "'s't're 'vEx 'Ma'd 'll'LL ''s '", " 'tis\u2019s 'ſ 'ſt",
    "  leading", "trailing   ", " \t\n \r\n\r x", "\u00a0nbsp\u3000wide\u2003em\u200bzero\u0085nel\u2028ls",
    "Café naïve Ångström \u0301combining e\u0301", "Привет, мир! Как дела?", "Γειά σου Κόσμε", "你好，世界！我有3个苹果。",
    "こんにちは世界、カタカナ", "안녕하세요 세계", "مرحبا بالعالم ١٢٣", "שלום עולם", "नमस्ते दुनिया १२३४", "สวัสดีชาวโลก",
    "Xin chào thế giới", "გამარჯობა მსოფლიო", "Բարեւ աշխարհ", "வணக்கம் உலகம்", "আমার সোনার বাংলা", "ສະບາຍດີ", "သည်",
    "🙂👩‍👩‍👧‍👦 🇩🇪 ☎️ a🙂b", "½ ² Ⅷ ① x²y 10½", "\x00\x01\x7f\x1b[0m", "a" * 70 + " " * 40 + "1" * 30 + "\n" * 9 + "!?" * 20,
    "", " ", "\n", "x", "𝒜𝓁𝓅𝒽𝒶 𐍈 \U0001f600", "snake_case camelCase kebab-case C++ a/b\\c {[(<>)]}",
]

# Of the cases of letters, which the vocabulary was not trained on.
CASES = [*TEXTS[:12], TEXTS[-1], "HTMLParser aBC ABCdef iPhone'S ABC'll x'D", "ABC中D 中文Ab ÀÉb ǅemo Ǆ ʰaB", "\u0301A \u0301Ab e\u0301E\u0301F A\u0301B\u0301c",
         "a//\n/b !/\r\n/x /", "(Word \tWord \u00a0WORD 1Word", "₁ⅧIX", "\u0301", "A\u0301\u0302", "ﬁX'tſ 'ſT",
         "\U00010d51⭞ן \U00010d70\U00010d51 \u1c89\u1c8a \U00010d42\U00010d43\U00010d44\U00010d45 a\u0897B"]  # of Unicode 16


def raw(text):
    out = "".join(chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}" for byte in text.encode())
    return f'"{out}"'


def listed(items):
    lines, line = [], "   "
    for item in items:
        if len(line) + len(item) > 96:
            lines.append(line)
            line = "   "
        line += f" {item},"
    return "\n".join([*lines, line])


bpe = Tokenizer(models.BPE())
bpe.pre_tokenizer = SPLITS["gpt-2"]
bpe.train_from_iterator(TEXTS * 3, trainers.BpeTrainer(
    vocab_size=420, initial_alphabet=ByteLevel.alphabet(), special_tokens=["<|end|>", "<|im_start|>"], show_progress=False))
bpe.add_tokens([AddedToken("<|im_start|>x", normalized=False)])
vocabulary = sorted(bpe.get_vocab(), key=bpe.get_vocab().get)
state = json.loads(bpe.to_str())["model"]
merges = [" ".join(pair) if isinstance(pair, list) else pair for pair in state["merges"]]

print("""// SPDX-License-Identifier: Apache-2.0
// Made by make_byte_bpe_golden.py.
// clang-format off
#pragma once

#include <string_view>
#include <vector>

namespace fovea {

// The first two are marks, the last one a text of the user.
inline constexpr std::string_view kBpeNames[] = {""")
print(listed(map(raw, vocabulary)))
print("};\ninline constexpr std::string_view kBpeMerges[] = {")
print(listed(map(raw, merges)))
print("""};

struct GoldenCut {
  std::string_view split, text;
  std::vector<int> parts;  // the bytes of each
  std::vector<int> ids;
};

inline const GoldenCut kGoldenCuts[] = {""")
for name, split in SPLITS.items():
    bpe.pre_tokenizer = split
    for text in CASES if name in ("o200k", "tekken") else [*TEXTS, "a<|im_start|>xyz <|end|><|im_start|> <|im_star"]:
        parts = [len(piece) for piece, _ in split.pre_tokenize_str(text)] if "<|im_s" not in text else []
        state = json.loads(bpe.to_str())
        state["model"]["ignore_merges"] = name == "llama-bpe"
        ids = Tokenizer.from_str(json.dumps(state)).encode(text).ids
        print(f'    {{"{name}", {{{raw(text)}, {len(text.encode())}}},\n     {{{", ".join(map(str, parts))}}},\n'
              f'     {{{", ".join(map(str, ids))}}}}},')
print("};\n\n}  // namespace fovea")

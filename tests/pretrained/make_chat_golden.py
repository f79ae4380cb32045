# SPDX-License-Identifier: Apache-2.0
"""Writes chat_golden.h: conversations as transformers writes them by each chat template that fovea knows by its text.

    python3 tests/pretrained/make_chat_golden.py > tests/pretrained/chat_golden.h     (transformers 5, jinja2)
"""

import ast
import pathlib
import re

import tokenizers
import transformers

SOURCE = pathlib.Path(__file__).resolve().parents[2] / "fovea/pretrained/chat.cc"
NAMES = ["Llama2", "Llama3", "Llama3First", "Gemma", "Gemma3", "Mistral", "Zephyr"]
WITHOUT_SYSTEM = ["Gemma", "Mistral"]
QUESTIONS = [("user", "Hello  there\n"), ("assistant", "  Hi. "), ("user", "\tWho are you?")]
CONVERSATIONS = [QUESTIONS[:1], QUESTIONS, [("system", " Be brief.\n"), *QUESTIONS]]


def templates():
    """The texts in the source."""
    found = {}
    literal = r'constexpr std::string_view k(\w+) =\s*(?:R"\((.*?)\)"|((?:"(?:[^"\\]|\\.)*"\s*)+));'
    for name, raw, quoted in re.findall(literal, SOURCE.read_text(encoding="utf-8"), re.DOTALL):
        found[name] = raw or ast.literal_eval(f"({quoted})")
    return found


def literal(text):
    """A literal of C++, a line of the text a line."""
    lines = re.findall(r"[^\n]{0,80}\n?", text)[:-1] or [""]
    escapes = {"\n": "\\n", "\t": "\\t", '"': '\\"', "\\": "\\\\"}
    return "\n         ".join('"' + "".join(escapes.get(c, c) for c in line) + '"' for line in lines)


def main():
    print("""// SPDX-License-Identifier: Apache-2.0
// Made by make_chat_golden.py.
// clang-format off
#pragma once

#include <string_view>
#include <vector>

#include "fovea/pretrained/chat.h"

namespace fovea {

struct GoldenChat {
  std::string_view program;
  std::vector<ChatTurn> turns;
  std::string_view written;
};

inline const std::vector<GoldenChat> kGoldenChats = {""")
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizers.Tokenizer(tokenizers.models.BPE()), bos_token="<s>", eos_token="</s>")
    known = templates()
    for name in NAMES:
        for turns in CONVERSATIONS:
            if turns[0][0] == "system" and name in WITHOUT_SYSTEM:
                continue
            messages = [{"role": role, "content": text} for role, text in turns]
            written = tokenizer.apply_chat_template(
                messages, chat_template=known[name], tokenize=False, add_generation_prompt=True)
            listed = ", ".join(f"{{{literal(role)}, {literal(text)}}}" for role, text in turns)
            print(f"    {{{literal(known[name])},\n     {{{listed}}},\n     {literal(written)}}},")
    print("};\n\n}  // namespace fovea")


if __name__ == "__main__":
    main()

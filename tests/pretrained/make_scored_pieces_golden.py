# SPDX-License-Identifier: Apache-2.0
"""Writes scored_pieces_golden.h: a vocabulary of pieces with scores in a GGUF file, and the ids that llama.cpp gives.

    python3 tests/pretrained/make_scored_pieces_golden.py > tests/pretrained/scored_pieces_golden.h    (gguf, xllamacpp)
"""

import contextlib
import json
import os
import tempfile
import urllib.request

import gguf
import numpy as np
import xllamacpp

UNKNOWN, NORMAL, CONTROL, USER, BYTE = 2, 1, 3, 4, 6
PIECES = ["▁", "a", "b", "c", "t", "h", "e", "▁t", "th", "he", "▁th", "▁the", "ab", "abc", "▁▁", "中", "bc", "▁a"]
TOKENS = ([("<unk>", 0.0, UNKNOWN), ("<s>", 0.0, CONTROL), ("</s>", 0.0, CONTROL)]
          + [(f"<0x{byte:02X}>", 0.0, BYTE) for byte in range(256)]
          + [(name, -float((7 * n) % 11), NORMAL) for n, name in enumerate(PIECES)]
          + [("<table>", -1000.0, USER), ("abab", -1000.0, USER)])
TEXTS = ["", " ", "the abc", "  the  cab", "<s>the</s>a", "中 é z", "ababab", "a<table> b", "abc\nabc", "<0x41>", "thethe",
         "▁the"]
WIDTH = 32


def of_llama(file):
    file.add_tokenizer_model("llama")
    file.add_bos_token_id(1)
    file.add_eos_token_id(2)


def write(path, tokens=tuple(TOKENS), of_tokenizer=of_llama):
    """A language model, small enough, with these tokens and what else is said of them."""
    file = gguf.GGUFWriter(path, "llama")
    file.add_context_length(64)
    file.add_embedding_length(WIDTH)
    file.add_block_count(1)
    file.add_feed_forward_length(WIDTH)
    file.add_head_count(4)
    file.add_layer_norm_rms_eps(1e-5)
    file.add_token_list([name.encode() for name, _, _ in tokens])
    file.add_token_scores([score for _, score, _ in tokens])
    file.add_token_types([kind for _, _, kind in tokens])
    of_tokenizer(file)
    rows = {"token_embd": len(tokens), "output": len(tokens), "output_norm": 0, "blk.0.attn_norm": 0, "blk.0.ffn_norm": 0}
    for name in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"):
        rows[f"blk.0.{name}"] = WIDTH
    for name, count in rows.items():
        file.add_tensor(name + ".weight", np.ones((count, WIDTH) if count else WIDTH, np.float32))
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_tensors_to_file()
    file.close()


def ids_of(path, texts=tuple(TEXTS)):
    parameters = xllamacpp.CommonParams()
    parameters.model.path = path
    parameters.n_ctx = 64
    parameters.warmup = False
    server = xllamacpp.Server(parameters)
    for text in texts:
        body = json.dumps({"content": text, "add_special": False, "parse_special": True}).encode()
        request = urllib.request.Request(
            server.listening_address + "/tokenize", data=body, headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            yield text, json.load(answer)["tokens"]


def quoted(text):
    return '"' + "".join(chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}" for b in text.encode()) + '"'


def main():
    with tempfile.TemporaryDirectory() as folder, open(os.devnull, "w", encoding="utf-8") as quiet:
        with contextlib.redirect_stdout(quiet):
            write(folder + "/pieces.gguf")
            texts = list(ids_of(folder + "/pieces.gguf"))
    print("""// SPDX-License-Identifier: Apache-2.0
// Made by make_scored_pieces_golden.py.
// clang-format off
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "fovea/text/vocabulary.h"

namespace fovea {

struct GoldenScoredToken {
  std::string_view name;
  float score;
  std::int32_t kind;  // tokenizer.ggml.token_type
};

// Behind <unk>, <s>, </s> and the tokens of the bytes.
inline const std::vector<GoldenScoredToken> kGoldenScoredTokens = {""")
    for name, score, kind in TOKENS[259:]:
        print(f"    {{{quoted(name)}, {score + 0:g}, {kind}}},")
    print("""};

struct GoldenScoredText {
  std::string_view text;
  std::vector<token> ids;
};
inline const std::vector<GoldenScoredText> kGoldenScoredTexts = {""")
    for text, ids in texts:
        print(f"    {{{quoted(text)}, {{{', '.join(map(str, ids))}}}}},")
    print("};\n\n}  // namespace fovea")


if __name__ == "__main__":
    main()

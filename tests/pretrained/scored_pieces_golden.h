// SPDX-License-Identifier: Apache-2.0
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
inline const std::vector<GoldenScoredToken> kGoldenScoredTokens = {
    {"\342\226\201", 0, 1},
    {"a", -7, 1},
    {"b", -3, 1},
    {"c", -10, 1},
    {"t", -6, 1},
    {"h", -2, 1},
    {"e", -9, 1},
    {"\342\226\201t", -5, 1},
    {"th", -1, 1},
    {"he", -8, 1},
    {"\342\226\201th", -4, 1},
    {"\342\226\201the", 0, 1},
    {"ab", -7, 1},
    {"abc", -3, 1},
    {"\342\226\201\342\226\201", -10, 1},
    {"\344\270\255", -6, 1},
    {"bc", -2, 1},
    {"\342\226\201a", -9, 1},
    {"<table>", -1000, 4},
    {"abab", -1000, 4},
};

struct GoldenScoredText {
  std::string_view text;
  std::vector<token> ids;
};
inline const std::vector<GoldenScoredText> kGoldenScoredTexts = {
    {"", {}},
    {" ", {273}},
    {"the abc", {270, 259, 272}},
    {"  the  cab", {273, 270, 273, 262, 271}},
    {"<s>the</s>a", {1, 270, 2, 276}},
    {"\344\270\255 \303\251 z", {259, 274, 259, 198, 172, 259, 125}},
    {"ababab", {278, 259, 271}},
    {"a<table> b", {276, 277, 273, 261}},
    {"abc\012abc", {259, 272, 13, 272}},
    {"<0x41>", {259, 63, 51, 123, 55, 52, 65}},
    {"thethe", {270, 267, 265}},
    {"\342\226\201the", {259, 270}},
};

}  // namespace fovea

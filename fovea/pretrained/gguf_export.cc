// SPDX-License-Identifier: Apache-2.0
#include "fovea/pretrained/gguf_export.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/pretrained/byte_names.h"
#include "fovea/text/sentencepiece/piece_model.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

std::uint32_t size(index value) { return static_cast<std::uint32_t>(value); }

void require(bool holds, std::string_view what, std::string_view option) {
  if (holds) return;
  throw Error(ErrorCode::kModelWrongKind,
              fmt::format("llama.cpp does not compute {} as this model does", what),
              fmt::format("export it with --to hf, or train a model with {}", option));
}

// The kinds of tokens, by the numbers of tokenizer.ggml.token_type.
enum TokenType : std::int32_t { kNormal = 1, kUnknown = 2, kControl = 3, kByte = 6 };

struct Vocabulary {
  std::vector<std::string> names = {};
  std::vector<std::int32_t> types = {};

  void add(std::string name, TokenType type) {
    names.push_back(std::move(name));
    types.push_back(type);
  }
};

Vocabulary marks_and_bytes(std::string (*name_of)(int byte), TokenType of_bytes) {
  Vocabulary vocabulary;
  for (const std::string_view name : kMarkNames) vocabulary.add(std::string(name), kControl);
  for (int byte = 0; byte < 256; ++byte) vocabulary.add(name_of(byte), of_bytes);
  return vocabulary;
}

// Every character is a piece, a blank as SentencePiece writes it, and others fall back to bytes.
Vocabulary characters(const TokenizerData& data) {
  Vocabulary vocabulary = marks_and_bytes(name_of_byte, kByte);
  for (const char32_t c : data.characters) {
    std::string text;
    append_utf8(text, c);
    vocabulary.add(c == U' ' ? std::string(kSpaceSymbol) : std::move(text), kNormal);
  }
  return vocabulary;
}

}  // namespace

std::vector<GgufEntry> gguf_sizes(const Architecture& architecture, const LanguageModelConfig& c) {
  const bool is_gpt2 = architecture.name == "gpt2";
  require(is_gpt2 || !c.bias, "biases", "--no-bias");
  require(!seen_keys(c), "windows", "--window 0");
  if (is_gpt2) {
    require(c.activation == LayerActivation::kGeluTanh, "the activation", "--activation gelu-tanh");
  } else {
    require(c.activation == LayerActivation::kSwiglu, "the activation", "--activation swiglu");
  }
  const std::string prefix = std::string(architecture.name) + ".";
  const double epsilon = c.norm_epsilon;
  std::vector<GgufEntry> entries = {
      {"general.architecture", std::string(architecture.name)},
      {prefix + "vocab_size", size(c.vocabulary)},
      {prefix + "context_length", size(is_gpt2 ? c.position_max : c.block)},
      {prefix + "embedding_length", size(c.width)},
      {prefix + "block_count", size(c.layers)},
      {prefix + "feed_forward_length", size(c.ff)},
      {prefix + "attention.head_count", size(c.heads)},
      {prefix + (is_gpt2 ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon"),
       static_cast<float>(epsilon)}};
  if (is_gpt2) return entries;
  for (auto& [key, value] : {std::pair{"attention.head_count_kv", c.kv_heads},
                             {"attention.key_length", c.head_dim},
                             {"attention.value_length", c.head_dim},
                             {"rope.dimension_count", c.head_dim}}) {
    entries.push_back({prefix + key, size(value)});
  }
  entries.push_back({prefix + "rope.freq_base", static_cast<float>(c.rope_base)});
  return entries;
}

std::vector<GgufEntry> gguf_tokenizer(const Tokenizer& tokenizer, bool lines) {
  const TokenizerData data = tokenizer.data();
  const bool bytes = data.kind == "byte";
  if ((!bytes && data.kind != "char") || data.lower) {
    throw Error(ErrorCode::kModelWrongKind,
                fmt::format("llama.cpp does not cut text as --tokenizer {}{} does", data.kind,
                            data.lower ? " --lower" : ""),
                "export it with --to hf, or train with --tokenizer byte or char");
  }
  Vocabulary vocabulary = bytes ? marks_and_bytes(character_of_byte, kNormal) : characters(data);
  const SpecialTokens special = tokenizer.special();
  std::vector<GgufEntry> entries = {
      {"tokenizer.ggml.model", std::string(bytes ? "gpt2" : "llama")},
      {"tokenizer.ggml.add_bos_token", lines && special.begin != kNoToken},
      {"tokenizer.ggml.add_space_prefix", false},
      {"tokenizer.ggml.padding_token_id", size(kPadToken)}};
  if (bytes) {
    entries.push_back({"tokenizer.ggml.pre", std::string("gpt-2")});
    entries.push_back({"tokenizer.ggml.merges", std::vector<std::string>()});
  } else {
    entries.push_back({"tokenizer.ggml.scores", std::vector<float>(vocabulary.names.size())});
    entries.push_back({"tokenizer.ggml.unknown_token_id", size(kPadToken)});
  }
  // llama.cpp supposes ids of its own where a file names none.
  entries.push_back({"tokenizer.ggml.bos_token_id", size(kBeginToken)});
  entries.push_back({"tokenizer.ggml.eos_token_id", size(kEndToken)});
  entries.push_back({"tokenizer.ggml.tokens", std::move(vocabulary.names)});
  entries.push_back({"tokenizer.ggml.token_type", std::move(vocabulary.types)});
  return entries;
}

}  // namespace fovea

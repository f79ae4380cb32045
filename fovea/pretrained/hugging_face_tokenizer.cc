// SPDX-License-Identifier: Apache-2.0
#include "fovea/pretrained/hugging_face_tokenizer.h"

#include <fmt/core.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

// Bytes and characters have no text for their special tokens; these occur in no usual text.
constexpr std::array<std::string_view, 3> kMarkNames = {"<|pad|>", "<|begin|>", "<|end|>"};

// The printable character that stands for a byte in vocabularies of bytes: itself, or, of those
// that are not printable, the next one from U+0100 on (Radford et al. 2019, section 2.2, as their
// encoder has it).
std::string character_of_byte(int byte) {
  const auto shown = [](int b) {
    return (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
  };
  char32_t c = static_cast<char32_t>(byte);
  if (!shown(byte)) {
    c = 0x100;
    for (int before = 0; before < byte; ++before) c += shown(before) ? 0 : 1;
  }
  std::string text;
  append_utf8(text, c);
  return text;
}

// "<0x0A>", as SentencePiece names its bytes.
std::string name_of_byte(int byte) { return fmt::format("<0x{:02X}>", byte); }

Json type(std::string_view name, Json::Object more = {}) {
  more.emplace(more.begin(), "type", name);
  return more;
}

// `tokenizers` wants every key of a model of merges.
Json bpe(Json::Object vocabulary, bool byte_fallback) {
  return type("BPE", {{"dropout", Json()},
                      {"unk_token", Json()},
                      {"continuing_subword_prefix", Json()},
                      {"end_of_word_suffix", Json()},
                      {"fuse_unk", false},
                      {"byte_fallback", byte_fallback},
                      {"ignore_merges", false},
                      {"vocab", std::move(vocabulary)},
                      {"merges", Json::Array()}});
}

struct Parts {
  Json::Object vocabulary = {};  // of the model
  Json model = {}, pre_tokenizer = {}, decoder = {};
  std::vector<std::pair<token, std::string>> special = {};
  std::string unknown = {};
};

Parts marked_parts(std::string (*name)(int byte)) {
  Parts parts;
  for (std::size_t n = 0; n < kMarkNames.size(); ++n) {
    parts.special.emplace_back(static_cast<token>(n), kMarkNames[n]);
    parts.vocabulary.emplace_back(std::string(kMarkNames[n]), n);
  }
  for (int byte = 0; byte < 256; ++byte) {
    parts.vocabulary.emplace_back(name(byte), byte_token(static_cast<char>(byte)));
  }
  return parts;
}

// Every byte is a token, and there are no merges.
Parts byte_parts() {
  Parts parts = marked_parts(character_of_byte);
  parts.model = bpe(std::move(parts.vocabulary), false);
  const Json::Object whole = {
      {"add_prefix_space", false}, {"trim_offsets", false}, {"use_regex", false}};
  parts.pre_tokenizer = type("ByteLevel", whole);
  parts.decoder = type("ByteLevel", whole);
  return parts;
}

// Every character is a token, and others fall back to their bytes.
Parts character_parts(const TokenizerData& data) {
  Parts parts = marked_parts(name_of_byte);
  token id = kFirstLearnedToken;
  for (const char32_t c : data.characters) {
    std::string text;
    append_utf8(text, c);
    parts.vocabulary.emplace_back(std::move(text), id++);
  }
  parts.model = bpe(std::move(parts.vocabulary), true);
  parts.decoder = type("Sequence", {{"decoders", Json::Array{type("ByteFallback"), type("Fuse")}}});
  return parts;
}

Parts word_parts(const TokenizerData& data) {
  if (data.split != WordSplit::kSpaces) {
    throw Error(ErrorCode::kModelWrongKind,
                "tokenizer.json has no words that end at punctuation as fovea's do",
                "train with --tokenizer char, or with words between blanks");
  }
  Parts parts;
  token id = 0;
  for (const std::string_view word : special_words(data.marks)) {
    parts.special.emplace_back(id, word);
    parts.vocabulary.emplace_back(std::string(word), id++);
  }
  for (const CountedWord& one : data.words) parts.vocabulary.emplace_back(one.word, id++);
  parts.unknown = kSpecialWords[kUnknownWord];
  parts.model =
      type("WordLevel", {{"vocab", std::move(parts.vocabulary)}, {"unk_token", parts.unknown}});
  parts.pre_tokenizer = type("WhitespaceSplit");
  return parts;
}

Parts parts_of(const TokenizerData& data) {
  if (data.kind == kPieceKind) {
    throw Error(ErrorCode::kModelWrongKind,
                "the subwords of this model are a .model file of SentencePiece, which has no "
                "tokenizer.json yet",
                "give the .model file to the program that reads the weights, or train with "
                "--tokenizer byte, char or word");
  }
  if (data.kind == kWordKind) return word_parts(data);
  return data.kind == "byte" ? byte_parts() : character_parts(data);
}

Json added_token(token id, const std::string& text) {
  return Json::Object{{"id", id},        {"content", text}, {"single_word", false},
                      {"lstrip", false}, {"rstrip", false}, {"normalized", false},
                      {"special", true}};
}

// Puts the mark of a line before each text.
Json begins_with(const std::string& mark, token id) {
  const Json::Object special = {{"SpecialToken", Json::Object{{"id", mark}, {"type_id", 0}}}};
  const auto sequence = [](const char* name) {
    return Json::Object{{"Sequence", Json::Object{{"id", name}, {"type_id", 0}}}};
  };
  return type("TemplateProcessing",
              {{"single", Json::Array{special, sequence("A")}},
               {"pair", Json::Array{special, sequence("A"), special, sequence("B")}},
               {"special_tokens",
                Json::Object{{mark, Json::Object{{"id", mark},
                                                 {"ids", Json::Array{Json(id)}},
                                                 {"tokens", Json::Array{Json(mark)}}}}}}});
}

}  // namespace

HuggingFaceTokenizer hugging_face_tokenizer(const Tokenizer& tokenizer, bool begins) {
  const TokenizerData data = tokenizer.data();
  Parts parts = parts_of(data);
  const SpecialTokens special = tokenizer.special();
  const auto name_of = [&](token id) -> Json {
    for (const auto& [other, text] : parts.special) {
      if (other == id) return text;
    }
    return {};
  };
  Json::Array added;
  for (const auto& [id, text] : parts.special) added.push_back(added_token(id, text));
  HuggingFaceTokenizer result;
  result.tokenizer = Json::Object{
      {"version", "1.0"},
      {"truncation", Json()},
      {"padding", Json()},
      {"added_tokens", std::move(added)},
      {"normalizer", data.lower ? type("Lowercase") : Json()},
      {"pre_tokenizer", std::move(parts.pre_tokenizer)},
      {"post_processor", begins && special.begin != kNoToken
                             ? begins_with(name_of(special.begin).text(), special.begin)
                             : Json()},
      {"decoder", std::move(parts.decoder)},
      {"model", std::move(parts.model)}};
  result.settings = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                     {"clean_up_tokenization_spaces", false},
                     {"bos_token", name_of(special.begin)},
                     {"eos_token", name_of(special.end)},
                     {"pad_token", parts.special.front().second},
                     {"unk_token", parts.unknown.empty() ? Json() : Json(parts.unknown)}};
  return result;
}

}  // namespace fovea

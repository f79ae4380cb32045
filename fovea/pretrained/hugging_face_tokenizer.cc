// SPDX-License-Identifier: Apache-2.0
#include "fovea/pretrained/hugging_face_tokenizer.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fovea/base/check.h"
#include "fovea/base/words.h"
#include "fovea/text/sentencepiece/piece_model.h"
#include "fovea/text/tokenizer/byte_bpe.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

Json type(std::string_view name, Json::Object more = {}) {
  more.emplace(more.begin(), "type", name);
  return more;
}

struct Bpe {
  Json::Object vocabulary;
  Json::Array merges = {};
  std::string unknown = {};
  bool byte_fallback = false;
};

// `tokenizers` wants every key.
Json bpe(Bpe model) {
  const bool has_unknown = !model.unknown.empty();
  return type("BPE", {{"dropout", Json()},
                      {"unk_token", has_unknown ? Json(std::move(model.unknown)) : Json()},
                      {"continuing_subword_prefix", Json()},
                      {"end_of_word_suffix", Json()},
                      {"fuse_unk", has_unknown},
                      {"byte_fallback", model.byte_fallback},
                      {"ignore_merges", false},
                      {"vocab", std::move(model.vocabulary)},
                      {"merges", std::move(model.merges)}});
}

// A special token, which is found in a text before the model cuts it.
struct Added {
  token id = kNoToken;
  std::string text = {};
  bool normalized = false;  // found in what the rules have made of the text
};

struct Parts {
  Json::Object vocabulary = {};  // of the model
  Json model = {}, normalizer = {}, pre_tokenizer = {}, decoder = {};
  std::vector<Added> added = {};
  std::string unknown = {};
  token pad = kPadToken;
};

Parts marked_parts(std::string (*name)(int byte)) {
  Parts parts;
  for (std::size_t n = 0; n < kMarkNames.size(); ++n) {
    parts.added.push_back({static_cast<token>(n), std::string(kMarkNames[n])});
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
  parts.model = bpe({.vocabulary = std::move(parts.vocabulary)});
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
  parts.model = bpe({.vocabulary = std::move(parts.vocabulary), .byte_fallback = true});
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
    parts.added.push_back({id, std::string(word)});
    parts.vocabulary.emplace_back(std::string(word), id++);
  }
  for (const CountedWord& one : data.words) parts.vocabulary.emplace_back(one.word, id++);
  parts.unknown = kSpecialWords[kUnknownWord];
  parts.model =
      type("WordLevel", {{"vocab", std::move(parts.vocabulary)}, {"unk_token", parts.unknown}});
  parts.pre_tokenizer = type("WhitespaceSplit");
  return parts;
}

Json sequence(const char* of, Json::Array parts) {
  return type("Sequence", {{of, std::move(parts)}});
}

Json replace(std::string_view kind, std::string_view pattern, std::string_view by) {
  return type("Replace",
              {{"pattern", Json::Object{{std::string(kind), pattern}}}, {"content", by}});
}

// Two pieces of BPE become one in the order of their scores; here each such pair is listed. (The
// file of SentencePiece has the results alone.)
Json::Array merges_of(const PieceModel& model) {
  std::unordered_map<std::string_view, token> ids;
  const auto text_of = [&](token id) -> const std::string& {
    return model.pieces[static_cast<std::size_t>(id)].text;
  };
  for (token id = 0; id < std::ssize(model.pieces); ++id) {
    if (is_text(model.pieces[static_cast<std::size_t>(id)].type)) ids.emplace(text_of(id), id);
  }
  struct Merge {
    float score;
    token left, right;
  };
  std::vector<Merge> merges;
  for (const auto& [text, id] : ids) {
    for (std::size_t at = 1; at < text.size(); ++at) {
      const auto left = ids.find(text.substr(0, at)), right = ids.find(text.substr(at));
      if (left == ids.end() || right == ids.end()) continue;
      merges.push_back(
          {model.pieces[static_cast<std::size_t>(id)].score, left->second, right->second});
    }
  }
  std::ranges::sort(merges, [](const Merge& a, const Merge& b) {
    return std::tuple(-a.score, a.left, a.right) < std::tuple(-b.score, b.left, b.right);
  });
  Json::Array list;
  for (const Merge& one : merges) {
    list.push_back(Json::Array{Json(text_of(one.left)), Json(text_of(one.right))});
  }
  return list;
}

Json piece_vocabulary(const PieceModel& model) {
  if (model.algorithm == PieceAlgorithm::kUnigram) {
    Json::Array scored;
    for (const ModelPiece& piece : model.pieces) {
      scored.push_back(Json::Array{Json(piece.text), Json(double{piece.score})});
    }
    return type("Unigram", {{"unk_id", model.unknown},
                            {"vocab", std::move(scored)},
                            {"byte_fallback", model.byte_fallback}});
  }
  Json::Object ids;
  for (std::size_t id = 0; id < model.pieces.size(); ++id) {
    ids.emplace_back(model.pieces[id].text, id);
  }
  const std::string& unknown = model.pieces[static_cast<std::size_t>(model.unknown)].text;
  return bpe({.vocabulary = std::move(ids),
              .merges = merges_of(model),
              .unknown = unknown,
              .byte_fallback = model.byte_fallback});
}

bool is_user_defined(const ModelPiece& piece) { return piece.type == PieceType::kUserDefined; }

// Rules of text, then a blank before each line, then pieces. A newline is the end of a line: it is
// replaced by its name, which is then found as that token.
Parts piece_parts(const TokenizerData& data) {
  const PieceModel model = read_piece_model(data.model, "tokenizer.txt");
  const NormalizerSettings& rules = model.normalizer;
  if (!rules.escape_whitespaces) {
    throw Error(ErrorCode::kModelWrongKind,
                "the subwords of this model hold blanks as they are (escape_whitespaces), which "
                "tokenizer.json does not have",
                "train with pieces of fovea tokenizer train");
  }
  if (std::ranges::any_of(model.pieces, is_user_defined)) {
    throw Error(ErrorCode::kModelWrongKind,
                "the subwords of this model have symbols of their own (--user-symbols), around "
                "which tokenizer.json treats blanks in another way",
                "train with pieces without --user-symbols");
  }
  const std::string& end = model.pieces[static_cast<std::size_t>(model.end)].text;
  Parts parts;
  Json::Array normalizers = {replace("String", "\n", end)};
  if (!rules.charsmap.empty()) {
    normalizers.push_back(type("Precompiled", {{"precompiled_charsmap", base64(rules.charsmap)}}));
  }
  if (rules.remove_extra_whitespaces) {
    normalizers.push_back(replace("Regex", " {2,}", " "));
    normalizers.push_back(replace("Regex", "^ | $", ""));
    normalizers.push_back(replace("Regex", fmt::format(" ?{} ?", end), end));
  }
  parts.normalizer = sequence("normalizers", std::move(normalizers));
  parts.pre_tokenizer =
      type("Metaspace", {{"replacement", kSpaceSymbol},
                         {"prepend_scheme", rules.add_dummy_prefix ? "always" : "never"},
                         {"split", false}});
  Json::Array decoders = {replace("String", kSpaceSymbol, " "), type("ByteFallback"), type("Fuse")};
  if (rules.add_dummy_prefix) {
    decoders.push_back(replace("String", end + " ", "\n"));
    decoders.push_back(type("Strip", {{"content", " "}, {"start", 1}, {"stop", 0}}));
  }
  decoders.push_back(replace("String", end, "\n"));
  parts.decoder = sequence("decoders", std::move(decoders));
  parts.model = piece_vocabulary(model);
  parts.unknown = model.pieces[static_cast<std::size_t>(model.unknown)].text;
  parts.pad = model.pad;
  for (std::size_t id = 0; id < model.pieces.size(); ++id) {
    const auto& [text, score, kind] = model.pieces[id];
    if (kind != PieceType::kControl && kind != PieceType::kUnknown) continue;
    const bool is_end = static_cast<token>(id) == model.end;
    parts.added.push_back({static_cast<token>(id), text, is_end});
  }
  return parts;
}

Parts parts_of(const TokenizerData& data) {
  if (data.kind == kPieceKind) return piece_parts(data);
  if (data.kind == kWordKind) return word_parts(data);
  return data.kind == "byte" ? byte_parts() : character_parts(data);
}

Json json_of(const Added& added) {
  return Json::Object{{"id", added.id},  {"content", added.text}, {"single_word", false},
                      {"lstrip", false}, {"rstrip", false},       {"normalized", added.normalized},
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

std::string character_of_byte(int byte) {
  return name_of_bytes(std::string(1, static_cast<char>(byte)));
}

std::string name_of_byte(int byte) { return fmt::format("<0x{:02X}>", byte); }

HuggingFaceTokenizer hugging_face_tokenizer(const Tokenizer& tokenizer, bool lines) {
  const TokenizerData data = tokenizer.data();
  Parts parts = parts_of(data);
  const SpecialTokens special = tokenizer.special();
  const auto name_of = [&](token id) -> Json {
    for (const Added& one : parts.added) {
      if (one.id == id) return one.text;
    }
    return {};
  };
  Json::Array added;
  for (const Added& one : parts.added) added.push_back(json_of(one));
  HuggingFaceTokenizer result;
  result.tokenizer = Json::Object{
      {"version", "1.0"},
      {"truncation", Json()},
      {"padding", Json()},
      {"added_tokens", std::move(added)},
      {"normalizer", data.lower ? type("Lowercase") : std::move(parts.normalizer)},
      {"pre_tokenizer", std::move(parts.pre_tokenizer)},
      {"post_processor", lines && special.begin != kNoToken
                             ? begins_with(name_of(special.begin).text(), special.begin)
                             : Json()},
      {"decoder", std::move(parts.decoder)},
      {"model", std::move(parts.model)}};
  const auto text_or_null = [](const std::string& text) {
    return text.empty() ? Json() : Json(text);
  };
  result.settings = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                     {"clean_up_tokenization_spaces", false},
                     {"bos_token", name_of(special.begin)},
                     {"eos_token", name_of(special.end)},
                     {"pad_token", name_of(parts.pad)},
                     {"unk_token", text_or_null(parts.unknown)}};
  const auto id_or_null = [](token id) { return id == kNoToken ? Json() : Json(id); };
  result.ids = {{"bos_token_id", id_or_null(lines ? special.begin : kNoToken)},
                {"eos_token_id", id_or_null(lines ? special.end : kNoToken)},
                {"pad_token_id", id_or_null(parts.pad)}};
  return result;
}

}  // namespace fovea

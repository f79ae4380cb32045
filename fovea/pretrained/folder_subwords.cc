// SPDX-License-Identifier: Apache-2.0
#include "fovea/pretrained/folder_subwords.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/base/option.h"
#include "fovea/base/words.h"
#include "fovea/pretrained/foreign_json.h"
#include "fovea/pretrained/pieces_of_json.h"
#include "fovea/pretrained/tokenizer_files.h"
#include "fovea/text/tokenizer/byte_bpe.h"
#include "fovea/text/tokenizer/scored_pieces.h"

namespace fovea {

namespace {

constexpr std::string_view kName = "tokenizer.json", kModelName = "tokenizer.model",
                           kT5ModelName = "spiece.model", kVocabularyName = "vocab.json",
                           kMergesName = "merges.txt", kAddedName = "added_tokens.json",
                           kSettingsName = "tokenizer_config.json";

// How many names there are more: tables are padded to a round number of rows, not to many times the
// tokens.
index padding(const std::string& where, std::size_t names, index rows) {
  const index tokens = static_cast<index>(names);
  if (tokens > rows) {
    fail(ErrorCode::kModelDamaged, "{}: {} tokens; the model has {}", where, tokens, rows);
  }
  if (rows > 2 * tokens + 1024) {
    fail(ErrorCode::kModelDamaged, "{}: {} tokens; vocab_size of config.json is {}", where, tokens,
         rows);
  }
  return rows - tokens;
}

void pad(ByteBpeModel& model, index more) {
  for (; more > 0; --more) {
    model.names.push_back(fmt::format("[UNUSED{}]", model.names.size()));
    model.kinds.push_back(BpeTokenKind::kUnused);
  }
}

FolderSubwords pieces(const Json& json, const std::string& where, index rows, token begin) {
  PiecesOfJson read = pieces_of_json(json, where);
  read.model.begin = read.marks.before.empty() ? begin : read.marks.before.back();
  read.model.names.resize(read.model.names.size() +
                          static_cast<std::size_t>(padding(where, read.model.names.size(), rows)));
  return {std::make_shared<const PiecePipeline>(std::move(read.model)), std::move(read.marks)};
}

FolderSubwords bytes(const Json& json, const std::string& where, index rows, token begin) {
  BpeOfJson read = bpe_of_json(json, where);
  pad(read.model, padding(where, read.model.names.size(), rows));
  read.model.begin = read.marks.before.empty() ? begin : read.marks.before.back();
  return {std::make_shared<const ByteBpe>(std::move(read.model)), std::move(read.marks)};
}

// ------------------------------------------------------------------ folders without tokenizer.json

struct NamedToken {
  std::string text;
  BpeTokenKind kind = BpeTokenKind::kControl;
};

std::optional<index> number_of(std::string_view text) {
  index number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Tokens that were added to a vocabulary, by their ids: those of tokenizer_config.json, or of
// added_tokens.json.
std::map<index, NamedToken> added_tokens(const ModelFiles& files, index rows) {
  std::map<index, NamedToken> added;
  const auto add = [&](const std::string& where, index id, NamedToken one) {
    if (id < 0 || id >= rows || one.text.empty()) {
      fail(ErrorCode::kModelDamaged, "{}: {} has the id {}; expected 0 to {}", where,
           printable(one.text), id, rows - 1);
    }
    added.insert_or_assign(id, std::move(one));
  };
  if (files.has(kAddedName)) {
    const Json json = files.json(kAddedName);
    const std::string where = files.path(kAddedName);
    named_as_damaged(where, [&] {
      for (const auto& [text, id] : json.object()) add(where, id.whole(), {text});
    });
  }
  if (!files.has(kSettingsName)) return added;
  const Json json = files.json(kSettingsName);
  const std::string where = files.path(kSettingsName);
  const Json* const decoder = json.find("added_tokens_decoder");
  if (decoder == nullptr) return added;
  named_as_damaged(where, [&] {
    for (const auto& [id, one] : decoder->object()) {
      const ForeignObject from(one, where + ": added_tokens_decoder");
      const std::optional<index> number = number_of(id);
      if (!number) fail(ErrorCode::kModelDamaged, "{}: {} is no id", where, printable(id));
      add(where, *number,
          {from.text("content"),
           from.flag("special", false) ? BpeTokenKind::kControl : BpeTokenKind::kUserDefined});
    }
  });
  return added;
}

// The names of bos_token, eos_token and the like.
std::vector<std::string> mark_names(const ModelFiles& files) {
  std::vector<std::string> names;
  for (const std::string_view file : {kSettingsName, std::string_view("special_tokens_map.json")}) {
    if (!files.has(file)) continue;
    const Json json = files.json(file);
    for (const char* const key : {"bos_token", "eos_token", "unk_token", "pad_token"}) {
      const Json* value = json.find(key);
      if (value != nullptr && value->get_if<Json::Object>() != nullptr) {
        value = value->find("content");
      }
      const auto* const text = value == nullptr ? nullptr : value->get_if<std::string>();
      if (text != nullptr) names.push_back(*text);
    }
  }
  return names;
}

// How a family cuts texts, which vocab.json does not say.
PreSplit split_of_family(const std::string& where, std::string_view architecture) {
  const std::string_view name = architecture == "gpt2" ? "gpt-2" : "qwen2";
  if (architecture == "gpt2" || architecture == "qwen2" || architecture == "qwen3") {
    return *find_named(pre_splits(), name);
  }
  throw Error(ErrorCode::kModelWrongKind,
              fmt::format("{}: without tokenizer.json fovea knows how gpt2, qwen2 and qwen3 cut "
                          "texts, got {}",
                          where, printable(architecture)),
              "save the tokenizer with transformers, as tokenizer.json");
}

// vocab.json and merges.txt, as GPT-2 has them.
FolderSubwords vocabulary_files(const ModelFiles& files, std::string_view architecture, index rows,
                                token begin) {
  const std::string where = files.path(kVocabularyName);
  ByteBpeModel model;
  model.split = split_of_family(where, architecture);
  model.nfc = architecture != "gpt2";
  std::map<index, NamedToken> names = added_tokens(files, rows);
  const Json json = files.json(kVocabularyName);
  named_as_damaged(where, [&] {
    for (const auto& [name, id] : json.object())
      names.insert({id.whole(), {name, BpeTokenKind::kNormal}});
  });
  const std::vector<std::string> marks = mark_names(files);
  model.names.reserve(names.size());
  for (const auto& [id, one] : names) {
    if (id != std::ssize(model.names)) {
      fail(ErrorCode::kModelDamaged, "{}: no token has the id {}", where, model.names.size());
    }
    const bool is_mark =
        one.text == "<|endoftext|>" || std::ranges::find(marks, one.text) != marks.end();
    model.names.push_back(one.text);
    model.kinds.push_back(is_mark ? BpeTokenKind::kControl : one.kind);
  }
  const std::string merges = files.text(kMergesName);
  for (std::string_view line : parts_between(merges, '\n')) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty() && !line.starts_with("#version")) model.merges.emplace_back(line);
  }
  pad(model, padding(where, model.names.size(), rows));
  model.begin = begin;
  return {.subwords = std::make_shared<const ByteBpe>(std::move(model))};
}

// tokenizer.model: the pieces of SentencePiece, as its library cuts with them.
FolderSubwords model_file(const ModelFiles& files, index rows, token begin) {
  const std::string where = files.path(kModelName);
  ScoredPiecesModel model{.pieces = read_piece_model(files.text(kModelName), where)};
  std::vector<ModelPiece>& pieces = model.pieces.pieces;
  const auto known = std::ssize(pieces);
  for (const auto& [id, one] : added_tokens(files, rows)) {
    if (id < known) {
      if (pieces[static_cast<std::size_t>(id)].text == one.text) continue;
      fail(ErrorCode::kModelDamaged, "{}: token {} is {} and {}", where, id,
           printable(pieces[static_cast<std::size_t>(id)].text), printable(one.text));
    }
    if (id != std::ssize(pieces)) {
      fail(ErrorCode::kModelDamaged, "{}: no token has the id {}", where, pieces.size());
    }
    const bool is_mark = one.kind == BpeTokenKind::kControl;
    if (!is_mark) model.wholes.push_back(static_cast<token>(id));
    pieces.push_back(
        {.text = one.text, .type = is_mark ? PieceType::kControl : PieceType::kUserDefined});
  }
  for (index more = padding(where, pieces.size(), rows); more > 0; --more) {
    pieces.push_back(
        {.text = fmt::format("[UNUSED{}]", pieces.size()), .type = PieceType::kUnused});
  }
  check_piece_model(model.pieces, where);
  model.prefix = model.pieces.normalizer.add_dummy_prefix;
  model.begin = model.pieces.begin == kNoToken ? begin : model.pieces.begin;
  model.end = model.pieces.end;
  FolderSubwords result;
  bool begins = true;
  if (files.has(kSettingsName)) {
    const Json json = files.json(kSettingsName);
    begins = ForeignObject(json, files.path(kSettingsName)).flag("add_bos_token", true);
  }
  if (begins && model.begin != kNoToken) result.marks.before = {model.begin};
  result.subwords = std::make_shared<const ScoredPieces>(std::move(model), where);
  return result;
}

// What T5's spiece.model says beside the pieces, transformers does not read.
void require_t5_pieces(const PieceModel& model, const std::string& where) {
  const std::string_view lacking =
      model.algorithm != PieceAlgorithm::kUnigram ? "is no unigram model"
      : model.byte_fallback                       ? "spells characters in bytes (byte_fallback)"
      : !model.denormalizer.empty() ? "rewrites the text of its pieces (denormalizer_spec)"
      : model.space_is_suffix       ? "puts spaces behind words (treat_whitespace_as_suffix)"
                                    : "";
  if (lacking.empty()) return;
  throw Error(ErrorCode::kModelWrongKind, fmt::format("{}: the model {}", where, lacking),
              kReadableHint);
}

// A token that tokenizer_config.json or added_tokens.json has beside the pieces, or says more of.
void add_t5_token(PiecePipelineModel& model, AddedToken one, const std::string& where) {
  const auto tokens = std::ssize(model.names);
  if (one.id < 0 || one.id > tokens || one.text.empty()) {
    fail(ErrorCode::kModelDamaged, "{}: {} has the id {}; expected 0 to {}", where,
         printable(one.text), one.id, tokens);
  }
  if (one.id == tokens) {
    model.names.push_back(one.text);
    std::get<PieceScores>(model.pieces).scores.push_back(0);
  }
  std::erase_if(model.added, [&](const AddedToken& other) { return other.id == one.id; });
  model.added.push_back(std::move(one));
}

void add_t5_tokens(const ModelFiles& files, PiecePipelineModel& model) {
  if (files.has(kAddedName)) {
    const Json json = files.json(kAddedName);
    std::map<index, std::string> by_id;
    for (const auto& [text, id] : json.object()) by_id.insert({id.whole(), text});
    for (const auto& [id, text] : by_id) {
      add_t5_token(model,
                   {.text = text,
                    .id = static_cast<token>(std::clamp<index>(id, -1, kMostTokens)),
                    .is_mark = false,
                    .normalized = true},
                   files.path(kAddedName));
    }
  }
  if (!files.has(kSettingsName)) return;
  const Json json = files.json(kSettingsName);
  const std::string where = files.path(kSettingsName);
  const Json* const decoder = json.find("added_tokens_decoder");
  if (decoder == nullptr) return;
  std::map<index, AddedToken> by_id;
  for (const auto& [key, value] : decoder->object()) {
    const ForeignObject from(value, where + ": added_tokens_decoder");
    const std::optional<index> id = number_of(key);
    if (!id || *id > kMostTokens)
      fail(ErrorCode::kModelDamaged, "{}: {} is no id", where, printable(key));
    AddedToken one{.text = from.text("content"),
                   .id = static_cast<token>(*id),
                   .is_mark = from.flag("special", false)};
    one.normalized = from.flag("normalized", !one.is_mark);
    one.takes_left = from.flag("lstrip", false);
    one.takes_right = from.flag("rstrip", false);
    from.require("single_word", false);
    by_id.insert({*id, std::move(one)});
  }
  for (auto& [id, one] : by_id) add_t5_token(model, std::move(one), where);
}

// Names of special tokens that are no tokens yet get an id of transformers' choice.
void require_t5_names(const ModelFiles& files, const PiecePipelineModel& model) {
  if (!files.has(kSettingsName)) return;
  const Json json = files.json(kSettingsName);
  const ForeignObject settings(json, files.path(kSettingsName));
  for (const char* const key : {"additional_special_tokens", "extra_special_tokens"}) {
    const Json* const list = settings.find(key);
    if (list == nullptr || list->get_if<Json::Array>() == nullptr) continue;
    for (const Json& one : list->array()) {
      const std::string name = one.get_if<Json::Object>() != nullptr
                                   ? ForeignObject(one, settings.where()).text("content")
                                   : one.text();
      if (std::ranges::find(model.added, name, &AddedToken::text) != model.added.end()) continue;
      settings.refuse(key, fmt::format("tokens of spiece.model, and not {}", printable(name)));
    }
  }
}

// spiece.model of T5, whose last pieces are behind it: the sentinels, of which the first is last.
FolderSubwords t5_model_file(const ModelFiles& files, index rows) {
  const std::string where = files.path(kT5ModelName);
  const PieceModel read = read_piece_model(files.text(kT5ModelName), where);
  require_t5_pieces(read, where);
  constexpr index kUsualSentinels = 100;
  index sentinels = kUsualSentinels;
  const index most = std::min(rows, 2 * static_cast<index>(read.pieces.size()) + 1024);
  if (files.has(kSettingsName)) {
    const Json json = files.json(kSettingsName);
    sentinels =
        ForeignObject(json, files.path(kSettingsName)).whole("extra_ids", 0, most, sentinels);
  }
  PiecePipelineModel model;
  PieceScores scores;
  for (const ModelPiece& piece : read.pieces) {
    model.names.push_back(piece.text);
    scores.scores.push_back(piece.score);
  }
  for (index n = sentinels; n-- > 0;) {
    model.names.push_back(fmt::format("<extra_id_{}>", n));
    scores.scores.push_back(0);
  }
  model.pieces = std::move(scores);
  model.unknown = read.unknown;
  if (!read.normalizer.charsmap.empty()) {
    model.rules.push_back(text_rule::precompiled(read.normalizer.charsmap, where));
  }
  model.cuts = {.at_white_space = true, .blanks = Metaspace{}};
  model.decoder = {{.kind = DecodeStep::Kind::kMetaspace,
                    .from = std::string(kSpaceSymbol),
                    .to = " ",
                    .drops = true}};
  FolderSubwords result;
  if (read.end != kNoToken) result.marks.after = {read.end};
  for (std::size_t id = 0; id < model.names.size(); ++id) {
    const std::string& name = model.names[id];
    const bool is_mark = name == "<pad>" || name == "</s>" || name == "<unk>";
    if (!is_mark && id < read.pieces.size()) continue;
    model.added.push_back({.text = name, .id = static_cast<token>(id)});
  }
  named_as_damaged(files.where(), [&] {
    add_t5_tokens(files, model);
    require_t5_names(files, model);
  });
  model.names.resize(model.names.size() +
                     static_cast<std::size_t>(padding(where, model.names.size(), rows)));
  result.subwords = std::make_shared<const PiecePipeline>(std::move(model));
  return result;
}

}  // namespace

FolderSubwords read_folder_subwords(const ModelFiles& files, std::string_view architecture,
                                    index rows, token begin) {
  const bool is_t5 = architecture == "t5" || architecture == "mt5";
  if (!files.has(kName) && is_t5) return t5_model_file(files, rows);
  if (!files.has(kName) && files.has(kModelName)) return model_file(files, rows, begin);
  if (!files.has(kName) && files.has(kVocabularyName)) {
    return vocabulary_files(files, architecture, rows, begin);
  }
  const std::string where = files.path(kName);
  const Json json = files.json(kName);
  return has_pieces(json, where) ? pieces(json, where, rows, begin)
                                 : bytes(json, where, rows, begin);
}

std::shared_ptr<const Subwords> load_folder_subwords(const std::filesystem::path& folder) {
  const ModelFiles files(folder);
  const Json json = files.json("config.json");
  const ForeignObject config(json, files.path("config.json"));
  const index rows = config.whole("vocab_size", 1, INT32_MAX);
  return read_folder_subwords(files, config.text("model_type"), rows, kNoToken).subwords;
}

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
#include "fovea/pretrained/folder_subwords.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/base/option.h"
#include "fovea/base/words.h"
#include "fovea/pretrained/foreign_json.h"
#include "fovea/pretrained/pieces_of_json.h"
#include "fovea/pretrained/pretrained.h"
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

std::shared_ptr<const PiecePipeline> pipeline_of(PiecePipelineModel model,
                                                 const std::string& where) {
  return detail::named(where,
                       [&] { return std::make_shared<const PiecePipeline>(std::move(model)); });
}

FolderSubwords pieces(const Json& json, const std::string& where, index rows, token begin) {
  PiecesOfJson read = pieces_of_json(json, where);
  read.model.begin = read.marks.before.empty() ? begin : read.marks.before.back();
  read.model.names.resize(read.model.names.size() +
                          static_cast<std::size_t>(padding(where, read.model.names.size(), rows)));
  return {pipeline_of(std::move(read.model), where), std::move(read.marks)};
}

FolderSubwords bytes(const Json& json, const std::string& where, index rows, token begin) {
  BpeOfJson read = bpe_of_json(json, where);
  pad(read.model, padding(where, read.model.names.size(), rows));
  read.model.begin = read.marks.before.empty() ? begin : read.marks.before.back();
  return {std::make_shared<const ByteBpe>(std::move(read.model)), std::move(read.marks)};
}

// ------------------------------------------------------------------ folders without tokenizer.json

constexpr const char* kSaveHint = "save the tokenizer with transformers, as tokenizer.json";

std::optional<index> number_of(std::string_view text) {
  index number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

AddedToken added_token(const ForeignObject& from) {
  AddedToken one{.text = from.text("content"), .is_mark = from.flag("special", false)};
  one.normalized = from.flag("normalized", !one.is_mark);
  one.takes_left = from.flag("lstrip", false);
  one.takes_right = from.flag("rstrip", false);
  from.require("single_word", false);
  return one;
}

// Tokens that were added to a vocabulary, by their ids: those of tokenizer_config.json, or of
// added_tokens.json, which does not say whether they are marks.
std::map<index, AddedToken> added_tokens(const ModelFiles& files, index rows, bool are_marks) {
  std::map<index, AddedToken> added;
  const auto add = [&](const std::string& where, index id, AddedToken one) {
    if (id < 0 || id >= rows || one.text.empty()) {
      fail(ErrorCode::kModelDamaged, "{}: {} has the id {}; expected 0 to {}", where,
           printable(one.text), id, rows - 1);
    }
    one.id = static_cast<token>(id);
    added.insert_or_assign(id, std::move(one));
  };
  if (files.has(kAddedName)) {
    const Json json = files.json(kAddedName);
    const std::string where = files.path(kAddedName);
    named_as_damaged(where, [&] {
      for (const auto& [text, id] : json.object()) {
        add(where, id.whole(), {.text = text, .is_mark = are_marks, .normalized = !are_marks});
      }
    });
  }
  if (!files.has(kSettingsName)) return added;
  const Json json = files.json(kSettingsName);
  const std::string where = files.path(kSettingsName);
  const Json* const decoder = json.find("added_tokens_decoder");
  if (decoder == nullptr) return added;
  named_as_damaged(where, [&] {
    for (const auto& [id, one] : decoder->object()) {
      const std::optional<index> number = number_of(id);
      if (!number) fail(ErrorCode::kModelDamaged, "{}: {} is no id", where, printable(id));
      add(where, *number, added_token(ForeignObject(one, where + ": added_tokens_decoder")));
    }
  });
  return added;
}

// A name of a token: a text, or an object that has it as its content. Null for what is neither.
const std::string* name_in(const Json& value) {
  const bool has_content = value.get_if<Json::Object>() != nullptr;
  const Json* const name = has_content ? value.find("content") : &value;
  return name == nullptr ? nullptr : name->get_if<std::string>();
}

struct SpecialName {
  std::string where;  // file: key
  std::string_view key;
  std::string name;
};

std::vector<SpecialName> special_names(const ModelFiles& files) {
  std::vector<SpecialName> found;
  for (const std::string_view file : {kSettingsName, std::string_view("special_tokens_map.json")}) {
    if (!files.has(file)) continue;
    const Json json = files.json(file);
    for (const char* const key : {"bos_token", "eos_token", "unk_token", "pad_token", "sep_token",
                                  "cls_token", "mask_token"}) {
      const Json* const value = json.find(key);
      const std::string* const name = value == nullptr ? nullptr : name_in(*value);
      if (name != nullptr) {
        found.push_back({fmt::format("{}: {}", files.path(file), key), key, *name});
      }
    }
  }
  return found;
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
              kSaveHint);
}

// vocab.json and merges.txt, as GPT-2 has them.
FolderSubwords vocabulary_files(const ModelFiles& files, std::string_view architecture, index rows,
                                token begin) {
  const std::string where = files.path(kVocabularyName);
  ByteBpeModel model;
  model.split = split_of_family(where, architecture);
  model.nfc = architecture != "gpt2";
  struct NamedToken {
    std::string text;
    BpeTokenKind kind = BpeTokenKind::kNormal;
  };
  std::map<index, NamedToken> names;
  for (const auto& [id, one] : added_tokens(files, rows, true)) {
    names.insert(
        {id, {one.text, one.is_mark ? BpeTokenKind::kControl : BpeTokenKind::kUserDefined}});
  }
  const Json json = files.json(kVocabularyName);
  named_as_damaged(where, [&] {
    for (const auto& [name, id] : json.object()) names.insert({id.whole(), {name}});
  });
  const std::vector<SpecialName> marks = special_names(files);
  model.names.reserve(names.size());
  for (const auto& [id, one] : names) {
    if (id != std::ssize(model.names)) {
      fail(ErrorCode::kModelDamaged, "{}: no token has the id {}", where, model.names.size());
    }
    const bool is_mark = one.text == "<|endoftext|>" ||
                         std::ranges::find(marks, one.text, &SpecialName::name) != marks.end();
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
  for (const auto& [id, one] : added_tokens(files, rows, true)) {
    if (id < known) {
      if (pieces[static_cast<std::size_t>(id)].text == one.text) continue;
      fail(ErrorCode::kModelDamaged, "{}: token {} is {} and {}", where, id,
           printable(pieces[static_cast<std::size_t>(id)].text), printable(one.text));
    }
    if (id != std::ssize(pieces)) {
      fail(ErrorCode::kModelDamaged, "{}: no token has the id {}", where, pieces.size());
    }
    if (!one.is_mark) model.wholes.push_back(one.id);
    pieces.push_back(
        {.text = one.text, .type = one.is_mark ? PieceType::kControl : PieceType::kUserDefined});
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

constexpr std::string_view kT5Padding = "<pad>", kT5End = "</s>", kT5Unknown = "<unk>";

token find_piece(const PieceModel& model, std::string_view text) {
  const auto found = std::ranges::find(model.pieces, text, &ModelPiece::text);
  return found == model.pieces.end() ? kNoToken : static_cast<token>(found - model.pieces.begin());
}

[[noreturn]] void refuse_t5_tokens(const std::string& where, std::string_view why) {
  throw Error(ErrorCode::kModelWrongKind, fmt::format("{}: {}", where, why), kSaveHint);
}

// What T5's spiece.model says beside the pieces, transformers does not read: marks that it has not,
// it adds; whatever is the third piece, it takes for unknown characters, also where the pieces
// spell these in bytes (byte_fallback), which are pieces as any.
void require_t5_pieces(const PieceModel& model, const std::string& where) {
  constexpr token kUnknown = 2;
  const std::string_view lacking =
      model.algorithm != PieceAlgorithm::kUnigram ? "is no unigram model"
      : !model.denormalizer.empty() ? "rewrites the text of its pieces (denormalizer_spec)"
      : model.space_is_suffix       ? "puts spaces behind words (treat_whitespace_as_suffix)"
      : find_piece(model, kT5Padding) == kNoToken ? "has no piece <pad>"
      : find_piece(model, kT5End) == kNoToken     ? "has no piece </s>"
      : model.unknown != kUnknown || find_piece(model, kT5Unknown) != kUnknown
          ? "has another unknown piece than the third, <unk>"
          : "";
  if (lacking.empty()) return;
  refuse_t5_tokens(where, fmt::format("the model {}", lacking));
}

// transformers adds special tokens that are none yet, with ids of its choice, and puts eos_token
// behind a text. Where a list has some sentinels, the others are pieces as any.
void require_t5_names(const ModelFiles& files, const std::map<index, AddedToken>& added,
                      const std::map<index, AddedToken>& sentinels) {
  std::set<std::string_view> marks;
  std::set<std::string_view> known;
  for (const auto& [id, one] : added) known.insert(one.text);
  const auto require = [&](const std::string& where, std::string_view name) {
    if (known.contains(name)) return;
    refuse_t5_tokens(where, fmt::format("{} is no mark of spiece.model", printable(name)));
  };
  for (const auto& [where, key, name] : special_names(files)) {
    const std::string_view only = key == "eos_token"   ? kT5End
                                  : key == "unk_token" ? kT5Unknown
                                                       : std::string_view(name);
    if (name != only) {
      refuse_t5_tokens(where, fmt::format("fovea knows '{}', got {}", only, printable(name)));
    }
    require(where, name);
  }
  if (!files.has(kSettingsName)) return;
  const Json json = files.json(kSettingsName);
  for (const char* const key : {"additional_special_tokens", "extra_special_tokens"}) {
    const std::string where = fmt::format("{}: {}", files.path(kSettingsName), key);
    const Json* const list = json.find(key);
    if (list == nullptr) continue;
    std::set<std::string, std::less<>> listed;
    const auto add = [&](const Json& one) {
      const std::string* const name = name_in(one);
      if (name == nullptr) fail(ErrorCode::kModelDamaged, "{}: expected names of tokens", where);
      require(where, *name);
      listed.insert(*name);
    };
    if (const auto* const named = list->get_if<Json::Object>()) {
      for (const auto& [attribute, one] : *named) add(one);
      continue;
    }
    const auto* const names = list->get_if<Json::Array>();
    if (names == nullptr) continue;
    for (const Json& one : *names) add(one);
    for (const auto& [id, one] : sentinels) {
      if (!listed.contains(one.text)) {
        refuse_t5_tokens(where, fmt::format("the sentinel {} is not there", one.text));
      }
    }
  }
}

// spiece.model of T5, whose last tokens are behind it: the sentinels, of which the first is last.
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
  std::vector<double> scores;
  std::map<index, AddedToken> added, unlisted;
  const auto append = [&](std::string name, double score) {
    model.names.push_back(std::move(name));
    scores.push_back(score);
    return static_cast<token>(scores.size() - 1);
  };
  for (const ModelPiece& piece : read.pieces) {
    const token id = append(piece.text, piece.score);
    const bool is_text = piece.type == PieceType::kUserDefined;
    const bool is_mark = piece.type == PieceType::kControl || piece.text == kT5Padding ||
                         piece.text == kT5End || piece.text == kT5Unknown;
    if (is_mark || is_text) added.insert({id, {.text = piece.text, .id = id, .is_mark = is_mark}});
  }
  for (index n = sentinels; n-- > 0;) {
    AddedToken one{.text = fmt::format("<extra_id_{}>", n)};
    one.id = append(one.text, 0);
    unlisted.insert({one.id, one});
    added.insert({one.id, std::move(one)});
  }
  for (auto& [id, one] : added_tokens(files, rows, false)) {
    if (id > std::ssize(scores)) {
      fail(ErrorCode::kModelDamaged, "{}: no token has the id {}", where, scores.size());
    }
    if (id == std::ssize(scores)) append(one.text, 0);
    unlisted.erase(id);
    added.insert_or_assign(id, std::move(one));
  }
  require_t5_names(files, added, unlisted);
  for (auto& [id, one] : added) model.added.push_back(std::move(one));
  model.names.resize(model.names.size() +
                     static_cast<std::size_t>(padding(where, model.names.size(), rows)));
  model.pieces = PieceScores{std::move(scores)};
  model.unknown = read.unknown;
  if (!read.normalizer.charsmap.empty()) {
    model.rules.push_back(text_rule::precompiled(read.normalizer.charsmap, where));
  }
  model.cuts = {.at_white_space = true, .blanks = Metaspace{}};
  model.decoder = {{.kind = DecodeStep::Kind::kMetaspace,
                    .from = std::string(kSpaceSymbol),
                    .to = " ",
                    .drops = true}};
  return {.subwords = pipeline_of(std::move(model), where),
          .marks = {.after = {find_piece(read, kT5End)}}};
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

// SPDX-License-Identifier: Apache-2.0
#include "fovea/pretrained/translator_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>
#include <vector>

#include "fovea/base/check.h"
#include "fovea/base/words.h"
#include "fovea/pretrained/tokenizer_files.h"
#include "fovea/text/keyed_hash.h"
#include "fovea/text/sentencepiece/sentencepiece.h"
#include "fovea/text/tokenizer/added_tokens.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

constexpr std::string_view kRulesName = "tokenizer_config.json", kVocabularyFile = "vocab.json",
                           kTargetVocabularyFile = "target_vocab.json";

// The code of a language at the front of a text: ">>fra<<". Empty: there is none.
std::string_view language_code(std::string_view text) {
  constexpr std::string_view kOpen = ">>", kClose = "<<";
  if (!text.starts_with(kOpen)) return {};
  const std::size_t close = text.find(kClose);
  return close == text.npos ? std::string_view() : text.substr(0, close + kClose.size());
}

using TokenIds = KeyedMap<std::string_view, token>;

// The ids of names, which must outlive them. "": no token has the id.
TokenIds ids_of(const std::vector<std::string>& names) {
  TokenIds ids;
  for (std::size_t id = 0; id < names.size(); ++id) {
    if (!names[id].empty()) ids.emplace(names[id], static_cast<token>(id));
  }
  return ids;
}

// All that one side of a translator knows of tokens.
struct SideVocabulary {
  std::string where;               // what its pieces are called in messages
  std::string pieces;              // the bytes of its .spm file
  std::vector<std::string> names;  // [V]; "": no token has the id
  std::vector<AddedToken> added;
  std::vector<bool> never_written;  // [V]
  SpecialTokens special;
  bool says_codes = false;  // whether the code of a language is text
};

class SideTokenizer final : public Tokenizer {
 public:
  explicit SideTokenizer(SideVocabulary side)
      : side_(std::move(side)),
        pieces_(side_.pieces, side_.where),
        added_(side_.added),
        marks_(side_.names.size()),
        ids_(ids_of(side_.names)) {
    for (const AddedToken& one : side_.added) {
      marks_[static_cast<std::size_t>(one.id)] = one.is_mark;
    }
    std::string().swap(side_.pieces);
    require_ids();
  }

  // Its files are those of the folder, and are kept by nobody.
  TokenizerData data() const override { return {.kind = std::string(kPretrainedKind)}; }
  index vocabulary_size() const override { return std::ssize(side_.names); }
  SpecialTokens special() const override { return side_.special; }
  LineSpace line_space() const override { return LineSpace::kAllDropped; }
  index token_count(std::string_view text) const override { return std::ssize(text) + 1; }

  void append_tokens(std::vector<token>& ids, std::string_view text,
                     std::string_view name) const override {
    require_utf8(text, name);
    added_.split(
        text, [&](std::size_t, std::string_view plain) { append_plain(ids, plain); },
        [&](const AddedToken& added) { ids.push_back(added.id); });
  }

  bool occurs_in_learned_text(token id) const override {
    const auto n = static_cast<std::size_t>(id);
    return !side_.names[n].empty() && !side_.never_written[n];
  }

 private:
  // Some pieces may lack an id; where all do, the files are those of several models.
  void require_ids() const {
    const auto has_id = [&](const ModelPiece& piece) {
      const bool is_text = piece.type != PieceType::kUnknown && piece.type != PieceType::kControl;
      return is_text && ids_.find(piece.text) != ids_.end();
    };
    if (std::ranges::any_of(pieces_.model().pieces, has_id)) return;
    fail(ErrorCode::kModelDamaged, "{}: none of its pieces has an id in the model's vocabulary",
         side_.where);
  }

  token id_of(std::string_view name) const {
    const auto found = ids_.find(name);
    return found == ids_.end() ? side_.special.unknown : found->second;
  }

  void append_plain(std::vector<token>& ids, std::string_view text) const {
    const std::string_view code = language_code(text);
    if (!code.empty()) ids.push_back(id_of(code));
    for (const EncodedPiece& piece : pieces_.encode(text.substr(code.size()))) {
      ids.push_back(id_of(piece.text));
    }
  }

  void append_known(std::string& out, token id) const override {
    const auto n = static_cast<std::size_t>(id);
    const std::string& name = side_.names[n];
    if (marks_[n] || name.empty()) return;
    if (!side_.says_codes && language_code(name) == name) return;
    const token piece = pieces_.id_of(name);
    const PieceType type = piece == kNoToken
                               ? PieceType::kNormal
                               : pieces_.model().pieces[static_cast<std::size_t>(piece)].type;
    if (type == PieceType::kByte) {
      out += static_cast<char>(byte_of_piece(name));
    } else if (type != PieceType::kControl) {
      append_spaced(out, name);
    }
  }

  SideVocabulary side_;
  const SentencePiece pieces_;
  const AddedTokens added_;
  std::vector<bool> marks_;  // [V] tokens that stand for no text
  const TokenIds ids_;
};

// ------------------------------------------------------------------------------------ the files

// The names of the tokens of a vocab.json, by their ids.
std::vector<std::string> names_of_ids(const ModelFiles& files, std::string_view file,
                                      index tokens) {
  const Json json = files.json(file);
  const std::string where = files.path(file);
  const ForeignObject vocabulary(json, where);  // an object
  std::vector<std::string> names(static_cast<std::size_t>(tokens));
  for (const auto& [name, value] : json.object()) {
    const auto* const id = value.get_if<std::int64_t>();
    if (id == nullptr || *id < 0 || *id >= tokens || name.empty()) {
      vocabulary.fail_value(name, fmt::format("an id from 0 to {}, as the model has", tokens - 1));
    }
    std::string& place = names[static_cast<std::size_t>(*id)];
    if (!place.empty()) {
      fail(ErrorCode::kModelDamaged, "{}: {} and {} have the id {}", where, printable(place),
           printable(name), *id);
    }
    place = name;
  }
  return names;
}

token id_of_name(const std::vector<std::string>& names, std::string_view name) {
  const auto found = std::ranges::find(names, name);
  return found == names.end() ? kNoToken : static_cast<token>(found - names.begin());
}

struct MarkNames {
  std::string unknown = "<unk>", end = "</s>", padding = "<pad>";
};

// The ids of tokenizer_config.json are those of vocab.json. A target with a list of its own has the
// same tokens by their names.
enum class AddedIds { kAsSaid, kByName };

// Tokens that tokenizer_config.json adds to those of vocab.json.
std::vector<AddedToken> added_by_rules(const ForeignObject& rules, index tokens) {
  constexpr std::string_view kKey = "added_tokens_decoder";
  std::vector<AddedToken> added;
  if (!rules.has(kKey)) return added;
  const ForeignObject list = rules.object(kKey);
  for (const auto& [key, value] : rules.find(kKey)->object()) {
    std::int64_t id = -1;
    const char* const end = key.data() + key.size();
    if (std::from_chars(key.data(), end, id).ptr != end || id < 0 || id >= tokens) {
      list.fail_value(key, fmt::format("an id from 0 to {} before it", tokens - 1));
    }
    const ForeignObject one(value, fmt::format("{}: {}", list.where(), printable(key)));
    one.require("single_word", false);
    added.push_back({.text = one.text("content"),
                     .id = static_cast<token>(id),
                     .is_mark = one.flag("special", false),
                     .takes_left = one.flag("lstrip", false),
                     .takes_right = one.flag("rstrip", false)});
    if (added.back().text.empty()) one.fail_value("content", "a text that is not empty");
  }
  return added;
}

void find_by_name(std::vector<AddedToken>& added, const std::vector<std::string>& names) {
  const TokenIds ids = ids_of(names);
  for (AddedToken& one : added) {
    const auto found = ids.find(one.text);
    one.id = found == ids.end() ? kNoToken : found->second;
  }
  std::erase_if(added, [](const AddedToken& one) { return one.id == kNoToken; });
}

// A mark is a text, or an object that has it.
std::string mark_name(const ForeignObject& rules, std::string_view key, std::string usual) {
  const Json* const value = rules.find(key);
  if (value == nullptr) return usual;
  if (value->get_if<Json::Object>() != nullptr) return rules.object(key).text("content");
  return rules.text(key);
}

void add_mark(SideVocabulary& side, const std::string& name) {
  if (std::ranges::find(side.added, name, &AddedToken::text) != side.added.end()) return;
  const token id = id_of_name(side.names, name);
  if (id != kNoToken && !name.empty()) side.added.push_back({.text = name, .id = id});
}

token require_mark(const SideVocabulary& side, std::string_view name, const std::string& where) {
  const auto added = std::ranges::find(side.added, name, &AddedToken::text);
  const token id = added != side.added.end() ? added->id : id_of_name(side.names, name);
  if (id != kNoToken) return id;
  fail(ErrorCode::kModelDamaged, "{}: there is no {}", where, printable(name));
}

void require_known_pieces(const SideVocabulary& side) {
  const PieceModel model = read_piece_model(side.pieces, side.where);
  const std::string_view lacking =
      !model.denormalizer.empty() ? "rewrites the text of its pieces (denormalizer_spec)"
      : model.space_is_suffix     ? "puts spaces behind words (treat_whitespace_as_suffix)"
                                  : "";
  if (lacking.empty()) return;
  throw Error(ErrorCode::kModelWrongKind, fmt::format("{}: the model {}", side.where, lacking),
              kReadableHint);
}

class VocabularyReader {
 public:
  VocabularyReader(const ModelFiles& files, const ForeignObject& rules)
      : files_(files),
        rules_(rules),
        names_{.unknown = mark_name(rules, "unk_token", MarkNames().unknown),
               .end = mark_name(rules, "eos_token", MarkNames().end),
               .padding = mark_name(rules, "pad_token", MarkNames().padding)} {}

  // The side that is cut by `pieces` and has the ids of `vocabulary`.
  SideVocabulary read(std::string_view pieces, std::string_view vocabulary, index tokens,
                      AddedIds ids) const {
    SideVocabulary side{
        .where = files_.path(pieces),
        .pieces = files_.text(pieces),
        .names = names_of_ids(files_, vocabulary, tokens),
        .added = added_by_rules(rules_, ids == AddedIds::kByName ? INT32_MAX : tokens),
        .never_written = std::vector<bool>(static_cast<std::size_t>(tokens)),
        .special = {}};
    require_known_pieces(side);
    if (ids == AddedIds::kByName) find_by_name(side.added, side.names);
    for (const std::string* name : {&names_.end, &names_.unknown, &names_.padding}) {
      add_mark(side, *name);
    }
    for (const AddedToken& one : side.added) {
      std::string& name = side.names[static_cast<std::size_t>(one.id)];
      if (name.empty()) name = one.text;
    }
    const std::string where = files_.path(vocabulary);
    side.special.unknown = require_mark(side, names_.unknown, where);
    side.special.end = require_mark(side, names_.end, where);
    return side;
  }

 private:
  const ModelFiles& files_;
  const ForeignObject& rules_;
  MarkNames names_;
};

void require_plain_settings(const ForeignObject& rules) {
  constexpr std::string_view kDrawn = "sp_model_kwargs";
  if (rules.has(kDrawn) && !rules.find(kDrawn)->object().empty()) {
    rules.refuse(kDrawn, "an empty object");
  }
  rules.require("split_special_tokens", false);
}

}  // namespace

ForeignVocabularies read_translator_vocabularies(const ModelFiles& files,
                                                 const TranslatorConfig& config,
                                                 const TranslationRules& rules) {
  const Json json = files.has(kRulesName) ? files.json(kRulesName) : Json(Json::Object{});
  const std::string where = files.path(kRulesName);
  return named_as_damaged(where, [&] {
    const ForeignObject said(json, where);
    require_plain_settings(said);
    const bool separate = said.flag("separate_vocabs", false);
    const VocabularyReader reader(files, said);
    SideVocabulary source =
        reader.read("source.spm", kVocabularyFile, config.vocabulary, AddedIds::kAsSaid);
    SideVocabulary target = separate ? reader.read("target.spm", kTargetVocabularyFile,
                                                   config.target_vocabulary, AddedIds::kByName)
                                     : reader.read("target.spm", kVocabularyFile,
                                                   config.target_vocabulary, AddedIds::kAsSaid);
    target.special.begin = rules.begin;
    target.special.end = rules.end;
    target.says_codes = true;
    for (const token id : rules.banned) target.never_written[static_cast<std::size_t>(id)] = true;
    return ForeignVocabularies{.of_source = std::make_unique<SideTokenizer>(std::move(source)),
                               .of_target = std::make_unique<SideTokenizer>(std::move(target)),
                               .cleans = said.flag("clean_up_tokenization_spaces", false)};
  });
}

std::string without_spare_blanks(std::string text) {
  constexpr std::pair<std::string_view, std::string_view> kRules[] = {
      {" .", "."},     {" ?", "?"},   {" !", "!"},   {" ,", ","},     {" ' ", "'"},
      {" n't", "n't"}, {" 'm", "'m"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : kRules) {
    std::string changed;
    std::size_t done = 0;
    for (std::size_t at = text.find(from); at != text.npos; at = text.find(from, done)) {
      changed.append(text, done, at - done).append(to);
      done = at + from.size();
    }
    changed.append(text, done);
    text = std::move(changed);
  }
  return text;
}

}  // namespace fovea

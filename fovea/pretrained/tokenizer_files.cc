// SPDX-License-Identifier: Apache-2.0
#include "fovea/pretrained/tokenizer_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "fovea/base/check.h"
#include "fovea/base/option.h"
#include "fovea/base/words.h"
#include "fovea/pretrained/foreign_json.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

// The regular expressions by which models cut a text, and the scanner that does what they say.
struct KnownPattern {
  std::string_view regex;
  PreSplit split;
};
constexpr std::string_view kGpt2Regex =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr KnownPattern kPatterns[] = {
    {kGpt2Regex, {.name = "gpt-2"}},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     {.name = "llama-bpe", .pattern = SplitPattern::kCl100k, .digits = 3}},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     {.name = "qwen2", .pattern = SplitPattern::kCl100k, .digits = 1}},
    {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     {.name = "o200k", .pattern = SplitPattern::kO200k, .digits = 3, .endings = true}},
    {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     {.name = "tekken", .pattern = SplitPattern::kO200k, .digits = 1}},
};

// ByteLevel, which cuts as GPT-2 does unless it stands behind another cut.
bool cuts(const ForeignObject& part) {
  part.require("type", "ByteLevel");
  part.ignore({"trim_offsets"});
  const bool cuts = part.flag("use_regex", true);
  part.refuse_others();
  return cuts;
}

PreSplit split_by_pattern(const ForeignObject& part) {
  part.require("behavior", "Isolated");
  part.require("invert", false);
  const std::string regex = part.object("pattern").text("Regex");
  part.refuse_others();
  for (const KnownPattern& known : kPatterns) {
    if (known.regex == regex) return known.split;
  }
  part.refuse("pattern", "the patterns of GPT-2, Llama 3, Qwen 2, GPT-4o and Mistral Nemo");
}

// Digits, each by itself, then the pattern of GPT-2; or one pattern; then bytes as letters.
PreSplit split_of_sequence(const ForeignObject& sequence) {
  const Json::Array& parts = sequence.array("pretokenizers");
  sequence.refuse_others();
  if (parts.size() != 2) sequence.refuse("pretokenizers", "two: a cut, and ByteLevel");
  const ForeignObject first(parts[0], sequence.where() + ": 0"),
      bytes(parts[1], sequence.where() + ": 1");
  bytes.require("add_prefix_space", false);
  const bool cuts_again = cuts(bytes);
  const std::string type = first.text("type");
  if (type == "Digits" && cuts_again) {
    if (!first.flag("individual_digits", false)) first.refuse("individual_digits", "true");
    first.refuse_others();
    return {.name = "smollm", .digits_apart = true};
  }
  if (type != "Split" || cuts_again)
    sequence.refuse("pretokenizers", "Digits or Split, and ByteLevel");
  return split_by_pattern(first);
}

void read_cuts(const ForeignObject& file, ByteBpeModel& model) {
  if (!file.has("pre_tokenizer")) file.refuse("pre_tokenizer", "ByteLevel");
  const ForeignObject part = file.object("pre_tokenizer");
  if (part.text("type") == "Sequence") {
    model.split = split_of_sequence(part);
    return;
  }
  model.prefix_space = part.flag("add_prefix_space", false);
  model.split = {.name = "gpt-2"};
  if (!cuts(part)) model.split = {.name = "whole", .pattern = SplitPattern::kNone};
}

// Marks by their names, as MarksAround has their ids.
struct MarkNames {
  std::vector<std::string> before{}, after{}, between{};
  bool typed = false;
};

constexpr std::size_t kMostMarks = 64;

// A piece of a template: a mark, or one of the texts A and B.
struct TemplatePiece {
  std::string name;
  bool is_text = false;
  std::int64_t type = 0;
};

std::optional<TemplatePiece> piece_of(const Json& json) {
  const auto* const object = json.get_if<Json::Object>();
  if (object == nullptr || object->size() != 1) return std::nullopt;
  const auto& [kind, inside] = object->front();
  if (inside.get_if<Json::Object>() == nullptr) return std::nullopt;
  const Json *const id = inside.find("id"), *const type = inside.find("type_id");
  const auto* const name = id == nullptr ? nullptr : id->get_if<std::string>();
  const auto* const number = type == nullptr ? nullptr : type->get_if<std::int64_t>();
  const bool is_text = kind == "Sequence";
  if (name == nullptr || number == nullptr || (!is_text && kind != "SpecialToken")) {
    return std::nullopt;
  }
  return TemplatePiece{*name, is_text, *number};
}

// The pieces of a pair, if it is one: marks, A, marks, B, marks; all before B of type 0, all from
// there on of one type.
std::vector<TemplatePiece> pieces_of_pair(const ForeignObject& part) {
  const Json* const pair = part.find("pair");
  const auto* const list = pair == nullptr ? nullptr : pair->get_if<Json::Array>();
  if (list == nullptr || list->size() > kMostMarks) return {};
  std::vector<TemplatePiece> pieces;
  std::string texts;
  std::int64_t type = 0;
  for (const Json& json : *list) {
    std::optional<TemplatePiece> piece = piece_of(json);
    if (!piece) return {};
    if (piece->is_text) {
      texts += piece->name;
      if (texts == "AB") type = piece->type;
    }
    if (piece->type != type) return {};
    pieces.push_back(std::move(*piece));
  }
  if (texts != "AB" || type < 0 || type > 1) pieces.clear();
  return pieces;
}

// What stands between the texts of "<s> $A </s> </s> $B </s>". Nothing of a pair that has other
// marks around its texts than one text has, or whose second type does not begin behind one mark
// that stands nowhere before: what reads no pairs need not know them.
void take_pair(const ForeignObject& part, MarkNames& names) {
  std::array<std::vector<std::string>, 3> groups;
  std::size_t texts = 0;
  bool typed = false;
  for (const TemplatePiece& piece : pieces_of_pair(part)) {
    if (piece.is_text) {
      ++texts;
    } else {
      groups[texts].push_back(piece.name);
    }
    typed = piece.type != 0;
  }
  if (texts != 2 || groups[0] != names.before || groups[2] != names.after) return;
  const bool is_one = groups[1].size() == 1 && !contains(names.before, groups[1][0]);
  if (typed && !is_one) return;
  names.between = std::move(groups[1]);
  names.typed = typed;
}

// Of "$A", "<s> $A" or "<s> $A </s>", each of type 0.
MarkNames marks_by_template(const ForeignObject& part) {
  part.ignore({"pair", "special_tokens"});
  if (part.array("single").size() > kMostMarks) part.refuse("single", "fewer marks");
  MarkNames names;
  bool seen = false;
  for (const Json& piece : part.array("single")) {
    const ForeignObject from(piece, part.where() + ": single");
    const bool is_text = from.has("Sequence");
    const ForeignObject one = from.object(is_text ? "Sequence" : "SpecialToken");
    from.refuse_others();
    one.require("type_id", 0);
    if (!is_text) {
      (seen ? names.after : names.before).push_back(one.text("id"));
      continue;
    }
    if (one.text("id") != "A" || seen) one.refuse("id", "one text, A");
    seen = true;
  }
  if (!seen) part.refuse("single", "one text, and marks");
  part.refuse_others();
  take_pair(part, names);
  return names;
}

std::string name_of_mark(const ForeignObject& part, std::string_view key) {
  const Json::Array& pair = part.array(key);
  const auto* const name = pair.size() == 2 ? pair[0].get_if<std::string>() : nullptr;
  if (name == nullptr) part.fail_value(key, "the name of a token and its id");
  return *name;
}

MarkNames marks_by(const ForeignObject& part) {
  const std::string type = part.text("type");
  if (type == "ByteLevel") return {};
  if (type == "TemplateProcessing") return marks_by_template(part);
  if (type != "RobertaProcessing") {
    part.refuse("type", "ByteLevel, TemplateProcessing and RobertaProcessing");
  }
  const std::string sep = name_of_mark(part, "sep");
  MarkNames names{{name_of_mark(part, "cls")}, {sep}, {sep, sep}};
  part.ignore({"trim_offsets", "add_prefix_space"});  // what is told of offsets
  part.refuse_others();
  return names;
}

MarkNames marks_of_bytes(const ForeignObject& file) {
  if (!file.has("post_processor")) return {};
  const ForeignObject part = file.object("post_processor");
  if (part.text("type") != "Sequence") return marks_by(part);
  MarkNames names;
  for (const Json& one : part.array("processors")) {
    MarkNames more = marks_by(ForeignObject(one, part.where()));
    if (!more.before.empty() || !more.after.empty()) names = std::move(more);
  }
  return names;
}

// A pair as "a b" or ["a", "b"].
std::string merge_of(const Json& pair, const std::string& where) {
  if (const auto* const text = pair.get_if<std::string>()) return *text;
  const auto* const two = pair.get_if<Json::Array>();
  if (two == nullptr || two->size() != 2) {
    fail(ErrorCode::kModelDamaged, "{}: merges: expected a pair of texts, got {}", where,
         pair.kind());
  }
  return (*two)[0].text() + " " + (*two)[1].text();
}

// The vocabulary under construction. Ids without a name are no tokens, and so many of them that the
// file could not mean it are refused before they take memory.
struct Names {
  ByteBpeModel& model;
  index most_ids;
  const std::string& where;
};

void add_name(const Names& names, index id, const std::string& name, BpeTokenKind kind) {
  auto& [model, most, where] = names;
  if (id < 0 || id >= most) {
    fail(ErrorCode::kModelDamaged, "{}: the id of {} is {}; expected 0 to {}", where,
         printable(name), id, most - 1);
  }
  const auto at = static_cast<std::size_t>(id);
  if (at >= model.names.size()) {
    model.names.resize(at + 1);
    model.kinds.resize(at + 1, BpeTokenKind::kUnused);
  }
  const bool is_free = model.kinds[at] == BpeTokenKind::kUnused || model.names[at] == name;
  if (!is_free) {
    fail(ErrorCode::kModelDamaged, "{}: id {} is {} and {}", where, id, printable(model.names[at]),
         printable(name));
  }
  model.names[at] = name;
  model.kinds[at] = kind;
}

void read_model(const ForeignObject& part, const Names& names) {
  ByteBpeModel& model = names.model;
  part.require("type", "BPE");
  part.require("byte_fallback", false);
  part.require("dropout", Json());
  for (const char* const key : {"continuing_subword_prefix", "end_of_word_suffix"})
    part.require(key, "");
  part.ignore({"unk_token", "fuse_unk"});  // every byte is known
  model.split.ignore_merges = part.flag("ignore_merges", false);
  for (const auto& [name, id] : part.find("vocab")->object()) {
    add_name(names, id.whole(), name, BpeTokenKind::kNormal);
  }
  for (const Json& pair : part.array("merges"))
    model.merges.push_back(merge_of(pair, part.where()));
  part.refuse_others();
  if (model.split.pattern == SplitPattern::kNone && !model.merges.empty()) {
    part.refuse("merges", "none without cuts (ByteLevel with use_regex false)");
  }
}

void read_added(const ForeignObject& file, const Names& names) {
  if (!file.has("added_tokens")) return;
  for (const Json& one : file.array("added_tokens")) {
    const ForeignObject added(one, file.where() + ": added_tokens");
    for (const char* const key : {"single_word", "rstrip"}) added.require(key, false);
    added.ignore({"normalized"});
    const BpeTokenKind kind =
        added.flag("special", false) ? BpeTokenKind::kControl : BpeTokenKind::kUserDefined;
    const index id = added.whole("id", 0, names.most_ids - 1);
    add_name(names, id, added.text("content"), kind);
    if (added.flag("lstrip", false)) names.model.takes_left.push_back(static_cast<token>(id));
    added.refuse_others();
  }
}

index most_ids(const ForeignObject& file) {
  const ForeignObject model = file.object("model");
  if (!model.has("vocab")) model.fail_value("vocab", "an object of names and ids");
  const auto named = static_cast<index>(model.find("vocab")->object().size());
  const index added = file.has("added_tokens") ? std::ssize(file.array("added_tokens")) : 0;
  return std::min(kMostTokens, 2 * (named + added) + 1024);
}

BpeOfJson read(const Json& json, const std::string& where) {
  const ForeignObject file(json, where);
  file.ignore({"version", "truncation", "padding", "decoder"});
  BpeOfJson result;
  ByteBpeModel& model = result.model;
  read_cuts(file, model);
  if (file.has("normalizer")) {
    file.object("normalizer").require("type", "NFC");
    model.nfc = true;
  }
  const Names names{model, most_ids(file), where};
  read_model(file.object("model"), names);
  read_added(file, names);
  std::ranges::sort(model.takes_left);
  const MarkNames marks = marks_of_bytes(file);
  file.refuse_others();
  for (std::size_t id = 0; id < model.names.size(); ++id) {
    if (model.kinds[id] == BpeTokenKind::kUnused) model.names[id] = fmt::format("[UNUSED{}]", id);
  }
  const auto id_of = [&](const std::string& mark) {
    const auto found = std::ranges::find(model.names, mark);
    if (found != model.names.end()) return static_cast<token>(found - model.names.begin());
    fail(ErrorCode::kModelDamaged, "{}: the mark {} around a text is no token", where,
         printable(mark));
  };
  for (const std::string& mark : marks.before) result.marks.before.push_back(id_of(mark));
  for (const std::string& mark : marks.after) result.marks.after.push_back(id_of(mark));
  const auto is_token = [&](const std::string& mark) { return contains(model.names, mark); };
  if (std::ranges::all_of(marks.between, is_token)) {
    for (const std::string& mark : marks.between) result.marks.between.push_back(id_of(mark));
    result.marks.typed = marks.typed;
  }
  return result;
}

}  // namespace

BpeOfJson bpe_of_json(const Json& json, const std::string& where) {
  return named_as_damaged(where, [&] { return read(json, where); });
}

namespace {

// The ids of a special token of a template.
void append_marks(const ForeignObject& processor, const std::string& name, index tokens,
                  std::vector<token>& ids) {
  const ForeignObject mark = processor.object("special_tokens").object(name);
  for (const Json& id : mark.array("ids")) {
    const auto* const number = id.get_if<std::int64_t>();
    if (number == nullptr || *number < 0 || *number >= tokens) {
      mark.fail_value("ids", "ids of tokens");
    }
    ids.push_back(static_cast<token>(*number));
  }
}

}  // namespace

MarksAround marks_of_template(const ForeignObject& processor, index tokens) {
  const MarkNames names = marks_by_template(processor);
  MarksAround marks{.typed = names.typed};
  const auto take = [&](const std::vector<std::string>& from, std::vector<token>& to) {
    for (const std::string& name : from) append_marks(processor, name, tokens, to);
  };
  take(names.before, marks.before);
  take(names.after, marks.after);
  try {
    take(names.between, marks.between);
  } catch (const Error&) {
    marks.between.clear();  // pairs cannot be read
    marks.typed = false;
  }
  return marks;
}

namespace {

constexpr index kMostCharacters = 1000;  // of a word: to cut it takes time with their square

[[noreturn]] void damaged(const std::string& message) {
  throw Error(ErrorCode::kModelDamaged, message, "get the model again");
}

// The names of the tokens in the order of their ids, which are 0, 1, ... without a gap.
std::vector<std::string> names_of(const ForeignObject& model, const Json& vocabulary) {
  const Json::Object& entries = vocabulary.object();
  std::vector<std::string> names(entries.size());
  std::vector<bool> seen(entries.size());
  for (const auto& [name, id] : entries) {
    const auto* const number = id.get_if<std::int64_t>();
    const bool fits = number != nullptr && *number >= 0 && *number < std::ssize(entries);
    if (!fits || seen[static_cast<std::size_t>(*number)]) {
      damaged(fmt::format("{}: vocab: {} has the id {}; expected each id below {} once",
                          model.where(), printable(name), excerpt(id.line()), entries.size()));
    }
    seen[static_cast<std::size_t>(*number)] = true;
    names[static_cast<std::size_t>(*number)] = name;
  }
  return names;
}

void read_model(const ForeignObject& file, WordPieceModel& model) {
  const ForeignObject from = file.object("model");
  if (from.text("type") != "WordPiece") from.refuse("type", "WordPiece here");
  model.unknown = from.text("unk_token");
  model.prefix = from.text("continuing_subword_prefix", "##");
  model.longest_word = from.whole("max_input_chars_per_word", 0, kMostCharacters, 100);
  const ForeignObject vocabulary = from.object("vocab");
  model.names = names_of(from, *from.find("vocab"));
  from.refuse_others();
}

void read_normalizer(const ForeignObject& file, WordPieceModel& model) {
  model.normalizer.reset();
  if (!file.has("normalizer")) return;
  const ForeignObject from = file.object("normalizer");
  if (from.text("type") != "BertNormalizer") from.refuse("type", "BertNormalizer");
  BertNormalizer rules;
  rules.clean = from.flag("clean_text");
  rules.cjk = from.flag("handle_chinese_chars");
  rules.lower = from.flag("lowercase");
  rules.accents = from.flag("strip_accents", rules.lower);
  from.refuse_others();
  model.normalizer = rules;
}

// Adds one that the vocabulary does not have behind it.
void add_token(WordPieceModel& model, AddedToken added, const std::string& where) {
  const auto size = static_cast<token>(model.names.size());
  if (added.id > size || added.id < 0) {
    damaged(fmt::format("{}: {} has the id {}, and there are {} tokens before it", where,
                        printable(added.text), added.id, size));
  }
  if (added.id == size) model.names.push_back(added.text);
  model.added.push_back(std::move(added));
}

void read_added(const ForeignObject& file, WordPieceModel& model) {
  if (!file.has("added_tokens")) return;
  std::vector<AddedToken> all;
  for (const Json& one : file.array("added_tokens")) {
    const ForeignObject from(one, file.where() + ": added_tokens");
    AddedToken added;
    added.text = from.text("content");
    added.id = static_cast<token>(from.whole("id", 0, kMostTokens));
    added.is_mark = from.flag("special", false);
    added.normalized = from.flag("normalized", !added.is_mark);
    added.takes_left = from.flag("lstrip", false);
    added.takes_right = from.flag("rstrip", false);
    from.require("single_word", false);
    from.refuse_others();
    all.push_back(std::move(added));
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
  for (AddedToken& added : all) add_token(model, std::move(added), file.where());
}

void read_pre_tokenizer(const ForeignObject& file) {
  const ForeignObject from = file.object("pre_tokenizer");
  if (from.text("type") != "BertPreTokenizer") from.refuse("type", "BertPreTokenizer");
  from.refuse_others();
}

void read_decoder(const ForeignObject& file, WordPieceModel& model) {
  if (!file.has("decoder")) return;
  const ForeignObject from = file.object("decoder");
  if (from.text("type") != "WordPiece") from.refuse("type", "WordPiece");
  from.require("prefix", model.prefix);
  model.tidies = from.flag("cleanup", true);
  from.refuse_others();
}

token bert_mark(const ForeignObject& processor, std::string_view key) {
  const Json::Array& pair = processor.array(key);
  const auto* const id = pair.size() == 2 ? pair[1].get_if<std::int64_t>() : nullptr;
  if (id == nullptr || *id < 0 || *id > kMostTokens) {
    processor.fail_value(key, "the name of a token and its id");
  }
  return static_cast<token>(*id);
}

void read_processor(const ForeignObject& file, WordPieceModel& model) {
  if (!file.has("post_processor")) return;
  const ForeignObject from = file.object("post_processor");
  const std::string type = from.text("type");
  if (type == "TemplateProcessing") {
    model.marks = marks_of_template(from, std::ssize(model.names));
    return;
  }
  if (type != "BertProcessing" && type != "RobertaProcessing") {
    from.refuse("type", "TemplateProcessing, BertProcessing and RobertaProcessing");
  }
  from.ignore({"trim_offsets", "add_prefix_space"});  // of RobertaProcessing: what offsets are told
  const token sep = bert_mark(from, "sep");
  model.marks = {
      .before = {bert_mark(from, "cls")}, .after = {sep}, .between = {sep}, .typed = true};
  if (type == "RobertaProcessing") {
    model.marks.between.push_back(sep);
    model.marks.typed = false;
  }
  from.refuse_others();
}

// The text of a mark, which may be an object with all that an added token has.
std::string mark_text(const ForeignObject* config, std::string_view key,
                      std::string_view otherwise) {
  const Json* const value = config == nullptr ? nullptr : config->find(key);
  if (value == nullptr) return std::string(otherwise);
  if (value->get_if<Json::Object>() == nullptr) return config->text(key);
  return config->object(key).text("content");
}

bool flag_of(const ForeignObject* config, std::string_view key, bool otherwise) {
  return config == nullptr ? otherwise : config->flag(key, otherwise);
}

}  // namespace

WordPieceModel wordpiece_from_json(const Json& json, const std::string& where) {
  const ForeignObject file(json, where);
  file.require("version", "1.0");
  file.ignore({"truncation", "padding"});
  WordPieceModel model;
  read_model(file, model);
  read_normalizer(file, model);
  read_added(file, model);
  read_pre_tokenizer(file);
  read_decoder(file, model);
  read_processor(file, model);
  file.refuse_others();
  return model;
}

WordPieceModel wordpiece_from_vocabulary(std::string_view text, const std::string& where,
                                         const ForeignObject* config) {
  WordPieceModel model;
  if (text.ends_with('\n')) text.remove_suffix(1);
  for (const std::string_view line : parts_between(text, '\n')) {
    model.names.emplace_back(line.ends_with('\r') ? line.substr(0, line.size() - 1) : line);
    if (std::ssize(model.names) > kMostTokens) damaged(where + ": too many tokens");
  }
  if (config != nullptr) {
    config->require("do_basic_tokenize", true);
    config->require("never_split", Json());
  }
  BertNormalizer& rules = *model.normalizer;
  rules.lower = flag_of(config, "do_lower_case", true);
  rules.cjk = flag_of(config, "tokenize_chinese_chars", true);
  rules.accents = flag_of(config, "strip_accents", rules.lower);
  model.unknown = mark_text(config, "unk_token", "[UNK]");
  const auto mark = [&](std::string_view key, std::string_view otherwise) {
    const std::string name = mark_text(config, key, otherwise);
    const auto found = std::find(model.names.begin(), model.names.end(), name);
    const auto id = static_cast<token>(found - model.names.begin());
    add_token(model, {.text = name, .id = id}, where);
    return id;
  };
  mark("pad_token", "[PAD]");
  mark("unk_token", "[UNK]");
  model.marks.before = {mark("cls_token", "[CLS]")};
  const token sep = mark("sep_token", "[SEP]");
  // MPNet puts two marks between the texts of a pair, and tells them apart by nothing else.
  const bool is_mpnet =
      config != nullptr && config->text("tokenizer_class", "").starts_with("MPNet");
  model.marks.after = {sep};
  model.marks.between.assign(is_mpnet ? 2 : 1, sep);
  model.marks.typed = !is_mpnet;
  mark("mask_token", "[MASK]");
  return model;
}

namespace {

// transformers lets tokenizer_config.json decide, `tokenizers` does not know it: who contradicts
// the other is an error.
void check_agreement(const ForeignObject& config, const WordPieceModel& model) {
  if (!model.normalizer) return;
  const std::pair<std::string_view, bool> said[] = {
      {"do_lower_case", model.normalizer->lower},
      {"tokenize_chinese_chars", model.normalizer->cjk},
      {"strip_accents", model.normalizer->accents}};
  for (const auto& [key, value] : said) {
    if (config.flag(key, value) != value) {
      config.fail_value(key, fmt::format("{}, as tokenizer.json says", value));
    }
  }
}

}  // namespace

WordPieceModel read_wordpiece(const ModelFiles& files) {
  constexpr std::string_view kWhole = "tokenizer.json", kWords = "vocab.txt",
                             kRules = "tokenizer_config.json";
  std::optional<Json> json;
  std::optional<ForeignObject> config;
  if (files.has(kRules)) {
    json = files.json(kRules);
    config.emplace(*json, files.path(kRules));
  }
  if (files.has(kWhole)) {
    WordPieceModel model = wordpiece_from_json(files.json(kWhole), files.path(kWhole));
    if (config) check_agreement(*config, model);
    return model;
  }
  if (!files.has(kWords)) {
    throw Error(ErrorCode::kModelMissing,
                fmt::format("{}: neither tokenizer.json nor vocab.txt is there", files.where()),
                "name a folder that transformers or sentence-transformers has saved");
  }
  return wordpiece_from_vocabulary(files.text(kWords), files.path(kWords),
                                   config ? &*config : nullptr);
}

}  // namespace fovea

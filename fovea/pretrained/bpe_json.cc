// SPDX-License-Identifier: Apache-2.0
#include "fovea/pretrained/bpe_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "fovea/base/check.h"
#include "fovea/base/option.h"
#include "fovea/base/words.h"
#include "fovea/pretrained/foreign_json.h"

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
};

// ByteLevel, which cuts as GPT-2 does unless it stands behind another cut.
bool cuts(const ForeignObject& part) {
  part.require("type", "ByteLevel");
  part.require("add_prefix_space", false);
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
  part.refuse("pattern", "the patterns of GPT-2, Llama 3 and Qwen 2");
}

// Digits, each by itself, then the pattern of GPT-2; or one pattern; then bytes as letters.
PreSplit split_of_sequence(const ForeignObject& sequence) {
  const Json::Array& parts = sequence.array("pretokenizers");
  sequence.refuse_others();
  if (parts.size() != 2) sequence.refuse("pretokenizers", "two: a cut, and ByteLevel");
  const ForeignObject first(parts[0], sequence.where() + ": 0"),
      bytes(parts[1], sequence.where() + ": 1");
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

PreSplit split_of(const ForeignObject& file) {
  if (!file.has("pre_tokenizer")) file.refuse("pre_tokenizer", "ByteLevel");
  const ForeignObject part = file.object("pre_tokenizer");
  if (part.text("type") == "Sequence") return split_of_sequence(part);
  if (cuts(part)) return {.name = "gpt-2"};
  return {.name = "whole", .pattern = SplitPattern::kNone};
}

// The mark that a template puts before a text: of "$A" or "<s> $A".
std::string mark_of_template(const ForeignObject& part) {
  part.ignore({"pair", "special_tokens"});
  const Json::Array& single = part.array("single");
  part.refuse_others();
  const auto is = [](const Json& one, const char* kind) { return one.find(kind) != nullptr; };
  if (single.size() == 1 && is(single[0], "Sequence")) return "";
  if (single.size() == 2 && is(single[0], "SpecialToken") && is(single[1], "Sequence")) {
    return single[0].at("SpecialToken").at("id").text();
  }
  part.refuse("single", "a text, or a mark and a text");
}

std::string mark_before_texts(const ForeignObject& file) {
  if (!file.has("post_processor")) return "";
  const ForeignObject part = file.object("post_processor");
  const std::string type = part.text("type");
  if (type == "ByteLevel") return "";
  if (type == "TemplateProcessing") return mark_of_template(part);
  if (type != "Sequence") file.refuse("post_processor", "ByteLevel and TemplateProcessing");
  std::string mark;
  for (const Json& one : part.array("processors")) {
    const ForeignObject inner(one, part.where());
    if (inner.text("type") == "ByteLevel") continue;
    if (inner.text("type") != "TemplateProcessing")
      part.refuse("processors", "ByteLevel and TemplateProcessing");
    mark = mark_of_template(inner);
  }
  return mark;
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
    for (const char* const key : {"single_word", "lstrip", "rstrip"}) added.require(key, false);
    added.ignore({"normalized"});
    const BpeTokenKind kind =
        added.flag("special", false) ? BpeTokenKind::kControl : BpeTokenKind::kUserDefined;
    add_name(names, added.whole("id", 0, names.most_ids - 1), added.text("content"), kind);
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
  model.split = split_of(file);
  if (file.has("normalizer")) {
    file.object("normalizer").require("type", "NFC");
    model.nfc = true;
  }
  const Names names{model, most_ids(file), where};
  read_model(file.object("model"), names);
  read_added(file, names);
  const std::string mark = mark_before_texts(file);
  file.refuse_others();
  for (std::size_t id = 0; id < model.names.size(); ++id) {
    if (model.kinds[id] == BpeTokenKind::kUnused) model.names[id] = fmt::format("[UNUSED{}]", id);
    if (!mark.empty() && model.names[id] == mark) result.begin = static_cast<token>(id);
  }
  if (!mark.empty() && result.begin == kNoToken) {
    fail(ErrorCode::kModelDamaged, "{}: the mark {} before a text is no token", where,
         printable(mark));
  }
  return result;
}

}  // namespace

BpeOfJson bpe_of_json(const Json& json, const std::string& where) {
  try {
    return read(json, where);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kConfig) throw;  // a value of another type
    throw error.with(ErrorCode::kModelDamaged, fmt::format("{}: {}", where, error.what()));
  }
}

}  // namespace fovea

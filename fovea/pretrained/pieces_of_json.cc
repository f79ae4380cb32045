// SPDX-License-Identifier: Apache-2.0
#include "fovea/pretrained/pieces_of_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/base/words.h"
#include "fovea/pretrained/tokenizer_files.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

constexpr std::size_t kMostSteps = 16;  // of a normalizer or decoder: each reads the whole text

// Calls f for each part of a Sequence, or for the part that stands alone.
template <class F>
void for_parts(const ForeignObject& part, std::string_view list, const F& f) {
  if (part.text("type") != "Sequence") return f(part);
  const Json::Array& parts = part.array(list);
  part.refuse_others();
  if (parts.size() > kMostSteps) part.refuse(list, fmt::format("up to {}", kMostSteps));
  for (std::size_t n = 0; n < parts.size(); ++n) {
    f(ForeignObject(parts[n], fmt::format("{}: {}", part.where(), n)));
  }
}

// ---------------------------------------------------------------------------------- rules of text

// X of the regular expression " ?X ?"; empty for any other.
std::string between_blanks(std::string_view regex) {
  constexpr std::string_view kBlank = " ?";
  if (regex.size() <= 2 * kBlank.size() || !regex.starts_with(kBlank) || !regex.ends_with(kBlank)) {
    return {};
  }
  regex = regex.substr(kBlank.size(), regex.size() - 2 * kBlank.size());
  return regex.find_first_of(".^$*+?()[]{}|\\ ") == regex.npos ? std::string(regex) : "";
}

TextRule replacement(const ForeignObject& from) {
  const ForeignObject pattern = from.object("pattern");
  std::string content = from.text("content");
  from.refuse_others();
  if (!pattern.has("Regex")) {
    std::string text = pattern.text("String");
    pattern.refuse_others();
    return text_rule::replace(std::move(text), std::move(content));
  }
  const std::string regex = pattern.text("Regex");
  pattern.refuse_others();
  if (regex == " {2,}") return text_rule::replace_runs(std::move(content));
  if (regex == "^ | $") return text_rule::replace_at_ends(std::move(content));
  if (std::string text = between_blanks(regex); !text.empty()) {
    return text_rule::replace_with_blanks(std::move(text), std::move(content));
  }
  pattern.refuse("Regex", "the patterns \" {2,}\", \"^ | $\" and \" ?X ?\"");
}

TextRule charsmap_rule(const ForeignObject& from) {
  const std::string text = from.text("precompiled_charsmap", "");
  const auto bytes = bytes_of_base64(text);
  from.refuse_others();
  if (!bytes) from.fail_value("precompiled_charsmap", "bytes in base64");
  return text_rule::precompiled(*bytes, from.where());
}

TextRule strip_rule(const ForeignObject& from) {
  const bool left = from.flag("strip_left"), right = from.flag("strip_right");
  from.refuse_others();
  if (!left && !right) from.refuse("strip_left", "true, or a strip_right that is true");
  return text_rule::strip(!right ? text_rule::Ends::kLeft
                          : left ? text_rule::Ends::kBoth
                                 : text_rule::Ends::kRight);
}

TextRule rule_of(const ForeignObject& from) {
  const std::string type = from.text("type");
  if (type == "Replace") return replacement(from);
  if (type == "Precompiled") return charsmap_rule(from);
  if (type == "Strip") return strip_rule(from);
  if (type == "Prepend") {
    std::string text = from.text("prepend");
    from.refuse_others();
    return text_rule::prepend(std::move(text));
  }
  if (type != "NFC") from.refuse("type", "NFC, Precompiled, Prepend, Replace and Strip");
  from.refuse_others();
  return text_rule::compose();
}

// A rule after which the first character of a text is still there.
bool keeps_front(const ForeignObject& rule) {
  const std::string type = rule.text("type");
  return type == "Prepend" || type == "NFC" ||
         (type == "Replace" && !rule.object("pattern").has("Regex") &&
          !rule.text("content").empty());
}

// Whether all rules keep the front of a text.
bool read_rules(const ForeignObject& file, PiecePipelineModel& model) {
  if (!file.has("normalizer")) return true;
  bool all = true;
  for_parts(file.object("normalizer"), "normalizers", [&](const ForeignObject& part) {
    all &= keeps_front(part);
    model.rules.push_back(rule_of(part));
  });
  return all;
}

// ------------------------------------------------------------------------------------------- cuts

PrependBlank prepends(const ForeignObject& from) {
  const std::string scheme = from.text("prepend_scheme", "always");
  if (scheme != "always" && scheme != "first" && scheme != "never") {
    from.refuse("prepend_scheme", "always, first and never");
  }
  // How older files say it.
  if (from.has("add_prefix_space") && from.flag("add_prefix_space") != (scheme != "never")) {
    from.refuse("add_prefix_space", "what prepend_scheme says");
  }
  return scheme == "always"  ? PrependBlank::kAlways
         : scheme == "first" ? PrependBlank::kFirst
                             : PrependBlank::kNever;
}

std::string symbol(const ForeignObject& from) {
  std::string text = from.text("replacement");
  if (count_characters(text) != 1) from.fail_value("replacement", "one character");
  return text;
}

Metaspace metaspace(const ForeignObject& from) {
  Metaspace blanks{.symbol = symbol(from), .prepend = prepends(from)};
  blanks.cuts = from.flag("split", true);
  from.ignore({"str_rep"});
  from.refuse_others();
  return blanks;
}

void read_cuts(const ForeignObject& file, PiecePipelineModel& model, bool keeps_front) {
  if (!file.has("pre_tokenizer")) return;
  PieceCuts& cuts = model.cuts;
  for_parts(file.object("pre_tokenizer"), "pretokenizers", [&](const ForeignObject& part) {
    const std::string type = part.text("type");
    const bool is_first = !cuts.at_white_space && !cuts.blanks && cuts.behind.empty();
    if (type == "WhitespaceSplit" && is_first) {
      part.refuse_others();
      cuts.at_white_space = true;
    } else if (type == "Split" && is_first) {
      part.require("behavior", "MergedWithPrevious");
      part.require("invert", false);
      cuts.behind = part.object("pattern").text("String");
      part.refuse_others();
    } else if (type == "Metaspace" && !cuts.blanks) {
      cuts.blanks = metaspace(part);
      if (cuts.blanks->prepend == PrependBlank::kFirst && !keeps_front) {
        part.refuse("prepend_scheme", "first behind rules that leave out no character");
      }
    } else {
      part.refuse("type", "Metaspace, alone or behind WhitespaceSplit or a Split behind each text");
    }
  });
}

// ------------------------------------------------------------------------------------- vocabulary

using Names = std::vector<std::string>;

// Ids without a name are no tokens; so many of them that the file could not mean it are refused
// before they take memory.
void set_name(Names& names, index id, const std::string& name, index most,
              const std::string& where) {
  if (id < 0 || id >= most) {
    fail(ErrorCode::kModelDamaged, "{}: the id of {} is {}; expected 0 to {}", where,
         printable(name), id, most - 1);
  }
  const auto at = static_cast<std::size_t>(id);
  if (at >= names.size()) names.resize(at + 1);
  if (!names[at].empty() && names[at] != name) {
    fail(ErrorCode::kModelDamaged, "{}: id {} is {} and {}", where, id, printable(names[at]),
         printable(name));
  }
  names[at] = name;
}

index most_ids(const ForeignObject& file, std::size_t named) {
  const index added = file.has("added_tokens") ? std::ssize(file.array("added_tokens")) : 0;
  return std::min(kMostTokens, 2 * (static_cast<index>(named) + added) + 1024);
}

// A pair as "a b" or ["a", "b"].
std::array<std::string, 2> merge_of(const Json& pair, const std::string& where) {
  if (const auto* const two = pair.get_if<Json::Array>(); two != nullptr && two->size() == 2) {
    return {(*two)[0].text(), (*two)[1].text()};
  }
  if (const auto* const text = pair.get_if<std::string>()) {
    const std::size_t blank = text->find(' ');
    if (blank != text->npos) return {text->substr(0, blank), text->substr(blank + 1)};
  }
  fail(ErrorCode::kModelDamaged, "{}: merges: expected a pair of texts, got {}", where,
       excerpt(pair.line()));
}

void read_bpe(const ForeignObject& file, const ForeignObject& from, PiecePipelineModel& model) {
  from.require("dropout", Json());
  for (const char* const key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    from.require(key, "");
  }
  model.byte_fallback = from.flag("byte_fallback", false);
  PieceMerges merges;
  merges.fuses_unknown = from.flag("fuse_unk", false);
  merges.ignores_merges = from.flag("ignore_merges", false);
  const std::string unknown = from.text("unk_token", "");
  if (!from.has("vocab")) from.fail_value("vocab", "an object of names and ids");
  const Json::Object& entries = from.find("vocab")->object();
  for (const auto& [name, id] : entries) {
    set_name(model.names, id.whole(), name, most_ids(file, entries.size()), from.where());
    if (!unknown.empty() && name == unknown) model.unknown = static_cast<token>(id.whole());
  }
  if (!unknown.empty() && model.unknown == kNoToken) {
    from.fail_value("unk_token", "a token of the vocabulary");
  }
  for (const Json& pair : from.array("merges")) {
    merges.pairs.push_back(merge_of(pair, from.where()));
  }
  model.pieces = std::move(merges);
}

// `tokenizers` reads the digits of a number as a whole one and divides it by a power of ten, which
// may round once more than the nearest double. Where two cuts of a text have the same pieces in
// another order, the last bit of their sums decides between them.
double score_as_tokenizers_reads(double nearest) {
  if (!std::isfinite(nearest)) return nearest;
  const std::string text = fmt::format("{}", std::abs(nearest));  // the shortest that is read back
  std::uint64_t digits = 0;
  int exponent = 0;
  bool behind_point = false;
  for (const char& c : text) {
    if (c == 'e') {
      exponent += std::stoi(text.substr(static_cast<std::size_t>(&c - text.data()) + 1));
      break;
    }
    behind_point |= c == '.';
    if (c == '.') continue;
    digits = 10 * digits + static_cast<std::uint64_t>(c - '0');
    exponent -= behind_point ? 1 : 0;
  }
  constexpr int kMostExact = 300;  // powers of ten that are read in one step
  if (std::abs(exponent) > kMostExact) return nearest;
  const double power = std::stod(fmt::format("1e{}", std::abs(exponent)));
  const auto whole = static_cast<double>(digits);
  return std::copysign(exponent < 0 ? whole / power : whole * power, nearest);
}

void read_unigram(const ForeignObject& from, PiecePipelineModel& model) {
  model.byte_fallback = from.flag("byte_fallback", false);
  PieceScores pieces;
  const Json::Array& entries = from.array("vocab");
  if (std::ssize(entries) > kMostTokens) from.fail_value("vocab", "fewer tokens");
  for (const Json& entry : entries) {
    const auto* const two = entry.get_if<Json::Array>();
    if (two == nullptr || two->size() != 2) from.fail_value("vocab", "pairs of a text and a score");
    model.names.push_back((*two)[0].text());
    pieces.scores.push_back(score_as_tokenizers_reads((*two)[1].number()));
  }
  model.unknown = static_cast<token>(from.whole("unk_id", 0, std::ssize(entries) - 1));
  model.pieces = std::move(pieces);
}

void read_added(const ForeignObject& file, PiecePipelineModel& model) {
  if (!file.has("added_tokens")) return;
  const index most = most_ids(file, model.names.size());
  for (const Json& one : file.array("added_tokens")) {
    const ForeignObject from(one, file.where() + ": added_tokens");
    AddedToken added;
    added.text = from.text("content");
    added.id = static_cast<token>(from.whole("id", 0, most - 1));
    added.is_mark = from.flag("special", false);
    added.normalized = from.flag("normalized", !added.is_mark);
    added.takes_left = from.flag("lstrip", false);
    added.takes_right = from.flag("rstrip", false);
    from.require("single_word", false);
    from.refuse_others();
    set_name(model.names, added.id, added.text, most, file.where());
    model.added.push_back(std::move(added));
  }
}

// ---------------------------------------------------------------------------------------- decoder

DecodeStep step_of(const ForeignObject& from) {
  using Kind = DecodeStep::Kind;
  const std::string type = from.text("type");
  DecodeStep step{};
  if (type == "Replace") {
    step = {.kind = Kind::kReplace,
            .from = from.object("pattern").text("String"),
            .to = from.text("content")};
  } else if (type == "ByteFallback") {
    step.kind = Kind::kBytes;
  } else if (type == "Fuse") {
    step.kind = Kind::kFuse;
  } else if (type == "Strip") {
    constexpr index kMost = 1000;
    step = {.kind = Kind::kStrip, .from = from.text("content")};
    step.left = from.whole("start", 0, kMost);
    step.right = from.whole("stop", 0, kMost);
    if (count_characters(step.from) != 1) from.fail_value("content", "one character");
  } else if (type == "Metaspace") {
    step = {.kind = Kind::kMetaspace, .from = symbol(from), .to = " "};
    step.drops = prepends(from) != PrependBlank::kNever;
    from.ignore({"split", "str_rep"});
  } else {
    from.refuse("type", "ByteFallback, Fuse, Metaspace, Replace and Strip");
  }
  from.refuse_others();
  return step;
}

void read_decoder(const ForeignObject& file, PiecePipelineModel& model) {
  model.separates = !file.has("decoder");
  if (model.separates) return;
  for_parts(file.object("decoder"), "decoders",
            [&](const ForeignObject& part) { model.decoder.push_back(step_of(part)); });
}

PiecesOfJson read(const Json& json, const std::string& where) {
  const ForeignObject file(json, where);
  file.ignore({"version", "truncation", "padding"});
  PiecesOfJson pieces;
  PiecePipelineModel& model = pieces.model;
  const ForeignObject from = file.object("model");
  if (from.text("type") == "Unigram") {
    read_unigram(from, model);
  } else {
    from.require("type", "BPE");
    read_bpe(file, from, model);
  }
  from.refuse_others();
  read_added(file, model);
  read_cuts(file, model, read_rules(file, model));
  read_decoder(file, model);
  if (file.has("post_processor")) {
    const ForeignObject marks = file.object("post_processor");
    if (marks.text("type") != "TemplateProcessing") marks.refuse("type", "TemplateProcessing");
    pieces.marks = marks_of_template(marks, std::ssize(model.names));
  }
  file.refuse_others();
  return pieces;
}

}  // namespace

bool has_pieces(const Json& json, const std::string& where) {
  const ForeignObject file(json, where);
  if (file.object("model").text("type") == "Unigram") return true;
  if (!file.has("pre_tokenizer"))
    return !file.has("decoder") || file.object("decoder").text("type") != "ByteLevel";
  const ForeignObject cuts = file.object("pre_tokenizer");
  bool has_letters = cuts.text("type") == "ByteLevel";
  if (const Json* const parts = cuts.find("pretokenizers"); parts != nullptr) {
    for (const Json& part : parts->array()) {
      const Json* const type = part.find("type");
      has_letters |= type != nullptr && type->line() == "\"ByteLevel\"";
    }
  }
  return !has_letters;
}

PiecesOfJson pieces_of_json(const Json& json, const std::string& where) {
  return named_as_damaged(where, [&] { return read(json, where); });
}

}  // namespace fovea

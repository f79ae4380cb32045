// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/tag/tag_set.h"

#include <algorithm>
#include <array>
#include <utility>

#include "fovea/data/label_set.h"
#include "fovea/text/words.h"

namespace fovea {

namespace {

std::vector<TagPart> parts_of(TagScheme scheme) {
  using enum TagPart;
  const bool ends = scheme == TagScheme::kBioes || scheme == TagScheme::kBmes;
  return ends ? std::vector{kBegin, kInside, kEnd, kSingle} : std::vector{kBegin, kInside};
}

token only_token(const Tokenizer& tokenizer, const std::string& text) {
  const std::vector<token> ids = tokenizer.encode(text, "word");
  return ids.size() == 1 ? ids[0] : tokenizer.special().unknown;
}

}  // namespace

TagSet::TagSet(std::vector<std::string> names, std::optional<TagScheme> scheme)
    : names_(std::move(names)), scheme_(scheme) {
  for (std::size_t k = 0; k < names_.size(); ++k) {
    numbers_.emplace(names_[k], static_cast<std::int32_t>(k));
    if (scheme_) parsed_.push_back(parse_tag(names_[k], *scheme_, types_));
  }
}

std::int32_t TagSet::find(const std::string& name) const {
  const auto found = numbers_.find(name);
  return found == numbers_.end() ? -1 : found->second;
}

CrfRules TagSet::rules() const {
  if (!scheme_) return {};
  TagRules rules = rules_of(parsed_, *scheme_);
  return {std::move(rules.transitions), std::move(rules.start), std::move(rules.end)};
}

std::vector<CrfRules> crf_rules(const TaggerConfig& config, std::span<const TagSet> columns) {
  std::vector<CrfRules> rules(columns.size());
  for (std::size_t c = 0; c < columns.size(); ++c) {
    if (head_of(config, c) == TagHead::kCrf) rules[c] = columns[c].rules();
  }
  return rules;
}

namespace {

constexpr std::pair<SchemeChoice, TagScheme> kChosenSchemes[] = {
    {SchemeChoice::kIob1, TagScheme::kIob1},
    {SchemeChoice::kBio, TagScheme::kBio},
    {SchemeChoice::kBioes, TagScheme::kBioes},
    {SchemeChoice::kBmes, TagScheme::kBmes}};

}  // namespace

std::optional<TagScheme> scheme_of(SchemeChoice choice) {
  for (const auto& [chosen, scheme] : kChosenSchemes) {
    if (chosen == choice) return scheme;
  }
  return std::nullopt;
}

SchemeChoice choice_of(const std::optional<TagScheme>& scheme) {
  for (const auto& [choice, chosen] : kChosenSchemes) {
    if (chosen == scheme) return choice;
  }
  return SchemeChoice::kNone;
}

std::optional<TagScheme> find_scheme(std::span<const std::string> names) {
  const bool marks =
      std::any_of(names.begin(), names.end(), [](const std::string& name) { return name != "O"; });
  if (!marks) return std::nullopt;
  for (const TagScheme scheme : {TagScheme::kBio, TagScheme::kBioes, TagScheme::kBmes}) {
    const bool all = std::all_of(names.begin(), names.end(),
                                 [&](const std::string& name) { return is_tag(name, scheme); });
    if (all) return scheme;
  }
  return std::nullopt;
}

std::vector<std::string> complete_tags(std::vector<std::string> names,
                                       const std::optional<TagScheme>& scheme) {
  if (scheme) {
    TagTypes types;
    std::vector<std::string> all;
    for (const std::string& name : names) {
      if (parse_tag(name, *scheme, types).part == TagPart::kOutside) all.push_back(name);
    }
    for (index type = 0; type < types.size(); ++type) {
      for (const TagPart part : parts_of(*scheme)) {
        all.push_back(tag_name({part, static_cast<std::int32_t>(type)}, *scheme, types));
      }
    }
    names = std::move(all);
  }
  return LabelSet(std::move(names)).names();
}

token TaggerVocabulary::word(const std::string& text) const { return only_token(*words, text); }

bool TaggerVocabulary::knows(const std::string& text) const {
  return only_token(*known, text) != known->special().unknown;
}

void append(TaggedWords& all, const TaggerVocabulary& vocabulary,
            std::span<const std::string> words, std::span<const std::vector<std::int32_t>> tags) {
  for (const std::string& word : words) {
    all.words.push_back(vocabulary.word(word));
    all.shapes.push_back(word_shape(word));
    if (vocabulary.characters) {
      const auto begin = static_cast<index>(all.characters.size());
      vocabulary.characters->append_tokens(all.characters, word, "word");
      cut_middle(all.characters, begin);
    }
    all.character_starts.push_back(static_cast<index>(all.characters.size()));
  }
  all.tags.resize(tags.size());
  for (std::size_t c = 0; c < tags.size(); ++c) {
    all.tags[c].insert(all.tags[c].end(), tags[c].begin(), tags[c].end());
  }
  all.starts.push_back(static_cast<index>(all.words.size()));
}

std::vector<WordRange> pieces_of(index length, index most) {
  std::vector<WordRange> pieces;
  for (index begin = 0; begin < length; begin += most) {
    pieces.push_back({begin, std::min(length, begin + most)});
  }
  return pieces;
}

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
// A tagger in memory that knows nothing.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fovea/task/tag/tagger.h"

namespace fovea {

inline LoadedTagger untrained_tagger(const std::string& encoder,
                                     std::vector<std::string> tags = {"B-x", "I-x", "O"},
                                     TagScheme scheme = TagScheme::kBio) {
  LoadedTagger loaded;
  const auto learn = [](std::string_view kind, const char* text) {
    return tokenizer_kind(kind).make(
        tokenizer_kind(kind).learn(text, "text", {.marks = false, .min_count = 1}));
  };
  loaded.vocabulary.words = learn("word", "ada saw 1 2 3 4");
  loaded.vocabulary.characters = learn("char", "ads123");
  loaded.tags = {TagSet(std::move(tags), scheme)};
  TaggerSettings& settings = loaded.settings;
  settings.text.max_length = 20;
  settings.text.scheme = {choice_of(scheme)};
  TaggerConfig& model = settings.model;
  model.encoder = encoder;
  model.width = 16;
  model.heads = 2;
  model.block = 20;
  model.tags = {loaded.tags[0].size()};
  model.vocabulary = loaded.vocabulary.words->vocabulary_size();
  model.characters = loaded.vocabulary.characters->vocabulary_size();
  loaded.model = std::make_unique<Tagger>(model, crf_rules(model, loaded.tags), 3);
  return loaded;
}

/// The same with a second column of tags, which mark nothing and have a softmax.
inline LoadedTagger untrained_two_columns(const std::string& encoder) {
  LoadedTagger loaded = untrained_tagger(encoder);
  loaded.tags.emplace_back(std::vector<std::string>{"NOUN", "VERB"}, std::nullopt);
  TaggerSettings& settings = loaded.settings;
  settings.text.table.tag_column = {3, 2};
  settings.text.scheme.push_back(SchemeChoice::kNone);
  settings.model.tags.push_back(2);
  settings.model.head = {TagHead::kCrf, TagHead::kSoftmax};
  loaded.model =
      std::make_unique<Tagger>(settings.model, crf_rules(settings.model, loaded.tags), 3);
  return loaded;
}

}  // namespace fovea

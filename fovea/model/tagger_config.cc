// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/tagger_config.h"

#include <numeric>

#include "fovea/base/option.h"
#include "fovea/config/field.h"
#include "fovea/model/tagger.h"

namespace fovea {

namespace {

constexpr index kUsualBuckets = 100000;
constexpr index kUsualLinearBuckets = index{1} << 18;

void resolve_characters(TaggerConfig& c) {
  if (c.character_reader == CharacterReader::kNone) {
    c.character_width = c.character_features = 0;
    if (!c.linear) c.characters = 0;
    return;
  }
  check_size("character_width", c.character_width, 1);
  check_size("character_features", c.character_features, 1);
  check_size("characters", c.characters, 1);
  if (c.character_reader != CharacterReader::kBilstm) return;
  require_option(c.character_features % 2 == 0, "character_features", c.character_features,
                 "even with --character-reader bilstm, whose directions have half of it each");
}

void resolve_ngrams(TaggerConfig& c) {
  if (c.ngram_width == 0) return;
  if (c.buckets == 0) c.buckets = kUsualBuckets;
  check_size("buckets", c.buckets, 1);
}

void resolve_linear(TaggerConfig& c) {
  if (!c.linear) return;
  if (c.linear_buckets == 0) c.linear_buckets = kUsualLinearBuckets;
  check_size("linear_buckets", c.linear_buckets, 2);
}

}  // namespace

TaggerConfig resolve(TaggerConfig c) {
  check_ranges(c);
  resolve_characters(c);
  resolve_ngrams(c);
  resolve_linear(c);
  c.features = c.word_width + c.character_features + c.shape_width + c.ngram_width;
  require_option(c.features > 0 || c.linear, "word_width", c.word_width,
                 "above 0 where nothing else describes a word: no characters, shapes or n-grams");
  check_size("features", c.features, 0);
  if (c.features == 0 && !c.encoder.empty()) {
    throw Error(
        ErrorCode::kOptionValue,
        fmt::format("--encoder: {} has nothing to read: only --linear describes a word", c.encoder),
        "leave the encoder out: --encoder \"\"");
  }
  resolve_encoder(c);
  require_one_or_each("--head", c.head.size(), c.tags.size());
  check_stages(c, sized_stages(c));
  return c;
}

std::vector<SizedStage> sized_stages(const TaggerConfig& c) {
  if (c.encoder.empty()) return {};
  return size_stages(c, parse_encoder(c.encoder));
}

void require_one_or_each(std::string_view option, std::size_t given, std::size_t columns) {
  if (columns > 0 && (given == 1 || given == columns)) return;
  throw Error(ErrorCode::kOptionValue,
              fmt::format("{}: expected one for all tag columns, or one for each of the {}, got {}",
                          option, columns, given),
              "name as many, with commas, as --tag-column (of CoNLL-U --column) names columns");
}

index tag_count(const TaggerConfig& c) {
  return std::accumulate(c.tags.begin(), c.tags.end(), index{0});
}

index parameter_count(const TaggerConfig& config) {
  ParameterSet shapes({.memory = ParameterMemory::kShapesOnly});
  const TaggerLayers layers(resolve(config), {}, ParameterScope(shapes));
  return shapes.size();
}

index frozen_count(const TaggerConfig& c) {
  return c.freeze_embeddings ? c.vocabulary * c.word_width : 0;
}

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/classifier_config.h"

#include "fovea/base/option.h"
#include "fovea/config/field.h"
#include "fovea/model/classifier_layers.h"
#include "fovea/model/ngram_ids.h"

namespace fovea {

namespace {

void check_classes(const ClassifierConfig& c) {
  if (c.task == ClassifierTask::kBinary) {
    require_option(c.classes == 2, "classes", c.classes, "2, as --task binary has");
    return;
  }
  check_size("classes", c.classes, c.task == ClassifierTask::kSingleLabel ? 2 : 1);
}

void resolve_ngrams(ClassifierConfig& c) {
  constexpr index kUsualLength = 2, kUsualWidth = 16, kUsualBuckets = 500000;
  const bool is_bag = c.encoder.empty() && c.features == 0;
  if (c.ngrams == 0) c.ngrams = is_bag ? kUsualLength : 1;
  check_size("ngrams", c.ngrams, 1, kLongestNgram);
  require_option(c.features == 0 || c.ngrams == 1,
                 Hint{"leave --ngrams out: numbers have no tokens"}, "ngrams", c.ngrams,
                 "1 with --input npz");
  if (c.ngrams == 1) {
    require_option(c.ngram_width == 0, Hint{"leave it out, or add --ngrams 2"}, "ngram_width",
                   c.ngram_width, "0 without --ngrams");
    require_option(c.buckets == 0, Hint{"leave it out, or add --ngrams 2"}, "buckets", c.buckets,
                   "0 without --ngrams");
    return;
  }
  if (c.ngram_width == 0) c.ngram_width = kUsualWidth;
  if (c.buckets == 0) c.buckets = kUsualBuckets;
  check_size("ngram_width", c.ngram_width, 1);
  check_size("buckets", c.buckets, 1);
}

// The separator of pairs is a token that no text has.
void check_pairs(const ClassifierConfig& c) {
  if (c.pair_encoder == PairEncoder::kNone) return;
  check(c.features == 0, "classifier: rows of numbers are no pairs of texts");
  check_size("vocabulary", c.vocabulary, 2);
}

void resolve_kind(ClassifierConfig& c) {
  using enum ClassifierModel;
  if (c.kind == kAuto) c.kind = c.encoder.empty() ? kBag : kEncoder;
  if (c.kind == kEncoder && c.encoder.empty()) {
    fail_option("model", "encoder", "a model without --encoder", ErrorCode::kOptionValue,
                Hint{"name its layers, such as --encoder conv3"});
  }
  if (c.kind != kEncoder && !c.encoder.empty()) {
    fail_option("model", to_string(c.kind), "encoder, as --encoder needs", ErrorCode::kOptionValue,
                Hint{"leave --encoder or --model out"});
  }
}

// Maxima over time are a part of a TextCNN.
void resolve_pooling(ClassifierConfig& c, const std::vector<SizedStage>& stages) {
  if (!ends_with_text_cnn(stages)) return;
  if (c.pooling != PoolingKind::kMean && c.pooling != PoolingKind::kMax) {
    throw Error(ErrorCode::kOptionValue,
                fmt::format("--pooling {}: textcnn in --encoder takes the maximum over time",
                            to_string(c.pooling)),
                "leave --pooling out");
  }
  c.pooling = PoolingKind::kMax;
}

}  // namespace

ClassifierConfig resolve(ClassifierConfig c) {
  check_ranges(c);
  resolve_kind(c);
  if (c.kind == ClassifierModel::kLinear) {
    check_classes(c);
    return c;
  }
  resolve_encoder(c);
  resolve_ngrams(c);
  check_classes(c);
  check_pairs(c);
  const std::vector<SizedStage> stages = sized_stages(c);
  check_stages(c, stages);
  resolve_pooling(c, stages);
  return c;
}

std::vector<SizedStage> sized_stages(const ClassifierConfig& c) {
  if (c.encoder.empty()) return {};
  return size_stages(c, parse_encoder(c.encoder));
}

std::int32_t pair_separator(const ClassifierConfig& c) {
  return c.pair_encoder == PairEncoder::kNone ? -1 : static_cast<std::int32_t>(c.vocabulary - 1);
}

index parameter_count(const ClassifierConfig& config) {
  ParameterSet shapes({.memory = ParameterMemory::kShapesOnly});
  const ClassifierLayers layers(resolve(config), ParameterScope(shapes));
  return shapes.size();
}

index frozen_count(const ClassifierConfig& c) {
  return c.freeze_embeddings ? c.vocabulary * c.width : 0;
}

}  // namespace fovea

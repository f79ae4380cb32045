// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/classify/settings.h"

#include <algorithm>
#include <optional>

#include "fovea/base/check.h"
#include "fovea/base/option.h"
#include "fovea/base/words.h"
#include "fovea/config/field.h"
#include "fovea/linear/decide.h"
#include "fovea/task/classify/search.h"
#include "fovea/task/setting_parts.h"
#include "fovea/text/tokenizer.h"

namespace fovea {

namespace {

void check_task(const ClassifierTextOptions& text) {
  using enum ClassifierMetric;
  require_together(!text.multi_label || !text.regression, "--multi-label, --regression",
                   "a text has labels or a number, not both", "leave one of them out");
  const bool of_numbers = text.metric == kRmse || text.metric == kPearson;
  const bool of_classes =
      text.metric == kAccuracy || text.metric == kMacroF1 || text.metric == kMicroF1;
  const std::string metric = fmt::format("--metric {}", to_string(text.metric));
  require_together(!of_numbers || text.regression, metric, "measured with --regression only",
                   "choose accuracy, macro-f1, micro-f1 or loss");
  require_together(!of_classes || !text.regression, metric, "not measured with --regression",
                   "choose rmse, pearson or loss");
  require_together(text.metric != kAccuracy || !text.multi_label, metric,
                   "not measured with --multi-label", "choose micro-f1, macro-f1 or loss");
  require_together(text.class_weights == "none" || !text.regression,
                   "--class-weights, --regression", "numbers have no classes",
                   "leave --class-weights out");
  require_together(text.label_smoothing == 0 || !text.regression, "--label-smoothing, --regression",
                   "numbers have no classes", "leave --label-smoothing out");
}

void check_pairs(const ClassifierSettings& s) {
  const bool pairs = s.text.input == InputKind::kPairs;
  require_together(!pairs || s.model.pair_encoder != PairEncoder::kNone, "--pair-encoder none",
                   "pairs are read by one or the other", "choose bi or cross");
  require_together(s.text.max_length == 0 || s.text.max_length >= fewest_tokens(s.text.input),
                   fmt::format("--max-length {}", s.text.max_length),
                   "a pair has two tokens and two separators at least", "choose 4 or more");
}

void check_text(const ClassifierTextOptions& text, bool has_base) {
  const bool is_of_base = has_base && text.tokenizer == kPretrainedKind;
  if (text.tokenizer != "auto" && !is_of_base) tokenizer_kind(text.tokenizer);
  const bool subwords = text.tokenizer == kPieceKind;
  require_subword_model(subwords, text.tokenizer_model, "--tokenizer-model");
  require_together(text.embeddings.empty() || !subwords, "--embeddings, --tokenizer sentencepiece",
                   "pieces have no vectors", "choose --tokenizer word or char");
  require_together(text.embeddings.empty() || text.tokenizer != "byte",
                   "--embeddings, --tokenizer byte", "bytes have no vectors",
                   "choose --tokenizer word or char");
}

// Whether a linear model does not read the setting: its model is n-grams, and its training the
// solution of a convex problem.
bool is_of_networks(const Field& field) {
  const std::string_view group = field.table(), name = field.last_name();
  if (group == "recipe") return name != "seed";
  if (group == "text") return field.traits.part == kNetworkPart;
  return group == "model" && field.traits.is_option && name != "model";
}

// The first setting of a kind that is not the default, if there is one. It points into `given`.
std::optional<Field> setting_of(ClassifierSettings& given, bool (*is_of)(const Field&)) {
  ClassifierSettings usual(given.text.input);
  const std::vector<Field> is = fields_of(given), was = fields_of(usual);
  for (std::size_t n = 0; n < is.size(); ++n) {
    if (is_of(is[n]) && value_text(is[n]) != value_text(was[n])) return is[n];
  }
  return std::nullopt;
}

std::optional<Field> network_setting(ClassifierSettings& given) {
  return setting_of(given, is_of_networks);
}

bool has_linear_setting(ClassifierSettings& given) {
  return setting_of(given, [](const Field& field) { return field.table() == "linear"; })
      .has_value();
}

void check_linear(ClassifierSettings s) {
  if (s.model.kind != ClassifierModel::kLinear) return;
  require_together(s.text.input == InputKind::kText, "--model linear",
                   "it reads texts, and no pairs or numbers", "leave --model out");
  require_option(s.linear.folds != 1, "folds", s.linear.folds,
                 "0, or at least 2: each part is measured by a model of the others");
  const ThresholdRule rule = parse_threshold(s.linear.threshold);
  require_together(rule.goal == ThresholdGoal::kF1 || !s.text.regression,
                   "--threshold, --regression", "numbers have no probabilities",
                   "leave --threshold out");
  require_together(s.linear.calibrate == CalibrationKind::kPlatt || !s.text.regression,
                   "--calibrate, --regression", "numbers have no probabilities",
                   "leave --calibrate out");
  const std::optional<Field> other = network_setting(s);
  if (other) require_effect(*other, "--model bag or encoder");
}

void check_base(const ClassifierSettings& s) {
  if (s.from.base.empty()) return;
  require_together(s.text.input != InputKind::kNpz, "--base",
                   "an encoder reads texts, and no numbers", "leave --base out");
  require_together(s.search.budget.empty(), "--auto, --base",
                   "a search tries models of its own, and none that begins from another",
                   "leave one of them out");
}

// A few hundred samples are few updates an epoch: weights that begin small (deviation 0.02) and
// half of a narrow row dropped learn nothing in them, and three evaluations are no time to wait.
void set_of_numbers(ClassifierSettings& settings) {
  settings.text.input = InputKind::kNpz;
  settings.model.encoder = "conv5:plain,bigru";
  settings.model.pooling = PoolingKind::kAttention;
  settings.model.init = InitScheme::kKeras;
  settings.model.width = 64;
  settings.model.output_dropout = 0.1;
  settings.model.dropout = 0;
  settings.recipe.lr = 3e-3;
  settings.recipe.min_lr = 3e-4;
  settings.recipe.patience = 10;
}

// Tried once, on whether a German sentence is the translation of an English one
// (docs/commands/train-pairs.md).
void set_of_pairs(ClassifierSettings& settings) {
  settings.text.input = InputKind::kPairs;
  settings.model.pair_encoder = PairEncoder::kBi;
  settings.model.encoder = "textcnn:3,4,5";
  settings.model.pooling = PoolingKind::kMax;
}

}  // namespace

index fewest_tokens(InputKind input) { return input == InputKind::kPairs ? 4 : 1; }

InputWords words_of(InputKind input) {
  if (input == InputKind::kPairs) return {"pair", "token"};
  if (input == InputKind::kNpz) return {"sample", "time step"};
  return {"text", "token"};
}

// Tried once, on reviews of films in English (docs/commands/train-classify.md).
ClassifierSettings::ClassifierSettings(InputKind input) {
  model.output_dropout = 0.5;
  model.dropout = 0.1;
  model.ngrams = 0;
  recipe.lr = 1e-3;
  recipe.min_lr = 1e-4;
  recipe.beta2 = 0.999;
  recipe.weight_decay = 0.1;
  recipe.stop_after = recipe.eval_every = recipe.save_every = kAutoLength;
  recipe.patience = 3;
  if (input == InputKind::kNpz) set_of_numbers(*this);
  if (input == InputKind::kPairs) set_of_pairs(*this);
}

void apply_base_recipe(ClassifierSettings& settings) {
  settings.text.batch_size = 16;
  apply_encoder_recipe(settings.recipe);
  apply_adapter_rate(settings.recipe, settings.from);
}

namespace {

bool is_decided_by_encoder(std::string_view field) {
  return says_layers(field) || field == "text.tokenizer" || field == "model.pair_encoder";
}

}  // namespace

TextCount texts_of(InputKind input) {
  return input == InputKind::kPairs ? TextCount::kPair : TextCount::kOne;
}

void make_cross_encoder(ClassifierConfig& model, const EncoderTokenizer& tokenizer) {
  model.pair_encoder = PairEncoder::kCross;
  model.base.separator = separator_of(tokenizer, model.base.types, TextCount::kPair);
}

void take_base(ClassifierSettings& settings, const std::vector<std::string>& set) {
  check_base(settings);
  EncoderBase base = read_encoder_base(settings.from.base, BertHead::kText);
  const std::string& where = settings.from.base;
  ClassifierSettings theirs(settings.text.input);
  theirs.model = classifier_on(base.layers);
  const TextCount count = texts_of(settings.text.input);
  if (count == TextCount::kPair) make_cross_encoder(theirs.model, *base.text.tokenizer);
  theirs.text.tokenizer = kPretrainedKind;
  theirs.text.lower = false;
  const std::vector<Field> said = fields_of(settings), has = fields_of(theirs);
  require_as_base(said, has, set, is_decided_by_encoder, where);
  require_none_idle(said, has, set, is_idle_with_encoder);
  const index longest = settings.text.max_length;
  require_length(longest == 0 ? base.text.max_length : longest, base.text, where, count);
  keep_dropouts(theirs.model, settings.model, set);
  settings.model = std::move(theirs.model);
  settings.text.tokenizer = theirs.text.tokenizer;
  settings.text.lower = theirs.text.lower;
  keep_base(settings.from, std::move(base), set);
}

bool is_idle_with_encoder(std::string_view field) {
  constexpr std::string_view kRead[] = {"model.dropout", "model.encoder_dropout", "model.task",
                                        "model.classes"};
  constexpr std::string_view kOfText[] = {"text.tokenizer_model", "text.lower",
                                          "text.words",           "text.min_count",
                                          "text.embeddings",      "text.subword_sampling"};
  if (field.starts_with("model.")) return !says_layers(field) && !contains(kRead, field);
  return field.starts_with("linear.") || contains(kOfText, field);
}

void choose_model(ClassifierSettings& settings) {
  using enum ClassifierModel;
  if (settings.model.kind != kAuto) return;
  const bool linear = settings.text.input == InputKind::kText && !network_setting(settings);
  if (linear && !settings.search.budget.empty() && !has_linear_setting(settings)) return;
  settings.model.kind = linear ? kLinear : settings.model.encoder.empty() ? kBag : kEncoder;
}

ClassifierTask task_of(const ClassifierTextOptions& text, index labels) {
  if (text.regression) return ClassifierTask::kRegression;
  if (text.multi_label) return ClassifierTask::kMultiLabel;
  if (text.tokenizer == kPretrainedKind) return ClassifierTask::kSingleLabel;  // as transformers
  return labels == 2 ? ClassifierTask::kBinary : ClassifierTask::kSingleLabel;
}

void check_options(const ClassifierSettings& s) {
  check_recipe(s.recipe);
  check_options(s.text.table);
  check_encoder_options(s.from);
  check_fields(s, ClassifierSettings(s.text.input));
  check_task(s.text);
  check_text(s.text, s.model.has_base());
  check_pairs(s);
  check_base(s);
  check_linear(s);
  if (!s.search.budget.empty()) parse_budget(s.search.budget);
}

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/explain.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>

#include "fovea/base/check.h"
#include "fovea/base/machine.h"
#include "fovea/base/option.h"
#include "fovea/explain/observed_text.h"
#include "fovea/grad/tape.h"
#include "fovea/model/ngram_ids.h"
#include "fovea/model/pass_plan.h"
#include "fovea/task/classify/classifier.h"
#include "fovea/task/classify/text_predictor.h"
#include "fovea/text/utf8.h"
#include "fovea/text/words.h"

namespace fovea {

namespace {

constexpr Phrase kTextClassifier = {"text classifier", "文本分类器"};

// sign x one of the logits.
struct Logit {
  index column = 0;
  float sign = 1;
  QuotingWords name;
};

index label_number(const LoadedClassifier& model, const std::string& label) {
  const auto found = std::find(model.labels.begin(), model.labels.end(), label);
  if (found != model.labels.end()) return found - model.labels.begin();
  throw Error(
      ErrorCode::kOptionValue, fmt::format("--target: the model has no label {}", excerpt(label)),
      model.labels.empty() ? "leave it out: the model tells a number" : it_has(model.labels));
}

Logit logit_of(const LoadedClassifier& model, const std::string& target, index likeliest) {
  const ClassifierTask task = model.config().task;
  if (task == ClassifierTask::kRegression && target.empty()) {
    return {
        .name = {"the number, in units of its standard deviation", "预测值（以其标准差为单位）"}};
  }
  const index label = target.empty() ? likeliest : label_number(model, target);
  const QuotingWords name{
      "the logit of {0}", "{0} 的 logit", {model.labels[static_cast<std::size_t>(label)]}};
  if (task != ClassifierTask::kBinary) return {label, 1, name};
  return {0, label == 1 ? 1.0F : -1.0F, name};  // one logit says both
}

Variable pick(Tape& tape, Variable logits, const Logit& logit) {
  const index K = logits.columns();
  const Variable column = tape.result(1, K, logits.dtype());
  with_type(logits.dtype(), [&]<class T>(std::type_identity<T>) {
    std::fill_n(column.value<T>()[0], K, T{0});
    column.value<T>()[0][logit.column] = static_cast<T>(logit.sign);
  });
  return linear(tape, logits, column);
}

// Whether the logits are linear in the embeddings of tokens and n-grams, but for the bias: then
// gradient x input is what each adds.
bool is_linear(const ClassifierConfig& config) {
  return !config.has_base() && sized_stages(config).empty() &&
         config.pooling != PoolingKind::kAttention && config.position == PositionKind::kNone &&
         config.pair_encoder == PairEncoder::kNone && config.features == 0;
}

bool has_pooling_weights(const ClassifierConfig& config) {
  return config.pooling == PoolingKind::kAttention || ends_with_text_cnn(sized_stages(config));
}

// Which rows of a text the head reads; that of a base reads the first.
PoolingKind pooling_of(const ClassifierConfig& config) {
  return config.has_base() ? PoolingKind::kFirst : config.pooling;
}

// How much of each row of a text the result of pooling holds. `weights` are those of pooling, if it
// has any.
std::vector<double> pooled_from(PoolingKind pooling, const std::vector<double>& weights,
                                index count) {
  if (!weights.empty()) return weights;
  std::vector<double> rows(static_cast<std::size_t>(count));
  if (pooling == PoolingKind::kFirst) rows.front() = 1;
  if (pooling == PoolingKind::kLast) rows.back() = 1;
  if (pooling == PoolingKind::kMean || pooling == PoolingKind::kMax) {
    rows.assign(rows.size(), 1 / static_cast<double>(count));
  }
  return rows;
}

// The shares where both texts of a pair are pooled by themselves, and count alike. The first has
// `of_first` tokens; 0: all are one text.
std::vector<double> pooled_apart(PoolingKind pooling, const std::vector<double>& weights,
                                 index count, index of_first) {
  if (of_first == 0) return pooled_from(pooling, weights, count);
  const auto side = [&](index begin, index end) {
    std::vector<double> own;
    if (!weights.empty()) own.assign(weights.begin() + begin, weights.begin() + end);
    return pooled_from(pooling, own, end - begin);
  };
  std::vector<double> rows = side(0, of_first);
  const std::vector<double> second = side(of_first, count);
  rows.insert(rows.end(), second.begin(), second.end());
  for (double& row : rows) row /= 2;
  return rows;
}

// From rows that lie joint by joint to [T, joints].
template <class T>
std::vector<float> by_token(const std::vector<T>& rows, const ObservedText& text) {
  const index J = std::max<index>(text.joints, 1);
  std::vector<float> values(rows.size());
  for (index j = 0; j < J; ++j) {
    for (index t = 0; t < text.tokens; ++t) {
      values[static_cast<std::size_t>(t * J + j)] =
          static_cast<float>(rows[static_cast<std::size_t>(j * text.tokens + t)]);
    }
  }
  return values;
}

void add_prediction(const LoadedClassifier& model, Vec<const float> values,
                    Explanation& explanation) {
  if (model.config().task == ClassifierTask::kRegression) {
    for (const float value : values) {
      explanation.number += explanation.number.empty() ? "" : " ";
      explanation.number += number_text(value, model.numbers);
    }
    return;
  }
  for (const index k : descending(values)) {
    explanation.prediction.push_back(
        {model.labels[static_cast<std::size_t>(k)], double{values[k]}});
  }
}

void add_rollout(const ClassifierConfig& config, const ObservedText& text, index of_first,
                 const std::vector<double>& pooling, Explanation& explanation) {
  const PoolingKind kind = pooling_of(config);
  explanation.saliency.values = by_token(
      rollout_of(text, explanation, pooled_apart(kind, pooling, text.rows(), of_first)), text);
  const std::string_view name = to_string(kind);
  const bool numbers = explanation.numbers.has_value();
  explanation.saliency.of = {fmt::format("the pooled {} ({})", numbers ? "sample" : "text", name),
                             fmt::format("池化后的{}（{}）", numbers ? "样本" : "文本", name)};
  note_rollout(sized_stages(config), explanation);
  if (config.pooling == PoolingKind::kMax && pooling.empty()) {
    explanation.notes.push_back({"Rollout takes the maximum over the rows as their mean.",
                                 "Rollout 把各行的最大值当作平均值处理。"});
  }
}

// Each n-gram shares what it adds equally among its tokens. `weighed`: in the order of n-grams, of
// texts [offsets].
void share_ngrams(const std::vector<double>& weighed, std::span<const index> offsets, index longest,
                  std::vector<float>& values) {
  std::vector<double> sums(values.begin(), values.end());
  auto ngram = weighed.begin();
  for (std::size_t s = 0; s + 1 < offsets.size(); ++s) {
    for_each_ngram(offsets[s + 1] - offsets[s], longest, [&](index first, index length) {
      const double share = *ngram++ / static_cast<double>(length);
      const auto begin = sums.begin() + offsets[s] + first;
      std::for_each(begin, begin + length, [&](double& sum) { sum += share; });
    });
  }
  values.assign(sums.begin(), sums.end());
}

double output_bias(const Classifier& model, index column) {
  for (const Parameter* parameter : model.parameters()) {
    if (parameter->name == "output.bias") return double{parameter->value.data<float>()[column]};
  }
  return 0;
}

// The tokens of the first text where both of a pair are read apart, else 0.
index tokens_of_first(const ClassifierConfig& config, const TextRows& rows) {
  if (config.pair_encoder != PairEncoder::kBi) return 0;
  const std::int32_t separator = pair_separator(config);
  return std::find(rows.ids.begin(), rows.ids.end(), separator) - rows.ids.begin() + 1;
}

// The n-grams of the texts that the encoder reads one by one.
struct Ngrams {
  bool count = false;            // for the saliency
  std::vector<index> offsets{};  // of these texts
  Variable rows{};               // of the table, as an input of the tape
};

// With attention, saliency is that of the tokens alone, as it has always been.
Ngrams ngrams_of(const LoadedClassifier& model, const Explanation& explanation, index of_first,
                 SaliencyMethod method) {
  Ngrams ngrams{.count = model.config().ngrams != 1 && !explanation.has_weights() &&
                         method == SaliencyMethod::kGradientInput,
                .offsets = {0}};
  if (of_first > 0) ngrams.offsets.push_back(of_first);
  ngrams.offsets.push_back(static_cast<index>(explanation.tokens.size()));
  return ngrams;
}

void note_ngrams(bool are_counted, Explanation& explanation) {
  explanation.notes.push_back(
      are_counted
          ? Words{"What an n-gram adds to the logit is shared equally by its tokens.",
                  "n-gram 对 logit 的贡献由其词元均分。"}
          : Words{"The model reads n-grams, too: what they add to the logit belongs to no single "
                  "token, and is left out of the saliency.",
                  "模型还读取 n-gram：它们对 logit 的贡献不属于单个词元，不计入显著性。"});
}

void add_gradient(Tape& tape, const LoadedClassifier& model, const TextRows& rows,
                  const ObservedText& observed, const ExplainOptions& options,
                  Explanation& explanation) {
  const ClassifierConfig& config = model.config();
  const index likeliest =
      explanation.prediction.empty() ? 0 : label_number(model, explanation.prediction[0].label);
  const Logit logit = logit_of(model, options.target, likeliest);
  Ngrams ngrams = ngrams_of(model, explanation, tokens_of_first(config, rows), options.saliency);
  ObservedText text = observed;
  text.logits = [&](Tape& of, std::span<HeadStatistics>, Variable* inputs) {
    return model.model->logits(of, rows,
                               {.inputs = inputs, .ngrams = ngrams.count ? &ngrams.rows : nullptr});
  };
  Variable explained;
  Saliency& saliency = explanation.saliency;
  saliency.of = logit.name;
  saliency.values = gradient_saliency(tape, text, options.saliency, [&](Variable logits) {
    return explained = pick(tape, logits, logit);
  });
  if (ngrams.count) {
    share_ngrams(weighed_inputs(ngrams.rows, options.saliency), ngrams.offsets, config.ngrams,
                 saliency.values);
  }
  saliency.values = by_token(saliency.values, text);
  if (config.ngrams != 1) note_ngrams(ngrams.count, explanation);
  if (!is_linear(config) || options.saliency != SaliencyMethod::kGradientInput) return;
  saliency.exact = {.value = double{explained.value<float>()[0][0]},
                    .bias = double{logit.sign} * output_bias(*model.model, logit.column)};
}

void require_explainable(const LoadedClassifier& model, const ExplainOptions& options) {
  require_shown(has_pooling_weights(model.config()) || model.model->attentions() > 0,
                options.saliency);
  require_target_counts(options);
}

void note_maxima(Explanation& explanation) {
  explanation.pools_maxima = true;
  explanation.notes.push_back(
      {"Pooling takes the maximum of each filter of textcnn: shown is the share of the filters "
       "whose "
       "maximum lies at each place, the middle of the window. A filter that gives 0 everywhere "
       "counts nowhere.",
       "池化取 textcnn "
       "每个卷积核的最大值：图中为最大值落在各位置（窗口中间）的卷积核所占的比例；处处为 0 "
       "的卷积核不计入。"});
}

// Everything but what the tokens are.
void explain_rows(const Context& context, const LoadedClassifier& model, const TextRows& rows,
                  const ExplainOptions& options, Explanation& explanation) {
  const ClassifierConfig& config = model.config();
  const auto T = static_cast<index>(explanation.tokens.size()), joints = explanation.joints();
  const TextLoad load{.texts = 1, .tape = {.tokens = T, .observes = true, .sequences = 1}};
  const ObservedText observed{
      .logits =
          [&](Tape& tape, std::span<HeadStatistics> seen, Variable* inputs) {
            return model.model->logits(tape, rows, {.attention = seen, .inputs = inputs});
          },
      .layers = encoder_attention_layers(config),
      .tokens = T,
      .tape_bytes = plan_pass(context, config, load).bytes(),
      .joints = joints};
  require_explain_memory(observed);
  Tape tape(context, TapeMode::kInference);
  const Variable logits = observe_layers(tape, observed, explanation);
  const Rows<const float> values = model.model->predictions_of(tape, logits).value<float>();
  add_prediction(model, {values[0], values.columns}, explanation);
  std::vector<double> pooling;
  if (has_pooling_weights(config)) {
    pooling = model.model->token_weights(tape, rows);
    explanation.pooling = by_token(pooling, observed);
    if (config.pooling == PoolingKind::kMax) note_maxima(explanation);
  }
  explanation.saliency.method = options.saliency;
  if (options.saliency == SaliencyMethod::kNone) return;
  if (options.saliency == SaliencyMethod::kRollout) {
    add_rollout(config, observed, tokens_of_first(config, rows), pooling, explanation);
  } else {
    add_gradient(tape, model, rows, observed, options, explanation);
  }
}

// The words of a text for a linear model; where a script has no blanks, its characters.
std::vector<std::string_view> pieces_of(std::string_view text, WordSplit split) {
  std::vector<std::string_view> pieces;
  for (std::string_view word; !(word = take_word(text, split)).empty();) {
    std::size_t begin = 0, at = 0;
    const auto cut = [&] {
      if (at > begin) pieces.push_back(word.substr(begin, at - begin));
      begin = at;
    };
    while (at < word.size()) {
      const DecodedCharacter one = decode_character(word.substr(at));
      if (is_cjk(one.value)) cut();
      at += static_cast<std::size_t>(one.length);
      if (is_cjk(one.value)) cut();
    }
    cut();
  }
  return pieces;
}

// Each n-gram shares what it adds equally among the pieces that it touches.
std::vector<float> shares_of(const LogitParts& parts, std::string_view text,
                             const std::vector<std::string_view>& pieces, double sign) {
  std::vector<double> sums(pieces.size());
  const auto begin_of = [&](std::string_view piece) {
    return static_cast<std::size_t>(piece.data() - text.data());
  };
  for (const NgramShare& ngram : parts.shares) {
    const auto first = std::partition_point(
        pieces.begin(), pieces.end(),
        [&](std::string_view piece) { return begin_of(piece) + piece.size() <= ngram.begin; });
    const auto last = std::partition_point(
        first, pieces.end(), [&](std::string_view piece) { return begin_of(piece) < ngram.end; });
    const double share = sign * ngram.share / static_cast<double>(last - first);
    for (auto piece = first; piece != last; ++piece) {
      sums[static_cast<std::size_t>(piece - pieces.begin())] += share;
    }
  }
  return {sums.begin(), sums.end()};
}

Explanation explain_linear(const LoadedClassifier& model, std::string_view text,
                           const ExplainOptions& options) {
  if (options.saliency != SaliencyMethod::kGradientInput) {
    throw Error(ErrorCode::kOptionValue,
                fmt::format("--saliency {}: the model is linear: what each word adds is all that "
                            "there is to show",
                            to_string(options.saliency)),
                "leave it out");
  }
  require_utf8(text, "text");
  require_memory("the words of the text", 100.0 * static_cast<double>(text.size()),
                 "give a shorter text, or use a machine with more memory");
  const LinearModel& linear = *model.linear;
  const std::vector<std::string_view> pieces = pieces_of(text, linear.features().rules.split);
  require_tokens(!pieces.empty());
  Explanation explanation{.kind = kTextClassifier, .tokens = {pieces.begin(), pieces.end()}};
  FeatureReader reader(linear.features());
  const SparseRow row = reader.read(text);
  std::vector<float> predicted(static_cast<std::size_t>(linear.weights().classes));
  linear.predict(row, predicted.data());
  const Vec<const float> values{predicted.data(), linear.weights().classes};
  add_prediction(model, values, explanation);
  std::vector<double> logits(static_cast<std::size_t>(linear.weights().outputs()));
  linear.logits(row, logits);
  // The answer that `classify` would give.
  const index said = chosen_labels(
      {.task = linear.weights().task, .thresholds = model.thresholds()}, values, {.top = 1})[0];
  const Logit logit = logit_of(model, options.target, said);
  const LogitParts parts = linear.parts_of(text, logit.column);
  const auto sign = double{logit.sign};
  explanation.saliency = {
      .method = options.saliency,
      .of = logit.name,
      .values = shares_of(parts, text, pieces, sign),
      .exact = ExactSum{sign * logits[static_cast<std::size_t>(logit.column)], sign * parts.base}};
  note_ngrams(/*are_counted=*/true, explanation);
  return explanation;
}

// The name of each token; unknown words as the text has them.
std::vector<std::string> names_of_tokens(const LoadedClassifier& model, std::span<const token> ids,
                                         std::string_view text) {
  if (model.reads_pieces()) {
    std::vector<std::string> names;
    for (const token id : ids) names.push_back(model.pieces.tokenizer->name(id));
    return names;
  }
  const bool front = model.settings.text.truncate == Truncate::kFront;
  const auto names_in = [&](std::span<const token> some, std::string_view of) {
    std::vector<std::string> names = token_texts(*model.tokenizer, some);
    write_unknown(*model.tokenizer, some, of, front, names);
    return names;
  };
  if (!model.reads_pairs()) return names_in(ids, text);
  const TextPair pair = pair_of(text);
  const auto separator = std::find(ids.begin(), ids.end(), pair_separator(model.config()));
  const auto first = static_cast<std::size_t>(separator - ids.begin());
  std::vector<std::string> names;
  const auto add = [&](std::span<const token> some, std::string_view of) {
    for (std::string& name : names_in(some, of)) names.push_back(std::move(name));
    names.emplace_back("<sep>");
  };
  add(ids.first(first), pair.first);
  add(ids.subspan(first + 1, ids.size() - first - 2), pair.second);
  return names;
}

TextTokens tokens_of(const LoadedClassifier& model, std::string_view text) {
  const ClassifierTextOptions& options = model.settings.text;
  if (!model.reads_pieces()) {
    TextTokens tokens = tokens_of_text(*model.tokenizer, options, text, "text");
    // A text without a token became one of padding, which no text has.
    require_tokens(tokens.ids.size() > 1 || tokens.ids[0] != kPadToken);
    return tokens;
  }
  const EncoderTokenizer& tokenizer = *model.pieces.tokenizer;
  TextTokens tokens = tokens_of_text(tokenizer, options, text, "text");
  require_tokens(tokens.length >
                 (model.reads_pairs() ? tokenizer.pair_marks() : tokenizer.marks()));
  return tokens;
}

}  // namespace

Explanation explain_text(const Context& context, const LoadedClassifier& model,
                         std::string_view text, const ExplainOptions& options) {
  if (model.reads_frames()) {
    throw Error(ErrorCode::kModelWrongKind, "explain: the model reads numbers, not texts",
                "name an .npz file: fovea explain DIR FILE.npz --sample N");
  }
  if (model.linear) return explain_linear(model, text, options);
  require_explainable(model, options);
  const TextTokens tokens = tokens_of(model, text);
  const auto T = static_cast<index>(tokens.ids.size());
  const std::array<std::int32_t, 2> offsets{0, static_cast<std::int32_t>(T)};
  Explanation explanation{.kind = kTextClassifier,
                          .tokens = names_of_tokens(model, tokens.ids, text),
                          .cut = tokens.length - T};
  if (model.tokenizer) note_unknown(*model.tokenizer, tokens.ids, explanation);
  explain_rows(context, model, {.ids = {tokens.ids.data(), T}, .offsets = {offsets.data(), 2}},
               options, explanation);
  return explanation;
}

Explanation explain_sample(const Context& context, const LoadedClassifier& model,
                           const FrameFile& file, index sample, const ExplainOptions& options) {
  if (!model.reads_frames()) {
    throw Error(ErrorCode::kModelWrongKind, "explain: the model reads texts, not numbers",
                "give a text: fovea explain DIR \"a text\"");
  }
  require_explainable(model, options);
  const FrameSet set = frames_of(model, file);
  require_option(sample >= 0 && sample < set.samples(), "sample", sample,
                 "0 to {}, the samples of {}", set.samples() - 1, file.name);
  const auto at = static_cast<std::size_t>(sample);
  const index first = set.starts[at];
  const TextTokens steps = tokens_of_frames(model.settings.text, first, set.starts[at + 1] - first);
  const auto T = static_cast<index>(steps.ids.size());
  const std::array<std::int32_t, 2> offsets{0, static_cast<std::int32_t>(T)};
  const index skipped = steps.ids[0] - first;  // time steps that are cut in front
  Explanation explanation{.kind = {"classifier of numbers", "数值分类器"},
                          .tokens = {},
                          .cut = steps.length - T,
                          .numbers = ExplainedSample{sample, skipped, model.config().joints}};
  for (index t = 0; t < T; ++t) explanation.tokens.push_back(fmt::format("{}", skipped + t));
  explain_rows(context, model,
               {.ids = {steps.ids.data(), T}, .offsets = {offsets.data(), 2}, .frames = set.rows()},
               options, explanation);
  return explanation;
}

std::vector<LabelFeatures> top_features(const LoadedClassifier& model, index count) {
  if (!model.linear) {
    throw Error(ErrorCode::kModelWrongKind,
                "explain: --top-features is of linear models of n-grams, and this is none",
                "explain a text: fovea explain DIR \"a text\"");
  }
  const LinearModel& linear = *model.linear;
  const index outputs = linear.weights().outputs();
  std::vector<LabelFeatures> all;
  const auto add = [&](const std::string& label, index output, bool largest) {
    LabelFeatures one{.label = label};
    for (const index column : linear.strongest(output, count, largest)) {
      const auto at = static_cast<std::size_t>(column * outputs + output);
      const double weight = double{linear.weights().weights[at]};
      if (largest ? weight <= 0 : weight >= 0) break;
      one.features.emplace_back(linear.features().name(column), std::abs(weight));
    }
    all.push_back(std::move(one));
  };
  switch (linear.weights().task) {
    case ClassifierTask::kRegression:
      add("larger numbers", 0, true);
      add("smaller numbers", 0, false);
      break;
    case ClassifierTask::kBinary:  // one logit: of the second label
      add(model.labels[0], 0, false);
      add(model.labels[1], 0, true);
      break;
    case ClassifierTask::kSingleLabel:
    case ClassifierTask::kMultiLabel:
      for (index k = 0; k < outputs; ++k) add(model.labels[static_cast<std::size_t>(k)], k, true);
      break;
  }
  return all;
}

namespace {

// [M] the weights [H, M] that keys received, summed over the heads.
std::vector<double> over_heads(const std::vector<double>& received, index M) {
  std::vector<double> sums(static_cast<std::size_t>(M));
  for (std::size_t n = 0; n < received.size(); ++n) sums[n % sums.size()] += received[n];
  return sums;
}

// The arrays of all samples, which are filled one sample after another.
class Weights {
 public:
  Weights(const LoadedClassifier& model, index samples, index steps)
      : model_(model),
        joints_(model.model->config().joints),
        attentions_(model.model->attentions()),
        pools_(model.model->config().pooling == PoolingKind::kAttention) {
    const index count = attentions_ + (pools_ ? 1 : 0);
    const double rows = static_cast<double>(samples * steps * std::max<index>(joints_, 1));
    require_memory("the weights", static_cast<double>(count + 1) * rows * 3 * sizeof(float),
                   "use fewer samples at once");
    const Shape shape = joints_ > 0 ? Shape{samples, steps, joints_} : Shape{samples, steps};
    for (index n = 0; n < attentions_; ++n) {
      arrays_.push_back({fmt::format("attention_{}", n), Tensor(shape)});
    }
    if (pools_) arrays_.push_back({"pooling", Tensor(shape)});
    time_ = {"time", Tensor({samples, steps})};
    if (joints_ > 0) by_joint_ = {"joints", Tensor({samples, joints_})};
  }

  void add(Tape& tape, const FrameSet& set, index sample) {
    const auto at = static_cast<std::size_t>(sample);
    const index first = set.starts[at];
    const TextTokens steps =
        tokens_of_frames(model_.settings.text, first, set.starts[at + 1] - first);
    const auto length = static_cast<index>(steps.ids.size());
    const std::int32_t offsets[] = {0, static_cast<std::int32_t>(length)};
    const TextRows rows{
        .ids = {steps.ids.data(), length}, .offsets = {offsets, 2}, .frames = set.rows()};
    const index skipped = steps.ids[0] - first;  // time steps that are cut in front
    tape.reset(TapeMode::kInference);
    std::vector<HeadStatistics> seen(static_cast<std::size_t>(attentions_));
    for (HeadStatistics& one : seen) one.sees_keys = true;
    model_.model->logits(tape, rows, {.attention = seen});
    for (index n = 0; n < attentions_; ++n) {
      const HeadStatistics& one = seen[static_cast<std::size_t>(n)];
      put(arrays_[static_cast<std::size_t>(n)].tensor, {sample, skipped, length},
          over_heads(one.received, length * row_size()));
      normalise(arrays_[static_cast<std::size_t>(n)].tensor, {sample, skipped, length}, one);
    }
    if (pools_) {
      tape.reset(TapeMode::kInference);
      put(arrays_.back().tensor, {sample, skipped, length},
          model_.model->token_weights(tape, rows));
    }
    choose_shares(seen);
    sum_up(sample);
  }

  std::vector<NamedTensor> take() {
    if (of_time_) arrays_.push_back(std::move(time_));
    if (of_joints_) arrays_.push_back(std::move(by_joint_));
    return std::move(arrays_);
  }

 private:
  struct Place {
    index sample, skipped, length;
  };

  index row_size() const { return std::max<index>(joints_, 1); }

  // Rows of a sample lie joint by joint (model/text_batch.h).
  void put(Tensor& to, Place place, std::span<const double> weights) const {
    const index J = row_size(), steps = to.shape()[1];
    float* const sample = to.data<float>() + (place.sample * steps + place.skipped) * J;
    for (index t = 0; t < place.length; ++t) {
      for (index j = 0; j < J; ++j) {
        sample[t * J + j] =
            static_cast<float>(weights[static_cast<std::size_t>(j * place.length + t)]);
      }
    }
  }

  // From sums over queries and heads to their mean: the sums of a sequence are its queries x heads.
  // A sequence over joints has a query for each joint, others one for each time step.
  void normalise(Tensor& to, Place place, const HeadStatistics& seen) const {
    const index J = row_size(), steps = to.shape()[1];
    float* const sample = to.data<float>() + (place.sample * steps + place.skipped) * J;
    const auto heads = static_cast<double>(std::max<std::size_t>(seen.max_logit.size(), 1));
    const double queries = static_cast<double>(seen.is_across ? J : place.length);
    for (index n = 0; n < place.length * J; ++n) {
      sample[n] = static_cast<float>(double{sample[n]} / (queries * heads));
    }
  }

  // Which arrays say something of time steps and of joints: the pooling of both; else the last
  // attention over time steps, and the last over joints. The weights of an attention over joints
  // are the same in sum for each time step, and the other way around.
  void choose_shares(std::span<const HeadStatistics> seen) {
    if (pools_) {
      of_time_ = static_cast<std::size_t>(attentions_);
      if (joints_ > 0) of_joints_ = of_time_;
      return;
    }
    for (std::size_t n = 0; n < seen.size(); ++n) (seen[n].is_across ? of_joints_ : of_time_) = n;
  }

  void sum_up(index sample) {
    const index J = row_size();
    if (of_time_) {
      add_shares(arrays_[*of_time_].tensor, sample, time_.tensor, [J](index n) { return n / J; });
    }
    if (of_joints_) {
      add_shares(arrays_[*of_joints_].tensor, sample, by_joint_.tensor,
                 [J](index n) { return n % J; });
    }
  }

  // The sums of a sample's weights over those that belong to each entry of `to`, as shares of all.
  template <class EntryOf>
  static void add_shares(const Tensor& of, index sample, Tensor& to, EntryOf entry_of) {
    const index size = of.size() / of.shape()[0], entries = to.shape()[1];
    const float* const weights = of.data<float>() + sample * size;
    std::vector<double> sums(static_cast<std::size_t>(entries));
    double all = 0;
    for (index n = 0; n < size; ++n) {
      const double weight = weights[n];
      all += weight;
      sums[static_cast<std::size_t>(entry_of(n))] += weight;
    }
    if (!(all > 0)) return;
    float* const shares = to.data<float>() + sample * entries;
    for (index n = 0; n < entries; ++n) {
      shares[n] = static_cast<float>(sums[static_cast<std::size_t>(n)] / all);
    }
  }

  const LoadedClassifier& model_;
  index joints_, attentions_;
  bool pools_;
  std::vector<NamedTensor> arrays_;
  std::optional<std::size_t> of_time_, of_joints_;  // which of the arrays
  NamedTensor time_, by_joint_;
};

}  // namespace

std::vector<NamedTensor> frame_weights(const Context& context, const LoadedClassifier& model,
                                       const FrameSet& set, index steps) {
  if (model.model->attentions() == 0 && model.model->config().pooling != PoolingKind::kAttention) {
    throw Error(ErrorCode::kUsage, "--weights: the model has no attention, and so no weights",
                "train one with --pooling attention, or with attention in --encoder");
  }
  Weights weights(model, set.samples(), steps);
  Tape tape(context, TapeMode::kInference);
  for (index s = 0; s < set.samples(); ++s) weights.add(tape, set, s);
  return weights.take();
}

}  // namespace fovea

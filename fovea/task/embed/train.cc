// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "fovea/base/check.h"
#include "fovea/metrics/ranking.h"
#include "fovea/metrics/regression.h"
#include "fovea/model/pass_plan.h"
#include "fovea/model/text_batch.h"
#include "fovea/task/embed/evaluate.h"
#include "fovea/task/embed/run.h"
#include "fovea/task/embed/sentence_encoder.h"
#include "fovea/task/run_flow.h"

namespace fovea {

namespace {

// The texts that are read at once.
index texts_at_once(const EmbedRun& run) {
  const index micro = run.settings.text.micro_batch, all = run.training->most_texts();
  return micro > 0 ? std::min(micro, all) : all;
}

// The most tokens of that many texts.
index tokens_at_once(const TextGroups& groups, index texts) {
  std::vector<index> lengths;
  for (index t = 0; t < groups.texts(); ++t) lengths.push_back(groups.text_length(t));
  return sum_of_largest(std::move(lengths), texts);
}

double tokens_in(const TextGroups& groups) { return static_cast<double>(groups.stream.size()); }

double tokens_of_update(const EmbedRun& run) {
  return tokens_in(run.training->groups()) / static_cast<double>(run.training->updates_per_epoch());
}

// Vectors of a batch and their gradients, and what the loss makes of them.
double loss_bytes(const EmbedRun& run) {
  const auto texts = static_cast<double>(run.training->most_texts());
  const auto width = static_cast<double>(run.settings.model.width);
  const auto n =
      static_cast<double>(std::min(run.settings.text.batch_size, run.training->groups().size()));
  const auto losses = static_cast<double>(std::max<std::size_t>(run.columns.size(), 1));
  // Unit rows, those that are compared, and their gradients; cosines, logits, what is left out, and
  // the gradients of these.
  const double of_loss = 4 * texts * width + 6 * n * (texts - n);
  return sizeof(float) * (2 * texts * width + losses * of_loss) + n * (texts - n);
}

// The vectors of a whole set, and the cosines of a part of it.
double evaluation_bytes(const EmbedRun& run) {
  index most = 0;
  for (const auto* set : {&run.validation, &run.trained}) {
    if (*set) most = std::max(most, (*set)->groups().texts());
  }
  constexpr double kCosines = 4 << 20;
  const double vectors = static_cast<double>(most) * static_cast<double>(run.settings.model.width);
  return most == 0 ? 0 : 3 * sizeof(float) * vectors + kCosines;
}

double batch_bytes(const EmbedRun& run) {
  return sizeof(token) * static_cast<double>(run.settings.recipe.accumulate) *
         static_cast<double>(run.training->largest_batch());
}

double update_gradients(const EmbedRun& run) {
  const SentenceEncoderConfig& c = run.settings.model;
  const index tokens = run.settings.recipe.accumulate * run.training->largest_batch();
  const bool is_frozen = freezes_embeddings(run.settings.from);
  const UsedTable table{c.vocabulary, c.width, tokens, is_frozen};
  const index of_table = is_frozen ? c.vocabulary * c.width : 0;
  return gradient_bytes(run.settings.recipe.optimizer, parameter_count(c) - run.frozen + of_table,
                        {&table, 1});
}

// Texts `first` to `last` of a batch.
TextRows texts_of(Tape& tape, const GroupBatch& batch, index first, index last) {
  const index begin = batch.offsets[static_cast<std::size_t>(first)];
  const index end = batch.offsets[static_cast<std::size_t>(last)];
  auto* const offsets = tape.saved<std::int32_t>(last - first + 1);
  for (index t = first; t <= last; ++t) {
    offsets[t - first] =
        batch.offsets[static_cast<std::size_t>(t)] - static_cast<std::int32_t>(begin);
  }
  return {.ids = {batch.ids.data() + begin, end - begin},
          .offsets = {offsets, last - first + 1},
          .samples = {batch.samples.data() + first, last - first}};
}

// The loss of a batch by the vectors of its texts.
Variable loss_of_vectors(Tape& tape, Variable vectors, const GroupBatch& batch,
                         const VectorLossOptions& options) {
  const index n = batch.groups;
  auto* const rows = tape.saved<std::int32_t>(batch.texts());
  std::iota(rows, rows + batch.texts(), 0);
  if (!batch.scores.empty()) {
    return similarity_loss(tape, vectors,
                           {.first = {rows, n}, .second = {rows + n, n}, .scores = batch.scores},
                           options);
  }
  return ranking_loss(tape, vectors,
                      {.anchors = {rows, n},
                       .candidates = {rows + n, batch.texts() - n},
                       .left_out = batch.left_out},
                      options);
}

}  // namespace

std::vector<index> parts_of(index texts, index most) {
  std::vector<index> begins;
  for (index first = 0; first < texts; first += most) begins.push_back(first);
  begins.push_back(texts);
  return begins;
}

template <>
struct TaskOf<EmbedRun> {
  using Objective = EmbedObjective;

  static std::vector<NamedFile> files(const EmbedRun& run) {
    return first_files(config_text(run.settings), run.kept);
  }

  static SentenceEncoder make(const EmbedRun& run) {
    SentenceEncoder model(run.settings.model, run.settings.recipe.seed);
    if (run.from_base) load_encoder_base(run.settings.from.base, model.parameters());
    freeze_encoder(model.parameters(), run.settings.model, run.settings.from);
    return model;
  }

  static index tokens(const EmbedRun& run) { return run.training->largest_batch(); }

  static TapeLoad load(const auto& set, TapeMode mode, const EmbedRun& run) {
    TapeLoad load = batch_load(run, mode);
    load.sequences = texts_at_once(run);
    load.tokens = tokens_at_once(set.groups(), load.sequences);
    return load;
  }

  static PassCost plan(const Context& context, const EmbedRun& run, const TapeLoad& load) {
    return plan_pass(context, run.settings.model, load, adapters_for_plan<SentenceEncoder>(run));
  }

  static OwnBytes bytes(const Context&, const EmbedRun& run) {
    return with_adapters(run, {.gradients = update_gradients(run),
                               .batches = batch_bytes(run),
                               .vocabulary = vocabulary_bytes(run.kept),
                               .frozen = run.frozen,
                               .more = std::max(loss_bytes(run), evaluation_bytes(run))});
  }

  static RowCounts rows(const EmbedRun& run) {
    RowCounts rows{.of_update = tokens_of_update(run)};
    for (const auto* set : {&run.validation, &run.trained}) {
      if (*set) rows.evaluated += tokens_in((*set)->groups());
    }
    return rows;
  }

  // All parts of a batch but the last have two forwards: a third more.
  static double flops(const Context& context, const EmbedRun& run) {
    const TextGroups& groups = run.training->groups();
    std::vector<index> lengths;
    for (index t = 0; t < groups.texts(); ++t) lengths.push_back(groups.text_length(t));
    TapeLoad load = TaskOf::load(*run.training, TapeMode::kTrain, run);
    load = LengthGroups(lengths).load_of(load, lengths);
    const double once =
        plan(context, run, load).flops * tokens_of_update(run) / static_cast<double>(load.tokens);
    const auto parts =
        static_cast<double>(run.training->most_texts()) / static_cast<double>(texts_at_once(run));
    return once * (1 + (1 - 1 / std::max(parts, 1.0)) / 3);
  }
};

void keep_found(EmbedTextOptions& given, const EmbedTextOptions& began) {
  if (given.objective == EmbedObjectiveKind::kAuto) given.objective = began.objective;
  if (given.max_length == 0) given.max_length = began.max_length;
}

void keep_found(EmbedSettings& given, const EmbedSettings& began) {
  keep_found(given.text, began.text);
}

TrainResult train_sentence_encoder(const Context& context, const EmbedRun& run,
                                   const std::filesystem::path& folder, StartAt start,
                                   TrainingObserver& observer) {
  return RunTraining(context, run, folder, std::move(start)).train(run.settings.recipe, observer);
}

std::string_view loss_unit_of(const EmbedSettings& settings) {
  return settings.text.objective == EmbedObjectiveKind::kCosent ? "nats per batch"
                                                                : "nats per pair";
}

std::string_view EmbedObjective::loss_unit() const { return loss_unit_of(run_.settings); }

// The loss of an order of scores is one of the whole batch.
double EmbedObjective::weight_of(const GroupBatch& batch) const {
  if (batch.scores.empty()) return static_cast<double>(batch.groups);
  return batch.groups > 0 ? 1 : 0;
}

double EmbedObjective::forward(index number) {
  batch_ = nullptr;
  loss_value_ = 0;
  ObjectiveOf::forward(number);
  return loss_value_;
}

Variable EmbedObjective::vectors_of_part(std::size_t part, std::span<HeadStatistics> seen) {
  VectorOptions options = options_;
  options.attention = seen;
  return model_.vectors(tape_, texts_of(tape_, *batch_, parts_[part], parts_[part + 1]), options);
}

// A number whose gradient by these vectors is that of the loss.
Variable EmbedObjective::pull_of_part(std::size_t part, Variable vectors) {
  const index first = parts_[part] * vectors.columns();
  const Rows<const float> slopes(slopes_.data() + first, vectors.rows(), vectors.columns());
  return sum(tape_, multiply(tape_, vectors, tape_.constant(slopes)));
}

Variable EmbedObjective::loss_of_batch(const GroupBatch& batch) {
  batch_ = &batch;
  parts_ = parts_of(batch.texts(), texts_at_once(run_));
  const index width = run_.settings.model.width;
  vectors_.resize(static_cast<std::size_t>(batch.texts() * width));
  Variable last;
  for (std::size_t part = 0; part + 1 < parts_.size(); ++part) {
    if (part > 0) tape_.reset(TapeMode::kTrain);
    last = vectors_of_part(part, options_.attention);
    const Rows<const float> found = last.value<float>();
    for (index t = 0; t < found.rows; ++t) {
      std::copy_n(found[t], width, vectors_.data() + (parts_[part] + t) * width);
    }
  }
  loss_tape_.reset(TapeMode::kTrain);
  const Variable vectors =
      loss_tape_.input(Rows<const float>(vectors_.data(), batch.texts(), width));
  const Variable loss = loss_of_vectors(loss_tape_, vectors, batch,
                                        {.temperature = run_.settings.text.temperature,
                                         .scale = options_.scale,
                                         .columns = run_.columns});
  loss_value_ = double{loss.value<float>()[0][0]};
  loss_tape_.backward(loss);
  const Rows<const float> slopes = vectors.gradient<float>();
  slopes_.assign(slopes.data, slopes.data + slopes.rows * slopes.columns);
  return pull_of_part(parts_.size() - 2, last);
}

void EmbedObjective::backward() {
  ObjectiveOf::backward();
  if (batch_ == nullptr) return;
  for (std::size_t part = 0; part + 2 < parts_.size(); ++part) {
    tape_.reset(TapeMode::kTrain);
    tape_.backward(pull_of_part(part, vectors_of_part(part, {})));
  }
}

std::optional<Validation> EmbedObjective::measure_set(const GroupEvaluation& set,
                                                      const Interrupted& interrupted) {
  const TextGroups& groups = set.groups();
  const index width = run_.settings.model.width;
  Tape& tape = free_tape();
  Tensor vectors = Tensor::empty({groups.texts(), width});
  const std::vector<index> parts = parts_of(groups.texts(), texts_at_once(run_));
  for (std::size_t part = 0; part + 1 < parts.size(); ++part) {
    if (interrupted && interrupted()) return std::nullopt;
    tape.reset(TapeMode::kInference);
    GroupBatch batch;
    for (index t = parts[part]; t < parts[part + 1]; ++t) append_text(batch, groups, t);
    const Rows<const float> found =
        model_.vectors(tape, texts_of(tape, batch, 0, batch.texts())).value<float>();
    for (index t = 0; t < found.rows; ++t) {
      std::copy_n(found[t], width, vectors.rows<float>()[parts[part] + t]);
    }
  }
  return validation_of(vectors.rows<float>(), set);
}

// The loss of all batches in order, by the vectors, and what `metric` asks for.
Validation EmbedObjective::validation_of(Rows<const float> vectors, const GroupEvaluation& set) {
  const TextGroups& groups = set.groups();
  double loss = 0, weight = 0;
  for (index first = 0; first < groups.size(); first += set.batch_size()) {
    std::vector<index> numbers(
        static_cast<std::size_t>(std::min(set.batch_size(), groups.size() - first)));
    std::iota(numbers.begin(), numbers.end(), first);
    const GroupBatch batch = batch_of_groups(groups, numbers);
    std::vector<std::int32_t> rows;
    for (const std::uint64_t text : batch.samples) rows.push_back(static_cast<std::int32_t>(text));
    loss_tape_.reset(TapeMode::kInference);
    const Variable found = embedding(loss_tape_, TableRows{loss_tape_.constant(vectors), rows});
    loss += double{
        loss_of_vectors(loss_tape_, found, batch,
                        {.temperature = run_.settings.text.temperature, .columns = run_.columns})
            .value<float>()[0][0]};
    weight += weight_of(batch);
  }
  Validation validation{.loss = loss / weight};
  const bool is_finite = std::all_of(vectors.data, vectors.data + vectors.rows * vectors.columns,
                                     [](float value) { return std::isfinite(value); });
  if (!is_finite) return validation;
  if (groups.scored()) {
    const std::vector<double> truth(groups.scores.begin(), groups.scores.end());
    const std::vector<double> cosines = cosines_of(groups, vectors);
    const RegressionReport report = regression_report<double>(truth, cosines);
    // There is none where all scores are equal.
    if (std::isfinite(report.spearman)) {
      validation.metrics = {{"spearman", report.spearman}, {"pearson", report.pearson}};
      validation.score = report.spearman;
    }
  } else {
    const std::vector<index> ranks = ranks_of(loss_tape_.context(), groups, vectors);
    const RankingReport report = ranking_report(ranks);
    validation.metrics = {{"mrr", report.mrr}, {"recall_at_1", report.recall_at_1}};
    validation.score = report.mrr;
  }
  if (validation.score) validation.score = score_with_tie(*validation.score, validation.loss);
  if (run_.settings.text.metric == EmbedMetric::kLoss) validation.score.reset();
  return validation;
}

template RunCost cost_of(const EmbedRun&);
template double flops_of_update(const Context&, const EmbedRun&);
template double training_memory(const Context&, const EmbedRun&, index);
template double updates_to_come(const EmbedRun&, const RunState&);
template RunTime estimate_run_time(const Context&, const EmbedRun&, const RunState&);

}  // namespace fovea

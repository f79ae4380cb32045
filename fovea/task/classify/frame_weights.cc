// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/classify/frame_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string>

#include "fovea/base/check.h"
#include "fovea/base/machine.h"
#include "fovea/grad/tape.h"

namespace fovea {

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

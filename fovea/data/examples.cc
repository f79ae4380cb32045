// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/examples.h"

#include <algorithm>
#include <limits>

#include "fovea/base/check.h"

namespace fovea {

index Examples::length(index i) const {
  return starts[static_cast<std::size_t>(i) + 1] - starts[static_cast<std::size_t>(i)];
}

std::span<const std::int32_t> Examples::labels_of(index i) const {
  const auto begin = static_cast<std::size_t>(label_starts[static_cast<std::size_t>(i)]);
  const auto end = static_cast<std::size_t>(label_starts[static_cast<std::size_t>(i) + 1]);
  return std::span(labels).subspan(begin, end - begin);
}

bool Examples::has_label(index i, index label) const {
  const auto own = labels_of(i);
  return std::find(own.begin(), own.end(), static_cast<std::int32_t>(label)) != own.end();
}

index Examples::largest(index n) const {
  std::vector<index> lengths;
  for (index i = 0; i < size(); ++i) lengths.push_back(length(i));
  return sum_of_largest(std::move(lengths), n);
}

void append(ExampleBatch& batch, const Examples& examples, index i, TargetShape target) {
  check(i >= 0 && i < examples.size(), "batch: there is no text {} of {}", i, examples.size());
  const index end = batch.tokens() + examples.length(i);
  if (end > std::numeric_limits<std::int32_t>::max()) {
    fail(ErrorCode::kOptionValue, "batch: {} tokens are more than a batch can hold", end);
  }
  const auto first = examples.stream.begin() + examples.starts[static_cast<std::size_t>(i)];
  batch.ids.insert(batch.ids.end(), first, first + examples.length(i));
  batch.offsets.push_back(static_cast<std::int32_t>(end));
  batch.samples.push_back(static_cast<std::uint64_t>(i));
  switch (target.kind) {
    case TargetKind::kClass:
      batch.labels.push_back(examples.labels_of(i)[0]);
      return;
    case TargetKind::kNumber:
      batch.values.push_back(examples.numbers[static_cast<std::size_t>(i)]);
      return;
    case TargetKind::kLabels:
      break;
  }
  const std::size_t row = batch.values.size();
  batch.values.resize(row + static_cast<std::size_t>(target.columns));
  for (const std::int32_t label : examples.labels_of(i)) {
    batch.values[row + static_cast<std::size_t>(label)] = 1;
  }
}

ExampleTraining::ExampleTraining(Examples examples, TargetShape target,
                                 const EpochOrderOptions& order)
    : examples_(std::move(examples)),
      target_(target),
      batch_size_(order.batch_size),
      order_(order.of(examples_.size())) {}

void ExampleTraining::cut_anew(ExampleTexts texts) {
  check(std::ssize(texts.texts) == examples_.size(), "examples: there are {} texts for {}",
        texts.texts.size(), examples_.size());
  texts_ = std::move(texts);
}

index ExampleTraining::largest_batch() const {
  const index usual = examples_.largest(batch_size_);
  return texts_.most == 0 ? usual : std::min(kMostOfUsualCut * usual, batch_size_ * texts_.most);
}

// Puts the cut of this epoch in the place of text i, the last of the batch.
void ExampleTraining::replace_cut(ExampleBatch& batch, index i, index epoch) const {
  constexpr index kLines = 1 << 8;  // of a text: further ones draw what the next text draws
  std::vector<token> drawn =
      drawn_cut(texts_.how, texts_.texts[static_cast<std::size_t>(i)], epoch, kLines * i);
  if (const index more = std::ssize(drawn) - texts_.most; more > 0) {
    const auto first = texts_.drops_front ? drawn.begin() : drawn.end() - more;
    drawn.erase(first, first + more);
  }
  const index usual = examples_.length(i);
  if (drawn.empty() || std::ssize(drawn) > kMostOfUsualCut * usual) return;
  batch.ids.resize(batch.ids.size() - static_cast<std::size_t>(usual));
  batch.ids.insert(batch.ids.end(), drawn.begin(), drawn.end());
  batch.offsets.back() = static_cast<std::int32_t>(batch.tokens());
}

ExampleBatch ExampleTraining::batch(index update, index number) {
  ExampleBatch batch;
  for (const index i : order_.batch(update, number, [&](index n) { return examples_.length(n); })) {
    append(batch, examples_, i, target_);
    if (texts_.most > 0) replace_cut(batch, i, update / updates_per_epoch());
  }
  return batch;
}

ExampleBatch batch_in_order(const Examples& examples, TargetShape target, index batch_size,
                            index i) {
  ExampleBatch batch;
  const index end = std::min(examples.size(), (i + 1) * batch_size);
  for (index n = i * batch_size; n < end; ++n) append(batch, examples, n, target);
  return batch;
}

ExampleBatch ExampleEvaluation::operator[](index i) const {
  check(i >= 0 && i < size(), "evaluation: there is no batch {} of {}", i, size());
  return batch_in_order(examples_, target_, batch_size_, i);
}

}  // namespace fovea

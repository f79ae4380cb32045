// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/batch.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "fovea/base/option.h"

namespace fovea {

index Batch::target_count() const {
  return static_cast<index>(targets.size()) -
         std::count(targets.begin(), targets.end(), kIgnoredTarget);
}

index Sequences::target_count() const {
  return std::accumulate(slices.begin(), slices.end(), index{0},
                         [](index sum, Slice slice) { return sum + slice.targets; });
}

index Sequences::largest(index n) const {
  std::vector<index> lengths;
  lengths.reserve(slices.size());
  for (const Slice slice : slices) lengths.push_back(slice.targets);
  const auto middle = lengths.begin() + std::clamp<index>(n, 0, static_cast<index>(lengths.size()));
  std::partial_sort(lengths.begin(), middle, lengths.end(), std::greater<>());
  return std::accumulate(lengths.begin(), middle, index{0});
}

void append(Batch& batch, const std::vector<token>& stream, Slice slice, std::uint64_t sample) {
  const auto size = static_cast<index>(stream.size());
  check(slice.start >= 0 && slice.targets >= 1 && slice.targets < size - slice.start,
        "batch: {} targets from {} do not fit into a stream of {} tokens", slice.targets,
        slice.start, size);
  const index end = batch.tokens() + slice.targets;
  if (end > std::numeric_limits<std::int32_t>::max()) {
    fail(ErrorCode::kOptionValue, "batch: {} tokens are more than a batch can hold", end);
  }
  const auto first = stream.begin() + slice.start;
  batch.ids.insert(batch.ids.end(), first, first + slice.targets);
  batch.targets.insert(batch.targets.end(), first + 1, first + 1 + slice.targets);
  batch.offsets.push_back(static_cast<std::int32_t>(end));
  batch.samples.push_back(sample);
}

EvaluationBatches::EvaluationBatches(Sequences sequences, index batch_size)
    : sequences_(std::move(sequences)), batch_size_(batch_size) {
  require_option(batch_size >= 1, "batch_size", batch_size, "at least 1");
}

index EvaluationBatches::size() const {
  const auto n = static_cast<index>(sequences_.slices.size());
  return n / batch_size_ + (n % batch_size_ > 0 ? 1 : 0);
}

Batch EvaluationBatches::operator[](index i) const {
  check(i >= 0 && i < size(), "evaluation: there is no batch {} of {}", i, size());
  const auto n = static_cast<index>(sequences_.slices.size());
  const index begin = i * batch_size_;
  const index end = batch_size_ < n - begin ? begin + batch_size_ : n;
  Batch batch;
  for (index s = begin; s < end; ++s) {
    append(batch, sequences_.stream, sequences_.slices[static_cast<std::size_t>(s)],
           static_cast<std::uint64_t>(s));
  }
  return batch;
}

index bytes_predicted(const Batch& batch, const std::vector<std::int32_t>& bytes_of_token) {
  index bytes = 0;
  for (const token target : batch.targets) {
    if (target == kIgnoredTarget) continue;
    check(target >= 0 && target < static_cast<index>(bytes_of_token.size()),
          "bytes_predicted: token {} is not in the vocabulary of {}", target,
          bytes_of_token.size());
    bytes += bytes_of_token[static_cast<std::size_t>(target)];
  }
  return bytes;
}

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/batcher.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "fovea/base/option.h"

namespace fovea {

const DataKind& data_kind(std::string_view name) { return choose(kDataKinds, name, "data"); }

void check_options(const BatchOptions& o) {
  require_option(o.block >= 1, "block", o.block, "at least 1");
  require_option(o.batch_size >= 1, "batch_size", o.batch_size, "at least 1");
  require_option(o.accumulate >= 1, "accumulate", o.accumulate, "at least 1");
  // This bound on the tokens of an update keeps everything computed from these sizes from
  // overflowing.
  constexpr index most = std::numeric_limits<std::int32_t>::max();
  if (o.block > most / o.batch_size || o.accumulate > most / (o.block * o.batch_size)) {
    throw Error(ErrorCode::kOptionValue,
                fmt::format("--batch-size: {} x {} (--block) x {} (--accumulate) are too many "
                            "tokens for one update",
                            o.batch_size, o.block, o.accumulate),
                "choose smaller sizes: an update holds fewer than 2^31 tokens");
  }
  // The last token of a line is only a target.
  require_option(o.max_length == 0 || (o.max_length >= 2 && o.max_length <= o.block + 1),
                 "max_length", o.max_length, "0 (none), or in 2 to {} (--block and 1)",
                 o.block + 1);
}

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

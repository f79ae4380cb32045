// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/text_groups.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "fovea/base/check.h"

namespace fovea {

namespace {

std::vector<index> lengths_of(const TextGroups& groups) {
  std::vector<index> lengths;
  for (index i = 0; i < groups.size(); ++i) lengths.push_back(groups.length(i));
  return lengths;
}

std::vector<index> counts_of(const TextGroups& groups) {
  std::vector<index> counts;
  for (index i = 0; i < groups.size(); ++i) counts.push_back(groups.texts_of(i));
  return counts;
}

std::vector<std::uint8_t> left_out_of(const TextGroups& all, const GroupBatch& batch) {
  const auto n = static_cast<std::size_t>(batch.groups), texts = batch.samples.size();
  const auto same = [&](std::size_t place) { return all.same[batch.samples[place]]; };
  std::vector<std::uint8_t> out(n * (texts - n));
  for (std::size_t i = 0; i < n; ++i) {
    std::uint8_t* const row = out.data() + i * (texts - n);
    // What belongs to an equal anchor belongs to this one.
    std::vector<std::int32_t> belongs = {same(i)};
    for (std::size_t j = 0; j < n; ++j) {
      if (same(j) == same(i)) belongs.push_back(same(n + j));
    }
    std::ranges::sort(belongs);
    for (std::size_t j = 0; j < texts - n; ++j) {
      row[j] = j != i && std::ranges::binary_search(belongs, same(n + j)) ? 1 : 0;
    }
  }
  return out;
}

}  // namespace

index TextGroups::length(index i) const {
  const auto at = static_cast<std::size_t>(i);
  return starts[static_cast<std::size_t>(groups[at + 1])] -
         starts[static_cast<std::size_t>(groups[at])];
}

void append_text(GroupBatch& batch, const TextGroups& all, index t) {
  const index end = batch.tokens() + all.text_length(t);
  if (end > std::numeric_limits<std::int32_t>::max()) {
    fail(ErrorCode::kOptionValue, "batch: {} tokens are more than a batch can hold", end);
  }
  const auto first = all.stream.begin() + all.starts[static_cast<std::size_t>(t)];
  batch.ids.insert(batch.ids.end(), first, first + all.text_length(t));
  batch.offsets.push_back(static_cast<std::int32_t>(end));
  batch.samples.push_back(static_cast<std::uint64_t>(t));
}

GroupBatch batch_of_groups(const TextGroups& all, std::span<const index> groups) {
  GroupBatch batch;
  batch.groups = std::ssize(groups);
  const auto first = [&](index i) { return all.groups[static_cast<std::size_t>(i)]; };
  for (const index place : {0, 1}) {
    for (const index i : groups) append_text(batch, all, first(i) + place);
  }
  for (const index i : groups) {
    for (index t = first(i) + 2; t < first(i + 1); ++t) append_text(batch, all, t);
  }
  if (all.scored()) {
    for (const index i : groups) batch.scores.push_back(all.scores[static_cast<std::size_t>(i)]);
  } else {
    batch.left_out = left_out_of(all, batch);
  }
  return batch;
}

GroupTraining::GroupTraining(TextGroups groups, const EpochOrderOptions& order)
    : groups_(std::move(groups)),
      batch_size_(order.batch_size),
      most_texts_(sum_of_largest(counts_of(groups_), batch_size_)),
      largest_(sum_of_largest(lengths_of(groups_), batch_size_)),
      order_(order.of(groups_.size())) {}

GroupBatch GroupTraining::batch(index update, index number) {
  return batch_of_groups(groups_,
                         order_.batch(update, number, [&](index i) { return groups_.length(i); }));
}

}  // namespace fovea

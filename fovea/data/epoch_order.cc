// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/epoch_order.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "fovea/base/check.h"

namespace fovea {

namespace {

// Items of similar length share an update. Sorting within windows of shuffled items, and not over
// the whole epoch, gives each epoch other updates.
constexpr index kUpdatesPerWindow = 64;

}  // namespace

void shuffle(std::span<index> values, Random& random) {
  for (std::size_t i = values.size(); i > 1; --i) {
    std::swap(values[i - 1], values[static_cast<std::size_t>(random.below(static_cast<index>(i)))]);
  }
}

EpochOrder::EpochOrder(const EpochOrderOptions& options)
    : options_(options),
      per_update_(options.batch_size * options.accumulate),
      order_(static_cast<std::size_t>(options.size)),
      updates_(static_cast<std::size_t>((options.size + per_update_ - 1) / per_update_)) {}

std::span<const index> EpochOrder::batch(index update, index number,
                                         const std::function<index(index)>& length) {
  check(update >= 0 && number >= 0 && number < options_.accumulate,
        "there is no batch {} of {} in update {}", number, options_.accumulate, update);
  arrange(update / updates_per_epoch(), length);
  const index group = updates_[static_cast<std::size_t>(update % updates_per_epoch())];
  const index last = std::min(options_.size, (group + 1) * per_update_);
  const index begin = std::min(last, group * per_update_ + number * options_.batch_size);
  const index end = std::min(last, begin + options_.batch_size);
  return std::span(order_).subspan(static_cast<std::size_t>(begin),
                                   static_cast<std::size_t>(end - begin));
}

// Sets order_ and updates_ to those of an epoch. They depend on the seed and the epoch alone.
void EpochOrder::arrange(index epoch, const std::function<index(index)>& length) {
  if (epoch == epoch_) return;
  Random random(options_.seed, RandomUse::kBatches, static_cast<std::uint64_t>(epoch));
  std::iota(order_.begin(), order_.end(), index{0});
  shuffle(order_, random);
  const index window = kUpdatesPerWindow * per_update_;
  for (index begin = 0; options_.by_length && begin < options_.size; begin += window) {
    std::stable_sort(order_.begin() + begin,
                     order_.begin() + std::min(begin + window, options_.size),
                     [&](index a, index b) { return length(a) < length(b); });
  }
  std::iota(updates_.begin(), updates_.end(), index{0});
  shuffle(updates_, random);
  epoch_ = epoch;
}

std::vector<token> drawn_cut(const CutAnew& how, std::string_view text, index epoch, index number) {
  std::vector<token> ids;
  how.tokenizer->append_drawn(ids, text, "training text",
                              {.alpha = how.alpha,
                               .seed = how.seed,
                               .epoch = static_cast<std::uint64_t>(epoch),
                               .number = static_cast<std::uint64_t>(number)});
  return ids;
}

}  // namespace fovea

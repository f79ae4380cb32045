// SPDX-License-Identifier: Apache-2.0
// --data lines: each line is a sequence.
#include <algorithm>
#include <numeric>
#include <span>

#include "fovea/base/check.h"
#include "fovea/base/random.h"
#include "fovea/data/batcher.h"

namespace fovea {

namespace {

// Sequences of similar length share an update. Sorting within windows of shuffled sequences, and
// not over the whole epoch, gives each epoch other updates.
constexpr index kUpdatesPerWindow = 64;

template <class T>
void shuffle(std::span<T> values, Random& random) {
  for (std::size_t i = values.size(); i > 1; --i) {
    std::swap(values[i - 1], values[static_cast<std::size_t>(random.below(static_cast<index>(i)))]);
  }
}

class ShuffledLines final : public TrainingBatches {
 public:
  ShuffledLines(Sequences sequences, const BatchOptions& options)
      : sequences_(std::move(sequences)),
        options_(options),
        per_update_(options.batch_size * options.accumulate),
        order_(sequences_.slices.size()),
        updates_(static_cast<std::size_t>((size() + per_update_ - 1) / per_update_)) {}

  Batch batch(index update, index number) override {
    check(update >= 0 && number >= 0 && number < options_.accumulate,
          "lines: there is no batch {} of {} in update {}", number, options_.accumulate, update);
    arrange(update / updates_per_epoch());
    const index group = updates_[static_cast<std::size_t>(update % updates_per_epoch())];
    const index begin = group * per_update_ + number * options_.batch_size;
    const index last = std::min(size(), (group + 1) * per_update_);
    Batch batch;
    for (index i = begin; i < std::min(last, begin + options_.batch_size); ++i) {
      const index sequence = order_[static_cast<std::size_t>(i)];
      append(batch, sequences_.stream, sequences_.slices[static_cast<std::size_t>(sequence)],
             static_cast<std::uint64_t>(sequence));
    }
    return batch;
  }

  index updates_per_epoch() const override { return static_cast<index>(updates_.size()); }
  index largest_batch() const override { return sequences_.largest(options_.batch_size); }

 private:
  index size() const { return static_cast<index>(sequences_.slices.size()); }
  index length(index sequence) const {
    return sequences_.slices[static_cast<std::size_t>(sequence)].targets;
  }

  // Sets order_ and updates_ to those of an epoch. They depend on the seed and the epoch alone.
  void arrange(index epoch) {
    if (epoch == epoch_) return;
    Random random(options_.seed, RandomUse::kBatches, static_cast<std::uint64_t>(epoch));
    std::iota(order_.begin(), order_.end(), index{0});
    shuffle(std::span(order_), random);
    const index window = kUpdatesPerWindow * per_update_;
    for (index begin = 0; begin < size(); begin += window) {
      std::stable_sort(order_.begin() + begin, order_.begin() + std::min(begin + window, size()),
                       [&](index a, index b) { return length(a) < length(b); });
    }
    std::iota(updates_.begin(), updates_.end(), index{0});
    shuffle(std::span(updates_), random);
    epoch_ = epoch;
  }

  Sequences sequences_;
  BatchOptions options_;
  index per_update_;
  index epoch_ = -1;            // the epoch of the two below
  std::vector<index> order_;    // sequences
  std::vector<index> updates_;  // groups of per_update_ in order_
};

// A long line is encoded in pieces, so that its tokens are not held twice.
constexpr std::size_t kPiece = std::size_t{1} << 20;

// The first piece: it ends with a whole character.
std::string_view first_piece(std::string_view text) {
  if (text.size() <= kPiece) return text;
  std::size_t end = kPiece;
  while (end > kPiece - 4 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end);
}

void append_line(Sequences& sequences, std::string_view line, const Tokenizer& tokenizer,
                 std::string_view name, index block) {
  const auto begin = static_cast<index>(sequences.stream.size());
  sequences.stream.push_back(kBeginToken);
  while (!line.empty()) {
    const std::string_view piece = first_piece(line);
    const std::vector<token> ids = tokenizer.encode(piece, name);
    sequences.stream.insert(sequences.stream.end(), ids.begin(), ids.end());
    line.remove_prefix(piece.size());
  }
  sequences.stream.push_back(kEndToken);
  const index targets = static_cast<index>(sequences.stream.size()) - begin - 1;
  for (index done = 0; done < targets; done += block) {
    sequences.slices.push_back({begin + done, std::min(block, targets - done)});
  }
}

}  // namespace

Sequences cut_lines(std::string_view text, const Tokenizer& tokenizer, index block,
                    std::string_view name) {
  check_options({.block = block, .batch_size = 1});
  Sequences sequences;
  // A line of n characters becomes n + 2 tokens, one of them for the newline. Reserving memory
  // avoids copies while they grow.
  const index lines = std::count(text.begin(), text.end(), '\n') + 1;
  const index tokens = tokenizer.token_count(text) + lines + 1;
  sequences.stream.reserve(static_cast<std::size_t>(tokens));
  sequences.slices.reserve(static_cast<std::size_t>(tokens / block + lines));
  for (index number = 1; !text.empty(); ++number) {
    const std::size_t newline = text.find('\n');
    const std::string_view line = text.substr(0, newline);
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.empty() || line == "\r") continue;
    append_line(sequences, line, tokenizer, fmt::format("{}, line {}", name, number), block);
  }
  if (sequences.slices.empty()) {
    throw Error(
        ErrorCode::kInputTooSmall,
        fmt::format("the {} is too small: it has 0 lines that are not empty, and at least 1 "
                    "is needed",
                    name),
        "give more text, or let a larger part of it validate");
  }
  return sequences;
}

std::unique_ptr<TrainingBatches> shuffled_lines(std::string_view text, const Tokenizer& tokenizer,
                                                const BatchOptions& options) {
  check_options(options);
  return std::make_unique<ShuffledLines>(cut_lines(text, tokenizer, options.block, "training text"),
                                         options);
}

}  // namespace fovea

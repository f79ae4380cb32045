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
  const Sequences& sequences() const override { return sequences_; }

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
    for (index begin = 0; options_.by_length && begin < size(); begin += window) {
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

// Appends the tokens of a line, between its marks if there are any. Returns how many these are: 0,
// and nothing is appended, for a line without a token of its own.
index append_tokens(std::vector<token>& stream, std::string_view line, const Tokenizer& tokenizer,
                    std::string_view name) {
  const std::size_t before = stream.size();
  const SpecialTokens marks = tokenizer.special();
  if (marks.begin != kNoToken) stream.push_back(marks.begin);
  const std::size_t begin = stream.size();
  tokenizer.append_tokens(stream, line, name);
  if (stream.size() == begin) {
    stream.resize(before);
  } else if (marks.end != kNoToken) {
    stream.push_back(marks.end);
  }
  return static_cast<index>(stream.size() - before);
}

void append_line(Sequences& sequences, std::string_view line, const Tokenizer& tokenizer,
                 const CutOptions& options, std::string_view name) {
  std::vector<token>& stream = sequences.stream;
  const auto begin = static_cast<index>(stream.size());
  index tokens = append_tokens(stream, line, tokenizer, name);
  if (tokens == 1) {
    ++sequences.single_lines;
    stream.pop_back();
  }
  if (tokens < 2) return;
  if (options.max_length > 0 && tokens > options.max_length) {
    ++sequences.truncated_lines;
    const index dropped = tokens - options.max_length;
    const auto first =
        options.truncate == Truncate::kFront ? stream.begin() + begin : stream.end() - dropped;
    stream.erase(first, first + dropped);
    tokens = options.max_length;
  }
  for (index done = 0; done < tokens - 1; done += options.block) {
    sequences.slices.push_back({begin + done, std::min(options.block, tokens - 1 - done)});
  }
}

[[noreturn]] void fail_without_lines(const Sequences& sequences, std::string_view name) {
  const index single = sequences.single_lines;
  throw Error(
      ErrorCode::kInputTooSmall,
      single == 0 ? fmt::format("{} is too small: it has 0 lines that are not empty, and at "
                                "least 1 is needed",
                                name)
                  : fmt::format("{} is too small: it has 0 lines of at least 2 tokens, and at "
                                "least 1 is needed ({} of a single token predict nothing)",
                                name, single),
      "give more text; of a text that is divided, --valid-fraction says how much validates");
}

}  // namespace

Sequences cut_lines(std::string_view text, const Tokenizer& tokenizer, const CutOptions& options,
                    std::string_view name) {
  check_options({.block = options.block, .batch_size = 1, .max_length = options.max_length});
  Sequences sequences;
  // Reserving memory avoids copies while they grow.
  const index lines = std::count(text.begin(), text.end(), '\n') + 1;
  const index tokens = tokenizer.token_count(text) + 2 * lines;
  sequences.stream.reserve(static_cast<std::size_t>(tokens));
  sequences.slices.reserve(static_cast<std::size_t>(tokens / options.block + lines));
  for (index number = 1; !text.empty(); ++number) {
    const std::size_t newline = text.find('\n');
    const std::string_view line = text.substr(0, newline);
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.empty() || line == "\r") continue;
    append_line(sequences, line, tokenizer, options, fmt::format("{}, line {}", name, number));
  }
  if (sequences.slices.empty()) fail_without_lines(sequences, name);
  return sequences;
}

std::unique_ptr<TrainingBatches> shuffled_lines(std::string_view text, const Tokenizer& tokenizer,
                                                const BatchOptions& options) {
  check_options(options);
  return std::make_unique<ShuffledLines>(cut_lines(text, tokenizer, options.cut(), "training text"),
                                         options);
}

}  // namespace fovea

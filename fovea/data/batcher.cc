// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/batcher.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>
#include <string>

#include "fovea/base/check.h"
#include "fovea/base/option.h"
#include "fovea/base/random.h"
#include "fovea/data/epoch_order.h"

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
  return std::accumulate(slices.begin(), slices.end(), index{0}, [this](index sum, Slice slice) {
    if (counted.empty()) return sum + slice.targets;
    const auto first = counted.begin() + slice.start + 1;
    return sum + std::count(first, first + slice.targets, true);
  });
}

index Sequences::largest(index n) const {
  std::vector<index> lengths(static_cast<std::size_t>(items()));
  for (std::size_t s = 0; s < slices.size(); ++s) {
    lengths[s / static_cast<std::size_t>(together)] += slices[s].targets;
  }
  return sum_of_largest(std::move(lengths), n);
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

void append(Batch& batch, const Sequences& sequences, index sequence) {
  const Slice slice = sequences.slices[static_cast<std::size_t>(sequence)];
  append(batch, sequences.stream, slice, static_cast<std::uint64_t>(sequence));
  if (sequences.counted.empty()) return;
  const auto first = batch.targets.end() - slice.targets;
  for (index n = 0; n < slice.targets; ++n) {
    if (!sequences.counted[static_cast<std::size_t>(slice.start + 1 + n)])
      first[n] = kIgnoredTarget;
  }
}

EvaluationBatches::EvaluationBatches(Sequences sequences, index batch_size)
    : sequences_(std::move(sequences)), batch_size_(batch_size) {
  require_option(batch_size >= 1, "batch_size", batch_size, "at least 1");
}

index EvaluationBatches::size() const {
  const index n = sequences_.items();
  return n / batch_size_ + (n % batch_size_ > 0 ? 1 : 0);
}

Batch EvaluationBatches::operator[](index i) const {
  check(i >= 0 && i < size(), "evaluation: there is no batch {} of {}", i, size());
  const index n = sequences_.items(), together = sequences_.together;
  const index begin = i * batch_size_;
  const index end = batch_size_ < n - begin ? begin + batch_size_ : n;
  Batch batch;
  for (index s = begin * together; s < end * together; ++s) {
    append(batch, sequences_, s);
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

// --data blocks: the text is one stream.

namespace {

[[noreturn]] void fail_too_small(std::string_view what, std::size_t tokens, index needed,
                                 std::string_view hint) {
  throw Error(ErrorCode::kInputTooSmall,
              fmt::format("{} is too small: it has {} tokens, and at least {} are needed", what,
                          tokens, needed),
              std::string(hint));
}

class RandomBlocks final : public TrainingBatches {
 public:
  RandomBlocks(std::string_view text, const Tokenizer& tokenizer, const BatchOptions& options)
      : sequences_{.stream = tokenizer.encode(text, "training text")},
        options_(options),
        anew_{&tokenizer, options.subword_sampling, options.seed} {
    if (starts_in(sequences_.stream) < 1) {
      fail_too_small("training text", sequences_.stream.size(), options.block + 1,
                     "a block of n targets reads n + 1 tokens: give more text, or a smaller block");
    }
    if (anew_.alpha > 0) text_ = text;
  }

  Batch batch(index update, index number) override {
    check(update >= 0 && number >= 0 && number < options_.accumulate,
          "blocks: there is no batch {} of {} in update {}", number, options_.accumulate, update);
    const std::vector<token>& stream = stream_of(update / updates_per_epoch());
    Random random(options_.seed, RandomUse::kBatches, static_cast<std::uint64_t>(update));
    const index first = number * options_.batch_size;
    Batch batch;
    // The draws of earlier batches are repeated: they cannot be skipped, as a draw may take more
    // than one word.
    for (index i = 0; i < first + options_.batch_size; ++i) {
      const index start = random.below(starts_in(stream));
      if (i >= first) append(batch, stream, {start, options_.block}, static_cast<std::uint64_t>(i));
    }
    return batch;
  }

  index updates_per_epoch() const override {
    const index tokens = options_.accumulate * options_.batch_size * options_.block;
    return (static_cast<index>(sequences_.stream.size()) + tokens - 1) / tokens;
  }
  index largest_batch() const override { return options_.batch_size * options_.block; }
  const Sequences& sequences() const override { return sequences_; }

 private:
  index starts_in(const std::vector<token>& stream) const {
    return static_cast<index>(stream.size()) - options_.block;
  }

  // The text as it is cut in this epoch.
  const std::vector<token>& stream_of(index epoch) {
    if (anew_.alpha == 0) return sequences_.stream;
    if (epoch != epoch_) drawn_ = drawn_cut(anew_, text_, epoch, 0);
    epoch_ = epoch;
    return starts_in(drawn_) < 1 ? sequences_.stream : drawn_;
  }

  Sequences sequences_;  // of the usual cut
  BatchOptions options_;
  CutAnew anew_;
  std::string text_;  // to cut anew
  std::vector<token> drawn_;
  index epoch_ = -1;  // of the drawn cut
};

}  // namespace

std::unique_ptr<TrainingBatches> random_blocks(std::string_view text, const Tokenizer& tokenizer,
                                               const BatchOptions& options) {
  check_options(options);
  return std::make_unique<RandomBlocks>(text, tokenizer, options);
}

Sequences cut_blocks(std::string_view text, const Tokenizer& tokenizer, const CutOptions& options,
                     std::string_view name) {
  const index block = options.block;
  check_options({.block = block, .batch_size = 1});
  Sequences sequences{.stream = tokenizer.encode(text, name)};
  const auto tokens = static_cast<index>(sequences.stream.size());
  if (tokens < 2) {
    fail_too_small(
        name, sequences.stream.size(), 2,
        "give more text; of a text that is divided, --valid-fraction says how much validates");
  }
  sequences.slices.reserve(static_cast<std::size_t>((tokens - 2) / block + 1));
  for (index start = 0; start + 1 < tokens; start += block) {
    sequences.slices.push_back({start, std::min(block, tokens - 1 - start)});
  }
  return sequences;
}

// --data lines: each line is a sequence.

namespace {

// Appends the tokens of a line, between its marks if there are any. Returns how many these are: 0,
// and nothing is appended, for a line without a token of its own.
template <class Append>
index append_marked(std::vector<token>& stream, const Tokenizer& tokenizer, Append append) {
  const std::size_t before = stream.size();
  const SpecialTokens marks = tokenizer.special();
  if (marks.begin != kNoToken) stream.push_back(marks.begin);
  const std::size_t begin = stream.size();
  append(stream);
  if (stream.size() == begin) {
    stream.resize(before);
  } else if (marks.end != kNoToken) {
    stream.push_back(marks.end);
  }
  return static_cast<index>(stream.size() - before);
}

// Drops what is longer than the longest line. Returns the tokens that are left.
index truncate(std::vector<token>& stream, index tokens, const CutOptions& options) {
  if (options.max_length == 0 || tokens <= options.max_length) return tokens;
  const index dropped = tokens - options.max_length;
  const auto first =
      options.truncate == Truncate::kFront ? stream.end() - tokens : stream.end() - dropped;
  stream.erase(first, first + dropped);
  return options.max_length;
}

void append_line(Sequences& sequences, std::string_view line, const Tokenizer& tokenizer,
                 const CutOptions& options, std::string_view name) {
  std::vector<token>& stream = sequences.stream;
  const auto begin = static_cast<index>(stream.size());
  const index all = append_marked(
      stream, tokenizer, [&](std::vector<token>& to) { tokenizer.append_tokens(to, line, name); });
  if (all == 1) {
    ++sequences.single_lines;
    stream.pop_back();
  }
  if (all < 2) return;
  const index tokens = truncate(stream, all, options);
  if (tokens < all) ++sequences.truncated_lines;
  for (index done = 0; done < tokens - 1; done += options.block) {
    sequences.slices.push_back({begin + done, std::min(options.block, tokens - 1 - done)});
  }
}

// Calls f(line, number) for each line that is not empty, with its number from 1.
template <class F>
void for_lines(std::string_view text, F f) {
  for (index number = 1; !text.empty(); ++number) {
    const std::size_t newline = text.find('\n');
    const std::string_view line = text.substr(0, newline);
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (!line.empty() && line != "\r") f(line, number);
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

// The lines behind the slices, to be cut anew in each epoch.
class DrawnLines {
 public:
  /// `sequences`: what cut_lines makes of the text.
  DrawnLines(std::string_view text, const Sequences& sequences, const Tokenizer& tokenizer,
             const BatchOptions& options)
      : options_(options.cut()),
        how_{&tokenizer, options.subword_sampling, options.seed},
        text_(text) {
    std::size_t slice = 0;
    for_lines(text_, [&](std::string_view line, index number) {
      Sequences one;
      append_line(one, line, tokenizer, options_, "");
      for (std::size_t n = 0; n < one.slices.size(); ++n, ++slice) {
        parts_.push_back({line, number, static_cast<index>(n), std::ssize(one.slices)});
      }
    });
    check(slice == sequences.slices.size(), "lines: {} slices of {}", slice,
          sequences.slices.size());
  }

  /// Appends the part of a line that a slice is, cut as in this epoch. Returns false, and appends
  /// nothing, if that cut makes another number of slices.
  bool append_part(Batch& batch, index slice, index epoch) const {
    const Part& part = parts_[static_cast<std::size_t>(slice)];
    std::vector<token> stream;
    const index all = append_marked(stream, *how_.tokenizer, [&](std::vector<token>& to) {
      const std::vector<token> drawn = drawn_cut(how_, part.line, epoch, part.number);
      to.insert(to.end(), drawn.begin(), drawn.end());
    });
    const index targets = truncate(stream, all, options_) - 1, block = options_.block;
    if (targets < 1 || (targets + block - 1) / block != part.slices) return false;
    const index done = part.place * block;
    append(batch, stream, {done, std::min(block, targets - done)},
           static_cast<std::uint64_t>(slice));
    return true;
  }

 private:
  struct Part {
    std::string_view line;  // of text_
    index number;
    index place, slices;  // which of the line's slices, and how many it has
  };

  CutOptions options_;
  CutAnew how_;
  std::string text_;
  std::vector<Part> parts_;  // [slices]
};

class ShuffledLines final : public TrainingBatches {
 public:
  ShuffledLines(std::string_view text, const Tokenizer& tokenizer, const BatchOptions& options)
      : ShuffledLines(cut_lines(text, tokenizer, options.cut(), "training text"), options) {
    if (options.subword_sampling > 0) {
      drawn_ = std::make_unique<DrawnLines>(text, sequences_, tokenizer, options);
    }
  }
  ShuffledLines(Sequences sequences, const BatchOptions& options)
      : sequences_(std::move(sequences)),
        options_(options),
        order_({.size = sequences_.items(),
                .batch_size = options.batch_size,
                .accumulate = options.accumulate,
                .seed = options.seed,
                .by_length = options.by_length}) {}

  Batch batch(index update, index number) override {
    Batch batch;
    const index together = sequences_.together;
    for (const index item : order_.batch(update, number, [this](index i) { return length(i); })) {
      if (drawn_ && drawn_->append_part(batch, item, update / updates_per_epoch())) continue;
      for (index n = 0; n < together; ++n) append(batch, sequences_, item * together + n);
    }
    return batch;
  }

  index updates_per_epoch() const override { return order_.updates_per_epoch(); }
  index largest_batch() const override {
    return drawn_ ? options_.batch_size * options_.block : sequences_.largest(options_.batch_size);
  }
  const Sequences& sequences() const override { return sequences_; }

 private:
  index length(index item) const {
    const auto first = sequences_.slices.begin() + item * sequences_.together;
    return std::accumulate(first, first + sequences_.together, index{0},
                           [](index sum, Slice slice) { return sum + slice.targets; });
  }

  Sequences sequences_;  // of the usual cut
  BatchOptions options_;
  EpochOrder order_;
  std::unique_ptr<DrawnLines> drawn_;  // none: lines keep that cut
};

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
  for_lines(text, [&](std::string_view line, index number) {
    append_line(sequences, line, tokenizer, options, fmt::format("{}, line {}", name, number));
  });
  if (sequences.slices.empty()) fail_without_lines(sequences, name);
  return sequences;
}

std::unique_ptr<TrainingBatches> shuffled_lines(std::string_view text, const Tokenizer& tokenizer,
                                                const BatchOptions& options) {
  check_options(options);
  return std::make_unique<ShuffledLines>(text, tokenizer, options);
}

std::unique_ptr<TrainingBatches> shuffled_sequences(Sequences sequences,
                                                    const BatchOptions& options) {
  check_options(options);
  return std::make_unique<ShuffledLines>(std::move(sequences), options);
}

namespace {

[[noreturn]] void fail_without_template() {
  throw Error(ErrorCode::kOptionValue, "--data chat: only a chat template says how to write it",
              "begin from a model that has one, with --base");
}

}  // namespace

std::unique_ptr<TrainingBatches> no_batches(std::string_view, const Tokenizer&,
                                            const BatchOptions&) {
  fail_without_template();
}

Sequences no_sequences(std::string_view, const Tokenizer&, const CutOptions&, std::string_view) {
  fail_without_template();
}

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
// --data lines: each line is a sequence.
#include <algorithm>

#include "fovea/base/check.h"
#include "fovea/data/batcher.h"
#include "fovea/data/epoch_order.h"

namespace fovea {

namespace {

class ShuffledLines final : public TrainingBatches {
 public:
  ShuffledLines(Sequences sequences, const BatchOptions& options)
      : sequences_(std::move(sequences)),
        options_(options),
        order_({.size = static_cast<index>(sequences_.slices.size()),
                .batch_size = options.batch_size,
                .accumulate = options.accumulate,
                .seed = options.seed,
                .by_length = options.by_length}) {}

  Batch batch(index update, index number) override {
    Batch batch;
    for (const index sequence :
         order_.batch(update, number, [this](index i) { return length(i); })) {
      append(batch, sequences_.stream, sequences_.slices[static_cast<std::size_t>(sequence)],
             static_cast<std::uint64_t>(sequence));
    }
    return batch;
  }

  index updates_per_epoch() const override { return order_.updates_per_epoch(); }
  index largest_batch() const override { return sequences_.largest(options_.batch_size); }
  const Sequences& sequences() const override { return sequences_; }

 private:
  index length(index sequence) const {
    return sequences_.slices[static_cast<std::size_t>(sequence)].targets;
  }

  Sequences sequences_;
  BatchOptions options_;
  EpochOrder order_;
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
  throw Error(ErrorCode::kInputTooSmall,
              single == 0
                  ? fmt::format("the {} is too small: it has 0 lines that are not empty, and at "
                                "least 1 is needed",
                                name)
                  : fmt::format("the {} is too small: it has 0 lines of at least 2 tokens, and at "
                                "least 1 is needed ({} of a single token predict nothing)",
                                name, single),
              "give more text, or let a larger part of it validate");
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

// SPDX-License-Identifier: Apache-2.0
// --data blocks: the text is one stream.
#include <algorithm>
#include <string>

#include "fovea/base/check.h"
#include "fovea/base/random.h"
#include "fovea/data/batcher.h"
#include "fovea/data/epoch_order.h"

namespace fovea {

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

}  // namespace fovea

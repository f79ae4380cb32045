// SPDX-License-Identifier: Apache-2.0
// --data lines: each line is a sequence.
#include <algorithm>
#include <memory>
#include <string>

#include "fovea/base/check.h"
#include "fovea/data/batcher.h"
#include "fovea/data/epoch_order.h"

namespace fovea {

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
      : sequences_(cut_lines(text, tokenizer, options.cut(), "training text")),
        options_(options),
        order_({.size = static_cast<index>(sequences_.slices.size()),
                .batch_size = options.batch_size,
                .accumulate = options.accumulate,
                .seed = options.seed,
                .by_length = options.by_length}) {
    if (options.subword_sampling > 0) {
      drawn_ = std::make_unique<DrawnLines>(text, sequences_, tokenizer, options);
    }
  }

  Batch batch(index update, index number) override {
    Batch batch;
    for (const index sequence :
         order_.batch(update, number, [this](index i) { return length(i); })) {
      if (drawn_ && drawn_->append_part(batch, sequence, update / updates_per_epoch())) continue;
      append(batch, sequences_.stream, sequences_.slices[static_cast<std::size_t>(sequence)],
             static_cast<std::uint64_t>(sequence));
    }
    return batch;
  }

  index updates_per_epoch() const override { return order_.updates_per_epoch(); }
  index largest_batch() const override {
    return drawn_ ? options_.batch_size * options_.block : sequences_.largest(options_.batch_size);
  }
  const Sequences& sequences() const override { return sequences_; }

 private:
  index length(index sequence) const {
    return sequences_.slices[static_cast<std::size_t>(sequence)].targets;
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

}  // namespace fovea

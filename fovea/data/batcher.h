// SPDX-License-Identifier: Apache-2.0
// Makes batches of tokens, sequences packed one after another without padding, from a text, in one
// of two ways; each is a row of kDataKinds:
//
// blocks  The text is one stream. Training draws blocks of `block` targets whose starts are uniform
//         over the stream; evaluation takes consecutive blocks that do not overlap (the last one
//         may be shorter), so that every token but the first is predicted exactly once.
// lines   Each line that holds a token (and is no lone CR) is a sequence "begin ... end", or just
// its
//         tokens if the tokenizer has no such marks; then a line of one token has no target, and is
//         left out. `max_length` drops tokens at one end of a longer line. What is longer than
//         `block` targets is cut into pieces of `block` (the last may be shorter), each of which
//         begins with the token before its first target. So here, too, every token except the first
//         of a line is predicted exactly once. Each epoch shuffles the sequences; then those of 64
//         updates at a time are sorted by length, unless told otherwise, and cut into updates; then
//         the updates are shuffled.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "fovea/base/fields.h"
#include "fovea/base/types.h"
#include "fovea/data/corpus.h"
#include "fovea/text/tokenizer.h"
#include "fovea/text/vocabulary.h"

namespace fovea {

/// The target of a position that adds nothing to the loss.
inline constexpr token kIgnoredTarget = -1;

/// n sequences of N tokens in all. Sequence s is rows offsets[s] .. offsets[s + 1].
struct Batch {
  std::vector<token> ids;                ///< [N]
  std::vector<token> targets;            ///< [N], the token that follows, or kIgnoredTarget
  std::vector<std::int32_t> offsets{0};  ///< [n + 1], ascending from 0 to N
  std::vector<std::uint64_t> samples;    ///< [n], the sequence's own number: dropout depends on it

  index tokens() const { return static_cast<index>(ids.size()); }
  index sequences() const { return static_cast<index>(samples.size()); }
  /// The number of targets that are not ignored: the loss is the mean over these.
  index target_count() const;
};

/// Targets at positions start + 1 .. start + targets of a stream, each predicted from what lies
/// before it, from `start` on.
struct Slice {
  index start;
  index targets;
};

/// A stream of tokens and the sequences cut from it.
struct Sequences {
  std::vector<token> stream = {};
  std::vector<Slice> slices = {};
  std::vector<bool> counted = {};  ///< whether a token of the stream is a target; none: all are
  /// So many after each other belong together, and are in one batch: two answers to a question.
  index together = 1;
  index single_lines = 0;     ///< lines of one token, which are left out: they have no target
  index truncated_lines = 0;  ///< lines of which tokens are dropped, for CutOptions::max_length

  index target_count() const;
  /// What batches are made of: sequences, or those that belong together.
  index items() const { return static_cast<index>(slices.size()) / together; }
  /// The most tokens that `n` items can have together.
  index largest(index n) const;
};

/// Adds the sequence of a slice to the batch. Throws kShape if the slice leaves the stream,
/// kOptionValue if the batch would have 2^31 tokens or more.
void append(Batch& batch, const std::vector<token>& stream, Slice slice, std::uint64_t sample);

/// The same for one of the sequences; tokens that are not counted become kIgnoredTarget.
void append(Batch& batch, const Sequences& sequences, index sequence);

/// A data set in order, `batch_size` items at a time (the last batch may have fewer); samples are
/// numbered from 0.
class EvaluationBatches {
 public:
  EvaluationBatches(Sequences sequences, index batch_size);

  index size() const;
  Batch operator[](index i) const;
  /// The number of tokens of the largest batch.
  index largest_batch() const { return sequences_.largest(batch_size_); }
  index batch_size() const { return batch_size_; }
  const Sequences& sequences() const { return sequences_; }

 private:
  Sequences sequences_;
  index batch_size_;
};

/// Bytes of text that the targets of a batch stand for, given Tokenizer::bytes_predicted.
index bytes_predicted(const Batch& batch, const std::vector<std::int32_t>& bytes_of_token);

/// Which end of a line that is too long is dropped.
enum class Truncate { kEnd, kFront };

inline constexpr EnumName<Truncate> kTruncateNames[] = {{Truncate::kEnd, "end"},
                                                        {Truncate::kFront, "front"}};
inline std::span<const EnumName<Truncate>> enum_names(Truncate) { return kTruncateNames; }

/// How a text is cut into sequences.
struct CutOptions {
  index block = 0;       ///< most targets of a sequence
  index max_length = 0;  ///< lines: most tokens of a line, marks included; 0: any number
  Truncate truncate = Truncate::kEnd;
};

struct BatchOptions {
  index block = 0;       ///< most targets of a sequence
  index batch_size = 0;  ///< sequences of a batch, or items of those that belong together
  index accumulate = 1;  ///< batches of an update
  std::uint64_t seed = 0;
  index max_length = 0;  ///< this and the next as in CutOptions
  Truncate truncate = Truncate::kEnd;
  bool by_length = true;        ///< lines: a batch holds sequences of about the same length
  double subword_sampling = 0;  ///< cut the text anew in each epoch; the tokenizer must outlive it

  CutOptions cut() const { return {block, max_length, truncate}; }
};

/// The training batches. A batch depends only on the seed and on its number, so resuming needs no
/// state. Only one thread at a time may call it.
class TrainingBatches {
 public:
  virtual ~TrainingBatches() = default;

  /// Batch number `number`, in [0, accumulate), of an update, both from 0. The batches of one
  /// update together hold the same sequences as one batch of size accumulate * batch_size would. At
  /// the end of an epoch of lines a batch may have fewer sequences, or none.
  virtual Batch batch(index update, index number) = 0;

  /// blocks: the updates in which as many targets are trained as the text has. lines: the updates
  /// that train each target once.
  virtual index updates_per_epoch() const = 0;
  /// The largest number of tokens that a batch can have.
  virtual index largest_batch() const = 0;
  /// The sequences that the batches are made of. Random blocks have no slices.
  virtual const Sequences& sequences() const = 0;
};

struct DataKind {
  std::string_view name;
  std::string_view summary;
  SplitAt split_at;
  /// Throws kOptionValue for options out of range, kInputTooSmall, kEncoding.
  std::unique_ptr<TrainingBatches> (*training)(std::string_view text, const Tokenizer& tokenizer,
                                               const BatchOptions& options);
  /// The sequences of a text that is called `name` in errors, for EvaluationBatches. Throws
  /// kOptionValue, kInputTooSmall, kEncoding.
  Sequences (*evaluation)(std::string_view text, const Tokenizer& tokenizer,
                          const CutOptions& options, std::string_view name);
};

/// Throws kOptionValue: only who knows a chat template can cut a text so.
std::unique_ptr<TrainingBatches> no_batches(std::string_view text, const Tokenizer& tokenizer,
                                            const BatchOptions& options);
Sequences no_sequences(std::string_view text, const Tokenizer& tokenizer, const CutOptions& options,
                       std::string_view name);
/// Epochs of sequences in a new order, by length or not, as of lines.
std::unique_ptr<TrainingBatches> shuffled_sequences(Sequences sequences,
                                                    const BatchOptions& options);

std::unique_ptr<TrainingBatches> random_blocks(std::string_view text, const Tokenizer& tokenizer,
                                               const BatchOptions& options);
std::unique_ptr<TrainingBatches> shuffled_lines(std::string_view text, const Tokenizer& tokenizer,
                                                const BatchOptions& options);
Sequences cut_blocks(std::string_view text, const Tokenizer& tokenizer, const CutOptions& options,
                     std::string_view name);
Sequences cut_lines(std::string_view text, const Tokenizer& tokenizer, const CutOptions& options,
                    std::string_view name);

inline constexpr std::string_view kChat = "chat";
inline constexpr std::array kDataKinds = {
    DataKind{"blocks", "random blocks of the whole text", SplitAt::kCharacter, random_blocks,
             cut_blocks},
    DataKind{"lines", "each line a sequence", SplitAt::kLine, shuffled_lines, cut_lines},
    DataKind{kChat, "conversations, a JSON object a line", SplitAt::kLine, no_batches,
             no_sequences},
};

/// The kind called `name`. Throws kOptionValue, which lists the known kinds.
const DataKind& data_kind(std::string_view name);

/// Throws kOptionValue unless all sizes are at least 1, an update has at most 2^31 - 1 targets, and
/// max_length is 0 or a number of tokens, at least 2, that fits into a block.
void check_options(const BatchOptions& options);

}  // namespace fovea

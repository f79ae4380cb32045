// SPDX-License-Identifier: Apache-2.0
// Pairs of sentences as tokens, and batches of these, packed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fovea/base/types.h"
#include "fovea/data/epoch_order.h"
#include "fovea/text/tokenizer.h"

namespace fovea {

/// n pairs. Source i is source[source_starts[i]] .. source[source_starts[i + 1]], with its end
/// mark; targets likewise, between their begin mark and their end mark.
struct PairTokens {
  std::vector<token> source = {}, target = {};
  std::vector<index> source_starts{0}, target_starts{0};  ///< [n + 1]

  index size() const { return static_cast<index>(source_starts.size()) - 1; }
  index source_length(index i) const;
  /// How many tokens are predicted: those of the target and its end.
  index target_length(index i) const;
  index source_count() const { return source_starts.back(); }
  index target_count() const { return target_starts.back() - size(); }
};

/// They have begin and end marks.
struct PairTokenizers {
  const Tokenizer& source;
  const Tokenizer& target;
};

/// The fate of a pair.
enum class PairFit {
  kTaken,
  kEmpty,    ///< a side is white space, or has no tokens: left out
  kTooLong,  ///< a side has more than `block` tokens with its end mark: left out
};

/// Adds the tokens of a pair, or leaves it out. Throws what the tokenizers do.
PairFit append(PairTokens& all, const PairTokenizers& tokenizers, std::string_view source,
               std::string_view target, index block);

struct PairBatch {
  std::vector<token> source;                    ///< [M]
  std::vector<std::int32_t> source_offsets{0};  ///< [n + 1], ascending from 0 to M
  std::vector<token> target;                    ///< [N] what the decoder reads
  std::vector<token> targets;                   ///< [N] what follows each
  std::vector<std::int32_t> target_offsets{0};  ///< [n + 1], ascending from 0 to N
  std::vector<std::uint64_t> samples;           ///< [n] the pair's own number

  index size() const { return static_cast<index>(samples.size()); }
  index target_count() const { return static_cast<index>(targets.size()); }
};

/// Adds pair i. Throws kOptionValue if the batch would have 2^31 tokens of a side.
void append(PairBatch& batch, const PairTokens& all, index i);

/// In training some tokens that are read, on either side, are replaced by another, so that the
/// model relies on the others (Gal and Ghahramani 2016 drop words likewise): each with this
/// probability, drawn anew each time; never a mark.
struct TokenDropout {
  double probability = 0;
  token source = 0, target = 0;  ///< the tokens in their place
  std::uint64_t seed = 0;
};

/// The pairs to train on as text, to be cut anew in each epoch.
struct PairTexts {
  std::vector<std::string> source = {}, target = {};  ///< [n]
  CutAnew of_source = {}, of_target = {};
  index block = 0;  ///< a cut with an end mark that has more is not taken
};

class PairTraining {
 public:
  PairTraining(PairTokens pairs, TokenDropout dropout, index batch_tokens, index accumulate,
               std::uint64_t seed);

  /// From now on pairs are cut anew in each epoch. Batches hold the same pairs as before.
  void cut_anew(PairTexts texts);

  /// See TokenOrder::batch; batches count target tokens. The dropped tokens depend on the seed, the
  /// update and the pair.
  PairBatch batch(index update, index number);
  index updates_per_epoch() const { return order_.updates_per_epoch(); }
  /// The most tokens that a batch can have of each side.
  index largest_source() const { return growth() * largest_source_; }
  index largest_target() const { return growth() * order_.largest_batch(); }
  /// In their usual cut.
  const PairTokens& pairs() const { return pairs_; }

 private:
  index growth() const { return texts_.block > 0 ? kMostOfUsualCut : 1; }
  PairTokens drawn_pair(index i, index epoch) const;

  PairTokens pairs_;
  PairTexts texts_;  // none: pairs keep their usual cut
  TokenDropout dropout_;
  TokenOrder order_;
  index largest_source_;
};

/// All pairs, those of about the same length together. A batch has at most `batch_tokens` target
/// tokens and as many source tokens, or one pair.
class PairEvaluation {
 public:
  PairEvaluation(PairTokens pairs, index batch_tokens);

  index size() const { return static_cast<index>(batches_.size()); }
  /// Its samples say which pairs they are.
  PairBatch operator[](index i) const;
  index largest_source() const { return largest_source_; }
  index largest_target() const { return largest_target_; }
  const PairTokens& pairs() const { return pairs_; }

 private:
  PairTokens pairs_;
  std::vector<std::vector<index>> batches_;
  index largest_source_ = 0, largest_target_ = 0;
};

}  // namespace fovea

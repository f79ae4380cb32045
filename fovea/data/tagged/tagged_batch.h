// SPDX-License-Identifier: Apache-2.0
// Sentences as numbers, what is known about their words, and batches of these, packed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/types.h"
#include "fovea/data/epoch_order.h"
#include "fovea/text/vocabulary.h"

namespace fovea {

/// A word that has no tag, or one that the model does not know: it adds nothing to a loss.
inline constexpr std::int32_t kNoTag = -1;

/// n sentences of N words. Sentence i is words[starts[i]] .. words[starts[i + 1]].
struct TaggedWords {
  std::vector<token> words = {};                     ///< [N]
  std::vector<std::int32_t> shapes = {};             ///< [N] text/words.h
  std::vector<token> characters = {};                ///< (or subwords) word after word
  std::vector<index> character_starts{0};            ///< [N + 1]
  std::vector<std::vector<std::int32_t>> tags = {};  ///< [tag columns], [N] each; or none
  std::vector<index> starts{0};                      ///< [n + 1]
  std::vector<token> before = {}, after = {};        ///< marks around the subwords of each sentence

  index size() const { return static_cast<index>(starts.size()) - 1; }
  index length(index i) const;
  index word_count() const { return static_cast<index>(words.size()); }
  index marks() const { return std::ssize(before) + std::ssize(after); }
  /// The most words that `n` of the sentences can have together, and the most characters, with
  /// their marks.
  index largest(index n) const;
  index most_characters(index n) const;
};

struct TaggedBatch {
  std::vector<token> words;                        ///< [N]
  std::vector<std::int32_t> shapes;                ///< [N]
  std::vector<token> characters;                   ///< [M]
  std::vector<std::int32_t> character_offsets{0};  ///< [N + 1], ascending from 0 to M
  std::vector<std::vector<std::int32_t>> tags;     ///< [tag columns], [N] each
  std::vector<std::int32_t> offsets{0};            ///< [n + 1], ascending from 0 to N
  std::vector<std::uint64_t> samples;              ///< [n] the sentence's own number
  std::vector<token> before, after;                ///< as TaggedWords has them

  index size() const { return static_cast<index>(samples.size()); }
  index tokens() const { return static_cast<index>(words.size()); }
  /// Whether a word has no tag in some column.
  bool lacks_tag() const;
};

/// A word of more than 256 characters or subwords is represented by the first and the last 128: a
/// file without blanks is one word. Its characters are those from `begin` on.
void cut_middle(std::vector<token>& characters, index begin);

/// Adds sentence i. Throws kOptionValue if the batch would have 2^31 words or characters.
void append(TaggedBatch& batch, const TaggedWords& all, index i);

/// In training some words are read as the unknown one, so that the model learns what to make of
/// it: each occurrence of a rare word, with this probability, drawn anew each time.
struct WordDropout {
  double probability = 0;
  std::vector<bool> is_rare = {};  ///< [vocabulary]
  token unknown = 0;
  std::uint64_t seed = 0;
};

/// The words to train on, to be cut into subwords anew in each epoch.
struct WordTexts {
  std::string bytes = {};
  std::vector<index> starts{0};  ///< [N + 1]
  CutAnew how = {};

  void append(std::string_view word);
  index size() const { return static_cast<index>(starts.size()) - 1; }
  std::string_view operator[](index word) const;
};

class TaggedTraining {
 public:
  TaggedTraining(TaggedWords words, WordDropout dropout, const EpochOrderOptions& order);

  /// From now on words are cut anew in each epoch. Batches hold the same sentences as before.
  void cut_anew(WordTexts texts);

  /// See EpochOrder::batch. The dropped words depend on the seed, the update and the sentence.
  TaggedBatch batch(index update, index number);
  index updates_per_epoch() const { return order_.updates_per_epoch(); }
  index largest_batch() const { return words_.largest(batch_size_); }
  index most_characters() const;
  index batch_size() const { return batch_size_; }
  /// Subwords in their usual cut.
  const TaggedWords& words() const { return words_; }

 private:
  void replace_cut(TaggedBatch& batch, index i, index epoch) const;

  TaggedWords words_;
  WordTexts texts_;  // none: words keep their usual cut
  WordDropout dropout_;
  index batch_size_;
  EpochOrder order_;
};

/// All sentences, `batch_size` at a time, the longest first. Those that have a word without a tag
/// (in some column) come behind all others, in batches of their own.
class TaggedEvaluation {
 public:
  TaggedEvaluation(TaggedWords words, index batch_size);

  index size() const { return static_cast<index>(batches_.size()); }
  /// Its samples say which sentences they are.
  TaggedBatch operator[](index i) const;
  index largest_batch() const { return words_.largest(batch_size_); }
  index most_characters() const { return words_.most_characters(batch_size_); }
  index batch_size() const { return batch_size_; }
  const TaggedWords& words() const { return words_; }

 private:
  TaggedWords words_;
  index batch_size_;
  std::vector<std::vector<index>> batches_;  // sentences
};

}  // namespace fovea

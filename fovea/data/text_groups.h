// SPDX-License-Identifier: Apache-2.0
// Groups of texts that belong together: an anchor, a text that belongs to it, and texts that do
// not; or two texts and how much alike they are.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fovea/base/types.h"
#include "fovea/data/epoch_order.h"
#include "fovea/text/vocabulary.h"

namespace fovea {

/// n groups of texts, as tokens. Group i has the texts groups[i] to groups[i + 1]: the anchor, the
/// one that belongs to it, and any number of others. Text t is stream[starts[t]] to
/// stream[starts[t + 1]].
struct TextGroups {
  std::vector<token> stream = {};
  std::vector<index> starts{0};         ///< [texts + 1]
  std::vector<index> groups{0};         ///< [n + 1]
  std::vector<std::int32_t> same = {};  ///< [texts] equal for texts with the same tokens
  std::vector<float> scores = {};       ///< [n] of two texts each; or none
  index truncated = 0;                  ///< texts of which tokens are dropped

  index size() const { return static_cast<index>(groups.size()) - 1; }
  index texts() const { return static_cast<index>(starts.size()) - 1; }
  index text_length(index t) const {
    return starts[static_cast<std::size_t>(t) + 1] - starts[static_cast<std::size_t>(t)];
  }
  /// Tokens of all texts of group i.
  index length(index i) const;
  index texts_of(index i) const {
    return groups[static_cast<std::size_t>(i) + 1] - groups[static_cast<std::size_t>(i)];
  }
  bool scored() const { return !scores.empty(); }
};

/// Texts of some groups, one text after another: all anchors, then the texts that belong to them in
/// the same order, then the others.
struct GroupBatch {
  std::vector<token> ids;                ///< [N]
  std::vector<std::int32_t> offsets{0};  ///< [texts + 1]
  std::vector<std::uint64_t> samples;    ///< [texts], the text's own number
  std::vector<float> scores;             ///< [n], or none
  /// [n (texts - n)] of the others of a batch without scores, row by row: 1 where text n + j is not
  /// known not to belong to anchor i, for it is equal to the anchor, or to a text that belongs to
  /// an equal anchor. The one that belongs to it by its place has 0.
  std::vector<std::uint8_t> left_out;
  index groups = 0;  ///< n

  index texts() const { return static_cast<index>(samples.size()); }
  index tokens() const { return static_cast<index>(ids.size()); }
};

/// Adds text t. Throws kOptionValue if the batch would have 2^31 tokens or more.
void append_text(GroupBatch& batch, const TextGroups& all, index t);

/// Throws as append_text().
GroupBatch batch_of_groups(const TextGroups& all, std::span<const index> groups);

/// The batches of a training.
class GroupTraining {
 public:
  GroupTraining(TextGroups groups, const EpochOrderOptions& order);

  /// See EpochOrder::batch.
  GroupBatch batch(index update, index number);
  index updates_per_epoch() const { return order_.updates_per_epoch(); }
  const TextGroups& groups() const { return groups_; }
  index batch_size() const { return batch_size_; }
  /// The most texts, and tokens, that a batch can have.
  index most_texts() const { return most_texts_; }
  index largest_batch() const { return largest_; }

 private:
  TextGroups groups_;
  index batch_size_, most_texts_, largest_;
  EpochOrder order_;
};

/// All groups, measured together.
class GroupEvaluation {
 public:
  GroupEvaluation(TextGroups groups, index batch_size)
      : groups_(std::move(groups)), batch_size_(batch_size) {}

  const TextGroups& groups() const { return groups_; }
  index batch_size() const { return batch_size_; }  ///< of which the loss is

 private:
  TextGroups groups_;
  index batch_size_;
};

}  // namespace fovea

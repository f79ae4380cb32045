// SPDX-License-Identifier: Apache-2.0
// Texts as tokens with what is known about them, and batches of these, packed.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fovea/base/types.h"
#include "fovea/data/epoch_order.h"
#include "fovea/text/vocabulary.h"

namespace fovea {

/// n texts. Text i is stream[starts[i]] .. stream[starts[i + 1]].
struct Examples {
  std::vector<token> stream = {};
  std::vector<index> starts{0};           ///< [n + 1]
  std::vector<std::int32_t> labels = {};  ///< the labels of each text, one text after another
  std::vector<index> label_starts{0};     ///< [n + 1], of `labels`
  std::vector<float> numbers = {};        ///< [n] regression, else none
  index truncated = 0;                    ///< texts of which tokens are dropped

  index size() const { return static_cast<index>(starts.size()) - 1; }
  index length(index i) const;
  std::span<const std::int32_t> labels_of(index i) const;
  bool has_label(index i, index label) const;
  /// The most tokens that `n` of the texts can have together.
  index largest(index n) const;
};

/// The form that labels have in a batch.
enum class TargetKind {
  kClass,   ///< ExampleBatch::labels
  kLabels,  ///< ExampleBatch::values, 1 for each label
  kNumber,  ///< ExampleBatch::values
};

struct ExampleBatch {
  std::vector<token> ids;                ///< [N]
  std::vector<std::int32_t> offsets{0};  ///< [n + 1], ascending from 0 to N
  std::vector<std::uint64_t> samples;    ///< [n], the text's own number: dropout depends on it
  std::vector<std::int32_t> labels;      ///< [n] kClass
  std::vector<float> values;             ///< [n, columns] kLabels, kNumber

  index size() const { return static_cast<index>(samples.size()); }
  index tokens() const { return static_cast<index>(ids.size()); }
};

struct TargetShape {
  TargetKind kind = TargetKind::kClass;
  index columns = 1;  ///< kLabels: how many labels there are
};

/// Adds text i. Throws kOptionValue if the batch would have 2^31 tokens or more.
void append(ExampleBatch& batch, const Examples& examples, index i, TargetShape target);

/// Batch i of all texts in order, `batch_size` at a time.
ExampleBatch batch_in_order(const Examples& examples, TargetShape target, index batch_size,
                            index i);

/// The texts to train on, to be cut anew in each epoch.
struct ExampleTexts {
  std::vector<std::string> texts = {};  ///< [n]
  CutAnew how = {};
  index most = 0;            ///< tokens of a text; of more, those at one end are dropped
  bool drops_front = false;  ///< which end
};

/// The batches of a training.
class ExampleTraining {
 public:
  ExampleTraining(Examples examples, TargetShape target, const EpochOrderOptions& order);

  /// From now on texts are cut anew in each epoch. Batches hold the same texts as before.
  void cut_anew(ExampleTexts texts);

  /// See EpochOrder::batch.
  ExampleBatch batch(index update, index number);
  index updates_per_epoch() const { return order_.updates_per_epoch(); }
  index largest_batch() const;
  index batch_size() const { return batch_size_; }
  TargetShape target() const { return target_; }
  /// In their usual cut.
  const Examples& examples() const { return examples_; }

 private:
  void replace_cut(ExampleBatch& batch, index i, index epoch) const;

  Examples examples_;
  ExampleTexts texts_;  // none: texts keep their usual cut
  TargetShape target_;
  index batch_size_;
  EpochOrder order_;
};

/// All texts in order, `batch_size` at a time.
class ExampleEvaluation {
 public:
  ExampleEvaluation(Examples examples, TargetShape target, index batch_size)
      : examples_(std::move(examples)), target_(target), batch_size_(batch_size) {}

  index size() const { return (examples_.size() + batch_size_ - 1) / batch_size_; }
  ExampleBatch operator[](index i) const;
  index largest_batch() const { return examples_.largest(batch_size_); }
  index batch_size() const { return batch_size_; }
  TargetShape target() const { return target_; }
  const Examples& examples() const { return examples_; }

 private:
  Examples examples_;
  TargetShape target_;
  index batch_size_;
};

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
// The page of one call of attention: which rows it shows, and what the forward fills in.
#pragma once

#include <vector>

#include "fovea/operator/attention_call.h"
#include "fovea/report/attention_page.h"

namespace fovea {

/// The rows of a call that a page shows: the first sequences of its batch, and some rows of q.
struct PageRows {
  index sequences = 0;
  std::vector<index> rows;  ///< ascending
};

/// The most weights that a page is made from.
inline constexpr index kMostPageWeights = index{1} << 23;
inline constexpr index kMostPageKeys = 32768;

/// All sequences and rows, if that is at most `most` weights; otherwise the first sequences; of one
/// sequence, rows that are evenly spaced, with the last. Throws kShape for more keys than a page
/// has columns.
PageRows choose_page_rows(const AttentionSizes& sizes, index most = kMostPageWeights);

/// Adds observers to a call without any; after the forward, page() is what they saw.
template <class T>
class CallPage {
 public:
  CallPage(AttentionCall<T>& call, PageLanguage language);
  CallPage(const CallPage&) = delete;
  CallPage& operator=(const CallPage&) = delete;

  /// Throws kInputFormat if a weight is not finite.
  AttentionPage page(std::string title) const;

 private:
  AttentionMap map_of(index sequence) const;
  std::vector<std::pair<std::string, std::string>> facts() const;

  const AttentionCall<T>& call_;
  PageLanguage language_;
  PageRows chosen_;
  std::vector<float> weights_;  // [sequences, H, rows, S]
};

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
// A value part as one writes it outside the library.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "fovea/attention/values/values.h"

namespace fovea::testing {

/// A vector for each distance from `-clip` to `clip` joins the values, by the definition alone
/// (Shaw, Uszkoreit, Vaswani 2018, eq. 3). The table [2 clip + 1, Dv] is shared by the heads.
template <class V>
class RelativeValues final : public ValuePart<V> {
 public:
  RelativeValues(index clip, const std::vector<V>& table, std::vector<V>& dtable)
      : clip_(clip), table_(table), dtable_(dtable) {}
  void vector(const ScoreSite& site, Vec<V> to) const override {
    std::copy_n(table_.begin() + bucket(site) * to.size, to.size, to.data);
  }
  index gradient_size() const override { return static_cast<index>(table_.size()); }
  void add_parameters(const ScoreSite& site, Vec<const V> dvector, double* sums) const override {
    double* row = sums + bucket(site) * dvector.size;
    for (index c = 0; c < dvector.size; ++c) row[c] += static_cast<double>(dvector[c]);
  }
  void store_gradient(const double* sums, index heads) const override {
    for (std::size_t n = 0; n < dtable_.size(); ++n) {
      double total = 0;
      for (index h = 0; h < heads; ++h)
        total += sums[static_cast<std::size_t>(h) * dtable_.size() + n];
      dtable_[n] = static_cast<V>(total);
    }
  }
  std::string name() const override { return "relative values"; }

 private:
  index bucket(const ScoreSite& site) const {
    return std::clamp(site.position() - site.j, -clip_, clip_) + clip_;
  }
  index clip_;
  const std::vector<V>& table_;
  std::vector<V>& dtable_;
};

}  // namespace fovea::testing

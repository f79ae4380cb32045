// SPDX-License-Identifier: Apache-2.0
// The labels of a set of texts, how they are ordered, and how texts are split by them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/types.h"

namespace fovea {

/// Whether a comes before b as people sort: numbers in it by their value, so that "2" comes before
/// "10". Texts that are equal but for leading zeros are ordered by their bytes.
bool natural_less(std::string_view a, std::string_view b);

/// Labels in natural order, each once. Immutable.
class LabelSet {
 public:
  LabelSet() = default;
  explicit LabelSet(std::vector<std::string> labels);

  const std::vector<std::string>& names() const { return names_; }
  index size() const { return static_cast<index>(names_.size()); }
  /// The number of a label, from 0; -1 if it is none of these.
  std::int32_t find(const std::string& label) const;

 private:
  std::vector<std::string> names_;  // by natural_less
};

/// A note on names that differ only in case or in blanks, and may be meant as one: "Pos and pos";
/// empty if there are none.
std::string names_alike(std::span<const std::string> names);

/// Draws about `fraction` of n items, stratified: of the items of each stratum about that part, but
/// never all, and together round(fraction n). strata [n]: the stratum of each item, from 0. The
/// same seed draws the same. Returns for each item whether it was drawn.
std::vector<bool> draw_stratified(std::span<const index> strata, double fraction,
                                  std::uint64_t seed);

}  // namespace fovea

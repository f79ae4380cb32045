// SPDX-License-Identifier: Apache-2.0
#include "fovea/metrics/ter.h"

#include <algorithm>
#include <limits>

#include "fovea/metrics/ngrams.h"
#include "fovea/metrics/shifted_edits.h"
#include "fovea/text/python_text.h"

namespace fovea {

namespace {

class Ter final : public TranslationMetric {
 public:
  std::string_view name() const override { return "TER"; }
  bool larger_is_better() const override { return false; }
  index counts() const override { return 2; }

  void count(std::string_view hypothesis, std::span<const std::string_view> references,
             Vec<double> numbers) const override {
    const std::string lower = python_lower(hypothesis);
    double edits = std::numeric_limits<double>::infinity(), length = 0;
    for (const std::string_view reference : references) {
      const std::string lower_reference = python_lower(reference);
      detail::WordNumbers words;
      const std::u32string first = words.of(python_words(lower));
      const std::u32string second = words.of(python_words(lower_reference));
      edits = std::min(edits, static_cast<double>(detail::shifted_edits(first, second)));
      length += static_cast<double>(second.size());
    }
    numbers[0] = edits;
    numbers[1] = length / static_cast<double>(references.size());
  }

  double score(Vec<const double> sums) const override {
    if (sums[1] > 0) return 100 * (sums[0] / sums[1]);
    return sums[0] > 0 ? 100 : 0;
  }

 private:
  std::string settings() const override { return "case:lc|tok:tercom|norm:no|punct:yes|asian:no"; }
};

}  // namespace

std::unique_ptr<TranslationMetric> ter() { return std::make_unique<Ter>(); }

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
#include "fovea/metrics/ter.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>

#include "fovea/metrics/ngram_metrics.h"
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

namespace fovea::detail {

namespace {

constexpr std::size_t kLongestShift = 10;  // words
constexpr index kFarthestShift = 50;
constexpr index kHalfBand = 25;
constexpr index kMostCandidates = 1000;
constexpr int kUnreached = 1'000'000'000;

// Which word of the hypothesis stands at a word of the reference, and which words are wrong.
struct Alignment {
  std::vector<index> at;                                   // [reference]: -1 before the first word
  std::vector<index> reference_errors, hypothesis_errors;  // [words + 1]: how many before each
};

Alignment align(const std::vector<Edit>& edits) {
  Alignment alignment{.at = {}, .reference_errors = {0}, .hypothesis_errors = {0}};
  const auto mark = [](std::vector<index>& errors, bool wrong) {
    errors.push_back(errors.back() + (wrong ? 1 : 0));
  };
  index hypothesis = -1;
  for (const Edit edit : edits) {
    const bool wrong = edit != Edit::kNone;
    if (edit != Edit::kInsert) {  // a word of the hypothesis
      ++hypothesis;
      mark(alignment.hypothesis_errors, wrong);
    }
    if (edit != Edit::kDelete) {  // a word of the reference
      alignment.at.push_back(hypothesis);
      mark(alignment.reference_errors, wrong);
    }
  }
  return alignment;
}

// A run of words that both have.
struct Run {
  std::size_t hypothesis, reference, length;
};

// Moves the run so that it stands before the word `target` of the whole, or as far as the run
// itself lets it.
std::u32string shifted(std::u32string_view words, const Run& run, std::size_t target) {
  std::u32string rest(words);
  rest.erase(run.hypothesis, run.length);
  const std::size_t begin = run.hypothesis, end = begin + run.length;
  const std::size_t place = target < begin ? target : target > end ? target - run.length : target;
  return rest.insert(std::min(place, rest.size()), words.substr(begin, run.length));
}

// A shift is better by what it saves, then by its length, then the further left the run and its
// target lie.
struct Shift {
  index saved = 0;
  std::size_t length = 0, start = 0, target = 0;
  std::u32string words = {};

  bool is_better_than(const Shift& other) const {
    if (saved != other.saved) return saved > other.saved;
    if (length != other.length) return length > other.length;
    if (start != other.start) return start < other.start;
    return target < other.target;
  }
};

class ShiftSearch {
 public:
  ShiftSearch(std::u32string_view hypothesis, std::u32string_view reference)
      : words_(hypothesis), reference_(reference), distance_(hypothesis.size(), reference) {}

  index run() {
    index shifts = 0;
    while (true) {
      Shift best = best_shift();
      if (candidates_ >= kMostCandidates || best.saved <= 0) break;
      ++shifts;
      words_ = std::move(best.words);
    }
    return shifts + distance_.of(words_);
  }

 private:
  Shift best_shift() {
    before_ = distance_.of(words_);
    alignment_ = align(distance_.edits());
    Shift best;
    bool any = false;
    for (std::size_t h = 0; h < words_.size(); ++h) {
      for (std::size_t r = 0; r < reference_.size(); ++r) {
        if (std::abs(static_cast<index>(r) - static_cast<index>(h)) > kFarthestShift) continue;
        for (std::size_t length = 1; matches({h, r, length}); ++length) {
          try_targets({h, r, length}, best, any);
          if (candidates_ >= kMostCandidates) return best;
        }
      }
    }
    return best;
  }

  // Whether the run is one, given that the shorter ones are.
  bool matches(const Run& run) const {
    const std::size_t h = run.hypothesis + run.length, r = run.reference + run.length;
    return run.length <= kLongestShift && h <= words_.size() && r <= reference_.size() &&
           words_[h - 1] == reference_[r - 1];
  }

  // Only what is wrong on both sides is worth a shift, and only to where it does not stand.
  bool is_worth_it(const Run& run) const {
    const auto errors = [&](const std::vector<index>& before, std::size_t begin) {
      return before[begin + run.length] - before[begin];
    };
    const index there = alignment_.at[run.reference];
    const bool stands_there = there >= static_cast<index>(run.hypothesis) &&
                              there < static_cast<index>(run.hypothesis + run.length);
    return errors(alignment_.hypothesis_errors, run.hypothesis) > 0 &&
           errors(alignment_.reference_errors, run.reference) > 0 && !stands_there;
  }

  void try_targets(const Run& run, Shift& best, bool& any) {
    if (!is_worth_it(run)) return;
    index last = -1;
    for (std::size_t offset = 0; offset <= run.length; ++offset) {
      const std::size_t behind = run.reference + offset;  // the word before it is behind - 1
      if (behind > reference_.size()) break;
      const index target = behind == 0 ? 0 : alignment_.at[behind - 1] + 1;
      if (target == last) continue;
      last = target;
      Shift shift{.length = run.length,
                  .start = run.hypothesis,
                  .target = static_cast<std::size_t>(target)};
      shift.words = shifted(words_, run, shift.target);
      shift.saved = before_ - distance_.of(shift.words);
      ++candidates_;
      if (!any || shift.is_better_than(best)) best = std::move(shift);
      any = true;
    }
  }

  std::u32string words_;
  const std::u32string_view reference_;
  EditDistance distance_;
  index before_ = 0;  // the distance without a shift
  Alignment alignment_;
  index candidates_ = 0;
};

}  // namespace

EditDistance::EditDistance(std::size_t hypothesis, std::u32string_view reference)
    : reference_(reference),
      cells_((hypothesis + 1) * (reference.size() + 1)),
      ratio_(static_cast<double>(reference.size()) / static_cast<double>(hypothesis)),
      width_(kHalfBand) {
  // A row must overlap with the one before it.
  const double half = ratio_ / 2;
  if (static_cast<double>(kHalfBand) < half) {
    width_ = static_cast<index>(std::ceil(half + static_cast<double>(kHalfBand)));
  }
  for (std::size_t j = 0; j <= reference_.size(); ++j) {
    cell(0, j) = {static_cast<int>(j), Edit::kInsert};
  }
}

index EditDistance::of(std::u32string_view words) {
  const auto [known, unused] = std::mismatch(words_.begin(), words_.end(), words.begin());
  const auto first = static_cast<std::size_t>(known - words_.begin()) + 1;
  words_ = words;
  for (std::size_t i = first; i <= words_.size(); ++i) fill_row(i);
  return cell(words_.size(), reference_.size()).cost;
}

// cost(i, j) = min(cost(i-1, j-1) + [words differ], cost(i-1, j) + 1, cost(i, j-1) + 1), the first
// of equal ones.
void EditDistance::fill_row(std::size_t i) {
  const auto columns = static_cast<index>(reference_.size()) + 1;
  const auto diagonal = static_cast<index>(std::floor(static_cast<double>(i) * ratio_));
  const index begin = std::max<index>(0, diagonal - width_);
  const index end = i == words_.size() ? columns : std::min(columns, diagonal + width_);
  for (std::size_t j = 0; j <= reference_.size(); ++j) {
    cell(i, j) = {kUnreached, Edit::kInsert};
    if (static_cast<index>(j) < begin || static_cast<index>(j) >= end) continue;
    const auto offer = [&](int cost, Edit edit) {
      if (cost < cell(i, j).cost) cell(i, j) = {cost, edit};
    };
    if (j > 0) {
      const bool same = words_[i - 1] == reference_[j - 1];
      offer(cell(i - 1, j - 1).cost + (same ? 0 : 1), same ? Edit::kNone : Edit::kSubstitute);
    }
    offer(cell(i - 1, j).cost + 1, Edit::kDelete);
    if (j > 0) offer(cell(i, j - 1).cost + 1, Edit::kInsert);
  }
}

std::vector<Edit> EditDistance::edits() const {
  std::vector<Edit> edits;
  for (std::size_t i = words_.size(), j = reference_.size(); i > 0 || j > 0;) {
    const Edit edit = i == 0 ? Edit::kInsert : j == 0 ? Edit::kDelete : cell(i, j).edit;
    edits.push_back(edit);
    if (edit != Edit::kInsert) --i;
    if (edit != Edit::kDelete) --j;
  }
  std::reverse(edits.begin(), edits.end());
  return edits;
}

index shifted_edits(std::u32string_view hypothesis, std::u32string_view reference) {
  if (reference.empty() || hypothesis.empty()) {
    return static_cast<index>(std::max(hypothesis.size(), reference.size()));
  }
  return ShiftSearch(hypothesis, reference).run();
}

}  // namespace fovea::detail

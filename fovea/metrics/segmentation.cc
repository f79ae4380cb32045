// SPDX-License-Identifier: Apache-2.0
#include "fovea/metrics/segmentation.h"

#include <algorithm>

#include "fovea/base/check.h"

namespace fovea {

namespace {

using detail::Hits;

/// The counts of a sentence: words found, and those of them that are not in the vocabulary.
struct Counts {
  Hits words;
  index unknown = 0, unknown_found = 0;
};

void check_ends(const std::vector<index>& ends, std::string_view which, index sentence) {
  index before = 0;
  for (const index end : ends) {
    check(end > before, "segmentation_report: sentence {}: a {} word ends at {}, after one at {}",
          sentence, which, end, before);
    before = end;
  }
}

void check_sentence(const SegmentedSentence& s, index number) {
  check_ends(s.truth, "true", number);
  check_ends(s.predicted, "predicted", number);
  const index length = s.truth.empty() ? 0 : s.truth.back();
  const index predicted = s.predicted.empty() ? 0 : s.predicted.back();
  check(length == predicted,
        "segmentation_report: sentence {} has {} characters, but {} as it was predicted", number,
        length, predicted);
  check(s.unknown.empty() || s.unknown.size() == s.truth.size(),
        "segmentation_report: sentence {} has {} words and {} flags of unknown words", number,
        s.truth.size(), s.unknown.size());
}

Counts counts_of(const SegmentedSentence& s) {
  Counts counts;
  counts.words.truth = std::ssize(s.truth);
  counts.words.predicted = std::ssize(s.predicted);
  for (std::size_t i = 0; i < s.truth.size(); ++i) {
    const index begin = i == 0 ? 0 : s.truth[i - 1];
    const auto at = std::lower_bound(s.predicted.begin(), s.predicted.end(), s.truth[i]);
    const bool same_end = at != s.predicted.end() && *at == s.truth[i];
    const bool found = same_end && (at == s.predicted.begin() ? 0 : *(at - 1)) == begin;
    const bool is_unknown = !s.unknown.empty() && s.unknown[i] != 0;
    counts.words.both += found ? 1 : 0;
    counts.unknown += is_unknown ? 1 : 0;
    counts.unknown_found += is_unknown && found ? 1 : 0;
  }
  return counts;
}

std::vector<Counts> counts_of(std::span<const SegmentedSentence> sentences) {
  check(!sentences.empty(), Hint{"give at least one sentence"},
        "segmentation_report: there are no sentences");
  std::vector<Counts> all;
  for (const SegmentedSentence& sentence : sentences) {
    check_sentence(sentence, std::ssize(all));
    all.push_back(counts_of(sentence));
  }
  return all;
}

SegmentationReport report_of(const std::vector<Counts>& sentences, Vec<const index> times) {
  Counts sum;
  SegmentationReport report;
  for (index i = 0; i < times.size; ++i) {
    const Counts& own = sentences[static_cast<std::size_t>(i)];
    const index n = times[i];
    sum.words.truth += n * own.words.truth;
    sum.words.predicted += n * own.words.predicted;
    sum.words.both += n * own.words.both;
    sum.unknown += n * own.unknown;
    sum.unknown_found += n * own.unknown_found;
    report.sentences += n;
  }
  report.words = sum.words.truth;
  report.predicted = sum.words.predicted;
  report.unknown = sum.unknown;
  report.words_found = detail::scores_of(sum.words);
  report.known_recall =
      detail::share(sum.words.both - sum.unknown_found, sum.words.truth - sum.unknown);
  report.unknown_recall = detail::share(sum.unknown_found, sum.unknown);
  return report;
}

}  // namespace

SegmentationReport segmentation_report(std::span<const SegmentedSentence> sentences) {
  const std::vector<Counts> all = counts_of(sentences);
  const std::vector<index> once(all.size(), 1);
  return report_of(all, once);
}

SegmentationIntervals segmentation_intervals(const Context& ctx,
                                             std::span<const SegmentedSentence> sentences,
                                             const BootstrapOptions& options) {
  const std::vector<Counts> all = counts_of(sentences);
  const std::vector<index> cells(all.size(), 1);
  const auto of_resample = [&](Vec<const index> times) { return report_of(all, times); };
  return detail::report_intervals<SegmentationReportOf>(ctx, cells, of_resample, options);
}

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
#include "fovea/metrics/spans.h"

#include <algorithm>
#include <optional>

#include "fovea/base/check.h"
#include "fovea/base/machine.h"

namespace fovea {

namespace {

using detail::Hits;

/// The spans of one type in one sentence.
struct TypeHits {
  std::size_t type;
  Hits hits;
};

struct Sentence {
  std::vector<TypeHits> hits;  // of the types that it has
  index tokens = 0, right_tokens = 0;
  bool is_exact = false;
};

struct Sentences {
  std::size_t types = 0;
  std::vector<Sentence> all;
};

void check_spans(const std::vector<TagSpan>& spans, std::string_view which, index sentence,
                 index types) {
  index end = 0;
  for (const TagSpan& span : spans) {
    check(span.begin >= end && span.begin < span.end,
          "span_report: sentence {}: the {} span from {} to {} is out of order", sentence, which,
          span.begin, span.end);
    check(span.type >= 0 && span.type < types,
          "span_report: sentence {}: the type {} of a {} span is not one of the {} types", sentence,
          span.type, which, types);
    end = span.end;
  }
}

Sentence sentence_of(const SentenceSpans& spans) {
  Sentence sentence{.hits = {}, .tokens = spans.tokens, .right_tokens = spans.right_tokens};
  sentence.is_exact = spans.truth == spans.predicted;
  const auto hits_of = [&](const TagSpan& span) -> Hits& {
    const auto type = static_cast<std::size_t>(span.type);
    const auto at = std::find_if(sentence.hits.begin(), sentence.hits.end(),
                                 [&](const TypeHits& t) { return t.type == type; });
    if (at != sentence.hits.end()) return at->hits;
    sentence.hits.push_back({type, {}});
    return sentence.hits.back().hits;
  };
  for (const TagSpan& span : spans.truth) ++hits_of(span).truth;
  for (const TagSpan& span : spans.predicted) {
    Hits& hits = hits_of(span);
    ++hits.predicted;
    if (std::binary_search(spans.truth.begin(), spans.truth.end(), span)) ++hits.both;
  }
  return sentence;
}

void check_sentences(std::span<const SentenceSpans> sentences, index types) {
  check(!sentences.empty(), Hint{"give at least one sentence"},
        "span_report: there are no sentences");
  check(types >= 0, "span_report: the number of types is {}", types);
  index number = 0;
  for (const SentenceSpans& spans : sentences) {
    check_spans(spans.truth, "true", number, types);
    check_spans(spans.predicted, "predicted", number, types);
    check(spans.right_tokens >= 0 && spans.right_tokens <= spans.tokens,
          "span_report: sentence {}: {} of {} tokens are right", number, spans.right_tokens,
          spans.tokens);
    ++number;
  }
}

Sentences sentences_of(std::span<const SentenceSpans> sentences, index types) {
  check_sentences(sentences, types);
  Sentences result{.types = static_cast<std::size_t>(types), .all = {}};
  for (const SentenceSpans& spans : sentences) result.all.push_back(sentence_of(spans));
  return result;
}

SpanReport report_of(const Sentences& sentences, Vec<const index> times) {
  std::vector<Hits> types(sentences.types);
  SpanReport report;
  index right_tokens = 0, exact = 0;
  for (index i = 0; i < times.size; ++i) {
    const index n = times[i];
    if (n == 0) continue;
    const Sentence& sentence = sentences.all[static_cast<std::size_t>(i)];
    for (const TypeHits& own : sentence.hits) {
      types[own.type].truth += n * own.hits.truth;
      types[own.type].predicted += n * own.hits.predicted;
      types[own.type].both += n * own.hits.both;
    }
    report.sentences += n;
    report.tokens += n * sentence.tokens;
    right_tokens += n * sentence.right_tokens;
    exact += sentence.is_exact ? n : 0;
  }
  report.accuracy = detail::share(right_tokens, report.tokens);
  report.exact = detail::share(exact, report.sentences);
  for (const Hits& hits : types) report.right.push_back(hits.both);
  detail::set_scores(report, report.types, types, false);
  return report;
}

}  // namespace

SpanReport span_report(std::span<const SentenceSpans> sentences, index types) {
  const Sentences all = sentences_of(sentences, types);
  const std::vector<index> once(all.all.size(), 1);
  return report_of(all, once);
}

SpanIntervals span_intervals(const Context& ctx, std::span<const SentenceSpans> sentences,
                             index types, const BootstrapOptions& options) {
  const Sentences all = sentences_of(sentences, types);
  const std::vector<index> cells(all.all.size(), 1);
  const auto of_resample = [&](Vec<const index> times) { return report_of(all, times); };
  return detail::report_intervals<SpanReportOf>(ctx, cells, of_resample, options);
}

ConfusionMatrix type_confusion(std::span<const SentenceSpans> sentences, index types) {
  check_sentences(sentences, types);
  const index K = types + 1;
  const index cells = checked_product(K, K, "type_confusion: types^2");
  require_memory(fmt::format("the confusion matrix of {} types of spans", types),
                 sizeof(index) * static_cast<double>(cells), "use fewer types");
  ConfusionMatrix confusion{K, std::vector<index>(static_cast<std::size_t>(cells))};
  const auto count = [&](index truth, index predicted) {
    ++confusion.counts[static_cast<std::size_t>(truth * K + predicted)];
  };
  const auto type_at = [](const std::vector<TagSpan>& spans,
                          const TagSpan& place) -> std::optional<index> {
    const auto at =
        std::lower_bound(spans.begin(), spans.end(), TagSpan{place.begin, place.end, 0});
    if (at == spans.end() || at->begin != place.begin || at->end != place.end) return std::nullopt;
    return at->type;
  };
  for (const SentenceSpans& spans : sentences) {
    for (const TagSpan& span : spans.truth) {
      count(span.type, type_at(spans.predicted, span).value_or(types));
    }
    for (const TagSpan& span : spans.predicted) {
      if (!type_at(spans.truth, span)) count(types, span.type);
    }
  }
  return confusion;
}

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

SegmentationReport segmentation_report_of(const std::vector<Counts>& sentences,
                                          Vec<const index> times) {
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
  return segmentation_report_of(all, once);
}

SegmentationIntervals segmentation_intervals(const Context& ctx,
                                             std::span<const SegmentedSentence> sentences,
                                             const BootstrapOptions& options) {
  const std::vector<Counts> all = counts_of(sentences);
  const std::vector<index> cells(all.size(), 1);
  const auto of_resample = [&](Vec<const index> times) {
    return segmentation_report_of(all, times);
  };
  return detail::report_intervals<SegmentationReportOf>(ctx, cells, of_resample, options);
}

}  // namespace fovea

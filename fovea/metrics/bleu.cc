// SPDX-License-Identifier: Apache-2.0
#include "fovea/metrics/bleu.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "fovea/metrics/ngrams.h"
#include "fovea/text/python_text.h"

namespace fovea {

namespace {

constexpr index kOrders = 4;

// The tokens of a hypothesis and its references; equal ones have equal numbers.
struct Numbered {
  std::u32string hypothesis;
  std::vector<std::u32string> references;
};

// The length of the nearest reference; of the shortest, if several are equally near.
index nearest_length(index length, const std::vector<std::u32string>& references) {
  const auto size_of = [](const std::u32string& r) { return static_cast<index>(r.size()); };
  index nearest = size_of(references.front());
  for (const std::u32string& reference : references) {
    const index size = size_of(reference);
    const index away = std::abs(size - length), best = std::abs(nearest - length);
    if (away < best || (away == best && size < nearest)) nearest = size;
  }
  return nearest;
}

class Bleu final : public TranslationMetric {
 public:
  explicit Bleu(const BleuOptions& options) : options_(options) {}

  std::string_view name() const override { return "BLEU"; }
  index counts() const override { return 2 + 2 * kOrders; }

  void count(std::string_view hypothesis, std::span<const std::string_view> references,
             Vec<double> numbers) const override {
    const Numbered tokens = numbered(hypothesis, references);
    const auto length = static_cast<index>(tokens.hypothesis.size());
    numbers[0] = static_cast<double>(length);
    numbers[1] = static_cast<double>(nearest_length(length, tokens.references));
    for (index n = 1; n <= kOrders; ++n) {
      detail::Ngrams wanted;
      for (const auto& reference : tokens.references) {
        detail::take_larger(wanted, detail::ngrams_of(reference, n));
      }
      const index right = detail::count_shared(detail::ngrams_of(tokens.hypothesis, n), wanted);
      numbers[1 + n] = static_cast<double>(right);
      numbers[1 + kOrders + n] =
          static_cast<double>(detail::ngram_count(tokens.hypothesis.size(), n));
    }
  }

  double score(Vec<const double> sums) const override { return bleu_score(sums).score; }
  double sentence_score(Vec<const double> numbers) const override {
    return bleu_score(numbers, BleuOrder::kEffective).score;
  }
  std::string details(Vec<const double> sums) const override { return bleu_score(sums).details(); }

 private:
  std::string settings() const override {
    return fmt::format("case:{}|eff:no|tok:{}|smooth:exp",
                       detail::case_in_signature(options_.letters), to_string(options_.tokens));
  }

  Numbered numbered(std::string_view hypothesis,
                    std::span<const std::string_view> references) const {
    const auto tokens_of = [&](std::string_view text) {
      return bleu_tokens(detail::in_case(text, options_.letters), options_.tokens);
    };
    std::vector<std::string> texts{tokens_of(hypothesis)};
    for (const std::string_view reference : references) texts.push_back(tokens_of(reference));
    detail::WordNumbers words;
    Numbered result;
    result.hypothesis = words.of(python_words(texts.front()));
    for (std::size_t r = 1; r < texts.size(); ++r) {
      result.references.push_back(words.of(python_words(texts[r])));
    }
    return result;
  }

  const BleuOptions options_;
};

}  // namespace

std::string BleuScore::details() const {
  return fmt::format(
      "{:.1f}/{:.1f}/{:.1f}/{:.1f} (BP = {:.3f} ratio = {:.3f} hyp_len = {:.0f} ref_len = {:.0f})",
      precisions[0], precisions[1], precisions[2], precisions[3], brevity,
      reference_length > 0 ? hypothesis_length / reference_length : 0, hypothesis_length,
      reference_length);
}

BleuScore bleu_score(Vec<const double> sums, BleuOrder order) {
  const double *right = sums.data + 2, *all = right + kOrders;
  BleuScore result{.hypothesis_length = sums[0], .reference_length = sums[1]};
  if (sums[0] < sums[1]) result.brevity = sums[0] > 0 ? std::exp(1 - sums[1] / sums[0]) : 0;
  if (std::all_of(right, all, [](double count) { return count == 0; })) return result;
  double halved = 1;
  index orders = kOrders;
  for (index n = 0; n < kOrders && all[n] > 0; ++n) {
    if (order == BleuOrder::kEffective) orders = n + 1;
    if (right[n] == 0) halved *= 2;  // an order without any counts as 1/2, the next as 1/4, ...
    const double counted = right[n] == 0 ? 1 / halved : right[n];
    result.precisions[static_cast<std::size_t>(n)] = 100 * counted / all[n];
  }
  double logs = 0;
  for (index n = 0; n < orders; ++n) {
    logs += std::log(result.precisions[static_cast<std::size_t>(n)]);
  }
  result.score = result.brevity * std::exp(logs / static_cast<double>(orders));
  return result;
}

std::unique_ptr<TranslationMetric> bleu(const BleuOptions& options) {
  return std::make_unique<Bleu>(options);
}

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
#include "fovea/metrics/chrf.h"

#include <fmt/core.h>

#include <cmath>
#include <string>

#include "fovea/base/option.h"
#include "fovea/metrics/ngrams.h"
#include "fovea/text/python_text.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

constexpr index kCharacters = 6;
constexpr double kBeta = 2;

bool is_punctuation(char c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
         (c >= '{' && c <= '~');
}

// Words, from which one ASCII punctuation mark at the end, or else at the beginning, is parted.
std::vector<std::string_view> parted_words(std::string_view text) {
  std::vector<std::string_view> words;
  for (const std::string_view word : python_words(text)) {
    const std::size_t size = word.size();
    if (static_cast<std::size_t>(decode_character(word).length) == size) {
      words.push_back(word);
    } else if (is_punctuation(word.back())) {
      words.push_back(word.substr(0, size - 1));
      words.push_back(word.substr(size - 1));
    } else if (is_punctuation(word.front())) {
      words.push_back(word.substr(0, 1));
      words.push_back(word.substr(1));
    } else {
      words.push_back(word);
    }
  }
  return words;
}

std::u32string characters_without_space(std::string_view text) {
  std::u32string characters = characters_in(text);
  std::erase_if(characters, is_python_space);
  return characters;
}

// [hypothesis, reference, both] for each order.
void count_orders(const std::u32string& hypothesis, const std::u32string& reference, index orders,
                  double* numbers) {
  for (index n = 1; n <= orders; ++n, numbers += 3) {
    const index wanted = detail::ngram_count(reference.size(), n);
    numbers[0] = wanted == 0 ? 0 : static_cast<double>(detail::ngram_count(hypothesis.size(), n));
    numbers[1] = static_cast<double>(wanted);
    numbers[2] = static_cast<double>(
        detail::count_shared(detail::ngrams_of(hypothesis, n), detail::ngrams_of(reference, n)));
  }
}

class Chrf final : public TranslationMetric {
 public:
  explicit Chrf(const ChrfOptions& options)
      : words_(options.word_order),
        letters_(options.letters),
        name_("chrF2" + std::string(static_cast<std::size_t>(options.word_order), '+')) {}

  std::string_view name() const override { return name_; }
  index counts() const override { return 3 * (kCharacters + words_); }

  void count(std::string_view hypothesis, std::span<const std::string_view> references,
             Vec<double> numbers) const override {
    const std::string cased = detail::in_case(hypothesis, letters_);
    double best = -1;
    std::vector<double> one(static_cast<std::size_t>(counts()));
    for (const std::string_view reference : references) {
      count_one(cased, detail::in_case(reference, letters_), one);
      const double found = score(one);
      if (found <= best) continue;
      best = found;
      std::copy(one.begin(), one.end(), numbers.begin());
    }
  }

  double score(Vec<const double> sums) const override {
    double precision = 0, recall = 0, orders = 0;
    for (index at = 0; at < sums.size; at += 3) {
      const double hypothesis = sums[at], reference = sums[at + 1], both = sums[at + 2];
      if (hypothesis == 0 || reference == 0) continue;
      precision += both / hypothesis;
      recall += both / reference;
      ++orders;
    }
    if (precision + recall == 0) return 0;
    precision /= orders;
    recall /= orders;
    constexpr double kSquare = kBeta * kBeta;
    return 100 * ((1 + kSquare) * precision * recall / (kSquare * precision + recall));
  }

 private:
  std::string settings() const override {
    return fmt::format("case:{}|eff:yes|nc:{}|nw:{}|space:no", detail::case_in_signature(letters_),
                       kCharacters, words_);
  }

  void count_one(std::string_view hypothesis, std::string_view reference,
                 std::vector<double>& numbers) const {
    count_orders(characters_without_space(hypothesis), characters_without_space(reference),
                 kCharacters, numbers.data());
    if (words_ == 0) return;
    detail::WordNumbers words;
    const std::u32string first = words.of(parted_words(hypothesis));
    const std::u32string second = words.of(parted_words(reference));
    count_orders(first, second, words_, numbers.data() + 3 * kCharacters);
  }

  const index words_;
  const LetterCase letters_;
  const std::string name_;
};

}  // namespace

std::unique_ptr<TranslationMetric> chrf(const ChrfOptions& options) {
  require_option(options.word_order >= 0 && options.word_order <= 9, "word-order",
                 options.word_order, "from 0 to 9");
  return std::make_unique<Chrf>(options);
}

}  // namespace fovea

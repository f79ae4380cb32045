// SPDX-License-Identifier: Apache-2.0
#include "fovea/metrics/ngram_metrics.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <string>

#include "fovea/base/option.h"
#include "fovea/metrics/translation.h"
#include "fovea/text/python_text.h"
#include "fovea/text/utf8.h"

namespace fovea::detail {

Ngrams ngrams_of(std::u32string_view units, index n) {
  Ngrams ngrams;
  const index count = ngram_count(units.size(), n);
  ngrams.reserve(static_cast<std::size_t>(count));
  for (index i = 0; i < count; ++i) {
    ++ngrams[units.substr(static_cast<std::size_t>(i), static_cast<std::size_t>(n))];
  }
  return ngrams;
}

void take_larger(Ngrams& ngrams, const Ngrams& other) {
  for (const auto& [ngram, count] : other) {
    index& mine = ngrams[ngram];
    mine = std::max(mine, count);
  }
}

index count_shared(const Ngrams& a, const Ngrams& b) {
  index shared = 0;
  for (const auto& [ngram, count] : a) {
    const auto found = b.find(ngram);
    if (found != b.end()) shared += std::min(count, found->second);
  }
  return shared;
}

std::u32string WordNumbers::of(std::span<const std::string_view> words) {
  std::u32string numbers;
  for (const std::string_view word : words) {
    const auto next = static_cast<char32_t>(numbers_.size());
    numbers += numbers_.emplace(word, next).first->second;
  }
  return numbers;
}

}  // namespace fovea::detail

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

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_point(char c) { return c == '.' || c == ','; }

// ASCII symbols and the space, but not ' , - . and digits or letters.
bool is_symbol(char c) {
  return (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= ' ' && c <= '&') ||
         (c >= '(' && c <= '+') || (c >= ':' && c <= '@') || c == '/';
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != text.npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

std::string around_symbols(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (is_symbol(c)) {
      out.append({' ', c, ' '});
    } else {
      out += c;
    }
  }
  return out;
}

// Rewrites each pair of characters that `matches`, left to right; the next pair begins behind it.
// Bytes will do: all that is looked for is ASCII or its absence.
template <class Matches, class Write>
std::string rewrite_pairs(std::string_view text, Matches&& matches, Write&& write) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i + 1 < text.size() && matches(text[i], text[i + 1])) {
      write(out, text[i], text[i + 1]);
      ++i;
    } else {
      out += text[i];
    }
  }
  return out;
}

// The four rules that 13a and zh share, one after another.
std::string western_tokens(std::string_view sentence) {
  std::string text = around_symbols(sentence);
  const auto space_behind_both = [](std::string& out, char a, char b) {
    out.append({a, ' ', b, ' '});
  };
  const auto space_before_both = [](std::string& out, char a, char b) {
    out.append({' ', a, ' ', b});
  };
  text = rewrite_pairs(
      text, [](char a, char b) { return !is_digit(a) && is_point(b); }, space_behind_both);
  text = rewrite_pairs(
      text, [](char a, char b) { return is_point(a) && !is_digit(b); }, space_before_both);
  return rewrite_pairs(
      text, [](char a, char b) { return is_digit(a) && b == '-'; }, space_behind_both);
}

std::string tokens_13a(std::string_view sentence) {
  std::string text(sentence);
  replace_all(text, "<skipped>", "");
  replace_all(text, "-\n", "");
  replace_all(text, "\n", " ");
  replace_all(text, "&quot;", "\"");
  replace_all(text, "&amp;", "&");
  replace_all(text, "&lt;", "<");
  replace_all(text, "&gt;", ">");
  return western_tokens(" " + text + " ");
}

struct Range {
  char32_t first, last;
};

// The characters that sacreBLEU takes for Chinese. Its range of U+20000 to U+2A6D6 is written with
// five digits behind \u, which Python reads as four and a digit: it goes from U+2001 to U+2A6D.
constexpr Range kChinese[] = {
    {0x2001, 0x2A6D}, {0x2E80, 0x2EFF}, {0x2F00, 0x2FDF}, {0x2FF0, 0x2FFF}, {0x3000, 0x303F},
    {0x3100, 0x312F}, {0x31A0, 0x31BF}, {0x31C0, 0x31EF}, {0x3200, 0x33FF}, {0x3400, 0x4DB5},
    {0x4E00, 0x9FBB}, {0xF900, 0xFA2D}, {0xFA30, 0xFA6A}, {0xFA70, 0xFAD9}, {0xFE10, 0xFE1F},
    {0xFE30, 0xFE4F}, {0xFF00, 0xFFEF}};

bool is_chinese(char32_t c) {
  return std::any_of(std::begin(kChinese), std::end(kChinese),
                     [c](const Range& range) { return c >= range.first && c <= range.last; });
}

// The characters that are `alone` get a space on both sides.
template <class Alone>
std::string spaced(std::string_view text, Alone&& alone) {
  std::string out;
  while (!text.empty()) {
    const TakenCharacter c = take_character(text);
    const std::string_view space = alone(c.value) ? " " : "";
    out.append(space).append(c.bytes).append(space);
  }
  return out;
}

}  // namespace

std::string bleu_tokens(std::string_view sentence, BleuTokens kind) {
  const std::string_view text = strip_end(sentence);
  switch (kind) {
    case BleuTokens::k13a:
      return tokens_13a(text);
    case BleuTokens::kZh:
      return western_tokens(spaced(strip_both(text), is_chinese));
    case BleuTokens::kChar:
      return spaced(text, [](char32_t) { return true; });
    case BleuTokens::kNone:
      break;
  }
  return std::string(text);
}

}  // namespace fovea

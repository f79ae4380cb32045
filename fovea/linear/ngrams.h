// SPDX-License-Identifier: Apache-2.0
// The n-grams of words and characters of texts: read, counted, and kept with their names.
#pragma once

#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/context.h"
#include "fovea/base/types.h"
#include "fovea/text/vocabulary.h"

namespace fovea {

/// The lengths of n-grams, "1-3"; none: "0".
struct NgramLengths {
  int least = 0, most = 0;

  bool any() const { return most > 0; }
  friend bool operator==(const NgramLengths&, const NgramLengths&) = default;
};

inline constexpr int kLongestLinearNgram = 8;

/// Reads "0", "2" or "1-3". Throws kOptionValue, which names the option, for any other text.
NgramLengths parse_lengths(std::string_view text, std::string_view option);
std::string to_string(NgramLengths lengths);

enum class NgramKind : std::uint8_t {
  kWords,
  kCharacters,  ///< of a word with the blank before and the blank behind it
};

struct NgramRules {
  NgramLengths words = {}, characters = {};
  WordSplit split = WordSplit::kPunctuation;
  bool lower = true;
  bool binary = false;  ///< whether an n-gram occurs counts, not how often

  NgramLengths lengths(NgramKind kind) const {
    return kind == NgramKind::kWords ? words : characters;
  }
};

/// Reads texts as n-grams. Belongs to one thread; keeps its memory from one text to the next.
class NgramReader {
 public:
  /// Longer ones, in bytes, are left out: no text makes names without end.
  static constexpr std::size_t kLongestName = 128;

  explicit NgramReader(const NgramRules& rules) : rules_(rules) {}

  /// Takes a text in valid UTF-8, which must live until the last for_each().
  void read(std::string_view text);

  /// Calls f(name, begin, end) for each n-gram of the text in turn: its name, which is valid until
  /// the next read(), and the bytes of the text that it spans. A blank joins the words of a name.
  template <class F>
  void for_each(NgramKind kind, F&& f) {
    kind == NgramKind::kWords ? for_words(f) : for_characters(f);
  }

 private:
  struct Word {
    std::size_t begin, end;   // in the text
    std::size_t start, stop;  // in the names
  };

  template <class F>
  void for_words(F& f) const {
    const auto [least, most] = rules_.words;
    for (std::size_t first = 0; first < words_.size(); ++first) {
      for (auto n = static_cast<std::size_t>(least); n <= static_cast<std::size_t>(most); ++n) {
        if (first + n > words_.size()) break;
        const Word &a = words_[first], &b = words_[first + n - 1];
        if (b.stop - a.start > kLongestName) break;
        f(std::string_view(names_).substr(a.start, b.stop - a.start), a.begin, b.end);
      }
    }
  }

  template <class F>
  void for_characters(F& f) {
    const auto [least, most] = rules_.characters;
    if (most == 0) return;
    for (const Word& word : words_) {
      find_characters(word);
      const std::size_t count = in_names_.size() - 1;
      for (std::size_t first = 0; first < count; ++first) {
        for (auto n = static_cast<std::size_t>(least); n <= static_cast<std::size_t>(most); ++n) {
          if (first + n > count) break;
          const bool is_blank = n == 1 && (first == 0 || first + 1 == count);
          if (is_blank) continue;
          const std::size_t begin = in_names_[first], end = in_names_[first + n];
          if (end - begin > kLongestName) break;
          f(std::string_view(names_).substr(begin, end - begin), in_text_[first],
            in_text_[first + n]);
        }
      }
    }
  }

  // The characters of a word between its blanks: where each begins, and where the last ends.
  void find_characters(const Word& word);

  const NgramRules rules_;
  std::string_view text_;
  std::string names_;  // the words, with a blank before and behind each
  std::vector<Word> words_;
  std::vector<std::size_t> in_names_, in_text_;
};

/// Names with numbers from 0, found by a hash that nobody can foresee. No result depends on it.
class NgramNames {
 public:
  NgramNames();
  /// The names that text() gave. Throws kModelDamaged, in which `where` names them, if two are the
  /// same, one is empty, or the last has no end.
  static NgramNames from_text(std::string_view text, const std::string& where);

  /// The number of a name, or -1.
  std::int32_t find(std::string_view name) const;
  /// Appends the numbers of the names that are known, in turn. All are asked for before the first
  /// is needed, since they lie anywhere in memory.
  void find_all(std::span<const std::string_view> names, std::vector<std::int32_t>& numbers) const;
  /// The number of the name; a new one gets the next number.
  std::int32_t add(std::string_view name);

  index size() const { return static_cast<index>(ends_.size()); }
  std::string_view name(std::int32_t number) const;
  /// All names in turn, each with a line feed behind it.
  const std::string& text() const { return text_; }

  /// Bytes of a table of so many names.
  static double bytes_of(double names, double characters);

 private:
  struct Slot {
    std::uint32_t tag = 0;
    std::int32_t number = -1;
  };

  std::size_t slot_of(std::string_view name, std::uint64_t hash) const;
  std::size_t begin_of(std::int32_t number) const {
    return number == 0 ? 0 : ends_[static_cast<std::size_t>(number) - 1] + 1;
  }
  void grow();

  std::string text_;
  std::vector<std::uint32_t> ends_;  // in the text, of the name before its line feed
  std::vector<Slot> slots_;          // a power of two
};

/// The n-grams that are kept, the most frequent first, and in how many texts each occurs.
struct CountedNgrams {
  NgramNames names;
  std::vector<std::int32_t> texts;

  /// The values of the rows of these texts.
  index values() const { return std::accumulate(texts.begin(), texts.end(), index{0}); }
};

struct NgramLimits {
  index least_texts = 1;           ///< rarer ones are dropped
  index most_kept = 2'000'000;     ///< of more, the rarest are dropped
  index most_counted = 6'000'000;  ///< at once; of more, the rarest so far are forgotten
};

/// Counts those of one kind. What is counted depends on the texts and their order alone. Throws
/// kOutOfMemory before it takes more than there is.
CountedNgrams count_ngrams(std::span<const std::string> texts, const NgramRules& rules,
                           NgramKind kind, const NgramLimits& limits = {});

/// A row that is mostly 0: its other values, at columns that ascend.
struct SparseRow {
  std::span<const std::int32_t> columns;
  std::span<const float> values;

  /// The sum of its values times the weights [columns].
  double product(std::span<const double> weights) const {
    double sum = 0;
    for (std::size_t n = 0; n < columns.size(); ++n) {
      sum += weights[static_cast<std::size_t>(columns[n])] * double{values[n]};
    }
    return sum;
  }
};

/// Rows that are mostly 0: row i has values[starts[i]] .. at columns, which ascend.
struct SparseRows {
  std::vector<index> starts{0};
  std::vector<std::int32_t> columns;
  std::vector<float> values;

  index rows() const { return static_cast<index>(starts.size()) - 1; }
  SparseRow row(index i) const {
    const auto begin = static_cast<std::size_t>(starts[static_cast<std::size_t>(i)]);
    const auto size = static_cast<std::size_t>(starts[static_cast<std::size_t>(i) + 1]) - begin;
    return {std::span(columns).subspan(begin, size), std::span(values).subspan(begin, size)};
  }
  index size() const { return static_cast<index>(columns.size()); }
  static double bytes_of(double values) { return values * (sizeof(float) + sizeof(std::int32_t)); }
};

/// How often each n-gram of the names occurs in each text.
SparseRows count_rows(const Context& context, std::span<const std::string> texts,
                      const NgramRules& rules, NgramKind kind, const NgramNames& names);

/// Appends the numbers of the n-grams of the text that was read, ascending, and how often each
/// occurs. `found` is scratch memory.
void append_counts(NgramReader& reader, NgramKind kind, const NgramNames& names,
                   std::vector<std::int32_t>& found, std::vector<std::int32_t>& columns,
                   std::vector<float>& counts);

}  // namespace fovea

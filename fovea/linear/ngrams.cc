// SPDX-License-Identifier: Apache-2.0
#include "fovea/linear/ngrams.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/base/machine.h"
#include "fovea/base/option.h"
#include "fovea/simd/prefetch.h"
#include "fovea/text/keyed_hash.h"
#include "fovea/text/utf8.h"
#include "fovea/text/words.h"

namespace fovea {

namespace {

constexpr std::size_t kFirstSlots = 1024;
constexpr std::string_view kLessText = "use less text, or a machine with more memory";

bool parse_length(std::string_view text, int& length) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, length);
  return error == std::errc() && stop == end && length >= 1 && length <= kLongestLinearNgram;
}

}  // namespace

NgramLengths parse_lengths(std::string_view text, std::string_view option) {
  if (text == "0") return {};
  NgramLengths lengths;
  const std::size_t dash = text.find('-');
  const bool ok =
      parse_length(text.substr(0, dash), lengths.least) &&
      parse_length(dash == std::string_view::npos ? text : text.substr(dash + 1), lengths.most) &&
      lengths.least <= lengths.most;
  if (ok) return lengths;
  fail_option(
      option, text,
      fmt::format("0, a length, or two with a dash between them, such as 1-2, of at most {}",
                  kLongestLinearNgram));
}

std::string to_string(NgramLengths lengths) {
  if (lengths.least == lengths.most) return std::to_string(lengths.most);
  return fmt::format("{}-{}", lengths.least, lengths.most);
}

void NgramReader::read(std::string_view text) {
  text_ = text;
  names_.assign(1, ' ');
  words_.clear();
  for (std::string_view rest = text;;) {
    const std::string_view word = take_word(rest, rules_.split);
    if (word.empty()) return;
    const auto begin = static_cast<std::size_t>(word.data() - text.data());
    const std::size_t start = names_.size();
    if (rules_.lower) {
      append_lower(names_, word);
    } else {
      names_.append(word);
    }
    words_.push_back({begin, begin + word.size(), start, names_.size()});
    names_ += ' ';
  }
}

void NgramReader::find_characters(const Word& word) {
  in_names_.assign({word.start - 1, word.start});
  in_text_.assign({word.begin, word.begin});
  const auto step = [](std::string_view of, std::size_t at) {
    return at + static_cast<std::size_t>(decode_character(of.substr(at)).length);
  };
  // A character has one in lower case, of any number of bytes.
  for (std::size_t at = word.start, here = word.begin; at < word.stop;) {
    at = step(names_, at);
    here = step(text_, here);
    in_names_.push_back(at);
    in_text_.push_back(here);
  }
  in_names_.push_back(word.stop + 1);
  in_text_.push_back(word.end);
}

NgramNames::NgramNames() : slots_(kFirstSlots) {}

std::string_view NgramNames::name(std::int32_t number) const {
  const std::size_t begin = begin_of(number);
  return std::string_view(text_).substr(begin, ends_[static_cast<std::size_t>(number)] - begin);
}

// The slot that has the name, or the free one where it belongs.
std::size_t NgramNames::slot_of(std::string_view wanted, std::uint64_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  const auto tag = static_cast<std::uint32_t>(hash >> 32);
  for (std::size_t at = hash & mask;; at = (at + 1) & mask) {
    const Slot& slot = slots_[at];
    if (slot.number < 0 || (slot.tag == tag && name(slot.number) == wanted)) return at;
  }
}

std::int32_t NgramNames::find(std::string_view wanted) const {
  return slots_[slot_of(wanted, keyed_hash(wanted))].number;
}

void NgramNames::find_all(std::span<const std::string_view> names,
                          std::vector<std::int32_t>& numbers) const {
  constexpr std::size_t kTogether = 64;
  std::array<std::uint64_t, kTogether> hashes;
  std::array<std::int32_t, kTogether> likely;
  while (!names.empty()) {
    const std::size_t count = std::min(kTogether, names.size());
    for (std::size_t n = 0; n < count; ++n) {
      hashes[n] = keyed_hash(names[n]);
      detail::prefetch_line(&slots_[hashes[n] & (slots_.size() - 1)]);
    }
    for (std::size_t n = 0; n < count; ++n) {
      const Slot& slot = slots_[hashes[n] & (slots_.size() - 1)];
      likely[n] = slot.tag == static_cast<std::uint32_t>(hashes[n] >> 32) ? slot.number : -1;
      if (likely[n] >= 0) detail::prefetch_line(&ends_[static_cast<std::size_t>(likely[n])]);
    }
    for (std::size_t n = 0; n < count; ++n) {
      if (likely[n] >= 0) detail::prefetch_line(text_.data() + begin_of(likely[n]));
    }
    for (std::size_t n = 0; n < count; ++n) {
      const std::int32_t number = slots_[slot_of(names[n], hashes[n])].number;
      if (number >= 0) numbers.push_back(number);
    }
    names = names.subspan(count);
  }
}

std::int32_t NgramNames::add(std::string_view wanted) {
  const std::uint64_t hash = keyed_hash(wanted);
  Slot& slot = slots_[slot_of(wanted, hash)];
  if (slot.number >= 0) return slot.number;
  check(text_.size() + wanted.size() < std::numeric_limits<std::uint32_t>::max(),
        "n-grams: their names have 4 GiB or more");
  const auto number = static_cast<std::int32_t>(ends_.size());
  slot = {static_cast<std::uint32_t>(hash >> 32), number};
  text_ += wanted;
  ends_.push_back(static_cast<std::uint32_t>(text_.size()));
  text_ += '\n';
  if (2 * ends_.size() > slots_.size()) grow();
  return number;
}

void NgramNames::grow() {
  slots_.assign(2 * slots_.size(), {});
  for (std::size_t n = 0; n < ends_.size(); ++n) {
    const std::string_view own = name(static_cast<std::int32_t>(n));
    const std::uint64_t hash = keyed_hash(own);
    slots_[slot_of(own, hash)] = {static_cast<std::uint32_t>(hash >> 32),
                                  static_cast<std::int32_t>(n)};
  }
}

NgramNames NgramNames::from_text(std::string_view text, const std::string& where) {
  NgramNames names;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos || end == 0) {
      fail(ErrorCode::kModelDamaged, "{}: expected names with a line feed behind each", where);
    }
    const auto number = names.add(text.substr(0, end));
    if (number + 1 != names.size()) {
      fail(ErrorCode::kModelDamaged, "{}: {} stands there twice", where,
           excerpt(text.substr(0, end)));
    }
    text.remove_prefix(end + 1);
  }
  return names;
}

double NgramNames::bytes_of(double names, double characters) {
  return characters + names * (1 + sizeof(std::uint32_t) + 4 * sizeof(Slot));
}

namespace {

// In how many texts each n-gram was seen, of as many as there is room for.
class Counts {
 public:
  Counts(NgramKind kind, const NgramLimits& limits) : kind_(kind), limits_(limits) {}

  void add(NgramReader& reader, std::int32_t text) {
    reader.for_each(kind_, [&](std::string_view name, std::size_t, std::size_t) {
      const auto number = static_cast<std::size_t>(names_.add(name));
      if (number == seen_.size()) {
        seen_.push_back(0);
        last_.push_back(-1);
      }
      if (std::exchange(last_[number], text) != text) ++seen_[number];
    });
    for (std::int32_t least = 2; names_.size() > limits_.most_counted; ++least) forget(least);
  }

  CountedNgrams kept() {
    std::vector<std::int32_t> order(seen_.size());
    std::iota(order.begin(), order.end(), 0);
    const auto often = [&](std::int32_t number) { return seen_[static_cast<std::size_t>(number)]; };
    std::stable_sort(order.begin(), order.end(),
                     [&](std::int32_t a, std::int32_t b) { return often(a) > often(b); });
    std::int32_t least = static_cast<std::int32_t>(limits_.least_texts);
    if (static_cast<index>(order.size()) > limits_.most_kept) {
      // N-grams that are as rare as the first that has no room go with it.
      least = std::max(least, often(order[static_cast<std::size_t>(limits_.most_kept)]) + 1);
    }
    CountedNgrams all;
    for (const std::int32_t number : order) {
      if (often(number) < least) break;
      all.names.add(names_.name(number));
      all.texts.push_back(often(number));
    }
    return all;
  }

  double bytes() const {
    return NgramNames::bytes_of(static_cast<double>(names_.size()),
                                static_cast<double>(names_.text().size())) +
           2.0 * sizeof(std::int32_t) * static_cast<double>(names_.size());
  }

 private:
  // Forgets the n-grams of fewer texts so far: they begin anew if they come again.
  void forget(std::int32_t least) {
    NgramNames names;
    std::vector<std::int32_t> seen, last;
    for (std::size_t n = 0; n < seen_.size(); ++n) {
      if (seen_[n] < least) continue;
      names.add(names_.name(static_cast<std::int32_t>(n)));
      seen.push_back(seen_[n]);
      last.push_back(last_[n]);
    }
    names_ = std::move(names);
    seen_ = std::move(seen);
    last_ = std::move(last);
  }

  const NgramKind kind_;
  const NgramLimits limits_;
  NgramNames names_;
  std::vector<std::int32_t> seen_, last_;
};

}  // namespace

CountedNgrams count_ngrams(std::span<const std::string> texts, const NgramRules& rules,
                           NgramKind kind, const NgramLimits& limits) {
  NgramReader reader(rules);
  Counts counts(kind, limits);
  double asked = 0;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    reader.read(texts[i]);
    counts.add(reader, static_cast<std::int32_t>(i));
    if (const double bytes = counts.bytes(); bytes > asked) {
      // A table that grows exists twice.
      require_memory("the n-grams of the texts", bytes, kLessText);
      asked = 2 * bytes;
    }
  }
  return counts.kept();
}

namespace {

// Sorts numbers from 0, digit by digit if there are many.
void sort_numbers(std::vector<std::int32_t>& numbers) {
  constexpr std::size_t kMany = 96;
  constexpr unsigned kBits = 8, kDigits = 1U << kBits;
  if (numbers.size() < kMany) return std::sort(numbers.begin(), numbers.end());
  const auto largest =
      static_cast<std::uint32_t>(*std::max_element(numbers.begin(), numbers.end()));
  std::vector<std::int32_t> sorted(numbers.size());
  for (unsigned shift = 0; shift < 32 && largest >> shift != 0; shift += kBits) {
    const auto digit = [&](std::int32_t n) {
      return (static_cast<std::uint32_t>(n) >> shift) % kDigits;
    };
    std::array<std::uint32_t, kDigits> next{};
    for (const std::int32_t n : numbers) ++next[digit(n)];
    std::exclusive_scan(next.begin(), next.end(), next.begin(), 0U);
    for (const std::int32_t n : numbers) sorted[next[digit(n)]++] = n;
    numbers.swap(sorted);
  }
}

}  // namespace

void append_counts(NgramReader& reader, NgramKind kind, const NgramNames& names,
                   std::vector<std::int32_t>& found, std::vector<std::int32_t>& columns,
                   std::vector<float>& counts) {
  found.clear();
  std::array<std::string_view, 64> read;
  std::size_t count = 0;
  reader.for_each(kind, [&](std::string_view name, std::size_t, std::size_t) {
    read[count++] = name;
    if (count == read.size()) names.find_all(read, found), count = 0;
  });
  names.find_all(std::span(read).first(count), found);
  sort_numbers(found);
  for (std::size_t i = 0; i < found.size();) {
    std::size_t end = i;
    while (end < found.size() && found[end] == found[i]) ++end;
    columns.push_back(found[i]);
    counts.push_back(static_cast<float>(end - i));
    i = end;
  }
}

SparseRows count_rows(const Context& context, std::span<const std::string> texts,
                      const NgramRules& rules, NgramKind kind, const NgramNames& names) {
  constexpr std::size_t kTextsAtOnce = 256;
  struct Part {
    std::vector<index> lengths;
    std::vector<std::int32_t> columns;
    std::vector<float> counts;
  };
  std::vector<Part> parts((texts.size() + kTextsAtOnce - 1) / kTextsAtOnce);
  context.for_each(static_cast<index>(parts.size()), [&](index item) {
    Part& part = parts[static_cast<std::size_t>(item)];
    NgramReader reader(rules);
    std::vector<std::int32_t> found;
    const std::size_t first = static_cast<std::size_t>(item) * kTextsAtOnce;
    for (const std::string& text :
         texts.subspan(first, std::min(kTextsAtOnce, texts.size() - first))) {
      const std::size_t before = part.columns.size();
      reader.read(text);
      append_counts(reader, kind, names, found, part.columns, part.counts);
      part.lengths.push_back(static_cast<index>(part.columns.size() - before));
    }
  });
  SparseRows rows;
  for (Part& part : parts) {
    for (const index length : part.lengths) rows.starts.push_back(rows.starts.back() + length);
    rows.columns.insert(rows.columns.end(), part.columns.begin(), part.columns.end());
    rows.values.insert(rows.values.end(), part.counts.begin(), part.counts.end());
    part = {};
  }
  return rows;
}

}  // namespace fovea

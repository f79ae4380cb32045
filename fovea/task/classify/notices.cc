// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/classify/notices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "fovea/task/classify/read_texts.h"
#include "fovea/text/keyed_hash.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

constexpr std::size_t kMostClassesListed = 10;

double percent(index part, index all) {
  return 100 * static_cast<double>(part) / static_cast<double>(std::max<index>(all, 1));
}

std::string share_of_unknown(const Examples& examples, token unknown) {
  const auto count = std::count(examples.stream.begin(), examples.stream.end(), unknown);
  return fmt::format("{:.1f} %", percent(count, static_cast<index>(examples.stream.size())));
}

}  // namespace

std::string length_line(std::string_view name, SetOverview set, index max_length,
                        InputWords words) {
  std::vector<index>& lengths = set.lengths;
  std::sort(lengths.begin(), lengths.end());
  const std::size_t n = lengths.size();
  const index truncated = set.examples.truncated;
  std::string line = fmt::format("{}: {} {}{}; {}s: median {}, 90 % at most {}, longest {}", name,
                                 n, words.entry, n == 1 ? "" : "s", words.row, lengths[(n - 1) / 2],
                                 lengths[(9 * (n - 1)) / 10], lengths.back());
  return truncated == 0 ? line : line + fmt::format("; cut to {}: {}", max_length, truncated);
}

std::string balance_line(const LabelSet& labels, const LabelCounts& found) {
  std::vector<std::size_t> order(found.counts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return found.counts[a] > found.counts[b]; });
  std::string line = fmt::format("{}: {}", found.multi_label ? "labels" : "classes", order.size());
  for (std::size_t i = 0; i < std::min(kMostClassesListed, order.size()); ++i) {
    const index count = found.counts[order[i]];
    line += fmt::format("{} {} {} ({:.1f} %)", i == 0 ? ";" : ",",
                        escape_text(labels.names()[order[i]]), count, percent(count, found.texts));
  }
  return order.size() > kMostClassesListed ? line + ", ..." : line;
}

std::string number_line(const std::vector<double>& numbers, const NumberScale& scale) {
  const auto [least, most] = std::minmax_element(numbers.begin(), numbers.end());
  return fmt::format("numbers: {} to {}, mean {:.{}g}, standard deviation {:.4g}", *least, *most,
                     scale.center, scale.digits(scale.center), scale.scale);
}

std::string unknown_line(const Examples& training, const Examples* validation, token unknown) {
  const auto has = [&](const Examples& examples) {
    return std::find(examples.stream.begin(), examples.stream.end(), unknown) !=
           examples.stream.end();
  };
  if (!has(training) && (validation == nullptr || !has(*validation))) return {};
  std::string line =
      fmt::format("unknown words: {} of the training texts", share_of_unknown(training, unknown));
  if (validation != nullptr) {
    line += fmt::format(", {} of the validation texts", share_of_unknown(*validation, unknown));
  }
  return line;
}

namespace {

constexpr index kFewestTexts = 10;      // of a set that says anything
constexpr index kFewestOfLabel = 5;     // texts of a label that may be missed by chance
constexpr std::size_t kMostListed = 5;  // labels

constexpr std::string_view kAdvice =
    "add texts of them, or say --class-weights balanced; are their labels right?";

// Symbols count, since an emoji may be all that tells two texts apart; punctuation does not.
bool counts(char32_t c) {
  return is_word_character(c) || (c >= 0x2190 && c < 0x3000) || c >= 0x1F000;
}

// The words of a text in lower case, and nothing else.
void take_words(std::string_view text, std::string& words) {
  words.clear();
  bool apart = false;
  while (!text.empty()) {
    const DecodedCharacter c = decode_character(text);
    text.remove_prefix(static_cast<std::size_t>(c.length));
    if (!counts(c.value)) {
      apart = !words.empty();
      continue;
    }
    if (apart) words += ' ';
    apart = false;
    append_utf8(words, lower_character(c.value));
  }
}

// Texts that have the same words stand beside each other, in their order.
struct Words {
  std::uint64_t hash;
  std::size_t row;
};

std::vector<Words> sorted_words(const std::vector<LabelledText>& rows) {
  std::vector<Words> all;
  std::string words;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    take_words(rows[i].text, words);
    if (!words.empty()) all.push_back({keyed_hash(words), i});
  }
  std::sort(all.begin(), all.end(), [](const Words& a, const Words& b) {
    return a.hash != b.hash ? a.hash < b.hash : a.row < b.row;
  });
  return all;
}

struct Repeated {
  index trains = 0, other_label = 0;  // texts to train on that repeat another one
  index validates = 0;                // texts to validate on that are among those to train on
};

Repeated count_repeated(const LabelledSet& set) {
  const std::vector<LabelledText>& rows = set.table.rows;
  const std::vector<Words> all = sorted_words(rows);
  Repeated found;
  for (std::size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    const LabelledText* first = nullptr;  // to train on
    index validates = 0;
    for (end = begin; end < all.size() && all[end].hash == all[begin].hash; ++end) {
      const LabelledText& row = rows[all[end].row];
      if (set.validates[all[end].row]) {
        ++validates;
      } else if (first == nullptr) {
        first = &row;
      } else {
        ++found.trains;
        if (row.labels != first->labels) ++found.other_label;
      }
    }
    if (first != nullptr) found.validates += validates;
  }
  return found;
}

double share(index part, index all) { return static_cast<double>(part) / static_cast<double>(all); }

}  // namespace

void BestUses::take(const std::vector<float>& predictions, const Examples& truth,
                    const ClassifierConfig& config, double found) {
  if (config.task == ClassifierTask::kRegression || found < goodness) return;
  const auto classes = static_cast<std::size_t>(config.classes);
  goodness = found;
  uses = {.truth = std::vector<index>(classes),
          .predicted = std::vector<index>(classes),
          .texts = truth.size()};
  for (index i = 0; i < truth.size(); ++i) {
    const float* const row = predictions.data() + i * config.classes;
    const index likeliest = std::max_element(row, row + classes) - row;
    for (index k = 0; k < config.classes; ++k) {
      const bool is_true = truth.has_label(i, k);
      const bool is_said =
          config.task == ClassifierTask::kMultiLabel ? row[k] >= 0.5f : k == likeliest;
      uses.truth[static_cast<std::size_t>(k)] += is_true ? 1 : 0;
      uses.predicted[static_cast<std::size_t>(k)] += is_said ? 1 : 0;
      uses.right += is_true && is_said ? 1 : 0;
    }
  }
}

std::vector<std::string> notices_of_uses(const LabelUses& uses,
                                         const std::vector<std::string>& labels,
                                         std::string_view set) {
  if (uses.texts < kFewestTexts) return {};
  const auto is_used = [](index count) { return count > 0; };
  const auto said = std::count_if(uses.predicted.begin(), uses.predicted.end(), is_used);
  const auto known = std::count_if(uses.truth.begin(), uses.truth.end(), is_used);
  if (known == 0) return {};
  if (said == 0) {
    return {
        fmt::format("{}: no text is given a label, so every F1 is 0; train longer, try another "
                    "--model, or lower --threshold",
                    set)};
  }
  if (uses.right == 0) {
    return {
        fmt::format("{}: no prediction is right, so every F1 is 0; are the labels of the same "
                    "kind and the texts of the right column?",
                    set)};
  }
  std::vector<std::string> missed;
  for (std::size_t k = 0; k < labels.size(); ++k) {
    if (uses.predicted[k] == 0 && uses.truth[k] >= kFewestOfLabel) {
      missed.push_back(fmt::format("{} ({} texts)", excerpt(labels[k]), uses.truth[k]));
    }
  }
  if (missed.empty()) return {};
  const std::size_t more = missed.size() - std::min(missed.size(), kMostListed);
  missed.resize(missed.size() - more);
  const std::string list = fmt::format("{}{}", fmt::join(missed, ", "),
                                       more > 0 ? fmt::format(" and {} more", more) : "");
  if (said == 1) {
    const auto only = std::find_if(uses.predicted.begin(), uses.predicted.end(), is_used);
    return {fmt::format("{}: {} alone is predicted, and never {}; {}", set,
                        excerpt(labels[static_cast<std::size_t>(only - uses.predicted.begin())]),
                        list, kAdvice)};
  }
  return {fmt::format("{}: never predicted: {}; {}", set, list, kAdvice)};
}

void note_repeated_texts(LabelledSet& set) {
  constexpr double kManyShared = 0.01, kManyOther = 0.01;
  const auto validates = std::count(set.validates.begin(), set.validates.end(), true);
  const index trains = set.table.size() - validates;
  const Repeated found = count_repeated(set);
  if (found.trains > 0) {
    const std::string line = fmt::format(
        "texts to train on that repeat another one, but for case and punctuation: {} of {}{}",
        found.trains, trains,
        found.other_label > 0 ? fmt::format("; {} of them with another label", found.other_label)
                              : "");
    if (share(found.other_label, trains) >= kManyOther) {
      set.notes.push_back(line + "; keep one of each, with the right label");
    } else {
      set.overview.push_back(line);
    }
  }
  if (found.validates == 0) return;
  const std::string line =
      fmt::format("texts to validate on that are among those to train on: {} of {}",
                  found.validates, validates);
  // Where the texts are split at random, copies are in both, and are counted above.
  if (set.validates_apart && share(found.validates, validates) >= kManyShared) {
    set.notes.push_back(line + "; remove them from --train or --valid: the validation is too good");
  } else {
    set.overview.push_back(line);
  }
}

}  // namespace fovea

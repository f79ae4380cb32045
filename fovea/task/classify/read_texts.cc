// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/classify/read_texts.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "fovea/base/bytes.h"
#include "fovea/base/check.h"
#include "fovea/task/classify/classifier.h"
#include "fovea/task/classify/notices.h"
#include "fovea/tensor/checksum.h"
#include "fovea/text/keyed_hash.h"
#include "fovea/text/utf8.h"
#include "fovea/text/words.h"

namespace fovea {

namespace {

constexpr index kMostLabelsListed = 10;
// Each is a row of weights. A column of more is one of ids or of texts.
constexpr index kMostLabels = 100'000;

void read_into(const std::vector<std::string>& files, const TableOptions& options,
               LabelledSet& set) {
  for (const std::string& file : files) {
    require_no_npz(file);
    std::vector<LabelledText> rows =
        read_labelled({&file, 1}, options, &set.notes, &set.label_of_two, &set.form);
    std::move(rows.begin(), rows.end(), std::back_inserter(set.table.rows));
    set.table.places.push_back(name_of_input(file));
    set.table.ends.push_back(set.table.size());
  }
}

FrameLabels frame_labels(const ClassifierTextOptions& options) {
  if (options.regression) return FrameLabels::kNumber;
  return options.multi_label ? FrameLabels::kSeveral : FrameLabels::kClass;
}

void read_frames_into(LabelledSet& set, const std::vector<std::string>& files,
                      const ClassifierTextOptions& options) {
  for (const std::string& name : files) {
    FrameFile file = read_frame_file(name, frame_labels(options));
    if (!set.frames.empty()) {
      const FrameFile& first = set.frames[0];
      require_shape(file, first.joints, first.features, first.name);
    }
    for (index s = 0; s < file.samples(); ++s) {
      const auto at = static_cast<std::size_t>(s);
      LabelledText row{.text = {}, .labels = std::move(file.labels[at]), .numbers = {}, .line = s};
      if (options.regression) row.numbers = {file.numbers[at]};
      set.table.rows.push_back(std::move(row));
    }
    set.table.places.push_back(name);
    set.table.ends.push_back(set.table.size());
    set.frames.push_back(std::move(file));
  }
}

std::string_view entry_of(const TextTable& table) { return words_of(table.input).entry; }

void require_one_label(const TextTable& table, const ClassifierTextOptions& options) {
  if (options.multi_label) return;
  for (index i = 0; i < table.size(); ++i) {
    const std::vector<std::string>& labels = table.rows[static_cast<std::size_t>(i)].labels;
    if (labels.size() == 1) continue;
    throw Error(
        ErrorCode::kInputFormat,
        fmt::format("{}: expected one {}, got {} ({}, {}{})", place_of(table, i),
                    options.regression ? "number" : "label", labels.size(), excerpt(labels[0]),
                    excerpt(labels[1]), labels.size() > 2 ? ", ..." : ""),
        options.regression ? "keep one number each"
                           : "keep one label each, or train for several: --multi-label");
  }
}

std::set<std::string_view> set_of(const std::vector<std::string>& labels) {
  return {labels.begin(), labels.end()};
}

// Texts with the same labels are a stratum; numbers are one all together.
std::vector<index> strata_of(const TextTable& table, bool regression) {
  std::vector<index> strata(table.rows.size());
  if (regression) return strata;
  std::map<std::set<std::string_view>, index> found;
  for (const LabelledText& row : table.rows) found.emplace(set_of(row.labels), 0);
  index next = 0;
  for (auto& [labels, stratum] : found) stratum = next++;
  for (std::size_t i = 0; i < strata.size(); ++i) {
    strata[i] = found.at(set_of(table.rows[i].labels));
  }
  return strata;
}

LabelSet labels_to_train(const LabelledSet& set) {
  KeyedSet<std::string> labels;
  for (std::size_t i = 0; i < set.table.rows.size(); ++i) {
    if (set.validates[i]) continue;
    const std::vector<std::string>& found = set.table.rows[i].labels;
    labels.insert(found.begin(), found.end());
    if (static_cast<index>(labels.size()) <= kMostLabels) continue;
    throw Error(ErrorCode::kInputFormat,
                fmt::format("{}: expected at most {} different labels, got more",
                            place_of(set.table, static_cast<index>(i)), kMostLabels),
                "check that the column of the label is that of the classes (--label-column); of "
                "numbers, say --regression");
  }
  return LabelSet({labels.begin(), labels.end()});
}

std::string listed(const LabelSet& labels) {
  std::string list;
  for (index i = 0; i < std::min(labels.size(), kMostLabelsListed); ++i) {
    list += (i > 0 ? ", " : "") + excerpt(labels.names()[static_cast<std::size_t>(i)]);
  }
  return labels.size() > kMostLabelsListed ? list + ", ..." : list;
}

void require_known_labels(const LabelledSet& set) {
  for (index i = 0; i < set.table.size(); ++i) {
    if (!set.validates[static_cast<std::size_t>(i)]) continue;
    for (const std::string& label : set.table.rows[static_cast<std::size_t>(i)].labels) {
      if (set.labels.find(label) >= 0) continue;
      throw Error(ErrorCode::kInputFormat,
                  fmt::format("{}: the label {} is that of no {} to train on",
                              place_of(set.table, i), excerpt(label), entry_of(set.table)),
                  fmt::format("correct the label, or add such {}s to --train; known are: {}",
                              entry_of(set.table), listed(set.labels)));
    }
  }
}

[[noreturn]] void fail_alike(const LabelledSet& set, std::string_view what) {
  const auto texts = std::count(set.validates.begin(), set.validates.end(), false);
  throw Error(ErrorCode::kInputTooSmall,
              fmt::format("{}: {} {}{} to train on, and {}", set.table.places[0], texts,
                          entry_of(set.table), texts == 1 ? "" : "s", what),
              set.table.has_frames()
                  ? "add samples of other kinds"
                  : "add texts of other kinds, or say where the labels are: --label-column");
}

// There is nothing to learn where all texts are alike.
void require_difference(const LabelledSet& set, const ClassifierTextOptions& options) {
  const std::vector<LabelledText>& rows = set.table.rows;
  if (!options.regression && !options.multi_label) {
    if (set.labels.size() > 1) return;
    fail_alike(set, fmt::format("every label is {}: at least two are needed", listed(set.labels)));
  }
  std::size_t first = 0;
  while (first < rows.size() && set.validates[first]) ++first;
  for (std::size_t i = first; i < rows.size(); ++i) {
    const bool same = options.regression ? rows[i].numbers == rows[first].numbers
                                         : set_of(rows[i].labels) == set_of(rows[first].labels);
    if (!set.validates[i] && !same) return;
  }
  if (options.regression) {
    fail_alike(set, fmt::format("every number is {}", excerpt(rows[first].labels[0])));
  }
  fail_alike(set, set.labels.size() == 0 ? "none of them has a label"
                                         : "all have the same labels: " + listed(set.labels));
}

}  // namespace

std::string place_of(const TextTable& table, index i) {
  const auto file = static_cast<std::size_t>(
      std::upper_bound(table.ends.begin(), table.ends.end(), i) - table.ends.begin());
  const index line = table.rows[static_cast<std::size_t>(i)].line;
  return table.has_frames() ? place_of_sample(table.places[file], line)
                            : fmt::format("{}:{}", table.places[file], line);
}

TableOptions table_options(const ClassifierTextOptions& options) {
  TableOptions table = options.table;
  if (options.regression) table.labels = LabelUse::kNumbers;
  if (options.multi_label) table.labels = LabelUse::kAny;
  table.encoding = encoding_of(options);
  table.pairs = options.input == InputKind::kPairs;
  return table;
}

void hold_back(LabelledSet& set, double fraction, bool regression, std::uint64_t seed) {
  set.validates = draw_stratified(strata_of(set.table, regression), fraction, seed);
}

std::string fingerprint(const LabelledSet& set) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < set.table.rows.size(); ++i) {
    const LabelledText& row = set.table.rows[i];
    std::string one = fmt::format("{}\n{}", set.validates[i] ? 1 : 0, row.text);
    for (const std::string& label : row.labels) one += "\n" + label;
    parts.push_back(xxh3_128(one));
  }
  return xxh3_128(fmt::format("{}", fmt::join(parts, "")));
}

LabelledSet read_labelled_set(const ClassifierTextOptions& options, std::uint64_t seed) {
  if (options.train.empty()) {
    throw Error(ErrorCode::kUsage, fmt::format("no {}s to train on", words_of(options.input).entry),
                "name a file: --train FILE");
  }
  LabelledSet set;
  set.table.input = options.input;
  // Formats and columns found for the texts to train on hold for the others.
  const auto read = [&](const std::vector<std::string>& files) {
    if (options.input == InputKind::kNpz) return read_frames_into(set, files, options);
    read_into(files, table_options(options), set);
  };
  read(options.train);
  const auto trains = static_cast<std::size_t>(set.table.size());
  if (options.valid.empty()) {
    require_one_label(set.table, options);
    hold_back(set, options.valid_fraction, options.regression, seed);
    if (options.valid_fraction > 0 &&
        std::find(set.validates.begin(), set.validates.end(), true) == set.validates.end()) {
      set.notes.push_back(fmt::format("no validation: {} {}s are too few for --valid-fraction {}",
                                      trains, entry_of(set.table), options.valid_fraction));
    }
  } else {
    read(options.valid);
    set.validates_apart = true;
    require_one_label(set.table, options);
    set.validates.assign(set.table.rows.size(), true);
    std::fill_n(set.validates.begin(), trains, false);
  }
  if (!options.regression) {
    set.labels = labels_to_train(set);
    require_known_labels(set);
    if (const std::string alike = names_alike(set.labels.names()); !alike.empty()) {
      set.notes.push_back(fmt::format(
          "labels that differ only in case or in blanks are classes of their own: {}", alike));
    }
  }
  require_difference(set, options);
  if (options.input == InputKind::kText) note_repeated_texts(set);
  return set;
}

LabelledSet part_of(const LabelledSet& set, double share, bool regression, std::uint64_t seed) {
  if (share >= 1) return set;
  // No stratum is drawn whole, so that what is left has texts of each.
  std::vector<index> strata = strata_of(set.table, regression);
  const std::vector<bool> dropped = draw_stratified(strata, 1 - share, seed);
  LabelledSet part;
  part.table.places = set.table.places;
  part.table.input = set.table.input;
  part.labels = set.labels;
  part.label_of_two = set.label_of_two;
  part.form = set.form;
  std::size_t file = 0;
  for (std::size_t i = 0; i < set.table.rows.size(); ++i) {
    for (; static_cast<index>(i) >= set.table.ends[file]; ++file) {
      part.table.ends.push_back(part.table.size());
    }
    if (dropped[i] && !set.validates[i]) continue;
    part.table.rows.push_back(set.table.rows[i]);
    part.validates.push_back(set.validates[i]);
  }
  part.table.ends.resize(set.table.ends.size(), part.table.size());
  return part;
}

std::string choose_tokenizer(const LabelledSet& set, std::vector<std::string>& notes) {
  constexpr std::size_t kLookedAt = 1000;
  constexpr double kLongWord = 20;
  index characters = 0, cjk = 0, words = 0;
  std::vector<std::size_t> trained;
  for (std::size_t i = 0; i < set.table.rows.size(); ++i) {
    if (!set.validates[i]) trained.push_back(i);
  }
  // At even distances: files are often sorted by label or by source.
  const std::size_t looked_at = std::min(kLookedAt, trained.size());
  for (std::size_t n = 0; n < looked_at; ++n) {
    std::string_view text = set.table.rows[trained[n * trained.size() / looked_at]].text;
    words += count_words(text);
    while (!text.empty()) {
      const DecodedCharacter c = decode_character(text);
      text.remove_prefix(static_cast<std::size_t>(c.length));
      if (is_white_space(c.value)) continue;
      ++characters;
      if (is_cjk(c.value)) ++cjk;
    }
  }
  const auto all = static_cast<double>(std::max<index>(characters, 1));
  const double share = static_cast<double>(cjk) / all;
  const double length = all / static_cast<double>(std::max<index>(words, 1));
  if (share > 0.5) {
    notes.push_back(
        fmt::format("--tokenizer char: {:.0f} % of the characters are Chinese or "
                    "Japanese, whose words have no spaces between them",
                    100 * share));
    return "char";
  }
  if (length > kLongWord) {
    notes.push_back(
        fmt::format("--tokenizer char: the texts have few spaces: one in {:.0f} "
                    "characters",
                    length));
    return "char";
  }
  notes.push_back(
      fmt::format("--tokenizer word: the texts have spaces between words ({:.1f} "
                  "characters a word)",
                  length));
  return std::string(kWordKind);
}

namespace {

[[noreturn]] void fail_weights(const std::string& option, const std::string& what) {
  throw Error(
      ErrorCode::kOptionValue, fmt::format("--class-weights {}: {}", escape_text(option), what),
      "write none, balanced, or such as good=1,bad=2.5; a label with a comma in double quotes");
}

std::vector<double> balanced(const LabelCounts& found) {
  std::vector<double> weights;
  const auto texts = static_cast<double>(found.texts);
  for (const index count : found.counts) {
    const auto n = static_cast<double>(std::max<index>(count, 1));
    // A label that all texts have keeps a weight.
    weights.push_back(found.multi_label ? std::max(texts - n, 1.0) / n
                                        : texts / (static_cast<double>(found.counts.size()) * n));
  }
  return weights;
}

// Takes "LABEL=" off `rest`. A label with a comma stands in quotes, each quote in it twice.
std::string take_label(std::string_view& rest, const std::string& option) {
  std::string label;
  std::size_t equals = std::string_view::npos;
  if (rest.starts_with('"')) {
    std::size_t at = 1;
    for (; at < rest.size(); ++at) {
      const bool quote = rest[at] == '"';
      if (quote && rest.substr(at + 1, 1) != "\"") break;
      label += rest[at];
      if (quote) ++at;
    }
    if (rest.substr(std::min(at, rest.size())).starts_with("\"=")) equals = at + 1;
  } else {
    const std::string_view part = rest.substr(0, rest.find(','));
    equals = part.rfind('=');
    label = part.substr(0, equals);
  }
  if (equals == std::string_view::npos) {
    fail_weights(option, fmt::format("expected LABEL=NUMBER, got {}",
                                     escape_text(rest.substr(0, rest.find(',')))));
  }
  rest.remove_prefix(equals + 1);
  return label;
}

void set_weight(std::vector<double>& weights, std::string_view& rest, const std::string& option,
                const LabelSet& labels) {
  const std::string label = take_label(rest, option);
  const std::string_view digits = rest.substr(0, rest.find(','));
  rest.remove_prefix(digits.size());
  double weight = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), weight);
  if (error != std::errc() || end != digits.data() + digits.size() || !std::isfinite(weight) ||
      weight <= 0) {
    fail_weights(option, fmt::format("expected a number above 0, got '{}'", escape_text(digits)));
  }
  const std::int32_t id = labels.find(label);
  if (id < 0) fail_weights(option, fmt::format("no text has the label {}", escape_text(label)));
  double& known = weights[static_cast<std::size_t>(id)];
  if (!std::isnan(known)) {
    fail_weights(option, fmt::format("the label {} has two weights", escape_text(label)));
  }
  known = weight;
}

}  // namespace

std::vector<double> class_weights(const std::string& option, const LabelSet& labels,
                                  const LabelCounts& found) {
  if (option == "none") return {};
  if (option == "balanced") return balanced(found);
  constexpr double kNotSaid = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> weights(static_cast<std::size_t>(labels.size()), kNotSaid);
  for (std::string_view rest = option;; rest.remove_prefix(1)) {
    set_weight(weights, rest, option, labels);
    if (rest.empty()) break;
  }
  std::replace_if(
      weights.begin(), weights.end(), [](double w) { return std::isnan(w); }, 1.0);
  return weights;
}

}  // namespace fovea

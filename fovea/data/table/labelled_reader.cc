// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/table/labelled_reader.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/base/machine.h"
#include "fovea/base/words.h"
#include "fovea/config/json.h"
#include "fovea/data/table/columns.h"
#include "fovea/data/table/line_reader.h"
#include "fovea/text/compressed.h"
#include "fovea/text/keyed_hash.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

constexpr std::size_t kProblemsToKeep = 3;
constexpr double kBetweenChecks = 64 << 20;  // bytes of rows

// Each label once, where it is first.
void remove_repeated(std::vector<std::string>& labels) {
  if (labels.size() < 2) return;
  KeyedSet<std::string> known;
  std::erase_if(labels, [&](const std::string& label) { return !known.insert(label).second; });
}

double bytes_of(const LabelledText& row) {
  double bytes = sizeof(row) + static_cast<double>(row.text.capacity());
  for (const std::string& label : row.labels) {
    bytes += sizeof(label) + static_cast<double>(label.capacity());
  }
  for (const std::string& text : row.more) {
    bytes += sizeof(text) + static_cast<double>(text.capacity());
  }
  return bytes + sizeof(double) * static_cast<double>(row.numbers.size());
}

// Names of columns are short, in any script, and end no sentence.
bool may_be_name(std::string_view text) {
  constexpr index kLongest = 40;
  return count_characters(text) <= kLongest && text.find_first_of(".!?;:") == text.npos &&
         text.find("\u3002") == text.npos;
}

// Whether the first row reads like names of columns though other labels are there once, too: its
// label is no number, and its text has at most three words and is much shorter than the others.
bool reads_like_names(std::span<const LabelledText> rows) {
  constexpr index kTimesShorter = 4;
  const std::string& text = rows.front().text;
  if (std::count(text.begin(), text.end(), ' ') > 2 || number_of(rows.front().labels.front())) {
    return false;
  }
  index characters = 0;
  for (const LabelledText& row : rows.subspan(1)) characters += count_characters(row.text);
  return characters >= kTimesShorter * count_characters(text) * static_cast<index>(rows.size() - 1);
}

// Names of columns that are not the usual ones are read as a row, whose label is a class of its own
// then. Nothing if that is unlikely.
std::optional<std::string> note_of_names(std::span<const LabelledText> rows,
                                         const LabelledReader& reader) {
  KeyedMap<std::string_view, index> counts;
  for (const LabelledText& row : rows) {
    for (const std::string& label : row.labels) ++counts[label];
  }
  const auto& first = rows.front().labels;
  const bool alone = first.size() == 1 && counts[first.front()] == 1 && counts.size() > 1;
  const auto once = std::count_if(counts.begin(), counts.end(),
                                  [](const auto& label) { return label.second == 1; });
  if (!alone || !may_be_name(rows.front().text) || (once > 1 && !reads_like_names(rows))) {
    return std::nullopt;
  }
  return fmt::format(
      "{}: the label {} is that of this row alone; if the row names the columns, say so: "
      "--label-column {}",
      reader.place(rows.front()), excerpt(first.front()), excerpt(first.front()));
}

bool may_have_taken_names_for_a_row(const TableSummary& summary, const TableOptions& options) {
  const bool has_columns =
      summary.format == TableFormat::kTsv || summary.format == TableFormat::kCsv;
  const bool classes = options.labels == LabelUse::kRequired || options.labels == LabelUse::kAny;
  return has_columns && classes && options.header == HeaderRow::kAuto && !summary.has_header &&
         summary.rows > 0;
}

}  // namespace

LabelledReader::LabelledReader(const std::string& file, const TableOptions& options)
    : LabelledReader(open_text(file), name_of_input(file), options) {}

LabelledReader::LabelledReader(std::unique_ptr<ByteStream> stream, const std::string& name,
                               const TableOptions& options)
    : options_(options), name_(name) {
  check_options(options_);
  auto lines = std::make_unique<LineReader>(std::move(stream), name, options_.longest_row);
  if (lines->is_empty()) {
    throw Error(ErrorCode::kEmptyInput, fmt::format("{} is empty", name_),
                "name a file that holds texts");
  }
  lines_ = lines.get();
  if (options_.raw_rows) lines_->keep_lines();
  source_ = make_row_source(std::move(lines), options_, summary_);
  if (summary_.has_header) header_ = lines_->take_lines();
}

LabelledReader::~LabelledReader() = default;

bool LabelledReader::next(LabelledText& row) {
  for (;;) {
    try {
      const bool found = source_->next(row);
      summary_.empty_lines = source_->empty_lines();
      if (!found) return false;
      check_row(row);
      is_bad_ = false;
      ++summary_.rows;
      return true;
    } catch (const BadRow& error) {
      if (options_.bad_rows == BadRows::kStop && !options_.keeps_bad_rows) throw;
      ++summary_.bad_rows;
      if (summary_.problems.size() < kProblemsToKeep) keep_problem(error);
      if (!options_.keeps_bad_rows) continue;
      is_bad_ = true;
      return true;
    }
  }
}

RawRow LabelledReader::take_raw(const LabelledText& row) {
  index before = row.line - lines_->first_kept();
  const std::string lines = lines_->take_lines();
  std::size_t begin = 0;
  for (; before > 0; --before) begin = lines.find('\n', begin) + 1;
  return {.before = lines.substr(0, begin), .row = lines.substr(begin)};
}

// The likely encoding is named once: it is that of all rows.
void LabelledReader::keep_problem(const Error& error) {
  std::string& problem = summary_.problems.emplace_back(error.what());
  const bool says_encoding = error.code() == ErrorCode::kEncoding && summary_.problems.size() == 1;
  if (says_encoding) problem += "; " + error.hint();
}

void LabelledReader::check_row(LabelledText& row) const {
  const auto bad = [&](ErrorCode code, const std::string& what, std::string_view hint) {
    throw BadRow(code, fmt::format("{}: {}", place(row), what), std::string(hint));
  };
  constexpr std::string_view kRemove =
      "remove the row, or leave out all such rows: --bad-rows skip";
  if (options_.empty_texts == EmptyTexts::kRefuse) {
    const TextPair pair = options_.pairs ? pair_of(row.text) : TextPair{row.text, row.text};
    if (is_blank(pair.first) || is_blank(pair.second)) {
      bad(ErrorCode::kInputFormat,
          !options_.pairs ? "expected a text, got none but white space"
                          : fmt::format("expected two texts, the {} is none but white space",
                                        is_blank(pair.first) ? "first" : "second"),
          kRemove);
    }
    if (std::ranges::any_of(row.more, is_blank)) {
      bad(ErrorCode::kInputFormat, "expected a further text, got none but white space", kRemove);
    }
  }
  const bool is_scored =
      options_.labels == LabelUse::kNumbersOrNone && !summary_.label_column.empty();
  const bool may_lack =
      options_.labels == LabelUse::kAny || (!needs_labels(options_) && !is_scored);
  if (row.labels.empty() && !may_lack) {
    if (options_.label_separator.empty() || reads_numbers(options_)) {
      bad(ErrorCode::kInputFormat, "expected a label, got none", kRemove);
    }
    bad(ErrorCode::kInputFormat,
        "expected a label, got none: --label-separator does not allow that, --multi-label does",
        "add --multi-label, or remove the row (or all such rows: --bad-rows skip)");
  }
  remove_repeated(row.labels);
  row.numbers.clear();
  for (const std::string& label : row.labels) {
    if (options_.encoding == TextEncoding::kAnyBytes && find_invalid_utf8(label)) {
      bad(ErrorCode::kEncoding, "expected a label in UTF-8, got " + excerpt(label),
          "write labels in UTF-8");
    }
    if (!reads_numbers(options_)) continue;
    const auto value = number_of(label);
    if (!value) {
      bad(ErrorCode::kInputFormat, "expected a number as label, got " + excerpt(label), kRemove);
    }
    if (!is_finite_float32(*value)) {
      bad(ErrorCode::kInputFormat, "expected a number as label, got " + why_not_float32(*value),
          "write the numbers in a larger unit, or remove the row");
    }
    row.numbers.push_back(*value);
  }
}

std::string LabelledReader::place(const LabelledText& row) const {
  return fmt::format("{}:{}", name_, row.line);
}

std::vector<std::string> LabelledReader::notes() const {
  std::vector<std::string> notes;
  if (summary_.bad_rows == 0) return notes;
  notes.push_back(
      fmt::format("{}: rows that cannot be read: {} of {}; {}", name_, summary_.bad_rows,
                  summary_.bad_rows + summary_.rows,
                  options_.keeps_bad_rows ? "they stay without an answer" : "they are left out"));
  for (const std::string& problem : summary_.problems) notes.push_back(problem);
  return notes;
}

std::vector<LabelledText> read_labelled(std::span<const std::string> files,
                                        const TableOptions& options,
                                        std::vector<std::string>* notes,
                                        std::optional<std::size_t>* label_of_two, TableForm* form) {
  std::vector<LabelledText> rows;
  double unchecked = 0;
  TableOptions same = options;
  for (const std::string& file : files) {
    if (label_of_two != nullptr) same.label_of_two = *label_of_two;
    if (form != nullptr) same.known = *form;
    LabelledReader reader(file, same);
    LabelledText row;
    const std::size_t begin = rows.size();
    while (reader.next(row)) {
      rows.push_back(row);  // a copy, which takes no more memory than it needs
      unchecked += bytes_of(rows.back());
      if (unchecked < kBetweenChecks) continue;
      unchecked = 0;
      // While the vector grows, there are two of it.
      require_memory(file, kBetweenChecks + static_cast<double>(3 * sizeof(row) * rows.size()),
                     "use less text, or a machine with more memory");
    }
    if (notes != nullptr) {
      for (std::string& note : reader.notes()) notes->push_back(std::move(note));
      if (may_have_taken_names_for_a_row(reader.summary(), same)) {
        const auto note = note_of_names(std::span(rows).subspan(begin), reader);
        if (note) notes->push_back(*note);
      }
    }
    if (label_of_two != nullptr && !*label_of_two) *label_of_two = reader.summary().label_of_two;
    if (form != nullptr && form->format == TableFormat::kAuto) *form = reader.summary();
    if (reader.summary().rows > 0) continue;
    throw Error(
        ErrorCode::kEmptyInput,
        fmt::format("{}: expected texts, got none in {} rows and {} empty lines",
                    name_of_input(file), reader.summary().bad_rows, reader.summary().empty_lines),
        reader.summary().problems.empty() ? "name a file that holds texts"
                                          : "the first row: " + reader.summary().problems[0]);
  }
  return rows;
}

namespace {

constexpr std::size_t kRecordsToLookAt = 1000;

void split_labels(std::string_view field, std::string_view separator, LabelledText& row) {
  while (!separator.empty() && field.find(separator) != std::string_view::npos) {
    const std::size_t end = field.find(separator);
    if (!trimmed(field.substr(0, end)).empty())
      row.labels.emplace_back(trimmed(field.substr(0, end)));
    field.remove_prefix(end + separator.size());
  }
  if (!trimmed(field).empty()) row.labels.emplace_back(trimmed(field));
}

class DelimitedRows final : public RowSource {
 public:
  DelimitedRows(std::unique_ptr<LineReader> lines, Dialect dialect, const TableOptions& options,
                TableSummary& summary)
      : lines_(std::move(lines)),
        options_(options),
        quotes_(dialect.quotes),
        records_(*lines_, dialect, options.encoding, options.longest_row) {
    // A sample is needed only where two columns have no names, and only there it is waited for.
    std::string sample;
    if (needs_sample(dialect)) sample = lines_->peek_sample();
    stop_at_bad_rows([&] { pending_ = records_.next(record_); });
    if (!pending_) return;  // empty lines alone
    std::vector<std::vector<std::string>> first;
    first.emplace_back(record_.fields.begin(), record_.fields.end());
    if (record_.fields.size() == with_label(options)) add_sample(sample, dialect, first);
    columns_ = find_columns(first, options, lines_->place(record_.line));
    pending_ = !columns_.has_header;
    summary.has_header = columns_.has_header;
    summary.text_column = columns_.text_name;
    summary.second_column = columns_.second_name;
    summary.label_column = columns_.label_name;
    summary.separator = dialect.separator;
    if (columns_.has_header) summary.names = first.front();
    summary.columns = static_cast<index>(columns_.count);
    const auto number = [](std::optional<std::size_t> column) {
      return column ? static_cast<index>(*column) + 1 : 0;
    };
    summary.text_at = number(columns_.text);
    summary.second_at = number(columns_.second);
    summary.label_at = number(columns_.label);
    if (columns_.count == with_label(options)) summary.label_of_two = columns_.label;
    for (const std::size_t column : columns_.more) {
      summary.more_columns.push_back(columns_.has_header ? first.front()[column]
                                                         : fmt::format("{}", column + 1));
    }
  }

  bool next(LabelledText& row) override {
    if (!std::exchange(pending_, false) && !next_record(row)) return false;
    row.line = record_.line;
    if (record_.fields.size() != columns_.count) fail_count();
    row.text = record_.fields[columns_.text];
    if (columns_.second) row.text = pair_text(row.text, record_.fields[*columns_.second]);
    row.more.clear();
    for (const std::size_t column : columns_.more) row.more.emplace_back(record_.fields[column]);
    row.labels.clear();
    if (columns_.label) {
      split_labels(record_.fields[*columns_.label], options_.label_separator, row);
    }
    return true;
  }

  index empty_lines() const override { return records_.empty_lines(); }

 private:
  bool next_record(LabelledText& row) {
    try {
      return records_.next(record_);
    } catch (const BadRow&) {
      row.line = record_.line;
      throw;
    }
  }

  // The fewest columns of which one is a label.
  static std::size_t with_label(const TableOptions& options) { return options.pairs ? 3 : 2; }

  bool needs_sample(Dialect dialect) const {
    if (!options_.text_column.empty() || !options_.second_column.empty() ||
        !options_.label_column.empty()) {
      return false;
    }
    const std::vector<std::string_view> parts =
        parts_of_line(lines_->peek_line(), dialect.separator);
    if (options_.header == HeaderRow::kAuto && has_known_names(parts, options_)) return false;
    if (options_.header == HeaderRow::kNo) return true;
    if (options_.pairs) return !find_usual_pair(parts, options_);
    return std::none_of(parts.begin(), parts.end(), is_usual_text_name) ||
           (needs_labels(options_) &&
            std::none_of(parts.begin(), parts.end(), is_usual_label_name));
  }

  // The columns depend on the first row: it cannot be left out.
  template <class Read>
  static void stop_at_bad_rows(Read&& read) {
    try {
      read();
    } catch (const BadRow& error) {
      throw Error(error);  // no BadRow any more
    }
  }

  // The records behind the first one that are whole in the sample.
  void add_sample(std::string_view sample, Dialect dialect,
                  std::vector<std::vector<std::string>>& first) const {
    sample = sample.substr(0, sample.rfind('\n') + 1);
    LineReader lines(std::make_unique<MemoryStream>(sample), "sample", sample.size());
    RecordReader records(lines, dialect, TextEncoding::kAnyBytes, sample.size());
    Record record;
    bool is_first = true;
    while (first.size() < kRecordsToLookAt) {
      try {
        if (!records.next(record)) return;
      } catch (const BadRow&) {
        continue;
      } catch (const Error&) {
        return;  // a quote that is closed behind the sample
      }
      if (!std::exchange(is_first, false)) {
        first.emplace_back(record.fields.begin(), record.fields.end());
      }
    }
  }

  [[noreturn]] void fail_count() const {
    const std::size_t got = record_.fields.size();
    const std::string_view hint =
        got < columns_.count ? "add what is missing, or remove the row"
        : quotes_            ? "put a field that holds a separator in quotes"
                  : "a tab inside of a text begins another column: write a space instead";
    throw BadRow(ErrorCode::kInputFormat,
                 fmt::format("{}: expected {} column{}, as in the first row; got {}",
                             lines_->place(record_.line), columns_.count,
                             columns_.count == 1 ? "" : "s", got),
                 std::string(hint));
  }

  std::unique_ptr<LineReader> lines_;
  const TableOptions& options_;
  bool quotes_;
  RecordReader records_;
  Record record_;
  Columns columns_;
  bool pending_ = false;  // record_ is the next row
};

/// Formats in which each line is a row.
class LineRows : public RowSource {
 public:
  LineRows(std::unique_ptr<LineReader> lines, const TableOptions& options)
      : lines_(std::move(lines)), options_(options) {}

  bool next(LabelledText& row) final {
    for (;; ++empty_lines_) {
      Line line;
      if (!lines_->next(line)) return false;
      row.line = line.number;
      if (options_.encoding == TextEncoding::kUtf8) lines_->require_text(line);
      if (line.text.ends_with('\r')) line.text.remove_suffix(1);
      if (trimmed(line.text).empty() && !keeps_empty_lines()) continue;
      row.labels.clear();
      read(line.text, row);
      return true;
    }
  }
  index empty_lines() const final { return empty_lines_; }

 protected:
  virtual void read(std::string_view line, LabelledText& row) = 0;
  virtual bool keeps_empty_lines() const { return false; }

  std::unique_ptr<LineReader> lines_;
  const TableOptions& options_;

 private:
  index empty_lines_ = 0;
};

class PlainRows final : public LineRows {
 public:
  using LineRows::LineRows;

 private:
  void read(std::string_view line, LabelledText& row) override { row.text = line; }
  bool keeps_empty_lines() const override { return options_.empty_texts == EmptyTexts::kKeep; }
};

// As fastText reads it: every word that begins with the prefix is a label, also behind other words.
class FastTextRows final : public LineRows {
 public:
  using LineRows::LineRows;

 private:
  void read(std::string_view line, LabelledText& row) override {
    line = take_labels(line, row);
    row.text.clear();
    for (;;) {
      const std::size_t prefix = line.find(kLabelPrefix);
      const bool is_word = prefix != 0 && prefix != std::string_view::npos &&
                           (line[prefix - 1] == ' ' || line[prefix - 1] == '\t');
      const std::size_t end = prefix == std::string_view::npos ? prefix
                              : is_word                        ? prefix
                                                               : prefix + 1;
      row.text += line.substr(0, end);
      if (end == std::string_view::npos) break;
      line.remove_prefix(end);
      if (is_word) line = take_labels(line, row);
    }
    while (!row.labels.empty() && (row.text.ends_with(' ') || row.text.ends_with('\t'))) {
      row.text.pop_back();
    }
  }

  // Appends the labels at the front, and returns what stands behind them.
  static std::string_view take_labels(std::string_view line, LabelledText& row) {
    for (;;) {
      const std::size_t begin = line.find_first_not_of(" \t");
      const std::string_view rest = begin == std::string_view::npos ? "" : line.substr(begin);
      if (!rest.starts_with(kLabelPrefix)) return row.labels.empty() ? line : rest;
      const std::size_t end = std::min(rest.find_first_of(" \t"), rest.size());
      const std::string_view label = rest.substr(kLabelPrefix.size(), end - kLabelPrefix.size());
      if (!label.empty()) row.labels.emplace_back(label);
      line = rest.substr(end);
    }
  }
};

class JsonRows final : public LineRows {
 public:
  JsonRows(std::unique_ptr<LineReader> lines, const TableOptions& options, TableSummary& summary)
      : LineRows(std::move(lines), options), summary_(summary) {}

 private:
  void read(std::string_view line, LabelledText& row) override {
    try {
      read_object(parse_json(line, {lines_->place(row.line), ErrorCode::kInputFormat}), row);
    } catch (const BadRow&) {
      throw;
    } catch (const Error& error) {
      if (!knows_keys_ && error.code() == ErrorCode::kOptionValue) throw;
      throw BadRow(ErrorCode::kInputFormat, error.what(),
                   line.starts_with('[') ? "write one object a line: jq -c '.[]' FILE > NEW"
                                         : "write one JSON object a line");
    }
  }

  void read_object(const Json& object, LabelledText& row) {
    if (object.get_if<Json::Object>() == nullptr) fail_kind("an object", "the line", object, row);
    if (!knows_keys_) find_keys(object.object(), row);
    row.text = text_at(object, summary_.text_column, row);
    if (options_.pairs) {
      row.text = pair_text(row.text, text_at(object, summary_.second_column, row));
    }
    row.more.clear();
    for (const std::string& key : summary_.more_columns)
      add_texts(value(object, key, row), key, row);
    if (summary_.label_column.empty()) find_label(object.object());
    if (summary_.label_column.empty()) return;
    if (needs_labels(options_)) value(object, summary_.label_column, row);
    if (const Json* label = object.find(summary_.label_column)) add_labels(*label, row);
  }

  // A text, or a list of them.
  void add_texts(const Json& texts, const std::string& key, LabelledText& row) const {
    if (const auto* list = texts.get_if<Json::Array>()) {
      for (const Json& one : *list) {
        if (one.get_if<std::string>() == nullptr) fail_kind("a text", key, one, row);
        add_texts(one, key, row);
      }
      return;
    }
    const auto* text = texts.get_if<std::string>();
    if (text == nullptr) fail_kind("a text or a list of texts", key, texts, row);
    require_no_nul(*text, key, row);
    row.more.push_back(*text);
  }

  const std::string& text_at(const Json& object, const std::string& key,
                             const LabelledText& row) const {
    const Json& text = value(object, key, row);
    const auto* content = text.get_if<std::string>();
    if (content == nullptr) fail_kind("a text", key, text, row);
    require_no_nul(*content, key, row);
    return *content;
  }

  const Json& value(const Json& object, std::string_view key, const LabelledText& row) const {
    if (const Json* found = object.find(key)) return *found;
    throw BadRow(ErrorCode::kInputFormat,
                 fmt::format("{}: expected the key {}, got {}", lines_->place(row.line),
                             excerpt(key), keys_of(object.object())),
                 "add the key, or remove the line");
  }

  // JSON writes it as \u0000.
  void require_no_nul(std::string_view text, std::string_view key, const LabelledText& row) const {
    if (text.find('\0') == std::string_view::npos) return;
    throw BadRow(ErrorCode::kEncoding,
                 fmt::format("{}: expected text as {}, got a NUL character",
                             lines_->place(row.line), excerpt(key)),
                 "remove the NUL characters (\\u0000), or the line");
  }

  void add_labels(const Json& label, LabelledText& row) const {
    if (const auto* list = label.get_if<Json::Array>()) {
      for (const Json& one : *list) {
        if (one.get_if<Json::Array>() != nullptr) fail_kind("a label", "the list", one, row);
        add_labels(one, row);
      }
    } else if (const auto* text = label.get_if<std::string>()) {
      require_no_nul(*text, summary_.label_column, row);
      split_labels(*text, options_.label_separator, row);
    } else if (label.get_if<Json::Object>() != nullptr) {
      fail_kind("a text, a number or a list", summary_.label_column, label, row);
    } else if (!label.is_null()) {
      row.labels.push_back(label.line());
    }
  }

  static std::vector<std::string_view> names_of(const Json::Object& members) {
    std::vector<std::string_view> names;
    for (const auto& [key, content] : members) names.emplace_back(key);
    return names;
  }

  // Optional labels may be in later lines alone.
  void find_label(const Json::Object& members) {
    const std::vector<std::string_view> names = names_of(members);
    if (const auto found = usual_label(names)) summary_.label_column = names[*found];
  }

  using Names = std::span<const std::string_view>;

  std::optional<std::size_t> usual_label(Names names) const {
    return options_.pairs ? find_label_of_pair(names, summary_.text_column, summary_.second_column)
                          : find_usual_label(names);
  }

  void find_keys(const Json::Object& members, const LabelledText& row) {
    const std::vector<std::string_view> names = names_of(members);
    const auto find = [&](const std::string& said, const std::string& known,
                          const auto& find_usual) -> std::string {
      if (said.empty() && std::find(names.begin(), names.end(), known) != names.end()) return known;
      const auto found =
          said.empty() ? find_usual(names) : find_column(said, names, lines_->place(row.line));
      if (!said.empty() && !found) return said;
      return found ? std::string(names[*found]) : "";
    };
    if (options_.pairs) {
      const auto pair = find_usual_pair(names, options_);
      const auto first = [&](Names) { return pair ? std::optional(pair->first) : std::nullopt; };
      const auto second = [&](Names) { return pair ? std::optional(pair->second) : std::nullopt; };
      summary_.text_column = find(options_.text_column, options_.known.text_column, first);
      summary_.second_column = find(options_.second_column, options_.known.second_column, second);
    } else {
      summary_.text_column =
          find(options_.text_column, options_.known.text_column, find_usual_text);
    }
    summary_.label_column = find(options_.label_column, options_.known.label_column,
                                 [this](Names all) { return usual_label(all); });
    if (options_.more_texts) find_more_keys(names);
    const bool no_text =
        summary_.text_column.empty() || (options_.pairs && summary_.second_column.empty());
    if (no_text || (summary_.label_column.empty() && needs_labels(options_))) {
      throw Error(ErrorCode::kOptionValue,
                  fmt::format("{}: expected a key of the {}, got {}", lines_->place(row.line),
                              !no_text         ? "label"
                              : options_.pairs ? "first and of the second text"
                                               : "text",
                              keys_of(members)),
                  options_.pairs
                      ? "say the keys: --text-column KEY --second-column KEY --label-column KEY"
                      : "say the keys: --text-column KEY --label-column KEY");
    }
    summary_.names.assign(names.begin(), names.end());
    knows_keys_ = true;
  }

  void find_more_keys(const std::vector<std::string_view>& names) {
    summary_.more_columns = options_.more_columns;
    if (!summary_.more_columns.empty()) return;
    for (const std::size_t at : find_usual_negatives(names)) {
      const std::string name(names[at]);
      if (name == summary_.text_column || name == summary_.second_column) continue;
      summary_.more_columns.push_back(name);
    }
  }

  static std::string keys_of(const Json::Object& members) {
    std::string keys;
    for (const auto& [key, content] : members) {
      if (keys.size() > 200) return keys + ", ...";
      keys += (keys.empty() ? "" : ", ") + excerpt(key);
    }
    return keys.empty() ? "no keys" : keys;
  }

  [[noreturn]] void fail_kind(std::string_view expected, std::string_view of, const Json& got,
                              const LabelledText& row) const {
    throw BadRow(ErrorCode::kInputFormat,
                 fmt::format("{}: expected {} as {}, got {}", lines_->place(row.line), expected,
                             excerpt(of), got.kind()),
                 got.get_if<Json::Array>() != nullptr && of == "the line"
                     ? "write one object a line: jq -c '.[]' FILE > NEW"
                     : "write one JSON object a line");
  }

  TableSummary& summary_;
  bool knows_keys_ = false;
};

}  // namespace

std::unique_ptr<RowSource> make_row_source(std::unique_ptr<LineReader> lines,
                                           const TableOptions& options, TableSummary& summary) {
  std::string line(lines->peek_line());
  summary.byte_order_mark = lines->had_byte_order_mark();
  summary.format = find_format(lines->name(), line, options);
  switch (summary.format) {
    case TableFormat::kJsonLines:
      return std::make_unique<JsonRows>(std::move(lines), options, summary);
    case TableFormat::kFastText:
      return std::make_unique<FastTextRows>(std::move(lines), options);
    case TableFormat::kTsv:
    case TableFormat::kCsv: {
      const auto excel = separator_of_excel(line);
      if (excel) {
        for (Line said; lines->next(said) && is_blank(said.text);) {
        }
        line = lines->peek_line();
      }
      const Dialect dialect{.separator = excel && options.separator.empty()
                                             ? *excel
                                             : find_separator(line, summary.format, options),
                            .quotes = summary.format == TableFormat::kCsv};
      return std::make_unique<DelimitedRows>(std::move(lines), dialect, options, summary);
    }
    case TableFormat::kAuto:
    case TableFormat::kLines:
      break;
  }
  return std::make_unique<PlainRows>(std::move(lines), options);
}

}  // namespace fovea

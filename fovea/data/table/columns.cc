// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/table/columns.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <set>

#include "fovea/base/check.h"
#include "fovea/base/option.h"
#include "fovea/base/words.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

constexpr std::string_view kCloseIt =
    "close the quote, and write a quote inside of quotes twice; where quotes are ordinary "
    "characters, say --format tsv";

void remove_cr(std::string_view& text) {
  if (text.ends_with('\r')) text.remove_suffix(1);
}

}  // namespace

RecordReader::RecordReader(LineReader& lines, Dialect dialect, TextEncoding encoding,
                           std::size_t longest)
    : lines_(lines), dialect_(dialect), encoding_(encoding), longest_(longest) {}

// An error in the text of a line is kept for its record, and thrown when that has ended.
bool RecordReader::next_line() {
  try {
    if (!lines_.next(line_)) return false;
  } catch (const BadRow& long_line) {
    if (!dialect_.quotes) throw;
    throw Error(long_line);  // no BadRow any more: whether it has opened a quote is unknown
  }
  if (encoding_ == TextEncoding::kAnyBytes) return true;
  try {
    lines_.require_text(line_);
  } catch (const BadRow& error) {
    if (!problem_) problem_ = error;
  }
  return true;
}

bool RecordReader::next(Record& record) {
  problem_.reset();
  for (;;) {
    if (!next_line()) return false;
    if (line_.text.find_first_not_of(" \r") != std::string_view::npos) break;
    ++empty_lines_;
  }
  record.line = line_.number;
  record.fields.clear();
  if (!dialect_.quotes || line_.text.find('"') == std::string_view::npos) {
    split(record);
    if (dialect_.quotes) {
      for (const std::string_view field : record.fields) {
        if (field.find('\r') == std::string_view::npos) continue;
        note("a CR that ends no line", field.substr(field.find('\r')),
             "put the field in quotes, or write LF or CR LF at the end of lines");
      }
    }
  } else {
    split_quoted(record);
  }
  if (problem_) throw *problem_;
  return true;
}

void RecordReader::split(Record& record) const {
  std::string_view rest = line_.text;
  remove_cr(rest);
  for (;;) {
    const std::size_t end = rest.find(dialect_.separator);
    record.fields.push_back(rest.substr(0, end));
    if (end == std::string_view::npos) return;
    rest.remove_prefix(end + 1);
  }
}

void RecordReader::split_quoted(Record& record) {
  row_.clear();
  ends_.clear();
  std::string_view rest = line_.text;
  for (;;) {
    if (rest.starts_with('"')) {
      take_quoted(rest);
    } else {
      take_plain(rest);
    }
    ends_.push_back(row_.size());
    if (rest.empty()) break;
    rest.remove_prefix(1);  // the separator
  }
  std::size_t begin = 0;
  for (const std::size_t end : ends_) {
    record.fields.push_back(std::string_view(row_).substr(begin, end - begin));
    begin = end;
  }
}

// Leaves `rest` at a separator, or empty at the end of the record.
void RecordReader::take_quoted(std::string_view& rest) {
  const index opened = line_.number;
  const auto column = static_cast<std::size_t>(rest.data() - line_.text.data());
  std::optional<index> character;  // counted only where the line of the quote is left
  rest.remove_prefix(1);
  for (;;) {
    const std::size_t quote = rest.find('"');
    row_ += rest.substr(0, quote);
    if (quote == std::string_view::npos) {
      const bool too_long = row_.size() > longest_;
      if (!character) character = 1 + count_characters(line_.text.substr(0, column));
      if (line_.ended) row_ += '\n';
      if (too_long || !next_line()) {
        throw Error(ErrorCode::kInputFormat,
                    fmt::format("{}:{}: the quote that opens here is not closed {}",
                                lines_.place(opened), *character,
                                too_long ? fmt::format("within {}", size_text(longest_))
                                         : "by the end of the file"),
                    std::string(kCloseIt));
      }
      rest = line_.text;
      continue;
    }
    rest.remove_prefix(quote + 1);
    if (!rest.starts_with('"')) break;
    row_ += '"';
    rest.remove_prefix(1);
  }
  if (rest == "\r") rest = {};
  if (rest.empty() || rest.front() == dialect_.separator) return;
  note("text behind a closing quote", rest, kCloseIt);
  rest = {};
}

void RecordReader::take_plain(std::string_view& rest) {
  const std::size_t end = rest.find(dialect_.separator);
  std::string_view field = rest.substr(0, end);
  if (end == std::string_view::npos) remove_cr(field);
  if (field.find('\r') != std::string_view::npos) {
    note("a CR that ends no line", field.substr(field.find('\r')),
         "put the field in quotes, or write LF or CR LF at the end of lines");
  }
  row_ += field;
  rest = end == std::string_view::npos ? std::string_view() : rest.substr(end);
}

// `rest`: of the line, from where the problem is.
void RecordReader::note(std::string_view what, std::string_view rest, std::string_view hint) {
  if (problem_) return;
  const auto before = static_cast<std::size_t>(rest.data() - line_.text.data());
  problem_.emplace(
      ErrorCode::kInputFormat,
      fmt::format("{}:{}: expected the end of a field, got {} {}", lines_.place(line_.number),
                  1 + count_characters(line_.text.substr(0, before)), what,
                  printable(rest.substr(0, 20))),
      std::string(hint));
}

namespace {

using Names = std::span<const std::string_view>;

// In the order in which they are taken.
constexpr std::string_view kTextNames[] = {
    "text",      "sentence", "review",      "content", "document", "comment",
    "tweet",     "message",  "body",        "input",   "headline", "review_text",
    "utterance", "question", "description", "文本",    "内容",     "评论",
    "句子",      "正文",     "النص",        "نص",      "المحتوى",  "التعليق"};
constexpr std::string_view kLabelNames[] = {
    "label", "labels",   "sentiment", "class", "target",  "category", "y",     "rating", "score",
    "stars", "polarity", "intent",    "topic", "emotion", "tag",      "tags",  "output", "标签",
    "情感",  "类别",     "分类",      "评分",  "التصنيف", "تصنيف",    "الفئة", "التسمية"};

constexpr std::string_view kPairNames[][2] = {
    {"sentence1", "sentence2"}, {"premise", "hypothesis"},    {"question1", "question2"},
    {"text1", "text2"},         {"sentence_a", "sentence_b"}, {"text_a", "text_b"},
    {"query", "passage"},       {"query", "document"},        {"query", "text"},
    {"question", "answer"},     {"question", "sentence"},     {"question", "passage"},
    {"context", "response"},    {"first", "second"},          {"source", "target"},
    {"句子1", "句子2"},         {"文本1", "文本2"},           {"问题", "答案"}};
// The same, where further texts follow.
constexpr std::string_view kTripletNames[][2] = {
    {"anchor", "positive"}, {"query", "positive"}, {"query", "pos"}, {"question", "positive"}};
// Labels of pairs, beside the usual ones.
constexpr std::string_view kPairLabelNames[] = {"gold_label",   "similarity",        "relevance",
                                                "is_duplicate", "relatedness_score", "相似度"};

constexpr std::string_view kSayPairColumns =
    "say which columns they are, by name or by number from 1: --text-column 1 --second-column 2 "
    "--label-column 3";
constexpr std::string_view kSayColumns =
    "say which columns they are, by name or by number from 1: --label-column 1 --text-column 2";

std::optional<std::size_t> find_usual(Names usual, Names names) {
  for (const std::string_view wanted : usual) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i].size() < 20 && lower_text(names[i]) == wanted) return i;
    }
  }
  return std::nullopt;
}

std::string list_of(Names names) {
  std::string list;
  for (const std::string_view name : names.first(std::min<std::size_t>(names.size(), 12))) {
    list += (list.empty() ? "" : ", ") + excerpt(name);
  }
  return list + (names.size() > 12 ? ", ..." : "");
}

bool is_number_of_column(std::string_view column) { return is_all_digits(column); }

// Finds the columns of one file.
class Finder {
 public:
  Finder(std::span<const std::vector<std::string>> records, const TableOptions& options,
         std::string_view place)
      : records_(records), options_(options), place_(place) {
    for (const std::string& field : records_.front()) names_.push_back(trimmed(field));
  }

  Columns find() {
    columns_.count = names_.size();
    columns_.has_header = has_header();
    text_ = said("text_column", options_.text_column);
    second_ = said("second_column", options_.second_column);
    label_ = said("label_column", options_.label_column);
    for (const std::string& column : options_.more_columns) {
      more_.push_back(*said("negative_columns", column));
    }
    if (columns_.has_header) {
      find_by_name();
    } else {
      find_by_place();
    }
    require_found();
    columns_.text = *text_;
    columns_.label = label_;
    columns_.second = second_;
    columns_.more = more_;
    columns_.text_name = name_of(*text_);
    if (second_) columns_.second_name = name_of(*second_);
    if (label_) columns_.label_name = name_of(*label_);
    return columns_;
  }

 private:
  bool has_header() const {
    if (options_.header != HeaderRow::kAuto) return options_.header == HeaderRow::kYes;
    for (const std::string* column :
         {&options_.text_column, &options_.second_column, &options_.label_column}) {
      if (!column->empty() && !is_number_of_column(*column)) return true;
    }
    if (!std::ranges::all_of(options_.more_columns, is_number_of_column)) return true;
    if (has_known_names(names_, options_)) return true;
    if (options_.pairs) return find_usual_pair(names_, options_).has_value();
    const auto text_at = find_usual(kTextNames, names_);
    const bool text = text_at.has_value();
    const auto label = find_usual(kLabelNames, names_);
    if (text && (label || !needs_labels(options_))) return true;
    if (!text && !label) return false;
    if (!text && names_[*label].size() < 4) return false;  // "y" alone is more often a label
    const bool says_both = !options_.text_column.empty() && !options_.label_column.empty();
    if (names_.size() < 2 || says_both) return text || (label && says_both);
    // "text" beside "stars" may be a header, or the text "stars" with the label "text".
    const auto names =
        names_.size() == 2 ? names_its_column(label ? *label : 1 - *text_at) : std::nullopt;
    if (names) return *names;
    if (!std::all_of(names_.begin(), names_.end(), looks_like_name)) return false;
    throw Error(ErrorCode::kInputFormat,
                fmt::format("{}: expected names of columns or a row, got what may be either: {}",
                            place_, list_of(names_)),
                "if these are names, say the column of the label, or else --header no: "
                "--label-column NAME");
  }

  // Whether the first field of the labels names them, or is one of them; nothing where that cannot
  // be told. Labels come again, and their name does not; nor is it a number among numbers.
  std::optional<bool> names_its_column(std::size_t column) const {
    const std::string_view first = names_[column];
    std::set<std::string_view> values;
    std::size_t rows = 0, numbers = 0;
    for (const std::vector<std::string>& record : records_.subspan(1)) {
      if (record.size() != names_.size()) continue;
      const std::string_view value = trimmed(record[column]);
      if (value == first) return false;
      values.insert(value);
      ++rows;
      if (number_of(value)) ++numbers;
    }
    if (rows < 2) return std::nullopt;
    if (values.size() < rows || (numbers == rows && !number_of(first))) return true;
    return std::nullopt;
  }

  static bool looks_like_name(std::string_view field) {
    return field.size() <= 40 && field.find(' ') == std::string_view::npos;
  }

  // The column that an option says, by number or by name.
  std::optional<std::size_t> said(std::string_view option, const std::string& column) const {
    if (column.empty()) return std::nullopt;
    if (is_number_of_column(column)) {
      std::size_t number = 0;
      std::from_chars(column.data(), column.data() + column.size(), number);
      if (number >= 1 && number <= names_.size()) return number - 1;
      fail_option(option, column,
                  fmt::format("a column of {}, which has {}", place_, names_.size()));
    }
    if (columns_.has_header) {
      if (const auto found = find_column(column, names_, place_)) return found;
    }
    throw Error(ErrorCode::kOptionValue,
                columns_.has_header
                    ? fmt::format("{}: expected a column {} in {}, got: {}", option_name(option),
                                  escape_text(column), place_, list_of(names_))
                    : fmt::format("{}: {} is a name, and --header no says that {} has none",
                                  option_name(option), escape_text(column), place_),
                "name one of its columns, or give its number from 1");
  }

  void find_by_name() {
    const auto find_other = [&](Names usual, std::optional<std::size_t> taken) {
      std::vector<std::string_view> names = names_;
      if (taken) names[*taken] = {};
      const auto found = find_usual(usual, names);
      return found ? find_column(names[*found], names_, place_) : found;
    };
    take_known_names();
    if (options_.pairs) return find_pair_by_name();
    if (!text_) text_ = find_other(kTextNames, label_);
    if (!label_) label_ = find_other(kLabelNames, text_);
    const auto is_number_of_row = [](std::string_view name) {
      return name.size() < 20 &&
             has_word(",id,idx,index,uid,guid,unnamed: 0", ',', lower_text(name));
    };
    if (needs_labels(options_) && std::none_of(names_.begin(), names_.end(), is_number_of_row)) {
      find_the_other_of_two();
    }
  }

  void take_known_names() {
    const TableForm& known = options_.known;
    if (!has_known_names(names_, options_)) return;
    const auto take = [&](std::optional<std::size_t>& column, const std::string& name, index at) {
      if (column || name.empty()) return;
      const auto place = static_cast<std::size_t>(at) - 1;
      const bool is_there = at > 0 && place < names_.size() && names_[place] == name;
      column = is_there ? place : find_column(name, names_, place_);
    };
    take(text_, known.text_column, known.text_at);
    if (options_.pairs) take(second_, known.second_column, known.second_at);
    take(label_, known.label_column, known.label_at);
    if (label_ && (label_ == text_ || label_ == second_)) label_.reset();
  }

  // Where rows without names have as many columns as those of before, each is at its place.
  void take_known_places() {
    const TableForm& known = options_.known;
    const bool tells = !known.has_header || known.columns > (options_.pairs ? 3 : 2);
    if (!tells || static_cast<std::size_t>(known.columns) != names_.size() || text_ || second_ ||
        label_) {
      return;
    }
    const auto take = [](std::optional<std::size_t>& column, index at) {
      if (at > 0) column = static_cast<std::size_t>(at) - 1;
    };
    take(text_, known.text_at);
    if (options_.pairs) take(second_, known.second_at);
    take(label_, known.label_at);
  }

  void find_pair_by_name() {
    const auto pair = find_usual_pair(names_, options_);
    if (pair && !text_ && second_ != pair->first) text_ = pair->first;
    if (pair && !second_ && text_ != pair->second) second_ = pair->second;
    if (options_.more_texts && more_.empty()) {
      more_ = find_usual_negatives(names_);
      std::erase_if(more_,
                    [&](std::size_t at) { return text_ == at || second_ == at || label_ == at; });
    }
    if (!label_ && text_ && second_) {
      label_ = find_label_of_pair(names_, names_[*text_], names_[*second_]);
    }
    find_rest_of_pair();
  }

  // Two columns are both texts; one of three is the label.
  void find_pair_by_place() {
    const bool said_none = !text_ && !second_ && !label_;
    if (options_.more_texts && more_.empty() && said_none && names_.size() >= 3) {
      return take_texts_in_order();
    }
    if (names_.size() == 3 && said_none) {
      label_ = options_.label_of_two ? *options_.label_of_two : label_of_some();
    }
    find_rest_of_pair();
  }

  // An anchor, what belongs to it, and a number or further texts.
  void take_texts_in_order() {
    text_ = 0;
    second_ = 1;
    const bool is_scored = names_.size() == 3 && std::ranges::all_of(records_, [](const auto& row) {
                             return row.size() != 3 || number_of(row[2]);
                           });
    if (is_scored) {
      label_ = 2;
      return;
    }
    for (std::size_t i = 2; i < names_.size(); ++i) more_.push_back(i);
  }

  // The texts stand in their order where no name says which is which.
  void find_rest_of_pair() {
    if (!more_.empty() && text_ && second_) return;
    const bool has_label = label_ || (names_.size() == 3 && text_ && second_);
    if (names_.size() != (has_label ? 3U : 2U)) return;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (text_ == i || second_ == i || label_ == i) continue;
      (!text_ ? text_ : !second_ ? second_ : label_) = i;
    }
  }

  void find_by_place() {
    take_known_places();
    if (options_.pairs) return find_pair_by_place();
    if (names_.size() == 1 && !text_ && !label_) text_ = 0;
    if (names_.size() == 2 && !text_ && !label_) {
      label_ = options_.label_of_two ? *options_.label_of_two : label_of_some();
    }
    find_the_other_of_two();
  }

  void find_the_other_of_two() {
    if (names_.size() != 2) return;
    if (text_ && !label_) label_ = 1 - *text_;
    if (label_ && !text_) text_ = 1 - *label_;
  }

  // The label among two columns, or among the three of pairs.
  std::size_t label_of_some() const {
    struct Counts {
      std::size_t numbers = 0, several = 0, bytes = 0;
      std::set<std::string_view> values = {};
    };
    const std::size_t count = names_.size();
    const std::string& between = options_.label_separator;
    std::vector<Counts> columns(count);
    for (const std::vector<std::string>& record : records_) {
      if (record.size() != count) continue;
      for (std::size_t i = 0; i < count; ++i) {
        columns[i].numbers += number_of(record[i]) ? 1 : 0;
        columns[i].several +=
            !between.empty() && record[i].find(between) != std::string::npos ? 1 : 0;
        columns[i].bytes += record[i].size();
        columns[i].values.insert(record[i]);
      }
    }
    const auto is_better = [&](const Counts& a, const Counts& b) {
      if (reads_numbers(options_) && a.numbers != b.numbers) {
        return a.numbers > b.numbers;
      }
      if (a.several != b.several) return a.several > b.several;
      if (a.values.size() != b.values.size()) return a.values.size() < b.values.size();
      return a.bytes < b.bytes;
    };
    return static_cast<std::size_t>(std::min_element(columns.begin(), columns.end(), is_better) -
                                    columns.begin());
  }

  void require_found() const {
    if (text_ && label_ && *text_ == *label_) {
      throw Error(ErrorCode::kOptionValue,
                  fmt::format("--label-column: {} is the column of the text in {}",
                              name_of(*label_), place_),
                  "name two columns");
    }
    if (options_.pairs) return require_pair();
    if (text_ && (label_ || !needs_labels(options_))) return;
    const std::string_view missing = text_ ? "label" : label_ ? "text" : "text and label";
    throw Error(
        ErrorCode::kInputFormat,
        columns_.has_header
            ? fmt::format("{}: expected a column with the {}, got: {}", place_, missing,
                          list_of(names_))
            : fmt::format("{}: expected a label and a text, got {} column{}, in the first "
                          "row: {}",
                          place_, names_.size(), names_.size() == 1 ? "" : "s", list_of(names_)),
        names_.size() < 2 ? "say what stands between the columns: --format, or --separator"
                          : std::string(kSayColumns));
  }

  void require_pair() const {
    if (text_ && second_ && (label_ || !needs_labels(options_))) return;
    throw Error(ErrorCode::kInputFormat,
                fmt::format("{}: expected {}{}, got {} column{}: {}", place_,
                            columns_.has_header ? "columns with two texts" : "two texts",
                            needs_labels(options_) ? " and a label" : "", names_.size(),
                            names_.size() == 1 ? "" : "s", list_of(names_)),
                names_.size() < 2 ? "say what stands between the columns: --format, or --separator"
                                  : std::string(kSayPairColumns));
  }

  std::string name_of(std::size_t column) const {
    return columns_.has_header ? std::string(names_[column]) : fmt::format("{}", column + 1);
  }

  std::span<const std::vector<std::string>> records_;
  const TableOptions& options_;
  std::string_view place_;
  std::vector<std::string_view> names_;  // the first record
  Columns columns_;
  std::optional<std::size_t> text_, second_, label_;
  std::vector<std::size_t> more_;
};

}  // namespace

bool is_usual_text_name(std::string_view name) {
  return find_usual(kTextNames, {&name, 1}).has_value();
}

bool is_usual_label_name(std::string_view name) {
  return find_usual(kLabelNames, {&name, 1}).has_value();
}

std::optional<std::size_t> find_usual_text(Names names) { return find_usual(kTextNames, names); }

std::optional<std::size_t> find_usual_label(Names names) { return find_usual(kLabelNames, names); }

std::optional<std::size_t> find_label_of_pair(Names names, std::string_view first,
                                              std::string_view second) {
  std::vector<std::string_view> others(names.begin(), names.end());
  for (std::string_view& name : others) {
    if (name == first || name == second) name = {};
  }
  const auto found = find_usual(kLabelNames, others);
  return found ? found : find_usual(kPairLabelNames, others);
}

std::optional<PairColumns> find_usual_pair(Names names) {
  for (const auto& pair : kPairNames) {
    const auto first = find_usual({&pair[0], 1}, names), second = find_usual({&pair[1], 1}, names);
    if (first && second) return PairColumns{*first, *second};
  }
  return std::nullopt;
}

std::optional<PairColumns> find_usual_pair(Names names, const TableOptions& options) {
  if (options.more_texts) {
    for (const auto& pair : kTripletNames) {
      const auto first = find_usual({&pair[0], 1}, names),
                 second = find_usual({&pair[1], 1}, names);
      if (first && second) return PairColumns{*first, *second};
    }
  }
  return find_usual_pair(names);
}

std::vector<std::size_t> find_usual_negatives(Names names) {
  constexpr std::size_t kLongest = 40;
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string name = names[i].size() <= kLongest ? lower_text(names[i]) : "";
    if (name == "neg" || name.starts_with("negative")) found.push_back(i);
  }
  return found;
}

bool has_known_names(Names names, const TableOptions& options) {
  const TableForm& known = options.known;
  const auto has = [&](const std::string& name) {
    return !name.empty() && std::find(names.begin(), names.end(), name) != names.end();
  };
  return known.has_header && has(known.text_column) && (!options.pairs || has(known.second_column));
}

std::optional<std::size_t> find_column(std::string_view name, Names names, std::string_view place) {
  const std::string lower = lower_text(name);
  std::vector<std::size_t> exact, alike;
  for (std::size_t i = 0; i < names.size(); ++i) {
    // A name in another case has about as many bytes; a first row of data may have long texts.
    if (names[i] == name) exact.push_back(i);
    if (names[i].size() <= 4 * name.size() && lower_text(names[i]) == lower) alike.push_back(i);
  }
  const std::vector<std::size_t>& found = exact.empty() ? alike : exact;
  if (found.empty()) return std::nullopt;
  if (found.size() == 1) return found[0];
  std::vector<std::string_view> several;
  for (const std::size_t i : found) several.push_back(names[i]);
  throw Error(exact.empty() ? ErrorCode::kOptionValue : ErrorCode::kInputFormat,
              fmt::format("{}: expected one column {}, got {}: {}", place, escape_text(name),
                          found.size(), list_of(several)),
              exact.empty() ? "say its name in the same case of letters"
                            : "rename one of them, or give its number from 1");
}

std::vector<std::string_view> parts_of_line(std::string_view line, char separator) {
  std::vector<std::string_view> parts = parts_between(line, separator);
  for (std::string_view& part : parts) {
    part = trimmed(part);
    if (part.size() > 1 && part.starts_with('"') && part.ends_with('"')) {
      part = part.substr(1, part.size() - 2);
    }
  }
  return parts;
}

std::optional<char> separator_of_excel(std::string_view line) {
  constexpr std::string_view kSays = "sep=";
  const auto behind = static_cast<unsigned char>(line.size() == kSays.size() + 1 ? line.back() : 0);
  const bool separates = behind == '\t' || (behind >= ' ' && behind < 0x7F && behind != '"');
  if (!separates || lower_text(line.substr(0, kSays.size())) != kSays) return std::nullopt;
  return line.back();
}

char find_separator(std::string_view line, TableFormat format, const TableOptions& options) {
  if (!options.separator.empty()) return options.separator[0];
  if (const std::string& known = options.known.separator; options.known.format == format) {
    const std::vector<std::string_view> parts = parts_of_line(line, known[0]);
    const bool same = static_cast<index>(parts.size()) == options.known.columns;
    if (has_known_names(parts, options) || (parts.size() > 1 && same)) return known[0];
  }
  if (format == TableFormat::kTsv) return '\t';
  if (line.find(',') != std::string_view::npos) return ',';
  for (const char other : {';', '\t', '|'}) {
    const std::vector<std::string_view> parts = parts_of_line(line, other);
    const bool has_name = std::any_of(parts.begin(), parts.end(), is_usual_text_name);
    if (parts.size() > 1 && (needs_labels(options) || has_name)) return other;
  }
  return ',';
}

Columns find_columns(std::span<const std::vector<std::string>> records, const TableOptions& options,
                     std::string_view place) {
  return Finder(records, options, place).find();
}

std::optional<double> number_of(std::string_view label) {
  label = trimmed(label);
  if (label.starts_with("+-")) return std::nullopt;
  if (label.starts_with('+')) label.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(label.data(), label.data() + label.size(), value);
  if (error != std::errc() || end != label.data() + label.size()) return std::nullopt;
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t";
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

}  // namespace fovea

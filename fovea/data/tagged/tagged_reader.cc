// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/tagged/tagged_reader.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "fovea/base/check.h"
#include "fovea/base/machine.h"
#include "fovea/config/field.h"
#include "fovea/data/tagged/sentence_source.h"
#include "fovea/text/compressed.h"
#include "fovea/text/utf8.h"
#include "fovea/text/words.h"

namespace fovea {

namespace {

void require_different(std::string_view option, const std::vector<std::string>& columns) {
  for (auto column = columns.begin(); column != columns.end(); ++column) {
    if (std::find(columns.begin(), column, *column) == column) continue;
    throw Error(ErrorCode::kOptionValue, fmt::format("{}: {} is named twice", option, *column),
                "name each column once");
  }
}

}  // namespace

void check_options(const TaggedOptions& o) {
  check_ranges(o);
  for (const index column : o.tag_column) {
    if (column != o.word_column) continue;
    throw Error(ErrorCode::kOptionValue,
                fmt::format("--tag-column: {} is the column of the word", column),
                "name two columns");
  }
  require_different("--tag-column", tag_columns(TaggedFormat::kConll, o));
  require_different("--column", tag_columns(TaggedFormat::kConllu, o));
}

std::vector<std::string> tag_columns(TaggedFormat format, const TaggedOptions& options) {
  std::vector<std::string> names;
  if (format == TaggedFormat::kConllu) {
    for (const ConlluColumn column : options.column) names.emplace_back(to_string(column));
    return names;
  }
  for (const index column : options.tag_column) {
    names.push_back(column == 0 ? "last" : std::to_string(column));
  }
  return names;
}

TaggedFormat format_of(std::string_view name, const TaggedOptions& options) {
  if (options.format != TaggedFormat::kAuto) return options.format;
  const std::string lower = lower_text(without_compression_suffix(name));
  if (lower.ends_with(".conllu")) return TaggedFormat::kConllu;
  return lower.ends_with(".seg") ? TaggedFormat::kWords : TaggedFormat::kConll;
}

namespace {

constexpr double kBetweenChecks = 64 << 20;  // bytes of sentences
constexpr double kBytesOfByte = 2;  // of a line: it is kept as it was, and as a word with its tags

double bytes_of(const TaggedSentence& sentence) {
  double bytes = sizeof(sentence);
  const auto columns = static_cast<double>(sentence.tags.size());
  for (const std::string& word : sentence.words) {
    bytes += (1 + columns) * sizeof(word) + sizeof(index) + static_cast<double>(word.size());
  }
  return bytes;
}

class WordsSource final : public SentenceSource {
 public:
  explicit WordsSource(SentenceLines lines) : lines_(std::move(lines)) {}

  bool next(TaggedSentence& sentence) override {
    for (Line line; !lines_.is_full(sentence) && lines_.next(sentence, line);) {
      std::string_view rest = line.text;
      for (std::string_view word = take_word(rest); !word.empty(); word = take_word(rest)) {
        if (lines_.options().tags == TagUse::kRequired) fail_without_tags(line);
        lines_.is_word(sentence, line, word);
      }
      if (sentence.size() > 0) return true;
    }
    return !sentence.source.empty();
  }

 private:
  [[noreturn]] void fail_without_tags(const Line& line) const {
    lines_.fail(line, "expected words with tags, got segmented text, which has none",
                "name a file with tags; if it has another format than its name says: --format");
  }

  SentenceLines lines_;
};

std::unique_ptr<SentenceSource> make_source(TaggedFormat format, SentenceLines lines) {
  if (format == TaggedFormat::kConllu) return conllu_source(std::move(lines));
  if (format == TaggedFormat::kWords) return words_source(std::move(lines));
  return conll_source(std::move(lines));
}

}  // namespace

std::unique_ptr<SentenceSource> words_source(SentenceLines lines) {
  return std::make_unique<WordsSource>(std::move(lines));
}

GrowingMemory SentenceLines::new_memory() {
  return {"a sentence", "end each sentence by an empty line, or use a machine with more memory"};
}

bool SentenceLines::next(TaggedSentence& sentence, Line& line) {
  if (!lines_->next(line)) return false;
  lines_->require_text(line);
  if (sentence.size() == 0 && sentence.source.empty()) {
    bytes_ = 0;
    memory_ = new_memory();
  }
  bytes_ += line.text.size() + sizeof(SourceLine);
  memory_.grow_to(kBytesOfByte * static_cast<double>(bytes_));
  if (options_.keep_source) {
    sentence.source.push_back({.text = std::string(line.text), .word = -1, .ended = line.ended});
  }
  if (line.text.ends_with('\r')) line.text.remove_suffix(1);
  return true;
}

bool SentenceLines::is_full(const TaggedSentence& sentence) const {
  constexpr std::size_t kMostWithoutWord = 1000, kMostBytes = std::size_t{1} << 20;
  const bool is_long = sentence.source.size() >= kMostWithoutWord || bytes_ >= kMostBytes;
  return is_long && sentence.size() == 0 && !sentence.source.empty();
}

void SentenceLines::is_word(TaggedSentence& sentence, const Line& line,
                            std::string_view word) const {
  if (sentence.size() >= options_.longest_sentence) {
    fail(line,
         fmt::format("expected a sentence of at most {} words, got a longer one",
                     options_.longest_sentence),
         "end each sentence by an empty line");
  }
  has_columns(sentence);
  if (!sentence.source.empty()) sentence.source.back().word = sentence.size();
  sentence.words.emplace_back(word);
  sentence.lines.push_back(line.number);
}

void SentenceLines::has_columns(TaggedSentence& sentence) const {
  if (!sentence.source.empty()) sentence.source.back().has_columns = true;
}

void SentenceLines::fail(const Line& line, const std::string& what, std::string_view hint) const {
  throw Error(ErrorCode::kInputFormat, fmt::format("{}: {}", lines_->place(line.number), what),
              std::string(hint));
}

bool is_empty_line(std::string_view text) {
  return text.find_first_not_of(" \t") == std::string_view::npos;
}

void columns_of_line(std::string_view text, std::vector<std::string_view>& columns) {
  columns.clear();
  const bool tabs = text.find('\t') != std::string_view::npos;
  for (bool more = true; more;) {
    if (!tabs) text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    if (!tabs && text.empty()) return;
    const std::size_t end = text.find(tabs ? '\t' : ' ');
    columns.push_back(text.substr(0, end));
    more = end != std::string_view::npos;
    if (more) text.remove_prefix(end + 1);
  }
}

TaggedReader::TaggedReader(const std::string& file, const TaggedOptions& options)
    : TaggedReader(open_text(file), name_of_input(file), options) {}

TaggedReader::TaggedReader(std::unique_ptr<ByteStream> stream, const std::string& name,
                           const TaggedOptions& options)
    : name_(name) {
  check_options(options);
  auto lines = std::make_unique<LineReader>(std::move(stream), name, options.longest_line);
  if (lines->is_empty()) {
    throw Error(ErrorCode::kEmptyInput, fmt::format("{} is empty", name_),
                "name a file that holds sentences");
  }
  source_ = make_source(format_of(name, options), SentenceLines(std::move(lines), options));
}

TaggedReader::~TaggedReader() = default;

bool TaggedReader::next(TaggedSentence& sentence) {
  sentence.clear();
  return source_->next(sentence);
}

std::string TaggedReader::place(const TaggedSentence& sentence, index word) const {
  return fmt::format("{}:{}", name_, sentence.lines[static_cast<std::size_t>(word)]);
}

std::vector<TaggedSentence> read_tagged(const std::string& file, const TaggedOptions& options) {
  TaggedReader reader(file, options);
  std::vector<TaggedSentence> sentences;
  double unchecked = 0;
  for (TaggedSentence sentence; reader.next(sentence);) {
    unchecked += bytes_of(sentence);
    sentences.push_back(std::move(sentence));
    if (unchecked < kBetweenChecks) continue;
    unchecked = 0;
    require_memory(reader.name(), kBetweenChecks, "use less text, or a machine with more memory");
  }
  if (!sentences.empty()) return sentences;
  throw Error(ErrorCode::kEmptyInput,
              fmt::format("{}: expected sentences, got none", reader.name()),
              "name a file that holds sentences");
}

std::string with_columns(const TaggedSentence& sentence,
                         std::span<const std::vector<std::string>> columns,
                         std::string_view other) {
  std::string text;
  for (const SourceLine& line : sentence.source) {
    std::string_view kept = line.text;
    const bool carriage = kept.ends_with('\r');
    if (carriage) kept.remove_suffix(1);
    const bool blanks =
        kept.find('\t') == std::string_view::npos && kept.find(' ') != std::string_view::npos;
    text += kept;
    for (const std::vector<std::string>& column : columns) {
      if (!line.has_columns) break;
      if (!blanks) text += '\t';
      if (blanks && !text.ends_with(' ')) text += ' ';
      text += line.word < 0 ? other : std::string_view(column[static_cast<std::size_t>(line.word)]);
    }
    if (carriage) text += '\r';
    // The columns that were added end with the line, even the last one.
    if (line.ended || line.has_columns) text += '\n';
  }
  return text;
}

std::vector<std::string> characters_of(std::string_view text) {
  std::vector<std::string> characters;
  while (!text.empty()) {
    const TakenCharacter c = take_character(text);
    if (!is_white_space(c.value)) characters.emplace_back(c.bytes);
  }
  return characters;
}

TaggedSentence to_characters(const TaggedSentence& words) {
  TaggedSentence sentence;
  std::vector<std::string>& tags = sentence.tags.emplace_back();
  for (std::size_t w = 0; w < words.words.size(); ++w) {
    std::vector<std::string> characters = characters_of(words.words[w]);
    const std::string type = words.tags.empty() ? "" : "-" + words.tags[0][w];
    const std::size_t count = characters.size();
    for (std::size_t i = 0; i < count; ++i) {
      const char part = count == 1 ? 'S' : i == 0 ? 'B' : i + 1 == count ? 'E' : 'M';
      sentence.words.push_back(std::move(characters[i]));
      tags.push_back(part + type);
      sentence.lines.push_back(words.lines[w]);
    }
  }
  return sentence;
}

namespace {

constexpr std::size_t kMostRead = std::size_t{64} << 10;

// Takes the first line; nothing if it may go on.
std::optional<std::string_view> take_line(std::string_view& lines, bool is_all) {
  const std::size_t end = std::min(lines.find('\n'), lines.size());
  if (end == lines.size() && (!is_all || lines.empty())) return std::nullopt;
  std::string_view line = lines.substr(0, end);
  lines.remove_prefix(std::min(end + 1, lines.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

}  // namespace

std::optional<LineForm> form_of_lines(std::string_view lines, bool is_all,
                                      const ColumnSigns& signs) {
  if (lines.starts_with(kByteOrderMark)) lines.remove_prefix(kByteOrderMark.size());
  std::vector<std::string_view> columns;
  std::size_t words = 0, read = 0, tagged = 0;  // of the first line; lines; those with a tag
  while (const auto line = take_line(lines, is_all)) {
    if (is_empty_line(*line)) {
      if (read == tagged) continue;  // a sentence of one word, if more lines end with a tag
      is_all = true;
      break;
    }
    if (signs.comments && read == 0 && line->starts_with('#')) continue;
    if (line->find('\t') != std::string_view::npos) return LineForm::kColumns;
    columns_of_line(*line, columns);
    if (read++ == 0) {
      words = columns.size();
      if (words == 1 || columns[0] == kDocumentWord) return LineForm::kColumns;
    } else if (columns.size() != words) {
      return LineForm::kText;
    }
    if (signs.is_tag(columns.back()) && ++tagged == 2) return LineForm::kColumns;
  }
  if (!is_all) return std::nullopt;
  return read == 0 ? LineForm::kColumns : LineForm::kText;
}

LineForm find_line_form(std::unique_ptr<ByteStream>& stream, const ColumnSigns& signs) {
  std::string begin;
  std::optional<LineForm> form;
  while (!form) {
    const std::size_t size = begin.size();
    begin.resize(size + kMostRead);
    const std::size_t bytes = stream->read(std::span(begin).subspan(size));
    begin.resize(size + bytes);
    std::string_view lines = begin;
    const bool is_enough = lines.size() >= kMostRead;
    const std::size_t last = lines.rfind('\n');
    // A line that is cut seems to have fewer words than the others.
    if (is_enough && bytes > 0 && last != lines.npos) lines = lines.substr(0, last + 1);
    form = form_of_lines(lines, is_enough || bytes == 0, signs);
  }
  stream = std::make_unique<StartedStream>(std::move(begin), std::move(stream));
  return *form;
}

}  // namespace fovea

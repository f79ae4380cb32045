// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/tagged/line_form.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "fovea/data/tagged/sentence_source.h"

namespace fovea {

namespace {

constexpr std::size_t kMostRead = std::size_t{64} << 10;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// Bytes that were read already, then the rest.
class ReadAgainStream final : public ByteStream {
 public:
  ReadAgainStream(std::string begin, std::unique_ptr<ByteStream> rest)
      : begin_(std::move(begin)), rest_(std::move(rest)) {}

  std::size_t read(std::span<char> to) override {
    if (at_ == begin_.size()) return rest_->read(to);
    const std::size_t bytes = begin_.copy(to.data(), to.size(), at_);
    at_ += bytes;
    return bytes;
  }
  std::uint64_t size_hint() const override { return rest_->size_hint(); }

 private:
  const std::string begin_;
  std::size_t at_ = 0;
  const std::unique_ptr<ByteStream> rest_;
};

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
  stream = std::make_unique<ReadAgainStream>(std::move(begin), std::move(stream));
  return *form;
}

}  // namespace fovea

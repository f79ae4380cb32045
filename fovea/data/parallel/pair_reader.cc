// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/parallel/pair_reader.h"

#include <algorithm>
#include <string_view>

#include "fovea/base/bytes.h"
#include "fovea/base/check.h"
#include "fovea/data/corpus.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

// Views into the text.
std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  if (text.starts_with("\uFEFF")) text.remove_prefix(3);
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
  }
  return lines;
}

std::string read(const std::string& file) {
  std::string text = read_text({&file, 1}, TextEncoding::kUtf8);
  require_no_nul(text, name_of_input(file));
  return text;
}

// Adds pairs of any file.
class Adder {
 public:
  Adder(SentencePairs& pairs, EmptyPairs empty) : pairs_(pairs), empty_(empty) {}

  void add(std::string_view source, std::string_view target) {
    const bool empty = is_blank(source) || is_blank(target);
    pairs_.empty += empty ? 1 : 0;
    if (empty && empty_ == EmptyPairs::kLeaveOut) return;
    pairs_.source.emplace_back(source);
    pairs_.target.emplace_back(target);
  }

 private:
  SentencePairs& pairs_;
  EmptyPairs empty_;
};

void read_two_files(Adder& pairs, const std::string& source, const std::string& target) {
  const std::string from = read(source), to = read(target);
  const std::vector<std::string_view> sources = lines_of(from), targets = lines_of(to);
  if (sources.size() != targets.size()) {
    throw Error(
        ErrorCode::kInputFormat,
        fmt::format("{} has {} lines, {} has {}: line n of one must be the translation of "
                    "line n of the other",
                    name_of_input(source), sources.size(), name_of_input(target), targets.size()),
        "look for a line that is missing, or broken in two, on one side");
  }
  for (std::size_t n = 0; n < sources.size(); ++n) pairs.add(sources[n], targets[n]);
}

void read_table(Adder& pairs, const std::string& file) {
  const std::string text = read(file);
  index number = 0;
  for (const std::string_view line : lines_of(text)) {
    ++number;
    if (line.empty()) continue;
    const std::size_t tab = line.find('\t');
    if (tab == std::string_view::npos || line.find('\t', tab + 1) != std::string_view::npos) {
      throw Error(
          ErrorCode::kInputFormat,
          fmt::format("{}:{}: expected a sentence, a tab and its translation, got {} tabs",
                      name_of_input(file), number, std::count(line.begin(), line.end(), '\t')),
          "of two files with a sentence a line, give one as --source, the other as --target, "
          "or of eval as --reference");
    }
    pairs.add(line.substr(0, tab), line.substr(tab + 1));
  }
}

}  // namespace

void read_pairs(SentencePairs& pairs, const PairFiles& files, EmptyPairs empty) {
  if (files.source.size() != files.target.size()) {
    throw Error(ErrorCode::kUsage,
                fmt::format("files of sources: {}, of their translations: {}", files.source.size(),
                            files.target.size()),
                "name as many of one as of the other, in the same order");
  }
  Adder adder(pairs, empty);
  for (std::size_t n = 0; n < files.source.size(); ++n) {
    read_two_files(adder, files.source[n], files.target[n]);
  }
  for (const std::string& file : files.tables) read_table(adder, file);
}

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/corpus.h"

#include <cmath>
#include <limits>

#include "fovea/base/option.h"
#include "fovea/text/compressed.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

void require_text(std::string_view text, const std::string& file) {
  require_utf8(text, file);
  if (!looks_binary(text)) return;
  throw Error(ErrorCode::kEncoding,
              fmt::format("{}: expected text, got bytes of which a tenth or more are NUL", file),
              encoding_hint(text));
}

index count(std::string_view text, std::string_view part) {
  index n = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; ++n) {
    at = text.find(part, at + part.size());
  }
  return n;
}

void note_oddities(std::string_view text, const std::string& file,
                   std::vector<std::string>& notes) {
  if (text.starts_with("\uFEFF")) {
    notes.push_back(fmt::format("{}: starts with a byte order mark, kept as a character", file));
  }
  if (const index lines = count(text, "\r\n"); lines > 0) {
    notes.push_back(fmt::format("{}: {} of {} lines end with CR LF; the CR stays in the text", file,
                                lines, count(text, "\n")));
  }
}

std::string_view what_splits(SplitAt split_at) {
  switch (split_at) {
    case SplitAt::kWord:
      return "whole word";
    case SplitAt::kLine:
      return "whole line";
    case SplitAt::kCharacter:
      break;
  }
  return "character";
}

}  // namespace

std::string read_text(std::span<const std::string> files, TextEncoding encoding,
                      std::vector<std::string>* notes) {
  std::string all;
  for (const std::string& file : files) {
    const std::string name = name_of_input(file);
    std::string text = read_text_file(file);
    if (text.empty()) {
      throw Error(ErrorCode::kEmptyInput,
                  fmt::format("{} is empty", file == "-" ? name : name + ": the file"),
                  "name a file that holds text");
    }
    if (encoding == TextEncoding::kUtf8) {
      require_text(text, name);
      if (notes != nullptr) note_oddities(text, name, *notes);
    }
    if (all.empty()) {
      all = std::move(text);
    } else {
      if (all.back() != '\n') all += '\n';
      all += text;
    }
  }
  return all;
}

index split_offset(std::string_view text, double fraction, SplitAt split_at) {
  // 1 - 0.9 is a little less than 0.1: without the epsilon, 40 characters would keep 3 instead
  // of 4.
  constexpr double epsilon = std::numeric_limits<double>::epsilon();
  const auto characters = static_cast<double>(count_characters(text));
  const auto kept = static_cast<index>(std::floor(characters * (1 - fraction + epsilon)));
  const index offset = character_offset(text, kept);
  if (split_at == SplitAt::kCharacter || offset == 0) return offset;
  if (split_at == SplitAt::kWord) {
    auto end = static_cast<std::size_t>(offset);
    while (end < text.size() && white_space_at_front(text.substr(end)) == 0) ++end;
    return static_cast<index>(end);
  }
  const std::size_t newline = text.find('\n', static_cast<std::size_t>(offset) - 1);
  return static_cast<index>(newline == std::string_view::npos ? text.size() : newline + 1);
}

Corpus read_corpus(const CorpusOptions& options) {
  if (options.train.empty()) fail(ErrorCode::kUsage, "no training file was named");
  require_option(options.valid_fraction >= 0 && options.valid_fraction < 1, "valid_fraction",
                 options.valid_fraction, "at least 0 (no validation) and below 1");
  Corpus corpus;
  corpus.train = read_text(options.train, options.encoding, &corpus.notes);
  if (!options.valid.empty()) {
    corpus.valid = read_text(options.valid, options.encoding, &corpus.notes);
  } else {
    const index cut = split_offset(corpus.train, options.valid_fraction, options.split_at);
    corpus.valid = corpus.train.substr(static_cast<std::size_t>(cut));
    corpus.train.resize(static_cast<std::size_t>(cut));
    if (corpus.valid.empty() && options.valid_fraction > 0) {
      throw Error(
          ErrorCode::kInputTooSmall,
          fmt::format("the training text is too small: the last {} of its characters hold no "
                      "{} to validate with",
                      options.valid_fraction, what_splits(options.split_at)),
          "give more text, a larger fraction, or a validation file");
    }
  }
  return corpus;
}

}  // namespace fovea

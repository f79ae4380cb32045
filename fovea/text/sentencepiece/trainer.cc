// SPDX-License-Identifier: Apache-2.0
#include "fovea/text/sentencepiece/trainer.h"

#include <sentencepiece_trainer.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <unordered_map>

#include "fovea/base/check.h"
#include "fovea/base/machine.h"
#include "fovea/base/option.h"
#include "fovea/base/words.h"
#include "fovea/text/sentencepiece/sentencepiece.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

constexpr index kSmallestVocabulary = 8, kLargestVocabulary = 1'000'000;
constexpr index kBytes = 256;
constexpr int kThreads = 16;  // sums depend on this number, not on that of processors

// The lines that can be learned from, one after another.
class TextLines final : public sentencepiece::SentenceIterator {
 public:
  TextLines(std::string_view text, std::size_t longest) : rest_(text), longest_(longest) {
    TextLines::Next();
  }

  bool done() const override { return done_; }
  const std::string& value() const override { return line_; }
  sentencepiece::util::Status status() const override { return {}; }

  void Next() override {
    while (!rest_.empty()) {
      const std::size_t end = std::min(rest_.find('\n'), rest_.size());
      std::string_view line = rest_.substr(0, end);
      rest_.remove_prefix(std::min(end + 1, rest_.size()));
      if (line.ends_with('\r')) line.remove_suffix(1);
      long_lines_ += line.size() > longest_ ? 1 : 0;
      if (line.empty() || line.size() > longest_) continue;
      ++lines_;
      line_ = line;
      return;
    }
    done_ = true;
  }

  index lines() const { return lines_; }
  index long_lines() const { return long_lines_; }

 private:
  std::string_view rest_;
  const std::size_t longest_;
  std::string line_;
  bool done_ = false;
  index lines_ = 0, long_lines_ = 0;
};

void check_symbols(const PieceTraining& training) {
  std::set<std::string_view> known{"<unk>", "<s>", "</s>"};
  for (const auto* const list : {&training.user_symbols, &training.control_symbols}) {
    const std::string_view option =
        list == &training.user_symbols ? "user_symbols" : "control_symbols";
    for (const std::string& symbol : *list) {
      const bool usable = !symbol.empty() && symbol.size() < 1000 &&
                          symbol.find('\0') == symbol.npos && !find_invalid_utf8(symbol);
      if (!usable) fail_option(option, printable(symbol), "text of 1 to 999 bytes of UTF-8");
      if (!known.insert(symbol).second || byte_of_piece(symbol) >= 0) {
        fail_option(option, printable(symbol), "named once, and no other piece");
      }
    }
  }
}

void check_training(const PieceTraining& t) {
  require_option(t.vocab_size >= kSmallestVocabulary && t.vocab_size <= kLargestVocabulary,
                 "vocab_size", t.vocab_size, "from {} to {}", kSmallestVocabulary,
                 kLargestVocabulary);
  require_option(t.coverage >= 0.98 && t.coverage <= 1, "coverage", t.coverage, "from 0.98 to 1");
  require_option(t.piece_length >= 1 && t.piece_length <= 512, "piece_length", t.piece_length,
                 "from 1 to 512");
  require_option(t.line_length >= 1 && t.line_length <= (index{1} << 30), "line_length",
                 t.line_length, "from 1 to 2^30");
  check_symbols(t);
}

// A list as SentencePiece reads it: between quotes, which stand twice where they are meant.
std::string joined(const std::vector<std::string>& symbols) {
  std::string list;
  for (const std::string& symbol : symbols) {
    list += list.empty() ? "\"" : ",\"";
    for (const char c : symbol) list.append(c == '"' ? 2 : 1, c);
    list += '"';
  }
  return list;
}

std::unordered_map<std::string, std::string> arguments_of(const PieceTraining& training) {
  const auto said = [](bool yes) { return std::string(yes ? "true" : "false"); };
  std::unordered_map<std::string, std::string> arguments = {
      {"model_type", std::string(to_string(training.kind))},
      {"vocab_size", std::to_string(training.vocab_size)},
      {"character_coverage", fmt::format("{}", training.coverage)},
      {"normalization_rule_name", std::string(to_string(training.normalization))},
      {"byte_fallback", said(training.byte_fallback)},
      {"split_digits", said(training.split_digits)},
      {"max_sentencepiece_length", std::to_string(training.piece_length)},
      {"max_sentence_length", std::to_string(training.line_length)},
      {"num_threads", std::to_string(kThreads)},
      {"minloglevel", "3"}};
  if (!training.user_symbols.empty()) {
    arguments.emplace("user_defined_symbols", joined(training.user_symbols));
  }
  if (!training.control_symbols.empty()) {
    arguments.emplace("control_symbols", joined(training.control_symbols));
  }
  return arguments;
}

// The library ends the process where memory is short, so this asks first. It takes about 24 bytes
// for each of the text (measured with 4 MB); its threads take addresses, which only ulimit counts.
void require_room(std::string_view text) {
  constexpr double kOfByte = 30, kOfThread = 72 << 20;
  const bool counts_addresses = available_memory().reason == "ulimit -v";
  require_memory(
      "learning the pieces",
      kOfByte * static_cast<double>(text.size()) + (counts_addresses ? kThreads * kOfThread : 0),
      "give less text, or free some memory");
}

// The number behind these words of a message; 0 if they are not there.
index number_behind(std::string_view message, std::string_view words) {
  const std::size_t at = message.find(words);
  if (at == message.npos) return 0;
  index number = 0;
  std::from_chars(message.data() + at + words.size(), message.data() + message.size(), number);
  return number;
}

[[noreturn]] void fail_of(const std::string& message, const PieceTraining& training) {
  const index most = number_behind(message, "Please set it to a value <= ");
  if (most > 0) {
    fail_option("vocab_size", std::to_string(training.vocab_size),
                fmt::format("possible: the text has {} pieces", most), ErrorCode::kOptionValue,
                Hint{fmt::format("--vocab-size {}, or more text", most)});
  }
  const std::string_view small = "smaller than required_chars. ";
  if (message.find(small) != message.npos) {
    const index least = number_behind(message, fmt::format("{}{} vs ", small, training.vocab_size));
    fail_option("vocab_size", std::to_string(training.vocab_size),
                fmt::format("enough: characters and symbols alone are {}", least),
                ErrorCode::kOptionValue, Hint{"a larger --vocab-size, or a smaller --coverage"});
  }
  throw Error(ErrorCode::kOptionValue, "SentencePiece cannot learn from this text: " + message,
              "change --vocab-size, --coverage or --kind, or give more text");
}

}  // namespace

TrainedPieces train_pieces(std::string_view text, const PieceTraining& training) {
  check_training(training);
  require_option(!training.byte_fallback || training.vocab_size > kBytes + kSmallestVocabulary,
                 "vocab_size", training.vocab_size, "above {}: bytes alone are 256 pieces",
                 kBytes + kSmallestVocabulary);
  TextLines lines(text, static_cast<std::size_t>(training.line_length));
  if (lines.done()) {
    throw Error(ErrorCode::kInputTooSmall, "there is no line to learn pieces from",
                "give more text, or a larger --line-length");
  }
  require_room(text);
  TrainedPieces trained;
  const auto status =
      sentencepiece::SentencePieceTrainer::Train(arguments_of(training), &lines, &trained.model);
  if (!status.ok()) fail_of(status.ToString(), training);
  trained.lines = lines.lines();
  trained.long_lines = lines.long_lines();
  SentencePiece check(trained.model, "the trained model");  // what we write, we read
  return trained;
}

}  // namespace fovea

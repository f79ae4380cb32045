// SPDX-License-Identifier: Apache-2.0
// Ids of texts, for bench/tokenizer_peers.py:
//
//   fovea_bench_tokenizer FOLDER
//
// FOLDER has a tokenizer.json, and a config.json with vocab_size. Reads batches from standard input
// until its end: the number of texts (uint64), then of each text its bytes (uint32) and the text,
// which need not be UTF-8. Answers each batch by the seconds of the processor that it took to
// encode the texts, one after another, on one thread (double), and of each text the number of its
// ids (uint32) and these (int32).
#include <fmt/core.h>

#include <cstdint>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/check.h"
#include "fovea/base/error.h"
#include "fovea/pretrained/folder_subwords.h"
#include "fovea/pretrained/pretrained.h"
#include "fovea/pretrained/tokenizer_files.h"
#include "fovea/text/tokenizer/wordpiece.h"
#include "fovea/text/utf8.h"

namespace fovea {
namespace {

// The tokenizer of a folder, of whichever kind.
class TextCutter {
 public:
  explicit TextCutter(const std::filesystem::path& folder) {
    const ModelFiles files(folder);
    if (tokenizer_model(files) == "WordPiece") {
      words_.emplace(read_wordpiece(files));
    } else {
      subwords_ = load_folder_subwords(folder);
    }
  }

  void append(std::vector<token>& ids, std::string_view text) const {
    if (words_) return words_->encode(ids, text);
    if (find_invalid_utf8(text)) return subwords_->encode(ids, valid_utf8(text));
    subwords_->encode(ids, text);
  }

 private:
  std::optional<WordPiece> words_;
  std::shared_ptr<const Subwords> subwords_;
};

template <class T>
bool read_number(T& number) {
  return std::fread(&number, sizeof(number), 1, stdin) == 1;
}

std::string read_text() {
  std::uint32_t bytes = 0;
  if (!read_number(bytes)) fail(ErrorCode::kInputFormat, "standard input ends inside a batch");
  std::string text(bytes, '\0');
  if (std::fread(text.data(), 1, bytes, stdin) != bytes) {
    fail(ErrorCode::kInputFormat, "standard input ends inside a text");
  }
  return text;
}

void answer(const TextCutter& cutter, std::uint64_t count) {
  std::vector<std::string> texts;
  for (std::uint64_t n = 0; n < count; ++n) texts.push_back(read_text());
  std::vector<token> ids;
  std::vector<std::size_t> ends;
  const std::clock_t began = std::clock();
  for (const std::string& text : texts) {
    cutter.append(ids, text);
    ends.push_back(ids.size());
  }
  const double seconds = static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC;
  std::fwrite(&seconds, sizeof(seconds), 1, stdout);
  std::size_t begin = 0;
  for (const std::size_t end : ends) {
    const auto length = static_cast<std::uint32_t>(end - begin);
    std::fwrite(&length, sizeof(length), 1, stdout);
    std::fwrite(ids.data() + begin, sizeof(token), end - begin, stdout);
    begin = end;
  }
  std::fflush(stdout);
}

}  // namespace
}  // namespace fovea

int main(int count, char** arguments) {
  using namespace fovea;
  if (count != 2) {
    fmt::print(stderr, "usage: fovea_bench_tokenizer FOLDER\n");
    return 2;
  }
  try {
    const TextCutter cutter(arguments[1]);
    for (std::uint64_t texts = 0; read_number(texts);) answer(cutter, texts);
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}

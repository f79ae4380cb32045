// SPDX-License-Identifier: Apache-2.0
#include "cli/answers.h"

#include <utility>

#include "fovea/base/error.h"
#include "fovea/text/compressed.h"

namespace fovea::cli {

std::unique_ptr<ByteStream> answered_stream(const std::string& file, std::function<void()> answer) {
  auto stream = std::make_unique<FileStream>(file);
  stream->before_waiting(std::move(answer));
  return unpacked(std::move(stream), name_of_input(file));
}

void answer_all(const std::function<void()>& read, const std::function<void()>& answer) {
  try {
    read();
  } catch (const Error&) {
    answer();
    throw;
  }
  answer();
}

void answer_lines(LineReader& lines, const std::function<void(const Line&)>& add,
                  const std::function<void()>& answer) {
  answer_all(
      [&] {
        for (Line line; lines.next(line);) {
          lines.require_text(line);
          add(line);
        }
      },
      answer);
}

void answer_lines(const std::string& file, std::size_t longest,
                  const std::function<void(const Line&)>& add,
                  const std::function<void()>& answer) {
  LineReader lines(answered_stream(file, answer), name_of_input(file), longest);
  answer_lines(lines, add, answer);
}

}  // namespace fovea::cli

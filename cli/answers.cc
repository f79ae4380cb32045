// SPDX-License-Identifier: Apache-2.0
#include "cli/answers.h"

#include <utility>

#include "fovea/base/error.h"
#include "fovea/text/compressed.h"

namespace fovea::cli {

namespace {

// Who writes a text where a file is expected learns how a text is given.
std::unique_ptr<FileStream> opened(const std::string& file) try {
  return std::make_unique<FileStream>(file);
} catch (const Error& error) {
  if (error.code() != ErrorCode::kMissingInput) throw;
  throw Error(error.code(), error.what(),
              "name a file, or give a text on standard input: echo \"TEXT\" | fovea ...");
}

}  // namespace

std::unique_ptr<ByteStream> answered_stream(const std::string& file, std::function<void()> answer) {
  auto stream = opened(file);
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

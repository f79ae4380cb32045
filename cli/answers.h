// SPDX-License-Identifier: Apache-2.0
// How commands read what they answer: what has been read is answered before more is waited for, and
// before an error. So a line that a person or a program writes into a pipe is answered at once, and
// lines that come fast are answered together.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "fovea/base/byte_stream.h"
#include "fovea/data/table/line_reader.h"

namespace fovea::cli {

/// The bytes of a file, a pipe or, as "-", standard input, unpacked. Calls `answer` before it waits
/// for more.
std::unique_ptr<ByteStream> answered_stream(const std::string& file, std::function<void()> answer);

/// Calls `read`, then `answer`, also if `read` throws an Error; that comes behind the answers.
void answer_all(const std::function<void()>& read, const std::function<void()>& answer);

/// Does so for lines of text: calls `add` with each.
void answer_lines(LineReader& lines, const std::function<void(const Line&)>& add,
                  const std::function<void()>& answer);
/// All of that for a file whose lines have at most `longest` bytes.
void answer_lines(const std::string& file, std::size_t longest,
                  const std::function<void(const Line&)>& add, const std::function<void()>& answer);

}  // namespace fovea::cli

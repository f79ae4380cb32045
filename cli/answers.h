// SPDX-License-Identifier: Apache-2.0
// How commands read what they answer: what has been read is answered before more is waited for, and
// before an error. So a line that a person or a program writes into a pipe is answered at once, and
// lines that come fast are answered together.
#pragma once

#include <cstddef>
#include <functional>
#include <future>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/output.h"
#include "fovea/base/bytes.h"
#include "fovea/base/context.h"
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

/// How much is well answered at once.
struct AnswersAtOnce {
  std::size_t entries, bytes;
  std::size_t words = std::numeric_limits<std::size_t>::max();
};

/// With several threads, answers are made while the next entries are read.
inline std::launch launch_of(const Context& context) {
  return context.threads() > 1 ? std::launch::async : std::launch::deferred;
}

/// Answers entries in their order, many at a time.
template <class Asked>
class Answers {
 public:
  /// The lines that answer these.
  using Say = std::function<std::string(std::vector<Asked>& asked)>;
  using Print = std::function<void(std::string_view lines)>;

  Answers(std::launch launch, const AnswersAtOnce& at_once, Say say, Print print = print_answers)
      : launch_(launch), at_once_(at_once), say_(std::move(say)), print_(std::move(print)) {}
  ~Answers() {
    if (lines_.valid()) lines_.wait();
  }
  Answers(const Answers&) = delete;
  Answers& operator=(const Answers&) = delete;

  /// Throws NobodyReads, and what `say` does.
  void add(Asked asked, std::size_t bytes, std::size_t words = 0) {
    next_.push_back(std::move(asked));
    words_ += words;
    bytes_ += bytes;
    if (next_.size() >= at_once_.entries || words_ >= at_once_.words || bytes_ >= at_once_.bytes) {
      begin();
    }
  }

  /// Prints the lines of all entries that are not answered yet. Throws as add().
  void answer() {
    begin();
    finish();
  }

 private:
  // Waits for the lines of earlier entries, and begins with those of the next. After an error of
  // the earlier ones, the next have no answers: none is left out between two others.
  void begin() {
    std::vector<Asked> asked = std::exchange(next_, {});
    words_ = bytes_ = 0;
    finish();
    if (asked.empty()) return;
    lines_ =
        std::async(launch_, [this, asked = std::move(asked)]() mutable { return say_(asked); });
    if (launch_ == std::launch::deferred) finish();
  }

  void finish() {
    if (lines_.valid()) print_(lines_.get());
  }

  const std::launch launch_;
  const AnswersAtOnce at_once_;
  const Say say_;
  const Print print_;
  std::vector<Asked> next_;
  std::size_t words_ = 0, bytes_ = 0;  // of these
  std::future<std::string> lines_;     // of the entries before
};

}  // namespace fovea::cli

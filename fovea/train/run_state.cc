// SPDX-License-Identifier: Apache-2.0
#include "fovea/train/run_state.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/base/file.h"
#include "fovea/base/machine.h"
#include "fovea/config/json.h"
#include "fovea/train/model_folder.h"

namespace fovea {

namespace {

[[noreturn]] void fail_writing(const std::filesystem::path& file, int error) {
  throw Error(code_of_failed_write(error),
              fmt::format("{}: cannot write: {}", file.string(), std::strerror(error)),
              "free some space, or check the path and its permissions");
}

// One write, unless it is cut short: in the file of a killed process only the last line may be
// incomplete.
bool write_line(int fd, std::string_view line) {
  while (!line.empty()) {
    const ssize_t n = ::write(fd, line.data(), line.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    line.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

}  // namespace

std::string utc_time() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32] = "";
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

ProcessStart start_of_process(index step, int threads, const RunIdentity& identity) {
  return {.step = step,
          .time = utc_time(),
          .processor = processor_name(),
          .threads = threads,
          .isa = identity.isa,
          .version = identity.version,
          .model = identity.model,
          .data = identity.data,
          .tokenizer = identity.tokenizer};
}

void require_same_run(const RunIdentity& began, const RunIdentity& now) {
  const auto require = [](const std::string& was, const std::string& is, std::string_view what) {
    if (was == is) return;
    throw Error(
        ErrorCode::kConfig,
        fmt::format(
            "cannot resume: the {} is not that of the run: fingerprint {}, it began with {}", what,
            is, was),
        fmt::format("give the {} that the run began with, or train into another folder", what));
  };
  const bool known_before = !now.model_before.empty() && began.model == now.model_before;
  if (!known_before) require(began.model, now.model, "model configuration");
  require(began.data, now.data, "text");
  require(began.tokenizer, now.tokenizer, "tokenizer");
}

void append_line(const std::filesystem::path& file, std::string_view what) {
  const std::string before = read_run_file(file);
  const bool torn = !before.empty() && before.back() != '\n';
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) fail_writing(file, errno);
  std::string line = torn ? "\n" : "";
  line += what;
  line += '\n';
  const bool written = write_line(fd, line) && ::fsync(fd) == 0;
  const int error = errno;
  ::close(fd);
  if (!written) fail_writing(file, error);
}

void append_start(const std::filesystem::path& folder, ProcessStart start) {
  append_line(folder / kStartsName, to_json_line(start));
}

std::vector<ProcessStart> read_starts(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / kStartsName;
  std::vector<ProcessStart> starts;
  const std::string text = read_run_file(file);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    try {
      ProcessStart start;
      from_json(std::string_view(text).substr(begin, end - begin), {file.string()}, start,
                MissingKeys::kKeepTheirValue);
      while (!starts.empty() && starts.back().step >= start.step) starts.pop_back();
      starts.push_back(std::move(start));
    } catch (const Error&) {
    }
    begin = end + 1;
  }
  return starts;
}

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
#include "cli/threads.h"

#include "cli/field_options.h"
#include "fovea/base/check.h"

namespace fovea::cli {

namespace {

constexpr int kMostThreads = 1024;

struct ThreadOptions {
  int threads = 0;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("threads", threads, "threads to work on; 0: all cores");
  }
};

}  // namespace

Context context_of(const Arguments& arguments) {
  ThreadOptions options;
  const std::vector<Field> fields = fields_of(options);
  set_from_outside(flags_of(fields), arguments);
  if (options.threads < 0 || options.threads > kMostThreads) {
    throw Error(ErrorCode::kOptionValue,
                fmt::format("--threads: {} is out of range", options.threads),
                fmt::format("--threads must be 0 (all cores) to {}", kMostThreads));
  }
  return Context(options.threads);
}

OptionSpec threads_option() {
  ThreadOptions options;
  const std::vector<Field> fields = fields_of(options);
  OptionSpec option = options_of(flags_of(fields), "Run").front();
  option.also = "t";
  return option;
}

}  // namespace fovea::cli

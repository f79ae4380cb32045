// SPDX-License-Identifier: Apache-2.0
#include "cli/threads.h"

#include "cli/field_options.h"
#include "fovea/base/option.h"

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

Context context_of(int threads) {
  require_option(threads >= 0 && threads <= kMostThreads, "threads", threads, "0 (all cores) to {}",
                 kMostThreads);
  return Context(threads);
}

Context context_of(const Arguments& arguments) {
  ThreadOptions options;
  const std::vector<Field> fields = fields_of(options);
  set_from_outside(flags_of(fields), arguments);
  return context_of(options.threads);
}

OptionSpec threads_option() {
  ThreadOptions options;
  const std::vector<Field> fields = fields_of(options);
  OptionSpec option = options_of(flags_of(fields), "Run").front();
  option.also = "t";
  return option;
}

}  // namespace fovea::cli

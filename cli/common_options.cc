// SPDX-License-Identifier: Apache-2.0
#include "cli/common_options.h"

#include "cli/field_options.h"
#include "cli/output.h"
#include "fovea/base/option.h"
#include "fovea/simd/isa.h"
#include "fovea/train/options.h"

namespace fovea::cli {

namespace {

constexpr int kMostThreads = 1024;

struct ThreadOptions {
  int threads = 0;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("threads", threads, "threads to work on; 0: all cores", {.also = "t"});
  }
};

struct PrecisionOptions {
  Precision precision = Precision::kFloat32;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("precision", precision, "bf16: products round their operands to bfloat16");
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

Context model_context_of(const Arguments& arguments) {
  PrecisionOptions options;
  const std::vector<Field> fields = fields_of(options);
  set_from_outside(flags_of(fields), arguments);
  note_conversion(options.precision);
  return context_of(arguments).with(options.precision);
}

OptionSpec threads_option() {
  ThreadOptions options;
  const std::vector<Field> fields = fields_of(options);
  return options_of(flags_of(fields), "Run").front();
}

OptionSpec precision_option() {
  PrecisionOptions options;
  const std::vector<Field> fields = fields_of(options);
  return options_of(flags_of(fields), "Run").front();
}

std::string thread_words(int threads) {
  return fmt::format("{} thread{}", threads, threads == 1 ? "" : "s");
}

void tell_threads(const Context& context) {
  detail(fmt::format("{}, instruction set {}", thread_words(context.threads()),
                     isa_name(current_isa())));
}

void note_conversion(Precision precision) {
  if (precision == Precision::kFloat32 || has_bfloat16_products()) return;
  note(
      fmt::format("precision {}: this machine, with {}, multiplies no bfloat16 faster than "
                  "float32: values are rounded to bfloat16 and multiplied as float32",
                  precision_name(precision), isa_name(current_isa())));
}

std::vector<OptionSpec> message_options() {
  MessageOptions defaults;
  const std::vector<Field> fields = fields_of(defaults);
  return said_or_not(options_of(flags_of(fields), "Messages"));
}

void set_messages_from(const Arguments& arguments) {
  MessageOptions options;
  const std::vector<Field> fields = fields_of(options);
  set_from_outside(flags_of(fields), arguments);
  set_messages(options, arguments.on("json") ? ErrorFormat::kJson : ErrorFormat::kText);
}

}  // namespace fovea::cli

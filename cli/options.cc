// SPDX-License-Identifier: Apache-2.0
#include "cli/options.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "cli/output.h"
#include "fovea/base/option.h"
#include "fovea/base/words.h"
#include "fovea/config/suggest.h"
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

OptionKind kind_of(const Flag& flag) {
  switch (flag.kind) {
    case FlagKind::kSwitch:
      return OptionKind::kSwitch;
    case FlagKind::kList:
      return OptionKind::kList;
    case FlagKind::kValue:
      break;
  }
  return flag.field.traits.bare.empty() ? OptionKind::kValue : OptionKind::kOptionalValue;
}

// The heading below which help shows the option.
std::string heading_of(const FieldTraits& traits, std::string_view group) {
  if (traits.place != HelpPlace::kBelow) return OptionSpec().group;
  return std::string(traits.heading.empty() ? group : traits.heading);
}

}  // namespace

std::vector<Field> settable(std::vector<Field> fields) {
  std::erase_if(fields, [](const Field& field) { return !field.traits.is_option; });
  return fields;
}

std::vector<Flag> flags_without(std::vector<Flag> flags,
                                std::initializer_list<std::string_view> names) {
  std::erase_if(flags, [&](const Flag& flag) { return std::ranges::count(names, flag.name) > 0; });
  return flags;
}

std::vector<OptionSpec> options_of(std::span<const Flag> flags, std::string_view group) {
  std::vector<OptionSpec> options;
  for (const Flag& flag : flags) {
    options.push_back({.name = flag.name,
                       .kind = kind_of(flag),
                       .placeholder = flag.kind == FlagKind::kList ? "FILE" : flag.placeholder,
                       .help = flag.default_text.empty()
                                   ? flag.help
                                   : fmt::format("{} [{}]", flag.help, flag.default_text),
                       .group = heading_of(flag.field.traits, group),
                       .also = std::string(flag.field.traits.also),
                       .environment = flag.environment,
                       .place = flag.field.traits.place});
  }
  return options;
}

std::vector<OptionSpec> said_or_not(std::vector<OptionSpec> options) {
  constexpr std::string_view kDefault = " [false]";
  for (OptionSpec& option : options) {
    if (option.kind != OptionKind::kSwitch) continue;
    option.kind = OptionKind::kFlag;
    option.help.erase(option.help.size() - kDefault.size());
  }
  return options;
}

std::vector<OptionSpec> joined(std::initializer_list<std::vector<OptionSpec>> lists) {
  std::vector<OptionSpec> all;
  for (const std::vector<OptionSpec>& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

std::vector<std::string> read_options(const Arguments& arguments, std::vector<Flag> flags) {
  std::vector<std::string> set = set_from_environment(flags, [](const char* name) -> const char* {
    const char* value = std::getenv(name);
    return value != nullptr && *value != '\0' ? value : nullptr;
  });
  for (Flag& flag : flags) {
    if (!arguments.has(flag.name)) continue;
    flag.set(arguments.list(flag.name));
    set.push_back(flag.field.name);
  }
  for (const Flag& flag : flags) {
    if (contains(set, flag.field.name)) require_ranges({&flag.field, 1});
  }
  return set;
}

void begin_command(const Arguments& arguments, const std::vector<std::string>& files,
                   const std::filesystem::path& folder) {
  MessageOptions messages;
  read_options(arguments, messages);
  set_messages(messages, arguments.on("json") ? ErrorFormat::kJson : ErrorFormat::kText);
  check_log_is_apart(files, folder);
  warn_of_unread_variables(arguments.command());
}

void warn_of_unread_variables(const Command& command) {
  constexpr std::string_view kPrefix = "FOVEA_";
  const std::vector<OptionSpec>& options = command.options;
  std::vector<std::string> read = {"ISA"};
  for (const OptionSpec& option : options) {
    if (!option.environment.empty()) read.push_back(option.environment.substr(kPrefix.size()));
  }
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view variable = *entry;
    const std::string name(variable.substr(0, variable.find('=')));
    if (!name.starts_with(kPrefix)) continue;
    const std::string rest = name.substr(kPrefix.size()), meant = closest(rest, read);
    if (meant == rest) continue;
    const auto option = std::find_if(options.begin(), options.end(), [&](const OptionSpec& spec) {
      return environment_name(spec.name) == name;
    });
    if (option != options.end()) {
      warn(fmt::format("the environment variable {} is not read; say --{}", name, option->name));
    } else if (!meant.empty()) {
      warn(fmt::format("the environment variable {} is not read; did you mean {}{}?", name, kPrefix,
                       meant));
    }
  }
}

void refuse_options(const Arguments& arguments, const std::vector<std::string_view>& options,
                    std::string_view why, std::string_view hint) {
  std::vector<std::string> given;
  for (const std::string_view option : options) {
    if (arguments.has(option)) given.emplace_back(option);
  }
  refuse_set(arguments, given, options, why, hint);
}

void refuse_set(const Arguments& arguments, const std::vector<std::string>& set,
                const std::vector<std::string_view>& fields, std::string_view why,
                std::string_view hint) {
  for (const std::string_view field : fields) {
    if (!contains(set, field)) continue;
    throw Error(
        ErrorCode::kUsage,
        fmt::format("{}: {} has no effect{}", arguments.command().name, option_name(field), why),
        std::string(hint));
  }
}

Context context_of(int threads) {
  require_option(threads >= 0 && threads <= kMostThreads, "threads", threads, "0 (all cores) to {}",
                 kMostThreads);
  return Context(threads);
}

Context context_of(const Arguments& arguments) {
  ThreadOptions options;
  read_options(arguments, options);
  return context_of(options.threads);
}

Context model_context_of(const Arguments& arguments) {
  PrecisionOptions options;
  read_options(arguments, options);
  note_conversion(options.precision);
  return context_of(arguments).with(options.precision);
}

OptionSpec threads_option() { return options_of(ThreadOptions(), "Run").front(); }

std::vector<OptionSpec> computing_options() {
  return {options_of(PrecisionOptions(), "Run").front(), threads_option()};
}

std::vector<OptionSpec> message_options() { return said_or_not(MessageOptions(), "Messages"); }

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

}  // namespace fovea::cli

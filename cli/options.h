// SPDX-License-Identifier: Apache-2.0
// The options of commands, made from the lists of fields of structs; those that most commands have;
// and the first steps that all commands take.
#pragma once

#include <filesystem>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/command_line.h"
#include "fovea/base/context.h"
#include "fovea/config/flags.h"

namespace fovea::cli {

/// The fields of a configuration that a user can set.
std::vector<Field> settable(std::vector<Field> fields);

/// The flags of a struct, but for those of these names.
std::vector<Flag> flags_without(std::vector<Flag> flags,
                                std::initializer_list<std::string_view> names);
template <HasFields Struct>
std::vector<Flag> flags_without(Struct& fields, std::initializer_list<std::string_view> names) {
  return flags_without(flags_of(fields_of(fields)), names);
}

/// One option for each flag; help shows its default, below the heading of its field or else of the
/// group, unless it has a place above all headings.
std::vector<OptionSpec> options_of(std::span<const Flag> flags, std::string_view group);
template <HasFields Struct>
std::vector<OptionSpec> options_of(Struct defaults, std::string_view group) {
  return options_of(flags_of(fields_of(defaults)), group);
}

/// These options as switches that are given or not: without --no-x, and with no default shown.
std::vector<OptionSpec> said_or_not(std::vector<OptionSpec> options);
template <HasFields Struct>
std::vector<OptionSpec> said_or_not(Struct defaults, std::string_view group) {
  return said_or_not(options_of(std::move(defaults), group));
}

/// The options of all lists, in their order.
std::vector<OptionSpec> joined(std::initializer_list<std::vector<OptionSpec>> lists);

/// Sets fields from the environment, then from the command line. Returns the names of the fields
/// that were set. Throws kOptionValue for a number that is out of the range of its field.
std::vector<std::string> read_options(const Arguments& arguments, std::vector<Flag> flags);
template <HasFields... Structs>
std::vector<std::string> read_options(const Arguments& arguments, Structs&... structs) {
  std::vector<Field> fields;
  (append_fields(structs, fields), ...);
  return read_options(arguments, flags_of(fields));
}

/// The first steps of a command: messages go where the options say, the log is none of the `files`
/// that are read and lies not in `folder` ("": none), and the user is told of environment variables
/// FOVEA_... that no option reads but whose name is near that of an option.
void begin_command(const Arguments& arguments, const std::vector<std::string>& files = {},
                   const std::filesystem::path& folder = {});
void warn_of_unread_variables(const Command& command);

/// Throws kUsage if one of these options was given: "COMMAND: --x has no effect", then `why`.
void refuse_options(const Arguments& arguments, const std::vector<std::string_view>& options,
                    std::string_view why, std::string_view hint = "leave it out");
/// Throws so for fields that were set, also by the environment.
void refuse_set(const Arguments& arguments, const std::vector<std::string>& set,
                const std::vector<std::string_view>& fields, std::string_view why,
                std::string_view hint = "leave it out");

/// A context with the number of threads from --threads. Throws kOptionValue.
Context context_of(int threads);
/// A context with the threads of --threads, or else of FOVEA_THREADS. Throws kOptionValue.
Context context_of(const Arguments& arguments);
/// A context for a command that computes with a model, in the precision of --precision or
/// FOVEA_PRECISION.
Context model_context_of(const Arguments& arguments);

/// The heading of --adapter in help.
inline constexpr std::string_view kAdaptersHeading = "Adapters";

OptionSpec threads_option();
/// --precision and --threads, which every command has that computes with a model.
std::vector<OptionSpec> computing_options();
std::vector<OptionSpec> message_options();

/// "2 threads".
std::string thread_words(int threads);
/// Tells them and the instruction set, where details are wanted.
void tell_threads(const Context& context);

/// Says so if products of that precision are computed by conversion on this machine.
void note_conversion(Precision precision);

}  // namespace fovea::cli

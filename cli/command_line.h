// SPDX-License-Identifier: Apache-2.0
// What a command accepts, and what it was given: texts by name. Values are read by who knows their
// types.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::cli {

enum class OptionKind {
  kFlag,           ///< --json
  kSwitch,         ///< --tie, --tie=false, --no-tie
  kValue,          ///< --lr 0.001
  kList,           ///< --train A B
  kOptionalValue,  ///< --resume, --resume=PATH; beside positionals a value only with the =
};

struct OptionSpec {
  std::string name;  ///< "batch-size"; without dashes
  OptionKind kind = OptionKind::kValue;
  std::string placeholder;  ///< "N", "FILE", "char|byte"
  std::string help;
  std::string group = "Options";
  std::string also;              ///< another spelling: "o" for -o, "learning-rate"
  std::string environment = "";  ///< the variable that says the same; "": none does
};

struct PositionalSpec {
  std::string name;  ///< "DIR"
  std::string help;
  bool required = true;
};

struct CommandSpec {
  std::string name;  ///< "train lm"
  std::string summary;
  std::vector<PositionalSpec> positionals;
  std::vector<OptionSpec> options;
  std::string epilog;  ///< examples
};

class Arguments {
 public:
  bool has(std::string_view name) const { return values_.find(name) != values_.end(); }
  /// The last value given, or `otherwise`.
  std::string text(std::string_view name, std::string_view otherwise = {}) const;
  std::vector<std::string> list(std::string_view name) const;
  bool on(std::string_view name) const { return text(name) == "true"; }

  void set(std::string_view name, std::vector<std::string> values);

 private:
  std::map<std::string, std::vector<std::string>, std::less<>> values_;
};

/// `words` are what came after the command's name; --help is the argument "help". Throws kUsage: an
/// unknown option (with the likeliest one that was meant), a missing or extra argument.
Arguments parse_arguments(const CommandSpec& command, std::vector<std::string> words);

std::string help_text(const CommandSpec& command);

}  // namespace fovea::cli

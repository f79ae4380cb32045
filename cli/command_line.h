// SPDX-License-Identifier: Apache-2.0
// The options that a command accepts, and the arguments that it was given, as texts by name. The
// caller parses the values.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/fields.h"

namespace fovea::cli {

enum class OptionKind {
  kFlag,           ///< --json
  kSwitch,         ///< --tie, --tie=false, --no-tie
  kValue,          ///< --lr 0.001
  kList,           ///< --train A B
  kOptionalValue,  ///< --resume, --resume=PATH; in a command with positionals the value needs the =
};

struct OptionSpec {
  std::string name;  ///< "batch-size"; without dashes
  OptionKind kind = OptionKind::kValue;
  std::string placeholder = {};  ///< "N", "FILE", "char|byte"
  std::string help = {};
  std::string group = "Options";
  std::string also = {};         ///< another spelling: "o" for -o, "learning-rate"
  std::string environment = {};  ///< the variable that sets it too; "": none
  HelpPlace place = HelpPlace::kBelow;
};

/// An option without a value: "--json".
OptionSpec flag(std::string name, std::string help, std::string group = "Options");
/// --json, with what it prints.
OptionSpec json_option(std::string help = "print the result as one JSON object",
                       std::string group = "Options");

struct PositionalSpec {
  std::string name;  ///< "DIR"
  std::string help;
  bool required = true;
  bool is_list = false;      ///< takes all that stand there
  std::string choices = "";  ///< "s1|s3", if it is one of a fixed set
};

class Arguments;

struct Command {
  std::string name;  ///< "train lm"
  std::string summary;
  std::vector<PositionalSpec> positionals = {};
  std::vector<OptionSpec> options = {};
  std::string epilog = {};  ///< examples
  /// Returns the exit status of the process, or throws.
  int (*run)(const Arguments& arguments) = nullptr;
};

/// --help, which every command has and parse_arguments adds itself.
OptionSpec help_option();

/// The words behind the name of a command. It borrows the command.
class Arguments {
 public:
  explicit Arguments(const Command& command) : command_(command) {}

  const Command& command() const { return command_; }
  bool has(std::string_view name) const { return values_.find(name) != values_.end(); }
  /// The last value given, or `otherwise`.
  std::string text(std::string_view name, std::string_view otherwise = {}) const;
  std::vector<std::string> list(std::string_view name) const;
  bool on(std::string_view name) const { return text(name) == "true"; }

  void set(std::string_view name, std::vector<std::string> values);

 private:
  const Command& command_;
  std::map<std::string, std::vector<std::string>, std::less<>> values_;
};

/// `words` are the words after the command's name; --help sets the argument "help". Throws kUsage
/// for an unknown option (with the nearest known one), a missing or an extra argument.
Arguments parse_arguments(const Command& command, std::vector<std::string> words);

std::string help_text(const Command& command);

}  // namespace fovea::cli

// SPDX-License-Identifier: Apache-2.0
#include "cli/messages.h"

#include "cli/field_options.h"
#include "cli/output.h"

namespace fovea::cli {

std::vector<OptionSpec> message_options() {
  MessageOptions defaults;
  const std::vector<Field> fields = fields_of(defaults);
  std::vector<OptionSpec> options = said_or_not(options_of(flags_of(fields), "Messages"));
  dress_message_options(options);
  return options;
}

void dress_message_options(std::vector<OptionSpec>& options) {
  for (OptionSpec& option : options) {
    if (option.name == "log-file") option.placeholder = "FILE";
  }
  also_called(options, "quiet", "q");
  also_called(options, "verbose", "v");
}

void set_messages_from(const Arguments& arguments) {
  MessageOptions options;
  const std::vector<Field> fields = fields_of(options);
  set_from_outside(flags_of(fields), arguments);
  set_messages(options, arguments.on("json") ? ErrorFormat::kJson : ErrorFormat::kText);
}

}  // namespace fovea::cli

// SPDX-License-Identifier: Apache-2.0
#include "cli/messages.h"

#include "cli/field_options.h"
#include "cli/output.h"

namespace fovea::cli {

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

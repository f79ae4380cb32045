// SPDX-License-Identifier: Apache-2.0
// fovea generate: text from a trained language model.
#include "fovea/task/generate.h"

#include <fmt/core.h>

#include <csignal>
#include <utility>

#include "cli/commands.h"
#include "cli/field_options.h"
#include "cli/messages.h"
#include "cli/output.h"
#include "cli/threads.h"
#include "fovea/base/clock.h"

namespace fovea::cli {

CommandSpec generate_spec() {
  SamplingOptions defaults;
  const std::vector<Field> fields = fields_of(defaults);
  CommandSpec spec{
      .name = "generate",
      .summary = "Continues a prompt with a trained language model.",
      .positionals = {{"DIR", "folder of the model"}, {"PROMPT", "text to begin with", false}},
      .options = options_of(flags_of(fields), "Sampling"),
      .epilog = R"(Examples:
  fovea generate model "Once upon a time"
  fovea generate model "The" --temperature 0.7 --top-k 40 --seed 3
  fovea generate model -- "- a prompt that begins with a dash"

Prints the prompt, its continuation as it is made, and a newline.)"};
  spec.options.push_back(threads_option());
  for (OptionSpec& option : message_options()) spec.options.push_back(std::move(option));
  return spec;
}

int generate(const Arguments& arguments) {
  set_messages_from(arguments);
  warn_of_unread_variables(generate_spec().options);
  SamplingOptions options;
  const std::vector<Field> fields = fields_of(options);
  set_from_outside(flags_of(fields), arguments);
  check_options(options);
  const Context context = context_of(arguments);
  const LoadedLanguageModel loaded = load_language_model(arguments.text("DIR"));
  const std::string prompt = arguments.text("PROMPT");
  loaded.tokenizer->encode(prompt, "prompt");  // before anything is printed
  std::signal(SIGPIPE, SIG_IGN);  // whoever has read enough ends the text, not the command
  print(prompt);
  const double began = monotonic_seconds();
  const index tokens = generate_text(context, loaded, prompt, options, print);
  print("\n");
  const double seconds = monotonic_seconds() - began;
  detail(fmt::format("{} tokens in {:.2f} s ({:.0f} tokens/s)", tokens, seconds,
                     static_cast<double>(tokens) / seconds));
  return 0;
}

}  // namespace fovea::cli

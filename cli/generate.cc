// SPDX-License-Identifier: Apache-2.0
// fovea generate: text from a trained language model.
#include "fovea/task/generate.h"

#include "cli/commands.h"
#include "cli/field_options.h"
#include "cli/output.h"
#include "cli/threads.h"

namespace fovea::cli {

CommandSpec generate_spec() {
  SamplingOptions defaults;
  const std::vector<Field> fields = fields_of(defaults);
  CommandSpec spec{
      .name = "generate",
      .summary = "Writes on from a prompt with a trained language model.",
      .positionals = {{"DIR", "folder of the model"}, {"PROMPT", "text to begin with", false}},
      .options = options_of(flags_of(fields), "Sampling"),
      .epilog = R"(Examples:
  fovea generate model "Once upon a time"
  fovea generate model "The" --temperature 0.7 --top-k 40 --seed 3

Prints the prompt, its continuation as it is made, and a newline.)"};
  spec.options.push_back(threads_option());
  return spec;
}

int generate(const Arguments& arguments) {
  SamplingOptions options;
  const std::vector<Field> fields = fields_of(options);
  set_from_outside(flags_of(fields), arguments);
  check_options(options);
  const Context context = context_of(arguments);
  const LoadedLanguageModel loaded = load_language_model(arguments.text("DIR"));
  const std::string prompt = arguments.text("PROMPT");
  loaded.tokenizer->encode(prompt, "prompt");  // before anything is printed
  print(prompt);
  generate_text(context, loaded, prompt, options, [](std::string_view text) {
    print(text);
    return true;
  });
  print("\n");
  return 0;
}

}  // namespace fovea::cli

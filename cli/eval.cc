// SPDX-License-Identifier: Apache-2.0
// fovea eval: how well a language model predicts a text, a classifier its labels, or a tagger its
// tags; how good files of translations are.
#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/eval_translations.h"
#include "cli/field_options.h"
#include "cli/messages.h"
#include "cli/output.h"
#include "cli/run_options.h"
#include "cli/task_commands.h"
#include "cli/threads.h"
#include "fovea/base/error.h"

namespace fovea::cli {

namespace {

std::vector<OptionSpec> options_of(const TaskCommands& task) {
  return task.eval_options == nullptr ? std::vector<OptionSpec>() : task.eval_options();
}

bool has(const std::vector<OptionSpec>& options, std::string_view name) {
  return std::any_of(options.begin(), options.end(),
                     [&](const OptionSpec& option) { return option.name == name; });
}

// The options of all kinds of models, each once.
std::vector<OptionSpec> task_options() {
  std::vector<OptionSpec> options;
  for (const TaskCommands& task : task_commands()) {
    for (OptionSpec& option : options_of(task)) {
      const auto same = std::find_if(options.begin(), options.end(), [&](const OptionSpec& other) {
        return other.name == option.name;
      });
      if (same == options.end()) {
        options.push_back(std::move(option));
      } else if (same->placeholder != option.placeholder) {
        same->placeholder += "; " + option.placeholder;
      }
    }
  }
  return options;
}

// Throws if an option of some models was given that is none of these.
void require_effect(const std::vector<OptionSpec>& own, const Arguments& arguments,
                    std::string_view what) {
  for (const OptionSpec& option : task_options()) {
    if (has(own, option.name) || !arguments.has(option.name)) continue;
    throw Error(ErrorCode::kUsage, fmt::format("eval: --{} has no effect on {}", option.name, what),
                "leave it out");
  }
}

int eval_files_of_translations(const Arguments& arguments) {
  check_log_is_apart(translation_files(arguments), "");
  if (arguments.has("DIR")) {
    throw Error(ErrorCode::kUsage, "eval: --hypothesis scores files; a model has no part in it",
                "leave out the folder of the model, or give it --test");
  }
  if (arguments.has("test")) {
    throw Error(ErrorCode::kUsage, "eval: --test has no effect on translations", "leave it out");
  }
  require_effect(translation_test_options(), arguments, "files of translations");
  warn_of_unread_variables(eval_spec().options);
  return eval_translations(arguments);
}

}  // namespace

CommandSpec eval_spec() {
  CommandSpec spec{
      .name = "eval",
      .summary =
          "Measures how well a model predicts a text, or labels, or tags; scores translations.",
      .positionals = {{"DIR", "folder of the model; none with --hypothesis", false}},
      .options = {{.name = "test",
                   .kind = OptionKind::kList,
                   .placeholder = "FILE",
                   .help = "text files, joined in this order; of a classifier, labelled texts (or "
                           "pairs of them); of a tagger, tagged sentences",
                   .place = HelpPlace::kData},
                  {"json", OptionKind::kFlag, "", "print the result as one JSON object", "Options",
                   ""}},
      .epilog = R"(Examples:
  fovea eval model --test test.txt
  fovea eval classifier --test test.tsv --errors 10 --plots plots
  fovea eval tagger --test test.conll --errors 10
  fovea eval translator --source test.en --reference test.de
  fovea eval translator --source test.en --reference test.de --against other
  fovea eval --hypothesis translated.en --reference test.en
  fovea eval --hypothesis b.zh --reference test.zh --tokenize zh --against a.zh)"};
  for (OptionSpec& option : task_options()) spec.options.push_back(std::move(option));
  spec.options.push_back(precision_option());
  spec.options.push_back(threads_option());
  for (OptionSpec& option : message_options()) spec.options.push_back(std::move(option));
  return spec;
}

int eval(const Arguments& arguments) {
  set_messages_from(arguments);
  if (asks_for_translations(arguments)) return eval_files_of_translations(arguments);
  if (!arguments.has("DIR")) {
    throw Error(ErrorCode::kUsage, "eval: neither a model nor translations to score",
                "fovea eval DIR --test FILE, or fovea eval --hypothesis FILE --reference FILE");
  }
  const std::vector<std::string> files = arguments.list("test");
  const std::string folder = arguments.text("DIR");
  check_log_is_apart(files, folder);
  if (files.empty() && !arguments.has("source") && !arguments.has("reference")) {
    throw Error(ErrorCode::kUsage, "eval: no text to predict",
                "name a file: --test FILE, of a translator --source FILE --reference FILE");
  }
  const TaskCommands& task = commands_of_model(folder);
  require_effect(options_of(task), arguments, task.called);
  warn_of_unread_variables(eval_spec().options);
  return task.eval(arguments);
}

}  // namespace fovea::cli

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
#include "cli/options.h"
#include "cli/output.h"
#include "cli/task_commands.h"
#include "fovea/base/error.h"
#include "fovea/task/encoder_peft.h"

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
      } else if (same->placeholder.find(option.placeholder) == std::string::npos) {
        same->placeholder += "; " + option.placeholder;
      }
    }
  }
  return options;
}

}  // namespace

void require_own_options(const std::vector<OptionSpec>& own, const Arguments& arguments,
                         std::string_view what) {
  for (const OptionSpec& option : task_options()) {
    if (!has(own, option.name)) {
      refuse_options(arguments, {option.name}, fmt::format(" on {}", what));
    }
  }
}

std::vector<std::string> warn_of_trained_files(const std::vector<std::string>& trained,
                                               const std::vector<std::string>& tested) {
  std::vector<std::string> lines;
  for (const std::string& file : tested) {
    const bool learned = std::any_of(trained.begin(), trained.end(), [&](const std::string& other) {
      std::error_code none;  // a file that is gone, or no file, is not the same
      return std::filesystem::equivalent(file, other, none);
    });
    if (!learned) continue;
    lines.push_back(
        fmt::format("{}: the model was trained on this file; of new texts it may know less", file));
    warn(lines.back());
  }
  return lines;
}

namespace {

// The files that are read, whatever is scored.
std::vector<std::string> files_of(const Arguments& arguments) {
  std::vector<std::string> files = arguments.list("test");
  if (!asks_for_translations(arguments)) return files;
  files = arguments.list("reference");
  for (const char* const option : {"hypothesis", "against"}) {
    if (arguments.has(option)) files.push_back(arguments.text(option));
  }
  return files;
}

int eval(const Arguments& arguments) {
  const std::string folder = arguments.text("MODEL");
  const bool of_files = asks_for_translations(arguments);
  begin_command(arguments, files_of(arguments), of_files ? "" : folder);
  if (of_files) return eval_translations(arguments);
  if (folder.empty()) {
    throw Error(ErrorCode::kUsage, "eval: neither a model nor translations to score",
                "fovea eval MODEL --test FILE, or fovea eval --hypothesis FILE --reference FILE");
  }
  if (arguments.list("test").empty() && !arguments.has("source") && !arguments.has("reference")) {
    throw Error(ErrorCode::kUsage, "eval: no text to predict",
                "name a file: --test FILE, of a translator --source FILE --reference FILE");
  }
  EncoderAdapterOptions peft;
  read_options(arguments, peft);
  const TaskCommands& task = commands_of_model(folder, peft.adapter);
  require_own_options(options_of(task), arguments, task.called);
  return task.eval(arguments);
}

}  // namespace

Command eval_command() {
  return {
      .name = "eval",
      .summary =
          "Measures how well a model predicts a text, or labels, or tags; scores translations.",
      .positionals =
          {{"MODEL",
            "folder of the model, also of Hugging Face, or a GGUF file; none with --hypothesis",
            false}},
      .options = joined(
          {{{.name = "test",
             .kind = OptionKind::kList,
             .placeholder = "FILE",
             .help = "text files, joined in this order; of a classifier, labelled texts (or pairs "
                     "of them); of a tagger, tagged sentences; of a sentence encoder, texts that "
                     "belong together or have scores",
             .place = HelpPlace::kData},
            json_option()},
           task_options(),
           computing_options(),
           message_options()}),
      .epilog = R"(Examples:
  fovea eval model --test test.txt
  fovea eval classifier --test test.tsv --errors 10 --plots plots
  fovea eval tagger --test test.conll --errors 10
  fovea eval encoder --test test.tsv
  fovea eval translator --source test.en --reference test.de
  fovea eval translator --source test.en --reference test.de --against other
  fovea eval --hypothesis translated.en --reference test.en
  fovea eval --hypothesis b.zh --reference test.zh --tokenize zh --against a.zh)",
      .run = eval};
}

}  // namespace fovea::cli

// SPDX-License-Identifier: Apache-2.0
// The program: finds the command, runs it, and turns an error into a message and an exit status.
#include <fmt/core.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.h"
#include "cli/language.h"
#include "cli/output.h"
#include "cli/signals.h"
#include "fovea/base/error.h"
#include "fovea/base/machine.h"
#include "fovea/base/option.h"
#include "fovea/base/words.h"
#include "fovea/config/suggest.h"

namespace fovea::cli {

namespace {

constexpr Command (*kCommands[])() = {train_lm_command,
                                      train_classify_command,
                                      train_pairs_command,
                                      train_tag_command,
                                      train_translate_command,
                                      train_embed_command,
                                      generate_command,
                                      classify_command,
                                      pairs_command,
                                      tag_command,
                                      translate_command,
                                      embed_command,
                                      similar_command,
                                      explain_command,
                                      demo_command,
                                      learn_command,
                                      eval_command,
                                      inspect_command,
                                      import_command,
                                      export_command,
                                      report_command,
                                      tokenizer_train_command,
                                      tokenizer_encode_command,
                                      tokenizer_decode_command,
                                      doctor_command,
                                      attention_command,
                                      conformance_write_command,
                                      conformance_check_command,
                                      bench_attention_command,
                                      bench_step_command,
                                      reproduce_command,
                                      completion_command,
                                      man_command};

// The command in the language of the user, with its options in the order in which help shows them.
Command made(Command (*command)()) {
  Command result = in_language(command());
  std::stable_sort(result.options.begin(), result.options.end(),
                   [](const OptionSpec& a, const OptionSpec& b) { return a.place < b.place; });
  return result;
}

std::string overview() {
  std::string text = in_language("fovea: attention and Transformers on the CPU that you have") +
                     "\n\n" + in_language("Usage: fovea COMMAND [OPTIONS]") + "\n\n" +
                     in_language("Commands:") + "\n";
  for (const Command& command : commands()) {
    text += fmt::format("  {:<18} {}\n", command.name, command.summary);
  }
  return text + "\n  fovea COMMAND --help   " + in_language("what a command takes, with examples") +
         "\n  fovea --version\n";
}

std::vector<std::string> split_words(const std::string& text) {
  const std::vector<std::string_view> words = parts_between(text, ' ');
  return {words.begin(), words.end()};
}

bool begins_with(const std::vector<std::string>& words, const std::vector<std::string>& name) {
  return words.size() >= name.size() && std::equal(name.begin(), name.end(), words.begin());
}

// The commands of which `word` is the first word: "train" for "train lm".
std::vector<Command> commands_below(const std::string& word) {
  std::vector<Command> found = commands();
  std::erase_if(found, [&](const Command& c) { return c.name.rfind(word + " ", 0) != 0; });
  return found;
}

// The lines of a command's epilog that are examples.
std::string examples_of(const Command& command) {
  std::string examples;
  for (const std::string_view line : parts_between(command.epilog, '\n')) {
    if (line.starts_with("  fovea ")) examples.append(line).append("\n");
  }
  return examples;
}

std::string overview_below(const std::string& word, const std::vector<Command>& below) {
  std::string text = in_language(fmt::format("Usage: fovea {} COMMAND [OPTIONS]", word)) + "\n\n" +
                     in_language("Commands:") + "\n";
  std::string examples;
  for (const Command& command : below) {
    text += fmt::format("  {:<18} {}\n", command.name, command.summary);
    examples += examples_of(command);
  }
  return text + fmt::format("\n{}\n{}\n  fovea {} --help   {}\n", in_language("Examples:"),
                            examples, below.front().name, in_language("what it takes"));
}

[[noreturn]] void fail_without_command(const std::string& word, const std::vector<Command>& below) {
  throw Error(ErrorCode::kUsage, fmt::format("{}: say which: {}", word, names_in(below)),
              fmt::format("see: fovea {} --help", word));
}

[[noreturn]] void fail_unknown(const std::vector<std::string>& words) {
  std::vector<std::string> known = {"--help", "--version"};
  for (const Command& command : commands()) known.push_back(command.name);
  const std::string two = words.size() > 1 ? words[0] + " " + words[1] : words[0];
  // After "train" alone, or "train ml", suggest the commands that begin with "train".
  std::vector<std::string> alike;
  for (const std::string& name : known) {
    if (split_words(name)[0] == words[0]) alike.push_back(name);
  }
  if (!alike.empty()) {
    const std::string near = closest(two, alike);
    throw Error(ErrorCode::kUsage, fmt::format("unknown command '{}'", two),
                fmt::format("did you mean fovea {}?", near.empty() ? alike[0] : near));
  }
  std::string meant = closest(two, known);
  if (meant.empty()) {
    std::vector<std::string> first_words;
    first_words.reserve(known.size());
    for (const std::string& name : known) first_words.push_back(split_words(name)[0]);
    const std::string first = closest(words[0], first_words);
    for (std::size_t i = 0; i < known.size(); ++i) {
      if (meant.empty() && first_words[i] == first) meant = known[i];
    }
  }
  throw Error(ErrorCode::kUsage, fmt::format("unknown command '{}'", words[0]),
              meant.empty() ? "see: fovea --help" : fmt::format("did you mean fovea {}?", meant));
}

int run(std::vector<std::string> words) try {
  choose_language(words);
  if (words.size() > 1 && words[0] == "--lang") words.erase(words.begin(), words.begin() + 2);
  if (!words.empty() && words[0].starts_with("--lang=")) words.erase(words.begin());
  if (words.empty() || words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
    print(overview());
    return words.empty() ? info(ErrorCode::kUsage).exit_status : 0;
  }
  if (words[0] == "--version") {
    print(fmt::format("fovea {}\n", kVersion));
    return 0;
  }
  for (Command (*const candidate)() : kCommands) {
    const Command command = made(candidate);
    const std::vector<std::string> name = split_words(command.name);
    if (!begins_with(words, name)) continue;
    words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(name.size()));
    const Arguments arguments = parse_arguments(command, std::move(words));
    if (!arguments.on("help")) return command.run(arguments);
    print(help_text(command));
    return 0;
  }
  const std::vector<Command> below = commands_below(words[0]);
  if (below.empty()) fail_unknown(words);
  if (words.size() > 1 && (words[1] == "--help" || words[1] == "-h")) {
    print(overview_below(words[0], below));
    return 0;
  }
  if (words.size() == 1 || words[1].rfind('-', 0) == 0) fail_without_command(words[0], below);
  fail_unknown(words);
} catch (const NobodyReads&) {
  return 0;
}

}  // namespace

std::vector<Command> commands() {
  std::vector<Command> all;
  for (Command (*const command)() : kCommands) all.push_back(made(command));
  return all;
}

}  // namespace fovea::cli

int main(int argc, char** argv) {
  using namespace fovea::cli;
  // First of all: a training promises what these signals do, from its first moment.
  if (argc > 1 && std::string_view(argv[1]) == "train") prepare_for_signals();
  open_standard_streams();
  std::signal(SIGPIPE, SIG_IGN);  // a write to a closed pipe then returns EPIPE
  std::signal(SIGXFSZ, SIG_IGN);  // and one beyond `ulimit -f` EFBIG
  const bool json = std::find(argv, argv + argc, std::string_view("--json")) != argv + argc;
  fovea::return_freed_memory();
  try {
    const int status = run({argv + std::min(argc, 1), argv + argc});
    if (status == 0) close_log();
    return status;
  } catch (const std::exception& error) {
    return report(error, json ? ErrorFormat::kJson : ErrorFormat::kText);
  }
}

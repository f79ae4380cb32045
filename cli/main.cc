// SPDX-License-Identifier: Apache-2.0
// The program: finds the command, runs it, and turns an error into a message and an exit status.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.h"
#include "cli/output.h"
#include "cli/signals.h"
#include "fovea/base/error.h"
#include "fovea/base/machine.h"
#include "fovea/config/suggest.h"

namespace fovea::cli {

namespace {

struct Command {
  CommandSpec (*make_spec)();
  int (*run)(const Arguments& arguments);

  // With the options in the order in which help shows them.
  CommandSpec spec() const {
    CommandSpec made = make_spec();
    std::stable_sort(made.options.begin(), made.options.end(),
                     [](const OptionSpec& a, const OptionSpec& b) { return a.place < b.place; });
    return made;
  }
};

constexpr std::array kCommands = {Command{train_lm_spec, train_lm},
                                  Command{train_classify_spec, train_classify},
                                  Command{train_pairs_spec, train_pairs},
                                  Command{train_tag_spec, train_tag},
                                  Command{train_translate_spec, train_translate},
                                  Command{generate_spec, generate},
                                  Command{classify_spec, classify},
                                  Command{pairs_spec, pairs},
                                  Command{tag_spec, tag},
                                  Command{translate_spec, translate},
                                  Command{embed_spec, embed},
                                  Command{similar_spec, similar},
                                  Command{explain_spec, explain},
                                  Command{demo_spec, demo},
                                  Command{eval_spec, eval},
                                  Command{inspect_spec, inspect},
                                  Command{export_spec, export_model},
                                  Command{report_spec, report},
                                  Command{tokenizer_train_spec, tokenizer_train},
                                  Command{tokenizer_encode_spec, tokenizer_encode},
                                  Command{tokenizer_decode_spec, tokenizer_decode},
                                  Command{doctor_spec, doctor},
                                  Command{attention_spec, attention},
                                  Command{conformance_write_spec, conformance_write},
                                  Command{conformance_check_spec, conformance_check},
                                  Command{bench_attention_spec, bench_attention},
                                  Command{bench_step_spec, bench_step},
                                  Command{reproduce_spec, reproduce},
                                  Command{completion_spec, completion},
                                  Command{man_spec, man}};

std::string overview() {
  std::string text =
      "fovea: attention and Transformers on the CPU that you have\n\n"
      "Usage: fovea COMMAND [OPTIONS]\n\nCommands:\n";
  for (const Command& command : kCommands) {
    const CommandSpec spec = command.spec();
    text += fmt::format("  {:<18} {}\n", spec.name, spec.summary);
  }
  return text +
         "\n  fovea COMMAND --help   what a command takes, with examples\n"
         "  fovea --version\n";
}

std::vector<std::string> split_words(const std::string& text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    if (c == ' ') {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  return words;
}

bool begins_with(const std::vector<std::string>& words, const std::vector<std::string>& name) {
  return words.size() >= name.size() && std::equal(name.begin(), name.end(), words.begin());
}

// The commands of which `word` is the first word: "train" for "train lm".
std::vector<CommandSpec> commands_below(const std::string& word) {
  std::vector<CommandSpec> found;
  for (const Command& command : kCommands) {
    CommandSpec spec = command.spec();
    if (spec.name.rfind(word + " ", 0) == 0) found.push_back(std::move(spec));
  }
  return found;
}

// The lines of a command's epilog that are examples.
std::string examples_of(const CommandSpec& spec) {
  std::string examples;
  for (std::size_t begin = 0; begin < spec.epilog.size();) {
    const std::size_t end = std::min(spec.epilog.find('\n', begin), spec.epilog.size());
    const std::string line = spec.epilog.substr(begin, end - begin);
    if (line.rfind("  fovea ", 0) == 0) examples += line + "\n";
    begin = end + 1;
  }
  return examples;
}

std::string overview_below(const std::string& word, const std::vector<CommandSpec>& specs) {
  std::string text = fmt::format("Usage: fovea {} COMMAND [OPTIONS]\n\nCommands:\n", word);
  std::string examples;
  for (const CommandSpec& spec : specs) {
    text += fmt::format("  {:<18} {}\n", spec.name, spec.summary);
    examples += examples_of(spec);
  }
  return text + fmt::format("\nExamples:\n{}\n  fovea {} --help   what it takes\n", examples,
                            specs.front().name);
}

[[noreturn]] void fail_without_command(const std::string& word,
                                       const std::vector<CommandSpec>& specs) {
  std::string names;
  for (const CommandSpec& spec : specs) {
    names += names.empty() ? "" : ", ";
    names += spec.name;
  }
  throw Error(ErrorCode::kUsage, fmt::format("{}: say which: {}", word, names),
              fmt::format("see: fovea {} --help", word));
}

[[noreturn]] void fail_unknown(const std::vector<std::string>& words) {
  std::vector<std::string> known = {"--help", "--version"};
  for (const Command& command : kCommands) known.push_back(command.spec().name);
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

int run(std::vector<std::string> words) {
  if (words.empty() || words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
    print(overview());
    return words.empty() ? info(ErrorCode::kUsage).exit_status : 0;
  }
  if (words[0] == "--version") {
    print(fmt::format("fovea {}\n", kVersion));
    return 0;
  }
  for (const Command& command : kCommands) {
    const CommandSpec spec = command.spec();
    const std::vector<std::string> name = split_words(spec.name);
    if (!begins_with(words, name)) continue;
    words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(name.size()));
    const Arguments arguments = parse_arguments(spec, std::move(words));
    if (!arguments.on("help")) return command.run(arguments);
    print(help_text(spec));
    return 0;
  }
  const std::vector<CommandSpec> below = commands_below(words[0]);
  if (below.empty()) fail_unknown(words);
  if (words.size() > 1 && (words[1] == "--help" || words[1] == "-h")) {
    print(overview_below(words[0], below));
    return 0;
  }
  if (words.size() == 1 || words[1].rfind('-', 0) == 0) fail_without_command(words[0], below);
  fail_unknown(words);
}

}  // namespace

std::vector<CommandSpec> command_specs() {
  std::vector<CommandSpec> specs;
  for (const Command& command : kCommands) specs.push_back(command.spec());
  return specs;
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

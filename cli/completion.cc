// SPDX-License-Identifier: Apache-2.0
// `fovea completion`: a script by which a shell completes commands, options and values.
#include "cli/commands.h"
#include "cli/completion_words.h"
#include "cli/output.h"
#include "fovea/base/option.h"

namespace fovea::cli {

namespace {

struct Shell {
  std::string_view name;
  std::string (*script)(std::span<const CommandSpec> commands);
};

constexpr Shell kShells[] = {
    {"bash", bash_completion}, {"zsh", zsh_completion}, {"fish", fish_completion}};

}  // namespace

CommandSpec completion_spec() {
  return {.name = "completion",
          .summary = "Prints a script by which bash, zsh or fish completes commands and options.",
          .positionals = {{.name = "SHELL",
                           .help = "bash, zsh or fish",
                           .choices = names_in(kShells, "|")}},
          .options = {},
          .epilog = R"(Examples:
  fovea completion bash > ~/.local/share/bash-completion/completions/fovea
  fovea completion zsh > ~/.zfunc/_fovea     a folder that is in fpath before compinit is called
  fovea completion fish > ~/.config/fish/completions/fovea.fish

The folder must exist; the next shell that you start reads the file. `make install` puts the scripts
where shells look for those of installed programs.)"};
}

int completion(const Arguments& arguments) {
  const Shell* const shell = find_named(kShells, arguments.text("SHELL"));
  if (shell == nullptr) {
    throw Error(ErrorCode::kUsage,
                "completion: there is no script for '" + arguments.text("SHELL") + "'",
                "name one of: " + names_in(kShells));
  }
  const std::vector<CommandSpec> commands = command_specs();
  print(shell->script(commands));
  return 0;
}

}  // namespace fovea::cli

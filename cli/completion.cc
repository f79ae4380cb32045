// SPDX-License-Identifier: Apache-2.0
// `fovea completion`: a script by which a shell completes commands, options and values.
#include "cli/completion.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/commands.h"
#include "cli/language.h"
#include "cli/output.h"
#include "fovea/base/option.h"

namespace fovea::cli {

namespace {

// The parts of `text` between characters of `separators`, without empty ones.
std::vector<std::string> parts_of(std::string_view text, std::string_view separators) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find_first_of(separators, begin), text.size());
    if (end > begin) parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// Capitals name a kind of value (N, FILE); anything else is typed as it stands.
bool is_typed(const std::string& word) {
  return word.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789+-_.") == std::string::npos;
}

constexpr std::string_view kBashHead =
    R"sh(# Completion of fovea for bash, made by: fovea completion bash

# Sets `table` to what the command $1 takes, a line each: the spellings of an option or the name of
# an argument; how it takes a value; the values, where @file and @folder stand for names of files.
_fovea_table() {
  table=
  case $1 in
)sh";

constexpr std::string_view kBashEngine = R"sh(  esac
}

# Looks the option $1 up. Sets `takes` and `values`.
_fovea_option() {
  local names kind rest
  takes= values=
  while read -r names kind rest; do
    if [[ ,$names, == *",$1,"* ]]; then
      takes=$kind values=$rest
      return
    fi
  done <<< "$table"
}

# Offers the values $1 that begin with $2.
_fovea_offer() {
  local value offered
  for value in $1; do
    case $value in
      @file) mapfile -t offered < <(compgen -f -- "$2"); compopt -o filenames 2> /dev/null ;;
      @folder) mapfile -t offered < <(compgen -d -- "$2"); compopt -o filenames 2> /dev/null ;;
      "$2"*) offered=("$value") ;;
      *) continue ;;
    esac
    COMPREPLY+=("${offered[@]}")
  done
}

_fovea() {
  local table takes= values= option word words=() i before=
  COMPREPLY=()
  # Bash cuts --name=value at the equals sign; here it is one word again.
  for ((i = 1; i <= COMP_CWORD; ++i)); do
    word=${COMP_WORDS[i]}
    if [[ ($word == = || $before == =) && ${words[-1]-} == --* ]]; then
      words[-1]+=$word
    else
      words+=("$word")
    fi
    before=$word
  done
  local current=${words[-1]} command=${words[0]} taken=1 argument=0 dashes=
  if ((${#words[@]} == 1)); then
    _fovea_offer "$_fovea_first --help --version" "$current"
    return
  fi
  _fovea_table "$command"
  if [[ $table == below* ]]; then
    if ((${#words[@]} == 2)); then
      _fovea_offer "${table#below }" "$current"
      return
    fi
    command+=" ${words[1]}" taken=2
    _fovea_table "$command"
  fi

  # What the words before the last one leave to complete.
  for word in "${words[@]:taken:${#words[@]}-taken-1}"; do
    if [[ $takes == value ]]; then
      takes=
    elif [[ $dashes || $word != -?* ]]; then
      [[ $takes == list ]] || { [[ $takes ]] || ((++argument)); takes=; }
    elif [[ $word == -- ]]; then
      dashes=1 takes=
    else
      _fovea_option "${word%%=*}"
      [[ $takes == list || $word != *=* ]] || takes=
      [[ $takes == value || $takes == list || $takes == optional ]] || takes=
    fi
  done

  if [[ $takes == value ]]; then
    _fovea_offer "$values" "$current"
  elif [[ ! $dashes && $current == --*=* ]]; then
    option=${current%%=*}
    _fovea_option "$option"
    _fovea_offer "$values" "${current#*=}"
    # Where bash does not cut at the equals sign, the whole word is replaced.
    [[ $COMP_WORDBREAKS == *=* ]] || COMPREPLY=("${COMPREPLY[@]/#/$option=}")
  elif [[ ! $dashes && $current == -* ]]; then
    local names kind rest
    while read -r names kind rest; do
      [[ $names != -* ]] || _fovea_offer "${names//,/ }" "$current"
    done <<< "$table"
  else
    local names kind rest at=0
    [[ $takes ]] && _fovea_offer "$values" "$current"
    while read -r names kind rest; do
      [[ $names && $names != -* ]] || continue
      if ((at++ == argument)) || [[ $kind == arguments ]]; then
        _fovea_offer "$rest" "$current"
      fi
    done <<< "$table"
  fi
}

complete -F _fovea fovea
)sh";

std::string bash_values(const ValueWords& value) {
  std::string text;
  if (value.files) text += " @file";
  if (value.folders) text += " @folder";
  for (const std::string& word : value.words) text += " " + word;
  return text;
}

std::string_view bash_kind(const Command& command, const OptionSpec& option) {
  switch (option.kind) {
    case OptionKind::kFlag:
      return "flag";
    case OptionKind::kSwitch:
      return "switch true false";
    case OptionKind::kValue:
      return "value";
    case OptionKind::kList:
      return "list";
    case OptionKind::kOptionalValue:
      break;
  }
  return needs_equals(command, option) ? "equals" : "optional";
}

std::string bash_table(const Command& command) {
  std::string table;
  for (const OptionSpec& option : options_with_help(command)) {
    table += fmt::format("{} {}{}\n", fmt::join(spellings(option), ","), bash_kind(command, option),
                         bash_values(value_words(option.placeholder)));
  }
  for (const PositionalSpec& positional : command.positionals) {
    table +=
        fmt::format("{} {}{}\n", positional.name, positional.is_list ? "arguments" : "argument",
                    bash_values(value_words(positional)));
  }
  return table;
}

constexpr std::string_view kZshHead = R"sh(#compdef fovea
# Completion of fovea for zsh, made by: fovea completion zsh

_fovea() {
  local command=${words[2]}
  local -a found
  if ((CURRENT == 2)); then
    found=(
)sh";

constexpr std::string_view kZshMiddle = R"sh(    )
    _describe -t commands 'command of fovea' found
    _arguments '--help[what the commands are]' '--version[the version]'
    return
  fi
  integer taken=1
  case $command in
)sh";

constexpr std::string_view kZshBelow = R"sh(  esac
  if (($#found)); then
    if ((CURRENT == 3)); then
      _describe -t commands "command of fovea $command" found
      return
    fi
    command+=" ${words[3]}" taken=2
  fi
  shift $taken words
  ((CURRENT -= taken))
  case $command in
)sh";

constexpr std::string_view kZshTail = R"sh(  esac
}

# Autoloaded from a folder in fpath it is the function itself; sourced, it makes it known.
if [[ ${funcstack[1]-} == _fovea ]]; then
  _fovea "$@"
else
  compdef _fovea fovea
fi
)sh";

// ":FILE:_files", as _arguments reads it.
std::string zsh_value(std::string_view message, const ValueWords& value) {
  std::string action = " ";
  if (value.files) action = "_files";
  if (value.folders) action = "_files -/";
  if (!value.words.empty() && !value.files && !value.folders) {
    action = fmt::format("({})", fmt::join(value.words, " "));
  }
  return fmt::format(":{}:{}", escaped(message, ":\\", "\\"), action);
}

// The equals sign or none behind the name, then "[help]" and the value.
std::string zsh_takes(const Command& command, const OptionSpec& option, std::string_view spelling) {
  const bool is_long = spelling.substr(0, 2) == "--";
  const std::string help = fmt::format("[{}]", escaped(option.help, "[]:\\", "\\"));
  const std::string value = zsh_value(option.placeholder, value_words(option.placeholder));
  const std::string sign = is_long ? "=" : "+";
  switch (option.kind) {
    case OptionKind::kFlag:
      return help;
    case OptionKind::kSwitch:
      return spelling.substr(0, 5) == "--no-" ? help : "=-" + help + "::bool:(true false)";
    case OptionKind::kList:
    case OptionKind::kValue:
      return sign + help + value;
    case OptionKind::kOptionalValue:
      break;
  }
  return (needs_equals(command, option) ? "=-" : "=") + help + ":" + value;
}

std::string zsh_arguments(const Command& command) {
  std::string text = fmt::format("    '{}')\n      _arguments -S", command.name);
  for (const OptionSpec& option : options_with_help(command)) {
    const std::vector<std::string> names = spellings(option);
    // An option that was given is not offered again, nor is another spelling of it.
    const std::string others = names.size() < 2 || option.kind == OptionKind::kList
                                   ? ""
                                   : fmt::format("({})", fmt::join(names, " "));
    for (const std::string& name : names) {
      const std::string many = option.kind == OptionKind::kList ? "*" : "";
      text += " \\\n        " + in_quotes(others + many + name + zsh_takes(command, option, name));
    }
  }
  // _arguments would end a list only behind the next option: its further values stand as arguments.
  ValueWords further;
  std::string name;
  for (const OptionSpec& option : command.options) {
    if (option.kind != OptionKind::kList) continue;
    name = option.placeholder;
    further = value_words(name);
  }
  for (const PositionalSpec& positional : command.positionals) {
    if (positional.is_list) {
      if (name.empty()) further = value_words(positional);
      name = positional.name;
      continue;
    }
    text += " \\\n        " + in_quotes((positional.required ? "" : ":") +
                                        zsh_value(positional.name, value_words(positional)));
  }
  if (!name.empty()) text += " \\\n        " + in_quotes("*" + zsh_value(name, further));
  return text + " ;;\n";
}

std::string zsh_described(std::string_view word, std::string_view summary) {
  return in_quotes(fmt::format("{}:{}", word, escaped(summary, ":\\", "\\")));
}

constexpr std::string_view kFishHead =
    R"sh(# Completion of fovea for fish, made by: fovea completion fish

# Whether the words before the one that is typed are `fovea` and $argv.
function __fovea_at
    set -l words (commandline -opc)
    test "$words[2..-1]" = "$argv"
end

# Whether the words of the command $argv are typed already.
function __fovea_in
    set -l words (commandline -opc)
    set -l last (math (count $argv) + 1)
    test (count $words) -ge $last; and test "$words[2..$last]" = "$argv"
end

complete -c fovea -f
complete -c fovea -n __fovea_at -l help -s h -d 'what the commands are'
complete -c fovea -n __fovea_at -l version -d 'the version'
)sh";

// In fish a backslash counts inside quotes, too.
std::string fish_quoted(std::string_view text) { return in_quotes(escaped(text, "\\", "\\")); }

// The offered words, in an option of their own: -F would offer files behind other options as well.
std::string fish_words(const ValueWords& value) {
  if (value.files) return " -a '(__fish_complete_path (commandline -ct))'";
  if (value.folders) return " -a '(__fish_complete_directories (commandline -ct))'";
  if (value.words.empty()) return "";
  return fmt::format(" -a '{}'", fmt::join(value.words, " "));
}

std::string fish_option(const std::string& begin, const OptionSpec& option) {
  const ValueWords value = value_words(option.placeholder);
  const bool needs_value = option.kind == OptionKind::kValue || option.kind == OptionKind::kList;
  std::string takes = needs_value ? " -x" + fish_words(value) : fish_words(value);
  if (value.files) takes = needs_value ? " -r -F" : " -F";
  std::string text;
  for (const std::string& name : spellings(option)) {
    const bool is_long = name.substr(0, 2) == "--";
    const bool is_switch = option.kind == OptionKind::kSwitch && name == "--" + option.name;
    text +=
        fmt::format("{} -{} {}{} -d {}\n", begin, is_long ? 'l' : 's', name.substr(is_long ? 2 : 1),
                    is_switch ? " -a 'true false'" : takes, fish_quoted(option.help));
  }
  return text;
}

std::string fish_command(const Command& command) {
  const std::string begin = fmt::format("complete -c fovea -n '__fovea_in {}'", command.name);
  std::string text;
  std::vector<std::string> offered;  // each once
  const auto offer = [&](const ValueWords& value) {
    const std::string words = fish_words(value);
    if (words.empty() || std::count(offered.begin(), offered.end(), words) > 0) return;
    offered.push_back(words);
    text += begin + words + "\n";
  };
  for (const OptionSpec& option : options_with_help(command)) {
    text += fish_option(begin, option);
    // Fish cannot tell the further values of a list from arguments.
    if (option.kind == OptionKind::kList) offer(value_words(option.placeholder));
  }
  for (const PositionalSpec& positional : command.positionals) offer(value_words(positional));
  return text;
}

struct Shell {
  std::string_view name;
  std::string (*script)(std::span<const Command> commands);
};

constexpr Shell kShells[] = {
    {"bash", bash_completion}, {"zsh", zsh_completion}, {"fish", fish_completion}};

}  // namespace

ValueWords value_words(std::string_view placeholder) {
  constexpr std::string_view kFiles[] = {"FILE", "PATH", "IN", "OUT", "MODEL"};
  ValueWords value;
  if (placeholder.find(", ") != std::string_view::npos) return value;  // a list is typed by hand
  if (placeholder.substr(0, 2) == "[=") placeholder = placeholder.substr(2, placeholder.size() - 3);
  for (const std::string& part : parts_of(placeholder, "|; ")) {
    if (is_typed(part)) {
      const bool seen = std::count(value.words.begin(), value.words.end(), part) > 0;
      if (!seen) value.words.push_back(part);
    } else if (part == "DIR") {
      value.folders = true;
    } else if (std::count(std::begin(kFiles), std::end(kFiles), part) > 0) {
      value.files = true;
    }
  }
  value.folders = value.folders && !value.files;
  return value;
}

ValueWords value_words(const PositionalSpec& positional) {
  if (positional.name == "COMMAND") {
    std::string words;
    for (const Command& command : commands()) words += command.name + " ";
    return value_words(words);
  }
  return value_words(positional.choices.empty() ? positional.name : positional.choices);
}

std::vector<std::string> spellings(const OptionSpec& option) {
  std::vector<std::string> names = {"--" + option.name};
  if (option.also.size() == 1) names.insert(names.begin(), "-" + option.also);
  if (option.also.size() > 1) names.push_back("--" + option.also);
  if (option.kind == OptionKind::kSwitch) names.push_back("--no-" + option.name);
  return names;
}

std::vector<OptionSpec> options_with_help(const Command& command) {
  std::vector<OptionSpec> options = {help_option()};
  options.front().help = in_language(options.front().help);
  options.front().group = in_language(options.front().group);
  options.insert(options.end(), command.options.begin(), command.options.end());
  return options;
}

bool needs_equals(const Command& command, const OptionSpec& option) {
  return option.kind == OptionKind::kOptionalValue && !command.positionals.empty();
}

std::string second_word(const Command& command) {
  const std::size_t space = command.name.find(' ');
  return space == std::string::npos ? "" : command.name.substr(space + 1);
}

std::vector<FirstWord> first_words(std::span<const Command> commands) {
  std::vector<FirstWord> words;
  for (const Command& command : commands) {
    const std::string word = command.name.substr(0, command.name.find(' '));
    auto found = std::find_if(words.begin(), words.end(),
                              [&](const FirstWord& known) { return known.word == word; });
    if (found == words.end()) found = words.insert(found, {word, command.summary, {}});
    if (second_word(command).empty()) continue;
    found->below.push_back(&command);
    std::vector<std::string> seconds;
    for (const Command* below : found->below) seconds.push_back(second_word(*below));
    found->summary = fmt::format("{}", fmt::join(seconds, ", "));
  }
  return words;
}

std::string escaped(std::string_view text, std::string_view characters, std::string_view mark) {
  std::string result;
  for (const char c : text) {
    if (characters.find(c) != std::string_view::npos) result += mark;
    result += c;
  }
  return result;
}

std::string in_quotes(std::string_view text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

std::string bash_completion(std::span<const Command> commands) {
  std::string text(kBashHead), first;
  for (const FirstWord& word : first_words(commands)) {
    first += (first.empty() ? "" : " ") + word.word;
    if (word.below.empty()) continue;
    text += fmt::format("    {}) table='below", word.word);
    for (const Command* command : word.below) text += " " + second_word(*command);
    text += "' ;;\n";
  }
  for (const Command& command : commands) {
    text += fmt::format("    '{}') table='{}' ;;\n", command.name, bash_table(command));
  }
  return text + std::string(kBashEngine) + fmt::format("_fovea_first='{}'\n", first);
}

std::string zsh_completion(std::span<const Command> commands) {
  std::string text(kZshHead), below;
  for (const FirstWord& word : first_words(commands)) {
    text += fmt::format("      {}\n", zsh_described(word.word, word.summary));
    if (word.below.empty()) continue;
    below += fmt::format("    {}) found=(", word.word);
    for (const Command* command : word.below) {
      below += " " + zsh_described(second_word(*command), command->summary);
    }
    below += " ) ;;\n";
  }
  text += std::string(kZshMiddle) + below + std::string(kZshBelow);
  for (const Command& command : commands) text += zsh_arguments(command);
  return text + std::string(kZshTail);
}

std::string fish_completion(std::span<const Command> commands) {
  std::string text(kFishHead);
  const auto describe = [&](const std::string& at, const std::string& word,
                            const std::string& summary) {
    text += fmt::format("complete -c fovea -n '__fovea_at{}' -a {} -d {}\n", at, word,
                        fish_quoted(summary));
  };
  for (const FirstWord& word : first_words(commands)) {
    describe("", word.word, word.summary);
    for (const Command* command : word.below) {
      describe(" " + word.word, second_word(*command), command->summary);
    }
  }
  for (const Command& command : commands) text += fish_command(command);
  return text;
}

namespace {

int completion(const Arguments& arguments) {
  const Shell* const shell = find_named(kShells, arguments.text("SHELL"));
  if (shell == nullptr) {
    throw Error(ErrorCode::kUsage,
                fmt::format("completion: there is no script for '{}'", arguments.text("SHELL")),
                fmt::format("name one of: {}", names_in(kShells)));
  }
  const std::vector<Command> all = commands();
  print(shell->script(all));
  return 0;
}

}  // namespace

Command completion_command() {
  return {.name = "completion",
          .summary = "Prints a script by which bash, zsh or fish completes commands and options.",
          .positionals = {{.name = "SHELL",
                           .help = "bash, zsh or fish",
                           .choices = names_in(kShells, "|")}},
          .epilog = R"(Examples:
  fovea completion bash > ~/.local/share/bash-completion/completions/fovea
  fovea completion zsh > ~/.zfunc/_fovea     a folder that is in fpath before compinit is called
  fovea completion fish > ~/.config/fish/completions/fovea.fish

The folder must exist; the next shell that you start reads the file. `make install` puts the scripts
where shells look for those of installed programs.)",
          .run = completion};
}

}  // namespace fovea::cli

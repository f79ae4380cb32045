// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "cli/completion_words.h"

namespace fovea::cli {

namespace {

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

std::string_view bash_kind(const CommandSpec& command, const OptionSpec& option) {
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

std::string bash_table(const CommandSpec& command) {
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

}  // namespace

std::string bash_completion(std::span<const CommandSpec> commands) {
  std::string text(kBashHead), first;
  for (const FirstWord& word : first_words(commands)) {
    first += (first.empty() ? "" : " ") + word.word;
    if (word.below.empty()) continue;
    text += fmt::format("    {}) table='below", word.word);
    for (const CommandSpec* command : word.below) text += " " + second_word(*command);
    text += "' ;;\n";
  }
  for (const CommandSpec& command : commands) {
    text += fmt::format("    '{}') table='{}' ;;\n", command.name, bash_table(command));
  }
  return text + std::string(kBashEngine) + fmt::format("_fovea_first='{}'\n", first);
}

}  // namespace fovea::cli

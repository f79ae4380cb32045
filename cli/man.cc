// SPDX-License-Identifier: Apache-2.0
// `fovea man`: manual pages, made from the specifications that --help is made from.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>

#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/language.h"
#include "cli/output.h"
#include "fovea/base/error.h"
#include "fovea/base/file.h"
#include "fovea/config/suggest.h"
#include "fovea/text/utf8.h"

namespace fovea::cli {

namespace {

// Whether a line may break before the character: Chinese has no blanks between words, and roff
// breaks lines at blanks alone. Closing punctuation stays with what it closes.
bool may_break_before(std::uint32_t character) {
  constexpr std::u32string_view kClosing = U"、。〉》」』】〕）！，．：；？”";
  return language() == PageLanguage::kChinese && character >= 0x2E80 &&
         kClosing.find(static_cast<char32_t>(character)) == kClosing.npos;
}

// Text as roff shows it: a hyphen stays the one that is typed, characters beyond ASCII have names.
std::string roff(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (static_cast<unsigned char>(c) >= 0x80) {
      const DecodedCharacter character = decode_character(text.substr(at));
      const auto value = static_cast<std::uint32_t>(character.value);
      result += fmt::format("{}\\[u{:04X}]", may_break_before(value) ? "\\:" : "", value);
      at += static_cast<std::size_t>(character.length);
      continue;
    }
    if ((c == '.' || c == '\'') && (at == 0 || text[at - 1] == '\n')) result += "\\&";
    constexpr std::pair<char, std::string_view> kNamed[] = {{'\\', "\\e"},  {'-', "\\-"},
                                                            {'^', "\\(ha"}, {'~', "\\(ti"},
                                                            {'`', "\\(ga"}, {'\'', "\\(aq"}};
    const auto* const named = std::find_if(std::begin(kNamed), std::end(kNamed),
                                           [&](auto pair) { return pair.first == c; });
    if (named != std::end(kNamed)) {
      result += named->second;
    } else {
      result += c;
    }
    ++at;
  }
  return result;
}

// Escapes text that is filled, in lines that an editor shows.
std::string filled(std::string_view text) {
  constexpr std::size_t kColumns = 76;
  std::string result, line;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find_first_of(" \n", begin), text.size());
    const std::string word = roff(text.substr(begin, end - begin));
    begin = end + 1;
    if (word.empty()) continue;
    if (!line.empty() && line.size() + word.size() >= kColumns) {
      result += line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return result + line + "\n";
}

std::string bold(std::string_view text) { return "\\fB" + roff(text) + "\\fR"; }
std::string italic(std::string_view text) { return "\\fI" + roff(text) + "\\fR"; }

// The heading of a section, ".SH NAME".
std::string heading(std::string_view english) { return ".SH " + roff(in_language(english)) + "\n"; }

std::string page_name(std::string_view command) {
  std::string name = command.empty() ? "fovea" : fmt::format("fovea-{}", command);
  std::replace(name.begin(), name.end(), ' ', '-');
  return name;
}

std::string without_stop(std::string_view sentence) {
  return std::string(sentence.substr(0, sentence.size() - (sentence.ends_with('.') ? 1 : 0)));
}

std::string head(std::string_view command, std::string_view summary) {
  const std::string name = page_name(command);
  std::string title = name;
  std::transform(title.begin(), title.end(), title.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  return fmt::format(
      ".\\\" Made by: {}\n.TH {} 1 {} \"fovea {}\" \"fovea\"\n"
      "{}{}{}",
      command.empty() ? "fovea man" : fmt::format("fovea man {}", command), roff(title),
      kVersionDay, kVersion, heading("NAME"), filled(name + " - " + without_stop(summary)),
      heading("SYNOPSIS"));
}

std::string synopsis(const Command& command) {
  std::string text = bold("fovea " + command.name) + " [" + italic("OPTIONS") + "]";
  for (const PositionalSpec& positional : command.positionals) {
    const std::string name = italic(positional.name) + (positional.is_list ? " ..." : "");
    text += positional.required ? " " + name : " [" + name + "]";
  }
  return text + "\n";
}

std::string entry(const std::string& term, std::string_view help) {
  return ".TP\n" + term + "\n" + filled(help);
}

std::string option_term(const OptionSpec& option) {
  std::string term;
  for (const std::string& name : spellings(option)) {
    term += (term.empty() ? "" : ", ") + bold(name);
  }
  if (option.placeholder.empty()) return term;
  const bool is_optional = option.kind == OptionKind::kOptionalValue;
  term += (is_optional ? "" : " ") + italic(option.placeholder);
  return option.kind == OptionKind::kList ? term + " ..." : term;
}

// In the groups of the help, and their order.
std::string options_section(const Command& command) {
  std::vector<std::string> groups;
  std::map<std::string, std::string> text;
  for (const OptionSpec& option : options_with_help(command)) {
    if (text.count(option.group) == 0) groups.push_back(option.group);
    text[option.group] += entry(option_term(option), option.help);
  }
  std::string section = heading("OPTIONS");
  for (const std::string& group : groups) {
    if (group != in_language("Options")) section += ".SS " + roff(group) + "\n";
    section += text[group];
  }
  return section;
}

struct Epilog {
  std::string examples, rest;
};

// Its blocks; those with columns keep their lines.
Epilog epilog_of(const Command& command) {
  Epilog epilog;
  const std::string& text = command.epilog;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find("\n\n", begin), text.size());
    std::string block = text.substr(begin, end - begin);
    begin = end + 2;
    while (block.ends_with('\n')) block.pop_back();
    while (block.starts_with('\n')) block.erase(0, 1);
    if (block.empty()) continue;
    if (block.starts_with("Example") || block.starts_with(in_language("Examples:"))) {
      epilog.examples += ".nf\n" + roff(block.substr(block.find('\n') + 1)) + "\n.fi\n";
    } else if (block.find("\n  ") != std::string::npos || block.starts_with("  ")) {
      epilog.rest += ".PP\n.nf\n" + roff(block) + "\n.fi\n";
    } else {
      epilog.rest += ".PP\n" + filled(block);
    }
  }
  return epilog;
}

std::string exit_section() {
  std::map<int, std::string> meanings;
  for (const ErrorCodeInfo& code : kErrorCodes) {
    std::string& text = meanings[code.exit_status];
    text += (text.empty() ? "" : "; ") + in_language(code.meaning);
  }
  std::string section = heading("EXIT STATUS") + entry(bold("0"), in_language("success"));
  for (const auto& [status, text] : meanings) section += entry(bold(fmt::to_string(status)), text);
  return section + entry(bold("129") + ", " + bold("130") + ", " + bold("143"),
                         in_language("stopped by SIGHUP, SIGINT or SIGTERM; a training that had "
                                     "read its data has saved a checkpoint"));
}

std::string environment_section(const Command& command) {
  std::string section =
      heading("ENVIRONMENT") +
      entry(bold("FOVEA_ISA"),
            in_language("instruction set to compute with, one that fovea doctor names")) +
      entry(bold("NO_COLOR"), in_language("if it is not empty: no colours"));
  std::string terms;
  for (const OptionSpec& option : command.options) {
    if (option.environment.empty()) continue;
    terms += (terms.empty() ? "" : ",\n") + bold(option.environment);
  }
  if (terms.empty()) return section;
  return section + ".PP\n" +
         roff(in_language("Each of these sets the option of its name; one that is given counts "
                          "more:")) +
         "\n" + terms + ".\n";
}

std::string references(std::vector<std::string> commands) {
  std::string text = heading("SEE ALSO");
  for (std::size_t i = 0; i < commands.size(); ++i) {
    text += bold(page_name(commands[i])) + (i + 1 < commands.size() ? "(1),\n" : "(1)\n");
  }
  return text;
}

// The commands that share its first word, and those that its text names.
std::vector<std::string> related(const Command& command, std::span<const Command> all) {
  std::vector<std::string> names = {""};
  const std::string first = command.name.substr(0, command.name.find(' ') + 1);
  for (const Command& other : all) {
    const bool alike = !first.empty() && other.name.starts_with(first);
    const bool named = command.epilog.find("fovea " + other.name + " ") != std::string::npos;
    if (other.name != command.name && (alike || named)) names.push_back(other.name);
  }
  return names;
}

std::string command_page(const Command& command, std::span<const Command> all) {
  const Epilog epilog = epilog_of(command);
  std::string page = head(command.name, command.summary) + synopsis(command) +
                     heading("DESCRIPTION") + filled(command.summary) + epilog.rest;
  if (!command.positionals.empty()) {
    page += heading("ARGUMENTS");
    for (const PositionalSpec& positional : command.positionals) {
      page += entry(italic(positional.name) + (positional.is_list ? " ..." : ""), positional.help);
    }
  }
  page += options_section(command);
  if (!epilog.examples.empty()) page += heading("EXAMPLES") + epilog.examples;
  return page + exit_section() + environment_section(command) + references(related(command, all));
}

std::string overview_page(std::span<const Command> commands) {
  const std::string same_words =
      roff(in_language("Each command has a page of its own, and the same words behind {}."));
  std::string page = head("", in_language("attention and Transformers on the CPU"));
  page += bold("fovea") + " " + italic("COMMAND") + " [" + italic("OPTIONS") + "]\n.br\n" +
          bold("fovea") + " " + bold("--version") + "\n" + heading("DESCRIPTION") +
          roff(in_language("Trains and uses models of text, computes attention, and shows how both "
                           "work.")) +
          "\n" + fmt::format(fmt::runtime(same_words), bold("--help")) + "\n" + heading("COMMANDS");
  std::vector<std::string> names;
  for (const Command& command : commands) {
    page += entry(bold(command.name), command.summary);
    names.push_back(command.name);
  }
  page += exit_section() + environment_section({}) + heading("FILES") +
          roff(in_language("The folder of a model holds")) + "\n";
  for (const auto& [file, what] : {std::pair{"config.json", "what the model is made of"},
                                   {"model.safetensors", "its weights"},
                                   {"checkpoints/", "what --resume goes on from"},
                                   {"metrics.jsonl", "losses and speeds of the training"}}) {
    page += entry(italic(file), in_language(what));
  }
  return page + references(names);
}

int man(const Arguments& arguments) {
  const std::vector<Command> all = commands();
  const std::string name = fmt::format("{}", fmt::join(arguments.list("COMMAND"), " "));
  if (arguments.has("output")) {
    if (!name.empty()) {
      throw Error(ErrorCode::kUsage, "man: --output writes the pages of all commands, not of one",
                  fmt::format("leave out {0}, or print it: fovea man {0}", name));
    }
    const std::filesystem::path folder = arguments.text("output");
    create_folders(folder);
    write_file_atomically(folder / "fovea.1", overview_page(all));
    for (const Command& command : all) {
      write_file_atomically(folder / (page_name(command.name) + ".1"), command_page(command, all));
    }
    return 0;
  }
  if (name.empty()) {
    print(overview_page(all));
    return 0;
  }
  std::vector<std::string> names;
  for (const Command& command : all) {
    if (command.name == name) {
      print(command_page(command, all));
      return 0;
    }
    names.push_back(command.name);
  }
  const std::string meant = did_you_mean(name, names);
  throw Error(ErrorCode::kUsage, fmt::format("man: unknown command '{}'", name),
              meant.empty() ? "see: fovea --help" : meant);
}

}  // namespace

Command man_command() {
  return {.name = "man",
          .summary = "Prints a manual page, or writes all of them into a folder.",
          .positionals = {{"COMMAND", "the command that the page is about; none: fovea itself",
                           false, true}},
          .options = {{.name = "output",
                       .placeholder = "DIR",
                       .help = "write the pages of all commands into this folder: fovea.1, "
                               "fovea-train-lm.1, ...",
                       .also = "o"}},
          .epilog = R"(Examples:
  fovea man train lm | man -l -
  fovea man -o man1

`make install` puts the pages where man finds those of installed programs: man fovea-train-lm.)",
          .run = man};
}

}  // namespace fovea::cli

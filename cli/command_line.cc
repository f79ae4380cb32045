// SPDX-License-Identifier: Apache-2.0
#include "cli/command_line.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cctype>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "cli/language.h"
#include "fovea/base/error.h"
#include "fovea/base/words.h"
#include "fovea/config/suggest.h"
#include "fovea/report/terminal.h"

namespace fovea::cli {

namespace {

// Names that PyTorch, nanoGPT, Hugging Face, Keras, llama.cpp and similar tools use, without
// leading dashes, separated by spaces.
struct Synonyms {
  std::string_view command;  // "train": every training; "": any
  std::string_view names;
  std::string_view hint;  // if it begins with --: the option of fovea
};

constexpr std::string_view kFolderFirst =
    "the folder of the model comes first, without an option: fovea generate MODEL \"Once\"";

constexpr std::array kSynonyms = {
    Synonyms{"train",
             "block-size seq-len seq-length max-seq-len max-seq-length "
             "context context-length context-size ctx ctx-len n-ctx n-positions "
             "max-position-embeddings",
             "--block"},
    Synonyms{"train",
             "batch bs batchsize mini-batch-size micro-batch-size train-batch-size "
             "per-device-train-batch-size",
             "--batch-size"},
    Synonyms{"train", "n-layer n-layers num-layers num-hidden-layers depth", "--layers"},
    Synonyms{"train", "n-head n-heads num-heads num-attention-heads nhead", "--heads"},
    Synonyms{"train", "n-kv-head n-kv-heads num-kv-heads num-key-value-heads", "--kv-heads"},
    Synonyms{"train",
             "n-embd n-embed embd embed-dim embedding-dim embedding-size hidden-size hidden-dim "
             "d-model dim model-dim",
             "--width"},
    Synonyms{"train",
             "d-ff ffn-dim ff-dim ffn-hidden-size intermediate-size mlp-dim "
             "dim-feedforward n-inner",
             "--ff"},
    Synonyms{"train", "max-lr peak-lr base-lr", "--lr"},
    Synonyms{"train", "wd l2", "--weight-decay"},
    Synonyms{"train", "label-smoothing-factor smoothing", "--label-smoothing"},
    Synonyms{"train", "grad-clip gradient-clip gradient-clip-val max-grad-norm clip-grad-norm",
             "--clip"},
    Synonyms{"train", "warmup-steps warmup-iters warmup-updates num-warmup-steps", "--warmup"},
    Synonyms{"train",
             "gradient-accumulation-steps grad-accum-steps grad-accum accum accumulation-steps "
             "accumulate-grad-batches update-freq",
             "--accumulate"},
    Synonyms{"train", "scheduler lr-scheduler lr-scheduler-type lr-schedule decay-lr",
             "--schedule"},
    Synonyms{"train", "adam-beta1", "--beta1"},
    Synonyms{"train", "adam-beta2", "--beta2"},
    Synonyms{"train",
             "eval-interval eval-steps eval-iters val-every val-interval "
             "val-check-interval validate-every",
             "--eval-every"},
    Synonyms{"train", "save-interval save-steps checkpoint-every checkpoint-interval",
             "--save-every"},
    Synonyms{"train", "log-interval logging-steps log-steps", "--log-every"},
    Synonyms{"train", "save-total-limit keep-last max-checkpoints", "--keep"},
    Synonyms{"train", "out out-dir output-dir save-dir checkpoint-dir model-dir", "--output"},
    Synonyms{"train", "train-file train-data dataset input input-file text corpus", "--train"},
    Synonyms{"train", "val val-file val-data validation validation-file valid-file eval-file",
             "--valid"},
    Synonyms{"train", "val-split val-fraction validation-split test-size", "--valid-fraction"},
    Synonyms{"train", "tie-weights tie-embeddings tie-word-embeddings weight-tying", "--tie"},
    Synonyms{"train",
             "pos-encoding positional-encoding position-embedding "
             "position-embedding-type",
             "--position"},
    Synonyms{"train", "rope rotary", "--position rotary"},
    Synonyms{"train", "alibi", "--position alibi"},
    Synonyms{"train", "rope-theta rotary-base", "--rope-base"},
    Synonyms{"train", "sliding-window window-size attention-window", "--window"},
    Synonyms{"train", "attn-logit-softcapping attention-softcap", "--softcap"},
    Synonyms{"train", "final-logit-softcapping final-softcap", "--logit-softcap"},
    Synonyms{"train", "rope-local-base-freq rope-theta-local", "--rope-local-base"},
    Synonyms{"train", "attention-scale attention-multiplier", "--score-scale"},
    Synonyms{"train", "attention-sink attention-sinks sinks", "--sink"},
    Synonyms{"train", "act hidden-act activation-function", "--activation"},
    Synonyms{"train", "use-bias", "--bias"},
    Synonyms{"train", "dropout-rate drop-rate dropout-p resid-dropout", "--dropout"},
    Synonyms{"train", "continue init-from resume-from resume-from-checkpoint load", "--resume"},
    Synonyms{"train", "force overwrite-output-dir", "--overwrite"},
    Synonyms{"train", "vocab-size n-vocab",
             "the vocabulary follows from the text: see --tokenizer"},
    Synonyms{"train", "min-freq min-frequency", "--min-count"},
    Synonyms{"train", "lowercase do-lower-case lower-case", "--lower"},
    Synonyms{"train",
             "max-len maxlen max-tokens-per-line seq-len seq-length max-seq-len "
             "max-seq-length",
             "--max-length"},
    Synonyms{"train", "truncating truncation truncation-side", "--truncate"},
    Synonyms{"train", "vocab vocab-file vocabulary-file", "--vocabulary"},
    Synonyms{"train", "gradient-checkpointing checkpointing activation-checkpointing remat",
             "--recompute"},
    Synonyms{"train", "optim", "--optimizer"},
    Synonyms{"attention", "is-causal", "--causal"},
    Synonyms{"attention", "attn-mask attention-mask mask",
             "a mask is a tensor of IN: keep or drop, of shape [B or 1, H or 1, T or 1, S]"},
    Synonyms{"attention", "alibi alibi-slopes", "ALiBi is a tensor of IN: slopes, of shape [H]"},
    Synonyms{"generate", "max-new-tokens max-length num-tokens n-tokens n-predict length tokens",
             "--max-tokens"},
    Synonyms{"generate", "temp t", "--temperature"},
    Synonyms{"generate", "rep-penalty repeat-penalty", "--repetition-penalty"},
    Synonyms{"generate", "n num-samples n-samples num-return-sequences", "--samples"},
    Synonyms{"generate", "do-sample sample", "--no-greedy"},
    Synonyms{
        "generate", "prompt start input text",
        "the prompt stands behind the folder, without an option: fovea generate MODEL \"Once\""},
    Synonyms{"generate", "model m model-path model-dir out-dir checkpoint ckpt", kFolderFirst},
    Synonyms{"eval", "data dataset input text test-file file eval-file", "--test"},
    Synonyms{"", "random-seed manual-seed", "--seed"},
    Synonyms{"", "num-threads n-threads num-workers workers jobs cores cpus", "--threads"},
    Synonyms{"", "device cuda gpu gpus n-gpu accelerator",
             "fovea computes on the CPU: leave it out"},
    Synonyms{"", "dtype torch-dtype mixed-precision fp16 bf16 amp autocast", "--precision"},
    Synonyms{"", "dtype precision mixed-precision fp16 bf16 amp autocast",
             "this command computes in float32: leave it out"},
    Synonyms{"", "compile", "fovea is compiled: leave it out"},
};

// Names for the length of a training. In fovea the unit is part of the value.
struct Lengths {
  std::string_view names;
  char unit;
  std::string_view example;
};
constexpr std::array kLengths = {
    Lengths{"steps max-steps num-steps train-steps num-train-steps total-steps iters max-iters "
            "num-iters iterations max-iterations lr-decay-iters updates max-updates",
            'u', "2000"},
    Lengths{"epochs max-epochs num-epochs n-epochs num-train-epochs epoch", 'e', "10"}};

bool is_training(std::string_view command) { return command.starts_with("train "); }

// The name in the spelling of the table: "max-iters" for "--Max_Iters".
std::string plain_name(std::string_view word) {
  std::string name(word.substr(std::min(word.find_first_not_of('-'), word.size())));
  for (char& c : name) {
    c = c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return name;
}

// A hint that gives the option of a command, one of `options`, for the name `word` ("--max-iters")
// of another tool. `value` is the value given with it, or "". Returns "" if the table has no such
// name.
std::string hint_for_synonym(std::string_view command, std::span<const std::string> options,
                             std::string_view word, std::string_view value) {
  const std::string name = plain_name(word);
  if (is_training(command)) {
    for (const auto& [names, unit, example] : kLengths) {
      if (!has_word(names, ' ', name)) continue;
      return fmt::format("did you mean --stop-after {}{}?", is_all_digits(value) ? value : example,
                         unit);
    }
  }
  for (const Synonyms& synonyms : kSynonyms) {
    const bool here = synonyms.command.empty() || synonyms.command == command ||
                      (synonyms.command == "train" && is_training(command));
    if (!here || !has_word(synonyms.names, ' ', name)) continue;
    if (!synonyms.hint.starts_with("--")) return std::string(synonyms.hint);
    // Skip the option if this command does not have it.
    if (std::find(options.begin(), options.end(), synonyms.hint) == options.end()) continue;
    return fmt::format("did you mean {}?", synonyms.hint);
  }
  return {};
}

// A hint for a word that is neither an option nor an argument of the command; "" if there is none.
std::string hint_for_word(std::string_view command, std::string_view word) {
  if (command == "eval") return fmt::format("did you mean --test {}?", word);
  if (command == "generate") {
    return "put a prompt of several words in quotes: fovea generate MODEL \"Once upon\"";
  }
  if (is_training(command)) return fmt::format("did you mean --train {}?", word);
  return {};
}

std::string flag_names(const OptionSpec& spec) {
  std::string names = "--" + spec.name;
  if (spec.also.size() == 1) names = "-" + spec.also + "," + names;
  if (spec.also.size() > 1) names += ",--" + spec.also;
  // CLI11's own negation: --no-x gives "false".
  if (spec.kind == OptionKind::kSwitch) names += ",!--no-" + spec.name;
  return names;
}

CLI::Option* add_option(CLI::App& app, const OptionSpec& spec) {
  if (spec.kind == OptionKind::kSwitch || spec.kind == OptionKind::kFlag) {
    return app.add_flag(flag_names(spec), spec.help);
  }
  CLI::Option* option = app.add_option(flag_names(spec), spec.help);
  option->type_name(spec.placeholder)->type_size(1);
  switch (spec.kind) {
    case OptionKind::kList:
      return option->expected(1, CLI::detail::expected_max_vector_size)->allow_extra_args();
    case OptionKind::kOptionalValue:
      return option->expected(0, 1);
    default:
      return option->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  }
}

struct HelpFormat final : CLI::Formatter {
  // CLI11 prints a negation with its value: "--no-tie{false}".
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    std::string name = CLI::Formatter::make_option_name(option, is_positional);
    constexpr std::string_view kNegation = "{false}";
    const std::size_t found = name.find(kNegation);
    return found == std::string::npos ? name : name.erase(found, kNegation.size());
  }

  // Both end their heading with a colon that belongs to the language.
  std::string make_group(std::string group, bool is_positional,
                         std::vector<const CLI::Option*> options) const override {
    std::string text = "\n" + group + std::string(colon_of_language()) + "\n";
    for (const CLI::Option* option : options) text += make_option(option, is_positional);
    return text;
  }
  std::string make_usage(const CLI::App* app, std::string name) const override {
    std::string text = CLI::Formatter::make_usage(app, std::move(name));
    const std::string label = get_label("Usage") + ": ";
    if (colon_of_language() == ":" || !text.starts_with(label)) return text;
    return text.replace(0, label.size(), get_label("Usage") + std::string(colon_of_language()));
  }

  // CLI11 counts bytes, and a Chinese character has three of them in two columns.
  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    std::string text = "  " + make_option_name(option, is_positional) + make_option_opts(option);
    const std::string help = make_option_desc(option);
    const auto columns = static_cast<std::size_t>(display_width(text));
    const bool is_wide = columns >= get_column_width();
    if (!is_wide) text.append(get_column_width() - columns, ' ');
    if (is_wide && !help.empty()) text += "\n" + std::string(get_column_width(), ' ');
    return text + help + "\n";
  }
};

struct Parser {
  explicit Parser(const Command& command) : app(command.summary, "fovea " + command.name) {
    app.set_help_flag(flag_names(help_option()), in_language(help_option().help));
    app.get_help_ptr()->group(in_language(help_option().group));
    app.formatter(std::make_shared<HelpFormat>());
    app.get_formatter()->column_width(34);
    for (const std::string word : {"Usage", "OPTIONS", "Positionals", "REQUIRED"}) {
      app.get_formatter()->label(word, in_language(word));
    }
    for (const PositionalSpec& spec : command.positionals) {
      positionals.push_back(app.add_option(spec.name, spec.help));
      positionals.back()->required(spec.required)->type_name("");
      if (!spec.is_list) continue;
      positionals.back()->type_size(1)->expected(1, CLI::detail::expected_max_vector_size);
      positionals.back()->allow_extra_args();
    }
    for (const OptionSpec& spec : command.options) {
      options.push_back(add_option(app, spec));
      options.back()->group(spec.group);
    }
    app.footer(command.epilog);
  }

  CLI::App app;
  // In the order of the command. CLI11's own search by name allocates memory in a function that may
  // not throw.
  std::vector<CLI::Option*> positionals, options;
};

std::vector<std::string> known_names(const Command& command) {
  std::vector<std::string> names = {"--help"};
  for (const OptionSpec& spec : command.options) {
    names.push_back("--" + spec.name);
    if (spec.also.size() > 1) names.push_back("--" + spec.also);
  }
  return names;
}

// A user may write "--causal top-left" for an optional value, which needs "--causal=top-left".
std::string hint_for_value(const Command& command, const std::string& word) {
  for (const OptionSpec& spec : command.options) {
    if (spec.kind != OptionKind::kOptionalValue) continue;
    std::string choices = spec.placeholder;  // "[=none|top-left]"
    for (char& c : choices) c = c == '=' || c == ']' ? '|' : c;
    if (choices.find("|" + word + "|") != std::string::npos)
      return fmt::format("did you mean --{}={}?", spec.name, word);
  }
  const std::string hint = hint_for_word(command.name, word);
  if (!hint.empty()) return hint;
  return fmt::format("the value of an option stands behind its name; see: fovea {} --help",
                     command.name);
}

[[noreturn]] void fail_unexpected(const Command& command, const std::string& word,
                                  std::string_view where) {
  throw Error(ErrorCode::kUsage,
              fmt::format("{}: unexpected argument '{}'{}", command.name, word, where),
              hint_for_value(command, word));
}

// `extras` are in the order of the command line. A name that another tool uses is looked up before
// options with a similar spelling.
[[noreturn]] void fail_unknown(const Command& command, std::vector<std::string> extras) {
  // After "--" no word is an option.
  const auto dashes = std::find(extras.begin(), extras.end(), "--");
  if (dashes == extras.begin() && extras.size() > 1)
    fail_unexpected(command, extras[1], " after --");
  extras.erase(dashes, extras.end());
  // The value of an unknown option is among the extras too: report the option.
  const auto option = std::find_if(extras.begin(), extras.end(), [](const std::string& extra) {
    return extra.rfind('-', 0) == 0;
  });
  const std::string all = option != extras.end() ? *option : extras.front();
  const std::string word = all.substr(0, all.find('='));
  if (word.rfind('-', 0) != 0) fail_unexpected(command, word, "");
  std::string value = all.size() > word.size() ? all.substr(word.size() + 1) : "";
  if (value.empty() && option + 1 < extras.end()) value = option[1];
  const std::vector<std::string> known = known_names(command);
  std::string meant = hint_for_synonym(command.name, known, word, value);
  if (meant.empty()) meant = did_you_mean(word, known);
  throw Error(ErrorCode::kUsage, fmt::format("{}: unknown option '{}'", command.name, word),
              meant.empty() ? fmt::format("see: fovea {} --help", command.name) : meant);
}

// If an option of one value is repeated, the last value counts. The result of a switch is "true",
// "false", or the text after its equals sign.
std::vector<std::string> given(const CLI::Option& option, OptionKind kind) {
  std::vector<std::string> results = option.results();
  if (kind == OptionKind::kList || results.size() <= 1) return results;
  return {results.back()};
}

// Removes options of optional value that stand without "=" and returns their names. CLI11 would
// take the next word as their value, although it may be an argument of the command.
std::vector<std::string> take_bare(const Command& command, std::vector<std::string>& words) {
  std::vector<std::string> bare;
  const auto end = std::find(words.begin(), words.end(), "--");
  for (const OptionSpec& spec : command.options) {
    if (spec.kind != OptionKind::kOptionalValue || command.positionals.empty()) continue;
    const std::string word = "--" + spec.name;
    if (std::find(words.begin(), end, word) != end) bare.push_back(spec.name);
  }
  words.erase(std::remove_if(words.begin(), end,
                             [&](const std::string& word) {
                               return word.rfind("--", 0) == 0 &&
                                      std::find(bare.begin(), bare.end(), word.substr(2)) !=
                                          bare.end();
                             }),
              end);
  return bare;
}

const OptionSpec* find_option(const Command& command, std::string_view name) {
  const auto found =
      std::find_if(command.options.begin(), command.options.end(), [&](const OptionSpec& spec) {
        const bool negated = spec.kind == OptionKind::kSwitch && name == "no-" + spec.name;
        return name == spec.name || (!spec.also.empty() && name == spec.also) || negated;
      });
  return found == command.options.end() ? nullptr : &*found;
}

bool needs_value(const OptionSpec& spec) {
  return spec.kind == OptionKind::kValue || spec.kind == OptionKind::kList;
}

[[noreturn]] void fail_without_value(const Command& command, const std::string& word,
                                     const OptionSpec& spec) {
  const std::string bare = word.substr(0, word.size() - 1);
  std::string hint = "leave out the equals sign: " + bare;
  if (spec.kind == OptionKind::kOptionalValue) {
    hint += ", or name a value: " + bare + spec.placeholder.substr(1, spec.placeholder.size() - 2);
  }
  throw Error(ErrorCode::kUsage,
              fmt::format("{}: {} has no value behind its equals sign", command.name, word), hint);
}

struct OptionWord {
  const OptionSpec* spec = nullptr;  // none: it names no option of the command
  bool ends = false;                 // with the equals sign of a value that is not there
};

OptionWord option_of(const Command& command, std::string_view word) {
  const std::size_t dashes = word.rfind("--", 0) == 0 ? 2 : 1;
  if (word.size() <= dashes || word[0] != '-') return {};
  const bool ends = dashes == 2 && word.find('=') == word.size() - 1;
  if (ends) word.remove_suffix(1);
  return {find_option(command, word.substr(dashes)), ends};
}

// CLI11 takes "--name=" for "--name", whose value is the next word. Makes two words of it, the
// second one empty.
std::vector<std::string> with_empty_values(const Command& command,
                                           const std::vector<std::string>& words) {
  std::vector<std::string> result;
  auto word = words.begin();
  for (; word != words.end() && *word != "--"; ++word) {
    result.push_back(*word);
    const auto [spec, ends] = option_of(command, *word);
    if (spec == nullptr) continue;
    if (!needs_value(*spec)) {
      if (ends) fail_without_value(command, *word, *spec);
    } else if (ends) {
      result.back().pop_back();
      result.emplace_back();
    } else if (word + 1 != words.end()) {
      result.push_back(*++word);  // its value, even if it looks like an option
    }
  }
  result.insert(result.end(), word, words.end());
  return result;
}

// A flag with another text would be off without a word.
void check_flag(const OptionSpec& spec, const std::string& value) {
  if (spec.kind != OptionKind::kFlag || value == "true" || value == "false") return;
  throw Error(ErrorCode::kOptionValue,
              fmt::format("--{}: expected true or false; got '{}'", spec.name, value),
              fmt::format("say --{} alone", spec.name));
}

}  // namespace

OptionSpec flag(std::string name, std::string help, std::string group) {
  return {.name = std::move(name),
          .kind = OptionKind::kFlag,
          .help = std::move(help),
          .group = std::move(group)};
}

OptionSpec json_option(std::string help, std::string group) {
  return flag("json", std::move(help), std::move(group));
}

OptionSpec help_option() {
  return {.name = "help", .kind = OptionKind::kFlag, .help = "this text", .also = "h"};
}

std::string Arguments::text(std::string_view name, std::string_view otherwise) const {
  const auto found = values_.find(name);
  if (found == values_.end()) return std::string(otherwise);
  return found->second.empty() ? "" : found->second.back();
}

std::vector<std::string> Arguments::list(std::string_view name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? std::vector<std::string>{} : found->second;
}

void Arguments::set(std::string_view name, std::vector<std::string> values) {
  values_[std::string(name)] = std::move(values);
}

Arguments parse_arguments(const Command& command, std::vector<std::string> words) {
  Parser parser(command);
  Arguments arguments(command);
  words = with_empty_values(command, words);
  for (std::string& name : take_bare(command, words)) arguments.set(name, {""});
  std::reverse(words.begin(), words.end());  // CLI11 expects them in reverse
  try {
    parser.app.parse(words);
  } catch (const CLI::CallForHelp&) {
    arguments.set("help", {"true"});
    return arguments;
  } catch (const CLI::ExtrasError&) {
    fail_unknown(command, parser.app.remaining());
  } catch (const CLI::ParseError& error) {
    throw Error(ErrorCode::kUsage, fmt::format("{}: {}", command.name, error.what()),
                fmt::format("see: fovea {} --help", command.name));
  }
  for (std::size_t i = 0; i < command.positionals.size(); ++i) {
    const CLI::Option& option = *parser.positionals[i];
    if (option.count() > 0) arguments.set(command.positionals[i].name, option.results());
  }
  for (std::size_t i = 0; i < command.options.size(); ++i) {
    const CLI::Option& option = *parser.options[i];
    const OptionSpec& spec = command.options[i];
    if (option.count() == 0) continue;
    arguments.set(spec.name, given(option, spec.kind));
    check_flag(spec, arguments.text(spec.name));
  }
  return arguments;
}

std::string help_text(const Command& command) {
  std::string text = Parser(command).app.help();
  // CLI11 separates groups by two empty lines.
  for (std::size_t at; (at = text.find("\n\n\n")) != std::string::npos;) text.erase(at, 1);
  return text;
}

}  // namespace fovea::cli

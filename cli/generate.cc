// SPDX-License-Identifier: Apache-2.0
// fovea generate: text from a trained language model.
#include "fovea/task/language_model/generate.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "cli/chat.h"
#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/field_options.h"
#include "cli/output.h"
#include "fovea/base/clock.h"
#include "fovea/base/option.h"
#include "fovea/config/json.h"
#include "fovea/task/language_model/generate.h"
#include "fovea/text/compressed.h"

namespace fovea::cli {

namespace {

// How many texts are generated, and from what.
struct TextsOptions {
  index samples = 1;
  bool each_line = false;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("samples", samples, "how many texts to write for a prompt, with seeds from --seed on",
          {.range = ValueRange::from(1)});
    visit("each_line", each_line, "with - as PROMPT: each line is a prompt of its own");
  }
};

// A search for the likeliest text, instead of samples.
struct BeamOptions {
  index beam = 0;
  double length_penalty = 0.6;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("beam", beam,
          "search for the likeliest text with so many hypotheses; 0: draw tokens one by one",
          {.range = ValueRange::from(0, "draw tokens one by one")});
    visit("length_penalty", length_penalty,
          "--beam: exponent a of the length ((5 + tokens) / 6)^a by which log probabilities are "
          "divided; 0: none");
  }

  SearchOptions search() const { return {.beam = beam, .length_penalty = length_penalty}; }
};

// A text as --json prints it.
struct Sample {
  std::string prompt;
  std::string text;
  std::uint64_t seed = 0;
  index tokens = 0;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("prompt", prompt, "what the text begins with");
    visit("text", text, "what the model wrote after it");
    visit("seed", seed, "--seed that gives this text alone");
    visit("tokens", tokens, "how many tokens the model wrote");
  }
};

// A text that was searched for, the same.
struct Found {
  std::string prompt;
  FoundText found;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("prompt", prompt, "what the text begins with");
    visit("text", found.text, "what the model wrote after it");
    visit("tokens", found.tokens, "how many tokens the model wrote");
    visit("log_probability", found.log_probability, "of these and their end, in nats");
    visit("score", found.score, "that, divided by the length of --length-penalty");
  }
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

// A newline at the end, as in a file or from echo, is not part of a prompt.
std::vector<std::string> prompts_of(const Arguments& arguments, const TextsOptions& texts) {
  const std::string prompt = arguments.text("PROMPT");
  if (prompt != "-") {
    if (!texts.each_line) return {prompt};
    throw Error(ErrorCode::kUsage, "generate: --each-line needs prompts on standard input",
                "give - as the prompt: fovea generate DIR - --each-line < prompts.txt");
  }
  std::string input = read_whole(*open_text("-"), name_of_input("-"), "give a shorter prompt");
  if (texts.each_line) return lines_of(input);
  if (input.ends_with('\n')) input.pop_back();
  std::vector<std::string> prompts;
  prompts.push_back(std::move(input));
  return prompts;
}

// An unknown word is printed as it was given, and the model reads another one.
void warn_of_unknown_words(const LoadedLanguageModel& loaded,
                           const std::vector<std::string>& prompts) {
  index unknown = 0;
  for (const std::string& prompt : prompts) unknown += unknown_words(loaded, prompt);
  if (unknown == 0) return;
  warn(fmt::format("words of the prompt that the model does not know: {}; it reads each as {}",
                   unknown, kSpecialWords[kUnknownWord]));
}

// Writes all the texts that were asked for.
class Writer {
 public:
  Writer(const Context& context, const LoadedLanguageModel& loaded, const SamplingOptions& options,
         const BeamOptions& beam, index samples, bool json)
      : context_(context),
        loaded_(loaded),
        options_(options),
        beam_(beam),
        samples_(samples),
        json_(json) {}

  // Returns how many tokens were written.
  index write(const std::vector<std::string>& prompts) {
    index tokens = 0;
    const bool several = prompts.size() > 1 || samples_ > 1;
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      for (index sample = 0; sample < samples_ && read_on_; ++sample) {
        SamplingOptions options = options_;
        options.seed += static_cast<std::uint64_t>(sample);
        if (several && !json_) {
          const std::string number = prompts.size() > 1 ? fmt::format("prompt {}, ", i + 1) : "";
          show(beam_.beam > 0 ? fmt::format("--- prompt {}\n", i + 1)
                              : fmt::format("--- {}seed {}\n", number, options.seed));
        }
        if (beam_.beam > 0) {
          tokens += write_found(prompts[i]);
          continue;
        }
        tokens += json_ ? write_object(prompts[i], options) : write_text(prompts[i], options);
      }
    }
    return tokens;
  }

 private:
  // Returns false, from then on always, once the reader of stdout is gone.
  bool show(std::string_view text) { return read_on_ = read_on_ && print(text); }

  index write_text(const std::string& prompt, const SamplingOptions& options) {
    show(prompt);
    const index tokens = generate_text(context_, loaded_, prompt, options,
                                       [&](std::string_view text) { return show(text); });
    show("\n");
    return tokens;
  }

  index write_object(const std::string& prompt, const SamplingOptions& options) {
    Sample sample{.prompt = prompt, .text = {}, .seed = options.seed};
    sample.tokens = generate_text(context_, loaded_, prompt, options, [&](std::string_view text) {
      sample.text += text;
      return true;
    });
    show(to_json_line(sample) + "\n");
    return sample.tokens;
  }

  index write_found(const std::string& prompt) {
    Found line{prompt, search_text(context_, loaded_, prompt, options_, beam_.search())};
    show(json_ ? to_json_line(line) + "\n" : prompt + line.found.text + "\n");
    return line.found.tokens;
  }

  const Context& context_;
  const LoadedLanguageModel& loaded_;
  const SamplingOptions& options_;
  const BeamOptions& beam_;
  const index samples_;
  const bool json_;
  bool read_on_ = true;
};

void check_beam(const Arguments& arguments, const BeamOptions& beam) {
  if (beam.beam > 0) {
    check_options(beam.search());
    for (const std::string_view option :
         {"temperature", "top-k", "top-p", "greedy", "seed", "samples"}) {
      if (!arguments.has(option)) continue;
      throw Error(ErrorCode::kUsage,
                  fmt::format("generate: --{} has no effect with --beam", option),
                  "a search draws nothing: leave one of the two out");
    }
  } else if (arguments.has("length-penalty")) {
    throw Error(ErrorCode::kUsage, "generate: --length-penalty has no effect without --beam",
                "add --beam 5, or leave it out");
  }
}

}  // namespace

CommandSpec generate_spec() {
  SamplingOptions sampling;
  BeamOptions beam;
  TextsOptions texts;
  CommandSpec spec{
      .name = "generate",
      .summary = "Continues a prompt with a trained language model.",
      .positionals = {{"DIR", "folder of the model, also of Hugging Face, or a GGUF file"},
                      {"PROMPT", "text to begin with; -: read it from standard input", false}},
      .options = options_of(flags_of(fields_of(sampling)), "Sampling"),
      .epilog = R"(Examples:
  fovea generate model "Once upon a time"
  fovea generate model "The" --temperature 0.7 --top-k 40 --seed 3
  fovea generate model "The" --samples 3               seeds 1, 2 and 3
  fovea generate model "The" --beam 5 --max-tokens 40
  fovea generate model.gguf "The capital of France is" --greedy
  fovea generate model.gguf --chat --system "You are brief."
  fovea generate model - < prompt.txt
  fovea generate model - --each-line --json < prompts.txt
  fovea generate model -- "- a prompt that begins with a dash"

Prints the prompt, its continuation as it is made, and a newline; of several texts, each below a line
"--- seed N".)"};
  for (OptionSpec& option : options_of(flags_of(fields_of(beam)), "Search")) {
    spec.options.push_back(std::move(option));
  }
  for (OptionSpec& option : said_or_not(options_of(flags_of(fields_of(texts)), "Texts"))) {
    spec.options.push_back(std::move(option));
  }
  spec.options.push_back({"json", OptionKind::kFlag, "",
                          "print each text as a JSON object on a line of its own", "Texts", ""});
  PretrainedOptions pretrained;
  ChatOptions chat;
  for (OptionSpec& option : options_of(flags_of(fields_of(pretrained)), "Models from elsewhere")) {
    spec.options.push_back(std::move(option));
  }
  for (OptionSpec& option :
       said_or_not(options_of(flags_of(fields_of(chat)), "Models from elsewhere"))) {
    spec.options.push_back(std::move(option));
  }
  spec.options.push_back(precision_option());
  spec.options.push_back(threads_option());
  for (OptionSpec& option : message_options()) spec.options.push_back(std::move(option));
  return spec;
}

int generate(const Arguments& arguments) {
  set_messages_from(arguments);
  check_log_is_apart({}, arguments.text("DIR"));
  warn_of_unread_variables(generate_spec().options);
  SamplingOptions options;
  TextsOptions texts;
  BeamOptions beam;
  PretrainedOptions pretrained{.weights = WeightTypes::kAsTheyLie};
  ChatOptions chat;
  set_from_outside(flags_of(fields_of(chat)), arguments);
  set_from_outside(flags_of(fields_of(pretrained)), arguments);
  set_from_outside(flags_of(fields_of(options)), arguments);
  set_from_outside(flags_of(fields_of(beam)), arguments);
  set_from_outside(flags_of(fields_of(texts)), arguments);
  check_options(options);
  check_beam(arguments, beam);
  check_chat(arguments, chat);
  const Context context = model_context_of(arguments);
  const LoadedLanguageModel loaded = load_language_model(arguments.text("DIR"), pretrained);
  if (chat.chat) return run_chat(context, loaded, arguments, chat, options);
  const std::vector<std::string> prompts = prompts_of(arguments, texts);
  for (const std::string& prompt : prompts) {
    require_generation_memory(context, loaded, prompt, options);  // before anything is printed
  }
  warn_of_unknown_words(loaded, prompts);
  const double began = monotonic_seconds();
  const index tokens =
      Writer(context, loaded, options, beam, texts.samples, arguments.on("json")).write(prompts);
  const double seconds = monotonic_seconds() - began;
  detail(fmt::format("{} tokens in {:.2f} s ({:.0f} tokens/s)", tokens, seconds,
                     static_cast<double>(tokens) / seconds));
  return 0;
}

}  // namespace fovea::cli

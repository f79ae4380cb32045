// SPDX-License-Identifier: Apache-2.0
// fovea generate: text from a trained language model, and conversations.
#include "fovea/task/language_model/generate.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "cli/answers.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "fovea/base/clock.h"
#include "fovea/base/option.h"
#include "fovea/data/table/line_reader.h"
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

// A conversation.
struct ChatOptions {
  bool chat = false;
  std::string system;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("chat", chat,
          "of a model from elsewhere: PROMPT is a message, which the model answers; without PROMPT "
          "each line of standard input is one");
    visit("system", system, "--chat: what the system says first; none: the model's own",
          {.shown = "TEXT"});
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
                "give - as the prompt: fovea generate MODEL - --each-line < prompts.txt");
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

  void show_object(Json::Object object) { show(Json(std::move(object)).line() + "\n"); }

  index write_text(const std::string& prompt, const SamplingOptions& options) {
    show(prompt);
    const index tokens = generate_text(context_, loaded_, prompt, options,
                                       [&](std::string_view text) { return show(text); });
    show("\n");
    return tokens;
  }

  // With the seed that gives this text alone.
  index write_object(const std::string& prompt, const SamplingOptions& options) {
    std::string made;
    const index tokens =
        generate_text(context_, loaded_, prompt, options, [&](std::string_view text) {
          made += text;
          return true;
        });
    show_object({{"prompt", prompt}, {"text", made}, {"seed", options.seed}, {"tokens", tokens}});
    return tokens;
  }

  index write_found(const std::string& prompt) {
    const FoundText found = search_text(context_, loaded_, prompt, options_, beam_.search());
    if (json_) {
      show_object({{"prompt", prompt},
                   {"text", found.text},
                   {"tokens", found.tokens},
                   {"log_probability", found.log_probability},
                   {"score", found.score}});
    } else {
      show(prompt + found.text + "\n");
    }
    return found.tokens;
  }

  const Context& context_;
  const LoadedLanguageModel& loaded_;
  const SamplingOptions& options_;
  const BeamOptions& beam_;
  const index samples_;
  const bool json_;
  bool read_on_ = true;
};

void check_uses(const Arguments& arguments, const BeamOptions& beam, const ChatOptions& chat) {
  if (beam.beam > 0) {
    check_options(beam.search());
    refuse_options(arguments, {"temperature", "top-k", "top-p", "greedy", "seed", "samples"},
                   " with --beam", "a search draws nothing: leave one of the two out");
  } else {
    refuse_options(arguments, {"length-penalty"}, " without --beam",
                   "add --beam 5, or leave it out");
  }
  if (chat.chat) {
    refuse_options(arguments, {"beam", "length-penalty", "samples", "each-line"}, " with --chat",
                   "leave one of the two out");
  } else {
    refuse_options(arguments, {"system"}, " without --chat", "add --chat, or leave it out");
  }
}

// Returns whether somebody reads on.
bool print_answer(Conversation& conversation, const std::string& message, bool json) {
  std::string answer;
  bool read_on = true;
  const index tokens = conversation.answer(message, [&](std::string_view part) {
    answer += part;
    return read_on = json || print(part);
  });
  if (!read_on) return false;
  if (!json) return print("\n");
  return print_json({{"message", message}, {"text", answer}, {"tokens", tokens}});
}

// On a terminal, where a message is expected.
void ask() {
  if (isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0) print("> ");
}

// Answers the message PROMPT, or each line of standard input. Returns the exit status.
int run_chat(const Context& context, const LoadedLanguageModel& loaded, const Arguments& arguments,
             const ChatOptions& chat, const SamplingOptions& options) {
  Conversation conversation(context, loaded, chat.system, options);
  const bool json = arguments.on("json");
  if (arguments.has("PROMPT") && arguments.text("PROMPT") != "-") {
    print_answer(conversation, arguments.text("PROMPT"), json);
    return 0;
  }
  ask();
  LineReader lines(answered_stream("-", [] {}), name_of_input("-"), kLongestTextLine);
  for (Line line; lines.next(line);) {
    lines.require_text(line);
    const std::string_view message = without_carriage_return(line.text);
    if (!message.empty() && !print_answer(conversation, std::string(message), json)) return 0;
    ask();
  }
  return 0;
}

int generate(const Arguments& arguments) {
  begin_command(arguments, {}, arguments.text("MODEL"));
  SamplingOptions options;
  TextsOptions texts;
  BeamOptions beam;
  PretrainedOptions pretrained{.weights = WeightTypes::kAsTheyLie};
  ChatOptions chat;
  read_options(arguments, chat, pretrained, options, beam, texts);
  check_options(options);
  check_uses(arguments, beam, chat);
  const Context context = model_context_of(arguments);
  const LoadedLanguageModel loaded = load_language_model(arguments.text("MODEL"), pretrained);
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

}  // namespace

Command generate_command() {
  constexpr std::string_view kElsewhere = "Models from elsewhere";
  return {.name = "generate",
          .summary = "Continues a prompt with a trained language model.",
          .positionals = {{"MODEL", "folder of the model, also of Hugging Face, or a GGUF file"},
                          {"PROMPT", "text to begin with; -: read it from standard input", false}},
          .options = joined(
              {options_of(SamplingOptions(), "Sampling"),
               options_of(BeamOptions(), "Search"),
               said_or_not(TextsOptions(), "Texts"),
               {json_option("print each text as a JSON object on a line of its own", "Texts")},
               options_of(PretrainedOptions(), kElsewhere),
               said_or_not(ChatOptions(), kElsewhere),
               computing_options(),
               message_options()}),
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
"--- seed N".)",
          .run = generate};
}

}  // namespace fovea::cli

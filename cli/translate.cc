// SPDX-License-Identifier: Apache-2.0
// fovea translate: translates lines of text.
#include <fmt/core.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/answers.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "fovea/base/clock.h"
#include "fovea/data/table/line_reader.h"
#include "fovea/task/translate/line_translator.h"

namespace fovea::cli {

namespace {

constexpr std::size_t kLongestLine = std::size_t{16} << 20;  // bytes

std::string pharaoh(const TranslatedText& made) {
  std::string links;
  for (const auto& [source, target] : made.alignment) {
    links += fmt::format("{}{}-{}", links.empty() ? "" : " ", source, target);
  }
  return links;
}

class TranslationAnswers {
 public:
  TranslationAnswers(LineTranslator& translator, const TranslationOptions& options, bool json)
      : translator_(translator),
        options_(options),
        json_(json),
        answers_(std::launch::deferred,  // the translator keeps the lines, and is not to change
                                         // meanwhile
                 {.entries = LineTranslator::kLinesAtOnce, .bytes = LineTranslator::kBytesAtOnce},
                 [this](const std::vector<std::string>& sources) { return said_of(sources); }) {}

  // Throws NobodyReads, and what LineTranslator::add() does.
  void add(const Line& line) {
    const std::string_view text = without_carriage_return(line.text);
    translator_.add({text, static_cast<std::uint64_t>(line.number)});
    answers_.add(json_ ? std::string(text) : "", line.text.size());
  }

  // Prints the translations of all lines that are not answered yet.
  void answer() { answers_.answer(); }

  // Lines with tokens, of which the model made nothing.
  index emptied() const { return emptied_; }

 private:
  std::string said_of(const std::vector<std::string>& sources) {
    const auto results = translator_.translate();
    std::string lines;
    for (std::size_t n = 0; n < results.size(); ++n) {
      lines += json_ ? translation_json(sources[n], results[n], options_) + "\n"
                     : text_lines(results[n]);
      ++answered_;
      emptied_ += results[n][0].text.empty() && results[n][0].tokens > 0;  // 0: an empty line
    }
    return lines;
  }

  std::string text_lines(const std::vector<TranslatedText>& all) const {
    std::string lines;
    for (const TranslatedText& made : all) {
      if (options_.search.nbest > 1) lines += fmt::format("{} ||| ", answered_);
      lines += made.text;
      if (options_.alignments) lines += " ||| " + pharaoh(made);
      if (options_.search.nbest > 1) {
        lines += fmt::format(" ||| {:.6f} ||| {:.6f}", made.log_probability, made.score);
      }
      lines += '\n';
    }
    return lines;
  }

  LineTranslator& translator_;
  const TranslationOptions& options_;
  const bool json_;
  Answers<std::string> answers_;  // of the sources, with --json
  index answered_ = 0, emptied_ = 0;
};

void summarise(const LineTranslator& translator, index emptied, double seconds) {
  if (emptied > 0) {
    warn(fmt::format("lines with words whose translation is empty: {} of {}", emptied,
                     translator.lines()));
  }
  if (translator.split() > 0) {
    warn(fmt::format("lines longer than the model reads: {} of {}; they were translated in pieces",
                     translator.split(), translator.lines()));
  }
  detail(fmt::format(
      "{} lines, {} source and {} target tokens in {:.3f} s ({:.0f} target tokens/s); "
      "the model: {:.3f} s",
      translator.lines(), translator.source_tokens(), translator.target_tokens(), seconds,
      static_cast<double>(translator.target_tokens()) / seconds, translator.model_seconds()));
}

int translate(const Arguments& arguments) {
  const std::string file = arguments.text("FILE", "-"), folder = arguments.text("DIR");
  begin_command(arguments, {file}, folder);
  TranslationOptions options;
  read_options(arguments, options);
  if (!arguments.has("beam")) options.search.beam = kMostBeam;  // the model will say
  check_options(options);                                       // before anything is read
  const Context context = model_context_of(arguments);
  const LoadedTranslator loaded = load_translator(folder);
  options.search = loaded.search;
  read_options(arguments, options);
  tell_threads(context);
  LineTranslator translator(context, *loaded.model, loaded.vocabulary, options,
                            name_of_input(file));
  TranslationAnswers answers(translator, options, arguments.on("json"));
  const double began = monotonic_seconds();
  answer_lines(
      file, kLongestLine, [&](const Line& line) { answers.add(line); }, [&] { answers.answer(); });
  summarise(translator, answers.emptied(), monotonic_seconds() - began);
  return 0;
}

}  // namespace

Command translate_command() {
  return {.name = "translate",
          .summary = "Translates lines of text.",
          .positionals = {{"DIR", "folder of the model"},
                          {"FILE", "lines (-, or none: standard input)", false}},
          .options = joined(
              {said_or_not(TranslationOptions(), "Translation"),
               {json_option("print each line's translations as a JSON object on a line of its own",
                            "Output")},
               computing_options(),
               message_options()}),
          .epilog = R"(Examples:
  fovea translate model test.en > test.de
  echo "A man rides a bicycle." | fovea translate model
  fovea translate model test.en --beam 1                    fast: always the likeliest token
  fovea translate model test.en --nbest 5 --json
  fovea translate model test.en --sample --seed 7           for back-translation
  fovea translate model test.en --alignments

A line in, a line out, in the same order; of an empty line an empty one. With --nbest N there are N
lines for each: "number ||| translation ||| log probability ||| score".)",
          .run = translate};
}

}  // namespace fovea::cli

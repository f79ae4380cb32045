// SPDX-License-Identifier: Apache-2.0
// fovea explain: what a trained model looked at in a text, or attention step by step.
#include "fovea/task/explain.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/language.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/task_commands.h"
#include "fovea/base/file.h"
#include "fovea/base/machine.h"
#include "fovea/data/frames.h"
#include "fovea/data/table/table_options.h"
#include "fovea/explain/attention_steps.h"
#include "fovea/explain/explanation.h"
#include "fovea/explain/shown.h"
#include "fovea/pretrained/pretrained.h"
#include "fovea/report/attention_page.h"
#include "fovea/report/features_page.h"
#include "fovea/text/compressed.h"
#include "fovea/text/utf8.h"

namespace fovea::cli {

namespace {

void print_as_json(const AttentionSteps& steps) {
  const std::size_t T = steps.queries.size(), S = steps.keys.size(), d = AttentionSteps::kWidth;
  print_json({{"queries", json_of_tokens(steps.queries)},
              {"keys", json_of_tokens(steps.keys)},
              {"q", json_of_matrix(steps.q.data(), T, d)},
              {"k", json_of_matrix(steps.k.data(), S, d)},
              {"v", json_of_matrix(steps.k.data(), S, d)},
              {"scores", json_of_matrix(steps.scores.data(), T, S)},
              {"scaled", json_of_matrix(steps.scaled.data(), T, S)},
              {"weights", json_of_matrix(steps.weights.data(), T, S)},
              {"output", json_of_matrix(steps.output.data(), T, d)}});
}

namespace fs = std::filesystem;

// The page.
struct ExplainPage {
  std::string page;
  bool overwrite = false;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("page", page, "also write a page for a browser to this file, with every layer and head",
          {.only_command_line = true, .shown = "FILE"});
    visit("overwrite", overwrite, "replace a page that is there already",
          {.only_command_line = true});
  }
};

// Of a language model, or of one on an encoder.
struct ExplainAdapters {
  std::vector<std::string> adapter;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("adapter", adapter, kAdapterHelp, {.shown = "DIR[=X]..."});
  }
};

// Checked before anything is computed.
void check_page(const std::string& page, const fs::path& model, bool overwrite) {
  std::error_code ignored;
  const fs::path place = fs::canonical(page, ignored);
  if (!place.empty() && lies_in(place, model) && place.extension() != ".html") {
    throw Error(ErrorCode::kUsage, fmt::format("--page: {}: is a file of the model", page),
                "choose another file, whose name ends in .html");
  }
  check_page_file({"--page", page, overwrite});
}

// Far more than any model reads: every token of a text is named, so it is in memory several times.
constexpr std::size_t kLongestText = std::size_t{16} << 20;

void write_page(const Explanation& explanation, const ExplainPage& page, std::string_view folder) {
  write_file_atomically(page.page, draw_attention_page(page_of(explanation, folder, language())));
  note(fmt::format("wrote {}", page.page));
}

// Explains what a linear model has learned, without a text.
struct TopFeatures {
  index count = 0;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("top_features", count,
          "linear classifiers, without a text: this many n-grams with the largest weights for each "
          "label; 0: none",
          {.range = ValueRange::in(0, 1'000'000, "none"), .only_command_line = true});
  }
};

Json::Object json_of_features(const std::vector<LabelFeatures>& labels) {
  Json::Array list;
  for (const LabelFeatures& label : labels) {
    Json::Array features;
    for (const auto& [name, weight] : label.features) {
      features.push_back(Json::Object{{"ngram", name}, {"weight", weight}});
    }
    list.push_back(Json::Object{{"label", label.label}, {"features", std::move(features)}});
  }
  return {{"labels", std::move(list)}};
}

std::string text_of_features(const std::vector<LabelFeatures>& labels) {
  std::string text;
  for (const LabelFeatures& label : labels) {
    text += fmt::format("{}\n", escape_text(label.label));
    for (const auto& [name, weight] : label.features) {
      text += fmt::format("  {:>9.4f}  {}\n", weight, escape_text(name));
    }
  }
  return text;
}

int explain_features(const Arguments& arguments, index count) {
  if (arguments.has("TEXT")) {
    throw Error(ErrorCode::kUsage, "explain: TEXT has no effect with --top-features",
                "leave it out");
  }
  refuse_options(arguments,
                 {"layer", "head", "tokens", "saliency", "target", "token", "column", "truncate",
                  "sample", "joint", "time", "steps", "adapter"},
                 " with --top-features");
  ExplainPage page;
  read_options(arguments, page);
  const fs::path folder = arguments.text("DIR");
  if (arguments.has("page")) check_page(page.page, folder, page.overwrite);
  const std::vector<LabelFeatures> labels = top_features(load_classifier(folder), count);
  if (!page.page.empty()) {
    write_file_atomically(page.page, draw_features_page(labels, folder.string(), language()));
    note(fmt::format("wrote {}", page.page));
  }
  arguments.on("json") ? print_json(json_of_features(labels)) : print(text_of_features(labels));
  return 0;
}

// With --q and --kv there is no model.
int explain_steps(const Arguments& arguments) {
  if (!arguments.has("q") || !arguments.has("kv") || arguments.has("DIR")) {
    throw Error(ErrorCode::kUsage, "explain: --q and --kv belong together, without a model",
                "fovea explain --q TEXT --kv TEXT, or fovea explain DIR TEXT");
  }
  refuse_options(
      arguments,
      {"layer", "head", "tokens", "page", "overwrite", "saliency", "target", "token", "column",
       "truncate", "sample", "joint", "time", "steps", "top-features", "adapter"},
      " with --q and --kv");
  const AttentionSteps steps =
      attention_steps(context_of(arguments), arguments.text("q"), arguments.text("kv"));
  if (arguments.on("json")) {
    print_as_json(steps);
  } else {
    print(steps_text(steps, result_columns(), language()));
  }
  return 0;
}

int explain_folder(const Arguments& arguments) {
  ExplainRequest request;
  ExplainPage page;
  ExplainAdapters adapters;
  read_options(arguments, request.options, request.view, request.sample, page, adapters);
  request.adapters = std::move(adapters.adapter);
  const fs::path folder = arguments.text("DIR");
  if (arguments.has("page")) check_page(page.page, folder, page.overwrite);
  const Context context = context_of(arguments);
  const Explanation explanation =
      commands_of_model(folder, request.adapters).explain(context, folder, arguments, request);
  const bool numbers = explanation.numbers.has_value();
  numbers ? check_view(request.view, request.sample, explanation)
          : check_view(request.view, explanation);
  tell_threads(context);
  if (explanation.cut > 0) {
    warn(fmt::format("the {} is longer than the model reads: {} of {} {}s were cut",
                     numbers ? "sample" : "text", explanation.cut,
                     explanation.cut + static_cast<index>(explanation.tokens.size()),
                     numbers ? "time step" : "token"));
  }
  if (!page.page.empty()) write_page(explanation, page, folder.string());
  if (arguments.on("json")) {
    write_json(explanation, request.view, [](std::string_view piece) { return print(piece); });
  } else {
    print_colored(
        numbers ? sample_text(explanation, request.view, request.sample, result_terminal(),
                              result_columns())
                : explanation_text(explanation, request.view, result_terminal(), result_columns()));
  }
  return 0;
}

// The argument TEXT, or standard input.
std::string given_text(const Arguments& arguments) {
  if (!arguments.has("TEXT")) {
    throw Error(ErrorCode::kUsage, "explain: no text was given",
                "fovea explain DIR \"a text\"; -: read it from standard input");
  }
  const std::string text = arguments.text("TEXT");
  require_no_npz(text);
  if (text != "-") return text;
  std::string input = read_whole(
      *open_text("-"), name_of_input("-"),
      "give the part that is to be explained, such as: tail -n 20 FILE | fovea explain DIR -",
      kLongestText);
  require_no_nul(input, name_of_input("-"));
  if (input.ends_with('\n')) input.pop_back();
  return input;
}

}  // namespace

std::string explained_text(const Arguments& arguments) {
  if (arguments.has("SECOND")) {
    throw Error(ErrorCode::kUsage, "explain: two texts were given, and the model reads one",
                "put a text of several words in quotes");
  }
  return given_text(arguments);
}

std::string explained_pair(const Arguments& arguments) {
  const std::string text = given_text(arguments);
  if (arguments.has("SECOND")) return pair_text(text, arguments.text("SECOND"));
  const TextPair pair = pair_of(text);
  if (pair.first.size() < text.size()) return pair_text(pair.first, pair.second);
  throw Error(ErrorCode::kUsage, "explain: the model reads pairs of texts, and one was given",
              "fovea explain DIR \"a text\" \"another\"");
}

namespace {

int explain(const Arguments& arguments) {
  begin_command(arguments, {arguments.text("page")}, arguments.text("DIR"));
  if (arguments.has("q") || arguments.has("kv")) return explain_steps(arguments);
  if (!arguments.has("DIR")) {
    throw Error(ErrorCode::kUsage, "explain: no model was named",
                "fovea explain DIR TEXT, or without a model fovea explain --q TEXT --kv TEXT");
  }
  TopFeatures top;
  read_options(arguments, top);
  if (top.count > 0) return explain_features(arguments, top.count);
  return explain_folder(arguments);
}

}  // namespace

Command explain_command() {
  Command command{
      .name = "explain",
      .summary =
          "Shows what a model looked at in a text and what each token counts for, or attention "
          "step by step.",
      .positionals = {{"DIR", "folder of a language model, a classifier, a tagger or a translator",
                       false},
                      {"TEXT",
                       "the text (-: read it from standard input), of a tagger also a sentence of "
                       "CoNLL lines, of a translator a line; or an .npz of a model of numbers",
                       false},
                      {"SECOND", "the second text, for a model of pairs", false}},
      .options = joined({said_or_not(ExplainOptions(), "Saliency"),
                         options_of(ExplainView(), "View"),
                         options_of(TopFeatures(), "View"),
                         options_of(ExplainAdapters(), kAdaptersHeading),
                         options_of(SampleView(), "Numbers"),
                         said_or_not(ExplainPage(), "Page"),
                         {json_option("print everything as one JSON object", "View"),
                          {.name = "q",
                           .placeholder = "TEXT",
                           .help = "without a model: the characters that are queries",
                           .group = "Steps"},
                          {.name = "kv",
                           .placeholder = "TEXT",
                           .help = "without a model: the characters that are keys and values",
                           .group = "Steps"},
                          threads_option()},
                         message_options()}),
      .epilog = R"(Examples:
  fovea train classify --train reviews.tsv --encoder attention -o sentiment
  fovea explain sentiment "a wonderful film"
  fovea explain sentiment "a wonderful film" --target neg --layer 1 --head 2
  fovea explain linear "a wonderful film"  (without attention: what each token adds)
  fovea explain linear --top-features 10
  fovea explain entailment "A man sleeps." "Nobody is awake."
  fovea explain names "Ada Lovelace was born in London." --token 6
  fovea explain translator "A man rides a bicycle." --target "Ein Mann fährt Rad."
  fovea explain model "Once upon a" --saliency rollout --page page.html
  fovea explain model - --json < text.txt
  fovea explain gestures test.npz --sample 3 --joint 4
  fovea explain --q 是 --kv 你人

Prints the prediction or the translation, what the weights of every head are like, and a heat map of
the weights before dropout with the saliency of each token beside it. With --q and --kv: embeddings, scores, weights and
output of scaled dot-product attention on the characters of two texts.
Attention weights are no explanation by themselves: they say where a head looked, not what decided.
A model without attention has no weights: shown is what each token counts for.)",
      .run = explain};
  for (OptionSpec& option : command.options) {
    if (option.name != "color") continue;
    option.help = "colours of the map and of messages; auto: on a terminal [auto]";
  }
  return command;
}

}  // namespace fovea::cli

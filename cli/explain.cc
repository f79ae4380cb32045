// SPDX-License-Identifier: Apache-2.0
// fovea explain: what a trained model looked at in a text, or attention step by step.
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/field_options.h"
#include "cli/output.h"
#include "cli/task_commands.h"
#include "fovea/base/file.h"
#include "fovea/base/machine.h"
#include "fovea/config/json.h"
#include "fovea/data/frames.h"
#include "fovea/data/table/table_options.h"
#include "fovea/explain/attention_steps.h"
#include "fovea/explain/explanation.h"
#include "fovea/explain/page.h"
#include "fovea/explain/text.h"
#include "fovea/report/attention_page.h"
#include "fovea/text/compressed.h"
#include "fovea/text/utf8.h"

namespace fovea::cli {

namespace {

template <class T>
Json numbers(const std::vector<T>& values) {
  return Json(Json::Array(values.begin(), values.end()));
}

// A token may be a byte that is no text.
Json text(std::string_view token) {
  return find_invalid_utf8(token) ? Json(escape_text(token)) : Json(token);
}

Json texts(const std::vector<std::string>& tokens) {
  Json::Array array;
  for (const std::string& token : tokens) array.push_back(text(token));
  return Json(std::move(array));
}

template <class T>
Json matrix(const T* values, std::size_t rows, std::size_t columns) {
  Json::Array array;
  for (std::size_t r = 0; r < rows; ++r) {
    array.emplace_back(Json::Array(values + r * columns, values + (r + 1) * columns));
  }
  return Json(std::move(array));
}

Json prediction_of(const Explanation& explanation) {
  Json::Array array;
  for (const auto& [label, probability] : explanation.prediction) {
    array.emplace_back(Json::Object{{"label", text(label)}, {"probability", probability}});
  }
  return Json(std::move(array));
}

Json::Object tags_of(const ExplainedTags& tags) {
  Json::Object object;
  if (!tags.column.empty()) object.emplace_back("column", tags.column);
  object.emplace_back("tags", texts(tags.tags));
  object.emplace_back("probabilities", numbers(tags.probabilities));
  return object;
}

// Adds the answer of a tagger, as fovea tag --json --probabilities has it.
void add_tags(Json::Object& object, const Explanation& explanation) {
  if (explanation.token > 0) object.emplace_back("token", explanation.token);
  if (explanation.tags.size() == 1) {
    for (auto& member : tags_of(explanation.tags[0])) object.push_back(std::move(member));
    return;
  }
  Json::Array columns;
  for (const ExplainedTags& tags : explanation.tags) columns.emplace_back(tags_of(tags));
  object.emplace_back("columns", std::move(columns));
}

// [T], or with joints [T, joints].
Json by_token(const Explanation& explanation, const std::vector<float>& values) {
  if (explanation.joints() == 0) return numbers(values);
  return matrix(values.data(), explanation.tokens.size(),
                static_cast<std::size_t>(explanation.joints()));
}

// The input that was explained: a text, or a sample of numbers.
Json::Object input_of(const Explanation& explanation) {
  Json::Object object{{"kind", to_string(explanation.kind)}};
  if (explanation.numbers) {
    object.emplace_back("sample", explanation.numbers->sample);
    object.emplace_back("first_step", explanation.numbers->first_step);
    object.emplace_back("steps", static_cast<index>(explanation.tokens.size()));
    if (explanation.joints() > 0) object.emplace_back("joints", explanation.joints());
  } else {
    object.emplace_back("tokens", texts(explanation.tokens));
  }
  object.emplace_back("cut", explanation.cut);
  return object;
}

void add_translation(Json::Object& object, const Explanation& explanation) {
  const ExplainedTranslation& made = *explanation.translation;
  object.emplace_back("translation", text(made.text));
  object.emplace_back("given", made.is_given);
  object.emplace_back("log_probability", made.log_probability);
  object.emplace_back("target_tokens", texts(made.tokens));
  object.emplace_back("probabilities", numbers(made.probabilities));
  if (explanation.token > 0) object.emplace_back("token", explanation.token);
}

// The meaning of a layer's rows and columns: time steps or joints, or texts of a translator.
std::string axes_of(const Explanation& explanation, const ExplainedLayer& layer) {
  if (explanation.numbers) return layer.across ? R"(,"over":"joints")" : R"(,"over":"time")";
  if (!explanation.translation) return "";
  switch (layer.place) {
    case AttentionPlace::kText:
      break;
    case AttentionPlace::kDecoder:
      return R"(,"queries":"translation","keys":"translation so far")";
    case AttentionPlace::kCross:
      return R"(,"queries":"translation","keys":"source")";
  }
  return R"(,"queries":"source","keys":"source")";
}

// All but the layers, without the brace at the end.
std::string head_of(const Explanation& explanation) {
  Json::Object object = input_of(explanation);
  if (explanation.translation) {
    add_translation(object, explanation);
  } else if (!explanation.tags.empty()) {
    add_tags(object, explanation);
  } else if (explanation.prediction.empty()) {
    object.emplace_back("number", explanation.number);
  } else {
    object.emplace_back("prediction", prediction_of(explanation));
  }
  const Saliency& saliency = explanation.saliency;
  if (!saliency.values.empty()) {
    Json::Object shown{{"method", to_string(saliency.method)},
                       {"of", filled(saliency.of, QuoteLength::kWhole).english},
                       {"source", source_of(saliency.method)},
                       {"values", by_token(explanation, saliency.values)}};
    if (saliency.exact) {
      shown.emplace_back("value", saliency.exact->value);
      shown.emplace_back("bias", saliency.exact->bias);
    }
    object.emplace_back("saliency", std::move(shown));
  }
  if (!explanation.pooling.empty()) {
    object.emplace_back("pooling", by_token(explanation, explanation.pooling));
  }
  Json::Array notes;
  for (const Words& note : explanation.notes) notes.emplace_back(note.english);
  if (explanation.has_weights()) notes.emplace_back(kWeightsAreNoExplanation);
  object.emplace_back("notes", std::move(notes));
  std::string line = Json(std::move(object)).line();
  line.pop_back();
  return line;
}

// [queries, keys], or with joints a matrix for each sequence.
Json weights_of(const Explanation& explanation, const ExplainedLayer& layer, index head) {
  const auto of_sequence = [&](index sequence) {
    return matrix(layer.head(head, sequence).weights.data(),
                  static_cast<std::size_t>(layer.queries), static_cast<std::size_t>(layer.keys));
  };
  if (explanation.joints() == 0) return of_sequence(0);
  Json::Array sequences;
  for (index s = 0; s < layer.sequences; ++s) sequences.push_back(of_sequence(s));
  return Json(std::move(sequences));
}

std::string head_json(const Explanation& explanation, const ExplainedLayer& layer, index head) {
  const auto at = static_cast<std::size_t>(head - 1);
  Json::Object object{{"head", head}};
  if (!layer.entropy.empty()) object.emplace_back("entropy", layer.entropy[at]);
  if (!layer.distance.empty()) object.emplace_back("distance", layer.distance[at]);
  object.emplace_back("largest", layer.largest[at]);
  object.emplace_back("weights", weights_of(explanation, layer, head));
  return Json(std::move(object)).line();
}

// Prints one object in one line, in pieces: the weights of all heads may be large. It has the
// layers and heads of the view, or all.
void print_json(const Explanation& explanation, const ExplainView& view) {
  if (!print(head_of(explanation) + ",\"layers\":[")) return;
  bool first_layer = true;
  for (std::size_t n = 0; n < explanation.layers.size(); ++n) {
    const ExplainedLayer& layer = explanation.layers[n];
    if (view.layer > 0 && static_cast<index>(n) + 1 != view.layer) continue;
    std::string text =
        fmt::format("{}{{\"layer\":{},\"name\":{}{},\"heads\":[", first_layer ? "" : ",", n + 1,
                    Json(layer.name).line(), axes_of(explanation, layer));
    first_layer = false;
    bool first_head = true;
    for (index head = 1; head <= layer.heads; ++head) {
      if (view.head > 0 && head != view.head) continue;
      if (!first_head) text += ",";
      text += head_json(explanation, layer, head);
      first_head = false;
      if (!print(text)) return;
      text.clear();
    }
    if (!print(text + "]}")) return;
  }
  print("]}\n");
}

// One object in one line, with its end.
std::string json_of_steps(const AttentionSteps& steps) {
  const std::size_t T = steps.queries.size(), S = steps.keys.size(), d = AttentionSteps::kWidth;
  return Json(Json::Object{{"queries", texts(steps.queries)},
                           {"keys", texts(steps.keys)},
                           {"q", matrix(steps.q.data(), T, d)},
                           {"k", matrix(steps.k.data(), S, d)},
                           {"v", matrix(steps.k.data(), S, d)},
                           {"scores", matrix(steps.scores.data(), T, S)},
                           {"scaled", matrix(steps.scaled.data(), T, S)},
                           {"weights", matrix(steps.weights.data(), T, S)},
                           {"output", matrix(steps.output.data(), T, d)}})
             .line() +
         "\n";
}

namespace fs = std::filesystem;

// The page, and its language.
struct ExplainPage {
  std::string page;
  PageLanguage lang = PageLanguage::kEnglish;
  bool overwrite = false;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("page", page, "also write a page for a browser to this file, with every layer and head",
          {.only_command_line = true, .shown = "FILE"});
    visit("lang", lang, "language of --page, and of the steps of --q and --kv");
    visit("overwrite", overwrite, "replace a page that is there already",
          {.only_command_line = true});
  }
};

// Whether a page in the model's folder would replace a file of the model.
bool is_of_model(const fs::path& page, const fs::path& folder) {
  std::error_code ignored;
  const fs::path inside = fs::weakly_canonical(folder, ignored),
                 place = fs::canonical(page, ignored);
  return !place.empty() && place.extension() != ".html" &&
         std::mismatch(inside.begin(), inside.end(), place.begin(), place.end()).first ==
             inside.end();
}

// Checked before anything is computed.
void check_page(const std::string& page, const fs::path& model, bool overwrite) {
  if (!page.empty() && is_of_model(page, model)) {
    throw Error(ErrorCode::kUsage, fmt::format("--page: {}: is a file of the model", page),
                "choose another file, whose name ends in .html");
  }
  check_page_file({"--page", page, overwrite});
}

// Far more than any model reads: every token of a text is named, so it is in memory several times.
constexpr std::size_t kLongestText = std::size_t{16} << 20;

void write_page(const Explanation& explanation, const ExplainPage& page, std::string_view folder) {
  write_file_atomically(page.page, draw_attention_page(page_of(explanation, folder, page.lang)));
  note(fmt::format("wrote {}", page.page));
}

// With --q and --kv there is no model.
int explain_steps(const Arguments& arguments) {
  if (!arguments.has("q") || !arguments.has("kv") || arguments.has("DIR")) {
    throw Error(ErrorCode::kUsage, "explain: --q and --kv belong together, without a model",
                "fovea explain --q TEXT --kv TEXT, or fovea explain DIR TEXT");
  }
  for (const std::string_view option :
       {"layer", "head", "tokens", "page", "overwrite", "saliency", "target", "token", "column",
        "truncate", "sample", "joint", "time", "steps"}) {
    if (!arguments.has(option)) continue;
    throw Error(ErrorCode::kUsage,
                fmt::format("explain: --{} has no effect with --q and --kv", option),
                "leave it out");
  }
  ExplainPage page;
  set_from_outside(flags_of(fields_of(page)), arguments);
  const AttentionSteps steps =
      attention_steps(context_of(arguments), arguments.text("q"), arguments.text("kv"));
  print(arguments.on("json") ? json_of_steps(steps)
                             : steps_text(steps, result_columns(), page.lang));
  return 0;
}

int explain_folder(const Arguments& arguments) {
  ExplainRequest request;
  ExplainPage page;
  set_from_outside(flags_of(fields_of(request.options)), arguments);
  set_from_outside(flags_of(fields_of(request.view)), arguments);
  set_from_outside(flags_of(fields_of(request.sample)), arguments);
  set_from_outside(flags_of(fields_of(page)), arguments);
  const fs::path folder = arguments.text("DIR");
  check_log_is_apart({&page.page, 1}, folder);
  if (arguments.has("page")) check_page(page.page, folder, page.overwrite);
  const Context context = context_of(arguments);
  const Explanation explanation =
      commands_of_model(folder).explain(context, folder, arguments, request);
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
    print_json(explanation, request.view);
  } else {
    print_colored(
        numbers ? sample_text(explanation, request.view, request.sample, result_terminal(),
                              result_columns())
                : explanation_text(explanation, request.view, result_terminal(), result_columns()));
  }
  return 0;
}

}  // namespace

void refuse(const Arguments& arguments, std::initializer_list<std::string_view> options,
            std::string_view why) {
  for (const std::string_view option : options) {
    if (!arguments.has(option)) continue;
    throw Error(ErrorCode::kUsage, fmt::format("explain: --{} has no effect: {}", option, why),
                "leave it out");
  }
}

namespace {

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

CommandSpec explain_spec() {
  ExplainOptions options;
  ExplainView view;
  SampleView sample;
  ExplainPage page;
  CommandSpec spec{
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
      .options = said_or_not(options_of(flags_of(fields_of(options)), "Saliency")),
      .epilog = R"(Examples:
  fovea train classify --train reviews.tsv --encoder attention -o sentiment
  fovea explain sentiment "a wonderful film"
  fovea explain sentiment "a wonderful film" --target neg --layer 1 --head 2
  fovea explain linear "a wonderful film"  (without attention: what each token adds)
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
A model without attention has no weights: shown is what each token counts for.)"};
  const auto add = [&](OptionSpec option) { spec.options.push_back(std::move(option)); };
  for (OptionSpec& option : options_of(flags_of(fields_of(view)), "View")) add(std::move(option));
  for (OptionSpec& option : options_of(flags_of(fields_of(sample)), "Numbers")) {
    add(std::move(option));
  }
  for (OptionSpec& option : said_or_not(options_of(flags_of(fields_of(page)), "Page"))) {
    add(std::move(option));
  }
  add({"json", OptionKind::kFlag, "", "print everything as one JSON object", "View", ""});
  add({"q", OptionKind::kValue, "TEXT", "without a model: the characters that are queries", "Steps",
       ""});
  add({"kv", OptionKind::kValue, "TEXT", "without a model: the characters that are keys and values",
       "Steps", ""});
  add(threads_option());
  for (OptionSpec& option : message_options()) {
    if (option.name == "color") {
      option.help.replace(0, std::string_view("colours on stderr").size(),
                          "colours of the map and of messages");
    }
    add(std::move(option));
  }
  return spec;
}

int explain(const Arguments& arguments) {
  set_messages_from(arguments);
  warn_of_unread_variables(explain_spec().options);
  if (arguments.has("q") || arguments.has("kv")) return explain_steps(arguments);
  if (!arguments.has("DIR")) {
    throw Error(ErrorCode::kUsage, "explain: no model was named",
                "fovea explain DIR TEXT, or without a model fovea explain --q TEXT --kv TEXT");
  }
  return explain_folder(arguments);
}

}  // namespace fovea::cli

// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fovea/base/check.h"
#include "fovea/base/option.h"
#include "fovea/data/tagged/tagged_reader.h"
#include "fovea/explain/observed_text.h"
#include "fovea/model/pass_plan.h"
#include "fovea/task/tag/run.h"
#include "fovea/task/tag/tag_predictor.h"
#include "fovea/task/tag/tagger.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

// The words of a sentence of which each has a line.
std::vector<std::string> words_of_lines(const LoadedTagger& model, std::string_view text) {
  const TaggerTextOptions& trained = model.settings.text;
  const std::string file = trained.train.empty() ? "" : trained.train[0];
  const bool has_tabs = text.find('\t') != std::string_view::npos;
  const bool universal = format_of(file, trained.table) == TaggedFormat::kConllu && has_tabs;
  TaggedOptions table = trained.table;
  table.tags = TagUse::kNone;
  table.format = universal ? TaggedFormat::kConllu : TaggedFormat::kConll;
  TaggedReader reader(std::make_unique<MemoryStream>(text), "text", table);
  TaggedSentence first, second;
  if (!reader.next(first) || !reader.next(second)) return first.words;
  throw Error(ErrorCode::kInputFormat,
              fmt::format("{}: expected one sentence, got another", reader.place(second, 0)),
              "give one sentence; an empty line ends it");
}

std::vector<std::string> words_of_text(const LoadedTagger& model, std::string_view text) {
  require_utf8(text, "text");
  if (model.segments()) return characters_of(text);
  while (text.ends_with('\n') || text.ends_with('\r')) text.remove_suffix(1);
  if (text.find_first_of("\n\t") != std::string_view::npos) {
    return with_own_hint("give the columns that the files of the training have",
                         [&] { return words_of_lines(model, text); });
  }
  return sentence_of(text, WordSplit::kPunctuation).words;
}

void require_length(const LoadedTagger& model, const std::vector<std::string>& words) {
  const std::string_view word = model.segments() ? "character" : "word";
  if (words.empty()) {
    throw Error(ErrorCode::kInputTooSmall, fmt::format("explain: the text holds no {}", word),
                fmt::format("give a text of at least one {}", word));
  }
  const auto length = static_cast<index>(words.size());
  const index most = model.settings.text.max_length;
  if (length <= most) return;
  throw Error(ErrorCode::kShape,
              fmt::format("explain: the text has {} {}s; the model sees at most {} at once", length,
                          word, most),
              "give a shorter sentence");
}

// The number of the tag column that is explained.
std::size_t chosen_column(const LoadedTagger& model, const std::string& name) {
  if (name.empty()) return 0;
  const std::vector<std::string> columns = model.columns();
  if (columns.size() == 1) {
    throw Error(ErrorCode::kOptionValue, "--column: has no effect: the model has one tag column",
                "leave it out");
  }
  const auto found = std::find(columns.begin(), columns.end(), name);
  if (found != columns.end()) return static_cast<std::size_t>(found - columns.begin());
  throw Error(ErrorCode::kOptionValue,
              fmt::format("--column: the model has no tag column {}", excerpt(name)),
              it_has(columns));
}

// The target of the explanation: the score of a tag of a word.
struct Chosen {
  std::size_t column = 0;
  index word = 0;  // from 0
  std::int32_t tag = 0;
};

// Without options the tag of the first word that is not O.
Chosen chosen_tag(const LoadedTagger& model, std::size_t column,
                  const std::vector<std::int32_t>& best, const ExplainOptions& options) {
  const TagSet& tags = model.tags[column];
  const auto words = static_cast<index>(best.size());
  require_option(options.token >= 0 && options.token <= words, "token", options.token, "0 to {}",
                 words);
  Chosen chosen{.column = column, .word = std::max<index>(options.token - 1, 0)};
  if (options.token == 0) {
    const auto marks = std::find_if(best.begin(), best.end(),
                                    [&](std::int32_t tag) { return tags.name(tag) != "O"; });
    if (marks != best.end()) chosen.word = marks - best.begin();
  }
  chosen.tag = best[static_cast<std::size_t>(chosen.word)];
  if (options.target.empty()) return chosen;
  chosen.tag = tags.find(options.target);
  if (chosen.tag >= 0) return chosen;
  throw Error(ErrorCode::kOptionValue,
              fmt::format("--target: the model has no tag {}", excerpt(options.target)),
              it_has(tags.names()));
}

void add_tags(const Context& context, const LoadedTagger& model, const TagScores& scores,
              Explanation& explanation) {
  const std::vector<std::string> columns = model.columns();
  for (std::size_t c = 0; c < model.tags.size(); ++c) {
    ExplainedTags& tags = explanation.tags.emplace_back();
    if (columns.size() > 1) tags.column = columns[c];
    const std::vector<double> all = model.model->probabilities(context, scores, c);
    const auto width = static_cast<std::size_t>(model.tags[c].size());
    for (const std::int32_t tag : model.model->best_tags(context, scores, c)) {
      tags.probabilities.push_back(all[tags.tags.size() * width + static_cast<std::size_t>(tag)]);
      tags.tags.push_back(model.tags[c].name(tag));
    }
  }
}

// One of the scores [N, tags], as [1, 1].
Variable pick(Tape& tape, Variable scores, const Chosen& chosen) {
  const Variable one = tape.result(scores.rows(), scores.columns(), scores.dtype());
  with_type(scores.dtype(), [&]<class T>(std::type_identity<T>) {
    const Rows<T> values = one.value<T>();
    for (index n = 0; n < values.rows; ++n) std::fill_n(values[n], values.columns, T{0});
    values[chosen.word][chosen.tag] = T{1};
  });
  return sum(tape, multiply(tape, scores, one));
}

void add_saliency(Tape& tape, const LoadedTagger& model, const ObservedText& text,
                  const Chosen& chosen, const ExplainOptions& options, Explanation& explanation) {
  Saliency& saliency = explanation.saliency;
  saliency.method = options.saliency;
  if (options.saliency == SaliencyMethod::kNone) return;
  explanation.token = chosen.word + 1;
  const std::string& token = explanation.tokens[static_cast<std::size_t>(chosen.word)];
  if (options.saliency == SaliencyMethod::kRollout) {
    std::vector<double> row(static_cast<std::size_t>(text.tokens));
    row[static_cast<std::size_t>(chosen.word)] = 1;
    saliency.values = rollout_of(text, explanation, row);
    saliency.of = {fmt::format("the row of token {}, {{0}}", explanation.token),
                   fmt::format("第 {} 个词元 {{0}} 所在的行", explanation.token),
                   {token}};
    note_rollout(sized_stages(model.model->config()), explanation);
    return;
  }
  const bool crf = head_of(model.model->config(), chosen.column) == TagHead::kCrf;
  saliency.of = {fmt::format("the score of {{1}} for token {}, {{0}}{}", explanation.token,
                             crf ? ", before the CRF" : ""),
                 fmt::format("第 {} 个词元 {{0}} 取标签 {{1}} 的得分{}", explanation.token,
                             crf ? "（CRF 之前）" : ""),
                 {token, std::string(model.tags[chosen.column].name(chosen.tag))}};
  saliency.values = gradient_saliency(tape, text, options.saliency,
                                      [&](Variable scores) { return pick(tape, scores, chosen); });
}

}  // namespace

Explanation explain_text(const Context& context, const LoadedTagger& model, std::string_view text,
                         const ExplainOptions& options) {
  refuse_encoder(model.reads_pieces());
  if (model.model->config().features == 0) {
    throw Error(ErrorCode::kModelWrongKind,
                fmt::format("explain: the {} reads hashed features alone, and no embeddings",
                            model.segments() ? "segmenter" : "tagger"),
                "train one with --word-width and layers in --encoder, such as bilstm:128");
  }
  require_shown(model.model->attentions() > 0, options.saliency);
  require_target_counts(options);
  const std::size_t column = chosen_column(model, options.column);
  const std::vector<std::string> words = words_of_text(model, text);
  require_length(model, words);
  TaggedWords read;
  append(read, model.vocabulary, words);
  TaggedBatch batch;
  append(batch, read, 0);
  const TaggerConfig& config = model.model->config();
  const WordLoad load{.tape = {.tokens = batch.tokens(), .observes = true, .sequences = 1},
                      .characters = static_cast<index>(batch.characters.size())};
  TagScores scores;  // the newest
  const ObservedText observed{
      .logits =
          [&](Tape& tape, std::span<HeadStatistics> seen, Variable* inputs) {
            scores = model.model->scores(tape, view_of(batch).rows,
                                         {.attention = seen, .inputs = inputs});
            return scores.logits[column];
          },
      .layers = attention_layers(sized_stages(config)),
      .tokens = batch.tokens(),
      .tape_bytes = plan_pass(context, config, load).bytes()};
  require_explain_memory(observed);
  Explanation explanation{
      .kind = model.segments() ? Phrase{"segmenter", "分词器"} : Phrase{"tagger", "标注器"},
      .tokens = words};
  note_unknown(*model.vocabulary.words, read.words, explanation);
  Tape tape(context, TapeMode::kInference);
  observe_layers(tape, observed, explanation);
  const Chosen chosen =
      chosen_tag(model, column, model.model->best_tags(context, scores, column), options);
  add_tags(context, model, scores, explanation);
  add_saliency(tape, model, observed, chosen, options, explanation);
  return explanation;
}

}  // namespace fovea

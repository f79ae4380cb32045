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

// What the model reads: of its own words each is a token; of an encoder each subword is, and the
// row of a word is that of its first one.
struct ReadText {
  TaggedBatch batch = {};
  std::vector<std::string> tokens = {};
  std::vector<index> places = {};  // of the words among the tokens
};

[[noreturn]] void refuse_length(index length, std::string_view units, index most) {
  throw Error(ErrorCode::kShape,
              fmt::format("explain: the text has {} {}s; the model sees at most {} at once", length,
                          units, most),
              "give a shorter sentence");
}

void require_length(const LoadedTagger& model, const std::vector<std::string>& words) {
  const std::string_view word = model.segments() ? "character" : "word";
  if (words.empty()) {
    throw Error(ErrorCode::kInputTooSmall, fmt::format("explain: the text holds no {}", word),
                fmt::format("give a text of at least one {}", word));
  }
  const auto length = static_cast<index>(words.size());
  const index most = model.settings.text.max_length;
  if (length > most && !model.reads_pieces()) refuse_length(length, word, most);
}

ReadText read_words(const LoadedTagger& model, const std::vector<std::string>& words,
                    Explanation& explanation) {
  TaggedWords read;
  append(read, model.vocabulary, words);
  ReadText text{.tokens = words};
  append(text.batch, read, 0);
  for (index w = 0; w < std::ssize(words); ++w) text.places.push_back(w);
  note_unknown(*model.vocabulary.words, read.words, explanation);
  return text;
}

ReadText read_subwords(const LoadedTagger& model, const std::vector<std::string>& words) {
  const EncoderTokenizer& tokenizer = *model.vocabulary.pieces.tokenizer;
  const index most = model.settings.text.max_length;
  TaggedWords read;
  const std::vector<index> kept = append_subwords(read, tokenizer, most, words);
  require_tokens(!kept.empty());
  if (read.size() > 1) {
    refuse_length(std::ssize(read.characters) + tokenizer.marks(), "token", most);
  }
  ReadText text;
  append(text.batch, read, 0);
  std::vector<token> ids = read.before;
  const index first = std::ssize(ids);
  ids.insert(ids.end(), read.characters.begin(), read.characters.end());
  ids.insert(ids.end(), read.after.begin(), read.after.end());
  for (const token id : ids) text.tokens.push_back(tokenizer.name(id));
  for (std::size_t w = 0; w < kept.size(); ++w) {
    text.places.push_back(first + read.character_starts[w]);
  }
  return text;
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
  index word = 0, place = 0;  // from 0, and of its token
  std::int32_t tag = 0;
};

// The word whose row is that of token `number`, from 1; 0: the first.
index word_of_token(const ReadText& text, index number) {
  require_option(number >= 0 && number <= std::ssize(text.tokens), "token", number, "0 to {}",
                 text.tokens.size());
  if (number == 0) return 0;
  const auto found = std::ranges::find(text.places, number - 1);
  if (found != text.places.end()) return found - text.places.begin();
  throw Error(ErrorCode::kOptionValue,
              fmt::format("--token {}: {} begins no word, and has no tag", number,
                          in_quotes(text.tokens[static_cast<std::size_t>(number - 1)])),
              "name the first token of a word");
}

// Without options the tag of the first word that is not O.
Chosen chosen_tag(const LoadedTagger& model, const ReadText& text, std::size_t column,
                  const std::vector<std::int32_t>& best, const ExplainOptions& options) {
  const TagSet& tags = model.tags[column];
  Chosen chosen{.column = column, .word = word_of_token(text, options.token)};
  chosen.place = text.places[static_cast<std::size_t>(chosen.word)];
  if (options.token == 0) {
    const auto marks = std::find_if(best.begin(), best.end(),
                                    [&](std::int32_t tag) { return tags.name(tag) != "O"; });
    if (marks != best.end()) chosen.word = marks - best.begin();
    chosen.place = text.places[static_cast<std::size_t>(chosen.word)];
  }
  chosen.tag = best[static_cast<std::size_t>(chosen.word)];
  if (options.target.empty()) return chosen;
  chosen.tag = tags.find(options.target);
  if (chosen.tag >= 0) return chosen;
  throw Error(ErrorCode::kOptionValue,
              fmt::format("--target: the model has no tag {}", excerpt(options.target)),
              it_has(tags.names()));
}

void add_tags(const Context& context, const LoadedTagger& model, const ReadText& text,
              const TagScores& scores, Explanation& explanation) {
  const std::vector<std::string> columns = model.columns();
  for (std::size_t c = 0; c < model.tags.size(); ++c) {
    ExplainedTags& tags = explanation.tags.emplace_back();
    if (columns.size() > 1) tags.column = columns[c];
    const std::vector<double> all = model.model->probabilities(context, scores, c);
    const auto width = static_cast<std::size_t>(model.tags[c].size());
    tags.tags.resize(text.tokens.size());
    tags.probabilities.resize(text.tokens.size());
    const std::vector<std::int32_t> best = model.model->best_tags(context, scores, c);
    for (std::size_t w = 0; w < best.size(); ++w) {
      const auto at = static_cast<std::size_t>(text.places[w]);
      tags.tags[at] = model.tags[c].name(best[w]);
      tags.probabilities[at] = all[w * width + static_cast<std::size_t>(best[w])];
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
  explanation.token = chosen.place + 1;
  const std::string& token = explanation.tokens[static_cast<std::size_t>(chosen.place)];
  if (options.saliency == SaliencyMethod::kRollout) {
    std::vector<double> row(static_cast<std::size_t>(text.tokens));
    row[static_cast<std::size_t>(chosen.place)] = 1;
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
  if (model.model->config().features == 0 && !model.reads_pieces()) {
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
  Explanation explanation{
      .kind = model.segments() ? Phrase{"segmenter", "分词模型"} : Phrase{"tagger", "标注器"},
      .tokens = {}};
  const ReadText read =
      model.reads_pieces() ? read_subwords(model, words) : read_words(model, words, explanation);
  explanation.tokens = read.tokens;
  const auto T = static_cast<index>(read.tokens.size());
  const TaggerConfig& config = model.model->config();
  const WordLoad load{.tape = {.tokens = read.batch.tokens(), .observes = true, .sequences = 1},
                      .characters = static_cast<index>(read.batch.characters.size())};
  TagScores scores;  // the newest
  const ObservedText observed{
      .logits =
          [&](Tape& tape, std::span<HeadStatistics> seen, Variable* inputs) {
            scores = model.model->scores(tape, view_of(read.batch).rows,
                                         {.attention = seen, .inputs = inputs});
            return scores.logits[column];
          },
      .layers = encoder_attention_layers(config),
      .tokens = T,
      .tape_bytes = plan_pass(context, config, load).bytes()};
  require_explain_memory(observed);
  Tape tape(context, TapeMode::kInference);
  observe_layers(tape, observed, explanation);
  const Chosen chosen =
      chosen_tag(model, read, column, model.model->best_tags(context, scores, column), options);
  add_tags(context, model, read, scores, explanation);
  add_saliency(tape, model, observed, chosen, options, explanation);
  return explanation;
}

}  // namespace fovea

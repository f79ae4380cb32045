// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/explain.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "fovea/base/option.h"
#include "fovea/explain/observed_text.h"
#include "fovea/kernel/cross_entropy.h"
#include "fovea/model/pass_plan.h"
#include "fovea/task/translate/line_translator.h"
#include "fovea/task/translate/translator.h"

namespace fovea {

namespace {

std::string_view line_of(std::string_view text) {
  if (text.ends_with('\r')) text.remove_suffix(1);
  const auto ends = std::count(text.begin(), text.end(), '\n');
  if (ends == 0) return text;
  throw Error(ErrorCode::kInputFormat,
              fmt::format("explain: expected one line to translate, got {}", ends + 1),
              "give one of the lines; fovea translate --alignments takes many");
}

// With its end.
std::vector<token> source_tokens(const LoadedTranslator& model, std::string_view line) {
  const Tokenizer& tokenizer = model.vocabulary.source();
  require_token_memory(tokenizer, line);
  std::vector<token> ids = tokenizer.encode(line, "text");
  require_tokens(!ids.empty());
  const auto length = static_cast<index>(ids.size()), most = model.model->config().block - 1;
  if (length > most) {
    throw Error(
        ErrorCode::kShape,
        fmt::format("explain: the text has {} tokens; the model reads at most {}", length, most),
        "give a shorter text, such as one of its sentences");
  }
  ids.push_back(tokenizer.special().end);
  return ids;
}

// The translation, without marks.
struct Written {
  std::string text;
  std::vector<token> ids;
  bool has_end = true;  // behind these; what its length has ended has none
};

Written given_translation(const LoadedTranslator& model, const std::string& target) {
  const Tokenizer& tokenizer = model.vocabulary.target();
  require_token_memory(tokenizer, target);
  Written written{target, tokenizer.encode(target, "--target")};
  if (written.ids.empty()) {
    throw Error(ErrorCode::kOptionValue,
                fmt::format("--target: {} holds no token", in_quotes(target)),
                "give a translation of at least one word, or leave it out");
  }
  const auto length = static_cast<index>(written.ids.size()),
             most = model.model->config().block - 1;
  if (length <= most) return written;
  throw Error(ErrorCode::kOptionValue,
              fmt::format("--target: it has {} tokens; the model writes at most {}", length, most),
              "give a shorter translation");
}

Written best_translation(const Context& context, const LoadedTranslator& model,
                         std::string_view line) {
  LineTranslator translator(context, *model.model, model.vocabulary, {.search = model.search},
                            "text");
  translator.add({line, 1});
  TranslatedText best = with_own_hint("give a shorter text, or use a machine with more memory",
                                      [&] { return translator.translate()[0][0]; });
  const bool has_end = best.ids.empty() || best.tokens > std::ssize(best.ids);
  return {std::move(best.text), std::move(best.ids), has_end};
}

// A source and what is written of it, as a batch of one pair.
class PairOfTexts {
 public:
  PairOfTexts(const LoadedTranslator& model, std::vector<token> source, const Written& written)
      : source_(std::move(source)), targets_(written.ids), has_end_(written.has_end) {
    const SpecialTokens special = model.vocabulary.target().special();
    if (has_end_) targets_.push_back(special.end);
    read_.push_back(special.begin);
    read_.insert(read_.end(), targets_.begin(), targets_.end() - 1);
    from_[1] = static_cast<std::int32_t>(source_.size());
    to_[1] = static_cast<std::int32_t>(read_.size());
  }
  PairOfTexts(const PairOfTexts&) = delete;
  PairOfTexts& operator=(const PairOfTexts&) = delete;

  index source_tokens() const { return static_cast<index>(source_.size()); }
  index written_tokens() const { return static_cast<index>(targets_.size()); }
  std::span<const token> source() const { return source_; }
  std::span<const token> written() const { return targets_; }  ///< with the end, if it has one
  std::span<const token> without_end() const {
    return written().first(targets_.size() - (has_end_ ? 1 : 0));
  }
  TranslationBatch batch() const {
    return {.source = {.ids = {source_.data(), source_tokens()}, .offsets = {from_.data(), 2}},
            .target = {.ids = {read_.data(), written_tokens()}, .offsets = {to_.data(), 2}}};
  }

 private:
  std::vector<token> source_, targets_, read_;
  bool has_end_;
  std::array<std::int32_t, 2> from_{}, to_{};
};

ObservedText observed_pair(const Context& context, const LoadedTranslator& model,
                           const PairOfTexts& pair) {
  const TranslatorConfig& config = model.model->config();
  const TranslationLoad load{{.tokens = pair.source_tokens(), .observes = true, .sequences = 1},
                             {.tokens = pair.written_tokens(), .observes = true, .sequences = 1}};
  const double logits =
      3.0 * sizeof(float) * static_cast<double>(pair.written_tokens() * config.target_vocabulary);
  return {.logits =
              [&model, &pair](Tape& tape, std::span<HeadStatistics> seen, Variable* inputs) {
                return model.model->logits(tape, pair.batch(),
                                           {.attention = seen, .inputs = inputs});
              },
          .layers = attention_layers(config),
          .tokens = pair.source_tokens(),
          .tape_bytes = plan_pass(context, config, load).bytes() + logits,
          .written = pair.written_tokens()};
}

// Adds the probabilities that `fovea eval --score` computes.
void add_probabilities(const Context& context, Variable logits, const PairOfTexts& pair,
                       ExplainedTranslation& translation) {
  std::vector<float> losses(pair.written().size());
  const Vec<const std::int32_t> targets{pair.written().data(), pair.written_tokens()};
  cross_entropy<float>(context, logits.value<float>(), {.ids = targets}, 1,
                       {losses.data(), targets.size}, {});
  for (const float loss : losses) {
    translation.log_probability -= double{loss};
    translation.probabilities.push_back(std::exp(-double{loss}));
  }
}

void add_saliency(Tape& tape, const ObservedText& text, const PairOfTexts& pair,
                  const ExplainOptions& options, Explanation& explanation) {
  Saliency& saliency = explanation.saliency;
  saliency.method = options.saliency;
  if (options.saliency == SaliencyMethod::kNone) return;
  explanation.token = options.token;
  std::vector<std::int32_t> targets(pair.written().begin(), pair.written().end());
  saliency.of = {"the log-probability of the translation", "译文的对数概率"};
  if (options.token > 0) {
    const auto at = static_cast<std::size_t>(options.token - 1);
    std::fill(targets.begin(), targets.end(), -1);
    targets[at] = pair.written()[at];
    saliency.of = {
        fmt::format("the log-probability of token {} of the translation, {{0}}", options.token),
        fmt::format("译文第 {} 个词元 {{0}} 的对数概率", options.token),
        {explanation.translation->tokens[at]}};
  }
  saliency.values = gradient_saliency(tape, text, options.saliency, [&](Variable logits) {
    const Vec<const std::int32_t> ids{targets.data(), pair.written_tokens()};
    return scale(tape, cross_entropy(tape, logits, {.ids = ids}), -1);
  });
}

void check_options(const ExplainOptions& options, const PairOfTexts& pair) {
  require_option(
      options.token >= 0 && options.token <= pair.written_tokens(), "token", options.token,
      "0 to {}, the tokens of the translation with its end, if it has one", pair.written_tokens());
}

void require_gradient(const ExplainOptions& options) {
  if (options.saliency != SaliencyMethod::kRollout) return;
  throw Error(ErrorCode::kOptionValue,
              "--saliency rollout: it follows the attention of one text to itself; that of a "
              "translator leads from one text to another",
              "choose --saliency gradient-input");
}

// Marks that are no text are called by their names, where these are known.
void name_marks(const TranslatorVocabulary& vocabulary, std::span<const token> ids,
                std::vector<std::string>& texts) {
  for (std::size_t n = 0; n < ids.size(); ++n) {
    const auto found = vocabulary.marks.find(ids[n]);
    if (found != vocabulary.marks.end()) texts[n] = found->second;
  }
}

// The tokens of both sides as texts, and what is to be said of those that are not known.
void add_tokens(const LoadedTranslator& model, const PairOfTexts& pair, std::string_view line,
                Explanation& explanation) {
  const auto& [source, target] = model.vocabulary.both();
  explanation.tokens = token_texts(source, pair.source());
  name_marks(model.vocabulary, pair.source(), explanation.tokens);
  write_unknown(source, pair.source(), line, false, explanation.tokens);
  note_unknown(source, pair.source().first(pair.source().size() - 1), explanation);
  ExplainedTranslation& made = *explanation.translation;
  made.tokens = token_texts(target, pair.written());
  name_marks(model.vocabulary, pair.written(), made.tokens);
  write_unknown(target, pair.written(), made.text, false, made.tokens);
  note_unknown(target, pair.without_end(), explanation, UnknownIn::kTranslation);
}

}  // namespace

Explanation explain_text(const Context& context, const LoadedTranslator& model,
                         std::string_view text, const ExplainOptions& options) {
  require_gradient(options);
  const std::string_view line = line_of(text);
  std::vector<token> source = source_tokens(model, line);
  const bool is_given = !options.target.empty();
  Written written =
      is_given ? given_translation(model, options.target) : best_translation(context, model, line);
  const PairOfTexts pair(model, std::move(source), written);
  check_options(options, pair);
  const ObservedText observed = observed_pair(context, model, pair);
  require_explain_memory(observed);
  Explanation explanation{
      .kind = {"translator", "翻译器"},
      .tokens = {},
      .main_layer =
          1 + model.model->cross_attention(default_alignment_layer(model.model->config())),
      .translation = ExplainedTranslation{.text = std::move(written.text), .is_given = is_given}};
  add_tokens(model, pair, line, explanation);
  Tape tape(context, TapeMode::kInference);
  const Variable logits = observe_layers(tape, observed, explanation);
  add_probabilities(context, logits, pair, *explanation.translation);
  add_saliency(tape, observed, pair, options, explanation);
  return explanation;
}

}  // namespace fovea

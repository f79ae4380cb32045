// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/language_model/generate.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "fovea/base/check.h"
#include "fovea/base/machine.h"
#include "fovea/task/language_model/language_model.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

constexpr std::string_view kLines = "lines";

std::span<const token> seen_by_model(const std::vector<token>& tokens, index block) {
  const auto n = std::min(tokens.size(), static_cast<std::size_t>(block));
  return {tokens.data() + tokens.size() - n, n};
}

// Each hypothesis, and for a moment the one that it came from, keeps what it has computed.
void require_search_memory(const Context& context, const LoadedLanguageModel& loaded,
                           std::string_view prompt, const SamplingOptions& options, index beam) {
  require_generation_memory(context, loaded, prompt, options);
  const auto tokens = static_cast<index>(prompt_tokens(loaded, prompt).size());
  require_memory("the texts of the beam",
                 2 * static_cast<double>(beam) *
                     generation_memory(context, *loaded.model, tokens, options.max_tokens),
                 "give a smaller --beam or --max-tokens, or use a machine with more memory");
}

// The tokens that end what is written: those of a pretrained model, or the end where a line has
// one.
std::vector<token> ends_of(const LoadedLanguageModel& loaded) {
  if (loaded.pretrained) return loaded.pretrained->ends;
  const token end = loaded.tokenizer->special().end;
  if (loaded.settings.text.data != kLines || end == kNoToken) return {};
  return {end};
}

bool has(const std::vector<token>& tokens, token one) {
  return std::find(tokens.begin(), tokens.end(), one) != tokens.end();
}

}  // namespace

std::vector<token> never_trained(const LoadedLanguageModel& loaded) {
  const std::vector<token> ends = ends_of(loaded);
  std::vector<token> ids;
  for (token id = 0; id < loaded.tokenizer->vocabulary_size(); ++id) {
    if (!has(ends, id) && !loaded.tokenizer->occurs_in_learned_text(id)) ids.push_back(id);
  }
  return ids;
}

std::vector<token> prompt_tokens(const LoadedLanguageModel& loaded, std::string_view prompt) {
  const Tokenizer& tokenizer = *loaded.tokenizer;
  std::vector<token> tokens;
  if (loaded.pretrained) {
    // A text of nothing begins with the mark, whether or not others do.
    const token begin = prompt.empty() ? tokenizer.special().begin : loaded.pretrained->begin;
    if (begin != kNoToken) tokens.push_back(begin);
  } else if (loaded.settings.text.data == kLines) {
    if (tokenizer.special().begin != kNoToken) tokens.push_back(tokenizer.special().begin);
  } else if (prompt.empty()) {
    prompt = "\n";
  }
  tokenizer.append_tokens(tokens, prompt, "prompt");
  if (!tokens.empty()) return tokens;
  throw Error(
      ErrorCode::kInputTooSmall,
      "the prompt holds no token, and the text of this model begins with one",
      "give a prompt of at least one word; a model of --data lines with --marks needs none");
}

void require_generation_memory(const Context& context, const LoadedLanguageModel& loaded,
                               std::string_view prompt, const SamplingOptions& options) {
  // The prompt's tokens exist up to three times: encoded, with those before, and as the first
  // input.
  require_memory("the tokens of the prompt",
                 3.0 * sizeof(token) * static_cast<double>(loaded.tokenizer->token_count(prompt)),
                 "give a shorter prompt, or use a machine with more memory");
  const auto tokens = static_cast<index>(prompt_tokens(loaded, prompt).size());
  require_memory(
      "the text", generation_memory(context, *loaded.model, tokens, options.max_tokens),
      "give a shorter prompt or a smaller --max-tokens, or use a machine with more memory");
}

index unknown_words(const LoadedLanguageModel& loaded, std::string_view prompt) {
  const token unknown = loaded.tokenizer->special().unknown;
  if (unknown == kNoToken) return 0;
  const std::vector<token> tokens = loaded.tokenizer->encode(prompt, "prompt");
  return std::count(tokens.begin(), tokens.end(), unknown);
}

std::string text_of_tokens(const Tokenizer& tokenizer, std::span<const token> ids) {
  StreamDecoder decoder(tokenizer);
  std::string text;
  for (const token id : ids) text += decoder.push(id);
  return text + decoder.finish();
}

Tensor logits_of(const Context& context, const LanguageModel& model, std::span<const token> ids) {
  const std::int32_t offsets[] = {0, static_cast<std::int32_t>(ids.size())};
  Tape tape(context, TapeMode::kInference);
  const Variable made = model.logits(
      tape, {.ids = {ids.data(), std::ssize(ids)}, .targets = {}, .offsets = {offsets, 2}});
  const Rows<float> rows = made.value<float>();
  Tensor logits = Tensor::empty({rows.rows, rows.columns});
  for (index n = 0; n < rows.rows; ++n) std::copy_n(rows[n], rows.columns, logits.rows<float>()[n]);
  return logits;
}

index write_tokens(const LoadedLanguageModel& loaded, LanguageModelDecoder& decoder,
                   std::vector<token>& tokens, const SamplingOptions& options,
                   const std::function<bool(token)>& write) {
  const std::vector<token> ruled_out = never_trained(loaded), ends = ends_of(loaded);
  std::vector<float> logits;
  index number = 0;
  for (; number < options.max_tokens; ++number) {
    const index known = decoder.size();
    const Vec<const float> raw =
        decoder.append({tokens.data() + known, static_cast<index>(tokens.size()) - known});
    logits.assign(raw.begin(), raw.end());
    const Vec<float> choices{logits.data(), raw.size};
    for (const token id : ruled_out) choices[id] = -INFINITY;
    apply_repetition_penalty(choices, seen_by_model(tokens, loaded.settings.model.block),
                             options.repetition_penalty);
    const token chosen = sample_token(choices, options, static_cast<std::uint64_t>(number));
    if (has(ends, chosen)) break;
    tokens.push_back(chosen);
    if (!write(chosen)) return number + 1;
  }
  return number;
}

index generate_text(const Context& context, const LoadedLanguageModel& loaded,
                    std::string_view prompt, const SamplingOptions& options,
                    const std::function<bool(std::string_view)>& write) {
  check_options(options);
  require_generation_memory(context, loaded, prompt, options);
  std::vector<token> tokens = prompt_tokens(loaded, prompt);
  LanguageModelDecoder decoder(context, *loaded.model);
  StreamDecoder text(*loaded.tokenizer, prompt);
  bool read_on = true;
  const index number = write_tokens(loaded, decoder, tokens, options, [&](token chosen) {
    return read_on = write(text.push(chosen));
  });
  if (read_on) write(text.finish());
  return number;
}

LanguageModelSearch::LanguageModelSearch(const Context& context, const LanguageModel& model,
                                         std::vector<token> tokens, double repetition_penalty)
    : context_(context),
      model_(model),
      repetition_penalty_(repetition_penalty),
      prompt_(std::move(tokens)) {}

void LanguageModelSearch::append(Written& hypothesis, token id, Vec<float> logits) const {
  std::vector<token>& tokens = hypothesis.tokens;
  tokens.push_back(id);
  if (!hypothesis.decoder) {
    hypothesis.decoder = std::make_unique<LanguageModelDecoder>(context_, model_);
  }
  const index known = hypothesis.decoder->size();
  const Vec<const float> raw = hypothesis.decoder->append(
      {tokens.data() + known, static_cast<index>(tokens.size()) - known});
  std::copy(raw.begin(), raw.end(), logits.begin());
  const auto seen = std::min(tokens.size(), static_cast<std::size_t>(model_.config().block));
  apply_repetition_penalty(logits, std::span(tokens).last(seen), repetition_penalty_);
}

Rows<const float> LanguageModelSearch::step(std::span<const index> parents,
                                            Vec<const std::int32_t> ids) {
  const index V = model_.config().vocabulary;
  logits_.resize(parents.size() * static_cast<std::size_t>(V));
  const bool begins = written_.empty();
  std::vector<Written> next;
  for (const index parent : parents) {
    if (begins) {
      next.push_back({nullptr, prompt_});
      continue;
    }
    Written& from = written_[static_cast<std::size_t>(parent)];
    next.push_back({std::exchange(from.decoder, nullptr), from.tokens});
  }
  written_ = std::move(next);
  for (std::size_t i = 0; i < written_.size(); ++i) {
    append(written_[i], ids[static_cast<index>(i)],
           {logits_.data() + static_cast<index>(i) * V, V});
  }
  return {logits_.data(), static_cast<index>(parents.size()), V};
}

FoundText search_text(const Context& context, const LoadedLanguageModel& loaded,
                      std::string_view prompt, const SamplingOptions& options,
                      const SearchOptions& search) {
  check_options(options);
  check_options(search);
  require_search_memory(context, loaded, prompt, options, search.beam);
  std::vector<token> tokens = prompt_tokens(loaded, prompt);
  const std::vector<token> ends = ends_of(loaded);
  const token begin = tokens.back(), end = ends.empty() ? kNoToken : ends[0];
  tokens.pop_back();
  LanguageModelSearch model(context, *loaded.model, std::move(tokens), options.repetition_penalty);
  const index longest[] = {options.max_tokens + (end == kNoToken ? 0 : 1)};
  SearchTask task{.begin = begin, .end = end, .forbidden = {}, .longest = longest};
  task.forbidden.resize(static_cast<std::size_t>(loaded.tokenizer->vocabulary_size()));
  for (const token id : never_trained(loaded)) task.forbidden[static_cast<std::size_t>(id)] = true;
  for (const token id : ends) task.forbidden[static_cast<std::size_t>(id)] = id != end;
  const auto found = beam_search(context, model, task, search);
  FoundText best;
  if (found[0].empty()) return best;
  const Hypothesis& one = found[0][0];
  StreamDecoder text(*loaded.tokenizer, prompt);
  for (const token id : one.tokens) best.text += text.push(id);
  best.text += text.finish();
  best.tokens = std::ssize(one.tokens);
  best.log_probability = one.log_probability;
  best.score = one.score;
  return best;
}

namespace {

ChatTemplate template_of(const LoadedLanguageModel& loaded) {
  if (loaded.pretrained) return ChatTemplate(*loaded.pretrained);
  throw Error(ErrorCode::kModelWrongKind, "a model of fovea has no chat template",
              "take a model that was trained on conversations");
}

}  // namespace

Conversation::Conversation(const Context& context, const LoadedLanguageModel& loaded,
                           std::string system, const SamplingOptions& options)
    : context_(context),
      loaded_(loaded),
      template_(template_of(loaded)),
      options_(options),
      decoder_(context, *loaded.model) {
  check_options(options);
  if (system.empty()) system = template_.usual_system();
  has_system_ = !system.empty();
  if (!has_system_) return;
  require_utf8(system, "--system");
  turns_.push_back({"system", std::move(system)});
}

// The tokens of the turns, without the oldest ones where all are too many.
std::vector<token> Conversation::fitting_tokens() {
  const index block = loaded_.settings.model.block;
  const index room = block - std::min(options_.max_tokens, block / 2);
  const std::size_t first = has_system_ ? 1 : 0;
  for (;;) {
    std::vector<token> tokens = template_.tokens(turns_);
    if (std::ssize(tokens) <= room) return tokens;
    if (turns_.size() == first + 1) {
      const index size = std::ssize(tokens);
      fail(ErrorCode::kInputFormat,
           Hint{"write a shorter message, or choose a smaller --max-tokens"},
           "the message has {} tokens with its marks; there is room for {}", size, room);
    }
    const auto oldest = turns_.begin() + static_cast<std::ptrdiff_t>(first);
    turns_.erase(oldest, oldest + 2);  // a question and its answer
  }
}

index Conversation::answer(std::string_view message,
                           const std::function<bool(std::string_view)>& write) {
  require_utf8(message, "message");
  turns_.push_back({"user", std::string(message)});
  try {
    return answer_turns(write);
  } catch (...) {
    turns_.pop_back();  // a question without its answer
    throw;
  }
}

index Conversation::answer_turns(const std::function<bool(std::string_view)>& write) {
  std::vector<token> tokens = fitting_tokens();
  require_memory(
      "the answer",
      generation_memory(context_, *loaded_.model, std::ssize(tokens), options_.max_tokens),
      "give a smaller --max-tokens or --max-context");
  // The text so far is cut anew, and may have become other tokens.
  const auto known = static_cast<std::size_t>(decoder_.size());
  if (known >= tokens.size() ||
      !std::equal(tokens_.begin(), tokens_.begin() + decoder_.size(), tokens.begin())) {
    decoder_.clear();
  }
  tokens_ = std::move(tokens);
  StreamDecoder text(*loaded_.tokenizer);
  std::string answer;
  bool read_on = true;
  const auto pass_on = [&](std::string_view part) {
    answer += part;
    return read_on = read_on && write(part);
  };
  const index count = write_tokens(loaded_, decoder_, tokens_, options_,
                                   [&](token chosen) { return pass_on(text.push(chosen)); });
  pass_on(text.finish());
  turns_.push_back({"assistant", std::move(answer)});
  ++options_.seed;
  return count;
}

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
// Prepares a run from its options.
#include <algorithm>

#include "fovea/base/bytes.h"
#include "fovea/base/check.h"
#include "fovea/base/machine.h"
#include "fovea/config/json.h"
#include "fovea/data/corpus.h"
#include "fovea/task/language_model/adapters.h"
#include "fovea/task/language_model/base.h"
#include "fovea/task/language_model/chat_data.h"
#include "fovea/task/language_model/language_model.h"
#include "fovea/task/setting_parts.h"
#include "fovea/tensor/checksum.h"
#include "fovea/text/vocabulary.h"
#include "fovea/train/schedule.h"

namespace fovea {

namespace {

RunIdentity identity_of(const LanguageModelSettings& s, const Corpus& corpus,
                        const TokenizerData& tokenizer) {
  std::string cut = fmt::format("{} {}", s.text.data, corpus.train.size());
  if (!s.text.by_length) cut += " as they come";
  if (s.text.max_length > 0) {
    cut += fmt::format(" {} {}", s.text.max_length, to_string(s.text.truncate));
  }
  return identity_of_run(to_json(s.model), xxh3_128({cut, corpus.train, corpus.valid}),
                         xxh3_128(to_text(tokenizer)));
}

// The book's tables are 50 times as wide as GPT-2's, and its output has a matrix of its own.
void note_wide_logits(LanguageModelRun& run) {
  if (run.settings.model.init != InitScheme::kSource || !run.settings.model.tie) return;
  run.notes.push_back(
      "--init source starts token embeddings as normal(0, 1), and --tie makes the logits of them: "
      "the first losses are huge (--no-tie is the book's)");
}

std::unique_ptr<Tokenizer> learn_from(const TextOptions& options, std::string_view text) {
  LearnOptions learn{
      .lower = options.lower, .marks = options.marks, .min_count = options.min_count};
  if (!options.vocabulary.empty()) {
    const std::string& file = options.vocabulary;
    learn.words = words_of_list(read_text({&file, 1}, TextEncoding::kUtf8), name_of_input(file),
                                options.marks);
  }
  return learn_tokenizer(options.tokenizer, text, "training text",
                         with_subword_model(std::move(learn), options.tokenizer_model));
}

void note_lines(const Sequences& sequences, const LanguageModelRun& run, std::string_view text,
                std::vector<std::string>& notes) {
  const TextOptions& options = run.settings.text;
  if (const index single = sequences.single_lines; single > 0) {
    notes.push_back(
        fmt::format("{}: lines of a single token, which predict nothing: {}; they are "
                    "left out",
                    text, single));
  }
  if (const index truncated = sequences.truncated_lines; truncated > 0) {
    notes.push_back(fmt::format("{}: lines of more than {} tokens: {} of {}; their {} is dropped",
                                text, options.max_length, truncated, sequences.slices.size(),
                                to_string(options.truncate)));
  }
}

// A word must not be cut in two, either: nor those that pieces are parts of.
SplitAt split_of(const TextOptions& options) {
  const SplitAt split_at = data_kind(options.data).split_at;
  if (options.tokenizer == kPretrainedKind) return split_at;
  const TokenizerKind& kind = tokenizer_kind(options.tokenizer);
  const bool words = kind.has_words || kind.has_model;
  return words && split_at == SplitAt::kCharacter ? SplitAt::kWord : split_at;
}

index count_unknown(const Sequences& sequences, token unknown) {
  return std::count(sequences.stream.begin(), sequences.stream.end(), unknown);
}

std::string share_of(index count, const Sequences& sequences) {
  const auto all = static_cast<double>(std::max<std::size_t>(sequences.stream.size(), 1));
  return fmt::format("{:.1f} %", 100 * static_cast<double>(count) / all);
}

void note_text(LanguageModelRun& run) {
  const Sequences& training = run.training->sequences();
  const Sequences* validation = run.validation ? &run.validation->sequences() : nullptr;
  note_lines(training, run, "training text", run.notes);
  if (validation != nullptr) note_lines(*validation, run, "validation text", run.notes);
  const token unknown = run.tokenizer->special().unknown;
  if (unknown == kNoToken) return;
  const index trained = count_unknown(training, unknown);
  const index validated = validation != nullptr ? count_unknown(*validation, unknown) : 0;
  if (trained == 0 && validated == 0) return;
  std::string note =
      fmt::format("unknown words: {} of the training text", share_of(trained, training));
  if (validation != nullptr) {
    note += fmt::format(", {} of the validation text", share_of(validated, *validation));
  }
  run.notes.push_back(note);
}

// What is said of pairs that are left out.
void note_pairs(const ChatSequences& found, std::string_view name, index block,
                std::vector<std::string>& notes) {
  if (found.left_out > 0) {
    notes.push_back(fmt::format("{}: pairs with more than {} tokens: {} of {}; they are left out",
                                name, block, found.left_out, found.conversations));
  }
  if (found.equal > 0) {
    notes.push_back(fmt::format("{}: pairs of equal answers: {} of {}; they are left out", name,
                                found.equal, found.conversations));
  }
}

Sequences conversations(LanguageModelRun& run, std::string_view text, std::string_view name,
                        const LanguageModelSettings& settings) {
  if (!run.pretrained) {
    throw Error(ErrorCode::kModelWrongKind, "--data chat: the base has no chat template",
                "begin from a model that was trained on conversations");
  }
  if (settings.text.objective == LanguageObjective::kDpo) {
    const CutOptions cut = batches_of(settings).cut();
    ChatSequences pairs = read_preferences(text, *run.pretrained, cut, name);
    note_pairs(pairs, name, cut.block, run.notes);
    return std::move(pairs.sequences);
  }
  ChatSequences found = read_conversations(text, *run.pretrained, batches_of(settings).cut(),
                                           settings.text.loss_on, name);
  if (found.truncated > 0) {
    run.notes.push_back(fmt::format(
        "{}: conversations of more than {} tokens: {} of {}; their end is dropped{}", name,
        batches_of(settings).block, found.truncated, found.conversations,
        found.left_out > 0
            ? fmt::format(", and {} without an answer then are left out", found.left_out)
            : ""));
  }
  return std::move(found.sequences);
}

std::unique_ptr<TrainingBatches> training_batches(LanguageModelRun& run, std::string_view text,
                                                  const LanguageModelSettings& settings) {
  const BatchOptions batches = batches_of(settings);
  if (settings.text.data == kChat) {
    return shuffled_sequences(conversations(run, text, "training text", settings), batches);
  }
  return data_kind(settings.text.data).training(text, *run.tokenizer, batches);
}

Sequences validation_sequences(LanguageModelRun& run, std::string_view text,
                               const LanguageModelSettings& settings) {
  if (settings.text.data == kChat) return conversations(run, text, "validation text", settings);
  return data_kind(settings.text.data)
      .evaluation(text, *run.tokenizer, batches_of(settings).cut(), "validation text");
}

}  // namespace

LanguageModelRun prepare_run(LanguageModelSettings settings, std::optional<TokenizerData> known,
                             RunWeights weights) {
  check_options(settings);
  // Checks the sizes before any file is read.
  LanguageModelConfig probe = settings.model;
  probe.vocabulary = kFirstLearnedToken;
  resolve(probe);

  const Corpus corpus =
      read_corpus({.train = settings.text.train,
                   .valid = settings.text.valid,
                   .valid_fraction = settings.text.valid_fraction,
                   .encoding = settings.text.tokenizer == "byte" ? TextEncoding::kAnyBytes
                                                                 : TextEncoding::kUtf8,
                   .split_at = split_of(settings.text)});

  LanguageModelRun run;
  const bool adapts = settings.from.lora > 0;
  if (known && adapts) require_same_base(settings.from);
  run.from_base = !settings.from.base.empty() && (weights == RunWeights::kNew || adapts);
  if (run.from_base && !known) known = tokenizer_of_base(settings.from.base);
  if (known) {
    TextCutter cutter = make_cutter(*known, "tokenizer.txt");
    run.tokenizer = std::move(cutter.tokenizer);
    run.pretrained = std::move(cutter.pretrained);
  } else {
    run.tokenizer = learn_from(settings.text, corpus.train);
  }
  run.tokenizer_data = known ? std::move(*known) : run.tokenizer->data();
  settings.model.vocabulary = run.tokenizer->vocabulary_size();
  settings.model = resolve(settings.model);
  const BatchOptions batches = batches_of(settings);
  require_token_memory(corpus.train, *run.tokenizer, batches.block);
  run.training = training_batches(run, corpus.train, settings);
  if (!corpus.valid.empty()) {
    require_token_memory(corpus.valid, *run.tokenizer, batches.block);
    run.validation.emplace(validation_sequences(run, corpus.valid, settings),
                           settings.text.batch_size);
  }
  run.identity = identity_of(settings, corpus, run.tokenizer_data);
  run.text_bytes = corpus.train.size() + corpus.valid.size();
  run.notes.insert(run.notes.begin(), corpus.notes.begin(), corpus.notes.end());
  run.settings = std::move(settings);
  run.frozen = frozen_count(run);
  if (adapts) run.adapted = plan_adapted(run.settings, architecture_name(run.pretrained));
  note_text(run);
  note_warmup(run);
  note_wide_logits(run);
  return run;
}

}  // namespace fovea

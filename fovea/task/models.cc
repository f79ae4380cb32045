// SPDX-License-Identifier: Apache-2.0
#include "fovea/models.h"

#include <algorithm>
#include <utility>

#include "fovea/base/error.h"
#include "fovea/base/shares.h"
#include "fovea/pretrained/pretrained.h"
#include "fovea/task/classify/classifier.h"
#include "fovea/task/classify/text_predictor.h"
#include "fovea/task/embed/embedder.h"
#include "fovea/task/embed/sentence_encoder.h"
#include "fovea/task/encoder_peft.h"
#include "fovea/task/language_model/generate.h"
#include "fovea/task/language_model/language_model.h"
#include "fovea/task/tag/tag_predictor.h"
#include "fovea/task/tag/tagger.h"
#include "fovea/task/task_table.h"
#include "fovea/task/translate/line_translator.h"
#include "fovea/task/translate/translator.h"

namespace fovea::models {

namespace fs = std::filesystem;

namespace {

// f(what a call computes with), which keeps its memory for the next call.
template <class Worker, class F>
auto with_lent(Lent<Worker>& workers, const std::function<std::unique_ptr<Worker>()>& make,
               const F& f) {
  std::invoke_result_t<F, Worker&> result;
  workers.lend(make, [&](Worker& worker) { result = f(worker); });
  return result;
}

// The text for `write`, which also goes to `on_text` while that wants it.
struct Written {
  std::string text;
  const OnText& on_text;

  bool operator()(std::string_view piece) {
    text += piece;
    return !on_text || on_text(piece);
  }
};

}  // namespace

Kind kind_of(const fs::path& model, const std::vector<std::string>& adapters) {
  if (adapters.empty() && is_encoder(model)) return Kind::kEncoder;
  switch (kind_of_model(model, adapters)) {
    case ModelKind::kLanguageModel:
      return Kind::kLanguageModel;
    case ModelKind::kClassifier:
      return Kind::kClassifier;
    case ModelKind::kTagger:
      return Kind::kTagger;
    case ModelKind::kTranslator:
      return Kind::kTranslator;
    case ModelKind::kSentenceEncoder:
      return Kind::kEncoder;
  }
  fail(ErrorCode::kInternal, "{}: a kind of model without a name", model.string());
}

Model load(const fs::path& model, const LoadOptions& options) {
  switch (kind_of(model, options.adapters)) {
    case Kind::kLanguageModel:
      return LanguageModel(model, options);
    case Kind::kEncoder:
      return Encoder(model, options);
    case Kind::kClassifier:
      return Classifier(model, options);
    case Kind::kTagger:
      return Tagger(model, options);
    case Kind::kTranslator:
      return Translator(model, options);
  }
  fail(ErrorCode::kInternal, "{}: a kind of model without a class", model.string());
}

// ------------------------------------------------------------------------------ language models

struct LanguageModel::Loaded {
  Context context;
  LoadedLanguageModel model;
};

LanguageModel::LanguageModel(const fs::path& model, const LoadOptions& options)
    : loaded_(new Loaded{options.context,
                         load_language_model(model, {.max_context = options.max_context,
                                                     .adapter = options.adapters,
                                                     .weights = WeightTypes::kAsTheyLie})}) {}

std::vector<token> LanguageModel::encode(std::string_view text) const {
  return loaded_->model.tokenizer->encode(text);
}

std::string LanguageModel::decode(std::span<const token> ids) const {
  return text_of_tokens(*loaded_->model.tokenizer, ids);
}

Tensor LanguageModel::logits(std::span<const token> ids) const {
  return logits_of(loaded_->context, *loaded_->model.model, ids);
}

std::string LanguageModel::generate(std::string_view prompt, const SamplingOptions& options,
                                    const OnText& on_text) const {
  Written written{.text = {}, .on_text = on_text};
  generate_text(loaded_->context, loaded_->model, prompt, options, std::ref(written));
  return std::move(written.text);
}

struct Chat::Turns {
  std::shared_ptr<const LanguageModel::Loaded> loaded;
  Conversation conversation;
};

Chat::Chat(std::unique_ptr<Turns> turns) : turns_(std::move(turns)) {}
Chat::~Chat() = default;
Chat::Chat(Chat&&) noexcept = default;
Chat& Chat::operator=(Chat&&) noexcept = default;

Chat LanguageModel::chat(std::string system, const SamplingOptions& options) const {
  return Chat(std::unique_ptr<Chat::Turns>(new Chat::Turns{
      loaded_, Conversation(loaded_->context, loaded_->model, std::move(system), options)}));
}

std::string Chat::answer(std::string_view message, const OnText& on_text) {
  Written written{.text = {}, .on_text = on_text};
  turns_->conversation.answer(message, std::ref(written));
  return std::move(written.text);
}

// ------------------------------------------------------------------------------------- encoders

struct Encoder::Loaded {
  Context context;
  SentenceModel model;
  mutable Lent<Embedder> embedders = {};
};

Encoder::Encoder(const fs::path& model, const LoadOptions& options)
    : loaded_(new Loaded{options.context, load_embedder(model, options.adapters)}) {}

index Encoder::width() const { return loaded_->model.width(); }

Tensor Encoder::embed(const std::vector<std::string>& texts) const {
  const SentenceModel& model = loaded_->model;
  const auto make = [&] {
    return std::make_unique<Embedder>(loaded_->context, model, embed_rules(model, {}, {}));
  };
  return with_lent<Embedder>(loaded_->embedders, make,
                             [&](Embedder& embedder) { return embedder.embed_all(texts); });
}

std::vector<double> Encoder::similarity(const std::string& text,
                                        const std::vector<std::string>& others) const {
  const Tensor one = embed({text}), vectors = embed(others);
  const auto rows = vectors.rows<float>();
  std::vector<double> cosines;
  for (index n = 0; n < rows.rows; ++n) {
    cosines.push_back(cosine(one.vec<float>(), {rows[n], rows.columns}));
  }
  return cosines;
}

// ---------------------------------------------------------------------------------- classifiers

struct Classifier::Loaded {
  Context context;
  LoadedClassifier model;
  mutable Lent<TextPredictor> predictors = {};

  ClassifierAnswers answers() const {
    return {model.config().task, model.labels, model.numbers, model.thresholds()};
  }
};

Classifier::Classifier(const fs::path& model, const LoadOptions& options)
    : loaded_(
          new Loaded{options.context, load_classifier(model, InputKind::kText, options.adapters)}) {
  if (!loaded_->model.reads_frames()) return;
  throw Error(ErrorCode::kModelWrongKind,
              fmt::format("{}: the model reads arrays of numbers, and no texts", model.string()),
              "use the command: fovea classify DIR FILE");
}

const std::vector<std::string>& Classifier::labels() const { return loaded_->model.labels; }

std::vector<Classified> Classifier::classify(const std::vector<std::string>& texts) const {
  const auto make = [&] {
    return std::make_unique<TextPredictor>(loaded_->context, loaded_->model);
  };
  const Tensor values = with_lent<TextPredictor>(
      loaded_->predictors, make,
      [&](TextPredictor& predictor) { return predictor.predict_all(texts); });
  const ClassifierAnswers answers = loaded_->answers();
  std::vector<Classified> all(texts.size());
  for (std::size_t n = 0; n < all.size(); ++n) {
    const auto rows = values.rows<float>();
    const Vec<const float> row{rows[static_cast<index>(n)], rows.columns};
    if (answers.task == ClassifierTask::kRegression) {
      for (const float value : row) all[n].values.push_back(answers.numbers.from_model(value));
      continue;
    }
    all[n].values.assign(row.begin(), row.end());
    for (const index label : chosen_labels(answers, row, {})) {
      all[n].labels.push_back(answers.labels[static_cast<std::size_t>(label)]);
    }
  }
  return all;
}

// -------------------------------------------------------------------------------------- taggers

struct Tagger::Loaded {
  Context context;
  LoadedTagger model;
  mutable Lent<TagPredictor> predictors = {};

  // [sentences], [tag columns]
  std::vector<std::vector<TaggedByModel>> tag(
      const std::vector<std::vector<std::string>>& sentences) const {
    const auto make = [&] { return std::make_unique<TagPredictor>(context, model); };
    return with_lent<TagPredictor>(predictors, make,
                                   [&](TagPredictor& one) { return one.tag(sentences); });
  }
};

Tagger::Tagger(const fs::path& model, const LoadOptions& options)
    : loaded_(new Loaded{options.context, load_tagger(model, options.adapters)}) {}

bool Tagger::segments() const { return loaded_->model.segments(); }
std::vector<std::string> Tagger::columns() const { return loaded_->model.columns(); }

std::vector<Tagged> Tagger::tag(const std::vector<std::string>& texts) const {
  std::vector<std::vector<std::string>> sentences;
  sentences.reserve(texts.size());
  if (!segments()) {
    for (const std::string& text : texts) {
      sentences.push_back(sentence_of(text, WordSplit::kPunctuation).words);
    }
    return tag_words(std::move(sentences));
  }
  for (const std::string& text : texts) sentences.push_back(characters_of(text));
  const auto found = loaded_->tag(sentences);
  std::vector<Tagged> all(texts.size());
  for (std::size_t n = 0; n < all.size(); ++n) {
    std::vector<std::string> tags;
    for (const FoundWord& word : words_of(texts[n], loaded_->model.tags[0], found[n][0])) {
      all[n].words.push_back(texts[n].substr(word.begin, word.end - word.begin));
      tags.push_back(word.tag);
    }
    all[n].tags.push_back(std::move(tags));
  }
  return all;
}

std::vector<Tagged> Tagger::tag_words(std::vector<std::vector<std::string>> sentences) const {
  if (segments()) {
    throw Error(ErrorCode::kModelWrongKind, "a segmenter finds the words itself",
                "give it texts: tag()");
  }
  const auto found = loaded_->tag(sentences);
  std::vector<Tagged> all(sentences.size());
  for (std::size_t n = 0; n < all.size(); ++n) {
    all[n].words = std::move(sentences[n]);
    for (std::size_t c = 0; c < found[n].size(); ++c) {
      std::vector<std::string>& tags = all[n].tags.emplace_back();
      for (const std::int32_t tag : found[n][c].tags) {
        tags.push_back(loaded_->model.tags[c].name(tag));
      }
    }
  }
  return all;
}

// ---------------------------------------------------------------------------------- translators

struct Translator::Loaded {
  Context context;
  LoadedTranslator model;
};

Translator::Translator(const fs::path& model, const LoadOptions& options)
    : loaded_(new Loaded{options.context, load_translator(model)}) {
  if (options.adapters.empty()) return;
  throw Error(ErrorCode::kUsage, "load: no adapters of translators are read", "leave adapters out");
}

std::vector<std::string> Translator::translate(const std::vector<std::string>& lines) const {
  return translate(lines, loaded_->model.search);
}

std::vector<std::string> Translator::translate(const std::vector<std::string>& lines,
                                               const SearchOptions& search) const {
  const LoadedTranslator& model = loaded_->model;
  LineTranslator translator(loaded_->context, *model.model, model.vocabulary, {.search = search},
                            "lines");
  return *translate_all(translator, lines, [] { return false; });
}

}  // namespace fovea::models

// SPDX-License-Identifier: Apache-2.0
// The files of a classifier, and what loading one takes.
#include "fovea/task/classify/classifier.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <string>

#include "fovea/base/check.h"
#include "fovea/config/json.h"
#include "fovea/pretrained/pretrained.h"
#include "fovea/pretrained/sentence_model.h"
#include "fovea/task/classify/linear.h"
#include "fovea/task/classify/run.h"
#include "fovea/task/encoder_adapters.h"
#include "fovea/task/encoder_peft.h"
#include "fovea/task/load_parts.h"
#include "fovea/text/utf8.h"
#include "fovea/train/model_folder.h"

namespace fovea {

namespace {

namespace fs = std::filesystem;

// config.json: the kind of the model, what it says, then all its settings.
struct ClassifierFile {
  std::string kind{kClassifierKind};
  ClassifierOutputs outputs = {};
  std::vector<std::string> feature_means = {}, feature_deviations = {};
  ClassifierSettings settings = {};

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("kind", kind, "what the model does");
    visit("labels", outputs.labels, "labels in the order of the outputs; none for numbers");
    visit("center", outputs.numbers.center, "regression: this number is 0 to the model");
    visit("scale", outputs.numbers.scale, "regression: what is 1 to the model");
    visit("label_of_two", outputs.label_of_two,
          "column of the label, from 1, in texts to train on of two columns, or pairs of three; 0: "
          "of others");
    visit("columns", outputs.columns, "how the texts to train on were read");
    visit("embeddings", outputs.vectors, "words that began with a vector of --embeddings");
    visit("feature_means", feature_means, "input npz: of each feature, which is 0 to the model");
    visit("feature_deviations", feature_deviations, "input npz: what is 1 to the model");
    settings.visit_fields(visit);
  }
};

// Lists of a configuration hold texts. These have the fewest digits that read back to the number.
std::vector<std::string> texts_of(const std::vector<double>& numbers) {
  std::vector<std::string> texts;
  for (const double number : numbers) texts.push_back(fmt::format("{}", number));
  return texts;
}

std::vector<double> numbers_of(const std::vector<std::string>& texts, const std::string& name) {
  std::vector<double> numbers;
  for (const std::string& text : texts) {
    double number = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    if (stop != end || error != std::errc() || !std::isfinite(number)) {
      fail(ErrorCode::kModelDamaged, "{}: expected numbers of features, got {}", name,
           escape_text(text));
    }
    numbers.push_back(number);
  }
  return numbers;
}

ModelSizes sizes_of(const ClassifierConfig& config) {
  const ClassifierConfig c = resolve(config);
  return {.layers = layer_count(sized_stages(c)) + c.base.layers,
          .largest_matrix =
              std::max(static_cast<double>(c.width) *
                           static_cast<double>(std::max({c.vocabulary, c.features, c.joints})),
                       static_cast<double>(c.ngram_width) * static_cast<double>(c.buckets)),
          .parameters = [c] { return parameter_count(c); },
          .bytes = [c] { return model_memory(c); }};
}

void check_form(const TableForm& form, const std::string& file) {
  const bool divided = form.format == TableFormat::kTsv || form.format == TableFormat::kCsv;
  const bool counted = divided ? form.columns > 0 && form.separator.size() == 1
                               : form.columns == 0 && form.separator.empty();
  const auto in = [&](index at, index least) { return at >= least && at <= form.columns; };
  if (counted && in(form.text_at, divided ? 1 : 0) && in(form.second_at, 0) &&
      in(form.label_at, 0)) {
    return;
  }
  fail(ErrorCode::kModelDamaged,
       "{}: expected columns in 1 to {} and what separates them, got {}, {}, {} and {}", file,
       form.columns, form.text_at, form.second_at, form.label_at, excerpt(form.separator));
}

void check_outputs(const LoadedClassifier& loaded, const fs::path& folder) {
  const ClassifierConfig& model = loaded.settings.model;
  const bool numbers = model.task == ClassifierTask::kRegression;
  const index expected = numbers ? 0 : model.classes;
  const auto held = static_cast<index>(loaded.labels.size());
  const std::string file = (folder / "config.json").string();
  if (held != expected) {
    fail(ErrorCode::kModelDamaged, "{}: expected {} labels, got {}", file, expected, held);
  }
  const index fewest = fewest_tokens(loaded.settings.text.input);
  const bool is_cut = model.kind != ClassifierModel::kLinear;
  if (is_cut &&
      (loaded.settings.text.max_length < fewest || loaded.settings.text.max_length > model.block)) {
    // A search that was stopped has not chosen one: then the weights are what is missing.
    if (!fs::exists(folder / kWeightsName)) read_model_weights(folder);
    fail(ErrorCode::kModelDamaged, "{}: expected a max_length in {} to {}, got {}", file, fewest,
         model.block, loaded.settings.text.max_length);
  }
  check_stored(file, [&] { check_options(loaded.settings.text.table); });
  const auto features = static_cast<std::size_t>(model.features);
  const auto& [means, deviations] = loaded.frames;
  const bool positive = std::all_of(deviations.begin(), deviations.end(),
                                    [](double deviation) { return deviation > 0; });
  if (means.size() != features || deviations.size() != features || !positive ||
      loaded.reads_frames() != (features > 0)) {
    fail(ErrorCode::kModelDamaged,
         "{}: expected a mean and a deviation above 0 for each of {} features, got {} and {}", file,
         features, means.size(), deviations.size());
  }
  const index columns = loaded.reads_pairs() ? 3 : 2;
  if (loaded.label_of_two < 0 || loaded.label_of_two > columns) {
    fail(ErrorCode::kModelDamaged, "{}: expected a label_of_two in 0 to {}, got {}", file, columns,
         loaded.label_of_two);
  }
  check_form(loaded.columns, file);
  if (loaded.reads_pairs() != (model.pair_encoder != PairEncoder::kNone)) {
    fail(ErrorCode::kModelDamaged, "{}: input {} does not fit pair_encoder {}", file,
         to_string(loaded.settings.text.input), to_string(model.pair_encoder));
  }
  if (!(loaded.numbers.scale > 0)) {
    fail(ErrorCode::kModelDamaged, "{}: expected a scale above 0, got {}", file,
         loaded.numbers.scale);
  }
}

}  // namespace

std::string config_text(const ClassifierSettings& settings, const ClassifierOutputs& outputs) {
  ClassifierFile config{.outputs = outputs,
                        .feature_means = texts_of(outputs.frames.mean),
                        .feature_deviations = texts_of(outputs.frames.deviation),
                        .settings = settings};
  return to_json(config);
}

ClassifierConfigFile classifier_config_from_text(std::string_view text, const std::string& name) {
  require_model_kind(text, name, kClassifierKind, "a text classifier");
  ClassifierFile config;
  config.settings.model.set_first_revision();
  config.settings.model.ngrams = 1;  // models of before there were n-grams do not say so
  from_json(text, {name, ErrorCode::kModelDamaged}, config, MissingKeys::kKeepTheirValue);
  config.outputs.frames = {numbers_of(config.feature_means, name),
                           numbers_of(config.feature_deviations, name)};
  return {config.settings, config.outputs};
}

namespace {

ClassifierTask task_of(EncoderProblem problem) {
  switch (problem) {
    case EncoderProblem::kOneLabel:
      return ClassifierTask::kSingleLabel;
    case EncoderProblem::kAnyLabels:
      return ClassifierTask::kMultiLabel;
    case EncoderProblem::kNumber:
      return ClassifierTask::kRegression;
  }
  return ClassifierTask::kSingleLabel;
}

// A model from elsewhere. Its settings say what predictions and their messages ask for.
LoadedClassifier load_foreign(const fs::path& folder, InputKind input, const EncoderPeft& peft) {
  EncoderFolder read(peft.head() == nullptr ? folder : transformer_folder(folder), BertHead::kText,
                     peft.head());
  LoadedClassifier loaded;
  ClassifierConfig& config = loaded.settings.model;
  config = classifier_on(read.config);
  config.task = task_of(read.problem);
  config.classes = read.config.outputs;
  loaded.settings.text.input = input;
  if (input == InputKind::kPairs) {
    make_cross_encoder(config, *read.text.tokenizer);
    require_pairs(read.text, folder.string());
  }
  loaded.settings.text.tokenizer = kPretrainedKind;
  loaded.settings.text.max_length = read.text.max_length;
  loaded.model = std::make_unique<Classifier>(
      config, ParameterSetOptions{.memory = ParameterMemory::kUnwritten});
  read.read(loaded.model->parameters());
  peft.apply(loaded.model->parameters());
  if (config.task != ClassifierTask::kRegression) loaded.labels = std::move(read.labels);
  loaded.pieces = std::move(read.text);
  loaded.is_foreign = true;
  return loaded;
}

}  // namespace

index LoadedClassifier::parameters() const { return parameter_count(settings.model); }

LoadedClassifier load_classifier(const fs::path& folder, InputKind foreign,
                                 std::span<const std::string> adapters) {
  const EncoderPeft peft(folder, adapters, BertHead::kText);
  if (is_hugging_face(folder) || (peft.head() != nullptr && is_encoder(folder))) {
    return load_foreign(folder, foreign, peft);
  }
  ClassifierConfigFile file = classifier_config_from_text(read_model_file(folder, "config.json"),
                                                          (folder / "config.json").string());
  LoadedClassifier loaded{.settings = std::move(file.settings),
                          .tokenizer = nullptr,
                          .labels = std::move(file.outputs.labels),
                          .numbers = file.outputs.numbers,
                          .frames = std::move(file.outputs.frames),
                          .label_of_two = file.outputs.label_of_two,
                          .columns = std::move(file.outputs.columns),
                          .model = nullptr,
                          .linear = nullptr};
  check_outputs(loaded, folder);
  const ClassifierConfig& config = loaded.settings.model;
  if (config.kind == ClassifierModel::kLinear) {
    loaded.linear = load_linear(folder, loaded.settings);
    return loaded;
  }
  if (config.has_base()) {
    loaded.pieces =
        text_of_kept(read_tokenizer_data(folder), config, (folder / "tokenizer.txt").string(),
                     texts_of(loaded.settings.text.input));
    check_stored((folder / "config.json").string(), [&] {
      require_length(loaded.settings.text.max_length, loaded.pieces, folder.string(),
                     texts_of(loaded.settings.text.input));
    });
  }
  if (has_tokenizer(loaded.settings)) {
    loaded.tokenizer = load_tokenizer(folder, config.vocabulary - (loaded.reads_pairs() ? 1 : 0));
  }
  loaded.model = load_on_encoder<Classifier>(folder, BertHead::kText, loaded.settings.from,
                                             sizes_of, config, loaded.settings.recipe.seed);
  peft.apply(loaded.model->parameters());
  if (peft.head() != nullptr) loaded.numbers = {};  // another head says numbers as they are
  return loaded;
}

namespace {

void cut(TextTokens& tokens, const ClassifierTextOptions& options) {
  tokens.length = static_cast<index>(tokens.ids.size());
  if (options.max_length == 0 || tokens.length <= options.max_length) return;
  const index dropped = tokens.length - options.max_length;
  const bool front = options.truncate == Truncate::kFront;
  const auto first = front ? tokens.ids.begin() : tokens.ids.end() - dropped;
  tokens.ids.erase(first, first + dropped);
}

}  // namespace

int NumberScale::digits(double number) const {
  constexpr double kFewest = 9, kMost = 17;
  const double larger = std::floor(std::log10(std::abs(number))) - std::floor(std::log10(scale));
  return static_cast<int>(std::clamp(kFewest + larger, kFewest, kMost));  // 0: minus infinity
}

TextEncoding encoding_of(const ClassifierTextOptions& options) {
  return options.tokenizer == "byte" ? TextEncoding::kAnyBytes : TextEncoding::kUtf8;
}

TableOptions table_of_texts(const LoadedClassifier& model, TableOptions table) {
  table.encoding = encoding_of(model.settings.text);
  table.pairs = model.reads_pairs();
  table.known = model.columns;
  if (model.label_of_two > 0) table.label_of_two = static_cast<std::size_t>(model.label_of_two) - 1;
  const bool no_header = model.settings.text.table.header == HeaderRow::kNo;
  if (table.header == HeaderRow::kAuto && no_header) table.header = HeaderRow::kNo;
  return table;
}

index vocabulary_of(const Tokenizer& tokenizer, InputKind input) {
  return tokenizer.vocabulary_size() + (input == InputKind::kPairs ? 1 : 0);
}

namespace {

// Cuts the longer of both texts first, until `most` tokens are left, at least one of each. If both
// are cut, the second one keeps `half`, and the first the rest.
void cut_pair(std::vector<token>& first, std::vector<token>& second, std::size_t most,
              std::size_t half, Truncate truncate) {
  const std::size_t of_first = std::min(first.size(), most - std::min(second.size(), half));
  const auto keep = [&](std::vector<token>& ids, std::size_t count) {
    if (ids.size() <= count) return;
    const auto dropped = static_cast<std::ptrdiff_t>(ids.size() - count);
    const auto from = truncate == Truncate::kFront ? ids.begin() : ids.end() - dropped;
    ids.erase(from, from + dropped);
  };
  keep(first, of_first);
  keep(second, most - of_first);
}

TextTokens tokens_of_pair(const Tokenizer& tokenizer, const ClassifierTextOptions& options,
                          std::string_view text, std::string_view name) {
  const TextPair pair = pair_of(text);
  std::vector<token> first = tokenizer.encode(pair.first, name),
                     second = tokenizer.encode(pair.second, name);
  for (std::vector<token>* ids : {&first, &second}) {
    if (ids->empty()) *ids = {kPadToken};
  }
  TextTokens tokens;
  tokens.length = static_cast<index>(first.size() + 1 + second.size() + 1);
  if (options.max_length > 0 && tokens.length > options.max_length) {
    const auto most = static_cast<std::size_t>(options.max_length - 2);
    cut_pair(first, second, most, most / 2, options.truncate);
  }
  for (const std::vector<token>* ids : {&first, &second}) {
    tokens.ids.insert(tokens.ids.end(), ids->begin(), ids->end());
    tokens.ids.push_back(static_cast<token>(tokenizer.vocabulary_size()));
  }
  return tokens;
}

void append(std::vector<token>& ids, const std::vector<token>& more) {
  ids.insert(ids.end(), more.begin(), more.end());
}

// Cut as the library tokenizers does ("longest_first").
TextTokens pieces_of_pair(const EncoderTokenizer& tokenizer, const ClassifierTextOptions& options,
                          std::string_view text) {
  const TextPair pair = pair_of(text);
  std::vector<token> first, second;
  tokenizer.append(first, pair.first);
  tokenizer.append(second, pair.second);
  const index all = std::ssize(first) + std::ssize(second) + tokenizer.pair_marks();
  if (all > options.max_length) {
    const auto most = static_cast<std::size_t>(options.max_length - tokenizer.pair_marks());
    const std::size_t half = first.size() > second.size() ? most / 2 : (most + 1) / 2;
    cut_pair(first, second, most, half, options.truncate);
  }
  const MarksAround& marks = tokenizer.around();
  TextTokens tokens{.ids = marks.before, .length = all};
  append(tokens.ids, first);
  append(tokens.ids, marks.between);
  append(tokens.ids, second);
  append(tokens.ids, marks.after);
  return tokens;
}

}  // namespace

TextTokens tokens_of_text(const Tokenizer& tokenizer, const ClassifierTextOptions& options,
                          std::string_view text, std::string_view name) {
  if (options.input == InputKind::kPairs) return tokens_of_pair(tokenizer, options, text, name);
  TextTokens tokens{.ids = tokenizer.encode(text, name)};
  if (tokens.ids.empty()) tokens.ids = {kPadToken};
  cut(tokens, options);
  return tokens;
}

TextTokens tokens_of_text(const EncoderTokenizer& tokenizer, const ClassifierTextOptions& options,
                          std::string_view text, std::string_view name) {
  require_utf8(text, name);
  if (options.input == InputKind::kPairs) return pieces_of_pair(tokenizer, options, text);
  std::vector<token> own;
  tokenizer.append(own, text);
  TextTokens tokens{.ids = tokenizer.around().before,
                    .length = std::ssize(own) + tokenizer.marks()};
  const index room = options.max_length - tokenizer.marks();
  const index kept = std::min(std::ssize(own), room);
  const auto first = options.truncate == Truncate::kFront ? own.end() - kept : own.begin();
  tokens.ids.insert(tokens.ids.end(), first, first + kept);
  append(tokens.ids, tokenizer.around().after);
  return tokens;
}

FrameSet frames_of(const LoadedClassifier& model, const FrameFile& file) {
  const ClassifierConfig& config = model.config();
  require_shape(file, config.joints, config.features, "the model");
  FrameSet set;
  append(set, file, model.frames);
  return set;
}

TextTokens tokens_of_frames(const ClassifierTextOptions& options, index first, index length) {
  TextTokens tokens{.ids = std::vector<token>(static_cast<std::size_t>(length))};
  std::iota(tokens.ids.begin(), tokens.ids.end(), static_cast<token>(first));
  cut(tokens, options);
  return tokens;
}

}  // namespace fovea

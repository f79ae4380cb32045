// SPDX-License-Identifier: Apache-2.0
#include "fovea/pretrained/gguf_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "fovea/base/bytes.h"
#include "fovea/base/check.h"
#include "fovea/base/option.h"
#include "fovea/base/words.h"
#include "fovea/pretrained/architecture.h"
#include "fovea/pretrained/foreign_json.h"
#include "fovea/pretrained/hugging_face_tokenizer.h"
#include "fovea/pretrained/pretrained.h"
#include "fovea/pretrained/rotary_scaling.h"
#include "fovea/text/sentencepiece/piece_model.h"
#include "fovea/text/tokenizer/byte_bpe.h"
#include "fovea/text/tokenizer/scored_pieces.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

namespace fs = std::filesystem;
using detail::named;

[[noreturn]] void unknown(const std::string& what, const std::string& hint = {}) {
  throw Error(ErrorCode::kModelWrongKind, what, hint.empty() ? kReadableHint : hint);
}

/// The metadata of one architecture: "llama.block_count" by "block_count". Errors name the key.
class Keys {
 public:
  Keys(const GgufHeader& header, std::string prefix)
      : header_(header), prefix_(std::move(prefix)) {}

  const GgufValue* find(std::string_view key) const {
    return header_.find(prefix_ + std::string(key));
  }

  index size(std::string_view key) const {
    const std::string name = prefix_ + std::string(key);
    const GgufValue& value = header_.at(name);
    if (value.is_array()) unknown(fmt::format("{}: layers of different sizes are not known", name));
    return named(name, [&] { return in_range(name, value.whole()); });
  }
  index size(std::string_view key, index usual) const {
    return find(key) == nullptr ? usual : size(key);
  }
  double number(std::string_view key, double usual) const {
    const std::string name = prefix_ + std::string(key);
    const GgufValue* const value = header_.find(name);
    if (value == nullptr) return usual;
    const double number = named(name, [&] { return value->number(); });
    if (std::isfinite(number) && number > 0) return number;
    fail(ErrorCode::kModelDamaged, "{}: expected a number over 0, got {}", name, number);
  }

  /// Whether the key is there, and is no number that stands for none.
  bool says(std::string_view key) const {
    const GgufValue* const value = find(key);
    return value != nullptr && !says_nothing(*value);
  }

  /// Refuses keys that begin with the prefix and are none of these.
  void refuse_others(std::span<const std::string_view> known) const {
    for (const GgufPair& pair : header_.metadata) {
      if (!pair.key.starts_with(prefix_)) continue;
      const std::string_view key = std::string_view(pair.key).substr(prefix_.size());
      if (std::find(known.begin(), known.end(), key) != known.end()) continue;
      if (key != "attention.causal" && says_nothing(pair.value)) continue;
      unknown(fmt::format("{} = {}: fovea does not know what that changes", printable(pair.key),
                          pair.value.is_array() ? "an array" : printable(pair.value.shown())));
    }
  }

 private:
  // Counts and switches that are 0, or the scaling that is none.
  static bool says_nothing(const GgufValue& value) {
    if (value.is_array()) return false;
    const std::string shown = value.shown();
    return shown == "0" || shown == "false" || shown == "none" || shown == "";
  }

  static index in_range(const std::string& name, std::int64_t value) {
    if (value >= 1 && value <= kLargestSize) return value;
    fail(ErrorCode::kModelDamaged, "{}: expected 1 to {}, got {}", name, kLargestSize, value);
  }

  const GgufHeader& header_;
  std::string prefix_;
};

std::string architecture_name(const GgufHeader& header) {
  return std::string(header.at("general.architecture").text());
}

// The columns of a row of tensor `name`, and how many rows there are.
const Shape* shape_of(const GgufHeader& header, std::string_view name) {
  const GgufTensor* const tensor = find_named(header.tensors, name);
  return tensor == nullptr ? nullptr : &tensor->shape;
}

// As llama.cpp computes them: a factor without a type is linear, the amplitude is that of any type,
// and YaRN's ramp begins and ends at whole numbers.
RotaryScaling rotary_scaling(const Keys& keys, const LanguageModelConfig& c) {
  const GgufValue* const type = keys.find("rope.scaling.type");
  const bool has_factor = keys.find("rope.scaling.factor") != nullptr;
  const std::string name(type != nullptr ? type->text() : has_factor ? "linear" : "none");
  const auto factor = [&] { return keys.number("rope.scaling.factor", 1); };
  RotarySizes sizes{.columns = c.head_dim, .base = c.rope_base};
  RotaryScaling scaling;
  if (name == "linear") {
    scaling = linear_scaling(sizes, factor());
  } else if (name == "yarn") {
    if (!(sizes.base > 1)) unknown("rope.freq_base: with yarn it is over 1");
    sizes.trained =
        keys.number("rope.scaling.original_context_length", static_cast<double>(c.block));
    scaling = yarn_scaling(sizes, {.factor = factor(),
                                   .fast = keys.number("rope.scaling.yarn_beta_fast", 32),
                                   .slow = keys.number("rope.scaling.yarn_beta_slow", 1)});
  } else if (name != "none") {
    unknown(fmt::format("rope.scaling.type: fovea knows none, linear and yarn, got {}",
                        printable(name)));
  }
  scaling.amplitude *= keys.number("rope.scaling.attn_factor", 1);
  return scaling;
}

constexpr std::string_view kDivisors = "rope_freqs.weight";

// The divisors of Llama 3 are a tensor of the file.
void read_divisors(const TensorSource& tensors, LanguageModelConfig& c) {
  const auto& names = tensors.names();
  const auto found = std::find(names.begin(), names.end(), kDivisors);
  if (found == names.end()) return;
  if (!c.rotary_divisors.empty()) {
    unknown(fmt::format("{} beside rope.scaling.type: fovea knows one of both", kDivisors));
  }
  const auto n = static_cast<std::size_t>(found - names.begin());
  const TensorInfo info = tensors.info(n);
  if (info.shape != Shape{c.head_dim / 2} || info.dtype != DType::kFloat32) {
    fail(ErrorCode::kModelDamaged, "{}: expected {} float32 numbers, half the columns of a head",
         kDivisors, c.head_dim / 2);
  }
  const Tensor values = tensors.read(n);
  std::vector<double> divisors;
  for (const float value : values.vec<float>()) {
    if (!(value > 0 && std::isfinite(value))) {
      fail(ErrorCode::kModelDamaged, "{}: expected numbers over 0, got {}", kDivisors, value);
    }
    divisors.push_back(value);
  }
  c.rotary_divisors = divisors_text(divisors);
}

// As llama.cpp has it: a model of so many layers, the largest of its family, divides the products
// by another number.
index usual_scalar(std::string_view architecture, const LanguageModelConfig& c) {
  const index largest = architecture == "gemma2" ? 46 : 62;
  const bool is_largest = architecture != "gemma" && c.layers == largest;
  return is_largest ? c.width / c.heads : c.head_dim;
}

double scale_by(index scalar) { return 1 / std::sqrt(static_cast<double>(scalar)); }

// Every so many-th layer has no window, or a list says which have one.
std::vector<bool> have_windows(const Keys& keys, index layers, index usual) {
  constexpr std::string_view kKey = "attention.sliding_window_pattern";
  const GgufValue* const value = keys.find(kKey);
  if (value != nullptr && value->is_array()) {
    std::vector<bool> narrow;
    if (static_cast<index>(value->size()) != layers) {
      fail(ErrorCode::kModelDamaged, "{}: {} entries for {} layers", kKey, value->size(), layers);
    }
    for (std::size_t n = 0; n < value->size(); ++n) narrow.push_back(value->flag(n));
    return narrow;
  }
  return narrow_but_every(layers, keys.size(kKey, usual));
}

void read_windows_of(const Keys& keys, index seen, index usual, LanguageModelConfig& c) {
  if (seen == 1) unknown("attention.sliding_window: fovea knows windows of at least 2 tokens");
  c.window = windows_of(have_windows(keys, c.layers, usual), seen);
}

// What is not said is as llama.cpp has it.
void read_gemma(const Keys& keys, std::string_view name, LanguageModelConfig& c) {
  const bool second = name == "gemma2";
  c.embedding_scale = std::sqrt(static_cast<double>(c.width));
  if (name == "gemma") return;
  const index scalar = usual_scalar(name, c);
  if (scalar != c.head_dim) c.score_scale = scale_by(scalar);
  const auto cap = [&](std::string_view key, double usual) {
    return keys.find(key) != nullptr && !keys.says(key) ? 0 : keys.number(key, usual);
  };
  if (second) {
    c.softcap = cap("attn_logit_softcapping", 50);
  } else if (keys.says("attn_logit_softcapping")) {
    unknown("gemma3.attn_logit_softcapping: fovea does not know what that changes");
  }
  c.logit_softcap = cap("final_logit_softcapping", second ? 30 : 0);
  constexpr std::string_view kWindow = "attention.sliding_window";
  if (!second && !keys.says(kWindow)) return;
  read_windows_of(keys, keys.size(kWindow, 4096), second ? 2 : 6, c);
  if (!seen_keys(c)) return;
  c.rope_local_base = keys.number("rope.freq_base_swa", second ? c.rope_base : 1e4);
  if (second && c.rope_local_base == c.rope_base) c.rope_local_base = 0;
}

LanguageModelConfig llama_config(const GgufHeader& header, const Architecture& row) {
  const Keys keys(header, std::string(row.name) + ".");
  keys.refuse_others(row.gguf_keys);
  LanguageModelConfig c = row.layers();
  c.layers = keys.size("block_count");
  c.width = keys.size("embedding_length");
  c.ff = keys.size("feed_forward_length");
  c.block = keys.size("context_length");
  c.heads = keys.size("attention.head_count");
  c.kv_heads = keys.size("attention.head_count_kv", c.heads);
  c.head_dim = keys.size("attention.key_length", std::max<index>(1, c.width / c.heads));
  const index values = keys.size("attention.value_length", c.head_dim);
  const index turned = keys.size("rope.dimension_count", c.head_dim);
  if (values != c.head_dim || turned != c.head_dim) {
    unknown(
        fmt::format("heads of {} columns for keys, {} for values, of which {} are turned by "
                    "their positions: fovea knows models where these are equal",
                    c.head_dim, values, turned));
  }
  c.rope_base = keys.number("rope.freq_base", 10000);
  const RotaryScaling scaling = rotary_scaling(keys, c);
  c.rotary_divisors = divisors_text(scaling.divisors);
  c.rotary_amplitude = scaling.amplitude;
  c.norm_epsilon = keys.number("attention.layer_norm_rms_epsilon", 1e-5);
  if (is_gemma(row.name)) read_gemma(keys, row.name, c);
  c.tie = shape_of(header, "output.weight") == nullptr;
  return c;
}

// ------------------------------------------------------------------------------------ tokenizer

constexpr std::string_view kVocabulary = "tokenizer.ggml.";

std::vector<std::string> texts_of(const GgufValue& value) {
  std::vector<std::string> texts;
  texts.reserve(value.size());
  for (std::size_t n = 0; n < value.size(); ++n) texts.emplace_back(value.text(n));
  return texts;
}

BpeTokenKind kind_from(std::int64_t number) {
  constexpr auto kLast = static_cast<std::int64_t>(BpeTokenKind::kByte);
  if (number >= 1 && number <= kLast) return static_cast<BpeTokenKind>(number);
  fail(ErrorCode::kModelDamaged, "tokenizer.ggml.token_type: expected 1 to {}, got {}", kLast,
       number);
}

// The token that a key names; kNoToken if the file has no such key.
token token_at(const GgufHeader& header, std::string_view key, std::size_t tokens) {
  const std::string name = std::string(kVocabulary) + std::string(key);
  const GgufValue* const value = header.find(name);
  if (value == nullptr) return kNoToken;
  const std::int64_t id = value->whole();
  if (id >= 0 && static_cast<std::uint64_t>(id) < tokens) return static_cast<token>(id);
  fail(ErrorCode::kModelDamaged, "{}: token {} of {}", name, id, tokens);
}

bool flag_at(const GgufHeader& header, std::string_view key, bool usual = false) {
  const GgufValue* const value = header.find(std::string(kVocabulary) + std::string(key));
  return value == nullptr ? usual : value->flag();
}

PreSplit split_of(const GgufHeader& header) {
  const std::string name(header.at("tokenizer.ggml.pre").text());
  if (const PreSplit* const split = find_named(pre_splits(), name)) return *split;
  unknown(fmt::format("tokenizer.ggml.pre: {} is not one of {}", printable(name),
                      names_in(pre_splits())));
}

struct GgufNames {
  std::vector<std::string> names;
  std::vector<BpeTokenKind> kinds;
};

GgufNames names_of(const GgufHeader& header) {
  GgufNames read{texts_of(header.at("tokenizer.ggml.tokens")), {}};
  const GgufValue& kinds = header.at("tokenizer.ggml.token_type");
  if (read.names.size() > kMaxGgufHeaderBytes || kinds.size() != read.names.size()) {
    fail(ErrorCode::kModelDamaged, "tokenizer.ggml.token_type has {} numbers for {} tokens",
         kinds.size(), read.names.size());
  }
  for (std::size_t n = 0; n < kinds.size(); ++n) read.kinds.push_back(kind_from(kinds.whole(n)));
  return read;
}

std::shared_ptr<const Subwords> bytes_of(const GgufHeader& header) {
  if (flag_at(header, "add_space_prefix")) {
    unknown("tokenizer.ggml.add_space_prefix: true is not of a byte-level BPE");
  }
  ByteBpeModel model;
  model.split = split_of(header);
  GgufNames read = names_of(header);
  model.names = std::move(read.names);
  model.kinds = std::move(read.kinds);
  model.merges = texts_of(header.at("tokenizer.ggml.merges"));
  model.begin = token_at(header, "bos_token_id", model.names.size());
  model.end = token_at(header, "eos_token_id", model.names.size());
  return std::make_shared<const ByteBpe>(std::move(model));
}

// Of texts that are one token wherever they stand, llama.cpp takes the scores, too; in BPE, also of
// what is padding of the table.
PieceType piece_type(BpeTokenKind kind, PieceAlgorithm algorithm) {
  switch (kind) {
    case BpeTokenKind::kUnused:
      return algorithm == PieceAlgorithm::kUnigram ? PieceType::kUnused : PieceType::kNormal;
    case BpeTokenKind::kUnknown:
      return PieceType::kUnknown;
    case BpeTokenKind::kControl:
      return PieceType::kControl;
    case BpeTokenKind::kByte:
      return PieceType::kByte;
    default:
      return PieceType::kNormal;
  }
}

// The rules of SentencePiece for text; none where the file has none.
std::string charsmap_of(const GgufHeader& header) {
  std::string bytes;
  const GgufValue* const value = header.find("tokenizer.ggml.precompiled_charsmap");
  if (value == nullptr) return bytes;
  bytes.reserve(value->size());
  for (std::size_t n = 0; n < value->size(); ++n) {
    bytes += static_cast<char>(value->whole(n));
  }
  return bytes;
}

// Pieces of SentencePiece: BPE, which llama.cpp joins by their scores, or the unigram model of T5.
std::shared_ptr<const Subwords> pieces_of(const GgufHeader& header, PieceAlgorithm algorithm) {
  const bool is_unigram = algorithm == PieceAlgorithm::kUnigram;
  GgufNames read = names_of(header);
  const GgufValue& scores = header.at("tokenizer.ggml.scores");
  if (scores.size() != read.names.size()) {
    fail(ErrorCode::kModelDamaged, "tokenizer.ggml.scores has {} numbers for {} tokens",
         scores.size(), read.names.size());
  }
  ScoredPiecesModel model;
  PieceModel& pieces = model.pieces;
  pieces.algorithm = algorithm;
  pieces.normalizer.remove_extra_whitespaces =
      is_unigram && flag_at(header, "remove_extra_whitespaces");
  if (is_unigram) pieces.normalizer.charsmap = charsmap_of(header);
  for (std::size_t n = 0; n < read.names.size(); ++n) {
    const BpeTokenKind kind = read.kinds[n];
    pieces.pieces.push_back({.text = std::move(read.names[n]),
                             .score = static_cast<float>(scores.number(n)),
                             .type = piece_type(kind, algorithm)});
    pieces.byte_fallback |= kind == BpeTokenKind::kByte;
    if (kind == BpeTokenKind::kUserDefined) model.wholes.push_back(static_cast<token>(n));
  }
  const auto is_unknown = [](const ModelPiece& one) { return one.type == PieceType::kUnknown; };
  const token other = token_at(header, "unknown_token_id", pieces.pieces.size());
  if (other != kNoToken && std::ranges::none_of(pieces.pieces, is_unknown)) {
    pieces.pieces[static_cast<std::size_t>(other)].type = PieceType::kUnknown;
  }
  check_piece_model(pieces, "tokenizer.ggml.tokens");
  model.prefix = flag_at(header, "add_space_prefix", !is_unigram) ||
                 pieces.normalizer.remove_extra_whitespaces;
  model.merges_blanks = pieces.normalizer.remove_extra_whitespaces;
  model.begin = token_at(header, "bos_token_id", pieces.pieces.size());
  model.end = token_at(header, "eos_token_id", pieces.pieces.size());
  return std::make_shared<const ScoredPieces>(std::move(model), "tokenizer.ggml.tokens");
}

std::shared_ptr<const Subwords> subwords_of(const GgufHeader& header) {
  const std::string kind(header.at("tokenizer.ggml.model").text());
  if (kind == "gpt2") return bytes_of(header);
  if (kind == "llama") return pieces_of(header, PieceAlgorithm::kBpe);
  if (kind == "t5") return pieces_of(header, PieceAlgorithm::kUnigram);
  unknown(
      fmt::format("tokenizer.ggml.model: fovea reads gpt2 (byte-level BPE), llama (SentencePiece) "
                  "and t5 (its unigram model), got {}",
                  printable(kind)));
}

// T5's texts end with a mark, which no language model reads.
bool is_of_t5(const GgufHeader& header) { return header.at("tokenizer.ggml.model").text() == "t5"; }

// llama.cpp has BERT's pieces as words with a blank before them, which the others continue. Names
// in brackets are the same in both.
std::string wordpiece_name(std::string name, BpeTokenKind kind) {
  const bool in_brackets = name.size() > 2 && name.starts_with('[') && name.ends_with(']');
  if (kind != BpeTokenKind::kNormal || in_brackets) return name;
  return name.starts_with(kSpaceSymbol) ? name.substr(kSpaceSymbol.size()) : "##" + name;
}

WordPieceModel wordpiece_of(const GgufHeader& header) {
  GgufNames read = names_of(header);
  WordPieceModel model;
  for (std::size_t n = 0; n < read.names.size(); ++n) {
    const BpeTokenKind kind = read.kinds[n];
    model.names.push_back(wordpiece_name(std::move(read.names[n]), kind));
    if (kind == BpeTokenKind::kNormal || kind == BpeTokenKind::kUnused) continue;
    model.added.push_back({.text = model.names.back(),
                           .id = static_cast<token>(n),
                           .is_mark = kind != BpeTokenKind::kUserDefined});
  }
  const token unknown = token_at(header, "unknown_token_id", model.names.size());
  if (unknown != kNoToken) model.unknown = model.names[static_cast<std::size_t>(unknown)];
  return model;
}

// Whether a text begins with the mark. llama.cpp puts it before texts of some cuts where the file
// does not say.
bool begins_with_mark(const GgufHeader& header) {
  const std::string_view kind = header.at("tokenizer.ggml.model").text();
  const bool begins = kind == "llama" || (kind == "gpt2" && split_of(header).begins);
  return flag_at(header, "add_bos_token", begins);
}

// Marks that end a turn, by their names: files do not always say which tokens do.
constexpr std::string_view kEndNames[] = {"<|im_end|>", "<|endoftext|>",   "<|eot_id|>",
                                          "<|eom_id|>", "<|end_of_text|>", "<end_of_turn>"};

std::vector<token> ends_of(const GgufHeader& header, const Subwords& subwords) {
  const auto tokens = static_cast<std::size_t>(subwords.size());
  std::vector<token> ends;
  const auto add = [&](token id) {
    if (id != kNoToken && std::find(ends.begin(), ends.end(), id) == ends.end()) ends.push_back(id);
  };
  add(subwords.special().end);
  add(token_at(header, "eot_token_id", tokens));
  add(token_at(header, "eom_token_id", tokens));
  for (const std::string_view name : kEndNames) {
    const token id = subwords.id_of(name);
    if (id != kNoToken && subwords.is_mark(id)) add(id);
  }
  return ends;
}

}  // namespace

LanguageModelConfig config_of_gguf(const GgufHeader& header, const std::string& where) {
  return named(where, [&] {
    const Architecture& row = architecture(architecture_name(header));
    if (row.gguf_keys.empty()) unknown(fmt::format("{} is not read from GGUF files", row.name));
    LanguageModelConfig c = llama_config(header, row);
    const Shape* const table = shape_of(header, "token_embd.weight");
    if (table == nullptr) fail(ErrorCode::kModelDamaged, "tensor token_embd.weight is missing");
    c.vocabulary = table->front();
    return resolve(c);
  });
}

LanguageModelConfig load_gguf_config(const fs::path& path) {
  const std::string where = path.string();
  const FileSource file(path);
  const GgufSource tensors(file, where);
  LanguageModelConfig config = config_of_gguf(tensors.header(), where);
  named(where, [&] { read_divisors(tensors, config); });
  return config;
}

PretrainedText text_of_gguf(const GgufHeader& header, const std::string& where) {
  return named(where, [&] {
    PretrainedText text{.architecture = architecture_name(header)};
    text.subwords = subwords_of(header);
    if (begins_with_mark(header)) text.begin = text.subwords->special().begin;
    if (flag_at(header, "add_eos_token") && !is_of_t5(header)) {
      unknown("tokenizer.ggml.add_eos_token: fovea does not put an end behind each text");
    }
    text.end = text.subwords->special().end;
    text.ends = ends_of(header, *text.subwords);
    if (const GgufValue* const chat = header.find("tokenizer.chat_template")) {
      text.chat_template = chat->text();
    }
    return text;
  });
}

std::optional<WordPieceModel> load_gguf_wordpiece(const fs::path& path) {
  const FileSource file(path);
  const GgufHeader header = parse_gguf_header(file, path.string());
  return named(path.string(), [&]() -> std::optional<WordPieceModel> {
    if (header.at("tokenizer.ggml.model").text() != "bert") return std::nullopt;
    return wordpiece_of(header);
  });
}

PretrainedText load_gguf_text(const fs::path& path) {
  const FileSource file(path);
  return text_of_gguf(parse_gguf_header(file, path.string()), path.string());
}

PretrainedLanguageModel load_gguf(const fs::path& path, const PretrainedOptions& options) {
  const std::string where = path.string();
  const FileSource file(path);
  const GgufSource tensors(file, where);
  PretrainedLanguageModel loaded{.config = config_of_gguf(tensors.header(), where),
                                 .text = text_of_gguf(tensors.header(), where),
                                 .model = nullptr};
  if (is_of_t5(tensors.header())) {
    unknown(fmt::format("{}: tokenizer.ggml.model: a language model with the tokenizer t5", where));
  }
  if (loaded.text.subwords->size() != loaded.config.vocabulary) {
    fail(ErrorCode::kModelDamaged, "{}: the tokenizer has {} tokens, the model {}", where,
         loaded.text.subwords->size(), loaded.config.vocabulary);
  }
  named(where, [&] {
    read_divisors(tensors, loaded.config);
    detail::make_model(loaded,
                       {architecture(loaded.text.architecture), ModelForm::kGguf, tensors,
                        [](std::string_view name) { return name == kDivisors; }},
                       options);
  });
  return loaded;
}

namespace {

std::uint32_t size(index value) { return static_cast<std::uint32_t>(value); }

void require(bool holds, std::string_view what, std::string_view option) {
  if (holds) return;
  throw Error(ErrorCode::kModelWrongKind,
              fmt::format("llama.cpp does not compute {} as this model does", what),
              fmt::format("export it with --to hf, or train a model with {}", option));
}

struct Vocabulary {
  std::vector<std::string> names = {};
  std::vector<std::int32_t> types = {};

  void add(std::string name, BpeTokenKind kind) {
    names.push_back(std::move(name));
    types.push_back(static_cast<std::int32_t>(kind));
  }
};

Vocabulary marks_and_bytes(std::string (*name_of)(int byte), BpeTokenKind of_bytes) {
  Vocabulary vocabulary;
  for (const std::string_view name : kMarkNames)
    vocabulary.add(std::string(name), BpeTokenKind::kControl);
  for (int byte = 0; byte < 256; ++byte) vocabulary.add(name_of(byte), of_bytes);
  return vocabulary;
}

// Every character is a piece, a blank as SentencePiece writes it, and others fall back to bytes.
Vocabulary characters(const TokenizerData& data) {
  Vocabulary vocabulary = marks_and_bytes(name_of_byte, BpeTokenKind::kByte);
  for (const char32_t c : data.characters) {
    std::string text;
    append_utf8(text, c);
    vocabulary.add(c == U' ' ? std::string(kSpaceSymbol) : std::move(text), BpeTokenKind::kNormal);
  }
  return vocabulary;
}

}  // namespace

namespace {

// The least n such that every n-th layer has no window, and all others have one.
index layers_to_one_without_window(const LanguageModelConfig& c) {
  const std::vector<index> windows = layer_windows(c);
  const auto first = std::ranges::find(windows, 0) - windows.begin();
  const index every = first + 1;
  for (index n = 1; n <= c.layers; ++n) {
    const bool narrow = windows[static_cast<std::size_t>(n - 1)] > 0;
    require(narrow == (n % every != 0), "these windows", "a --window of 0 every so many layers");
  }
  return every;
}

void require_gemma(std::string_view name, const LanguageModelConfig& c) {
  const bool second = name == "gemma2";
  require(c.activation == LayerActivation::kGegluTanh, "the activation", "--activation geglu-tanh");
  const index scalar = usual_scalar(name, c);
  require(
      query_scalar(c) == scalar, "the scores",
      scalar == c.head_dim ? "--score-scale 0" : fmt::format("--score-scale {}", scale_by(scalar)));
  require(second == (c.softcap > 0), "the scores", second ? "--softcap 50" : "--softcap 0");
  require(!second || c.logit_softcap > 0, "the logits", "--logit-softcap 30");
  require(name == "gemma3" || c.tie, "the logits", "--tie");
}

std::vector<GgufEntry> gemma_entries(std::string_view name, const LanguageModelConfig& c) {
  const auto key = [&](std::string_view last) { return fmt::format("{}.{}", name, last); };
  std::vector<GgufEntry> entries;
  const auto seen = seen_keys(c);
  if (seen || name == "gemma2") {
    entries.push_back({key("attention.sliding_window"), size(seen.value_or(c.block))});
    entries.push_back(
        {key("attention.sliding_window_pattern"), size(layers_to_one_without_window(c))});
    const double base = c.rope_local_base > 0 ? c.rope_local_base : c.rope_base;
    entries.push_back({key("rope.freq_base_swa"), static_cast<float>(base)});
  }
  for (const auto& [last, cap] : {std::pair{"attn_logit_softcapping", c.softcap},
                                  {"final_logit_softcapping", c.logit_softcap}}) {
    if (cap > 0) entries.push_back({key(last), static_cast<float>(cap)});
  }
  return entries;
}

void require_known(std::string_view name, const LanguageModelConfig& c) {
  if (is_gemma(name)) return require_gemma(name, c);
  const bool is_gpt2 = name == "gpt2";
  require(is_gpt2 || !c.bias, "biases", "--no-bias");
  require(!seen_keys(c), "windows", "--window 0");
  if (is_gpt2) {
    require(c.activation == LayerActivation::kGeluTanh, "the activation", "--activation gelu-tanh");
  } else {
    require(c.activation == LayerActivation::kSwiglu, "the activation", "--activation swiglu");
  }
}

}  // namespace

std::vector<GgufEntry> gguf_sizes(const Architecture& architecture, const LanguageModelConfig& c) {
  require_known(architecture.name, c);
  const bool is_gpt2 = architecture.name == "gpt2";
  const std::string prefix = std::string(architecture.name) + ".";
  const double epsilon = c.norm_epsilon;
  std::vector<GgufEntry> entries = {
      {"general.architecture", std::string(architecture.name)},
      {prefix + "vocab_size", size(c.vocabulary)},
      {prefix + "context_length", size(is_gpt2 ? c.position_max : c.block)},
      {prefix + "embedding_length", size(c.width)},
      {prefix + "block_count", size(c.layers)},
      {prefix + "feed_forward_length", size(c.ff)},
      {prefix + "attention.head_count", size(c.heads)},
      {prefix + (is_gpt2 ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon"),
       static_cast<float>(epsilon)}};
  if (is_gpt2) return entries;
  for (auto& [key, value] : {std::pair{"attention.head_count_kv", c.kv_heads},
                             {"attention.key_length", c.head_dim},
                             {"attention.value_length", c.head_dim},
                             {"rope.dimension_count", c.head_dim}}) {
    entries.push_back({prefix + key, size(value)});
  }
  entries.push_back({prefix + "rope.freq_base", static_cast<float>(c.rope_base)});
  if (architecture.name == "gemma2" || architecture.name == "gemma3") {
    for (GgufEntry& entry : gemma_entries(architecture.name, c))
      entries.push_back(std::move(entry));
  }
  return entries;
}

std::vector<GgufEntry> gguf_tokenizer(const Tokenizer& tokenizer, bool lines) {
  const TokenizerData data = tokenizer.data();
  const bool bytes = data.kind == "byte";
  if ((!bytes && data.kind != "char") || data.lower) {
    throw Error(ErrorCode::kModelWrongKind,
                fmt::format("llama.cpp does not cut text as --tokenizer {}{} does", data.kind,
                            data.lower ? " --lower" : ""),
                "export it with --to hf, or train with --tokenizer byte or char");
  }
  Vocabulary vocabulary =
      bytes ? marks_and_bytes(character_of_byte, BpeTokenKind::kNormal) : characters(data);
  const SpecialTokens special = tokenizer.special();
  std::vector<GgufEntry> entries = {
      {"tokenizer.ggml.model", std::string(bytes ? "gpt2" : "llama")},
      {"tokenizer.ggml.add_bos_token", lines && special.begin != kNoToken},
      {"tokenizer.ggml.add_space_prefix", false},
      {"tokenizer.ggml.padding_token_id", size(kPadToken)}};
  if (bytes) {
    entries.push_back({"tokenizer.ggml.pre", std::string("gpt-2")});
    entries.push_back({"tokenizer.ggml.merges", std::vector<std::string>()});
  } else {
    entries.push_back({"tokenizer.ggml.scores", std::vector<float>(vocabulary.names.size())});
    entries.push_back({"tokenizer.ggml.unknown_token_id", size(kPadToken)});
  }
  // llama.cpp supposes ids of its own where a file names none.
  entries.push_back({"tokenizer.ggml.bos_token_id", size(kBeginToken)});
  entries.push_back({"tokenizer.ggml.eos_token_id", size(kEndToken)});
  entries.push_back({"tokenizer.ggml.tokens", std::move(vocabulary.names)});
  entries.push_back({"tokenizer.ggml.token_type", std::move(vocabulary.types)});
  return entries;
}

bool has_rotary_rule(const GgufHeader& header, const Architecture& architecture,
                     const LanguageModelConfig& config) {
  return !rotary_scaling(Keys(header, std::string(architecture.name) + "."), config)
              .divisors.empty();
}

}  // namespace fovea

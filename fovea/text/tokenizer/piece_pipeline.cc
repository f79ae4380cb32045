// SPDX-License-Identifier: Apache-2.0
#include "fovea/text/tokenizer/piece_pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/base/machine.h"
#include "fovea/base/words.h"
#include "fovea/text/tokenizer/merge_table.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

using Names = KeyedMap<std::string_view, token>;

[[noreturn]] void damaged(const std::string& what) {
  throw Error(ErrorCode::kModelDamaged, "the vocabulary: " + what,
              "get the model again, or take another one");
}

token find_name(const Names& names, std::string_view name) {
  const auto found = names.find(name);
  return found == names.end() ? kNoToken : found->second;
}

// The tokens of bytes, by their names.
std::array<token, 256> byte_tokens(const Names& names, bool used) {
  std::array<token, 256> tokens;
  for (int byte = 0; byte < 256; ++byte) {
    tokens[static_cast<std::size_t>(byte)] =
        used ? find_name(names, fmt::format("<0x{:02X}>", byte)) : kNoToken;
  }
  return tokens;
}

class UnknownCharacters {
 public:
  UnknownCharacters(const PiecePipelineModel& model, const Names& names)
      : bytes_(byte_tokens(names, model.byte_fallback)) {}

  // Whether it is the token of a byte.
  bool has(token id) const { return std::ranges::find(bytes_, id) != bytes_.end(); }

  // Appends the tokens of the bytes of a text. False, and none, if one of them has none.
  bool append_bytes(std::vector<token>& ids, std::string_view text) const {
    const auto of = [&](char byte) { return bytes_[static_cast<unsigned char>(byte)]; };
    if (std::ranges::any_of(text, [&](char byte) { return of(byte) == kNoToken; })) return false;
    for (const char byte : text) ids.push_back(of(byte));
    return true;
  }

 private:
  const std::array<token, 256> bytes_;
};

class MergeEncoder final : public PieceEncoder {
 public:
  MergeEncoder(const PiecePipelineModel& model, const Names& names)
      : model_(model),
        settings_(std::get<PieceMerges>(model.pieces)),
        names_(names),
        unknown_(model, names),
        merges_(settings_.pairs.size()) {
    for (const auto& [left, right] : settings_.pairs) {
      const token ids[] = {find_name(names, left), find_name(names, right),
                           find_name(names, left + right)};
      const bool is_whole = ids[2] == model.unknown || (ids[2] != kNoToken && unknown_.has(ids[2]));
      if (left.empty() || right.empty() || is_whole ||
          std::ranges::find(ids, kNoToken) != std::end(ids)) {
        damaged(fmt::format(
            "the merge of {} and {} joins what are no tokens, or to none that it can make",
            printable(left), printable(right)));
      }
      if (merges_.add(ids[0], ids[1], ids[2])) continue;
      damaged(
          fmt::format("the merge of {} and {} is there twice", printable(left), printable(right)));
    }
    merges_.finish();
  }

  void append(std::vector<token>& ids, std::string_view part, Marks) const override {
    if (settings_.ignores_merges) {
      if (const token id = find_name(names_, part); id != kNoToken) return ids.push_back(id);
    }
    const std::size_t first = ids.size();
    bool waits = false;  // an unknown token, which comes before the next known character
    const auto end_unknown = [&] {
      if (std::exchange(waits, false)) ids.push_back(model_.unknown);
    };
    while (!part.empty()) {
      const std::string_view bytes = take_character(part).bytes;
      if (const token id = find_name(names_, bytes); id != kNoToken) {
        end_unknown();
        ids.push_back(id);
      } else if (!unknown_.append_bytes(ids, bytes) && model_.unknown != kNoToken) {
        if (!settings_.fuses_unknown) end_unknown();
        waits = true;
      }
    }
    end_unknown();
    merges_.join(ids, first);
  }

 private:
  const PiecePipelineModel& model_;
  const PieceMerges& settings_;
  const Names& names_;
  const UnknownCharacters unknown_;
  MergeTable merges_;
};

// Viterbi's algorithm, as in SentencePiece (sentencepiece/cutter.cc); but `tokenizers` has sums in
// double, and a mark is a piece as any other.
class UnigramEncoder final : public PieceEncoder {
 public:
  UnigramEncoder(const PiecePipelineModel& model, const Names& names,
                 const std::vector<bool>& is_mark)
      : model_(model),
        scores_(std::get<PieceScores>(model.pieces).scores),
        names_(names),
        is_mark_(is_mark),
        unknown_(model, names) {
    constexpr double kUnknownPenalty = 10;
    double smallest = std::numeric_limits<double>::infinity();
    std::vector<std::pair<std::string_view, token>> pieces;
    for (std::size_t n = 0; n < scores_.size(); ++n) {
      const std::string_view name = model.names[n];
      if (!std::isfinite(scores_[n])) {
        damaged(fmt::format("the score of {} is {}", printable(name), scores_[n]));
      }
      if (name.size() > kLongestPiece) {
        damaged(
            fmt::format("a token has {} bytes; at most {} are read", name.size(), kLongestPiece));
      }
      smallest = std::min(smallest, scores_[n]);
      if (!name.empty()) pieces.emplace_back(name, static_cast<token>(n));
    }
    trie_ = PieceTrie(std::move(pieces));
    unknown_score_ = smallest - kUnknownPenalty;
  }

  void append(std::vector<token>& ids, std::string_view part, Marks marks) const override {
    constexpr std::size_t kLongPart = std::size_t{1} << 20;
    if (part.size() >= kLongPart) {
      require_memory("the cut of a text", sizeof(Best) * static_cast<double>(part.size()),
                     "use shorter texts, or a machine with more memory");
    }
    const std::vector<Best> best = best_paths(part, marks);
    std::vector<std::string_view> pieces;
    token behind = kNoToken;
    for (std::size_t end = part.size(); end > 0; end = best[end].begin) {
      const std::string_view piece = part.substr(best[end].begin, end - best[end].begin);
      const bool joins = best[end].id == model_.unknown && behind == model_.unknown;
      behind = best[end].id;
      if (joins) {
        pieces.back() = {piece.data(), piece.size() + pieces.back().size()};
      } else {
        pieces.push_back(piece);
      }
    }
    for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece) {
      const token id = find_name(names_, *piece);
      if (id != kNoToken && !(marks == Marks::kAreText && is_mark_[static_cast<std::size_t>(id)])) {
        ids.push_back(id);
      } else if (!unknown_.append_bytes(ids, *piece)) {
        ids.push_back(model_.unknown);
      }
    }
  }

 private:
  // The best cut of the text up to a byte: where its last piece begins.
  struct Best {
    double score = 0;
    std::size_t begin = kNowhere;
    token id = kNoToken;
  };
  static constexpr std::size_t kNowhere = ~std::size_t{0};

  std::vector<Best> best_paths(std::string_view text, Marks marks) const {
    std::vector<Best> best(text.size() + 1);
    for (std::size_t begin = 0; begin < text.size();) {
      const double before = best[begin].score;
      const auto offer = [&](std::size_t length, token id, double score) {
        Best& end = best[begin + length];
        if (end.begin == kNowhere || score + before > end.score) end = {score + before, begin, id};
      };
      const std::string_view rest = text.substr(begin);
      const auto character = static_cast<std::size_t>(decode_character(rest).length);
      bool has_character = false;
      trie_.visit_prefixes(rest, [&](std::size_t length, token id) {
        const auto n = static_cast<std::size_t>(id);
        if (marks == Marks::kAreText && is_mark_[n]) return;
        offer(length, id, scores_[n]);
        has_character |= length == character;
      });
      if (!has_character) offer(character, model_.unknown, unknown_score_);
      begin += character;
    }
    return best;
  }

  const PiecePipelineModel& model_;
  const std::vector<double>& scores_;
  const Names& names_;
  const std::vector<bool>& is_mark_;
  const UnknownCharacters unknown_;
  PieceTrie trie_;
  double unknown_score_ = 0;
};

bool is_scored(const PiecePipelineModel& model) {
  return std::holds_alternative<PieceScores>(model.pieces);
}

}  // namespace

PiecePipeline::PiecePipeline(PiecePipelineModel model) : model_(std::move(model)) {
  add_names();
  add_added();
  if (is_scored(model_)) {
    encoder_ = std::make_unique<UnigramEncoder>(model_, ids_, is_mark_);
  } else {
    encoder_ = std::make_unique<MergeEncoder>(model_, ids_);
  }
}

PiecePipeline::~PiecePipeline() = default;

void PiecePipeline::add_names() {
  const auto is_id = [&](token id) { return id >= 0 && id < size(); };
  ids_.reserve(model_.names.size());
  for (token id = 0; id < size(); ++id) {
    const std::string_view name = this->name(id);
    if (name.empty()) continue;
    if (find_invalid_utf8(name)) damaged(fmt::format("token {} is not UTF-8", id));
    if (!ids_.emplace(name, id).second) damaged(fmt::format("{} is there twice", printable(name)));
  }
  if (model_.unknown != kNoToken && !is_id(model_.unknown)) {
    damaged(fmt::format("the unknown token is {} of {}", model_.unknown, size()));
  }
  if (!is_scored(model_)) return;
  // What no piece begins with needs a token in any case.
  if (model_.unknown == kNoToken) damaged("a unigram model without an unknown token");
  const auto& scores = std::get<PieceScores>(model_.pieces).scores;
  if (scores.size() > model_.names.size() || model_.unknown >= std::ssize(scores)) {
    damaged(fmt::format("{} scores for {} tokens", scores.size(), size()));
  }
}

void PiecePipeline::add_added() {
  is_mark_.resize(model_.names.size());
  std::array<std::vector<AddedToken>, 2> raw, rewritten;
  for (const AddedToken& one : model_.added) {
    if (one.text.empty() || one.id < 0 || one.id >= size() || name(one.id) != one.text) {
      damaged(fmt::format("the added token {} has the id {}, which is another's",
                          printable(one.text), one.id));
    }
    if (one.is_mark) is_mark_[static_cast<std::size_t>(one.id)] = true;
    AddedToken found = one;
    if (one.normalized) {
      GrowingText growing(found.text.size());
      for (const TextRule& rule : model_.rules) found.text = rule(found.text, growing);
      if (found.text != one.text) written_names_.emplace(one.id, found.text);
    }
    if (found.text.empty()) continue;
    auto& places = one.normalized ? rewritten : raw;
    if (!one.is_mark) places[static_cast<std::size_t>(Marks::kAreText)].push_back(found);
    places[static_cast<std::size_t>(Marks::kRead)].push_back(std::move(found));
  }
  for (const std::size_t n : {0, 1}) {
    raw_[n] = AddedTokens(std::move(raw[n]));
    normalized_[n] = AddedTokens(std::move(rewritten[n]));
  }
}

token PiecePipeline::id_of(std::string_view name) const { return find_name(ids_, name); }

LineSpace PiecePipeline::line_space() const {
  const bool drops = std::ranges::any_of(model_.decoder, [](const DecodeStep& step) {
    return step.drops || (step.kind == DecodeStep::Kind::kStrip && step.left > 0);
  });
  return drops ? LineSpace::kOneDroppedAtFirst : LineSpace::kKept;
}

void PiecePipeline::encode(std::vector<token>& ids, std::string_view text, Marks marks,
                           TextPlace place) const {
  raw_[static_cast<std::size_t>(marks)].split(
      text,
      [&](std::size_t begin, std::string_view part) {
        encode_plain(ids, part, begin == 0 && place == TextPlace::kBegin, marks);
      },
      [&](const AddedToken& added) { ids.push_back(added.id); });
}

void PiecePipeline::encode_plain(std::vector<token>& ids, std::string_view text, bool is_first,
                                 Marks marks) const {
  std::string written;
  GrowingText growing(text.size());
  for (const TextRule& rule : model_.rules) {
    written = rule(text, growing);
    text = written;
  }
  normalized_[static_cast<std::size_t>(marks)].split(
      text,
      [&](std::size_t begin, std::string_view part) {
        encode_cuts(ids, part, is_first && begin == 0, marks);
      },
      [&](const AddedToken& added) { ids.push_back(added.id); });
}

void PiecePipeline::encode_cuts(std::vector<token>& ids, std::string_view text, bool is_first,
                                Marks marks) const {
  const PieceCuts& cuts = model_.cuts;
  const auto end_of_part = [&](std::size_t begin) {
    if (cuts.behind.empty()) return text.size();
    const std::size_t found = text.find(cuts.behind, begin);
    return found == text.npos ? text.size() : found + cuts.behind.size();
  };
  if (!cuts.at_white_space) {
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = end_of_part(begin);
      encode_part(ids, text.substr(begin, end - begin), is_first && begin == 0, marks);
      begin = end;
    }
    return;
  }
  for (std::size_t begin = 0, end = 0; begin < text.size(); begin = end) {
    const std::size_t space = white_space_at_front(text.substr(begin));
    end = begin + space;
    if (space > 0) continue;
    while (end < text.size() && white_space_at_front(text.substr(end)) == 0) {
      end += static_cast<std::size_t>(decode_character(text.substr(end)).length);
    }
    encode_part(ids, text.substr(begin, end - begin), is_first && begin == 0, marks);
  }
}

void PiecePipeline::encode_part(std::vector<token>& ids, std::string_view part, bool is_first,
                                Marks marks) const {
  if (!model_.cuts.blanks) return encoder_->append(ids, part, marks);
  const Metaspace& blanks = *model_.cuts.blanks;
  GrowingText growing(part.size());
  std::string written = text_rule::replaced(part, " ", blanks.symbol, growing);
  const bool prepends = blanks.prepend == PrependBlank::kAlways ||
                        (blanks.prepend == PrependBlank::kFirst && is_first);
  if (prepends && !written.starts_with(blanks.symbol)) written.insert(0, blanks.symbol);
  std::string_view rest = written;
  while (!rest.empty()) {
    const std::size_t next = blanks.cuts ? rest.find(blanks.symbol, 1) : rest.npos;
    encoder_->append(ids, rest.substr(0, next), marks);
    rest.remove_prefix(std::min(next, rest.size()));
  }
}

namespace {

// The byte of a token such as <0x0A>, in either case of letters; -1 for any other.
int byte_of_token(std::string_view token) {
  std::string upper(token);
  for (char& c : upper) {
    if (c >= 'a' && c <= 'f') c = static_cast<char>(c - 'a' + 'A');
  }
  return byte_of_piece(upper);
}

using Texts = std::vector<std::string>;

Texts with_bytes(const Texts& tokens) {
  Texts texts;
  std::string bytes;
  const auto end_bytes = [&] {
    if (bytes.empty()) return;
    if (find_invalid_utf8(bytes)) {
      for (std::size_t n = 0; n < bytes.size(); ++n) texts.push_back("\uFFFD");
    } else {
      texts.push_back(bytes);
    }
    bytes.clear();
  };
  for (const std::string& token : tokens) {
    const int byte = byte_of_token(token);
    if (byte >= 0) {
      bytes += static_cast<char>(byte);
      continue;
    }
    end_bytes();
    texts.push_back(token);
  }
  end_bytes();
  return texts;
}

std::string stripped(std::string_view token, const DecodeStep& step) {
  for (index n = 0; n < step.left && token.starts_with(step.from); ++n) {
    token.remove_prefix(step.from.size());
  }
  for (index n = 0; n < step.right && token.ends_with(step.from); ++n) {
    token.remove_suffix(step.from.size());
  }
  return std::string(token);
}

std::string joined(const Texts& tokens, std::string_view between) {
  return fmt::format("{}", fmt::join(tokens, between));
}

Texts decoded(Texts tokens, const DecodeStep& step, GrowingText& growing) {
  using Kind = DecodeStep::Kind;
  if (step.kind == Kind::kFuse) return {joined(tokens, "")};
  if (step.kind == Kind::kBytes) return with_bytes(tokens);
  for (std::size_t n = 0; n < tokens.size(); ++n) {
    std::string& token = tokens[n];
    if (step.kind == Kind::kStrip) {
      token = stripped(token, step);
    } else {
      const bool leaves_out = step.kind == Kind::kMetaspace && step.drops && n == 0;
      token = text_rule::replaced(token, step.from, leaves_out ? "" : step.to, growing);
    }
  }
  return tokens;
}

}  // namespace

const std::string& PiecePipeline::decoded_name(token id) const {
  const auto found = written_names_.find(id);
  return found == written_names_.end() ? name(id) : found->second;
}

std::string PiecePipeline::decode(std::span<const token> ids) const {
  Texts tokens;
  std::size_t bytes = 0;
  for (const token id : ids) {
    check(id >= 0 && id < size(), "tokenizer: token {} is not in the vocabulary of {}", id, size());
    tokens.push_back(decoded_name(id));
    bytes += tokens.back().size();
  }
  GrowingText growing(bytes);
  for (const DecodeStep& step : model_.decoder) tokens = decoded(std::move(tokens), step, growing);
  return joined(tokens, model_.separates ? " " : "");
}

void PiecePipeline::append_bytes(std::string& out, token id) const {
  const std::string& text = decoded_name(id);
  const int byte = is_mark(id) || !model_.byte_fallback ? -1 : byte_of_piece(text);
  if (byte >= 0) {
    out += static_cast<char>(byte);
    return;
  }
  std::string bytes = text;
  GrowingText growing(text.size());
  using Kind = DecodeStep::Kind;
  for (const DecodeStep& step : model_.decoder) {
    const bool spells = step.kind == Kind::kReplace || step.kind == Kind::kMetaspace;
    if (spells && !is_mark(id)) bytes = text_rule::replaced(bytes, step.from, step.to, growing);
  }
  out += bytes;
}

}  // namespace fovea

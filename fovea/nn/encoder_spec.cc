// SPDX-License-Identifier: Apache-2.0
#include "fovea/nn/encoder_spec.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <span>

#include "fovea/base/check.h"
#include "fovea/base/option.h"
#include "fovea/base/printable.h"
#include "fovea/config/suggest.h"

namespace fovea {

namespace {

using Kind = EncoderLayerKind;

struct LayerName {
  std::string_view name;
  Kind kind;
  RecurrentKind cell = RecurrentKind::kRnn;
  bool bidirectional = false;
};

constexpr std::array kLayers = {
    LayerName{"rnn", Kind::kRecurrent, RecurrentKind::kRnn},
    LayerName{"gru", Kind::kRecurrent, RecurrentKind::kGru},
    LayerName{"lstm", Kind::kRecurrent, RecurrentKind::kLstm},
    LayerName{"sru", Kind::kRecurrent, RecurrentKind::kSru},
    LayerName{"birnn", Kind::kRecurrent, RecurrentKind::kRnn, true},
    LayerName{"bigru", Kind::kRecurrent, RecurrentKind::kGru, true},
    LayerName{"bilstm", Kind::kRecurrent, RecurrentKind::kLstm, true},
    LayerName{"bisru", Kind::kRecurrent, RecurrentKind::kSru, true},
    LayerName{"attention-rnn", Kind::kAttentionRnn},
    LayerName{"conv", Kind::kConvolution},
    LayerName{"textcnn", Kind::kTextCnn},
    LayerName{"attention", Kind::kAttention},
    LayerName{"ff", Kind::kFeedForward},
    LayerName{"transformer", Kind::kTransformer},
};

// A part of the text, and where it begins.
struct Piece {
  std::string_view text;
  std::size_t at = 0;
};

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  std::vector<EncoderStage> encoder() const {
    constexpr std::size_t kLongest = 65536;
    if (text_.size() > kLongest) {
      throw Error(ErrorCode::kOptionValue,
                  fmt::format("--encoder: the text has {} bytes", text_.size()),
                  fmt::format("at most {} are read; layers=N repeats a layer", kLongest));
    }
    std::vector<EncoderStage> stages;
    for (const Piece& stage : stage_texts()) {
      stages.emplace_back();
      for (const Piece& one : split(stage, '+')) stages.back().push_back(layer(trimmed(one)));
    }
    return stages;
  }

  [[noreturn]] void fail_at(const Piece& where, std::string_view what, std::string hint) const {
    // UTF-8: bytes 10xxxxxx continue a character.
    const auto begins = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; };
    const auto before = std::count_if(text_.begin(), text_.begin() + where.at, begins);
    throw Error(
        ErrorCode::kOptionValue,
        fmt::format("--encoder: at character {} of {}: {}", before + 1, printable(text_), what),
        std::move(hint));
  }

  // "8" of "heads=8".
  index number(const Piece& value) const {
    index parsed = 0;
    const char* const end = value.text.data() + value.text.size();
    const auto [stop, error] = std::from_chars(value.text.data(), end, parsed);
    constexpr index kMost = std::numeric_limits<std::int32_t>::max();
    if (value.text.empty() || stop != end || error != std::errc() || parsed < 0 || parsed > kMost) {
      fail_at(value, fmt::format("{} is no number in 0 to {}", printable(value.text), kMost),
              "write digits alone, such as 8");
    }
    return parsed;
  }

  // "0.5" of "scale=0.5".
  double real(const Piece& value) const {
    double parsed = 0;
    const char* const end = value.text.data() + value.text.size();
    const auto [stop, error] = std::from_chars(value.text.data(), end, parsed);
    if (value.text.empty() || stop != end || error != std::errc() || !std::isfinite(parsed) ||
        parsed <= 0) {
      fail_at(value, fmt::format("{} is no number above 0", printable(value.text)),
              "write it as 0.25 or 1e-2, for example");
    }
    return parsed;
  }

  template <class Enum>
  Enum choice(const Piece& value) const {
    std::vector<std::string> names;
    for (const auto& [candidate, name] : enum_names(Enum{})) {
      if (name == value.text) return candidate;
      names.emplace_back(name);
    }
    fail_at(value, fmt::format("{} is not known", printable(value.text)),
            fmt::format("give one of: {}", fmt::join(names, ", ")));
  }

 private:
  // Without blanks at its ends; of blanks alone nothing stays, at their end.
  static Piece trimmed(Piece piece) {
    const std::size_t begin = std::min(piece.text.find_first_not_of(' '), piece.text.size());
    piece.text.remove_prefix(begin);
    piece.text = piece.text.substr(0, piece.text.find_last_not_of(' ') + 1);  // npos + 1 is 0
    return {piece.text, piece.at + begin};
  }

  static std::vector<Piece> split(const Piece& whole, char between) {
    std::vector<Piece> pieces;
    std::size_t begin = 0;
    for (;;) {
      const std::size_t end = std::min(whole.text.find(between, begin), whole.text.size());
      pieces.push_back({whole.text.substr(begin, end - begin), whole.at + begin});
      if (end == whole.text.size()) return pieces;
      begin = end + 1;
    }
  }

  // Commas also stand between the windows of textcnn: no layer begins with a digit.
  std::vector<Piece> stage_texts() const {
    std::vector<Piece> stages;
    for (const Piece& piece : split({text_, 0}, ',')) {
      const std::string_view text = trimmed(piece).text;
      const bool goes_on = !stages.empty() && !text.empty() && is_digit(text[0]) &&
                           last_layer(stages.back()).starts_with("textcnn:");
      if (!goes_on) {
        stages.push_back(piece);
        continue;
      }
      const Piece& begun = stages.back();
      stages.back().text = text_.substr(begun.at, piece.at + piece.text.size() - begun.at);
    }
    return stages;
  }

  static std::string_view last_layer(const Piece& stage) {
    return trimmed(split(stage, '+').back()).text;
  }
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }

  std::vector<index> widths(const Piece& text) const;
  EncoderLayerSpec layer(const Piece& text) const;
  EncoderLayerSpec named_layer(const Piece& name) const;
  std::string_view set(EncoderLayerSpec& spec, std::string_view layer, const Piece& setting) const;

  std::string_view text_;
};

// A setting with a value, or a flag without.
struct Setting {
  std::string_view name;
  std::initializer_list<Kind> kinds;  // of the layers that have it
  void (*set)(EncoderLayerSpec& spec, const Parser& parser, const Piece& value);
  bool is_flag = false;

  bool belongs_to(Kind kind) const {
    return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
  }
};

constexpr std::initializer_list<Kind> kEvery = {Kind::kRecurrent,   Kind::kAttentionRnn,
                                                Kind::kConvolution, Kind::kAttention,
                                                Kind::kFeedForward, Kind::kTransformer};
constexpr std::initializer_list<Kind> kSized = {Kind::kRecurrent, Kind::kAttentionRnn,
                                                Kind::kConvolution, Kind::kTextCnn};
constexpr std::initializer_list<Kind> kConvolutions = {Kind::kConvolution};
constexpr std::initializer_list<Kind> kDilated = {Kind::kConvolution, Kind::kAttention,
                                                  Kind::kTransformer};
constexpr std::initializer_list<Kind> kHeaded = {Kind::kAttentionRnn, Kind::kAttention,
                                                 Kind::kTransformer};
constexpr std::initializer_list<Kind> kAttending = {Kind::kAttention, Kind::kTransformer};
constexpr std::initializer_list<Kind> kAttentions = {Kind::kAttention};
constexpr std::initializer_list<Kind> kHidden = {Kind::kFeedForward, Kind::kTransformer};
constexpr std::initializer_list<Kind> kActivated = {Kind::kConvolution, Kind::kFeedForward,
                                                    Kind::kTransformer};
constexpr std::initializer_list<Kind> kMayBePlain = {Kind::kRecurrent, Kind::kConvolution,
                                                     Kind::kAttention, Kind::kFeedForward};

// A size that must not be 0.
template <index EncoderLayerSpec::*kMember>
void set_size(EncoderLayerSpec& spec, const Parser& parser, const Piece& value) {
  spec.*kMember = parser.number(value);
  if (spec.*kMember == 0)
    parser.fail_at(value, "it must be at least 1", "leave it out to have its usual value");
}

const Setting kSettings[] = {
    {"width", kSized, set_size<&EncoderLayerSpec::width>},
    {"layers", kEvery, set_size<&EncoderLayerSpec::layers>},
    {"dilation", kDilated, set_size<&EncoderLayerSpec::dilation>},
    {"gated", kConvolutions, [](auto& spec, auto&, auto&) { spec.gated = true; }, true},
    {"heads", kHeaded, set_size<&EncoderLayerSpec::heads>},
    {"kv-heads", kAttending, set_size<&EncoderLayerSpec::kv_heads>},
    {"head-dim", kAttending, set_size<&EncoderLayerSpec::head_dim>},
    {"window", kHeaded, [](auto& spec, auto& p, auto& v) { spec.window = p.number(v); }},
    {"strided", kAttending, set_size<&EncoderLayerSpec::strided>},
    {"scale", kAttending, [](auto& spec, auto& p, auto& v) { spec.scale = p.real(v); }},
    {"no-output", kAttentions, [](auto& spec, auto&, auto&) { spec.no_output = true; }, true},
    {"position", kAttending,
     [](auto& spec, auto& p, auto& v) { spec.position = p.template choice<PositionKind>(v); }},
    {"joints", kEvery, [](auto& spec, auto&, auto&) { spec.joints = true; }, true},
    {"ff", kHidden, set_size<&EncoderLayerSpec::ff>},
    {"activation", kActivated,
     [](auto& spec, auto& p, auto& v) { spec.activation = p.template choice<Activation>(v); }},
    {"residual", kMayBePlain, [](auto& spec, auto&, auto&) { spec.residual = true; }, true},
    {"plain", kMayBePlain, [](auto& spec, auto&, auto&) { spec.residual = false; }, true},
};

std::vector<std::string> settings_of(Kind kind) {
  std::vector<std::string> names;
  for (const Setting& setting : kSettings) {
    if (setting.belongs_to(kind)) names.emplace_back(setting.name);
  }
  return names;
}

std::string either(std::string guess, std::string list) {
  return guess.empty() ? list : guess + " " + list;
}

EncoderLayerSpec Parser::named_layer(const Piece& name) const {
  const std::size_t letters = std::min(name.text.find_first_of("0123456789"), name.text.size());
  const LayerName* const row = find_named(kLayers, name.text.substr(0, letters));
  if (row == nullptr) {
    std::vector<std::string> names;
    for (const LayerName& layer : kLayers) names.emplace_back(layer.name);
    const std::string guess = did_you_mean(std::string(name.text.substr(0, letters)), names);
    fail_at(name,
            name.text.empty() ? "a layer is missing"
                              : fmt::format("there is no layer {}", printable(name.text)),
            either(guess, "layers are: " + names_in(kLayers)));
  }
  EncoderLayerSpec spec;
  spec.kind = row->kind;
  spec.cell = row->cell;
  spec.bidirectional = row->bidirectional;
  const Piece digits{name.text.substr(letters), name.at + letters};
  const bool numbered = row->kind == Kind::kConvolution;
  if (numbered && digits.text.empty()) {
    fail_at(name, "a convolution needs its width in tokens", "write conv3, for example");
  }
  if (!numbered && !digits.text.empty()) {
    const bool has_width = std::find(kSized.begin(), kSized.end(), row->kind) != kSized.end();
    fail_at(digits, fmt::format("{} takes no number here", row->name),
            has_width ? fmt::format("write {}:{} for its width", row->name, digits.text)
                      : fmt::format("settings of {} are: {}", row->name,
                                    fmt::join(settings_of(row->kind), ", ")));
  }
  if (numbered) spec.kernel = number(digits);
  if (numbered && spec.kernel == 0) fail_at(digits, "a convolution needs a token", "write conv3");
  return spec;
}

// Returns what was set; residual and plain are one choice.
std::string_view Parser::set(EncoderLayerSpec& spec, std::string_view layer,
                             const Piece& setting) const {
  const std::size_t equals = setting.text.find('=');
  const bool has_value = equals != std::string_view::npos;
  std::string_view name = setting.text.substr(0, equals);
  Piece value{has_value ? setting.text.substr(equals + 1) : std::string_view(),
              setting.at + (has_value ? equals + 1 : setting.text.size())};
  if (!has_value && !name.empty() && name.find_first_not_of("0123456789") == name.npos) {
    value = setting;
    name = "width";
  }
  const Setting* const row = find_named(kSettings, name);
  if (row == nullptr || !row->belongs_to(spec.kind)) {
    const std::vector<std::string> names = settings_of(spec.kind);
    fail_at(setting, fmt::format("{} has no setting {}", layer, printable(name)),
            either(did_you_mean(std::string(name), names),
                   fmt::format("settings of {} are: {}", layer, fmt::join(names, ", "))));
  }
  if (row->is_flag && has_value) {
    fail_at(value, fmt::format("'{}' takes no value", name), fmt::format("write :{}", name));
  }
  if (!row->is_flag && value.text.empty()) {
    fail_at(value, fmt::format("'{}' needs a value", name), fmt::format("write {}=VALUE", name));
  }
  row->set(spec, *this, value);
  return row->name == "plain" ? "residual" : row->name;
}

std::vector<index> Parser::widths(const Piece& text) const {
  std::vector<index> widths;
  for (const Piece& piece : split(text, ',')) {
    const Piece width = trimmed(piece);
    widths.push_back(number(width));
    if (widths.back() == 0) fail_at(width, "a window needs a token", "write textcnn:3,4,5");
  }
  return widths;
}

EncoderLayerSpec Parser::layer(const Piece& text) const {
  const std::vector<Piece> pieces = split(text, ':');
  EncoderLayerSpec spec = named_layer(pieces[0]);
  std::size_t settings = 1;
  if (spec.kind == Kind::kTextCnn) {
    if (pieces.size() == 1 || pieces[1].text.empty() || !is_digit(pieces[1].text[0])) {
      fail_at(pieces[0], "textcnn needs the widths of its windows, in tokens",
              "write textcnn:3,4,5, for example");
    }
    spec.widths = widths(pieces[1]);
    settings = 2;
  }
  std::vector<std::string_view> given;
  for (std::size_t n = settings; n < pieces.size(); ++n) {
    const std::string_view name = set(spec, pieces[0].text, pieces[n]);
    if (std::find(given.begin(), given.end(), name) != given.end()) {
      fail_at(pieces[n],
              name == "residual" ? "'residual' or 'plain' is said twice"
                                 : fmt::format("'{}' is given twice", name),
              "remove one of the two");
    }
    given.push_back(name);
  }
  return spec;
}

}  // namespace

std::vector<EncoderStage> parse_encoder(std::string_view text) { return Parser(text).encoder(); }

std::string layer_name(const EncoderLayerSpec& spec) {
  for (const LayerName& row : kLayers) {
    const bool same_cell = row.cell == spec.cell && row.bidirectional == spec.bidirectional;
    if (row.kind != spec.kind || (spec.kind == Kind::kRecurrent && !same_cell)) continue;
    return spec.kind == Kind::kConvolution ? fmt::format("{}{}", row.name, spec.kernel)
                                           : std::string(row.name);
  }
  fail(ErrorCode::kInternal, "encoder: a layer has no name");
}

}  // namespace fovea

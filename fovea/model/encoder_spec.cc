// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/encoder_spec.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>

#include "fovea/base/check.h"
#include "fovea/base/option.h"
#include "fovea/base/words.h"
#include "fovea/config/suggest.h"
#include "fovea/model/layer_table.h"

namespace fovea {

namespace {

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

  // Commas also stand between the windows of a layer: no layer begins with a digit.
  std::vector<Piece> stage_texts() const {
    std::vector<Piece> stages;
    for (const Piece& piece : split({text_, 0}, ',')) {
      const std::string_view text = trimmed(piece).text;
      const bool goes_on =
          !stages.empty() && !text.empty() && is_digit(text[0]) && begins_windows(stages.back());
      if (!goes_on) {
        stages.push_back(piece);
        continue;
      }
      const Piece& begun = stages.back();
      stages.back().text = text_.substr(begun.at, piece.at + piece.text.size() - begun.at);
    }
    return stages;
  }

  static bool begins_windows(const Piece& stage) {
    const std::vector<Piece> pieces = split(trimmed(split(stage, '+').back()), ':');
    const LayerKind* const kind = find_named(layer_kinds(), pieces[0].text);
    return kind != nullptr && kind->windowed && pieces.size() > 1;
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
  void (*set)(EncoderLayerSpec& spec, const Parser& parser, const Piece& value);
  bool is_flag = false;
};

// A size that must not be 0.
template <index EncoderLayerSpec::*kMember>
void set_size(EncoderLayerSpec& spec, const Parser& parser, const Piece& value) {
  spec.*kMember = parser.number(value);
  if (spec.*kMember == 0)
    parser.fail_at(value, "it must be at least 1", "leave it out to have its usual value");
}

const Setting kSettings[] = {
    {"width", set_size<&EncoderLayerSpec::width>},
    {"layers", set_size<&EncoderLayerSpec::layers>},
    {"dilation", set_size<&EncoderLayerSpec::dilation>},
    {"gated", [](auto& spec, auto&, auto&) { spec.gated = true; }, true},
    {"heads", set_size<&EncoderLayerSpec::heads>},
    {"kv-heads", set_size<&EncoderLayerSpec::kv_heads>},
    {"head-dim", set_size<&EncoderLayerSpec::head_dim>},
    {"window", [](auto& spec, auto& p, auto& v) { spec.window = p.number(v); }},
    {"strided", set_size<&EncoderLayerSpec::strided>},
    {"scale", [](auto& spec, auto& p, auto& v) { spec.scale = p.real(v); }},
    {"no-output", [](auto& spec, auto&, auto&) { spec.no_output = true; }, true},
    {"position",
     [](auto& spec, auto& p, auto& v) { spec.position = p.template choice<PositionKind>(v); }},
    {"joints", [](auto& spec, auto&, auto&) { spec.joints = true; }, true},
    {"ff", set_size<&EncoderLayerSpec::ff>},
    {"activation",
     [](auto& spec, auto& p, auto& v) { spec.activation = p.template choice<LayerActivation>(v); }},
    {"residual", [](auto& spec, auto&, auto&) { spec.residual = true; }, true},
    {"plain", [](auto& spec, auto&, auto&) { spec.residual = false; }, true},
};

std::vector<std::string> settings_of(const LayerKind& kind) {
  std::vector<std::string> names;
  for (const Setting& setting : kSettings) {
    if (kind.has_setting(setting.name)) names.emplace_back(setting.name);
  }
  return names;
}

std::string either(std::string guess, std::string list) {
  return guess.empty() ? list : guess + " " + list;
}

EncoderLayerSpec Parser::named_layer(const Piece& name) const {
  const std::size_t letters = std::min(name.text.find_first_of("0123456789"), name.text.size());
  const LayerKind* const kind = find_named(layer_kinds(), name.text.substr(0, letters));
  if (kind == nullptr) {
    std::vector<std::string> names;
    for (const LayerKind& layer : layer_kinds()) names.emplace_back(layer.name);
    const std::string guess = did_you_mean(std::string(name.text.substr(0, letters)), names);
    fail_at(name,
            name.text.empty() ? "a layer is missing"
                              : fmt::format("there is no layer {}", printable(name.text)),
            either(guess, "layers are: " + names_in(layer_kinds())));
  }
  EncoderLayerSpec spec;
  spec.kind = kind;
  const Piece digits{name.text.substr(letters), name.at + letters};
  if (kind->numbered) {
    const std::string example = fmt::format("write {}3, for example", kind->name);
    if (digits.text.empty())
      fail_at(name, fmt::format("{} needs its width in tokens", kind->name), example);
    spec.kernel = number(digits);
    if (spec.kernel == 0) fail_at(digits, fmt::format("{} needs a token", kind->name), example);
  } else if (!digits.text.empty()) {
    fail_at(digits, fmt::format("{} takes no number here", kind->name),
            kind->has_setting("width")
                ? fmt::format("write {}:{} for its width", kind->name, digits.text)
                : fmt::format("settings of {} are: {}", kind->name,
                              fmt::join(settings_of(*kind), ", ")));
  }
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
  if (row == nullptr || !spec.kind->has_setting(name)) {
    const std::vector<std::string> names = settings_of(*spec.kind);
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
    if (widths.back() == 0) fail_at(width, "a window needs a token", "write 3,4,5, for example");
  }
  return widths;
}

EncoderLayerSpec Parser::layer(const Piece& text) const {
  const std::vector<Piece> pieces = split(text, ':');
  EncoderLayerSpec spec = named_layer(pieces[0]);
  std::size_t settings = 1;
  if (spec.kind->windowed) {
    if (pieces.size() == 1 || pieces[1].text.empty() || !is_digit(pieces[1].text[0])) {
      fail_at(pieces[0],
              fmt::format("{} needs the widths of its windows, in tokens", spec.kind->name),
              fmt::format("write {}:3,4,5, for example", spec.kind->name));
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

void fill_residual(EncoderLayerSpec& spec, index in, index out) {
  const LayerSum sum = spec.kind->sum;
  const bool usual = in == out && (sum == LayerSum::kUsual || sum == LayerSum::kInside);
  if (!spec.residual) spec.residual = usual;
  if (!*spec.residual || in == out) return;
  throw Error(ErrorCode::kShape,
              fmt::format("--encoder: {}:residual: a sum needs equal widths; {} columns become {}",
                          layer_name(spec), in, out),
              "leave out residual, or choose an equal width");
}

void check_sight(const EncoderLayerSpec& spec, const EncoderConfig& c) {
  if (spec.joints && c.joints == 0) {
    throw Error(ErrorCode::kOptionValue,
                fmt::format("--encoder: {}:joints: the input has no joints", layer_name(spec)),
                "with --input npz, x [sample, time, joints, features] has them");
  }
  if (spec.kind->reads_back && c.sight == Sight::kPast) {
    throw Error(ErrorCode::kOptionValue,
                fmt::format("--encoder: {} reads backwards, too: a language model must not see the "
                            "tokens that it predicts",
                            layer_name(spec)),
                fmt::format("take {}", layer_name(spec).substr(2)));
  }
}

SizedLayer sized(EncoderLayerSpec spec, const EncoderConfig& c, index in) {
  check_sight(spec, c);
  spec.kind->fill(spec, c, in);
  const index out = spec.kind->out(spec, in);
  fill_residual(spec, in, out);
  return {spec, in, out};
}

SizedStage sized(const EncoderStage& stage, const EncoderConfig& c, index in) {
  SizedStage result{.branches = {}, .in = in};
  for (const EncoderLayerSpec& spec : stage) result.branches.push_back(sized(spec, c, in));
  result.out = stage.size() == 1 ? result.branches[0].out : c.width;
  return result;
}

// A layer as the text says it, and with its sizes.
struct Layer {
  const EncoderLayerSpec& said;
  const EncoderLayerSpec& sized;
  bool is_alone;  // not side by side with others, which are joined by a product
};

bool attends(const Layer& layer) { return layer.said.kind->attends; }
bool takes_heads(const Layer& layer) { return attends(layer) && layer.said.heads == 0; }
bool takes_position(const Layer& layer) { return attends(layer) && !layer.said.position; }

bool feeds_forward(const Layer& layer) { return layer.said.kind->feeds_forward; }
bool takes_ff(const Layer& layer) { return feeds_forward(layer) && layer.said.ff == 0; }
bool takes_activation(const Layer& layer) { return feeds_forward(layer) && !layer.said.activation; }

bool has_norm(const Layer& layer) { return *layer.sized.residual; }
bool has_bias(const Layer& layer) {
  return attends(layer) || feeds_forward(layer) || has_norm(layer) || !layer.is_alone;
}

bool has_t5(const Layer& layer) {
  return attends(layer) && part_tensor(*layer.sized.position) == "t5";
}
bool has_shaw(const Layer& layer) {
  return attends(layer) && learns_tensor(*layer.sized.position, "shaw_k");
}
bool has_lstm(const Layer& layer) { return layer.said.kind->cell == RecurrentKind::kLstm; }
bool has_rotary(const Layer& layer) {
  return attends(layer) && *layer.sized.position == PositionKind::kRotary;
}
bool has_local_rotary(const Layer& layer) { return has_rotary(layer) && *layer.sized.window > 0; }

// A part of a model, and the layers that have it.
struct Part {
  std::string_view name;
  bool (*is_in)(const Layer&);
  std::string_view needs;  // what has it
  PartOwner owner;
};

constexpr Part kParts[] = {
    {"heads", takes_heads, "an attention layer in --encoder without heads= of its own",
     PartOwner::kAttention},
    {"attention", attends, "an attention layer in --encoder", PartOwner::kAttention},
    {"t5", has_t5, "--position t5 and an attention layer in --encoder", PartOwner::kAttention},
    {"shaw", has_shaw, "--position shaw and an attention layer in --encoder",
     PartOwner::kAttention},
    {"rotary", has_rotary, "--position rotary and an attention layer in --encoder",
     PartOwner::kAttention},
    {"local rotary", has_local_rotary,
     "--position rotary and an attention layer with a window in --encoder", PartOwner::kAttention},
    {"lstm", has_lstm, "a layer lstm or bilstm in --encoder", PartOwner::kLstm},
    {"ff", takes_ff, "a layer ff or transformer in --encoder without ff= of its own",
     PartOwner::kTransformer},
    {"activation", takes_activation,
     "a layer ff or transformer in --encoder without activation= of its own",
     PartOwner::kTransformer},
    {"norm", has_norm, "a layer with a residual sum in --encoder", PartOwner::kTransformer},
    {"bias", has_bias, "a layer of attention, ff, residual sums or side by side in --encoder",
     PartOwner::kAny},
};

const Part* part_called(std::string_view name) {
  const auto* part = std::find_if(std::begin(kParts), std::end(kParts),
                                  [&](const Part& one) { return one.name == name; });
  return part == std::end(kParts) ? nullptr : part;
}

bool any_layer(const EncoderConfig& config, const std::vector<SizedStage>& stages,
               bool (*is_on)(const Layer&)) {
  if (stages.empty()) return false;
  const std::vector<EncoderStage> said = parse_encoder(config.encoder);
  for (std::size_t n = 0; n < stages.size(); ++n) {
    const std::vector<SizedLayer>& branches = stages[n].branches;
    for (std::size_t b = 0; b < branches.size(); ++b) {
      if (is_on({said[n][b], branches[b].spec, branches.size() == 1})) return true;
    }
  }
  return false;
}

}  // namespace

std::vector<EncoderStage> parse_encoder(std::string_view text) { return Parser(text).encoder(); }

std::string layer_name(const EncoderLayerSpec& spec) {
  std::string name(spec.kind->name);
  return spec.kind->numbered ? name + std::to_string(spec.kernel) : name;
}

bool ends_with_text_cnn(const std::vector<SizedStage>& stages) {
  return !stages.empty() && stages.back().branches[0].spec.kind->is_last;
}

index reverse_columns(const std::vector<SizedStage>& stages) {
  if (stages.empty() || stages.back().branches.size() > 1) return 0;
  const EncoderLayerSpec& last = stages.back().branches[0].spec;
  return last.kind->reads_back && !last.joints ? last.width : 0;
}

std::vector<SizedStage> size_stages(const EncoderConfig& c, std::span<const EncoderStage> stages) {
  std::vector<SizedStage> result;
  index in = c.width;
  for (const EncoderStage& stage : stages) {
    result.push_back(sized(stage, c, in));
    for (const EncoderLayerSpec& spec : stage) {
      if (!spec.kind->is_last || (stage.size() == 1 && &stage == &stages.back())) continue;
      throw Error(ErrorCode::kOptionValue,
                  fmt::format("--encoder: {} must be the last layer, and alone", layer_name(spec)),
                  "what it makes of a text is the maximum over time, which no layer can read");
    }
    in = result.back().out;
  }
  if (projected_once_columns(c, result) > 0) result[0].branches[0].projected_once = true;
  return result;
}

index layer_count(const std::vector<SizedStage>& stages) {
  index count = 0;
  for (const SizedStage& stage : stages) {
    for (const SizedLayer& layer : stage.branches) {
      count += std::min(layer.spec.layers, kMostLayers + 1);
    }
  }
  return count;
}

void check_stages(const EncoderConfig& c, const std::vector<SizedStage>& stages) {
  if (layer_count(stages) > kMostLayers) {
    throw Error(ErrorCode::kOptionValue,
                fmt::format("--encoder: it has more than {} layers", kMostLayers),
                "choose a smaller layers=");
  }
  for (const SizedStage& stage : stages) {
    for (const SizedLayer& layer : stage.branches) {
      if (layer.spec.kind->attends) check_attention(config_of_layer(c, layer));
    }
  }
}

index reach_of(std::string_view encoder) {
  if (encoder.empty()) return 1;
  index reach = 1;
  for (const EncoderStage& stage : parse_encoder(encoder)) {
    for (const EncoderLayerSpec& layer : stage) {
      for (const index width : layer.widths) reach = std::max(reach, width);
      if (layer.kernel > 0) reach = std::max(reach, (layer.kernel - 1) * layer.dilation + 1);
    }
  }
  return reach;
}

index last_width(const EncoderConfig& c, const std::vector<SizedStage>& stages) {
  return stages.empty() ? c.width : stages.back().out;
}

bool ends_with_norm(const EncoderConfig& c, const std::vector<SizedStage>& stages) {
  if (c.norm_position == NormPosition::kPost) return false;
  for (const SizedStage& stage : stages) {
    for (const SizedLayer& layer : stage.branches) {
      if (*layer.spec.residual) return true;
    }
  }
  return false;
}

index projected_once_columns(const EncoderConfig& c, const std::vector<SizedStage>& stages) {
  const bool joins = c.position_join == PositionJoin::kConcatenate;
  if (c.features > 0 || c.dropout > 0 || joins || stages.empty()) return 0;
  const EncoderLayerSpec& first = stages[0].branches[0].spec;
  const bool alone = stages[0].branches.size() == 1 && !*first.residual && !first.joints;
  if (!alone || !first.kind->has_first_step) return 0;
  return (first.heads + 2 * first.kv_heads) * first.head_dim;
}

EncoderConfig config_of_layer(const EncoderConfig& config, const SizedLayer& layer) {
  EncoderConfig c = config;
  const EncoderLayerSpec& spec = layer.spec;
  c.width = layer.in;
  if (spec.kind->feeds_forward) {
    c.ff = spec.ff;
    c.activation = *spec.activation;
  }
  if (!spec.kind->attends) return c;
  c.heads = spec.heads;
  c.kv_heads = spec.kv_heads;
  c.head_dim = spec.head_dim;
  c.position = *spec.position;
  return c;
}

PartOwner owner_of_part(std::string_view name) {
  const Part* part = part_called(name);
  return part == nullptr ? PartOwner::kAny : part->owner;
}

std::string_view lacks_for_effect(std::string_view name, const EncoderConfig& config,
                                  const std::vector<SizedStage>& stages) {
  const bool adds_rows = adds_position_rows(config.position);
  if (name == "position") {
    const bool is_on = adds_rows || config.position == PositionKind::kNone ||
                       any_layer(config, stages, takes_position);
    return is_on ? "" : "an attention layer in --encoder without position= of its own";
  }
  if (name == "position rows") return adds_rows ? "" : "--position learned or sinusoidal";
  if (name == "sinusoid") {
    return config.position == PositionKind::kSinusoidal ? "" : "--position sinusoidal";
  }
  if (name.empty()) return "";
  const Part* part = part_called(name);
  if (part == nullptr) fail(ErrorCode::kInternal, "a field is of the part {}, which is none", name);
  return any_layer(config, stages, part->is_in) ? "" : part->needs;
}

}  // namespace fovea

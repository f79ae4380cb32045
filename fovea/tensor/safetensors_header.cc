// SPDX-License-Identifier: Apache-2.0
// The only file in this folder that includes nlohmann-json, which takes seconds to compile.
#include "fovea/tensor/safetensors_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "fovea/base/check.h"
#include "fovea/base/printable.h"

namespace fovea {

namespace {

using Json = nlohmann::json;

constexpr std::string_view kMetadataKey = "__metadata__";
constexpr std::size_t kLengthBytes = 8;

// In the order of the reference implementation, which writes the last ones first.
constexpr StoredType kStoredTypes[] = {
    {"BOOL", 8, DType::kUInt8},
    {"F4", 4, {}},
    {"F6_E2M3", 6, {}},
    {"F6_E3M2", 6, {}},
    {"U8", 8, DType::kUInt8},
    {"I8", 8, {}},
    {"F8_E5M2", 8, {}},
    {"F8_E4M3", 8, {}},
    {"F8_E8M0", 8, {}},
    {"F8_E4M3FNUZ", 8, {}},
    {"F8_E5M2FNUZ", 8, {}},
    {"I16", 16, {}},
    {"U16", 16, {}},
    {"F16", 16, {}},
    {"BF16", 16, DType::kBFloat16},
    {"I32", 32, DType::kInt32},
    {"U32", 32, {}},
    {"F32", 32, DType::kFloat32},
    {"C64", 64, {}},
    {"F64", 64, DType::kFloat64},
    {"I64", 64, DType::kInt64},
    {"U64", 64, {}},
};

[[noreturn]] void damaged(std::string_view where, const std::string& what) {
  throw Error(ErrorCode::kModelDamaged, fmt::format("{}: {}", where, what),
              "the file is damaged or is no safetensors file; restore it from a copy");
}

[[noreturn]] void unsupported(std::string_view where, const std::string& what) {
  throw Error(
      ErrorCode::kModelWrongKind, fmt::format("{}: {}", where, what),
      fmt::format("write the file again with at most {} tensors of up to {} axes, {} texts in "
                  "__metadata__, and shorter names",
                  kMaxHeaderEntries, Shape::kMaxAxes, kMaxHeaderEntries));
}

/// Receives the events of the JSON parser and checks at each what may come next.
class HeaderReader {
 public:
  HeaderReader(std::string_view where, SafetensorsHeader& header)
      : where_(where), header_(header) {}

  bool start_object(std::size_t) {
    if (state_ == State::kStart) return enter(State::kNames);
    if (state_ == State::kNames) return enter(in_metadata_ ? State::kMetadata : State::kEntry);
    unexpected("an object");
  }

  bool key(std::string& text) {
    if (state_ == State::kNames) return begin_item(text);
    if (state_ == State::kMetadata) {
      item_key_ = text;
      return true;
    }
    return begin_field(text);
  }

  bool end_object() {
    if (state_ == State::kEntry) finish_entry();
    state_ = state_ == State::kNames ? State::kEnd : State::kNames;
    in_metadata_ = false;
    return true;
  }

  bool string(std::string& text) {
    if (state_ == State::kMetadata) return add_metadata(text);
    if (state_ == State::kEntry && field_ == Field::kDType) return set_type(text);
    unexpected("a text");
  }

  bool start_array(std::size_t) {
    if (state_ == State::kEntry && (field_ == Field::kShape || field_ == Field::kOffsets)) {
      count_ = 0;
      return enter(State::kNumbers);
    }
    unexpected("an array");
  }

  bool end_array() {
    if (field_ == Field::kShape) axes_ = count_;
    if (field_ == Field::kOffsets && count_ != 2) entry_fails("data_offsets must be two numbers");
    return enter(State::kEntry);
  }

  bool number_unsigned(std::uint64_t value) {
    if (state_ != State::kNumbers) unexpected("a number");
    if (field_ == Field::kOffsets) {
      if (count_ == 2) entry_fails("data_offsets must be two numbers");
      offsets_[count_++] = value;
    } else {
      if (count_ == Shape::kMaxAxes) {
        unsupported(where_, fmt::format("tensor {} has more than {} axes", printable(item_key_),
                                        Shape::kMaxAxes));
      }
      sizes_[count_++] = value;
    }
    return true;
  }

  bool number_integer(std::int64_t) { unexpected("a negative number"); }
  bool number_float(double, const std::string&) {
    unexpected("a number that is no whole number of 64 bits");
  }
  bool null() { unexpected("null"); }
  bool boolean(bool) { unexpected("true or false"); }
  bool binary(Json::binary_t&) { unexpected("binary data"); }

  bool parse_error(std::size_t position, const std::string&, const Json::exception&) {
    damaged(where_, fmt::format("the header is no valid JSON at byte {}", position + kLengthBytes));
  }

 private:
  enum class State { kStart, kNames, kMetadata, kEntry, kNumbers, kEnd };
  enum class Field { kNone = 0, kDType = 1, kShape = 2, kOffsets = 4 };

  bool enter(State state) {
    state_ = state;
    return true;
  }

  bool begin_item(const std::string& name) {
    item_key_ = name;
    in_metadata_ = name == kMetadataKey;
    if (in_metadata_) {
      if (metadata_seen_) damaged(where_, "the header has two __metadata__");
      metadata_seen_ = true;
      return true;
    }
    if (header_.entries.size() == kMaxHeaderEntries) {
      unsupported(where_, fmt::format("more than {} tensors", kMaxHeaderEntries));
    }
    fields_seen_ = 0;
    field_ = Field::kNone;
    header_.entries.emplace_back().name = name;
    return true;
  }

  bool begin_field(const std::string& key) {
    field_ = key == "dtype"          ? Field::kDType
             : key == "shape"        ? Field::kShape
             : key == "data_offsets" ? Field::kOffsets
                                     : Field::kNone;
    if (field_ == Field::kNone) entry_fails("has the unknown key " + printable(key));
    if ((fields_seen_ & static_cast<int>(field_)) != 0)
      entry_fails("has the key " + key + " twice");
    fields_seen_ |= static_cast<int>(field_);
    return true;
  }

  bool add_metadata(const std::string& text) {
    if (header_.metadata.size() == kMaxHeaderEntries) {
      unsupported(where_, fmt::format("more than {} texts in __metadata__", kMaxHeaderEntries));
    }
    if (!header_.metadata.emplace(item_key_, text).second) {
      damaged(where_, fmt::format("__metadata__ has the key {} twice", printable(item_key_)));
    }
    return true;
  }

  bool set_type(const std::string& text) {
    const auto type = std::find_if(std::begin(kStoredTypes), std::end(kStoredTypes),
                                   [&](const StoredType& t) { return t.name == text; });
    if (type == std::end(kStoredTypes)) entry_fails("has the unknown dtype " + printable(text));
    header_.entries.back().type = type;
    return true;
  }

  void finish_entry() {
    if (fields_seen_ != 7) entry_fails("must have dtype, shape and data_offsets");
    SafetensorsEntry& entry = header_.entries.back();
    index sizes[Shape::kMaxAxes];
    for (std::size_t i = 0; i < axes_; ++i) {
      if (sizes_[i] > static_cast<std::uint64_t>(std::numeric_limits<index>::max())) {
        entry_fails("has more values than can be counted");
      }
      sizes[i] = static_cast<index>(sizes_[i]);
    }
    try {
      entry.shape = Shape(std::span<const index>(sizes, axes_));
    } catch (const Error&) {
      entry_fails("has more values than can be counted");
    }
    entry.begin = offsets_[0];
    entry.end = offsets_[1];
    check_size(entry);
  }

  void check_size(const SafetensorsEntry& entry) const {
    const auto values = static_cast<std::uint64_t>(entry.shape.size());
    const auto bits_each = static_cast<std::uint64_t>(entry.type->bits);
    if (values > std::numeric_limits<std::uint64_t>::max() / bits_each) {
      entry_fails("has more bits than can be counted");
    }
    const std::uint64_t bits = values * bits_each;
    if (bits % 8 != 0) entry_fails("does not fill whole bytes");
    if (entry.begin > entry.end) entry_fails("ends before it begins");
    if (entry.end - entry.begin != bits / 8) {
      entry_fails(fmt::format("is {} {} and needs {} bytes; its offsets span {}", entry.type->name,
                              to_string(entry.shape), bits / 8, entry.end - entry.begin));
    }
  }

  [[noreturn]] void entry_fails(const std::string& what) const {
    damaged(where_, fmt::format("tensor {} {}", printable(item_key_), what));
  }

  [[noreturn]] void unexpected(std::string_view what) const {
    damaged(where_, fmt::format("the header has {} where none may be (at {})", what,
                                item_key_.empty() ? "its start" : printable(item_key_)));
  }

  std::string_view where_;
  SafetensorsHeader& header_;
  State state_ = State::kStart;
  bool in_metadata_ = false;
  bool metadata_seen_ = false;
  std::string item_key_;  // the tensor, or the key of the metadata, that is being read
  Field field_ = Field::kNone;
  int fields_seen_ = 0;
  std::size_t count_ = 0, axes_ = 0;
  std::uint64_t sizes_[Shape::kMaxAxes] = {};
  std::uint64_t offsets_[2] = {};
};

std::uint64_t little_endian_u64(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = kLengthBytes; i-- > 0;)
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

/// The JSON text, its length checked. It is read into `room` unless the file is in memory.
std::string_view header_text(const ByteSource& file, std::string_view where,
                             std::uint64_t most_bytes, std::string& room) {
  if (file.size() < kLengthBytes) {
    damaged(where, fmt::format("{} bytes are too few for a header", file.size()));
  }
  const std::uint64_t length = little_endian_u64(file.view(0, kLengthBytes, room));
  if (length > most_bytes) {
    damaged(where,
            fmt::format("the header claims {} bytes; at most {} are allowed", length, most_bytes));
  }
  if (length > file.size() - kLengthBytes) {
    damaged(where, fmt::format("the header claims {} bytes; the file has {} after its length",
                               length, file.size() - kLengthBytes));
  }
  return file.view(kLengthBytes, static_cast<std::size_t>(length), room);
}

// Refuses what the JSON parser would accept or waste memory on: it skips a byte order mark, takes a
// zero byte for the end of the text, and keeps two copies of the token that it reads.
void check_text(std::string_view text, std::string_view where) {
  const std::size_t first = text.find_first_not_of(" \t\n\r");
  if (first == std::string_view::npos || text[first] != '{') {
    damaged(where, "the header must be a JSON object");
  }
  if (text.find('\0') != std::string_view::npos) damaged(where, "the header has a zero byte");
  std::size_t token = 0;
  for (const char c : text) {
    token = c == '"' || c == ',' || c == ':' ? 0 : token + 1;
    if (token > kMaxHeaderTokenBytes) {
      unsupported(where, fmt::format("the header has a name or text of over {} bytes",
                                     kMaxHeaderTokenBytes));
    }
  }
}

void check_names(const std::vector<SafetensorsEntry>& entries, std::string_view where) {
  std::vector<std::string_view> names;
  names.reserve(entries.size());
  for (const SafetensorsEntry& entry : entries) names.push_back(entry.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end())
    damaged(where, fmt::format("tensor {} is there twice", printable(*twice)));
}

/// Sorts the entries by offset; their values must fill the rest of the file without hole or
/// overlap.
void check_layout(std::vector<SafetensorsEntry>& entries, std::uint64_t bytes,
                  std::string_view where) {
  std::sort(entries.begin(), entries.end(),
            [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
              return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
            });
  std::uint64_t end = 0;
  for (const SafetensorsEntry& entry : entries) {
    if (entry.begin != end) {
      damaged(where, fmt::format("tensor {} begins at {}; the one before ends at {}",
                                 printable(entry.name), entry.begin, end));
    }
    end = entry.end;
  }
  if (end != bytes) {
    damaged(where,
            fmt::format("the tensors need {} bytes after the header; the file has {}", end, bytes));
  }
}

std::string json_text(const std::string& text) {
  try {
    return Json(text).dump();
  } catch (const Json::exception&) {
    fail(ErrorCode::kShape, "safetensors: {} is no valid UTF-8", printable(text));
  }
}

std::string json_entry(const SafetensorsEntry& entry) {
  return fmt::format("{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                     json_text(entry.name), entry.type->name,
                     fmt::join(entry.shape.begin(), entry.shape.end(), ","), entry.begin,
                     entry.end);
}

}  // namespace

const StoredType& stored_type(DType dtype) {
  // Search from the end, so that uint8 is written as U8 and not as BOOL.
  return *std::find_if(std::rbegin(kStoredTypes), std::rend(kStoredTypes),
                       [&](const StoredType& type) { return type.dtype == dtype; });
}

SafetensorsHeader parse_safetensors_header(const ByteSource& file, std::string_view where,
                                           std::uint64_t most_bytes) {
  std::string room;
  const std::string_view text = header_text(file, where, most_bytes, room);
  check_text(text, where);
  SafetensorsHeader header;
  header.data_begin = kLengthBytes + text.size();
  HeaderReader reader(where, header);
  Json::sax_parse(text.begin(), text.end(), &reader);
  check_names(header.entries, where);
  check_layout(header.entries, file.size() - header.data_begin, where);
  return header;
}

SafetensorsHeader parse_safetensors_header(std::string_view file, std::string_view where) {
  return parse_safetensors_header(MemorySource(file), where);
}

std::string safetensors_header_bytes(const SafetensorsHeader& header) {
  std::vector<std::string> items;
  if (!header.metadata.empty()) {
    std::vector<std::string> texts;
    for (const auto& [key, text] : header.metadata) {
      texts.push_back(fmt::format("{}:{}", json_text(key), json_text(text)));
    }
    items.push_back(fmt::format("\"{}\":{{{}}}", kMetadataKey, fmt::join(texts, ",")));
  }
  std::set<std::string_view> names = {kMetadataKey};
  for (const SafetensorsEntry& entry : header.entries) {
    check(names.insert(entry.name).second, "safetensors: the name {} is reserved or taken twice",
          printable(entry.name));
    items.push_back(json_entry(entry));
  }
  std::string json = fmt::format("{{{}}}", fmt::join(items, ","));
  json.resize((json.size() + 7) / 8 * 8, ' ');
  std::string bytes;
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    bytes += static_cast<char>(static_cast<std::uint64_t>(json.size()) >> (8 * i) & 0xff);
  }
  return bytes + json;
}

}  // namespace fovea

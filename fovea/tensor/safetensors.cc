// SPDX-License-Identifier: Apache-2.0
// The only file in this folder that includes nlohmann-json, which takes seconds to compile.
#include "fovea/tensor/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/base/file.h"
#include "fovea/base/precision.h"
#include "fovea/base/words.h"
#include "fovea/tensor/checksum.h"
#include "fovea/tensor/quantized.h"

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
      entry_fails(fmt::format("has the key {} twice", key));
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

static_assert(std::endian::native == std::endian::little,
              "values are stored as they lie in memory");

namespace {

constexpr std::size_t kChecksumDigits = 32;
const std::string kNoChecksum(kChecksumDigits, '0');

/// Where the digits of the checksum stand in a header written by fovea, or npos. Quotes inside a
/// text are escaped, so only the key itself can look like this.
std::size_t checksum_position(std::string_view header) {
  const std::string before = fmt::format("\"{}\":\"", kChecksumKey);
  const std::size_t found = header.find(before);
  if (found == std::string_view::npos) return found;
  const std::size_t begin = found + before.size();
  return header.size() - begin < kChecksumDigits ? std::string_view::npos : begin;
}

/// The checksum of the file, with zeros where its own digits stand.
std::string checksum_of(const ByteSource& file, std::uint64_t digits) {
  constexpr std::uint64_t kPiece = std::uint64_t{1} << 20;
  std::uint64_t at = 0;
  std::string room;
  return xxh3_128_of([&]() -> std::string_view {
    const std::uint64_t begin = at;
    if (begin == digits) {
      at += kChecksumDigits;
      return kNoChecksum;
    }
    const std::uint64_t end = begin < digits ? digits : file.size();
    at += std::min(end - begin, kPiece);
    return file.view(begin, static_cast<std::size_t>(at - begin), room);
  });
}

/// Pointers to the tensors in the order in which their values are written.
std::vector<const NamedTensor*> in_file_order(std::span<const NamedTensor> tensors) {
  std::vector<const NamedTensor*> order;
  for (const NamedTensor& named : tensors) {
    check(named.tensor.defined(), "safetensors: {} is no tensor", printable(named.name));
    order.push_back(&named);
  }
  std::sort(order.begin(), order.end(), [](const NamedTensor* a, const NamedTensor* b) {
    const StoredType* const type_a = &stored_type(a->tensor.dtype());
    const StoredType* const type_b = &stored_type(b->tensor.dtype());
    return std::tie(type_b, a->name) < std::tie(type_a, b->name);
  });
  return order;
}

}  // namespace

const Tensor* Safetensors::find(std::string_view name) const {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&](const NamedTensor& named) { return named.name == name; });
  return found == tensors.end() ? nullptr : &found->tensor;
}

const Tensor& Safetensors::at(std::string_view name) const {
  const Tensor* tensor = find(name);
  if (tensor == nullptr)
    fail(ErrorCode::kModelDamaged, "the tensor {} is missing", printable(name));
  return *tensor;
}

SafetensorsSource::SafetensorsSource(const ByteSource& file, std::string where,
                                     std::uint64_t most_header_bytes)
    : file_(file),
      where_(std::move(where)),
      header_(parse_safetensors_header(file_, where_, most_header_bytes)) {
  names_.reserve(header_.entries.size());
  for (SafetensorsEntry& entry : header_.entries) names_.push_back(std::move(entry.name));
}

TensorInfo SafetensorsSource::info(std::size_t n) const {
  const SafetensorsEntry& entry = header_.entries[n];
  if (entry.type->dtype) return {names_[n], *entry.type->dtype, entry.shape};
  throw Error(
      ErrorCode::kModelWrongKind,
      fmt::format("{}: tensor {} is {}; only F32, BF16, F64, I32, I64, U8 and BOOL can be used",
                  where_, printable(names_[n]), entry.type->name),
      "convert the tensor to one of these types");
}

Tensor SafetensorsSource::read(std::size_t n) const {
  const TensorInfo known = info(n);
  Tensor tensor = Tensor::empty(known.shape, known.dtype);
  const auto bytes = tensor.bytes();
  if (!bytes.empty()) {
    file_.read(header_.data_begin + header_.entries[n].begin,
               {reinterpret_cast<char*>(bytes.data()), bytes.size()});
  }
  return tensor;
}

std::optional<BlockType> SafetensorsSource::block_type(std::size_t n) const {
  const std::string_view name = type(n);
  if (name == "F16") return BlockType::kFloat16;
  if (name == "BF16") return BlockType::kBFloat16;
  return std::nullopt;
}

SharedBytes SafetensorsSource::blocks(std::size_t n) const {
  const SafetensorsEntry& entry = header_.entries[n];
  check(block_type(n).has_value(), "tensor {} does not lie in halves", printable(names_[n]));
  return file_.share(header_.data_begin + entry.begin,
                     static_cast<std::size_t>(entry.shape.size()) * 2);
}

void SafetensorsSource::read_widened(std::size_t n, Vec<float> to) const {
  constexpr index kPiece = index{1} << 16;  // values at once
  const SafetensorsEntry& entry = header_.entries[n];
  check(entry.shape.size() == to.size, "{}: tensor {} has {} values, not {}", where_,
        printable(names_[n]), entry.shape.size(), to.size);
  const std::uint64_t begin = header_.data_begin + entry.begin;
  if (entry.type->dtype == DType::kFloat32) {
    if (to.size > 0) {
      file_.read(begin, {reinterpret_cast<char*>(to.data),
                         static_cast<std::size_t>(to.size) * sizeof(float)});
    }
    return;
  }
  const bool is_half = entry.type->name == "F16";
  if (!is_half && entry.type->dtype != DType::kBFloat16) {
    throw Error(ErrorCode::kModelWrongKind,
                fmt::format("{}: tensor {} is {}; expected F32, F16 or BF16", where_,
                            printable(names_[n]), entry.type->name),
                "save the model in one of these types");
  }
  std::vector<std::uint16_t> stored(static_cast<std::size_t>(std::min(to.size, kPiece)));
  for (index first = 0; first < to.size; first += kPiece) {
    const index count = std::min(kPiece, to.size - first);
    file_.read(begin + static_cast<std::uint64_t>(first) * sizeof(std::uint16_t),
               {reinterpret_cast<char*>(stored.data()),
                static_cast<std::size_t>(count) * sizeof(std::uint16_t)});
    for (index i = 0; i < count; ++i) {
      const std::uint16_t bits = stored[static_cast<std::size_t>(i)];
      to[first + i] = is_half ? float_of_half(bits) : to_float(BFloat16{bits});
    }
  }
}

void SafetensorsSource::verify(ChecksumRule rule) const {
  const auto expected = header_.metadata.find(std::string(kChecksumKey));
  if (expected == header_.metadata.end()) {
    if (rule == ChecksumRule::kIfPresent) return;
    throw Error(ErrorCode::kModelDamaged, fmt::format("{}: the checksum is missing", where_),
                "the file is damaged, or was not written by fovea");
  }
  std::string room;
  const std::size_t digits =
      checksum_position(file_.view(0, static_cast<std::size_t>(header_.data_begin), room));
  const std::string got =
      digits == std::string_view::npos ? "none where it belongs" : checksum_of(file_, digits);
  if (got == expected->second) return;
  throw Error(ErrorCode::kModelDamaged,
              fmt::format("{}: wrong checksum: expected {}, got {}", where_,
                          printable(expected->second), got),
              "the file is damaged; restore it from a copy, or, if it is a model's, write it again "
              "with --resume of the command that trained it");
}

Safetensors SafetensorsSource::take() {
  Safetensors result;
  result.metadata = std::move(header_.metadata);
  result.tensors.reserve(names_.size());
  for (std::size_t n = 0; n < names_.size(); ++n) {
    Tensor tensor = read(n);
    result.tensors.push_back({std::move(names_[n]), std::move(tensor)});
  }
  return result;
}

Safetensors parse_safetensors(std::string_view bytes, std::string_view where, ChecksumRule rule) {
  const MemorySource file(bytes);
  SafetensorsSource source(file, std::string(where));
  source.verify(rule);
  return source.take();
}

Safetensors read_safetensors(const std::filesystem::path& path, ChecksumRule rule) {
  return parse_safetensors(read_file(path), path.string(), rule);
}

SafetensorsPieces safetensors_pieces(std::span<const NamedTensor> tensors,
                                     const SafetensorsMetadata& metadata) {
  SafetensorsHeader header;
  header.metadata = metadata;
  header.metadata["format"] = "pt";
  header.metadata[std::string(kChecksumKey)] = kNoChecksum;
  SafetensorsPieces file;
  std::uint64_t end = 0;
  for (const NamedTensor* named : in_file_order(tensors)) {
    const auto bytes = named->tensor.bytes();
    header.entries.push_back({named->name, &stored_type(named->tensor.dtype()),
                              named->tensor.shape(), end, end + bytes.size()});
    end += bytes.size();
    file.values.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  file.header = safetensors_header_bytes(header);
  file.header.replace(checksum_position(file.header), kChecksumDigits,
                      xxh3_128(file.header, file.values));
  return file;
}

std::string safetensors_bytes(std::span<const NamedTensor> tensors,
                              const SafetensorsMetadata& metadata) {
  SafetensorsPieces pieces = safetensors_pieces(tensors, metadata);
  std::string file = std::move(pieces.header);
  std::size_t size = file.size();
  for (const std::string_view piece : pieces.values) size += piece.size();
  file.reserve(size);
  for (const std::string_view piece : pieces.values) file += piece;
  return file;
}

void write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                       const SafetensorsMetadata& metadata) {
  const SafetensorsPieces pieces = safetensors_pieces(tensors, metadata);
  write_file_atomically(path, pieces.header, pieces.values);
}

}  // namespace fovea

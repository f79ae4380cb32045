// SPDX-License-Identifier: Apache-2.0
#include "fovea/tensor/gguf.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <unordered_set>

#include "fovea/base/check.h"
#include "fovea/base/words.h"

namespace fovea {

namespace {

constexpr std::string_view kMagic = "GGUF";
constexpr std::uint32_t kOldestVersion = 2, kNewestVersion = 3;
constexpr std::string_view kAlignmentKey = "general.alignment";
constexpr std::uint64_t kUsualAlignment = 32, kMaxAlignment = 1 << 20;
constexpr int kMostAxes = 4;
constexpr std::size_t kChunk = std::size_t{1} << 16;  // what is read at once

struct ValueTypeRow {
  std::string_view name;
  std::uint64_t bytes;  // 0: not fixed
};
constexpr ValueTypeRow kValueTypes[] = {{"uint8", 1},  {"int8", 1},  {"uint16", 2},  {"int16", 2},
                                        {"uint32", 4}, {"int32", 4}, {"float32", 4}, {"bool", 1},
                                        {"string", 0}, {"array", 0}, {"uint64", 8},  {"int64", 8},
                                        {"float64", 8}};

const ValueTypeRow& row_of(GgufValueType type) {
  return kValueTypes[static_cast<std::size_t>(type)];
}

[[noreturn]] void damaged(std::string_view where, const std::string& what) {
  throw Error(ErrorCode::kModelDamaged, fmt::format("{}: {}", where, what),
              "the file is damaged or is no GGUF file; get it again, or restore it from a copy");
}

[[noreturn]] void unsupported(std::string_view where, const std::string& what,
                              std::string hint = {}) {
  if (hint.empty()) hint = "take a file that llama.cpp's newer converters have written";
  throw Error(ErrorCode::kModelWrongKind, fmt::format("{}: {}", where, what), hint);
}

}  // namespace

std::string_view to_string(GgufValueType type) { return row_of(type).name; }

// ------------------------------------------------------------------------------------- values

template <class T>
T GgufValue::at(std::size_t n) const {
  if (n >= size_) fail(ErrorCode::kModelWrongKind, "expected a value, got an array of {}", size_);
  T value;
  std::memcpy(&value, bytes_.data() + n * sizeof value, sizeof value);
  return value;
}

std::int64_t GgufValue::whole(std::size_t n) const {
  switch (element_) {
    case GgufValueType::kUInt8:
      return at<std::uint8_t>(n);
    case GgufValueType::kInt8:
      return at<std::int8_t>(n);
    case GgufValueType::kUInt16:
      return at<std::uint16_t>(n);
    case GgufValueType::kInt16:
      return at<std::int16_t>(n);
    case GgufValueType::kUInt32:
      return at<std::uint32_t>(n);
    case GgufValueType::kInt32:
      return at<std::int32_t>(n);
    case GgufValueType::kInt64:
      return at<std::int64_t>(n);
    case GgufValueType::kUInt64:
      if (const auto value = at<std::uint64_t>(n);
          value <= std::uint64_t{std::numeric_limits<std::int64_t>::max()}) {
        return static_cast<std::int64_t>(value);
      }
      break;
    default:
      break;
  }
  fail(ErrorCode::kModelWrongKind, "expected a whole number, got {} ({})", shown(n),
       to_string(element_));
}

double GgufValue::number(std::size_t n) const {
  if (element_ == GgufValueType::kFloat32) return at<float>(n);
  if (element_ == GgufValueType::kFloat64) return at<double>(n);
  return static_cast<double>(whole(n));
}

bool GgufValue::flag(std::size_t n) const {
  if (element_ == GgufValueType::kBool) return at<std::uint8_t>(n) != 0;
  fail(ErrorCode::kModelWrongKind, "expected true or false, got {} ({})", shown(n),
       to_string(element_));
}

std::string_view GgufValue::text(std::size_t n) const {
  if (element_ != GgufValueType::kString) {
    fail(ErrorCode::kModelWrongKind, "expected a text, got {} ({})", shown(n), to_string(element_));
  }
  if (n >= size_) fail(ErrorCode::kModelWrongKind, "expected a value, got an array of {}", size_);
  const std::uint64_t begin = n == 0 ? 0 : ends_[n - 1];
  return std::string_view(bytes_).substr(begin, ends_[n] - begin);
}

std::string GgufValue::shown(std::size_t n) const {
  switch (element_) {
    case GgufValueType::kString:
      return std::string(text(n));
    case GgufValueType::kBool:
      return flag(n) ? "true" : "false";
    case GgufValueType::kFloat32:
      return fmt::format("{}", at<float>(n));
    case GgufValueType::kFloat64:
      return fmt::format("{}", at<double>(n));
    case GgufValueType::kUInt64:
      return fmt::format("{}", at<std::uint64_t>(n));
    default:
      return fmt::format("{}", whole(n));
  }
}

// ------------------------------------------------------------------------------------- header

/// Takes a header apart, from its first byte on. A length is compared with the bytes that are left
/// before anything is allocated for it.
class GgufHeaderReader {
 public:
  GgufHeaderReader(const ByteSource& file, std::string_view where, std::uint64_t most_bytes)
      : file_(file), where_(where), end_(std::min(file.size(), most_bytes)) {}

  GgufHeader read() {
    header_.version = version();
    const std::uint64_t tensors = count("tensors", kLeastTensorBytes);
    const std::uint64_t pairs = count("keys", kLeastPairBytes);
    for (std::uint64_t n = 0; n < pairs; ++n) add_pair();
    header_.metadata_end = at_;
    check_twice("key", header_.metadata, &GgufPair::key);
    header_.alignment = alignment();
    refuse_parts();
    for (std::uint64_t n = 0; n < tensors; ++n) add_tensor();
    check_twice("tensor", header_.tensors, &GgufTensor::name);
    header_.bytes = at_;
    place_tensors();
    return std::move(header_);
  }

 private:
  static constexpr std::uint64_t kLeastPairBytes = 8 + 1 + 4 + 1;
  static constexpr std::uint64_t kLeastTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;

  std::uint64_t left() const { return end_ - at_; }

  // The next bytes; they are copied from a chunk that is read at once.
  void take(char* to, std::uint64_t bytes, std::string_view what) {
    if (bytes > left()) ends_in(what, bytes);
    while (bytes > 0) {
      if (at_ < chunk_begin_ || at_ >= chunk_begin_ + chunk_.size()) fill_chunk();
      const std::uint64_t from = at_ - chunk_begin_;
      const std::uint64_t now = std::min<std::uint64_t>(bytes, chunk_.size() - from);
      std::memcpy(to, chunk_.data() + from, now);
      to += now, at_ += now, bytes -= now;
    }
  }

  void fill_chunk() {
    chunk_begin_ = at_;
    chunk_.resize(std::min<std::uint64_t>(kChunk, left()));
    file_.read(at_, chunk_);
  }

  template <class T>
  T number(std::string_view what) {
    T value;
    char bytes[sizeof value];
    take(bytes, sizeof value, what);
    std::memcpy(&value, bytes, sizeof value);
    return value;
  }

  [[noreturn]] void ends_in(std::string_view what, std::uint64_t bytes) const {
    if (end_ < file_.size()) {
      unsupported(where_, fmt::format("the header is longer than {} bytes (in {})", end_, what));
    }
    damaged(where_,
            fmt::format("{} needs {} bytes; the file has {} from there on", what, bytes, left()));
  }

  std::uint32_t version() {
    char magic[4];
    take(magic, sizeof magic, "the first word");
    if (std::string_view(magic, sizeof magic) != kMagic) {
      damaged(where_, fmt::format("expected the file to begin with {}", kMagic));
    }
    const auto version = number<std::uint32_t>("the version");
    if ((version & 0xFFFF) == 0 && version != 0) {
      unsupported(where_, "the file is big-endian; this machine is not",
                  "convert the model for machines of this kind");
    }
    if (version < kOldestVersion || version > kNewestVersion) {
      unsupported(where_, fmt::format("expected version {} or {} of GGUF, got {}", kOldestVersion,
                                      kNewestVersion, version));
    }
    return version;
  }

  // How many of something come, which take at least `least` bytes each.
  std::uint64_t count(std::string_view what, std::uint64_t least) {
    const auto count = number<std::uint64_t>(fmt::format("the number of {}", what));
    if (count > kMaxGgufItems) {
      unsupported(where_, fmt::format("{} {}; at most {} are read", count, what, kMaxGgufItems),
                  "the file is damaged, or no model has so many");
    }
    if (count * least > left()) {
      damaged(where_, fmt::format("{} {} need at least {} bytes; the file has {} from there on",
                                  count, what, count * least, left()));
    }
    return count;
  }

  std::string name(std::string_view what) {
    const auto length = number<std::uint64_t>(fmt::format("the length of {}", what));
    if (length == 0 || length > kMaxGgufNameBytes) {
      damaged(where_, fmt::format("{} has {} bytes; it must have 1 to {}", what, length,
                                  kMaxGgufNameBytes));
    }
    std::string text(std::min(length, left()), '\0');
    take(text.data(), length, what);
    return text;
  }

  GgufValueType value_type(const std::string& of) {
    const auto type = number<std::uint32_t>(of);
    if (type >= std::size(kValueTypes)) {
      damaged(where_, fmt::format("{} has the unknown type {}", of, type));
    }
    return static_cast<GgufValueType>(type);
  }

  void add_pair() {
    GgufPair pair{name(fmt::format("key {}", header_.metadata.size())), {}};
    const std::string of = fmt::format("the value of {}", printable(pair.key));
    GgufValue& value = pair.value;
    value.element_ = value_type(of);
    if (value.element_ == GgufValueType::kArray) {
      value.is_array_ = true;
      value.element_ = value_type(of);
      if (value.element_ == GgufValueType::kArray) {
        unsupported(where_, fmt::format("{} is an array of arrays", of));
      }
      value.size_ = elements(value.element_, of);
    }
    if (value.element_ == GgufValueType::kString) {
      read_texts(value, of);
    } else {
      value.bytes_.resize(value.size_ * row_of(value.element_).bytes);
      take(value.bytes_.data(), value.bytes_.size(), of);
    }
    if (value.element_ == GgufValueType::kBool) check_flags(value, of);
    header_.metadata.push_back(std::move(pair));
  }

  // The size of an array, for which there are bytes.
  std::size_t elements(GgufValueType type, const std::string& of) {
    const auto size = number<std::uint64_t>(of);
    const std::uint64_t each = std::max<std::uint64_t>(row_of(type).bytes, 1);
    const std::uint64_t least = type == GgufValueType::kString ? sizeof(std::uint64_t) : each;
    if (size > left() / least) {
      damaged(where_, fmt::format("{} has {} elements; the file has {} bytes from there on", of,
                                  size, left()));
    }
    return size;
  }

  void read_texts(GgufValue& value, const std::string& of) {
    value.ends_.reserve(value.size_);
    for (std::size_t n = 0; n < value.size_; ++n) {
      const auto length = number<std::uint64_t>(of);
      if (length > left()) ends_in(of, length);
      const std::size_t begin = value.bytes_.size();
      value.bytes_.resize(begin + length);
      take(value.bytes_.data() + begin, length, of);
      value.ends_.push_back(value.bytes_.size());
    }
  }

  void check_flags(const GgufValue& value, const std::string& of) const {
    for (const char byte : value.bytes_) {
      if (byte == 0 || byte == 1) continue;
      damaged(where_, fmt::format("{} is neither true nor false: {}", of,
                                  static_cast<unsigned char>(byte)));
    }
  }

  template <class Item>
  void check_twice(std::string_view what, const std::vector<Item>& items,
                   std::string Item::*name) const {
    std::unordered_set<std::string_view> seen;
    for (const Item& item : items) {
      if (seen.insert(item.*name).second) continue;
      damaged(where_, fmt::format("{} {} is there twice", what, printable(item.*name)));
    }
  }

  std::uint64_t alignment() const {
    const GgufValue* const value = header_.find(kAlignmentKey);
    if (value == nullptr) return kUsualAlignment;
    const bool is_number = value->type() == GgufValueType::kUInt32;
    const std::int64_t alignment = is_number ? value->whole() : 0;
    if (alignment < 1 || !std::has_single_bit(static_cast<std::uint64_t>(alignment)) ||
        static_cast<std::uint64_t>(alignment) > kMaxAlignment) {
      damaged(where_, fmt::format("{} must be a power of two up to {}, as uint32", kAlignmentKey,
                                  kMaxAlignment));
    }
    return static_cast<std::uint64_t>(alignment);
  }

  void refuse_parts() const {
    const GgufValue* const parts = header_.find("split.count");
    if (parts == nullptr || parts->shown() == "0" || parts->shown() == "1") return;
    unsupported(where_, fmt::format("the file is one of the {} parts of a model", parts->shown()),
                "join them first: llama-gguf-split --merge FIRST-PART MODEL.gguf");
  }

  void add_tensor() {
    GgufTensor tensor;
    tensor.name = name(fmt::format("the name of tensor {}", header_.tensors.size()));
    const std::string of = fmt::format("tensor {}", printable(tensor.name));
    tensor.shape = shape(of);
    const auto type = number<std::uint32_t>(of);
    tensor.type = quantized_type(type);
    if (tensor.type == nullptr) {
      unsupported(where_, fmt::format("{} has values of the unknown type {}", of, type));
    }
    tensor.begin = number<std::uint64_t>(of);  // from the first tensor on
    const index columns = tensor.shape.back(), block = tensor.type->block;
    if (columns % block != 0) {
      damaged(where_, fmt::format("{} has rows of {} values, and {} come in blocks of {}", of,
                                  columns, tensor.type->name, block));
    }
    const auto blocks = static_cast<std::uint64_t>(tensor.shape.size() / block);
    if (blocks > file_.size() / tensor.type->bytes) {
      damaged(where_, fmt::format("{} has {} blocks of {} bytes; the file has {} bytes", of, blocks,
                                  tensor.type->bytes, file_.size()));
    }
    tensor.bytes = blocks * tensor.type->bytes;
    header_.tensors.push_back(std::move(tensor));
  }

  // The file has the axis of columns first.
  Shape shape(const std::string& of) {
    const auto axes = number<std::uint32_t>(of);
    if (axes < 1 || axes > kMostAxes) {
      damaged(where_, fmt::format("{} has {} axes; it must have 1 to {}", of, axes, kMostAxes));
    }
    index sizes[kMostAxes];
    for (std::uint32_t n = axes; n-- > 0;) {
      const auto size = number<std::uint64_t>(of);
      // No value has less than a quarter of a bit.
      if (size == 0 || size > 32 * file_.size()) {
        damaged(where_,
                fmt::format("{} has an axis of {}; the file has {} bytes", of, size, file_.size()));
      }
      sizes[n] = static_cast<index>(size);
    }
    try {
      return Shape(std::span<const index>(sizes, axes));
    } catch (const Error&) {
      damaged(where_, fmt::format("{} has more values than can be counted", of));
    }
  }

  // From places behind the header to places in the file.
  void place_tensors() {
    const auto aligned = [&](std::uint64_t place) {
      return (place + header_.alignment - 1) / header_.alignment * header_.alignment;
    };
    const std::uint64_t first = aligned(at_);
    std::uint64_t next = first;
    for (GgufTensor& tensor : header_.tensors) {
      if (tensor.begin != next - first) {
        damaged(where_, fmt::format("tensor {} begins at {}; the one before it ends at {}",
                                    printable(tensor.name), tensor.begin, next - first));
      }
      if (next > file_.size() || tensor.bytes > file_.size() - next) {
        damaged(where_, fmt::format("tensor {} ends at byte {}; the file has {}",
                                    printable(tensor.name), next + tensor.bytes, file_.size()));
      }
      tensor.begin = next;
      next = aligned(next + tensor.bytes);
    }
  }

  const ByteSource& file_;
  std::string_view where_;
  const std::uint64_t end_;  // of what may be read
  std::uint64_t at_ = 0;
  std::string chunk_;  // of the file, from chunk_begin_ on
  std::uint64_t chunk_begin_ = 0;
  GgufHeader header_;
};

const GgufValue* GgufHeader::find(std::string_view key) const {
  const auto found = std::find_if(metadata.begin(), metadata.end(),
                                  [&](const GgufPair& pair) { return pair.key == key; });
  return found == metadata.end() ? nullptr : &found->value;
}

const GgufValue& GgufHeader::at(std::string_view key) const {
  if (const GgufValue* const value = find(key)) return *value;
  fail(ErrorCode::kModelDamaged, "the metadata lack {}", key);
}

index value_count(const GgufHeader& header) {
  index count = 0;  // the tensors lie in one file, so it cannot overflow
  for (const GgufTensor& tensor : header.tensors) count += tensor.shape.size();
  return count;
}

bool is_gguf(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;
  const FileSource file(path);
  std::string room;
  return file.size() >= kMagic.size() && file.view(0, kMagic.size(), room) == kMagic;
}

GgufHeader parse_gguf_header(const ByteSource& file, std::string_view where,
                             std::uint64_t most_bytes) {
  return GgufHeaderReader(file, where, most_bytes).read();
}

std::string gguf_without_tensors(const ByteSource& file, const GgufHeader& header) {
  std::string bytes(header.metadata_end, '\0');
  file.read(0, bytes);
  std::memset(bytes.data() + kGgufTensorCountPlace, 0, sizeof(std::uint64_t));
  return bytes;
}

// ------------------------------------------------------------------------------------- tensors

GgufSource::GgufSource(const ByteSource& file, std::string where)
    : file_(file), where_(std::move(where)), header_(parse_gguf_header(file, where_)) {
  for (const GgufTensor& tensor : header_.tensors) names_.push_back(tensor.name);
}

TensorInfo GgufSource::info(std::size_t n) const {
  const GgufTensor& tensor = header_.tensors.at(n);
  return {tensor.name, DType::kFloat32, tensor.shape};
}

Tensor GgufSource::read(std::size_t n) const {
  const GgufTensor& tensor = header_.tensors.at(n);
  const QuantizedType& type = *tensor.type;
  if (type.widen == nullptr) {
    std::vector<std::string_view> known;
    for (const QuantizedType& row : quantized_types()) {
      if (row.widen != nullptr) known.push_back(row.name);
    }
    unsupported(
        where_, fmt::format("tensor {} has values of type {}", printable(tensor.name), type.name),
        fmt::format("fovea reads {}: take the model in one of these", fmt::join(known, ", ")));
  }
  Tensor values = Tensor::empty(tensor.shape);
  float* to = values.data<float>();
  const std::uint64_t at_once = kChunk / type.bytes * type.bytes;
  std::vector<std::uint8_t> chunk;
  for (std::uint64_t done = 0; done < tensor.bytes; done += chunk.size()) {
    chunk.resize(std::min(at_once, tensor.bytes - done));
    file_.read(tensor.begin + done, {reinterpret_cast<char*>(chunk.data()), chunk.size()});
    const std::size_t count = chunk.size() / type.bytes * static_cast<std::size_t>(type.block);
    widen_blocks(type, chunk, {to, count});
    to += count;
  }
  return values;
}

std::optional<BlockType> GgufSource::block_type(std::size_t n) const {
  constexpr std::pair<std::string_view, BlockType> kTypes[] = {
      {"F16", BlockType::kFloat16}, {"BF16", BlockType::kBFloat16}, {"Q4_0", BlockType::kQ4_0},
      {"Q4_1", BlockType::kQ4_1},   {"Q8_0", BlockType::kQ8_0},     {"Q4_K", BlockType::kQ4_K},
      {"Q5_K", BlockType::kQ5_K},   {"Q6_K", BlockType::kQ6_K}};
  for (const auto& [name, type] : kTypes) {
    if (name == header_.tensors.at(n).type->name) return type;
  }
  return std::nullopt;
}

SharedBytes GgufSource::blocks(std::size_t n) const {
  const GgufTensor& tensor = header_.tensors.at(n);
  check(block_type(n).has_value(), "tensor {} does not lie in blocks", tensor.name);
  return file_.share(tensor.begin, static_cast<std::size_t>(tensor.bytes));
}

}  // namespace fovea

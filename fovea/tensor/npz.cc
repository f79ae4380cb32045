// SPDX-License-Identifier: Apache-2.0
#include "fovea/tensor/npz.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "fovea/base/check.h"
#include "fovea/base/machine.h"
#include "fovea/base/words.h"
#include "fovea/tensor/zip.h"

namespace fovea {

namespace {

constexpr std::string_view kExtension = ".npy";

// The first bytes of a member: they contain its header.
std::string first_bytes(ZipMemberReader& member, const ZipEntry& entry) {
  std::string bytes(std::min<std::uint64_t>(entry.size, kMaxNpyHeaderBytes), '\0');
  member.read(bytes);
  return bytes;
}

}  // namespace

NpzSource::NpzSource(const ByteSource& file, std::string where)
    : file_(file), where_(std::move(where)), entries_(read_zip_directory(file_, where_)) {
  std::set<std::string_view> taken;
  names_.reserve(entries_.size());
  for (const ZipEntry& entry : entries_) {
    if (!entry.name.ends_with(kExtension)) {
      throw Error(ErrorCode::kInputFormat,
                  fmt::format("{}: member {} is no .npy file", where_, printable(entry.name)),
                  "write the file with numpy.savez");
    }
    names_.push_back(entry.name.substr(0, entry.name.size() - kExtension.size()));
    if (taken.insert(names_.back()).second) continue;
    throw Error(ErrorCode::kInputFormat,
                fmt::format("{}: tensor {} is there twice", where_, printable(names_.back())),
                "write the file again, each tensor once");
  }
}

std::string NpzSource::where_of(std::size_t n) const {
  return fmt::format("{}: tensor {}", where_, printable(names_[n]));
}

TensorInfo NpzSource::info(std::size_t n) const {
  const ZipEntry& entry = entries_[n];
  ZipMemberReader member(file_, entry, where_);
  const NpyHeader header = parse_npy_header(first_bytes(member, entry), entry.size, where_of(n));
  return {names_[n], header.dtype, header.shape};
}

Tensor NpzSource::read(std::size_t n) const { return read_as(n, false); }

Tensor NpzSource::read_texts(std::size_t n) const { return read_as(n, true); }

Tensor NpzSource::read_as(std::size_t n, bool texts) const {
  const ZipEntry& entry = entries_[n];
  ZipMemberReader member(file_, entry, where_);
  const std::string first = first_bytes(member, entry);
  const std::string where = where_of(n);
  const std::optional<NpyHeader> found =
      texts ? parse_npy_text_header(first, entry.size, where)
            : std::optional(parse_npy_header(first, entry.size, where));
  if (!found) return {};
  const NpyHeader& header = *found;
  require_memory(where, static_cast<double>(entry.size), "use smaller tensors");
  Tensor tensor = Tensor::empty(header.shape, header.dtype);
  const std::span<char> values(reinterpret_cast<char*>(tensor.bytes().data()),
                               tensor.bytes().size());
  const std::string_view begun = std::string_view(first).substr(header.data_begin);
  std::copy(begun.begin(), begun.end(), values.begin());
  member.read(values.subspan(begun.size()));
  member.finish();
  return tensor;
}

std::vector<NamedTensor> parse_npz(std::string_view bytes, std::string_view where) {
  const MemorySource file(bytes);
  const NpzSource source(file, std::string(where));
  std::vector<NamedTensor> tensors;
  for (std::size_t n = 0; n < source.names().size(); ++n) {
    tensors.push_back({source.names()[n], source.read(n)});
  }
  return tensors;
}

void check_npz(std::span<const NamedTensor> tensors) {
  constexpr std::uint64_t kMostOfHeaders = 1024;  // the headers of a member and of its array
  std::uint64_t total = 0;
  for (const NamedTensor& named : tensors) {
    if (!has_npy_type(named.tensor.dtype())) {
      fail(ErrorCode::kUsage, Hint{"write a .safetensors file, which has the type"},
           "npz: {} is {}, and numpy has no such type", named.name, named.tensor.describe());
    }
    total += named.tensor.bytes().size() + kMostOfHeaders;
  }
  check_zip_size(tensors.size(), total);
}

std::string npz_bytes(std::span<const NamedTensor> tensors) {
  std::vector<ZipMember> members;
  for (const NamedTensor& named : tensors) {
    members.push_back({named.name + std::string(kExtension), npy_bytes(named.tensor)});
  }
  std::sort(members.begin(), members.end(),
            [](const ZipMember& a, const ZipMember& b) { return a.name < b.name; });
  const auto twice =
      std::adjacent_find(members.begin(), members.end(),
                         [](const ZipMember& a, const ZipMember& b) { return a.name == b.name; });
  check(twice == members.end(), "npz: the name of a tensor is taken twice");
  return zip_bytes(members);
}

static_assert(std::endian::native == std::endian::little,
              "values are stored as they lie in memory");

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kVersionBytes = 2;
constexpr std::size_t kMostTextBytes = 10000;
static_assert(kMaxNpyHeaderBytes == kMagic.size() + kVersionBytes + 4 + kMostTextBytes);
constexpr std::size_t kBoundary = 64;

struct NpyType {
  std::string_view descr;
  DType dtype;
};
// Where a type stands twice, the first entry is used for writing.
constexpr NpyType kTypes[] = {{"<f4", DType::kFloat32}, {"<f8", DType::kFloat64},
                              {"<i4", DType::kInt32},   {"<i8", DType::kInt64},
                              {"|u1", DType::kUInt8},   {"|b1", DType::kUInt8}};

[[noreturn]] void damaged(std::string_view where, const std::string& what,
                          const std::string& hint =
                              "save the array again, with numpy.save or "
                              "numpy.savez") {
  throw Error(ErrorCode::kInputFormat, fmt::format("{}: {}", where, what), hint);
}

/// Reads {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }: keys in any order, each once.
class HeaderReader {
 public:
  HeaderReader(std::string_view text, std::string_view where, bool takes_texts = false)
      : rest_(text), where_(where), takes_texts_(takes_texts) {}

  NpyHeader read() {
    expect('{');
    while (!take('}')) {
      read_item();
      if (take(',')) continue;
      expect('}');
      break;
    }
    skip_blanks();
    if (!rest_.empty()) fail_header("more than one dictionary");
    if (!dtype_ || !order_seen_ || !shape_) {
      fail_header("a key missing: it needs descr, fortran_order and shape");
    }
    return {.dtype = *dtype_, .shape = text_width_ == 0 ? *shape_ : with_characters()};
  }

 private:
  void read_item() {
    const std::string_view key = text();
    expect(':');
    if (key == "descr" && !dtype_) {
      dtype_ = type();
    } else if (key == "fortran_order" && !order_seen_) {
      order_seen_ = true;
      require_c_order();
    } else if (key == "shape" && !shape_) {
      shape_ = shape();
    } else {
      fail_header(fmt::format("the key {} twice, or where none may be", printable(key)));
    }
  }

  // From a type such as "<i2": byte order, kind, bytes.
  static std::string_view conversion_of(std::string_view descr) {
    const char kind = descr.size() > 1 ? descr[1] : ' ';
    if (kind == 'i' || kind == 'u') return "convert the array: x.astype(numpy.int64)";
    if (kind == 'S') return "save texts as numpy.array(x, dtype=str)";
    return "convert the array: x.astype(numpy.float32)";
  }

  DType type() {
    skip_blanks();
    if (rest_.starts_with('[')) {
      damaged(where_, "holds records; only plain numbers can be used");
    }
    const std::string_view descr = text();
    if (takes_texts_ && descr.starts_with("<U")) return text_type(descr);
    if (descr == "|O") {
      damaged(where_, "holds objects; only plain numbers can be used",
              "of rows of several lengths, make one array, filled up with zeros, and say how long "
              "each is in an array of its own, such as lengths; of texts, make "
              "numpy.array(x, dtype=str)");
    }
    const auto found = std::find_if(std::begin(kTypes), std::end(kTypes),
                                    [&](const NpyType& type) { return type.descr == descr; });
    if (found == std::end(kTypes)) {
      damaged(where_,
              fmt::format("holds values of type {}; only float32, float64, int32, int64, uint8 and "
                          "bool can be used, little-endian",
                          printable(descr)),
              std::string(conversion_of(descr)));
    }
    return found->dtype;
  }

  // Characters are numbers of four bytes.
  DType text_type(std::string_view descr) {
    const char* const end = descr.data() + descr.size();
    const auto [stop, error] = std::from_chars(descr.data() + 2, end, text_width_);
    if (stop != end || error != std::errc() || text_width_ < 1) {
      damaged(where_, fmt::format("holds values of type {}", printable(descr)));
    }
    return DType::kInt32;
  }

  Shape with_characters() const {
    std::vector<index> sizes(shape_->begin(), shape_->end());
    sizes.push_back(text_width_);
    if (sizes.size() > Shape::kMaxAxes) damaged(where_, "has too many axes");
    return counted(sizes);
  }

  Shape counted(std::span<const index> sizes) const {
    try {
      return Shape(sizes);
    } catch (const Error&) {
      damaged(where_, "has more values than can be counted");
    }
  }

  void require_c_order() {
    skip_blanks();
    if (take_word("False")) return;
    if (!take_word("True")) fail_header("a fortran_order that is neither True nor False");
    damaged(where_, "is in Fortran order; only C order can be used",
            "save numpy.ascontiguousarray(x)");
  }

  Shape shape() {
    std::vector<index> sizes;
    bool comma = false;
    expect('(');
    while (!take(')')) {
      if (!sizes.empty() && !comma) fail_header("a shape without commas");
      sizes.push_back(number());
      comma = take(',');
    }
    if (sizes.size() == 1 && !comma) fail_header("a number where the tuple of the shape should be");
    if (sizes.size() > Shape::kMaxAxes) {
      damaged(where_,
              fmt::format("has {} axes; at most {} can be used", sizes.size(), Shape::kMaxAxes));
    }
    return counted(sizes);
  }

  index number() {
    skip_blanks();
    index value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc() || value < 0) fail_header("a size that is no whole number");
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return value;
  }

  std::string_view text() {
    skip_blanks();
    const char quote = rest_.empty() ? '\0' : rest_[0];
    if (quote != '\'' && quote != '"') fail_header("no text where one should be");
    const std::size_t end = rest_.find(quote, 1);
    if (end == std::string_view::npos) fail_header("a text without end");
    const std::string_view inside = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return inside;
  }

  bool take(char c) {
    skip_blanks();
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  bool take_word(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  void expect(char c) {
    if (!take(c)) fail_header(fmt::format("no '{}' where one should be", c));
  }

  void skip_blanks() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \n"), rest_.size()));
  }

  [[noreturn]] void fail_header(const std::string& what) const {
    damaged(where_, "its header has " + what);
  }

  std::string_view rest_, where_;
  bool takes_texts_;
  index text_width_ = 0;  // characters; 0: numbers
  std::optional<DType> dtype_;
  std::optional<Shape> shape_;
  bool order_seen_ = false;
};

// Returns the text of the header and removes the header from the front of `bytes`.
std::string_view take_header(std::string_view& bytes, std::string_view where) {
  if (!bytes.starts_with(kMagic) || bytes.size() < kMagic.size() + kVersionBytes) {
    damaged(where, "is no array of numpy");
  }
  const int major = static_cast<unsigned char>(bytes[kMagic.size()]);
  const int minor = static_cast<unsigned char>(bytes[kMagic.size() + 1]);
  if (major < 1 || major > 3 || minor != 0) {
    damaged(where, fmt::format("is of version {}.{}; 1.0, 2.0 and 3.0 can be read", major, minor));
  }
  bytes.remove_prefix(kMagic.size() + kVersionBytes);
  const std::size_t digits = major == 1 ? 2 : 4;
  if (bytes.size() < digits) damaged(where, "ends within its header");
  std::size_t length = 0;
  for (std::size_t i = digits; i-- > 0;) {
    length = length << 8 | static_cast<unsigned char>(bytes[i]);
  }
  bytes.remove_prefix(digits);
  if (length > kMostTextBytes) {
    damaged(where, fmt::format("its header claims {} bytes; at most {} are allowed", length,
                               kMostTextBytes));
  }
  if (length > bytes.size()) damaged(where, "ends within its header");
  const std::string_view header = bytes.substr(0, length);
  bytes.remove_prefix(length);
  return header;
}

std::string shape_text(const Shape& shape) {
  std::string text;
  for (const index size : shape) text += std::to_string(size) + ", ";
  if (shape.axes() > 1) text.resize(text.size() - 2);
  if (shape.axes() == 1) text.resize(text.size() - 1);
  return "(" + text + ")";
}

}  // namespace

namespace {

NpyHeader parse_header(std::string_view bytes, std::uint64_t size, std::string_view where,
                       bool takes_texts) {
  std::string_view rest = bytes;
  const std::string_view text = take_header(rest, where);
  NpyHeader header = HeaderReader(text, where, takes_texts).read();
  header.data_begin = bytes.size() - rest.size();
  const std::uint64_t follow = size - header.data_begin;
  const auto value = static_cast<std::uint64_t>(byte_size(header.dtype));
  if (follow % value != 0 || follow / value != static_cast<std::uint64_t>(header.shape.size())) {
    damaged(where,
            fmt::format("is {} {}, {} values of {} bytes; {} bytes follow its header",
                        to_string(header.dtype), to_string(header.shape), header.shape.size(),
                        value, follow),
            "the file is damaged; restore it from a copy");
  }
  return header;
}

}  // namespace

NpyHeader parse_npy_header(std::string_view bytes, std::uint64_t size, std::string_view where) {
  return parse_header(bytes, size, where, false);
}

std::optional<NpyHeader> parse_npy_text_header(std::string_view bytes, std::uint64_t size,
                                               std::string_view where) {
  std::string_view rest = bytes;
  const std::string_view text = take_header(rest, where);
  if (text.find("'<U") == std::string_view::npos) return std::nullopt;
  return parse_header(bytes, size, where, true);
}

Tensor parse_npy(std::string_view bytes, std::string_view where) {
  const NpyHeader header =
      parse_npy_header(bytes.substr(0, kMaxNpyHeaderBytes), bytes.size(), where);
  Tensor tensor = Tensor::empty(header.shape, header.dtype);
  const std::string_view values = bytes.substr(header.data_begin);
  if (!values.empty()) std::memcpy(tensor.bytes().data(), values.data(), values.size());
  return tensor;
}

namespace {

const NpyType* type_of(DType dtype) {
  const auto found = std::find_if(std::begin(kTypes), std::end(kTypes),
                                  [&](const NpyType& known) { return known.dtype == dtype; });
  return found == std::end(kTypes) ? nullptr : found;
}

}  // namespace

bool has_npy_type(DType dtype) { return type_of(dtype) != nullptr; }

std::string npy_bytes(const Tensor& tensor) {
  const NpyType* const type = tensor.defined() ? type_of(tensor.dtype()) : nullptr;
  check(type != nullptr, Hint{"convert it to float32, or write a .safetensors file"},
        "npy: numpy has no type for {}", tensor.describe());
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}",
                                   type->descr, shape_text(tensor.shape()));
  const std::size_t before = kMagic.size() + kVersionBytes + 2;
  const std::size_t whole = (before + header.size() + 1 + kBoundary - 1) / kBoundary * kBoundary;
  header.resize(whole - before - 1, ' ');
  header += '\n';
  std::string bytes(kMagic);
  bytes += '\1';
  bytes += '\0';
  bytes += static_cast<char>(header.size() & 0xff);
  bytes += static_cast<char>(header.size() >> 8);
  bytes += header;
  const auto values = tensor.bytes();
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size());
  return bytes;
}

}  // namespace fovea

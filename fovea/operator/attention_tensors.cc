// SPDX-License-Identifier: Apache-2.0
#include "fovea/operator/attention_tensors.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <sstream>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/base/option.h"
#include "fovea/base/words.h"
#include "fovea/config/suggest.h"

namespace fovea {

namespace {

constexpr std::string_view kRequiredTensors[] = {"q", "k", "v"};  // must be there
// A tensor without values could claim huge sizes at no cost, and loops run over them.
constexpr index kMostRowsOfNothing = index{1} << 20;

/// The sizes of the letters, and the tensor that set each.
class KnownSizes {
 public:
  explicit KnownSizes(std::string_view where) : where_(where) {}

  void check_shape(const TensorSpec& spec, const Shape& given) {
    const bool column = spec.or_column && given.axes() == 2 && given[1] == 1;
    const Shape shape = column ? Shape{given[0]} : given;
    const std::vector<std::string_view> words = axis_words(spec.axes);
    check(shape.axes() == static_cast<int>(words.size()), "{}: {} must be {}; it is {}", where_,
          spec.name, axes_text(spec.axes), to_string(shape));
    for (int axis = 0; axis < shape.axes(); ++axis) {
      check_axis(spec, shape, axis, words[static_cast<std::size_t>(axis)]);
    }
    check_empty(spec, shape);
  }

 private:
  struct Known {
    index size;
    std::string_view tensor;
  };

  void check_axis(const TensorSpec& spec, const Shape& shape, int axis, std::string_view text) {
    const index size = shape[axis];
    const AxisWord word = axis_word(text);
    if (word.or_one && size == 1) return;
    const auto said = [&] {
      return fmt::format("{}: {} must be {}; it is {}", where_, spec.name, axes_text(spec.axes),
                         to_string(shape));
    };
    if (word.letter.empty()) {
      check(size == word.more, "{}: axis {} must be {}, and is {}", said(), axis, word.more, size);
      return;
    }
    const index least = (size - word.more) / word.times;
    const std::string letter(word.letter);
    const Known& known = known_.try_emplace(letter, Known{least, spec.name}).first->second;
    const bool fits = size == word.size(known.size);
    check(least >= 0 && (fits || known.tensor != spec.name), "{}: {} is not {} for any {}", said(),
          size, text, letter);
    check(fits, "{}: axis {} is {}, and {} in {}", said(), text.substr(0, text.find('|')), size,
          word.size(known.size), known.tensor);
  }

  void check_empty(const TensorSpec& spec, const Shape& shape) const {
    if (shape.size() > 0) return;
    index rows = 1;
    for (const index size : shape) {
      check(size <= kMostRowsOfNothing / rows, "{}: {} is {}: too many rows of no values", where_,
            spec.name, to_string(shape));
      rows *= std::max<index>(size, 1);
    }
  }

  std::string_view where_;
  std::map<std::string, Known> known_;
};

void check_known(const std::vector<std::string>& names, std::span<const TensorSpec> specs,
                 std::string_view where) {
  std::vector<std::string> known;
  for (const TensorSpec& spec : specs) known.emplace_back(spec.name);
  for (const std::string& name : names) {
    if (find_named(specs, name) != nullptr) continue;
    std::string hint = did_you_mean(name, known);
    if (name == "o" || name == "lse")
      hint = "it is a result, as OUT has it: name a file with q, k and v";
    if (hint.empty()) hint = "it takes " + names_in(specs);
    throw Error(ErrorCode::kInputFormat,
                fmt::format("{}: attention has no use for a tensor {}", where, printable(name)),
                hint);
  }
}

[[noreturn]] void fail_missing(std::string_view name, std::string_view where) {
  throw Error(ErrorCode::kInputFormat, fmt::format("{}: the tensor {} is missing", where, name),
              fmt::format("write it to the file, under the name {}", name));
}

void check_together(const std::vector<std::string>& names, std::span<const TensorSpec> specs,
                    std::string_view where) {
  const auto given = [&](std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const std::string_view name : kRequiredTensors) {
    if (!given(name)) fail_missing(name, where);
  }
  for (const TensorSpec& spec : specs) {
    if (spec.together.empty() || !given(spec.name) || given(spec.together)) continue;
    throw Error(ErrorCode::kInputFormat,
                fmt::format("{}: {} is there without {}", where, spec.name, spec.together),
                fmt::format("give both {} and {}, or neither", spec.name, spec.together));
  }
}

void check_names(const std::vector<std::string>& names, std::span<const TensorSpec> specs,
                 std::string_view where) {
  check_known(names, specs, where);
  check_together(names, specs, where);
}

struct Accepted {
  TensorValues values;
  std::string_view types;
  std::vector<DType> dtypes;
};

const Accepted& accepted(TensorValues values) {
  static const Accepted kAll[] = {
      {TensorValues::kReal,
       "float32, float64 or bfloat16",
       {DType::kFloat32, DType::kFloat64, DType::kBFloat16}},
      {TensorValues::kInt32, "int32 or int64", {DType::kInt32, DType::kInt64}},
      {TensorValues::kBytes, "uint8 or bool", {DType::kUInt8}}};
  return kAll[static_cast<int>(values)];
}

void check_type(const TensorSpec& spec, DType dtype, std::string_view where) {
  const Accepted& known = accepted(spec.values);
  if (std::find(known.dtypes.begin(), known.dtypes.end(), dtype) != known.dtypes.end()) return;
  throw Error(ErrorCode::kInputFormat,
              fmt::format("{}: {} must hold {}; it holds {}", where, spec.name, known.types,
                          to_string(dtype)),
              "convert it before it is saved");
}

void check_types_and_shapes(std::span<const TensorInfo> infos, std::span<const TensorSpec> specs,
                            std::string_view where) {
  KnownSizes sizes(where);
  for (const TensorSpec& spec : specs) {  // the order matters: q sets B
    const TensorInfo* const info = find_named(infos, spec.name);
    if (info == nullptr) continue;
    check_type(spec, info->dtype, where);
    sizes.check_shape(spec, info->shape);
  }
}

// int64 becomes int32; other types are kept.
Tensor checked_values(const GivenTensor& named, std::string_view where) {
  const Tensor& tensor = named.tensor;
  if (tensor.dtype() != DType::kInt64) return tensor;
  for (const std::int64_t value : tensor.vec<std::int64_t>()) {
    if (std::in_range<std::int32_t>(value)) continue;
    throw Error(
        ErrorCode::kInputFormat,
        fmt::format("{}: {} holds {}, which does not fit in int32", where, named.name, value),
        "no number of a row or key is that large: look at what made it");
  }
  return tensor.to(DType::kInt32);
}

std::vector<GivenTensor> as_given(std::vector<NamedTensor> tensors) {
  std::vector<GivenTensor> given;
  for (NamedTensor& named : tensors) {
    given.push_back({.name = std::move(named.name), .tensor = std::move(named.tensor)});
  }
  return given;
}

// The views of a call have four axes with free strides, the last of them contiguous.
bool fits_a_view(const GivenTensor& given) {
  const Shape& shape = given.tensor.shape();
  return shape.axes() == 4 && (given.strides[3] == 1 || shape[3] <= 1);
}

// Copies the values of axis `axis` and those after it, each of `size` bytes.
std::byte* pack(std::byte* to, const std::byte* from, const GivenTensor& given, int axis) {
  const Shape& shape = given.tensor.shape();
  const index size = byte_size(given.tensor.dtype());
  if (axis == shape.axes()) return std::copy_n(from, size, to);
  const index stride = given.strides[static_cast<std::size_t>(axis)] * size;
  for (index i = 0; i < shape[axis]; ++i) to = pack(to, from + i * stride, given, axis + 1);
  return to;
}

}  // namespace

Tensor contiguous(const GivenTensor& given) {
  if (given.is_contiguous()) return given.tensor;
  Tensor packed = Tensor::empty(given.tensor.shape(), given.tensor.dtype());
  pack(packed.bytes().data(), given.tensor.bytes().data(), given, 0);
  return packed;
}

AttentionTensors::AttentionTensors(std::vector<NamedTensor> tensors,
                                   std::span<const TensorSpec> specs, std::string where)
    : AttentionTensors(of(as_given(std::move(tensors)), specs, std::move(where))) {}

AttentionTensors AttentionTensors::of(std::vector<GivenTensor> tensors,
                                      std::span<const TensorSpec> specs, std::string where) {
  std::vector<std::string> names;
  std::vector<TensorInfo> infos;
  for (const GivenTensor& named : tensors) {
    names.push_back(named.name);
    infos.push_back({named.name, named.tensor.dtype(), named.tensor.shape()});
  }
  check_names(names, specs, where);
  check_types_and_shapes(infos, specs, where);
  for (GivenTensor& named : tensors) {
    if (!named.is_contiguous() && !fits_a_view(named)) {
      named.tensor = contiguous(named);
      named.strides.clear();
    }
    named.tensor = checked_values(named, where);
  }
  AttentionTensors checked;
  checked.tensors_ = std::move(tensors);
  checked.where_ = std::move(where);
  return checked;
}

AttentionTensors::AttentionTensors(const TensorFile& file, std::span<const TensorSpec> specs,
                                   std::string where, std::span<const std::string_view> unused)
    : where_(std::move(where)) {
  check_names(file.names(), specs, where_);
  std::vector<TensorInfo> infos;
  for (const std::string& name : file.names()) infos.push_back(file.info(name));
  check_types_and_shapes(infos, specs, where_);
  std::erase_if(infos, [&](const TensorInfo& info) {
    return std::find(unused.begin(), unused.end(), info.name) != unused.end();
  });
  tensors_ = as_given(file.read(infos));
  for (GivenTensor& named : tensors_) named.tensor = checked_values(named, where_);
}

const GivenTensor* AttentionTensors::given(std::string_view name) const {
  return find_named(tensors_, name);
}

const Tensor* AttentionTensors::find(std::string_view name) const {
  const GivenTensor* found = given(name);
  return found == nullptr ? nullptr : &found->tensor;
}

const Tensor& AttentionTensors::at(std::string_view name) const {
  const Tensor* tensor = find(name);
  if (tensor == nullptr) fail_missing(name, where_);
  return *tensor;
}

AttentionSizes AttentionTensors::sizes() const {
  const Shape &q = at("q").shape(), &k = at("k").shape(), &v = at("v").shape();
  return {.B = q[0], .T = q[1], .S = k[1], .H = q[2], .G = k[2], .D = q[3], .Dv = v[3]};
}

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
#include "fovea/operator/conformance.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/base/file.h"
#include "fovea/base/option.h"
#include "fovea/base/words.h"
#include "fovea/config/json.h"
#include "fovea/operator/attention_call.h"
#include "fovea/operator/conformance_cases.h"
#include "fovea/operator/run_attention.h"
#include "fovea/tensor/checksum.h"
#include "fovea/tensor/safetensors.h"

namespace fovea {

namespace {

bool is_whole(DType dtype) {
  return dtype == DType::kInt32 || dtype == DType::kInt64 || dtype == DType::kUInt8;
}

double scale_of(Vec<const double> expected) {
  double largest = 1;
  for (const double x : expected) {
    if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
  }
  return largest;
}

// If values must be equal, the scale is 0.
double error_of(double got, double expected, double scale) {
  if (got == expected || (std::isnan(got) && std::isnan(expected))) return 0;
  const double distance = std::abs(got - expected);
  if (scale > 0 && std::isfinite(distance)) return distance / scale;
  return std::numeric_limits<double>::infinity();
}

// The place of value n: "[0, 3]" for value 3 of [2, 5].
std::string place_of(index n, const Shape& shape) {
  std::string place;
  for (int axis = shape.axes() - 1; axis >= 0; --axis) {
    place = fmt::format("{}{}{}", n % shape[axis], place.empty() ? "" : ", ", place);
    n /= shape[axis];
  }
  return "[" + place + "]";
}

void compare(const Tensor& made, const NamedTensor& expected, TensorDifference& farthest) {
  const Tensor a = made.to(DType::kFloat64), b = expected.tensor.to(DType::kFloat64);
  const Vec<const double> got = a.vec<double>(), wanted = b.vec<double>();
  const double scale = is_whole(expected.tensor.dtype()) ? 0 : scale_of(wanted);
  for (index n = 0; n < got.size; ++n) {
    const double error = error_of(got[n], wanted[n], scale);
    if (error <= farthest.error) continue;
    farthest.error = error;
    farthest.tensor = expected.name;
    farthest.place = place_of(n, expected.tensor.shape());
  }
}

// Expected values are read only if their shapes are those of the results.
TensorDifference difference_from(const TensorFile& expected,
                                 const std::vector<NamedTensor>& results) {
  std::vector<TensorInfo> infos;
  for (const std::string& name : expected.names()) {
    infos.push_back(expected.info(name));
    const std::string problem = shape_problem(results, name, infos.back().shape);
    if (!problem.empty()) return {.problem = problem};
  }
  return largest_difference(results, expected.read(infos));
}

TensorDifference difference_of(const Context& context, const std::filesystem::path& folder,
                               const KitCase& one, AttentionPrecision precision) {
  const TensorFile expected = open_kit_file(folder, one.expected);
  if (expected.names().empty()) return {.problem = "nothing is expected"};
  const TensorFile inputs = open_kit_file(folder, one.inputs);
  AttentionSettings settings = one.settings;
  settings.precision = precision;
  try {
    const AttentionTensors tensors(inputs, attention_tensor_specs(), one.inputs.name);
    return difference_from(expected, run_attention(context, settings, tensors));
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kOutOfMemory) throw;  // it says nothing about the operator
    return {.problem = error.what()};
  }
}

}  // namespace

std::string shape_problem(std::span<const NamedTensor> made, std::string_view name,
                          const Shape& expected) {
  const NamedTensor* const found = find_named(made, name);
  if (found != nullptr && found->tensor.shape() == expected) return {};
  return fmt::format("{} must be {}; {}", printable(name), to_string(expected),
                     found == nullptr ? "the operator does not make it"
                                      : "it is " + to_string(found->tensor.shape()));
}

TensorDifference largest_difference(std::span<const NamedTensor> made,
                                    std::span<const NamedTensor> expected) {
  TensorDifference farthest;
  for (const NamedTensor& tensor : expected) {
    farthest.problem = shape_problem(made, tensor.name, tensor.tensor.shape());
    if (!farthest.problem.empty()) return farthest;
    compare(find_named(made, tensor.name)->tensor, tensor, farthest);
  }
  return farthest;
}

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kKitKind = "fovea-conformance";
constexpr index kVersion = 1;
constexpr std::string_view kNoDigits = "00000000";

[[noreturn]] void damaged(const fs::path& where, const std::string& what) {
  throw Error(ErrorCode::kInputFormat, fmt::format("{}: {}", where.string(), what),
              "get or write the kit again");
}

std::string crc_text(std::uint32_t crc) { return fmt::format("{:08x}", crc); }
std::string crc_text(std::string_view bytes) { return crc_text(crc32(bytes)); }

// ---- writing

Json json_of(const TensorRecipe& recipe) {
  Json::Array shape, values;
  for (const index size : recipe.shape) shape.emplace_back(size);
  for (const index value : recipe.values) values.emplace_back(value);
  Json::Object object = {
      {"name", recipe.name}, {"dtype", to_string(recipe.dtype)}, {"shape", Json(std::move(shape))}};
  if (!values.empty()) object.emplace_back("values", Json(std::move(values)));
  if (recipe.below > 0) object.emplace_back("below", recipe.below);
  if (recipe.zeros > 0) object.emplace_back("zeros", recipe.zeros);
  if (recipe.poison > 0) object.emplace_back("poison", recipe.poison);
  return object;
}

// The settings that differ from their defaults.
Json json_of(const AttentionSettings& settings) {
  const Json all = fovea::json_of<AttentionSettings>(settings);
  const Json defaults = fovea::json_of<AttentionSettings>({});
  Json::Object object;
  for (const auto& [name, value] : all.object()) {
    if (value.line() != defaults.at(name).line()) object.emplace_back(name, value);
  }
  return object;
}

Json write_file(const fs::path& folder, const std::string& name,
                const std::vector<NamedTensor>& tensors) {
  const std::string bytes = safetensors_bytes(tensors);
  write_file_durably(folder / name, bytes);
  return Json::Object{
      {"file", name}, {"size", static_cast<index>(bytes.size())}, {"crc32", crc_text(bytes)}};
}

KitTolerance tolerance_of(const AttentionSettings& settings, const AttentionTensors& tensors,
                          const std::vector<NamedTensor>& expected) {
  constexpr double kLeast = 16 * 0x1p-24, kDoubles = 0x1p-29;
  const double plain = largest_difference(run_plain_float32(settings, tensors), expected).error;
  const double f32 = std::exp2(std::ceil(std::log2(std::max(2 * plain, kLeast))));
  return {f32, f32 * kDoubles};
}

Json write_case(const Context& context, const fs::path& folder, const ConformanceCase& one) {
  std::vector<NamedTensor> inputs;
  Json::Array recipes;
  for (const TensorRecipe& recipe : one.tensors) {
    inputs.push_back({recipe.name, make_tensor(recipe, one.name)});
    recipes.push_back(json_of(recipe));
  }
  const AttentionTensors tensors(inputs, attention_tensor_specs(), one.name);
  AttentionSettings settings = one.settings;
  settings.reference = true;
  const std::vector<NamedTensor> expected = run_attention(context, settings, tensors);
  const KitTolerance tolerance = tolerance_of(settings, tensors, expected);
  return Json::Object{{"name", one.name},
                      {"settings", json_of(one.settings)},
                      {"inputs", write_file(folder, one.name + ".in.safetensors", inputs)},
                      {"expected", write_file(folder, one.name + ".out.safetensors", expected)},
                      {"tolerance", Json::Object{{"f32", tolerance.f32}, {"f64", tolerance.f64}}},
                      {"tensors", Json(std::move(recipes))}};
}

std::string with_checksum(std::string text) {
  return text.replace(text.find(kNoDigits), kNoDigits.size(), crc_text(text));
}

void write_files(const Context& context, const fs::path& folder) {
  Json::Array cases;
  for (const ConformanceCase& one : conformance_cases()) {
    cases.push_back(write_case(context, folder, one));
  }
  const Json kit = Json::Object{{"kind", kKitKind},
                                {"version", kVersion},
                                {"crc32", kNoDigits},
                                {"cases", Json(std::move(cases))}};
  write_file_durably(folder / kKitName, with_checksum(kit.pretty()));
}

// ---- reading

// Whether a name is that of a file inside the folder: no slash, nothing special.
bool is_plain(std::string_view name) {
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  return !name.empty() && name[0] != '.' && name != kKitName &&
         name.find_first_not_of(kAllowed) == std::string_view::npos;
}

KitFile file_from(const Json& json) {
  KitFile file{json.at("file").text(), json.at("size").whole(), json.at("crc32").text()};
  if (is_plain(file.name)) return file;
  fail(ErrorCode::kConfig, "the file name {} is not allowed", printable(file.name));
}

double tolerance_from(const Json& json, std::string_view precision) {
  const double tolerance = json.at(precision).number();
  if (std::isfinite(tolerance) && tolerance >= 0) return tolerance;
  fail(ErrorCode::kConfig, "the tolerance {} is not at least 0", precision);
}

KitCase read_case(const Json& json, const fs::path& path) {
  KitCase one{.name = json.at("name").text(),
              .settings = {},
              .inputs = file_from(json.at("inputs")),
              .expected = file_from(json.at("expected")),
              .tolerance = {tolerance_from(json.at("tolerance"), "f32"),
                            tolerance_from(json.at("tolerance"), "f64")}};
  const std::string where = fmt::format("{}: case {}", path.string(), printable(one.name));
  set_from_json(fields_of(one.settings), json.at("settings"), {where, ErrorCode::kInputFormat},
                MissingKeys::kKeepTheirValue);
  if (one.settings.precision != AttentionPrecision::kAuto || one.settings.reference) {
    fail(ErrorCode::kConfig, "it has a precision: only who checks it has one");
  }
  return one;
}

// Reads one case; `number` is its place in the list, from 1.
KitCase case_from(const Json& json, std::size_t number, const fs::path& path) {
  try {
    return read_case(json, path);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kConfig) throw;
    throw Error(ErrorCode::kConfig, fmt::format("case {}: {}", number, error.what()));
  }
}

std::vector<KitCase> cases_from(const Json& kit, const fs::path& path) {
  if (kit.at("kind").text() != kKitKind || kit.at("version").whole() != kVersion) {
    fail(ErrorCode::kConfig, "this fovea reads kind {}, version {}", kKitKind, kVersion);
  }
  std::vector<KitCase> cases;
  for (const Json& json : kit.at("cases").array()) {
    KitCase one = case_from(json, cases.size() + 1, path);
    if (find_named(cases, one.name) != nullptr) {
      fail(ErrorCode::kConfig, "the case {} is there twice", printable(one.name));
    }
    cases.push_back(std::move(one));
  }
  if (cases.empty()) fail(ErrorCode::kConfig, "there is no case");
  return cases;
}

void check_checksum(std::string text, const std::string& expected, const fs::path& path) {
  const std::size_t digits = text.find('"' + expected + '"');
  if (expected.size() == kNoDigits.size() && digits != std::string::npos) {
    text.replace(digits + 1, expected.size(), kNoDigits);
    if (crc_text(text) == expected) return;
  }
  damaged(path, "the checksum is that of other contents");
}

std::uint32_t crc_of(const FileSource& file) {
  constexpr std::uint64_t kPiece = std::uint64_t{1} << 20;
  std::uint32_t crc = 0;
  std::string room;
  for (std::uint64_t at = 0; at < file.size(); at += kPiece) {
    const std::uint64_t bytes = std::min(file.size() - at, kPiece);
    crc = crc32(file.view(at, static_cast<std::size_t>(bytes), room), crc);
  }
  return crc;
}

void check_whole(const fs::path& folder, const KitFile& file) {
  const fs::path path = folder / file.name;
  const FileSource source(path);
  if (source.size() != static_cast<std::uint64_t>(file.size)) {
    damaged(path, fmt::format("{} bytes; {} says {}", source.size(), kKitName, file.size));
  }
  const std::string crc = crc_text(crc_of(source));
  if (crc == file.crc32) return;
  damaged(path, fmt::format("CRC-32 {}; {} says {}", crc, kKitName, printable(file.crc32)));
}

void check_folder(const fs::path& folder, const std::vector<KitCase>& cases) {
  std::set<std::string, std::less<>> known = {std::string(kKitName)};
  for (const KitCase& one : cases) {
    for (const KitFile* const file : {&one.inputs, &one.expected}) {
      check_whole(folder, *file);
      known.insert(file->name);
    }
  }
  for (const std::string& name : names_in(folder)) {
    if (!known.contains(name)) {
      damaged(folder,
              fmt::format("{} is there, and {} does not list it", printable(name), kKitName));
    }
  }
}

}  // namespace

void write_conformance_kit(const Context& context, const fs::path& folder) {
  // "kit/" means "kit".
  const fs::path target = folder.has_filename() ? folder : folder.parent_path();
  if (fs::exists(fs::symlink_status(target))) {
    throw Error(ErrorCode::kOutputExists, fmt::format("{}: exists already", target.string()),
                "remove it, or choose another folder");
  }
  fs::path temporary = target;
  temporary += fmt::format(".tmp.{}", ::getpid());
  try {
    create_folders(temporary);
    write_files(context, temporary);
    publish_folder(temporary, target);
  } catch (...) {
    std::error_code ignored;
    remove_tree(temporary, ignored);
    throw;
  }
}

std::vector<KitCase> read_conformance_kit(const fs::path& folder) {
  const fs::path path = folder / kKitName;
  const std::string text = read_file(path);
  try {
    const Json kit = parse_json(text, {path.string(), ErrorCode::kInputFormat});
    check_checksum(text, kit.at("crc32").text(), path);
    std::vector<KitCase> cases = cases_from(kit, path);
    check_folder(folder, cases);
    return cases;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kConfig) throw;
    damaged(path, error.what());
  }
}

TensorFile open_kit_file(const fs::path& folder, const KitFile& file) {
  check_whole(folder, file);
  return {folder / file.name, ".safetensors"};
}

KitResult check_kit_case(const Context& context, const std::filesystem::path& folder,
                         const KitCase& one, AttentionPrecision precision) {
  check(precision == AttentionPrecision::kFloat32 || precision == AttentionPrecision::kFloat64,
        "conformance: the precision must be f32 or f64");
  const bool f32 = precision == AttentionPrecision::kFloat32;
  const TensorDifference farthest = difference_of(context, folder, one, precision);
  const double tolerance = f32 ? one.tolerance.f32 : one.tolerance.f64;
  return {.name = one.name,
          .precision = precision,
          .passed = farthest.problem.empty() && farthest.error <= tolerance,
          .error = farthest.error,
          .tolerance = tolerance,
          .tensor = farthest.tensor,
          .place = farthest.place,
          .problem = farthest.problem};
}

}  // namespace fovea

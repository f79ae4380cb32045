// SPDX-License-Identifier: Apache-2.0
#include "cli/inspect_pretrained.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "cli/output.h"
#include "fovea/base/bytes.h"
#include "fovea/base/error.h"
#include "fovea/config/json.h"
#include "fovea/pretrained/folder_tensors.h"
#include "fovea/pretrained/foreign_json.h"
#include "fovea/pretrained/pretrained.h"
#include "fovea/tensor/gguf.h"
#include "fovea/text/utf8.h"

namespace fovea::cli {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kShownElements = 4;    // of an array, for people
constexpr std::size_t kListedElements = 64;  // of an array that JSON lists

std::string shown(const GgufValue& value) {
  if (!value.is_array()) return excerpt(value.shown());
  std::string text = fmt::format("{} {}:", value.size(), to_string(value.element()));
  for (std::size_t n = 0; n < std::min(value.size(), kShownElements); ++n) {
    text += ' ' + excerpt(value.shown(n));
  }
  return value.size() > kShownElements ? text + " ..." : text;
}

Json json_of_element(const GgufValue& value, std::size_t n) {
  switch (value.element()) {
    case GgufValueType::kString:
      return valid_utf8(value.text(n));
    case GgufValueType::kBool:
      return value.flag(n);
    case GgufValueType::kFloat32:
    case GgufValueType::kFloat64:
      return value.number(n);
    case GgufValueType::kUInt64:
      return value.shown(n);  // may be beyond what JSON's readers count to
    default:
      return value.whole(n);
  }
}

Json json_of_value(const GgufValue& value) {
  if (!value.is_array()) return json_of_element(value, 0);
  if (value.size() > kListedElements) {
    return Json::Object{{"type", to_string(value.element())},
                        {"size", static_cast<index>(value.size())}};
  }
  Json::Array list;
  for (std::size_t n = 0; n < value.size(); ++n) list.push_back(json_of_element(value, n));
  return list;
}

std::string architecture_of(const GgufHeader& header) {
  const GgufValue* const value = header.find("general.architecture");
  return value == nullptr ? "" : value->shown();
}

void describe(const GgufHeader& header) {
  print(fmt::format("GGUF {} of architecture {}, {} parameters in {} tensors\n", header.version,
                    excerpt(architecture_of(header)), value_count(header), header.tensors.size()));
  for (const GgufPair& pair : header.metadata) {
    print(fmt::format("  {:<40} {}\n", escape_text(pair.key), shown(pair.value)));
  }
  for (const GgufTensor& tensor : header.tensors) {
    print(fmt::format("  {:<40} {} {}\n", escape_text(tensor.name), tensor.type->name,
                      to_string(tensor.shape)));
  }
}

void describe_as_json(const GgufHeader& header) {
  Json::Object metadata;
  for (const GgufPair& pair : header.metadata) {
    metadata.emplace_back(valid_utf8(pair.key), json_of_value(pair.value));
  }
  Json::Array tensors;
  for (const GgufTensor& tensor : header.tensors) {
    tensors.push_back(
        Json::Object{{"name", valid_utf8(tensor.name)},
                     {"type", tensor.type->name},
                     {"shape", Json::Array(tensor.shape.begin(), tensor.shape.end())}});
  }
  print(Json(Json::Object{{"kind", "gguf"},
                          {"version", static_cast<index>(header.version)},
                          {"architecture", valid_utf8(architecture_of(header))},
                          {"parameters", value_count(header)},
                          {"metadata", std::move(metadata)},
                          {"tensors", std::move(tensors)}})
            .line() +
        "\n");
}

// The first problem of a tensor's values; "" if there is none. The formats have no checksum.
std::string problem_of(const std::string& name, Vec<const float> values) {
  const auto found =
      std::find_if(values.begin(), values.end(), [](float value) { return !std::isfinite(value); });
  if (found == values.end()) return "";
  return fmt::format("tensor {}: value {} is {}", escape_text(name), found - values.begin(),
                     std::isnan(*found) ? "NaN" : "infinite");
}

std::string problem_of(const GgufSource& tensors) {
  std::string problem;
  for (std::size_t n = 0; n < tensors.names().size() && problem.empty(); ++n) {
    const Tensor values = tensors.read(n);
    problem = problem_of(tensors.names()[n], values.vec<float>());
  }
  return problem;
}

std::string problem_of(const FolderTensors& tensors) {
  std::string problem;
  for (std::size_t n = 0; n < tensors.names().size() && problem.empty(); ++n) {
    const std::string& name = tensors.names()[n];
    Tensor values = Tensor::empty(tensors.shape(name));
    tensors.read(name, values.vec<float>());
    problem = problem_of(name, std::as_const(values).vec<float>());
  }
  return problem;
}

int verify(const fs::path& path, const std::string& problem, bool json) {
  if (json) {
    const Json file =
        Json::Object{{"path", path.string()}, {"problem", problem}, {"to_come", false}};
    print(Json(Json::Object{{"files", Json::Array{file}}}).line() + "\n");
  } else {
    print(fmt::format("{}  {}\n", problem.empty() ? "whole  " : "DAMAGED", path.string()));
  }
  if (problem.empty()) return 0;
  throw Error(ErrorCode::kModelDamaged, fmt::format("{}: {}", path.string(), problem),
              "get the file again, or restore it from a copy");
}

int inspect_gguf(const fs::path& path, const Arguments& arguments) {
  const FileSource file(path);
  const GgufSource tensors(file, path.string());
  const bool json = arguments.on("json");
  if (arguments.on("verify")) return verify(path, problem_of(tensors), json);
  json ? describe_as_json(tensors.header()) : describe(tensors.header());
  return 0;
}

// "": it does not say.
std::string type_of(const Json& config) {
  return ForeignObject(config, "config.json").text("model_type", "");
}

index value_count(const FolderTensors& tensors) {
  index count = 0;
  for (const std::string& name : tensors.names()) count += tensors.shape(name).size();
  return count;
}

void describe(const Json& config, const FolderTensors& tensors) {
  print(fmt::format("a model of Hugging Face, model_type {}, {} parameters in {} tensors\n",
                    excerpt(type_of(config)), value_count(tensors), tensors.names().size()));
  for (const auto& [key, value] : config.object()) {
    print(fmt::format("  {:<40} {}\n", escape_text(key), excerpt(value.line())));
  }
  for (const std::string& name : tensors.names()) {
    print(fmt::format("  {:<40} {} {}\n", escape_text(name), tensors.type(name),
                      to_string(tensors.shape(name))));
  }
}

void describe_as_json(const Json& config, const FolderTensors& tensors) {
  Json::Array list;
  for (const std::string& name : tensors.names()) {
    const Shape& shape = tensors.shape(name);
    list.push_back(Json::Object{{"name", valid_utf8(name)},
                                {"type", tensors.type(name)},
                                {"shape", Json::Array(shape.begin(), shape.end())}});
  }
  print(Json(Json::Object{{"kind", "hugging_face"},
                          {"architecture", type_of(config)},
                          {"parameters", value_count(tensors)},
                          {"metadata", config},
                          {"tensors", std::move(list)}})
            .line() +
        "\n");
}

int inspect_hugging_face(const fs::path& folder, const Arguments& arguments) {
  const FolderTensors tensors(folder);
  const bool json = arguments.on("json");
  if (arguments.on("verify")) return verify(folder, problem_of(tensors), json);
  const Json config = read_foreign_json(folder / "config.json");
  json ? describe_as_json(config, tensors) : describe(config, tensors);
  return 0;
}

}  // namespace

int inspect_pretrained(const fs::path& path, const Arguments& arguments) {
  return is_gguf(path) ? inspect_gguf(path, arguments) : inspect_hugging_face(path, arguments);
}

}  // namespace fovea::cli

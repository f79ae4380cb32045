// SPDX-License-Identifier: Apache-2.0
#include "fovea/pretrained/encoder_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fovea/pretrained/encoder_table.h"
#include "fovea/pretrained/foreign_json.h"

namespace fovea {

namespace {

std::string_view problem_name(EncoderProblem problem) {
  switch (problem) {
    case EncoderProblem::kOneLabel:
      return "single_label_classification";
    case EncoderProblem::kAnyLabels:
      return "multi_label_classification";
    case EncoderProblem::kNumber:
      return "regression";
  }
  return {};
}

// The parts of a parameter, under one another, each a tensor of its own.
Tensor part_of(const Tensor& whole, index part, index parts) {
  const Shape& shape = whole.shape();
  const index rows = shape[0] / parts, size = whole.size() / parts;
  Tensor tensor = Tensor::empty(shape.axes() == 1 ? Shape{rows} : Shape{rows, shape[1]});
  const float* const from = whole.vec<float>().data + part * size;
  std::copy_n(from, size, tensor.vec<float>().data);
  return tensor;
}

}  // namespace

std::string class_with_head(const Json& config, BertHead head, const std::string& where) {
  const EncoderArchitecture& row = encoder_architecture(ForeignObject(config, where));
  if (head == BertHead::kNone) return fmt::format("{}Model", row.class_name);
  return fmt::format("{}For{}Classification", row.class_name,
                     head == BertHead::kText ? "Sequence" : "Token");
}

Json::Object config_with_head(const std::string& text, const EncoderHead& head,
                              const std::string& where) {
  const Json json = parse_json(text, {where, ErrorCode::kModelDamaged});
  constexpr std::string_view kOfHead[] = {"architectures", "id2label",    "label2id",
                                          "num_labels",    "_num_labels", "problem_type"};
  Json::Object config = members_but(json.object(), kOfHead);
  std::vector<std::string> labels = head.labels;
  if (head.problem == EncoderProblem::kNumber) labels = {"LABEL_0"};
  Json::Object names, numbers;
  for (std::size_t n = 0; n < labels.size(); ++n) {
    names.emplace_back(fmt::format("{}", n), labels[n]);
    numbers.emplace_back(labels[n], static_cast<index>(n));
  }
  config.emplace_back("architectures", Json::Array{class_with_head(json, head.head, where)});
  if (head.head == BertHead::kNone) return config;
  config.emplace_back("id2label", std::move(names));
  config.emplace_back("label2id", std::move(numbers));
  if (head.head == BertHead::kText) {
    config.emplace_back("problem_type", std::string(problem_name(head.problem)));
  }
  return config;
}

std::vector<NamedTensor> encoder_tensors_of(std::span<Parameter* const> parameters,
                                            const Json& config, BertHead head,
                                            const std::string& where) {
  const EncoderArchitecture& row = encoder_architecture(ForeignObject(config, where));
  std::vector<NamedTensor> tensors;
  for (const Parameter* const parameter : parameters) {
    const std::vector<std::string> names = encoder_tensor_names(row, head, parameter->name);
    const index parts = std::ssize(names);
    for (index n = 0; n < parts; ++n) {
      tensors.push_back({names[static_cast<std::size_t>(n)], part_of(parameter->value, n, parts)});
    }
  }
  return tensors;
}

}  // namespace fovea

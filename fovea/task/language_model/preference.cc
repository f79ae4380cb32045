// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/language_model/preference.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "fovea/base/check.h"
#include "fovea/tensor/safetensors.h"

namespace fovea {

namespace fs = std::filesystem;

std::vector<double> log_ratios(Vec<const double> losses) {
  std::vector<double> ratios;
  for (index n = 0; n + 1 < losses.size; n += 2) ratios.push_back(losses[n + 1] - losses[n]);
  return ratios;
}

double negative_log_sigmoid(double x) {
  return std::max(-x, 0.0) + std::log1p(std::exp(-std::abs(x)));
}

PreferenceStep preference_step(Vec<const double> losses, Vec<const double> reference, double beta) {
  check(losses.size == 2 * reference.size, "preferences: {} losses for {} pairs", losses.size,
        reference.size);
  PreferenceStep step;
  const std::vector<double> ratios = log_ratios(losses);
  for (index n = 0; n < reference.size; ++n) {
    const double margin = ratios[static_cast<std::size_t>(n)] - reference[n], x = beta * margin;
    const double e = std::exp(-std::abs(x));
    step.loss += negative_log_sigmoid(x);
    step.preferred += margin > 0 ? 1 : 0;
    const double slope = beta * (x < 0 ? 1 : e) / (1 + e);  // beta sigmoid(-x)
    step.factors.push_back(slope);
    step.factors.push_back(-slope);
  }
  return step;
}

namespace {

constexpr double kMostNats = 1e9;  // of an answer
constexpr const char* kTraining = "training";
constexpr const char* kValidation = "validation";

NamedTensor named(const char* name, const std::vector<double>& values) {
  Tensor tensor = Tensor::empty({std::ssize(values)}, DType::kFloat64);
  std::ranges::copy(values, tensor.data<double>());
  return {name, std::move(tensor)};
}

}  // namespace

void write_reference(const fs::path& folder, const PreferenceReference& reference) {
  const NamedTensor tensors[] = {named(kTraining, reference.training),
                                 named(kValidation, reference.validation)};
  write_safetensors(folder / kReferenceName, tensors);
}

PreferenceReference read_reference(const fs::path& folder, index training, index validation) {
  const fs::path file = folder / kReferenceName;
  if (!fs::exists(file)) {
    throw Error(ErrorCode::kModelMissing, fmt::format("{}: no such file", file.string()),
                "it says what the model of the beginning made of the answers: put it back, or "
                "begin anew with --overwrite");
  }
  const Safetensors read = read_safetensors(file, ChecksumRule::kRequired);
  const auto values = [&](const char* name, index expected) {
    const Tensor* const tensor = read.find(name);
    if (tensor == nullptr || tensor->dtype() != DType::kFloat64 ||
        tensor->shape() != Shape{expected}) {
      fail(ErrorCode::kModelDamaged, "{}: expected {} numbers of {}, got {}", file.string(),
           expected, name, tensor == nullptr ? "none" : tensor->describe());
    }
    const double* const first = tensor->data<double>();
    std::vector<double> numbers(first, first + expected);
    if (!std::ranges::all_of(numbers, [](double x) { return std::abs(x) < kMostNats; })) {
      fail(ErrorCode::kModelDamaged, "{}: a number of {} is no difference of log-probabilities",
           file.string(), name);
    }
    return numbers;
  };
  return {values(kTraining, training), values(kValidation, validation)};
}

std::vector<FileCheck> verify_reference(const fs::path& folder) {
  std::vector<FileCheck> checks;
  const fs::path file = folder / kReferenceName;
  if (!fs::exists(file)) return checks;
  FileCheck& check = checks.emplace_back(FileCheck{std::string(kReferenceName), ""});
  try {
    read_safetensors(file, ChecksumRule::kRequired);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kOutOfMemory) throw;
    check.problem = error.what();
  }
  return checks;
}

}  // namespace fovea

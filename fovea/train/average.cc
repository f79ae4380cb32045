// SPDX-License-Identifier: Apache-2.0
#include "fovea/train/average.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>

#include "fovea/base/check.h"
#include "fovea/base/file.h"
#include "fovea/train/checkpoint.h"
#include "fovea/train/optimizer.h"

namespace fovea {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kGoodness = "goodness";
constexpr std::string_view kBegin = "step-", kEnd = ".safetensors";

struct ReadWeights {
  Safetensors tensors;
  std::string where;
};

// The mean of what `read` returns for each step.
template <class Read>
std::vector<NamedTensor> mean_of(std::span<const index> steps,
                                 std::span<Parameter* const> parameters, Read&& read) {
  std::vector<Tensor> sums;
  for (const Parameter* p : parameters) sums.emplace_back(p->value.shape(), DType::kFloat64);
  for (const index step : steps) {
    const ReadWeights weights = read(step);
    for (std::size_t n = 0; n < sums.size(); ++n) {
      const Tensor& values = weights.tensors.at(parameters[n]->name);
      if (values.size() != sums[n].size() || values.dtype() != DType::kFloat32) {
        fail(ErrorCode::kModelDamaged, "{}: {} is {}; expected float32 {}", weights.where,
             parameters[n]->name, values.describe(), to_string(sums[n].shape()));
      }
      double* const sum = sums[n].data<double>();
      for (index i = 0; i < values.size(); ++i) sum[i] += double{values.data<float>()[i]};
    }
  }
  std::vector<NamedTensor> mean;
  for (std::size_t n = 0; n < sums.size(); ++n) {
    for (double& x : sums[n].vec<double>()) x /= static_cast<double>(steps.size());
    mean.push_back({parameters[n]->name, sums[n].to(DType::kFloat32)});
  }
  return mean;
}

Safetensors read_weights(const fs::path& file) {
  try {
    return parse_safetensors(read_file(file), file.string());
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kOutOfMemory) throw;  // the file may be intact
    fail(ErrorCode::kModelDamaged, "{}", error.what());
  }
}

// Throws kModelDamaged.
double goodness_of(const fs::path& file) {
  const Safetensors weights = read_weights(file);
  const auto found = weights.metadata.find(std::string(kGoodness));
  const std::string text = found == weights.metadata.end() ? "" : found->second;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && std::isfinite(value)) {
    return value;
  }
  fail(ErrorCode::kModelDamaged, "{}: expected a number as {}, got '{}'", file.string(), kGoodness,
       text);
}

// The updates in the names of a folder.
std::vector<index> steps_in(const fs::path& folder) {
  std::vector<index> steps;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kBegin) || !name.ends_with(kEnd)) continue;
    const char *const first = name.data() + kBegin.size(), *const last = name.data() + name.size() -
                                                                         kEnd.size();
    index step = 0;
    const auto [end, error] = std::from_chars(first, last, step);
    if (error == std::errc() && end == last) steps.push_back(step);
  }
  return steps;
}

fs::path best_file(const fs::path& run, index step) {
  return run / kBestFolderName / fmt::format("{}{:06}{}", kBegin, step, kEnd);
}

}  // namespace

std::vector<index> checkpoints_to_average(const std::filesystem::path& folder, index step,
                                          index count) {
  std::vector<index> steps;
  for (const index saved : checkpoint_steps(checkpoints_of(folder))) {
    if (saved <= step) steps.push_back(saved);
  }
  const auto all = static_cast<index>(steps.size());
  steps.erase(steps.begin(), steps.begin() + std::max<index>(all - count, 0));
  return steps;
}

std::vector<NamedTensor> mean_of_checkpoints(const std::filesystem::path& folder,
                                             std::span<const index> steps,
                                             std::span<Parameter* const> parameters) {
  return mean_of(steps, parameters, [&](index step) {
    const Checkpoint checkpoint = load_checkpoint(checkpoint_path(checkpoints_of(folder), step));
    const std::string where = (checkpoint.path / kWeightsName).string();
    return ReadWeights{parse_safetensors(checkpoint.bytes(kWeightsName), where), where};
  });
}

std::vector<std::string> BestWeights::go_on_from(index step, index held) {
  std::vector<std::string> warnings;
  if (std::exchange(began_, true)) return warnings;
  index after = 0;
  for (const index kept : steps_in(run_ / kBestFolderName)) {
    const fs::path file = best_file(run_, kept);
    if (kept > step) {
      ++after;
      remove_file(file);
      continue;
    }
    try {
      kept_.emplace(kept, goodness_of(file));
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kOutOfMemory) throw;
      warnings.push_back(fmt::format("{}; the run goes on without these weights", error.what()));
      remove_file(file);
    }
  }
  // One that was kept after this update may have taken the place of one that was kept before.
  const index found = static_cast<index>(kept_.size() + warnings.size()) + after;
  if (const index wanted = std::min(held, count_); found < wanted) {
    warnings.push_back(
        fmt::format("{}: weights of {} of the {} best evaluations are missing; the run goes on "
                    "without them",
                    (run_ / kBestFolderName).string(), wanted - found, wanted));
  }
  while (static_cast<index>(kept_.size()) > count_) forget_worst();  // the run began with more
  return warnings;
}

std::map<index, double>::const_iterator BestWeights::worst() const {
  return std::min_element(kept_.begin(), kept_.end(), [](const auto& a, const auto& b) {
    return std::pair(a.second, -a.first) < std::pair(b.second, -b.first);
  });
}

void BestWeights::forget_worst() {
  const auto gone = worst();
  remove_file(best_file(run_, gone->first));
  kept_.erase(gone);
}

void BestWeights::evaluated(index step, double goodness, std::span<Parameter* const> parameters) {
  go_on_from(step);
  kept_.erase(step);
  const bool full = static_cast<index>(kept_.size()) >= count_;
  if (full && goodness <= worst()->second) return;
  create_folders(run_ / kBestFolderName);
  write_safetensors(best_file(run_, step), parameter_tensors(parameters),
                    {{std::string(kGoodness), fmt::format("{}", goodness)}});
  if (full) forget_worst();
  kept_.emplace(step, goodness);
}

std::vector<index> BestWeights::steps() const {
  std::vector<index> steps;
  for (const auto& [step, goodness] : kept_) steps.push_back(step);
  return steps;
}

std::vector<NamedTensor> BestWeights::mean(std::span<Parameter* const> parameters) const {
  return mean_of(steps(), parameters, [&](index step) {
    const fs::path file = best_file(run_, step);
    return ReadWeights{read_weights(file), file.string()};
  });
}

std::vector<FileCheck> verify_best_weights(const fs::path& run) {
  std::vector<index> steps = steps_in(run / kBestFolderName);
  std::sort(steps.begin(), steps.end());
  std::vector<FileCheck> checks;
  for (const index step : steps) {
    const fs::path file = best_file(run, step);
    FileCheck check{file.lexically_relative(run).string(), ""};
    try {
      goodness_of(file);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kOutOfMemory) throw;
      check.problem = error.what();
    }
    std::error_code ignored;  // a training removes the worst meanwhile
    if (fs::exists(file, ignored)) checks.push_back(std::move(check));
  }
  return checks;
}

void remove_best_weights(const fs::path& run) {
  const fs::path folder = run / kBestFolderName;
  for (const index step : steps_in(folder)) remove_file(best_file(run, step));
  std::error_code ignored;  // it stays if anything else is in it
  fs::remove(folder, ignored);
}

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
#include "fovea/train/optimizer.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "fovea/base/check.h"

namespace fovea {

namespace {

// So many updates are remembered. Then every row is brought up to date, which takes a few seconds
// for a table of some hundred megabytes.
constexpr index kMostUpdates = 1 << 16;
// So many rows are brought up to date at once, so that a list of them is short.
constexpr index kRowsAtOnce = 1 << 14;

}  // namespace

TableUpdates::TableUpdates(Parameter& parameter, Tensor m, Tensor v)
    : parameter_(parameter), m_(std::move(m)), v_(std::move(v)) {
  check(parameter.value.shape().axes() == 2,
        "optimizer: '{}' has rows that are used by their ids, "
        "so it has two axes; it is {}",
        parameter.name, parameter.value.describe());
  check(parameter.missed == nullptr, "optimizer: '{}' has an optimizer already", parameter.name);
  made_.assign(static_cast<std::size_t>(parameter.value.shape()[0]), 0);
  behind_.reserve(static_cast<std::size_t>(kRowsAtOnce));
  parameter.missed = this;
}

TableUpdates::~TableUpdates() {
  make_all();
  parameter_.missed = nullptr;
}

AdamWTable<float> TableUpdates::table() {
  return {parameter_.value.rows<float>(), m_.rows<float>(), v_.rows<float>()};
}

void TableUpdates::make(const Context& context, Vec<const std::int32_t> ids) {
  const auto now = static_cast<std::int32_t>(history_.size());
  const auto V = static_cast<index>(made_.size());
  behind_.clear();
  for (index n = 0; n < ids.size; ++n) {
    check(ids[n] >= 0 && ids[n] < V, "embedding: ids[{}] is {}; the table has rows 0 to {}", n,
          ids[n], V - 1);
    std::int32_t& made = made_[static_cast<std::size_t>(ids[n])];
    if (made < now) behind_.push_back({ids[n], std::exchange(made, now)});
  }
  make_behind(context);
}

void TableUpdates::make_all() {
  if (history_.size() == 0) return;
  const Context context(threads_);
  const auto now = static_cast<std::int32_t>(history_.size());
  const auto V = static_cast<index>(made_.size());
  for (index begin = 0; begin < V; begin += kRowsAtOnce) {
    behind_.clear();
    for (index row = begin; row < std::min(begin + kRowsAtOnce, V); ++row) {
      const std::int32_t made = made_[static_cast<std::size_t>(row)];
      if (made < now) behind_.push_back({static_cast<std::int32_t>(row), made});
    }
    make_behind(context);
  }
  std::fill(made_.begin(), made_.end(), 0);
  history_.clear();
}

void TableUpdates::make_behind(const Context& context) {
  if (!behind_.empty()) adamw_catch_up<float>(context, table(), history_, behind_);
}

AdamWSlot<float> TableUpdates::slot() {
  if (parameter_.has_gradient) {
    return {parameter_.value.vec<float>(), parameter_.gradient.vec<float>(), m_.vec<float>(),
            v_.vec<float>(), decay()};
  }
  RowGradient& gradient = parameter_.row_gradient;
  const Rows<float> rows = gradient.rows<float>();
  const index C = parameter_.value.shape()[1];
  return {parameter_.value.vec<float>(),
          {rows.data, rows.rows * C},
          m_.vec<float>(),
          v_.vec<float>(),
          decay(),
          gradient.sorted(),
          C};
}

AdamWSlot<float> TableUpdates::begin(const Context& context, const AdamWStep& step) {
  threads_ = context.threads();
  // Where another op has used all of the table, all of it is updated.
  if (parameter_.has_gradient || !history_.takes(step)) make_all();
  if (!parameter_.has_gradient) make(context, parameter_.row_gradient.ids());
  return slot();
}

void TableUpdates::updated(const AdamWStep& step) {
  if (parameter_.has_gradient) return;
  history_.add(step, decay());
  const auto now = static_cast<std::int32_t>(history_.size());
  for (const std::int32_t id : parameter_.row_gradient.ids()) {
    made_[static_cast<std::size_t>(id)] = now;
  }
  if (history_.size() == kMostUpdates) make_all();
}

namespace {

constexpr Hint kOtherModel{
    "the file does not belong to this model: restore the folder from a copy, or train the model "
    "again"};

// Whether a tensor may be stored with fewer bits than it has here.
enum class Stored { kWhole, kWholeOrRounded };

void take(Tensor& into, const Safetensors& from, const std::string& name, std::string_view where,
          Stored stored = Stored::kWhole) {
  const Tensor* tensor = from.find(name);
  if (tensor == nullptr) {
    fail(ErrorCode::kModelDamaged, kOtherModel, "{}: tensor '{}' is missing", where, name);
  }
  const bool rounded = stored == Stored::kWholeOrRounded && tensor->dtype() == DType::kBFloat16;
  if (tensor->shape() != into.shape() || (tensor->dtype() != into.dtype() && !rounded)) {
    const bool may_be_rounded = stored == Stored::kWholeOrRounded;
    fail(ErrorCode::kModelDamaged, kOtherModel, "{}: tensor '{}' must be {}{}; it is {}", where,
         name, into.describe(), may_be_rounded ? " or bfloat16" : "", tensor->describe());
  }
  into.copy_from(rounded ? tensor->to(into.dtype()) : *tensor);
}

[[noreturn]] void fail_moments(const std::string& name, std::string_view what) {
  fail(ErrorCode::kModelDamaged, "optimizer.safetensors: tensor '{}' holds a value that {}", name,
       what);
}

// No update gives moments that fail these checks. v may be infinite, as a square may overflow.
void require_moments(const Tensor& m, const Tensor& v, const std::string& name) {
  for (const float x : m.vec<float>()) {
    if (!std::isfinite(x)) fail_moments(name + ".m", "is not finite");
  }
  for (const float x : v.vec<float>()) {
    if (!(x >= 0)) fail_moments(name + ".v", "is below 0 or no number");
  }
}

}  // namespace

Optimizer::Optimizer(std::span<Parameter* const> parameters, std::span<const double> rates) {
  check(rates.empty() || rates.size() == parameters.size(),
        "optimizer: {} factors of the learning rate for {} parameters", rates.size(),
        parameters.size());
  for (std::size_t n = 0; n < parameters.size(); ++n) {
    Parameter* const p = parameters[n];
    if (p->frozen) continue;
    Moments moments{p, Tensor(p->value.shape()), Tensor(p->value.shape()), nullptr,
                    rates.empty() ? 1 : rates[n]};
    if (std::ranges::find(rates_, moments.rate) == rates_.end()) rates_.push_back(moments.rate);
    if (p->row_use == RowUse::kSparse) {
      moments.table = std::make_unique<TableUpdates>(*p, moments.m, moments.v);
    }
    moments_.push_back(std::move(moments));
  }
}

AdamWSlot<float> Optimizer::slot(Moments& moments) {
  Parameter& p = *moments.parameter;
  return {p.value.vec<float>(), p.finished_gradient().vec<float>(), moments.m.vec<float>(),
          moments.v.vec<float>(), p.decay == Decay::kYes ? 1.0 : 0.0};
}

double Optimizer::gradient_norm(const Context& context) {
  slots_.clear();
  for (Moments& moments : moments_) {
    slots_.push_back(moments.table ? moments.table->slot() : slot(moments));
  }
  return global_norm<float>(context, slots_);
}

void Optimizer::step(const Context& context, const AdamWStep& step) {
  for (const double rate : rates_) step_at(context, rate, step);
}

// The step of the parameters with this factor.
void Optimizer::step_at(const Context& context, double rate, AdamWStep step) {
  step.options.lr *= rate;
  slots_.clear();
  for (Moments& moments : moments_) {
    if (moments.rate != rate) continue;
    slots_.push_back(moments.table ? moments.table->begin(context, step) : slot(moments));
  }
  adamw<float>(context, slots_, step);
  for (Moments& moments : moments_) {
    if (moments.rate != rate) continue;
    if (moments.table) moments.table->updated(step);
    ++moments.parameter->version;
    moments.parameter->clear_gradient();
  }
}

std::vector<NamedTensor> Optimizer::state() const {
  std::vector<NamedTensor> state;
  for (const auto& [p, m, v, table, rate] : moments_) {
    p->catch_up();
    state.push_back({p->name + ".m", m});
    state.push_back({p->name + ".v", v});
  }
  return state;
}

void Optimizer::restore(const Safetensors& state) {
  for (auto& [p, m, v, table, rate] : moments_) {
    p->catch_up();
    take(m, state, p->name + ".m", "optimizer.safetensors");
    take(v, state, p->name + ".v", "optimizer.safetensors");
    require_moments(m, v, p->name);
  }
}

std::vector<NamedTensor> parameter_tensors(std::span<Parameter* const> parameters) {
  std::vector<NamedTensor> tensors;
  for (Parameter* p : parameters) {
    p->catch_up();
    tensors.push_back({p->name, p->value});
  }
  return tensors;
}

std::string first_not_finite(std::span<const NamedTensor> weights) {
  for (const NamedTensor& named : weights) {
    for (const float x : named.tensor.vec<float>()) {
      if (!std::isfinite(x)) return named.name;
    }
  }
  return "";
}

void restore_parameters(std::span<Parameter* const> parameters, const Safetensors& tensors,
                        std::string_view where) {
  for (Parameter* p : parameters) {
    p->catch_up();
    take(p->value, tensors, p->name, where, Stored::kWholeOrRounded);
    ++p->version;
  }
  if (tensors.tensors.size() != parameters.size()) {
    fail(ErrorCode::kModelDamaged, kOtherModel, "{}: expected {} tensors, got {}", where,
         parameters.size(), tensors.tensors.size());
  }
}

}  // namespace fovea

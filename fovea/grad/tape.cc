// SPDX-License-Identifier: Apache-2.0
#include "fovea/grad/tape.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace fovea {

namespace {

index columns_of(const Shape& shape) { return shape.axes() == 0 ? 1 : shape.back(); }

void check_part_widths(index columns, std::span<const index> widths) {
  index sum = 0;
  for (const index width : widths) {
    check(width > 0, "split: every part needs a column; got a width of {}", width);
    sum += width;
  }
  check(sum == columns, "split: the widths add up to {}; x has {} columns", sum, columns);
}

}  // namespace

Tape::Value* Tape::make_value(index rows, index columns, DType dtype) {
  const bool known =
      dtype == DType::kFloat32 || dtype == DType::kFloat64 || dtype == DType::kBFloat16;
  check(known, "tape: values are float32, float64 or bfloat16; got {}", to_string(dtype));
  auto* value = new (arena_.allocate<Value>(1)) Value;
  value->rows = rows;
  value->columns = value->stride = columns;
  value->dtype = dtype;
  value->depth = depth_;
  return value;
}

Variable Tape::leaf(void* data, index rows, index columns, index stride, DType dtype) {
  Value* value = make_value(rows, columns, dtype);
  value->data = data;
  value->stride = stride;
  value->leaf = true;
  return Variable(value);
}

Variable Tape::parameter(Parameter& parameter) {
  parameter.catch_up();
  return parameter_leaf(parameter);
}

Variable Tape::table(Parameter& parameter) {
  const Variable x = parameter_leaf(parameter);
  x.value_->table = parameter.missed != nullptr;
  return x;
}

Variable Tape::parameter_leaf(Parameter& parameter) {
  Tensor& tensor = parameter.value;
  check(tensor.defined(), "tape: the parameter '{}' has no value", parameter.name);
  const index columns = columns_of(tensor.shape());
  const index rows = columns == 0 ? 0 : tensor.size() / columns;
  const Variable x = leaf(tensor.bytes().data(), rows, columns, columns, tensor.dtype());
  x.value_->parameter = &parameter;
  x.value_->needs_gradient = mode_ == TapeMode::kTrain && !parameter.frozen;
  return x;
}

Variable Tape::result(index rows, index columns, DType dtype) {
  Value* value = make_value(rows, columns, dtype);
  value->data = arena_.allocate_bytes(contiguous_bytes(*value));
  return Variable(value);
}

std::span<const Variable> Tape::split(Variable x, std::span<const index> widths) {
  Value& whole = *x.value_;
  check(whole.parts.empty() && whole.whole == nullptr, "split: a value can be split once");
  check_has_no_slope(whole);
  check_part_widths(whole.columns, widths);
  const auto n = static_cast<index>(widths.size());
  auto* parts = arena_.allocate<Value*>(n);
  auto* variables = arena_.allocate<Variable>(n);
  index column = 0;
  for (index i = 0; i < n; ++i) {
    Value* part = make_value(whole.rows, widths[static_cast<std::size_t>(i)], whole.dtype);
    part->data = static_cast<std::byte*>(whole.data) + column * byte_size(whole.dtype);
    part->stride = whole.stride;
    part->needs_gradient = whole.needs_gradient;
    part->whole = &whole;
    parts[i] = part;
    new (variables + i) Variable(part);
    column += part->columns;
  }
  whole.parts = {parts, static_cast<std::size_t>(n)};
  return {variables, static_cast<std::size_t>(n)};
}

bool Tape::records(std::span<const Variable> inputs) const {
  if (mode_ == TapeMode::kInference) return false;
  for (const Variable& input : inputs) {
    if (input.needs_gradient()) return true;
  }
  return false;
}

void Tape::push(Value* output, Run run, const void* closure) {
  last_ = new (arena_.allocate<Node>(1)) Node{last_, output, run, closure};
}

void Tape::backward(Variable loss, double scale) {
  check(mode_ != TapeMode::kInference,
        "backward: the tape is in inference mode, nothing was recorded");
  check(loss.defined() && loss.rows() == 1 && loss.columns() == 1,
        "backward: the loss must be one number");
  check(!walked_, "backward: this recording has been walked already; reset() begins another");
  walked_ = true;
  if (!loss.needs_gradient()) return;
  open_gradient(*loss.value_);
  with_type(loss.dtype(), [&]<class T>(std::type_identity<T>) {
    *static_cast<T*>(loss.value_->gradient) = static_cast<T>(scale);
  });
  walk();
}

void Tape::walk() {
  for (const Node* node = std::exchange(last_, nullptr); node != nullptr; node = node->previous) {
    Value& output = *node->output;
    if (!reached(output)) continue;
    fill_missing_parts(output);
    node->run(node->closure, *this);
    recycle(output);
  }
}

// What f records is forgotten with what it makes, but for whether y has a gradient.
Variable Tape::first_pass(std::span<const Variable> inputs, Again again) {
  const auto n = static_cast<index>(inputs.size());
  auto* const kept = arena_.allocate<Variable>(n);
  std::copy(inputs.begin(), inputs.end(), kept);
  again.inputs = {kept, inputs.size()};
  const Inner inner = begin_inner();
  const Variable y = again.f(again.closure, *this, Pass::kFirst);
  check_inner_result(again, y);
  with_type(y.dtype(), [&]<class T>(std::type_identity<T>) {
    copy_rows<T>(context_, y.value<T>(), again.y.value<T>());
  });
  const bool needs_gradient = y.needs_gradient();
  end_inner(inner, again.inputs);
  if (!needs_gradient) return again.y;
  again.y.value_->needs_gradient = true;
  push(
      again.y.value_,
      [](const void* closure, Tape& tape) { tape.pull_again(*static_cast<const Again*>(closure)); },
      new (arena_.allocate_bytes(sizeof(Again))) Again(again));
  return again.y;
}

// The gradients of the inputs are used after the memory of f is freed, so theirs is taken before.
void Tape::pull_again(const Again& again) {
  for (const Variable& input : again.inputs) {
    if (input.needs_gradient()) reach_memory(*input.value_);
  }
  const Inner inner = begin_inner();
  const Variable y = again.f(again.closure, *this, Pass::kAgain);
  move_gradient(*again.y.value_, *y.value_);
  walk();
  end_inner(inner, again.inputs);
}

Tape::Inner Tape::begin_inner() {
  ++depth_;
  return {arena_.mark(), std::exchange(last_, nullptr)};
}

void Tape::end_inner(const Inner& inner, std::span<const Variable> inputs) {
  for (const Variable& input : inputs) {
    Value& value = *input.value_;
    if (value.parts.empty() || value.parts.front()->depth < depth_) continue;
    if (reached(value)) fill_missing_parts(value);
    value.parts = {};
  }
  for (FreeBuffer** link = &free_; *link != nullptr;) {
    if ((*link)->depth == depth_) {
      *link = (*link)->next;
    } else {
      link = &(*link)->next;
    }
  }
  --depth_;
  last_ = inner.last;
  arena_.release(inner.begin);
}

void Tape::check_inner_result(const Again& again, Variable y) const {
  const Variable& wanted = again.y;
  check(y.defined() && y.rows() == wanted.rows() && y.columns() == wanted.columns() &&
            y.dtype() == wanted.dtype(),
        "recompute: the result must be {} [{}, {}]; it is {} [{}, {}]", to_string(wanted.dtype()),
        wanted.rows(), wanted.columns(), y.defined() ? to_string(y.dtype()) : "undefined",
        y.defined() ? y.rows() : 0, y.defined() ? y.columns() : 0);
  check(!y.value_->leaf && y.value_->whole == nullptr && y.value_->depth == depth_,
        "recompute: the result must be made by an op of the function");
  check_has_no_slope(*y.value_);
}

void Tape::reset(TapeMode mode) {
  arena_.reset();
  mode_ = mode;
  last_ = nullptr;
  walked_ = false;
  free_ = nullptr;
  depth_ = 0;
}

bool Tape::reached(const Value& value) {
  if (value.written) return true;
  for (const Value* part : value.parts) {
    if (part->written) return true;
  }
  return false;
}

std::size_t Tape::contiguous_bytes(const Value& value) {
  return static_cast<std::size_t>(value.rows * value.columns * byte_size(value.dtype));
}

void Tape::check_has_no_slope(const Value& value) {
  check(value.slope == nullptr, "tape: a result that was made for one product has another reader");
}

// The first write overwrites. A value and its parts share memory: once the whole holds a sum, its
// parts do too; and the first write to the whole comes only after its parts cover it.
Store Tape::open_gradient(Value& value) {
  reach_memory(value);
  if (value.parameter != nullptr) {
    value.parameter->gather_rows();
    const bool add = value.parameter->has_gradient;
    value.parameter->has_gradient = value.written = true;
    value.parameter->used_rows.reset();
    return add ? Store::kAdd : Store::kWrite;
  }
  if (value.whole != nullptr && value.whole->leaf) {
    value.written = true;
    return add_to_leaf(*value.whole);
  }
  if (reached(value)) fill_missing_parts(value);
  const bool add = value.written || (value.whole != nullptr && value.whole->written);
  value.written = true;
  return add ? Store::kAdd : Store::kWrite;
}

// backward never passes a leaf, so fill_missing_parts is not called for it. The parts of a leaf add
// to zeros instead.
Store Tape::add_to_leaf(Value& leaf) {
  if (leaf.parameter != nullptr) leaf.parameter->gather_rows();
  if (leaf.parameter != nullptr ? !leaf.parameter->has_gradient : !leaf.written) {
    context_.run_here([&] { std::memset(leaf.gradient, 0, contiguous_bytes(leaf)); });
  }
  leaf.written = true;
  if (leaf.parameter != nullptr) {
    leaf.parameter->has_gradient = true;
    leaf.parameter->used_rows.reset();
  }
  return Store::kAdd;
}

void Tape::reach_memory(Value& value) {
  if (value.gradient != nullptr) return;
  if (value.parameter != nullptr) {
    Parameter& parameter = *value.parameter;
    if (!parameter.gradient.defined()) {
      parameter.gradient = Tensor::empty(parameter.value.shape(), parameter.value.dtype());
      parameter.used_rows.reset();
    }
    value.gradient = parameter.gradient.bytes().data();
  } else if (value.whole != nullptr) {
    reach_memory(*value.whole);
    const auto offset =
        static_cast<std::byte*>(value.data) - static_cast<std::byte*>(value.whole->data);
    value.gradient = static_cast<std::byte*>(value.whole->gradient) + offset;
  } else {
    check(value.depth == depth_,
          "recompute: the function reads a variable that is not among its inputs");
    acquire_gradient(value);
  }
}

// Completes a gradient of which only some columns were written: the others become zero.
void Tape::fill_missing_parts(Value& whole) {
  if (whole.written || whole.parts.empty()) return;
  const index row_bytes = whole.columns * byte_size(whole.dtype);
  for (Value* part : whole.parts) {
    if (part->written) continue;
    reach_memory(*part);
    part->written = true;
    auto* row = static_cast<std::byte*>(part->gradient);
    const auto bytes = static_cast<std::size_t>(part->columns * byte_size(part->dtype));
    context_.run_here([&] {
      for (index n = 0; n < part->rows; ++n) std::memset(row + n * row_bytes, 0, bytes);
    });
  }
  whole.written = true;
}

bool Tape::hand_over_gradient(Variable y, Variable x) {
  Value &from = *y.value_, &to = *x.value_;
  const auto is_alone = [](const Value& v) {
    return !v.leaf && v.whole == nullptr && v.parts.empty();
  };
  if (!to.needs_gradient || to.gradient != nullptr || !is_alone(from) || !is_alone(to))
    return false;
  check_has_no_slope(to);
  if (from.dtype != to.dtype || contiguous_bytes(from) != contiguous_bytes(to)) return false;
  move_gradient(from, to);
  return true;
}

void Tape::move_gradient(Value& from, Value& to) {
  to.gradient = std::exchange(from.gradient, nullptr);
  to.gradient_depth = from.gradient_depth;
  to.written = true;
}

void Tape::acquire_gradient(Value& value) {
  const std::size_t bytes = contiguous_bytes(value);
  for (FreeBuffer** link = &free_; *link != nullptr; link = &(*link)->next) {
    if ((*link)->bytes != bytes) continue;
    FreeBuffer* buffer = *link;
    *link = buffer->next;
    value.gradient_depth = buffer->depth;
    value.gradient = buffer;
    return;
  }
  value.gradient_depth = depth_;
  value.gradient = arena_.allocate_bytes(std::max(bytes, sizeof(FreeBuffer)));
}

// backward has passed the op that made this value: its gradient is not read any more.
void Tape::recycle(Value& value) {
  if (value.parameter != nullptr || value.whole != nullptr || value.gradient == nullptr) return;
  free_ = new (value.gradient) FreeBuffer{free_, contiguous_bytes(value), value.gradient_depth};
  value.gradient = nullptr;
}

}  // namespace fovea

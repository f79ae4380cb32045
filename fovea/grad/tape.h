// SPDX-License-Identifier: Apache-2.0
// Reverse-mode differentiation: a tape of operations in the order in which they ran.
//
// An op computes its result at once and records a closure that turns the gradient of the result
// into gradients of its inputs; backward walks the tape from the end, so no graph is sorted and
// nothing is recursive. Values, gradients and closures lie in an arena that reset() empties but
// keeps, so a training loop allocates in its first step only.
//
// Every value on a tape is a matrix [rows, columns]: the tokens of a batch are its rows, one after
// another, without padding; vectors and scalars have one row. Values are float32, or float64 for
// gradient checks, through the same ops. A result that one product alone reads may be bfloat16, and
// its gradient too: that product would round them anyway (ForReader in ops.h).
#pragma once

#include <cstddef>
#include <initializer_list>
#include <new>
#include <span>
#include <type_traits>

#include "fovea/base/check.h"
#include "fovea/base/context.h"
#include "fovea/base/memory.h"
#include "fovea/base/view.h"
#include "fovea/grad/parameter.h"
#include "fovea/kernel/elementwise.h"
#include "fovea/tensor/tensor.h"

namespace fovea {

enum class TapeMode {
  kTrain,      ///< ops record their gradients
  kInference,  ///< values only, nothing is recorded; dropout does nothing
  kInputs,     ///< gradients of inputs alone: parameters are constants, dropout does nothing
};

/// What Tape::recompute() keeps until backward, in training, of what its function makes.
enum class InnerResults {
  kKept,        ///< all of it, as without recompute()
  kRecomputed,  ///< nothing: backward calls the function again
};

/// Which call of a function that is recomputed it is. The second one is for its gradient alone: it
/// computes the same bits, and must not count again what the first has counted.
enum class Pass { kFirst, kAgain };

namespace detail {

/// A value on the tape; it lives in the arena.
struct TapeValue {
  void* data = nullptr;
  void* gradient = nullptr;  // null until it is written
  index rows = 0, columns = 0;
  index stride = 0;
  DType dtype = DType::kFloat32;
  bool leaf = false;   // no op of the tape made it
  bool table = false;  // only its rows may be read, by their ids
  bool needs_gradient = false;
  bool written = false;            // the gradient holds a (partial) sum
  int depth = 0;                   // how many functions of recompute() had begun when it was made
  int gradient_depth = 0;          // and when the memory of its gradient was taken
  Parameter* parameter = nullptr;  // the parameter to which memory and gradient belong, if any
  const void* slope = nullptr;     // what the writer of the gradient multiplies it by, if any
  TapeValue* whole = nullptr;      // if this is a part of the columns of another value, that value
  std::span<TapeValue*> parts;     // if this value was split, its parts
};

}  // namespace detail

/// A handle to a value on a tape, as cheap as a pointer; valid until the tape's reset.
class Variable {
 public:
  Variable() = default;

  bool defined() const { return value_ != nullptr; }
  index rows() const { return value_->rows; }
  index columns() const { return value_->columns; }
  DType dtype() const { return value_->dtype; }
  /// Whether this value depends on a parameter, or on an input made by Tape::input().
  bool needs_gradient() const { return defined() && value_->needs_gradient; }
  /// The parameter whose value this is, or null.
  Parameter* parameter() const { return value_->parameter; }

  /// [rows, columns]; T must be the value's type (Error kShape otherwise). An undefined variable
  /// gives no data and no rows, so an op can pass on an optional operand.
  template <class T>
  Rows<T> value() const;
  /// The single row of a vector.
  template <class T>
  Vec<T> vec() const;
  /// [rows, columns], of which the rows `ids` may be read: also of Tape::table(). Each id must be
  /// below rows() (Error kShape).
  template <class T>
  Rows<const T> rows_at(const Context& context, Vec<const std::int32_t> ids) const;
  /// After backward: the gradient of a leaf. Empty if the loss does not depend on it. (The memory
  /// of other gradients is reused as soon as backward has passed them.)
  template <class T>
  Rows<const T> gradient() const;

 private:
  friend class Tape;
  explicit Variable(detail::TapeValue* value) : value_(value) {}

  detail::TapeValue* value_ = nullptr;
};

/// Where an op's backward puts the gradient of an input. The first op to write overwrites, later
/// ones add, so that no gradient has to be zeroed before.
template <class T>
struct GradientOut {
  Rows<T> rows;  ///< no data if this gradient is not needed
  Store store = Store::kWrite;

  explicit operator bool() const { return rows.data != nullptr; }
  Vec<T> vec() const { return {rows.data, rows.rows * rows.columns}; }
};

/// Calls f with std::type_identity<float> or <double>.
template <class F>
void with_type(DType dtype, F&& f) {
  if (dtype == DType::kFloat32) return f(std::type_identity<float>{});
  check(dtype == DType::kFloat64, "tape: expected float32 or float64 values; got {}",
        to_string(dtype));
  f(std::type_identity<double>{});
}

/// For kernels that can only overwrite: calls write(rows). If the gradient is to be added to,
/// `rows` is scratch memory that is added afterwards.
template <class T, class Write>
void write_or_add(const Context& context, const GradientOut<T>& out, Write&& write) {
  if (!out) return;
  if (out.store == Store::kWrite) {
    write(out.rows);
    return;
  }
  Scratch scratch;
  const index N = out.rows.rows, C = out.rows.columns;
  const Rows<T> sum(scratch.allocate<T>(N * C), N, C);
  write(sum);
  accumulate(context, sum, out.rows);
}

/// Belongs to one thread; the kernels inside use the context's threads.
class Tape {
 public:
  explicit Tape(const Context& context, TapeMode mode = TapeMode::kTrain)
      : context_(context), mode_(mode) {}
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  const Context& context() const { return context_; }
  TapeMode mode() const { return mode_; }

  /// Leaves. A constant's memory stays the caller's and must outlive the step.
  template <class T>
  Variable constant(Rows<const T> values);
  /// As constant, but after backward its gradient is in Variable::gradient().
  template <class T>
  Variable input(Rows<const T> values);
  /// A parameter; its gradient goes to parameter.gradient. A tensor of one axis is a row.
  Variable parameter(Parameter& parameter);
  /// A parameter for ops that read few of its rows, by their ids (embedding, embedding_bag): the
  /// other rows of a RowUse::kSparse table may have missed updates. value() of it is an error.
  Variable table(Parameter& parameter);

  /// Computes scale * d(loss) / d(leaf) for every leaf; `loss` is [1, 1]. Gradients of parameters
  /// are added to those of earlier passes unless cleared. Call it once between two resets: the
  /// second call throws Error(kShape).
  void backward(Variable loss, double scale = 1);

  /// Removes all variables. The memory is kept for the next step, whose mode may differ.
  void reset() { reset(mode_); }
  void reset(TapeMode mode);
  /// For the calls of recompute() from now on; at first all is kept.
  void set_inner_results(InnerResults inner) { inner_ = inner; }
  /// Bytes of memory held, and the most that were in use at once.
  std::size_t capacity() const { return arena_.capacity(); }
  std::size_t peak() const { return arena_.peak(); }

  // For ops.

  /// A fresh value, not filled.
  Variable result(index rows, index columns, DType dtype);
  /// Memory, valid until reset, for what backward needs besides the values.
  template <class T>
  T* saved(index n) {
    return arena_.allocate<T>(n);
  }
  /// Columns of x as values of their own, in x's memory, as wide as `widths` says (their sum is x's
  /// width). Their gradients are columns of x's gradient.
  std::span<const Variable> split(Variable x, std::span<const index> widths);
  /// Records how the gradient of `y` flows on to the inputs, if training and any of them needs it.
  /// `backward` is called with this tape, after the closures of all ops that read y. It lies in the
  /// arena, so it may hold views and numbers, but nothing that needs a destructor.
  template <class Backward>
  void record(Variable y, std::span<const Variable> inputs, const Backward& backward);
  template <class Backward>
  void record(Variable y, std::initializer_list<Variable> inputs, const Backward& backward) {
    record(y, std::span(inputs.begin(), inputs.size()), backward);
  }
  /// y = f(tape, Pass) of which only y is kept, if the tape is so set (InnerResults): what f makes
  /// on the tape is freed at once, and made again when backward reaches y (Chen et al. 2016,
  /// "Training Deep Nets with Sublinear Memory Cost", section 4). The bits are those of f alone;
  /// the peak of memory is that of all y and of one f, and f is computed twice. In inference, where
  /// nothing is made again, it is always so.
  ///
  /// `inputs` are the variables that f reads, parameters aside: the first has the rows and the type
  /// of y, whose columns are `columns`. y must be made by an op in f. f is copied into the arena,
  /// so it may hold views and numbers, but nothing that needs a destructor; what they point to must
  /// outlive the step. Calls may nest. Throws Error(kShape) for a y of another shape or type, and
  /// in backward if f reads a variable that is not among `inputs`.
  template <class F>
  Variable recompute(std::initializer_list<Variable> inputs, index columns, const F& f);
  /// Whether record() would record.
  bool records(std::span<const Variable> inputs) const;
  bool records(std::initializer_list<Variable> inputs) const {
    return records(std::span(inputs.begin(), inputs.size()));
  }
  /// In a backward closure: the gradient of the result.
  template <class T>
  Rows<const T> gradient_of(Variable y) const;
  /// As gradient_of, and the closure may overwrite it: no other closure reads it afterwards.
  template <class T>
  Rows<T> take_gradient(Variable y) const;
  /// In a backward closure, as its last use of the gradient of `y`: the memory of that gradient
  /// becomes the gradient of `x`. Returns false and does nothing if x's gradient has memory
  /// already, or if either gradient shares its memory with others.
  bool hand_over_gradient(Variable y, Variable x);
  /// In a backward closure: where to write the gradient of an input (at most once per closure).
  /// An error if x has a slope.
  template <class T>
  GradientOut<T> gradient_for(Variable x);
  /// For y = f(z) that one product alone reads: that product multiplies the gradient that it writes
  /// by f'(z), so gradient_of(y) is that of z. `slope` [rows, columns] must outlive the step.
  template <class T>
  void set_slope(Variable y, const T* slope) {
    y.value_->slope = slope;
  }
  /// Empty if it has none.
  template <class T>
  Rows<const T> slope_of(Variable x) const;
  /// gradient_for, for the product that multiplies what it writes by slope_of(x).
  template <class T>
  GradientOut<T> gradient_for_product(Variable x);

 private:
  using Value = detail::TapeValue;
  using Run = void (*)(const void* closure, Tape& tape);
  struct Node {
    Node* previous;
    Value* output;
    Run run;
    const void* closure;
  };
  struct FreeBuffer {
    FreeBuffer* next;
    std::size_t bytes;
    int depth;
  };

  // A call of recompute().
  struct Again {
    std::span<const Variable> inputs;
    Variable y;
    Variable (*f)(const void* closure, Tape& tape, Pass pass);
    const void* closure;
  };
  // What is made on the tape while a function of recompute() runs, and freed at its end.
  struct Inner {
    Arena::Mark begin;
    Node* last;  // of the nodes before
  };

  Variable first_pass(std::span<const Variable> inputs, Again again);
  void pull_again(const Again& again);
  Inner begin_inner();
  void end_inner(const Inner& inner, std::span<const Variable> inputs);
  void check_inner_result(const Again& again, Variable y) const;
  void walk();

  Value* make_value(index rows, index columns, DType dtype);
  Variable leaf(void* data, index rows, index columns, index stride, DType dtype);
  Variable parameter_leaf(Parameter& parameter);
  void push(Value* output, Run run, const void* closure);
  static void check_has_no_slope(const Value& value);
  Store open_gradient(Value& value);
  void reach_memory(Value& value);
  void fill_missing_parts(Value& whole);
  Store add_to_leaf(Value& leaf);
  void recycle(Value& value);
  void acquire_gradient(Value& value);
  static void move_gradient(Value& from, Value& to);
  static bool reached(const Value& value);
  static std::size_t contiguous_bytes(const Value& value);

  const Context context_;
  TapeMode mode_;
  Arena arena_;
  Node* last_ = nullptr;
  bool walked_ = false;
  FreeBuffer* free_ = nullptr;
  InnerResults inner_ = InnerResults::kKept;
  int depth_ = 0;  // of functions of recompute() that have begun
};

template <class T>
Rows<T> Variable::value() const {
  if (!defined()) return {};
  check(value_->dtype == kDTypeOf<T>, "tape: expected {} values; got {}", to_string(kDTypeOf<T>),
        to_string(value_->dtype));
  check(value_->parameter == nullptr || value_->parameter->blocks == nullptr,
        "tape: a weight that lies in blocks is read by linear(), embedding() and the loss alone");
  check(!value_->table, "tape: of a table only the rows of a step are there to read");
  return {static_cast<T*>(value_->data), value_->rows, value_->columns, value_->stride};
}

template <class T>
Rows<const T> Variable::rows_at(const Context& context, Vec<const std::int32_t> ids) const {
  if (!value_->table) return value<T>();
  value_->parameter->missed->make(context, ids);
  return {static_cast<const T*>(value_->data), value_->rows, value_->columns, value_->stride};
}

template <class T>
Vec<T> Variable::vec() const {
  if (!defined()) return {};
  check(value_->rows == 1, "tape: expected a vector; got [{}, {}]", value_->rows, value_->columns);
  return {value<T>().data, value_->columns};
}

template <class T>
Rows<const T> Variable::gradient() const {
  if (!defined() || value_->gradient == nullptr || !value_->written) return {};
  check(value_->dtype == kDTypeOf<T>, "tape: expected {} gradients; got {}", to_string(kDTypeOf<T>),
        to_string(value_->dtype));
  const index stride = value_->whole != nullptr ? value_->whole->columns : value_->columns;
  return {static_cast<const T*>(value_->gradient), value_->rows, value_->columns, stride};
}

template <class T>
Variable Tape::constant(Rows<const T> values) {
  return leaf(const_cast<T*>(values.data), values.rows, values.columns, values.stride, kDTypeOf<T>);
}

template <class T>
Variable Tape::input(Rows<const T> values) {
  const Variable x = constant(values);
  x.value_->needs_gradient = true;
  return x;
}

template <class Backward>
void Tape::record(Variable y, std::span<const Variable> inputs, const Backward& backward) {
  static_assert(std::is_trivially_copyable_v<Backward> &&
                std::is_trivially_destructible_v<Backward>);
  if (!records(inputs)) return;
  y.value_->needs_gradient = true;
  std::byte* memory = arena_.allocate_bytes(sizeof(Backward));
  push(
      y.value_,
      [](const void* closure, Tape& tape) { (*static_cast<const Backward*>(closure))(tape); },
      new (memory) Backward(backward));
}

template <class F>
Variable Tape::recompute(std::initializer_list<Variable> inputs, index columns, const F& f) {
  static_assert(std::is_trivially_copyable_v<F> && std::is_trivially_destructible_v<F>);
  const bool keeps = mode_ == TapeMode::kTrain && inner_ == InnerResults::kKept;
  if (keeps || mode_ == TapeMode::kInputs) return f(*this, Pass::kFirst);
  const Variable y = result(inputs.begin()->rows(), columns, inputs.begin()->dtype());
  const auto call = [](const void* closure, Tape& tape, Pass pass) {
    return (*static_cast<const F*>(closure))(tape, pass);
  };
  const void* const closure = new (arena_.allocate_bytes(sizeof(F))) F(f);
  return first_pass({inputs.begin(), inputs.size()}, {{}, y, call, closure});
}

template <class T>
Rows<const T> Tape::gradient_of(Variable y) const {
  return y.gradient<T>();
}

template <class T>
Rows<T> Tape::take_gradient(Variable y) const {
  const Rows<const T> dy = y.gradient<T>();
  return {const_cast<T*>(dy.data), dy.rows, dy.columns, dy.stride};
}

template <class T>
Rows<const T> Tape::slope_of(Variable x) const {
  if (x.value_->slope == nullptr) return {};
  return {static_cast<const T*>(x.value_->slope), x.rows(), x.columns()};
}

template <class T>
GradientOut<T> Tape::gradient_for(Variable x) {
  if (x.needs_gradient()) check_has_no_slope(*x.value_);
  return gradient_for_product<T>(x);
}

template <class T>
GradientOut<T> Tape::gradient_for_product(Variable x) {
  if (!x.needs_gradient()) return {};
  Value& value = *x.value_;
  check(value.dtype == kDTypeOf<T>, "tape: expected {} gradients; got {}", to_string(kDTypeOf<T>),
        to_string(value.dtype));
  const Store store = open_gradient(value);
  if (value.dtype == DType::kBFloat16 || value.slope != nullptr) {
    check(store == Store::kWrite, "tape: two ops read a result that was made for one");
  }
  const index stride = value.whole != nullptr ? value.whole->columns : value.columns;
  return {{static_cast<T*>(value.gradient), value.rows, value.columns, stride}, store};
}

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
// Where the time of a piece of work goes. A kernel says what it does and how much of that there is:
//
//   const Work work{.what = "product", .shape = {M, N, K}, .flops = flops};
//   const ProfileScope scope(ctx, work);
//
// That costs a comparison unless the context has a profile (Context::profiled). Time of a scope
// inside another counts for the inner one alone. Time in which the thread waits for the process's
// pool counts for no scope; on a Team of its own, waiting counts for the scope that waits.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <thread>
#include <vector>

#include "fovea/base/context.h"

namespace fovea {

/// A piece of work: its kind, its sizes and its amount.
struct Work {
  std::string_view what;  ///< a literal
  std::array<index, 3> shape = {};
  double flops = 0;  ///< multiplications and additions
  double bytes = 0;  ///< read and written, each tensor once

  bool is_like(const Work& other) const { return what == other.what && shape == other.shape; }
};

/// Work that passes over `tensors` matrices of T, each [rows, columns].
template <class T>
Work pass_over(std::string_view what, index rows, index columns, int tensors) {
  const double values = static_cast<double>(rows) * static_cast<double>(columns) * tensors;
  return {.what = what, .shape = {rows, columns, 0}, .bytes = values * sizeof(T)};
}

/// Belongs to the thread that made it: scopes of other threads do not count.
class Profile {
 public:
  /// All the work of one kind and shape.
  struct Part {
    Work work;  ///< of all calls together
    index calls = 0;
    double seconds = 0;  ///< without those in which the thread waited
  };

  /// In the order in which they began first.
  const std::vector<Part>& parts() const { return parts_; }
  /// In which the thread waited for others to end.
  double waiting_seconds() const { return waiting_; }
  /// Forgets everything. Throws Error(kInternal) while a scope is open.
  void clear();

  bool is_of_this_thread() const { return thread_ == std::this_thread::get_id(); }
  void add_waiting(double seconds) { waiting_ += seconds; }

 private:
  friend class ProfileScope;
  std::size_t number_of(const Work& work);

  std::thread::id thread_ = std::this_thread::get_id();
  std::vector<Part> parts_;
  double waiting_ = 0;
  double counted_ = 0;  // seconds of all parts
  int open_ = 0;        // scopes
};

/// Adds the time from its beginning to its end to the profile of a context, if it has one.
class ProfileScope {
 public:
  ProfileScope(const Context& ctx, const Work& work);
  ~ProfileScope();
  ProfileScope(const ProfileScope&) = delete;
  ProfileScope& operator=(const ProfileScope&) = delete;

 private:
  Profile* profile_;
  std::size_t part_ = 0;
  double begin_ = 0, elsewhere_ = 0;  // what had been counted or waited before
};

}  // namespace fovea

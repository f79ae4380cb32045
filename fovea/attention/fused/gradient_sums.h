// SPDX-License-Identifier: Apache-2.0
// Gradients of the parameters of a call: sums over all its scores, in an order that does not depend
// on threads.
#pragma once

#include <vector>

#include "fovea/attention/fused/kernel_call.h"
#include "fovea/base/context.h"
#include "fovea/base/memory.h"

namespace fovea::detail {

/// A table of sums for each head of each chunk of keys, written by the thread that computes the
/// chunk; in the end they are added up in ascending order. A table holds the sums of the bias
/// parts, of the value parts, and of the sink.
template <class T>
class GradientSums {
 public:
  GradientSums(const Attention<T>& attention, index heads);

  index size() const { return size_; }  ///< of a table
  /// Counts `chunks` times the tables of heads [first_head, last_head) of a row of the batch;
  /// returns the number of the first.
  index add_tables(index first_head, index last_head, index chunks, index batch = 0);
  /// Allocates all counted tables, filled with 0. Call it before any table is written.
  void allocate(const Context& ctx);
  /// nullptr before the tables are allocated, and if they are empty.
  double* table(index number) const {
    return sums_ == nullptr ? nullptr : reinterpret_cast<double*>(sums_.get()) + number * size_;
  }
  double bytes() const {
    return static_cast<double>(head_of_.size()) * static_cast<double>(size_) * sizeof(double);
  }

  /// Stores the gradient of a head's sink in one sequence: its weight is exp(sink - lse), its value
  /// 0. delta [T'] is dO . O, less the gradient of lse.
  template <class In>
  void set_sink(index table, const AttentionSaved<In>& saved, const Sequence& sequence,
                const T* delta) const;
  /// Gives the finished sums to the parts and the sink.
  void store() const;

 private:
  template <class Part>
  index store(const Part& part, index offset) const;

  const Attention<T>& attention_;
  index heads_;
  index size_;
  std::vector<index> head_of_;   // of each table
  std::vector<index> batch_of_;  // likewise
  AlignedBytes sums_;            // doubles [tables][size_]
};

}  // namespace fovea::detail

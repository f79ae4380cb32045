// SPDX-License-Identifier: Apache-2.0
// Inputs of any number, cut into batches of about the same length that threads take in turn. No bit
// of a result depends on it.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "fovea/base/clock.h"
#include "fovea/base/context.h"
#include "fovea/base/shares.h"
#include "fovea/grad/tape.h"

namespace fovea {

/// The unit in which the size of a batch is counted.
enum class BatchUnit { kLengths, kInputs };

struct BatchSizes {
  BatchUnit unit = BatchUnit::kLengths;
  index fewest = 1;     ///< below that, products have too few rows
  index most = 1;       ///< a longer input is a batch of its own
  index of_thread = 4;  ///< batches, so that no thread waits long for the last one
};

/// The numbers of the inputs of each batch. The longest come first: a thread that takes one of them
/// last would keep all waiting.
class LengthBatches {
 public:
  LengthBatches(const std::vector<index>& lengths, const BatchSizes& sizes, index threads)
      : order_(lengths.size()), ends_{0} {
    const auto length = [&](index input) { return lengths[static_cast<std::size_t>(input)]; };
    std::iota(order_.begin(), order_.end(), index{0});
    std::stable_sort(order_.begin(), order_.end(),
                     [&](index a, index b) { return length(a) > length(b); });
    const auto count = static_cast<index>(lengths.size());
    const bool by_length = sizes.unit == BatchUnit::kLengths;
    const index all = by_length ? std::accumulate(lengths.begin(), lengths.end(), index{0}) : count;
    const index most = std::clamp(all / (sizes.of_thread * threads),
                                  std::min(sizes.fewest, sizes.most), sizes.most);
    index held = 0;
    for (index i = 0; i < count; ++i) {
      const index more = by_length ? length(order_[static_cast<std::size_t>(i)]) : 1;
      if (i > 0 && held + more > most) {
        ends_.push_back(i);
        held = 0;
      }
      held += more;
    }
    if (count > 0) ends_.push_back(count);
  }

  index size() const { return static_cast<index>(ends_.size()) - 1; }
  std::span<const index> operator[](index batch) const {
    const index* const ends = ends_.data() + batch;
    return {order_.data() + ends[0], order_.data() + ends[1]};
  }

 private:
  std::vector<index> order_;  // of the inputs
  std::vector<index> ends_;   // of the batches before, in it
};

/// Workers on batches, such as tapes: one of all threads, and some of one thread each, which
/// are lent to a batch at a time and keep their memory. Belongs to one thread.
template <class Worker>
class BatchWorkers {
 public:
  using Make = std::function<std::unique_ptr<Worker>(const Context&)>;

  BatchWorkers(const Context& context, Make make)
      : context_(context), alone_(Context(1).with(context.precision())), make_(std::move(make)) {}

  /// Calls work(worker, inputs) for each batch. A single batch has all threads.
  template <class Work>
  void for_each(const LengthBatches& batches, const Work& work) {
    const double began = monotonic_seconds();
    const auto lend = [&](Lent<Worker>& workers, const Context& context, index batch) {
      workers.lend([&] { return make_(context); },
                   [&](Worker& worker) { work(worker, batches[batch]); });
    };
    if (batches.size() == 1) {
      lend(of_all_threads_, context_, 0);
    } else {
      context_.for_each_in_order(batches.size(),
                                 [&](index batch) { lend(of_one_thread_, alone_, batch); });
    }
    seconds_ += monotonic_seconds() - began;
  }

  double seconds() const { return seconds_; }  ///< of all calls so far

 private:
  const Context context_, alone_;
  const Make make_;
  Lent<Worker> of_all_threads_, of_one_thread_;
  double seconds_ = 0;
};

/// Tapes of inference.
class BatchTapes : public BatchWorkers<Tape> {
 public:
  explicit BatchTapes(const Context& context)
      : BatchWorkers(context, [](const Context& own) {
          return std::make_unique<Tape>(own, TapeMode::kInference);
        }) {}
};

}  // namespace fovea

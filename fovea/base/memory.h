// SPDX-License-Identifier: Apache-2.0
// Memory: aligned buffers, and the arena that holds what a training step needs only until it ends.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "fovea/base/types.h"

namespace fovea {

/// The size of a cache line and of the widest vector. Every buffer starts on such a boundary.
inline constexpr std::size_t kAlignment = 64;

struct AlignedDelete {
  std::size_t lazy = 0;      ///< bytes, if it is LazyMemory's
  bool in_an_arena = false;  ///< which counts for itself
  void operator()(void* memory) const;
};
using AlignedBytes = std::unique_ptr<std::byte[], AlignedDelete>;

/// Uninitialised bytes on a 64-byte boundary, in huge pages where they fill some. Throws
/// Error(kOutOfMemory), which says how much.
AlignedBytes allocate_aligned(std::size_t bytes);

/// Asks the system to keep this memory in pages of 2 MiB, as far as it fills such pages. The rows
/// of one head lie far apart: with pages of 4 KiB, address translation (TLB misses) takes a
/// measured 3 to 4 % of attention's time; and the first write to each new page costs microseconds.
/// The system may refuse; nothing depends on it.
void ask_for_huge_pages(void* memory, std::size_t bytes);

/// A bump allocator: to allocate is to add to an offset; memory is freed all at once (reset) or
/// back to a mark (release). reset() joins the blocks into one as large as was needed, so the
/// second of two equal steps asks the system for nothing. Pointers stay valid until reset, or until
/// a release to an earlier mark.
/// Not thread safe: one arena belongs to one thread at a time. Under AddressSanitizer, freed memory
/// is poisoned.
class Arena {
 public:
  Arena() = default;
  Arena(Arena&& other) noexcept { swap(other); }
  Arena& operator=(Arena&& other) noexcept {
    swap(other);
    return *this;
  }

  /// Uninitialised room for n objects of a trivial type, 64-byte aligned. Throws Error(kShape) if
  /// n is negative or the bytes cannot be counted, Error(kOutOfMemory).
  template <class T>
  T* allocate(index n) {
    static_assert(std::is_trivially_destructible_v<T> && alignof(T) <= kAlignment);
    // NOLINTNEXTLINE(bugprone-sizeof-expression): T may be a pointer
    constexpr std::size_t size = sizeof(T);
    return reinterpret_cast<T*>(allocate_bytes(count_bytes(n, size)));
  }
  std::byte* allocate_bytes(std::size_t bytes);

  struct Mark {
    std::size_t block, used;
  };
  Mark mark() const { return {current_, used_}; }
  void release(Mark mark);

  /// Frees everything. Later allocations find one block that is as large as the peak so far.
  void reset();

  /// Bytes taken from the system, and the most that were ever in use at once. The end of a block
  /// into which the next buffer did not fit is not in use.
  std::size_t capacity() const;
  std::size_t peak() const { return peak_; }

 private:
  struct Block {
    AlignedBytes bytes;
    std::size_t size;
    std::size_t used = 0;  // when the next block was begun
  };
  static std::size_t count_bytes(index n, std::size_t size);
  void add_block(std::size_t size);
  std::size_t in_use() const;
  void swap(Arena& other) noexcept;

  std::vector<Block> blocks_;
  std::size_t current_ = 0;  // the block that is being filled
  std::size_t used_ = 0;     // bytes taken from it
  std::size_t peak_ = 0;
};

/// While it lives, memory that this thread allocates is only addresses: the system gives a page (of
/// zeros) when it is touched first, and asks for none before. So a plan may allocate more than the
/// machine has. It must outlive that memory, and is freed by the same thread.
class LazyMemory {
 public:
  LazyMemory();
  ~LazyMemory();
  LazyMemory(const LazyMemory&) = delete;
  LazyMemory& operator=(const LazyMemory&) = delete;

  /// The most bytes of scratch memory that were in use at once.
  std::size_t scratch_peak() const { return scratch_.peak(); }
  /// The most bytes of other buffers that existed at once: of allocate_aligned(), not of arenas.
  std::size_t buffer_peak() const { return buffer_peak_; }
  /// If the system refused addresses (ulimit -v), or there were more than 16 TiB: all that there
  /// were, and those refused. Else 0.
  std::size_t refused_bytes() const { return refused_; }

 private:
  friend class Scratch;
  friend struct AlignedDelete;
  friend class Arena;
  friend AlignedBytes allocate_aligned(std::size_t bytes);
  AlignedBytes map(std::size_t bytes, bool in_an_arena);

  Arena scratch_;
  std::size_t mapped_ = 0, refused_ = 0, buffers_ = 0, buffer_peak_ = 0;
  LazyMemory* before_;
};

/// Scratch memory of the calling thread, freed at the end of the scope. Scopes may nest. The thread
/// keeps the memory for the next scope.
class Scratch {
 public:
  Scratch();
  ~Scratch() { arena_.release(mark_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  template <class T>
  T* allocate(index n) {
    return arena_.allocate<T>(n);
  }

 private:
  Arena& arena_;
  Arena::Mark mark_;
};

}  // namespace fovea

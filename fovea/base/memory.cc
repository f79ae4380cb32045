// SPDX-License-Identifier: Apache-2.0
#include "fovea/base/memory.h"

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <new>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/base/profile.h"
#include "fovea/base/sanitizer.h"

#if defined(FOVEA_ADDRESS_SANITIZER)
#include <sanitizer/asan_interface.h>
#endif

namespace fovea {

namespace {

constexpr std::size_t kSmallestBlock = std::size_t{1} << 16;

constexpr std::size_t kMostBytes = std::size_t{PTRDIFF_MAX} / kAlignment * kAlignment;

[[noreturn]] void fail_allocation(std::size_t bytes) {
  throw Error(ErrorCode::kOutOfMemory, fmt::format("cannot allocate {} bytes", bytes),
              "free some memory, or make the tensors smaller");
}

std::size_t round_up(std::size_t bytes) {
  if (bytes > kMostBytes) fail_allocation(bytes);
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// AddressSanitizer sees one block where the arena has many buffers, so it is told about each.
#if defined(FOVEA_ADDRESS_SANITIZER)
void allow(const std::byte* memory, std::size_t bytes) {
  ASAN_UNPOISON_MEMORY_REGION(memory, bytes);
}
void forbid(const std::byte* memory, std::size_t bytes) {
  ASAN_POISON_MEMORY_REGION(memory, bytes);
}
#else
void allow(const std::byte* /*memory*/, std::size_t /*bytes*/) {}
void forbid(const std::byte* /*memory*/, std::size_t /*bytes*/) {}
#endif

constexpr std::uintptr_t kHugePage = std::uintptr_t{2} << 20;

}  // namespace

void ask_for_huge_pages(void* memory, std::size_t bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  const std::uintptr_t begin = (address + kHugePage - 1) / kHugePage * kHugePage;
  const std::uintptr_t end = (address + bytes) / kHugePage * kHugePage;
  if (begin < end) {
    madvise(static_cast<std::byte*>(memory) + (begin - address), end - begin, MADV_HUGEPAGE);
  }
}

namespace {

constinit thread_local LazyMemory* lazy_memory = nullptr;

AlignedBytes allocate_now(std::size_t bytes) {
  void* memory = ::operator new (round_up(std::max<std::size_t>(bytes, 1)),
                                 std::align_val_t{kAlignment}, std::nothrow);
  if (memory == nullptr) fail_allocation(bytes);
  ask_for_huge_pages(memory, bytes);
  return AlignedBytes(static_cast<std::byte*>(memory));
}

}  // namespace

LazyMemory::LazyMemory() : before_(std::exchange(lazy_memory, this)) {}
LazyMemory::~LazyMemory() {
  scratch_ = {};  // while it counts here, and not in a plan around this one
  lazy_memory = before_;
}

// No machine has as much memory. A plan that asks for more ends, so that it need not list the
// millions of tensors of a forged model.
constexpr std::size_t kMostMapped = std::size_t{16} << 40;

// Pages of the system's usual size: of a huge one, all would be there as soon as a byte is touched.
AlignedBytes LazyMemory::map(std::size_t bytes, bool in_an_arena) {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  const std::size_t size = round_up(std::max<std::size_t>(bytes, 1));
  const bool too_many = size > kMostMapped - mapped_;
  void* const memory =
      too_many ? MAP_FAILED : mmap(nullptr, size, PROT_READ | PROT_WRITE, kFlags, -1, 0);
  if (memory == MAP_FAILED) {
    refused_ = mapped_ + size;
    fail_allocation(bytes);
  }
  madvise(memory, size, MADV_NOHUGEPAGE);
  mapped_ += size;
  if (!in_an_arena) {
    buffers_ += size;
    buffer_peak_ = std::max(buffer_peak_, buffers_);
  }
  return {static_cast<std::byte*>(memory), AlignedDelete{size, in_an_arena}};
}

void AlignedDelete::operator()(void* memory) const {
  if (lazy == 0) {
    ::operator delete (memory, std::align_val_t{kAlignment});
    return;
  }
  if (in_an_arena) allow(static_cast<std::byte*>(memory), lazy);  // others may get these addresses
  munmap(memory, lazy);
  if (lazy_memory == nullptr) return;
  lazy_memory->mapped_ -= lazy;
  if (!in_an_arena) lazy_memory->buffers_ -= lazy;
}

AlignedBytes allocate_aligned(std::size_t bytes) {
  return lazy_memory == nullptr ? allocate_now(bytes) : lazy_memory->map(bytes, false);
}

void Arena::add_block(std::size_t size) {
  blocks_.push_back(
      {lazy_memory == nullptr ? allocate_now(size) : lazy_memory->map(size, true), size});
  forbid(blocks_.back().bytes.get(), size);
}

std::size_t Arena::count_bytes(index n, std::size_t size) {
  check(n >= 0, "arena: cannot allocate {} values", n);
  return static_cast<std::size_t>(checked_product(n, static_cast<index>(size), "arena"));
}

std::byte* Arena::allocate_bytes(std::size_t bytes) {
  const std::size_t size = round_up(bytes);
  while (current_ < blocks_.size() && size > blocks_[current_].size - used_) {
    blocks_[current_++].used = used_;
    used_ = 0;
  }
  if (current_ == blocks_.size()) add_block(std::max({size, kSmallestBlock, capacity()}));
  std::byte* memory = blocks_[current_].bytes.get() + used_;
  used_ += size;
  peak_ = std::max(peak_, in_use());
  allow(memory, bytes);
  return memory;
}

void Arena::release(Mark mark) {
  for (std::size_t i = mark.block; i <= current_ && i < blocks_.size(); ++i) {
    const std::size_t begin = i == mark.block ? mark.used : 0;
    const std::size_t end = i == current_ ? used_ : blocks_[i].size;
    forbid(blocks_[i].bytes.get() + begin, end - begin);
  }
  current_ = mark.block;
  used_ = mark.used;
}

void Arena::reset() {
  release({0, 0});
  if (blocks_.size() <= 1) return;
  blocks_.clear();
  add_block(round_up(peak_));
}

void Arena::swap(Arena& other) noexcept {
  std::swap(blocks_, other.blocks_);
  std::swap(current_, other.current_);
  std::swap(used_, other.used_);
  std::swap(peak_, other.peak_);
}

std::size_t Arena::capacity() const {
  std::size_t total = 0;
  for (const Block& block : blocks_) total += block.size;
  return total;
}

std::size_t Arena::in_use() const {
  std::size_t total = used_;
  for (std::size_t i = 0; i < current_; ++i) total += blocks_[i].used;
  return total;
}

namespace {

// A thread's arena is freed when the thread ends. A thread_local object with a destructor would do
// that too, but glibc ends the process if memory runs out at its first use; a POSIX thread key
// reports the error instead.
class ArenaKey {
 public:
  ArenaKey() {
    const int error = pthread_key_create(&key_, [](void* arena) {
      delete static_cast<Arena*>(arena);
      arena_of_thread = nullptr;
    });
    if (error != 0) throw std::bad_alloc();
  }

  Arena& arena() const {
    if (arena_of_thread == nullptr) {
      auto arena = std::make_unique<Arena>();
      if (pthread_setspecific(key_, arena.get()) != 0) throw std::bad_alloc();
      arena_of_thread = arena.release();
    }
    return *arena_of_thread;
  }

 private:
  static constinit thread_local Arena* arena_of_thread;
  pthread_key_t key_{};
};

constinit thread_local Arena* ArenaKey::arena_of_thread = nullptr;

Arena& thread_arena() {
  static const ArenaKey key;
  return key.arena();
}

}  // namespace

Scratch::Scratch()
    : arena_(lazy_memory != nullptr ? lazy_memory->scratch_ : thread_arena()),
      mark_(arena_.mark()) {
  if (mark_.block == 0 && mark_.used == 0) arena_.reset();  // no scope is open: join the blocks
}

std::size_t scratch_peak_of_thread() { return thread_arena().peak(); }

}  // namespace fovea

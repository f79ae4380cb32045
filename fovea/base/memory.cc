// SPDX-License-Identifier: Apache-2.0
#include "fovea/base/memory.h"

#include <algorithm>
#include <new>

#include "fovea/base/check.h"

namespace fovea {

namespace {

constexpr std::size_t kSmallestBlock = std::size_t{1} << 16;

std::size_t round_up(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

void AlignedDelete::operator()(void* memory) const {
  ::operator delete(memory, std::align_val_t{kAlignment});
}

AlignedBytes allocate_aligned(std::size_t bytes) {
  void* memory = ::operator new(round_up(std::max<std::size_t>(bytes, 1)),
                                std::align_val_t{kAlignment}, std::nothrow);
  if (memory == nullptr) fail(ErrorCode::kOutOfMemory, "cannot allocate {} bytes", bytes);
  return AlignedBytes(static_cast<std::byte*>(memory));
}

std::byte* Arena::allocate_bytes(std::size_t bytes) {
  const std::size_t size = round_up(bytes);
  while (current_ < blocks_.size() && used_ + size > blocks_[current_].size) {
    ++current_;
    used_ = 0;
  }
  if (current_ == blocks_.size()) {
    const std::size_t grown = std::max({size, kSmallestBlock, capacity()});
    blocks_.push_back({allocate_aligned(grown), grown});
    used_ = 0;
  }
  std::byte* memory = blocks_[current_].bytes.get() + used_;
  used_ += size;
  peak_ = std::max(peak_, in_use());
  return memory;
}

void Arena::release(Mark mark) {
  current_ = mark.block;
  used_ = mark.used;
}

void Arena::reset() {
  if (blocks_.size() > 1) {
    blocks_.clear();
    const std::size_t size = round_up(peak_);
    blocks_.push_back({allocate_aligned(size), size});
  }
  current_ = 0;
  used_ = 0;
}

std::size_t Arena::capacity() const {
  std::size_t total = 0;
  for (const Block& block : blocks_) total += block.size;
  return total;
}

std::size_t Arena::in_use() const {
  std::size_t total = used_;
  for (std::size_t i = 0; i < current_; ++i) total += blocks_[i].size;
  return total;
}

namespace {

Arena& thread_arena() {
  thread_local Arena arena;
  return arena;
}

}  // namespace

Scratch::Scratch() : arena_(thread_arena()), mark_(arena_.mark()) {}

}  // namespace fovea

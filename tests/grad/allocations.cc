// SPDX-License-Identifier: Apache-2.0
#include "tests/grad/allocations.h"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

std::atomic<fovea::index> count{0};

void* allocate(std::size_t size, std::size_t alignment) {
  ++count;
  return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

}  // namespace

fovea::index fovea::allocations() { return count; }

void* operator new(std::size_t size) {
  if (void* memory = allocate(size == 0 ? 1 : size, alignof(std::max_align_t))) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }

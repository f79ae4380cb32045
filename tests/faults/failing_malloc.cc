// SPDX-License-Identifier: Apache-2.0
// A library to preload (LD_PRELOAD) into a program: allocations fail as its environment says.
//
//   FAIL_ALLOCATION=N        the N-th allocation after main has begun fails, from 1 on
//   FAIL_ALLOCATION=N+       that one, and every one after it
//   COUNT_ALLOCATIONS=FILE   how many there were from main's beginning to its end is written there
//
// What is allocated before main begins and after it has ended is left alone: a program can do
// nothing about that. All threads are counted together.
#include <dlfcn.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

// The allocator of glibc, by its own names: to ask dlsym for it would allocate.
extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* memory, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);
}

namespace {

using Main = int (*)(int, char**, char**);

std::atomic<bool> in_main{false};
std::atomic<long> allocations{0};
long first_failure = 0;  // 0: none
bool all_after_fail = false;
Main real_main = nullptr;

bool fails() {
  if (!in_main.load(std::memory_order_relaxed)) return false;
  const long number = allocations.fetch_add(1, std::memory_order_relaxed) + 1;
  if (first_failure == 0 || number < first_failure) return false;
  if (number > first_failure && !all_after_fail) return false;
  errno = ENOMEM;
  return true;
}

void* aligned(std::size_t alignment, std::size_t bytes) {
  return fails() ? nullptr : __libc_memalign(alignment, bytes);
}

void write_count(const char* path) {
  std::FILE* const file = std::fopen(path, "w");
  if (file == nullptr) return;
  std::fprintf(file, "%ld\n", allocations.load());
  std::fclose(file);
}

int counted_main(int argc, char** argv, char** environment) {
  if (const char* const text = std::getenv("FAIL_ALLOCATION")) {
    char* end = nullptr;
    first_failure = std::strtol(text, &end, 10);
    all_after_fail = *end == '+';
  }
  in_main = true;
  const int status = real_main(argc, argv, environment);
  in_main = false;
  if (const char* const path = std::getenv("COUNT_ALLOCATIONS")) write_count(path);
  return status;
}

}  // namespace

extern "C" {

void* malloc(std::size_t bytes) { return fails() ? nullptr : __libc_malloc(bytes); }

void* calloc(std::size_t count, std::size_t bytes) {
  return fails() ? nullptr : __libc_calloc(count, bytes);
}

void* realloc(void* memory, std::size_t bytes) {
  return fails() ? nullptr : __libc_realloc(memory, bytes);
}

void* memalign(std::size_t alignment, std::size_t bytes) { return aligned(alignment, bytes); }

void* aligned_alloc(std::size_t alignment, std::size_t bytes) { return aligned(alignment, bytes); }

int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) {
  void* const found = aligned(alignment, bytes);
  if (found == nullptr) return ENOMEM;
  *memory = found;
  return 0;
}

// Every program calls main through this function, which is given ours instead.
int __libc_start_main(Main main, int argc, char** argv, void (*begin)(), void (*end)(),
                      void (*unload)(), void* stack) {
  using Start = int (*)(Main, int, char**, void (*)(), void (*)(), void (*)(), void*);
  real_main = main;
  const auto start = reinterpret_cast<Start>(::dlsym(RTLD_NEXT, "__libc_start_main"));
  return start(counted_main, argc, argv, begin, end, unload, stack);
}

}  // extern "C"

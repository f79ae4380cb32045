// SPDX-License-Identifier: Apache-2.0
#include "fovea/base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <mutex>

#include "fovea/base/check.h"

namespace fovea {

namespace {

// A mapping as the handler of SIGBUS sees it, which may take no lock and no memory. A free one has
// no end.
struct Guarded {
  std::atomic<std::uintptr_t> begin = 0, end = 0;
  std::atomic<bool> lost = false;
};
constexpr std::size_t kMostMappings = 4096;
Guarded guarded[kMostMappings];
struct sigaction former {};

// What no mapping is the cause of.
void leave_to_former(int signal, siginfo_t* info, void* context) {
  if ((former.sa_flags & SA_SIGINFO) != 0 && former.sa_sigaction != nullptr) {
    former.sa_sigaction(signal, info, context);
  } else if (former.sa_handler != SIG_DFL && former.sa_handler != SIG_IGN) {
    former.sa_handler(signal);
  } else {
    ::signal(signal, SIG_DFL);
    ::raise(signal);
  }
}

// Puts zeros in the place of what the file has lost: from the page of the fault to the end.
void handle_lost_pages(int signal, siginfo_t* info, void* context) {
  const auto fault = reinterpret_cast<std::uintptr_t>(info->si_addr);
  for (Guarded& one : guarded) {
    const std::uintptr_t end = one.end;
    if (end == 0 || fault < one.begin || fault >= end) continue;
    const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    const std::uintptr_t begin = fault / page * page;
    constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): an address is what the system tells
    void* const place = reinterpret_cast<void*>(begin);
    if (::mmap(place, end - begin, PROT_READ, kFlags, -1, 0) == MAP_FAILED) break;
    one.lost = true;
    return;
  }
  leave_to_former(signal, info, context);
}

void install_handler() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action {};
    action.sa_sigaction = handle_lost_pages;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    ::sigemptyset(&action.sa_mask);
    ::sigaction(SIGBUS, &action, &former);
  });
}

// A place for a mapping; null if there is none.
Guarded* guard(std::uintptr_t begin, std::uintptr_t end) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  for (Guarded& one : guarded) {
    if (one.end != 0) continue;
    one.lost = false;
    one.begin = begin;
    one.end = end;  // last: from now on the handler sees it
    return &one;
  }
  return nullptr;
}

}  // namespace

struct MappedFile::State {
  int descriptor;
  std::filesystem::path path;
  struct stat first;
  Guarded* guarded;
};

std::shared_ptr<const MappedFile> MappedFile::map(int descriptor, std::uint64_t size,
                                                  const std::filesystem::path& path) {
  if (size == 0) return nullptr;
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) return nullptr;
  if (static_cast<std::uint64_t>(status.st_size) < size) return nullptr;
  install_handler();
  const int own = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  if (own < 0) return nullptr;
  void* const memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, own, 0);
  if (memory == MAP_FAILED) {
    ::close(own);
    return nullptr;
  }
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  Guarded* const place = guard(begin, begin + size);
  if (place == nullptr) {
    ::munmap(memory, size);
    ::close(own);
    return nullptr;
  }
  const std::span bytes(static_cast<const std::uint8_t*>(memory), static_cast<std::size_t>(size));
  auto state = std::make_unique<State>(State{own, path, status, place});
  return std::shared_ptr<const MappedFile>(new MappedFile(bytes, std::move(state)));
}

MappedFile::MappedFile(std::span<const std::uint8_t> bytes, std::unique_ptr<State> state)
    : bytes_(bytes), state_(std::move(state)) {}

MappedFile::~MappedFile() {
  state_->guarded->end = 0;
  ::munmap(const_cast<std::uint8_t*>(bytes_.data()), bytes_.size());
  ::close(state_->descriptor);
}

void MappedFile::require_unchanged() const {
  struct stat now {};
  const struct stat& first = state_->first;
  const bool same = !state_->guarded->lost && ::fstat(state_->descriptor, &now) == 0 &&
                    now.st_size == first.st_size && now.st_mtim.tv_sec == first.st_mtim.tv_sec &&
                    now.st_mtim.tv_nsec == first.st_mtim.tv_nsec;
  if (same) return;
  throw Error(ErrorCode::kRead,
              fmt::format("{}: the file was written while it was in use", state_->path.string()),
              "begin again; to replace a model in use, rename another file to its name");
}

}  // namespace fovea

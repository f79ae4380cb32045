// SPDX-License-Identifier: Apache-2.0
#include "fovea/base/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <new>
#include <string_view>

#include "fovea/base/check.h"

namespace fovea {

namespace {

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};
using OpenFolder = std::unique_ptr<DIR, CloseFolder>;

// Opens a folder, by a path relative to an open one. Returns null and sets errno if that fails.
OpenFolder open_folder(int parent, const char* path, int flags) {
  const int file = ::openat(parent, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);
  if (file < 0) return nullptr;
  OpenFolder folder(::fdopendir(file));
  if (folder == nullptr) {
    const int reason = errno;
    ::close(file);
    errno = reason;
  }
  return folder;
}

void note(std::error_code& error) {
  if (errno == ENOMEM) throw std::bad_alloc();
  if (!error) error.assign(errno, std::generic_category());
}

// Calls f with each name.
template <class F>
void for_each_name(DIR* folder, std::error_code& error, F&& f) {
  for (;;) {
    errno = 0;
    const dirent* const entry = ::readdir(folder);
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") f(entry->d_name);
  }
  if (errno != 0) note(error);
}

void remove_below(int parent, const char* name, std::error_code& error) {
  if (::unlinkat(parent, name, 0) == 0 || errno == ENOENT) return;
  if (errno != EISDIR) return note(error);
  const OpenFolder folder = open_folder(parent, name, O_NOFOLLOW);
  if (folder == nullptr) return note(error);
  for_each_name(folder.get(), error,
                [&](const char* inside) { remove_below(::dirfd(folder.get()), inside, error); });
  if (::unlinkat(parent, name, AT_REMOVEDIR) != 0 && errno != ENOENT) note(error);
}

}  // namespace

std::vector<std::string> names_in(const std::filesystem::path& folder, std::error_code& error) {
  error.clear();
  std::vector<std::string> names;
  const OpenFolder open = open_folder(AT_FDCWD, folder.c_str(), 0);
  if (open == nullptr) {
    note(error);
  } else {
    for_each_name(open.get(), error, [&](const char* name) { names.emplace_back(name); });
  }
  return names;
}

std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::error_code error;
  std::vector<std::string> names = names_in(folder, error);
  if (!error) return names;
  throw Error(ErrorCode::kRead,
              fmt::format("{}: cannot list the folder: {}", folder.string(), error.message()),
              "check the path and its permissions");
}

void remove_tree(const std::filesystem::path& path, std::error_code& error) {
  error.clear();
  remove_below(AT_FDCWD, path.c_str(), error);
}

}  // namespace fovea

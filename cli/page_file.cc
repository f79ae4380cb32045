// SPDX-License-Identifier: Apache-2.0
#include "cli/page_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "fovea/base/check.h"
#include "fovea/report/html.h"
#include "fovea/text/utf8.h"

namespace fovea::cli {

namespace {

namespace fs = std::filesystem;

// Beside it a file with a longer name is written first.
constexpr std::size_t kLongestName = 200;

bool has_mark(const fs::path& path, std::string_view mark) {
  std::string begin(512, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  return begin.find(mark) != std::string::npos;
}

}  // namespace

void check_page_file(const PageFile& page) {
  const fs::path path(page.file);
  const auto refuse = [&](ErrorCode code, std::string_view what, std::string_view hint) {
    const std::string name = excerpt(page.file);
    throw Error(code, fmt::format("{}: {}{}", page.option, name.empty() ? "" : name + ": ", what),
                std::string(hint));
  };
  if (page.file.empty()) {
    refuse(ErrorCode::kOptionValue, "expected the name of a file, got nothing",
           fmt::format("name one that ends in {}", page.ending));
  }
  if (page.file == "-") {
    refuse(ErrorCode::kUsage,
           fmt::format("a {} is written to a file, not to standard output", page.kind),
           fmt::format("name one that ends in {} (./- is a file of this name)", page.ending));
  }
  if (path.filename().string().size() > kLongestName) {
    refuse(ErrorCode::kWrite, "the name is too long", "choose a shorter one");
  }
  std::error_code error;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (!fs::is_directory(folder, error)) {
    refuse(ErrorCode::kWrite, fmt::format("no such folder: {}", excerpt(folder.string())),
           "make the folder, or choose another file");
  }
  const fs::file_status found = fs::status(path, error);
  if (fs::is_directory(found)) {
    refuse(ErrorCode::kWrite, "is a folder", "name a file in it");
  }
  const fs::file_type type = fs::symlink_status(path, error).type();
  if (type == fs::file_type::not_found) return;
  if (type == fs::file_type::none)
    refuse(ErrorCode::kWrite, error.message(), "choose another file");
  if (!page.overwrite) {
    refuse(ErrorCode::kOutputExists, "exists already", "choose another file, or say --overwrite");
  }
  if (!fs::is_regular_file(found) || !has_mark(path, page.mark)) {
    refuse(ErrorCode::kOutputExists, fmt::format("is no {} that fovea has written", page.kind),
           "choose another file");
  }
}

}  // namespace fovea::cli

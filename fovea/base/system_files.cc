// SPDX-License-Identifier: Apache-2.0
#include "fovea/base/system_files.h"

#include <fstream>
#include <sstream>

namespace fovea {

std::int64_t leading_number(const std::string& text) {
  std::istringstream stream(text);
  std::int64_t number = 0;
  return stream >> number ? number : 0;
}

std::int64_t file_number(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::int64_t number = -1;
  return file >> number ? number : -1;
}

std::string line_value(const std::filesystem::path& path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(key, 0) != 0) continue;
    const std::size_t begin = line.find_first_not_of(": \t", key.size());
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

}  // namespace fovea

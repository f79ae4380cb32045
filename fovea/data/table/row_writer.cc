// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/table/row_writer.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "fovea/text/utf8.h"

namespace fovea {

namespace {

// The end of the last line of a row, and what stands before it.
struct Ended {
  std::string_view row, end;
};
Ended ended(std::string_view raw) {
  const std::size_t size = raw.ends_with("\r\n") ? 2 : raw.ends_with('\n') ? 1 : 0;
  return {raw.substr(0, raw.size() - size), raw.substr(raw.size() - size)};
}

}  // namespace

RowWriter::RowWriter(const TableSummary& table, std::vector<std::string> names)
    : format_(table.format), separator_(table.separator), names_(std::move(names)) {
  rename_while([&](const std::string& name) {
    return std::find(table.names.begin(), table.names.end(), name) != table.names.end();
  });
}

template <class IsTaken>
void RowWriter::rename_while(IsTaken&& is_taken) {
  while (std::any_of(names_.begin(), names_.end(), is_taken)) {
    for (std::string& name : names_) name.insert(0, "predicted_");
  }
}

// TSV has no quotes, and no field with a tab or the end of a line in it.
std::string RowWriter::field(std::string_view text) const {
  if (format_ == TableFormat::kTsv) return escape_text(text);
  if (text.find_first_of("\"\r\n" + separator_) == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + '"';
}

std::string RowWriter::header(std::string_view raw) const {
  return raw.empty() || writes_objects() ? std::string(raw) : row(raw, names_);
}

std::string RowWriter::row(std::string_view raw, const std::vector<std::string>& fields) const {
  const auto [before, end] = ended(raw);
  std::string written(before);
  for (const std::string& text : fields) written += separator_ + field(text);
  return written.append(end);
}

std::string RowWriter::row(std::string_view raw, std::vector<Json> values,
                           const std::string& place) {
  if (raw.starts_with(kByteOrderMark)) {
    raw.remove_prefix(kByteOrderMark.size());
    return std::string(kByteOrderMark) + row(raw, std::move(values), place);
  }
  const auto [line, end] = ended(raw);
  const std::size_t close = line.find_last_not_of(" \t");
  if (close == std::string_view::npos || line[close] != '}') return std::string(raw);
  Json object;
  try {
    object = parse_json(line, {place, ErrorCode::kInputFormat});
  } catch (const Error&) {
    return std::string(raw);
  }
  if (object.get_if<Json::Object>() == nullptr) return std::string(raw);
  if (std::exchange(is_first_, false)) {
    rename_while([&](const std::string& name) { return object.find(name) != nullptr; });
  }
  Json::Object members;
  for (std::size_t n = 0; n < names_.size(); ++n) {
    if (object.find(names_[n]) != nullptr) {
      throw Error(ErrorCode::kInputFormat,
                  fmt::format("{}: the object has the key {}, which is for the answer", place,
                              excerpt(names_[n])),
                  "rename the key, or give it to the first object, too: then the answer has "
                  "another one");
    }
    members.emplace_back(names_[n], std::move(values[n]));
  }
  const std::string added = Json(std::move(members)).line();
  const std::string_view between = object.object().empty() ? "" : ",";
  return fmt::format("{}{}{}{}{}", line.substr(0, close), between,
                     std::string_view(added).substr(1), line.substr(close + 1), end);
}

}  // namespace fovea

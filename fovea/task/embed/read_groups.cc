// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/embed/read_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "fovea/base/bytes.h"
#include "fovea/base/check.h"
#include "fovea/tensor/checksum.h"
#include "fovea/text/compressed.h"
#include "fovea/text/keyed_hash.h"

namespace fovea {

namespace {

void check_row(const LabelledText& row, bool scored, const std::string& file) {
  const auto refuse = [&](std::string_view what, std::string hint) {
    throw Error(ErrorCode::kInputFormat,
                fmt::format("{}:{}: {}", name_of_input(file), row.line, what), std::move(hint));
  };
  if (scored && !row.more.empty()) {
    refuse("expected a score, or further texts, got both",
           "name the columns: --text-column, --second-column, and --label-column or "
           "--negative-columns; or leave one of them out of the file");
  }
  if (row.labels.empty() == scored) {
    refuse(scored ? "expected a score, as the rows before have one, got none"
                  : "expected no score, as the rows before have none, got one",
           "keep texts with scores and texts without in files of their own, and train on one kind");
  }
}

// Numbers, from 0, of the sequences of tokens that differ.
class Numbers {
 public:
  std::int32_t of(std::span<const token> ids) {
    const std::string key(reinterpret_cast<const char*>(ids.data()), ids.size_bytes());
    return known_.emplace(key, static_cast<std::int32_t>(known_.size())).first->second;
  }

 private:
  KeyedMap<std::string, std::int32_t> known_;
};

}  // namespace

GroupRows read_groups(std::span<const std::string> files, const TableOptions& options,
                      std::vector<std::string>& notes) {
  GroupRows all;
  TableForm form;
  for (const std::string& file : files) {
    std::vector<LabelledText> rows = read_labelled({&file, 1}, options, &notes, nullptr, &form);
    if (all.rows.empty()) all.scored = !rows[0].labels.empty();
    for (const LabelledText& row : rows) check_row(row, all.scored, file);
    std::move(rows.begin(), rows.end(), std::back_inserter(all.rows));
  }
  return all;
}

TextGroups groups_of(const GroupRows& rows, const std::vector<bool>& chosen, bool which,
                     const GroupTokens& how) {
  TextGroups groups;
  Numbers numbers;
  const auto append = [&](std::string_view text) {
    const MarkedTokens read =
        marked_tokens(how.tokenizer, how.prompt + std::string(text), how.max_length);
    groups.truncated += read.truncated ? 1 : 0;
    groups.same.push_back(numbers.of(read.ids));
    groups.stream.insert(groups.stream.end(), read.ids.begin(), read.ids.end());
    groups.starts.push_back(std::ssize(groups.stream));
  };
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    if (chosen[i] != which) continue;
    const LabelledText& row = rows.rows[i];
    const TextPair pair = pair_of(row.text);
    append(pair.first);
    append(pair.second);
    for (const std::string& text : row.more) append(text);
    groups.groups.push_back(groups.texts());
    if (rows.scored) groups.scores.push_back(static_cast<float>(row.numbers[0]));
  }
  return groups;
}

std::string groups_line(std::string_view name, const TextGroups& groups, index max_length) {
  std::vector<index> lengths;
  for (index t = 0; t < groups.texts(); ++t) lengths.push_back(groups.text_length(t));
  std::ranges::sort(lengths);
  const std::size_t n = lengths.size();
  const index further = groups.texts() - 2 * groups.size();
  std::string line =
      fmt::format("{}: {} pair{}{}; tokens of a text: median {}, 90 % at most {}, longest {}", name,
                  groups.size(), groups.size() == 1 ? "" : "s",
                  groups.scored() ? " with scores"
                  : further > 0   ? fmt::format(" with {} further texts", further)
                                  : "",
                  lengths[(n - 1) / 2], lengths[(9 * (n - 1)) / 10], lengths.back());
  if (groups.truncated > 0) line += fmt::format("; cut to {}: {}", max_length, groups.truncated);
  return line;
}

std::string fingerprint(const TextGroups& groups) {
  return xxh3_128({bytes_of(groups.stream), bytes_of(groups.starts), bytes_of(groups.groups),
                   bytes_of(groups.scores)});
}

}  // namespace fovea

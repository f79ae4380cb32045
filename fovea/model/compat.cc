// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/compat.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "fovea/base/option.h"
#include "fovea/base/words.h"

namespace fovea {

Compat compat_of(const LanguageModelConfig& c) {
  Compat compat;
  if (c.compat.empty()) return compat;
  AttentionRnnDefects& rnn = compat.attention_rnn;
  const bool is_rnn = c.kind == LanguageModelKind::kAttentionRnn;
  const bool has_layer_norm =
      c.kind == LanguageModelKind::kTransformer && c.norm == NormKind::kLayer;
  const struct {
    std::string_view name;
    bool& on;
    bool possible;
  } rows[] = {
      {"sum-weights", rnn.sum_weights, is_rnn},
      {"history-only", rnn.history_only, is_rnn},
      {"state-is-attention", rnn.state_is_attention, is_rnn},
      {"ln-unbiased", compat.ln_unbiased, has_layer_norm},
  };
  if (std::none_of(std::begin(rows), std::end(rows), [](auto& row) { return row.possible; })) {
    throw Error(ErrorCode::kOptionValue,
                fmt::format("--compat: --model {} has no known defect", to_string(c.kind)),
                "--model attention-rnn and --model transformer have some");
  }
  for (const std::string_view word : parts_between(c.compat, ',')) {
    if (word == "all") {
      for (const auto& row : rows) row.on = row.possible;
      continue;
    }
    const auto& row = choose(rows, word, "compat");
    if (!row.possible) {
      std::vector<std::string_view> has;
      for (const auto& r : rows) {
        if (r.possible) has.push_back(r.name);
      }
      fail_option(
          "compat", printable(word),
          fmt::format("a defect of --model {} ({})", to_string(c.kind), fmt::join(has, ", ")));
    }
    row.on = true;
  }
  return compat;
}

}  // namespace fovea

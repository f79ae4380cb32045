// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/cut_anew.h"

namespace fovea {

std::vector<token> drawn_cut(const CutAnew& how, std::string_view text, index epoch, index number) {
  std::vector<token> ids;
  how.tokenizer->append_drawn(ids, text, "training text",
                              {.alpha = how.alpha,
                               .seed = how.seed,
                               .epoch = static_cast<std::uint64_t>(epoch),
                               .number = static_cast<std::uint64_t>(number)});
  return ids;
}

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/text_batch.h"

namespace fovea {

PackedRows lay_out_texts(Tape& tape, const TextRows& texts, index block) {
  const PackedRows rows = lay_out_rows(tape, texts.ids.size, texts.offsets, texts.samples);
  for (index s = 0; s < rows.count(); ++s) {
    const index length = rows.offsets[s + 1] - rows.offsets[s];
    check(length <= block, "model: sequence {} has {} tokens; the model sees at most {}", s, length,
          block);
  }
  return rows;
}

Variable zero_loss(Tape& tape) {
  const Variable loss = tape.result(1, 1, DType::kFloat32);
  loss.value<float>()[0][0] = 0;
  return loss;
}

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
// Language models in GGUF files: the metadata of those that are written, which llama.cpp opens.
// The functions that read them are declared in pretrained.h.
#pragma once

#include <vector>

#include "fovea/pretrained/architecture.h"
#include "fovea/tensor/gguf.h"
#include "fovea/tensor/gguf_writer.h"
#include "fovea/text/tokenizer.h"

namespace fovea {

/// The sizes of a model. Throws kModelWrongKind for what llama.cpp computes in another way, by its
/// option. `config` is resolved.
std::vector<GgufEntry> gguf_sizes(const Architecture& architecture,
                                  const LanguageModelConfig& config);

/// A tokenizer of bytes or of characters. `lines`: the model knows lines, so a text begins with the
/// mark of one, and what is generated ends with it. Throws kModelWrongKind for others.
std::vector<GgufEntry> gguf_tokenizer(const Tokenizer& tokenizer, bool lines);

/// Whether the metadata of a file say the divisors of rotary positions by a rule; else they are a
/// tensor, or none. `config` is that of the model.
bool has_rotary_rule(const GgufHeader& header, const Architecture& architecture,
                     const LanguageModelConfig& config);

}  // namespace fovea

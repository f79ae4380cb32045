// SPDX-License-Identifier: Apache-2.0
// --compat: the published models with their known defects, each by its name.
#pragma once

#include "fovea/model/language_model_config.h"
#include "fovea/nn/attention_rnn.h"

namespace fovea {

/// The defects that --compat asks for.
struct Compat {
  AttentionRnnDefects attention_rnn{};
  bool ln_unbiased = false;  ///< layer norm by std + eps, as The Annotated Transformer has it
};

/// Throws kOptionValue for a name that is not known, or that this model does not have.
Compat compat_of(const LanguageModelConfig& config);

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
// The commands: what each takes, and the function that runs it. main.cc lists them.
#pragma once

#include "cli/command_line.h"
#include "fovea/base/version.h"

namespace fovea::cli {

inline constexpr const char* kVersion = FOVEA_VERSION;
inline constexpr const char* kVersionDay = "2026-11-29";  ///< that manual pages show
#if defined(__clang__)
inline constexpr const char* kCompiler = "clang " __clang_version__;
#else
inline constexpr const char* kCompiler = "g++ " __VERSION__;
#endif

Command train_lm_command();
Command train_classify_command();
Command train_pairs_command();
Command train_tag_command();
Command train_translate_command();
Command train_embed_command();
Command generate_command();
Command classify_command();
Command pairs_command();
Command tag_command();
Command translate_command();
Command embed_command();
Command similar_command();
Command explain_command();
Command demo_command();
Command learn_command();
Command eval_command();
Command inspect_command();
Command doctor_command();
Command attention_command();
Command conformance_write_command();
Command conformance_check_command();
Command bench_attention_command();
Command bench_step_command();
Command reproduce_command();
Command import_command();
Command export_command();
Command report_command();
Command tokenizer_train_command();
Command tokenizer_encode_command();
Command tokenizer_decode_command();
Command completion_command();
Command man_command();

/// All commands, in the order of the overview.
std::vector<Command> commands();

}  // namespace fovea::cli

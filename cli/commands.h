// SPDX-License-Identifier: Apache-2.0
// The commands. Each has a file of its own and a row in the table of main.cc.
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

// Each returns the exit status of the process, or throws.
int train_lm(const Arguments& arguments);
int train_classify(const Arguments& arguments);
int train_pairs(const Arguments& arguments);
int train_tag(const Arguments& arguments);
int train_translate(const Arguments& arguments);
int generate(const Arguments& arguments);
int classify(const Arguments& arguments);
int pairs(const Arguments& arguments);
int tag(const Arguments& arguments);
int translate(const Arguments& arguments);
int embed(const Arguments& arguments);
int similar(const Arguments& arguments);
int explain(const Arguments& arguments);
int demo(const Arguments& arguments);
int eval(const Arguments& arguments);
int inspect(const Arguments& arguments);
int doctor(const Arguments& arguments);
int attention(const Arguments& arguments);
int conformance_write(const Arguments& arguments);
int conformance_check(const Arguments& arguments);
int bench_attention(const Arguments& arguments);
int bench_step(const Arguments& arguments);
int reproduce(const Arguments& arguments);
int export_model(const Arguments& arguments);
int report(const Arguments& arguments);
int tokenizer_train(const Arguments& arguments);
int tokenizer_encode(const Arguments& arguments);
int tokenizer_decode(const Arguments& arguments);
int completion(const Arguments& arguments);
int man(const Arguments& arguments);

CommandSpec train_lm_spec();
CommandSpec train_classify_spec();
CommandSpec train_pairs_spec();
CommandSpec train_tag_spec();
CommandSpec train_translate_spec();
CommandSpec generate_spec();
CommandSpec classify_spec();
CommandSpec pairs_spec();
CommandSpec tag_spec();
CommandSpec translate_spec();
CommandSpec embed_spec();
CommandSpec similar_spec();
CommandSpec explain_spec();
CommandSpec demo_spec();
CommandSpec eval_spec();
CommandSpec inspect_spec();
CommandSpec doctor_spec();
CommandSpec attention_spec();
CommandSpec conformance_write_spec();
CommandSpec conformance_check_spec();
CommandSpec bench_attention_spec();
CommandSpec bench_step_spec();
CommandSpec reproduce_spec();
CommandSpec export_spec();
CommandSpec report_spec();
CommandSpec tokenizer_train_spec();
CommandSpec tokenizer_encode_spec();
CommandSpec tokenizer_decode_spec();
CommandSpec completion_spec();
CommandSpec man_spec();

/// The specifications of all commands, in the order of the overview.
std::vector<CommandSpec> command_specs();

}  // namespace fovea::cli

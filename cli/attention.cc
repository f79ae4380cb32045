// SPDX-License-Identifier: Apache-2.0
// fovea attention: the operator on files.
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/language.h"
#include "cli/options.h"
#include "cli/output.h"
#include "fovea/base/clock.h"
#include "fovea/base/error.h"
#include "fovea/base/file.h"
#include "fovea/base/machine.h"
#include "fovea/base/option.h"
#include "fovea/base/words.h"
#include "fovea/config/json.h"
#include "fovea/operator/attention_call.h"
#include "fovea/operator/run_attention.h"
#include "fovea/parts/part_table.h"
#include "fovea/report/attention_page.h"
#include "fovea/simd/isa.h"
#include "fovea/tensor/tensor_file.h"

namespace fovea::cli {

namespace {

namespace fs = std::filesystem;

AttentionSettings settings_of(const Arguments& arguments) {
  AttentionSettings settings;
  for (Flag& flag : flags_of(fields_of(settings))) {
    if (arguments.has(flag.name)) flag.set(arguments.list(flag.name));
  }
  check_settings(settings);
  return settings;
}

// Checks an output, of --output or --page, before anything is computed.
void check_output(const std::string& file, std::string_view name, const fs::path& input,
                  bool overwrite) {
  std::error_code ignored;
  if (fs::equivalent(file, input, ignored)) {
    throw Error(ErrorCode::kUsage, fmt::format("attention: {} is IN", file),
                fmt::format("choose another --{}", name));
  }
  if (name == "page") return check_page_file({"--page", file, overwrite});
  check_page_file({"--output", file, overwrite, "file of tensors", ".safetensors", ""});
}

bool is_same_place(const fs::path& a, const fs::path& b) {
  const auto place = [](const fs::path& path) { return fs::absolute(path).lexically_normal(); };
  return !a.empty() && !b.empty() && place(a) == place(b);
}

// --log-file must be no output: the log is created before those are checked.
void check_log(const Arguments& arguments) {
  const std::string log = arguments.text("log-file"), page = arguments.text("page");
  const auto refuse = [](std::string_view option, const std::string& path, std::string_view what) {
    throw Error(ErrorCode::kUsage, fmt::format("attention: --{} {} is {}", option, path, what),
                "choose another file for one of them");
  };
  if (is_same_place(log, arguments.text("output"))) refuse("log-file", log, "OUT");
  if (is_same_place(log, page)) refuse("log-file", log, "the page");
  if (is_same_place(page, arguments.text("output"))) refuse("page", page, "OUT");
}

void check_outputs(const Arguments& arguments) {
  const std::string output = arguments.text("output"), page = arguments.text("page");
  if (!arguments.on("plan") && output.empty() && page.empty()) {
    throw Error(ErrorCode::kUsage, "attention: nowhere to write to",
                "name a file: --output OUT or --page FILE; or ask for --plan");
  }
  if (!output.empty()) check_tensor_path(output);
  for (const std::string name : {"output", "page"}) {
    const std::string path = arguments.text(name);
    if (!path.empty()) {
      check_output(path, name, arguments.text("IN"), arguments.on("overwrite"));
    }
  }
}

void check_results(const std::string& output, std::span<const NamedTensor> results) {
  try {
    check_tensors(output, results);
  } catch (const Error& error) {
    const bool is_large = error.code() == ErrorCode::kShape;
    throw error.with(is_large ? ErrorCode::kWrite : error.code(),
                     fmt::format("{}: {}", output, error.what()));
  }
}

void print_plan(const PlannedAttention& planned) {
  const AttentionPlan& plan = planned.plan;
  print(fmt::format("kernel          {}, {}\n", plan.kernel, plan.isa));
  print(fmt::format("score           {}\n", plan.score));
  print(fmt::format("mask            {}\n", plan.mask));
  print(fmt::format("bias            {}\n", plan.bias));
  print(fmt::format("norm            {}\n", plan.norm));
  print(fmt::format("dropout         {}\n", plan.dropout));
  print(fmt::format("values          {}\n", plan.values));
  print(fmt::format("observe         {}\n", plan.observe));
  print(plan.packed_sequences == 0
            ? std::string("packed          no\n")
            : fmt::format("packed          {} sequences\n", plan.packed_sequences));
  print(fmt::format("tiles           {} of {} computed, {} of these masked\n", plan.tiles_kept,
                    plan.tiles, plan.tiles_masked));
  for (const std::string& line : planned.picture) print(fmt::format("                {}\n", line));
  print(fmt::format("forward FLOPs   {:.4g}\n", plan.forward_flops));
  print(fmt::format("backward FLOPs  {:.4g}\n", plan.backward_flops));
  print(fmt::format("scratch memory  {:.0f} bytes\n", plan.scratch_bytes));
}

// Says so if a call in bfloat16 is computed in float32.
void note_converted_call(const AttentionSettings& settings, const AttentionTensors& tensors) {
  if (settings.precision != AttentionPrecision::kBFloat16 || settings.reference) return;
  if (!has_bfloat16_products()) return note_conversion(Precision::kBFloat16);
  if (call_multiplies_bfloat16(settings, tensors)) return;
  note(
      fmt::format("precision bf16: no kernel multiplies bfloat16 with score {} and norm {}: "
                  "converted to float32",
                  to_string(settings.score), to_string(settings.norm)));
}

Json::Object write(const Context& context, const AttentionSettings& settings,
                   const AttentionTensors& tensors, const std::string& output) {
  const double begin = monotonic_seconds();
  const std::vector<NamedTensor> results =
      run_attention(context, settings, tensors, [&](std::span<const NamedTensor> shapes) {
        check_results(output, shapes);
        require_memory(fmt::format("attention: writing {}", output),
                       memory_to_write(output, shapes),
                       "ask for less to be seen, or for fewer rows; .safetensors takes less");
      });
  const double seconds = monotonic_seconds() - begin;  // of computing alone
  write_tensors(output, results);
  std::vector<std::string> names;
  for (const NamedTensor& named : results) {
    names.push_back(named.name);
    detail(fmt::format("{}: {}", named.name, named.tensor.describe()));
  }
  std::sort(names.begin(), names.end());
  note(fmt::format("wrote {}", output));
  return {{"output", output},
          {"tensors", Json::Array(names.begin(), names.end())},
          {"seconds", seconds}};
}

Json::Object write_page(const Context& context, const AttentionSettings& settings,
                        const AttentionTensors& tensors, const std::string& path) {
  const AttentionPage page = page_attention(context, settings, tensors, language());
  write_file_atomically(path, draw_attention_page(page));
  note(fmt::format("wrote {}", path));
  return {{"page", path}};
}

std::string tensors_help() {
  std::string text =
      "Tensors of IN (B batch, T queries, S keys, H heads of q, G of k and v; Dv width of v):\n";
  for (const TensorSpec& spec : attention_tensor_specs()) {
    text += fmt::format("  {:<15} {}\n", spec.name, axes_text(spec.axes));
  }
  text += "\nWhat the tensors of parts do:\n";
  for (const AttentionPart& part : attention_parts()) {
    if (!part.tensor.empty()) text += fmt::format("  {:<15} {}\n", part.tensor, part.formula);
  }
  text += R"(
OUT holds o, lse and what is observed; with --backward the gradients: dq for q, dbias for bias ...
Above, j is the number of a key, and p the position of a query i in the keys: i + S - T, so that
the last query is at the last key; with --causal=top-left it is i.
)";
  return text;
}

int attention(const Arguments& arguments) {
  check_log(arguments);
  begin_command(arguments);
  const AttentionSettings settings = settings_of(arguments);
  const std::string input = arguments.text("IN"), output = arguments.text("output");
  const std::string page = arguments.text("page");
  check_outputs(arguments);
  if (arguments.has("isa")) pin_isa(isa_from_name(arguments.text("isa")));
  const Context context = context_of(arguments);
  const AttentionTensors tensors = read_attention_tensors(settings, TensorFile(input), input);
  note_converted_call(settings, tensors);
  Json::Object object;
  const auto add = [&](const Json::Object& part) {
    object.insert(object.end(), part.begin(), part.end());
  };
  if (arguments.on("plan")) {
    const PlannedAttention plan = planned_attention(context, settings, tensors);
    add(json_of(plan).object());
    if (!arguments.on("json")) print_plan(plan);
  }
  if (!output.empty()) add(write(context, settings, tensors, output));
  if (!page.empty()) add(write_page(context, settings, tensors, page));
  if (arguments.on("json")) print_json(std::move(object));
  return 0;
}

// The options of the operator. Only the file and these decide what is computed: no variable does.
std::vector<OptionSpec> operator_options() {
  std::vector<OptionSpec> options = said_or_not(AttentionSettings(), "Operator");
  for (OptionSpec& option : options) option.environment.clear();
  return options;
}

}  // namespace

Command attention_command() {
  const std::vector<OptionSpec> run = {
      {.name = "output",
       .placeholder = "OUT",
       .help = "file to write: .safetensors or .npz",
       .also = "o",
       .place = HelpPlace::kOutput},
      {.name = "page",
       .placeholder = "FILE",
       .help = "HTML file to write: the weights as a heat map",
       .group = "Run"},
      flag("overwrite", "replace OUT and the page", "Run"),
      flag("plan", "print tiles, FLOPs and memory; without an output, only that", "Run"),
      {.name = "isa",
       .placeholder = "NAME",
       .help = "instruction set to compute with: scalar, or one that fovea doctor names",
       .group = "Run"},
      threads_option(),
      json_option("print plan and result as one JSON object", "Run")};
  return {.name = "attention",
          .summary = "Runs the attention operator on the tensors of a file.",
          .positionals = {{"IN", "file of tensors: .safetensors or .npz"}},
          .options = joined({operator_options(), run, message_options()}),
          .epilog = tensors_help() + R"(
Examples:
  fovea attention in.safetensors -o out.safetensors --causal
  fovea attention in.npz -o out.npz --window 64,0 --backward --observe entropy
  fovea attention in.npz --causal --plan)",
          .run = attention};
}

}  // namespace fovea::cli

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
#include "cli/field_options.h"
#include "cli/messages.h"
#include "cli/output.h"
#include "cli/threads.h"
#include "fovea/base/clock.h"
#include "fovea/base/error.h"
#include "fovea/base/machine.h"
#include "fovea/base/option.h"
#include "fovea/base/printable.h"
#include "fovea/config/json.h"
#include "fovea/parts/part_table.h"
#include "fovea/simd/isa.h"
#include "fovea/task/attention_parts.h"
#include "fovea/task/run_attention.h"
#include "fovea/tensor/tensor_file.h"

namespace fovea::cli {

namespace {

namespace fs = std::filesystem;

struct Plan {
  AttentionPlan plan;
  std::vector<std::string> picture;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("kernel", plan.kernel, "what computes");
    visit("isa", plan.isa, "instruction set");
    visit("score", plan.score, "how a query and a key become a score");
    visit("mask", plan.mask, "what is kept");
    visit("bias", plan.bias, "what is done to scores");
    visit("norm", plan.norm, "how scores become weights");
    visit("dropout", plan.dropout, "probability of dropping a weight");
    visit("values", plan.values, "value parts");
    visit("observe", plan.observe, "observers");
    visit("packed_sequences", plan.packed_sequences, "0: the batch is not packed");
    visit("tiles", plan.tiles, "of the whole rectangles");
    visit("tiles_kept", plan.tiles_kept, "of these, computed");
    visit("tiles_masked", plan.tiles_masked, "of these, looked at score by score");
    visit("picture", picture, "of the first sequence and head");
    visit("kept_scores", plan.kept_scores, "in the tiles that are computed");
    visit("forward_flops", plan.forward_flops, "of products");
    visit("backward_flops", plan.backward_flops, "of products");
    visit("scratch_bytes", plan.scratch_bytes, "beyond the tensors");
  }
};

struct Written {
  std::string output;
  std::vector<std::string> tensors;
  double seconds = 0;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("output", output, "the file");
    visit("tensors", tensors, "what it holds");
    visit("seconds", seconds, "of computing alone");
  }
};

AttentionSettings settings_of(const Arguments& arguments) {
  AttentionSettings settings;
  const std::vector<Field> fields = fields_of(settings);
  for (Flag& flag : flags_of(fields)) {
    if (!arguments.has(flag.name)) continue;
    const std::vector<std::string> given = arguments.list(flag.name);
    if (flag.name == "causal" && given == std::vector<std::string>{""}) {
      settings.causal = CausalKind::kBottomRight;
    } else {
      flag.set(given);
    }
  }
  check_settings(settings);
  return settings;
}

// Checks the output before anything is computed.
void check_output(const fs::path& output, const fs::path& input, bool overwrite) {
  check_tensor_path(output);
  const fs::path folder = output.has_parent_path() ? output.parent_path() : fs::path(".");
  if (!fs::is_directory(folder)) {
    throw Error(ErrorCode::kWrite, fmt::format("{}: no such folder", folder.string()),
                "make the folder, or choose another --output");
  }
  if (!fs::exists(output)) return;
  if (fs::exists(input) && fs::equivalent(output, input)) {
    throw Error(ErrorCode::kUsage, fmt::format("attention: {} is IN", output.string()),
                "choose another --output");
  }
  if (overwrite) return;
  throw Error(ErrorCode::kOutputExists, fmt::format("{}: exists already", output.string()),
              "choose another file, or say --overwrite");
}

// --log-file must not be OUT: the log is created before OUT is checked.
void check_log(const Arguments& arguments) {
  const std::string log = arguments.text("log-file"), output = arguments.text("output");
  const auto place = [](const fs::path& path) { return fs::absolute(path).lexically_normal(); };
  if (log.empty() || output.empty() || place(log) != place(output)) return;
  throw Error(ErrorCode::kUsage, fmt::format("attention: --log-file {} is OUT", log),
              "choose another file for one of them");
}

void check_sizes(const std::string& output, std::span<const NamedTensor> results) {
  try {
    check_tensor_sizes(output, results);
  } catch (const Error& error) {
    throw error.with(ErrorCode::kWrite, fmt::format("{}: {}", output, error.what()));
  }
}

void print_plan(const Plan& planned) {
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

Written write(const Context& context, const AttentionSettings& settings,
              const AttentionTensors& tensors, const std::string& output) {
  const double begin = monotonic_seconds();
  const std::vector<NamedTensor> results =
      run_attention(context, settings, tensors, [&](std::span<const NamedTensor> shapes) {
        check_sizes(output, shapes);
        require_memory(fmt::format("attention: writing {}", output),
                       memory_to_write(output, shapes),
                       "ask for less to be seen, or for fewer rows; .safetensors takes less");
      });
  Written written{.output = output, .tensors = {}, .seconds = monotonic_seconds() - begin};
  write_tensors(output, results);
  for (const NamedTensor& named : results) {
    written.tensors.push_back(named.name);
    detail(fmt::format("{}: {}", named.name, named.tensor.describe()));
  }
  std::sort(written.tensors.begin(), written.tensors.end());
  note(fmt::format("wrote {}", output));
  return written;
}

// The placeholder of a value whose type alone does not say what it must be.
std::string placeholder_of(const OptionSpec& option) {
  if (option.name == "causal") return "[=" + option.placeholder + "]";
  if (option.name == "scale") return "X|auto";
  if (option.name == "window") return "L,R";
  if (option.name == "observe") return observed_names();
  return option.placeholder;
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

}  // namespace

CommandSpec attention_spec() {
  AttentionSettings defaults;
  const std::vector<Field> fields = fields_of(defaults);
  CommandSpec spec{.name = "attention",
                   .summary = "Runs the attention operator on the tensors of a file.",
                   .positionals = {{"IN", "file of tensors: .safetensors or .npz"}},
                   .options = said_or_not(options_of(flags_of(fields), "Operator")),
                   .epilog = tensors_help() + R"(
Examples:
  fovea attention in.safetensors -o out.safetensors --causal
  fovea attention in.npz -o out.npz --window 64,0 --backward --observe entropy
  fovea attention in.npz --causal --plan)"};
  for (OptionSpec& option : spec.options) {
    option.environment.clear();  // only the file and the options decide what is computed
    if (option.name == "causal") option.kind = OptionKind::kOptionalValue;
    option.placeholder = placeholder_of(option);
  }
  const auto add = [&](OptionSpec option) { spec.options.push_back(std::move(option)); };
  add({"output", OptionKind::kValue, "OUT", "file to write: .safetensors or .npz", "Run", "o"});
  add({"overwrite", OptionKind::kFlag, "", "replace OUT", "Run", ""});
  add({"plan", OptionKind::kFlag, "", "print tiles, FLOPs and memory; without --output, only that",
       "Run", ""});
  add({"isa", OptionKind::kValue, "NAME",
       "instruction set to compute with: scalar, or one that fovea doctor names", "Run", ""});
  add(threads_option());
  add({"json", OptionKind::kFlag, "", "print plan and result as one JSON object", "Run", ""});
  for (OptionSpec& option : message_options()) add(std::move(option));
  return spec;
}

int attention(const Arguments& arguments) {
  check_log(arguments);
  set_messages_from(arguments);
  warn_of_unread_variables(attention_spec().options);
  const AttentionSettings settings = settings_of(arguments);
  const std::string input = arguments.text("IN"), output = arguments.text("output");
  if (!arguments.on("plan") && output.empty()) {
    throw Error(ErrorCode::kUsage, "attention: nowhere to write to",
                "name a file: --output OUT; or ask for --plan");
  }
  if (!output.empty()) check_output(output, input, arguments.on("overwrite"));
  if (arguments.has("isa")) pin_isa(isa_from_name(arguments.text("isa")));
  const Context context = context_of(arguments);
  const AttentionTensors tensors = read_attention_tensors(settings, TensorFile(input), input);
  Json::Object object;
  const auto add = [&](const Json& part) {
    object.insert(object.end(), part.object().begin(), part.object().end());
  };
  if (arguments.on("plan")) {
    const Plan plan{plan_attention(context, settings, tensors),
                    picture_attention(settings, tensors)};
    add(json_of(plan));
    if (!arguments.on("json")) print_plan(plan);
  }
  if (!output.empty()) add(json_of(write(context, settings, tensors, output)));
  if (arguments.on("json")) print(Json(std::move(object)).line() + "\n");
  return 0;
}

}  // namespace fovea::cli

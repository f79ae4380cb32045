// SPDX-License-Identifier: Apache-2.0
// fovea conformance: golden vectors of every variant of attention, written and checked.
#include "fovea/operator/conformance.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "fovea/base/check.h"
#include "fovea/base/words.h"
#include "fovea/config/field.h"
#include "fovea/config/json.h"
#include "fovea/simd/isa.h"

namespace fovea::cli {

namespace {

// Both precisions, unless one is asked for.
std::vector<AttentionPrecision> precisions_of(const Arguments& arguments) {
  AttentionPrecision asked = AttentionPrecision::kAuto;
  if (arguments.has("precision")) {
    Field field{"precision", "", detail::target_of(asked)};
    set_from_text(field, arguments.text("precision"), "--precision");
  }
  if (asked == AttentionPrecision::kBFloat16) {
    fail(ErrorCode::kOptionValue, Hint{"the tolerances of a kit are those of f32 and f64"},
         "--precision must be auto, f32 or f64; it is bf16");
  }
  if (asked != AttentionPrecision::kAuto) return {asked};
  return {AttentionPrecision::kFloat32, AttentionPrecision::kFloat64};
}

// A name from a kit of another author, made safe for a terminal, without quotes.
std::string bare(std::string_view name) {
  const std::string quoted = printable(name);
  return quoted.substr(1, quoted.size() - 2);
}

std::string line_of(const KitResult& result) {
  std::string line = fmt::format("{}  {}  {:<28}  ", result.passed ? "pass" : "FAIL",
                                 to_string(result.precision), bare(result.name));
  if (!result.problem.empty()) return line + result.problem;
  line += fmt::format("{:.1e} of {:.1e}", result.error, result.tolerance);
  if (result.error == 0) return line;
  return line + fmt::format(" in {}{}", bare(result.tensor), result.place);
}

int conformance_write(const Arguments& arguments) {
  begin_command(arguments);
  const std::string folder = arguments.text("DIR");
  write_conformance_kit(Context(), folder);
  note(fmt::format("wrote {}", folder));
  return 0;
}

int conformance_check(const Arguments& arguments) {
  begin_command(arguments);
  const std::vector<AttentionPrecision> precisions = precisions_of(arguments);
  if (arguments.has("isa")) pin_isa(isa_from_name(arguments.text("isa")));
  const Context context = context_of(arguments);
  const std::string folder = arguments.text("DIR");
  const std::vector<KitCase> cases = read_conformance_kit(folder);
  index passed = 0, failed = 0;
  Json::Array results;
  for (const AttentionPrecision precision : precisions) {
    for (const KitCase& one : cases) {
      const KitResult result = check_kit_case(context, folder, one, precision);
      ++(result.passed ? passed : failed);
      results.push_back(json_of(result));
      if (!arguments.on("json")) print(line_of(result) + "\n");
    }
  }
  if (arguments.on("json")) {
    print_json({{"kit", folder},
                {"isa", isa_name(current_isa())},
                {"cases", cases.size()},
                {"passed", passed},
                {"failed", failed},
                {"results", std::move(results)}});
  } else {
    print(fmt::format("{} cases on {}: {} checks pass, {} fail\n", cases.size(),
                      isa_name(current_isa()), passed, failed));
  }
  return failed == 0 ? 0 : 1;
}

}  // namespace

Command conformance_write_command() {
  return {.name = "conformance write",
          .summary = "Writes inputs and expected results of every variant of attention.",
          .positionals = {{"DIR", "folder to make"}},
          .options = message_options(),
          .epilog = R"(
Examples:
  fovea conformance write kit)",
          .run = conformance_write};
}

Command conformance_check_command() {
  return {.name = "conformance check",
          .summary = "Checks attention on this machine against such a folder.",
          .positionals = {{"DIR", "folder with conformance.json"}},
          .options =
              joined({{{.name = "isa",
                        .placeholder = "NAME",
                        .help = "instruction set to compute with",
                        .group = "Run"},
                       {.name = "precision",
                        .placeholder = "auto|f32|f64",
                        .help = "precision of computation; auto: both, one after the other [auto]",
                        .group = "Run"},
                       threads_option(),
                       json_option("print the results as one JSON object", "Run")},
                      message_options()}),
          .epilog = R"(
Examples:
  fovea conformance check kit
  fovea conformance check kit --isa avx2 --precision f32 --json)",
          .run = conformance_check};
}

}  // namespace fovea::cli

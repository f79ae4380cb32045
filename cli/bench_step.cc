// SPDX-License-Identifier: Apache-2.0
// fovea bench step: where the time of a training step goes.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/field_options.h"
#include "cli/output.h"
#include "cli/threads.h"
#include "cli/train_options.h"
#include "fovea/base/machine.h"
#include "fovea/base/option.h"
#include "fovea/config/json.h"
#include "fovea/simd/isa.h"
#include "fovea/task/language_model/step_profile.h"

namespace fovea::cli {

namespace {

struct StepOptions {
  std::string preset;
  index steps = 10;
  index batch_size = LanguageModelSettings().text.batch_size;
  LanguageModelConfig model;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("preset", preset, "settings to start from, as in train lm",
          {.names = [] { return names_in(language_model_presets(), "|"); }});
    visit("steps", steps, "steps without a profile, and as many with one",
          {.range = ValueRange::in(1, 1000000)});
    visit("batch_size", batch_size, "sequences per batch");
    visit("model", model, "what the model is made of");
    visit("vocabulary", model.vocabulary, "number of tokens");
  }
};

StepOptions defaults() {
  StepOptions options;
  options.model.vocabulary = 256;
  return options;
}

// The settings of a profile.
struct StepRequest {
  LanguageModelSettings settings;
  int steps;
};

StepRequest request_of(const Arguments& arguments) {
  StepOptions options = defaults();
  const std::vector<Field> fields = settable(fields_of(options));
  std::vector<std::string> set = set_from_outside(flags_of(fields), arguments);
  LanguageModelSettings settings;
  if (!options.preset.empty()) {
    apply_preset(options.preset, settings);
    options.model = settings.model;
    options.model.vocabulary = defaults().model.vocabulary;
    options.batch_size = settings.text.batch_size;
    set = set_from_outside(flags_of(fields), arguments);
  }
  check_ranges(options);
  take_usual_sizes(options.model, set);
  settings.model = options.model;
  settings.text.batch_size = options.batch_size;
  return {std::move(settings), static_cast<int>(options.steps)};
}

Json json_of_part(const StepPart& part, const StepProfile& profile) {
  Json::Array shape;
  for (const index size : part.shape) shape.emplace_back(size);
  return Json::Object{{"what", part.what},
                      {"shape", shape},
                      {"calls", part.calls},
                      {"seconds", part.seconds},
                      {"part", part.seconds / profile.profiled_seconds},
                      {"gflops", part.gflops},
                      {"share", part.share},
                      {"gigabytes_per_second", part.gigabytes},
                      {"bandwidth_share", part.bandwidth_share}};
}

std::string json_line(const Context& context, const StepProfile& profile) {
  Json::Array parts;
  for (const StepPart& part : profile.parts) parts.push_back(json_of_part(part, profile));
  return Json(Json::Object{{"parameters", profile.parameters},
                           {"tokens", profile.tokens},
                           {"steps", profile.steps},
                           {"step_seconds", profile.step_seconds},
                           {"profiled_seconds", profile.profiled_seconds},
                           {"waiting_seconds", profile.waiting_seconds},
                           {"other_seconds", profile.other_seconds},
                           {"gflops", profile.gflops},
                           {"share", profile.share},
                           {"fma_gflops", profile.fma_gflops},
                           {"peak_gflops", profile.peak_gflops},
                           {"memory_gigabytes_per_second", profile.memory_gigabytes},
                           {"core_to_core_nanoseconds", profile.core_to_core_nanoseconds},
                           {"processor", processor_name()},
                           {"isa", isa_name(current_isa())},
                           {"threads", context.threads()},
                           {"precision", precision_name(context.precision())},
                           {"parts", parts}})
      .line();
}

void print_table(const Context& context, const StepProfile& profile) {
  print(fmt::format("{}, {}, {}, {}: {} parameters, {} tokens a step\n", processor_name(),
                    isa_name(current_isa()), thread_words(context.threads()),
                    precision_name(context.precision()), profile.parameters, profile.tokens));
  print(fmt::format(
      "step {:.3f} ms, {:.0f} GFLOP/s: {:.2f} of the peak; with a profile {:.3f} ms\n",
      profile.step_seconds * 1e3, profile.gflops, profile.share, profile.profiled_seconds * 1e3));
  print(fmt::format("peak {:.0f} GFLOP/s; memory {:.1f} GB/s; core to core {:.0f} ns\n\n",
                    profile.peak_gflops, profile.memory_gigabytes,
                    profile.core_to_core_nanoseconds));
  print(fmt::format("{:20} {:>18} {:>6} {:>9} {:>6} {:>8} {:>10}\n", "what", "shape", "calls", "ms",
                    "part", "of peak", "of memory"));
  const auto row = [&](const std::string& what, const std::string& shape, const std::string& calls,
                       double seconds, const std::string& rest) {
    print(fmt::format("{:20} {:>18} {:>6} {:9.3f} {:6.3f} {}\n", what, shape, calls, seconds * 1e3,
                      seconds / profile.profiled_seconds, rest));
  };
  for (const StepPart& part : profile.parts) {
    const auto share = [](double of) { return of > 0 ? fmt::format("{:.2f}", of) : ""; };
    row(part.what, fmt::format("{}", fmt::join(part.shape, "x")), fmt::format("{}", part.calls),
        part.seconds, fmt::format("{:>8} {:>10}", share(part.share), share(part.bandwidth_share)));
  }
  row("waiting", "", "", profile.waiting_seconds, "");
  row("other", "", "", profile.other_seconds, "");
}

// A share of the peak above 1 is one of a peak that was measured while others used the cores.
void warn_of_a_busy_machine(const StepProfile& profile) {
  constexpr double kMost = 1.2;
  const bool is_busy = std::any_of(profile.parts.begin(), profile.parts.end(),
                                   [](const StepPart& part) { return part.share > kMost; });
  if (!is_busy) return;
  warn(
      "a part is faster than the peak: other programs used the processor while the peak was "
      "measured, so the shares are too large; measure again on an idle machine");
}

}  // namespace

CommandSpec bench_step_spec() {
  StepOptions options = defaults();
  const std::vector<Field> fields = settable(fields_of(options));
  CommandSpec spec{.name = "bench step",
                   .summary = "Shows where the time of a training step goes.",
                   .positionals = {},
                   .options = options_of(flags_of(fields), "Step"),
                   .epilog = R"(Examples:
  fovea bench step
  fovea bench step --layers 6 --heads 6 --width 384 --block 256 --batch-size 16
  fovea bench step --preset gpt2 --block 256 --batch-size 4 --steps 3 --json)"};
  spec.options.push_back(precision_option());
  spec.options.push_back(threads_option());
  spec.options.push_back(
      {"json", OptionKind::kFlag, "", "print the result as one JSON object", "Run", ""});
  return spec;
}

int bench_step(const Arguments& arguments) {
  const StepRequest request = request_of(arguments);
  const Context context = model_context_of(arguments);
  const StepProfile profile = profile_step(context, request.settings, request.steps);
  warn_of_a_busy_machine(profile);
  if (arguments.on("json")) {
    print(json_line(context, profile) + "\n");
  } else {
    print_table(context, profile);
  }
  return 0;
}

}  // namespace fovea::cli

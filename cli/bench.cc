// SPDX-License-Identifier: Apache-2.0
// fovea bench attention: the operator's speed as a share of the machine's peak.
// fovea bench step: where the time of a training step goes.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/task_commands.h"
#include "fovea/attention/attention.h"
#include "fovea/base/clock.h"
#include "fovea/base/machine.h"
#include "fovea/base/memory.h"
#include "fovea/base/option.h"
#include "fovea/base/random.h"
#include "fovea/config/json.h"
#include "fovea/simd/isa.h"
#include "fovea/simd/peak.h"
#include "fovea/task/language_model/step_profile.h"
#include "fovea/train/options.h"

namespace fovea::cli {

namespace {

enum class BenchMask { kAll, kCausal };
inline constexpr EnumName<BenchMask> kBenchMaskNames[] = {{BenchMask::kAll, "all"},
                                                          {BenchMask::kCausal, "causal"}};
[[maybe_unused]] std::span<const EnumName<BenchMask>> enum_names(BenchMask) {
  return kBenchMaskNames;
}

struct Problem {
  index batch = 4;
  index heads = 12;
  index length = 1024;
  index head_dim = 64;
  BenchMask mask = BenchMask::kAll;
  Precision precision = Precision::kFloat32;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("batch", batch, "sequences", {.range = ValueRange::from(1)});
    visit("heads", heads, "attention heads", {.range = ValueRange::from(1)});
    visit("length", length, "tokens of a sequence", {.range = ValueRange::from(1)});
    visit("head_dim", head_dim, "width of a head", {.range = ValueRange::from(1)});
    visit("mask", mask, "keep all scores, or those of earlier keys");
    visit("precision", precision, "type of q, k, v, o and their gradients");
  }
};

struct Measured {
  double forward_seconds, backward_seconds;  // medians; the backward without the forward
  double forward_gflops, backward_gflops;    // kept pairs x 4 D, and x 10 D
  double fma_gflops;                         // of multiply-adds in registers, timed around the rest
  double peak_gflops;                        // the same of the precision
  double forward_share, backward_share;      // of that
};

constexpr int kRounds = 9;
constexpr index kMostScores = index{1} << 50;

void check_problem(const Problem& p) {
  const index rows = checked_product(checked_product(p.batch, p.heads, "--batch x --heads"),
                                     p.length, "rows of attention");
  check(checked_product(rows, p.length, "scores of attention") <= kMostScores,
        "bench attention: {} x {} scores are more than any machine computes", rows, p.length);
  // q, k, v, o, their gradients, and the log-sum-exp.
  const double value = p.precision == Precision::kBFloat16 ? 2 : 4;
  const double bytes =
      static_cast<double>(rows) * (value * 8 * static_cast<double>(p.head_dim) + 4);
  require_memory("bench attention: the tensors", bytes,
                 "choose a smaller --batch, --heads, --length or --head-dim");
}

// One tensor [B, L, H, D] of normal random numbers, or of zeros. It begins on a cache line, as
// tensors of other frameworks do.
template <class T>
class Values {
 public:
  Values(const Problem& p, std::uint64_t number) {
    const index count = p.batch * p.length * p.heads * p.head_dim;
    values_ = allocate_aligned(static_cast<std::size_t>(count) * sizeof(T));
    auto* const data = reinterpret_cast<T*>(values_.get());
    view_ = View<T>::contiguous(data, p.batch, p.length, p.heads, p.head_dim);
    Random random(1, RandomUse::kTest, number);
    std::generate_n(data, count, [&] {
      const auto x = number == 0 ? 0.0f : static_cast<float>(random.normal());
      if constexpr (std::is_same_v<T, BFloat16>) {
        return to_bfloat16(x);
      } else {
        return x;
      }
    });
  }
  View<T> view() const { return view_; }

 private:
  AlignedBytes values_;
  View<T> view_;
};

double seconds_per_call(const std::function<void()>& work, int calls) {
  const double begin = monotonic_seconds();
  for (int call = 0; call < calls; ++call) work();
  return (monotonic_seconds() - begin) / calls;
}

// Short calls are repeated, so that the start (threads that wake up, cold caches) is small compared
// with the timing.
int calls_for(const std::function<void()>& work) {
  constexpr double kTiming = 0.03;
  work();
  const double once = seconds_per_call(work, 1);
  return std::clamp(static_cast<int>(kTiming / std::max(once, 1e-9)), 1, 10000);
}

// The peaks of multiply-adds and of the precision.
struct Peaks {
  double fma, precision;
};
template <class T>
Peaks peaks_of(const Context& context) {
  const double fma = fma_gflops(context);
  const bool pairs = std::is_same_v<T, BFloat16> && has_bfloat16_products();
  return {fma, pairs ? bfloat16_gflops(context) : fma};
}

// Every round times the loops of multiply-adds, forward, backward, and those loops again, so that
// other load on the machine affects all of them alike. Each round gives its own shares; the result
// is their median.
template <class T>
Measured measure(const Context& context, const Problem& p) {
  const Values<T> q(p, 1), k(p, 2), v(p, 3), d_o(p, 4), o(p, 0), dq(p, 0), dk(p, 0), dv(p, 0);
  std::vector<float> lse_values(static_cast<std::size_t>(p.batch * p.heads * p.length));
  const auto lse = RowView<float>::contiguous(lse_values.data(), p.batch, p.heads, p.length);
  Attention<float> attention;
  if (p.mask == BenchMask::kCausal) attention.mask = mask::Causal();
  const AttentionInputs<T> in{q.view(), k.view(), v.view()};
  const AttentionOutputs<T> out{.o = o.view(), .lse = lse};
  const AttentionSaved<T> saved{o.view(), lse, d_o.view()};
  const AttentionGradients<T> gradients{dq.view(), dk.view(), dv.view()};
  const auto forward = [&] { attention_forward(context, attention, in, out); };
  const auto backward = [&] { attention_backward(context, attention, in, saved, gradients); };
  const double n = static_cast<double>(p.length);
  const double kept = p.mask == BenchMask::kCausal ? n * (n + 1) / 2 : n * n;
  const double flops = kept * static_cast<double>(p.batch * p.heads * p.head_dim);
  const int forward_calls = calls_for(forward), backward_calls = calls_for(backward);
  std::vector<double> forwards, backwards, fmas, peaks, forward_shares, backward_shares;
  for (int round = 0; round < kRounds; ++round) {
    const Peaks before = peaks_of<T>(context);
    forwards.push_back(seconds_per_call(forward, forward_calls));
    backwards.push_back(seconds_per_call(backward, backward_calls));
    const Peaks after = peaks_of<T>(context);
    fmas.push_back((before.fma + after.fma) / 2);
    peaks.push_back((before.precision + after.precision) / 2);
    forward_shares.push_back(4e-9 * flops / forwards.back() / peaks.back());
    backward_shares.push_back(10e-9 * flops / backwards.back() / peaks.back());
  }
  return {.forward_seconds = median(forwards),
          .backward_seconds = median(backwards),
          .forward_gflops = 4e-9 * flops / median(forwards),
          .backward_gflops = 10e-9 * flops / median(backwards),
          .fma_gflops = median(fmas),
          .peak_gflops = median(peaks),
          .forward_share = median(forward_shares),
          .backward_share = median(backward_shares)};
}

// The measurements, then where and of which problem.
void print_as_json(const Context& context, const Problem& problem, const Measured& m) {
  Json::Object object{{"forward_seconds", m.forward_seconds},
                      {"backward_seconds", m.backward_seconds},
                      {"forward_gflops", m.forward_gflops},
                      {"backward_gflops", m.backward_gflops},
                      {"fma_gflops", m.fma_gflops},
                      {"peak_gflops", m.peak_gflops},
                      {"forward_share", m.forward_share},
                      {"backward_share", m.backward_share},
                      {"peak_memory_bytes", peak_memory_bytes()},
                      {"processor", processor_name()},
                      {"isa", isa_name(current_isa())},
                      {"threads", context.threads()}};
  const Json sizes = json_of(problem);
  object.insert(object.end(), sizes.object().begin(), sizes.object().end());
  print_json(std::move(object));
}

struct StepOptions {
  std::string preset;
  index steps = 10;
  index batch_size = LanguageModelSettings().text.batch_size;
  bool recompute = false;
  LanguageModelConfig model;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("preset", preset, "settings to start from, as in train lm",
          {.names = [] { return names_in(language_model_presets(), "|"); }});
    visit("steps", steps, "steps without a profile, and as many with one",
          {.range = ValueRange::in(1, 1000000)});
    visit("batch_size", batch_size, "sequences per batch");
    visit("recompute", recompute, "layers keep their input alone, as in train lm");
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
  const std::vector<Flag> flags = flags_of(settable(fields_of(options)));
  std::vector<std::string> set = read_options(arguments, flags);
  LanguageModelSettings settings;
  if (!options.preset.empty()) {
    apply_preset(options.preset, settings);
    options.model = settings.model;
    options.model.vocabulary = defaults().model.vocabulary;
    options.batch_size = settings.text.batch_size;
    set = read_options(arguments, flags);
  }
  check_ranges(options);
  take_usual_sizes(options.model, set);
  settings.model = options.model;
  settings.text.batch_size = options.batch_size;
  settings.recipe.recompute = options.recompute;
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

void print_as_json(const Context& context, const StepProfile& profile) {
  Json::Array parts;
  for (const StepPart& part : profile.parts) parts.push_back(json_of_part(part, profile));
  print_json({{"parameters", profile.parameters},
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
              {"parts", std::move(parts)}});
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

int bench_attention(const Arguments& arguments) {
  Problem problem;
  read_options(arguments, problem);
  check_problem(problem);
  const Context context = context_of(arguments);
  note_conversion(problem.precision);
  const bool bfloat16 = problem.precision == Precision::kBFloat16;
  const Measured m =
      bfloat16 ? measure<BFloat16>(context, problem) : measure<float>(context, problem);
  if (arguments.on("json")) {
    print_as_json(context, problem, m);
    return 0;
  }
  print(fmt::format("{}, {}, {}: B={} H={} N={} D={}, mask {}, {}\n", processor_name(),
                    isa_name(current_isa()), thread_words(context.threads()), problem.batch,
                    problem.heads, problem.length, problem.head_dim, to_string(problem.mask),
                    precision_name(problem.precision)));
  print(fmt::format("forward   {:8.3f} ms  {:7.1f} GFLOP/s  {:.2f} of the peak, {:.0f}\n",
                    m.forward_seconds * 1e3, m.forward_gflops, m.forward_share, m.peak_gflops));
  print(fmt::format("backward  {:8.3f} ms  {:7.1f} GFLOP/s  {:.2f} of the peak, {:.0f}\n",
                    m.backward_seconds * 1e3, m.backward_gflops, m.backward_share, m.peak_gflops));
  return 0;
}

int bench_step(const Arguments& arguments) {
  const StepRequest request = request_of(arguments);
  const Context context = model_context_of(arguments);
  const StepProfile profile = profile_step(context, request.settings, request.steps);
  warn_of_a_busy_machine(profile);
  arguments.on("json") ? print_as_json(context, profile) : print_table(context, profile);
  return 0;
}

}  // namespace

Command bench_attention_command() {
  return {.name = "bench attention",
          .summary = "Times fused attention, forward and backward.",
          .options = joined(
              {options_of(Problem(), "Problem"),
               {threads_option(), json_option("print the result as one JSON object", "Run")}}),
          .epilog = R"(Example:
  fovea bench attention --batch 4 --heads 12 --length 1024 --head-dim 64 --mask causal)",
          .run = bench_attention};
}

Command bench_step_command() {
  StepOptions options = defaults();
  return {.name = "bench step",
          .summary = "Shows where the time of a training step goes.",
          .options = joined({options_of(flags_of(settable(fields_of(options))), "Step"),
                             computing_options(),
                             {json_option("print the result as one JSON object", "Run")}}),
          .epilog = R"(Examples:
  fovea bench step
  fovea bench step --layers 6 --heads 6 --width 384 --block 256 --batch-size 16
  fovea bench step --preset gpt2 --block 256 --batch-size 4 --steps 3 --json)",
          .run = bench_step};
}

}  // namespace fovea::cli

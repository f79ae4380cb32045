// SPDX-License-Identifier: Apache-2.0
// fovea doctor: what fovea detects of the machine.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "fovea/base/context.h"
#include "fovea/base/machine.h"
#include "fovea/base/words.h"
#include "fovea/simd/isa.h"
#include "fovea/simd/peak.h"

namespace fovea::cli {

namespace {

std::vector<std::string> cache_lines() {
  std::vector<std::string> lines;
  for (const Cache& cache : caches()) {
    lines.push_back(fmt::format("L{} {} {}, shared by {}", cache.level, cache.kind,
                                size_text(cache.bytes), cache.shared_by));
  }
  return lines;
}

std::vector<std::string> usable_isas() {
  std::vector<std::string> names;
  for (const Isa isa : available_isas()) names.emplace_back(isa_name(isa));
  return names;
}

int doctor(const Arguments& arguments) {
  const std::vector<std::string> caches = cache_lines(), isas = usable_isas();
  const std::string isa(isa_name(current_isa()));
  const double gflops = best_peak_gflops(Context());
  const MemoryLimit available = available_memory();
  if (arguments.on("json")) {
    print_json({{"version", kVersion},
                {"compiler", kCompiler},
                {"processor", processor_name()},
                {"cores", available_cores()},
                {"caches", Json::Array(caches.begin(), caches.end())},
                {"instruction_sets", Json::Array(isas.begin(), isas.end())},
                {"instruction_set", isa},
                {"multiplies_bfloat16", has_bfloat16_products()},
                {"fma_gflops", gflops},
                {"memory_bytes", total_memory_bytes()},
                {"available_memory_bytes", available.bytes},
                {"available_memory_reason", available.reason},
                {"cgroup_limit_bytes", cgroup_memory_limit_bytes()}});
    return 0;
  }
  print(fmt::format("fovea {} ({})\n", kVersion, kCompiler));
  print(fmt::format("processor         {}, {} cores\n", processor_name(), available_cores()));
  print(fmt::format("caches            {}\n", fmt::join(caches, "; ")));
  print(fmt::format("instruction sets  {}; using {}\n", fmt::join(isas, " "), isa));
  print(fmt::format("bfloat16          {}\n", has_bfloat16_products()
                                                  ? "faster than float32 (--precision bf16)"
                                                  : "converted to float32, which is no faster"));
  print(fmt::format("multiply-adds     {:.0f} GFLOP/s on {}\n", gflops,
                    thread_words(available_cores())));
  print(fmt::format("memory            {}, {} available ({})\n", size_text(total_memory_bytes()),
                    size_text(available.bytes), available.reason));
  return 0;
}

}  // namespace

Command doctor_command() {
  return {.name = "doctor",
          .summary = "Shows the machine: processor, instruction sets, memory.",
          .options = {json_option()},
          .run = doctor};
}

}  // namespace fovea::cli

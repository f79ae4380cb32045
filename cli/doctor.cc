// SPDX-License-Identifier: Apache-2.0
// fovea doctor: what fovea detects of the machine.
#include <fmt/core.h>

#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/output.h"
#include "fovea/base/context.h"
#include "fovea/base/machine.h"
#include "fovea/base/words.h"
#include "fovea/config/json.h"
#include "fovea/simd/isa.h"
#include "fovea/simd/peak.h"

namespace fovea::cli {

namespace {

struct Doctor {
  std::string version = kVersion;
  std::string compiler = kCompiler;
  std::string processor = processor_name();
  int cores = available_cores();
  std::vector<std::string> caches;
  std::vector<std::string> instruction_sets;
  std::string instruction_set;
  bool multiplies_bfloat16 = false;
  double fma_gflops = 0;
  std::int64_t memory_bytes = total_memory_bytes();
  std::int64_t available_memory_bytes = 0;
  std::string available_memory_reason;
  std::int64_t cgroup_limit_bytes = cgroup_memory_limit_bytes();

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("version", version, "fovea");
    visit("compiler", compiler, "compiler");
    visit("processor", processor, "processor");
    visit("cores", cores, "cores that this process may use");
    visit("caches", caches, "caches of a core");
    visit("instruction_sets", instruction_sets, "instruction sets that can be used");
    visit("instruction_set", instruction_set, "instruction set chosen (FOVEA_ISA pins another)");
    visit("multiplies_bfloat16", multiplies_bfloat16,
          "whether products of bfloat16 are faster than those of float32");
    visit("fma_gflops", fma_gflops, "GFLOP/s of multiply-adds in registers, all cores");
    visit("memory_bytes", memory_bytes, "memory of the machine");
    visit("available_memory_bytes", available_memory_bytes, "memory that can be taken now");
    visit("available_memory_reason", available_memory_reason, "what limits it");
    visit("cgroup_limit_bytes", cgroup_limit_bytes, "memory limit of the container; 0: none");
  }
};

Doctor examine() {
  Doctor doctor;
  for (const Cache& cache : caches()) {
    doctor.caches.push_back(fmt::format("L{} {} {}, shared by {}", cache.level, cache.kind,
                                        size_text(cache.bytes), cache.shared_by));
  }
  for (const Isa isa : available_isas()) doctor.instruction_sets.emplace_back(isa_name(isa));
  doctor.instruction_set = isa_name(current_isa());
  doctor.multiplies_bfloat16 = has_bfloat16_products();
  doctor.fma_gflops = best_peak_gflops(Context());
  const MemoryLimit memory = available_memory();
  doctor.available_memory_bytes = memory.bytes;
  doctor.available_memory_reason = memory.reason;
  return doctor;
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string all;
  for (const std::string& part : parts) {
    if (!all.empty()) all += separator;
    all += part;
  }
  return all;
}

}  // namespace

CommandSpec doctor_spec() {
  return {.name = "doctor",
          .summary = "Shows the machine: processor, instruction sets, memory.",
          .positionals = {},
          .options = {{"json", OptionKind::kFlag, "", "print the result as one JSON object",
                       "Options", ""}},
          .epilog = ""};
}

int doctor(const Arguments& arguments) {
  const Doctor d = examine();
  if (arguments.on("json")) {
    print(to_json_line(d) + "\n");
    return 0;
  }
  print(fmt::format("fovea {} ({})\n", d.version, d.compiler));
  print(fmt::format("processor         {}, {} cores\n", d.processor, d.cores));
  print(fmt::format("caches            {}\n", join(d.caches, "; ")));
  print(fmt::format("instruction sets  {}; using {}\n", join(d.instruction_sets, " "),
                    d.instruction_set));
  print(fmt::format("bfloat16          {}\n", d.multiplies_bfloat16
                                                  ? "faster than float32 (--precision bf16)"
                                                  : "converted to float32, which is no faster"));
  print(
      fmt::format("multiply-adds     {:.0f} GFLOP/s on {}\n", d.fma_gflops, thread_words(d.cores)));
  print(fmt::format("memory            {}, {} available ({})\n", size_text(d.memory_bytes),
                    size_text(d.available_memory_bytes), d.available_memory_reason));
  return 0;
}

}  // namespace fovea::cli

// SPDX-License-Identifier: Apache-2.0
// The processes of a run: starts.jsonl, one JSON object per line.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/train/run_state.h"

namespace fovea {

inline constexpr std::string_view kStartsName = "starts.jsonl";

/// Written before the first update of a process. A run that was interrupted and goes on has one for
/// each process; they change nothing of its results.
struct ProcessStart {
  index step = 0;
  std::string time = {};
  std::string processor = {};
  int threads = 0;
  std::string isa = {}, version = {};
  std::string model = {}, data = {}, tokenizer = {};

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("step", step, "updates before it");
    visit("time", time, "when it began: UTC");
    visit("processor", processor, "its name");
    visit("threads", threads, "that it works on");
    visit("isa", isa, "instruction set");
    visit("version", version, "version of fovea");
    visit("model", model, "fingerprint of the model's configuration");
    visit("data", data, "fingerprint of the text");
    visit("tokenizer", tokenizer, "fingerprint of the tokenizer");
  }
};

/// "2026-01-31T23:59:59Z", now.
std::string utc_time();

/// The start of this process, on this machine, now.
ProcessStart start_of_process(index step, int threads, const RunIdentity& identity);

/// Adds a line to the file of the run. Throws kWrite, kDiskFull.
void append_start(const std::filesystem::path& folder, ProcessStart start);

/// The starts of the run in the folder, without those of updates that were given up: a process that
/// goes back to an earlier update does not follow later ones. Lines that cannot be read are left
/// out; without a file there are none.
std::vector<ProcessStart> read_starts(const std::filesystem::path& folder);

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
// fovea import: makes a folder of fovea from a model of another program.
#include <fmt/core.h>

#include <filesystem>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "fovea/base/error.h"
#include "fovea/pretrained/pretrained.h"
#include "fovea/task/encoder_export.h"
#include "fovea/task/language_model/base.h"
#include "fovea/train/options.h"

namespace fovea::cli {

namespace {

namespace fs = std::filesystem;

struct ImportOptions {
  std::string output = {};
  Precision dtype = Precision::kFloat32;
  std::vector<std::string> adapter = {};
  bool json = false;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("output", output, "folder to write", {.shown = "DIR", .also = "o"});
    visit("dtype", dtype, "type of the weights that are written");
    visit("adapter", adapter, kAdapterHelp, {.shown = "DIR[=X]..."});
    visit("json", json, "print the result as one JSON object");
  }
};

int import_from(const Arguments& arguments) {
  ImportOptions options;
  read_options(arguments, options);
  begin_command(arguments, {}, options.output);
  if (options.output.empty()) {
    throw Error(ErrorCode::kUsage, "import: --output is missing",
                "name a folder: fovea import MODEL -o DIR");
  }
  const fs::path folder = options.output;
  if (fs::exists(folder) && (!fs::is_directory(folder) || !fs::is_empty(folder))) {
    throw Error(ErrorCode::kOutputExists, fmt::format("{}: is there already", folder.string()),
                "choose another folder");
  }
  const std::string model = arguments.text("MODEL");
  const bool is_ours = fs::exists(fs::path(model) / kManifestName);
  const bool on_encoder = is_ours && is_on_encoder(kind_of_model(model));
  if (on_encoder) refuse_options(arguments, {"adapter"}, " with a model on an encoder");
  const std::string architecture =
      on_encoder ? import_encoder(model, folder, options.dtype)
                 : import_model(model, options.adapter, folder, options.dtype);
  if (options.json) {
    print_json({{"architecture", architecture}, {"output", options.output}});
  } else {
    note(fmt::format("{}: {}", options.output, architecture));
  }
  return 0;
}

}  // namespace

Command import_command() {
  return {
      .name = "import",
      .summary =
          "Makes a folder of fovea from a model of another program, or from a model and adapters.",
      .positionals = {{"MODEL", "a folder of Hugging Face, a GGUF file, or a folder of adapters"}},
      .options = joined({said_or_not(ImportOptions(), "Options"), message_options()}),
      .epilog = R"(Examples:
  fovea import smollm2.gguf -o smollm2
  fovea import folder -o mine --dtype bf16
  fovea import adapted -o whole                   adapters, merged into their base
  fovea import folder -o whole --adapter peft     adapters of PEFT, merged into theirs)",
      .run = import_from};
}

}  // namespace fovea::cli

// SPDX-License-Identifier: Apache-2.0
// fovea export: writes a model in the form of other programs, or in a few megabytes.
#include "fovea/task/language_model/export.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/field_options.h"
#include "cli/output.h"
#include "fovea/base/option.h"
#include "fovea/base/words.h"
#include "fovea/task/classify/export.h"

namespace fovea::cli {

namespace {

namespace fs = std::filesystem;

enum class ExportForm { kHuggingFace, kCompact };
constexpr EnumName<ExportForm> kExportFormNames[] = {{ExportForm::kHuggingFace, "hf"},
                                                     {ExportForm::kCompact, "compact"}};
std::span<const EnumName<ExportForm>> enum_names(ExportForm) { return kExportFormNames; }

enum class ExportType { kFloat32, kBFloat16 };
constexpr EnumName<ExportType> kExportTypeNames[] = {{ExportType::kFloat32, "f32"},
                                                     {ExportType::kBFloat16, "bf16"}};
std::span<const EnumName<ExportType>> enum_names(ExportType) { return kExportTypeNames; }

struct ExportOptions {
  ExportForm to = ExportForm::kHuggingFace;
  ExportType dtype = ExportType::kFloat32;
  double size = 2;
  std::string output;
  bool overwrite = false;
  bool json = false;

  std::span<const std::string_view> files() const {
    if (to == ExportForm::kCompact) return kCompactFiles;
    return kExportedFiles;
  }

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("to", to,
          "form of the model; hf: a folder that Hugging Face transformers opens; compact: a linear "
          "classifier in a few megabytes, which fovea reads like any other");
    visit("output", output, "folder to write", {.shown = "DIR", .also = "o"});
    visit("dtype", dtype, "--to hf: type of the weights");
    visit("size", size, "--to compact: most megabytes of model.safetensors",
          {.range = ValueRange::over(0, 1000)});
    visit("overwrite", overwrite, "replace an earlier export in the folder");
    visit("json", json, "print the result as one JSON object");
  }
};

struct ExportResult {
  std::string architecture;
  std::string output;
  std::vector<std::string> files;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("architecture", architecture, "class of transformers");
    visit("output", output, "the folder");
    visit("files", files, "names of the files in it");
  }
};

struct CompactResult {
  CompactExport made;
  std::string output;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("ngrams", made.ngrams, "n-grams that are kept");
    visit("ngrams_before", made.ngrams_before, "n-grams of the model");
    visit("bytes", made.bytes, "size of model.safetensors");
    visit("output", output, "the folder");
  }
};

// Nothing but an earlier export may be replaced.
void check_folder(const fs::path& folder, const ExportOptions& options) {
  if (!fs::exists(folder)) return;
  if (!fs::is_directory(folder)) {
    throw Error(ErrorCode::kOutputExists, fmt::format("{}: is no folder", folder.string()),
                "choose another name for the output folder");
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!options.overwrite) {
      throw Error(ErrorCode::kOutputExists,
                  fmt::format("{}: the folder is not empty", folder.string()),
                  "choose another folder, or replace an earlier export with --overwrite");
    }
    if (std::ranges::find(options.files(), name) != options.files().end()) continue;
    throw Error(
        ErrorCode::kOutputExists,
        fmt::format("{}: {} is there, which no export writes", folder.string(), printable(name)),
        "choose another folder, or move that away");
  }
}

DType dtype_of(ExportType type) {
  return type == ExportType::kBFloat16 ? DType::kBFloat16 : DType::kFloat32;
}

void write_hugging_face(const std::string& model, const ExportOptions& options) {
  const LoadedLanguageModel loaded = load_language_model(model);
  ExportResult result{export_hugging_face(loaded, options.output, dtype_of(options.dtype)),
                      options.output,
                      {options.files().begin(), options.files().end()}};
  if (options.json) {
    print(to_json_line(result) + "\n");
  } else {
    note(fmt::format("{}: {}", options.output, result.architecture));
  }
}

void write_compact(const std::string& model, const ExportOptions& options) {
  constexpr double kMega = 1e6;
  CompactResult result{
      export_compact(model, options.output, static_cast<index>(options.size * kMega)),
      options.output};
  if (options.json) {
    print(to_json_line(result) + "\n");
  } else {
    note(fmt::format("{}: {} of {} n-grams, {:.2f} MB", options.output, result.made.ngrams,
                     result.made.ngrams_before, static_cast<double>(result.made.bytes) / kMega));
  }
}

void require_effect(const Arguments& arguments, ExportForm to) {
  const std::string_view other = to == ExportForm::kCompact ? "dtype" : "size";
  if (!arguments.has(other)) return;
  throw Error(ErrorCode::kUsage,
              fmt::format("export: --{} has no effect with --to {}", other, to_string(to)),
              "leave it out");
}

}  // namespace

CommandSpec export_spec() {
  ExportOptions options;
  CommandSpec spec{
      .name = "export",
      .summary = "Writes a model in the form of other programs, or in a few megabytes.",
      .positionals = {{"DIR", "folder of the model"}},
      .options = said_or_not(options_of(flags_of(fields_of(options)), "Options")),
      .epilog = R"(Examples:
  fovea export model -o exported
  fovea export model --to hf -o exported --dtype bf16
  fovea export linear --to compact -o compact

In Python: transformers.AutoModelForCausalLM.from_pretrained("exported"))"};
  for (OptionSpec& option : message_options()) spec.options.push_back(std::move(option));
  return spec;
}

int export_model(const Arguments& arguments) {
  set_messages_from(arguments);
  ExportOptions options;
  set_from_outside(flags_of(fields_of(options)), arguments);
  if (options.output.empty()) {
    throw Error(ErrorCode::kUsage, "export: --output is missing",
                "name a folder: fovea export DIR -o exported");
  }
  check_log_is_apart({}, options.output);
  warn_of_unread_variables(export_spec().options);
  require_effect(arguments, options.to);
  check_ranges(options);
  check_folder(options.output, options);
  options.to == ExportForm::kCompact ? write_compact(arguments.text("DIR"), options)
                                     : write_hugging_face(arguments.text("DIR"), options);
  return 0;
}

}  // namespace fovea::cli

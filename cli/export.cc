// SPDX-License-Identifier: Apache-2.0
// fovea export: writes a model in the form of other programs, or in a few megabytes.
#include "fovea/task/language_model/export.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/run_folder.h"
#include "fovea/base/bytes.h"
#include "fovea/base/option.h"
#include "fovea/base/words.h"
#include "fovea/task/adapters.h"
#include "fovea/task/classify/linear.h"
#include "fovea/task/encoder_export.h"
#include "fovea/task/exported_files.h"
#include "fovea/task/language_model/peft.h"
#include "fovea/task/task_table.h"
#include "fovea/task/translate/export.h"
#include "fovea/tensor/gguf.h"
#include "fovea/tensor/gguf_writer.h"
#include "fovea/tensor/safetensors.h"

namespace fovea::cli {

namespace {

namespace fs = std::filesystem;

enum class ExportForm { kHuggingFace, kGguf, kPeft, kGgufAdapter, kCompact };
constexpr EnumName<ExportForm> kExportFormNames[] = {{ExportForm::kHuggingFace, "hf"},
                                                     {ExportForm::kGguf, "gguf"},
                                                     {ExportForm::kPeft, "peft"},
                                                     {ExportForm::kGgufAdapter, "gguf-adapter"},
                                                     {ExportForm::kCompact, "compact"}};
std::span<const EnumName<ExportForm>> enum_names(ExportForm) { return kExportFormNames; }

struct ExportOptions {
  ExportForm to = ExportForm::kHuggingFace;
  std::string dtype = "f32";
  double size = 2;
  std::string output;
  bool overwrite = false;
  bool json = false;

  bool is_file() const { return to == ExportForm::kGguf || to == ExportForm::kGgufAdapter; }
  bool has_dtype() const { return to == ExportForm::kGguf || to == ExportForm::kHuggingFace; }
  std::span<const std::string_view> files() const {
    if (is_file()) return {};
    if (to == ExportForm::kCompact) return kCompactFiles;
    if (to == ExportForm::kPeft) return kPeftFiles;
    return kExportedFiles;
  }

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("to", to,
          "form of the model; hf: a folder that Hugging Face transformers opens; gguf: a file that "
          "llama.cpp opens; peft, gguf-adapter: the adapters of --lora, as PEFT and llama.cpp open "
          "them; compact: a linear "
          "classifier in a few megabytes, which fovea reads like any other");
    visit("output", output, "folder to write, or the file of --to gguf and gguf-adapter",
          {.shown = "PATH", .also = "o"});
    visit("dtype", dtype, "--to hf (f32 or bf16) and gguf: type of the weights",
          {.names = [] { return names_in(gguf_weight_types(), "|"); }});
    visit("size", size, "--to compact: most megabytes of model.safetensors",
          {.range = ValueRange::over(0, 1000)});
    visit("overwrite", overwrite, "replace an earlier export");
    visit("json", json, "print the result as one JSON object");
  }
};

// Whether the weights are of a file that fovea has written: it has their checksum.
bool has_our_weights(const fs::path& path) {
  try {
    const FileSource file(path);
    return parse_safetensors_header(file, path.string())
        .metadata.contains(std::string(kChecksumKey));
  } catch (const Error&) {
    return false;
  }
}

// Whether an export has written it, as one of these files, or began to.
bool is_of_export(const fs::directory_entry& entry, std::span<const std::string_view> files) {
  if (!fs::is_regular_file(entry.symlink_status())) return false;
  const std::string name = entry.path().filename().string();
  const std::string_view meant = interrupted_write_of(name);
  return std::ranges::find(files, meant.empty() ? std::string_view(name) : meant) != files.end();
}

constexpr std::string_view kPoolingFolder = "1_Pooling", kPoolingFiles[] = {"config.json"};

// Whether it is the folder of an earlier export that says how vectors are made, and has no more.
bool is_pooling(const fs::path& path) {
  if (path.filename() != kPoolingFolder || !fs::is_directory(fs::symlink_status(path))) {
    return false;
  }
  return std::ranges::all_of(fs::directory_iterator(path), [](const fs::directory_entry& entry) {
    return is_of_export(entry, kPoolingFiles);
  });
}

// What an export left that was killed while it wrote.
void remove_remains(const fs::path& folder) {
  for (const fs::path& part : {folder, folder / kPoolingFolder}) {
    if (!fs::is_directory(part)) continue;
    for (const fs::directory_entry& entry : fs::directory_iterator(part)) {
      if (!interrupted_write_of(entry.path().filename().string()).empty()) {
        remove_file(entry.path());
      }
    }
  }
}

// Nothing but an earlier export may be replaced, and never the model itself.
void check_folder(const fs::path& folder, const fs::path& model, const ExportOptions& options) {
  if (!fs::exists(folder)) return;
  std::error_code ignored;
  if (fs::equivalent(folder, model, ignored)) {
    throw Error(ErrorCode::kUsage, fmt::format("export: {} is the model itself", folder.string()),
                "choose another folder");
  }
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
    if (is_pooling(entry.path()) && options.files().size() == kExportedFiles.size()) continue;
    if (is_of_export(entry, options.files())) continue;
    throw Error(
        ErrorCode::kOutputExists,
        fmt::format("{}: {} is there, which no export writes", folder.string(), printable(name)),
        "choose another folder, or move that away");
  }
  const bool peft = options.to == ExportForm::kPeft;
  const fs::path weights = folder / (peft ? kPeftFiles[0] : "model.safetensors");
  const bool has_model = fs::exists(folder / (peft ? kPeftFiles[1] : "config.json"));
  if (!(has_model || fs::exists(weights)) || has_our_weights(weights)) return;
  throw Error(ErrorCode::kOutputExists,
              fmt::format("{}: the model there is not from fovea export", folder.string()),
              "choose another folder, or move that away");
}

DType dtype_of(std::string_view name) {
  if (name == "f32") return DType::kFloat32;
  if (name == "bf16") return DType::kBFloat16;
  throw Error(ErrorCode::kOptionValue,
              fmt::format("--to hf: the type of the weights is f32 or bf16; got {}", name),
              "give one of these, or --to gguf");
}

// The files that were written.
Json::Array files_in(const ExportOptions& options) {
  Json::Array files;
  for (const std::string_view name : options.files()) {
    if (fs::exists(fs::path(options.output) / name)) files.push_back(Json(name));
  }
  return files;
}

// Of a folder for transformers: of a language model, a translator, or one that began from an
// encoder.
std::string write_hugging_face(const std::string& model, const ExportOptions& options) {
  const DType dtype = dtype_of(options.dtype);
  const ModelKind kind = kind_of_model(model);
  if (is_on_encoder(kind)) return export_encoder(model, options.output, dtype);
  if (kind == ModelKind::kTranslator) {
    return export_translator(load_translator(model), options.output, dtype);
  }
  return export_hugging_face(load_language_model(model), options.output, dtype);
}

void write_model(const std::string& model, const ExportOptions& options) {
  choose(gguf_weight_types(), options.dtype, "dtype");
  std::string architecture;
  if (options.to == ExportForm::kGguf) {
    architecture = export_gguf(load_language_model(model), options.output, options.dtype);
  } else {
    architecture = write_hugging_face(model, options);
  }
  if (options.json) {
    print_json(
        {{"architecture", architecture}, {"output", options.output}, {"files", files_in(options)}});
  } else {
    note(fmt::format("{}: {}", options.output, architecture));
  }
}

void write_compact(const std::string& model, const ExportOptions& options) {
  constexpr double kMega = 1e6;
  const CompactExport made =
      export_compact(model, options.output, static_cast<index>(options.size * kMega));
  if (options.json) {
    print_json({{"ngrams", made.ngrams},
                {"ngrams_before", made.ngrams_before},
                {"bytes", made.bytes},
                {"output", options.output}});
  } else {
    note(fmt::format("{}: {} of {} n-grams, {:.2f} MB", options.output, made.ngrams,
                     made.ngrams_before, static_cast<double>(made.bytes) / kMega));
  }
}

void write_adapters(const std::string& model, const ExportOptions& options) {
  if (options.is_file())
    export_gguf_adapter(model, options.output);
  else if (is_on_encoder(kind_of_model(model)))
    export_encoder_adapters(model, options.output);
  else
    export_peft(model, options.output);
  if (options.json) {
    print_json({{"output", options.output}, {"files", files_in(options)}});
  } else {
    note(fmt::format("{}: adapters", options.output));
  }
}

// The adapters would no longer find the model that they change.
void require_no_base(const std::string& model, const std::string& output) {
  if (!fs::exists(output)) return;
  std::error_code ignored;
  for (const fs::path& base : bases_of_model(model)) {
    if (!fs::equivalent(base, output, ignored)) continue;
    throw Error(ErrorCode::kUsage,
                fmt::format("export: {} is the model that {} began from", output, model),
                "choose another name for the output");
  }
}

int export_model(const Arguments& arguments) {
  ExportOptions options;
  read_options(arguments, options);
  const bool is_file = options.is_file();
  begin_command(arguments, {is_file ? options.output : ""}, is_file ? "" : options.output);
  if (options.output.empty()) {
    throw Error(ErrorCode::kUsage, "export: --output is missing",
                "name a folder: fovea export DIR -o exported");
  }
  const bool is_compact = options.to == ExportForm::kCompact;
  if (!options.has_dtype())
    refuse_options(arguments, {"dtype"}, fmt::format(" with --to {}", to_string(options.to)));
  if (!is_compact)
    refuse_options(arguments, {"size"}, fmt::format(" with --to {}", to_string(options.to)));
  if (is_file) {
    check_page_file({"--output", options.output, options.overwrite, "GGUF file", ".gguf", "GGUF"});
  } else {
    check_folder(options.output, arguments.text("DIR"), options);
  }
  const std::string model = arguments.text("DIR");
  require_no_base(model, options.output);
  switch (options.to) {
    case ExportForm::kCompact:
      write_compact(model, options);
      break;
    case ExportForm::kPeft:
    case ExportForm::kGgufAdapter:
      write_adapters(model, options);
      break;
    default:
      write_model(model, options);
  }
  if (!is_file) remove_remains(options.output);
  return 0;
}

}  // namespace

Command export_command() {
  return {.name = "export",
          .summary = "Writes a model in the form of other programs, or in a few megabytes.",
          .positionals = {{"DIR", "folder of the model"}},
          .options = joined({said_or_not(ExportOptions(), "Options"), message_options()}),
          .epilog = R"(Examples:
  fovea export model -o exported
  fovea export model --to hf -o exported --dtype bf16
  fovea export classifier -o exported                of train classify --base, or train tag --base
  fovea export model --to gguf -o model.gguf --dtype q8_0
  fovea export adapters --to peft -o peft
  fovea export adapters --to gguf-adapter -o adapters.gguf
  fovea export linear --to compact -o compact

In Python: transformers.AutoModelForCausalLM.from_pretrained("exported"))",
          .run = export_model};
}

}  // namespace fovea::cli

// SPDX-License-Identifier: Apache-2.0
// fovea embed, fovea similar: vectors of lines of text, the lines of a corpus that are nearest to a
// query, and how alike the two texts of a line are.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/answers.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "fovea/base/clock.h"
#include "fovea/base/file.h"
#include "fovea/base/machine.h"
#include "fovea/base/option.h"
#include "fovea/base/words.h"
#include "fovea/config/json.h"
#include "fovea/task/embed/embedder.h"
#include "fovea/task/embed/sentence_encoder.h"
#include "fovea/task/encoder_peft.h"
#include "fovea/tensor/npz.h"
#include "fovea/text/utf8.h"

namespace fovea::cli {

namespace {

namespace fs = std::filesystem;

using TextList = std::vector<std::string>;

std::vector<std::string_view> views_of(const TextList& texts) {
  return {texts.begin(), texts.end()};
}

// ------------------------------------------------------------------------------- what is written

enum class VectorFormat { kAuto, kJsonl, kTsv, kNpy, kNpz };

constexpr EnumName<VectorFormat> kVectorFormatNames[] = {{VectorFormat::kAuto, "auto"},
                                                         {VectorFormat::kJsonl, "jsonl"},
                                                         {VectorFormat::kTsv, "tsv"},
                                                         {VectorFormat::kNpy, "npy"},
                                                         {VectorFormat::kNpz, "npz"}};
std::span<const EnumName<VectorFormat>> enum_names(VectorFormat) { return kVectorFormatNames; }

struct VectorOutput {
  std::string output;
  VectorFormat format = VectorFormat::kAuto;
  bool overwrite = false;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("output", output, "write the vectors to this file; not said: to standard output",
          {.place = HelpPlace::kOutput, .shown = "FILE", .also = "o"});
    visit("format", format,
          "auto: by the name of the file, jsonl on standard output; npz has one array, vectors");
    visit("overwrite", overwrite, "replace a file of vectors that is there already");
  }

  bool is_binary() const { return format == VectorFormat::kNpy || format == VectorFormat::kNpz; }
};

// Fills in the format. Before anything is computed.
void resolve_output(VectorOutput& options, const std::string& input, const fs::path& model) {
  const std::string& file = options.output;
  if (options.format == VectorFormat::kAuto) {
    options.format = VectorFormat::kJsonl;
    const std::string ending = fs::path(file).extension().string();
    const auto* const named =
        std::find_if(std::begin(kVectorFormatNames) + 1, std::end(kVectorFormatNames),
                     [&](const auto& one) { return ending == "." + std::string(one.name); });
    if (named != std::end(kVectorFormatNames)) {
      options.format = named->value;
    } else if (!file.empty()) {
      throw Error(ErrorCode::kUsage, fmt::format("--output: {}: the name says no format", file),
                  "end it in .npy, .npz, .jsonl or .tsv, or say --format");
    }
  }
  if (file.empty()) {
    if (!options.is_binary()) return;
    throw Error(ErrorCode::kUsage,
                fmt::format("--format {}: needs a file", to_string(options.format)),
                "name one: -o V.npy");
  }
  check_output_is_apart(file, input, model);
  check_page_file({.option = "--output",
                   .file = file,
                   .overwrite = options.overwrite,
                   .kind = "file of vectors",
                   .ending = ".npy",
                   .mark = ""});
}

// The vectors of lines, written as they come or, in one array, at the end.
class VectorWriter {
 public:
  VectorWriter(const VectorOutput& options, index columns) : options_(options), columns_(columns) {}

  // The lines that say these vectors; "" where all are written at the end.
  std::string add(Rows<const float> vectors) {
    if (options_.is_binary()) {
      memory_.grow_to(static_cast<double>(values_.size()) * sizeof(float));
      for (index n = 0; n < vectors.rows; ++n) {
        values_.insert(values_.end(), vectors[n], vectors[n] + columns_);
      }
      return {};
    }
    std::string lines;
    for (index n = 0; n < vectors.rows; ++n) append(lines, {vectors[n], columns_});
    if (options_.output.empty()) return lines;
    memory_.grow_to(static_cast<double>(text_.size()));
    text_ += lines;
    return {};
  }

  void finish() {
    if (options_.output.empty()) return;
    if (!options_.is_binary()) return write_file_atomically(options_.output, text_);
    const auto rows = static_cast<index>(values_.size()) / columns_;
    const Tensor all = Tensor::of<float>({rows, columns_}, values_);
    const NamedTensor named[] = {{"vectors", all}};
    write_file_atomically(
        options_.output, options_.format == VectorFormat::kNpy ? npy_bytes(all) : npz_bytes(named));
  }

 private:
  void append(std::string& lines, Vec<const float> vector) const {
    const bool is_json = options_.format == VectorFormat::kJsonl;
    lines += is_json ? "{\"vector\":[" : "";
    for (index c = 0; c < vector.size; ++c) {
      if (c > 0) lines += is_json ? ',' : '\t';
      fmt::format_to(std::back_inserter(lines), "{}", vector[c]);
    }
    lines += is_json ? "]}\n" : "\n";
  }

  const VectorOutput& options_;
  const index columns_;
  GrowingMemory memory_{"the vectors", "embed a part of the lines at a time"};
  std::vector<float> values_;
  std::string text_;
};

// ----------------------------------------------------------------------------- what is shared

std::vector<std::string> adapters_of(const Arguments& arguments) {
  EncoderAdapterOptions options;
  read_options(arguments, options);
  return options.adapter;
}

// A model that makes vectors as was asked, and what it says at the end.
class VectorCommand {
 public:
  // Reads the options into these.
  template <class... Options>
  explicit VectorCommand(const Arguments& arguments, Options&... options)
      : said_(read_options(arguments, options...)),
        context_(model_context_of(arguments)),
        model_(load_embedder(arguments.text("MODEL"), adapters_of(arguments))) {
    tell_threads(context_);
  }

  Embedder embedder(const EmbedOptions& options) const {
    return {context_, model_, embed_rules(model_, options, said_)};
  }
  const Context& context() const { return context_; }
  const SentenceModel& model() const { return model_; }
  bool is_said(std::string_view name) const { return contains(said_, name); }

  void tell(const Embedder& embedder) const {
    if (embedder.truncated() > 0) {
      warn(fmt::format("{} of {} texts were longer than the model's {} tokens, and were truncated",
                       embedder.truncated(), embedder.texts(), model_.settings.max_length));
    }
    const double seconds = monotonic_seconds() - began_;
    detail(fmt::format("{} texts, {} tokens in {:.3f} s ({:.0f} texts/s); the model: {:.3f} s",
                       embedder.texts(), embedder.tokens(), seconds,
                       static_cast<double>(embedder.texts()) / seconds, embedder.model_seconds()));
  }

 private:
  const std::vector<std::string> said_;
  const Context context_;
  const SentenceModel model_;
  const double began_ = monotonic_seconds();
};

void begin_with_encoder(const Arguments& arguments) {
  begin_command(arguments, {arguments.text("FILE", "-")}, arguments.text("MODEL"));
}

constexpr AnswersAtOnce kVectorsAtOnce = {.entries = Embedder::kTextsAtOnce,
                                          .bytes = Embedder::kBytesAtOnce};

// Says how far a command is that prints nothing until it ends.
class LineCount {
 public:
  void show(index done) {
    constexpr double kSeconds = 10;
    const double now = monotonic_seconds();
    if (now < next_) return;
    next_ = now + kSeconds;
    note(fmt::format("{} lines", done));
  }

 private:
  double next_ = monotonic_seconds() + 2;
};

// ------------------------------------------------------------------------------------- vectors

// Asks for each line of FILE.
void answer_texts(const Arguments& arguments, Answers<std::string>& answers) {
  answer_lines(
      arguments.text("FILE", "-"), kLongestTextLine,
      [&](const Line& line) {
        answers.add(std::string(without_carriage_return(line.text)), line.text.size());
      },
      [&] { answers.answer(); });
}

int embed_lines(const Arguments& arguments, const VectorCommand& vectors,
                const EmbedOptions& options, const VectorOutput& output) {
  Embedder embedder = vectors.embedder(options);
  VectorWriter writer(output, embedder.rules().columns);
  LineCount steps;
  Answers<std::string> answers(launch_of(vectors.context()), kVectorsAtOnce,
                               [&](const TextList& texts) {
                                 std::string lines = writer.add(embedder.embed(views_of(texts)));
                                 if (!output.output.empty()) steps.show(embedder.texts());
                                 return lines;
                               });
  answer_texts(arguments, answers);
  writer.finish();
  if (!output.output.empty()) {
    note(fmt::format("{}: {} vectors of {} numbers", output.output, embedder.texts(),
                     embedder.rules().columns));
  }
  vectors.tell(embedder);
  return 0;
}

// -------------------------------------------------------------------------------------- search

struct LookupOptions {
  std::string search;
  std::string query;
  index top = 5;
  bool json = false;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("search", search,
          "print the lines of this file that are nearest to a query; their vectors are kept in "
          "CORPUS.vectors.safetensors and made again when the file or the model has changed",
          {.shown = "CORPUS"});
    visit("query", query, "--search: look for this text; not said: for each line of FILE",
          {.shown = "TEXT"});
    visit("top", top, "--search: so many lines for each query",
          {.range = ValueRange::in(1, 1'000'000)});
    visit("json", json, "--search: print the lines of each query as one JSON object");
  }
};

std::string lines_of_hits(const std::string& query, std::span<const Hit> hits,
                          const TextList& corpus, bool json) {
  const auto text_of = [&](const Hit& hit) -> const std::string& {
    return corpus[static_cast<std::size_t>(hit.row)];
  };
  if (json) {
    Json::Array lines;
    for (const Hit& hit : hits) {
      lines.push_back(
          Json::Object{{"score", hit.score}, {"line", hit.row + 1}, {"text", text_of(hit)}});
    }
    return Json(Json::Object{{"query", query}, {"lines", std::move(lines)}}).line() + "\n";
  }
  std::string said;
  for (const Hit& hit : hits) {
    said += fmt::format("{:.6f}\t{}\t{}\n", hit.score, hit.row + 1, text_of(hit));
  }
  return said;
}

int search_corpus(const Arguments& arguments, const VectorCommand& vectors,
                  const EmbedOptions& options, const LookupOptions& search) {
  Embedder embedder = vectors.embedder(options);
  const TextList corpus = read_text_lines(search.search);
  LineCount steps;
  const CorpusVectors known = corpus_vectors(embedder, vectors.model(), search.search, corpus,
                                             [&](index done) { steps.show(done); });
  for (const std::string& line : known.notes) warn(line);
  detail(fmt::format("{}: {} vectors {}", search.search, corpus.size(),
                     known.made ? "were made" : "were read"));
  const auto answer = [&](const TextList& queries) {
    const auto found =
        nearest(vectors.context(), known, embedder.embed(views_of(queries)), search.top);
    std::string said;
    for (std::size_t n = 0; n < queries.size(); ++n) {
      said += lines_of_hits(queries[n], found[n], corpus, search.json);
    }
    return said;
  };
  if (vectors.is_said("query")) {
    print_answers(answer({search.query}));
  } else {
    Answers<std::string> answers(launch_of(vectors.context()), kVectorsAtOnce, answer);
    answer_texts(arguments, answers);
  }
  vectors.tell(embedder);
  return 0;
}

// The default of --normalize is the model's: help shows none.
std::vector<Flag> flags_of_vectors(EmbedOptions& options) {
  std::vector<Flag> flags = flags_of(fields_of(options));
  for (Flag& flag : flags) {
    if (flag.name == "normalize") flag.default_text.clear();
  }
  return flags;
}

void check_use(const VectorCommand& vectors, const LookupOptions& search) {
  const auto refuse = [&](std::string_view name, std::string_view why) {
    if (!vectors.is_said(name)) return;
    throw Error(ErrorCode::kUsage, fmt::format("--{}: {}", name, why), "leave it out");
  };
  if (search.search.empty()) {
    for (const std::string_view name : {"query", "top", "json"}) {
      refuse(name, "has an effect with --search CORPUS alone");
    }
  } else {
    for (const std::string_view name : {"output", "format", "overwrite"}) {
      refuse(name, "has no effect with --search");
    }
  }
}

// ------------------------------------------------------------------------------------- similar

struct AskedPair {
  std::string first, second;
};

AskedPair asked_pair(const Line& line, const std::string& file) {
  const std::vector<std::string_view> parts =
      parts_between(without_carriage_return(line.text), '\t');
  if (parts.size() == 2) return {std::string(parts[0]), std::string(parts[1])};
  throw Error(ErrorCode::kInputFormat,
              fmt::format("{}:{}: expected two texts with a tab between them, got {}",
                          name_of_input(file), line.number,
                          parts.size() == 1 ? "no tab" : fmt::format("{} tabs", parts.size() - 1)),
              "write FIRST<tab>SECOND in each line");
}

// A cosine is the same with and without it.
std::vector<Flag> flags_of_similar(EmbedOptions& options) {
  return flags_without(options, {"normalize"});
}

std::string cosines_of(Embedder& embedder, const std::vector<AskedPair>& pairs) {
  std::vector<std::string_view> texts;
  for (const auto& [first, second] : pairs) {
    texts.push_back(first);
    texts.push_back(second);
  }
  const Rows<const float> vectors = embedder.embed(texts);
  std::string lines;
  for (index n = 0; n < vectors.rows; n += 2) {
    lines += fmt::format("{:.6f}\n",
                         cosine({vectors[n], vectors.columns}, {vectors[n + 1], vectors.columns}));
  }
  return lines;
}

int embed(const Arguments& arguments) {
  begin_with_encoder(arguments);
  EmbedOptions options;
  VectorOutput output;
  LookupOptions search;
  const VectorCommand vectors(arguments, options, output, search);
  check_use(vectors, search);
  if (!search.search.empty()) return search_corpus(arguments, vectors, options, search);
  resolve_output(output, arguments.text("FILE", "-"), arguments.text("MODEL"));
  return embed_lines(arguments, vectors, options, output);
}

int similar(const Arguments& arguments) {
  begin_with_encoder(arguments);
  EmbedOptions options;
  std::vector<Flag> flags = flags_of_similar(options);
  const VectorCommand vectors(arguments, flags);
  Embedder embedder = vectors.embedder(options);
  const std::string file = arguments.text("FILE", "-");
  Answers<AskedPair> answers(
      launch_of(vectors.context()), kVectorsAtOnce,
      [&](const std::vector<AskedPair>& pairs) { return cosines_of(embedder, pairs); });
  answer_lines(
      file, kLongestTextLine,
      [&](const Line& line) { answers.add(asked_pair(line, file), line.text.size()); },
      [&] { answers.answer(); });
  vectors.tell(embedder);
  return 0;
}

constexpr std::string_view kModelHelp = "folder of a sentence encoder of Hugging Face";

}  // namespace

Command embed_command() {
  EmbedOptions options;
  return {.name = "embed",
          .summary = "Makes a vector of each line of text; searches by such vectors.",
          .positionals = {{"MODEL", std::string(kModelHelp)},
                          {"FILE", "lines of text (-, or none: standard input)", false}},
          .options =
              joined({options_of(flags_of_vectors(options), "Vectors"),
                      said_or_not(VectorOutput(), "Output"), said_or_not(LookupOptions(), "Search"),
                      options_of(EncoderAdapterOptions(), kAdaptersHeading), computing_options(),
                      message_options()}),
          .epilog = R"(Examples:
  fovea embed all-MiniLM-L6-v2 texts.txt -o vectors.npy
  echo "a wonderful film" | fovea embed all-MiniLM-L6-v2
  fovea embed all-MiniLM-L6-v2 --search texts.txt --query "How do I reset my password?"

Prints for each line a JSON object with its vector, as soon as the line has been read.)",
          .run = embed};
}

Command similar_command() {
  EmbedOptions options;
  return {
      .name = "similar",
      .summary = "Says how alike the two texts of each line are.",
      .positionals = {{"MODEL", std::string(kModelHelp)},
                      {"FILE",
                       "lines of two texts with a tab between them (-, or none: standard input)",
                       false}},
      .options = joined({options_of(flags_of_similar(options), "Vectors"),
                         options_of(EncoderAdapterOptions(), kAdaptersHeading), computing_options(),
                         message_options()}),
      .epilog = R"(Examples:
  fovea similar all-MiniLM-L6-v2 pairs.tsv
  printf 'A man sleeps.\tSomebody is asleep.\n' | fovea similar all-MiniLM-L6-v2

Prints for each line the cosine of the two vectors, from -1 to 1.)",
      .run = similar};
}

}  // namespace fovea::cli

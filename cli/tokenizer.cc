// SPDX-License-Identifier: Apache-2.0
// fovea tokenizer: learns subwords, and cuts and joins lines with those of a model.
#include <fmt/core.h>

#include <exception>
#include <filesystem>
#include <memory>
#include <mutex>
#include <span>
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
#include "fovea/data/corpus.h"
#include "fovea/data/table/line_reader.h"
#include "fovea/pretrained/folder_subwords.h"
#include "fovea/pretrained/pretrained.h"
#include "fovea/pretrained/tokenizer_files.h"
#include "fovea/pretrained/translator.h"
#include "fovea/text/sentencepiece/sentencepiece.h"
#include "fovea/text/sentencepiece/trainer.h"
#include "fovea/text/utf8.h"
#include "fovea/train/model_folder.h"

namespace fovea::cli {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLinesAtOnce = 4096, kBytesAtOnce = std::size_t{1} << 20;

// A tokenizer as both commands see it: a .model file of SentencePiece, the vocabulary of a GGUF
// file, or that of a folder of Hugging Face. Any number of threads may use one at once.
class LineTokenizer {
 public:
  virtual ~LineTokenizer() = default;
  virtual index size() const = 0;
  // The line must be UTF-8.
  virtual std::vector<EncodedPiece> encode(std::string_view line) const = 0;
  // The id of a piece, or that of an unknown one. Throws kInputFormat if there is none.
  virtual token id_of(std::string_view piece) const = 0;
  virtual std::string decode(std::span<const EncodedPiece> pieces) const = 0;
  virtual std::string decode(std::span<const token> ids) const = 0;
  // The tokenizer as one of SentencePiece; null if it is another.
  virtual const SentencePiece* sentence_piece() const { return nullptr; }
};

class PieceLines final : public LineTokenizer {
 public:
  explicit PieceLines(const std::string& file) : pieces_(piece_model_bytes(file), file) {}

  index size() const override { return pieces_.size(); }
  std::vector<EncodedPiece> encode(std::string_view line) const override {
    return pieces_.encode(line);
  }
  token id_of(std::string_view piece) const override {
    const token id = pieces_.id_of(piece);
    return id == kNoToken ? pieces_.model().unknown : id;
  }
  std::string decode(std::span<const EncodedPiece> pieces) const override {
    return pieces_.decode(pieces);
  }
  std::string decode(std::span<const token> ids) const override { return pieces_.decode(ids); }
  const SentencePiece* sentence_piece() const override { return &pieces_; }

 private:
  SentencePiece pieces_;
};

// Pieces are written as the vocabulary has them: without spaces.
class SubwordLines final : public LineTokenizer {
 public:
  explicit SubwordLines(std::shared_ptr<const Subwords> subwords)
      : subwords_(std::move(subwords)) {}

  index size() const override { return subwords_->size(); }
  std::vector<EncodedPiece> encode(std::string_view line) const override {
    std::vector<token> ids;
    subwords_->encode(ids, valid_utf8(line));
    std::vector<EncodedPiece> pieces;
    for (const token id : ids) pieces.push_back({subwords_->name(id), id});
    return pieces;
  }
  token id_of(std::string_view piece) const override {
    const token id = subwords_->id_of(piece);
    if (id != kNoToken) return id;
    throw Error(ErrorCode::kInputFormat,
                fmt::format("{} is no piece of the vocabulary", excerpt(piece)),
                "decode with the model that has encoded");
  }
  std::string decode(std::span<const EncodedPiece> pieces) const override {
    std::vector<token> ids;
    for (const EncodedPiece& piece : pieces) ids.push_back(piece.id);
    return subwords_->decode(ids);
  }
  std::string decode(std::span<const token> ids) const override { return subwords_->decode(ids); }

 private:
  std::shared_ptr<const Subwords> subwords_;
};

// Pieces are written as the vocabulary has them: "##ing" continues a word.
class WordPieceLines final : public LineTokenizer {
 public:
  explicit WordPieceLines(WordPieceModel model) : pieces_(std::move(model)) {}

  index size() const override { return pieces_.size(); }
  std::vector<EncodedPiece> encode(std::string_view line) const override {
    std::vector<token> ids;
    pieces_.encode(ids, line);
    std::vector<EncodedPiece> pieces;
    for (const token id : ids) pieces.push_back({pieces_.name(id), id});
    return pieces;
  }
  token id_of(std::string_view piece) const override {
    const token id = pieces_.id_of(piece);
    return id == kNoToken ? pieces_.id_of(pieces_.model().unknown) : id;
  }
  std::string decode(std::span<const EncodedPiece> pieces) const override {
    std::vector<token> ids;
    for (const EncodedPiece& piece : pieces) ids.push_back(piece.id);
    return pieces_.decode(ids);
  }
  std::string decode(std::span<const token> ids) const override { return pieces_.decode(ids); }

 private:
  WordPiece pieces_;
};

// A vocabulary that contradicts itself does not know in which file it is.
std::unique_ptr<LineTokenizer> wordpiece_lines(WordPieceModel model, const std::string& file) {
  try {
    return std::make_unique<WordPieceLines>(std::move(model));
  } catch (const Error& error) {
    throw error.with(error.code(), fmt::format("{}: {}", file, error.what()));
  }
}

std::unique_ptr<LineTokenizer> load_line_tokenizer(const std::string& file) {
  if (is_gguf(file)) {
    if (auto words = load_gguf_wordpiece(file)) return wordpiece_lines(std::move(*words), file);
    return std::make_unique<SubwordLines>(load_pretrained_text(file).subwords);
  }
  const fs::path folder = file;
  if (is_foreign_translator(folder) && fs::exists(folder / "source.spm")) {
    throw Error(ErrorCode::kModelWrongKind,
                fmt::format("{}: a translator, and each of its sides has pieces of its own", file),
                fmt::format("name one side: {0}/source.spm or {0}/target.spm, whose ids are those "
                            "of that file, and not the model's",
                            file));
  }
  // A folder of fovea may have a vocab.txt, too: the words of a word tokenizer.
  if (fs::is_directory(folder) && !fs::exists(folder / kManifestName)) {
    const ModelFiles files(folder);
    const std::string kind = tokenizer_model(files);
    if (kind == "BPE" || kind == "Unigram") {
      return std::make_unique<SubwordLines>(load_folder_subwords(folder));
    }
    if (!kind.empty()) return wordpiece_lines(read_wordpiece(files), file);
  }
  return std::make_unique<PieceLines>(file);
}

// A line is answered by `answer(line, number)`; many at once, on all threads, in their order.
// Answers before the first line that it throws for are printed; the error names the line.
template <class Answer>
class LineAnswers {
 public:
  LineAnswers(const Context& context, Answer answer)
      : context_(context), answer_(std::move(answer)) {}

  void run(const std::string& file) {
    name_ = name_of_input(file);
    answer_lines(
        file, kLongestTextLine, [this](const Line& line) { add(line); }, [this] { flush(); });
  }

  index lines() const { return number_; }

 private:
  void add(const Line& line) {
    lines_.emplace_back(without_carriage_return(line.text));
    bytes_ += line.text.size();
    if (lines_.size() >= kLinesAtOnce || bytes_ >= kBytesAtOnce) flush();
  }

  void flush() {
    std::vector<std::string> lines = std::exchange(lines_, {});
    bytes_ = 0;
    if (lines.empty()) return;
    constexpr double kWork = 1e4;  // for each line
    index answered = std::ssize(lines);
    std::exception_ptr error;  // of the line behind these
    std::mutex guard;
    GrowingMemory memory("what lines become", "use shorter lines");
    std::size_t bytes = 0;
    context_.for_ranges(std::ssize(lines), kWork, [&](index begin, index end) {
      index n = begin;
      try {
        for (; n < end; ++n) {
          std::string& line = lines[static_cast<std::size_t>(n)];
          line = answer_(line, number_ + n);
          const std::lock_guard lock(guard);
          bytes += line.size();
          memory.grow_to(static_cast<double>(bytes));
        }
      } catch (const Error& of_line) {
        const std::lock_guard lock(guard);
        if (n < answered) {
          answered = n;
          error = std::make_exception_ptr(of_line.with(
              of_line.code(), fmt::format("{}:{}: {}", name_, number_ + n + 1, of_line.what())));
        }
      }
    });
    number_ += answered;
    lines.resize(static_cast<std::size_t>(answered));
    print_lines(lines);
    if (error) std::rethrow_exception(error);
  }

  // A piece at a time: all of them together would take their memory twice.
  static void print_lines(std::span<const std::string> lines) {
    std::string out;
    for (const std::string& line : lines) {
      out.append(line).append("\n");
      if (out.size() >= kBytesAtOnce) print_answers(std::exchange(out, {}));
    }
    print_answers(out);
  }

  const Context& context_;
  Answer answer_;
  std::string name_;  // of the file
  std::vector<std::string> lines_;
  std::size_t bytes_ = 0;  // of these
  index number_ = 0;       // lines that were answered before
};

// Returns the exit status.
template <class Answer>
int answer_file(const Arguments& arguments, Answer answer) {
  const Context context = context_of(arguments);
  LineAnswers<Answer> answers(context, std::move(answer));
  const double began = monotonic_seconds();
  answers.run(arguments.text("FILE", "-"));
  const double seconds = monotonic_seconds() - began;
  detail(fmt::format("{} lines in {:.3f} s ({:.0f} lines/s), {}", answers.lines(), seconds,
                     static_cast<double>(answers.lines()) / seconds,
                     thread_words(context.threads())));
  return 0;
}

struct EncodeOptions {
  bool ids = false;
  double subword_sampling = 0;
  index best = 0;
  std::uint64_t seed = 1;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("ids", ids, "print ids instead of pieces");
    visit("subword_sampling", subword_sampling,
          "draw a cut of each line: of unigram models the exponent of its probability, of BPE the "
          "share of merges left out; 0: the best cut",
          {.range = ValueRange::in(0, 1)});
    visit("best", best, "unigram models: draw among so many best cuts; 0: among all",
          {.range = ValueRange::in(0, 512, "among all")});
    visit("seed", seed, "seed of --subword-sampling");
  }
};

struct DecodeOptions {
  bool ids = false;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("ids", ids, "the lines are ids, not pieces");
  }
};

void check_encode(const EncodeOptions& options, const SentencePiece* pieces) {
  if (options.subword_sampling > 0 && pieces == nullptr) {
    throw Error(ErrorCode::kUsage,
                "tokenizer encode: --subword-sampling is of .model files of SentencePiece",
                "leave it out");
  }
  if (options.best == 0) return;
  const bool one_cut = pieces == nullptr || pieces->model().algorithm == PieceAlgorithm::kBpe;
  if (one_cut || options.subword_sampling == 0) {
    throw Error(ErrorCode::kUsage,
                "tokenizer encode: --best has an effect on unigram models with --subword-sampling",
                "leave it out");
  }
}

std::string written(const std::vector<EncodedPiece>& pieces, bool ids) {
  std::string line;
  for (const EncodedPiece& piece : pieces) {
    if (!line.empty()) line += ' ';
    line += ids ? std::to_string(piece.id) : piece.text;
  }
  return line;
}

// The parts of a line between its spaces.
std::vector<std::string_view> parts_of(std::string_view line) {
  std::vector<std::string_view> parts = parts_between(line, ' ');
  std::erase_if(parts, [](std::string_view part) { return part.empty(); });
  return parts;
}

std::string text_of_ids(const LineTokenizer& pieces, std::string_view line) {
  std::vector<token> ids;
  for (const std::string_view part : parts_of(line)) {
    const std::vector<index> id = parse_numbers(part, ',');
    if (id.size() != 1 || id[0] < 0 || id[0] >= pieces.size()) {
      throw Error(ErrorCode::kInputFormat,
                  fmt::format("{} is no id of the {} pieces", excerpt(part), pieces.size()),
                  "decode with the model that has encoded, or leave out --ids");
    }
    ids.push_back(static_cast<token>(id[0]));
  }
  return pieces.decode(ids);
}

std::string text_of_pieces(const LineTokenizer& pieces, std::string_view line) {
  std::vector<EncodedPiece> named;
  for (const std::string_view part : parts_of(line)) {
    named.push_back({std::string(part), pieces.id_of(part)});
  }
  return pieces.decode(named);
}

// The first steps of both commands.
std::unique_ptr<LineTokenizer> begin_with_model(const Arguments& arguments) {
  begin_command(arguments, {arguments.text("FILE", "-"), arguments.text("MODEL")});
  return load_line_tokenizer(arguments.text("MODEL"));
}

// Before the text is read.
void check_output(const std::string& file, const std::vector<std::string>& texts, bool overwrite) {
  std::error_code ignored;
  for (const std::string& text : texts) {
    if (!fs::equivalent(file, text, ignored)) continue;
    throw Error(ErrorCode::kUsage, fmt::format("{}: is a text to train on", file),
                "choose another file");
  }
  check_page_file({.option = "--output",
                   .file = file,
                   .overwrite = overwrite,
                   .kind = ".model file",
                   .ending = ".model",
                   .mark = ""});
}

int tokenizer_train(const Arguments& arguments) {
  const std::vector<std::string> files = arguments.list("train");
  const std::string output = arguments.text("output");
  begin_command(arguments, files);
  PieceTraining training;
  read_options(arguments, training);
  if (files.empty() || output.empty()) {
    throw Error(ErrorCode::kUsage,
                fmt::format("tokenizer train: --{} is missing", files.empty() ? "train" : "output"),
                "fovea tokenizer train --train FILE -o FILE.model");
  }
  check_output(output, files, arguments.on("overwrite"));
  std::vector<std::string> notes;
  const std::string text = read_text(files, TextEncoding::kUtf8, &notes);
  for (const std::string& line : notes) note(line);
  note(fmt::format("learning {} {} pieces from {}", training.vocab_size, to_string(training.kind),
                   size_text(text.size())));
  const double began = monotonic_seconds();
  const TrainedPieces trained = train_pieces(text, training);
  if (trained.long_lines > 0) {
    warn(fmt::format("lines longer than --line-length ({} bytes): {}; they are left out",
                     training.line_length, trained.long_lines));
  }
  write_file_atomically(output, trained.model);
  note(fmt::format("{}: {} pieces from {} lines in {:.1f} s", output,
                   SentencePiece(trained.model).size(), trained.lines,
                   monotonic_seconds() - began));
  return 0;
}

int tokenizer_encode(const Arguments& arguments) {
  const auto pieces = begin_with_model(arguments);
  EncodeOptions options;
  read_options(arguments, options);
  const SentencePiece* const drawn = pieces->sentence_piece();
  check_encode(options, drawn);
  return answer_file(arguments, [&](const std::string& line, index number) {
    if (options.subword_sampling == 0) return written(pieces->encode(line), options.ids);
    Random random(options.seed, RandomUse::kSampling, static_cast<std::uint64_t>(number));
    const CutSampling sampling{.alpha = options.subword_sampling, .best = options.best};
    return written(drawn->sample(line, sampling, random), options.ids);
  });
}

int tokenizer_decode(const Arguments& arguments) {
  const auto pieces = begin_with_model(arguments);
  DecodeOptions options;
  read_options(arguments, options);
  return answer_file(arguments, [&](const std::string& line, index) {
    return options.ids ? text_of_ids(*pieces, line) : text_of_pieces(*pieces, line);
  });
}

constexpr std::string_view kModelHelp =
    "a .model file of SentencePiece, a GGUF file or a folder of Hugging Face";

}  // namespace

Command tokenizer_train_command() {
  return {.name = "tokenizer train",
          .summary = "Learns subwords from a text: a .model file of SentencePiece.",
          .options = joined({{{.name = "train",
                               .kind = OptionKind::kList,
                               .placeholder = "FILE",
                               .help = "text files, joined in this order",
                               .place = HelpPlace::kData},
                              {.name = "output",
                               .placeholder = "FILE",
                               .help = "the .model file to write",
                               .also = "o",
                               .place = HelpPlace::kOutput},
                              {.name = "overwrite",
                               .kind = OptionKind::kFlag,
                               .help = "replace a .model file that is there already",
                               .place = HelpPlace::kResume}},
                             said_or_not(PieceTraining(), "Subwords"),
                             message_options()}),
          .epilog = R"(Examples:
  fovea tokenizer train --train text.txt -o text.model --vocab-size 4000
  fovea tokenizer train --train text.txt -o bytes.model --kind bpe --byte-fallback --vocab-size 8000)",
          .run = tokenizer_train};
}

Command tokenizer_encode_command() {
  return {.name = "tokenizer encode",
          .summary = "Cuts lines into subwords.",
          .positionals = {{"MODEL", std::string(kModelHelp)},
                          {"FILE", "text (-, or none: standard input)", false}},
          .options = joined(
              {said_or_not(EncodeOptions(), "Output"), {threads_option()}, message_options()}),
          .epilog = R"(Examples:
  fovea tokenizer encode text.model text.txt > pieces.txt
  fovea tokenizer encode text.model --ids < text.txt > ids.txt
  fovea tokenizer encode text.model text.txt --subword-sampling 0.1 --seed 2)",
          .run = tokenizer_encode};
}

Command tokenizer_decode_command() {
  return {.name = "tokenizer decode",
          .summary = "Joins subwords to lines of text.",
          .positionals = {{"MODEL", std::string(kModelHelp)},
                          {"FILE",
                           "pieces or ids with spaces between them (-, or none: standard input)",
                           false}},
          .options = joined(
              {said_or_not(DecodeOptions(), "Input"), {threads_option()}, message_options()}),
          .epilog = R"(Examples:
  fovea tokenizer decode text.model pieces.txt
  fovea tokenizer decode text.model --ids < ids.txt)",
          .run = tokenizer_decode};
}

}  // namespace fovea::cli

// SPDX-License-Identifier: Apache-2.0
// fovea tag: gives each word of sentences a tag, or finds the words of lines of text.
#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/answers.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/task_commands.h"
#include "fovea/base/clock.h"
#include "fovea/base/machine.h"
#include "fovea/base/option.h"
#include "fovea/data/table/line_reader.h"
#include "fovea/data/tagged/tagged_reader.h"
#include "fovea/task/encoder_peft.h"
#include "fovea/task/tag/tag_predictor.h"

namespace fovea::cli {

namespace {

struct OutputOptions {
  bool text = false;
  WordSplit words = WordSplit::kPunctuation;
  bool probabilities = false;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("text", text, "the file is plain text, a sentence a line, not a word a line");
    visit("words", words, "with --text: what ends a word");
    visit("probabilities", probabilities, "say the probability of each tag, too");
  }
};

// The forms of input and output.
struct TagForm {
  OutputOptions output = {};
  bool json = false;
  TaggedFormat format = TaggedFormat::kConll;  // of what comes in

  TagProbabilities probabilities() const {
    return output.probabilities ? TagProbabilities::kYes : TagProbabilities::kNo;
  }
};

// A sentence with the lines that it came from, or a line for a segmenter.
struct Asked {
  TaggedSentence sentence = {};
  std::string line = {};
  bool ended = true;  // by LF

  std::size_t bytes() const {
    std::size_t sum = line.size() + sizeof(std::string) * sentence.words.size();
    for (const SourceLine& source : sentence.source) sum += sizeof(source) + source.text.size();
    return sum;
  }
};

class SentenceAnswers {
 public:
  SentenceAnswers(const Context& context, const LoadedTagger& model, TagForm form)
      : model_(model),
        names_(model.columns()),
        form_(form),
        predictor_(context, model),
        answers_(launch_of(context),
                 {.entries = TagPredictor::kSentencesAtOnce,
                  .bytes = TagPredictor::kBytesAtOnce,
                  .words = TagPredictor::kWordsAtOnce},
                 [this](std::vector<Asked>& asked) { return said_of(asked); }) {}

  // Throws NobodyReads.
  void add(Asked asked) {
    const std::size_t bytes = asked.bytes();
    const auto words = static_cast<std::size_t>(asked.sentence.size());
    answers_.add(std::move(asked), bytes, words);
  }

  // Prints the tags of all sentences that are not answered yet. Throws NobodyReads.
  void answer() { answers_.answer(); }

  const TagPredictor& predictor() const { return predictor_; }
  const LoadedTagger& model() const { return model_; }
  const TagForm& form() const { return form_; }

 private:
  // The predictor borrows the words: those of a long line are not kept twice.
  std::string said_of(std::vector<Asked>& asked) {
    std::vector<std::vector<std::string>> words;
    for (Asked& one : asked) words.push_back(std::move(one.sentence.words));
    const auto found = predictor_.tag(words, form_.probabilities());
    for (std::size_t i = 0; i < asked.size(); ++i) asked[i].sentence.words = std::move(words[i]);
    std::string lines;
    for (std::size_t i = 0; i < asked.size(); ++i) lines += said_of(asked[i], found[i]);
    return lines;
  }

  std::string said_of(const Asked& asked, const std::vector<TaggedByModel>& found) const {
    if (model_.segments()) {
      const TagSet& tags = model_.tags[0];
      if (form_.json) return segmented_json(asked.line, tags, found[0]) + "\n";
      return segmented(asked.line, words_of(asked.line, tags, found[0])) +
             (asked.ended ? "\n" : "");
    }
    std::vector<TaggedColumn> columns;
    for (std::size_t c = 0; c < found.size(); ++c) {
      columns.push_back({model_.tags[c], found[c], names_[c]});
    }
    if (!form_.json) {
      return tagged_lines(asked.sentence, columns,
                          {.format = form_.format, .probabilities = form_.probabilities()});
    }
    const bool is_sentence = asked.sentence.size() > 0 || form_.output.text;
    return is_sentence ? tagged_json(asked.sentence, columns) + "\n" : "";
  }

  const LoadedTagger& model_;
  const std::vector<std::string> names_;  // of the tag columns
  const TagForm form_;
  TagPredictor predictor_;
  Answers<Asked> answers_;
};

// A line of a segmenter becomes a string, ids, tags and words for each of its characters.
void require_memory_of(std::string_view line, const LoadedTagger& model, const TagForm& form) {
  constexpr std::size_t kLong = std::size_t{1} << 20;  // shorter ones need no look at the system
  if (line.size() < kLong) return;
  const auto is_first_byte = [](char byte) { return (static_cast<unsigned char>(byte) >> 6) != 2; };
  const auto characters = std::count_if(line.begin(), line.end(), is_first_byte);
  const index of_each = 250 + (form.output.probabilities ? index{4} * model.tags[0].size() : 0);
  require_memory(fmt::format("a line of {} characters", characters),
                 static_cast<double>(characters * of_each),
                 "cut the line in shorter ones, or use a machine with more memory");
}

Asked asked_of(const Line& line, const LoadedTagger& model, const TagForm& form) {
  Asked asked{.line = std::string(line.text), .ended = line.ended};
  if (model.segments()) {
    require_memory_of(line.text, model, form);
    asked.sentence.words = characters_of(line.text);
  } else {
    asked.sentence = sentence_of(line.text, form.output.words);
  }
  return asked;
}

// Where nobody has said what the file is, and it has no columns, it is text.
void find_form(std::unique_ptr<ByteStream>& stream, const std::string& file,
               const LoadedTagger& model, const TaggedOptions& table, TagForm& form) {
  // If the model has the tag ".", sentences end with it: such tags say nothing.
  const auto is_tag = [&](std::string_view word) {
    const bool has_letter = std::any_of(word.begin(), word.end(), [](unsigned char c) {
      return std::isalpha(c) != 0 || c >= 0x80;
    });
    return has_letter && std::any_of(model.tags.begin(), model.tags.end(), [&](const TagSet& tags) {
             return tags.find(std::string(word)) >= 0;
           });
  };
  const LineForm found = find_line_form(stream, {.is_tag = is_tag, .comments = table.comments});
  if (found != LineForm::kText) return;
  form.output.text = true;
  warn(fmt::format(
      "{}: lines of several words without a tab are taken for text, a sentence a line (--text); if "
      "they are a word and its columns, say --format conll",
      name_of_input(file)));
}

void answer_sentences(std::unique_ptr<ByteStream> stream, const std::string& file,
                      TaggedOptions table, SentenceAnswers& answers) {
  table.tags = TagUse::kNone;
  table.keep_source = true;
  std::unique_ptr<TaggedReader> reader;
  try {
    reader = std::make_unique<TaggedReader>(std::move(stream), name_of_input(file), table);
  } catch (const Error& error) {
    // A pipe without lines has no answers; a file of that kind is a mistake.
    if (error.code() == ErrorCode::kEmptyInput && file == "-") return;
    throw;
  }
  const auto read = [&] {
    for (Asked asked; reader->next(asked.sentence); asked = {}) answers.add(std::move(asked));
  };
  answer_all(read, [&] { answers.answer(); });
}

void answer_file(std::unique_ptr<ByteStream> stream, const std::string& file,
                 const TaggedOptions& table, SentenceAnswers& answers) {
  const LoadedTagger& model = answers.model();
  if (!model.segments() && !answers.form().output.text) {
    return answer_sentences(std::move(stream), file, table, answers);
  }
  LineReader lines(std::move(stream), name_of_input(file), kLongestTextLine);
  answer_lines(
      lines, [&](const Line& line) { answers.add(asked_of(line, model, answers.form())); },
      [&] { answers.answer(); });
}

void tell_of(const TagPredictor& predictor, const LoadedTagger& model, double seconds) {
  if (predictor.cut() > 0) {
    warn(fmt::format("sentences longer than the model's {}: {} of {}; they are read in pieces",
                     model.longest(), predictor.cut(), predictor.sentences()));
  }
  detail(fmt::format("{} sentences, {} words in {:.3f} s ({:.0f} words/s); the model: {:.3f} s",
                     predictor.sentences(), predictor.words(), seconds,
                     static_cast<double>(predictor.words()) / seconds, predictor.model_seconds()));
}

// Throws if an option has no effect on this model.
void require_effect(const Arguments& arguments, const std::vector<std::string>& said,
                    const LoadedTagger& model, const TagForm& form) {
  const bool reads_lines = model.segments() || form.output.text;
  if (model.segments()) {
    refuse_set(arguments, said, {"text"}, " on a segmenter: it reads lines of text anyway");
  }
  if (reads_lines) {
    refuse_set(arguments, said, {"format", "word_column", "comments"},
               ": lines of text have no columns");
  }
  if (model.segments() || !form.output.text) {
    refuse_set(arguments, said, {"words"}, " without --text, or on a segmenter");
  }
  if (model.segments() && form.output.probabilities && !form.json) {
    throw Error(ErrorCode::kUsage,
                "tag: --probabilities of a segmenter are those of characters, and words have no "
                "column",
                "add --json");
  }
}

// The options that say how a file is read of which no tags are read.
std::vector<Flag> untagged_flags(TaggedOptions& table) {
  return flags_without(table, {"tag-column", "column"});
}

int tag(const Arguments& arguments) {
  const std::string file = arguments.text("FILE", "-"), folder = arguments.text("DIR");
  begin_command(arguments, {file}, folder);
  TagForm form{.json = arguments.on("json")};
  EncoderAdapterOptions peft;
  read_options(arguments, peft);
  std::vector<std::string> said = read_options(arguments, form.output);
  const Context context = model_context_of(arguments);
  const LoadedTagger model = load_tagger(folder, peft.adapter);
  TaggedOptions table = model.settings.text.table;
  const std::vector<std::string> columns = read_options(arguments, untagged_flags(table));
  said.insert(said.end(), columns.begin(), columns.end());
  require_effect(arguments, said, model, form);
  require_column_effect("tag", columns, std::span(&file, 1), table);
  form.format = format_of(name_of_input(file), table);
  if (model.segments() && form.format == TaggedFormat::kConllu) {
    throw Error(ErrorCode::kOptionValue,
                fmt::format("{}: a segmenter reads lines of text, and by its name this is CoNLL-U",
                            name_of_input(file)),
                "give it the text, a sentence or more a line; fovea eval reads CoNLL-U");
  }
  if (form.format == TaggedFormat::kWords && !form.output.text) {
    form.output.text = true;
    form.output.words = WordSplit::kSpaces;
  }
  tell_threads(context);
  std::optional<SentenceAnswers> answers;
  auto stream = answered_stream(file, [&] {
    if (answers) answers->answer();
  });
  const bool reads_text = model.segments() || form.output.text;
  if (form.format == TaggedFormat::kConll && !reads_text && columns.empty()) {
    find_form(stream, file, model, table, form);
  }
  answers.emplace(context, model, form);
  const double began = monotonic_seconds();
  answer_file(std::move(stream), file, table, *answers);
  tell_of(answers->predictor(), model, monotonic_seconds() - began);
  return 0;
}

}  // namespace

Command tag_command() {
  TaggedOptions table;
  return {.name = "tag",
          .summary = "Gives each word of sentences a tag, or finds the words of a text.",
          .positionals = {{"DIR", "folder of the model"},
                          {"FILE", "sentences (-, or none: standard input)", false}},
          .options = joined(
              {said_or_not(OutputOptions(), "Output"),
               {json_option("print each sentence as a JSON object on a line of its own", "Output")},
               said_or_not(options_of(untagged_flags(table), "How the file is read")),
               options_of(EncoderAdapterOptions(), kAdaptersHeading),
               computing_options(),
               message_options()}),
          .epilog = R"(Examples:
  fovea tag model test.conll > tagged.conll
  echo "Ada Lovelace was born in London." | fovea tag model --text
  fovea tag model test.conllu --probabilities
  fovea tag segmenter novel.txt.zst > words.txt

Of words a line each, every line stays as it was, and a column is added. Of a segmenter, blanks come
between words, and every character stays as it was.)",
          .run = tag};
}

}  // namespace fovea::cli

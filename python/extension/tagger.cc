// SPDX-License-Identifier: Apache-2.0
#include "python/extension/tagger.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "fovea/data/tagged/tagged_reader.h"
#include "fovea/task/tag/run.h"
#include "fovea/task/tag/tag_predictor.h"
#include "python/extension/model_call.h"
#include "python/extension/option_rows.h"
#include "python/extension/signals.h"

namespace nb = nanobind;

namespace fovea::python {

namespace {

using Sentences = std::vector<std::vector<std::string>>;

// How texts become words, and what is told.
struct TagChoice {
  WordSplit words = WordSplit::kPunctuation;
  bool probabilities = false;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("words", words, "what ends a word of a text");
    visit("probabilities", probabilities, "say the probability of each tag, too");
  }
};

/// A tagger in memory. Several threads of Python may use it at once.
class TaggerModel {
 public:
  TaggerModel(const std::string& folder, const std::string& precision,
              const std::vector<std::string>& adapters)
      : precision_(precision_from(precision)),
        loaded_(load(folder, adapters)),
        names_(loaded_.columns()) {}

  // The object of each sentence, which has its words.
  std::vector<std::string> tag(Sentences sentences, const Texts& options, int threads) const {
    const auto choice = options_from<TagChoice>(options);
    return while_others_run([&] {
      return in_parts(sentences, choice, threads, [&](std::size_t i, const Found& found) {
        TaggedSentence sentence;
        sentence.words = std::move(sentences[i]);
        std::vector<TaggedColumn> columns;
        for (std::size_t c = 0; c < found.size(); ++c) {
          columns.push_back({loaded_.tags[c], found[c], names_[c]});
        }
        return tagged_json(sentence, columns);
      });
    });
  }

  // The object of each line, of a segmenter.
  std::vector<std::string> segment(const std::vector<std::string>& lines, const Texts& options,
                                   int threads) const {
    const auto choice = options_from<TagChoice>(options);
    return while_others_run([&] {
      Sentences characters;
      for (const std::string& line : lines) characters.push_back(characters_of(line));
      return in_parts(characters, choice, threads, [&](std::size_t i, const Found& found) {
        return segmented_json(lines[i], loaded_.tags[0], found[0]);
      });
    });
  }

  Sentences words_of(const std::vector<std::string>& texts, const Texts& options) const {
    const auto choice = options_from<TagChoice>(options);
    Sentences sentences;
    for (const std::string& text : texts) {
      sentences.push_back(sentence_of(text, choice.words).words);
    }
    return sentences;
  }

  bool segments() const { return loaded_.segments(); }

 private:
  using Found = std::vector<TaggedByModel>;  // [tag columns]

  static LoadedTagger load(const std::string& folder, const std::vector<std::string>& adapters) {
    const nb::gil_scoped_release others_run;
    return load_tagger(folder, adapters);
  }

  template <class F>
  std::vector<std::string> in_parts(const Sentences& sentences, const TagChoice& choice,
                                    int threads, F&& object) const {
    TagPredictor predictor(Context(threads).with(precision_), loaded_);
    std::vector<std::string> objects;
    constexpr std::size_t kAtOnce = TagPredictor::kSentencesAtOnce;
    for (std::size_t begin = 0; begin < sentences.size(); begin += kAtOnce) {
      const std::size_t count = std::min(kAtOnce, sentences.size() - begin);
      const auto found =
          predictor.tag(std::span(sentences).subspan(begin, count),
                        choice.probabilities ? TagProbabilities::kYes : TagProbabilities::kNo);
      for (std::size_t i = 0; i < count; ++i) objects.push_back(object(begin + i, found[i]));
    }
    return objects;
  }

  Precision precision_;
  LoadedTagger loaded_;
  std::vector<std::string> names_;  // of the tag columns
};

}  // namespace

void bind_tagger(nb::module_& m) {
  nb::class_<TaggerModel>(m, "TaggerModel", "A tagger or a segmenter in memory.")
      .def(nb::init<const std::string&, const std::string&, const std::vector<std::string>&>(),
           nb::arg("folder"), nb::arg("precision"), nb::arg("adapters"))
      .def("tag", &TaggerModel::tag, nb::arg("sentences"), nb::arg("options"), nb::arg("threads"),
           "The JSON object of `fovea tag` of each sentence.")
      .def("segment", &TaggerModel::segment, nb::arg("lines"), nb::arg("options"),
           nb::arg("threads"), "The JSON object of `fovea tag` of each line.")
      .def("words_of", &TaggerModel::words_of, nb::arg("texts"), nb::arg("options"),
           "The words of each text.")
      .def("segments", &TaggerModel::segments, "Whether it finds words.");
  m.def("tagger_options", &option_rows<TaggerSettings>,
        "(name, what it must be, what it does) of each option of training a tagger.");
  m.def("tag_options", &option_rows<TagChoice>, "The same of tagging.");
}

}  // namespace fovea::python

// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/tag/score.h"

#include <utility>

#include "fovea/task/score_json.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

Json json_of_types(const TaggerScore& score) {
  Json::Array list;
  for (std::size_t k = 0; k < score.types.size(); ++k) {
    const ScoresOf<Interval>& scores = score.spans.types[k];
    Json::Object type;
    add(type, "type", score.types[k]);
    add(type, "support", score.spans.support[k]);
    add(type, "predicted", score.spans.predicted[k]);
    add(type, "right", score.spans.right[k]);
    add_scores(type, scores);
    list.emplace_back(std::move(type));
  }
  return list;
}

Json json_of_mistake(const TaggedMistake& mistake) {
  Json::Object object;
  add(object, "file", mistake.file);
  add(object, "line", mistake.line);
  add(object, "words", json_of_texts(mistake.words));
  add(object, "tags", json_of_texts(mistake.truth));
  add(object, "predicted", json_of_texts(mistake.predicted));
  add(object, "wrong", mistake.wrong);
  return object;
}

Json json_of_score(const TaggerScore& score) {
  Json::Object object;
  if (!score.column.empty()) add(object, "column", score.column);
  add(object, "task", std::string(to_string(score.task)));
  add(object, "sentences", score.sentences);
  add(object, score.task == TagTask::kSegment ? "characters" : "words", score.words);
  add(object, "unknown_tags", score.unknown_tags);
  add(object, "confidence", score.confidence);
  score.visit_numbers([&](std::string_view name, const Interval& interval) {
    add(object, name, json_of_interval(interval));
  });
  if (score.has_spans) add(object, "types", json_of_types(score));
  if (score.confusion) add(object, "confusion", json_of_matrix(*score.confusion));
  Json::Array mistakes;
  for (const TaggedMistake& mistake : score.mistakes) mistakes.push_back(json_of_mistake(mistake));
  add(object, "mistakes", std::move(mistakes));
  return object;
}

}  // namespace

std::string in_words(const std::vector<std::string>& characters,
                     const std::vector<std::string>& tags) {
  std::string text, own;
  for (std::size_t c = 0; c < characters.size(); ++c) {
    if (tags[c].starts_with('B') || tags[c].starts_with('S')) {
      if (c > 0) text += own + ' ';
      const std::size_t dash = tags[c].find('-');
      own = dash == std::string::npos ? "" : "/" + escape_text(tags[c].substr(dash + 1));
    }
    text += escape_text(characters[c]);
  }
  return text + own;
}

double main_number(const TaggerScore& score) {
  return score.has_spans ? score.spans.micro.f1.value : score.spans.accuracy.value;
}

double mean_score(std::span<const TaggerScore> columns) {
  double sum = 0;
  for (const TaggerScore& score : columns) sum += main_number(score);
  return sum / static_cast<double>(columns.size());
}

Json json_of_scores(std::span<const TaggerScore> columns) {
  if (columns.size() == 1) return json_of_score(columns[0]);
  Json::Object object;
  add(object, "mean", mean_score(columns));
  Json::Array all;
  for (const TaggerScore& score : columns) all.push_back(json_of_score(score));
  add(object, "columns", std::move(all));
  return object;
}

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/tagger_score.h"

#include <utility>

namespace fovea {

namespace {

void add(Json::Object& object, std::string_view name, Json value) {
  object.push_back({std::string(name), std::move(value)});
}

Json json_of_interval(const Interval& interval) {
  Json::Object object;
  add(object, "value", interval.value);
  add(object, "low", interval.low);
  add(object, "high", interval.high);
  return object;
}

Json json_of_types(const TaggerScore& score) {
  Json::Array list;
  for (std::size_t k = 0; k < score.types.size(); ++k) {
    const ScoresOf<Interval>& scores = score.spans.types[k];
    Json::Object type;
    add(type, "type", score.types[k]);
    add(type, "support", score.spans.support[k]);
    add(type, "predicted", score.spans.predicted[k]);
    add(type, "right", score.spans.right[k]);
    add(type, "precision", json_of_interval(scores.precision));
    add(type, "recall", json_of_interval(scores.recall));
    add(type, "f1", json_of_interval(scores.f1));
    list.emplace_back(std::move(type));
  }
  return list;
}

Json json_of_matrix(const ConfusionMatrix& matrix) {
  Json::Array rows;
  for (index t = 0; t < matrix.classes; ++t) {
    Json::Array row;
    for (index p = 0; p < matrix.classes; ++p) row.emplace_back(matrix.at(t, p));
    rows.emplace_back(std::move(row));
  }
  return rows;
}

Json::Array texts_of(const std::vector<std::string>& texts) {
  return Json::Array(texts.begin(), texts.end());
}

Json json_of_mistake(const TaggedMistake& mistake) {
  Json::Object object;
  add(object, "file", mistake.file);
  add(object, "line", mistake.line);
  add(object, "words", texts_of(mistake.words));
  add(object, "tags", texts_of(mistake.truth));
  add(object, "predicted", texts_of(mistake.predicted));
  add(object, "wrong", mistake.wrong);
  return object;
}

}  // namespace

Json json_of_score(const TaggerScore& score) {
  Json::Object object;
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

}  // namespace fovea

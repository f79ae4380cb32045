// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <utility>

#include "fovea/explain/shown.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

template <class T>
Json numbers(const std::vector<T>& values) {
  return Json(Json::Array(values.begin(), values.end()));
}

// A token may be a byte that is no text.
Json text(std::string_view token) {
  return find_invalid_utf8(token) ? Json(escape_text(token)) : Json(token);
}

}  // namespace

Json json_of_tokens(const std::vector<std::string>& tokens) {
  Json::Array array;
  for (const std::string& token : tokens) array.push_back(text(token));
  return Json(std::move(array));
}

namespace {

Json prediction_of(const Explanation& explanation) {
  Json::Array array;
  for (const auto& [label, probability] : explanation.prediction) {
    array.emplace_back(Json::Object{{"label", text(label)}, {"probability", probability}});
  }
  return Json(std::move(array));
}

Json::Object tags_of(const ExplainedTags& tags) {
  Json::Object object;
  if (!tags.column.empty()) object.emplace_back("column", tags.column);
  object.emplace_back("tags", json_of_tokens(tags.tags));
  object.emplace_back("probabilities", numbers(tags.probabilities));
  return object;
}

// Adds the answer of a tagger, as fovea tag --json --probabilities has it.
void add_tags(Json::Object& object, const Explanation& explanation) {
  if (explanation.token > 0) object.emplace_back("token", explanation.token);
  if (explanation.tags.size() == 1) {
    for (auto& member : tags_of(explanation.tags[0])) object.push_back(std::move(member));
    return;
  }
  Json::Array columns;
  for (const ExplainedTags& tags : explanation.tags) columns.emplace_back(tags_of(tags));
  object.emplace_back("columns", std::move(columns));
}

// [T], or with joints [T, joints].
Json by_token(const Explanation& explanation, const std::vector<float>& values) {
  if (explanation.joints() == 0) return numbers(values);
  return json_of_matrix(values.data(), explanation.tokens.size(),
                        static_cast<std::size_t>(explanation.joints()));
}

// The input that was explained: a text, or a sample of numbers.
Json::Object input_of(const Explanation& explanation) {
  Json::Object object{{"kind", explanation.kind.english}};
  if (explanation.numbers) {
    object.emplace_back("sample", explanation.numbers->sample);
    object.emplace_back("first_step", explanation.numbers->first_step);
    object.emplace_back("steps", static_cast<index>(explanation.tokens.size()));
    if (explanation.joints() > 0) object.emplace_back("joints", explanation.joints());
  } else {
    object.emplace_back("tokens", json_of_tokens(explanation.tokens));
  }
  object.emplace_back("cut", explanation.cut);
  return object;
}

void add_translation(Json::Object& object, const Explanation& explanation) {
  const ExplainedTranslation& made = *explanation.translation;
  object.emplace_back("translation", text(made.text));
  object.emplace_back("given", made.is_given);
  object.emplace_back("log_probability", made.log_probability);
  object.emplace_back("target_tokens", json_of_tokens(made.tokens));
  object.emplace_back("probabilities", numbers(made.probabilities));
  if (explanation.token > 0) object.emplace_back("token", explanation.token);
}

// The meaning of a layer's rows and columns: time steps or joints, or texts of a translator.
std::string axes_of(const Explanation& explanation, const ExplainedLayer& layer) {
  if (explanation.numbers) return layer.across ? R"(,"over":"joints")" : R"(,"over":"time")";
  if (!explanation.translation) return "";
  switch (layer.place) {
    case AttentionPlace::kText:
      break;
    case AttentionPlace::kDecoder:
      return R"(,"queries":"translation","keys":"translation so far")";
    case AttentionPlace::kCross:
      return R"(,"queries":"translation","keys":"source")";
  }
  return R"(,"queries":"source","keys":"source")";
}

// All but the layers, without the brace at the end.
std::string head_of(const Explanation& explanation) {
  Json::Object object = input_of(explanation);
  if (explanation.translation) {
    add_translation(object, explanation);
  } else if (!explanation.tags.empty()) {
    add_tags(object, explanation);
  } else if (explanation.prediction.empty()) {
    object.emplace_back("number", explanation.number);
  } else {
    object.emplace_back("prediction", prediction_of(explanation));
  }
  const Saliency& saliency = explanation.saliency;
  if (!saliency.values.empty()) {
    Json::Object shown{{"method", to_string(saliency.method)},
                       {"of", filled(saliency.of, QuoteLength::kWhole).english},
                       {"source", source_of(saliency.method)},
                       {"values", by_token(explanation, saliency.values)}};
    if (saliency.exact) {
      shown.emplace_back("value", saliency.exact->value);
      shown.emplace_back("bias", saliency.exact->bias);
    }
    object.emplace_back("saliency", std::move(shown));
  }
  if (!explanation.pooling.empty()) {
    object.emplace_back("pooling", by_token(explanation, explanation.pooling));
  }
  Json::Array notes;
  for (const Words& note : explanation.notes) notes.emplace_back(note.english);
  if (explanation.has_weights()) notes.emplace_back(kWeightsAreNoExplanation);
  object.emplace_back("notes", std::move(notes));
  std::string line = Json(std::move(object)).line();
  line.pop_back();
  return line;
}

// [queries, keys], or with joints a matrix for each sequence.
Json weights_of(const Explanation& explanation, const ExplainedLayer& layer, index head) {
  const auto of_sequence = [&](index sequence) {
    return json_of_matrix(layer.head(head, sequence).weights.data(),
                          static_cast<std::size_t>(layer.queries),
                          static_cast<std::size_t>(layer.keys));
  };
  if (explanation.joints() == 0) return of_sequence(0);
  Json::Array sequences;
  for (index s = 0; s < layer.sequences; ++s) sequences.push_back(of_sequence(s));
  return Json(std::move(sequences));
}

std::string head_json(const Explanation& explanation, const ExplainedLayer& layer, index head) {
  const auto at = static_cast<std::size_t>(head - 1);
  Json::Object object{{"head", head}};
  if (!layer.entropy.empty()) object.emplace_back("entropy", layer.entropy[at]);
  if (!layer.distance.empty()) object.emplace_back("distance", layer.distance[at]);
  object.emplace_back("largest", layer.largest[at]);
  object.emplace_back("weights", weights_of(explanation, layer, head));
  return Json(std::move(object)).line();
}

}  // namespace

void write_json(const Explanation& explanation, const ExplainView& view,
                const std::function<bool(std::string_view)>& write) {
  if (!write(head_of(explanation) + ",\"layers\":[")) return;
  bool first_layer = true;
  for (std::size_t n = 0; n < explanation.layers.size(); ++n) {
    const ExplainedLayer& layer = explanation.layers[n];
    if (view.layer > 0 && static_cast<index>(n) + 1 != view.layer) continue;
    std::string piece =
        fmt::format("{}{{\"layer\":{},\"name\":{}{},\"heads\":[", first_layer ? "" : ",", n + 1,
                    Json(layer.name).line(), axes_of(explanation, layer));
    first_layer = false;
    bool first_head = true;
    for (index head = 1; head <= layer.heads; ++head) {
      if (view.head > 0 && head != view.head) continue;
      if (!first_head) piece += ",";
      piece += head_json(explanation, layer, head);
      first_head = false;
      if (!write(piece)) return;
      piece.clear();
    }
    if (!write(piece + "]}")) return;
  }
  write("]}\n");
}

}  // namespace fovea

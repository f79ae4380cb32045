// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/translate/translation_line.h"

#include <utility>

#include "fovea/config/json.h"

namespace fovea {

namespace {

// A translation as an object.
Json::Object translation_object(const TranslatedText& made, bool alignments) {
  Json::Object object;
  object.emplace_back("translation", made.text);
  object.emplace_back("score", made.score);
  object.emplace_back("log_probability", made.log_probability);
  object.emplace_back("tokens", made.tokens);
  if (!alignments) return object;
  Json::Array links;
  for (const auto& [source, target] : made.alignment) links.push_back(Json::Array{source, target});
  object.emplace_back("alignment", std::move(links));
  return object;
}

}  // namespace

std::string translation_json(std::string_view source, std::span<const TranslatedText> all,
                             const TranslationOptions& options) {
  Json::Object object;
  object.emplace_back("source", source);
  for (auto& member : translation_object(all[0], options.alignments)) {
    object.push_back(std::move(member));
  }
  if (options.search.nbest > 1) {
    Json::Array best;
    for (const TranslatedText& made : all) {
      best.push_back(translation_object(made, options.alignments));
    }
    object.emplace_back("nbest", std::move(best));
  }
  return Json(std::move(object)).line();
}

}  // namespace fovea

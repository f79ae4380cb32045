// SPDX-License-Identifier: Apache-2.0
#include "experiments/imdb_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "fovea/base/check.h"
#include "fovea/base/words.h"
#include "fovea/grad/tape.h"
#include "fovea/report/heat_map.h"
#include "fovea/text/compressed.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

constexpr std::string_view kFiltered = "!\"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\t\n";
constexpr token kBeforeFirstWord = 3;  // the id of rank 0, which no word has

struct WordCount {
  std::string_view word;
  index count, first_seen;
};

constexpr std::size_t kFewestWords = 30, kMostWords = 60;

}  // namespace

Reviews read_reviews(const std::filesystem::path& file) {
  const std::string text = read_text_file(file.string());
  Reviews reviews;
  std::string_view rest = text;
  for (index line = 1; !rest.empty(); ++line) {
    const std::string_view row = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(row.size() + 1, rest.size()));
    if (row.size() < 2 || row[1] != '\t' || (row[0] != '0' && row[0] != '1')) {
      throw Error(ErrorCode::kInputFormat,
                  fmt::format("{}:{}: expected 0 or 1, a TAB and a text", file.string(), line),
                  "each line is a review, after its label");
    }
    reviews.labels.push_back(row[0] - '0');
    reviews.texts.emplace_back(row.substr(2));
  }
  return reviews;
}

std::vector<std::string> keras_words(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  const auto end_word = [&] {
    if (!word.empty()) words.push_back(std::move(word));
    word.clear();
  };
  while (!text.empty()) {
    const DecodedCharacter c = decode_character(text);
    const std::string_view bytes = text.substr(0, static_cast<std::size_t>(c.length));
    text.remove_prefix(bytes.size());
    if (bytes == " " || (bytes.size() == 1 && kFiltered.find(bytes[0]) != kFiltered.npos)) {
      end_word();
    } else {
      append_utf8(word, lower_character(c.value));
    }
  }
  end_word();
  return words;
}

KerasVocabulary::KerasVocabulary(std::span<const std::string> texts, index size) : size_(size) {
  KeyedMap<std::string, std::size_t> places;
  std::vector<index> counts;
  for (const std::string& text : texts) {
    for (std::string& word : keras_words(text)) {
      const auto [entry, is_new] = places.try_emplace(std::move(word), counts.size());
      if (is_new) counts.push_back(0);
      ++counts[entry->second];
      ++words_;
    }
  }
  std::vector<WordCount> order;
  for (const auto& [word, place] : places) {
    order.push_back({word, counts[place], static_cast<index>(place)});
  }
  std::sort(order.begin(), order.end(), [](const WordCount& a, const WordCount& b) {
    return a.count != b.count ? a.count > b.count : a.first_seen < b.first_seen;
  });
  for (const WordCount& one : order) {
    const index rank = distinct_words() + 1;
    if (rank + kBeforeFirstWord < size) rarest_kept_ = one.count;
    ranks_.emplace(one.word, rank);
  }
}

std::vector<token> KerasVocabulary::encode(std::string_view text) const {
  std::vector<token> ids{kKerasStart};
  for (const std::string& word : keras_words(text)) {
    const auto found = ranks_.find(word);
    const index id = found == ranks_.end() ? size_ : found->second + kBeforeFirstWord;
    ids.push_back(id < size_ ? static_cast<token>(id) : kKerasUnknown);
  }
  return ids;
}

std::vector<token> last_ids(std::span<const token> ids, index length, bool pad) {
  const auto asked = static_cast<std::size_t>(length);
  const std::span<const token> last = ids.last(std::min(ids.size(), asked));
  std::vector<token> window(pad ? asked - last.size() : 0, kKerasPad);
  window.insert(window.end(), last.begin(), last.end());
  return window;
}

ShownReview choose_review(const Reviews& reviews, const KerasVocabulary& vocabulary) {
  check(!reviews.texts.empty(), "reviews: there are none to show");
  std::size_t chosen = 0;
  for (std::size_t i = 0; i < reviews.texts.size(); ++i) {
    const std::size_t words = keras_words(reviews.texts[i]).size();
    if (reviews.labels[i] != 1 || words < kFewestWords || words > kMostWords) continue;
    chosen = i;
    break;
  }
  ShownReview review{vocabulary.encode(reviews.texts[chosen]), keras_words(reviews.texts[chosen])};
  review.words.insert(review.words.begin(), "(start)");
  return review;
}

ShownReview window_of(const ShownReview& review, index length, bool pad) {
  ShownReview window{.ids = last_ids(review.ids, length, pad), .words = review.words};
  const auto kept = static_cast<std::ptrdiff_t>(std::min(review.ids.size(), window.ids.size()));
  window.words.erase(window.words.begin(), window.words.end() - kept);
  window.padding = static_cast<index>(window.ids.size()) - kept;
  return window;
}

std::string draw_review_attention(const Context& context, const Classifier& model,
                                  const ShownReview& review, std::string_view title) {
  const auto M = static_cast<index>(review.ids.size());
  const index P = review.padding, words = M - P;
  check(model.attentions() == 1 && static_cast<index>(review.words.size()) == words,
        "a heat map of a review: expected one attention and a word for each of {} ids; got {}, {}",
        words, model.attentions(), review.words.size());
  const std::array<std::int32_t, 2> offsets{0, static_cast<std::int32_t>(M)};
  HeadStatistics seen{.sees_keys = true};
  Tape tape(context, TapeMode::kInference);
  model.logits(tape, {.ids = {review.ids.data(), M}, .offsets = {offsets.data(), 2}},
               {.attention = {&seen, 1}});
  HeatMap map{.title = std::string(title),
              .subtitle = "mean weight of each word over the queries of a review, for each head",
              .columns = review.words,
              .values = {}};
  if (P > 0) map.columns.insert(map.columns.begin(), "(padding)");
  const auto heads = static_cast<index>(seen.received.size()) / M;
  for (index head = 0; head < heads; ++head) {
    map.rows.push_back(fmt::format("head {}", head + 1));
    const double* const weights = seen.received.data() + head * M;
    if (P > 0) map.values.push_back(std::accumulate(weights, weights + P, 0.0));
    map.values.insert(map.values.end(), weights + P, weights + M);
  }
  for (double& weight : map.values) weight /= static_cast<double>(M);
  return draw_heat_map(map);
}

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
// Writes the pages that tests/pages looks at in a browser, and the weights that each must show:
//
//   fovea_test_pages FOLDER                          NAME.html and NAME.f32 (floats, map after map)
//   fovea_test_pages FILE LAYERS HEADS TOKENS full|causal     one large page, and FILE.f32
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/file.h"
#include "fovea/report/attention_page.h"

namespace {

using fovea::AttentionMap;
using fovea::AttentionPage;
using Index = fovea::index;

// In (0, 1], the same on every machine.
class Uniform {
 public:
  double operator()() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return (static_cast<double>(state_ >> 40) + 1) / (1 << 24);
  }

 private:
  std::uint64_t state_ = 20;
};

// A row that may be any point of the simplex, all as likely: the hardest to store.
void fill_row(Uniform& uniform, float* row, Index kept) {
  double sum = 0;
  std::vector<double> parts(static_cast<std::size_t>(kept));
  for (double& part : parts) sum += part = -std::log(uniform());
  for (Index key = 0; key < kept; ++key) {
    row[key] = static_cast<float>(parts[static_cast<std::size_t>(key)] / sum);
  }
}

AttentionMap map_of(Uniform& uniform, Index heads, Index queries, Index keys, bool causal) {
  AttentionMap map{.heads = heads};
  map.weights.resize(static_cast<std::size_t>(heads * queries * keys));
  for (Index line = 0; line < heads * queries; ++line) {
    fill_row(uniform, map.weights.data() + line * keys, causal ? line % queries + 1 : keys);
  }
  return map;
}

void write(const std::string& path, const AttentionPage& page,
           const fovea::PageLimits& limits = {}) {
  std::string floats;
  for (const AttentionMap& map : page.maps) {
    floats.append(reinterpret_cast<const char*>(map.weights.data()),
                  map.weights.size() * sizeof(float));
  }
  fovea::write_file_atomically(path + ".html", fovea::draw_attention_page(page, limits));
  fovea::write_file_atomically(path + ".f32", floats);
}

AttentionPage page_of(const std::vector<std::string>& tokens, Index layers, Index heads,
                      bool causal) {
  Uniform uniform;
  AttentionPage page{.title = "A small page"};
  page.texts = {{.name = "text", .tokens = tokens}};
  const auto length = static_cast<Index>(tokens.size());
  for (Index layer = 1; layer <= layers; ++layer) {
    page.maps.push_back(map_of(uniform, heads, length, length, causal));
    page.maps.back().name = "layer " + std::to_string(layer);
  }
  return page;
}

std::vector<std::string> numbered(Index count) {
  std::vector<std::string> tokens;
  for (Index n = 0; n < count; ++n) tokens.push_back("w" + std::to_string(n));
  return tokens;
}

void write_hostile(const std::string& folder) {
  AttentionPage page =
      page_of({"</script><script>window.broken=1</script>", "<img src=x onerror=window.broken=1>",
               "\u202Eright to left", std::string(10240, 'x'),
               "\u05E9\u05DC\u05D5\u05DD \u0645\u0631\u062D\u0628\u0627",
               "\xF0\x9F\x91\xA9\u200D\xF0\x9F\x91\xA7", "\xFF\xFE", "", " ", "\n", "]]>--><!--",
               "\u2028{{0}}\"'\\", "\u597D"},
              1, 2, true);
  page.title = "</title><script>window.broken=1</script>";
  page.facts = {{"<b>file</b>", "\"><img src=x onerror=window.broken=1>"}};
  page.saliency = {{"<i>", "</p><script>window.broken=1</script>", 0,
                    std::vector<float>(page.texts[0].tokens.size(), -.5F)}};
  page.prediction = {{"</td><img src=x onerror=window.broken=1>", .75}};
  page.maps[0].name = "<option>";
  write(folder + "/hostile", page);
}

// Of numbers: a layer over time with the mean and two joints, one over the joints, the pooling.
void write_numbers(const std::string& folder) {
  Uniform uniform;
  AttentionPage page{.title = "A sample", .is_of_numbers = true};
  page.texts = {{.name = "time step", .tokens = {"4", "5", "6", "7"}, .positions = {4, 5, 6, 7}},
                {.name = "joint", .tokens = {"0", "1"}, .positions = {0, 1}}};
  for (Index part = 0; part < 3; ++part) {
    AttentionMap& map = page.maps.emplace_back(map_of(uniform, 2, 4, 4, false));
    map.name = "layer 1";
    map.part = part == 0 ? "mean of 2 joints" : "joint " + std::to_string(part - 1);
    map.is_of_layer_before = part > 0;
    map.rows_are = "query time step";
    map.columns_are = "key time step";
  }
  AttentionMap& joints = page.maps.emplace_back(map_of(uniform, 1, 2, 2, false));
  joints.name = "layer 2";
  joints.query_text = joints.key_text = 1;
  joints.has_distances = false;
  AttentionMap& pooling = page.maps.emplace_back(map_of(uniform, 1, 2, 4, false));
  pooling.name = "pooling";
  pooling.query_text = 1;
  pooling.has_distances = false;
  pooling.rows_are = "joint";
  pooling.columns_are = "time step";
  page.saliency = {{"gradient x input", "Shrikumar et al. 2016", 0, {.1F, -.9F, .3F, 0}}};
  page.tables = {{"gradient x input",
                  "Shrikumar et al. 2016",
                  "joint",
                  "time step",
                  1,
                  0,
                  {.1F, -.4F, .3F, 0, 0, -.5F, 0, 0}}};
  page.prediction = {{"wave", .875}, {"push", .125}};
  write(folder + "/numbers", page);
}

void write_all(const std::string& folder) {
  AttentionPage plain = page_of({"the", "cat", "sat", "on", "the", "mat", "."}, 2, 3, true);
  plain.facts = {{"Model", "a test"}};
  plain.saliency = {
      {"gradient x input", "Shrikumar et al. 2016", 0, {.1F, .9F, -.3F, 0, .2F, .5F, 0}}};
  plain.prediction = {{"animals", .875}, {"other", .125}};
  plain.tiles = {"#/.", "##/"};
  write(folder + "/plain", plain);

  AttentionPage chinese = plain;
  chinese.language = fovea::PageLanguage::kChinese;
  chinese.title = "\u4E00\u4E2A\u5C0F\u9875\u9762";
  chinese.texts[0].tokens = {"\u4ECA\u5929", "\u7684", "\u7535\u5F71", "\u975E\u5E38",
                             "\u597D",       "\u770B", "\u3002"};
  write(folder + "/chinese", chinese);

  AttentionPage crossed = page_of({"ein", "Haus"}, 1, 1, false);
  Uniform uniform;
  crossed.texts.push_back({.name = "source", .tokens = {"a", "big", "house"}});
  crossed.maps.push_back(map_of(uniform, 4, 2, 3, false));
  crossed.maps.back().key_text = 1;
  crossed.maps.back().name = "cross-attention";
  for (float& weight : crossed.maps.back().weights) weight = 30 * weight - 16;
  crossed.rows_sum_to_one = crossed.has_entropies = false;
  write(folder + "/signed", crossed);

  write(folder + "/cut", page_of(numbered(40), 2, 4, false), {.fine = 0, .most = 60'000});
  write_hostile(folder);
  write_numbers(folder);
}

}  // namespace

int main(int count, char** words) {
  if (count == 2) {
    write_all(words[1]);
  } else if (count == 6) {
    const auto number = [&](int word) { return static_cast<Index>(std::atoll(words[word])); };
    write(words[1], page_of(numbered(number(4)), number(2), number(3),
                            std::string_view(words[5]) == "causal"));
  } else {
    std::cerr << "usage: fovea_test_pages FOLDER | FILE LAYERS HEADS TOKENS full|causal\n";
    return 2;
  }
  return 0;
}

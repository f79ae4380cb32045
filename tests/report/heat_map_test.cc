// SPDX-License-Identifier: Apache-2.0
#include "fovea/report/heat_map.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "tests/report/xml.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

using testing::HasSubstr;

HeatMap small() {
  return {.title = "what heads look at",
          .rows = {"head 1", "head 2"},
          .columns = {"a", "好", "<film>"},
          .values = {.5, .25, .25, 0, 1, 0}};
}

TEST(HeatMap, ShadesByTheShareOfTheLargestValue) {
  const std::string svg = draw_heat_map(small());
  EXPECT_EQ(xml_error(svg), "");
  EXPECT_THAT(svg, HasSubstr("fill-opacity=\"0.500\"><title>head 1, a: 0.5</title>"));
  EXPECT_THAT(svg, HasSubstr("fill-opacity=\"1.000\"><title>head 2, 好: 1</title>"));
  EXPECT_THAT(svg, HasSubstr("fill-opacity=\"0.000\"><title>head 2, &lt;film&gt;: 0</title>"));
  EXPECT_EQ(svg, draw_heat_map(small()));
}

TEST(HeatMap, SingleCharactersAndChineseWordsStandUpright) {
  HeatMap map = small();
  map.columns = {"a", "电影", "film"};
  const std::string svg = draw_heat_map(map);
  const std::size_t turned = svg.find("rotate(-90");
  ASSERT_NE(turned, std::string::npos);
  EXPECT_GT(turned, svg.find(">a</text>"));
  EXPECT_GT(turned, svg.find(">影</text>"));  // below its first character
  EXPECT_LT(svg.find(">电</text>"), svg.find(">影</text>"));
  EXPECT_LT(turned, svg.find(">film</text>"));
  EXPECT_EQ(svg.find("rotate(-90", turned + 1), std::string::npos);
}

TEST(HeatMap, IsWellFormedWhateverTheNamesHold) {
  HeatMap map = small();
  map.title = map.rows[0] = map.columns[2] = "\xFF<&\"\x01]]>'";
  map.columns[1] = std::string(300, 'x');
  const std::string svg = draw_heat_map(map);
  EXPECT_EQ(xml_error(svg), "");
  EXPECT_THAT(svg, HasSubstr(">xxxxxxxxxxxxxxx...</text>"));
}

TEST(HeatMap, NothingButZerosHasNoShade) {
  HeatMap map = small();
  map.values.assign(6, 0);
  EXPECT_THAT(draw_heat_map(map), testing::Not(HasSubstr("nan")));
}

TEST(HeatMap, RefusesWhatIsNoMatrixOfWeights) {
  HeatMap map = small();
  map.values.pop_back();
  EXPECT_THROWS(draw_heat_map(map), kShape, "5 values for 2 rows and 3 columns");
  map.values.push_back(-1);
  EXPECT_THROWS(draw_heat_map(map), kShape, "a value is -1");
  map.values.back() = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROWS(draw_heat_map(map), kShape, "a value is nan");
  map.rows.clear();
  EXPECT_THROWS(draw_heat_map(map), kShape, "there are 0 rows");
}

}  // namespace
}  // namespace fovea

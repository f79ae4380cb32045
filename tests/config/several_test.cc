// SPDX-License-Identifier: Apache-2.0
// Fields that are several numbers, or several values of an enum.
#include <gmock/gmock.h>

#include "fovea/config/flags.h"
#include "fovea/config/json.h"
#include "fovea/config/toml.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

enum class Colour { kRed, kBlue };
constexpr EnumName<Colour> kColourNames[] = {{Colour::kRed, "red"}, {Colour::kBlue, "blue"}};
std::span<const EnumName<Colour>> enum_names(Colour) { return kColourNames; }

struct Columns {
  std::vector<index> numbers = {0};
  std::vector<Colour> colours = {Colour::kRed};

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("numbers", numbers, "numbers");
    visit("colours", colours, "colours");
  }
  bool operator==(const Columns&) const = default;
};

void set(Columns& columns, std::size_t field, const std::string& text) {
  std::vector<Field> fields = fields_of(columns);
  set_from_text(fields[field], text, "--it");
}

TEST(Several, IsSetFromTextWithCommas) {
  Columns c;
  set(c, 0, "2,+3,-4");
  set(c, 1, "blue,red,blue");
  EXPECT_THAT(c.numbers, ElementsAre(2, 3, -4));
  EXPECT_THAT(c.colours, ElementsAre(Colour::kBlue, Colour::kRed, Colour::kBlue));
  EXPECT_EQ(value_text(fields_of(c)[0]), "2,3,-4");
  EXPECT_EQ(value_text(fields_of(c)[1]), "blue,red,blue");
  const Columns before = c;
  for (const char* bad :
       {"", ",", "2,", ",2", "2,,3", "2;3", "2.5", "x", "2, 3", "9223372036854775808"}) {
    EXPECT_THROWS(set(c, 0, bad), kOptionValue, "--it: expected whole numbers with commas; got");
  }
  for (const char* bad : {"", "green", "red,", "red,green", "Red"}) {
    EXPECT_THROWS(set(c, 1, bad), kOptionValue,
                  "--it: expected some of, with commas: red, blue; got");
  }
  EXPECT_EQ(c, before);
}

TEST(Several, OfOneValueIsWrittenAsAValueAlone) {
  Columns c;
  EXPECT_EQ(to_json_line(c), R"({"numbers":0,"colours":"red"})");
  EXPECT_THAT(toml_text(fields_of(c)), HasSubstr("numbers = 0\n"));
  EXPECT_THAT(toml_text(fields_of(c)), HasSubstr("colours = 'red'\n"));
  c.numbers = {2, -3};
  c.colours = {Colour::kBlue, Colour::kRed};
  EXPECT_EQ(to_json_line(c), R"({"numbers":[2,-3],"colours":["blue","red"]})");
  EXPECT_THAT(toml_text(fields_of(c)), HasSubstr("numbers = '2,-3'\n"));
  EXPECT_THAT(toml_text(fields_of(c)), HasSubstr("colours = 'blue,red'\n"));
}

TEST(Several, ComesBackFromJsonAndToml) {
  for (const Columns& c : {Columns{}, Columns{{5}, {Colour::kBlue}},
                           Columns{{2, -3}, {Colour::kBlue, Colour::kRed}}}) {
    Columns json, toml, copy = c;
    from_json(to_json(c), {"it"}, json);
    EXPECT_EQ(json, c);
    set_from_toml(fields_of(toml), toml_text(fields_of(copy)), "it");
    EXPECT_EQ(toml, c);
  }
  Columns c;
  set_from_toml(fields_of(c), "colours = [\"blue\", \"red\"]", "it");
  EXPECT_THAT(c.colours, ElementsAre(Colour::kBlue, Colour::kRed));
}

TEST(Several, RefusesOtherJson) {
  for (const char* bad :
       {R"({"numbers":[]})", R"({"numbers":[1.5]})", R"({"numbers":null})", R"({"numbers":["x"]})",
        R"({"numbers":[[1]]})", R"({"numbers":true})", R"({"numbers":18446744073709551615})",
        R"({"colours":3})", R"({"colours":["red",3]})", R"({"colours":["green"]})"}) {
    Columns c;
    EXPECT_THROWS(from_json(bad, {"it"}, c, MissingKeys::kKeepTheirValue), kConfig, "expected");
    EXPECT_EQ(c, Columns{});
  }
}

TEST(Several, IsAnOptionOfOneValue) {
  Columns c;
  const std::vector<Flag> flags = flags_of(fields_of(c));
  EXPECT_EQ(flags[0].kind, FlagKind::kValue);
  EXPECT_EQ(flags[0].placeholder, "N");
  EXPECT_EQ(flags[1].placeholder, "red|blue");
  EXPECT_EQ(flags[1].default_text, "red");
}

}  // namespace
}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
#include "fovea/base/fields.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "tests/support/throws.h"

namespace fovea {
namespace {

enum class Colour { kRed, kGreen };
inline constexpr EnumName<Colour> kColourNames[] = {{Colour::kRed, "red"},
                                                    {Colour::kGreen, "green"}};
inline auto enum_names(Colour) { return std::span(kColourNames); }
inline constexpr EnumName<Colour> kColourAliases[] = {{Colour::kRed, "crimson"}};
inline auto enum_aliases(Colour) { return std::span(kColourAliases); }

struct Settings {
  int layers = 4;
  double rate = 0.5;
  Colour colour = Colour::kGreen;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("layers", layers, "number of layers");
    visit("rate", rate, "learning rate");
    visit("colour", colour, "colour of the curve");
  }
};

TEST(Fields, OneListServesReadingAndWriting) {
  Settings settings;
  std::vector<std::string> seen;
  settings.visit_fields([&](std::string_view name, auto& field, std::string_view help) {
    if constexpr (std::is_enum_v<std::remove_reference_t<decltype(field)>>) {
      seen.push_back(fmt::format("{}={} ({})", name, to_string(field), help));
      field = enum_from_name<Colour>("red");
    } else {
      seen.push_back(fmt::format("{}={} ({})", name, field, help));
      field *= 2;
    }
  });
  EXPECT_THAT(seen, testing::ElementsAre("layers=4 (number of layers)", "rate=0.5 (learning rate)",
                                         "colour=green (colour of the curve)"));
  EXPECT_EQ(settings.layers, 8);
  EXPECT_EQ(settings.rate, 1.0);
  EXPECT_EQ(settings.colour, Colour::kRed);
}

TEST(EnumNames, GoBothWays) {
  for (const auto& [value, name] : kColourNames) {
    EXPECT_EQ(to_string(value), name);
    EXPECT_EQ(enum_from_name<Colour>(name), value);
  }
}

TEST(EnumNames, AnAliasIsReadAndNotWritten) {
  EXPECT_EQ(enum_from_name<Colour>("crimson"), Colour::kRed);
  EXPECT_EQ(to_string(Colour::kRed), "red");
}

TEST(EnumNames, AnUnknownOneIsRefusedWithTheListOfThoseThereAre) {
  EXPECT_THROWS(enum_from_name<Colour>("blue"), kOptionValue, "'blue' is not one of: red, green");
  EXPECT_THROWS(enum_from_name<Colour>(""), kOptionValue, "'' is not one of: red, green");
}

}  // namespace
}  // namespace fovea

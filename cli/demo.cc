// SPDX-License-Identifier: Apache-2.0
// fovea demo: the examples of two articles (docs/articles).
#include <fmt/core.h>

#include <cstdint>
#include <string>

#include "cli/commands.h"
#include "cli/language.h"
#include "cli/options.h"
#include "cli/output.h"
#include "experiments/article_demo.h"
#include "fovea/base/option.h"
#include "fovea/config/json.h"
#include "fovea/text/utf8.h"

namespace fovea::cli {

namespace {

struct DemoOptions {
  std::uint64_t seed = 0;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("seed", seed, "seed of the random numbers, which are those after torch.manual_seed(N)");
  }
};

// Runs the example, multi_head_demo or padding_demo.
template <auto kRun>
void show(const Context& context, const DemoOptions& options, bool json) {
  const auto demo = kRun(context, options.seed);
  if (!json) {
    print(demo_text(demo, language()));
    return;
  }
  const Json::Object object{{"seed", static_cast<index>(demo.seed)},
                            {"input", Json::Array(demo.input.begin(), demo.input.end())},
                            {"shape", Json::Array(demo.shape.begin(), demo.shape.end())},
                            {"output", Json::Array(demo.output.begin(), demo.output.end())},
                            {"weights", Json::Array(demo.weights.begin(), demo.weights.end())}};
  print_json(object);
}

struct ArticleDemo {
  std::string_view name;        // of the article's page in docs/articles
  std::string_view older_name;  // which still works
  void (*show)(const Context& context, const DemoOptions& options, bool json);
};

constexpr ArticleDemo kDemos[] = {{"transformer-3", "s1", show<multi_head_demo>},
                                  {"padding-mask", "s3", show<padding_demo>}};

std::string_view newer_name(std::string_view name) {
  for (const ArticleDemo& demo : kDemos) {
    if (demo.older_name == name) return demo.name;
  }
  return name;
}

int demo(const Arguments& arguments) {
  begin_command(arguments);
  const std::string name = arguments.text("NAME");
  DemoOptions options;
  read_options(arguments, options);
  const Context context = context_of(arguments);
  const ArticleDemo* const found = find_named(kDemos, newer_name(name));
  if (found == nullptr) {
    throw Error(ErrorCode::kUsage, fmt::format("demo: there is no {}", excerpt(name)),
                fmt::format("name one of: {}", names_in(kDemos)));
  }
  found->show(context, options, arguments.on("json"));
  return 0;
}

}  // namespace

Command demo_command() {
  return {
      .name = "demo",
      .summary = "Runs the example of an article and prints the shape of every step.",
      .positionals = {{.name = "NAME",
                       .help = "transformer-3: multi-head attention; padding-mask",
                       .choices = names_in(kDemos, "|")}},
      .options = joined(
          {{json_option("print seed, input, shape, output and weights as one JSON object", "Run")},
           options_of(DemoOptions(), "Run"),
           {threads_option()},
           message_options()}),
      .epilog = R"(Examples:
  fovea demo transformer-3   multi-head attention with a causal mask: [6, 3, 8]
  fovea demo padding-mask    attention with a boolean padding mask: [2, 5, 64]

The inputs are random numbers of a seed, and so the same every time: those that
PyTorch draws after torch.manual_seed(N).)",
      .run = demo};
}

}  // namespace fovea::cli

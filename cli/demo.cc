// SPDX-License-Identifier: Apache-2.0
// fovea demo: the examples of two of the source articles.
#include <fmt/core.h>

#include <string>

#include "cli/commands.h"
#include "cli/messages.h"
#include "cli/output.h"
#include "cli/threads.h"
#include "fovea/config/json.h"
#include "fovea/task/article_demo.h"
#include "fovea/text/utf8.h"

namespace fovea::cli {

namespace {

template <class Demo>
void show(const Demo& demo, bool json) {
  if (!json) {
    print(demo_text(demo));
    return;
  }
  const Json::Object object{{"shape", Json::Array(demo.shape.begin(), demo.shape.end())},
                            {"output", Json::Array(demo.output.begin(), demo.output.end())},
                            {"weights", Json::Array(demo.weights.begin(), demo.weights.end())}};
  print(Json(object).line() + "\n");
}

}  // namespace

CommandSpec demo_spec() {
  CommandSpec spec{.name = "demo",
                   .summary = "Runs the example of an article and prints the shape of every step.",
                   .positionals = {{"NAME", "s1: multi-head attention; s3: a padding mask"}},
                   .options = {{"json", OptionKind::kFlag, "",
                                "print shape, output and weights as one JSON object", "Run", ""}},
                   .epilog = R"(Examples:
  fovea demo s1     multi-head attention with a causal mask: [6, 3, 8]
  fovea demo s3     attention with a boolean padding mask: [2, 5, 64]

The inputs are random numbers of a fixed seed, and so the same every time.)"};
  spec.options.push_back(threads_option());
  for (OptionSpec& option : message_options()) spec.options.push_back(std::move(option));
  return spec;
}

int demo(const Arguments& arguments) {
  set_messages_from(arguments);
  const std::string name = arguments.text("NAME");
  const Context context = context_of(arguments);
  if (name == "s1") {
    show(multi_head_demo(context), arguments.on("json"));
  } else if (name == "s3") {
    show(padding_demo(context), arguments.on("json"));
  } else {
    throw Error(ErrorCode::kUsage, fmt::format("demo: there is no {}", excerpt(name)),
                "name one of: s1, s3");
  }
  return 0;
}

}  // namespace fovea::cli

// SPDX-License-Identifier: Apache-2.0
// Several calls of attention, float32 or (--precision=bf16) bfloat16, timed in turns in one
// process:
//
//   fovea_bench_attention THREADS CALL [-- CALL ...]
//   CALL: B,T,S,H,G,D,Dv [+TENSOR ...] [--OPTION[=VALUE] ...]
//   fovea_bench_attention --tensors    the tensors of the table of parts that go with any score
//
// OPTIONs and TENSORs are those of `fovea attention`: a part of a call that gets its row there can
// be timed here. Operands are random; so is what is named with +, whose axes of size "N or 1" are 1
// for the batch and N for all others. +key_lengths and +query_lengths spread the lengths evenly
// over (0, T]. --lambda adds a lambda with a tanh and a parameter that is learned; --forward leaves
// out the backward. --calls=N is a loop over N such calls, each with tensors of its own, timed as a
// whole. One line of JSON comes back; seconds are medians over the rounds.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/clock.h"
#include "fovea/base/machine.h"
#include "fovea/base/random.h"
#include "fovea/config/flags.h"
#include "fovea/config/json.h"
#include "fovea/operator/attention_call.h"
#include "fovea/parts/part_table.h"
#include "fovea/simd/isa.h"
#include "fovea/simd/peak.h"

namespace fovea {
namespace {

constexpr double kSecondsOfARound = 0.05, kSecondsInAll = 6;
constexpr int kMostRounds = 15;

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> words;
  std::istringstream stream(text);
  for (std::string word; std::getline(stream, word, at);) words.push_back(word);
  return words;
}

using SizeOf = std::map<std::string, index>;

SizeOf sizes_of(const std::string& text) {
  static constexpr std::array kNames = {"B", "T", "S", "H", "G", "D", "Dv"};
  const std::vector<std::string> numbers = split(text, ',');
  if (numbers.size() != kNames.size()) throw Error(ErrorCode::kUsage, "sizes: B,T,S,H,G,D,Dv", "");
  SizeOf sizes;
  for (std::size_t n = 0; n < kNames.size(); ++n) sizes[kNames[n]] = std::stol(numbers[n]);
  sizes["buckets"] = 32;
  sizes["s"] = 16;
  return sizes;
}

Shape shape_of(const TensorSpec& spec, const SizeOf& sizes) {
  std::vector<index> shape;
  for (const std::string& word : split(std::string(spec.axes), ' ')) {
    const AxisWord axis = axis_word(word);
    const index size = axis.letter.empty() ? 0 : sizes.at(std::string(axis.letter));
    shape.push_back(word == "B|1" ? 1 : axis.size(size));
  }
  return Shape(shape);
}

Tensor values_of(const TensorSpec& spec, const SizeOf& sizes, std::uint64_t number) {
  const bool real = spec.values == TensorValues::kReal;
  Tensor tensor(shape_of(spec, sizes), real ? DType::kFloat32 : DType::kInt32);
  const index count = tensor.size();
  Random random(1, RandomUse::kTest, number);
  for (index n = 0; n < count; ++n) {
    if (real) {
      tensor.data<float>()[n] = static_cast<float>(random.normal());
    } else {
      tensor.data<std::int32_t>()[n] = static_cast<std::int32_t>(sizes.at("T") * (n + 1) / count);
    }
  }
  return tensor;
}

// One call, ready to run: it stays where it is.
struct Timed {
  SizeOf sizes;
  AttentionSettings settings;
  bool has_lambda = false, has_backward = true;
  int calls = 1;
  std::vector<std::unique_ptr<Timed>> others;  // of a loop, behind the first
  std::unique_ptr<AttentionTensors> tensors;
  std::unique_ptr<AttentionCall<float>> call;
  std::array<float, 1> learned = {5}, dlearned = {};
  std::function<void(const Context&)> forward, backward;
  std::function<AttentionPlan(const Context&)> plan;
  int repeats = 1;
  std::vector<double> forwards, backwards;

  explicit Timed(const std::vector<std::string>& words);
  void time(const Context& ctx);
  Json json(const Context& ctx) const;

 private:
  template <class T>
  void bind();
  void read(const std::vector<std::string>& words, std::vector<std::string>& names);
};

void Timed::read(const std::vector<std::string>& words, std::vector<std::string>& names) {
  std::vector<Field> fields = fields_of(settings);
  for (const std::string& word : words) {
    if (word.starts_with("+")) {
      names.push_back(word.substr(1));
    } else if (word == "--lambda") {
      has_lambda = true;
    } else if (word == "--forward") {
      has_backward = false;
    } else if (word.starts_with("--calls=")) {
      calls = std::stoi(word.substr(word.find('=') + 1));
    } else if (word.starts_with("--")) {
      const std::size_t equals = std::min(word.find('='), word.size());
      const std::string name = word.substr(2, equals - 2);
      std::vector<Flag> flags = flags_of(fields);
      const auto flag = std::find_if(flags.begin(), flags.end(),
                                     [&](const Flag& one) { return one.name == name; });
      if (flag == flags.end()) throw Error(ErrorCode::kUsage, word + ": no such option", "");
      const bool bare = equals == word.size();
      flag->set(std::vector<std::string>{bare ? "true" : word.substr(equals + 1)});
    } else {
      sizes = sizes_of(word);
    }
  }
}

Timed::Timed(const std::vector<std::string>& words) {
  std::vector<std::string> names = {"q", "k", "v", "do"};
  read(words, names);
  settings.backward = has_backward;
  std::vector<NamedTensor> all;
  for (const std::string& name : names) {
    const auto specs = attention_tensor_specs();
    const auto spec = std::find_if(specs.begin(), specs.end(),
                                   [&](const TensorSpec& one) { return one.name == name; });
    if (spec == specs.end()) throw Error(ErrorCode::kUsage, name + ": no such tensor", "");
    all.push_back({name, values_of(*spec, sizes, all.size())});
  }
  tensors = std::make_unique<AttentionTensors>(all, attention_tensor_specs(), "bench");
  call = std::make_unique<AttentionCall<float>>(settings, *tensors);
  if (has_lambda) {
    call->add(bias::of(bias::Learned<float, 1>{learned, dlearned},
                       [](auto s, const auto& a) { return a[0] * tanh(s / a[0]); }));
  }
  if (settings.precision == AttentionPrecision::kBFloat16) {
    bind<BFloat16>();
  } else {
    bind<float>();
  }
  std::vector<std::string> alone = words;
  std::erase_if(alone, [](const std::string& word) { return word.starts_with("--calls="); });
  while (static_cast<int>(others.size()) + 1 < calls) {
    others.push_back(std::make_unique<Timed>(alone));
  }
}

// T: of the rows.
template <class T>
void Timed::bind() {
  const AttentionInputs<T> in = call->template inputs<T>();
  const auto& [q, k, v] = in;
  AttentionOutputs<T> outputs;
  outputs.o = call->template view_out<T>("o", q.length, q.heads, v.width);
  if (std::holds_alternative<norm::Softmax>(call->attention.norm)) {
    outputs.lse = call->rows_out("lse");
    // As training saves it. Without it, the backward computes the scores of large lse once more.
    outputs.lse_low = call->rows_out("lse_low");
  }
  const AttentionSaved<T> saved = {outputs.o, outputs.lse, call->template view<T>("do"),
                                   outputs.lse_low};
  const AttentionGradients<T> gradients = {
      call->template view_out<T>("dq", q.length, q.heads, q.width),
      call->template view_out<T>("dk", k.length, k.heads, k.width),
      call->template view_out<T>("dv", v.length, v.heads, v.width)};
  forward = [=, this](const Context& ctx) { attention_forward(ctx, call->attention, in, outputs); };
  backward = [=, this](const Context& ctx) {
    attention_backward(ctx, call->attention, in, saved, gradients);
  };
  plan = [=, this](const Context& ctx) { return attention_plan(ctx, call->attention, in); };
}

double seconds_of(const std::function<void()>& work, int repeats) {
  const double begin = monotonic_seconds();
  for (int n = 0; n < repeats; ++n) work();
  return (monotonic_seconds() - begin) / repeats;
}

void Timed::time(const Context& ctx) {
  const auto seconds_of_all = [&](std::function<void(const Context&)> Timed::*work) {
    return seconds_of(
        [&] {
          (this->*work)(ctx);
          for (const auto& other : others) (other.get()->*work)(ctx);
        },
        repeats);
  };
  forwards.push_back(seconds_of_all(&Timed::forward));
  if (has_backward) backwards.push_back(seconds_of_all(&Timed::backward));
}

Json Timed::json(const Context& ctx) const {
  const AttentionPlan planned = plan(ctx);
  return Json::Object{{"forward_seconds", median(forwards)},
                      {"backward_seconds", median(backwards)},
                      {"kernel", planned.kernel},
                      {"kept_scores", planned.kept_scores}};
}

int run(int threads, const std::vector<std::vector<std::string>>& words) {
  const Context ctx(threads);
  std::vector<std::unique_ptr<Timed>> calls;
  for (const auto& of_call : words) calls.push_back(std::make_unique<Timed>(of_call));
  double once = 0;
  for (auto& timed : calls) {
    timed->time(ctx);  // to warm up, and for the backward to have an o
    const double begin = monotonic_seconds();
    timed->time(ctx);
    const double seconds = monotonic_seconds() - begin;
    timed->repeats = std::clamp(static_cast<int>(kSecondsOfARound / seconds), 1, 1000);
    timed->forwards.clear();
    timed->backwards.clear();
    once += seconds * timed->repeats;
  }
  const int rounds = std::clamp(static_cast<int>(kSecondsInAll / once), 3, kMostRounds);
  std::vector<double> peaks;
  for (int round = 0; round < rounds; ++round) {
    peaks.push_back(fma_gflops(ctx));
    for (auto& timed : calls) timed->time(ctx);
  }
  Json::Array results;
  for (const auto& timed : calls) results.push_back(timed->json(ctx));
  const Json::Object answer = {{"isa", std::string(isa_name(current_isa()))},
                               {"fma_gflops", median(peaks)},
                               {"peak_memory_bytes", peak_memory_bytes()},
                               {"calls", results}};
  fmt::print("{}\n", Json(answer).line());
  return 0;
}

}  // namespace
}  // namespace fovea

int main(int argc, char** argv) {
  try {
    if (argc == 2 && std::string_view(argv[1]) == "--tensors") {
      for (const fovea::AttentionPart& part : fovea::attention_parts()) {
        if (!part.tensor.empty() && !part.score) fmt::print("{}\n", part.tensor);
      }
      return 0;
    }
    if (argc < 3) throw fovea::Error(fovea::ErrorCode::kUsage, "usage: THREADS CALL [-- CALL]", "");
    std::vector<std::vector<std::string>> words(1);
    for (int n = 2; n < argc; ++n) {
      if (std::string_view(argv[n]) == "--") {
        words.emplace_back();
      } else {
        words.back().emplace_back(argv[n]);
      }
    }
    return fovea::run(std::atoi(argv[1]), words);
  } catch (const std::exception& error) {
    fmt::print(stderr, "fovea_bench_attention: {}\n", error.what());
    return 2;
  }
}

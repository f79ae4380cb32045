// SPDX-License-Identifier: Apache-2.0
// E8: is attention alone weak at labelling each word of a sentence, as Su 2018 says?
// Names in English (WNUT 2017) and the words of Chinese (UD Chinese-GSDSimp).
#include "experiments/tag.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "experiments/experiment.h"
#include "fovea/base/check.h"
#include "fovea/base/file.h"
#include "fovea/base/words.h"
#include "fovea/config/json.h"
#include "fovea/report/plot.h"
#include "fovea/task/tag/evaluate.h"
#include "fovea/task/tag/run.h"
#include "fovea/train/history.h"
#include "fovea/train/run_lock.h"

namespace fovea {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kExperiment = "E8";
constexpr const char* kScoreName = "test.json";  // of a run that is finished

constexpr std::array kEncoders = {
    TagModel{"attention-sinusoidal", "transformer,transformer", "sinusoidal"},
    TagModel{"attention-shaw", "transformer,transformer", "shaw-keys"},
    TagModel{"attention-t5", "transformer,transformer", "t5"},
    TagModel{"conv-attention", "conv3,transformer,transformer", "shaw-keys"},
    TagModel{"bilstm-attention", "bilstm,transformer,transformer", "shaw-keys"},
    TagModel{"bilstm", "bilstm"},
    TagModel{"bilstm-linear", "bilstm", "none", true},
    TagModel{"conv-bilstm-linear", "conv3,bilstm", "none", true},
};
// In pictures, with a CRF.
constexpr std::string_view kDrawn = "attention-sinusoidal,attention-shaw,conv-attention,bilstm";
constexpr TagModel kLinear{"linear", "", "none", true};

// The metric that chooses the best epoch.
std::string_view metric_of(const TagExperiment& experiment) {
  if (experiment.task != TagTask::kSegment) return "span_f1";
  return experiment.joint ? "tagged_word_f1" : "word_f1";
}

// A run of the table.
struct TagRun {
  const TagExperiment& experiment;
  const TagModel& model;
  index seed;

  std::string variant() const { return fmt::format("{}-{}", experiment.name, model.variant()); }
};

void learn(const Context& context, const TaggerRun& run, const fs::path& folder,
           const ReproduceObserver& observer) {
  StopWhenAsked watching(observer.stop);
  StartAt start;
  start.resume = run_began(folder);
  if (train_tagger(context, run, folder, std::move(start), watching).stopped) {
    throw ReproduceStopped();
  }
}

class Tags : Reproduction {
 public:
  using Reproduction::Reproduction;

  void run_one(const TagRun& run) const {
    ReproduceRow row = row_of(run);
    row.metric = metric_of(run.experiment);
    const fs::path folder = options_.output / run_name(row);
    tell(run_name(row));
    if (fs::exists(folder / kScoreName) || trains(row, [&] { train_and_test(run, folder); })) {
      report(run, folder);
    }
  }

  // All runs in the folder, also those of earlier calls; a picture has room for four models.
  void draw(const TagExperiment& experiment) const {
    SeedCurves curves(fmt::format("F1 of {}, validation", experiment.joint ? "words with tags"
                                                          : experiment.task == TagTask::kSegment
                                                              ? "words"
                                                              : "names"));
    const std::vector<std::string> names = names_in(options_.output);
    const std::string title = fmt::format("{}-{}", kExperiment, experiment.name);
    for (const TagModel& model : tag_models()) {
      if (model.head != TagHead::kCrf || !has_word(kDrawn, ',', model.name)) continue;
      const std::string begin = fmt::format("{}-{}-seed", title, model.variant());
      for (const std::string& name : names) {
        const fs::path folder = options_.output / name;
        if (!name.starts_with(begin) || !fs::exists(folder / kScoreName)) continue;
        curves.add(title, model.name, validation_of(experiment, folder));
      }
    }
    write_file_atomically(options_.output / (title + ".svg"), draw_svg(curves.plot(title)));
  }

 private:
  static ReproduceRow row_of(const TagRun& run) {
    return {.experiment = std::string(kExperiment),
            .variant = run.variant(),
            .seed = run.seed,
            .metric = {}};
  }

  void train_and_test(const TagRun& run, const fs::path& folder) const {
    create_folders(folder);
    const RunLock lock(folder);
    learn(context_, prepare_run(tag_settings(run.experiment, run.model, run.seed, options_.share)),
          folder, observer_);
    const LoadedTagger model = load_tagger(folder);
    const std::vector<std::string> files = {run.experiment.test.string()};
    std::vector<std::string> notes;
    const std::vector<TaggerScore> score =
        evaluate_tagger(context_, model, files, {.table = model.settings.text.table}, notes);
    write_file_atomically(folder / kScoreName, json_of_scores(score).line() + "\n");
  }

  static std::vector<double> validation_of(const TagExperiment& experiment,
                                           const fs::path& folder) {
    const std::string_view wanted = metric_of(experiment);
    std::vector<double> by_epoch;
    for (const MetricsRecord& record : read_history(folder / "metrics.jsonl").metrics) {
      for (const MetricValue& metric : record.values) {
        if (metric.name == wanted) by_epoch.push_back(metric.value);
      }
    }
    return by_epoch;
  }

  void report(const TagRun& run, const fs::path& folder) const {
    const bool segments = run.experiment.task == TagTask::kSegment, joint = run.experiment.joint;
    const std::string name = (folder / kScoreName).string();
    const Json score = parse_json(read_file(name), {name, ErrorCode::kConfig});
    const auto measured = [&](ReproduceRow row, std::string_view metric, std::string_view number) {
      row.metric = metric;
      const double value = score.at(number).at("value").number();
      if (std::isfinite(value)) row.ours = value;  // no recall without unknown words
      observer_.measured(row);
    };
    ReproduceRow main = row_of(run);
    main.by_epoch = validation_of(run.experiment, folder);
    const double seconds = read_history(folder / "metrics.jsonl").updates.back().seconds;
    main.seconds_per_epoch =
        seconds / static_cast<double>(std::max<std::size_t>(main.by_epoch.size(), 1));
    measured(main, metric_of(run.experiment), joint || !segments ? "micro_f1" : "f1");
    if (joint) measured(row_of(run), "word_f1", "f1");
    if (segments) measured(row_of(run), "unknown_word_recall", "unknown_recall");
    ReproduceRow time = row_of(run);
    time.metric = "seconds";
    time.ours = seconds;
    observer_.measured(time);
  }
};

// Hashed features alone. AdamW moves a feature that was seen once as far as a frequent one, and
// learns names by heart; a large epsilon makes it a gradient descent with momentum, which does not.
void set_of_linear(TaggerSettings& s) {
  s.model.word_width = s.model.shape_width = 0;
  s.model.character_reader = CharacterReader::kNone;
  s.model.linear_dropout = s.text.task == TagTask::kTag ? 0 : 0.3;
  s.recipe.epsilon = 1e-3;
  s.recipe.lr = 2;
}

// Chosen by the validation on names, seed 1: with attention of 1 and 2e-3, else of 2 and 4e-3.
double rate_of(const TagExperiment& experiment, const TagModel& model) {
  if (model.position != "none") return 1e-3;
  return experiment.task == TagTask::kTag ? 4e-3 : 2e-3;
}

// Whether one of the words of `only` is part of the name of the run; all are, without any.
bool is_asked(std::string_view only, std::string_view run) {
  const std::vector<std::string_view> asked = parts_between(only, ',');
  return only.empty() || std::any_of(asked.begin(), asked.end(), [&](std::string_view part) {
           return run.find(part) != run.npos;
         });
}

constexpr std::string_view kNames =
    "WNUT 2017 (github leondz/emerging_entities_17, commit e52a2d2)";
constexpr std::string_view kChinese =
    "Universal Dependencies, Chinese GSD Simplified (github UniversalDependencies/"
    "UD_Chinese-GSDSimp)";
constexpr DataFile kNamesTrain{"wnut17/train.conll", "2f0a5c14daf3cbc268bf61ccc8730bd9",
                               "731820e13f71af324c6b55a1575ec2ce59fbaa2a0806f8f0400b98d56cd6a7a5",
                               kNames};
constexpr DataFile kNamesValid{"wnut17/dev.conll", "e13238a3c351417559865ef77df9628b",
                               "e053b752b8155113ca66e7db08af5f2f5f43ab993694e4774f1ec5bad42312d8",
                               kNames};
constexpr DataFile kNamesTest{"wnut17/test.annotated.conll", "3f0339ee8fbb8b17f1229bc7ff60567b",
                              "2aa79b764e56ec9264a1b30fdd9b70195bd00ff400b62edd8f399d5f13c178f0",
                              kNames};
constexpr DataFile kChineseTrain{"zh_gsdsimp/dev.conllu.gz", "120ac64f2fa65d9d318c3f81674c132f",
                                 "304535cd0b01620041d7309c1d29517093bbb7ca03fd70dc562c38584a8c5210",
                                 kChinese};
constexpr DataFile kChineseTest{"zh_gsdsimp/test.conllu.gz", "1302f6aea613dfd4189005792ba1290f",
                                "f379794fdd2f624eaf13ea69c1083719b34c526580c123c5e88ce321fe858db5",
                                kChinese};

}  // namespace

std::string TagModel::variant() const { return fmt::format("{}-{}", name, to_string(head)); }

std::vector<TagModel> tag_models() {
  std::vector<TagModel> models;
  for (TagModel model : kEncoders) {
    for (const TagHead head : {TagHead::kSoftmax, TagHead::kCrf}) {
      model.head = head;
      models.push_back(model);
    }
  }
  models.push_back(kLinear);
  return models;
}

TaggerSettings tag_settings(const TagExperiment& experiment, const TagModel& model, index seed,
                            double share) {
  TaggerSettings s(experiment.task);
  s.text.train = {fs::absolute(experiment.train).string()};
  if (!experiment.valid.empty()) s.text.valid = {fs::absolute(experiment.valid).string()};
  s.text.joint = experiment.joint;
  s.model.head = {model.head};
  s.model.encoder = model.encoder;
  s.model.position = enum_from_name<PositionKind>(model.position);
  s.model.linear = model.linear;
  s.recipe.lr = rate_of(experiment, model);
  if (model.encoder.empty()) set_of_linear(s);
  s.recipe.min_lr = s.recipe.lr / 10;
  s.recipe.stop_after = fmt::format("{}e", share_of(share, experiment.epochs));
  s.recipe.eval_every = "1e";
  s.recipe.save_every = "5e";
  s.recipe.patience = 0;
  s.recipe.keep = 1;
  s.recipe.seed = static_cast<std::uint64_t>(seed);
  return s;
}

void run_tags(const Context& context, const ReproduceOptions& options,
              const ReproduceObserver& observer, const std::vector<TagExperiment>& experiments) {
  create_folders(options.output);
  const Tags tags(context, options, observer);
  for (index seed = 1; seed <= options.seeds; ++seed) {
    for (const TagExperiment& experiment : experiments) {
      bool asked = false;
      for (const TagModel& model : tag_models()) {
        const TagRun run{experiment, model, seed};
        if (!is_asked(options.only, run.variant())) continue;
        asked = true;
        tags.run_one(run);
      }
      if (asked) tags.draw(experiment);
    }
  }
}

void reproduce_tag(const Context& context, const ReproduceOptions& options,
                   const ReproduceObserver& observer) {
  const auto file = [&](const DataFile& data) { return require_data(options.data, data); };
  run_tags(context, options, observer,
           {{.name = "ner",
             .task = TagTask::kTag,
             .train = file(kNamesTrain),
             .test = file(kNamesTest),
             .valid = file(kNamesValid),
             .epochs = 10},
            {.name = "segment",
             .task = TagTask::kSegment,
             .train = file(kChineseTrain),
             .test = file(kChineseTest),
             .epochs = 30},
            {.name = "joint",
             .task = TagTask::kSegment,
             .joint = true,
             .train = file(kChineseTrain),
             .test = file(kChineseTest),
             .epochs = 40}});
}

}  // namespace fovea

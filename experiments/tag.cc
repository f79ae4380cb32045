// SPDX-License-Identifier: Apache-2.0
// E8: is attention alone weak at labelling each word of a sentence, as Su 2018 says?
// Names in English (WNUT 2017) and the words of Chinese (UD Chinese-GSDSimp).
#include "experiments/data_file.h"
#include "experiments/row.h"
#include "experiments/tag_runs.h"

namespace fovea {

namespace {

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

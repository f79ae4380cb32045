// SPDX-License-Identifier: Apache-2.0
// How the process of a training runs, as far as the command and Python say it alike.
#pragma once

#include <string>

#include "fovea/base/fields.h"
#include "fovea/report/html.h"

namespace fovea {

struct RunChoices {
  /// The names of the presets that the training has, "tiny|small"; none: no --preset.
  std::string (*presets)() = nullptr;
  std::string preset = {};
  std::string config = {};
  int threads = 0;
  bool report = false;
  PageLanguage lang = PageLanguage::kEnglish;
  bool overwrite = false;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    if (presets != nullptr) {
      visit("preset", preset, "start from these settings instead of the defaults",
            {.place = HelpPlace::kModel, .names = presets});
    }
    visit("config", config, "read settings from this TOML file",
          {.only_command_line = true, .shown = "FILE", .also = "c"});
    visit("threads", threads, "threads to work on; 0: all cores", {.also = "t"});
    visit("overwrite", overwrite, "replace an earlier run in the folder",
          {.only_command_line = true, .place = HelpPlace::kResume});
    visit("report", report, "keep a page of the run up to date: report.html in its folder");
    visit("lang", lang, "language of the page of --report");
  }
};

}  // namespace fovea

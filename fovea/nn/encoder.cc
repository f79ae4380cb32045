// SPDX-License-Identifier: Apache-2.0
#include "fovea/nn/encoder.h"

#include <algorithm>

#include "fovea/base/check.h"

namespace fovea {

namespace {

// The result of a stage from those of its branches.
Variable join(Tape& tape, const EncoderStageLayers& stage, std::span<const Variable> results) {
  return stage.join ? stage.join->forward(tape, concat_columns(tape, results)) : results[0];
}

// A layer keeps its input alone, if the tape is so set. What it sees counts once.
Variable run_layer(Tape& tape, const EncoderLayer& layer, Variable x, const EncoderCall& call,
                   bool begun) {
  const auto f = [&layer, x, rows = call.rows, key = call.key, seen = call.seen, begun](Tape& t,
                                                                                        Pass pass) {
    const EncoderCall inner{rows, key, pass == Pass::kFirst ? seen : std::span<HeadStatistics>()};
    return begun ? layer.forward_from(t, x, inner) : layer.forward(t, x, inner);
  };
  return tape.recompute({x}, layer.width(), f);
}

}  // namespace

void Encoder::add(EncoderStageLayers stage) {
  const auto is_empty = [](const EncoderBranch& branch) { return branch.empty(); };
  const auto& branches = stage.branches;
  if (branches.empty() || std::any_of(branches.begin(), branches.end(), is_empty) ||
      (branches.size() > 1) != stage.join.has_value()) {
    fail(ErrorCode::kInternal, "encoder: a stage needs layers, and a join for several branches");
  }
  for (const EncoderBranch& branch : branches) {
    for (const auto& layer : branch) attentions_ += layer->attentions();
  }
  stages_.push_back(std::move(stage));
}

Variable Encoder::forward(Tape& tape, Variable x, const PackedRows& rows, const DropoutKey& key,
                          std::span<HeadStatistics> seen) const {
  return run(tape, x, {rows, {key.seed, key.step, 0}, seen}, nullptr);
}

index Encoder::first_columns() const {
  const bool alone = !stages_.empty() && stages_[0].branches.size() == 1;
  return alone ? stages_[0].branches[0][0]->first_columns() : 0;
}

const EncoderLayer& Encoder::first_layer() const {
  check(first_columns() > 0, "encoder: its first layer has no first step");
  return *stages_[0].branches[0][0];
}

Variable Encoder::first_step(Tape& tape, Variable x) const {
  return first_layer().first_step(tape, x);
}

Variable Encoder::first_product(Tape& tape, Variable p) const {
  return first_layer().first_product(tape, p);
}

Variable Encoder::forward_from(Tape& tape, Variable stepped, const PackedRows& rows,
                               const DropoutKey& key, std::span<HeadStatistics> seen) const {
  check(stepped.columns() == first_columns(), "encoder: {} columns behind the first step, not {}",
        stepped.columns(), first_columns());
  return run(tape, stepped, {rows, {key.seed, key.step, 0}, seen}, &first_layer());
}

Variable Encoder::run(Tape& tape, Variable x, EncoderCall call, const EncoderLayer* begun) const {
  check(call.seen.empty() || static_cast<index>(call.seen.size()) == attentions_,
        "encoder: {} statistics for {} attentions", call.seen.size(), attentions_);
  std::span<HeadStatistics> seen = call.seen;
  for (const EncoderStageLayers& stage : stages_) {
    std::vector<Variable> results;
    for (const EncoderBranch& branch : stage.branches) {
      Variable y = x;
      for (const auto& layer : branch) {
        call.seen = seen.first(seen.empty() ? 0 : static_cast<std::size_t>(layer->attentions()));
        y = run_layer(tape, *layer, y, call, layer.get() == begun);
        call.key.layer += layer->depth();  // the number of the next layer, for its dropout
        seen = seen.subspan(call.seen.size());
      }
      results.push_back(y);
    }
    x = join(tape, stage, results);
  }
  return x;
}

EncoderSession Encoder::begin(index capacity) const {
  EncoderSession session(*this);
  for (const EncoderStageLayers& stage : stages_) {
    auto& branches = session.stages_.emplace_back();
    for (const EncoderBranch& branch : stage.branches) {
      auto& sessions = branches.emplace_back();
      for (const auto& layer : branch) sessions.push_back(layer->begin(capacity));
    }
  }
  return session;
}

Variable EncoderSession::forward(Tape& tape, Variable x) {
  for (std::size_t n = 0; n < stages_.size(); ++n) {
    std::vector<Variable> results;
    for (const Sessions& branch : stages_[n]) {
      Variable y = x;
      for (const auto& layer : branch) y = layer->forward(tape, y);
      results.push_back(y);
    }
    x = join(tape, encoder_->stages_[n], results);
  }
  return x;
}

void EncoderSession::clear() {
  for (auto& stage : stages_) {
    for (Sessions& branch : stage) {
      for (auto& layer : branch) layer->clear();
    }
  }
}

index EncoderSession::most_rows() const {
  index most = std::numeric_limits<index>::max();
  for (const auto& stage : stages_) {
    for (const Sessions& branch : stage) {
      for (const auto& layer : branch) most = std::min(most, layer->most_rows());
    }
  }
  return most;
}

bool EncoderSession::endless() const {
  for (const auto& stage : stages_) {
    for (const Sessions& branch : stage) {
      for (const auto& layer : branch) {
        if (!layer->endless()) return false;
      }
    }
  }
  return true;
}

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/decode/beam_search.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <tuple>

#include "fovea/base/option.h"
#include "fovea/config/field.h"
#include "fovea/kernel/first_above.h"
#include "fovea/kernel/softmax.h"

namespace fovea {

namespace {

// A hypothesis and a token behind it.
struct Candidate {
  double log_probability = 0;
  index hypothesis = 0;
  token id = 0;

  // A total order, so that no choice depends on the order in which candidates were found.
  bool operator<(const Candidate& other) const {
    if (log_probability != other.log_probability) return log_probability > other.log_probability;
    return std::tie(hypothesis, id) < std::tie(other.hypothesis, other.id);
  }
};

bool is_more_end(const SearchTask& task, token id) {
  return std::ranges::find(task.more_ends, id) != task.more_ends.end();
}

// The likeliest candidates of one row of logits, in order: as many that go on as a beam, whatever
// ends.
class RowChoice {
 public:
  RowChoice(const SearchTask& task, const SearchOptions& options)
      : task_(task),
        count_((2 + std::ssize(task.more_ends)) * options.beam),
        free_end_(options.free_end) {}

  void choose(Vec<const float> logits, double log_sum, Candidate parent, bool must_end) {
    best_.clear();
    if (must_end && free_end_) {
      parent.id = task_.end;
      best_.push_back(parent);
      return;
    }
    if (must_end) {
      consider(logits, log_sum, parent, task_.end);
      return;
    }
    for (index id = 0; id < logits.size; ++id) {
      if (static_cast<index>(best_.size()) == count_) {
        id = first_above(logits, id, least_);
        if (id == logits.size) break;
      }
      consider(logits, log_sum, parent, static_cast<token>(id));
    }
  }

  const std::vector<Candidate>& best() const { return best_; }

 private:
  void consider(Vec<const float> logits, double log_sum, Candidate parent, token id) {
    if (!(logits[id] > -INFINITY)) return;
    if (!task_.forbidden.empty() && task_.forbidden[static_cast<std::size_t>(id)]) return;
    parent.log_probability += double{logits[id]} - log_sum;
    parent.id = id;
    best_.insert(std::upper_bound(best_.begin(), best_.end(), parent), parent);
    if (static_cast<index>(best_.size()) > count_) best_.pop_back();
    least_ = logits[best_.back().id];
  }

  const SearchTask& task_;
  index count_;
  bool free_end_;
  float least_ = 0;  // the logit of the last of these
  std::vector<Candidate> best_;
};

// The log of the sum of exp(logits) of the tokens that are not forbidden, where that of all is
// known.
double sum_without(std::span<const token> forbidden, Vec<const float> logits, double log_sum) {
  const auto share = [&](index id) { return std::exp(double{logits[id]} - log_sum); };
  double others = 0;
  for (const token id : forbidden) others += share(id);
  constexpr double kMuch = 0.5;  // from here on a difference would lose digits
  if (others < kMuch) return log_sum + std::log1p(-others);
  double rest = 0;
  auto next = forbidden.begin();
  for (index id = 0; id < logits.size; ++id) {
    if (next != forbidden.end() && *next == id) {
      ++next;
    } else {
      rest += share(id);
    }
  }
  return log_sum + std::log(rest);
}

// The search in one sentence.
class SentenceSearch {
 public:
  SentenceSearch(const SearchOptions& options, const SearchTask& task, index longest)
      : options_(options), task_(task), longest_(longest), live_(1) {}

  /// The attention of what has ended, with --coverage-penalty.
  using Attention = std::function<std::vector<double>(std::span<const token>)>;

  const std::vector<Hypothesis>& live() const { return live_; }
  bool done() const { return live_.empty(); }
  /// Whether the next token of its hypotheses can only be the end.
  bool must_end() const { return !is_open() && written_ + 1 >= longest_; }
  /// The parents of live(), numbered as they were before advance().
  const std::vector<index>& parents() const { return parents_; }

  // `candidates` are the best of all, in order: those of two beams, if there are as many, and of
  // one for each of more_ends.
  void advance(const std::vector<Candidate>& candidates, const Attention& attention) {
    std::vector<Hypothesis> next;
    parents_.clear();
    ++written_;
    index rank = 0;
    for (const Candidate& candidate : candidates) {
      const Hypothesis& parent = live_[static_cast<std::size_t>(candidate.hypothesis)];
      Hypothesis made{parent.tokens, candidate.log_probability,
                      candidate.log_probability / length_divisor(options_, written_)};
      made.has_end = candidate.id == task_.end;
      if (!made.has_end) made.tokens.push_back(candidate.id);
      if (made.has_end || is_more_end(task_, candidate.id) || (is_open() && written_ == longest_)) {
        if (rank++ < options_.beam) finish(std::move(made), attention);
        continue;
      }
      ++rank;
      next.push_back(std::move(made));
      parents_.push_back(candidate.hypothesis);
      if (static_cast<index>(next.size()) == options_.beam) break;
    }
    live_ = std::move(next);
    if (is_over()) live_.clear();
  }

  std::vector<Hypothesis> take_best() {
    if (static_cast<index>(finished_.size()) > options_.nbest) {
      finished_.resize(static_cast<std::size_t>(options_.nbest));
    }
    return std::move(finished_);
  }

 private:
  void finish(Hypothesis made, const Attention& attention) {
    ++ended_;
    if (options_.coverage_penalty > 0) {
      made.score += coverage_score(options_, attention(made.tokens));
    }
    const auto better = [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; };
    finished_.insert(std::upper_bound(finished_.begin(), finished_.end(), made, better),
                     std::move(made));
    if (static_cast<index>(finished_.size()) > compared()) finished_.pop_back();
  }

  // Whether hypotheses end at their longest without an end.
  bool is_open() const { return task_.end == kNoToken || options_.open_end; }

  bool compares_beam() const { return options_.prospect != Prospect::kAtBestLength; }

  // How many that have ended those that go on must beat.
  index compared() const { return compares_beam() ? options_.beam : options_.nbest; }

  bool is_over() const {
    if (static_cast<index>(finished_.size()) < compared() || live_.empty()) return false;
    if (compares_beam() && options_.beam == 1) return true;
    const double most = options_.patience * static_cast<double>(options_.beam);
    if (options_.patience > 0 && static_cast<double>(ended_) >= most) return true;
    return best_to_come() <= finished_.back().score;
  }

  // No log probability grows, and no coverage adds to a score, so a hypothesis cannot score more
  // than it does now at the length that suits it best.
  double best_to_come() const {
    const double now = live_[0].log_probability;
    if (options_.prospect == Prospect::kOfBeamAtThisLength) {
      return now / length_divisor(options_, written_);
    }
    return std::max(now / length_divisor(options_, written_ + 1),
                    now / length_divisor(options_, longest_));
  }

  const SearchOptions& options_;
  const SearchTask& task_;
  index longest_;
  index written_ = 0;  // tokens of each live hypothesis
  index ended_ = 0;
  std::vector<Hypothesis> live_;
  std::vector<index> parents_;
  std::vector<Hypothesis> finished_;
};

class Search {
 public:
  Search(const Context& context, NextTokenModel& model, const SearchTask& task,
         const SearchOptions& options)
      : context_(context), model_(model), task_(task), options_(options) {
    for (const index longest : task.longest) {
      sentences_.emplace_back(options, task_, longest);
      parents_.push_back(static_cast<index>(parents_.size()));
      ids_.push_back(task.begin);
    }
    for (std::size_t id = 0; id < task.forbidden.size(); ++id) {
      if (task.forbidden[id]) forbidden_.push_back(static_cast<token>(id));
    }
  }

  std::vector<std::vector<Hypothesis>> run() {
    while (!parents_.empty()) step();
    std::vector<std::vector<Hypothesis>> best;
    for (SentenceSearch& sentence : sentences_) best.push_back(sentence.take_best());
    return best;
  }

 private:
  void step() {
    const Rows<const float> logits =
        model_.step(parents_, {ids_.data(), static_cast<index>(ids_.size())});
    const std::vector<std::vector<Candidate>> rows = choose(logits);
    parents_.clear();
    ids_.clear();
    std::size_t row = 0;
    for (SentenceSearch& sentence : sentences_) {
      if (sentence.done()) continue;
      const auto first = static_cast<index>(row);
      std::vector<Candidate> candidates;
      for (std::size_t h = sentence.live().size(); h > 0; --h) {
        candidates.insert(candidates.end(), rows[row].begin(), rows[row].end());
        ++row;
      }
      std::sort(candidates.begin(), candidates.end());
      const auto number = static_cast<index>(&sentence - sentences_.data());
      sentence.advance(candidates, [&](std::span<const token> written) {
        return model_.attention(number, written);
      });
      for (std::size_t h = 0; h < sentence.live().size(); ++h) {
        parents_.push_back(first + sentence.parents()[h]);
        ids_.push_back(sentence.live()[h].tokens.back());
      }
    }
  }

  // The candidates of each row. One of a sentence can be among its first beams only if it is
  // among those of its row.
  std::vector<std::vector<Candidate>> choose(Rows<const float> logits) const {
    std::vector<double> log_sums(static_cast<std::size_t>(logits.rows));
    log_sum_exp(context_, logits, Vec<double>(log_sums.data(), logits.rows));
    for (index n = 0; n < logits.rows && options_.shares_rest; ++n) {
      double& sum = log_sums[static_cast<std::size_t>(n)];
      sum = sum_without(forbidden_, {logits[n], logits.columns}, sum);
    }
    struct Place {
      const SentenceSearch* sentence;
      index hypothesis;
    };
    std::vector<Place> places;
    for (const SentenceSearch& sentence : sentences_) {
      for (index h = 0; h < static_cast<index>(sentence.live().size()); ++h) {
        places.push_back({&sentence, h});
      }
    }
    check(static_cast<index>(places.size()) == logits.rows, "search: {} rows of logits for {}",
          logits.rows, places.size());
    std::vector<std::vector<Candidate>> rows(places.size());
    context_.for_ranges(
        logits.rows, static_cast<double>(logits.columns), [&](index begin, index end) {
          RowChoice choice(task_, options_);
          for (index n = begin; n < end; ++n) {
            const auto i = static_cast<std::size_t>(n);
            if (!std::isfinite(log_sums[i])) {
              fail(ErrorCode::kModelDamaged, "the model gives no token a probability");
            }
            const auto& [sentence, h] = places[i];
            const double so_far = sentence->live()[static_cast<std::size_t>(h)].log_probability;
            choice.choose({logits[n], logits.columns}, log_sums[i], {so_far, h, 0},
                          sentence->must_end());
            rows[i] = choice.best();
          }
        });
    return rows;
  }

  const Context& context_;
  NextTokenModel& model_;
  const SearchTask& task_;
  const SearchOptions& options_;
  std::vector<SentenceSearch> sentences_;
  std::vector<token> forbidden_;  // in order
  std::vector<index> parents_;
  std::vector<std::int32_t> ids_;
};

}  // namespace

void check_options(const SearchOptions& o) {
  check_ranges(o);
  require_option(o.nbest <= o.beam,
                 Hint{"a beam of N gives at most N translations: give a larger --beam"}, "nbest",
                 o.nbest, "in 1 to --beam ({})", o.beam);
}

double length_divisor(const SearchOptions& o, index tokens) {
  const auto length = static_cast<double>(tokens);
  const double base = o.length_norm == LengthNorm::kGnmt ? (5 + length) / 6 : length;
  return std::pow(base, o.length_penalty);
}

double coverage_score(const SearchOptions& o, std::span<const double> attention) {
  constexpr double kLeast = 1e-9;
  double sum = 0;
  for (const double mass : attention) sum += std::log(std::clamp(mass, kLeast, 1.0));
  return o.coverage_penalty * sum;
}

std::vector<std::vector<Hypothesis>> beam_search(const Context& context, NextTokenModel& model,
                                                 const SearchTask& task,
                                                 const SearchOptions& options) {
  check_options(options);
  for (const index longest : task.longest) {
    check(longest >= 1, "search: a sentence of at most {} tokens has no end", longest);
  }
  return Search(context, model, task, options).run();
}

}  // namespace fovea

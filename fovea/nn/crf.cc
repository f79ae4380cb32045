// SPDX-License-Identifier: Apache-2.0
#include "fovea/nn/crf.h"

namespace fovea {

namespace {

void check_rules(const CrfRules& rules, index tags) {
  const auto check_size = [&](std::string_view name, const std::vector<std::uint8_t>& flags,
                              index size) {
    check(flags.empty() || std::ssize(flags) == size,
          "crf: the rules of {} must have {} flags, or none; they have {}", name, size,
          flags.size());
  };
  check_size("transitions", rules.transitions, tags * tags);
  check_size("start", rules.start, tags);
  check_size("end", rules.end, tags);
}

/// Calls f(emissions, offsets): rows as kernels take them, one sequence if there are no offsets.
template <class T, class F>
void with_rows(Variable emissions, const PackedRows& rows, F&& f) {
  const std::int32_t whole[] = {0, static_cast<std::int32_t>(emissions.rows())};
  f(CrfRows<T>{emissions.value<T>(),
               rows.offsets.empty() ? Vec<const std::int32_t>(whole, 2) : rows.offsets});
}

}  // namespace

Crf::Crf(index tags, CrfRules rules, const ParameterScope& scope)
    : tags_(tags), rules_(std::move(rules)) {
  check(tags >= 1, "crf: there are {} tags; there must be at least one", tags);
  check_rules(rules_, tags);
  transitions_ = &scope.add("transitions", {tags, tags}, Init::zeros(), Decay::kNo);
  start_ = &scope.add("start", {tags}, Init::zeros(), Decay::kNo);
  end_ = &scope.add("end", {tags}, Init::zeros(), Decay::kNo);
}

template <class T>
CrfScores<T> Crf::scores() const {
  return {transitions_->value.rows<T>(), start_->value.vec<T>(), end_->value.vec<T>(),
          rules_.allowed()};
}

Variable Crf::loss(Tape& tape, Variable emissions, Vec<const std::int32_t> tags,
                   const PackedRows& rows, double scale) const {
  return crf_loss(tape, emissions,
                  {tape.parameter(*transitions_), tape.parameter(*start_), tape.parameter(*end_),
                   rules_.allowed()},
                  tags, rows, scale);
}

std::vector<std::int32_t> Crf::decode(const Context& ctx, Variable emissions,
                                      const PackedRows& rows) const {
  std::vector<std::int32_t> tags(static_cast<std::size_t>(emissions.rows()));
  with_type(emissions.dtype(), [&]<class T>(std::type_identity<T>) {
    with_rows<T>(emissions, rows,
                 [&](const CrfRows<T>& packed) { crf_viterbi<T>(ctx, scores<T>(), packed, tags); });
  });
  return tags;
}

std::vector<std::vector<CrfPath>> Crf::best_paths(const Context& ctx, Variable emissions,
                                                  const PackedRows& rows, index count) const {
  std::vector<std::vector<CrfPath>> paths;
  with_type(emissions.dtype(), [&]<class T>(std::type_identity<T>) {
    with_rows<T>(emissions, rows, [&](const CrfRows<T>& packed) {
      paths = crf_best_paths<T>(ctx, scores<T>(), packed, count);
    });
  });
  return paths;
}

std::vector<double> Crf::marginals(const Context& ctx, Variable emissions,
                                   const PackedRows& rows) const {
  std::vector<double> result;
  with_type(emissions.dtype(), [&]<class T>(std::type_identity<T>) {
    std::vector<T> p(static_cast<std::size_t>(emissions.rows() * tags_));
    with_rows<T>(emissions, rows, [&](const CrfRows<T>& packed) {
      crf_marginals<T>(ctx, scores<T>(), packed, {p.data(), emissions.rows(), tags_});
    });
    result.assign(p.begin(), p.end());
  });
  return result;
}

std::vector<double> Crf::log_partition(const Context& ctx, Variable emissions,
                                       const PackedRows& rows) const {
  std::vector<double> result(static_cast<std::size_t>(rows.count()));
  with_type(emissions.dtype(), [&]<class T>(std::type_identity<T>) {
    with_rows<T>(emissions, rows, [&](const CrfRows<T>& packed) {
      crf_log_partition<T>(ctx, scores<T>(), packed, result);
    });
  });
  return result;
}

}  // namespace fovea

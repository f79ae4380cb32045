// SPDX-License-Identifier: Apache-2.0
#include "python/extension/flex.h"

#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "fovea/attention/attention.h"
#include "fovea/attention/fused/tile_cover.h"
#include "fovea/attention/lambda/program/program_parts.h"
#include "fovea/attention/mask/blocks.h"
#include "python/extension/room.h"
#include "python/extension/row_type.h"
#include "python/extension/signals.h"
#include "python/extension/team.h"
#include "python/extension/traced.h"

namespace nb = nanobind;

namespace fovea::python {

namespace {

using detail::CapturedTable;
using detail::LaneTable;
using detail::PlannedProgram;
using detail::ScoreProgram;
using detail::ScoreStep;

/// (address, B, H, L, D, strides of B, H and L); an address of 0 for what there is not.
using Tensor = std::array<std::int64_t, 8>;
using Tensors = std::vector<Tensor>;
/// (RowType, scale, threads)
using Options = std::tuple<int, double, int>;
/// (address, type, sizes, strides, bounds of the values, whether it learns)
using Table =
    std::tuple<std::uintptr_t, int, std::vector<index>, std::vector<index>, double, double, bool>;
/// (address of the kinds, their B, H, blocks of queries and of keys, the sizes of a block)
using Blocks = std::array<std::int64_t, 7>;

/// A traced function, and the memory of what it captured, which must outlive it.
class Traced {
 public:
  Traced(const nb::bytes& steps, const std::vector<Table>& tables) : steps_(steps_of(steps)) {
    for (const auto& [address, type, sizes, strides, low, high, learns] : tables) {
      const LaneTable table{reinterpret_cast<const void*>(address),
                            static_cast<LaneTable::Type>(type)};
      tables_.push_back({table, sizes, strides, low, high});
      learns_.push_back(learns);
    }
  }

  template <class T>
  std::shared_ptr<const PlannedProgram> in(const AttentionSizes& sizes,
                                           const std::vector<std::uintptr_t>& gradients) const {
    std::vector<bool> learns = learns_;
    std::vector<void*> to(learns.size());
    for (std::size_t n = 0; n < learns.size(); ++n) {
      learns[n] = learns[n] && n < gradients.size() && gradients[n] != 0;
      if (learns[n]) to[n] = reinterpret_cast<void*>(gradients[n]);
    }
    return std::make_shared<const PlannedProgram>(ScoreProgram(steps_, tables_, learns), sizes, to,
                                                  kExactTo<T>);
  }

  template <class T>
  void prepare_gradients(const std::vector<std::uintptr_t>& gradients) const {
    for (std::size_t n = 0; n < gradients.size(); ++n) {
      if (gradients[n] != 0) prepare_room(gradients[n], tables_[n].count(), sizeof(T));
    }
  }

 private:
  std::vector<ScoreStep> steps_;
  std::vector<CapturedTable> tables_;
  std::vector<bool> learns_;
};

template <class T>
View<T> view(const Tensor& t) {
  return {reinterpret_cast<T*>(t[0]), t[1], t[3], t[2], t[4], t[5], t[7], t[6]};
}
template <class T>
RowView<T> rows(const Tensor& t) {
  return {reinterpret_cast<T*>(t[0]), t[1], t[2], t[3], t[5], t[6], t[7]};
}

template <class T>
void prepare(const Tensor& t) {
  prepare_room(static_cast<std::uintptr_t>(t[0]), t[1] * t[2] * t[3] * t[4], sizeof(T));
}

// The order of the tensors; a forward has those up to lse_low.
enum Place : std::size_t { kQ, kK, kV, kO, kLse, kLseLow, kDo, kDLse, kDq, kDk, kDv };

/// The tensors and traced functions of a call.
struct Call {
  const Tensors& tensors;
  const Traced* score;
  const Traced* mask;
  const std::optional<Blocks>& blocks;

  AttentionSizes sizes() const {
    const Tensor &q = tensors[kQ], &k = tensors[kK], &v = tensors[kV];
    return {q[1], q[3], k[3], q[2], k[2], q[4], v[4]};
  }
  template <class T>
  AttentionInputs<T> inputs() const {
    return {view<const T>(tensors[kQ]), view<const T>(tensors[kK]), view<const T>(tensors[kV])};
  }
};

template <class T>
Mask mask_of(const Call& call) {
  std::shared_ptr<const MaskPart> part;
  if (call.mask != nullptr) {
    part = std::make_shared<const detail::ProgramMask>(
        of_function("mask_mod", [&] { return call.mask->in<T>(call.sizes(), {}); }));
  }
  if (call.blocks) {
    const auto& [address, B, H, rows, columns, q, k] = *call.blocks;
    const mask::BlockKinds kinds{
        reinterpret_cast<const std::uint8_t*>(address), B, H, rows, columns, q, k};
    part = std::make_shared<const mask::Blocks>(kinds, part);
  }
  return part == nullptr ? Mask() : Mask(part);
}

template <class T>
Attention<T> attention_of(const Options& options, const Call& call,
                          const std::vector<std::uintptr_t>& gradients) {
  Attention<T> attention;
  attention.score = score::Dot{.scale = std::get<1>(options)};
  attention.mask = mask_of<T>(call);
  if (call.score != nullptr) {
    attention.bias = Bias<T>(std::make_shared<const detail::ProgramBias<T>>(
        of_function("score_mod", [&] { return call.score->in<T>(call.sizes(), gradients); })));
  }
  return attention;
}

template <class T>
void forward(const Options& options, const Call& call) {
  using W = Wide<T>;
  prepare<T>(call.tensors[kO]);
  const AttentionOutputs<T> out{.o = view<T>(call.tensors[kO]),
                                .lse = rows<W>(call.tensors[kLse]),
                                .lse_low = rows<W>(call.tensors[kLseLow])};
  attention_forward(context_of(std::get<2>(options)), attention_of<W>(options, call, {}),
                    call.inputs<T>(), out);
}

template <class T>
void backward(const Options& options, const Call& call,
              const std::vector<std::uintptr_t>& gradients) {
  using W = Wide<T>;
  const Attention<W> attention = attention_of<W>(options, call, gradients);
  const Tensors& t = call.tensors;
  for (const Place place : {kDq, kDk, kDv}) prepare<T>(t[place]);
  if (call.score != nullptr) call.score->prepare_gradients<W>(gradients);
  const AttentionSaved<T> saved{.o = view<const T>(t[kO]),
                                .lse = rows<const W>(t[kLse]),
                                .d_o = view<const T>(t[kDo]),
                                .lse_low = rows<const W>(t[kLseLow]),
                                .d_lse = rows<const W>(t[kDLse])};
  const AttentionGradients<T> out{view<T>(t[kDq]), view<T>(t[kDk]), view<T>(t[kDv])};
  attention_backward(context_of(std::get<2>(options)), attention, call.inputs<T>(), saved, out);
}

using PlanDict = nb::typed<nb::dict, nb::str, nb::any>;

template <class T>
nb::dict plan(const Options& options, const Call& call) {
  const Attention<Wide<T>> attention = attention_of<Wide<T>>(options, call, {});
  const AttentionPlan plan =
      attention_plan(context_of(std::get<2>(options)), attention, call.inputs<T>());
  const AttentionSizes sizes = call.sizes();
  const Sequence first{.queries = sizes.T, .keys = sizes.S};
  nb::dict result;
  result["kernel"] = plan.kernel.c_str();
  result["mask"] = plan.mask.c_str();
  result["score_mod"] = plan.bias.c_str();
  result["tiles"] = plan.tiles;
  result["tiles_kept"] = plan.tiles_kept;
  result["tiles_masked"] = plan.tiles_masked;
  result["kept_scores"] = plan.kept_scores;
  result["forward_flops"] = plan.forward_flops;
  result["backward_flops"] = plan.backward_flops;
  result["scratch_bytes"] = plan.scratch_bytes;
  nb::list picture;
  if (sizes.B > 0 && sizes.H > 0) {
    for (const std::string& line : detail::picture_of_tiles(attention.mask, first, 0)) {
      picture.append(line.c_str());
    }
  }
  result["picture"] = picture;
  return result;
}

// A row of blocks of a head.
struct BlockRow {
  const detail::ProgramMask& mask;
  TileSite queries;  // its keys are those of each block
  index block_of_queries;
  std::uint8_t* kinds;

  // Blocks [begin, end). Half of them at a time, unless all of them are kept, or none.
  void classify(index begin, index end) const {
    TileSite site = queries;
    site.key = begin * queries.keys;
    site.keys = std::min(end * queries.keys, queries.sequence.keys) - site.key;
    TileKind kind = mask.classify(site);
    if (kind == TileKind::kSome && end - begin > 1) {
      const index middle = (begin + end) / 2;
      classify(begin, middle);
      classify(middle, end);
      return;
    }
    std::fill(kinds + begin, kinds + end, static_cast<std::uint8_t>(kind));
    // A block that is cut off by the end is none that is kept whole.
    if (kind != TileKind::kAll) return;
    const auto some = static_cast<std::uint8_t>(TileKind::kSome);
    if (site.queries < block_of_queries) std::fill(kinds + begin, kinds + end, some);
    if (site.keys < (end - begin) * queries.keys) kinds[end - 1] = some;
  }
};

// Which blocks of queries x keys a mask keeps, of heads [B, H]: bytes as TileKind says.
void classify_blocks(const Traced& mask, const std::array<index, 4>& sizes,
                     const std::array<index, 2>& block, std::uintptr_t to, int threads) {
  const auto [B, H, T, S] = sizes;
  const detail::ProgramMask part(of_function("mask_mod", [&, B = B, T = T, S = S, H = H] {
    return mask.in<double>({B, T, S, H, H, 1, 1}, {});
  }));
  auto* const kinds = reinterpret_cast<std::uint8_t*>(to);
  const index rows = (T + block[0] - 1) / block[0], columns = (S + block[1] - 1) / block[1];
  std::fill_n(kinds, B * H * rows * columns, static_cast<std::uint8_t>(TileKind::kNone));
  context_of(threads).for_each(B * H * rows, [&, T = T, S = S, H = H](index item) {
    const index row = item % rows, query = row * block[0];
    const Sequence sequence{.number = item / rows / H, .queries = T, .keys = S};
    const index head = item / rows % H, queries = std::min(block[0], T - query);
    const auto [begin, end] = part.key_range(sequence, head, query, queries);
    if (begin >= end) return;
    const BlockRow all{
        part, {sequence, head, query, queries, 0, block[1]}, block[0], kinds + item * columns};
    all.classify(begin / block[1], (end + block[1] - 1) / block[1]);
  });
}

}  // namespace

void bind_flex(nb::module_& m) {
  nb::class_<Traced>(m, "Traced", "A traced function of scores or places.")
      .def(nb::init<const nb::bytes&, const std::vector<Table>&>(), nb::arg("steps"),
           nb::arg("tables"));
  m.def(
      "flex_forward",
      [](const Options& options, const Tensors& tensors, const Traced* score, const Traced* mask,
         const std::optional<Blocks>& blocks) {
        const Call call{tensors, score, mask, blocks};
        while_others_run([&] {
          with_row_type(std::get<0>(options), [&]<class T>(T) { forward<T>(options, call); });
        });
      },
      nb::arg("options"), nb::arg("tensors"), nb::arg("score").none(), nb::arg("mask").none(),
      nb::arg("blocks").none());
  m.def(
      "flex_backward",
      [](const Options& options, const Tensors& tensors, const Traced* score, const Traced* mask,
         const std::optional<Blocks>& blocks, const std::vector<std::uintptr_t>& gradients) {
        const Call call{tensors, score, mask, blocks};
        while_others_run([&] {
          with_row_type(std::get<0>(options),
                        [&]<class T>(T) { backward<T>(options, call, gradients); });
        });
      },
      nb::arg("options"), nb::arg("tensors"), nb::arg("score").none(), nb::arg("mask").none(),
      nb::arg("blocks").none(), nb::arg("gradients"));
  m.def(
      "flex_plan",
      [](const Options& options, const Tensors& tensors, const Traced* score, const Traced* mask,
         const std::optional<Blocks>& blocks) {
        const Call call{tensors, score, mask, blocks};
        return PlanDict(with_row_type(std::get<0>(options),
                                      [&]<class T>(T) { return plan<T>(options, call); }));
      },
      nb::arg("options"), nb::arg("tensors"), nb::arg("score").none(), nb::arg("mask").none(),
      nb::arg("blocks").none());
  m.def(
      "flex_blocks",
      [](const Traced& mask, const std::array<index, 4>& sizes, const std::array<index, 2>& block,
         std::uintptr_t to, int threads) {
        while_others_run([&] { classify_blocks(mask, sizes, block, to, threads); });
      },
      nb::arg("mask"), nb::arg("sizes"), nb::arg("block"), nb::arg("to"), nb::arg("threads"));
}

}  // namespace fovea::python

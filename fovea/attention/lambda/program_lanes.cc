// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/lambda/program_lanes.h"

#include <array>
#include <limits>
#include <memory>

namespace fovea::detail {

namespace {

// Within a call what is captured does not change, so a program is compiled again only for another
// head, or another sequence.
struct Key {
  std::uint64_t serial = 0;  // no program has this one
  LanesFor use = LanesFor::kScores;
  index sequence = 0, head = 0;

  bool operator==(const Key&) const = default;
};

template <class T>
struct Entry {
  Key key;
  bool fits = false;
  std::unique_ptr<CompiledLanes<T>> lanes;
};

template <class T>
struct Kept {
  std::array<Entry<T>, 4> entries;
  std::size_t next = 0;
};

template <class T>
Kept<T>& kept() {
  thread_local Kept<T> kept;
  return kept;
}

template <class T>
void compile(const PlannedProgram& program, const Key& key, const Sequence& sequence,
             Entry<T>& to) {
  to.key = {};  // an exception leaves no entry
  const bool backward = key.use == LanesFor::kGradients;
  to.lanes = std::make_unique<CompiledLanes<T>>(backward ? LaneTape::Learned::kSymbol
                                                         : LaneTape::Learned::kConstant);
  LaneTape& tape = to.lanes->tape();
  Traced result = program.record(tape, sequence, key.head);
  if (key.use == LanesFor::kMask) {
    const Traced dropped = -std::numeric_limits<double>::infinity();
    result = tape.record(TapeOp::kSelect, result, tape.score(), dropped);
  }
  to.fits = to.lanes->compile(tape.is_valid() ? tape.step_of(result) : 0);
  to.key = key;
}

}  // namespace

template <class T>
const CompiledLanes<T>* lanes_of(const PlannedProgram& program, LanesFor use,
                                 const Sequence& sequence, index head) {
  const Key key{program.serial(), use, sequence.number, head};
  Kept<T>& all = kept<T>();
  for (const Entry<T>& entry : all.entries) {
    if (entry.key == key) return entry.fits ? entry.lanes.get() : nullptr;
  }
  Entry<T>& entry = all.entries[all.next];
  all.next = (all.next + 1) % all.entries.size();
  compile(program, key, sequence, entry);
  return entry.fits ? entry.lanes.get() : nullptr;
}

template const CompiledLanes<float>* lanes_of(const PlannedProgram&, LanesFor, const Sequence&,
                                              index);
template const CompiledLanes<double>* lanes_of(const PlannedProgram&, LanesFor, const Sequence&,
                                               index);

}  // namespace fovea::detail

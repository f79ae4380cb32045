// SPDX-License-Identifier: Apache-2.0
// One step of the sequences of a recurrent layer: recurrent.cc walks through time,
// recurrent_steps.cc computes a step on the current instruction set. Nothing outside recurrent
// needs this header.
#pragma once

#include "fovea/kernel/recurrent.h"

namespace fovea {

/// A sequence in a step of the forward; previous_cell may be null (0).
template <class T>
struct ForwardRow {
  T* gates;
  T* hidden;
  T* cell;
  T* cell_tanh;
  const T* previous_hidden;
  const T* previous_cell;
};

/// Some hidden columns of a step: blocks [first_block, last_block) of them.
template <class T>
struct ForwardStep {
  const ForwardRow<T>* rows;
  const T* const* previous;  ///< [count] h of the step before; null: 0 for all
  index count;
  const T* weight;   ///< as PackedGates has it
  const T* bias_hn;  ///< or null
  index hidden;
  index first_block, last_block;
};

/// A sequence in a step of the backward; previous_hidden and previous_cell may be null (0).
template <class T>
struct BackwardRow {
  T* gates;
  const T* dy;
  const T* hidden;
  const T* cell_tanh;
  const T* previous_hidden;
  const T* previous_cell;
  T* carry;  ///< [H] what the step after gives to this one beside its product
};

template <class T>
struct BackwardStep {
  const BackwardRow<T>* rows;
  const T* const* next;  ///< [count] the gates' gradients of the step after; null: there is none
  index count;
  const T* weight;  ///< the panels of W_hh
  index panel_stride;
  index hidden;
  index first_block, last_block;
};

/// The kernels of a kind, for the current instruction set.
template <class T>
struct RecurrentSteps {
  index forward_lanes;   ///< hidden columns of a block of the forward
  index backward_lanes;  ///< of the backward: of a panel of the product
  void (*forward)(const ForwardStep<T>&);
  void (*backward)(const BackwardStep<T>&);
  /// Packs a block of W_hh^T.
  void (*pack)(Rows<const T> weight, index gates, index block, T* to);
};

template <class T>
RecurrentSteps<T> recurrent_steps(RecurrentKind kind);

}  // namespace fovea

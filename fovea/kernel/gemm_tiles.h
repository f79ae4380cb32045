// SPDX-License-Identifier: Apache-2.0
// The tiles of a product: gemm.cc cuts the product by the size of the problem, gemm_tiles.cc and
// gemm_at_b.cc compute one tile on the current instruction set. Nothing outside gemm needs this
// header.
#pragma once

#include "fovea/kernel/gemm.h"

namespace fovea {

/// The sizes of an instruction set that the cut depends on.
struct BlockShape {
  index rows;    ///< of the register block
  index lanes;   ///< of a panel
  index vector;  ///< lanes of a vector
  index panels;  ///< packed together, which is faster than one after another
};

/// Rows further apart than this (two pages) are read faster as a copy of them closer together.
template <class T>
inline constexpr index kFarApart = 8192 / static_cast<index>(sizeof(T));

/// Part of C = A B: all of K for some rows and the panels [first_panel, last_panel).
template <class T>
struct MatmulTile {
  ProductRows<const T> a;  ///< [rows, K]
  const Panels<T>* b;
  index first_panel, last_panel;
  ProductRows<T> c;                  ///< [rows, N]
  MatmulOptions<T> options;          ///< slope and times, if any, from the same row on as c
  ProductRows<const T> next_a = {};  ///< other rows of A, if the thread is likely to read them next
};

/// Part of C = A^T B: all of M for some rows and columns of C.
template <class T>
struct AtBTile {
  ProductRows<const T> a;  ///< [M, rows of C]
  ProductRows<const T> b;  ///< [M, columns of C]
  Rows<T> c;
  Store store;
  Operands operands;
  /// The operands of the tile that the thread is likely to compute next, if there is one.
  ProductRows<const T> next_a = {}, next_b = {};
};

/// The panels [begin, end) of B = m, or of B = m^T.
template <class T>
struct PanelsToPack {
  Rows<const T> m;
  Form form;
  Operands operands;
  index begin, end;
  T* panels;  ///< panel 0
  index panel_stride;
};

/// How many steps a sum of K terms takes.
constexpr index steps_of(index K, Operands operands) {
  return operands == Operands::kPaired ? (K + 1) / 2 : K;
}

/// The kernels for one tile, for the current instruction set.
template <class T>
struct GemmKernels {
  BlockShape shape;
  void (*matmul)(const MatmulTile<T>&);
  index (*matmul_scratch)(const MatmulTile<T>&);  ///< bytes of scratch memory that `matmul` takes
  void (*pack)(const PanelsToPack<T>&);
  void (*add_rows)(ProductRows<const T> rows, T* sums);  ///< sums[c] += rows[0][c], rows[1][c] ...
};
template <class T>
GemmKernels<T> gemm_kernels();

template <class T>
struct AtBKernels {
  void (*matmul)(const AtBTile<T>&);
  index (*scratch)(const AtBTile<T>&);  ///< bytes of scratch memory that `matmul` takes
};
template <class T>
AtBKernels<T> at_b_kernels();

}  // namespace fovea

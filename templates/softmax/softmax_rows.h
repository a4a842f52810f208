// The rows of a softmax or of its gradient, and the constants of their kernels: shared by the descriptors.
#pragma once

#include <string>

#include "descriptor/rows.h"
#include "kiln/generator/operations/softmax_forward.h"
#include "kiln/generator/program.h"

namespace kiln::descriptor {

/// x and y of softmax_forward, or y, dy and dx of softmax_backward.
struct SoftmaxRows : Rows {
  SoftmaxMode mode = SoftmaxMode::accurate;
  Blend blend;
  int kept_bytes = 0;  ///< Bytes of an element of all inputs: kept_bytes_of().

  static SoftmaxRows of(const Request& request);

  /// Bytes of the inputs read once and the result written once (and read, if beta asks for it).
  double compulsory_bytes() const;
};

/// Rules of kernels whose neighbouring threads take `vector` neighbours of a row each.
template <class Shape>
bool vector_divides_row(const Shape& shape, const SoftmaxRows& softmax, const Target&) {
  return vector_divides(along_rows(softmax), shape.vector);
}
template <class Shape>
bool vector_pays_along_row(const Shape& shape, const SoftmaxRows& softmax, const Target&) {
  return vector_pays(softmax, along_rows(softmax), shape.vector);
}

/// rows_prelude(), with LOG, ALPHA and BETA.
Prelude softmax_prelude(const SoftmaxRows& softmax);
Prelude softmax_prelude(const SoftmaxRows& softmax, const RowLayout& layout, int vector, const Emitter& emit);

/// The same, with what lib/simple_rows.cuh asks for.
Prelude simple_softmax_prelude(const SoftmaxRows& softmax);

/// One launch of `entry` with blocks of `threads` and the arguments: the operands, alpha, beta, user, n. The grid is
/// the caller's to set.
Launch softmax_launch(const SoftmaxRows& softmax, std::string entry, int threads);

}  // namespace kiln::descriptor

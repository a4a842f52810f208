// Elements brought together by indices: gradients of gather(), sums and extremes of what indices name.
//
// The calls throw Error as conv_forward() does (kiln/conv.h).
#pragma once

#include <cstdint>

#include "kiln/context.h"
#include "kiln/epilogue.h"
#include "kiln/generator/operations/scatter.h"
#include "kiln/tensor.h"

namespace kiln {

struct ScatterOptions {
  int64_t axis = 0;  ///< The dimension of y that indices count along; negative: from the end.
  ScatterMode mode = ScatterMode::add;
  float alpha = 1;
  float beta = 0;              ///< Not 0: the old content of y is read. 1 with mode=add: updates are added to y.
  bool dynamic_batch = false;  ///< One kernel for every batch of a power-of-two bucket; not along axis 0.
  Epilogue epilogue = {};      ///< User code only: expression().
};

/// Enqueues y = epilogue(alpha * s + beta * y) on `stream` and returns without waiting: s are the updates whose index
/// is the element's place along `axis`, brought together by the mode. Of no update s is 0, 1 (mul), inf (min) or -inf
/// (max).
///
/// updates: y's extents, but along `axis` any. indices: i32, along `axis` the extent of updates, elsewhere y's or 1,
/// which repeats: indices with extents of 1 except along `axis` name whole slices of y. All three have one rank, 1 to
/// 5; any strides. A negative index counts from the end; what an index outside y names is left out. y must share no
/// element with the others.
///
/// Sums do not depend on the order of their terms: results repeat bit for bit. The fast kernel of sums takes 12 bytes
/// of workspace for each element of y. An empty y is a no-op. Errors, first call, workspace and threads as for
/// conv_forward().
void scatter(Context& context, const Tensor& updates, const Tensor& indices, const Tensor& y,
             const ScatterOptions& options = {}, Stream stream = nullptr);

}  // namespace kiln

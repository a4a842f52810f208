// Gathering elements of a tensor by indices: take, take along an axis, look-ups in tables.
//
// The calls throw Error as conv_forward() does (kiln/conv.h).
#pragma once

#include <cstdint>

#include "kiln/context.h"
#include "kiln/epilogue.h"
#include "kiln/tensor.h"

namespace kiln {

struct GatherOptions {
  int64_t axis = 0;  ///< The dimension of x that indices count along; negative: from the end.
  float alpha = 1;
  float beta = 0;              ///< Not 0: the old content of y is read.
  bool dynamic_batch = false;  ///< One kernel for every batch of a power-of-two bucket; not along axis 0.
  Epilogue epilogue = {};      ///< User code only: expression().
};

/// Enqueues y = epilogue(alpha * x[..., indices[..., i, ...], ...] + beta * y), where i and the index stand in the
/// place of the dimension `axis`, on `stream` and returns without waiting. As numpy.take_along_axis.
///
/// x, y: any dtypes and strides. Elements of equal dtypes, without alpha, beta and user code, are copied bit by bit;
/// others are converted as by tensor_transform(). indices: i32. All three have one rank, 1 to 5. Along `axis` indices
/// have y's extent, and x may have any but 0; along every other dimension x and indices have y's extent or 1, which
/// repeats. So indices with extents of 1 except along `axis` take whole slices of x, and an x with an extent of 1 along
/// dimension 0 is one table for all images.
///
/// A negative index counts from the end. An index outside x gives 0, and no memory is read for it. y must share no
/// element with x or indices. User code may have a prologue, which elements of x pass through first. Bitwise
/// reproducible. An empty y is a no-op. The gradient by x is scatter(). Errors, first call and threads as for
/// conv_forward().
void gather(Context& context, const Tensor& x, const Tensor& indices, const Tensor& y,
            const GatherOptions& options = {}, Stream stream = nullptr);

}  // namespace kiln

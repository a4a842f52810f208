// Matrix products, one or a batch of them, and fully connected layers with their gradients.
//
// The calls throw Error as conv_forward() does (kiln/conv.h).
#pragma once

#include "kiln/context.h"
#include "kiln/epilogue.h"
#include "kiln/tensor.h"

namespace kiln {

struct GemmOptions {
  float alpha = 1;
  float beta = 0;
  Epilogue epilogue{};
  Arithmetic arithmetic{};     ///< Permissions beyond f32 products and sums.
  bool dynamic_batch = false;  ///< One kernel for every M of a power-of-two bucket; only without batch dimensions.
};

/// Returns a view of the same memory with the last two dimensions exchanged: gemm(k, transposed(a), b, c) multiplies by
/// the transpose of a. Copies nothing. Throws Error(invalid_argument) for a tensor of one dimension.
Tensor transposed(const Tensor& matrix);

/// Enqueues c = epilogue(alpha * a b + beta * c) on `stream` and returns without waiting:
/// c[..., m, n] = sum over k of a[..., m, k] * b[..., k, n].
///
/// a: ...,M,K   b: ...,K,N   c: ...,M,N, each of 2 to 5 dimensions, equally many. A batch dimension before the matrix
/// dimensions may be 1 in a or in b: then this matrix is used for every product (broadcast). A bias has N elements, a
/// residual the extents of c, and may be c itself. Any strides, so a transposed matrix, or a part of a larger matrix,
/// is a Tensor like others; dtypes may differ between operands; sums are in f32, or in i32 of 8-bit integers. With
/// beta = 0, c is not read. c must share no element with a, b or the bias. Deterministic: long sums of small products
/// are split over blocks, whose parts are added up in a fixed order. K = 0 gives epilogue(beta * c). An empty batch,
/// M = 0 or N = 0 is a no-op. The prologue of user code applies to a; its `c` is the index along K.
///
/// First call, workspace, threads and errors as for conv_forward().
void gemm(Context& context, const Tensor& a, const Tensor& b, const Tensor& c, const GemmOptions& options = {},
          Stream stream = nullptr);

/// Enqueues y = epilogue(alpha * x w^T + beta * y): a fully connected layer, y[n,k] = sum over c of x[n,c] * w[k,c].
///
/// x: N,C   w: K,C   y: N,K   bias: K. x and w may have up to three more dimensions, the same ones (N,C,H,W and
/// K,C,H,W), which count as inputs like C. Any strides. If the inputs of an image are contiguous in memory, in the same
/// order in x and in w, the layer runs as gemm(), and messages call x a, the transposed w b, and y c. Otherwise it runs
/// as conv_forward() with a filter that covers the image, and user code is refused, because its channel would have
/// another name. The rest as for gemm().
void fully_connected_forward(Context& context, const Tensor& x, const Tensor& w, const Tensor& y,
                             const GemmOptions& options = {}, Stream stream = nullptr);

/// The gradients of y = x w^T + b given dy, two products and a sum:
///
///   dx = alpha * dy w + beta * dx
///   dw = alpha * dy^T x + beta * dw
///   db = alpha * (sum of dy over N) + beta * db
///
/// dy: N,K   x, dx: as x above   w, dw: as w above   db: K. If the forward has an activation, apply the activation's
/// gradient to dy first. Deterministic. With beta = 1 gradients accumulate over calls. An empty batch (N = 0) gives
/// beta * dw and beta * db. Messages use gemm()'s names: a, b, c stand for dy, w, dx, and for the transposed dy, x, dw.
/// If inputs are not contiguous, the gradient is a batch of products, which permits no dynamic batch, and no epilogue
/// with tensors or user code.
void fully_connected_backward_data(Context& context, const Tensor& dy, const Tensor& w, const Tensor& dx,
                                   const GemmOptions& options = {}, Stream stream = nullptr);
void fully_connected_backward_weights(Context& context, const Tensor& x, const Tensor& dy, const Tensor& dw,
                                      const GemmOptions& options = {}, Stream stream = nullptr);
void fully_connected_backward_bias(Context& context, const Tensor& dy, const Tensor& db, float alpha = 1,
                                   float beta = 0, Stream stream = nullptr);

}  // namespace kiln

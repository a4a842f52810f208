// Recurrent layers: LSTM, GRU and plain cells over time.
//
// The calls throw Error as conv_forward() does (kiln/conv.h).
#pragma once

#include <optional>

#include "kiln/context.h"
#include "kiln/epilogue.h"
#include "kiln/generator/operations/recurrent.h"
#include "kiln/tensor.h"

namespace kiln {

struct RecurrentOptions {
  RecurrentCell cell = RecurrentCell::lstm;
  RecurrentDirection direction = RecurrentDirection::forward;
  RecurrentReset reset = RecurrentReset::after;  ///< A GRU's.
  RecurrentOrder order = RecurrentOrder::ifco;   ///< An LSTM's or a GRU's.
  std::optional<Tensor> r_bias{};                ///< D,GH: added to the products with r; default 0.
  std::optional<Tensor> peepholes{};             ///< D,3H: an LSTM's, of the input, output and forget gates; default 0.
  std::optional<Tensor> h0{};                    ///< N,D,H: the state before the first step; default 0.
  std::optional<Tensor> c0{};                    ///< N,D,H: an LSTM's cell state there; default 0.
  std::optional<Tensor> lengths{};               ///< i32, N: the steps of each image; default: all.
  std::optional<Tensor> hn{};                    ///< Output, N,D,H: the state behind the last step that counts.
  std::optional<Tensor> cn{};                    ///< Output, N,D,H: an LSTM's cell state there.
  std::optional<Tensor> saved{};                 ///< Output, N,T,D,SH, for recurrent_backward(): saved_parts_of() is S.
  float alpha = 1;
  float beta = 0;
  bool dynamic_batch = false;  ///< One kernel for every batch of a power-of-two bucket.
  Epilogue epilogue = {};      ///< On y; user code only: expression().
};

/// Enqueues y = epilogue(alpha * h' + beta * y) on `stream` and returns without waiting: h' is the state of the cell
/// behind each step. RecurrentForward has the formulas. A layer is this call behind one product of matrices for all
/// steps: gates = x w + bias, by gemm().
///
/// gates: N,T,D,GH: N images (sequences), T steps, D directions (2 with RecurrentDirection::both, else 1), and for each
/// of the cell's G gates H elements. r: D,GH,H   y: N,T,D,H. Any strides, so that steps may be the outer dimension in
/// memory; dtypes may differ. States between steps and sums are f32; for the product h may be rounded to r's dtype.
///
/// An image with fewer than T steps (`lengths`; outside 0 to T the nearest of these counts) leaves h' of the others 0;
/// its reverse direction begins at its last step. alpha, beta and the epilogue apply to y, and neither to hn nor to the
/// states. Outputs must share no element with other operands. Bitwise reproducible. An empty batch is a no-op. Errors,
/// first call, workspace and threads as for conv_forward().
void recurrent_forward(Context& context, const Tensor& gates, const Tensor& r, const Tensor& y,
                       const RecurrentOptions& options = {}, Stream stream = nullptr);

struct RecurrentBackwardOptions {
  RecurrentCell cell = RecurrentCell::lstm;  ///< This and the next three: as in the forward.
  RecurrentDirection direction = RecurrentDirection::forward;
  RecurrentReset reset = RecurrentReset::after;
  RecurrentOrder order = RecurrentOrder::ifco;
  std::optional<Tensor> y{};          ///< A GRU's states, as the forward gave them without an epilogue.
  std::optional<Tensor> peepholes{};  ///< This and the next three: as in the forward. h0 of a GRU, c0 of an LSTM.
  std::optional<Tensor> h0{};
  std::optional<Tensor> c0{};
  std::optional<Tensor> lengths{};
  std::optional<Tensor> dhn{};        ///< N,D,H: the gradient of hn; default 0.
  std::optional<Tensor> dcn{};        ///< N,D,H: the gradient of an LSTM's cn; default 0.
  std::optional<Tensor> dproducts{};  ///< Output, N,T,D,GH: of a GRU with RecurrentReset::after.
  std::optional<Tensor> dh0{};        ///< Output, N,D,H: the gradient of h0.
  std::optional<Tensor> dc0{};        ///< Output, N,D,H: the gradient of an LSTM's c0.
  float alpha = 1;
  float beta = 0;
  bool dynamic_batch = false;  ///< One kernel for every batch of a power-of-two bucket.
  Epilogue epilogue = {};      ///< On dgates; user code only: expression().
};

/// Enqueues dgates = epilogue(alpha * d + beta * dgates) on `stream` and returns without waiting: d is the gradient of
/// recurrent_forward() with respect to gates. RecurrentBackward has the formulas.
///
/// dy: N,T,D,H, the gradient of y   r: as in the forward   saved: what the forward saved   dgates: N,T,D,GH. What the
/// weights need are products and sums over all images and steps, by gemm() and reduce(): the gradient of r is
/// dproducts^T h, with h the states before each step; dproducts is dgates but for a GRU with RecurrentReset::after.
/// (With RecurrentReset::before the new gate's rows have the reset gate times h in the place of h.)
///
/// Any strides; dtypes may differ; sums are in f32. alpha, beta and the epilogue apply to dgates alone. Behind an
/// image's length dgates and dproducts are 0. Outputs must share no element with other operands. Bitwise reproducible.
/// An empty batch is a no-op. Errors, first call, workspace and threads as for conv_forward().
void recurrent_backward(Context& context, const Tensor& dy, const Tensor& r, const Tensor& saved, const Tensor& dgates,
                        const RecurrentBackwardOptions& options = {}, Stream stream = nullptr);

}  // namespace kiln

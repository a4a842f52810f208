// recurrent_forward, recurrent_backward: a recurrent layer's steps in time (LSTM, GRU, plain cells), and their
// gradient. The typed views of their requests.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "kiln/generator/request.h"

namespace kiln {

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"  // kiln::relu is an epilogue; a scoped enumerator hides nothing
enum class RecurrentCell { lstm, gru, tanh, relu };
#pragma GCC diagnostic pop

/// Ways in time: `both` has two directions, forward and then reverse.
enum class RecurrentDirection { forward, reverse, both };

/// Where the reset gate of a GRU stands.
enum class RecurrentReset {
  after,   ///< behind the product with the recurrent weights: reset (r h + r_bias), as in PyTorch and cuDNN
  before,  ///< in front of it: r (reset h) + r_bias, as in the first paper and ONNX's default
};

/// Order of the gates along the rows of weights.
enum class RecurrentOrder {
  ifco,  ///< LSTM: input, forget, cell, output. GRU: reset, update, new. As in PyTorch and cuDNN
  iofc,  ///< LSTM: input, output, forget, cell. GRU: update, reset, new. As in ONNX
};

/// The name in requests; "?" for a value that is none.
std::string_view to_string(RecurrentCell cell);
std::string_view to_string(RecurrentDirection direction);
std::string_view to_string(RecurrentReset reset);
std::string_view to_string(RecurrentOrder order);

/// Gates of a cell: 4, 3 or 1.
int64_t gates_of(RecurrentCell cell);
/// Directions of a layer: 1 or 2.
int64_t directions_of(RecurrentDirection direction);
/// Parts that a step saves for the gradient, H elements each. lstm: the four gates and then c'. gru: the three gates
/// and then p_n, the product of the new gate. Gates stand in their order, behind their functions. Others: h'.
int64_t saved_parts_of(RecurrentCell cell);

/// Words that a layer and its gradient share.
struct Recurrence {
  RecurrentCell cell = RecurrentCell::lstm;
  RecurrentDirection direction = RecurrentDirection::forward;
  RecurrentReset reset = RecurrentReset::after;
  RecurrentOrder order = RecurrentOrder::ifco;
};

/// One layer in time, without the products of its inputs, which all steps need at once and gemm computes: gates holds
/// w x + bias for each step. With s the logistic function, p = r h + r_bias (h: the state before), and a gate's part of
/// gates and p under its name:
///
///   tanh, relu   h' = f(gates + p)
///   LSTM         i = s(gates_i + p_i + u_i c)   f = s(gates_f + p_f + u_f c)   c' = f c + i tanh(gates_c + p_c)
///                o = s(gates_o + p_o + u_o c')   h' = o tanh(c')     (u: peepholes, 0 without them)
///   GRU          z = s(gates_z + p_z)   q = s(gates_q + p_q)   (z: update, q: reset)
///                n = tanh(gates_n + q p_n), or tanh(gates_n + r_n (q h) + r_bias_n) with RecurrentReset::before
///                h' = (1 - z) n + z h
///
/// gates: N,T,D,GH (images, steps, directions, the H elements of each gate one gate behind the other)
/// r: D,GH,H   r_bias: D,GH   peepholes: D,3H (input, output, forget)   h0, c0, hn, cn: N,D,H   lengths: N
/// y: N,T,D,H, each step's h'   saved: N,T,D,SH (saved_parts_of()), for recurrent_backward; 0 behind an image's length
///
/// An image has as many steps as its length says (0 to T; others count as the nearest of them); y is 0 behind them. The
/// reverse direction begins at the last of them. hn and cn are the states behind the last step that counts, h0 and c0
/// (0 if there are none) those before the first. Kernels may round h to r's dtype for the product.
///
/// Hochreiter and Schmidhuber (1997), Gers and Schmidhuber (2000), Cho et al. (2014); formulas as in ONNX's and
/// PyTorch's documentation of LSTM, GRU and RNN.
struct RecurrentForward : Recurrence {
  TensorSpec gates, r, y;
  std::optional<TensorSpec> r_bias, peepholes, h0, c0, lengths, hn, cn, saved;
  Blend blend;
  bool dynamic_batch = false;

  static RecurrentForward of(const Request& request);
  /// Makes the request; y may have no extents (inferred). Throws as Request::parse does.
  Request request() const;

  int64_t steps() const { return gates.extents[1]; }
  int64_t directions() const { return gates.extents[2]; }
  int64_t hidden() const { return r.extents[2]; }
};

/// Gradients of a layer with respect to gates and the states before, from dy, that of y, and dhn and dcn (0 without
/// them), those of hn and cn. From the last step of an image to the first, with dh the sum of dy and what comes from
/// the step behind:
///
///   tanh, relu   d = dh f'   (f' from h')
///   LSTM         d_o = dh tanh(c') o (1 - o)   dc' += dh o (1 - tanh(c')^2) + u_o d_o
///                d_i = dc' n i (1 - i)   d_f = dc' c f (1 - f)   d_c = dc' i (1 - n^2)   (n: the cell gate)
///                dc = dc' f + u_i d_i + u_f d_f
///   GRU          d_z = dh (h - n) z (1 - z)   d_n = dh (1 - z) (1 - n^2)   d_q = d_n p_n q (1 - q)
///                with RecurrentReset::before d_q = e h q (1 - q), e = d_n r_n
///   dh before the step: d r, of a GRU and dh z; its d_n counts times q there, or its e does
///
/// dgates: N,T,D,GH, d; 0 behind an image's length. dproducts: of a GRU with RecurrentReset::after, the same with q d_n
/// in the place of d_n: the gradient of r h + r_bias. Gradients of r, of r_bias and of what gates are computed from are
/// sums over all steps: products by gemm, and sums by reduce.
///
/// saved: as the layer saved it. y and h0 (0 if there is none) are a GRU's, c0 an LSTM's, of the layer.
struct RecurrentBackward : Recurrence {
  TensorSpec dy, r, saved, dgates;
  std::optional<TensorSpec> y, peepholes, h0, c0, lengths, dhn, dcn, dproducts, dh0, dc0;
  Blend blend;
  bool dynamic_batch = false;

  static RecurrentBackward of(const Request& request);
  /// Makes the request; dgates may have no extents (inferred). Throws as Request::parse does.
  Request request() const;

  int64_t steps() const { return dy.extents[1]; }
  int64_t directions() const { return dy.extents[2]; }
  int64_t hidden() const { return dy.extents[3]; }
};

/// Terms of a sum from one step to the next, if `operand` is the weights that these have.
std::optional<int64_t> recurrent_terms(const Request& request, std::string_view operand);
/// The most steps that an element of `operand` may say, if those are the lengths of a recurrent layer.
std::optional<int64_t> most_recurrent_steps(const Request& request, std::string_view operand);

}  // namespace kiln

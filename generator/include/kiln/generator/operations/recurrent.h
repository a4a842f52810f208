// recurrent_forward: a recurrent layer's steps in time (LSTM, GRU, plain cells), the typed view of its requests.
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
/// y: N,T,D,H, each step's h'
///
/// An image has as many steps as its length says (0 to T; others count as the nearest of them); y is 0 behind them. The
/// reverse direction begins at the last of them. hn and cn are the states behind the last step that counts, h0 and c0
/// (0 if there are none) those before the first. Kernels may round h to r's dtype for the product.
///
/// Hochreiter and Schmidhuber (1997), Gers and Schmidhuber (2000), Cho et al. (2014); formulas as in ONNX's and
/// PyTorch's documentation of LSTM, GRU and RNN.
struct RecurrentForward {
  TensorSpec gates, r, y;
  std::optional<TensorSpec> r_bias, peepholes, h0, c0, lengths, hn, cn;
  RecurrentCell cell = RecurrentCell::lstm;
  RecurrentDirection direction = RecurrentDirection::forward;
  RecurrentReset reset = RecurrentReset::after;
  RecurrentOrder order = RecurrentOrder::ifco;
  Blend blend;
  bool dynamic_batch = false;

  static RecurrentForward of(const Request& request);
  /// Makes the request; y may have no extents (inferred). Throws as Request::parse does.
  Request request() const;

  int64_t steps() const { return gates.extents[1]; }
  int64_t directions() const { return gates.extents[2]; }
  int64_t hidden() const { return r.extents[2]; }
};

/// Whether `operand` is a recurrent layer's weights, whose products must not grow from step to step.
bool is_recurrent_weights(const Request& request, std::string_view operand);
/// The most steps that an element of `operand` may say, if those are the lengths of a recurrent layer.
std::optional<int64_t> most_recurrent_steps(const Request& request, std::string_view operand);

}  // namespace kiln

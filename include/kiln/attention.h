// Attention: values, weighted by the softmax of queries times keys.
//
// The calls throw Error as conv_forward() does (kiln/conv.h).
#pragma once

#include <cstdint>
#include <optional>

#include "kiln/context.h"
#include "kiln/epilogue.h"
#include "kiln/generator/operations/attention.h"
#include "kiln/tensor.h"

namespace kiln {

struct AttentionOptions {
  int64_t left = -1;                             ///< Keys in front of its place that a query sees; -1: all.
  int64_t right = -1;                            ///< Keys behind it; -1: all; 0: causal attention.
  AttentionAlign align = AttentionAlign::start;  ///< A query's place: that of its number, or the last one's at the end.
  float scale = 0;                               ///< Factor of the products of queries and keys; 0: 1 / sqrt(D).
  float dropout = 0;                ///< Share of weights that become 0, to 1; 0: none, and nothing is drawn.
  uint64_t seed = 0;                ///< Key of the random sequence that says which.
  uint64_t offset = 0;              ///< Place in it: another one for each call.
  std::optional<Tensor> bias{};     ///< N,H,M,L, extents of 1 repeat: added to the scores; default 0.
  std::optional<Tensor> mask{};     ///< u8, the same: 0 hides a key from a query; default: none is.
  std::optional<Tensor> lengths{};  ///< i32, N: the keys of each image; default: all.
  std::optional<Tensor> lse{};      ///< Output, f32, N,H,M: what attention_backward() needs.
  float alpha = 1;
  float beta = 0;
  bool dynamic_batch = false;  ///< One kernel for every batch of a power-of-two bucket.
  Epilogue epilogue = {};      ///< On y; user code only: expression().
};

/// Enqueues y = epilogue(alpha * softmax(scale q k^T + bias) v + beta * y) on `stream` and returns without waiting.
/// AttentionForward has the formulas.
///
/// q: N,H,M,D (images, heads, queries)   k: N,K,L,D   v: N,K,L,E   y: N,H,M,E, with K a divisor of H: as many heads
/// share one of keys and values. Any strides; dtypes may differ. Sums are f32; weights may be rounded to v's dtype. A
/// query that sees no key, or whose scores are all -inf, gives 0.
///
/// Keys and values behind an image's length are not read; values of keys that are hidden otherwise are multiplied by 0.
/// Outputs must share no element with other operands. Bitwise reproducible. An empty batch is a no-op. Errors, first
/// call, workspace and threads as for conv_forward().
void attention_forward(Context& context, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& y,
                       const AttentionOptions& options = {}, Stream stream = nullptr);

struct AttentionBackwardOptions {
  int64_t left = -1;  ///< This and the next nine: as in the forward.
  int64_t right = -1;
  AttentionAlign align = AttentionAlign::start;
  float scale = 0;
  float dropout = 0;
  uint64_t seed = 0;
  uint64_t offset = 0;
  std::optional<Tensor> bias{};
  std::optional<Tensor> mask{};
  std::optional<Tensor> lengths{};
  std::optional<Tensor> dk{};     ///< Output, N,K,L,D: the gradient of k.
  std::optional<Tensor> dv{};     ///< Output, N,K,L,E: the gradient of v.
  std::optional<Tensor> dbias{};  ///< Output, N,H,M,L: that of the scores; of a bias that repeats, reduce() adds it up.
  float alpha = 1;
  float beta = 0;
  bool dynamic_batch = false;  ///< One kernel for every batch of a power-of-two bucket.
  Epilogue epilogue = {};      ///< On dq; user code only: expression().
};

/// Enqueues dq = epilogue(alpha * d + beta * dq) on `stream` and returns without waiting: d is the gradient of
/// attention_forward() with respect to q. AttentionBackward has the formulas.
///
/// dy: N,H,M,E, the gradient of y   q, k, v: as in the forward   y, lse: as the forward gave them, y without an
/// epilogue dq: N,H,M,D. dk and dv add up the heads that share them; alpha, beta and the epilogue apply to dq alone.
/// Any strides; dtypes may differ; sums are f32. Outputs must share no element with other operands. Nothing is added
/// atomically: results repeat bit for bit. An empty batch is a no-op. Errors, first call, workspace and threads as for
/// conv_forward().
void attention_backward(Context& context, const Tensor& dy, const Tensor& q, const Tensor& k, const Tensor& v,
                        const Tensor& y, const Tensor& lse, const Tensor& dq,
                        const AttentionBackwardOptions& options = {}, Stream stream = nullptr);

}  // namespace kiln

// attention_forward and attention_backward: softmax(scale q k^T + bias) v, and its gradients; the typed view of their
// requests.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "kiln/generator/request.h"

namespace kiln {

/// Where a query stands among the keys.
enum class AttentionAlign {
  start,  ///< Query i at key i.
  end,    ///< The last query at the last key: query i at key i + L - M, where an image has a length at i + length - M.
};

std::string_view to_string(AttentionAlign align);

/// The part that the two share.
struct Attention {
  TensorSpec q, k, v;
  std::optional<TensorSpec> bias, mask, lengths;
  int64_t left = -1, right = -1;  ///< Keys on either side of a query's place that it sees; -1: all.
  AttentionAlign align = AttentionAlign::start;
  bool drops = false;  ///< Attribute dropout=any: weights are dropped with the probability `dropout`.
  Blend blend;
  bool dynamic_batch = false;

  int64_t images() const { return q.extents[0]; }
  int64_t heads() const { return q.extents[1]; }
  int64_t queries() const { return q.extents[2]; }
  int64_t depth() const { return q.extents[3]; }  ///< D: elements of a query or key.
  int64_t key_heads() const { return k.extents[1]; }
  int64_t keys() const { return k.extents[2]; }
  int64_t width() const { return v.extents[3]; }  ///< E: elements of a value.
  bool has_window() const { return left >= 0 || right >= 0; }
};

/// y = sum over the keys l that the query sees of p_l v_l, with p = softmax(s) over these, s_l = scale (q . k_l) +
/// bias_l.
///
/// q: N,H,M,D   k: N,K,L,D   v: N,K,L,E   y: N,H,M,E   (N images, H heads, M queries, L keys; any strides)
/// K divides H: H / K heads that follow each other share the keys and values of one. bias: N,H,M,L, of which extents of
/// 1 repeat; so of mask, whose elements of 0 hide a key from a query. lengths: N, keys of each image, 0 to L; others
/// count as the nearest of these. A query at place i among the keys (AttentionAlign) sees keys i - left to i + right.
/// lse: N,H,M, log(sum of exp(s)), for the gradient.
///
/// If it `drops`, each p_l counts as d p_l, where d is 0 with the probability `dropout`, else 1 / (1 - dropout): that
/// of element n,h,m,l in the sequence of `seed` and `offset`, as operation dropout has it.
///
/// A query that sees no key, or whose scores are all -inf, gives 0, and lse is -inf. Kernels may round p, unnormalised
/// as exp(s - maximum so far), to v's dtype for the product, and scores may be scaled before they are rounded to f32.
///
/// Vaswani et al. (2017); in one pass over the keys as Milakov and Gimelshein (2018) and Dao et al. (2022) do it.
struct AttentionForward : Attention {
  TensorSpec y;
  std::optional<TensorSpec> lse;

  static AttentionForward of(const Request& request);
  /// Makes the request; y may have no extents (inferred). Throws as Request::parse does.
  Request request() const;
};

/// Gradients of attention_forward, from dy, that of y. With p_l = min(1, exp(s_l - lse)) and r = sum over e of dy y:
///
///   dv_l = sum over queries of p_l dy     ds_l = p_l ((dy . v_l) - r)
///   dq = scale sum over l of ds_l k_l     dk_l = scale sum over queries of ds_l q     dbias = ds
///
/// If it `drops`, dv_l has d p_l in the place of p_l, and dy . v_l counts d times.
///
/// dk and dv add up the heads that share them. dbias is N,H,M,L, also where bias repeats: reduce adds it up. y, lse and
/// all else are as in the forward. Where lse is -inf, and of hidden keys, p and ds are 0. Kernels may round p and ds to
/// the dtype of what they are multiplied with.
struct AttentionBackward : Attention {
  TensorSpec dy, y, lse, dq;
  std::optional<TensorSpec> dk, dv, dbias;

  static AttentionBackward of(const Request& request);
  /// Makes the request; dq may have no extents (inferred). Throws as Request::parse does.
  Request request() const;
};

/// Pairs of a query and a key that it sees, of one image and head, if all its keys count.
double visible_pairs(const Attention& attention);

}  // namespace kiln

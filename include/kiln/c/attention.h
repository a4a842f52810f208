/* Attention: values, weighted by the softmax of queries times keys. See kiln/kiln.h. */
/* Made by scripts/c-api from capi/operations/attention.txt and the definitions of the operations. */
#pragma once

#include <stdint.h>
#include <string.h>

#include "kiln/c/core.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t kiln_attention_align;
enum {
  KILN_ATTENTION_START = 0, /* Query i stands at key i. */
  KILN_ATTENTION_END = 1    /* The last query stands at the last key that counts. */
};

/* Tensors that are not wanted are NULL, which is their default. */
typedef struct kiln_attention_options {
  uint32_t size;
  kiln_attention_align align; /* A query's place among the keys. */
  int64_t left;               /* Keys in front of its place that a query sees. -1: all. */
  int64_t right;              /* Keys behind it. -1: all. 0: causal attention. */
  float scale;                /* Factor of the products of queries and keys. 0: 1 / sqrt(D). */
  float dropout;              /* Share of weights that become 0. 0: none, and nothing is drawn. */
  uint64_t seed;              /* Key of the random sequence that says which. */
  uint64_t offset;            /* Place in it: another one for each call. */
  float alpha;                /* Default 1. */
  float beta;                 /* Default 0: the result is not read. */
  int32_t dynamic_batch;      /* One kernel for every batch of a power-of-two bucket. */
  int32_t reserved;
  const kiln_tensor* bias;       /* N,H,M,L, extents of 1 repeat: added to the scores. */
  const kiln_tensor* mask;       /* u8, the same: 0 hides a key from a query. */
  const kiln_tensor* lengths;    /* i32, N: the keys of each image. Default NULL: all. */
  const kiln_tensor* lse;        /* Output, f32, N,H,M: what kiln_attention_backward() needs. */
  const kiln_epilogue* epilogue; /* User code only. Default NULL: none. */
} kiln_attention_options;

static inline kiln_attention_options kiln_attention_options_default(void) {
  kiln_attention_options options;
  memset(&options, 0, sizeof options);
  options.size = (uint32_t)sizeof options;
  options.left = -1;
  options.right = -1;
  options.alpha = 1;
  return options;
}

/* Enqueues y = epilogue(alpha * softmax(scale q k^T + bias) v + beta * y) on `stream` and returns.
 *
 * q: N,H,M,D (images, heads, queries), k: N,K,L,D, v: N,K,L,E, y: N,H,M,E, with K a divisor of H: as many heads share
 * one of keys and values. Any strides. A query that sees no key gives 0. Keys and values behind an image's length are
 * not read. Outputs must share no element with other operands. Deterministic. `options` may be NULL. Errors, first
 * call, workspace and threads as for kiln_conv_forward(). */
KILN_API kiln_status kiln_attention_forward(kiln_context* context, const kiln_tensor* q, const kiln_tensor* k,
                                            const kiln_tensor* v, const kiln_tensor* y,
                                            const kiln_attention_options* options, kiln_stream stream);

/* Tensors that are not wanted are NULL, which is their default. */
typedef struct kiln_attention_backward_options {
  uint32_t size;
  /* As in the forward, as are left, right, scale, dropout, seed, offset, bias, mask and lengths. */
  kiln_attention_align align;
  int64_t left;
  int64_t right;
  float scale;
  float dropout;
  uint64_t seed;
  uint64_t offset;
  float alpha;           /* Default 1. */
  float beta;            /* Default 0: the result is not read. */
  int32_t dynamic_batch; /* One kernel for every batch of a power-of-two bucket. */
  int32_t reserved;
  const kiln_tensor* bias;
  const kiln_tensor* mask;
  const kiln_tensor* lengths;
  const kiln_tensor* dk;    /* Output, N,K,L,D: the gradient of k. */
  const kiln_tensor* dv;    /* Output, N,K,L,E: the gradient of v. */
  const kiln_tensor* dbias; /* Output, N,H,M,L: that of the scores; of a bias that repeats, kiln_reduce() adds it up. */
  const kiln_epilogue* epilogue; /* User code only. Default NULL: none. */
} kiln_attention_backward_options;

static inline kiln_attention_backward_options kiln_attention_backward_options_default(void) {
  kiln_attention_backward_options options;
  memset(&options, 0, sizeof options);
  options.size = (uint32_t)sizeof options;
  options.left = -1;
  options.right = -1;
  options.alpha = 1;
  return options;
}

/* Enqueues dq = epilogue(alpha * d + beta * dq) on `stream` and returns: d is the gradient of kiln_attention_forward()
 * with respect to q.
 *
 * dy: N,H,M,E, the gradient of y; q, k, v: as in the forward; y, lse: as the forward gave them, y without an epilogue;
 * dq: N,H,M,D. dk and dv add up the heads that share them. Any strides. Outputs must share no element with other
 * operands. Deterministic. `options` may be NULL. Errors, first call, workspace and threads as for
 * kiln_conv_forward(). */
KILN_API kiln_status kiln_attention_backward(kiln_context* context, const kiln_tensor* dy, const kiln_tensor* q,
                                             const kiln_tensor* k, const kiln_tensor* v, const kiln_tensor* y,
                                             const kiln_tensor* lse, const kiln_tensor* dq,
                                             const kiln_attention_backward_options* options, kiln_stream stream);

#ifdef __cplusplus
} /* extern "C" */
#endif

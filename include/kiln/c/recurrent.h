/* Recurrent layers: LSTM, GRU and plain cells over time. See kiln/kiln.h. */
/* Made by scripts/c-api from capi/operations/recurrent.txt and the definitions of the operations. */
#pragma once

#include <stdint.h>
#include <string.h>

#include "kiln/c/core.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t kiln_recurrent_cell;
enum { KILN_RECURRENT_LSTM = 0, KILN_RECURRENT_GRU = 1, KILN_RECURRENT_TANH = 2, KILN_RECURRENT_RELU = 3 };

typedef int32_t kiln_recurrent_direction;
enum {
  KILN_RECURRENT_FORWARD = 0,
  KILN_RECURRENT_REVERSE = 1,
  KILN_RECURRENT_BOTH = 2 /* Two directions: forward, and then reverse. */
};

typedef int32_t kiln_recurrent_reset;
enum {
  KILN_RESET_AFTER = 0, /* Behind the product with r, as in PyTorch and cuDNN. */
  KILN_RESET_BEFORE = 1 /* In front of it, as is ONNX's default. */
};

typedef int32_t kiln_recurrent_order;
enum {
  KILN_GATES_IFCO = 0, /* LSTM: input, forget, cell, output. GRU: reset, update, new. As in PyTorch and cuDNN. */
  KILN_GATES_IOFC = 1  /* LSTM: input, output, forget, cell. GRU: update, reset, new. As in ONNX. */
};

/* Tensors that are not wanted are NULL, which is their default. */
typedef struct kiln_recurrent_options {
  uint32_t size;
  kiln_recurrent_cell cell;           /* Default KILN_RECURRENT_LSTM. */
  kiln_recurrent_direction direction; /* Default KILN_RECURRENT_FORWARD. */
  kiln_recurrent_reset reset;         /* A GRU's. */
  kiln_recurrent_order order;         /* An LSTM's or a GRU's. */
  float alpha;                        /* Default 1. */
  float beta;                         /* Default 0: the result is not read. */
  int32_t dynamic_batch;              /* One kernel for every batch of a power-of-two bucket. */
  const kiln_tensor* r_bias;          /* D,GH: added to the products with r. */
  const kiln_tensor* peepholes;       /* D,3H: an LSTM's, of the input, output and forget gates. */
  const kiln_tensor* h0;              /* N,D,H: the state before the first step. */
  const kiln_tensor* c0;              /* N,D,H: an LSTM's cell state there. */
  const kiln_tensor* lengths;         /* i32, N: the steps of each image. Default NULL: all. */
  const kiln_tensor* hn;              /* Output, N,D,H: the state behind the last step that counts. */
  const kiln_tensor* cn;              /* Output, N,D,H: an LSTM's cell state there. */
  /* Output, N,T,D,SH, for kiln_recurrent_backward(): S is 5 of an LSTM, 4 of a GRU, else 1. */
  const kiln_tensor* saved;
  const kiln_epilogue* epilogue; /* User code only. Default NULL: none. */
} kiln_recurrent_options;

static inline kiln_recurrent_options kiln_recurrent_options_default(void) {
  kiln_recurrent_options options;
  memset(&options, 0, sizeof options);
  options.size = (uint32_t)sizeof options;
  options.alpha = 1;
  return options;
}

/* Enqueues y = epilogue(alpha * h' + beta * y) on `stream` and returns: h' is the state of the cell behind each step. A
 * layer is this call behind one product of matrices for all steps, gates = x w + bias, by kiln_gemm().
 *
 * gates: N,T,D,GH (images or sequences, steps, directions, H elements of each of G gates), r: D,GH,H, y: N,T,D,H; any
 * strides. An image with fewer than T steps leaves h' of the others 0; its reverse direction begins at its last step.
 * Outputs must share no element with other operands. Deterministic. `options` may be NULL. Errors, first call,
 * workspace and threads as for kiln_conv_forward(). */
KILN_API kiln_status kiln_recurrent_forward(kiln_context* context, const kiln_tensor* gates, const kiln_tensor* r,
                                            const kiln_tensor* y, const kiln_recurrent_options* options,
                                            kiln_stream stream);

/* Tensors that are not wanted are NULL, which is their default. */
typedef struct kiln_recurrent_backward_options {
  uint32_t size;
  kiln_recurrent_cell cell; /* As in the forward, as are direction, reset and order. */
  kiln_recurrent_direction direction;
  kiln_recurrent_reset reset;
  kiln_recurrent_order order;
  float alpha;                  /* Default 1. */
  float beta;                   /* Default 0: the result is not read. */
  int32_t dynamic_batch;        /* One kernel for every batch of a power-of-two bucket. */
  const kiln_tensor* y;         /* A GRU's states, as the forward gave them without an epilogue. */
  const kiln_tensor* peepholes; /* As in the forward, as are h0 (of a GRU), c0 (of an LSTM) and lengths. */
  const kiln_tensor* h0;
  const kiln_tensor* c0;
  const kiln_tensor* lengths;
  const kiln_tensor* dhn;        /* N,D,H: the gradient of hn. Default NULL: 0. */
  const kiln_tensor* dcn;        /* N,D,H: the gradient of an LSTM's cn. Default NULL: 0. */
  const kiln_tensor* dproducts;  /* Output, N,T,D,GH: of a GRU with KILN_RESET_AFTER, the gradient of r h + r_bias. */
  const kiln_tensor* dh0;        /* Output, N,D,H: the gradient of h0. */
  const kiln_tensor* dc0;        /* Output, N,D,H: the gradient of an LSTM's c0. */
  const kiln_epilogue* epilogue; /* For dgates; user code only. Default NULL: none. */
} kiln_recurrent_backward_options;

static inline kiln_recurrent_backward_options kiln_recurrent_backward_options_default(void) {
  kiln_recurrent_backward_options options;
  memset(&options, 0, sizeof options);
  options.size = (uint32_t)sizeof options;
  options.alpha = 1;
  return options;
}

/* Enqueues dgates = epilogue(alpha * d + beta * dgates) on `stream` and returns: d is the gradient of
 * kiln_recurrent_forward() with respect to gates. The gradient of r is a product, dproducts^T h, with h the states
 * before each step; dproducts is dgates but for a GRU with KILN_RESET_AFTER.
 *
 * dy: N,T,D,H, the gradient of y, r: as in the forward, saved: what that saved, dgates: N,T,D,GH; any strides. Outputs
 * must share no element with other operands. Deterministic. `options` may be NULL. Errors, first call, workspace and
 * threads as for kiln_conv_forward(). */
KILN_API kiln_status kiln_recurrent_backward(kiln_context* context, const kiln_tensor* dy, const kiln_tensor* r,
                                             const kiln_tensor* saved, const kiln_tensor* dgates,
                                             const kiln_recurrent_backward_options* options, kiln_stream stream);

#ifdef __cplusplus
} /* extern "C" */
#endif

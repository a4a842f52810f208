/* Elements brought together by indices: gradients of kiln_gather(), sums and extremes of what indices name. See
 * kiln/kiln.h. */
/* Made by scripts/c-api from capi/operations/scatter.txt and the definitions of the operations. */
#pragma once

#include <stdint.h>
#include <string.h>

#include "kiln/c/core.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t kiln_scatter_mode;
enum {
  KILN_SCATTER_ADD = 0, /* The sum; of nothing 0. */
  KILN_SCATTER_MUL = 1, /* The product; of nothing 1. */
  KILN_SCATTER_MIN = 2, /* The least, NaN if one is NaN; of nothing infinity. */
  KILN_SCATTER_MAX = 3  /* Likewise the largest; of nothing -infinity. */
};

typedef struct kiln_scatter_options {
  uint32_t size;
  kiln_scatter_mode mode; /* Default KILN_SCATTER_ADD. */
  float alpha;            /* Default 1. */
  float beta;             /* Default 0: y is not read. */
  int32_t dynamic_batch;  /* One kernel for every batch of a power-of-two bucket; not along axis 0. */
  int32_t reserved;
  int64_t axis;                  /* The dimension of y that indices count along; negative: from the end. Default 0. */
  const kiln_epilogue* epilogue; /* User code only. Default NULL: none. */
} kiln_scatter_options;

static inline kiln_scatter_options kiln_scatter_options_default(void) {
  kiln_scatter_options options;
  memset(&options, 0, sizeof options);
  options.size = (uint32_t)sizeof options;
  options.alpha = 1;
  return options;
}

/* Enqueues y = epilogue(alpha * s + beta * y) on `stream` and returns: s are the updates whose index is the element's
 * place along `axis`, brought together by the mode.
 *
 * updates: y's extents, but along `axis` any. indices: i32, along `axis` the extent of updates, elsewhere y's or 1,
 * which repeats. All three have one rank, 1 to 5; any strides. A negative index counts from the end; what an index
 * outside y names is left out. y must share no element with the others. Deterministic. `options` may be NULL. Errors,
 * first call, workspace and threads as for kiln_conv_forward(). */
KILN_API kiln_status kiln_scatter(kiln_context* context, const kiln_tensor* updates, const kiln_tensor* indices,
                                  const kiln_tensor* y, const kiln_scatter_options* options, kiln_stream stream);

#ifdef __cplusplus
} /* extern "C" */
#endif

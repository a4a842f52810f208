/* Any operation by its name: for bindings and engines that hold operations as data. See kiln/kiln.h. */
#pragma once

#include "kiln/c/core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An integer of 64 bits that an operation takes: a seed. */
typedef struct kiln_named_integer {
  const char* name;
  uint64_t value;
} kiln_named_integer;

/* Options of a call by name, besides its tensors. */
typedef struct kiln_call_options {
  uint32_t size;
  int32_t reserved;
  /* `alpha` (1 if not given) and `beta` (0), the bounds `clip_lo` and `clip_hi` of an epilogue's clip (infinite), and
   * the numbers of the operation by the names that docs/request-syntax.md has for them: those not given are the usual
   * ones. Default: none is given. */
  const kiln_named_scalar* numbers;
  size_t number_count;
  const kiln_named_integer* integers; /* Integers that are not given have their usual values, too. */
  size_t integer_count;
  const kiln_epilogue* epilogue; /* User code only; stages stand in the text. Default NULL. */
  /* Device memory for what the call makes in between, 256-byte aligned, apart from its tensors; default NULL: the
   * context's. A call that is given one can be captured into a graph. Calls that overlap in time need one each. */
  void* workspace;
  int64_t workspace_bytes;
} kiln_call_options;

static inline kiln_call_options kiln_call_options_default(void) {
  kiln_call_options options;
  memset(&options, 0, sizeof options);
  options.size = (uint32_t)sizeof options;
  return options;
}

/* Enqueues one operation on `stream` and returns without waiting. `what`: a request (docs/request-syntax.md) without
 * its tensors, the classes of alpha and beta, and user code: "conv_forward pad=1,1 epilogue=bias+relu", 512 bytes at
 * the most. `tensors`: the operands by the names that docs/request-syntax.md has for them, in any order. The call does
 * what the operation's own function does. `options` may be NULL.
 *
 * Statuses are those of that function, and KILN_INVALID_ARGUMENT for a name that the operation does not know, or one
 * that is given twice, and for a workspace that is too small; for `what`, KILN_PARSE_ERROR or KILN_INVALID_ARGUMENT. */
KILN_API kiln_status kiln_call(kiln_context* context, const char* what, const kiln_named_tensor* tensors,
                               size_t tensor_count, const kiln_call_options* options, kiln_stream stream);

/* The plan that kiln_call() runs for these arguments: its workspace_bytes are what such a call needs, as long as
 * nothing is tuned meanwhile. The addresses of the tensors may be NULL here; only how they are aligned matters, NULL as
 * well as any. kiln_plan_destroy() takes the plan back. */
KILN_API kiln_status kiln_call_plan(kiln_context* context, const char* what, const kiln_named_tensor* tensors,
                                    size_t tensor_count, const kiln_call_options* options, kiln_plan** plan);

#ifdef __cplusplus
} /* extern "C" */
#endif

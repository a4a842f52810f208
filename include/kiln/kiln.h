/* Kiln's C API: everything that the C++ API does, for C11 and for languages that call C.
 *
 *   kiln_context* context;
 *   if (kiln_context_create(NULL, &context) != KILN_OK) puts(kiln_last_error());
 *
 * Status. A call that can fail returns a kiln_status. If the status is not KILN_OK, nothing was enqueued, output
 * parameters are as they were, and kiln_last_error() names the wrong value and the expected one.
 *
 * Handles are opaque. A handle of a create call is freed by the destroy call of its kind; destroy calls accept NULL. A
 * plan and device memory keep the parts of their context that they need, so handles may be destroyed in any order.
 *
 * Structures that begin with `size` may grow in later versions. Start from their *_default() function, which writes the
 * size that your compiler saw. The library reads no further, and takes defaults for later fields. Fields are laid out
 * without gaps, flags are 0 or 1, `reserved` is 0.
 *
 * Strings are UTF-8 and end with a zero byte. Requests are text as in a requests file (docs/request-syntax.md): one
 * line each, with `#` comments. A call for one request takes exactly one line.
 *
 * Threads. Handles may be shared among threads, except an epilogue that is being built and a handle that is being
 * destroyed. No exception leaves a call. A thread that is cancelled (pthread_cancel) within a call ends after the call
 * has returned, at its next cancellation point. */
#pragma once

#include "kiln/c/activation.h"
#include "kiln/c/affine_grid.h"
#include "kiln/c/attention.h"
#include "kiln/c/call.h"
#include "kiln/c/conv.h"
#include "kiln/c/core.h"
#include "kiln/c/ctc_loss.h"
#include "kiln/c/dropout.h"
#include "kiln/c/gather.h"
#include "kiln/c/gemm.h"
#include "kiln/c/grid_sample.h"
#include "kiln/c/im2col.h"
#include "kiln/c/local_conv.h"
#include "kiln/c/local_norm.h"
#include "kiln/c/loss.h"
#include "kiln/c/norm.h"
#include "kiln/c/pool.h"
#include "kiln/c/recurrent.h"
#include "kiln/c/reduce.h"
#include "kiln/c/resize.h"
#include "kiln/c/scatter.h"
#include "kiln/c/softmax.h"
#include "kiln/c/tensor_ops.h"

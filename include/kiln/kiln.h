/* Kiln's C API: everything that the C++ API does, for C11 and for languages that call C.
 *
 *   kiln_context* context;
 *   if (kiln_context_create(NULL, &context) != KILN_OK) puts(kiln_last_error());
 *
 * Status. A call that can fail returns a kiln_status. Unless that is KILN_OK, nothing was enqueued, output parameters
 * are as they were, and kiln_last_error() says what was wrong and what was expected.
 *
 * Handles are opaque. What a create call gave, the destroy call of its kind takes back; destroy calls accept NULL. A
 * plan and device memory keep what they need of their context, so the order does not matter.
 *
 * Structures that begin with `size` may grow in later versions. Start from their *_default() function, which writes the
 * size that your compiler saw; the library reads no further, and takes the default for what lies behind. Fields are
 * laid out without gaps, flags are 0 or 1, `reserved` is 0.
 *
 * Strings are UTF-8 and end with a zero byte. Requests are text as in a requests file (docs/request-syntax.md): one
 * line each, with `#` comments; where one request is wanted, exactly one.
 *
 * Threads. Handles may be shared among threads, but for an epilogue that is being built and a handle that is being
 * destroyed. No exception leaves a call. */
#pragma once

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Marks what the library exports; the rest of it is hidden. */
#define KILN_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Status and errors ------------------------------------------------------------------------------------------- */

/* What kind of fault a call reports. Later versions may add values. */
typedef int32_t kiln_status;
enum {
  KILN_OK = 0,
  KILN_INVALID_ARGUMENT = 1, /* A handle, request, tensor, structure or setting is wrong. Nothing was enqueued. */
  KILN_PARSE_ERROR = 2,      /* Text is malformed; the message holds the position. */
  KILN_UNSUPPORTED = 3,      /* Well formed, but nothing here can serve it. The message says what was missing. */
  KILN_COMPILE_FAILED = 4,   /* NVRTC rejected a source; the message carries its log. */
  KILN_DRIVER_ERROR = 5,     /* A driver call failed; the message names the call, the object and the driver's text. */
  KILN_MISSING_LIBRARY = 6,  /* libcuda, NVRTC or the emulator could not be loaded. */
  KILN_OUT_OF_MEMORY = 7,    /* Host or device memory ran out. */
  KILN_IO_ERROR = 8,         /* A file could not be read or written. */
  KILN_INTERNAL = 9          /* A broken invariant in Kiln itself; please report it. */
};

/* "invalid argument" and the like; "unknown status" for a value that this library does not know. Never NULL. */
KILN_API const char* kiln_status_name(kiln_status status);

/* What was wrong with the last call of this thread that failed, and what was expected; "" if none has failed. A call
 * that succeeds leaves it. Never NULL; valid until the next call of this thread that fails. */
KILN_API const char* kiln_last_error(void);

/* What can be done about kiln_last_error(); may be "". As long-lived. */
KILN_API const char* kiln_last_hint(void);

/* The version of the library in use, "0.1.0". */
KILN_API const char* kiln_version(void);

/* ---- Context ----------------------------------------------------------------------------------------------------- */

/* One device, its tuning cache and the plans made so far. Share one per device among all threads. */
typedef struct kiln_context kiln_context;

/* Receives the few things that a user should know once. May be called from any thread that calls Kiln. */
typedef void (*kiln_announce_function)(void* data, const char* message);

/* Whether a context tunes what has no time of its device yet. Tuning runs in worker processes on the same device. */
typedef int32_t kiln_tuning_mode;
enum {
  KILN_TUNING_NEVER = 0, /* What is stored, shipped or estimated is used as it is. */
  /* A plan, prepare() and the first call for a shape tune before they return, until the budget is spent. */
  KILN_TUNING_WITHIN_BUDGET = 1,
  /* Nothing waits: what is known serves, the operation calls take the better variant when it is there. */
  KILN_TUNING_IN_BACKGROUND = 2
};

typedef struct kiln_context_options {
  uint32_t size;
  int32_t device;          /* Ordinal of the device. Default 0. */
  int64_t workspace_limit; /* Bytes; candidates that need more are passed over. Default INT64_MAX. */
  /* The tuning database, or "off". Default NULL: KILN_CACHE, else kiln/tuning.db in the user's cache folder. */
  const char* cache;
  /* Packs to read beside those of KILN_PACK_PATH, in order of preference. */
  const char* const* packs;
  size_t pack_count;
  /* Bundles of compiled variants beside those of KILN_BUNDLE_PATH. NVRTC is not needed for what they hold. */
  const char* const* bundles;
  size_t bundle_count;
  /* Folders of user templates (docs/user-code.md): their kernels are candidates like Kiln's own. */
  const char* const* user_templates;
  size_t user_template_count;
  /* The folder of compiled kernels, or "off". Default NULL: KILN_KERNEL_STORE, else kiln/kernels in the cache folder.
   */
  const char* kernel_store;
  /* Settings as "NAME=value" in place of the process environment; names as in docs/environment.md, also
   * XDG_CACHE_HOME and HOME. Default NULL: the process environment. */
  const char* const* environment;
  size_t environment_count;
  kiln_announce_function announce; /* Default NULL: one line on stderr. */
  void* announce_data;             /* Handed to `announce`. */
  int32_t deterministic;           /* Only variants whose results are bitwise reproducible. */
  /* Only what packs and bundles name: no database, no estimate. Anything else is an error. */
  int32_t locked;
  kiln_tuning_mode tuning_mode; /* Default KILN_TUNING_NEVER. */
  int32_t reserved;
  double tuning_budget_seconds; /* The most that the context spends on tuning in all. Default 60. */
  size_t tuning_candidates;     /* The most variants to try of each request. Default 16. */
} kiln_context_options;

static inline kiln_context_options kiln_context_options_default(void) {
  kiln_context_options options;
  memset(&options, 0, sizeof options);
  options.size = (uint32_t)sizeof options;
  options.workspace_limit = INT64_MAX;
  options.tuning_budget_seconds = 60;
  options.tuning_candidates = 16;
  return options;
}

/* Opens a device: by libcuda, or by the emulator where there is no GPU. Works in the driver context that is current on
 * this thread if that belongs to the device, else in the device's primary context. `options` may be NULL.
 *
 * KILN_MISSING_LIBRARY (no driver, no NVRTC, no worker to tune with), KILN_DRIVER_ERROR, KILN_INVALID_ARGUMENT (no such
 * device, a setting, options that contradict each other). A database, pack, bundle or store that cannot be used is
 * announced and left out. */
KILN_API kiln_status kiln_context_create(const kiln_context_options* options, kiln_context** context);
KILN_API void kiln_context_destroy(kiln_context* context);

/* What a context is about; the strings live as long as the context. */
typedef struct kiln_context_info {
  uint32_t size;
  int32_t reserved;
  const char* device_description; /* "NVIDIA H200, compute capability 9.0, ..., by CUDA 13.0 ...", for people. */
  const char* device_id;          /* The line under which records of this device are kept. */
} kiln_context_info;

static inline kiln_context_info kiln_context_info_default(void) {
  kiln_context_info info;
  memset(&info, 0, sizeof info);
  info.size = (uint32_t)sizeof info;
  return info;
}

KILN_API kiln_status kiln_context_get_info(const kiln_context* context, kiln_context_info* info);

/* Makes the plans of all `requests` now, so that no later call compiles; with KILN_TUNING_WITHIN_BUDGET, tunes them
 * first in one session. Reports the first that fails, after trying all. */
KILN_API kiln_status kiln_context_prepare(kiln_context* context, const char* requests);

/* Waits until nothing is left to be tuned in the background, or the budget for it is spent. */
KILN_API kiln_status kiln_context_wait_until_tuned(kiln_context* context);

/* Why a request runs as it does, as a JSON object: request, device, roofline_seconds, calibrated and calibration
 * (whether predictions are drawn from figures that this device was measured to reach, and which), chosen (or null),
 * stored, estimated (each algorithm, config, seconds, source) and refused (algorithm, reason). kiln_string_destroy()
 * it. */
KILN_API kiln_status kiln_context_explain(const kiln_context* context, const char* request, char** json);

/* The canonical line of a request, its key, completed and checked. kiln_string_destroy() it. */
KILN_API kiln_status kiln_request_key(const char* request, char** key);

KILN_API void kiln_string_destroy(char* text);

/* ---- Tensors ----------------------------------------------------------------------------------------------------- */

typedef int32_t kiln_dtype;
enum {
  KILN_F32 = 0,  /* IEEE binary32 */
  KILN_F16 = 1,  /* IEEE binary16 */
  KILN_BF16 = 2, /* the upper half of a binary32 */
  KILN_I32 = 3,  /* two's complement, as KILN_I8 */
  KILN_I8 = 4,
  KILN_U8 = 5 /* no sign */
};

enum { KILN_MAX_RANK = 8, KILN_MAX_SPATIAL = 3 };

/* A view of device memory. Extents stand in logical order (N C spatial, for filters K C/groups window) whatever the
 * memory order; strides are in elements, in the same order. Fill it by hand for sub-regions and other arrangements. */
typedef struct kiln_tensor {
  const void* data; /* Device address of the first element. Const, because the operation says what is written: y. */
  kiln_dtype dtype;
  int32_t rank; /* 1 to 5 */
  int64_t extents[KILN_MAX_RANK];
  int64_t strides[KILN_MAX_RANK];
} kiln_tensor;

/* Fills `tensor` for memory without gaps. `layout` names the memory order, outermost dimension first: "nchw", "nhwc",
 * "ncdhw", "nc"; NULL for the logical order. KILN_INVALID_ARGUMENT if it does not fit the rank. */
KILN_API kiln_status kiln_tensor_packed(kiln_tensor* tensor, const void* data, kiln_dtype dtype, int32_t rank,
                                        const int64_t* extents, const char* layout);

/* Device memory for programs that have no CUDA runtime of their own at hand; Kiln takes any device pointer. */
typedef struct kiln_memory kiln_memory;

/* `bytes` of memory on the context's device, 256-byte aligned, contents unspecified. KILN_OUT_OF_MEMORY. */
KILN_API kiln_status kiln_memory_create(kiln_context* context, size_t bytes, kiln_memory** memory);
KILN_API void kiln_memory_destroy(kiln_memory* memory);
/* The device address; NULL for NULL. */
KILN_API void* kiln_memory_data(const kiln_memory* memory);
/* Copy to and from the start of the memory, in order with the default stream; have finished when they return. */
KILN_API kiln_status kiln_memory_upload(kiln_memory* memory, const void* host, size_t bytes);
KILN_API kiln_status kiln_memory_download(const kiln_memory* memory, void* host, size_t bytes);

/* ---- Epilogues --------------------------------------------------------------------------------------------------- */

/* What happens to a result before it is stored: stages, applied in the order in which they were added. A stage may
 * stand once. User code stands alone. Device memory that a stage names must live until the calls that use it have
 * finished. */
typedef struct kiln_epilogue kiln_epilogue;

KILN_API kiln_status kiln_epilogue_create(kiln_epilogue** epilogue);
KILN_API void kiln_epilogue_destroy(kiln_epilogue* epilogue);
/* v + values[k]; `values`: K elements. */
KILN_API kiln_status kiln_epilogue_bias(kiln_epilogue* epilogue, const kiln_tensor* values);
/* v + residual at the same position; the extents of y. It may be y itself, with y's dtype and strides. */
KILN_API kiln_status kiln_epilogue_add(kiln_epilogue* epilogue, const kiln_tensor* residual);
/* max(v, 0); NaN stays NaN. */
KILN_API kiln_status kiln_epilogue_relu(kiln_epilogue* epilogue);
/* min(max(v, lo), hi); NaN stays NaN. lo <= hi. */
KILN_API kiln_status kiln_epilogue_clip(kiln_epilogue* epilogue, float lo, float hi);

/* A tensor and a number that user code reads. */
typedef struct kiln_named_tensor {
  const char* name;
  const kiln_tensor* tensor;
} kiln_named_tensor;
typedef struct kiln_named_scalar {
  const char* name;
  float value;
  int32_t reserved;
} kiln_named_scalar;

/* What the CUDA expression `text` (docs/user-code.md) makes of each result, and of each element of x where it has a
 * prologue. A tensor has the extents of y or one element a channel, and must not overlap y. It stands alone: no other
 * stage goes with it. KILN_PARSE_ERROR with the line and column of the text; KILN_INVALID_ARGUMENT for names. What the
 * compiler has to say about it is the KILN_COMPILE_FAILED of the first call. */
KILN_API kiln_status kiln_epilogue_expression(kiln_epilogue* epilogue, const char* text,
                                              const kiln_named_tensor* tensors, size_t tensor_count,
                                              const kiln_named_scalar* scalars, size_t scalar_count);

/* ---- Operations -------------------------------------------------------------------------------------------------- */

/* A CUstream or cudaStream_t; NULL is the default stream. */
typedef void* kiln_stream;

/* Arrays over the spatial dimensions hold them in the order of the extents: height, width in 2-D; width in 1-D; depth,
 * height, width in 3-D. Entries behind the last spatial dimension are ignored. */
typedef struct kiln_conv_options {
  uint32_t size;
  int32_t mirrored;                    /* 1: true convolution. 0: cross-correlation, as frameworks do. */
  int64_t pad_begin[KILN_MAX_SPATIAL]; /* Top, left. Default 0. */
  int64_t pad_end[KILN_MAX_SPATIAL];   /* Bottom, right. Default 0. */
  int64_t stride[KILN_MAX_SPATIAL];    /* Default 1. */
  int64_t dilation[KILN_MAX_SPATIAL];  /* Default 1. */
  int64_t groups;                      /* Default 1. */
  const kiln_epilogue* epilogue;       /* Default NULL: none. */
  float alpha;                         /* Default 1. */
  float beta;                          /* Default 0: y is not read. */
  int32_t tf32;                        /* f32 products may be rounded to tf32. */
  int32_t fast;                        /* Products and sums may be in the storage type. */
  int32_t deterministic;               /* Equal inputs must give bitwise equal outputs on one device. */
  int32_t dynamic_batch;               /* One kernel for every batch of a power-of-two bucket. */
} kiln_conv_options;

static inline kiln_conv_options kiln_conv_options_default(void) {
  kiln_conv_options options;
  memset(&options, 0, sizeof options);
  options.size = (uint32_t)sizeof options;
  for (int i = 0; i < KILN_MAX_SPATIAL; ++i) options.stride[i] = options.dilation[i] = 1;
  options.groups = 1;
  options.alpha = 1;
  return options;
}

/* Enqueues y = epilogue(alpha * conv(x, w) + beta * y) on `stream` and returns without waiting.
 *
 * x: N,C,H,W   w: K,C/groups,R,S   y: N,K,P,Q (1-D: N,C,W and so on; 3-D: N,C,D,H,W) with P = floor((H + pads -
 * dilation*(R-1) - 1) / stride) + 1. Any strides; dtypes may differ between operands; sums are in f32. y must share no
 * element with x, w or the bias; regions of one tensor may interleave. `options` may be NULL.
 *
 * The first call for a shape compiles (see kiln_context_prepare()); it never tunes. Later calls find their plan in a
 * fraction of a microsecond. Workspace is lent to one call at a time and refused while `stream` is captured into a
 * graph; use a plan to supply your own. An empty batch is a no-op. KILN_INVALID_ARGUMENT, KILN_UNSUPPORTED,
 * KILN_COMPILE_FAILED, KILN_DRIVER_ERROR. */
KILN_API kiln_status kiln_conv_forward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* w,
                                       const kiln_tensor* y, const kiln_conv_options* options, kiln_stream stream);

typedef int32_t kiln_pool_mode;
enum {
  KILN_POOL_MAX = 0,       /* Largest element of the window inside x; NaN if any is NaN; -inf if none is inside. */
  KILN_POOL_AVG = 1,       /* Sum over the elements inside x, divided by their number; 0 if none is inside. */
  KILN_POOL_AVG_PADDED = 2 /* The same sum, divided by the number of window elements inside the padded x. */
};

typedef struct kiln_pool_options {
  uint32_t size;
  kiln_pool_mode mode;                 /* Default KILN_POOL_MAX. */
  int64_t window[KILN_MAX_SPATIAL];    /* Default 0: all of x (global pooling). */
  int64_t pad_begin[KILN_MAX_SPATIAL]; /* Default 0. */
  int64_t pad_end[KILN_MAX_SPATIAL];   /* Default 0. */
  int64_t stride[KILN_MAX_SPATIAL];    /* Default 1. */
  int64_t dilation[KILN_MAX_SPATIAL];  /* Default 1. */
  float alpha;                         /* Default 1. */
  float beta;                          /* Default 0: y is not read. */
  const kiln_epilogue* epilogue;       /* User code only. Default NULL: none. */
  int32_t dynamic_batch;               /* One kernel for every batch of a power-of-two bucket. */
  int32_t reserved;
} kiln_pool_options;

static inline kiln_pool_options kiln_pool_options_default(void) {
  kiln_pool_options options;
  memset(&options, 0, sizeof options);
  options.size = (uint32_t)sizeof options;
  for (int i = 0; i < KILN_MAX_SPATIAL; ++i) options.stride[i] = options.dilation[i] = 1;
  options.alpha = 1;
  return options;
}

/* Enqueues y = epilogue(alpha * pool(x) + beta * y) on `stream` and returns without waiting.
 *
 * x: N,C,H,W   y: N,C,P,Q, whose extents may be those of the floor formula or of ceil mode. Any strides. y must not
 * overlap x. `options` may be NULL: global max pooling. Errors, first call and threads as for kiln_conv_forward(). */
KILN_API kiln_status kiln_pool_forward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* y,
                                       const kiln_pool_options* options, kiln_stream stream);

/* Enqueues dx = alpha * (gradient of y = pool(x), given dy) + beta * dx on `stream` and returns without waiting.
 *
 * dy: N,C,P,Q   x, dx: N,C,H,W. Of equal maxima the first in its window gets the gradient, of NaNs the last; windows
 * that overlap add up. Only KILN_POOL_MAX reads x: averages may be given NULL. Deterministic. Any strides. dx must not
 * overlap dy or x. `options` as for the forward pass, without epilogue. Errors, first call and threads as for
 * kiln_conv_forward(). */
KILN_API kiln_status kiln_pool_backward(kiln_context* context, const kiln_tensor* dy, const kiln_tensor* x,
                                        const kiln_tensor* dx, const kiln_pool_options* options, kiln_stream stream);

typedef int32_t kiln_softmax_mode;
enum {
  KILN_SOFTMAX_ACCURATE = 0, /* exp(x - max) / sum(exp(x - max)) */
  KILN_SOFTMAX_LOG = 1       /* x - max - log(sum(exp(x - max))) */
};

typedef struct kiln_softmax_options {
  uint32_t size;
  kiln_softmax_mode mode;        /* Default KILN_SOFTMAX_ACCURATE. */
  int64_t axis;                  /* Default 1. Negative counts from the end. */
  float alpha;                   /* Default 1. */
  float beta;                    /* Default 0: y is not read. */
  const kiln_epilogue* epilogue; /* User code only. Default NULL: none. */
  int32_t dynamic_batch;         /* One kernel for every batch of a power-of-two bucket. */
  int32_t reserved;
} kiln_softmax_options;

static inline kiln_softmax_options kiln_softmax_options_default(void) {
  kiln_softmax_options options;
  memset(&options, 0, sizeof options);
  options.size = (uint32_t)sizeof options;
  options.axis = 1;
  options.alpha = 1;
  return options;
}

/* Enqueues y = epilogue(alpha * softmax(x) + beta * y), or of log-softmax, over an axis on `stream` and returns.
 *
 * x, y: equal extents of 1 to 5 dimensions, any strides. y must not overlap x. `options` may be NULL. Errors, first
 * call and threads as for kiln_conv_forward(). */
KILN_API kiln_status kiln_softmax_forward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* y,
                                          const kiln_softmax_options* options, kiln_stream stream);

typedef int32_t kiln_activation_mode;
enum {
  KILN_ACTIVATION_IDENTITY = 0,      /* x */
  KILN_ACTIVATION_RELU = 1,          /* max(x, 0) */
  KILN_ACTIVATION_CLIPPED_RELU = 2,  /* min(max(x, 0), high) */
  KILN_ACTIVATION_CLIP = 3,          /* min(max(x, low), high) */
  KILN_ACTIVATION_LEAKY_RELU = 4,    /* x, or slope x below 0 */
  KILN_ACTIVATION_SIGMOID = 5,       /* s(x) = 1 / (1 + exp(-x)) */
  KILN_ACTIVATION_TANH = 6,          /* tanh(x) */
  KILN_ACTIVATION_ELU = 7,           /* x, or slope (exp(x) - 1) below 0 */
  KILN_ACTIVATION_SELU = 8,          /* 1.0507 x, or 1.7581 (exp(x) - 1) below 0 */
  KILN_ACTIVATION_SOFTPLUS = 9,      /* log(1 + exp(slope x)) / slope */
  KILN_ACTIVATION_SWISH = 10,        /* x s(slope x) */
  KILN_ACTIVATION_GELU = 11,         /* 0.5 x (1 + erf(x / sqrt(2))) */
  KILN_ACTIVATION_GELU_TANH = 12,    /* 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) */
  KILN_ACTIVATION_HARD_SWISH = 13,   /* x min(max(x + 3, 0), 6) / 6 */
  KILN_ACTIVATION_HARD_SIGMOID = 14, /* min(max(slope x + offset, 0), 1) */
  KILN_ACTIVATION_MISH = 15          /* x tanh(log(1 + exp(x))) */
};

typedef struct kiln_activation_options {
  uint32_t size;
  kiln_activation_mode mode;
  float slope, offset, low, high; /* The numbers that the mode reads; the others do not matter. */
  float alpha;                    /* Default 1. */
  float beta;                     /* Default 0: y (backward: dx) is not read. */
  int32_t dynamic_batch;          /* One kernel for every batch of a power-of-two bucket. */
  int32_t reserved;
  const kiln_epilogue* epilogue; /* User code only, and forward only. Default NULL: none. */
} kiln_activation_options;

/* The usual numbers of `mode`: leaky_relu slope 0.01; elu, softplus and swish slope 1; hard_sigmoid slope 1/6 and
 * offset 0.5; clipped_relu high 6; clip between the infinities. */
static inline kiln_activation_options kiln_activation_options_default(kiln_activation_mode mode) {
  kiln_activation_options options;
  memset(&options, 0, sizeof options);
  options.size = (uint32_t)sizeof options;
  options.mode = mode;
  options.alpha = 1;
  if (mode == KILN_ACTIVATION_LEAKY_RELU) options.slope = 0.01f;
  if (mode == KILN_ACTIVATION_ELU || mode == KILN_ACTIVATION_SOFTPLUS || mode == KILN_ACTIVATION_SWISH)
    options.slope = 1;
  if (mode == KILN_ACTIVATION_HARD_SIGMOID) options.slope = 1.0f / 6, options.offset = 0.5f;
  if (mode == KILN_ACTIVATION_CLIPPED_RELU) options.high = 6;
  if (mode == KILN_ACTIVATION_CLIP) options.low = -INFINITY, options.high = INFINITY;
  return options;
}

/* Enqueues y = epilogue(alpha * f(x) + beta * y) on `stream` and returns without waiting.
 *
 * x, y: equal extents of 1 to 5 dimensions, any strides. y may be x itself; otherwise they must not overlap. NaN gives
 * NaN. KILN_ACTIVATION_IDENTITY with user code as epilogue is any element-wise chain. `options` may be NULL: relu.
 * Errors, first call and threads as for kiln_conv_forward(). */
KILN_API kiln_status kiln_activation_forward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* y,
                                             const kiln_activation_options* options, kiln_stream stream);

/* Enqueues dx = alpha * f'(x) * dy + beta * dx. dx may be dy itself, or x itself. Where f is constant, dx is 0 whatever
 * dy is. */
KILN_API kiln_status kiln_activation_backward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* dy,
                                              const kiln_tensor* dx, const kiln_activation_options* options,
                                              kiln_stream stream);

/* The same from y = f(x), for where x is gone: identity, relu, clipped_relu, leaky_relu and elu with slopes >= 0,
 * sigmoid, tanh, selu, softplus with slope > 0. KILN_INVALID_ARGUMENT for the others. */
KILN_API kiln_status kiln_activation_backward_from_y(kiln_context* context, const kiln_tensor* y, const kiln_tensor* dy,
                                                     const kiln_tensor* dx, const kiln_activation_options* options,
                                                     kiln_stream stream);

typedef struct kiln_transform_options {
  uint32_t size;
  float alpha;                      /* Default 1. */
  float beta;                       /* Default 0: y is not read. */
  float value;                      /* What the padding holds. Default 0. */
  int64_t pad_begin[KILN_MAX_RANK]; /* Elements before x in each of its dimensions. Default 0. */
  int64_t pad_end[KILN_MAX_RANK];   /* Elements behind it. Default 0. */
  int32_t dynamic_batch;            /* One kernel for every batch of a power-of-two bucket. */
  int32_t reserved;
} kiln_transform_options;

static inline kiln_transform_options kiln_transform_options_default(void) {
  kiln_transform_options options;
  memset(&options, 0, sizeof options);
  options.size = (uint32_t)sizeof options;
  options.alpha = 1;
  return options;
}

/* Enqueues y = alpha * pad(x) + beta * y on `stream`: another layout, another dtype, a scale, padding, or all at once.
 * Sub-regions are strides.
 *
 * x, y: 1 to 5 dimensions of any dtype and strides. y has x's extents plus the padding; where x has an extent of 1 and
 * no padding y may have any, and x repeats. Computed in f32; results round to nearest, integers saturate, NaN becomes 0
 * in them; with equal dtypes, alpha 1 and beta 0 the bits are copied. y may be x itself; otherwise they must not
 * overlap. `options` may be NULL. Errors, first call and threads as for kiln_conv_forward(). */
KILN_API kiln_status kiln_tensor_transform(kiln_context* context, const kiln_tensor* x, const kiln_tensor* y,
                                           const kiln_transform_options* options, kiln_stream stream);
/* y = alpha * x + beta * y, where x may repeat along dimensions in which its extent is 1. */
KILN_API kiln_status kiln_tensor_add(kiln_context* context, const kiln_tensor* x, const kiln_tensor* y, float alpha,
                                     float beta, kiln_stream stream);
/* y = alpha * y. */
KILN_API kiln_status kiln_tensor_scale(kiln_context* context, const kiln_tensor* y, float alpha, kiln_stream stream);
/* y = value, rounded to y's dtype. */
KILN_API kiln_status kiln_tensor_set(kiln_context* context, const kiln_tensor* y, float value, kiln_stream stream);

/* Comparisons and KILN_TENSOR_NOT give 1 or 0. */
typedef int32_t kiln_tensor_op_mode;
enum {
  KILN_TENSOR_ADD = 0,
  KILN_TENSOR_SUB = 1,
  KILN_TENSOR_MUL = 2,
  KILN_TENSOR_DIV = 3,
  KILN_TENSOR_MIN = 4, /* NaN if either is NaN. */
  KILN_TENSOR_MAX = 5, /* The same. */
  KILN_TENSOR_POW = 6,
  KILN_TENSOR_EQ = 7,
  KILN_TENSOR_NE = 8,
  KILN_TENSOR_LT = 9,
  KILN_TENSOR_LE = 10,
  KILN_TENSOR_GT = 11,
  KILN_TENSOR_GE = 12,
  KILN_TENSOR_SQRT = 13, /* Of a alone, as those up to KILN_TENSOR_NOT. */
  KILN_TENSOR_EXP = 14,
  KILN_TENSOR_LOG = 15,
  KILN_TENSOR_ABS = 16,
  KILN_TENSOR_NEG = 17,
  KILN_TENSOR_NOT = 18,   /* a == 0 */
  KILN_TENSOR_SELECT = 19 /* b where a is not 0, else c. */
};

typedef struct kiln_tensor_op_options {
  uint32_t size;
  float alpha;           /* Default 1. */
  float beta;            /* Default 0: y is not read. */
  int32_t dynamic_batch; /* One kernel for every batch of a power-of-two bucket. */
} kiln_tensor_op_options;

static inline kiln_tensor_op_options kiln_tensor_op_options_default(void) {
  kiln_tensor_op_options options;
  memset(&options, 0, sizeof options);
  options.size = (uint32_t)sizeof options;
  options.alpha = 1;
  return options;
}

/* Enqueues y = alpha * op(a, b, c) + beta * y on `stream`. `b` and `c` are NULL where the mode does not read them.
 *
 * Inputs have y's rank, and in each dimension its extent or 1, which repeats. Any dtypes and strides; computed and
 * rounded as by kiln_tensor_transform(). y may be one of the inputs itself. `options` may be NULL. */
KILN_API kiln_status kiln_tensor_op(kiln_context* context, kiln_tensor_op_mode mode, const kiln_tensor* a,
                                    const kiln_tensor* b, const kiln_tensor* c, const kiln_tensor* y,
                                    const kiln_tensor_op_options* options, kiln_stream stream);

/* ---- Plans ------------------------------------------------------------------------------------------------------- */

/* A variant compiled and loaded, ready to be enqueued again and again: for loops and CUDA graphs. */
typedef struct kiln_plan kiln_plan;

/* The best known variant for `request`, compiled and loaded; the second call for a request only looks it up.
 * KILN_PARSE_ERROR, KILN_INVALID_ARGUMENT, KILN_UNSUPPORTED (nothing serves it), KILN_COMPILE_FAILED. */
KILN_API kiln_status kiln_plan_create(kiln_context* context, const char* request, kiln_plan** plan);
KILN_API void kiln_plan_destroy(kiln_plan* plan);

/* What a plan is; the strings live as long as the plan. */
typedef struct kiln_plan_info {
  uint32_t size;
  int32_t deterministic;   /* Equal inputs give bitwise equal outputs. */
  int64_t workspace_bytes; /* 256-byte aligned device memory for a run; runs that overlap in time need one each. */
  const char* request;     /* The canonical line. */
  const char* variant;     /* "conv_implicit_gemm BLOCK_M=64,..." */
  const char* source;      /* Where the choice comes from, for people: "measured on this device", "estimate", ... */
  size_t operand_count;    /* Addresses that kiln_plan_run() takes. */
} kiln_plan_info;

static inline kiln_plan_info kiln_plan_info_default(void) {
  kiln_plan_info info;
  memset(&info, 0, sizeof info);
  info.size = (uint32_t)sizeof info;
  return info;
}

KILN_API kiln_status kiln_plan_get_info(const kiln_plan* plan, kiln_plan_info* info);

/* The values of a run that are not part of its request. */
typedef struct kiln_run_values {
  uint32_t size;
  int32_t reserved;
  float alpha;   /* Must be what the request's class says: 1, or 0, or anything. Default 1. */
  float beta;    /* As alpha. Default 0. */
  float clip_lo; /* For the epilogue stage `clip`. Default -infinity. */
  float clip_hi; /* Default +infinity. */
  int64_t n;     /* The batch of a request with n=?; default -1: fixed. */
  /* The scalars of user code, in the order of its definition. Default: none, all 0. */
  const float* scalars;
  size_t scalar_count;
  /* The numbers of the operation besides (a slope, an epsilon), in the order of docs/request-syntax.md. Default: all 0.
   */
  const float* operation_scalars;
  size_t operation_scalar_count;
} kiln_run_values;

static inline kiln_run_values kiln_run_values_default(void) {
  kiln_run_values values;
  memset(&values, 0, sizeof values);
  values.size = (uint32_t)sizeof values;
  values.alpha = 1;
  values.clip_lo = -INFINITY;
  values.clip_hi = INFINITY;
  values.n = -1;
  return values;
}

/* Enqueues the layer on `stream` and returns. No allocation, no lookup, no lock.
 *
 * `operands`: the device addresses of the request's operands, in its order (x, w, y, then bias and residual where the
 * epilogue has them, or the tensors of user code by name). y must not overlap another operand, except that the residual
 * may be y itself. `workspace` may be NULL if the plan needs none, `values` may be NULL. KILN_INVALID_ARGUMENT, nothing
 * enqueued: a wrong number of operands, a null or insufficiently aligned address, a missing workspace, a value outside
 * its class, a batch outside the bucket. KILN_DRIVER_ERROR if the driver refuses the launch. */
KILN_API kiln_status kiln_plan_run(const kiln_plan* plan, kiln_stream stream, const void* const* operands,
                                   size_t operand_count, void* workspace, const kiln_run_values* values);

#ifdef __cplusplus
} /* extern "C" */
#endif

/* Parts of the C API that every operation needs: status, contexts, tensors, memory, epilogues, plans. See kiln/kiln.h.
 */
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

/* Kind of fault that a call reports. Later versions may add values. */
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
  KILN_INTERNAL = 9,         /* A broken invariant in Kiln itself; please report it. */
  KILN_NOT_FINITE = 10       /* KILN_CHECK_NUMERICS=error found NaN or infinity in an operand or a result. */
};

/* "invalid argument" and the like; "unknown status" for a value that this library does not know. Never NULL. */
KILN_API const char* kiln_status_name(kiln_status status);

/* Message of the last call of this thread that failed: the fault, and what was expected; "" if none has failed. A call
 * that succeeds leaves it. Never NULL; valid until the next call of this thread that fails. */
KILN_API const char* kiln_last_error(void);

/* Advice on kiln_last_error(); may be "". As long-lived. */
KILN_API const char* kiln_last_hint(void);

/* Sets kiln_last_error() and kiln_last_hint() of this thread; NULL is "". For libraries over this one
 * whose calls report as Kiln's do, such as that of kiln/c/model.h. */
KILN_API void kiln_set_last_error(const char* message, const char* hint);

/* The version of the library in use, "0.1.0". */
KILN_API const char* kiln_version(void);

/* ---- Context ----------------------------------------------------------------------------------------------------- */

/* One device, its tuning cache and the plans made so far. Share one per device among all threads. */
typedef struct kiln_context kiln_context;

/* Receives the few things that a user should know once. May be called from any thread that calls Kiln. */
typedef void (*kiln_announce_function)(void* data, const char* message);

/* Where operation calls take their workspace from, instead of memory of the context's own: an engine's caching
 * allocator. Both are called by the thread that makes the call, once each, in this order. `allocate` gives `bytes`
 * (more than 0) of device memory, 256-byte aligned, for work that is enqueued on `stream` next, or NULL if there is
 * none: KILN_OUT_OF_MEMORY. At `release` that work is enqueued, not finished: the memory may go to later work on the
 * same stream, and to others after it. */
typedef void* (*kiln_allocate_function)(void* data, size_t bytes, void* stream);
typedef void (*kiln_release_function)(void* data, void* memory, size_t bytes, void* stream);

/* Whether a context tunes what has no time of its device yet. Tuning runs in worker processes on the same device. */
typedef int32_t kiln_tuning_mode;
enum {
  KILN_TUNING_NEVER = 0, /* Stored, shipped or estimated choices are used as they are. */
  /* A plan, prepare() and the first call for a shape tune before they return, until the budget is spent. */
  KILN_TUNING_WITHIN_BUDGET = 1,
  /* Nothing waits: what is known serves, the operation calls take the better variant when it is there. */
  KILN_TUNING_IN_BACKGROUND = 2
};

typedef int32_t kiln_first_call;
enum {
  KILN_FIRST_CALL_DEFAULT = 0, /* The value of the variable KILN_FIRST_CALL, else as KILN_FIRST_CALL_EXACT. */
  KILN_FIRST_CALL_EXACT = 1,   /* The plan of the shape, which may have to be compiled first. */
  /* An open kernel, which serves many shapes and is compiled once on a machine. The plan of the shape is made in the
   * background and serves later calls. Results of the two may differ in bits: not for deterministic requests. */
  KILN_FIRST_CALL_AT_ONCE = 2
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
  /* Use also variants that gave a wrong result for the request, hung or crashed. */
  int32_t allow_failed_variants;
  /* Use also user templates that passed no check for the request. Tuning checks them. */
  int32_t allow_unchecked_templates;
  /* Default NULL: the context allocates, and refuses calls that need workspace while their stream is captured into a
   * graph. With an allocator they are captured; nothing else may then use the memory of the graph. */
  kiln_allocate_function workspace_allocate;
  kiln_release_function workspace_release;
  void* workspace_data; /* Handed to both. */
  /* How many plans the context keeps that nobody else holds, and how many bytes of compiled code these may have. Those
   * that were not used for longest are given up. Default 0: KILN_KEPT_PLANS, else 4096, and KILN_KEPT_PLANS_MIB, else
   * 512 MiB. */
  int64_t kept_plans;
  int64_t kept_plan_bytes;
  kiln_first_call first_call; /* Plan that serves a shape which has none yet. Default: KILN_FIRST_CALL. */
  /* The results of an image, or of a row, have the same bits in every batch, as if every request had batch_invariant
   * (docs/numerics.md). Sums over the batch are as without; other calls that cannot be so too, which is announced. */
  int32_t batch_invariant;
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

/* Opens a device: by libcuda, or by the emulator where there is no GPU, which is announced once a process. Works in the
 * driver context that is current on this thread if that belongs to the device, else in the device's primary context.
 * `options` may be NULL.
 *
 * KILN_MISSING_LIBRARY (no driver, no NVRTC, no worker to tune with), KILN_DRIVER_ERROR, KILN_INVALID_ARGUMENT (no such
 * device, a setting, options that contradict each other). A database, pack, bundle or store that cannot be used is
 * announced and left out. */
KILN_API kiln_status kiln_context_create(const kiln_context_options* options, kiln_context** context);
KILN_API void kiln_context_destroy(kiln_context* context);

/* Description of a context, and its plans at the moment; the strings live as long as the context. */
typedef struct kiln_context_info {
  uint32_t size;
  int32_t reserved;
  const char* device_description; /* "NVIDIA H200, compute capability 9.0, ..., by CUDA 13.0 ...", for people. */
  const char* device_id;          /* The line under which records of this device are kept. */
  int64_t plans;                  /* Plans that are loaded now. */
  int64_t plan_bytes;             /* Size of their compiled code. */
  int64_t held_plans;             /* Plans that the limits leave alone: held, running, or in a CUDA graph. */
  int64_t given_up_plans;         /* How often a plan was given up so far, because of the limits. */
} kiln_context_info;

static inline kiln_context_info kiln_context_info_default(void) {
  kiln_context_info info;
  memset(&info, 0, sizeof info);
  info.size = (uint32_t)sizeof info;
  return info;
}

KILN_API kiln_status kiln_context_get_info(const kiln_context* context, kiln_context_info* info);

/* Makes the plans of all `requests` now, so that no later call compiles while kept_plans has room for them; with
 * KILN_TUNING_WITHIN_BUDGET, tunes them first in one session. Reports the first that fails, after trying all. */
KILN_API kiln_status kiln_context_prepare(kiln_context* context, const char* requests);

/* Makes open kernels for all sizes of `lines` now, so that with KILN_FIRST_CALL_AT_ONCE no later call of such a size
 * waits for a compile: requests, a line each, whose extents may be `?`, `?N` (up to N), `?NAME` or what follows
 * from names, `?(h-1)/2+1` (docs/sizes.md).
 * A convolution of three open extents has some five kernels, a product of three a hundred. Before anything is compiled:
 * the error of a line of which no size makes a request, and KILN_UNSUPPORTED for a line that no open kernel serves, and
 * if the options let calls take none. Then the first kernel that fails, after trying all. */
KILN_API kiln_status kiln_context_prepare_open(kiln_context* context, const char* lines);

/* Waits until nothing is left to be done in the background: plans of shapes that open kernels serve, and what is to be
 * tuned, or the budget for it is spent. */
KILN_API kiln_status kiln_context_wait_until_tuned(kiln_context* context);

/* Why a request runs as it does, as a JSON object: request, device, roofline_seconds and roofline_of (memory traffic or
 * which arithmetic it is), unused_permissions (tf32, fast, where no kernel makes use of them), calibrated and
 * calibration (whether predictions are drawn from figures that were measured on this device, and which), chosen
 * (or null), stored, estimated (each algorithm, config, seconds, source), withheld (variants that must not or cannot be
 * used) and not_believed (variants with impossible times in packs; both algorithm, config, reason), refused (algorithm,
 * reason) and no_compiler (why only what bundles hold can be used, or ""). kiln_string_destroy() it. */
KILN_API kiln_status kiln_context_explain(const kiln_context* context, const char* request, char** json);

/* For requests of somebody whose code you would not run, before they are given to any function: KILN_INVALID_ARGUMENT
 * with the line and the name if the text defines user code (`expression NAME ... end expression`), which would run with
 * the rights of the process. */
KILN_API kiln_status kiln_requests_require_no_code(const char* requests);

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
  KILN_U8 = 5, /* no sign */
  KILN_F8E4M3 =
      6, /* OCP E4M3: no infinity, up to 448; stores saturate. Of convolution, gemm, softmax, activations and */
  KILN_F8E5M2 = 7 /* transforms; OCP E5M2: as IEEE formats are, up to 57344, but stores saturate */
};

/* Arrays over the spatial dimensions hold them in the order of the extents: height, width in 2-D; width in 1-D; depth,
 * height, width in 3-D. Entries behind the last spatial dimension are ignored. */
enum { KILN_MAX_RANK = 8, KILN_MAX_SPATIAL = 3 };

/* A view of device memory. Extents stand in logical order (N C spatial, for filters K C/groups window) whatever the
 * memory order; strides are in elements, in the same order. Fill it by hand for sub-regions and other arrangements. */
typedef struct kiln_tensor {
  const void* data; /* Device address of the first element. Const, because the operation says what is written: y. */
  kiln_dtype dtype;
  int32_t rank; /* 1 to 5; 6 in normalisations, for N,G,C/G, and filters of regions alone */
  int64_t extents[KILN_MAX_RANK];
  int64_t strides[KILN_MAX_RANK];
} kiln_tensor;

/* Fills `tensor` for memory without gaps. `layout` names the memory order, outermost dimension first: "nchw", "nhwc",
 * "ncdhw", "nc"; NULL or "" for the logical order. KILN_INVALID_ARGUMENT if it does not fit the rank. */
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

/* Changes to a result before it is stored: stages, applied in the order in which they were added. A stage may
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

/* The CUDA expression `text` (docs/user-code.md) on each result and, where it has a prologue, on each element of the
 * main input: x; a of kiln_gemm() and kiln_tensor_op(); dy of gradients, except for filters and cross entropy, where it
 * is x. A tensor has the extents of y, or 1 in dimensions along which it repeats; or one element for each channel (of
 * the input, if the prologue reads it). Any dtype and strides; it must overlap nothing that the call writes. It stands
 * alone: no other stage goes with it. KILN_PARSE_ERROR with the line and column of the text; KILN_INVALID_ARGUMENT for
 * names. What the compiler has to say about it is the KILN_COMPILE_FAILED of the first call.
 */
KILN_API kiln_status kiln_epilogue_expression(kiln_epilogue* epilogue, const char* text,
                                              const kiln_named_tensor* tensors, size_t tensor_count,
                                              const kiln_named_scalar* scalars, size_t scalar_count);

/* ---- Plans ------------------------------------------------------------------------------------------------------- */

/* A variant compiled and loaded, ready to be enqueued again and again: for loops and CUDA graphs. */
typedef struct kiln_plan kiln_plan;

/* A CUstream or cudaStream_t; NULL is the default stream. */
typedef void* kiln_stream;

/* The best known variant for `request`, compiled and loaded; the second call for a request only looks it up.
 * Leaves the capture of a stream into a graph intact. KILN_PARSE_ERROR, KILN_INVALID_ARGUMENT, KILN_UNSUPPORTED
 * (nothing serves it), KILN_COMPILE_FAILED, KILN_MISSING_LIBRARY, KILN_OUT_OF_MEMORY, KILN_DRIVER_ERROR. */
KILN_API kiln_status kiln_plan_create(kiln_context* context, const char* request, kiln_plan** plan);
KILN_API void kiln_plan_destroy(kiln_plan* plan);

/* Description of a plan; the strings live as long as the plan. */
typedef struct kiln_plan_info {
  uint32_t size;
  int32_t deterministic;   /* Equal inputs give bitwise equal outputs. */
  int64_t workspace_bytes; /* 256-byte aligned device memory for a run; runs that overlap in time need one each. */
  const char* request;     /* The canonical line. */
  const char* variant;     /* "conv_implicit_gemm BLOCK_M=64,..." */
  const char* source;      /* Where the choice comes from, for people: "measured on this device", "estimate", ... */
  size_t operand_count;    /* Addresses that kiln_plan_run() takes. */
  int64_t prepared_bytes;  /* Part of workspace_bytes that kiln_plan_prepare_weights() fills; 0: none. */
} kiln_plan_info;

static inline kiln_plan_info kiln_plan_info_default(void) {
  kiln_plan_info info;
  memset(&info, 0, sizeof info);
  info.size = (uint32_t)sizeof info;
  return info;
}

KILN_API kiln_status kiln_plan_get_info(const kiln_plan* plan, kiln_plan_info* info);

/* Use that a run makes of an operand's memory. */
typedef int32_t kiln_operand_role;
enum {
  KILN_OPERAND_INPUT = 0,  /* Read. */
  KILN_OPERAND_OUTPUT = 1, /* Written; what it held does not matter. */
  KILN_OPERAND_UPDATED = 2 /* Read, then written: running statistics, an output that is blended with what it held. */
};

/* One operand of a plan: what an address of kiln_plan_run() stands for. The strings live as long as the plan. */
typedef struct kiln_operand_info {
  uint32_t size;
  kiln_operand_role role;
  const char* name; /* "x", "w", "y", "epilogue.gate": as docs/request-syntax.md has it. */
  const char* text; /* Type, extents and layout as in a request, "f16:32x64x56x56:nhwc". */
  kiln_dtype dtype;
  int32_t rank;
  int64_t extents[KILN_MAX_RANK]; /* In logical order; strides in elements, in the same order. */
  int64_t strides[KILN_MAX_RANK];
  int64_t alignment; /* Bytes that the address has to be a multiple of. */
  int64_t bytes;     /* From the address on, those that the tensor spans: 0 if it is empty, and NULL will do. */
  int64_t has_batch; /* Not 0 with n=?, where the first extent is the batch, which each run brings. */
} kiln_operand_info;

static inline kiln_operand_info kiln_operand_info_default(void) {
  kiln_operand_info info;
  memset(&info, 0, sizeof info);
  info.size = (uint32_t)sizeof info;
  return info;
}

/* Operand `index` of a plan, counted from 0 in the order in which kiln_plan_run() takes the addresses; there are
 * kiln_plan_info.operand_count. With n=? the extents are those of the top of the bucket. KILN_INVALID_ARGUMENT: there
 * is no such operand. */
KILN_API kiln_status kiln_plan_get_operand(const kiln_plan* plan, size_t index, kiln_operand_info* info);

/* The values of a run that are not part of its request. */
typedef struct kiln_run_values {
  uint32_t size;
  int32_t reserved;
  float alpha;   /* Must be what the request's class says: 1, or 0, or anything. Default 1. */
  float beta;    /* As alpha. Default 0. */
  float clip_lo; /* For the epilogue stage `clip`. Default -infinity. */
  float clip_hi; /* Default +infinity. */
  int64_t n;     /* The batch of a request with n=?; default -1: fixed. */
  /* The scalars of user code, in the order of its definition: all that it reads, or none, which makes all 0. Another
   * number of them is KILN_INVALID_ARGUMENT. */
  const float* scalars;
  size_t scalar_count;
  /* The numbers of the operation besides (a slope, an epsilon), in the order of docs/request-syntax.md. Those that are
   * not given are the usual ones (an epsilon of 1e-5); more than the operation has are KILN_INVALID_ARGUMENT. Default:
   * none is given. */
  const float* operation_scalars;
  size_t operation_scalar_count;
  /* The integers of the operation (a seed), in that order and with such defaults. */
  const uint64_t* operation_integers;
  size_t operation_integer_count;
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
 * `operands`: the device addresses of the request's operands, in the order of kiln_plan_get_operand(). An output must
 * share no element with another operand but where the operation's call allows it, which only that call checks.
 * `workspace` may be NULL if the plan needs none, `values` may be NULL. KILN_INVALID_ARGUMENT, nothing enqueued: a
 * wrong number of operands, a null or misaligned address or workspace, one of host memory that the device does not
 * reach, one that reaches beyond the end of its allocation of device memory, a value outside its class, a batch outside
 * the bucket. KILN_DRIVER_ERROR: a launch refused. */
KILN_API kiln_status kiln_plan_run(const kiln_plan* plan, kiln_stream stream, const void* const* operands,
                                   size_t operand_count, void* workspace, const kiln_run_values* values);

/* Enqueues the work that depends only on the weights (Winograd's filter transforms), and returns; nothing if
 * prepared_bytes is 0. `prepared`: prepared_bytes of 256-byte aligned device memory. Its contents are for this plan
 * only, and for as long as the weights stay as they are. `operands`: as kiln_plan_run() takes them; those that are not
 * weights may be NULL. Statuses are those of kiln_plan_run(). */
KILN_API kiln_status kiln_plan_prepare_weights(const kiln_plan* plan, kiln_stream stream, const void* const* operands,
                                               size_t operand_count, void* prepared);

/* kiln_plan_run() without that work: `prepared` holds what kiln_plan_prepare_weights() made, which was enqueued before
 * on this stream or is otherwise complete. `workspace`: workspace_bytes - prepared_bytes; runs that overlap in time
 * need one each and may share `prepared`. `operands`: all of them; the weights are checked and not read. */
KILN_API kiln_status kiln_plan_run_prepared(const kiln_plan* plan, kiln_stream stream, const void* const* operands,
                                            size_t operand_count, const void* prepared, void* workspace,
                                            const kiln_run_values* values);

/* ---- Streams ----------------------------------------------------------------------------------------------------- */

/* Work that is enqueued on `later` from now on starts when `earlier` has done what it was given before. Returns without
 * waiting; does nothing where both are one stream. While `earlier` is captured into a graph, `later` joins the capture.
 * KILN_DRIVER_ERROR: a stream that there is not, or only `later` is captured. */
KILN_API kiln_status kiln_order(kiln_context* context, kiln_stream earlier, kiln_stream later);

#ifdef __cplusplus
} /* extern "C" */
#endif

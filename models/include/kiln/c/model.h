/* Whole models in C: what kiln/model.h has, in libkiln_model.so. Statuses, handles and structures as kiln/kiln.h has
 * them. */
#pragma once

#include "kiln/c/core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A model, compiled and loaded, with its weights on the device. It keeps what it needs of its context. */
typedef struct kiln_model kiln_model;

/* The order of dimensions in memory of what convolutions read and write, and of filters; inputs and outputs of the
 * model are in logical order. It has no say over results. */
typedef int32_t kiln_model_layout;
enum {
  KILN_LAYOUT_AUTO = 0, /* For each part of the model what costs least by Kiln's own estimates. */
  KILN_LAYOUT_NCHW = 1, /* Logical order. */
  KILN_LAYOUT_NHWC = 2  /* Channels last. */
};

/* Extents of an input. */
typedef struct kiln_input_shape {
  const char* name;
  const int64_t* extents;
  size_t rank;
} kiln_input_shape;

typedef struct kiln_model_options {
  uint32_t size;
  int32_t dynamic_batch; /* Kernels serve every batch of a power-of-two bucket: another batch of the bucket then
                          * compiles nothing. Default 0. */
  int64_t batch;         /* Where the model leaves it open. Default 0: the model's own, and 1 where it is open. */
  kiln_dtype dtype;      /* Storage of floating-point numbers. Default KILN_DTYPE_OF_MODEL. */
  /* Normalisations go into filters, and what follows a call into its epilogue, where that changes only roundings.
   * Default 1. */
  int32_t fuse;
  kiln_model_layout layout; /* Default KILN_LAYOUT_AUTO. */
  /* Runs whose tensors lie where they lay before are launched as one CUDA graph, not kernel by kernel. Default 1. */
  int32_t use_graph;
  /* Permissions and demands of convolutions, products and reductions; all default 0, as those of their own options. */
  int32_t tf32;          /* f32 products may be rounded to tf32. */
  int32_t fast;          /* Products, and sums of 32, in the storage type; those of f32 by Winograd's transforms. */
  int32_t deterministic; /* Equal inputs must give bitwise equal outputs on one device. */
  int32_t reserved;
  /* Extents of inputs that the file leaves open, as of kiln_model_set_shapes(). Default none: the model has no sizes
   * then until it is given some. */
  const kiln_input_shape* shapes;
  size_t shape_count;
  /* Sizes that are kept ready: how many, and for how many bytes of weights that only one of them needs. The one that
   * was not used for longest is given up for another. Default 32 and 256 MiB. */
  size_t kept_sizes;
  int64_t kept_bytes;
} kiln_model_options;

/* Storage as the model has it; double is stored as KILN_F32. */
enum { KILN_DTYPE_OF_MODEL = -1 };

static inline kiln_model_options kiln_model_options_default(void) {
  kiln_model_options options;
  memset(&options, 0, sizeof options);
  options.size = (uint32_t)sizeof options;
  options.dtype = KILN_DTYPE_OF_MODEL;
  options.fuse = 1;
  options.use_graph = 1;
  options.kept_sizes = 32;
  options.kept_bytes = (int64_t)256 << 20;
  return options;
}

/* Reads the ONNX model in file `path`. If options and file say all extents of inputs (an open batch is 1), makes the
 * plans of all its calls with the best variants that the context knows, and computes what depends on its weights only;
 * otherwise the model has no sizes yet. `options` may be NULL. KILN_IO_ERROR, KILN_PARSE_ERROR,
 * KILN_UNSUPPORTED (all nodes that are not covered, with the reasons, before anything is compiled), and what
 * kiln_plan_create() reports. */
KILN_API kiln_status kiln_model_create(kiln_context* context, const char* path, const kiln_model_options* options,
                                       kiln_model** model);
KILN_API void kiln_model_destroy(kiln_model* model);

typedef struct kiln_model_info {
  uint32_t size;
  int32_t has_open_batch; /* Whether the file leaves the batch open. */
  size_t input_count, output_count;
  size_t step_count; /* Calls that a run makes. */
  /* Device memory, in bytes: constants, what is computed from them once, and prepared filters; what runs compute in
   * between, workspaces too; the most of it that one step needs; what it would be if nothing shared memory. */
  int64_t weight_bytes, arena_bytes, least_arena_bytes, unshared_bytes;
  int64_t batch; /* Batch of runs; 0 of a model without sizes. Weights are those of all sizes that are kept. */
  /* CUDA graphs of runs that are kept, of all sizes: for each, up to four that differ in where their tensors are. */
  size_t graph_count;
  /* Why no run is a graph: use_graph, recorded calls, or what the driver said when it did not make one; "" where runs
   * are. It lives as long as the model. */
  const char* no_graph_because;
  int32_t has_open_extents; /* Whether the file leaves other extents of inputs open. */
  int32_t reserved;
  size_t size_count; /* Sizes that are kept. */
  /* Cost of the size in use for the host, when it was made: in all, and for kernels that neither bundles nor the store
   * of compiled kernels had. */
  double ready_seconds, compile_seconds;
  uint64_t compiled;
} kiln_model_info;

static inline kiln_model_info kiln_model_info_default(void) {
  kiln_model_info info;
  memset(&info, 0, sizeof info);
  info.size = (uint32_t)sizeof info;
  return info;
}

/* Makes the model take inputs of other extents: a size of its own. Inputs that are not named take open extents from
 * others with extents of the same name in the file; the batch, where nothing says another, is the file's, and 1 where
 * that is open. A size that is kept comes back at once. A new one reads the files again, which must not have been
 * written since, and makes its plans; weights are shared. If it needs more memory in between than the sizes before,
 * that memory is allocated anew. CUDA graphs of yours that were captured before must not be launched any more then, nor
 * those of a size that was given up: set the largest size first. Reports what kiln_model_create() does and
 * KILN_INVALID_ARGUMENT for shapes that the file does not permit or that leave extents open, and leaves the model as it
 * was then. */
KILN_API kiln_status kiln_model_set_shapes(kiln_model* model, const kiln_input_shape* shapes, size_t count);
/* The same for another batch with the other extents as they are; also where the file fixes a batch, and all inputs have
 * it. */
KILN_API kiln_status kiln_model_set_batch(kiln_model* model, int64_t batch);

KILN_API kiln_status kiln_model_get_info(const kiln_model* model, kiln_model_info* info);

/* An input or output. Strings and extents live until the model takes another size. */
typedef struct kiln_model_tensor_info {
  uint32_t size;
  kiln_dtype dtype; /* On the device: integers of 16 to 64 bits are KILN_I32, booleans KILN_U8 (0 and 1). */
  const char* name;
  const char* type;       /* In the file: "float", "int64", "bool". */
  const int64_t* extents; /* A tensor without any is given as one of one element; -1 is open. */
  size_t rank;
} kiln_model_tensor_info;

static inline kiln_model_tensor_info kiln_model_tensor_info_default(void) {
  kiln_model_tensor_info info;
  memset(&info, 0, sizeof info);
  info.size = (uint32_t)sizeof info;
  return info;
}

/* Input or output `index`, counted from 0. KILN_INVALID_ARGUMENT: there is none. */
KILN_API kiln_status kiln_model_get_input(const kiln_model* model, size_t index, kiln_model_tensor_info* info);
KILN_API kiln_status kiln_model_get_output(const kiln_model* model, size_t index, kiln_model_tensor_info* info);
/* Input `index` as the file declares it, -1 for each open extent; those of kiln_model_get_input() are the same of a
 * model without sizes. One whose rank is open has no extents. */
KILN_API kiln_status kiln_model_get_declared_input(const kiln_model* model, size_t index, kiln_model_tensor_info* info);

/* A call that a run makes. The strings live until the model takes another size. */
typedef struct kiln_model_step_info {
  uint32_t size;
  int32_t reserved;
  const char* request; /* Its canonical line. */
  const char* variant; /* As kiln_plan_info has it, and `source` too. */
  const char* source;
  const char* const* nodes; /* Nodes of the model; none for a copy between layouts. */
  size_t node_count;
} kiln_model_step_info;

static inline kiln_model_step_info kiln_model_step_info_default(void) {
  kiln_model_step_info info;
  memset(&info, 0, sizeof info);
  info.size = (uint32_t)sizeof info;
  return info;
}

/* Step `index`, counted from 0 in the order of a run. KILN_INVALID_ARGUMENT: there is none. */
KILN_API kiln_status kiln_model_get_step(const kiln_model* model, size_t index, kiln_model_step_info* info);

/* The requests of all steps, each once, as the text of a requests file with the definitions of user code in it: for
 * kiln_context_prepare() and `kiln tune`. kiln_string_destroy() it. */
KILN_API kiln_status kiln_model_requests(const kiln_model* model, char** requests);

/* Enqueues one inference and returns: every input and output by its name, in any order, with the dtype and extents of
 * kiln_model_get_input() and kiln_model_get_output(), in logical order without gaps, 16-byte aligned. Outputs must
 * share no memory with other tensors. If the file leaves extents open, inputs of other extents are another size, as by
 * kiln_model_set_shapes(); within the capture of a stream only one that is kept. Runs of one model share memory: they
 * must be ordered, by one stream or otherwise, and not be called by two threads at once. A run of a size that is kept
 * compiles nothing, and allocates nothing but the graph that its second run with tensors in the same places becomes: it
 * can be captured into a graph of the caller's, which then has its kernels. KILN_INVALID_ARGUMENT, nothing enqueued: a
 * tensor is missing, given twice, unknown, different, of memory of the host that the device does not reach, beyond the
 * end of its allocation, or overlaps. */
KILN_API kiln_status kiln_model_run(kiln_model* model, kiln_stream stream, const kiln_named_tensor* inputs,
                                    size_t input_count, const kiln_named_tensor* outputs, size_t output_count);

#ifdef __cplusplus
} /* extern "C" */
#endif

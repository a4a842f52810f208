#include "c_conv_forward_parts.h"

#include <kiln/kiln.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct stand_in library;

struct kiln_memory {
  size_t bytes;
  float* values;
};
struct kiln_epilogue {
  const float* bias;
  int relu, swish;
};

static kiln_status step(void) {
  return ++library.calls == library.failing ? KILN_INTERNAL : KILN_OK;
}

// A block of memory begins with its size and ends with a zone that nobody may write.
enum { head = 16, zone = 16 };

static void* counted_malloc(size_t bytes) {
  char* block = step() == KILN_OK ? malloc(head + bytes + zone) : NULL;
  if (block == NULL) return NULL;
  ++library.living;
  memcpy(block, &bytes, sizeof bytes);
  memset(block + head, 0xff, bytes);  // no numbers
  memset(block + head + bytes, 0x5a, zone);
  return block + head;
}
static void counted_free(void* memory) {
  if (memory == NULL) return;
  char* block = (char*)memory - head;
  size_t bytes = 0;
  memcpy(&bytes, block, sizeof bytes);
  for (int i = 0; i < zone; ++i) {
    if (block[head + bytes + (size_t)i] == 0x5a) continue;
    ++library.overrun;
    break;
  }
  --library.living;
  free(block);
}

static void destroy(void* object) {
  if (object == NULL) return;
  --library.living;
  free(object);
}

// Objects of which nothing is read.
static kiln_status made(void** object) {
  const kiln_status status = step();
  if (status != KILN_OK) return status;
  *object = malloc(1);
  ++library.living;
  return status;
}

static const char* fake_status_name(kiln_status status) {
  return status == KILN_INTERNAL ? "status" : "another";
}
static const char* fake_last_error(void) {
  return "the fault";
}
static const char* fake_last_hint(void) {
  return library.hint != NULL ? library.hint : "";
}

static kiln_status fake_context_create(const kiln_context_options* options, kiln_context** context) {
  return options != NULL ? KILN_INVALID_ARGUMENT : made((void**)context);
}
static kiln_status fake_context_get_info(const kiln_context* context, kiln_context_info* info) {
  info->device_description = "a stand-in";
  return context == NULL ? KILN_INVALID_ARGUMENT : step();
}
static kiln_status fake_memory_create(kiln_context* context, size_t bytes, kiln_memory** memory) {
  if (context == NULL || step() != KILN_OK) return KILN_INTERNAL;
  *memory = malloc(sizeof **memory);
  (*memory)->bytes = bytes;
  (*memory)->values = calloc(1, bytes + 1);
  ++library.living;
  return KILN_OK;
}
static void fake_memory_destroy(kiln_memory* memory) {
  if (memory == NULL) return;
  free(memory->values);
  destroy(memory);
}
static void* fake_memory_data(const kiln_memory* memory) {
  return memory == NULL ? NULL : memory->values;
}
static kiln_status fake_memory_upload(kiln_memory* memory, const void* host, size_t bytes) {
  if (bytes != memory->bytes) return KILN_INVALID_ARGUMENT;
  memcpy(memory->values, host, bytes);
  return step();
}
static kiln_status fake_memory_download(const kiln_memory* memory, void* host, size_t bytes) {
  if (bytes != memory->bytes) return KILN_INVALID_ARGUMENT;
  memcpy(host, memory->values, bytes);
  return step();
}
static kiln_status fake_tensor_packed(kiln_tensor* tensor, const void* data, kiln_dtype dtype, int32_t rank,
                                      const int64_t* extents, const char* layout) {
  if (data == NULL || dtype != KILN_F32 || layout != NULL) return KILN_INVALID_ARGUMENT;
  tensor->data = data;
  tensor->rank = rank;
  memcpy(tensor->extents, extents, (size_t)rank * sizeof *extents);
  return step();
}
static kiln_status fake_epilogue_create(kiln_epilogue** epilogue) {
  if (step() != KILN_OK) return KILN_INTERNAL;
  *epilogue = calloc(1, sizeof **epilogue);
  ++library.living;
  return KILN_OK;
}
static kiln_status fake_epilogue_bias(kiln_epilogue* epilogue, const kiln_tensor* values) {
  epilogue->bias = values->rank == 1 && values->extents[0] == 64 ? values->data : NULL;
  return step();
}
static kiln_status fake_epilogue_relu(kiln_epilogue* epilogue) {
  epilogue->relu = epilogue->bias != NULL;
  return step();
}
static kiln_status fake_epilogue_expression(kiln_epilogue* epilogue, const char* text, const kiln_named_tensor* tensors,
                                            size_t tensor_count, const kiln_named_scalar* scalars,
                                            size_t scalar_count) {
  epilogue->swish =
      strstr(text, "sigmoid") != NULL && tensor_count == 1 && scalar_count == 1 && scalars[0].reserved == 0;
  epilogue->bias = tensors[0].tensor->data;
  library.swish_slope = scalars[0].value;
  return step();
}

// Computes the outputs that the example compares; others stay as they are.
static void convolve(const float* x, const float* w, float* y, const kiln_epilogue* epilogue) {
  const int rows[] = {0, 5, 111, 223};
  ++library.runs;
  for (int k = 0; k < 64; ++k) {
    for (int i = 0; i < 4; ++i) {
      const int p = rows[i], q = 223 - p;
      double sum = epilogue->bias[k];
      for (int c = 0; c < 3; ++c) {
        for (int r = -1; r <= 1; ++r) {
          for (int s = -1; s <= 1; ++s) {
            if (p + r < 0 || p + r > 223 || q + s < 0 || q + s > 223) continue;
            sum += (double)x[(c * 224 + p + r) * 224 + q + s] * w[((k * 3 + c) * 3 + r + 1) * 3 + s + 1];
          }
        }
      }
      sum = epilogue->swish ? sum / (1 + exp(-library.swish_slope * sum)) : sum > 0 ? sum : 0;
      const bool is_wrong = library.runs == library.wrong_run && k == library.wrong_k && p == library.wrong_p;
      y[(k * 224 + p) * 224 + q] = (float)(sum + (is_wrong ? library.wrong_by : 0));
    }
  }
}

static bool is(const kiln_tensor* tensor, int64_t a, int64_t b, int64_t c, int64_t d) {
  const int64_t* extents = tensor->extents;
  return tensor->rank == 4 && extents[0] == a && extents[1] == b && extents[2] == c && extents[3] == d;
}

static kiln_status fake_conv_forward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* w,
                                     const kiln_tensor* y, const kiln_conv_options* options, kiln_stream stream) {
  const bool fits = is(x, 1, 3, 224, 224) && is(w, 64, 3, 3, 3) && is(y, 1, 64, 224, 224);
  const bool pads = options->pad_begin[0] == 1 && options->pad_begin[1] == 1 && options->pad_end[0] == 1 &&
                    options->pad_end[1] == 1 && options->pad_begin[2] == 0 && options->pad_end[2] == 0;
  const bool ends = options->epilogue->relu != options->epilogue->swish;
  if (context == NULL || stream != NULL || !fits || !pads || !ends) return KILN_INVALID_ARGUMENT;
  convolve(x->data, w->data, (float*)y->data, options->epilogue);
  return step();
}

static kiln_status fake_plan_create(kiln_context* context, const char* request, kiln_plan** plan) {
  const bool right = context != NULL && strstr(request, "pad=1 epilogue=bias+relu") != NULL;
  return right ? made((void**)plan) : KILN_INVALID_ARGUMENT;
}
static kiln_status fake_plan_get_info(const kiln_plan* plan, kiln_plan_info* info) {
  info->variant = info->source = "a stand-in";
  info->workspace_bytes = 1000;
  return plan == NULL ? KILN_INVALID_ARGUMENT : step();
}
static kiln_status fake_plan_run(const kiln_plan* plan, kiln_stream stream, const void* const* operands,
                                 size_t operand_count, void* workspace, const kiln_run_values* values) {
  if (plan == NULL || stream != NULL || operand_count != 4 || workspace == NULL || values != NULL) {
    return KILN_INVALID_ARGUMENT;
  }
  const kiln_epilogue epilogue = {operands[3], 1, 0};
  convolve(operands[0], operands[1], (float*)operands[2], &epilogue);
  return step();
}

#define malloc counted_malloc
#define free counted_free
#define kiln_status_name fake_status_name
#define kiln_last_error fake_last_error
#define kiln_last_hint fake_last_hint
#define kiln_context_create fake_context_create
#define kiln_context_get_info fake_context_get_info
#define kiln_context_destroy destroy
#define kiln_memory_create fake_memory_create
#define kiln_memory_destroy fake_memory_destroy
#define kiln_memory_data fake_memory_data
#define kiln_memory_upload fake_memory_upload
#define kiln_memory_download fake_memory_download
#define kiln_tensor_packed fake_tensor_packed
#define kiln_epilogue_create fake_epilogue_create
#define kiln_epilogue_destroy destroy
#define kiln_epilogue_bias fake_epilogue_bias
#define kiln_epilogue_relu fake_epilogue_relu
#define kiln_epilogue_expression fake_epilogue_expression
#define kiln_conv_forward fake_conv_forward
#define kiln_plan_create fake_plan_create
#define kiln_plan_get_info fake_plan_get_info
#define kiln_plan_run fake_plan_run
#define kiln_plan_destroy destroy
#define main example_main
#include "../../examples/c_conv_forward/main.c"

double expected_output(int k, int p, int q) {
  struct resources r = {0};
  r.x_host = wave(X_COUNT, 0.37f);
  r.w_host = wave(W_COUNT, 0.71f);
  r.bias_host = wave(K, 1.3f);
  const double value = expected(&r, k, p, q);
  counted_free(r.x_host);
  counted_free(r.w_host);
  counted_free(r.bias_host);
  return value;
}

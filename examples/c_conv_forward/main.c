/* One convolution by the C API: 3 -> 64 channels, 3x3, pad 1, on a 224x224 image, with bias and ReLU, then with an
 * activation of our own. */
#include <kiln/kiln.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { C = 3, H = 224, W = 224, K = 64, R = 3, S = 3 };
enum { X_COUNT = C * H * W, W_COUNT = K * C * R * S, Y_COUNT = K * H * W };

/* Everything that main() gives back at the end; destroy calls accept NULL. */
struct resources {
  kiln_context* context;
  kiln_memory *x, *w, *bias, *y, *workspace;
  kiln_epilogue *bias_relu, *bias_swish;
  kiln_plan* plan;
  float *x_host, *w_host, *bias_host, *y_host;
};

static bool succeeded(kiln_status status) {
  if (status == KILN_OK) return true;
  fprintf(stderr, "%s: %s\n", kiln_status_name(status), kiln_last_error());
  if (kiln_last_hint()[0] != 0) fprintf(stderr, "%s\n", kiln_last_hint());
  return false;
}

static float* wave(size_t count, float step) {
  float* values = malloc(count * sizeof *values);
  for (size_t i = 0; values != NULL && i < count; ++i) values[i] = sinf(step * (float)i);
  return values;
}

static bool on_device(kiln_context* context, const float* values, size_t count, kiln_memory** memory) {
  return succeeded(kiln_memory_create(context, count * sizeof *values, memory)) &&
         succeeded(kiln_memory_upload(*memory, values, count * sizeof *values));
}

static bool packed(kiln_tensor* tensor, const kiln_memory* memory, int32_t rank, const int64_t* extents) {
  return succeeded(kiln_tensor_packed(tensor, kiln_memory_data(memory), KILN_F32, rank, extents, NULL));
}

static const float swish_slope = 1.5f;

static double relu(double v) {
  return v > 0 ? v : 0;
}
static double swish(double v) {
  return v / (1 + exp(-swish_slope * v));
}

/* Output (k, p, q) before its activation, computed here to see that the device agrees. */
static double expected(const struct resources* r, int k, int p, int q) {
  double sum = r->bias_host[k];
  for (int c = 0; c < C; ++c) {
    for (int i = 0; i < R * S; ++i) {
      const int row = p - 1 + i / S, column = q - 1 + i % S;
      if (row < 0 || row >= H || column < 0 || column >= W) continue;
      sum += (double)r->x_host[(c * H + row) * W + column] * r->w_host[(k * C + c) * R * S + i];
    }
  }
  return sum;
}

static double largest_error(const struct resources* r, double (*activation)(double)) {
  static const int positions[] = {0, 5, 111, 223};
  double largest = 0;
  for (int k = 0; k < K; k += 9) {
    for (int i = 0; i < 4; ++i) {
      const int p = positions[i], q = W - 1 - p;
      const double error = fabs(r->y_host[(k * H + p) * W + q] - activation(expected(r, k, p, q)));
      if (error > largest) largest = error;
    }
  }
  return largest;
}

/* Epilogues of the results: stages that Kiln knows, or CUDA code of our own over named tensors and scalars. */
static bool make_epilogues(struct resources* r) {
  kiln_tensor bias;
  if (!packed(&bias, r->bias, 1, (const int64_t[]){K})) return false;
  const kiln_named_tensor tensors[] = {{"bias", &bias}};
  const kiln_named_scalar scalars[] = {{"slope", swish_slope, 0}};
  return succeeded(kiln_epilogue_create(&r->bias_relu)) && succeeded(kiln_epilogue_bias(r->bias_relu, &bias)) &&
         succeeded(kiln_epilogue_relu(r->bias_relu)) && succeeded(kiln_epilogue_create(&r->bias_swish)) &&
         succeeded(kiln_epilogue_expression(r->bias_swish,
                                            "const float v = acc + bias[k];\n"
                                            "return v * sigmoid(slope * v);",
                                            tensors, 1, scalars, 1));
}

/* The one-line way. The first call of a shape compiles; later ones find their plan in a fraction of a microsecond. */
static bool run_operation(struct resources* r, const kiln_epilogue* epilogue) {
  kiln_tensor x, w, y;
  if (!packed(&x, r->x, 4, (const int64_t[]){1, C, H, W}) || !packed(&w, r->w, 4, (const int64_t[]){K, C, R, S}) ||
      !packed(&y, r->y, 4, (const int64_t[]){1, K, H, W})) {
    return false;
  }
  kiln_conv_options options = kiln_conv_options_default();
  options.pad_begin[0] = options.pad_begin[1] = options.pad_end[0] = options.pad_end[1] = 1;
  options.epilogue = epilogue;
  return succeeded(kiln_conv_forward(r->context, &x, &w, &y, &options, NULL)) &&
         succeeded(kiln_memory_download(r->y, r->y_host, Y_COUNT * sizeof *r->y_host));
}

/* The way for loops and CUDA graphs: a plan does no look-up and no allocation. */
static bool run_plan(struct resources* r) {
  const char* request = "conv_forward x=f32:1x3x224x224:nchw w=f32:64x3x3x3:nchw pad=1 epilogue=bias+relu";
  kiln_plan_info info = kiln_plan_info_default();
  if (!succeeded(kiln_plan_create(r->context, request, &r->plan)) || !succeeded(kiln_plan_get_info(r->plan, &info)) ||
      !succeeded(kiln_memory_create(r->context, (size_t)info.workspace_bytes, &r->workspace))) {
    return false;
  }
  printf("plan: %s (%s), %lld bytes of workspace\n", info.variant, info.source, (long long)info.workspace_bytes);
  const void* operands[] = {kiln_memory_data(r->x), kiln_memory_data(r->w), kiln_memory_data(r->y),
                            kiln_memory_data(r->bias)};
  return succeeded(kiln_plan_run(r->plan, NULL, operands, 4, kiln_memory_data(r->workspace), NULL)) &&
         succeeded(kiln_memory_download(r->y, r->y_host, Y_COUNT * sizeof *r->y_host));
}

static bool run(struct resources* r) {
  kiln_context_info info = kiln_context_info_default();
  if (!succeeded(kiln_context_create(NULL, &r->context)) || !succeeded(kiln_context_get_info(r->context, &info))) {
    return false;
  }
  printf("%s\n", info.device_description);
  r->x_host = wave(X_COUNT, 0.37f);
  r->w_host = wave(W_COUNT, 0.71f);
  r->bias_host = wave(K, 1.3f);
  r->y_host = malloc(Y_COUNT * sizeof *r->y_host);
  if (r->x_host == NULL || r->w_host == NULL || r->bias_host == NULL || r->y_host == NULL) return false;
  if (!on_device(r->context, r->x_host, X_COUNT, &r->x) || !on_device(r->context, r->w_host, W_COUNT, &r->w) ||
      !on_device(r->context, r->bias_host, K, &r->bias) ||
      !succeeded(kiln_memory_create(r->context, Y_COUNT * sizeof(float), &r->y))) {
    return false;
  }
  if (!make_epilogues(r) || !run_operation(r, r->bias_relu)) return false;
  const double by_operation = largest_error(r, relu);
  if (!run_plan(r)) return false;
  const double by_plan = largest_error(r, relu);
  if (!run_operation(r, r->bias_swish)) return false;
  const double of_ours = largest_error(r, swish);
  printf("largest error of the sampled outputs: %.2g, by the plan %.2g, with our own activation %.2g\n", by_operation,
         by_plan, of_ours);
  return by_operation < 1e-4 && by_plan < 1e-4 && of_ours < 1e-4;
}

int main(void) {
  struct resources r = {0};
  const bool right = run(&r);
  kiln_plan_destroy(r.plan);
  kiln_epilogue_destroy(r.bias_swish);
  kiln_epilogue_destroy(r.bias_relu);
  kiln_memory_destroy(r.workspace);
  kiln_memory_destroy(r.y);
  kiln_memory_destroy(r.bias);
  kiln_memory_destroy(r.w);
  kiln_memory_destroy(r.x);
  kiln_context_destroy(r.context);
  free(r.x_host);
  free(r.w_host);
  free(r.bias_host);
  free(r.y_host);
  return right ? 0 : 1;
}

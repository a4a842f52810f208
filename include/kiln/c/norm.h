/* Normalisations (layer, RMS, group, instance, batch) and their gradients. See kiln/kiln.h. */
/* Made by scripts/c-api from capi/operations/norm.txt and the definitions of the operations. */
#pragma once

#include <stdint.h>
#include <string.h>

#include "kiln/c/activation.h"
#include "kiln/c/core.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t kiln_norm_mode;
enum {
  KILN_NORM_STANDARD = 0, /* (x - mean) / sqrt(variance + epsilon) */
  KILN_NORM_RMS = 1       /* x / sqrt(mean of x^2 + epsilon) */
};

#define KILN_NORM_MAX_AXES 6

/* Tensors that are not wanted are NULL, which is their default. */
typedef struct kiln_norm_options {
  uint32_t size;
  kiln_norm_mode mode;              /* Default KILN_NORM_STANDARD. */
  int32_t axes[KILN_NORM_MAX_AXES]; /* A row is what differs along these alone. Negative ones count from the end. */
  int32_t axis_count;               /* Default 1: the last dimension. */
  int32_t dynamic_batch;            /* One kernel for every batch of a power-of-two bucket; the batch is no axis. */
  const kiln_tensor* w;             /* Scale and shift: in each dimension x's extent, or 1. */
  const kiln_tensor* b;
  const kiln_tensor* mean; /* Outputs, f32: x's extents with 1 along the axes. */
  const kiln_tensor* inv_deviation;
  const kiln_tensor* running_mean; /* f32, as mean; updated. */
  const kiln_tensor* running_variance;
  const kiln_epilogue* epilogue; /* add, relu, add and then relu, or user code. */
  /* Applied after the epilogue, in place of relu: only its mode and numbers are read. */
  const kiln_activation_options* activation;
  float epsilon;  /* Finite, at least 0. Default 1e-5. */
  float momentum; /* The part of this call in the running statistics: 0 to 1. Default 0.1. */
  float alpha;    /* Default 1. */
  float beta;     /* Default 0: y is not read. */
} kiln_norm_options;

static inline kiln_norm_options kiln_norm_options_default(void) {
  kiln_norm_options options;
  memset(&options, 0, sizeof options);
  options.size = (uint32_t)sizeof options;
  options.axes[0] = -1;
  options.axis_count = 1;
  options.epsilon = 1e-5f;
  options.momentum = 0.1f;
  options.alpha = 1;
  return options;
}

/* Enqueues y = f(epilogue(alpha * (w xhat + b) + beta * y)) on `stream` and returns: xhat is x less the mean of its
 * row, divided by the row's deviation; f is the activation. The usual normalisations, below, choose the axes.
 *
 * x, y: equal extents of 1 to 6 dimensions, any strides. y may be x or the residual; otherwise outputs must not overlap
 * anything else. Deterministic. `options` may be NULL. Errors, first call and threads as for kiln_conv_forward(). */
KILN_API kiln_status kiln_norm_forward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* y,
                                       const kiln_norm_options* options, kiln_stream stream);

/* The same with statistics that are given: xhat = (x - running_mean) / sqrt(running_variance + epsilon). The
 * statistics, mode and momentum in `options` are not read. */
KILN_API kiln_status kiln_norm_inference(kiln_context* context, const kiln_tensor* x, const kiln_tensor* running_mean,
                                         const kiln_tensor* running_variance, const kiln_tensor* y,
                                         const kiln_norm_options* options, kiln_stream stream);

typedef struct kiln_norm_affine_options {
  uint32_t size;
  kiln_norm_mode mode; /* As in kiln_norm_options, as axes, w, b and epsilon. */
  int32_t axes[KILN_NORM_MAX_AXES];
  int32_t axis_count;
  int32_t dynamic_batch;
  float epsilon;
  uint32_t reserved;
  const kiln_tensor* w;
  const kiln_tensor* b;
  const kiln_epilogue* epilogue; /* For scale; user code only, with its prologue on x. Default NULL: none. */
} kiln_norm_affine_options;

static inline kiln_norm_affine_options kiln_norm_affine_options_default(void) {
  kiln_norm_affine_options options;
  memset(&options, 0, sizeof options);
  options.size = (uint32_t)sizeof options;
  options.axes[0] = -1;
  options.axis_count = 1;
  options.epsilon = 1e-5f;
  return options;
}

/* Enqueues scale and shift with w xhat + b = x scale + shift on `stream` and returns: what kiln_norm_forward()
 * computes, for a kernel that applies it while it loads x.
 *
 * x: 1 to 6 dimensions. scale, shift: f32, of equal extents: x's, but along axes that w and b repeat in 1 will do. Any
 * strides. Outputs must not overlap anything else. Deterministic. `options` may be NULL. */
KILN_API kiln_status kiln_norm_affine(kiln_context* context, const kiln_tensor* x, const kiln_tensor* scale,
                                      const kiln_tensor* shift, const kiln_norm_affine_options* options,
                                      kiln_stream stream);

typedef struct kiln_norm_gradient_options {
  uint32_t size;
  kiln_norm_mode mode; /* As in the forward, as axes and w. */
  int32_t axes[KILN_NORM_MAX_AXES];
  int32_t axis_count;
  int32_t dynamic_batch; /* Without dw and db. */
  const kiln_tensor* w;
  const kiln_tensor* y; /* The forward's result, if that ended in relu of its epilogue. */
  /* As in the forward, and what z = w xhat + b + residual needs besides, where the derivative is taken. */
  const kiln_activation_options* activation;
  const kiln_tensor* b;
  const kiln_tensor* residual;
  const kiln_tensor* dw; /* Outputs, of w's extents. */
  const kiln_tensor* db;
  const kiln_tensor* dresidual;  /* Output: the gradient by the residual. */
  float alpha;                   /* Scale of dx. Default 1. */
  float beta;                    /* Default 0: dx is not read. */
  float parameter_alpha;         /* Scale of dw and db. Default 1. */
  float parameter_beta;          /* Default 0: they are not read. With 1 gradients accumulate over calls. */
  float dresidual_alpha;         /* Default 1. */
  float dresidual_beta;          /* Default 0: dresidual is not read. */
  const kiln_epilogue* epilogue; /* For dx; user code only. Default NULL: none. */
} kiln_norm_gradient_options;

static inline kiln_norm_gradient_options kiln_norm_gradient_options_default(void) {
  kiln_norm_gradient_options options;
  memset(&options, 0, sizeof options);
  options.size = (uint32_t)sizeof options;
  options.axes[0] = -1;
  options.axis_count = 1;
  options.alpha = 1;
  options.parameter_alpha = 1;
  options.dresidual_alpha = 1;
  return options;
}

/* Enqueues the gradients of kiln_norm_forward() on `stream` and returns: dx = epilogue(alpha * (gradient with respect
 * to x) + beta * dx) and, if given, dw, db and dresidual, with scales of their own and no epilogue.
 *
 * mean (NULL for rms), inv_deviation: what the forward saved. dx may be dy or x, dresidual may be dy; otherwise outputs
 * must not overlap anything else. Deterministic. `options` may be NULL. */
KILN_API kiln_status kiln_norm_backward(kiln_context* context, const kiln_tensor* dy, const kiln_tensor* x,
                                        const kiln_tensor* mean, const kiln_tensor* inv_deviation,
                                        const kiln_tensor* dx, const kiln_norm_gradient_options* options,
                                        kiln_stream stream);

/* The usual normalisations: the same along the axes of each, whatever axes `options` has. Parameters and statistics may
 * have fewer dimensions than x, as said below: b, dw and db are as w, all statistics as mean. Tensors of x's rank are
 * taken as kiln_norm_forward() takes them. */

/* Along the dimensions from `first_axis` on (negative: from the end). w: their extents. mean: the extents before. */
KILN_API kiln_status kiln_layer_norm_forward(kiln_context* context, int32_t first_axis, const kiln_tensor* x,
                                             const kiln_tensor* y, const kiln_norm_options* options,
                                             kiln_stream stream);
KILN_API kiln_status kiln_layer_norm_backward(kiln_context* context, int32_t first_axis, const kiln_tensor* dy,
                                              const kiln_tensor* x, const kiln_tensor* mean,
                                              const kiln_tensor* inv_deviation, const kiln_tensor* dx,
                                              const kiln_norm_gradient_options* options, kiln_stream stream);

/* The same by KILN_NORM_RMS, whatever mode `options` has; there is no mean. */
KILN_API kiln_status kiln_rms_norm_forward(kiln_context* context, int32_t first_axis, const kiln_tensor* x,
                                           const kiln_tensor* y, const kiln_norm_options* options, kiln_stream stream);
KILN_API kiln_status kiln_rms_norm_backward(kiln_context* context, int32_t first_axis, const kiln_tensor* dy,
                                            const kiln_tensor* x, const kiln_tensor* inv_deviation,
                                            const kiln_tensor* dx, const kiln_norm_gradient_options* options,
                                            kiln_stream stream);

/* Normalises each channel of each image. x: N,C and one to three spatial dimensions. w: C. mean: N,C. */
KILN_API kiln_status kiln_instance_norm_forward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* y,
                                                const kiln_norm_options* options, kiln_stream stream);
KILN_API kiln_status kiln_instance_norm_backward(kiln_context* context, const kiln_tensor* dy, const kiln_tensor* x,
                                                 const kiln_tensor* mean, const kiln_tensor* inv_deviation,
                                                 const kiln_tensor* dx, const kiln_norm_gradient_options* options,
                                                 kiln_stream stream);

/* Normalises each of `groups` groups of neighbouring channels of each image. x: N,C and one to three spatial
 * dimensions. w: C, or `groups`: one element for all channels of a group. mean: N,groups. */
KILN_API kiln_status kiln_group_norm_forward(kiln_context* context, int64_t groups, const kiln_tensor* x,
                                             const kiln_tensor* y, const kiln_norm_options* options,
                                             kiln_stream stream);
KILN_API kiln_status kiln_group_norm_backward(kiln_context* context, int64_t groups, const kiln_tensor* dy,
                                              const kiln_tensor* x, const kiln_tensor* mean,
                                              const kiln_tensor* inv_deviation, const kiln_tensor* dx,
                                              const kiln_norm_gradient_options* options, kiln_stream stream);

/* The same as scale and shift: N,C, or N,groups where there is one w and one b for all channels of a group. */
KILN_API kiln_status kiln_group_norm_affine(kiln_context* context, int64_t groups, const kiln_tensor* x,
                                            const kiln_tensor* scale, const kiln_tensor* shift,
                                            const kiln_norm_affine_options* options, kiln_stream stream);

/* Normalises each channel over all images, in training. x: N,C and up to three spatial dimensions. w, mean,
 * running_mean: C. Per activation it is kiln_norm_forward() with the axis 0. */
KILN_API kiln_status kiln_batch_norm_forward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* y,
                                             const kiln_norm_options* options, kiln_stream stream);
KILN_API kiln_status kiln_batch_norm_inference(kiln_context* context, const kiln_tensor* x,
                                               const kiln_tensor* running_mean, const kiln_tensor* running_variance,
                                               const kiln_tensor* y, const kiln_norm_options* options,
                                               kiln_stream stream);
KILN_API kiln_status kiln_batch_norm_backward(kiln_context* context, const kiln_tensor* dy, const kiln_tensor* x,
                                              const kiln_tensor* mean, const kiln_tensor* inv_deviation,
                                              const kiln_tensor* dx, const kiln_norm_gradient_options* options,
                                              kiln_stream stream);

#ifdef __cplusplus
} /* extern "C" */
#endif

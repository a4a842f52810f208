// The options of C as the C++ API has them. Made by scripts/c-api.
#pragma once

#include "kiln/activation.h"
#include "kiln/affine_grid.h"
#include "kiln/attention.h"
#include "kiln/conv.h"
#include "kiln/ctc_loss.h"
#include "kiln/dropout.h"
#include "kiln/gather.h"
#include "kiln/gemm.h"
#include "kiln/grid_sample.h"
#include "kiln/im2col.h"
#include "kiln/kiln.h"
#include "kiln/local_conv.h"
#include "kiln/local_norm.h"
#include "kiln/loss.h"
#include "kiln/norm.h"
#include "kiln/pool.h"
#include "kiln/recurrent.h"
#include "kiln/reduce.h"
#include "kiln/resize.h"
#include "kiln/scatter.h"
#include "kiln/softmax.h"
#include "kiln/tensor_ops.h"

namespace kiln::capi {

// Throw Error(invalid_argument) that names the function and the field: a flag that is neither 0 nor 1, a word
// or a tensor that is none, `reserved` that is not 0.
ActivationOptions options_of(const kiln_activation_options& given, const char* function);
AffineGridOptions options_of(const kiln_affine_grid_options& given, const char* function);
AttentionOptions options_of(const kiln_attention_options& given, const char* function);
AttentionBackwardOptions options_of(const kiln_attention_backward_options& given, const char* function);
ConvOptions options_of(const kiln_conv_options& given, int rank, const char* function);
ConvBackwardOptions options_of(const kiln_conv_backward_options& given, int rank, const char* function);
ConvBackwardBiasOptions options_of(const kiln_conv_backward_bias_options& given, const char* function);
CtcLossOptions options_of(const kiln_ctc_loss_options& given, const char* function);
CtcLossBackwardOptions options_of(const kiln_ctc_loss_backward_options& given, const char* function);
DropoutOptions options_of(const kiln_dropout_options& given, const char* function);
GatherOptions options_of(const kiln_gather_options& given, const char* function);
GemmOptions options_of(const kiln_gemm_options& given, const char* function);
GridSampleOptions options_of(const kiln_grid_sample_options& given, const char* function);
Im2colOptions options_of(const kiln_im2col_options& given, int rank, const char* function);
LocalConvOptions options_of(const kiln_local_conv_options& given, int rank, const char* function);
LocalConvBackwardOptions options_of(const kiln_local_conv_backward_options& given, int rank, const char* function);
LocalNormOptions options_of(const kiln_local_norm_options& given, const char* function);
CrossEntropyOptions options_of(const kiln_cross_entropy_options& given, const char* function);
NormOptions options_of(const kiln_norm_options& given, const char* function);
NormAffineOptions options_of(const kiln_norm_affine_options& given, const char* function);
NormGradientOptions options_of(const kiln_norm_gradient_options& given, const char* function);
PoolOptions options_of(const kiln_pool_options& given, int rank, const char* function);
RecurrentOptions options_of(const kiln_recurrent_options& given, const char* function);
RecurrentBackwardOptions options_of(const kiln_recurrent_backward_options& given, const char* function);
ReduceOptions options_of(const kiln_reduce_options& given, const char* function);
ReduceBackwardOptions options_of(const kiln_reduce_backward_options& given, const char* function);
ResizeOptions options_of(const kiln_resize_options& given, const char* function);
ScatterOptions options_of(const kiln_scatter_options& given, const char* function);
SoftmaxOptions options_of(const kiln_softmax_options& given, const char* function);
TransformOptions options_of(const kiln_transform_options& given, const char* function);
TensorOpOptions options_of(const kiln_tensor_op_options& given, const char* function);
TensorOpBackwardOptions options_of(const kiln_tensor_op_backward_options& given, const char* function);

}  // namespace kiln::capi

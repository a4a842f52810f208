// The one list of operations, a line each; the definition of dropout is generator/operations/dropout.cpp, its reference
// reference/operations/dropout.cpp. The order is that of reports and has no other meaning.
#pragma once

// clang-format off
#define KILN_OPERATIONS(operation) \
  operation(conv_forward) \
  operation(conv_backward_data) \
  operation(conv_backward_filter) \
  operation(conv_backward_bias) \
  operation(local_conv_forward) \
  operation(local_conv_backward_data) \
  operation(local_conv_backward_filter) \
  operation(pool_forward) \
  operation(pool_backward) \
  operation(unpool_backward) \
  operation(resize) \
  operation(resize_backward) \
  operation(im2col) \
  operation(col2im) \
  operation(softmax_forward) \
  operation(softmax_backward) \
  operation(activation_forward) \
  operation(activation_backward) \
  operation(tensor_transform) \
  operation(tensor_set) \
  operation(tensor_op) \
  operation(tensor_op_backward) \
  operation(grid_sample) \
  operation(grid_sample_backward_data) \
  operation(grid_sample_backward_grid) \
  operation(affine_grid) \
  operation(affine_grid_backward) \
  operation(gather) \
  operation(scatter) \
  operation(reduce) \
  operation(reduce_backward) \
  operation(gemm) \
  operation(cross_entropy_forward) \
  operation(cross_entropy_backward) \
  operation(ctc_loss_forward) \
  operation(ctc_loss_backward) \
  operation(recurrent_forward) \
  operation(recurrent_backward) \
  operation(attention_forward) \
  operation(attention_backward) \
  operation(norm_forward) \
  operation(norm_affine) \
  operation(norm_inference) \
  operation(norm_backward) \
  operation(dropout) \
  operation(local_norm_forward) \
  operation(local_norm_backward) \
// clang-format on

// The definitions themselves, one per file of this folder. operations.cpp lists them.
#pragma once

#include "kiln/generator/operation.h"

namespace kiln {

const Operation& conv_forward_operation();
const Operation& conv_backward_data_operation();
const Operation& conv_backward_filter_operation();
const Operation& conv_backward_bias_operation();
const Operation& local_conv_forward_operation();
const Operation& local_conv_backward_data_operation();
const Operation& local_conv_backward_filter_operation();
const Operation& pool_forward_operation();
const Operation& pool_backward_operation();
const Operation& softmax_forward_operation();
const Operation& softmax_backward_operation();
const Operation& activation_forward_operation();
const Operation& activation_backward_operation();
const Operation& tensor_transform_operation();
const Operation& tensor_set_operation();
const Operation& tensor_op_operation();
const Operation& reduce_operation();
const Operation& gemm_operation();
const Operation& cross_entropy_forward_operation();
const Operation& cross_entropy_backward_operation();
const Operation& norm_forward_operation();
const Operation& norm_inference_operation();
const Operation& norm_backward_operation();
const Operation& dropout_operation();
const Operation& local_norm_forward_operation();
const Operation& local_norm_backward_operation();

}  // namespace kiln

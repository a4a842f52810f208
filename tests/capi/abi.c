/* Layout that compiled programs rely on: sizes, offsets and values of kiln.h. */
#include <kiln/kiln.h>

#define HOLDS(condition) _Static_assert(condition, #condition)

HOLDS(sizeof(kiln_status) == 4);
HOLDS(KILN_OK == 0 && KILN_INVALID_ARGUMENT == 1 && KILN_PARSE_ERROR == 2 && KILN_UNSUPPORTED == 3);
HOLDS(KILN_COMPILE_FAILED == 4 && KILN_DRIVER_ERROR == 5 && KILN_MISSING_LIBRARY == 6 && KILN_OUT_OF_MEMORY == 7);
HOLDS(KILN_IO_ERROR == 8 && KILN_INTERNAL == 9);
HOLDS(KILN_F32 == 0 && KILN_F16 == 1 && KILN_BF16 == 2);
HOLDS(KILN_I32 == 3 && KILN_I8 == 4 && KILN_U8 == 5 && KILN_F8E4M3 == 6 && KILN_F8E5M2 == 7);
HOLDS(KILN_POOL_MAX == 0 && KILN_POOL_AVG == 1 && KILN_POOL_AVG_PADDED == 2);
HOLDS(KILN_SOFTMAX_ACCURATE == 0 && KILN_SOFTMAX_LOG == 1);
HOLDS(KILN_MAX_RANK == 8 && KILN_MAX_SPATIAL == 3);

HOLDS(sizeof(kiln_named_tensor) == 16 && sizeof(kiln_named_scalar) == 16 && offsetof(kiln_named_scalar, value) == 8);
HOLDS(sizeof(kiln_tensor) == 144 && offsetof(kiln_tensor, dtype) == 8 && offsetof(kiln_tensor, rank) == 12);
HOLDS(offsetof(kiln_tensor, extents) == 16 && offsetof(kiln_tensor, strides) == 80);

HOLDS(offsetof(kiln_context_options, size) == 0 && offsetof(kiln_context_options, workspace_limit) == 8);
HOLDS(offsetof(kiln_context_options, bundles) == 40 && offsetof(kiln_context_options, kernel_store) == 72);
HOLDS(offsetof(kiln_context_options, environment) == 80 && offsetof(kiln_context_options, announce) == 96);
HOLDS(offsetof(kiln_context_options, deterministic) == 112 && offsetof(kiln_context_options, tuning_mode) == 120);
HOLDS(offsetof(kiln_context_options, tuning_budget_seconds) == 128 && sizeof(kiln_context_options) == 176);
HOLDS(offsetof(kiln_context_options, workspace_allocate) == 152 &&
      offsetof(kiln_context_options, workspace_data) == 168);
HOLDS(KILN_TUNING_NEVER == 0 && KILN_TUNING_WITHIN_BUDGET == 1 && KILN_TUNING_IN_BACKGROUND == 2);

HOLDS(offsetof(kiln_conv_options, size) == 0 && offsetof(kiln_conv_options, pad_begin) == 8);
HOLDS(offsetof(kiln_conv_options, groups) == 104 && offsetof(kiln_conv_options, epilogue) == 112);
HOLDS(offsetof(kiln_conv_options, alpha) == 120 && offsetof(kiln_conv_options, dynamic_batch) == 140);
HOLDS(sizeof(kiln_conv_options) == 144);

HOLDS(offsetof(kiln_conv_backward_options, groups) == 104 && offsetof(kiln_conv_backward_options, alpha) == 112);
HOLDS(offsetof(kiln_conv_backward_options, epilogue) == 136 && sizeof(kiln_conv_backward_options) == 144);
HOLDS(offsetof(kiln_conv_backward_bias_options, epilogue) == 16 && sizeof(kiln_conv_backward_bias_options) == 24);

HOLDS(offsetof(kiln_local_conv_options, grid) == 112 && offsetof(kiln_local_conv_options, epilogue) == 136);
HOLDS(offsetof(kiln_local_conv_options, alpha) == 144 && sizeof(kiln_local_conv_options) == 168);
HOLDS(offsetof(kiln_local_conv_backward_options, grid) == 112);
HOLDS(offsetof(kiln_local_conv_backward_options, alpha) == 136);
HOLDS(offsetof(kiln_local_conv_backward_options, epilogue) == 160 && sizeof(kiln_local_conv_backward_options) == 168);

HOLDS(offsetof(kiln_pool_options, mode) == 4 && offsetof(kiln_pool_options, window) == 8);
HOLDS(offsetof(kiln_pool_options, alpha) == 128 && sizeof(kiln_pool_options) == 152);
HOLDS(offsetof(kiln_softmax_options, axis) == 8 && sizeof(kiln_softmax_options) == 40);
HOLDS(offsetof(kiln_activation_options, epilogue) == 40 && sizeof(kiln_activation_options) == 48);
HOLDS(offsetof(kiln_transform_options, pad_begin) == 16 && sizeof(kiln_transform_options) == 160);
HOLDS(sizeof(kiln_tensor_op_options) == 24);
HOLDS(offsetof(kiln_norm_options, w) == 40 && sizeof(kiln_norm_options) == 120);
HOLDS(offsetof(kiln_norm_gradient_options, w) == 40 && sizeof(kiln_norm_gradient_options) == 136);
HOLDS(offsetof(kiln_local_norm_options, window) == 16 && sizeof(kiln_local_norm_options) == 72);
HOLDS(sizeof(kiln_reduce_options) == 24 && KILN_REDUCE_MUL_NO_ZEROS == 8);
HOLDS(offsetof(kiln_run_values, alpha) == 8 && offsetof(kiln_run_values, n) == 24 && sizeof(kiln_run_values) == 80);
HOLDS(sizeof(kiln_named_integer) == 16 && offsetof(kiln_named_integer, value) == 8);
HOLDS(offsetof(kiln_call_options, numbers) == 8 && offsetof(kiln_call_options, epilogue) == 40);
HOLDS(offsetof(kiln_call_options, workspace_bytes) == 56 && sizeof(kiln_call_options) == 64);
HOLDS(offsetof(kiln_plan_info, workspace_bytes) == 8 && sizeof(kiln_plan_info) == 56);
HOLDS(KILN_OPERAND_INPUT == 0 && KILN_OPERAND_OUTPUT == 1 && KILN_OPERAND_UPDATED == 2);
HOLDS(offsetof(kiln_operand_info, name) == 8 && offsetof(kiln_operand_info, dtype) == 24);
HOLDS(offsetof(kiln_operand_info, extents) == 32 && offsetof(kiln_operand_info, alignment) == 160);
HOLDS(offsetof(kiln_operand_info, has_batch) == 176 && sizeof(kiln_operand_info) == 184);
HOLDS(offsetof(kiln_context_info, device_id) == 16 && sizeof(kiln_context_info) == 24);

/* The defaults as a C compiler makes them: every structure carries its size. */
int capi_defaults_carry_their_sizes(void);
int capi_defaults_carry_their_sizes(void) {
  return kiln_context_options_default().size == sizeof(kiln_context_options) &&
         kiln_context_info_default().size == sizeof(kiln_context_info) &&
         kiln_conv_options_default().size == sizeof(kiln_conv_options) &&
         kiln_conv_backward_options_default().size == sizeof(kiln_conv_backward_options) &&
         kiln_conv_backward_bias_options_default().size == sizeof(kiln_conv_backward_bias_options) &&
         kiln_local_conv_options_default().size == sizeof(kiln_local_conv_options) &&
         kiln_local_conv_backward_options_default().size == sizeof(kiln_local_conv_backward_options) &&
         kiln_pool_options_default().size == sizeof(kiln_pool_options) &&
         kiln_softmax_options_default().size == sizeof(kiln_softmax_options) &&
         kiln_activation_options_default(KILN_ACTIVATION_RELU).size == sizeof(kiln_activation_options) &&
         kiln_transform_options_default().size == sizeof(kiln_transform_options) &&
         kiln_tensor_op_options_default().size == sizeof(kiln_tensor_op_options) &&
         kiln_reduce_options_default().size == sizeof(kiln_reduce_options) &&
         kiln_cross_entropy_options_default().size == sizeof(kiln_cross_entropy_options) &&
         kiln_dropout_options_default().size == sizeof(kiln_dropout_options) &&
         kiln_local_norm_options_default().size == sizeof(kiln_local_norm_options) &&
         kiln_gemm_options_default().size == sizeof(kiln_gemm_options) &&
         kiln_norm_options_default().size == sizeof(kiln_norm_options) &&
         kiln_norm_gradient_options_default().size == sizeof(kiln_norm_gradient_options) &&
         kiln_call_options_default().size == sizeof(kiln_call_options) &&
         kiln_run_values_default().size == sizeof(kiln_run_values) &&
         kiln_plan_info_default().size == sizeof(kiln_plan_info) &&
         kiln_operand_info_default().size == sizeof(kiln_operand_info);
}

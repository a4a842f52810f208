// Every function of kiln.h, with everything that can be wrong with one of its arguments alone. Refusals that depend on
// several of them stand in arguments_test.cpp and operation_arguments_test.cpp.
#include "argument_rows.h"
#include "declarations.h"
#include "exported_symbols.h"
#include "fixture.h"

namespace kiln::capi::every_function_test {
namespace {

using Names = std::set<std::string>;

// For each function its bad rows, and a good call that differs from each of them in one argument.
class EveryFunction : public CApi {
 protected:
  struct Entry {
    std::vector<Case> rows;
    std::function<kiln_status()> good;
  };

  EveryFunction() {
    add_contexts();
    add_memory();
    add_epilogues();
    add_convolution_pooling_and_softmax();
    add_activations();
    add_tensor_functions();
    add_normalisations();
    add_products();
    add_losses();
    add_grid_samples();
    add_recurrent_layers();
    add_attention();
    add_dropout();
    add_local_normalisations();
    add_plans();
    add_order();
    add_calls_by_name();
  }

  ~EveryFunction() override {
    for (char* text : {json_, key_}) kiln_string_destroy(text);
    for (kiln_epilogue* epilogue : {made_epilogue_, stages_, code_, doubled_}) kiln_epilogue_destroy(epilogue);
    for (kiln_plan* plan : {made_plan_, plan_, call_plan_}) kiln_plan_destroy(plan);
    for (kiln_memory* memory : {made_memory_, memory_}) kiln_memory_destroy(memory);
    kiln_context_destroy(made_context_);
    kiln_context_destroy(at_once_);
  }

  template <class... Arguments>
  void add(const std::string& name, kiln_status (*function)(Arguments...), Names optional,
           std::type_identity_t<Arguments>... good) {
    ASSERT_TRUE(declared_.contains(name)) << name << " stands in no public header";
    const ArgumentRows rows(name, function, declared_.at(name), std::move(optional), good...);
    table_[name] = {rows.rows(), [function, good...] { return function(good...); }};
  }

  // Names under which messages speak of the tensors of an operation that is another one in disguise.
  void messages_call(const std::string& function, const std::map<std::string, std::string>& names) {
    for (Case& row : table_[function].rows) {
      const size_t end = row.message.find(' ');
      if (names.contains(row.message.substr(0, end))) row.message.replace(0, end, names.at(row.message.substr(0, end)));
    }
  }

  void add_contexts() {
    kiln_context_options at_once = context_options_;
    at_once.first_call = KILN_FIRST_CALL_AT_ONCE;
    EXPECT_EQ(kiln_context_create(&at_once, &at_once_), KILN_OK) << kiln_last_error();
    add("kiln_context_create", kiln_context_create, {"options"}, &context_options_, &made_context_);
    add("kiln_context_get_info", kiln_context_get_info, {}, context_, &context_info_);
    add("kiln_context_prepare", kiln_context_prepare, {}, context_, request_);
    add("kiln_context_prepare_open", kiln_context_prepare_open, {}, at_once_, request_);
    add("kiln_context_wait_until_tuned", kiln_context_wait_until_tuned, {}, context_);
    add("kiln_context_explain", kiln_context_explain, {}, context_, request_, &json_);
    add("kiln_requests_require_no_code", kiln_requests_require_no_code, {}, request_);
    add("kiln_request_key", kiln_request_key, {}, request_, &key_);
  }

  void add_memory() {
    EXPECT_EQ(kiln_memory_create(context_, sizeof host_, &memory_), KILN_OK);
    add("kiln_tensor_packed", kiln_tensor_packed, {"data", "layout"}, &packed_, nullptr, KILN_F32, 2, x_.extents, "nc");
    add("kiln_memory_create", kiln_memory_create, {}, context_, 4, &made_memory_);
    add("kiln_memory_upload", kiln_memory_upload, {}, memory_, &host_, sizeof host_);
    add("kiln_memory_download", kiln_memory_download, {}, memory_, &host_, sizeof host_);
  }

  void add_epilogues() {
    EXPECT_EQ(kiln_epilogue_create(&stages_), KILN_OK);
    EXPECT_EQ(kiln_epilogue_create(&code_), KILN_OK);
    EXPECT_EQ(kiln_epilogue_create(&doubled_), KILN_OK);
    EXPECT_EQ(kiln_epilogue_expression(doubled_, "2.0f * acc", nullptr, 0, nullptr, 0), KILN_OK);
    add("kiln_epilogue_create", kiln_epilogue_create, {}, &made_epilogue_);
    add("kiln_epilogue_bias", kiln_epilogue_bias, {}, stages_, &values_);
    add("kiln_epilogue_add", kiln_epilogue_add, {}, stages_, &x_);
    add("kiln_epilogue_relu", kiln_epilogue_relu, {}, stages_);
    add("kiln_epilogue_clip", kiln_epilogue_clip, {}, stages_, 0, 1);
    add("kiln_epilogue_expression", kiln_epilogue_expression, {}, code_, "acc * t + s", &named_tensor_, 1,
        &named_scalar_, 1);
  }

  void add_convolution_pooling_and_softmax() {
    add("kiln_conv_forward", kiln_conv_forward, {"options", "stream"}, context_, &image_, &filter_, &image_result_,
        &conv_options_, nullptr);
    add("kiln_conv_backward_data", kiln_conv_backward_data, {"options", "stream"}, context_, &image_result_gradient_,
        &filter_, &image_gradient_, &conv_backward_options_, nullptr);
    add("kiln_conv_backward_filter", kiln_conv_backward_filter, {"options", "stream"}, context_, &image_,
        &image_result_gradient_, &filter_gradient_, &conv_backward_options_, nullptr);
    add("kiln_conv_backward_bias", kiln_conv_backward_bias, {"options", "stream"}, context_, &image_result_gradient_,
        &bias_gradient_, &conv_backward_bias_options_, nullptr);
    add("kiln_local_conv_forward", kiln_local_conv_forward, {"options", "stream"}, context_, &image_, &local_filters_,
        &image_result_, &local_conv_options_, nullptr);
    add("kiln_local_conv_backward_data", kiln_local_conv_backward_data, {"options", "stream"}, context_,
        &image_result_gradient_, &local_filters_, &image_gradient_, &local_conv_backward_options_, nullptr);
    add("kiln_local_conv_backward_filter", kiln_local_conv_backward_filter, {"options", "stream"}, context_, &image_,
        &image_result_gradient_, &local_filters_gradient_, &local_conv_backward_options_, nullptr);
    add("kiln_pool_forward", kiln_pool_forward, {"options", "stream"}, context_, &image_, &pooled_, &pool_options_,
        nullptr);
    add("kiln_pool_backward", kiln_pool_backward, {"options", "stream"}, context_, &pooled_gradient_, &image_,
        &image_gradient_, &pool_options_, nullptr);
    add("kiln_pool_forward_with_indices", kiln_pool_forward_with_indices, {"options", "stream"}, context_, &image_,
        &pooled_, &indices_, &pool_options_, nullptr);
    add("kiln_pool_backward_from_indices", kiln_pool_backward_from_indices, {"options", "stream"}, context_,
        &pooled_gradient_, &indices_, &image_gradient_, &pool_options_, nullptr);
    add("kiln_unpool_forward", kiln_unpool_forward, {"options", "stream"}, context_, &pooled_gradient_, &indices_,
        &image_gradient_, &pool_options_, nullptr);
    messages_call("kiln_unpool_forward", {{"x", "dy"}, {"y", "dx"}});  // it is the gradient
    add("kiln_resize", kiln_resize, {"options", "stream"}, context_, &image_, &image_result_, &resize_options_,
        nullptr);
    add("kiln_resize_backward", kiln_resize_backward, {"options", "stream"}, context_, &image_result_, &image_,
        &resize_options_, nullptr);
    add("kiln_im2col", kiln_im2col, {"options", "stream"}, context_, &image_, &columns_, &im2col_options_, nullptr);
    add("kiln_col2im", kiln_col2im, {"options", "stream"}, context_, &given_columns_, &image_gradient_,
        &im2col_options_, nullptr);
    add("kiln_unpool_backward", kiln_unpool_backward, {"options", "stream"}, context_, &image_, &indices_, &pooled_,
        &pool_options_, nullptr);
    add("kiln_softmax_forward", kiln_softmax_forward, {"options", "stream"}, context_, &x_, &y_, &softmax_options_,
        nullptr);
    add("kiln_softmax_backward", kiln_softmax_backward, {"options", "stream"}, context_, &x_, &dy_, &y_,
        &softmax_options_, nullptr);
  }

  void add_activations() {
    const Names optional = {"options", "stream"};
    add("kiln_activation_forward", kiln_activation_forward, optional, context_, &x_, &y_, &activation_options_,
        nullptr);
    add("kiln_activation_backward", kiln_activation_backward, optional, context_, &x_, &dy_, &y_, &activation_options_,
        nullptr);
    add("kiln_activation_backward_from_y", kiln_activation_backward_from_y, optional, context_, &x_, &dy_, &y_,
        &activation_options_, nullptr);
  }

  void add_tensor_functions() {
    add("kiln_tensor_transform", kiln_tensor_transform, {"options", "stream"}, context_, &x_, &y_, &transform_options_,
        nullptr);
    add("kiln_tensor_add", kiln_tensor_add, {"stream"}, context_, &x_, &y_, 1, 1, nullptr);
    add("kiln_tensor_scale", kiln_tensor_scale, {"stream"}, context_, &y_, 2, nullptr);
    messages_call("kiln_tensor_scale", {{"y", "x"}});  // it is kiln_tensor_transform() in place
    add("kiln_tensor_set", kiln_tensor_set, {"stream"}, context_, &y_, 2, nullptr);
    add("kiln_tensor_set_with_epilogue", kiln_tensor_set_with_epilogue, {"epilogue", "stream"}, context_, &y_, 2,
        doubled_, nullptr);
    add("kiln_tensor_op_backward", kiln_tensor_op_backward, {"options", "stream"}, context_, KILN_TENSOR_NEG,
        KILN_TENSOR_OP_A, &dy_, &y_, &op_backward_options_, nullptr);
    add("kiln_tensor_op", kiln_tensor_op, {"options", "stream"}, context_, KILN_TENSOR_SELECT, &x_, &dy_, &x_, &y_,
        &op_options_, nullptr);
    add("kiln_scatter", kiln_scatter, {"options", "stream"}, context_, &x_, &gather_indices_, &y_, &scatter_options_,
        nullptr);
    add("kiln_gather", kiln_gather, {"options", "stream"}, context_, &x_, &gather_indices_, &y_, &gather_options_,
        nullptr);
    add("kiln_reduce_backward", kiln_reduce_backward, {"options", "stream"}, context_, KILN_REDUCE_ADD, &reduced_, &x_,
        &reduce_backward_options_, nullptr);
    add("kiln_reduce", kiln_reduce, {"indices", "options", "stream"}, context_, KILN_REDUCE_MAX, &x_, &reduced_,
        &reduced_indices_, &reduce_options_, nullptr);
  }

  void add_normalisations() {
    const Names optional = {"options", "stream"}, of_gradients = {"mean", "options", "stream"};
    const kiln_norm_options* const forward = &norm_options_;
    const kiln_norm_gradient_options* const backward = &norm_gradient_options_;
    add("kiln_norm_forward", kiln_norm_forward, optional, context_, &x_, &y_, forward, nullptr);
    add("kiln_norm_affine", kiln_norm_affine, optional, context_, &x_, &row_result_, &row_, &norm_affine_options_,
        nullptr);
    add("kiln_group_norm_affine", kiln_group_norm_affine, optional, context_, 2, &image_, &map_result_, &map_,
        &norm_affine_options_, nullptr);
    add("kiln_norm_inference", kiln_norm_inference, optional, context_, &x_, &row_, &other_row_, &y_, forward, nullptr);
    add("kiln_norm_backward", kiln_norm_backward, of_gradients, context_, &dy_, &x_, &row_, &other_row_, &y_, backward,
        nullptr);
    add("kiln_layer_norm_forward", kiln_layer_norm_forward, optional, context_, -1, &x_, &y_, forward, nullptr);
    add("kiln_layer_norm_backward", kiln_layer_norm_backward, of_gradients, context_, -1, &dy_, &x_, &row_, &other_row_,
        &y_, backward, nullptr);
    add("kiln_rms_norm_forward", kiln_rms_norm_forward, optional, context_, -1, &x_, &y_, forward, nullptr);
    add("kiln_rms_norm_backward", kiln_rms_norm_backward, optional, context_, -1, &dy_, &x_, &row_, &y_, backward,
        nullptr);
    add("kiln_instance_norm_forward", kiln_instance_norm_forward, optional, context_, &image_, &image_gradient_,
        forward, nullptr);
    add("kiln_instance_norm_backward", kiln_instance_norm_backward, of_gradients, context_, &other_image_, &image_,
        &map_, &other_map_, &image_gradient_, backward, nullptr);
    add("kiln_group_norm_forward", kiln_group_norm_forward, optional, context_, 2, &image_, &image_gradient_, forward,
        nullptr);
    add("kiln_group_norm_backward", kiln_group_norm_backward, of_gradients, context_, 2, &other_image_, &image_, &map_,
        &other_map_, &image_gradient_, backward, nullptr);
    add("kiln_batch_norm_forward", kiln_batch_norm_forward, optional, context_, &image_, &image_gradient_, forward,
        nullptr);
    add("kiln_batch_norm_inference", kiln_batch_norm_inference, optional, context_, &image_, &channels_,
        &other_channels_, &image_gradient_, forward, nullptr);
    add("kiln_batch_norm_backward", kiln_batch_norm_backward, of_gradients, context_, &other_image_, &image_,
        &channels_, &other_channels_, &image_gradient_, backward, nullptr);
  }

  void add_products() {
    const Names optional = {"options", "stream"};
    add("kiln_tensor_transposed", kiln_tensor_transposed, {}, &x_, &packed_);
    add("kiln_gemm", kiln_gemm, optional, context_, &x_, &weights_, &product_, &gemm_options_, nullptr);
    add("kiln_fully_connected_forward", kiln_fully_connected_forward, optional, context_, &x_, &layer_weights_,
        &product_, &gemm_options_, nullptr);
    messages_call("kiln_fully_connected_forward", {{"x", "a"}, {"w", "b"}, {"y", "c"}});
    add("kiln_fully_connected_backward_data", kiln_fully_connected_backward_data, optional, context_,
        &product_gradient_, &layer_weights_, &y_, &gemm_options_, nullptr);
    messages_call("kiln_fully_connected_backward_data", {{"dy", "a"}, {"w", "b"}, {"dx", "c"}});
    add("kiln_fully_connected_backward_weights", kiln_fully_connected_backward_weights, optional, context_, &x_,
        &product_gradient_, &weights_gradient_, &gemm_options_, nullptr);
    messages_call("kiln_fully_connected_backward_weights", {{"x", "b"}, {"dy", "a"}, {"dw", "c"}});
    add("kiln_fully_connected_backward_bias", kiln_fully_connected_backward_bias, {"stream"}, context_,
        &product_gradient_, &layer_bias_gradient_, 1, 0, nullptr);
  }

  void add_losses() {
    const Names optional = {"dloss", "options", "stream"};
    add("kiln_cross_entropy_forward", kiln_cross_entropy_forward, optional, context_, &x_, &targets_, &loss_,
        &cross_entropy_options_, nullptr);
    add("kiln_cross_entropy_backward", kiln_cross_entropy_backward, optional, context_, &x_, &targets_, &loss_gradient_,
        &y_, &cross_entropy_options_, nullptr);
    add("kiln_ctc_loss_forward", kiln_ctc_loss_forward, {"options", "stream"}, context_, &ctc_scores_, &ctc_labels_,
        &ctc_losses_, &ctc_loss_options_, nullptr);
    add("kiln_ctc_loss_backward", kiln_ctc_loss_backward, {"options", "stream"}, context_, &ctc_scores_, &ctc_labels_,
        &ctc_prefixes_, &ctc_gradient_, &ctc_loss_backward_options_, nullptr);
  }

  void add_grid_samples() {
    const Names optional = {"options", "stream"};
    add("kiln_grid_sample", kiln_grid_sample, optional, context_, &scene_, &positions_, &sampled_,
        &grid_sample_options_, nullptr);
    add("kiln_grid_sample_backward_data", kiln_grid_sample_backward_data, optional, context_, &sampled_gradient_,
        &positions_, &scene_gradient_, &grid_sample_options_, nullptr);
    add("kiln_grid_sample_backward_grid", kiln_grid_sample_backward_grid, optional, context_, &sampled_gradient_,
        &scene_, &positions_, &positions_gradient_, &grid_sample_options_, nullptr);
    add("kiln_affine_grid", kiln_affine_grid, optional, context_, &matrices_, &positions_gradient_,
        &affine_grid_options_, nullptr);
    add("kiln_affine_grid_backward", kiln_affine_grid_backward, optional, context_, &positions_, &matrices_gradient_,
        &affine_grid_options_, nullptr);
  }

  void add_recurrent_layers() {
    add("kiln_recurrent_forward", kiln_recurrent_forward, {"options", "stream"}, context_, &gates_, &recurrent_weights_,
        &states_, &recurrent_options_, nullptr);
    add("kiln_recurrent_backward", kiln_recurrent_backward, {"options", "stream"}, context_, &states_gradient_,
        &recurrent_weights_, &recurrent_saved_, &gates_gradient_, &recurrent_backward_options_, nullptr);
  }

  void add_attention() {
    add("kiln_attention_forward", kiln_attention_forward, {"options", "stream"}, context_, &queries_, &keys_,
        &attention_values_, &attended_, &attention_options_, nullptr);
    add("kiln_attention_backward", kiln_attention_backward, {"options", "stream"}, context_, &attended_gradient_,
        &queries_, &keys_, &attention_values_, &given_attended_, &lse_, &queries_gradient_,
        &attention_backward_options_, nullptr);
  }

  void add_dropout() {
    const Names optional = {"options", "stream"};
    add("kiln_dropout_forward", kiln_dropout_forward, optional, context_, &x_, &y_, &dropout_options_, nullptr);
    add("kiln_dropout_backward", kiln_dropout_backward, optional, context_, &x_, &y_, &dropout_options_, nullptr);
    messages_call("kiln_dropout_backward", {{"dy", "x"}, {"dx", "y"}});
  }

  void add_local_normalisations() {
    const Names optional = {"options", "stream"};
    add("kiln_lrn_forward", kiln_lrn_forward, optional, context_, &image_, &image_gradient_, &local_norm_options_,
        nullptr);
    add("kiln_lrn_backward", kiln_lrn_backward, optional, context_, &image_, &other_image_, &image_gradient_,
        &local_norm_options_, nullptr);
    add("kiln_lcn_forward", kiln_lcn_forward, optional, context_, &image_, &image_gradient_, &local_norm_options_,
        nullptr);
    add("kiln_lcn_backward", kiln_lcn_backward, optional, context_, &image_, &other_image_, &image_gradient_,
        &local_norm_options_, nullptr);
  }

  void add_plans() {
    EXPECT_EQ(kiln_plan_create(context_, request_, &plan_), KILN_OK) << kiln_last_error();
    add("kiln_plan_create", kiln_plan_create, {}, context_, request_, &made_plan_);
    add("kiln_plan_get_info", kiln_plan_get_info, {}, plan_, &plan_info_);
    add("kiln_plan_get_operand", kiln_plan_get_operand, {}, plan_, 1, &operand_info_);
    add("kiln_plan_run", kiln_plan_run, {"stream", "workspace", "values"}, plan_, nullptr, operands_, 2, nullptr,
        &run_values_);
    add("kiln_plan_prepare_weights", kiln_plan_prepare_weights, {"stream", "prepared"}, plan_, nullptr, operands_, 2,
        nullptr);
    add("kiln_plan_run_prepared", kiln_plan_run_prepared, {"stream", "prepared", "workspace", "values"}, plan_, nullptr,
        operands_, 2, nullptr, nullptr, &run_values_);
  }

  void add_order() { add("kiln_order", kiln_order, {"earlier", "later"}, context_, nullptr, nullptr); }

  void add_calls_by_name() {
    add("kiln_call", kiln_call, {"options", "stream"}, context_, "tensor_op mode=mul", call_tensors_, 3, &call_options_,
        nullptr);
    add("kiln_call_plan", kiln_call_plan, {"options"}, context_, "tensor_op mode=mul", call_tensors_, 3, &call_options_,
        &call_plan_);
  }

  const std::vector<float> untouched_ = std::vector<float>(256, 7.0f);
  void* const result_ = upload(untouched_);
  const kiln_tensor x_ = tensor(upload(wave(12)), {2, 6}), dy_ = tensor(upload(wave(12)), {2, 6}),
                    y_ = tensor(result_, {2, 6}), values_ = tensor(upload(wave(6)), {6});
  const kiln_tensor image_ = tensor(upload(wave(128)), {1, 2, 8, 8}), filter_ = tensor(upload(wave(36)), {2, 2, 3, 3}),
                    image_result_ = tensor(result_, {1, 2, 6, 6}), image_gradient_ = tensor(result_, {1, 2, 8, 8}),
                    pooled_ = tensor(result_, {1, 2, 1, 1}), pooled_gradient_ = tensor(upload(wave(2)), {1, 2, 1, 1});
  const kiln_tensor image_result_gradient_ = tensor(upload(wave(72)), {1, 2, 6, 6}),
                    filter_gradient_ = tensor(result_, {2, 2, 3, 3}), bias_gradient_ = tensor(result_, {2});
  const kiln_tensor other_image_ = tensor(upload(wave(128)), {1, 2, 8, 8});
  // The whole image as one window.
  const kiln_tensor columns_ = tensor(result_, {1, 128, 1, 1}),
                    given_columns_ = tensor(upload(wave(128)), {1, 128, 1, 1});
  // Filters for each of 36 outputs.
  const kiln_tensor local_filters_ = tensor(upload(wave(72 * 18)), {72, 2, 3, 3}),
                    local_filters_gradient_ = tensor(upload(wave(72 * 18)), {72, 2, 3, 3});
  const kiln_tensor indices_ =
      with(tensor(upload(wave(2)), {1, 2, 1, 1}), [](auto& indices) { indices.dtype = KILN_I32; });
  const kiln_tensor row_ = tensor(upload(wave(2)), {2, 1}), other_row_ = tensor(upload(wave(2)), {2, 1});
  const kiln_tensor row_result_ = tensor(result_, {2, 1}), map_result_ = tensor(result_, {1, 2});
  const kiln_tensor map_ = tensor(upload(wave(2)), {1, 2}), other_map_ = tensor(upload(wave(2)), {1, 2}),
                    channels_ = tensor(upload(wave(2)), {2}), other_channels_ = tensor(upload(wave(2)), {2});
  const kiln_tensor reduced_ = tensor(result_, {1, 6});
  const kiln_tensor reduced_indices_ =
      with(tensor(upload(wave(6)), {1, 6}), [](auto& indices) { indices.dtype = KILN_I32; });
  const kiln_tensor gather_indices_ =
      with(tensor(upload(wave(12)), {2, 6}), [](auto& indices) { indices.dtype = KILN_I32; });
  const kiln_tensor weights_ = tensor(upload(wave(18)), {6, 3}), layer_weights_ = tensor(upload(wave(18)), {3, 6}),
                    product_ = tensor(result_, {2, 3}), product_gradient_ = tensor(upload(wave(6)), {2, 3}),
                    weights_gradient_ = tensor(result_, {3, 6}), layer_bias_gradient_ = tensor(result_, {3});
  const kiln_tensor loss_ = tensor(result_, {1}), loss_gradient_ = tensor(upload(wave(1)), {1});
  const kiln_tensor targets_ = with(tensor(upload(wave(2)), {2}), [](auto& targets) { targets.dtype = KILN_I32; });
  const kiln_tensor scene_ = tensor(upload(wave(60)), {1, 2, 5, 6}), scene_gradient_ = tensor(result_, {1, 2, 5, 6}),
                    positions_ = tensor(upload(wave(24)), {1, 4, 3, 2}),
                    positions_gradient_ = tensor(result_, {1, 4, 3, 2}), sampled_ = tensor(result_, {1, 2, 4, 3}),
                    sampled_gradient_ = tensor(upload(wave(24)), {1, 2, 4, 3});
  const kiln_tensor ctc_scores_ = tensor(upload(wave(40)), {2, 5, 4}), ctc_losses_ = tensor(result_, {2}),
                    ctc_labels_ = with(tensor(upload(wave(4)), {2, 2}), [](auto&labels) { labels.dtype = KILN_I32; }),
                    ctc_prefixes_ = tensor(upload(wave(50)), {2, 5, 5}), ctc_gradient_ = tensor(result_, {2, 5, 4});
  const kiln_tensor gates_ = tensor(upload(wave(16)), {1, 2, 1, 8}),
                    recurrent_weights_ = tensor(upload(wave(16)), {1, 8, 2}), states_ = tensor(result_, {1, 2, 1, 2});
  const kiln_tensor states_gradient_ = tensor(upload(wave(4)), {1, 2, 1, 2}),
                    recurrent_saved_ = tensor(upload(wave(20)), {1, 2, 1, 10}),
                    gates_gradient_ = tensor(result_, {1, 2, 1, 8});
  const kiln_tensor queries_ = tensor(upload(wave(24)), {1, 2, 3, 4}), keys_ = tensor(upload(wave(20)), {1, 1, 5, 4}),
                    attention_values_ = tensor(upload(wave(30)), {1, 1, 5, 6}),
                    attended_ = tensor(result_, {1, 2, 3, 6});
  const kiln_tensor attended_gradient_ = tensor(upload(wave(36)), {1, 2, 3, 6}),
                    given_attended_ = tensor(upload(wave(36)), {1, 2, 3, 6}), lse_ = tensor(upload(wave(6)), {1, 2, 3}),
                    queries_gradient_ = tensor(result_, {1, 2, 3, 4});
  const kiln_named_tensor named_tensor_ = {"t", &values_};
  const kiln_named_scalar named_scalar_ = {"s", 1, 0};
  const char* const request_ = "softmax_forward x=f32:2x6";
  const void* const operands_[2] = {x_.data, y_.data};
  float host_ = 0;

  const kiln_context_options context_options_ = options();
  const kiln_conv_options conv_options_ = kiln_conv_options_default();
  const kiln_conv_backward_options conv_backward_options_ = kiln_conv_backward_options_default();
  const kiln_conv_backward_bias_options conv_backward_bias_options_ = kiln_conv_backward_bias_options_default();
  const kiln_local_conv_options local_conv_options_ = kiln_local_conv_options_default();
  const kiln_local_conv_backward_options local_conv_backward_options_ = kiln_local_conv_backward_options_default();
  const kiln_pool_options pool_options_ = kiln_pool_options_default();
  const kiln_resize_options resize_options_ = kiln_resize_options_default();
  const kiln_im2col_options im2col_options_ = kiln_im2col_options_default();
  const kiln_softmax_options softmax_options_ = kiln_softmax_options_default();
  const kiln_activation_options activation_options_ = kiln_activation_options_default(KILN_ACTIVATION_TANH);
  const kiln_transform_options transform_options_ = kiln_transform_options_default();
  const kiln_norm_options norm_options_ = kiln_norm_options_default();
  const kiln_norm_affine_options norm_affine_options_ = kiln_norm_affine_options_default();
  const kiln_norm_gradient_options norm_gradient_options_ = kiln_norm_gradient_options_default();
  const kiln_local_norm_options local_norm_options_ = kiln_local_norm_options_default();
  const kiln_scatter_options scatter_options_ = kiln_scatter_options_default();
  const kiln_gather_options gather_options_ = kiln_gather_options_default();
  const kiln_reduce_options reduce_options_ = kiln_reduce_options_default();
  const kiln_reduce_backward_options reduce_backward_options_ = kiln_reduce_backward_options_default();
  const kiln_tensor_op_options op_options_ = kiln_tensor_op_options_default();
  const kiln_tensor_op_backward_options op_backward_options_ = kiln_tensor_op_backward_options_default();
  const kiln_gemm_options gemm_options_ = kiln_gemm_options_default();
  const kiln_cross_entropy_options cross_entropy_options_ = kiln_cross_entropy_options_default();
  const kiln_tensor matrices_ = tensor(upload(wave(6)), {1, 2, 3}), matrices_gradient_ = tensor(result_, {1, 2, 3});
  const kiln_grid_sample_options grid_sample_options_ = kiln_grid_sample_options_default();
  const kiln_affine_grid_options affine_grid_options_ = kiln_affine_grid_options_default();
  const kiln_ctc_loss_options ctc_loss_options_ = kiln_ctc_loss_options_default();
  const kiln_ctc_loss_backward_options ctc_loss_backward_options_ = kiln_ctc_loss_backward_options_default();
  const kiln_recurrent_options recurrent_options_ = kiln_recurrent_options_default();
  const kiln_recurrent_backward_options recurrent_backward_options_ = kiln_recurrent_backward_options_default();
  const kiln_attention_options attention_options_ = kiln_attention_options_default();
  const kiln_attention_backward_options attention_backward_options_ = kiln_attention_backward_options_default();
  const kiln_dropout_options dropout_options_ = kiln_dropout_options_default();
  const kiln_named_tensor call_tensors_[3] = {{"y", &y_}, {"a", &x_}, {"b", &dy_}};
  const kiln_call_options call_options_ = kiln_call_options_default();
  const kiln_run_values run_values_ = kiln_run_values_default();
  kiln_context_info context_info_ = kiln_context_info_default();
  kiln_plan_info plan_info_ = kiln_plan_info_default();
  kiln_operand_info operand_info_ = kiln_operand_info_default();

  // Outputs, and what calls work on.
  kiln_context* made_context_ = nullptr;
  kiln_context* at_once_ = nullptr;
  kiln_memory *made_memory_ = nullptr, *memory_ = nullptr;
  kiln_epilogue *made_epilogue_ = nullptr, *stages_ = nullptr, *code_ = nullptr, *doubled_ = nullptr;
  kiln_plan *made_plan_ = nullptr, *plan_ = nullptr, *call_plan_ = nullptr;
  kiln_tensor packed_ = {};
  char *json_ = nullptr, *key_ = nullptr;

  const Declarations declared_ = declared_functions();
  std::map<std::string, Entry> table_;
};

// Functions that return no kiln_status.
bool cannot_fail(const std::string& name) {
  static const Names others = {"kiln_last_error",     "kiln_last_hint",   "kiln_memory_data",
                               "kiln_set_last_error", "kiln_status_name", "kiln_version"};
  return name.ends_with("_destroy") || others.contains(name);
}

TEST_F(EveryFunction, HasATable) {
  Names exported, declared, covered;
  for (const std::string& symbol : exported_symbols(KILN_LIBRARY)) {
    const std::string name = symbol.substr(0, symbol.find('@'));
    if (name.starts_with("kiln_") && !cannot_fail(name)) exported.insert(name);
  }
  for (const auto& [name, arguments] : declared_) declared.insert(name);
  for (const auto& [name, entry] : table_) covered.insert(name);
  EXPECT_EQ(missing_of(declared, exported), Names()) << "no public header declares what the library has";
  EXPECT_EQ(missing_of(exported, declared), Names()) << "the library does not have what a public header declares";
  EXPECT_EQ(missing_of(covered, exported), Names()) << "functions of the library need rows here";
}

TEST_F(EveryFunction, HasATwinForEveryOperationOfTheCppApi) {
  const Names operations = exported_operations(KILN_LIBRARY);
  EXPECT_GT(operations.size(), 40u);
  for (const std::string& name : operations) {
    EXPECT_TRUE(declared_.contains("kiln_" + name)) << "C programs cannot call " << name;
  }
}

TEST_F(EveryFunction, RefusesWhatIsWrongWithAnArgumentAndRunsNothing) {
  for (const auto& [name, entry] : table_) {
    SCOPED_TRACE(name);
    expect_refused(entry.rows);
  }
  EXPECT_EQ(download(result_), untouched_);
  for (const void* output : {static_cast<void*>(made_context_), static_cast<void*>(made_memory_),
                             static_cast<void*>(made_epilogue_), static_cast<void*>(made_plan_),
                             static_cast<void*>(call_plan_), static_cast<void*>(json_), static_cast<void*>(key_)}) {
    EXPECT_EQ(output, nullptr) << "outputs of a failed call stay as they were";
  }
  EXPECT_EQ(context_info_.device_id, nullptr);
  EXPECT_EQ(plan_info_.request, nullptr);
  EXPECT_EQ(operand_info_.name, nullptr);
  EXPECT_EQ(packed_.rank, 0);
  for (const auto& [name, entry] : table_) EXPECT_EQ(entry.good(), KILN_OK) << name << ": " << kiln_last_error();
}

}  // namespace
}  // namespace kiln::capi::every_function_test

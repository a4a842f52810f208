#include "kiln/templates/catalogue.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "kiln/base/error.h"
#include "kiln/templates/user_templates.h"

// The one list of algorithms, a line each; the descriptor of pool_simple is pool/pool_simple.cpp. The order is that of
// reports and has no other meaning.
// clang-format off
#define KILN_ALGORITHMS(algorithm) \
  algorithm(conv_simple) \
  algorithm(conv_direct) \
  algorithm(conv_depthwise_nchw) \
  algorithm(conv_depthwise_nhwc) \
  algorithm(conv_depthwise_tensor) \
  algorithm(conv_depthwise_windows) \
  algorithm(conv_1x1) \
  algorithm(conv_implicit_gemm) \
  algorithm(conv_implicit_gemm_splitk) \
  algorithm(conv_tensor) \
  algorithm(conv_tensor_f16_sums) \
  algorithm(conv_tensor_packed) \
  algorithm(conv_tensor_persistent) \
  algorithm(conv_tensor_splitk) \
  algorithm(conv_tensor_staged) \
  algorithm(conv_tensor_staged_packed) \
  algorithm(conv_tensor_staged_splitk) \
  algorithm(conv_tensor_staged_f16_sums) \
  algorithm(conv_tensor_patch) \
  algorithm(conv_tensor_halo) \
  algorithm(conv_winograd_2x2) \
  algorithm(conv_winograd_4x4) \
  algorithm(conv_winograd_2x2_fused) \
  algorithm(conv_winograd_4x4_fused) \
  algorithm(conv_backward_data_simple) \
  algorithm(conv_backward_data_direct) \
  algorithm(conv_backward_data_depthwise_nchw) \
  algorithm(conv_backward_data_depthwise_nhwc) \
  algorithm(conv_backward_data_depthwise_tensor) \
  algorithm(conv_backward_data_depthwise_windows) \
  algorithm(conv_backward_data_implicit_gemm) \
  algorithm(conv_backward_data_implicit_gemm_splitk) \
  algorithm(conv_backward_data_tensor) \
  algorithm(conv_backward_data_tensor_f16_sums) \
  algorithm(conv_backward_data_tensor_packed) \
  algorithm(conv_backward_data_tensor_persistent) \
  algorithm(conv_backward_data_tensor_splitk) \
  algorithm(conv_backward_data_tensor_staged) \
  algorithm(conv_backward_data_tensor_staged_packed) \
  algorithm(conv_backward_data_tensor_staged_splitk) \
  algorithm(conv_backward_data_tensor_patch) \
  algorithm(conv_backward_data_tensor_halo) \
  algorithm(conv_backward_data_winograd_2x2) \
  algorithm(conv_backward_data_winograd_4x4) \
  algorithm(conv_backward_data_winograd_2x2_fused) \
  algorithm(conv_backward_data_winograd_4x4_fused) \
  algorithm(conv_backward_filter_simple) \
  algorithm(conv_backward_filter_direct) \
  algorithm(conv_backward_filter_depthwise_nchw) \
  algorithm(conv_backward_filter_depthwise_nhwc) \
  algorithm(conv_backward_filter_depthwise_tensor) \
  algorithm(conv_backward_filter_depthwise_windows) \
  algorithm(conv_backward_filter_implicit_gemm) \
  algorithm(conv_backward_filter_implicit_gemm_splitk) \
  algorithm(conv_backward_filter_tensor) \
  algorithm(conv_backward_filter_tensor_f16_sums) \
  algorithm(conv_backward_filter_tensor_splitk) \
  algorithm(conv_backward_filter_tensor_splitk_packed) \
  algorithm(conv_backward_filter_tensor_staged) \
  algorithm(conv_backward_filter_tensor_staged_splitk) \
  algorithm(conv_backward_filter_tensor_staged_splitk_packed) \
  algorithm(conv_backward_filter_tensor_patch) \
  algorithm(conv_backward_bias_simple) \
  algorithm(conv_backward_bias_split) \
  algorithm(local_conv_forward_simple) \
  algorithm(local_conv_forward_implicit_gemm) \
  algorithm(local_conv_forward_dots) \
  algorithm(local_conv_backward_data_simple) \
  algorithm(local_conv_backward_data_implicit_gemm) \
  algorithm(local_conv_backward_data_columns) \
  algorithm(local_conv_backward_filter_simple) \
  algorithm(local_conv_backward_filter_implicit_gemm) \
  algorithm(pool_simple) \
  algorithm(pool_nchw) \
  algorithm(pool_nhwc) \
  algorithm(pool_global_nchw) \
  algorithm(pool_global_nhwc) \
  algorithm(pool_indexed) \
  algorithm(pool_backward_simple) \
  algorithm(pool_backward_gather) \
  algorithm(pool_backward_scatter) \
  algorithm(pool_backward_separable) \
  algorithm(unpool_backward_simple) \
  algorithm(unpool_backward_gather) \
  algorithm(resize_simple) \
  algorithm(resize_nchw) \
  algorithm(resize_nhwc) \
  algorithm(resize_backward_simple) \
  algorithm(resize_backward_nchw) \
  algorithm(resize_backward_nhwc) \
  algorithm(im2col_simple) \
  algorithm(im2col_nchw) \
  algorithm(im2col_nhwc) \
  algorithm(col2im_simple) \
  algorithm(col2im_gather) \
  algorithm(softmax_simple) \
  algorithm(softmax_warp) \
  algorithm(softmax_block) \
  algorithm(softmax_online) \
  algorithm(softmax_split) \
  algorithm(softmax_strided) \
  algorithm(softmax_backward_simple) \
  algorithm(softmax_backward_rows) \
  algorithm(softmax_backward_split) \
  algorithm(softmax_backward_strided) \
  algorithm(activation_forward_simple) \
  algorithm(activation_forward_vector) \
  algorithm(activation_forward_transposed) \
  algorithm(activation_backward_simple) \
  algorithm(activation_backward_vector) \
  algorithm(activation_backward_transposed) \
  algorithm(tensor_transform_simple) \
  algorithm(tensor_transform_vector) \
  algorithm(tensor_transform_transposed) \
  algorithm(tensor_set_simple) \
  algorithm(tensor_set_vector) \
  algorithm(tensor_op_simple) \
  algorithm(tensor_op_vector) \
  algorithm(tensor_op_transposed) \
  algorithm(tensor_op_backward_simple) \
  algorithm(tensor_op_backward_vector) \
  algorithm(tensor_op_backward_blocks) \
  algorithm(gather_simple) \
  algorithm(gather_vector) \
  algorithm(scatter_simple) \
  algorithm(scatter_exact) \
  algorithm(scatter_lists) \
  algorithm(scatter_extremes) \
  algorithm(reduce_simple) \
  algorithm(reduce_blocks) \
  algorithm(reduce_backward_simple) \
  algorithm(reduce_backward_blocks) \
  algorithm(gemm_simple) \
  algorithm(gemm_tiled) \
  algorithm(gemm_splitk) \
  algorithm(gemm_tensor) \
  algorithm(gemm_tensor_f16_sums) \
  algorithm(gemm_tensor_persistent) \
  algorithm(gemm_tensor_splitk) \
  algorithm(gemm_tensor_staged) \
  algorithm(gemm_tensor_staged_f16_sums) \
  algorithm(gemm_thin) \
  algorithm(gemm_thin_splitk) \
  algorithm(cross_entropy_forward_simple) \
  algorithm(cross_entropy_forward_rows) \
  algorithm(cross_entropy_forward_strided) \
  algorithm(cross_entropy_backward_simple) \
  algorithm(cross_entropy_backward_rows) \
  algorithm(cross_entropy_backward_strided) \
  algorithm(recurrent_simple) \
  algorithm(recurrent_block) \
  algorithm(recurrent_backward_simple) \
  algorithm(recurrent_backward_block) \
  algorithm(grid_sample_simple) \
  algorithm(grid_sample_backward_data_simple) \
  algorithm(grid_sample_backward_grid_simple) \
  algorithm(affine_grid_simple) \
  algorithm(affine_grid_backward_simple) \
  algorithm(grid_sample_pixels) \
  algorithm(grid_sample_backward_data_exact) \
  algorithm(grid_sample_backward_grid_pixels) \
  algorithm(affine_grid_pixels) \
  algorithm(affine_grid_backward_split) \
  algorithm(ctc_loss_forward_simple) \
  algorithm(ctc_loss_forward_block) \
  algorithm(ctc_loss_backward_simple) \
  algorithm(ctc_loss_backward_block) \
  algorithm(attention_simple) \
  algorithm(attention_block) \
  algorithm(attention_tensor) \
  algorithm(attention_wide_block) \
  algorithm(attention_wide_tensor) \
  algorithm(attention_backward_simple) \
  algorithm(attention_backward_block) \
  algorithm(attention_backward_tensor) \
  algorithm(attention_backward_wide_block) \
  algorithm(attention_backward_wide_tensor) \
  algorithm(norm_forward_simple) \
  algorithm(norm_forward_blocks) \
  algorithm(norm_forward_channels) \
  algorithm(norm_affine_simple) \
  algorithm(norm_affine_blocks) \
  algorithm(norm_affine_channels) \
  algorithm(norm_inference_simple) \
  algorithm(norm_inference_blocks) \
  algorithm(norm_backward_simple) \
  algorithm(norm_backward_blocks) \
  algorithm(dropout_simple) \
  algorithm(dropout_vector) \
  algorithm(local_norm_forward_simple) \
  algorithm(local_norm_forward_columns) \
  algorithm(local_norm_forward_segments) \
  algorithm(local_norm_forward_tile) \
  algorithm(local_norm_backward_simple) \
  algorithm(local_norm_backward_columns) \
  algorithm(local_norm_backward_segments) \
  algorithm(local_norm_backward_tile)
// clang-format on

namespace kiln {

#define KILN_DECLARE(name) Algorithm name();
KILN_ALGORITHMS(KILN_DECLARE)
#undef KILN_DECLARE

namespace {

std::vector<Algorithm> own_algorithms() {
#define KILN_CALL(name) name(),
  return {KILN_ALGORITHMS(KILN_CALL)};
#undef KILN_CALL
}

}  // namespace

Catalogue make_catalogue(SourceLibrary library) {
  return {std::move(library), own_algorithms()};
}

Catalogue make_catalogue(SourceLibrary library, const std::vector<std::string>& user_folders) {
  if (user_folders.empty()) return make_catalogue(std::move(library));
  const SourceLibrary user = read_user_templates(user_folders);
  std::vector<Algorithm> algorithms = own_algorithms();
  for (Algorithm& added : user_algorithms(user)) {
    for (const Algorithm& own : algorithms) {
      if (own.name() != added.name()) continue;
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("user template {} is called as an algorithm of Kiln", own.name()),
                  "give its two files another name");
    }
    algorithms.push_back(std::move(added));
  }
  std::map<std::string, std::string> files = library.files();
  files.insert(user.files().begin(), user.files().end());
  return {SourceLibrary(std::move(files)), std::move(algorithms)};
}

}  // namespace kiln

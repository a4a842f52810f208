// The readers of families of nodes, which read_onnx.cpp lists by operation. Each adds what its node computes to the
// graph, or throws Refusal with the reason why it cannot.
#pragma once

#include <string>
#include <vector>

#include "onnx/node.h"

namespace kiln::onnx_frontend {

/// Names of the operations that have a reader, each once.
std::vector<std::string> read_operations();

/// pointwise.cpp. Functions of single elements, and arithmetic of tensors that repeat as NumPy's do.
void read_activation(Node& node);
void read_function(Node& node);
void read_is_inf(Node& node);
void read_is_nan(Node& node);
void read_clip(Node& node);
void read_arithmetic(Node& node);
void read_where(Node& node);
void read_mod(Node& node);
void read_thresholded_relu(Node& node);
void read_shrink(Node& node);
void read_prelu(Node& node);
void read_celu(Node& node);
void read_cast(Node& node);

/// layers.cpp. Convolution, pooling, softmax.
void read_conv(Node& node);
void read_conv_integer(Node& node);
void read_qlinear_conv(Node& node);
void read_conv_transpose(Node& node);
void read_col2im(Node& node);
void read_pool(Node& node);
void read_global_pool(Node& node);
void read_unpool(Node& node);
void read_softmax(Node& node);
void read_dropout(Node& node);

/// products.cpp. Matrix products; a transposed matrix is a view.
void read_gemm(Node& node);
void read_matmul(Node& node);
void read_matmul_integer(Node& node);
void read_qlinear_matmul(Node& node);

/// normalisations.cpp.
void read_batch_norm(Node& node);
void read_instance_norm(Node& node);
void read_group_norm(Node& node);
void read_layer_norm(Node& node);
void read_mean_variance_norm(Node& node);
void read_lp_norm(Node& node);
void read_lrn(Node& node);

/// attention.cpp.
void read_attention(Node& node);

/// sampling.cpp. Spatial transformers.
void read_grid_sample(Node& node);
void read_affine_grid(Node& node);

/// recurrent.cpp.
void read_recurrent(Node& node);

/// reductions.cpp.
void read_reduce(Node& node);
void read_arg(Node& node);

/// element_moves.cpp. Nodes that move elements: most are views.
/// Identity, Reshape, Flatten, Squeeze and Unsqueeze: the extents in which they show their input.
Extents extents_of_view(const Node& node);
void read_view(Node& node);
void read_transpose(Node& node);
void read_slice(Node& node);
void read_split(Node& node);
void read_concat(Node& node);
void read_pad(Node& node);
void read_expand(Node& node);
void read_tile(Node& node);
void read_depth_to_space(Node& node);
void read_space_to_depth(Node& node);
void read_constant_of_shape(Node& node);

/// indexing.cpp. Elements by their positions.
void read_gather(Node& node);
void read_gather_elements(Node& node);
void read_gather_nd(Node& node);
void read_scatter_nd(Node& node);
void read_scatter_elements(Node& node);

/// resize.cpp.
void read_resize(Node& node);

/// selections.cpp. Nodes that compare positions.
void read_trilu(Node& node);
void read_one_hot(Node& node);
void read_hardmax(Node& node);
void read_eye_like(Node& node);

/// scans.cpp, einsum.cpp.
void read_cum_sum(Node& node);
void read_einsum(Node& node);

/// losses.cpp. The losses of classifiers.
void read_class_loss(Node& node);

/// quantisation.cpp. 8-bit integers with a scale and a zero point.
void read_dequantize(Node& node);
void read_quantize(Node& node);
void read_dynamic_quantize(Node& node);

}  // namespace kiln::onnx_frontend

// The readers of families of nodes, which layers.cpp lists by operation. Operands are there, of a type and of extents
// that the list demands.
#pragma once

#include "onnx/source.h"

namespace kiln::onnx_frontend {

/// pointwise.cpp. Activations of one input, arithmetic of tensors that repeat, as NumPy's do, where an extent is 1.
Layer read_activation(const Source& source);
Layer read_clip(const Source& source);
Layer read_tensor_op(const Source& source);

/// composed.cpp. Nodes that several requests make, one after another.
Layer read_thresholded_relu(const Source& source);
Layer read_prelu(const Source& source);
Layer read_celu(const Source& source);
Layer read_softsign(const Source& source);
Layer read_reciprocal(const Source& source);

/// products.cpp. Matrix products; a transposed matrix is one of other strides.
Layer read_gemm(const Source& source);
Layer read_matmul(const Source& source);

/// normalisations.cpp.
Layer read_batch_norm(const Source& source);
Layer read_instance_norm(const Source& source);
Layer read_group_norm(const Source& source);
Layer read_layer_norm(const Source& source);
Layer read_mean_variance_norm(const Source& source);
/// Whether a BatchNormalization takes its statistics from its input; before opset 14 its further outputs say so.
bool trains(const Graph& graph, const onnx::NodeProto& batch_norm);

/// local_norm.cpp. Local response normalisation across channels.
Layer read_lrn(const Source& source);

/// transforms.cpp. Nodes that move elements; those whose result is memory that is there cost nothing.
Layer read_transpose(const Source& source);
Layer read_slice(const Source& source);
Layer read_split(const Source& source);
Layer read_concat(const Source& source);
Layer read_pad(const Source& source);
Layer read_expand(const Source& source);
Layer read_cast(const Source& source);

/// reductions.cpp. Reduce*, ArgMax and ArgMin.
Layer read_reduce(const Source& source);
/// A reduction with element-wise operations before or behind it.
Layer read_composed_reduce(const Source& source);
Layer read_arg(const Source& source);
/// The extents of a Reduce* node's result by the axes that it has at its opset; nothing if they are not in the file.
std::optional<Extents> reduced_shape(const Source& source);

}  // namespace kiln::onnx_frontend

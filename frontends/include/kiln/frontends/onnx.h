// Requests from ONNX models.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kiln/generator/request.h"

namespace kiln {

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"  // kiln::nchw is a layout; a scoped enumerator hides nothing
/// Memory order of four-dimensional tensors.
enum class MemoryOrder { nchw, nhwc };
#pragma GCC diagnostic pop

/// How the layers of a model are going to be run.
struct OnnxOptions {
  /// Storage of floating-point numbers, whatever the model's. Booleans are u8, integers as they are.
  DType dtype = DType::f32;
  /// Order of every tensor of three dimensions and more, filters included (nwc, nhwc, ndhwc); others are stored in
  /// logical order.
  MemoryOrder order = MemoryOrder::nchw;
  /// The batch; without it, the model's own, and 1 where the model leaves it open.
  std::optional<int64_t> batch = std::nullopt;
  /// Requests with `n=?`, of the bucket that holds the batch.
  bool dynamic_batch = false;
  /// Convolutions whose filters are constants of the model ask for constant_weights.
  bool constant_weights = false;
  /// Folds what follows a layer into its epilogue; see read_onnx().
  bool fuse = true;
};

/// A request that occurs `count` times in a model. A node may ask for several: one for each input of a Concat.
struct ModelLayer {
  Request request;
  int64_t count = 1;
  std::vector<std::string> nodes;  ///< Names of the ONNX nodes (of their first outputs where nodes have no names).
};

/// Nodes of one type that no request covers, for one reason.
struct Uncovered {
  std::string operation;  ///< ONNX operation type, with its domain if that is not ONNX's own.
  int64_t count = 1;
  std::string reason;
};

/// What a model asks for.
struct ModelListing {
  std::vector<ModelLayer> layers;    ///< In the order of first occurrence; no two with equal keys.
  std::vector<Uncovered> uncovered;  ///< In the order of first occurrence.
};

/// Lists the layers of the ONNX model in file `path`: opsets 7 to 22 of the default domain, weights inside the file or
/// outside it (they are not read).
///
/// Covered are, by the families of docs/onnx.md: Conv, ConvTranspose, pooling, MaxUnpool, Softmax and LogSoftmax;
/// normalisations; activations; arithmetic, comparison and selection, with broadcasting; matrix products; reductions;
/// and what moves elements. With `fuse`, a Conv, ConvTranspose, Gemm or MatMul takes in, while its result has no other
/// use, in this order: BatchNormalization in inference form with constant parameters, and Add of a constant per channel
/// (both become `bias`); Add of a tensor of its own shape (`add`; of two layers, the later one takes it); Relu and Clip
/// with constant bounds (`relu`, `clip`; a Clip at 0 from below only is `relu`). A normalisation takes in `add`, and
/// `relu` or any other activation, unless one of those layers took it or them. Nodes that compute constants, views
/// (Identity, Flatten, Reshape, Squeeze, Unsqueeze, Dropout of inference), and others whose result is their input's
/// memory (a Slice of whole leading rows) ask for nothing and are not listed.
///
/// Throws Error(io_error) if the file cannot be read; Error(parse_error) if it is not ONNX, truncated, has cycles,
/// or a node misuses its operation; Error(unsupported) for an opset outside those above; Error(invalid_argument) if an
/// extent of a convolution, pooling or softmax stays unknown (other nodes are uncovered then) or the batch is not
/// positive. Messages start with the path and name the node. Thread-safe.
ModelListing read_onnx(const std::string& path, const OnnxOptions& options = {});

}  // namespace kiln

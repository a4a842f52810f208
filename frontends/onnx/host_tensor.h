// Elements of ONNX tensors on the host: weights on their way to the device, and the small tensors that shapes are made
// of.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <string>
#include <vector>

#include "kiln/graph/graph.h"

namespace kiln::onnx_frontend {

using graph::Extents;

/// A tensor whose elements are known while a model is read. Elements stand in logical order, in the list that fits
/// their type.
struct HostTensor {
  int32_t type = 0;  ///< As ONNX numbers element types.
  Extents extents;
  std::vector<int64_t> integers;  ///< Of integers and booleans.
  std::vector<double> reals;      ///< Of floating-point numbers.

  bool is_integer() const;
  size_t size() const { return is_integer() ? integers.size() : reals.size(); }
  double real(size_t i) const { return is_integer() ? static_cast<double>(integers[i]) : reals[i]; }
};

/// Whether elements of that ONNX type are integers or booleans; they are floating-point numbers otherwise.
bool is_integer_type(int32_t type);
/// Whether so many are computed with on the host. More real numbers are weights; integers may be an index for each
/// element of a result.
bool is_few(int32_t type, int64_t elements);
/// "float", "int64", as ONNX writes it; its number for a type that is not known.
std::string type_name(int32_t type);

/// The elements of `tensor`. `folder`: where the model's file is, and so its external data. Throws Error(parse_error)
/// if the elements are not as many as its extents say, or of a type without numbers; Error(io_error) for external data
/// that cannot be read.
HostTensor read_tensor(const onnx::TensorProto& tensor, const std::string& folder);

/// `tensor` as a constant of a graph, rounded to `dtype`. Throws as read_tensor(), and Error(unsupported) for integers
/// that an i32 does not hold.
graph::Bytes stored_as(DType dtype, const HostTensor& tensor);

}  // namespace kiln::onnx_frontend

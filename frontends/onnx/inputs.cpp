#include "onnx/inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kiln/base/error.h"
#include "kiln/base/printable.h"
#include "onnx/node.h"

namespace kiln::onnx_frontend {
namespace {

using Dimension = onnx::TensorShapeProto::Dimension;

/// The dimension that says the batch: the first of the first input that leaves it open, else of the first input.
Dimension batch_of(const std::vector<const onnx::ValueInfoProto*>& inputs) {
  Dimension batch;
  bool is_first = true;
  for (const onnx::ValueInfoProto* input : inputs) {
    const auto& shape = input->type().tensor_type().shape();
    if (shape.dim_size() == 0) continue;
    if (!has_extent(shape.dim(0))) return shape.dim(0);
    if (is_first) batch = shape.dim(0);
    is_first = false;
  }
  return batch;
}

/// Whether the batch's name stands for the batch wherever it is. It says nothing if an input has it twice: some
/// exporters name all open extents alike.
bool names_the_batch(const Dimension& batch, const std::vector<const onnx::ValueInfoProto*>& inputs) {
  if (batch.dim_param().empty()) return false;
  return std::all_of(inputs.begin(), inputs.end(), [&](const onnx::ValueInfoProto* input) {
    const auto& dimensions = input->type().tensor_type().shape().dim();
    return std::count_if(dimensions.begin(), dimensions.end(),
                         [&](const Dimension& dimension) { return dimension.dim_param() == batch.dim_param(); }) <= 1;
  });
}

bool is_batch(const Dimension& dimension, int d, const Dimension& batch, bool by_name) {
  if (by_name && dimension.dim_param() == batch.dim_param()) return true;
  if (d != 0) return false;
  return !has_extent(dimension) || (has_extent(batch) && dimension.dim_value() == batch.dim_value());
}

OnnxInput declared(const onnx::ValueInfoProto& input, const Dimension& batch, bool by_name,
                   std::optional<DType> dtype) {
  if (!input.type().has_tensor_type()) {
    throw Error(ErrorCode::unsupported, fmt::format("input '{}' is no tensor", printable_name(input.name())));
  }
  const auto& tensor = input.type().tensor_type();
  OnnxInput result{input.name(), tensor.elem_type(), type_name(tensor.elem_type()), DType::f32, tensor.has_shape(), {}};
  try {
    result.dtype = storage_of(tensor.elem_type(), dtype);
  } catch (const Refusal& refusal) {
    throw Error(ErrorCode::unsupported,
                fmt::format("input '{}' cannot be had: {}", printable_name(input.name()), refusal.reason));
  }
  for (int d = 0; d < tensor.shape().dim_size(); ++d) {
    const Dimension& dimension = tensor.shape().dim(d);
    OnnxExtent& extent = result.extents.emplace_back();
    if (has_extent(dimension)) {
      extent.fixed = dimension.dim_value();
    } else {
      extent.symbol = dimension.dim_param();
    }
    extent.is_batch = is_batch(dimension, d, batch, by_name);
  }
  return result;
}

}  // namespace

OnnxInputs inputs_of(const onnx::GraphProto& graph, std::optional<DType> dtype) {
  std::set<std::string> initial;
  for (const auto& tensor : graph.initializer()) initial.insert(tensor.name());
  std::vector<const onnx::ValueInfoProto*> given;  // the others are constants to us
  for (const auto& input : graph.input()) {
    if (!initial.contains(input.name())) given.push_back(&input);
  }
  const Dimension batch = batch_of(given);
  const bool by_name = names_the_batch(batch, given);
  std::vector<OnnxInput> inputs;
  for (const onnx::ValueInfoProto* input : given) inputs.push_back(declared(*input, batch, by_name, dtype));
  return {std::move(inputs), has_extent(batch) ? std::optional(batch.dim_value()) : std::nullopt};
}

}  // namespace kiln::onnx_frontend

#include "onnx/source.h"

#include <fmt/format.h>

#include <algorithm>

#include "kiln/base/error.h"
#include "kiln/generator/operations/tensor_ops.h"
#include "onnx/attributes.h"
#include "onnx/load.h"

namespace kiln::onnx_frontend {
namespace {

bool is_floating_type(int32_t type) {
  return type == onnx::TensorProto::UNDEFINED || type == onnx::TensorProto::FLOAT ||
         type == onnx::TensorProto::DOUBLE || type == onnx::TensorProto::FLOAT16 || type == onnx::TensorProto::BFLOAT16;
}

// Of TensorProto.DataType, from ONNX 1.14 on.
constexpr int32_t float8_e4m3fn = 17, float8_e5m2 = 19;

/// Nothing for floating-point numbers whose storage is an option.
std::optional<DType> fixed_storage_of(int32_t type) {
  switch (type) {
    case float8_e4m3fn:
      return DType::f8e4m3;
    case float8_e5m2:
      return DType::f8e5m2;
    case onnx::TensorProto::BOOL:
    case onnx::TensorProto::UINT8:
      return DType::u8;
    case onnx::TensorProto::INT8:
      return DType::i8;
    case onnx::TensorProto::INT32:
      return DType::i32;
    default:
      return std::nullopt;
  }
}

}  // namespace

Layer asked(Request request) {
  return {{std::move(request)}, {}};
}

Layer refused(std::string reason) {
  return {{}, std::move(reason)};
}

TensorSpec Source::spec(Extents extents, DType dtype) const {
  if (extents.empty()) extents = {1};
  std::string order(dimension_letters(static_cast<int>(extents.size())));
  const bool is_spatial = extents.size() >= 3;
  if (is_spatial && options.order == MemoryOrder::nhwc) order = "n" + order.substr(2) + "c";
  return TensorSpec::packed(dtype, std::move(extents), order);
}

TensorSpec Source::operand(int input) const {
  return spec(extents(input), storage_of(graph.element_type(node.input(input)), options).value());
}

std::optional<Extents> Source::list(std::string_view name, int input, int64_t since, const Extents& fallback) const {
  if (graph.opset() < since) return Attributes(node).integers(name).value_or(fallback);
  return has_input(input) ? graph.integers(node.input(input)) : fallback;
}

std::optional<DType> storage_of(int32_t element_type, const OnnxOptions& options) {
  return is_floating_type(element_type) ? options.dtype : fixed_storage_of(element_type);
}

std::string refusal_of_elements(int32_t element_type, Elements elements) {
  const std::optional<DType> fixed = fixed_storage_of(element_type);
  if (is_floating_type(element_type)) return {};
  if (fixed && is_floating(*fixed)) {
    return elements == Elements::movable
               ? ""
               : fmt::format("its elements are {}, which are converted and moved only", to_string(*fixed));
  }
  if (elements == Elements::floating) return "its elements are not floating-point numbers";
  if (elements == Elements::exact) {
    return fixed && size_of(*fixed) == 1 ? "" : "its elements are neither floating-point numbers nor of 8 bits";
  }
  return fixed ? "" : "there is no dtype for its elements";
}

void require_inputs(const Source& source, int least, int most) {
  const int given = source.node.input_size();
  const bool missing = std::any_of(source.node.input().begin(), source.node.input().begin() + std::min(given, least),
                                   [](const std::string& input) { return input.empty(); });
  if (given < least || given > most || missing || source.node.output_size() < 1) {
    fail(source, fmt::format("has {} inputs and {} outputs, expected {} to {} and at least 1", given,
                             source.node.output_size(), least, most));
  }
}

void fail(const Source& source, const std::string& what) {
  throw Error(ErrorCode::parse_error, fmt::format("{}: {}", describe(source.node), what));
}

int64_t axis_from_start(const Source& source, int64_t axis, size_t rank) {
  const auto dimensions = static_cast<int64_t>(rank);
  if (axis < -dimensions || axis >= dimensions) {
    fail(source, fmt::format("axis is {}, expected {} to {}", axis, -dimensions, dimensions - 1));
  }
  return axis < 0 ? axis + dimensions : axis;
}

Extents axes_from_start(const Source& source, Extents axes, size_t rank) {
  for (int64_t& axis : axes) axis = axis_from_start(source, axis, rank);
  Extents sorted = axes;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) fail(source, fmt::format("axis {} stands twice", *twice));
  return axes;
}

TensorSpec with_rank(TensorSpec spec, size_t rank) {
  const size_t missing = rank - spec.extents.size();
  spec.extents.insert(spec.extents.begin(), missing, 1);
  spec.strides.insert(spec.strides.begin(), missing, 0);
  spec.canonicalise();
  return spec;
}

TensorSpec with_ones(TensorSpec spec, std::span<const int64_t> axes) {
  for (const int64_t axis : axes) {
    spec.extents.insert(spec.extents.begin() + axis, 1);
    spec.strides.insert(spec.strides.begin() + axis, 0);
  }
  spec.canonicalise();
  return spec;
}

TensorSpec with_batch(const Source& source, TensorSpec spec, int64_t batch) {
  if (source.options.dynamic_batch && spec.extents.front() == 1 && batch != 1) {
    spec.extents.front() = batch;
    spec.strides.front() = 0;
  }
  return spec;
}

bool precedes_batch(const Source& source, int input, size_t rank) {
  if (!source.options.dynamic_batch || source.graph.is_constant(source.node.input(input))) return false;
  const size_t own = source.extents(input).size();
  return own > 0 && own < rank;
}

Layer copied(const Source& source, const TensorSpec& x, const TensorSpec& y) {
  if (x == y) return {};
  TensorTransform transform;
  transform.x = x;
  transform.y = y;
  transform.dynamic_batch = source.options.dynamic_batch;
  return asked(transform.request());
}

}  // namespace kiln::onnx_frontend

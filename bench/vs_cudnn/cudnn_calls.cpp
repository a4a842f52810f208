#include "cudnn_calls.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "cudnn_graph.h"

namespace kiln::bench {
namespace {

using namespace cuda_abi;  // NOLINT(google-build-using-namespace): the names of the interface spoken here

constexpr float one = 1, zero = 0;

using Library = std::shared_ptr<const CudnnLibrary>;
using TensorDescriptor = std::shared_ptr<CudnnTensorTag>;
using PoolingDescriptor = std::shared_ptr<CudnnPoolingTag>;

struct Shape {
  std::vector<int64_t> extents, strides;
};

bool fits_int(const Shape& shape) {
  const auto fits = [](int64_t value) { return value <= std::numeric_limits<int>::max(); };
  return std::all_of(shape.extents.begin(), shape.extents.end(), fits) &&
         std::all_of(shape.strides.begin(), shape.strides.end(), fits);
}

std::vector<int> ints(const std::vector<int64_t>& values) {
  return {values.begin(), values.end()};
}

TensorDescriptor describe(const Library& library, DType dtype, const Shape& shape) {
  cudnnTensorDescriptor_t raw = nullptr;
  library->check(library->calls().cudnnCreateTensorDescriptor(&raw), "cudnnCreateTensorDescriptor");
  TensorDescriptor owned(raw, [library](cudnnTensorDescriptor_t descriptor) {
    library->calls().cudnnDestroyTensorDescriptor(descriptor);
  });
  const std::vector<int> extents = ints(shape.extents), strides = ints(shape.strides);
  library->check(library->calls().cudnnSetTensorNdDescriptor(
                     raw, cudnn_data_type(dtype), static_cast<int>(extents.size()), extents.data(), strides.data()),
                 "cudnnSetTensorNdDescriptor");
  return owned;
}

// With at least two spatial axes.
Shape pooled_shape(const TensorSpec& spec) {
  Shape shape{spec.extents, spec.strides};
  if (spec.rank() == 3) {
    shape.extents.insert(shape.extents.begin() + 2, 1);
    shape.strides.insert(shape.strides.begin() + 2, spec.extents[2] * spec.strides[2]);
  }
  return shape;
}

std::vector<int> per_axis(const std::vector<int64_t>& values, int added) {
  std::vector<int> all = ints(values);
  if (all.size() == 1) all.insert(all.begin(), added);
  return all;
}

cudnnPoolingMode_t pooling_mode(PoolMode mode) {
  if (mode == PoolMode::max) return CUDNN_POOLING_MAX;
  return mode == PoolMode::avg ? CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING
                               : CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING;
}

PoolingDescriptor describe(const Library& library, const PoolForward& pool) {
  cudnnPoolingDescriptor_t raw = nullptr;
  library->check(library->calls().cudnnCreatePoolingDescriptor(&raw), "cudnnCreatePoolingDescriptor");
  PoolingDescriptor owned(raw, [library](cudnnPoolingDescriptor_t descriptor) {
    library->calls().cudnnDestroyPoolingDescriptor(descriptor);
  });
  const std::vector<int> window = per_axis(pool.window, 1), pads = per_axis(pool.pad_begin, 0),
                         strides = per_axis(pool.stride, 1);
  library->check(library->calls().cudnnSetPoolingNdDescriptor(raw, pooling_mode(pool.mode), CUDNN_PROPAGATE_NAN,
                                                              static_cast<int>(window.size()), window.data(),
                                                              pads.data(), strides.data()),
                 "cudnnSetPoolingNdDescriptor");
  return owned;
}

// Whether cudnnPoolingForward can be told of it.
bool can_be_called(const PoolForward& pool) {
  if (pool.pad_begin != pool.pad_end || !fits_int(pooled_shape(pool.x)) || !fits_int(pooled_shape(pool.y)))
    return false;
  for (int i = 0; i < pool.axes(); ++i) {
    const WindowAxis axis = pool.axis(i);
    if (axis.dilation != 1 || axis.outputs != axis.outputs_floor()) return false;
  }
  return true;
}

// The dimensions but for the axis, in as few as both tensors permit.
struct OtherDimensions {
  std::vector<int64_t> extents, x_strides, y_strides;
};

OtherDimensions other_dimensions(const SoftmaxForward& softmax) {
  OtherDimensions merged;
  for (size_t i = 0; i < softmax.x.extents.size(); ++i) {
    const int64_t extent = softmax.x.extents[i], x = softmax.x.strides[i], y = softmax.y.strides[i];
    if (static_cast<int64_t>(i) == softmax.axis || extent == 1) continue;
    const bool neighbours =
        !merged.extents.empty() && merged.x_strides.back() == extent * x && merged.y_strides.back() == extent * y;
    if (!neighbours) {
      merged.extents.push_back(1);
      merged.x_strides.push_back(0);
      merged.y_strides.push_back(0);
    }
    merged.extents.back() *= extent;
    merged.x_strides.back() = x;
    merged.y_strides.back() = y;
  }
  return merged;
}

// N, C, H, W with the axis as C.
Shape by_channel(const std::vector<int64_t>& extents, const std::vector<int64_t>& strides, int64_t length,
                 int64_t stride) {
  Shape shape{{1, length, 1, 1}, {1, stride, 1, 1}};
  for (size_t i = 0; i < extents.size(); ++i) {
    const size_t at = i == 0 ? 0 : i + 1;
    shape.extents[at] = extents[i];
    shape.strides[at] = strides[i];
  }
  return shape;
}

CudnnCall softmax_call(const Library& library, std::string name, const SoftmaxForward& softmax, cudnnSoftmaxMode_t mode,
                       const Shape& x_shape, const Shape& y_shape) {
  const auto algorithm = softmax.mode == SoftmaxMode::log ? CUDNN_SOFTMAX_LOG : CUDNN_SOFTMAX_ACCURATE;
  return {std::move(name), [=, x_descriptor = describe(library, softmax.x.dtype, x_shape),
                            y_descriptor = describe(library, softmax.y.dtype, y_shape)](const CudnnHandle& handle,
                                                                                        CUdeviceptr x, CUdeviceptr y) {
            library->check(library->calls().cudnnSoftmaxForward(handle.raw(), algorithm, mode, &one, x_descriptor.get(),
                                                                reinterpret_cast<const void*>(x), &zero,
                                                                y_descriptor.get(), reinterpret_cast<void*>(y)),
                           "cudnnSoftmaxForward");
          }};
}

}  // namespace

std::vector<CudnnCall> pooling_calls(const Library& library, const PoolForward& pool) {
  if (!can_be_called(pool)) return {};
  return {{"cudnnPoolingForward", [library, pooling = describe(library, pool),
                                   x_descriptor = describe(library, pool.x.dtype, pooled_shape(pool.x)),
                                   y_descriptor = describe(library, pool.y.dtype, pooled_shape(pool.y))](
                                      const CudnnHandle& handle, CUdeviceptr x, CUdeviceptr y) {
             library->check(library->calls().cudnnPoolingForward(handle.raw(), pooling.get(), &one, x_descriptor.get(),
                                                                 reinterpret_cast<const void*>(x), &zero,
                                                                 y_descriptor.get(), reinterpret_cast<void*>(y)),
                            "cudnnPoolingForward");
           }}};
}

std::vector<CudnnCall> softmax_calls(const Library& library, const SoftmaxForward& softmax) {
  const OtherDimensions others = other_dimensions(softmax);
  if (others.extents.size() > 3) return {};
  const auto axis = static_cast<size_t>(softmax.axis);
  const int64_t length = softmax.row_length();
  const Shape x = by_channel(others.extents, others.x_strides, length, softmax.x.strides[axis]);
  const Shape y = by_channel(others.extents, others.y_strides, length, softmax.y.strides[axis]);
  if (!fits_int(x) || !fits_int(y)) return {};
  std::vector<CudnnCall> calls = {
      softmax_call(library, "cudnnSoftmaxForward by channel", softmax, CUDNN_SOFTMAX_MODE_CHANNEL, x, y)};
  const bool rows = others.extents.size() <= 1 && softmax.x.strides[axis] == 1 && softmax.y.strides[axis] == 1;
  if (rows) {
    calls.push_back(
        softmax_call(library, "cudnnSoftmaxForward by instance", softmax, CUDNN_SOFTMAX_MODE_INSTANCE, x, y));
  }
  return calls;
}

}  // namespace kiln::bench

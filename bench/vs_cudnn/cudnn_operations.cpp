// Operations of cudnn_graph.h: their descriptors.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "cudnn_graph.h"
#include "kiln/base/error.h"

namespace kiln::bench {
namespace {

using namespace cuda_abi;  // NOLINT(google-build-using-namespace): the names of the interface spoken here

// Per spatial axis, with a first one added where there is one only.
std::vector<int64_t> per_axis(std::vector<int64_t> values, int64_t added) {
  if (values.size() == 1) values.insert(values.begin(), added);
  return values;
}

struct Shape {
  std::vector<int64_t> extents, strides;
};

// As cuDNN takes it: with at least two spatial axes.
Shape shape_of(const TensorSpec& spec) {
  Shape shape{spec.extents, spec.strides};
  if (shape.extents.size() == 3) {
    shape.extents.insert(shape.extents.begin() + 2, 1);
    shape.strides.insert(shape.strides.begin() + 2, spec.extents[2] * spec.strides[2]);
  }
  return shape;
}

void set_axes(Descriptor& descriptor, cudnnBackendAttributeName_t name, const std::vector<int64_t>& values) {
  descriptor.set(name, CUDNN_TYPE_INT64, std::span<const int64_t>(values));
}

Descriptor convolution(const std::shared_ptr<const CudnnLibrary>& library, const ConvPass& conv) {
  Descriptor made(library, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  made.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, std::max<int64_t>(std::ssize(conv.stride), 2));
  made.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  made.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE,
           conv.mirrored ? CUDNN_CONVOLUTION : CUDNN_CROSS_CORRELATION);
  set_axes(made, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, per_axis(conv.pad_begin, 0));
  set_axes(made, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, per_axis(conv.pad_end, 0));
  set_axes(made, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, per_axis(conv.stride, 1));
  set_axes(made, CUDNN_ATTR_CONVOLUTION_DILATIONS, per_axis(conv.dilation, 1));
  made.finalize();
  return made;
}

// Names of the descriptors of an operation of convolutions.
struct ConvolutionNames {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t x, w, y, convolution, alpha, beta;
};

ConvolutionNames names_of(Operations::Convolution kind) {
  switch (kind) {
    case Operations::Convolution::backward_data:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case Operations::Convolution::backward_filter:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
    default:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
  }
}

cudnnResampleMode_t resample_mode(PoolMode mode) {
  if (mode == PoolMode::max) return CUDNN_RESAMPLE_MAXPOOL;
  return mode == PoolMode::avg ? CUDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING : CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING;
}

// With ceil=1 the last window may reach beyond the padding: cuDNN is told of as much padding as it reaches.
std::vector<int64_t> pads_behind(const PoolForward& pool) {
  std::vector<int64_t> pads = pool.pad_end;
  for (int i = 0; i < pool.axes(); ++i) {
    const WindowAxis axis = pool.axis(i);
    int64_t& pad = pads[static_cast<size_t>(i)];
    pad = std::max(pad, axis.position(axis.outputs - 1, axis.window - 1) + 1 - axis.extent);
  }
  return pads;
}

Descriptor resampling(const std::shared_ptr<const CudnnLibrary>& library, const PoolForward& pool) {
  Descriptor made(library, CUDNN_BACKEND_RESAMPLE_DESCRIPTOR);
  made.set(CUDNN_ATTR_RESAMPLE_MODE, CUDNN_TYPE_RESAMPLE_MODE, resample_mode(pool.mode));
  made.set(CUDNN_ATTR_RESAMPLE_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  made.set(CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS, CUDNN_TYPE_INT64, int64_t{std::max(pool.axes(), 2)});
  made.set(CUDNN_ATTR_RESAMPLE_NAN_PROPAGATION, CUDNN_TYPE_NAN_PROPOGATION, CUDNN_PROPAGATE_NAN);
  made.set(CUDNN_ATTR_RESAMPLE_PADDING_MODE, CUDNN_TYPE_PADDING_MODE,
           pool.mode == PoolMode::max ? CUDNN_NEG_INF_PAD : CUDNN_ZERO_PAD);
  set_axes(made, CUDNN_ATTR_RESAMPLE_WINDOW_DIMS, per_axis(pool.window, 1));
  set_axes(made, CUDNN_ATTR_RESAMPLE_STRIDES, per_axis(pool.stride, 1));
  set_axes(made, CUDNN_ATTR_RESAMPLE_PRE_PADDINGS, per_axis(pool.pad_begin, 0));
  set_axes(made, CUDNN_ATTR_RESAMPLE_POST_PADDINGS, per_axis(pads_behind(pool), 0));
  made.finalize();
  return made;
}

Descriptor pointwise_mode(const std::shared_ptr<const CudnnLibrary>& library, cudnnPointwiseMode_t mode) {
  Descriptor made(library, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  made.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode);
  made.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  return made;
}

}  // namespace

cudnnDataType_t cudnn_data_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return CUDNN_DATA_FLOAT;
    case DType::f16:
      return CUDNN_DATA_HALF;
    case DType::bf16:
      return CUDNN_DATA_BFLOAT16;
    case DType::i32:
    case DType::i8:
    case DType::u8:
    case DType::f8e4m3:
    case DType::f8e5m2:
      break;
  }
  throw Error(ErrorCode::unsupported,
              fmt::format("a tensor is {}; cuDNN is compared in {}", to_string(dtype), to_string(DTypes::floating)));
}

Operations::Tensor Operations::tensor(DType dtype, const std::vector<int64_t>& extents,
                                      const std::vector<int64_t>& strides, int alignment, bool in_memory) {
  const auto id = static_cast<int64_t>(tensors_.size()) + 1;
  Descriptor made(library_, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  made.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, cudnn_data_type(dtype));
  set_axes(made, CUDNN_ATTR_TENSOR_DIMENSIONS, extents);
  set_axes(made, CUDNN_ATTR_TENSOR_STRIDES, strides);
  made.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, id);
  made.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, int64_t{alignment});
  if (!in_memory) made.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, true);
  made.finalize();
  tensors_.push_back(parts_.size());
  parts_.push_back(std::move(made));
  return tensors_.size() - 1;
}

Operations::Tensor Operations::operand(size_t operand, const TensorSpec& spec) {
  const Shape shape = shape_of(spec);
  const Tensor made = tensor(spec.dtype, shape.extents, shape.strides, spec.alignment, true);
  bound_.push_back({static_cast<int64_t>(made) + 1, operand});
  return made;
}

Operations::Tensor Operations::bias(size_t operand, const TensorSpec& spec, const TensorSpec& y) {
  Shape shape = shape_of(y);
  std::fill(shape.extents.begin(), shape.extents.end(), 1);
  shape.extents[1] = spec.extents[0];
  // Strides of single elements say nothing but the layout: that of y.
  const int64_t channel = spec.strides[0], all = spec.extents[0] * channel;
  const bool channels_last = y.strides[1] == 1;
  std::fill(shape.strides.begin(), shape.strides.end(), channels_last ? all : 1);
  shape.strides[0] = all;
  shape.strides[1] = channel;
  const Tensor made = tensor(spec.dtype, shape.extents, shape.strides, spec.alignment, true);
  bound_.push_back({static_cast<int64_t>(made) + 1, operand});
  return made;
}

Operations::Tensor Operations::intermediate(const TensorSpec& like) {
  const Shape shape = shape_of(like);
  return tensor(DType::f32, shape.extents, shape.strides, default_alignment, false);
}

// cuDNN infers the groups from the channels of x and w.
void Operations::convolve(Convolution kind, const ConvPass& conv, Tensor x, Tensor w, Tensor y) {
  const ConvolutionNames names = names_of(kind);
  parts_.push_back(convolution(library_, conv));
  Descriptor operation(library_, names.type);
  operation.set(names.x, parts_[tensors_[x]]);
  operation.set(names.w, parts_[tensors_[w]]);
  operation.set(names.y, parts_[tensors_[y]]);
  operation.set(names.convolution, parts_.back());
  operation.set(names.alpha, CUDNN_TYPE_FLOAT, 1.0F);
  operation.set(names.beta, CUDNN_TYPE_FLOAT, 0.0F);
  operation.finalize();
  operations_.push_back(parts_.size());
  parts_.push_back(std::move(operation));
}

void Operations::pointwise(Descriptor mode, Tensor x, std::optional<Tensor> b, float scale, Tensor y) {
  mode.finalize();
  parts_.push_back(std::move(mode));
  Descriptor operation(library_, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, parts_.back());
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, parts_[tensors_[x]]);
  if (b) {
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, parts_[tensors_[*b]]);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2, CUDNN_TYPE_FLOAT, scale);
  }
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, parts_[tensors_[y]]);
  operation.finalize();
  operations_.push_back(parts_.size());
  parts_.push_back(std::move(operation));
}

void Operations::add(Tensor a, Tensor b, float scale, Tensor sum) {
  pointwise(pointwise_mode(library_, CUDNN_POINTWISE_ADD), a, b, scale, sum);
}

void Operations::clamp(Tensor in, float lo, float hi, Tensor out) {
  Descriptor mode = pointwise_mode(library_, CUDNN_POINTWISE_RELU_FWD);
  mode.set(CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP, CUDNN_TYPE_DOUBLE, double{lo});
  if (hi < std::numeric_limits<float>::infinity()) {
    mode.set(CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, CUDNN_TYPE_DOUBLE, double{hi});
  }
  pointwise(std::move(mode), in, std::nullopt, 1, out);
}

void Operations::resample(const PoolForward& pool, Tensor x, Tensor y) {
  parts_.push_back(resampling(library_, pool));
  Descriptor operation(library_, CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC, parts_[tensors_[x]]);
  operation.set(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC, parts_[tensors_[y]]);
  operation.set(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_DESC, parts_.back());
  operation.finalize();
  operations_.push_back(parts_.size());
  parts_.push_back(std::move(operation));
}

std::vector<cudnnBackendDescriptor_t> Operations::raw() const {
  std::vector<cudnnBackendDescriptor_t> all;
  for (const size_t operation : operations_) all.push_back(parts_[operation].raw());
  return all;
}

}  // namespace kiln::bench

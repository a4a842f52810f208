// The fake cuDNN's calls from before the graph API.
#include <cuda_abi/cudnn.h>

#include <algorithm>
#include <vector>

#include "fake_arithmetic.h"
#include "fake_state.h"

using namespace cuda_abi;  // NOLINT(google-build-using-namespace): it is the interface implemented here

namespace cuda_abi {

struct CudnnTensorTag {
  std::vector<int64_t> extents, strides;
};
struct CudnnPoolingTag {
  cudnnPoolingMode_t mode{};
  fake_cudnn::Windows windows;
};

}  // namespace cuda_abi

namespace {

using fake_cudnn::pass_time;
using fake_cudnn::refuse;

std::vector<int64_t> wide(const int* values, int count) {
  return {values, values + count};
}

fake_cudnn::Tensor bind(cudnnTensorDescriptor_t descriptor, const void* data) {
  return {descriptor->extents, descriptor->strides, static_cast<float*>(const_cast<void*>(data))};
}

}  // namespace

extern "C" {

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* descriptor) {
  *descriptor = new CudnnTensorTag;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t descriptor, cudnnDataType_t type, int rank,
                                         const int extents[], const int strides[]) {
  if (type != CUDNN_DATA_FLOAT) return refuse(CUDNN_STATUS_NOT_SUPPORTED, "the fake knows f32 only");
  if (rank != 4) return refuse(CUDNN_STATUS_NOT_SUPPORTED, "the fake knows two axes only");
  descriptor->extents = wide(extents, rank);
  descriptor->strides = wide(strides, rank);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t descriptor) {
  delete descriptor;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreatePoolingDescriptor(cudnnPoolingDescriptor_t* descriptor) {
  *descriptor = new CudnnPoolingTag;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetPoolingNdDescriptor(cudnnPoolingDescriptor_t descriptor, cudnnPoolingMode_t mode,
                                          cudnnNanPropagation_t nan, int axes, const int window[], const int pads[],
                                          const int strides[]) {
  if (nan != CUDNN_PROPAGATE_NAN) return refuse(CUDNN_STATUS_NOT_SUPPORTED, "the fake propagates NaN");
  descriptor->mode = mode;
  descriptor->windows = {wide(window, axes), wide(pads, axes), wide(strides, axes), {1, 1}};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyPoolingDescriptor(cudnnPoolingDescriptor_t descriptor) {
  delete descriptor;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnPoolingForward(cudnnHandle_t, cudnnPoolingDescriptor_t pooling, const void*,
                                  cudnnTensorDescriptor_t x_descriptor, const void* x, const void*,
                                  cudnnTensorDescriptor_t y_descriptor, void* y) {
  const fake_cudnn::Tensor in = bind(x_descriptor, x), out = bind(y_descriptor, y);
  const fake_cudnn::Windows& windows = pooling->windows;
  for (size_t i = 0; i < 2; ++i) {  // as strict as cuDNN
    const int64_t room = in.extents[i + 2] + 2 * windows.pads[i] - windows.extents[i];
    if (out.extents[i + 2] != room / windows.strides[i] + 1)
      return refuse(CUDNN_STATUS_BAD_PARAM, "y is of another size");
  }
  if (!pass_time()) return refuse(CUDNN_STATUS_EXECUTION_FAILED, "the fill failed");
  const auto mode = pooling->mode == CUDNN_POOLING_MAX ? fake_cudnn::Pooling::max
                    : pooling->mode == CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING
                        ? fake_cudnn::Pooling::average_all
                        : fake_cudnn::Pooling::average_inside;
  fake_cudnn::pool(in, out, windows, mode, 1);
  return CUDNN_STATUS_SUCCESS;
}

// NOLINTNEXTLINE(readability-function-size): the parameters are cuDNN's
cudnnStatus_t cudnnSoftmaxForward(cudnnHandle_t, cudnnSoftmaxAlgorithm_t algorithm, cudnnSoftmaxMode_t mode,
                                  const void*, cudnnTensorDescriptor_t x_descriptor, const void* x, const void*,
                                  cudnnTensorDescriptor_t y_descriptor, void* y) {
  const fake_cudnn::Tensor in = bind(x_descriptor, x), out = bind(y_descriptor, y);
  if (in.extents != out.extents) return refuse(CUDNN_STATUS_BAD_PARAM, "x and y are of different sizes");
  if (!pass_time()) return refuse(CUDNN_STATUS_EXECUTION_FAILED, "the fill failed");
  fake_cudnn::softmax(in, out, mode == CUDNN_SOFTMAX_MODE_INSTANCE, algorithm == CUDNN_SOFTMAX_LOG);
  return CUDNN_STATUS_SUCCESS;
}

}  // extern "C"

// The part of cuDNN 9 that Kiln's comparison with cuDNN calls: of its graph API ("backend API"), and the older calls
// for pooling and softmax. Our own declarations, so that cuDNN is not needed to build; see driver.h. Names, values and
// signatures are those of cudnn_graph.h and cudnn_ops.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cuda_abi {

using cudnnHandle_t = struct CudnnContextTag*;
using cudnnBackendDescriptor_t = void*;
using cudnnTensorDescriptor_t = struct CudnnTensorTag*;
using cudnnPoolingDescriptor_t = struct CudnnPoolingTag*;

/// 0, or a category (1000s) and a detail: 3000s are "not supported".
enum cudnnStatus_t : int {
  CUDNN_STATUS_SUCCESS = 0,
  CUDNN_STATUS_NOT_INITIALIZED = 1001,
  CUDNN_STATUS_BAD_PARAM = 2000,
  CUDNN_STATUS_NOT_SUPPORTED = 3000,
  CUDNN_STATUS_INTERNAL_ERROR = 4000,
  CUDNN_STATUS_EXECUTION_FAILED = 5000,
};

enum cudnnDataType_t : int {
  CUDNN_DATA_FLOAT = 0,
  CUDNN_DATA_HALF = 2,
  CUDNN_DATA_BFLOAT16 = 9,
};

enum cudnnConvolutionMode_t : int {
  CUDNN_CONVOLUTION = 0,
  CUDNN_CROSS_CORRELATION = 1,
};

enum cudnnNanPropagation_t : int {
  CUDNN_NOT_PROPAGATE_NAN = 0,
  CUDNN_PROPAGATE_NAN = 1,
};

enum cudnnPointwiseMode_t : int {
  CUDNN_POINTWISE_ADD = 0,
  CUDNN_POINTWISE_RELU_FWD = 100,
};

enum cudnnResampleMode_t : int {
  CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING = 2,
  CUDNN_RESAMPLE_MAXPOOL = 3,
  CUDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING = 4,
};

enum cudnnPaddingMode_t : int {
  CUDNN_ZERO_PAD = 0,
  CUDNN_NEG_INF_PAD = 1,
};

enum cudnnPoolingMode_t : int {
  CUDNN_POOLING_MAX = 0,
  CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING = 1,
  CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING = 2,
};

enum cudnnSoftmaxAlgorithm_t : int {
  CUDNN_SOFTMAX_ACCURATE = 1,
  CUDNN_SOFTMAX_LOG = 2,
};

/// Over all of C, H, W for each N, or over C for each N, H, W.
enum cudnnSoftmaxMode_t : int {
  CUDNN_SOFTMAX_MODE_INSTANCE = 0,
  CUDNN_SOFTMAX_MODE_CHANNEL = 1,
};

enum cudnnBackendDescriptorType_t : int {
  CUDNN_BACKEND_POINTWISE_DESCRIPTOR = 0,
  CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR = 1,
  CUDNN_BACKEND_ENGINE_DESCRIPTOR = 2,
  CUDNN_BACKEND_ENGINECFG_DESCRIPTOR = 3,
  CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR = 4,
  CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR = 5,
  CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR = 7,
  CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR = 10,
  CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR = 11,
  CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR = 12,
  CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR = 13,
  CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR = 15,
  CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR = 16,
  CUDNN_BACKEND_TENSOR_DESCRIPTOR = 17,
  CUDNN_BACKEND_RESAMPLE_DESCRIPTOR = 24,
  CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR = 25,
};

enum cudnnBackendAttributeName_t : int {
  CUDNN_ATTR_POINTWISE_MODE = 0,
  CUDNN_ATTR_POINTWISE_MATH_PREC = 1,
  CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP = 3,
  CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP = 4,
  CUDNN_ATTR_CONVOLUTION_COMP_TYPE = 100,
  CUDNN_ATTR_CONVOLUTION_CONV_MODE = 101,
  CUDNN_ATTR_CONVOLUTION_DILATIONS = 102,
  CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES = 103,
  CUDNN_ATTR_CONVOLUTION_POST_PADDINGS = 104,
  CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS = 105,
  CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS = 106,
  CUDNN_ATTR_ENGINEHEUR_MODE = 200,
  CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH = 201,
  CUDNN_ATTR_ENGINEHEUR_RESULTS = 202,
  CUDNN_ATTR_ENGINECFG_ENGINE = 300,
  CUDNN_ATTR_ENGINECFG_KNOB_CHOICES = 302,
  CUDNN_ATTR_EXECUTION_PLAN_HANDLE = 400,
  CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG = 401,
  CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE = 402,
  CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE = 600,
  CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE = 601,
  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA = 700,
  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA = 701,
  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC = 702,
  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W = 703,
  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X = 704,
  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y = 705,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA = 706,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA = 707,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC = 708,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W = 709,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX = 710,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY = 711,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA = 712,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA = 713,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC = 714,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW = 715,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X = 716,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY = 717,
  CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR = 750,
  CUDNN_ATTR_OPERATION_POINTWISE_XDESC = 751,
  CUDNN_ATTR_OPERATION_POINTWISE_BDESC = 752,
  CUDNN_ATTR_OPERATION_POINTWISE_YDESC = 753,
  CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2 = 755,
  CUDNN_ATTR_OPERATIONGRAPH_HANDLE = 800,
  CUDNN_ATTR_OPERATIONGRAPH_OPS = 801,
  CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT = 900,
  CUDNN_ATTR_TENSOR_DATA_TYPE = 901,
  CUDNN_ATTR_TENSOR_DIMENSIONS = 902,
  CUDNN_ATTR_TENSOR_STRIDES = 903,
  CUDNN_ATTR_TENSOR_UNIQUE_ID = 906,
  CUDNN_ATTR_TENSOR_IS_VIRTUAL = 907,
  CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS = 1000,
  CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS = 1001,
  CUDNN_ATTR_VARIANT_PACK_WORKSPACE = 1003,
  CUDNN_ATTR_ENGINE_GLOBAL_INDEX = 1301,
  CUDNN_ATTR_ENGINE_NUMERICAL_NOTE = 1303,
  CUDNN_ATTR_RESAMPLE_MODE = 1700,
  CUDNN_ATTR_RESAMPLE_COMP_TYPE = 1701,
  CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS = 1702,
  CUDNN_ATTR_RESAMPLE_POST_PADDINGS = 1703,
  CUDNN_ATTR_RESAMPLE_PRE_PADDINGS = 1704,
  CUDNN_ATTR_RESAMPLE_STRIDES = 1705,
  CUDNN_ATTR_RESAMPLE_WINDOW_DIMS = 1706,
  CUDNN_ATTR_RESAMPLE_NAN_PROPAGATION = 1707,
  CUDNN_ATTR_RESAMPLE_PADDING_MODE = 1708,
  CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC = 1710,
  CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC = 1711,
  CUDNN_ATTR_OPERATION_RESAMPLE_FWD_DESC = 1716,
};

enum cudnnBackendAttributeType_t : int {
  CUDNN_TYPE_HANDLE = 0,
  CUDNN_TYPE_DATA_TYPE = 1,
  CUDNN_TYPE_BOOLEAN = 2,
  CUDNN_TYPE_INT64 = 3,
  CUDNN_TYPE_FLOAT = 4,
  CUDNN_TYPE_DOUBLE = 5,
  CUDNN_TYPE_VOID_PTR = 6,
  CUDNN_TYPE_CONVOLUTION_MODE = 7,
  CUDNN_TYPE_HEUR_MODE = 8,
  CUDNN_TYPE_KNOB_TYPE = 9,
  CUDNN_TYPE_NAN_PROPOGATION = 10,
  CUDNN_TYPE_NUMERICAL_NOTE = 11,
  CUDNN_TYPE_POINTWISE_MODE = 14,
  CUDNN_TYPE_BACKEND_DESCRIPTOR = 15,
  CUDNN_TYPE_RESAMPLE_MODE = 21,
  CUDNN_TYPE_PADDING_MODE = 22,
};

enum cudnnBackendNumericalNote_t : int {
  CUDNN_NUMERICAL_NOTE_TENSOR_CORE = 0,
  CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS = 1,
  CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION = 2,
  CUDNN_NUMERICAL_NOTE_FFT = 3,
  CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC = 4,
  CUDNN_NUMERICAL_NOTE_WINOGRAD = 5,
};

enum cudnnBackendHeurMode_t : int {
  CUDNN_HEUR_MODE_INSTANT = 0,
  CUDNN_HEUR_MODE_B = 1,
  CUDNN_HEUR_MODE_FALLBACK = 2,
  CUDNN_HEUR_MODE_A = 3,
};

// X(symbol, result(parameters)), as in driver.h. A stream is passed as the driver's CUstream, which cudaStream_t is.
#define KILN_CUDNN_ENTRY_POINTS(X)                                                                                     \
  X(cudnnGetVersion, size_t())                                                                                         \
  X(cudnnGetErrorString, const char*(cudnnStatus_t status))                                                            \
  X(cudnnGetLastErrorString, void(char* message, size_t bytes))                                                        \
  X(cudnnCreate, cudnnStatus_t(cudnnHandle_t* handle))                                                                 \
  X(cudnnDestroy, cudnnStatus_t(cudnnHandle_t handle))                                                                 \
  X(cudnnSetStream, cudnnStatus_t(cudnnHandle_t handle, struct StreamTag* stream))                                     \
  X(cudnnBackendCreateDescriptor,                                                                                      \
    cudnnStatus_t(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* descriptor))                            \
  X(cudnnBackendDestroyDescriptor, cudnnStatus_t(cudnnBackendDescriptor_t descriptor))                                 \
  X(cudnnBackendFinalize, cudnnStatus_t(cudnnBackendDescriptor_t descriptor))                                          \
  X(cudnnBackendSetAttribute, cudnnStatus_t(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,     \
                                            cudnnBackendAttributeType_t type, int64_t count, const void* elements))    \
  X(cudnnBackendGetAttribute,                                                                                          \
    cudnnStatus_t(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,                               \
                  cudnnBackendAttributeType_t type, int64_t requested_count, int64_t* count, void* elements))          \
  X(cudnnBackendExecute,                                                                                               \
    cudnnStatus_t(cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t variant_pack))         \
  X(cudnnCreateTensorDescriptor, cudnnStatus_t(cudnnTensorDescriptor_t* descriptor))                                   \
  X(cudnnSetTensorNdDescriptor, cudnnStatus_t(cudnnTensorDescriptor_t descriptor, cudnnDataType_t type, int rank,      \
                                              const int extents[], const int strides[]))                               \
  X(cudnnDestroyTensorDescriptor, cudnnStatus_t(cudnnTensorDescriptor_t descriptor))                                   \
  X(cudnnCreatePoolingDescriptor, cudnnStatus_t(cudnnPoolingDescriptor_t* descriptor))                                 \
  X(cudnnSetPoolingNdDescriptor,                                                                                       \
    cudnnStatus_t(cudnnPoolingDescriptor_t descriptor, cudnnPoolingMode_t mode, cudnnNanPropagation_t nan, int axes,   \
                  const int window[], const int pads[], const int strides[]))                                          \
  X(cudnnDestroyPoolingDescriptor, cudnnStatus_t(cudnnPoolingDescriptor_t descriptor))                                 \
  X(cudnnPoolingForward, cudnnStatus_t(cudnnHandle_t handle, cudnnPoolingDescriptor_t pooling, const void* alpha,      \
                                       cudnnTensorDescriptor_t x_descriptor, const void* x, const void* beta,          \
                                       cudnnTensorDescriptor_t y_descriptor, void* y))                                 \
  X(cudnnSoftmaxForward,                                                                                               \
    cudnnStatus_t(cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t algorithm, cudnnSoftmaxMode_t mode, const void* alpha, \
                  cudnnTensorDescriptor_t x_descriptor, const void* x, const void* beta,                               \
                  cudnnTensorDescriptor_t y_descriptor, void* y))

}  // namespace cuda_abi

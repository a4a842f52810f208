// cuDNN's calls from before its graph API, for pooling and softmax.
#pragma once

#include <cuda_abi/driver.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cudnn_library.h"
#include "kiln/generator/operations/pool_forward.h"
#include "kiln/generator/operations/softmax_forward.h"

namespace kiln::bench {

/// A call with everything but its operands.
struct CudnnCall {
  std::string name;  ///< "cudnnSoftmaxForward by channel"
  /// Enqueues y = call(x) on the handle's stream. Throws CudnnError.
  std::function<void(const CudnnHandle& handle, cuda_abi::CUdeviceptr x, cuda_abi::CUdeviceptr y)> run;
};

/// cudnnPoolingForward; nothing where it cannot say what is asked for: pads that differ by side, a last window that
/// reaches beyond them, dilation, a tensor beyond 32 bits. Describing needs no device. Throws CudnnError.
std::vector<CudnnCall> pooling_calls(const std::shared_ptr<const CudnnLibrary>& library, const PoolForward& pool);

/// cudnnSoftmaxForward by channel, with the axis as C and all other dimensions, merged where memory permits, as N, H
/// and W; for rows without gaps also by instance. Nothing where there are more than three dimensions left, or beyond 32
/// bits. Describing needs no device. Throws CudnnError.
std::vector<CudnnCall> softmax_calls(const std::shared_ptr<const CudnnLibrary>& library, const SoftmaxForward& softmax);

}  // namespace kiln::bench

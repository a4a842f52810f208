// State that the two halves of the fake cuDNN share.
#pragma once

#include <cuda_abi/cudnn.h>
#include <cuda_abi/driver.h>

namespace fake_cudnn {

/// Keeps `why` for cudnnGetLastErrorString() and returns `status`.
cuda_abi::cudnnStatus_t refuse(cuda_abi::cudnnStatus_t status, const char* why);

/// Enqueues a fill of memory of the handle's on its stream: what a call takes in device time. False if the driver
/// refuses.
bool pass_time();

}  // namespace fake_cudnn

// Parts shared by kernels that are written for a gradient itself. Names are those of the convolution that the gradient
// belongs to.
#include "lib/index.cuh"

// Images of this call.
__device__ __forceinline__ Index images_of(long long n) {
  return DYNAMIC_N ? static_cast<Index>(n) : static_cast<Index>(N);
}

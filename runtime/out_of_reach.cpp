#include "out_of_reach.h"

#include <fmt/format.h>

#include "kiln/base/error.h"

namespace kiln {

void refuse_out_of_reach(const std::string& which, const void* address, uint64_t bytes,
                         const device::ContextHandle& context) {
  const auto begin = reinterpret_cast<uintptr_t>(address);
  if (const auto allocation = context.short_allocation(begin, bytes)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} takes {} bytes, from {:#x} to {:#x}, and only {} of them are there: its memory is an "
                            "allocation of {} bytes at {:#x}",
                            which, bytes, begin, begin + bytes - 1, allocation->begin + allocation->bytes - begin,
                            allocation->bytes, allocation->begin),
                "give memory that is as large, or check the address, the extents and the strides");
  }
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("{} is at {}: this is host memory (or memory that was freed), which the device does not reach", which,
                  address),
      "copy it to device memory, or pin it (cudaMallocHost, cudaHostRegister)");
}

}  // namespace kiln

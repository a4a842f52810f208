// Message about memory that kernels cannot use.
#pragma once

#include <cstdint>
#include <string>

#include "kiln/device/context.h"

namespace kiln {

/// Throws Error(invalid_argument) that begins with `which`: for an address that the driver knows nothing of, or whose
/// memory ends before `bytes` bytes do.
[[noreturn]] void refuse_out_of_reach(const std::string& which, const void* address, uint64_t bytes,
                                      const device::ContextHandle& context);

}  // namespace kiln

// Where the public interface ends, running out of host memory becomes an Error like any other.
#pragma once

#include <new>

#include "kiln/base/error.h"

namespace kiln {

/// work(), with std::bad_alloc as Error(out_of_memory).
template <class Work>
decltype(auto) with_host_memory(const Work& work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::out_of_memory, "host memory ran out");
  }
}

}  // namespace kiln

// Host memory that runs out, where the public interface ends.
#include "host_memory.h"

#include <gtest/gtest.h>

namespace kiln::host_memory_test {
namespace {

TEST(HostMemory, IsAnErrorWhereItRunsOut) {
  try {
    with_host_memory([]() -> int { throw std::bad_alloc(); });
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
  }
  EXPECT_EQ(with_host_memory([] { return 5; }), 5);
}

}  // namespace
}  // namespace kiln::host_memory_test

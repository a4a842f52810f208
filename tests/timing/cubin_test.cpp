#include "kiln/timing/cubin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kiln/base/error.h"
#include "support.h"

namespace kiln::timing {
namespace {

// What ptxas -v said of the same file.
TEST(Cubin, TellsRegistersAndMemory) {
  const auto kernels = read_cubin(read_data("kernels_sm_80.cubin"));
  ASSERT_EQ(kernels.size(), 8U);
  const KernelFacts& exchange = find_kernel(kernels, "exchange");
  EXPECT_EQ(exchange.registers, 12);
  EXPECT_EQ(exchange.shared_bytes, 8192U);
  EXPECT_EQ(exchange.local_bytes, 0U);
  EXPECT_EQ(exchange.parameter_base, 0x160U);
  EXPECT_EQ(exchange.parameter_bytes, 12U);
  const KernelFacts& indexed = find_kernel(kernels, "indexed");
  EXPECT_EQ(indexed.registers, 26);
  EXPECT_EQ(indexed.local_bytes, 96U);
  EXPECT_EQ(find_kernel(kernels, "divide").constants.size(), 8U);
  EXPECT_EQ(find_kernel(kernels, "divide").parameter_bytes, 24U);
}

TEST(Cubin, ListsItsKernelsIfOneIsMissing) {
  const auto kernels = read_cubin(read_data("kernels_sm_80.cubin"));
  try {
    find_kernel(kernels, "exchanges");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr("no kernel exchanges"), testing::HasSubstr("lanes")));
  }
}

TEST(Cubin, RefusesWhatIsNone) {
  EXPECT_THROW(read_cubin(""), Error);
  EXPECT_THROW(read_cubin(std::string(1000, 'x')), Error);
  const std::string whole = read_data("kernels_sm_80.cubin");
  size_t refused = 0;
  for (size_t size = 0; size < whole.size(); size += 97) {
    try {
      read_cubin(std::string_view(whole).substr(0, size));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::parse_error);
      ++refused;
    }
  }
  EXPECT_GT(refused, whole.size() / 97 / 2);
}

}  // namespace
}  // namespace kiln::timing

#include "kiln/timing/cubin.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>

#include "kiln/base/error.h"
#include "support.h"

namespace kiln::timing::cubin_test {
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

// An attribute of .nv.info: its format 4, what it is, 8 bytes, a symbol, and its value.
void set_attribute(std::string& cubin, char attribute, uint32_t value) {
  const std::string header{'\4', attribute, '\10', '\0'};
  const size_t place = cubin.find(header);
  ASSERT_NE(place, std::string::npos);
  std::memcpy(cubin.data() + place + 8, &value, sizeof value);
}

TEST(Cubin, RefusesKernelsThatNoMachineRuns) {
  constexpr char register_count = 0x2f, frame_size = 0x11;
  const std::string whole = read_data("kernels_sm_80.cubin");
  std::string allowed = whole, registers = whole, frame = whole, sections = whole;
  set_attribute(allowed, register_count, 255);
  EXPECT_NO_THROW(read_cubin(allowed));
  set_attribute(registers, register_count, uint32_t{1} << 27);  // a warp's are 2^32
  EXPECT_THROW(read_cubin(registers), Error);
  set_attribute(frame, frame_size, ~uint32_t{0});
  EXPECT_THROW(read_cubin(frame), Error);
  const uint16_t of_header = 0;  // all 65,535 sections would be the same one
  std::memcpy(sections.data() + offsetof(Elf64_Ehdr, e_shentsize), &of_header, sizeof of_header);
  EXPECT_THROW(read_cubin(sections), Error);
}

}  // namespace
}  // namespace kiln::timing::cubin_test

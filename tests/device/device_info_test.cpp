#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "error_of.h"
#include "fake_driver.h"
#include "kiln/device/device.h"

namespace kiln::device::device_info_test {
namespace {

using testing::HasSubstr;

TEST(DeviceInfo, IdIsTheCanonicalLine) {
  // The line is a key of tuning databases: this test changes only together with a migration of the cache.
  DeviceInfo info;
  info.name = "NVIDIA H200";
  info.cc_major = 9;
  info.sms = 132;
  info.memory_bytes = 150754820096;
  info.memory_bus_bits = 6144;
  info.clock_khz = 1980000;
  info.memory_clock_khz = 3201000;
  EXPECT_EQ(info.id(),
            "name=\"NVIDIA H200\" cc=9.0 sms=132 memory=140GiB bus=6144 mig=none clock=1980MHz memory_clock=3201MHz "
            "emulated=no");
  info.emulated = true;
  info.mig_profile = "1g.18gb";
  EXPECT_THAT(info.id(), HasSubstr("mig=1g.18gb"));
  EXPECT_THAT(info.id(), testing::EndsWith("emulated=yes"));
}

TEST(DeviceInfo, IdOutlivesTheMemoryThatADriverReserves) {
  DeviceInfo info;
  info.memory_bytes = (size_t{80} << 30) - (size_t{300} << 20);
  const std::string before = info.id();
  info.memory_bytes += size_t{64} << 20;
  EXPECT_EQ(info.id(), before);
}

TEST(DeviceInfo, IdKeepsAQuoteInANameApart) {
  DeviceInfo info;
  info.name = "a\" cc=1\\";
  EXPECT_THAT(info.id(), testing::StartsWith("name=\"a\\\" cc=1\\\\\" cc=0.0"));
}

TEST(Device, QueriesEachPropertyUnderItsOwnAttribute) {
  const FakeDriver fake;
  const DeviceInfo info = Device(fake.driver(), 0).info();
  EXPECT_EQ(info.name, "Fake GPU MIG 1g.18gb");
  EXPECT_EQ(info.mig_profile, "1g.18gb");
  EXPECT_EQ(info.uuid, "GPU-00112233-4455-6677-8899-aabbccddeeff");
  EXPECT_EQ(info.memory_bytes, (size_t{18} << 30) - 12345);
  EXPECT_EQ(info.cc_major, 75000);
  EXPECT_EQ(info.cc_minor, 76000);
  EXPECT_EQ(info.sms, 16000);
  EXPECT_EQ(info.clock_khz, 13000);
  EXPECT_EQ(info.memory_clock_khz, 36000);
  EXPECT_EQ(info.memory_bus_bits, 37000);
  EXPECT_EQ(info.l2_bytes, 38000);
  EXPECT_EQ(info.shared_per_block, 8000);
  EXPECT_EQ(info.shared_per_block_optin, 97000);
  EXPECT_EQ(info.shared_per_sm, 81000);
  EXPECT_EQ(info.shared_reserved_per_block, 111000);
  EXPECT_EQ(info.registers_per_block, 12000);
  EXPECT_EQ(info.registers_per_sm, 82000);
  EXPECT_EQ(info.threads_per_block, 1000);
  EXPECT_EQ(info.threads_per_sm, 39000);
  EXPECT_EQ(info.blocks_per_sm, 106000);
  EXPECT_EQ(info.warp_size, 10000);
  EXPECT_FALSE(info.emulated);
  EXPECT_TRUE(info.reaches_host_memory);
}

TEST(Device, CutsANameThatIsLongerThanItsBuffer) {
  FakeDriver fake;
  fake.table.cuDeviceGetName = [](char* name, int length, cuda_abi::CUdevice) {
    std::memset(name, 'x', static_cast<size_t>(length));  // no zero
    return cuda_abi::CUDA_SUCCESS;
  };
  EXPECT_EQ(Device(fake.driver(), 0).info().name, std::string(255, 'x'));
}

TEST(Device, RefusesAnOrdinalThatIsNotThere) {
  FakeDriver fake;
  fake.devices = 2;
  EXPECT_NO_THROW(Device(fake.driver(), 1));
  for (const int ordinal : {-1, 2}) {
    const auto error = error_of([&] { Device(fake.driver(), ordinal); });
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.what(), HasSubstr("there are 2, of the fake driver"));
  }
}

TEST(Device, NamesTheAttributeThatFails) {
  FakeDriver fake;
  fake.table.cuDeviceGetAttribute = [](int*, cuda_abi::CUdevice_attribute, cuda_abi::CUdevice) {
    return cuda_abi::CUDA_ERROR_INVALID_VALUE;
  };
  EXPECT_THAT(error_of([&] { Device(fake.driver(), 0); }).what(), HasSubstr("attribute 75 of device 0"));
}

}  // namespace
}  // namespace kiln::device::device_info_test

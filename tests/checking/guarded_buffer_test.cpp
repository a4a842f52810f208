#include "kiln/checking/guarded_buffer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "host_driver.h"

namespace kiln::checking::guarded_buffer_test {
namespace {

// On a device whose memory is the host's.
TEST(GuardedBuffer, NoticesEachByteThatIsWrittenBesideIt) {
  const HostDriver driver;
  for (const size_t bytes : {0, 1, 2, 3, 4, 5, 6, 7, 300}) {
    for (const size_t alignment : {1, 2, 4, 16, 256}) {
      GuardedBuffer buffer(driver.context(), bytes, alignment);
      EXPECT_EQ(buffer.size(), bytes);
      EXPECT_EQ(buffer.address() % alignment, 0U);
      EXPECT_TRUE(alignment == 256 || buffer.address() % (2 * alignment) != 0) << "aligned better than " << alignment;
      for (const Placement placement : {Placement::as_allocated, Placement::aligned_no_better}) {
        buffer.place(placement);
        EXPECT_EQ(buffer.address() % 256 == 0, alignment == 256 || placement == Placement::as_allocated);
        buffer.arm(nullptr);
        auto* const data = reinterpret_cast<uint8_t*>(buffer.address());
        for (size_t i = 0; i < bytes; ++i) data[i] = static_cast<uint8_t>(i);
        EXPECT_EQ(buffer.damage(), std::nullopt) << bytes << " bytes at " << alignment;
        const auto damage_at = [&](int64_t offset) {
          const uint8_t before = data[offset];
          data[offset] = static_cast<uint8_t>(before ^ 0x10);
          const std::string damage = buffer.damage().value_or("none");
          data[offset] = before;
          return damage;
        };
        for (const int64_t distance : {1, 2, 3, 4, 5, 4095, 4096}) {
          EXPECT_EQ(damage_at(-distance), std::to_string(distance) + " bytes before the start");
          EXPECT_EQ(damage_at(static_cast<int64_t>(bytes) + distance - 1),
                    std::to_string(distance - 1) + " bytes after the end");
        }
        data[-1] = data[-9] = data[bytes + 3] = 0;
        EXPECT_EQ(buffer.damage(), "1 bytes before the start") << "the nearest";
        buffer.arm(nullptr);
        EXPECT_EQ(buffer.damage(), std::nullopt);
      }
    }
  }
}

// The emulated device itself finds accesses beyond an allocation, so data aligned no better end with theirs.
TEST(GuardedBuffer, EndsWithItsDataOnTheEmulatedDevice) {
  const HostDriver driver;
  const auto emulated = device::ContextHandle::acquire(
      device::Device(device::Driver::from_table(driver.fake.table, "an emulated device", true), 0));
  for (const size_t bytes : {0, 1, 2, 3, 5, 7, 300}) {
    for (const size_t alignment : {1, 2, 4, 16, 256}) {
      GuardedBuffer buffer(emulated, bytes, alignment);
      buffer.place(Placement::aligned_no_better);
      buffer.arm(nullptr);
      auto* const data = reinterpret_cast<uint8_t*>(buffer.address());
      for (size_t i = 0; i < bytes; ++i) data[i] = static_cast<uint8_t>(i);
      EXPECT_EQ(buffer.damage(), std::nullopt) << bytes << " bytes at " << alignment;
      for (size_t i = 0; i < bytes; ++i) EXPECT_EQ(data[i], static_cast<uint8_t>(i)) << "a zone is not in the data";
      data[-1] = 0;
      EXPECT_EQ(buffer.damage(), "1 bytes before the start");
    }
  }
}

}  // namespace
}  // namespace kiln::checking::guarded_buffer_test

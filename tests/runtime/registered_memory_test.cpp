// Memory of the host that is registered for a while.
#include <array>
#include <cmath>

#include "../device/error_of.h"
#include "device_fixture.h"
#include "kiln/memory.h"

namespace kiln::registered_memory_test {
namespace {

class RegisteredMemoryTest : public DeviceTest {};

TEST_F(RegisteredMemoryTest, IsReadAndWrittenWhereItIs) {
  Context context(options());
  const Plan plan = context.plan(Request::parse("activation_forward x=f32:4x37 mode=relu"));
  alignas(256) std::array<float, 2 * 148> host{};
  for (size_t i = 0; i < 148; ++i) host[i] = static_cast<float>(i) - 70;
  {
    const RegisteredMemory registered(context, host.data(), sizeof(host));
    plan.run(nullptr, {host.data(), host.data() + 148});
    synchronize();
  }
  for (size_t i = 0; i < 148; ++i) EXPECT_EQ(host[148 + i], std::fmax(host[i], 0.0f)) << i;
  const RegisteredMemory again(context, host.data(), sizeof(host));
}

TEST_F(RegisteredMemoryTest, RefusesNothingAndWhatIsRegisteredAlready) {
  Context context(options());
  std::array<std::byte, 64> host{};
  EXPECT_EQ(error_of([&] { RegisteredMemory(context, nullptr, 64); }).code(), ErrorCode::invalid_argument);
  EXPECT_EQ(error_of([&] { RegisteredMemory(context, host.data(), 0); }).code(), ErrorCode::invalid_argument);
  const RegisteredMemory registered(context, host.data(), host.size());
  EXPECT_EQ(error_of([&] { RegisteredMemory(context, host.data(), 8); }).code(), ErrorCode::driver_error);
}

TEST_F(RegisteredMemoryTest, IsReleasedOnce) {
  Context context(options());
  std::array<std::byte, 64> host{};
  RegisteredMemory registered(context, host.data(), host.size());
  registered.release();
  registered.release();
  const RegisteredMemory again(context, host.data(), host.size());
}

TEST_F(RegisteredMemoryTest, IsWhatAProgramOnTheEmulatedDeviceUses) {
  Context context(options());
  EXPECT_EQ(context.is_emulated(), device_->device().info().emulated);
}

}  // namespace
}  // namespace kiln::registered_memory_test

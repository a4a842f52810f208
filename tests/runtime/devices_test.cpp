// Several emulated devices in one process: each test loads emulators of its own, set up as it needs them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "device_fixture.h"
#include "kiln/base/error.h"
#include "kiln/conv.h"
#include "kiln/memory.h"
#include "kiln/reference/fill.h"
#include "kiln/reference/tensor_memory.h"
#include "kiln/reference/tolerance.h"
#include "kiln/softmax.h"

namespace kiln::devices_test {
namespace {

using testing::HasSubstr;

class DevicesTest : public DeviceTest {
 protected:
  // Contexts for the devices of an emulator whose variable `name` is `value`.
  std::vector<Context> open(const char* name, const char* value, int devices) {
    // The loader tells libraries apart by file, so a copy is a second library.
    std::string folder = testing::TempDir() + "kiln-devices-XXXXXX";
    EXPECT_NE(mkdtemp(folder.data()), nullptr);
    ContextOptions here = options();
    here.environment->driver = folder + "/libkiln_emulator.so";
    std::filesystem::copy_file(at_hand(KILN_EMULATOR_LIBRARY, "lib/libkiln_emulator.so"), *here.environment->driver);
    setenv(name, value, 1);
    std::vector<Context> contexts;
    for (here.device = 0; here.device < devices; ++here.device) contexts.emplace_back(here);
    unsetenv(name);
    std::filesystem::remove_all(folder);
    return contexts;
  }

  // The bytes of y after the plan that `context` chooses has run on seeded operands.
  static std::vector<std::byte> output_of(Context& context, const Request& request) {
    const Plan plan = context.plan(request);
    std::vector<DeviceMemory> memory;
    std::vector<Address> addresses;
    for (const Operand& operand : request.operands) {
      const auto bytes = reference::filled(operand.spec, reference::Values::uniform, 5);
      memory.emplace_back(context, bytes.size()).upload(bytes);
      addresses.emplace_back(memory.back().data());
    }
    const DeviceMemory workspace(context, static_cast<size_t>(plan.workspace_bytes()));
    plan.run(nullptr, addresses, workspace.data());
    const auto y = std::find_if(request.operands.begin(), request.operands.end(),
                                [](const Operand& operand) { return operand.name == "y"; });
    std::vector<std::byte> result(static_cast<size_t>(reference::byte_span(y->spec)));
    memory[static_cast<size_t>(y - request.operands.begin())].download(result);
    return result;
  }
};

TEST_F(DevicesTest, TwoContextsOnTwoDevicesWorkSideBySide) {
  std::vector<Context> contexts = open("KILN_EMULATOR_DEVICE", "h200,t4", 2);
  EXPECT_THAT(contexts[0].device_description(), HasSubstr("H200"));
  EXPECT_THAT(contexts[1].device_description(), HasSubstr("T4"));
  EXPECT_NE(contexts[0].device_id(), contexts[1].device_id());
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&context = contexts[static_cast<size_t>(i % 2)], i] {
      for (int round = 0; round < 10; ++round) {
        const std::vector<float> x(4 * 32, static_cast<float>(i));
        std::vector<float> y(4 * 32);
        DeviceMemory in(context, 512);
        const DeviceMemory out(context, 512);
        in.upload(std::as_bytes(std::span(x)));
        softmax_forward(context, Tensor(in.data(), f32, {4, 32}, nc), Tensor(out.data(), f32, {4, 32}, nc));
        out.download(std::as_writable_bytes(std::span(y)));
        EXPECT_THAT(y, testing::Each(1.0f / 32));
      }
    });
  }
}

TEST_F(DevicesTest, EqualInputsGiveEqualBitsHoweverManyHostThreadsExecute) {
  std::vector<Context> alone = open("KILN_EMULATOR_THREADS", "1", 1);
  std::vector<Context> shared = open("KILN_EMULATOR_THREADS", "3", 1);
  for (const char* line :
       {"conv_forward x=f32:1x256x7x7 w=f32:32x256x3x3 pad=1 deterministic",
        "conv_forward x=f16:2x16x13x11:nhwc w=f16:24x16x3x3:nhwc pad=1 epilogue=bias+relu",
        "pool_forward x=f32:2x5x33x31 mode=avg window=3 stride=2 pad=1", "softmax_forward x=f32:7x5003"}) {
    const Request request = Request::parse(line);
    ASSERT_TRUE(alone[0].plan(request).deterministic());
    const auto first = output_of(alone[0], request);
    EXPECT_TRUE(output_of(alone[0], request) == first) << request.key() << " run twice";
    EXPECT_TRUE(output_of(shared[0], request) == first) << request.key() << " by three host threads";
  }
}

}  // namespace
}  // namespace kiln::devices_test

#include "kiln/device/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "error_of.h"
#include "fake_driver.h"

namespace kiln::device::launch_test {
namespace {

using cuda_abi::CUfunction;
using cuda_abi::CUmodule;
using cuda_abi::CUresult;
using cuda_abi::CUstream;
using testing::HasSubstr;

/// A driver that loads any module, finds any kernel, and launches with `launch`.
std::shared_ptr<const ContextHandle> context_launching(FakeDriver& fake, decltype(DriverTable::cuLaunchKernel) launch) {
  fake.table.cuModuleLoadDataEx = [](CUmodule* module, const void*, unsigned, cuda_abi::CUjit_option*, void**) {
    *module = reinterpret_cast<CUmodule>(1);
    return cuda_abi::CUDA_SUCCESS;
  };
  fake.table.cuModuleUnload = [](CUmodule) { return cuda_abi::CUDA_SUCCESS; };
  fake.table.cuModuleGetFunction = [](CUfunction* function, CUmodule, const char*) {
    *function = reinterpret_cast<CUfunction>(2);
    return cuda_abi::CUDA_SUCCESS;
  };
  fake.table.cuLaunchKernel = launch;
  return fake.context();
}

TEST(Launch, PassesEverythingInItsPlace) {
  FakeDriver fake;
  // The expectation stands in the fake: each argument has a value of its own.
  const auto context = context_launching(
      fake,
      [](CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
         unsigned shared, CUstream stream, void** parameters, void** extra) -> CUresult {
        EXPECT_EQ(function, reinterpret_cast<CUfunction>(2));
        EXPECT_THAT((std::array{gx, gy, gz, bx, by, bz, shared}), testing::ElementsAre(10, 20, 30, 4, 5, 6, 777));
        EXPECT_EQ(stream, reinterpret_cast<CUstream>(3));
        EXPECT_EQ(*static_cast<int*>(parameters[0]), 42);
        EXPECT_EQ(extra, nullptr);
        return cuda_abi::CUDA_SUCCESS;
      });
  const Module module(context, "image", "m");
  int value = 42;
  void* parameters[] = {&value};
  launch(module.function("k"), {10, 20, 30}, {4, 5, 6}, 777, reinterpret_cast<CUstream>(3), parameters);
}

TEST(Launch, ThatIsRefusedNamesKernelAndGeometry) {
  FakeDriver fake;
  const auto context =
      context_launching(fake,
                        [](CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                           void**, void**) -> CUresult { return cuda_abi::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES; });
  const Module module(context, "image", "m");
  const auto error = error_of<DriverError>([&] {
    launch(module.function("tiled"), {7, 1, 1}, {1024}, 99, nullptr, nullptr);
  });
  EXPECT_THAT(error.what(),
              HasSubstr("cuLaunchKernel of 'tiled' with grid (7, 1, 1), block (1024, 1, 1) and 99 bytes"));
}

}  // namespace
}  // namespace kiln::device::launch_test

#include "kiln/device/module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

#include "error_of.h"
#include "fake_driver.h"

namespace kiln::device::module_test {
namespace {

using cuda_abi::CUresult;
using testing::HasSubstr;

/// A load that fails with `result` after writing a log of one line as a driver does.
template <CUresult result>
CUresult fail_with_log(cuda_abi::CUmodule*, const void*, unsigned count, cuda_abi::CUjit_option* options,
                       void** values) {
  size_t size = 0;
  char* log = nullptr;
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] == cuda_abi::CU_JIT_ERROR_LOG_BUFFER) log = static_cast<char*>(values[i]);
    if (options[i] == cuda_abi::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) size = reinterpret_cast<uintptr_t>(values[i]);
  }
  if (log != nullptr) std::strncpy(log, "ptxas application ptx input, line 9; error : Unknown symbol", size);
  return result;
}

TEST(Module, CarriesTheDriversLog) {
  FakeDriver fake;
  fake.table.cuModuleLoadDataEx = fail_with_log<cuda_abi::CUDA_ERROR_INVALID_PTX>;
  const auto context = fake.context();
  const auto error = error_of<DriverError>([&] { Module(context, "bad", "conv_direct"); });
  EXPECT_THAT(error.what(), HasSubstr("cuModuleLoadDataEx of 'conv_direct' failed"));
  EXPECT_THAT(error.what(), HasSubstr("line 9; error : Unknown symbol"));
  EXPECT_EQ(error.result(), cuda_abi::CUDA_ERROR_INVALID_PTX);
}

TEST(Module, SaysWhichVersionAnOldDriverSupports) {
  FakeDriver fake;
  fake.version = 12040;
  fake.table.cuModuleLoadDataEx = fail_with_log<cuda_abi::CUDA_ERROR_UNSUPPORTED_PTX_VERSION>;
  const auto context = fake.context();
  EXPECT_THAT(error_of([&] { Module(context, "new", "k"); }).hint(), HasSubstr("up to CUDA 12.4"));
}

TEST(Module, SaysThatACubinIsForAnotherArchitecture) {
  FakeDriver fake;
  fake.table.cuModuleLoadDataEx = fail_with_log<cuda_abi::CUDA_ERROR_NO_BINARY_FOR_GPU>;
  const auto context = fake.context();
  EXPECT_THAT(error_of([&] { Module(context, "other", "k"); }).hint(), HasSubstr("another architecture"));
}

}  // namespace
}  // namespace kiln::device::module_test

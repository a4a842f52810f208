// The next variant is tried where one cannot be had: an NVRTC that compiles nothing counts the attempts.
#include "plan_maker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "fake_driver.h"
#include "kiln/base/error.h"

namespace kiln::plan_maker_test {
namespace {

using testing::HasSubstr;

class WithoutKernels : public testing::Test {
 protected:
  WithoutKernels() {
    std::filesystem::remove(log_);
    fake_.table.cuDeviceGetAttribute = [](int* value, cuda_abi::CUdevice_attribute attribute, cuda_abi::CUdevice) {
      *value = attribute == cuda_abi::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR   ? 9
               : attribute == cuda_abi::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR ? 0
                                                                                     : 1000;
      return cuda_abi::CUDA_SUCCESS;
    };
    ::setenv("FAKE_NVRTC_VERSION", "13.0", 1);
    ::setenv("FAKE_NVRTC_ARCHS", "75 80 90", 1);
    ::setenv("FAKE_NVRTC_LOG", log_.c_str(), 1);
    environment_.nvrtc = KILN_FAKE_NVRTC;
    environment_.cache = environment_.kernel_store = "off";
  }
  ~WithoutKernels() override {
    for (const char* name : {"FAKE_NVRTC_LOG", "FAKE_NVRTC_FAILS"}) ::unsetenv(name);
  }

  // Error of making a plan.
  Error failure() {
    PlanMaker maker(options_, environment_, fake_.context(), [](const std::string&) {});
    try {
      maker.make(Request::parse("softmax_forward x=f32:4x37"));
    } catch (const Error& error) {
      return error;
    }
    ADD_FAILURE() << "it was made of nothing";
    return {ErrorCode::internal, ""};
  }

  // How often NVRTC was asked for a kernel.
  long attempts() const {
    std::ifstream stream(log_);
    return std::count(std::istreambuf_iterator<char>(stream), {}, '\n');
  }

  const std::string log_ = testing::TempDir() + "asked.txt";
  device::FakeDriver fake_;
  ContextOptions options_;
  Environment environment_;
};

TEST_F(WithoutKernels, OthersAreTriedAndTheFirstFailureIsSaidInTheEnd) {
  const Error error = failure();
  EXPECT_EQ(error.code(), ErrorCode::compile_failed);
  EXPECT_THAT(error.what(), HasSubstr("it compiles nothing"));
  EXPECT_EQ(attempts(), 8);
}

TEST_F(WithoutKernels, AFaultThatIsNotOfTheVariantEndsTheAttempts) {
  ::setenv("FAKE_NVRTC_FAILS", "early", 1);
  EXPECT_EQ(failure().code(), ErrorCode::internal);
  EXPECT_EQ(attempts(), 1);
}

TEST_F(WithoutKernels, MemoryThatRunsOutWhileItCompilesIsNoFaultOfTheVariant) {
  ::setenv("FAKE_NVRTC_FAILS", "memory", 1);
  EXPECT_EQ(failure().code(), ErrorCode::out_of_memory);
  EXPECT_EQ(attempts(), 1);
}

TEST_F(WithoutKernels, ALockedContextSaysWhatIsNotNamed) {
  options_.locked = true;
  const Error error = failure();
  EXPECT_EQ(error.code(), ErrorCode::unsupported);
  EXPECT_THAT(error.what(), HasSubstr("names a variant of softmax_forward x=f32:4x37:nc "));
  EXPECT_THAT(error.what(), HasSubstr(" that may be used, and this Context is locked to them")) << "nothing is stale";
  EXPECT_EQ(attempts(), 0);
}

}  // namespace
}  // namespace kiln::plan_maker_test

#include "kiln/device/driver.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "error_of.h"
#include "fake_driver.h"

namespace kiln::device::driver_test {
namespace {

using cuda_abi::CUresult;
using testing::HasSubstr;

TEST(Driver, ErrorNamesTheCallTheObjectAndTheDriversText) {
  const FakeDriver fake;
  const auto error = error_of<DriverError>(
      [&] { fake.driver()->check(cuda_abi::CUDA_ERROR_INVALID_VALUE, "cuEventRecord", "an event"); });
  EXPECT_STREQ(error.what(), "cuEventRecord of an event failed: CUDA_ERROR_PLANTED, as the test wants it");
  EXPECT_EQ(error.code(), ErrorCode::driver_error);
  EXPECT_EQ(error.result(), cuda_abi::CUDA_ERROR_INVALID_VALUE);
  EXPECT_FALSE(error.is_sticky());
}

// A colon, so that what takes one line of it knows that the reason is in the next.
TEST(Driver, ErrorAnnouncesTheLinesThatFollow) {
  const FakeDriver fake;
  const auto fail = [&](std::string_view detail) {
    return error_of<DriverError>(
        [&] { fake.driver()->fail(cuda_abi::CUDA_ERROR_INVALID_VALUE, "cuModuleLoadData", "'m'", detail); });
  };
  EXPECT_STREQ(fail("line one\nline two").what(),
               "cuModuleLoadData of 'm' failed: CUDA_ERROR_PLANTED, as the test wants it:\nline one\nline two");
}

TEST(Driver, ErrorWithoutTheDriversTextGivesTheCode) {
  const auto driver = Driver::from_table({}, "an empty table");
  const auto error = error_of<DriverError>([&] { driver->check(static_cast<CUresult>(777), "cuInit", "it"); });
  EXPECT_THAT(error.what(), HasSubstr("driver code 777"));
}

TEST(Driver, ErrorPutsTheDetailAfterTheTextAndTheHintLast) {
  const FakeDriver fake;
  const auto error = error_of<DriverError>(
      [&] { fake.driver()->fail(cuda_abi::CUDA_ERROR_INVALID_PTX, "cuX", "'k'", "line 7: bad opcode", "do this"); });
  EXPECT_THAT(error.message(), testing::EndsWith("\nline 7: bad opcode"));
  EXPECT_EQ(error.hint(), "do this");
}

TEST(Driver, SuccessDoesNotThrow) {
  EXPECT_NO_THROW(FakeDriver().driver()->check(cuda_abi::CUDA_SUCCESS, "cuX", "it"));
}

TEST(Driver, OutOfMemoryHasItsOwnCode) {
  const DriverError error(cuda_abi::CUDA_ERROR_OUT_OF_MEMORY, "none left");
  EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
  EXPECT_FALSE(error.is_sticky());
}

TEST(Driver, FaultsOfKernelsAreSticky) {
  for (const CUresult result : {cuda_abi::CUDA_ERROR_ILLEGAL_ADDRESS, cuda_abi::CUDA_ERROR_MISALIGNED_ADDRESS,
                                cuda_abi::CUDA_ERROR_LAUNCH_FAILED, cuda_abi::CUDA_ERROR_LAUNCH_TIMEOUT,
                                cuda_abi::CUDA_ERROR_ASSERT, cuda_abi::CUDA_ERROR_ILLEGAL_INSTRUCTION}) {
    EXPECT_TRUE(DriverError(result, "").is_sticky()) << result;
  }
  EXPECT_FALSE(DriverError(cuda_abi::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "").is_sticky());
}

// CUDA driver API, CUresult: those of which it says that the process has to end, and a context that is destroyed.
TEST(Driver, FaultsOfTheContextAreThoseThatTheManualNames) {
  std::vector<int> sticky;
  for (int code = 0; code <= 1000; ++code) {
    if (DriverError(static_cast<CUresult>(code), "").is_sticky()) sticky.push_back(code);
  }
  EXPECT_THAT(sticky, testing::ElementsAre(214, 220, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719));
}

TEST(Driver, NamesALibraryThatIsNotThere) {
  const auto error = error_of([] { Driver::open({.library = "/nowhere/libdriver.so"}); });
  EXPECT_EQ(error.code(), ErrorCode::missing_library);
  EXPECT_THAT(error.what(), HasSubstr("/nowhere/libdriver.so"));
  EXPECT_THAT(error.hint(), HasSubstr("KILN_DRIVER"));
}

TEST(Driver, OfTheSystemIsMissingOnlyWhereItIs) {
  void* const library = ::dlopen("libcuda.so.1", RTLD_NOW);
  std::string said;
  try {
    Driver::open({.library = "cuda"});
  } catch (const Error& error) {
    said = error.what();
  }
  EXPECT_EQ(said.find("the CUDA driver could not be loaded: libcuda.so.1") != std::string::npos, library == nullptr)
      << said;
  if (library != nullptr) ::dlclose(library);
}

TEST(Driver, NamesTheEntryPointThatALibraryLacks) {
  const auto error = error_of([] { Driver::open({.library = "libm.so.6"}); });
  EXPECT_EQ(error.code(), ErrorCode::missing_library);
  EXPECT_THAT(error.what(), HasSubstr("libm.so.6 lacks the entry point cuInit"));
}

TEST(Driver, VersionTextIsMajorAndMinor) {
  EXPECT_EQ(cuda_version_text(13000), "13.0");
  EXPECT_EQ(cuda_version_text(11080), "11.8");
}

}  // namespace
}  // namespace kiln::device::driver_test
